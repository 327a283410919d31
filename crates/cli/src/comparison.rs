//! The comparison of methods, as text.

mod evidence;
mod trouble;

use std::fmt::Display;

use stlf_config::Config;
use stlf_lab::Outcome;
use stlf_lab::record::{ComputingRow, ExpectedRow, RefusedRow, StudentRow, TrainingRow};
use stlf_lab::stages::expectation::TABLE as EXPECTED;
use stlf_lab::stages::handover::REFUSED;
use stlf_lab::stages::measure::protection;
use stlf_lab::stages::student::FOLDER as STUDENTS;
use stlf_lab::stages::train::TABLE as TRAINING;
use stlf_lab::summary::{Line, Spread, summarise};
use stlf_method::expectation::{Expected, Warning};
use stlf_method::method::Method;
use stlf_planning::energy::PAPER_MODEL_BITS;
use stlf_planning::number_format::{clean, counted, energy, percent, short, size};
use stlf_planning::problem::Preset;

use self::evidence::support;
pub(crate) use self::evidence::{calibration, scale};
pub(crate) use self::trouble::{never_predicted, refusing, unheard};
use crate::table::{Align, Cell, Table};

/// The most devices that are named in a line.
const MOST_NAMES: usize = 5;

/// Returns the table of a run, and a line that says what it shows.
pub(crate) fn comparison(outcome: &Outcome, config: &Config, methods: &[Method]) -> String {
    let lines: Vec<Line> = summarise(&outcome.rows);
    if lines.is_empty() {
        let alone =
            "No method has a target: every device trains for itself, and no model is sent.\n";
        return [alone.to_owned(), measuring(outcome, config), refusing(outcome)].concat();
    }
    let mut table = Table::new(&[
        ("method", Align::Left),
        ("target accuracy", Align::Right),
        ("targets", Align::Right),
        ("links", Align::Right),
        ("energy", Align::Right),
        ("of all links", Align::Right),
        ("sent", Align::Right),
    ]);
    for line in &lines {
        let label = line.method.parse::<Method>().map_or(line.method.as_str(), |m| m.label());
        let accuracy = match line.accuracy {
            Some(a) if a.count > 1 => {
                format!("{:.1} ± {:.1} %", 100.0 * a.mean, 100.0 * a.half_interval())
            }
            // One seed has no interval, which is not one of width 0.
            Some(a) => format!("{:.1} %", 100.0 * a.mean),
            None if line.links.mean > 0.0 => "not known".to_owned(),
            None => "no model".to_owned(),
        };
        let mean = |spread: &Spread| format!("{:.1}", spread.mean);
        let cells: [Cell; 7] = [
            label.into(),
            accuracy.into(),
            targets(line).into(),
            mean(&line.links).into(),
            energy(line.total_joules.mean).into(),
            line.energy_share.map_or(String::new(), |s| format!("{:.0} %", 100.0 * s.mean)).into(),
            size(line.total_bytes.mean).into(),
        ];
        table.row(cells);
    }
    let is_ours = ours(&lines).is_some();
    let notes = [
        table.render(),
        missing(methods, &lines),
        means(config),
        scored(&lines),
        format!("Energy and sent: totals; {}{}.\n", paid(&lines), warmed_up(config)),
        "Of all links: that energy over what it costs if every source sends to every target, which needs no measuring.\n".to_owned(),
        handovers(&lines, config),
        measuring(outcome, config),
        assumed(config),
        dealt(outcome),
        scale(outcome),
        calibration(outcome, config),
        guessing(outcome),
        if is_ours { never_predicted(outcome) } else { String::new() },
        refusing(outcome),
        unheard(outcome, config),
        refused(outcome),
        support(outcome, &lines, config),
        if is_ours { expected(outcome) } else { String::new() },
        students(outcome, config),
        learners(outcome, config),
        computing(outcome, config),
    ];
    notes.concat()
}

