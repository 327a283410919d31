use std::cell::RefCell;
use std::sync::Mutex;

use stlf_learn::{Descent, Layout};

use super::super::{Schooling, Student};
use super::*;
use crate::adapt::{Adapt, Judged, Judgement, LEAST_LABELS, LEAST_SAMPLES, Obstacle};
use crate::combine::Combine;
use crate::guard::Guard;
use crate::learner::{Adaptation, Lesson};

/// Samples on a line, of which a model of one number says that those above it are of class 1, the surer the farther away they are. Students
/// lie between the samples of the two classes of the teacher. To alter a sample is to move it.
#[derive(Debug)]
struct Line {
    layout: Layout,
    points: Vec<f32>,
    adapts: bool,
    /// What it was asked for, in order.
    asked: Mutex<Vec<String>>,
}

impl Line {
    fn new(adapts: bool) -> Line {
        let layout = Layout::new([("threshold", &[1][..])]).unwrap();
        // Two heaps, around −1 and 1, and none at 0.
        let points = (0..300).map(|k| (k % 2 * 2 - 1) as f32 + (k * 7 % 40) as f32 / 100.0 - 0.2);
        let (points, asked) = (points.collect(), Mutex::default());
        Line { layout, points, adapts, asked }
    }

    fn said(&self, model: &Params, moved: impl Fn(usize) -> f32, rows: &[usize]) -> Predictions {
        let one = |row: &usize| {
            let odds = (8.0 * (self.points[*row] + moved(*row) - model[0])).exp();
            [1.0 / (1.0 + odds), odds / (1.0 + odds)]
        };
        Predictions::new(rows.iter().flat_map(one).collect(), 2)
    }

    fn note(&self, what: String, watch: &mut Watch<'_>) -> ControlFlow<()> {
        self.asked.lock().unwrap().push(what);
        watch(Progress { done: 1, total: 2 })
    }
}

impl Learner for Line {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn train(&self, _: Lesson<'_>, _: &mut Watch<'_>) -> Result<Option<Params>, Error> {
        Err(Error::other("learner", "students are not trained so"))
    }

    fn predict(
        &self,
        model: &Params,
        rows: &[usize],
        watch: &mut Watch<'_>,
    ) -> Result<Option<Predictions>, Error> {
        let goes_on = self.note(format!("predict {}", rows.len()), watch).is_continue();
        Ok(goes_on.then(|| self.said(model, |_| 0.0, rows)))
    }

    fn adapts(&self) -> Option<&dyn Adapts> {
        self.adapts.then_some(self)
    }
}

impl Adapts for Line {
    fn adapt(
        &self,
        adaptation: Adaptation<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Params>, Error> {
        let Adaptation { rows, teacher, start, seed } = adaptation;
        let what = format!("adapt {} from {} with {seed}", rows.len(), start[0]);
        if self.note(what, watch).is_break() {
            return Ok(None);
        }
        let ends = |class: u16| {
            let of_class = rows.iter().zip(teacher.classes()).filter(move |(_, c)| *c == class);
            of_class.map(|(row, _)| self.points[*row])
        };
        let (low, high) = (ends(0).fold(f32::MIN, f32::max), ends(1).fold(f32::MAX, f32::min));
        Ok(Some(Params::from(vec![(low + high) / 2.0])))
    }

    fn predict_altered(
        &self,
        model: &Params,
        rows: &[usize],
        seed: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Predictions>, Error> {
        let what = format!("altered {} {seed}", rows.len());
        let goes_on = self.note(what, watch).is_continue();
        let moved = |row: usize| (derive(seed, &[row as u64]) % 201) as f32 / 1000.0 - 0.1;
        Ok(goes_on.then(|| self.said(model, moved, rows)))
    }
}

fn target<'a>(line: &'a Line, models: &'a [(&'a Params, f64)]) -> Target<'a> {
    let owner = Owner::Learner { learner: line, samples: line.points.len() };
    Target { owner, models, combine: Combine::default(), known: &[], is_stranger: false, seed: 5 }
}

/// A learner has one of its own.
fn schooling() -> Schooling {
    Schooling::new(Descent::default())
}

