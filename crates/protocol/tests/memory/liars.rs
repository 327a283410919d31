//! Members that lie about themselves, about others or by their models, and what the others make of it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use crate::common::in_memory_network::Network;
use stlf_data::partition::{All, ClassesPerDevice, Paper};
use stlf_learn::Params;
use stlf_method::divergence::{Settings, sketch};
use stlf_planning::Role;
use stlf_planning::bound::BoundKind;
use stlf_protocol::checking::Objection;
use stlf_protocol::device::{Holdings, Trained};
use stlf_protocol::shared::{Fingerprint, SharedSettings};
use stlf_protocol::wire::{
    Denial, Envelope, EpochId, Link, Malformed, Message, Plan, Sending, SignedPlan, SignedReport,
};
use stlf_protocol::{Action, Device, Place, Refusal, Roster, Setup};

use crate::common::{
    ALL, DEVICES, SHAPE, data, dealt, devices, devices_of, devices_with, handing_on, identity,
    owner, setup,
};
use crate::jobs::until_search_without;

/// Devices that have reported, and the plan that the first of them makes of it.
fn planned_by(devices: Vec<Device>) -> (Vec<Device>, EpochId, SignedPlan) {
    planned_without(devices, &BTreeSet::new())
}

/// The same where the first holds some links, from and to, to be of no use.
fn planned_without(
    mut devices: Vec<Device>,
    forbidden: &BTreeSet<(Place, Place)>,
) -> (Vec<Device>, EpochId, SignedPlan) {
    let (job, ..) = until_search_without(&mut devices, forbidden);
    let searched = job.run(&mut |_| ControlFlow::Continue(())).unwrap();
    let actions = devices[0].computed(searched).unwrap();
    let plan = actions.into_iter().find_map(|action| match action {
        Action::Send(_, Envelope { epoch, message: Message::Plan(signed), .. }) => {
            Some((epoch, signed))
        }
        _ => None,
    });
    let (epoch, signed) = plan.unwrap();
    (devices, epoch, signed)
}

fn planned() -> (Vec<Device>, EpochId, SignedPlan) {
    planned_by(devices())
}

/// The same where nobody tries models, so that links can be altered alone.
fn untried() -> (Vec<Device>, EpochId, SignedPlan) {
    planned_by(devices_of(&Setup { examiners: false, ..setup() }))
}

/// What the second device makes of what the planner says, which signs it.
fn heard(devices: &mut [Device], epoch: EpochId, said: SignedPlan) -> Result<(), Refusal> {
    let signed = SignedPlan::sign(said.plan, said.reports, &identity(ALL[0]));
    checked(&mut devices[1], epoch, Message::Plan(signed))
}

/// What a device makes of what its planner has come to.
fn checked(second: &mut Device, epoch: EpochId, said: Message) -> Result<(), Refusal> {
    let mut actions = second.receive(ALL[0], &Envelope::new(epoch, said))?;
    let Some(Action::Compute(job)) = actions.pop() else { panic!("it follows without a check") };
    let computed = job.run(&mut |_| ControlFlow::Continue(())).unwrap();
    second.computed(computed).map(drop)
}

/// What is wrong with a plan that was changed so.
fn objection(change: impl FnOnce(&mut SignedPlan)) -> Objection {
    objection_in(planned(), change)
}

fn objection_in(
    (mut devices, epoch, mut signed): (Vec<Device>, EpochId, SignedPlan),
    change: impl FnOnce(&mut SignedPlan),
) -> Objection {
    change(&mut signed);
    match heard(&mut devices, epoch, signed) {
        Err(Refusal::Plan(objection)) => {
            assert!(devices[1].plan().is_none() && devices[1].missing() == [ALL[0]]);
            objection
        }
        other => panic!("{other:?}"),
    }
}

