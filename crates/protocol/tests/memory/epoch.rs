//! An epoch of a whole fleet, message by message: it ends as if one machine had seen everything, in whatever order
//! messages arrive, and no wrong message changes that.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::common::in_memory_network::Network;
use stlf_data::partition::{All, ClassesPerDevice, Paper};
use stlf_learn::Params;
use stlf_learn::evaluate::{Predictions, predict};
use stlf_method::adapt::{Adapt, Judgement, Obstacle, Tried};
use stlf_method::class_shares::balanced;
use stlf_method::combine::{Combine, combine};
use stlf_method::divergence;
use stlf_method::expectation::doubt;
use stlf_method::guard::{Guard, Standard};
use stlf_method::known::Known;
use stlf_method::local_training::{Rows, Split};
use stlf_method::ring;
use stlf_method::seeds::Draw;
use stlf_method::student::{Owner, Target};
use stlf_method::trust::{Heard, trust};
use stlf_planning::Problem;
use stlf_planning::Role;
use stlf_planning::bound::Bound;
use stlf_planning::plan::{Status, Way, is_on_ring};
use stlf_planning::planner::{self, Outcome};
use stlf_planning::problem::{Links, Parts, Preset, Source};
use stlf_planning::witness::Claim;
use stlf_protocol::Setup;
use stlf_protocol::checking::Objection;
use stlf_protocol::device::{Holdings, Schooled};
use stlf_protocol::wire::{Denial, Envelope, Message, Plan as WirePlan, Sending};
use stlf_protocol::{Action, Device, Place, Refusal};

use crate::common::{
    ALL, DEVICES, SEED, SHAPE, alike, data, dealt, devices, devices_with, energies, going_round,
    handing_on, holdings, identity, roster, setup, without_noise,
};

/// A place that the roster does not have.
const STRANGER: Place = Place::new(77);

fn network(order: u64) -> Network {
    Network::new(devices(), order)
}

/// What the devices came to: the plan as the first has it, and everybody's predictions.
fn outcome(network: &Network) -> (WirePlan, Vec<Option<Vec<u16>>>) {
    assert!(network.finished.iter().all(|done| *done), "{:?}", network.finished);
    let plan = network.devices[0].plan().unwrap().clone();
    assert!(network.devices.iter().all(|device| device.plan() == Some(&plan)));
    let classes = |device: &Device| device.outcome().map(|p| p.classes().collect::<Vec<u16>>());
    (plan, network.devices.iter().map(classes).collect())
}

#[test]
fn a_fleet_comes_to_what_one_machine_would() {
    for settings in without_noise() {
        let setup = Setup { divergence: settings, ..setup() };
        comes_to_what_one_machine_would(&setup, &holdings(&data()));
    }
}

#[test]
fn shares_of_classes_are_taken_out_and_put_in_if_all_agree_to() {
    for setup in
        [Setup { combine: Combine::Corrected, ..setup() }, Setup { balanced: false, ..setup() }]
    {
        comes_to_what_one_machine_would(&setup, &holdings(&data()));
    }
}

#[test]
fn models_are_handed_on_as_on_one_machine() {
    let (holdings, balanced) = (alike(&data()), handing_on());
    for setup in [Setup { balanced: false, ..balanced.clone() }, balanced] {
        let plan = comes_to_what_one_machine_would(&setup, &holdings);
        // Some model goes over several sources.
        let handed_twice = |h: &Sending| plan.handed_from(h.from).is_some();
        assert!(plan.handovers.iter().any(handed_twice), "{plan:?}");
    }
}

#[test]
fn models_go_round_as_on_one_machine() {
    let (holdings, balanced) = (alike(&data()), going_round());
    for setup in [Setup { balanced: false, ..balanced.clone() }, balanced] {
        let plan = comes_to_what_one_machine_would(&setup, &holdings);
        assert_eq!(plan.legs().len(), 2 * plan.handovers.len() - 1, "{plan:?}");
        assert_eq!(plan.handovers.len(), 3, "{plan:?}");
    }
}

