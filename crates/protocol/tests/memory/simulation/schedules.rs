//! Random schedules: thousands of them, from seeds.

use std::time::Duration;

use super::faults::Schedule;
use super::invariants::{CONVERGED_AFTER, CONVERGED_AMONG_LIARS_AFTER};
use super::liars::{Kind, Lie};
use super::{Simulation, TIMING};

/// How many random schedules are tried, unless `STLF_SCHEDULES` says another number.
const SCHEDULES: u64 = 2_000;

/// Runs a schedule; whether somebody lies in it, and how long its devices took to converge.
fn run(seed: u64, schedule: &Schedule) -> Result<(bool, Duration), String> {
    let lies = !schedule.liars.is_empty();
    let most = if lies { CONVERGED_AMONG_LIARS_AFTER } else { CONVERGED_AFTER };
    let check = |simulation: &mut Simulation| match lies {
        true => simulation.converge(schedule.last(), most),
        false => simulation.stay_converged(schedule.last(), most),
    };
    let converged = check(&mut schedule.simulation(seed));
    converged.map(|took| (lies, took)).map_err(|what| {
        let mut again = schedule.simulation(seed).traced();
        let _ = check(&mut again);
        format!("{}\nseed {seed}: {what}\n{schedule:?}", again.trace())
    })
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// `STLF_SCHEDULES=100000` tries more of them, `STLF_SCHEDULE_FIRST=12000` those from this seed on, and `STLF_SCHEDULE=SEED` only one, with all that happens
/// in it.
#[test]
fn random_schedules_violate_nothing() {
    let schedules = match number("STLF_SCHEDULE") {
        Some(seed) => seed..seed + 1,
        None => {
            let first = number("STLF_SCHEDULE_FIRST").unwrap_or(0);
            first..first + number("STLF_SCHEDULES").unwrap_or(SCHEDULES)
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let count = schedules.end - schedules.start;
    let mut slowest = [(Duration::ZERO, 0); 2];
    let mut violations = Vec::new();
    std::thread::scope(|scope| {
        let part = |thread: u64| {
            let schedules = schedules.clone();
            scope.spawn(move || {
                let own = schedules.skip(thread as usize).step_by(threads as usize);
                own.map(|seed| (seed, run(seed, &Schedule::random(seed)))).collect::<Vec<_>>()
            })
        };
        let parts: Vec<_> = (0..threads).map(part).collect();
        for (seed, result) in parts.into_iter().flat_map(|part| part.join().unwrap()) {
            match result {
                Ok((lies, took)) => {
                    let slowest = &mut slowest[usize::from(lies)];
                    *slowest = (*slowest).max((took, seed));
                }
                Err(what) => violations.push((seed, what)),
            }
        }
    });
    let [honest, lying] = slowest;
    println!("{count} schedules; time and seed of the slowest: {honest:?}, {lying:?} with a liar");
    let seeds: Vec<u64> = violations.iter().map(|(seed, _)| *seed).collect();
    assert!(seeds.is_empty(), "{} of {count}: {seeds:?}\n{}", seeds.len(), violations[0].1);
}

/// Schedules in which the first device has all models sent to itself. The others gave it up at different times, and then each other, for more than twenty times
/// the patience, until they did without it as soon as they saw its plan.
#[test]
fn a_first_device_that_takes_models_is_done_without_in_time() {
    for seed in [21_744, 54_752, 61_952, 58_840, 92_106, 51_999] {
        // Which lie follows from the seed depends on how many there are.
        let liars = vec![(0, Lie::new(Kind::TakesModels))];
        let schedule = Schedule { liars, ..Schedule::random(seed) };
        let (_, took) = run(seed, &schedule).unwrap_or_else(|what| panic!("{what}"));
        println!("seed {seed}: {took:?}");
    }
}

/// A device that had started again, and had forgotten that the first one lied, followed it once more: the planner of the others took it for silent until it was
/// told where the device is. And where a member connected anew all the time, the planner waited for that to settle until it was given up itself.
#[test]
fn nobody_is_taken_for_silent_who_follows_another_or_waits_for_one_that_connects_anew() {
    for (seed, liar, kind) in [(254, 0, Kind::InventsMeans), (18_997, 2, Kind::FailsModels)] {
        let liars = vec![(liar, Lie::new(kind))];
        let schedule = Schedule { liars, ..Schedule::random(seed) };
        let (_, took) = run(seed, &schedule).unwrap_or_else(|what| panic!("{what}"));
        println!("seed {seed}: {took:?}");
    }
}

/// A device that was started again with its folder followed the first one once more, which all others had convicted, until the planner of the others took
/// it for silent: they were not together again within twenty times the patience. Now it remembers who lied.
#[test]
fn who_starts_again_with_its_folder_does_not_follow_a_planner_that_lied() {
    let liars = vec![(0, Lie::new(Kind::TakesModels))];
    let schedule = Schedule { liars, ..Schedule::random(12_308) };
    let (_, took) = run(12_308, &schedule).unwrap_or_else(|what| panic!("{what}"));
    assert!(took < TIMING.patience, "{took:?}");
}

/// In a schedule in which the first one lies all others are together soon.
fn are_together_again(seed: u64, kind: Kind) {
    let schedule = Schedule { liars: vec![(0, Lie::new(kind))], ..Schedule::random(seed) };
    let (_, took) = run(seed, &schedule).unwrap_or_else(|what| panic!("{what}"));
    assert!(took < 6 * TIMING.patience, "{took:?}");
}

/// The first one starts anew again and again. A member left the epoch of the next one for one of the first, and the next one, which did not hear of that, took
/// it for silent. It is told when it passes on what the member seems to wait for.
#[test]
fn who_has_left_an_epoch_for_one_of_the_first_is_not_taken_for_silent() {
    are_together_again(22_878, Kind::RestartsSlowly);
}

/// The first one says the same again and again. A device that was started again waited in the epoch that the next one had planned and begun anew since, and
/// did not follow that one because the first was there: each took the other for silent.
#[test]
fn who_waits_in_an_epoch_follows_its_planner_to_the_next_one() {
    are_together_again(51_861, Kind::Repeats);
}

/// The first one keeps its means from the next one, which so plans without it. Before, the only model for that one had not arrived: it said that there was no
/// plan, and the others took it for a liar, since the reports allowed one.
#[test]
fn a_planner_to_which_no_link_is_left_gives_those_another_chance_that_it_complained_of() {
    are_together_again(87_800, Kind::Frames);
}
