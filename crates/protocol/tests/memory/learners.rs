//! Devices with learners that are not built in: they come to the same where they learn the same, tell how far they are, and a model that
//! one cannot use is the planner's to know.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use stlf_learn::evaluate::Predictions;
use stlf_learn::{Layout, Params};
use stlf_method::learner::{Learner, Lesson, Progress, Watch};
use stlf_planning::Error;
use stlf_protocol::in_memory_network::Network;
use stlf_protocol::job::{Sign, Task};
use stlf_protocol::{Action, Device};

use crate::common::{ALL, data, devices, holdings, setup, untrained};

/// A built-in network behind another name, which predicts by halves, and not at all by the models that it refuses.
#[derive(Debug)]
struct Wrapped {
    inner: Arc<dyn Learner>,
    refuses: Mutex<Option<Params>>,
}

impl Learner for Wrapped {
    fn layout(&self) -> &Layout {
        self.inner.layout()
    }

    fn train(&self, lesson: Lesson<'_>, watch: &mut Watch<'_>) -> Result<Option<Params>, Error> {
        self.inner.train(lesson, watch)
    }

    fn predict(
        &self,
        model: &Params,
        rows: &[usize],
        watch: &mut Watch<'_>,
    ) -> Result<Option<Predictions>, Error> {
        if self.refuses.lock().unwrap().as_ref() == Some(model) {
            return Err(Error::field("learner", "refused"));
        }
        for done in 1..=2 {
            if watch(Progress { done, total: 2 }).is_break() {
                return Ok(None);
            }
        }
        self.inner.predict(model, rows, watch)
    }
}

/// The usual devices with such learners, trained.
fn wrapped() -> (Vec<Device>, Vec<Arc<Wrapped>>) {
    let (setup, held) = (setup(), holdings(&data()));
    let learners: Vec<Arc<Wrapped>> = held
        .iter()
        .map(|own| {
            let inner = setup.built_in(own.inputs.clone(), own.labels.clone());
            Arc::new(Wrapped { inner, refuses: Mutex::default() })
        })
        .collect();
    let plain = untrained(&setup, held).into_iter().zip(&learners);
    let mut devices: Vec<Device> =
        plain.map(|(device, learner)| device.with_learner(learner.clone())).collect();
    for device in &mut devices {
        assert!(device.train(&mut || ControlFlow::Continue(())).unwrap());
    }
    (devices, learners)
}

fn run(devices: Vec<Device>) -> Network {
    let mut network = Network::new(devices, 1);
    network.begin(ALL[0], 1, &ALL);
    network.run().unwrap();
    network
}

#[test]
fn learners_that_learn_the_same_come_to_the_same() {
    let (built_in, others) = (run(devices()), run(wrapped().0));
    for (device, other) in built_in.devices.iter().zip(&others.devices) {
        assert_eq!(device.own_error(), other.own_error());
        assert_eq!(device.plan(), other.plan());
        assert_eq!(device.outcome(), other.outcome());
    }
    assert!(others.finished.iter().all(|is| *is));
}

#[test]
fn a_target_tells_how_far_its_predictions_are_and_they_can_be_ended() {
    let (devices, _) = wrapped();
    let mut network = Network::new(devices, 1);
    network.begin(ALL[0], 1, &ALL);
    network.run_until(|devices| devices[0].plan().is_some()).unwrap();
    let plan = network.devices[0].plan().unwrap().clone();
    let target = plan.targets[0];
    let sent: Vec<_> = plan.incoming(target).map(|link| link.from).collect();
    let models: Vec<_> = sent
        .iter()
        .map(|from| (*from, plan.way_to_targets(*from)))
        .map(|(from, way)| (from, way, network.devices[from.index()].model().unwrap().clone()))
        .collect();
    network.run_until(|devices| devices[target.index()].plan().is_some()).unwrap();
    let device = &mut network.devices[target.index()];
    let mut jobs = Vec::new();
    for (from, way, model) in models {
        let actions = device.receive_model(from, way, model).unwrap();
        jobs.extend(actions.into_iter().filter_map(|action| match action {
            Action::Compute(job) if job.task() == Task::Combine => Some(job),
            _ => None,
        }));
    }
    let job = jobs.pop().unwrap();
    let mut percents = Vec::new();
    let known = device.known();
    let ended = job.run(&mut |sign| match sign {
        Sign::Percent(percent) => {
            percents.push(percent);
            if percent > 40 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
        _ => ControlFlow::Continue(()),
    });
    assert!(ended.is_none());
    assert!(percents.is_sorted() && *percents.last().unwrap() > 40, "{percents:?}");
    // Others count what they are told of it as progress.
    device.trains_on(60);
    assert_eq!(device.known(), known + 60);
}

#[test]
fn the_planner_hears_of_a_model_that_a_learner_cannot_use() {
    let (devices, learners) = wrapped();
    let plan = run(wrapped().0).devices[0].plan().unwrap().clone();
    let target = plan.targets[0];
    let from = plan.incoming(target).next().map(|link| link.from).unwrap();
    let sender = &run(wrapped().0).devices[from.index()];
    *learners[target.index()].refuses.lock().unwrap() =
        sender.sent_model(plan.way_to_targets(from));
    let network = run(devices);
    assert_eq!(network.forbidden, [(from, target)]);
    assert!(network.refused.is_empty(), "{:?}", network.refused);
    assert!(!network.finished[target.index()]);
}

#[test]
fn a_device_whose_learner_cannot_train_has_no_labels() {
    let (mut devices, _) = wrapped();
    let labels = holdings(&data())[0].labels.len();
    assert!(labels > 0 && devices[0].own_error().is_some());
    let mut fresh = untrained(&setup(), holdings(&data()));
    fresh[0].forget_labels();
    assert!(fresh[0].train(&mut || ControlFlow::Continue(())).unwrap());
    assert_eq!(fresh[0].own_error(), None);
    devices[0] = fresh.remove(0);
    let network = run(devices);
    let plan = network.devices[1].plan().unwrap();
    assert!(!plan.sources.contains(&ALL[0]), "{plan:?}");
    let outcome = network.devices[0].outcome().unwrap();
    assert_eq!(outcome.len(), labels + holdings(&data())[0].unlabeled);
}
