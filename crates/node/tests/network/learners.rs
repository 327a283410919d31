//! Devices with learners of the user's, within one program: what they end with, and what becomes of a learner that fails.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use stlf_data::Class;
use stlf_formats::ModelsFile;
use stlf_learn::evaluate::Predictions;
use stlf_learn::{Layout, Params};
use stlf_method::learner::{Learner, Lesson, Progress, UserLearner, Watch};
use stlf_node::service::{Options, settings};
use stlf_planning::{Error, Role};
use stlf_protocol::Place;

use crate::service::{Fleet, NAMES};

/// Samples of a device, and how many features each has.
const SAMPLES: usize = 400;
const WIDTH: usize = 3;

/// What a learner does wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// It cannot train.
    Trains,
    /// It cannot predict by the first model that it gets from others.
    Predicts,
}

/// A class is where the mean of its samples lies.
#[derive(Debug)]
struct NearestMean {
    layout: Layout,
    features: Vec<f32>,
    labels: Vec<Class>,
    fault: Fault,
    refused: Mutex<Option<Params>>,
}

impl Learner for NearestMean {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn train(&self, lesson: Lesson<'_>, watch: &mut Watch<'_>) -> Result<Option<Params>, Error> {
        if self.fault == Fault::Trains {
            return Err(Error::other("learner", "the pump is on fire"));
        }
        let mut model =
            lesson.start.map_or_else(|| vec![0.0; 2 * (WIDTH + 1)], |start| start.to_vec());
        for &row in lesson.rows {
            let mean = &mut model[usize::from(self.labels[row]) * (WIDTH + 1)..][..=WIDTH];
            mean[WIDTH] += 1.0;
            for at in 0..WIDTH {
                mean[at] += (self.features[row * WIDTH + at] - mean[at]) / mean[WIDTH];
            }
        }
        match watch(Progress { done: 1, total: 1 }) {
            ControlFlow::Continue(()) => Ok(Some(model.into())),
            ControlFlow::Break(()) => Ok(None),
        }
    }

    fn predict(
        &self,
        model: &Params,
        rows: &[usize],
        _watch: &mut Watch<'_>,
    ) -> Result<Option<Predictions>, Error> {
        if self.fault == Fault::Predicts {
            let mut refused = self.refused.lock().unwrap();
            if refused.get_or_insert_with(|| model.clone()) == model {
                return Err(Error::other("learner", "this model smells of smoke"));
            }
        }
        let far = |row: usize, class: usize| -> f32 {
            let mean = &model[class * (WIDTH + 1)..][..WIDTH];
            let sample = &self.features[row * WIDTH..][..WIDTH];
            mean.iter().zip(sample).map(|(m, x)| (m - x).powi(2)).sum()
        };
        let probabilities = rows.iter().flat_map(|&row| {
            let odds = 1.0 / (1.0 + (far(row, 0) - far(row, 1)).clamp(-50.0, 50.0).exp());
            [odds, 1.0 - odds]
        });
        Ok(Some(Predictions::new(probabilities.collect(), 2)))
    }
}

/// The true class of each sample of a device, and its features.
fn samples(device: usize) -> (Vec<Class>, Vec<f32>) {
    let noise = |k: usize| ((k * 7919 + device * 104_729) % 1_000) as f32 / 500.0 - 1.0;
    let class = |k: usize| (k * 31 % 97 % 2) as Class;
    let features = (0..SAMPLES).flat_map(|k| {
        let centre = 1.5 * f32::from(class(k)) + 0.1 * device as f32;
        [centre + noise(3 * k), noise(3 * k + 1), noise(3 * k + 2)]
    });
    ((0..SAMPLES).map(class).collect(), features.collect())
}

/// The learner of a device; the last has no labels, and the places of all are counted from the end.
fn learner(device: usize, fault: Fault) -> UserLearner {
    let (classes, features) = samples(device);
    let known = if device == 2 { 0 } else { SAMPLES - 100 };
    let labels = classes[..known].to_vec();
    let learner = NearestMean {
        layout: Layout::new([("means", &[2, WIDTH + 1][..])]).unwrap(),
        features: features.clone(),
        labels: labels.clone(),
        fault,
        refused: Mutex::default(),
    };
    UserLearner {
        name: "nearest-mean/1".to_owned(),
        classes: ["calm", "storm"].map(str::to_owned).to_vec(),
        features,
        labels,
        told_truth: None,
        places: (0..SAMPLES).rev().collect(),
        learner: Arc::new(learner),
    }
}

