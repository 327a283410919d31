//! Sources that hand their models on, where something goes wrong: whoever is lost or late costs a new epoch, and nobody waits for ever.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::time::Duration;

use crate::common::in_memory_network::Network;
use stlf_learn::Descent;
use stlf_method::local_training::Training;
use stlf_planning::plan::Way;
use stlf_planning::planner::Settings;
use stlf_protocol::device::HandedOn;
use stlf_protocol::job::Task;
use stlf_protocol::membership::{Decision, Membership, Timing};
use stlf_protocol::wire::{Envelope, Message, Sending};
use stlf_protocol::{Action, Device, Place, Refusal, Setup};

use crate::common::{
    ALL, alike, data, devices_with, handing_on, in_a_row, in_a_row_that_trains_on,
};
use crate::lost::{others_finish, without};

const ROW: [Sending; 2] =
    [Sending { from: ALL[0], to: ALL[1] }, Sending { from: ALL[1], to: ALL[2] }];

/// A network whose devices have begun their first epoch.
fn begun(order: u64) -> Network {
    begun_with(order, |_| ())
}

/// The same with a change to the devices before it.
fn begun_with(order: u64, change: impl FnOnce(&mut [Device])) -> Network {
    let mut devices = in_a_row();
    change(&mut devices);
    let mut network = Network::new(devices, order);
    network.begin(ALL[0], 1, &ALL);
    network
}

/// Whether a device knows that it is to train on another's model.
fn knows_plan(place: usize) -> impl Fn(&[Device]) -> bool {
    move |devices| devices[place].plan().is_some()
}

/// The others begin anew, and end with an outcome each; of the three in a chain two are left, and hand on.
fn others_hand_on(network: &mut Network, lost: Place) {
    others_finish(network, lost);
    let plan = network.devices[without(lost)[0].index()].plan().unwrap();
    assert_eq!(plan.handovers.len(), 1, "{plan:?}");
}

#[test]
fn where_the_fleet_wants_all_links_all_follow_such_a_plan() {
    let setup = Setup { sends_all: true, planner: Settings::default(), ..handing_on() };
    let holdings = alike(&data());
    let samples = holdings.iter().map(|h| h.inputs.len() as f64).collect::<Vec<_>>();
    let mut network = Network::new(devices_with(&setup, holdings), 3);
    network.begin(ALL[0], 1, &ALL);
    network.run().unwrap();
    assert!(network.finished.iter().all(|done| *done));
    let plan = network.devices[5].plan().unwrap();
    assert_eq!((plan.sources.as_slice(), plan.targets.as_slice()), (&ALL[..3], &ALL[3..]));
    assert_eq!((plan.links.len(), plan.handovers.len()), (9, 0));
    let all: f64 = samples[..3].iter().sum();
    for link in &plan.links {
        assert!((link.weight - samples[link.from.index()] / all).abs() < 1e-9, "{link:?}");
    }
}

#[test]
fn a_source_that_is_handed_a_model_sends_nothing_before_it_has_trained() {
    let mut network = begun(8);
    network
        .run_until(|devices| devices[1].is_training_on() && devices[2].plan().is_some())
        .unwrap();
    let plan = network.devices[1].plan().unwrap();
    assert_eq!(plan.handovers, ROW);
    assert!(network.devices[1].sent_model(Way::First).is_none() && !network.finished[1]);
    assert!(network.devices[1].missing().is_empty());
    assert_eq!(network.devices[2].missing(), [ALL[1]]);
    network.run().unwrap();
    assert!(network.finished.iter().all(|done| *done));
    let sent = network.devices[1].sent_model(Way::First);
    assert!(sent.is_some() && sent.as_ref() != network.devices[1].model());
}