#[test]
fn targets_train_their_students_as_on_one_machine() {
    let all = ClassesPerDevice::All(All::All);
    // Some targets have the 300 samples that a student needs, and some have not.
    let paper = Paper { devices: DEVICES, scale: 0.3, classes_per_device: all, ..Paper::default() };
    let holdings = dealt(&data(), paper);
    let targets = || holdings.iter().filter(|own| own.labels.is_empty());
    assert!(targets().any(|own| own.unlabeled >= 300) && targets().any(|own| own.unlabeled < 300));
    for adapt in [Adapt::Guarded, Adapt::Always] {
        let setup = Setup { adapt, ..setup() };
        comes_to_what_one_machine_would(&setup, &holdings);
    }
    // No source is near those whose samples are others altogether: the guard asks less there, on both sides.
    let mut far = holdings;
    for target in far.iter_mut().filter(|own| own.labels.is_empty()) {
        target.inputs = target.inputs.iter().map(|x| x + 5.0).collect();
    }
    comes_to_what_one_machine_would(&Setup { adapt: Adapt::Guarded, ..setup() }, &far);
}

/// Neither in the next epoch nor after a restart: what it was made of is known by a hash.
#[test]
fn a_student_is_not_trained_again_of_the_same() {
    let all = ClassesPerDevice::All(All::All);
    let paper = Paper { devices: DEVICES, scale: 0.3, classes_per_device: all, ..Paper::default() };
    let setup = Setup { adapt: Adapt::Always, ..setup() };
    let holdings = dealt(&data(), paper);
    let mut network = Network::new(devices_with(&setup, holdings.clone()), 1);
    let schooled = |network: &mut Network, epoch: u64| -> Vec<Option<Arc<Schooled>>> {
        network.begin(ALL[0], epoch, &ALL);
        network.run().unwrap();
        network.devices.iter().map(|d| d.combined().and_then(|c| c.schooled.clone())).collect()
    };
    let first = schooled(&mut network, 1);
    let (target, made) = first.iter().enumerate().find_map(|(k, s)| Some((k, s.clone()?))).unwrap();
    let again = schooled(&mut network, 2);
    assert!(again[target].as_ref().is_some_and(|same| Arc::ptr_eq(same, &made)));
    // Another student under the hash of this one is believed: nothing was trained. Under another hash it is not.
    let other = Params::initial(&setup.spec, 99);
    for (of, expected) in [(made.of, &other), ([7; 32], &made.student)] {
        let mut devices = devices_with(&setup, holdings.clone());
        devices[target].remember_student(Schooled { of, student: other.clone() });
        let mut network = Network::new(devices, 1);
        let found = schooled(&mut network, 1)[target].clone().unwrap();
        assert_eq!((found.of, &found.student), (made.of, expected));
    }
    // Answers make another one.
    let mut answered = holdings;
    answered[target].answers = (0..12).map(|sample| (sample, (sample % 10) as u16)).collect();
    let mut network = Network::new(devices_with(&setup, answered), 1);
    assert_ne!(schooled(&mut network, 1)[target].clone().unwrap().of, made.of);
}

/// What a plan costs by its reports is what it says, and all know its terms.
#[test]
fn devices_know_the_terms_of_their_plan() {
    let mut network = Network::new(devices(), 1);
    network.begin(ALL[0], 1, &ALL);
    network.run().unwrap();
    let (plan, _) = outcome(&network);
    let terms: Vec<_> = network.devices.iter().map(|d| d.plan_terms().unwrap()).collect();
    assert!((terms[0].total() - plan.objective).abs() < 1e-9 * plan.objective.abs().max(1.0));
    assert!(terms.iter().all(|own| own == &terms[0]), "{terms:?}");
}

#[test]
fn answers_change_what_targets_end_with_as_on_one_machine() {
    let data = data();
    let plain = holdings(&data);
    let setup = Setup { adapt: Adapt::Guarded, ..setup() };
    let without = Network::new(devices_with(&setup, plain.clone()), 1);
    let outcomes = |mut network: Network| {
        network.begin(ALL[0], 1, &ALL);
        network.run().unwrap();
        outcome(&network)
    };
    let mut answered = plain.clone();
    for own in answered.iter_mut().filter(|own| own.labels.is_empty()) {
        own.answers = (0..12).map(|sample| (sample, (sample % 10) as u16)).collect();
    }
    comes_to_what_one_machine_would(&setup, &answered);
    // The plan is the same: answers are for targets alone.
    let (plan, before) = outcomes(without);
    let (same, after) = outcomes(Network::new(devices_with(&setup, answered), 1));
    assert_eq!((&plan.links, &plan.objective), (&same.links, &same.objective));
    assert_ne!(before, after);
}

