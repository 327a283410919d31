//! Devices with learners that are not built in: they come to the same where they learn the same, tell how far they are, and a model that
//! one cannot use is the planner's to know.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use crate::common::in_memory_network::Network;
use stlf_data::partition::{All, ClassesPerDevice, Paper};
use stlf_learn::evaluate::Predictions;
use stlf_learn::{Layout, Params};
use stlf_method::adapt::Adapt;
use stlf_method::learner::{Adaptation, Adapts, Learner, Lesson, Progress, Watch};
use stlf_planning::Error;
use stlf_protocol::device::Holdings;
use stlf_protocol::job::{Sign, Task};
use stlf_protocol::{Action, Device, Place, Setup};

use crate::common::{ALL, DEVICES, data, dealt, devices, holdings, setup, untrained};

/// A built-in network behind another name, which predicts by halves, and not at all by the models that it refuses.
#[derive(Debug)]
struct Wrapped {
    inner: Arc<dyn Learner>,
    refuses: Mutex<Option<Params>>,
    /// Whether it says that it trains students, and whether it then can.
    students: Option<bool>,
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
            return Err(Error::other("learner", "refused"));
        }
        for done in 1..=2 {
            if watch(Progress { done, total: 2 }).is_break() {
                return Ok(None);
            }
        }
        self.inner.predict(model, rows, watch)
    }

    fn adapts(&self) -> Option<&dyn Adapts> {
        self.students.map(|_| self as &dyn Adapts)
    }
}

/// Its students are the models that they start from, and no sample is ever altered.
impl Adapts for Wrapped {
    fn adapt(
        &self,
        adaptation: Adaptation<'_>,
        _: &mut Watch<'_>,
    ) -> Result<Option<Params>, Error> {
        match self.students {
            Some(true) => Ok(Some(adaptation.start.clone())),
            _ => Err(Error::other("learner", "no student today")),
        }
    }

    fn predict_altered(
        &self,
        model: &Params,
        rows: &[usize],
        _: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Predictions>, Error> {
        self.predict(model, rows, watch)
    }
}

/// The usual devices with such learners, trained.
fn wrapped() -> (Vec<Device>, Vec<Arc<Wrapped>>) {
    wrapped_with(setup(), holdings(&data()), None)
}

/// The same with other settings and samples, where all say so of students.
fn wrapped_with(
    setup: Setup,
    held: Vec<Holdings>,
    students: Option<bool>,
) -> (Vec<Device>, Vec<Arc<Wrapped>>) {
    let learners: Vec<Arc<Wrapped>> = held
        .iter()
        .map(|own| {
            let inner = setup.built_in(
                Arc::new(setup.first_model()),
                own.inputs.clone(),
                own.labels.clone(),
            );
            Arc::new(Wrapped { inner, refuses: Mutex::default(), students })
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

#[test]
fn a_learner_that_says_that_it_can_trains_students_and_others_are_not_asked() {
    // Some targets have the 300 samples that a student needs.
    let all = ClassesPerDevice::All(All::All);
    let paper = Paper { devices: DEVICES, scale: 0.3, classes_per_device: all, ..Paper::default() };
    let held = dealt(&data(), paper);
    let ended = |adapt: Adapt, students: Option<bool>| {
        run(wrapped_with(Setup { adapt, ..setup() }, held.clone(), students).0)
    };
    let off = ended(Adapt::Off, None);
    let targets = off.devices[0].plan().unwrap().targets.clone();
    let of = |network: &Network| -> Vec<_> {
        let device = |place: &Place| &network.devices[place.index()];
        targets.iter().map(|place| device(place).combined().unwrap().clone()).collect()
    };
    let told = |network: &Network| -> Vec<String> {
        of(network).iter().map(|combined| combined.tried.as_ref().unwrap().to_string()).collect()
    };
    assert!(of(&off).iter().all(|combined| combined.tried.is_none()));
    // What is not to be trained, cannot be, or is no more stable than the mixture, changes nothing.
    let (cannot, fails) = (ended(Adapt::Guarded, None), ended(Adapt::Guarded, Some(false)));
    let (same, used) = (ended(Adapt::Guarded, Some(true)), ended(Adapt::Always, Some(true)));
    assert!(told(&cannot).iter().all(|told| told == "not tried: its learner trains no students"));
    assert!(told(&fails).contains(&"not tried: learner: no student today".to_owned()));
    assert!(
        told(&same).contains(&"refused (+0.000; asked +0.020)".to_owned()),
        "{:?}",
        told(&same)
    );
    for network in [&cannot, &fails, &same] {
        for (combined, plain) in of(network).iter().zip(of(&off)) {
            assert_eq!(combined.predictions, plain.predictions);
            assert!(combined.student.is_none());
        }
    }
    let with_student = |place: &&Place| {
        used.devices[place.index()].combined().is_some_and(|combined| combined.student.is_some())
    };
    let device = &used.devices[targets.iter().find(with_student).unwrap().index()];
    let student = device.combined().unwrap().student.clone().unwrap();
    assert_eq!(student.share, 0.5);
    assert!(device.received().unwrap().iter().any(|(_, model, _)| **model == student.params));
    assert!(used.finished.iter().all(|is| *is));
}