/// A plan by which the planner gets the models of all other sources.
fn greedy(plan: &mut Plan) {
    let others: Vec<Place> = plan.sources.iter().copied().filter(|&s| s != ALL[0]).collect();
    let mut targets: Vec<Place> = plan.targets.iter().copied().chain([ALL[0]]).collect();
    targets.sort_unstable();
    let links = targets.iter().flat_map(|&to| {
        let from = if to == ALL[0] { &others[..] } else { &others[..1] };
        let weight = 1.0 / from.len() as f64;
        from.iter().map(move |&from| Link { from, to, weight })
    });
    plan.links = links.collect();
    (plan.sources, plan.targets, plan.handovers) = (others, targets, Vec::new());
}

#[test]
fn a_plan_that_follows_from_its_reports_is_followed() {
    let (mut devices, epoch, signed) = planned();
    assert_eq!(heard(&mut devices, epoch, signed.clone()), Ok(()));
    assert_eq!(devices[1].plan(), Some(&signed.plan));
}

#[test]
fn a_planner_cannot_have_models_sent_to_itself() {
    let Objection::Misstated { stated, found } =
        objection_in(untried(), |signed| greedy(&mut signed.plan))
    else {
        panic!("it costs what it says");
    };
    assert!(found > stated);
    let honest = objection_in(untried(), |signed| {
        greedy(&mut signed.plan);
        signed.plan.objective = found;
    });
    assert_eq!(honest, Objection::Dearer { stated: found, best: stated });
    let sentence = format!("the plan costs {found:.4}, where its reports allow one of {stated:.4}");
    assert_eq!(honest.to_string(), sentence);
}

/// What a link that is there twice would save, as if its model came from two sources.
#[test]
fn a_plan_that_costs_less_than_any_can_is_refused() {
    let split = |signed: &mut SignedPlan| {
        let half = |link: &Link| Link { weight: link.weight / 2.0, ..*link };
        let links = &signed.plan.links;
        signed.plan.links = links.iter().map(half).flat_map(|link| [link, link]).collect();
    };
    let Objection::Misstated { stated, found } = objection_in(untried(), split) else {
        panic!("it costs what it says");
    };
    assert!(found < stated, "{found} {stated}");
    let lie = |signed: &mut SignedPlan| {
        split(signed);
        signed.plan.objective = found;
    };
    let cheap = Objection::Unfounded("it costs less than any plan can");
    assert_eq!(objection_in(untried(), lie), cheap);
    // It is not even read.
    let mut signed = untried().2;
    lie(&mut signed);
    let bytes = Envelope::new(1, Message::Plan(signed)).to_bytes();
    assert!(matches!(Envelope::read(&bytes), Err(Malformed::Absurd(_))));
}

#[test]
fn by_the_papers_bound_no_target_has_two_sources() {
    let paper = || {
        let setup = Setup { bound: BoundKind::Paper, examiners: false, ..setup() };
        planned_by(devices_of(&setup))
    };
    let nearly_nothing = |signed: &mut SignedPlan| {
        let plan = &mut signed.plan;
        let link = plan.links.remove(0);
        let other = plan.sources.iter().copied().find(|&from| from != link.from).unwrap();
        let second = Link { from: other, weight: 1e-15, ..link };
        plan.links.extend([link, second]);
        plan.links.sort_by_key(|link| (link.to, link.from));
        assert!(plan.incoming(link.to).count() == 2);
    };
    let refused = objection_in(paper(), nearly_nothing);
    assert_eq!(refused, Objection::Unfounded("a target has two sources, by the paper's bound"));
}

#[test]
fn a_plan_that_is_unsigned_or_of_another_epoch_or_of_others_convicts_its_planner() {
    let (mut devices, epoch, signed) = planned();
    let refused = |devices: &mut [Device], signed: SignedPlan| {
        let said = Envelope::new(epoch, Message::Plan(signed));
        devices[1].receive(ALL[0], &said).map(drop)
    };
    let lie = |objection| Err(Refusal::Plan(objection));
    let mut other = signed.clone();
    other.signature[7] ^= 1;
    assert_eq!(refused(&mut devices, other), lie(Objection::Unsigned));
    let again = |plan: Plan| SignedPlan::sign(plan, signed.reports.clone(), &identity(ALL[0]));
    let next = Plan { epoch: signed.plan.epoch + 1, ..signed.plan.clone() };
    assert_eq!(refused(&mut devices, again(next)), lie(Objection::Elsewhere));
    let mut fewer = signed.plan.clone();
    fewer.targets.pop();
    let others = Objection::Unfounded("it is not of this epoch's devices");
    assert_eq!(refused(&mut devices, again(fewer)), lie(others));
    // From anybody else it convicts nobody.
    let unsigned = SignedPlan { signature: vec![0; 64], ..signed.clone() };
    let said = Envelope::new(epoch, Message::Plan(unsigned));
    assert_eq!(devices[1].receive(ALL[3], &said), Err(Refusal::NotPlanner(ALL[3])));
    assert_eq!(heard(&mut devices, epoch, signed), Ok(()));
}

