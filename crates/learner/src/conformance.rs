//! Whether a program is a learner: everything that a device asks of it, tried step by step.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use stlf_learn::Params;
use stlf_learn::evaluate::Predictions;
use stlf_method::learner::{Progress, Watch};

use crate::Error;
use crate::arrays::Samples;
use crate::command::Options;
use crate::session::Session;

/// How far probabilities of the same samples may be apart.
const ROUNDING: f32 = 1e-4;

/// The most samples that are asked for in one step.
const SOME: usize = 1_000;

/// One step, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// What a learner must do in this step.
    pub what: &'static str,
    /// What the learner did in this step.
    pub outcome: Outcome,
}

/// Whether a learner did what a step asks of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It did, and this is what was seen.
    Passed(String),
    /// It did not, for this reason.
    Failed(String),
    /// The step could not be tried, for this reason.
    Skipped(String),
}

/// Tries a program. Steps that need an earlier one which failed are not in the list.
pub fn check(options: &Options) -> Vec<Checked> {
    let mut steps = Steps::default();
    let Some(mut session) = steps.take("starts and greets", greet(options)) else {
        return steps.done;
    };
    let Some(samples) = steps.take("describes its samples", describe(&mut session)) else {
        return steps.done;
    };
    let labeled: Vec<usize> = labeled(&samples);
    let all: Vec<usize> = (0..samples.labels.len()).take(SOME).collect();
    if labeled.is_empty() {
        steps.skip("trains", "none of its samples has a label");
    } else if let Some(model) = steps.take("trains", train(&mut session, &labeled, None)) {
        let on = train(&mut session, &labeled, Some(&model));
        steps.take("goes on from a model that it is given", on);
        steps.take("predicts", predict(&mut session, &model, &all));
        steps.take("predicts the samples that it is asked for", subset(&mut session, &model, &all));
        if session.welcome.adapts {
            steps.take("trains a student", adapt(&mut session, &model, &all));
            steps.take("predicts altered samples", altered(&mut session, &model, &all));
        }
        steps.take("says an error and goes on", nonsense(&mut session, &model, &all));
        let given_up = cancel(&mut session, &labeled, options.limits.grace);
        steps.take("gives up when it is asked to", given_up);
        let again = predict(&mut session, &model, &all);
        steps.take("works after that", again);
    }
    let first = (session.welcome.clone(), samples);
    steps.take("ends when it is told to", stop(session));
    steps.take("says the same when it is started again", same_again(options, &first));
    steps.done
}

#[derive(Default)]
struct Steps {
    done: Vec<Checked>,
}

/// What a step gives the next ones, and what is told of it.
type Step<T> = Result<(T, String), String>;

impl Steps {
    fn take<T>(&mut self, what: &'static str, step: Step<T>) -> Option<T> {
        let (given, outcome) = match step {
            Ok((given, told)) => (Some(given), Outcome::Passed(told)),
            Err(message) => (None, Outcome::Failed(message)),
        };
        self.done.push(Checked { what, outcome });
        given
    }

    fn skip(&mut self, what: &'static str, why: &str) {
        self.done.push(Checked { what, outcome: Outcome::Skipped(why.to_owned()) });
    }
}

fn told(error: Error) -> String {
    error.to_string()
}

fn go_on() -> impl FnMut(Progress) -> ControlFlow<()> {
    |_| ControlFlow::Continue(())
}

fn greet(options: &Options) -> Step<Session> {
    let began = Instant::now();
    let session = Session::start(options, &mut go_on()).map_err(told)?;
    let welcome = &session.welcome;
    let text = format!(
        "{}, classes {}, model {} ({} numbers), after {}",
        welcome.name,
        welcome.classes.join(", "),
        session.layout,
        session.layout.parameters(),
        seconds(began)
    );
    Ok((session, text))
}

fn describe(session: &mut Session) -> Step<Samples> {
    let samples = session.describe(&mut go_on()).map_err(told)?;
    if samples.width == 0 {
        return Err("it gives no features; devices of a fleet are compared by them".to_owned());
    }
    let (count, labels) = (samples.labels.len(), labeled(&samples).len());
    if count == 0 {
        return Err("it has no samples".to_owned());
    }
    let text = format!("{count} samples, {labels} labels, {} features each", samples.width);
    Ok((samples, text))
}

fn labeled(samples: &Samples) -> Vec<usize> {
    let all = samples.labels.iter().enumerate();
    all.filter(|(_, label)| label.is_some()).map(|(at, _)| at).collect()
}

fn train(session: &mut Session, rows: &[usize], start: Option<&Params>) -> Step<Params> {
    let (began, mut signs) = (Instant::now(), 0);
    let mut last = Progress::default();
    let watch: &mut Watch<'_> = &mut |progress| {
        signs += usize::from(progress != last);
        last = progress;
        ControlFlow::Continue(())
    };
    let trained = session.train(rows.iter().copied(), start, 1, watch).map_err(told)?;
    let model = trained.ok_or("it gave up, and nobody asked for that")?;
    let text = format!("on {} labels in {}, {signs} signs of progress", rows.len(), seconds(began));
    Ok((model, text))
}