#[test]
fn a_student_that_trains_is_progress_and_may_be_ended() {
    let all = ClassesPerDevice::All(All::All);
    let paper = Paper { devices: DEVICES, scale: 0.3, classes_per_device: all, ..Paper::default() };
    let setup = Setup { adapt: Adapt::Guarded, ..setup() };
    let mut network = Network::new(devices_with(&setup, dealt(&data(), paper)), 1);
    network.begin(ALL[0], 1, &ALL);
    network.run().unwrap();
    let (plan, _) = outcome(&network);
    let (target, source) = (plan.targets[0], plan.sources[1]);
    let planner = &mut network.devices[0];
    let mut known = planner.known();
    let mut hears = |from: Place, percent: u8| {
        let told = Envelope::new(1, Message::TrainedOn(percent));
        planner.receive(from, &told).unwrap();
        let more = planner.known() > known;
        known = planner.known();
        more
    };
    assert!(hears(target, 10) && hears(target, 100) && !hears(target, 100) && !hears(target, 150));
    assert!(!hears(source, 50), "nobody handed it a model");
}

fn comes_to_what_one_machine_would(setup: &Setup, holdings: &[Holdings]) -> WirePlan {
    let mut network = Network::new(devices_with(setup, holdings.to_vec()), 1);
    network.begin(ALL[0], 1, &ALL);
    network.run().unwrap();
    let (plan, predictions) = outcome(&network);

    let inputs: Vec<&[f32]> = holdings.iter().map(|h| &h.inputs[..]).collect();
    let seed = Draw::Divergence.seed(SEED, 0);
    let mut go_on = |_| ControlFlow::Continue(());
    let measured =
        divergence::measure(&inputs, SHAPE, &setup.divergence, seed, &mut go_on).unwrap().unwrap();
    let models: Vec<Option<&Params>> = network.devices.iter().map(Device::model).collect();
    let rows = |place: usize| {
        Rows::new(holdings[place].labels.len(), 0.2, Draw::HeldOut.seed(SEED, place))
    };
    let own_error = |place: usize, model: &Params| {
        let (own, rows) = (&holdings[place], rows(place));
        let said = predict(&setup.spec, model, &own.inputs).of_all(rows.measured());
        rows.own_error(&said, &own.labels, own.unlabeled, 1.0).source_error
    };
    let device = |place: usize| {
        let own = &holdings[place];
        stlf_planning::Device {
            name: format!("d{}", place + 1),
            labeled: own.labels.len() as u64,
            unlabeled: own.unlabeled as u64,
            source_error: models[place].map(|model| own_error(place, model)),
        }
    };
    let problem = Problem::new(Parts {
        devices: (0..DEVICES).map(device).collect(),
        source: Source::Measured {
            links: Links::from_rows(DEVICES, measured.matrix(), energies()),
            weights: Preset::Balanced.weights(),
            bound: Bound::default().with(|s| s.complexity = Preset::Balanced.complexity()),
            energy_epsilon: 1e-3,
            energy_unit: Preset::Balanced.energy_unit(),
            disagreement: None,
        },
        pins: vec![None; DEVICES],
        forbidden: Vec::new(),
        required: Vec::new(),
    })
    .unwrap();
    let outcome = planner::plan(&problem, &setup.planner, &mut |_| ControlFlow::Continue(()));
    let Outcome::Planned(expected) = outcome else { panic!("no plan") };
    assert_eq!(plan.objective, expected.objective());
    assert_eq!(plan.optimal, expected.status == Status::Optimal);
    assert!(plan.optimal || setup.planner.handovers.is_some());
    let handed: Vec<(usize, usize)> =
        plan.handovers.iter().map(|h| (h.from.index(), h.to.index())).collect();
    assert_eq!(handed, expected.handovers.iter().map(|h| (h.from, h.to)).collect::<Vec<_>>());
    let links: Vec<(usize, usize, f64)> =
        plan.links.iter().map(|l| (l.from.index(), l.to.index(), l.weight)).collect();
    assert_eq!(links, expected.links.iter().map(|l| (l.from, l.to, l.weight)).collect::<Vec<_>>());
    let as_sent = |model: &Params, place: usize| match setup.balanced {
        true => balanced(&setup.spec, model, &holdings[place].labels),
        false => model.clone(),
    };
    let trained = |handed: &Params, place: usize, draw: Draw| {
        let (training, seed) = (setup.training, draw.seed(SEED, place));
        let mut go_on = || ControlFlow::Continue(());
        let Holdings { inputs, labels, .. } = &holdings[place];
        let own = Split::of(inputs, labels, SHAPE.len(), &rows(place).trained);
        let model = own.train_on(&setup.spec, handed.clone(), training, seed, &mut go_on);
        as_sent(&model.unwrap().unwrap(), place)
    };
    // A source's model has been at all sources of its route, each of which sent it on; round a ring, twice, and the second time as a mean.
    let sent = |last: usize| {
        let route = expected.route(last);
        let own = as_sent(models[route[0]].unwrap(), route[0]);
        let on = |model: Params, &place: &usize| trained(&model, place, Draw::Relay);
        let first = route[1..].iter().fold(own, on);
        if !is_on_ring(&expected.handovers, last) {
            return first;
        }
        route.iter().enumerate().fold(first, |model, (k, &place)| {
            let share = ring::own_share(k, route.len());
            ring::mean(&model, &trained(&model, place, Draw::Ring), share)
        })
    };
    for (place, got) in predictions.iter().enumerate() {
        let incoming: Vec<(Params, f64)> =
            expected.incoming(place).iter().map(|l| (sent(l.from), l.weight)).collect();
        let mut incoming: Vec<(&Params, f64)> = incoming.iter().map(|(m, w)| (m, *w)).collect();
        let claims = expected.incoming(place).iter().map(|l| problem.claim(l.from, place).unwrap());
        let claims: Vec<Claim> = claims.collect();
        match expected.roles[place] {
            Role::Source => assert_eq!(got, &None),
            Role::Target => {
                let inputs = &holdings[place].inputs;
                let own = holdings[place].labels.iter().copied().enumerate();
                let known: Vec<Known> = own.chain(holdings[place].answers.clone()).collect();
                believe(setup, &mut incoming, &claims, inputs, &known);
                let is_stranger = expected.strangers(&problem).contains(&place);
                let at = (Place::new(place), is_stranger);
                let combined = network.devices[place].combined().unwrap();
                assert_eq!(combined.is_stranger, is_stranger);
                let standard = if is_stranger { Standard::Stranger } else { Standard::Usual };
                if let Some(Tried::Trained { judgement: Judgement::Guard(verdict), .. }) =
                    combined.tried
                {
                    assert_eq!(verdict.threshold, Guard::default().threshold(standard));
                }
                let one = ends_with(setup, at, &incoming, inputs, &known);
                assert_eq!(got.as_ref().unwrap(), &one.classes().collect::<Vec<_>>());
                assert_eq!(network.devices[place].outcome(), Some(&one));
            }
        }
    }
    plan
}

