//! The plans that follow from some reports. Devices convict a planner whose plan does not follow from its reports, so that devices of builds with
//! other rules must not meet: whoever changes the rules raises [`VERSION`] and writes a new snapshot, and leaves the old one's name behind.

use std::fmt::Write;
use std::ops::ControlFlow;

use stlf_config::Config;
use stlf_data::Shape;
use stlf_method::divergence::sketch;

use super::*;
use crate::identity::Identity;
use crate::shared::Fingerprint;
use crate::wire::{EpochId, VERSION};

/// What is reported of a fleet.
struct Fleet {
    name: &'static str,
    labeled: &'static [u64],
    /// d̂ of two devices, by their indices.
    divergence: fn(usize, usize) -> f64,
    forbidden: &'static [(usize, usize)],
}

const FLEETS: [Fleet; 4] = [
    Fleet {
        name: "worlds",
        labeled: &[200, 0, 150, 0, 300, 0],
        divergence: |i, j| if i % 4 == j % 4 { 0.1 } else { 1.4 },
        forbidden: &[],
    },
    Fleet {
        name: "people, of whom nobody is near",
        labeled: &[90, 80, 70, 60, 0, 0, 0, 0],
        divergence: |i, j| 1.1 + (i + j) as f64 / 20.0,
        forbidden: &[],
    },
    Fleet {
        name: "a link that is not used",
        labeled: &[120, 130, 0, 0],
        divergence: |i, j| 0.2 * i.abs_diff(j) as f64,
        forbidden: &[(1, 2)],
    },
    Fleet {
        name: "one that claims too much",
        labeled: &[100, 9_000, 110, 0, 0, 0],
        divergence: |i, j| if i == 1 || j == 1 { 0.0 } else { 0.6 + (i * j) as f64 / 30.0 },
        forbidden: &[],
    },
];

/// The plan of a fleet as all can compute it, with as many digits as all machines have alike.
fn plan(fleet: &Fleet) -> String {
    let members: Vec<Place> = (0..fleet.labeled.len()).map(Place::new).collect();
    let identity = |place: Place| Identity::from_bytes(&[place.index() as u8 + 1; 32]);
    let owner = Identity::from_bytes(&[200; 32]);
    let roster = members.iter().fold(Roster::new("fleet", owner.id()), |roster, &place| {
        roster.with(&format!("d{}", place.index()), identity(place).id()).unwrap()
    });
    let shape = Shape::grey(28);
    let mut setup = Setup::new(&Config::default(), shape, 4, 1).unwrap();
    setup.divergence = Settings::Sketch(sketch::Settings::means(shape));
    let forbidden =
        fleet.forbidden.iter().map(|&(i, j)| (members[i], members[j])).collect::<BTreeSet<_>>();
    let mut desk = Planner::new(&members, &setup.divergence, &forbidden);
    for &place in &members {
        let i = place.index();
        let pair = |&peer: &Place| PairReport {
            peer,
            measured: Measured::Divergence((fleet.divergence)(
                i.min(peer.index()),
                i.max(peer.index()),
            )),
            joules: Some(2.0 + ((3 * i + 5 * peer.index()) % 7) as f64 / 7.0),
        };
        let labeled = fleet.labeled[i];
        let report = Report {
            labeled,
            unlabeled: if labeled > 0 { 0 } else { 100 },
            source_error: (labeled > 0).then(|| (i + 1) as f64 / 50.0),
            pairs: members.iter().filter(|&&peer| peer != place).map(pair).collect(),
        };
        let epoch = EpochId { number: 1, begun: 0 };
        let signed = SignedReport::sign(report, epoch, Fingerprint::default(), &identity(place));
        desk.hear(place, &signed, setup.unlabeled_as).unwrap();
    }
    let search = Search { epoch: 1, place: members[0], desk, roster, setup, last: None };
    let (plan, _) = search.run(&mut |_| ControlFlow::Continue(())).unwrap();
    told(fleet.name, &plan)
}

fn told(name: &str, plan: &Plan) -> String {
    let mut told = format!("{name}\n");
    let places = |places: &[Place]| {
        places.iter().map(|place| place.index().to_string()).collect::<Vec<_>>().join(" ")
    };
    let sent = |sent: &[Sending]| {
        let one = |h: &Sending| format!("{}->{}", h.from.index(), h.to.index());
        sent.iter().map(one).collect::<Vec<_>>().join(" ")
    };
    let link = |l: &Link| format!("{}->{} {:.4}", l.from.index(), l.to.index(), l.weight);
    let links = plan.links.iter().map(link).collect::<Vec<_>>().join(", ");
    let lines = [
        format!("sources: {}", places(&plan.sources)),
        format!("links: {links}"),
        format!("hand-overs: {}", sent(&plan.handovers)),
        format!("witnesses: {}", sent(&plan.witnesses)),
        format!("examinations: {}", sent(&plan.examinations)),
        format!("costs: {:.6}, optimal: {}", plan.objective, plan.optimal),
    ];
    for line in lines {
        let _ = writeln!(told, "  {}", line.trim_end());
    }
    told
}

#[test]
fn plans_follow_the_rules_of_their_version() {
    let plans: Vec<String> = FLEETS.iter().map(plan).collect();
    insta::assert_snapshot!(format!("plans_of_version_{VERSION}"), plans.join("\n"));
}