/// Options of a device whose learner has this fault.
fn options(fleet: &Fleet, name: &str, faults: [Fault; 3]) -> Options {
    let at = NAMES.iter().position(|known| *known == name).unwrap();
    let config = settings(None, None, &["seeds=[3]", "divergence.features=16"]).unwrap();
    Options { config, learner: Some(learner(at, faults[at])), ..fleet.options(name) }
}

/// The fraction of the last device's samples that its predictions are right on.
fn accuracy(fleet: &Fleet) -> f64 {
    let (truth, _) = samples(2);
    let text = std::fs::read_to_string(fleet.path("mast").join("predictions.csv")).unwrap();
    let rows: Vec<(usize, bool)> = text
        .lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            let place: usize = cells[0].parse().unwrap();
            (place, cells[1] == ["calm", "storm"][usize::from(truth[SAMPLES - 1 - place])])
        })
        .collect();
    assert!(rows.iter().map(|(place, _)| *place).eq(0..SAMPLES));
    rows.iter().filter(|(_, is_right)| *is_right).count() as f64 / SAMPLES as f64
}

#[test]
fn a_device_without_labels_gets_models_of_the_users_learner_and_nobody_trains_twice() {
    let fleet = Fleet::new();
    for is_again in [false, true] {
        let ended = fleet.run_with(|name| options(&fleet, name, [Fault::None; 3]));
        let plan = fleet.plan("mast");
        assert_eq!(plan.role(Place::new(2)), Some(Role::Target));
        for (told, ended) in &ended[..2] {
            assert_eq!(told.had_trained, is_again);
            assert!(ended.device.own_error().unwrap().source_error < 0.5);
        }
        assert!(accuracy(&fleet) > 0.85, "{}", accuracy(&fleet));
        let bytes = std::fs::read(fleet.path("mast").join("mixture/models.json")).unwrap();
        let models = ModelsFile::read(&bytes).unwrap();
        assert_eq!((models.learner.as_str(), models.epoch), ("nearest-mean/1", Some(plan.epoch)));
        let may_expect = ended[2].1.device.combined().unwrap().expected.unwrap();
        let told = models.expected.unwrap();
        assert_eq!((told.low, told.high), (may_expect.low, may_expect.high));
        let senders: Vec<String> = models.members.iter().map(|m| m.name.clone()).collect();
        let expected: Vec<String> =
            plan.incoming(Place::new(2)).map(|link| NAMES[link.from.index()].to_owned()).collect();
        assert_eq!(senders, expected);
        let layout = Layout::new([("means", &[2, WIDTH + 1][..])]).unwrap();
        for member in &models.members {
            let file =
                std::fs::read(fleet.path("mast").join("mixture").join(&member.file)).unwrap();
            assert!(Params::from_safetensors(&layout, &file).is_ok(), "{}", member.file);
        }
        let refused = stlf_bundle::folder::find(&fleet.path("mast"), None, None).unwrap_err();
        assert!(
            refused.to_string().contains("only the learner that made these models"),
            "{refused}"
        );
    }
}

#[test]
fn a_learner_that_cannot_train_leaves_its_device_a_target() {
    let fleet = Fleet::new();
    let faults = [Fault::None, Fault::Trains, Fault::None];
    let ended = fleet.run_with(|name| options(&fleet, name, faults));
    assert_eq!(ended[1].0.cannot_train.as_deref(), Some("learner: the pump is on fire"));
    let plan = fleet.plan("pier");
    assert_eq!(plan.sources, [Place::new(0)]);
    assert!(ended[1].1.device.outcome().is_some());
    assert!(accuracy(&fleet) > 0.85);
}

#[test]
fn a_model_that_a_learner_cannot_use_is_planned_without() {
    let fleet = Fleet::new();
    let faults = [Fault::None, Fault::None, Fault::Predicts];
    let ended = fleet.run_with(|name| options(&fleet, name, faults));
    let (told, _) = &ended[2];
    let (from, reason) = told.not_received.clone().unwrap();
    assert_eq!(reason, "learner: this model smells of smoke");
    let plan = fleet.plan("mast");
    assert!(plan.incoming(Place::new(2)).all(|link| link.from != from), "{plan:?}");
    assert!(accuracy(&fleet) > 0.85);
}