/// Gives models the weights that they have once a target has checked them.
fn believe(
    setup: &Setup,
    models: &mut [(&Params, f64)],
    claims: &[Claim],
    inputs: &[f32],
    known: &[Known],
) {
    // So few samples are all compared.
    let heard = models.iter().zip(claims).map(|((model, weight), claim)| {
        let said = predict(&setup.spec, model, inputs);
        let doubt = doubt(&said).unwrap();
        Heard { classes: said.classes().collect(), doubt, weight: *weight, claim: *claim }
    });
    let believed = trust(&heard.collect::<Vec<_>>(), known);
    models.iter_mut().zip(believed.weights).for_each(|((_, weight), now)| *weight = now);
}

/// What a target makes of models on one machine, one to which no source is near or another.
fn ends_with(
    setup: &Setup,
    (place, is_stranger): (Place, bool),
    models: &[(&Params, f64)],
    inputs: &[f32],
    known: &[Known],
) -> Predictions {
    let (owner, how) = (Owner::Network { spec: &setup.spec, inputs }, setup.combine);
    if setup.adapt == Adapt::Off || Obstacle::of(owner, known.len()).is_some() {
        return combine(how, &setup.spec, models, inputs).unwrap();
    }
    let seed = Draw::Student.seed(SEED, place.index());
    let target = Target { owner, models, combine: how, known, is_stranger, seed };
    let mut go_on = |_| ControlFlow::Continue(());
    let models = target.informed(&mut go_on).unwrap().unwrap();
    let target = Target { models: &models, ..target };
    let student = target.student(setup.schooling, &mut go_on).unwrap().unwrap();
    target.judge(&student, &mut go_on).unwrap().unwrap().predictions(setup.adapt)
}

