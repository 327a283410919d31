//! Work that takes long is done apart: meanwhile a device hears and answers, and what belongs to an epoch that is over is of no use.

use std::collections::{BTreeSet, VecDeque};
use std::ops::ControlFlow;

use stlf_protocol::job::{Sign, Task};
use stlf_protocol::shared::Fingerprint;
use stlf_protocol::wire::{Envelope, Message, SignedReport};
use stlf_protocol::{Action, Device, Job, Phase, Place, Refusal};

use crate::common::{ALL, devices, identity, setup};

/// Delivers everything until the first device is to search for a plan. That search, and the last report that came.
pub(crate) fn until_search(devices: &mut [Device]) -> (Job, Place, Envelope) {
    until_search_without(devices, &BTreeSet::new())
}

/// The same where the first device holds some links, from and to, to be of no use.
pub(crate) fn until_search_without(
    devices: &mut [Device],
    forbidden: &BTreeSet<(Place, Place)>,
) -> (Job, Place, Envelope) {
    let all: Vec<Place> = devices.iter().map(Device::place).collect();
    let begun = devices[0].begin(1, &all, forbidden);
    let mut waiting: VecDeque<(Place, Action)> = begun.into_iter().map(|a| (all[0], a)).collect();
    let mut report = None;
    while let Some((at, action)) = waiting.pop_front() {
        let (to, actions) = match action {
            Action::Send(to, envelope) => {
                let actions = devices[to.index()].receive(at, &envelope).unwrap();
                if matches!(envelope.message, Message::Report(_)) {
                    report = Some((at, envelope));
                }
                (to, actions)
            }
            Action::Compute(job) if job.task() == Task::Plan => {
                let (from, envelope) = report.unwrap();
                return (job, from, envelope);
            }
            Action::Compute(job) => {
                let computed = job.run(&mut |_| ControlFlow::Continue(())).unwrap();
                (at, devices[at.index()].computed(computed).unwrap())
            }
            other => panic!("{other:?} before there is a plan"),
        };
        waiting.extend(actions.into_iter().map(|action| (to, action)));
    }
    panic!("nobody searched for a plan");
}

#[test]
fn a_planner_answers_while_it_searches_and_an_epoch_that_is_over_has_no_plan() {
    let mut devices = devices();
    let (job, from, report) = until_search(&mut devices);
    let planner = &mut devices[0];
    assert!(matches!(planner.phase(), Some(Phase::Searching)) && planner.missing().is_empty());
    // What is said again is heard, what differs is refused, and neither begins another search.
    assert_eq!(planner.receive(from, &report), Ok(vec![]));
    let Message::Report(said) = &report.message else { panic!() };
    let mut other = said.report.clone();
    other.unlabeled += 1;
    let unsigned = SignedReport { report: other.clone(), ..said.clone() };
    let unsigned = Envelope::new(report.epoch, Message::Report(unsigned));
    assert_eq!(planner.receive(from, &unsigned), Err(Refusal::UnsignedReport(from)));
    let other = SignedReport::sign(other, report.epoch, Fingerprint::default(), &identity(from));
    let twice = planner.receive(from, &Envelope::new(report.epoch, Message::Report(other)));
    assert_eq!(twice, Err(Refusal::Twice(from)));
    let known = planner.known();
    assert_eq!(planner.receive(ALL[3], &Envelope::new(1, Message::TrainedOn(5))), Ok(vec![]));
    let stranger = Place::new(9);
    assert_eq!(planner.receive(stranger, &report), Err(Refusal::Stranger(stranger)));
    assert_eq!(planner.known(), known);
    // Another epoch begins before the search is over.
    assert!(!planner.begin(2, &ALL, &BTreeSet::new()).is_empty());
    let late = job.run(&mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!((late.epoch(), late.task()), (1, Task::Plan));
    assert_eq!(planner.computed(late), Ok(vec![]));
    assert!(planner.plan().is_none() && matches!(planner.phase(), Some(Phase::Measuring)));
}

#[test]
fn a_search_says_how_long_it_may_take_and_ends_with_what_it_has() {
    let mut devices = devices();
    let (job, ..) = until_search(&mut devices);
    let (mut signs, mut is_late) = (Vec::new(), false);
    let planned = job.run(&mut |sign| {
        signs.push(sign);
        is_late |= matches!(sign, Sign::Searches(_));
        if is_late { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(signs[..2], [Sign::GoesOn, Sign::Searches(setup().planning)]);
    let actions = devices[0].computed(planned.unwrap()).unwrap();
    let plans = actions.iter().filter(|action| {
        matches!(action, Action::Send(_, Envelope { message: Message::Plan(_), .. }))
    });
    assert_eq!(plans.count(), ALL.len() - 1);
    assert!(devices[0].plan().is_some());
}

#[test]
fn a_job_that_nobody_needs_any_more_comes_to_nothing() {
    let mut devices = devices();
    let (job, ..) = until_search(&mut devices);
    assert!(job.run(&mut |_| ControlFlow::Break(())).is_none());
    assert!(matches!(devices[0].phase(), Some(Phase::Searching)));
}
