use std::ops::ControlFlow;

use stlf_data::domains::{Colour, Half, Style, strokes};
use stlf_data::{Dataset, Shape};
use stlf_learn::Augment;

use super::*;
use crate::adapt::{
    Adapt, ByLabels, Judged, Judgement, LEAST_LABELS, LEAST_SAMPLES, Obstacle, Tried,
};
use crate::guard::{Guard, Verdict};
use crate::local_training::{Rows, Split, Training};

const STEPS: usize = 250;

fn schooling(steps: usize) -> Schooling {
    Schooling { descent: Descent::default(), steps }
}

/// Pictures of six by six pixels, of which those of class 1 are bright on the right.
fn pictures(count: usize) -> (Vec<f32>, Vec<Class>) {
    let labels: Vec<Class> = (0..count as Class).map(|k| k % 2).collect();
    let pixel =
        |k: usize, x: usize| ((x >= 3) == (k % 2 == 1)) as u8 as f32 + (k * 7 % 5) as f32 / 20.0;
    let inputs = (0..count).flat_map(|k| (0..36).map(move |p| pixel(k, p % 6))).collect();
    (inputs, labels)
}

/// A network for these pictures, and two models of it that were trained apart.
fn models() -> (Spec, [Params; 2]) {
    let spec = Spec::mlp(Shape::grey(6), 2).unwrap();
    let (inputs, labels) = pictures(40);
    let split = Split::of(&inputs, &labels, 36, &Rows::new(labels.len(), 0.0, 1).trained);
    let augment = Augment::None;
    let training = Training { descent: Descent::default(), augment, steps: 300, averaged: false };
    let train = |seed: u64| {
        let start = Params::initial(&spec, seed);
        split
            .train(&spec, start, training, seed, &mut || ControlFlow::Continue(()))
            .unwrap()
            .unwrap()
    };
    let models = [train(1), train(2)];
    (spec, models)
}

/// A target that received these models.
fn target<'a>(spec: &'a Spec, models: &'a [(&'a Params, f64)], inputs: &'a [f32]) -> Target<'a> {
    let owner = Owner::Network { spec, inputs };
    Target { owner, models, combine: Combine::default(), known: &[], is_stranger: false, seed: 5 }
}