#[test]
fn the_order_of_messages_changes_nothing() {
    let outcomes: Vec<_> = [1, 2, 3]
        .map(|order| {
            let mut network = network(order);
            network.begin(ALL[0], 1, &ALL);
            network.run().unwrap();
            assert_eq!(network.refused, []);
            outcome(&network)
        })
        .into();
    assert_eq!(outcomes[0], outcomes[1]);
    assert_eq!(outcomes[0], outcomes[2]);
}

#[test]
fn fewer_devices_make_an_epoch_of_their_own() {
    let mut network = network(4);
    network.begin(ALL[0], 1, &ALL);
    network.run().unwrap();
    // The first device has left; the next one plans.
    let rest = &ALL[1..];
    network.begin(ALL[1], 2, rest);
    network.run().unwrap();
    let plan = network.devices[1].plan().unwrap();
    assert_eq!((plan.epoch, plan.role(ALL[0])), (2, None));
    assert!(rest.iter().all(|place| network.finished[place.index()]));
    assert_eq!(network.devices[0].plan().unwrap().epoch, 1);
}

#[test]
fn wrong_messages_are_refused_and_change_nothing() {
    let expected = {
        let mut network = network(1);
        network.begin(ALL[0], 1, &ALL);
        network.run().unwrap();
        outcome(&network)
    };
    let mut network = network(1);
    let say = |epoch, message| Envelope::new(epoch, message).to_bytes();
    network.begin(ALL[0], 1, &ALL);
    // A stranger's place, an old epoch, a plan by nobody, an epoch by somebody who does not plan.
    network.inject(STRANGER, ALL[2], say(1, Message::Bandwidth(Some(1.0))));
    network.inject(ALL[3], ALL[2], say(0, Message::Bandwidth(Some(1.0))));
    network.inject(ALL[4], ALL[2], say(9, Message::Begin(vec![ALL[0], ALL[2], ALL[4]])));
    let forged = stlf_protocol::wire::SignedPlan {
        plan: WirePlan {
            epoch: 1,
            sources: vec![ALL[0]],
            targets: ALL[1..].to_vec(),
            links: (ALL[1..].iter())
                .map(|&to| stlf_protocol::wire::Link { from: ALL[0], to, weight: 1.0 })
                .collect(),
            handovers: Vec::new(),
            witnesses: Vec::new(),
            examinations: Vec::new(),
            forbidden: Vec::new(),
            objective: 0.0,
            optimal: true,
        },
        reports: Vec::new(),
        signature: vec![0; 64],
    };
    network.run().unwrap();
    network.inject(ALL[0], ALL[2], say(1, Message::Plan(forged.clone())));
    network.inject(ALL[5], ALL[2], say(1, Message::Plan(forged)));
    network.inject(ALL[3], ALL[2], say(1, Message::Bandwidth(Some(99.0))));
    network.run().unwrap();
    assert_eq!(outcome(&network), expected);
    let refused: Vec<&Refusal> = network.refused.iter().map(|(_, refusal)| refusal).collect();
    assert_eq!(refused.len(), 6, "{refused:?}");
    for kind in [
        |r: &Refusal| *r == Refusal::Stranger(STRANGER),
        |r: &Refusal| matches!(r, Refusal::Epoch { offered: 0, .. }),
        |r: &Refusal| *r == Refusal::NotPlanner(ALL[4]),
        |r: &Refusal| *r == Refusal::Plan(Objection::Unsigned),
        |r: &Refusal| *r == Refusal::NotPlanner(ALL[5]),
        |r: &Refusal| *r == Refusal::Twice(ALL[3]),
    ] {
        assert!(refused.iter().any(|r| kind(r)), "{refused:?}");
    }
    // A model that cannot be one is not taken in either.
    let target = expected.0.targets[0];
    let source = expected.0.incoming(target).next().unwrap().from;
    let mut poisoned = network.devices[source.index()].model().unwrap().clone();
    poisoned[0] = f32::NAN;
    let refused =
        network.devices[target.index()].receive_model(source, Way::First, poisoned).unwrap_err();
    assert_eq!(
        refused,
        Refusal::Unfit("a model with a weight that is not finite or far too large")
    );
}