fn go_on(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn ended(target: &Target<'_>, watch: &mut Watch<'_>) -> Option<(Student, Judged)> {
    let params = target.student(schooling(), watch).unwrap()?;
    let judged = target.judge(&params, watch).unwrap()?;
    Some((Student { params, share: judged.share }, judged))
}

#[test]
fn a_student_of_a_learner_is_taught_by_the_mixture_and_judged_by_what_it_says_of_altered_samples() {
    let line = Line::new(true);
    // Both lie among the samples of class 1, and the second counts more.
    let (far, near) = (Params::from(vec![1.15]), Params::from(vec![0.75]));
    let models = [(&far, 0.2), (&near, 0.8)];
    let target = target(&line, &models);
    let (student, judged) = ended(&target, &mut go_on).unwrap();
    let (held_out, trained_on) = target.split();
    assert_eq!((held_out.len(), trained_on.len()), (100, 200));
    let seeds: Vec<u64> =
        (0..TIMES as u64).map(|time| derive(target.draw(Drawn::Alterations), &[time])).collect();
    let all = "predict 300".to_owned();
    let mut expected = vec![all.clone(); 4];
    expected.push(format!("adapt 200 from 0.75 with {}", target.draw(Drawn::Training)));
    expected.extend(vec![all; 3]);
    expected.extend(seeds.iter().flat_map(|seed| vec![format!("altered 100 {seed}"); 3]));
    assert_eq!(*line.asked.lock().unwrap(), expected);
    // The mixture's classes are right but for a few, so that the student lies between the heaps.
    assert!(student.params[0].abs() < 0.3, "{student:?}");
    let verdict = judged.verdict(Guard::default()).unwrap();
    assert_eq!(judged.judgement(), Judgement::Guard(verdict));
    assert!(verdict.accepted && verdict.score == 1.0, "{verdict:?}");
    let alone = line.said(&student.params, |_| 0.0, &(0..300).collect::<Vec<_>>());
    let mixed = Predictions::mix([(&judged.mixture, 0.5), (&alone, 0.5)]).unwrap();
    assert_eq!(judged.with_student, mixed);
    assert_eq!(judged.clone().predictions(Adapt::Guarded), mixed);
    // Of a learner's nothing less is asked where no source is near.
    let stranger = Target { is_stranger: true, ..target };
    let stranger = stranger.judge(&student.params, &mut go_on).unwrap().unwrap();
    assert_eq!((stranger.judgement(), verdict.threshold), (judged.judgement(), 0.02));
    // One that is as stable as the mixture is not accepted.
    let same = target.judge(&near, &mut go_on).unwrap().unwrap();
    assert!(!same.is_used(Adapt::Guarded) && same.is_used(Adapt::Always));
}

#[test]
fn it_can_be_ended_at_every_call_and_tells_how_far_it_is() {
    let line = Line::new(true);
    let (a, b) = (Params::from(vec![0.9]), Params::from(vec![0.8]));
    let models = [(&a, 0.5), (&b, 0.5)];
    let target = target(&line, &models);
    let seen = RefCell::new(Vec::new());
    let mut watch = |progress: Progress| {
        seen.borrow_mut().push(progress.percent());
        ControlFlow::Continue(())
    };
    let student = target.student(schooling(), &mut watch).unwrap().unwrap();
    assert_eq!(*seen.borrow(), [10, 30, 50, 70, 90]);
    seen.borrow_mut().clear();
    target.judge(&student, &mut watch).unwrap().unwrap();
    let seen = seen.into_inner();
    assert!(seen.len() == 15 && seen.is_sorted() && seen[14] > 90, "{seen:?}");
    for last in 1..=20 {
        let mut calls = 0;
        let mut watch = |_: Progress| {
            calls += 1;
            if calls == last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        assert!(ended(&target, &mut watch).is_none());
        assert_eq!(calls, last);
    }
}

#[test]
fn who_does_not_say_that_it_can_is_never_asked() {
    let obstacle = |line: &Line, samples, labels| {
        Obstacle::of(Owner::Learner { learner: line, samples }, labels)
    };
    let (can, cannot) = (Line::new(true), Line::new(false));
    assert_eq!(obstacle(&cannot, 1_000, 100), Some(Obstacle::CannotAdapt));
    assert_eq!(obstacle(&can, LEAST_SAMPLES, 0), None);
    assert_eq!(obstacle(&can, LEAST_SAMPLES - 1, 0), Some(Obstacle::FewSamples(299)));
    assert_eq!(obstacle(&can, 10, LEAST_LABELS), None);
    let model = Params::from(vec![0.5]);
    let models = [(&model, 1.0)];
    let refused = target(&cannot, &models).student(schooling(), &mut go_on).unwrap_err();
    assert!(refused.to_string().contains("trains no students"), "{refused}");
    let asked = cannot.asked.into_inner().unwrap();
    assert!(asked.iter().all(|what| what.starts_with("predict ")), "{asked:?}");
}