#[test]
fn whoever_is_lost_before_it_sent_its_model_is_done_without() {
    for lost in [0, 1] {
        let mut network = begun(2);
        network.run_until(knows_plan(lost + 1)).unwrap();
        network.lose(ALL[lost]);
        network.run().unwrap();
        // Those after it wait, and say for whom.
        assert_eq!(network.devices[lost + 1].missing(), [ALL[lost]]);
        assert!(!network.finished[lost + 1] && !network.finished[5]);
        others_hand_on(&mut network, ALL[lost]);
    }
}

#[test]
fn whoever_is_lost_after_its_model_was_fetched_is_done_without() {
    for lost in [0, 1] {
        // A plan that is still on its way from the first would be lost with it, and that is not so in every order.
        let all_know = |devices: &[Device]| devices.iter().all(|device| device.plan().is_some());
        let is_ready = |devices: &[Device]| devices[lost + 1].is_training_on() && all_know(devices);
        let reached = |order: u64| {
            let mut network = begun(order);
            network.run_until(is_ready).unwrap();
            is_ready(&network.devices).then_some(network)
        };
        let mut network = (3..23).find_map(reached).unwrap();
        network.lose(ALL[lost]);
        network.run().unwrap();
        // Nobody needs it any more, but it will never say that it is done, so that the planner begins anew.
        assert!(without(ALL[lost]).iter().all(|place| network.finished[place.index()]));
        others_hand_on(&mut network, ALL[lost]);
    }
}

#[test]
fn whoever_is_late_is_left_out() {
    let mut network = begun(4);
    network.run_until(|devices| devices.iter().all(|device| device.plan().is_some())).unwrap();
    let late = network.devices[1].model().unwrap().clone();
    network.lose(ALL[1]);
    network.run().unwrap();
    let patience = Duration::from_secs(4);
    let timing = Timing { wait: patience, settle: patience, patience };
    let mut planner = Membership::new(ALL[0], ALL.len(), 1, timing, Duration::ZERO);
    ALL[1..].iter().for_each(|&place| planner.came(place, 1, 1, Duration::ZERO));
    planner.enter(1, &ALL, Duration::ZERO);
    planner.planned(network.devices[0].plan().unwrap().sends(), Duration::ZERO);
    // The first has sent its model, and the second does nothing with it.
    for place in without(ALL[1]) {
        let device = &network.devices[place.index()];
        let missing = device.missing();
        match device.is_done() {
            true => assert_eq!((place, missing), (ALL[0], Vec::new())),
            false => planner.hear_missing(place, &missing),
        }
    }
    planner.hear_done(ALL[0]);
    let own = network.devices[0].missing();
    let decisions = planner.tick(2 * patience, &own);
    let members = without(ALL[1]);
    assert_eq!(decisions, [Decision::LeaveOut(ALL[1]), Decision::Begin { number: 2, members }]);
    others_hand_on(&mut network, ALL[1]);
    // What comes after that is not taken.
    let refused = network.devices[2].receive_model(ALL[1], Way::First, late).unwrap_err();
    assert_eq!(refused, Refusal::Unfit("a model that nobody asked for"));
}

#[test]
fn who_trains_on_is_heard_of_and_who_only_says_so_is_not() {
    let mut network = begun(5);
    network.run_until(|devices| devices[1].is_training_on()).unwrap();
    network.run_until(|devices| devices.iter().all(|device| device.plan().is_some())).unwrap();
    let device = &mut network.devices[4];
    let mut progress = |from: usize, percent: u8| {
        let before = device.known();
        assert_eq!(
            device.receive(ALL[from], &Envelope::new(1, Message::TrainedOn(percent))),
            Ok(vec![])
        );
        device.known() > before
    };
    assert!(progress(1, 20) && progress(1, 30));
    assert!(!progress(1, 30) && !progress(1, 10));
    // A model comes to it once.
    assert!(progress(1, 100) && !progress(1, 101) && !progress(1, 200));
    assert!(!progress(0, 50) && !progress(5, 50));
}