/// Says what the numbers of the table are.
fn means(config: &Config) -> String {
    let means = match config.seeds.len() {
        1 => {
            "Of one seed, which does not say how much results differ from draw to draw.".to_owned()
        }
        seeds => {
            format!("Means over {seeds} seeds; ± is the 95 % interval of the mean (Student's t).")
        }
    };
    format!(
        "\n{means}\nAccuracy: of a method's own targets on their own data, by labels that no method but Oracle sees.\n"
    )
}

/// Returns a line on how the samples of a table were dealt, if the user did not say how to deal them.
pub(crate) fn dealt(outcome: &Outcome) -> String {
    let told = |how: &String| format!("{how}; another partition.kind deals them differently.\n");
    outcome.dealt_by.as_ref().map_or(String::new(), told)
}

/// The number of targets, and of how many of them the accuracy is known if that is some and not all.
fn targets(line: &Line) -> String {
    let (scored, all) = (line.scored.mean, line.targets.mean);
    match line.accuracy.is_some() && scored < all {
        true => format!("{scored:.1} of {all:.1}"),
        false => format!("{all:.1}"),
    }
}

/// Says what it means that the accuracy is known of some targets alone.
fn scored(lines: &[Line]) -> String {
    match lines.iter().any(|line| line.accuracy.is_some() && line.scored.mean < line.targets.mean) {
        true => "Targets \"2.0 of 7.0\": the accuracy of two of seven is known, and the mean is theirs; do not compare it with that of other targets.\n".to_owned(),
        false => String::new(),
    }
}

/// The line of ST-LF, if it was compared.
fn ours(lines: &[Line]) -> Option<&Line> {
    lines.iter().find(|line| line.method == Method::StLf.name())
}

/// Says what is not done where devices have learners of the user's.
fn learners(outcome: &Outcome, config: &Config) -> String {
    match config.training.learner {
        Some(_) if outcome.students.is_empty() => {
            "Devices have learners: no students (transfer.adapt), no balanced models (training.balanced).\n".to_owned()
        }
        Some(_) => "Devices have learners: no balanced models (training.balanced).\n".to_owned(),
        None => String::new(),
    }
}

/// Returns a line with the accuracy that targets may expect without any label, and how often the truth was as expected.
pub(crate) fn expected(outcome: &Outcome) -> String {
    let rows = &outcome.expected;
    let said: Vec<Expected> = rows.iter().filter_map(ExpectedRow::said).collect();
    let mean = |value: fn(&Expected) -> f64| {
        Spread::of(&said.iter().map(value).collect::<Vec<f64>>()).map(|spread| spread.mean)
    };
    let ends = mean(|said| said.low).zip(mean(|said| said.high));
    let Some((middle, (low, high))) = mean(|said| said.accuracy).zip(ends) else {
        return warnings(rows);
    };
    let of = match said.len() < rows.len() {
        true => format!("{} of {} targets", said.len(), rows.len()),
        false => "targets".to_owned(),
    };
    let held: Vec<bool> = rows.iter().filter_map(ExpectedRow::holds).collect();
    let truth = match held.len() {
        0 => String::new(),
        known => {
            let right = held.iter().filter(|held| **held).count();
            format!("; the truth is in the interval at {right} of {}", counted(known, "target"))
        }
    };
    let expected = Expected { accuracy: middle, low, high };
    format!(
        "Expected accuracy of ST-LF, without labels of targets: {expected}, means over {of}{truth} (seed-*/{EXPECTED}).\n{}",
        warnings(rows)
    )
}

/// Returns a line for each thing that targets are told because they may expect little, or little is known of what they may.
fn warnings(rows: &[ExpectedRow]) -> String {
    let line = |warning: Warning| {
        let told = rows.iter().filter(|row| row.warning == Some(warning));
        let names: Vec<&str> = told.map(|row| row.target.as_str()).collect();
        (!names.is_empty()).then(|| {
            let (count, of) = (names.len(), counted(rows.len(), "target"));
            let (names, told) = (few(names), ask_for_labels(&warning, "RUN"));
            format!("At {count} of {of} ({names}) {told}\n")
        })
    };
    [Warning::TooFewLabels, Warning::Guessing, Warning::NobodyNear, Warning::SaysLittle]
        .into_iter()
        .filter_map(line)
        .collect()
}