fn go_on(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn trained(target: &Target<'_>, steps: usize) -> Params {
    target.student(schooling(steps), &mut go_on).unwrap().unwrap()
}

fn judged(target: &Target<'_>, student: &Params) -> Judged {
    target.judge(student, &mut go_on).unwrap().unwrap()
}

/// What the mixture says of all samples.
fn mixture(target: &Target<'_>) -> Predictions {
    let all: Vec<usize> = (0..target.owner.samples()).collect();
    target.mixture(&all, &mut Calls::new(&mut go_on, 1)).unwrap().unwrap()
}

#[test]
fn a_seed_gives_one_student_and_it_can_be_ended() {
    let (spec, [a, b]) = models();
    let (inputs, _) = pictures(60);
    let parts = [(&a, 0.5), (&b, 0.5)];
    let target = target(&spec, &parts, &inputs);
    let student = trained(&target, STEPS);
    assert!(trained(&target, STEPS) == student);
    assert!(trained(&Target { seed: 6, ..target }, STEPS) != student);
    assert!(student != a && student != b);
    for last in 1..=schooling(STEPS).looks() {
        let mut looks = 0;
        let ended = target.student(schooling(STEPS), &mut |_| {
            looks += 1;
            if looks == last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(ended.unwrap().is_none() && looks == last);
    }
}

#[test]
fn a_teacher_that_is_not_confident_teaches_nothing() {
    let (spec, [a, _]) = models();
    // Most of the weight is on a model that knows nothing, so that no class has more than 0.65.
    let nothing = Params::zeros(&spec);
    let (inputs, _) = pictures(60);
    let parts = [(&a, 0.3), (&nothing, 0.7)];
    let target = target(&spec, &parts, &inputs);
    let mixture = mixture(&target);
    assert!(mixture.probabilities().all(|p| label(p, None, 0.0).is_none()));
    assert!(mixture.probabilities().all(|p| label(p, Some(&[0.9, 0.1]), 1.0) == Some(0)));
}

#[test]
fn the_moving_average_takes_over_bit_by_bit() {
    let schooling = schooling(1_000);
    let weights = [0, 200, 300, 400, 600, 999].map(|step| schooling.own_weight(step));
    let expected = [0.0, 0.0, 0.25, 0.5, 1.0, 1.0];
    assert!(weights.iter().zip(expected).all(|(w, e)| (w - e).abs() < 1e-12), "{weights:?}");
    // Batches of 10, in all steps for training, and after the first 201 for the teacher.
    let spec = Spec::cnn(Shape::grey(28), 10).unwrap();
    assert_eq!(schooling.operations(&spec), 10 * (1_000 * 2_595_000 + 799 * 961_000));
}

#[test]
fn it_starts_from_the_model_that_agrees_most_with_the_mixture() {
    let (spec, [a, _]) = models();
    let (inputs, _) = pictures(60);
    let mut contrary = a.clone();
    // Of the last layer, so that every answer is turned round.
    let last = spec.tensors()[2].range.start;
    contrary[last..].iter_mut().for_each(|p| *p = -*p);
    let parts = [(&contrary, 0.2), (&a, 0.8)];
    let target = target(&spec, &parts, &inputs);
    let all: Vec<usize> = (0..60).collect();
    let mut watch = go_on;
    let mut calls = Calls::new(&mut watch, 1);
    let nearest = target.nearest(&mixture(&target), &all, &mut calls).unwrap().unwrap();
    assert!(std::ptr::eq(nearest, &a));
    assert!(trained(&target, 0) == a);
    let none = Target { models: &[], ..target };
    assert!(none.student(schooling(1), &mut go_on).is_err());
}

#[test]
fn a_third_is_held_out_and_nothing_is_lost() {
    let (spec, [a, _]) = models();
    let (inputs, _) = pictures(61);
    let parts = [(&a, 1.0)];
    let target = target(&spec, &parts, &inputs);
    let (held_out, samples) = target.split();
    assert_eq!((held_out.len(), samples.len()), (20, 41));
    let mut all = [held_out.clone(), samples].concat();
    all.sort_unstable();
    assert_eq!(all, (0..61).collect::<Vec<_>>());
    assert_ne!(Target { seed: 6, ..target }.split().0, held_out);
}

#[test]
fn who_cannot_have_a_student_hears_why() {
    let picture = Spec::mlp(Shape::grey(2), 2).unwrap();
    let table = Spec::mlp(Shape { channels: 1, height: 1, width: 4 }, 2).unwrap();
    let inputs = vec![0.0; 4 * 1_000];
    let of = |spec, samples: usize, labels| {
        Obstacle::of(Owner::Network { spec, inputs: &inputs[..4 * samples] }, labels)
    };
    assert_eq!(of(&picture, LEAST_SAMPLES, 0), None);
    assert_eq!(of(&table, 20, LEAST_LABELS), None);
    let told = |spec, samples| {
        of(spec, samples, LEAST_LABELS - 1).map(|obstacle| Tried::Not(obstacle).to_string())
    };
    let few = "not tried: it has 299 samples, fewer than 300, and fewer than 5 labels";
    assert_eq!(told(&picture, 299).as_deref(), Some(few));
    assert_eq!(
        told(&table, 1_000).as_deref(),
        Some("not tried: it has no pictures, and fewer than 5 labels")
    );
}

fn drawn(style: Style, count: usize, seed: u64) -> (Vec<f32>, Vec<Class>) {
    let data: Dataset = strokes(style, Half::Train, count, seed, Colour::Grey).unwrap();
    let all: Vec<usize> = (0..data.len()).collect();
    (data.inputs(&all), data.labels(&all).unwrap())
}

#[test]
fn on_pictures_of_another_kind_a_student_helps_and_is_accepted() {
    let spec = Spec::cnn(Shape::grey(28), 10).unwrap();
    let (inputs, labels) = drawn(Style::Clean, 800, 1);
    let split = Split::of(&inputs, &labels, 784, &Rows::new(labels.len(), 0.0, 1).trained);
    let augment = Augment::None;
    let training = Training { descent: Descent::default(), augment, steps: 2_500, averaged: false };
    let start = Params::initial(&spec, 1);
    let mut go_on = || ControlFlow::Continue(());
    let source = split.train(&spec, start, training, 1, &mut go_on).unwrap().unwrap();
    let parts = [(&source, 1.0)];
    let (inputs, truth) = drawn(Style::Coarse, 450, 2);
    let target = target(&spec, &parts, &inputs);
    let student = trained(&target, 2_000);
    let judged = judged(&target, &student);
    let gain = judged.with_student.accuracy(&truth) - judged.mixture.accuracy(&truth);
    let verdict = judged.verdict(Guard::default()).unwrap();
    assert!(gain > 0.01 && verdict.accepted, "{gain} {verdict:?}");
    for (adapt, is_used) in [(Adapt::Off, false), (Adapt::Guarded, true), (Adapt::Always, true)] {
        let expected = if is_used { &judged.with_student } else { &judged.mixture };
        assert!(&judged.clone().predictions(adapt) == expected, "{adapt:?}");
    }
    let told = judged.tried(Adapt::Guarded).to_string();
    assert_eq!(told, format!("used ({:+.3}; asked +0.020)", verdict.margin()));
    // Less is asked of the same student where no source is near.
    let stranger = self::judged(&Target { is_stranger: true, ..target }, &student);
    let less = Verdict { threshold: 0.005, ..verdict };
    assert_eq!(stranger.judgement(), Judgement::Guard(less));
    assert_eq!(stranger.with_student, judged.with_student);
}

/// Rows of a table, in which class 1 is above 0 in most columns, and one model that takes the classes for each other.
fn reversed() -> (Spec, Params, Vec<f32>, Vec<Class>) {
    let table = Shape { channels: 1, height: 1, width: 6 };
    let spec = Spec::mlp(table, 2).unwrap();
    let class = |row: usize| (row * 7 / 3 % 2) as Class;
    let value = move |row: usize, column: usize| {
        (f32::from(class(row)) - 0.5) * 2.0 + ((row * 31 + column * 17) % 11) as f32 / 11.0 - 0.5
    };
    let inputs: Vec<f32> = (0..90).flat_map(|row| (0..6).map(move |c| value(row, c))).collect();
    let truth: Vec<Class> = (0..90).map(class).collect();
    let wrong: Vec<Class> = truth.iter().map(|class| 1 - class).collect();
    let split = Split::of(&inputs, &wrong, 6, &Rows::new(wrong.len(), 0.0, 1).trained);
    let training = Training {
        descent: Descent::default(),
        augment: Augment::None,
        steps: 400,
        averaged: false,
    };
    let mut go_on = || ControlFlow::Continue(());
    let start = Params::initial(&spec, 1);
    let model = split.train(&spec, start, training, 1, &mut go_on).unwrap().unwrap();
    (spec, model, inputs, truth)
}

#[test]
fn a_student_learns_from_labels_and_is_judged_by_others() {
    let (spec, model, inputs, truth) = reversed();
    let parts = [(&model, 1.0)];
    let unaware = target(&spec, &parts, &inputs);
    // Nothing but labels can tell that the mixture is wrong.
    let untaught = judged(&unaware, &trained(&unaware, STEPS));
    assert_eq!(untaught.judgement(), Judgement::Nothing);
    assert!(!untaught.is_used(Adapt::Guarded) && untaught.mixture.accuracy(&truth) < 0.1);
    let known: Vec<(usize, Class)> = (0..60).map(|sample| (sample, truth[sample])).collect();
    let aware = Target { known: &known, ..unaware };
    let (held_out, _) = aware.split();
    let judged = judged(&aware, &trained(&aware, 2_000));
    let among: Vec<usize> = held_out.into_iter().filter(|sample| *sample < 60).collect();
    let right = |of: &Predictions| {
        let classes: Vec<Class> = of.classes().collect();
        among.iter().filter(|sample| classes[**sample] == truth[**sample]).count()
    };
    let expected = ByLabels {
        held_out: among.len(),
        right: right(&judged.with_student),
        of_mixture: right(&judged.mixture),
    };
    assert_eq!(judged.judgement(), Judgement::Labels(expected));
    assert!(judged.is_used(Adapt::Guarded) && judged.with_student.accuracy(&truth) > 0.9);
    let told = judged.tried(Adapt::Guarded).to_string();
    let ByLabels { held_out, right, of_mixture } = expected;
    let labels = format!("right on {right} of {held_out} labels, the mixture on {of_mixture}");
    assert_eq!(told, format!("used ({labels})"));
}

#[test]
fn a_third_of_what_is_learned_has_a_label_in_small_batches_too() {
    for (batch, in_thirty_steps) in [(1, 10), (2, 20), (3, 30), (4, 30), (10, 90)] {
        let drawn: Vec<usize> = (0..30).map(|step| of_labeled(batch, step)).collect();
        assert_eq!(drawn.iter().sum::<usize>(), in_thirty_steps, "{batch}");
        assert!(drawn.iter().all(|of| *of <= batch.div_ceil(LABELED_OF)), "{drawn:?}");
    }
}

#[test]
fn labels_speak_against_a_student_that_is_worse() {
    let (spec, model, inputs, truth) = reversed();
    let right: Vec<(usize, Class)> = truth.iter().copied().enumerate().collect();
    let wrong: Vec<(usize, Class)> = right.iter().map(|&(k, class)| (k, 1 - class)).collect();
    let parts = [(&model, 1.0)];
    // The model agrees with the wrong labels, and a student that learned the right ones does not.
    let taught = Target { known: &right, ..target(&spec, &parts, &inputs) };
    let student = trained(&taught, 2_000);
    let judged = judged(&Target { known: &wrong, ..taught }, &student);
    assert!(!judged.is_used(Adapt::Guarded) && judged.is_used(Adapt::Always));
    assert!(judged.tried(Adapt::Guarded).to_string().starts_with("refused (right on "));
}

#[test]
fn few_labels_that_do_not_tell_leave_it_to_the_guard() {
    let (spec, [a, _]) = models();
    let (inputs, truth) = pictures(60);
    let mut contrary = a.clone();
    let last = spec.tensors()[2].range.start;
    contrary[last..].iter_mut().for_each(|p| *p = -*p);
    let judgement = |mixture: &Params, labels: usize| {
        let parts = [(mixture, 1.0)];
        let unaware = target(&spec, &parts, &inputs);
        let (held_out, samples) = unaware.split();
        // One of them is held out.
        let known = held_out.iter().take(1).chain(&samples).take(labels);
        let known: Vec<(usize, Class)> = known.map(|&sample| (sample, truth[sample])).collect();
        judged(&Target { known: &known, ..unaware }, &a).judgement()
    };
    // A student that is the mixture's only model is no more stable than that.
    let level = judgement(&a, 9);
    assert!(matches!(level, Judgement::Guard(_)) && !level.accepts(), "{level:?}");
    let level = judgement(&a, 10);
    assert_eq!(level, Judgement::Labels(ByLabels { held_out: 1, right: 1, of_mixture: 1 }));
    assert!(level.accepts());
    let better = judgement(&contrary, 5);
    assert_eq!(better, Judgement::Labels(ByLabels { held_out: 1, right: 1, of_mixture: 0 }));
}

#[test]
fn labels_move_weight_to_the_models_that_expect_them() {
    let (spec, wrong, inputs, truth) = reversed();
    let known: Vec<(usize, Class)> = (0..20).map(|sample| (sample, truth[sample])).collect();
    let parts = [(&wrong, 0.8)];
    let taught = Target { known: &known, ..target(&spec, &parts, &inputs) };
    let good = trained(&taught, 2_000);
    let parts = [(&wrong, 0.8), (&good, 0.2)];
    let both = Target { models: &parts, ..taught };
    let informed = |target: Target<'_>| -> Vec<f64> {
        let informed = target.informed(&mut go_on).unwrap().unwrap();
        informed.iter().map(|(_, weight)| *weight).collect()
    };
    let [of_wrong, of_good] = informed(both)[..] else { unreachable!() };
    assert!((of_wrong + of_good - 1.0).abs() < 1e-12 && of_good > 0.6, "{of_good}");
    // Without labels, and where parameters are averaged, weights are as planned.
    assert_eq!(informed(Target { known: &[], ..both }), [0.8, 0.2]);
    assert_eq!(informed(Target { combine: Combine::Parameters, ..both }), [0.8, 0.2]);
}