fn predicted(session: &mut Session, model: &Params, rows: &[usize]) -> Result<Predictions, String> {
    let made = session.predict(model, rows.iter().copied(), None, &mut go_on()).map_err(told)?;
    made.ok_or_else(|| "it gave up, and nobody asked for that".to_owned())
}

fn predict(session: &mut Session, model: &Params, rows: &[usize]) -> Step<()> {
    let began = Instant::now();
    predicted(session, model, rows)?;
    Ok(((), format!("{} samples in {}", rows.len(), seconds(began))))
}

/// Some samples in another order have the probabilities that they have among all.
fn subset(session: &mut Session, model: &Params, all: &[usize]) -> Step<()> {
    let some: Vec<usize> = all.iter().rev().step_by(2).copied().collect();
    let (whole, part) = (predicted(session, model, all)?, predicted(session, model, &some)?);
    for (&row, got) in some.iter().zip(part.probabilities()) {
        let far = got.iter().zip(whole.of(row)).any(|(a, b)| (a - b).abs() > ROUNDING);
        if far {
            let message = "asked for alone, sample";
            return Err(format!(
                "{message} {row} has the probabilities {got:?}, and among all {:?}",
                whole.of(row)
            ));
        }
    }
    Ok(((), format!("{} samples in another order", some.len())))
}

/// A student of a mixture of one model.
fn adapt(session: &mut Session, model: &Params, rows: &[usize]) -> Step<()> {
    let (began, teacher) = (Instant::now(), predicted(session, model, rows)?);
    let own = rows.iter().copied();
    let student = session.adapt(own, &teacher, model, 3, &mut go_on()).map_err(told)?;
    student.ok_or("it gave up, and nobody asked for that")?;
    Ok(((), format!("on {} samples in {}", rows.len(), seconds(began))))
}

/// A seed alters samples in one way, as often as it is asked for.
fn altered(session: &mut Session, model: &Params, rows: &[usize]) -> Step<()> {
    let plain = predicted(session, model, rows)?;
    let mut by_seed = |seed: u64| -> Result<Predictions, String> {
        let own = rows.iter().copied();
        let made = session.predict(model, own, Some(seed), &mut go_on()).map_err(told)?;
        made.ok_or_else(|| "it gave up, and nobody asked for that".to_owned())
    };
    let (first, other, again) = (by_seed(1)?, by_seed(2)?, by_seed(1)?);
    if first != again {
        return Err("altered twice by the same seed, samples have other probabilities".to_owned());
    }
    if first == plain && other == plain {
        return Err("samples have the same probabilities, however they are altered".to_owned());
    }
    let changed = first.classes().zip(plain.classes()).filter(|(a, b)| a != b).count();
    Ok(((), format!("{changed} of {} have another class than before", rows.len())))
}

fn nonsense(session: &mut Session, model: &Params, all: &[usize]) -> Step<()> {
    match session.ask_for_nonsense(&mut go_on()) {
        Err(Error::Refused { message, .. }) => {
            predicted(session, model, all)?;
            Ok(((), format!("of a file that is not there: {message}")))
        }
        Err(other) => Err(told(other)),
        Ok(()) => Err("it says that it predicted with a model that is not there".to_owned()),
    }
}

fn cancel(session: &mut Session, rows: &[usize], grace: Duration) -> Step<()> {
    let mut asked = None;
    let watch: &mut Watch<'_> = &mut |_| {
        asked.get_or_insert_with(Instant::now);
        ControlFlow::Break(())
    };
    let trained = session.train(rows.iter().copied(), None, 2, watch).map_err(told)?;
    match (trained, asked) {
        (Some(_), _) | (None, None) => {
            Ok(((), "it had trained before it could be asked".to_owned()))
        }
        (None, Some(at)) if at.elapsed() < grace => Ok(((), format!("after {}", seconds(at)))),
        (None, Some(_)) => Err(format!("it did not within {grace:?}, and was ended")),
    }
}

fn stop(session: Session) -> Step<()> {
    let began = Instant::now();
    let status = session.stop();
    match status.success() {
        true => Ok(((), format!("after {}", seconds(began)))),
        false => Err(format!("it ended with {status}")),
    }
}

fn same_again(
    options: &Options,
    (welcome, samples): &(crate::message::Welcome, Samples),
) -> Step<()> {
    let mut session = Session::start(options, &mut go_on()).map_err(told)?;
    let again = session.describe(&mut go_on()).map_err(told)?;
    if session.welcome != *welcome {
        return Err(format!("it was {}, and now says {:?}", welcome.name, session.welcome));
    }
    match again == *samples {
        true => Ok(((), "name, classes, model, samples".to_owned())),
        false => Err("its samples are others than before".to_owned()),
    }
}

fn seconds(since: Instant) -> String {
    format!("{:.2} s", since.elapsed().as_secs_f64())
}