/// Returns the first of these names, each once, and how many more there are.
fn few(mut names: Vec<&str>) -> String {
    names.sort_unstable();
    names.dedup();
    let others = names.len().saturating_sub(MOST_NAMES);
    let named: Vec<String> = names.into_iter().take(MOST_NAMES).map(clean).collect();
    let more = if others > 0 { format!(" and {others} more") } else { String::new() };
    named.join(", ") + &more
}

/// Returns a line that names the devices whose own models are no better than guessing, if there are any.
pub(crate) fn guessing(outcome: &Outcome) -> String {
    let labeled = outcome.training.iter().filter(|row| row.source_error.is_some());
    let useless = outcome.training.iter().filter(|row| row.guessing().is_some());
    let names: Vec<&str> = useless.map(|row: &TrainingRow| row.device.as_str()).collect();
    match names.len() {
        0 => String::new(),
        count => format!(
            "At {count} of {} with labels ({}) {} no better than guessing: look at the labels and features there (seed-*/{TRAINING}).\n",
            counted(labeled.count(), "device"),
            few(names),
            if count == 1 { "its own model is" } else { "their own models are" }
        ),
    }
}

/// Returns lines that name the devices whose models other sources or examiners refused, if there are any.
pub(crate) fn refused(outcome: &Outcome) -> String {
    let (handed, sent): (Vec<&RefusedRow>, Vec<&RefusedRow>) =
        outcome.refused.iter().partition(|row| row.way.is_some());
    let line = |rows: &[&RefusedRow], whose: &str, how: &str, then: &str| match rows.len() {
        0 => String::new(),
        count => format!(
            "{whose} labels contradict {} {how} {}{then}: look at the labels of both (seed-*/{REFUSED}).\n",
            counted(count, "model"),
            few(rows.iter().map(|row| row.from.as_str()).collect()),
        ),
    };
    line(&handed, "The next source's", "from", "; it passed on its own instead")
        + &line(&sent, "An examiner's", "sent to targets by", "")
}

/// Returns what a target is told, with what to do about it; `what` follows `stlf ask`.
pub(crate) fn ask_for_labels(warning: &dyn Display, what: &str) -> String {
    format!("{warning}: ask for labels with stlf ask {what}")
}

/// Returns a line for every method whose targets may train students: how many did, how many use it, and what that changes.
pub(crate) fn students(outcome: &Outcome, config: &Config) -> String {
    let methods = config.compare.students().unwrap_or_default();
    let lines = methods.into_iter().filter_map(|method| {
        let of_method = outcome.students.iter().filter(|row| row.method == method.name());
        let (tried, idle): (Vec<&StudentRow>, Vec<&StudentRow>) =
            of_method.partition(|row| row.tried);
        let targets = tried.len() + idle.len();
        let used = tried.iter().filter(|row| row.used).count();
        let mut line = (targets > 0).then(|| {
            let (count, label) = (counted(targets, "target"), method.label());
            format!("Students in {label}: {} of {count} trained one, {used} use it", tried.len())
        })?;
        let mean = |value: fn(&StudentRow) -> Option<f64>| {
            let known: Vec<f64> = tried.iter().filter_map(|row| value(row)).collect();
            Spread::of(&known).map(|spread| percent(spread.mean))
        };
        let accuracies = mean(|row| row.mixture_accuracy).zip(mean(|row| row.student_accuracy));
        if let Some((mixture, student)) = accuracies {
            line +=
                &format!("; the mixture alone has {mixture} there, every student used {student}");
        }
        if let Some(row) = idle.first() {
            let such_as = if idle.len() > 1 { "such as " } else { "" };
            line += &format!("; {such_as}{} {}", row.target, row.outcome);
        }
        Some(format!("{line} (seed-*/{STUDENTS}).\n"))
    });
    lines.collect()
}

