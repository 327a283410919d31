//! Models that take longer than patience to arrive.

use std::collections::BTreeSet;
use std::time::Duration;

use stlf_protocol::Place;

use super::invariants::CONVERGED_AMONG_LIARS_AFTER;
use super::liars::{Kind, Lie, SLOWLY};
use super::{Simulation, TIMING, ms};

/// Fleets in several orders of what happens, some of which hand models on, with the links of their first plan.
fn fleets(devices: usize) -> impl Iterator<Item = (u64, BTreeSet<(Place, Place)>)> {
    (0..4).map(move |seed| {
        let mut fleet = Simulation::new(seed, devices, &[]);
        fleet.converge(Duration::ZERO, TIMING.patience).unwrap_or_else(|what| panic!("{what}"));
        (seed, fleet.links(Place::new(0)))
    })
}

fn converges(fleet: &mut Simulation, most: Duration) -> Duration {
    match fleet.converge(Duration::ZERO, most) {
        Ok(took) => took,
        Err(what) => panic!("{}\n{what}", fleet.trace()),
    }
}

#[test]
fn models_that_come_slowly_are_waited_for() {
    for devices in [3, 5] {
        for (seed, links) in fleets(devices) {
            for link in links.iter().copied() {
                let takes = 5 * TIMING.patience;
                let fleet = Simulation::new(seed, devices, &[]).traced();
                let mut fleet = fleet.with_slow_link(link, takes, 100);
                let took = converges(&mut fleet, 3 * takes);
                assert!(took > takes, "{link:?}: {took:?}\n{}", fleet.trace());
                let first = fleet.converged().map(|epoch| epoch.number);
                assert_eq!((first, fleet.links(link.1)), (Some(1), links.clone()), "{link:?}");
            }
        }
    }
}

#[test]
fn all_models_may_come_slowly_at_once() {
    for (seed, links) in fleets(5) {
        let takes = 5 * TIMING.patience;
        let mut fleet = Simulation::new(seed, 5, &[]).traced();
        for link in links.iter().copied() {
            fleet = fleet.with_slow_link(link, takes + ms(900) * link.0.index() as u32, 100);
        }
        converges(&mut fleet, 20 * takes);
        assert_eq!(fleet.converged().map(|epoch| epoch.number), Some(1), "{}", fleet.trace());
    }
}

#[test]
fn a_link_over_which_nothing_more_comes_is_given_up_as_soon_as_ever() {
    for (seed, links) in fleets(5) {
        for link in links {
            for stalls_at in [0, 40] {
                let takes = 5 * TIMING.patience;
                let fleet = Simulation::new(seed, 5, &[]).traced();
                let mut fleet = fleet.with_slow_link(link, takes, stalls_at);
                let took = converges(&mut fleet, CONVERGED_AMONG_LIARS_AFTER);
                let came = takes.mul_f64(stalls_at as f64 / 100.0);
                assert!(took < came + 2 * TIMING.patience, "{link:?}: {took:?}\n{}", fleet.trace());
                assert!(!fleet.links(link.1).contains(&link), "{}", fleet.trace());
            }
        }
    }
}

#[test]
fn who_says_for_ever_that_models_come_ends_after_a_hundred_steps() {
    for liar in [1, 3] {
        let mut fleet = Simulation::new(1, 4, &[(liar, Lie::new(Kind::SaysModelsCome))]).traced();
        let took = converges(&mut fleet, 101 * TIMING.patience);
        assert!(took > 95 * SLOWLY, "{took:?}\n{}", fleet.trace());
        assert!(!fleet.takes_part(Place::new(liar)), "{}", fleet.trace());
    }
}

#[test]
fn who_gets_no_models_is_not_believed_that_some_come() {
    for (seed, links) in fleets(4) {
        for liar in (0..4).map(Place::new).filter(|place| links.iter().all(|(_, to)| to != place)) {
            let liars = [(liar.index(), Lie::new(Kind::SaysModelsCome))];
            let mut fleet = Simulation::new(seed, 4, &liars).traced();
            let took = converges(&mut fleet, CONVERGED_AMONG_LIARS_AFTER);
            assert!(took < 5 * TIMING.patience, "{took:?}\n{}", fleet.trace());
        }
    }
}