#[test]
fn a_planner_cannot_say_that_there_is_no_plan_where_there_is_one() {
    let denied = |change: fn(&mut Vec<SignedReport>)| {
        let (mut devices, epoch, mut signed) = planned();
        change(&mut signed.reports);
        let denial = Denial::new("nobody has labels".to_owned(), signed.reports);
        let refused = checked(&mut devices[1], epoch, Message::NoPlan(denial));
        assert!(devices[1].no_plan().is_none() && devices[1].awaits_plan());
        refused
    };
    assert_eq!(denied(|_| {}), Err(Refusal::Plan(Objection::Denied)));
    assert_eq!(denied(Vec::clear), Err(Refusal::Plan(Objection::WithoutReports)));
    let inventing = |reports: &mut Vec<SignedReport>| reports[2].report.labeled = 0;
    assert_eq!(denied(inventing), Err(Refusal::Plan(Objection::Forged(ALL[2]))));
}

/// More devices than every plan is searched for again, which hand models on.
fn many() -> Vec<Device> {
    const MANY: usize = 20;
    let places = || (0..MANY).map(Place::new);
    let roster = places().fold(Roster::new("many", owner().id()), |roster, place| {
        roster.with(&format!("d{}", place.index() + 1), identity(place).id()).unwrap()
    });
    let mut setup = Setup { examiners: false, ..handing_on() };
    setup.training.steps = 20;
    let (scale, alpha, classes_per_device) = (0.02, 100.0, ClassesPerDevice::All(All::All));
    let scheme = Paper { devices: MANY, scale, alpha, classes_per_device, ..Paper::default() };
    let device = |(place, holdings): (Place, Holdings)| {
        let joules = places().filter(|&to| to != place).map(|to| (to, 3.0)).collect();
        let (setup, roster) = (setup.clone(), roster.clone());
        let mut device = Device::new(setup, roster, identity(place), holdings, joules).unwrap();
        assert!(device.train(&mut || ControlFlow::Continue(())).unwrap());
        device
    };
    places().zip(dealt(&data(), scheme)).map(device).collect()
}

#[test]
fn a_plan_for_many_that_is_near_the_least_is_followed_and_no_other() {
    let (mut devices, epoch, signed) = planned_by(many());
    assert!(!signed.plan.handovers.is_empty());
    assert_eq!(heard(&mut devices, epoch, signed.clone()), Ok(()));
    assert_eq!(devices[1].plan(), Some(&signed.plan));
    let greed = objection_in(planned_by(many()), |signed| greedy(&mut signed.plan));
    let Objection::Misstated { stated, found } = greed else { panic!("{greed}") };
    let honest = objection_in(planned_by(many()), |signed| {
        greedy(&mut signed.plan);
        signed.plan.objective = found;
    });
    assert_eq!(honest, Objection::Dearer { stated: found, best: stated });
}

#[test]
fn a_planner_cannot_alter_invent_or_withhold_a_report() {
    assert_eq!(
        objection(|signed| signed.reports[2].report.labeled += 1),
        Objection::Forged(ALL[2])
    );
    assert_eq!(objection(|signed| signed.reports.swap(3, 4)), Objection::Forged(ALL[3]));
    assert_eq!(objection(|signed| signed.reports.truncate(5)), Objection::WithoutReports);
    assert_eq!(objection(|signed| signed.reports.clear()), Objection::WithoutReports);
    // One of another epoch is none of this.
    let (mut devices, _, signed) = planned();
    let other = EpochId { number: 1, begun: 77 };
    assert!(matches!(heard(&mut devices, other, signed), Err(Refusal::Epoch { .. })));
}

