//! Thresholds that fleets choose by sources that pretend to be targets, beside the one in use.

use serde::Serialize;
use stlf_method::guard::{Guard, Standard};

use super::{Judged, Students, THRESHOLDS, Tally, groups};
use crate::summary::Spread;

/// How a fleet chooses one of the [`THRESHOLDS`] by students that sources train while they pretend to be targets.
#[derive(Debug, Clone, Copy)]
enum Rule {
    /// The least at which no student that does harm is accepted; the largest if there is none.
    NoHarm,
    /// That at which those accepted add most; of equals, the nearest to the usual one.
    MostGain,
}

impl Rule {
    const ALL: [Rule; 2] = [Rule::NoHarm, Rule::MostGain];

    fn name(self) -> &'static str {
        match self {
            Rule::NoHarm => "no harm",
            Rule::MostGain => "most gain",
        }
    }

    /// The threshold of a fleet whose sources train these students.
    fn threshold(self, guard: Guard, pretended: &[&Judged]) -> f64 {
        let tally = |t: f64| Tally::of(pretended, |one| one.is_accepted(guard, t));
        let mut all = THRESHOLDS.to_vec();
        match self {
            Rule::NoHarm => {
                let largest = all[all.len() - 1];
                all.into_iter().find(|&t| tally(t).wrongly_accepted == 0).unwrap_or(largest)
            }
            Rule::MostGain => {
                let far = |t: &f64| (t - guard.threshold(Standard::Usual)).abs();
                all.sort_by(|a, b| far(a).total_cmp(&far(b)));
                let (first, others) = (all[0], &all[1..]);
                let more =
                    |best: f64, &t: &f64| if tally(t).gain > tally(best).gain { t } else { best };
                others.iter().fold(first, more)
            }
        }
    }
}

/// What a rule makes of the guard in use, over the students of a group.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Compared {
    students: String,
    domain: &'static str,
    rule: &'static str,
    draws: usize,
    /// How many students pretended targets trained.
    pretended: usize,
    /// How many of them do harm.
    pretended_harmful: usize,
    /// The threshold that the rule chose, mean over fleets.
    threshold: f64,
    trained: usize,
    /// How many are accepted by what the guard asks of each.
    accepted_in_use: usize,
    wrongly_accepted_in_use: usize,
    worst_loss_in_use: f64,
    gain_in_use: f64,
    /// How many are accepted at the threshold of their fleet.
    accepted: usize,
    wrongly_accepted: usize,
    worst_loss: f64,
    gain: f64,
    /// What the rule adds to what is in use, mean over draws.
    difference: f64,
    /// Half of the 95 % interval of that.
    half_interval: f64,
}

/// Returns how every rule does on every group of students.
pub(super) fn compared(students: &Students) -> Vec<Compared> {
    let groups = groups(&students.of_targets);
    let rows = groups.iter().flat_map(|(group, own)| {
        let pretended: Vec<&Judged> =
            students.pretended.iter().filter(|one| one.group == **group).collect();
        Rule::ALL.map(|rule| row(rule, own, &pretended))
    });
    rows.collect()
}

/// A rule for the students of one group, of which there are some.
fn row(rule: Rule, own: &[&Judged], pretended: &[&Judged]) -> Compared {
    let guard = Guard::default();
    let mut fleets: Vec<(&(String, u64), f64)> = Vec::new();
    for one in own {
        if !fleets.iter().any(|(fleet, _)| **fleet == one.fleet) {
            let of_fleet: Vec<&Judged> =
                pretended.iter().copied().filter(|other| other.fleet == one.fleet).collect();
            fleets.push((&one.fleet, rule.threshold(guard, &of_fleet)));
        }
    }
    let chosen = |one: &Judged| {
        let fleet = fleets.iter().find(|(fleet, _)| **fleet == one.fleet);
        fleet.is_some_and(|(_, threshold)| one.is_accepted(guard, *threshold))
    };
    let constant = |one: &Judged| one.is_used(guard);
    let (with_rule, in_use) = (Tally::of(own, chosen), Tally::of(own, constant));
    let mut seeds: Vec<u64> = own.iter().map(|one| one.fleet.1).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let differences = seeds.iter().map(|seed| {
        let drawn: Vec<&Judged> = own.iter().copied().filter(|one| one.fleet.1 == *seed).collect();
        Tally::of(&drawn, chosen).gain - Tally::of(&drawn, constant).gain
    });
    let spread = Spread::of(&differences.collect::<Vec<f64>>());
    let thresholds: f64 = fleets.iter().map(|(_, threshold)| threshold).sum();
    Compared {
        students: own[0].group.students.clone(),
        domain: own[0].group.domain,
        rule: rule.name(),
        draws: seeds.len(),
        pretended: pretended.len(),
        pretended_harmful: pretended.iter().filter(|one| one.gain < 0.0).count(),
        threshold: thresholds / fleets.len() as f64,
        trained: own.len(),
        accepted_in_use: in_use.accepted,
        wrongly_accepted_in_use: in_use.wrongly_accepted,
        worst_loss_in_use: in_use.worst_loss,
        gain_in_use: in_use.gain,
        accepted: with_rule.accepted,
        wrongly_accepted: with_rule.wrongly_accepted,
        worst_loss: with_rule.worst_loss,
        gain: with_rule.gain,
        difference: spread.map_or(0.0, |spread| spread.mean),
        half_interval: spread.map_or(0.0, |spread| spread.half_interval()),
    }
}

#[cfg(test)]
#[allow(clippy::panic, reason = "tests")]
mod tests {
    use super::super::tests::judged;
    use super::*;

    #[test]
    fn pretended_targets_choose_the_threshold_of_their_own_fleet() {
        let of = |seed: u64, students: &[(f64, f64)]| -> Vec<Judged> {
            let one = |&(margin, gain): &(f64, f64)| {
                let fleet = ("M".to_owned(), seed);
                Judged { fleet, ..judged(margin, 1.0, gain) }
            };
            students.iter().map(one).collect()
        };
        // In the first fleet harm ends between 0.01 and 0.02, and the student below it adds more than that costs; in the second, whose pretended
        // targets have nothing to choose by, nothing does harm.
        let pretended = of(0, &[(0.015, -0.01), (0.007, 0.05), (0.04, 0.02)]);
        let mut of_targets = of(0, &[(0.025, 0.02), (0.012, -0.04)]);
        of_targets.extend(of(1, &[(0.012, 0.06), (-0.01, 0.5)]));
        let rows = compared(&Students { of_targets, pretended });
        let [no_harm, most_gain] = &rows[..] else { panic!("{rows:?}") };
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} and {b}");
        for row in &rows {
            assert_eq!(
                (row.draws, row.pretended, row.pretended_harmful, row.trained),
                (2, 3, 1, 4)
            );
            assert_eq!((row.accepted_in_use, row.wrongly_accepted_in_use), (1, 0));
            close(row.gain_in_use, 0.02 / 4.0);
        }
        // 0.02 and 0: the second fleet's first student is accepted.
        assert_eq!((no_harm.accepted, no_harm.wrongly_accepted), (2, 0));
        close(no_harm.threshold, 0.01);
        close(no_harm.difference, 0.03 / 2.0);
        close(no_harm.half_interval, 12.706 * 0.03 / 2.0);
        // 0.005 and, of equals, 0.02: the first fleet's second student is accepted.
        assert_eq!((most_gain.accepted, most_gain.wrongly_accepted), (2, 1));
        close(most_gain.threshold, 0.0125);
        close(most_gain.worst_loss, 0.04);
        close(most_gain.difference, -0.02 / 2.0);
    }
}