#[test]
fn what_is_said_again_is_no_progress_and_no_fault() {
    let mut device = devices().remove(2);
    let say = |epoch, message| Envelope::new(epoch, message);
    let begin = say(1, Message::Begin(ALL[..4].to_vec()));
    assert!(!device.receive(ALL[0], &begin).unwrap().is_empty());
    let before = device.known();
    let bandwidth = say(1, Message::Bandwidth(None));
    device.receive(ALL[3], &bandwidth).unwrap();
    assert_eq!(device.known(), before + 1);
    for (from, again) in [(ALL[3], &bandwidth), (ALL[3], &bandwidth), (ALL[0], &begin)] {
        assert_eq!(device.receive(from, again), Ok(Vec::new()));
        assert_eq!(device.known(), before + 1);
    }
    let no_plan = |why: &str| say(1, Message::NoPlan(Denial::new(why.to_owned(), Vec::new())));
    let mut heard = device.receive(ALL[0], &no_plan("nobody has labels")).unwrap();
    assert_eq!(device.receive(ALL[0], &no_plan("nobody has labels")), Ok(Vec::new()));
    // A planner cannot go on by giving reason after reason, and has to show each.
    assert_eq!(device.receive(ALL[0], &no_plan("or so")), Err(Refusal::Twice(ALL[0])));
    let Some(Action::Compute(job)) = heard.pop() else { panic!("it is not checked") };
    let checked = job.run(&mut |_| ControlFlow::Continue(())).unwrap();
    let unfounded = Refusal::Plan(Objection::WithoutReports);
    assert_eq!(device.computed(checked), Err(unfounded));
    assert!(device.known() == before + 1 && device.no_plan().is_none());
}

#[test]
fn no_sample_is_among_the_bytes_that_are_sent() {
    // A device's inputs hold a pattern that nothing else has; no message may contain it.
    let mut network = network(1);
    let planted: Vec<f32> = (0..SHAPE.len()).map(|k| 0.123_4 + k as f32 * 1e-4).collect();
    let holdings = Holdings {
        inputs: planted.repeat(40).into(),
        labels: vec![3; 30],
        unlabeled: 10,
        answers: Vec::new(),
    };
    let joules = ALL[1..].iter().map(|&to| (to, 3.0)).collect();
    let mut device = Device::new(setup(), roster(), identity(ALL[0]), holdings, joules).unwrap();
    device.train(&mut || ControlFlow::Continue(())).unwrap();
    network.devices[0] = device;
    network.begin(ALL[0], 1, &ALL);
    let needle: Vec<u8> = planted[..8].iter().flat_map(|x| x.to_le_bytes()).collect();
    network.watch(move |bytes| {
        assert!(!bytes.windows(needle.len()).any(|window| window == needle), "a sample was sent");
    });
    network.run().unwrap();
    assert!(network.finished.iter().all(|done| *done));
}

#[test]
fn without_any_labels_everyone_hears_why_there_is_no_plan() {
    let joules = |place: Place| ALL.into_iter().filter(move |&to| to != place).map(|to| (to, 3.0));
    let blind = ALL.into_iter().zip(holdings(&data())).map(|(place, held)| {
        let unlabeled = held.unlabeled + held.labels.len();
        let held = Holdings { labels: Vec::new(), unlabeled, ..held };
        let own = joules(place).collect();
        let mut device = Device::new(setup(), roster(), identity(place), held, own).unwrap();
        device.train(&mut || ControlFlow::Continue(())).unwrap();
        device
    });
    let mut network = Network::new(blind.collect(), 1);
    network.begin(ALL[0], 1, &ALL);
    network.run().unwrap();
    assert!(network.finished.iter().all(|done| *done), "{:?}", network.finished);
    for device in &network.devices {
        assert!(device.plan().is_none());
        assert!(
            device.no_plan().is_some_and(|why| why.contains("label")),
            "{:?}",
            device.no_plan()
        );
    }
}