#[test]
fn a_report_by_other_settings_is_none() {
    let (mut devices, epoch, signed) = planned();
    let other = SharedSettings::new([("data.classes".to_owned(), "storm, calm".to_owned())]);
    let report = signed.reports[1].report.clone();
    let report = SignedReport::sign(report, epoch, other.fingerprint(), &identity(ALL[1]));
    let message = Envelope::new(epoch, Message::Report(report.clone()));
    assert_eq!(devices[0].receive(ALL[1], &message), Err(Refusal::UnsignedReport(ALL[1])));
    assert_eq!(objection(|signed| signed.reports[1] = report.clone()), Objection::Forged(ALL[1]));
}

#[test]
fn a_planner_cannot_choose_witnesses_or_examiners_or_links_that_are_forbidden() {
    const OTHER_CHECKS: &str = "its witnesses or examiners are others";
    let witness = |signed: &mut SignedPlan| {
        let plan = &mut signed.plan;
        let (to, used) = (plan.targets[0], plan.incoming(plan.targets[0]).next().unwrap().from);
        let from = ALL.into_iter().find(|&place| place != to && place != used).unwrap();
        plan.witnesses = vec![Sending { from, to }];
    };
    assert_eq!(objection(witness), Objection::Unfounded(OTHER_CHECKS));
    assert!(!planned().2.plan.examinations.is_empty());
    let untried = |signed: &mut SignedPlan| signed.plan.examinations.clear();
    assert_eq!(objection(untried), Objection::Unfounded(OTHER_CHECKS));
    let forbidden = |signed: &mut SignedPlan| {
        let link = signed.plan.links[0];
        signed.plan.forbidden = vec![(link.from, link.to)];
    };
    assert_eq!(objection(forbidden), Objection::Unfounded("it uses a link that cannot be used"));
}

/// The planner has labels. If it could, it would be the only source that is left to a target, which nobody tries where it sends to that one alone.
#[test]
fn a_planner_cannot_do_without_a_link_of_which_its_receiver_has_not_complained() {
    let taken = BTreeSet::from([(ALL[2], ALL[1]), (ALL[4], ALL[3])]);
    let (mut devices, epoch, signed) = planned_without(devices(), &taken);
    assert_eq!(signed.plan.forbidden.len(), 2);
    let refused = heard(&mut devices, epoch, signed);
    assert_eq!(refused, Err(Refusal::Plan(Objection::Unasked(ALL[2]))));
    // It has said so itself; of the other link it knows nothing.
    let mut complaining = crate::common::devices();
    complaining[1].complain_of(&[ALL[2]]);
    let (mut devices, epoch, signed) = planned_without(complaining, &taken);
    assert_eq!(heard(&mut devices, epoch, signed), Ok(()));
}

#[test]
fn a_report_must_be_possible() {
    let (mut devices, epoch, signed) = planned();
    let planner = &mut devices[0];
    let mut report = signed.reports[1].report.clone();
    report.source_error = Some(0.0);
    let lie = SignedReport::sign(report, epoch, Fingerprint::default(), &identity(ALL[1]));
    let refused = planner.receive(ALL[1], &Envelope::new(epoch, Message::Report(lie)));
    // It has samples without labels, which count as errors.
    assert_eq!(refused, Err(Refusal::Unfit("a source error that its samples cannot have")));
}

/// Alike devices, of which some send a model that nobody trained.
fn network(setup: &Setup, liars: &[usize]) -> Network {
    let (scale, alpha, classes_per_device) = (0.28, 100.0, ClassesPerDevice::All(All::All));
    let scheme = Paper { devices: DEVICES, scale, alpha, classes_per_device, ..Paper::default() };
    let mut devices = devices_with(setup, dealt(&data(), scheme));
    for &liar in liars {
        let own = devices[liar].trained().cloned();
        let model = Params::initial(&setup.spec, 77);
        let random = own.map(|own| Trained { model, ..own });
        devices[liar].resume(random, BTreeMap::new(), None);
    }
    let mut network = Network::new(devices, 3);
    network.begin(ALL[0], 1, &ALL);
    network.run().unwrap();
    assert_eq!(network.refused, []);
    network
}