/// Returns a line with what devices compute for ST-LF, where that is priced.
fn computing(outcome: &Outcome, config: &Config) -> String {
    let Some(per_joule) = config.energy.gflop_per_joule else { return String::new() };
    let per_seed = |value: fn(&ComputingRow) -> f64| {
        outcome.computing.iter().map(value).sum::<f64>() / config.seeds.len() as f64
    };
    format!(
        "Computing for ST-LF, per seed: {:.0} GFLOP of training, {:.0} of training on models handed over, {:.0} of students; \
         together {} at {} GFLOP per joule, which is part of no energy above.\n",
        per_seed(|row| row.training_gflop),
        per_seed(|row| row.handed_gflop),
        per_seed(|row| row.student_gflop),
        energy(per_seed(|row| row.joules)),
        short(per_joule)
    )
}

/// Says what the total energies consist of: links, and measuring if a method needs divergences.
fn paid(lines: &[Line]) -> &'static str {
    let pays =
        |line: &&Line| line.method.parse::<Method>().is_ok_and(|method| method.needs_divergences());
    match lines.iter().find(pays) {
        Some(_) => "links, and for ST-LF also the measuring by which it chooses them",
        None => "links alone",
    }
}

/// What every method's total has besides.
fn warmed_up(config: &Config) -> &'static str {
    if config.training.warm_up_rounds > 0 { ", and for all of them the warm-up" } else { "" }
}

/// Explains hand-overs, which change models, if ST-LF may have some, and the method without them.
fn handovers(lines: &[Line], config: &Config) -> String {
    let has = |method: Method| lines.iter().any(|line| line.method == method.name());
    let mut text = String::new();
    if has(Method::StLf) && config.planner.hands_on() {
        text += "In ST-LF, sources hand models on to other sources, which continue training them, where that pays off; hand-overs count as links.\n";
        if has(Method::Links) {
            text += "ST-LF links is the plan without hand-overs.\n";
        }
    }
    text
}

/// Names the requested methods that have no line in the table, with the reason.
fn missing(methods: &[Method], lines: &[Line]) -> String {
    let absent = methods.iter().filter(|m| lines.iter().all(|line| line.method != m.name()));
    let (blind, idle): (Vec<&Method>, Vec<&Method>) = absent.partition(|m| m.needs_accuracies());
    let names =
        |methods: &[&Method]| methods.iter().map(|m| m.label()).collect::<Vec<_>>().join(", ");
    let mut text = String::new();
    if !blind.is_empty() {
        let who = names(&blind);
        text +=
            &format!("\n{who}: left out, because the targets' true classes are not in the data.\n");
    }
    if !idle.is_empty() {
        text += &format!("\n{}: no target, every device trains for itself.\n", names(&idle));
    }
    text
}

/// Returns a warning if the joules are not those of the models that are really sent.
fn assumed(config: &Config) -> String {
    let bits = match (config.energy.model_bits, config.planner.preset) {
        (Some(bits), _) => bits,
        (None, Preset::Paper) => PAPER_MODEL_BITS,
        (None, Preset::Balanced) => return String::new(),
    };
    format!(
        "Joules of links assume models of {} bits (energy.model-bits), whatever their real size.\n",
        short(bits)
    )
}

/// Returns what measuring divergences cost, and the privacy that it guarantees.
pub(crate) fn measuring(outcome: &Outcome, config: &Config) -> String {
    let seeds = config.seeds.len() as f64;
    let bytes = outcome.measuring.iter().map(|row| row.bytes as f64).sum::<f64>() / seeds;
    let joules = outcome.measuring.iter().map(|row| row.joules).sum::<f64>() / seeds;
    format!(
        "Measuring divergences ({}) sent {} and cost {} per seed. {}\n",
        config.divergence.estimator().name(),
        size(bytes),
        energy(joules),
        protection(config, &outcome.measuring),
    )
}