#[test]
fn a_model_that_leads_to_none_is_not_handed_over_again() {
    // Steps so large that they lead nowhere.
    let descent = Descent { learning_rate: 1e30, ..Descent::default() };
    let training = Training { descent, ..handing_on().training };
    let mut network = Network::new(in_a_row_that_trains_on(training), 6);
    network.begin(ALL[0], 1, &ALL);
    network.run_until(knows_plan(1)).unwrap();
    let handed = network.devices[0].sent_model(Way::First).unwrap();
    let device = &mut network.devices[1];
    let actions = device.receive_model(ALL[0], Way::First, handed).unwrap();
    let [Action::Compute(job)] = <[Action; 1]>::try_from(actions).unwrap() else { panic!() };
    assert_eq!(job.task(), Task::TrainOn { from: ALL[0], way: Way::First });
    let trained = job.run(&mut |_| ControlFlow::Continue(())).unwrap();
    let refused = device.computed(trained).unwrap_err();
    assert_eq!(refused, Refusal::Unfit("a model that cannot be trained on"));
    let told = device.model_failed(ALL[0]);
    let [Action::Send(to, envelope)] = &told[..] else { panic!("{told:?}") };
    assert_eq!((*to, &envelope.message), (ALL[0], &Message::Failed(ALL[0])));
    let forbidden = network.devices[0].receive(ALL[1], envelope).unwrap();
    assert_eq!(forbidden, [Action::Forbid(ALL[0], ALL[1])]);
    // A link that the plan does not have cannot fail.
    let other = Envelope::new(1, Message::Failed(ALL[1]));
    assert!(network.devices[0].receive(ALL[1], &other).is_err());
    // The next plan does without that link.
    let actions = network.devices[0].begin(2, &ALL, &BTreeSet::from([(ALL[0], ALL[1])]));
    assert!(!actions.is_empty());
}

#[test]
fn what_became_of_a_model_is_taken_up_again_for_that_model_alone() {
    let mut before = begun(9);
    before.run().unwrap();
    let known = before.devices[1].handed_on()[&Way::First].clone();
    let own = before.devices[1].trained().cloned();
    // As it was kept, as if another model had been handed over, and as no model can be.
    let other = HandedOn { handed: [0; 32], ..known.clone() };
    let mut none = known.clone();
    none.trained[0] = f32::NAN;
    for (kept, trains_on) in [(known.clone(), false), (other, true), (none, true)] {
        let mut network = begun_with(9, |devices| {
            devices[1].resume(own.clone(), BTreeMap::from([(Way::First, kept)]), None);
        });
        network.run_until(knows_plan(1)).unwrap();
        let handed = network.devices[0].sent_model(Way::First).unwrap();
        let actions = network.devices[1].receive_model(ALL[0], Way::First, handed).unwrap();
        let computes = |action: &Action| matches!(action, Action::Compute(_));
        assert_eq!(actions.iter().any(computes), trains_on);
        let sent = network.devices[1].sent_model(Way::First);
        assert_eq!(sent, before.devices[1].sent_model(Way::First).filter(|_| !trains_on));
    }
}

#[test]
fn hand_overs_are_kept_from_epoch_to_epoch() {
    let mut network = begun(7);
    network.run().unwrap();
    let first = network.devices[0].plan().unwrap().clone();
    network.begin(ALL[0], 2, &ALL);
    network.run().unwrap();
    let second = network.devices[0].plan().unwrap().clone();
    assert_eq!((&second.links, &second.handovers), (&first.links, &first.handovers));
    // One that has nothing to do with them leaves and comes back: the others keep what they do.
    network.begin(ALL[0], 3, &ALL[..5]);
    network.run().unwrap();
    let without = network.devices[0].plan().unwrap().clone();
    assert_eq!(without.handovers, first.handovers);
    assert!(without.links.iter().all(|link| first.links.contains(link)));
    network.begin(ALL[0], 4, &ALL);
    network.run().unwrap();
    let back = network.devices[0].plan().unwrap();
    assert_eq!((&back.links, &back.handovers), (&first.links, &first.handovers));
    assert!(network.finished.iter().all(|done| *done));
}