/// By means without noise, and long enough that models agree.
fn withstanding(liars: usize) -> Setup {
    let means = sketch::Settings::means(SHAPE).with(|s| s.privacy = None);
    let mut setup = Setup { liars, divergence: Settings::Sketch(means), ..setup() };
    setup.training.steps = 3_000;
    setup
}

#[test]
fn witnesses_change_nothing_where_all_are_honest() {
    let (plain, checked) = (network(&withstanding(0), &[]), network(&withstanding(1), &[]));
    let mut targets = 0;
    for (plain, checked) in plain.devices.iter().zip(&checked.devices) {
        assert_eq!(plain.outcome(), checked.outcome());
        if checked.plan().unwrap().role(checked.place()) == Some(Role::Target) {
            assert_eq!(checked.received().unwrap().len(), 3);
            assert_eq!(checked.combined().unwrap().refused, []);
            targets += 1;
        }
    }
    assert!(targets > 0 && checked.forbidden.is_empty());
}

#[test]
fn a_model_that_others_contradict_is_refused_and_the_planner_hears_of_it() {
    for (liar, place) in ALL.into_iter().enumerate().take(3) {
        let network = network(&withstanding(1), &[liar]);
        let targets = network.devices.iter().filter_map(|device| device.combined());
        let mut heard = 0;
        for combined in targets {
            assert_eq!(combined.refused, [place]);
            heard += 1;
        }
        assert!(heard > 0);
        // Examiners refuse it, too.
        let plan = network.devices[0].plan().unwrap();
        let tried = plan.examinations.iter().filter(|one| one.from == place).count();
        assert_eq!(network.forbidden.len(), heard + tried);
        assert!(network.forbidden.iter().all(|(from, _)| *from == place));
    }
}

#[test]
fn a_model_that_nobody_trained_is_refused_though_it_is_the_only_one() {
    // By the paper's bound every target gets one model.
    let setup = Setup { bound: BoundKind::Paper, examiners: false, ..withstanding(0) };
    let honest = network(&setup, &[]);
    let plan = honest.devices[0].plan().unwrap();
    assert!(plan.links.len() == plan.targets.len() && plan.witnesses.is_empty());
    assert!(honest.forbidden.is_empty());
    let place = plan.links[0].from;

    let network = network(&setup, &[place.index()]);
    let mut refused = Vec::new();
    for device in network.devices.iter().filter(|device| device.combined().is_some()) {
        let combined = device.combined().unwrap();
        let has = device.received().unwrap().iter().any(|(from, ..)| *from == place);
        refused.extend(has.then_some((place, device.place())));
        assert_eq!(combined.refused, if has { vec![place] } else { Vec::new() });
        // Until it gets another model, it does with what it has.
        assert!((combined.weights.iter().sum::<f64>() - 1.0).abs() < 1e-6);
    }
    let mut forbidden = network.forbidden.clone();
    forbidden.sort_unstable();
    assert_eq!(forbidden, refused, "the planner hears of it");
    assert!(!refused.is_empty());
}

/// The place is data; whoever reads it gets a name.
#[test]
fn refusals_name_the_device_where_the_roster_is_known() {
    let roster = crate::common::roster();
    let name = &roster.at(ALL[2]).unwrap().name;
    let twice = Refusal::Twice(ALL[2]);
    assert_eq!(twice.to_string(), "place 2 says two things");
    assert_eq!(twice.told(&roster), format!("{name} says two things"));
    let forged = Refusal::from(Objection::Forged(ALL[2]));
    let part = format!("a report that {name} did not sign");
    assert!(forged.told(&roster).contains(&part), "{}", forged.told(&roster));
    let impossible = Objection::Impossible(ALL[2], Box::new(Refusal::Stranger(ALL[2])));
    assert!(impossible.told(&roster).contains(name.as_str()));
    assert_eq!(roster.name_of(Place::new(99)), "place 99");
}
