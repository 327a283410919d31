//! What a run found beside its table that speaks for the plan or against it: scales, divergences, and who is near whom, as text.

use stlf_config::Config;
use stlf_data::features::Scale;
use stlf_lab::Outcome;
use stlf_lab::stages::calibration::Calibrated;
use stlf_lab::summary::{Line, Spread, paired};
use stlf_method::method::Method;
use stlf_planning::number_format::{counted, percent, short};
use stlf_planning::problem::FAR;

use super::ours;

/// Accuracies that differ by less are as good as each other.
const CLEARLY: f64 = 0.003;

/// Links into targets that cost more than this part of what all links cost are nearly all.
const NEARLY_ALL: f64 = 0.9;

/// Says whether divergences helped to choose, where there are targets to which no source is near, and offers to send all models to all
/// targets where what is known does not speak for the plan.
pub(super) fn support(outcome: &Outcome, lines: &[Line], config: &Config) -> String {
    let Some(own) = ours(lines) else { return String::new() };
    let share = Spread::of(&outcome.links_shares).map(|share| share.mean);
    let is_all = config.planner.sends_all() || share.is_some_and(|share| share > NEARLY_ALL);
    let can_offer = !is_all && config.planner.can_send_all();
    let offer = if can_offer { offer(outcome) } else { String::new() };
    far(outcome, own, config, is_all) + &without_handovers(outcome) + &offer
}

/// Offers the plan without hand-overs where the comparison shows that it is better.
fn without_handovers(outcome: &Outcome) -> String {
    let ahead = paired(&outcome.rows, Method::Links.name(), Method::StLf.name());
    let clearly = ahead.filter(|ahead| ahead.mean > CLEARLY && ahead.interval().0 > 0.0);
    clearly.map_or(String::new(), |ahead| {
        format!(
            "Without hand-overs the plan is {:.1} points ahead by the true classes: -c planner.handovers=false\n",
            100.0 * ahead.mean
        )
    })
}

/// Says to how many targets no source is near, and what they get.
fn far(outcome: &Outcome, own: &Line, config: &Config, is_all: bool) -> String {
    let targets = own.targets.mean * own.targets.count as f64;
    let far = outcome.strangers;
    if far == 0 {
        return String::new();
    }
    let then = match outcome.mixed_for_strangers {
        _ if config.planner.sends_all() => String::new(),
        0 if is_all => "Models go over nearly all links already.\n".to_owned(),
        0 => String::new(),
        mixed => format!(
            "So {mixed} of them get the models of all sources that are of use, mixed by samples; to send less: -c planner.strangers=planned\n"
        ),
    };
    format!(
        "No source is near {far} of {targets:.0} targets: divergences of {FAR} and more do not show which source fits.\n{then}"
    )
}

/// Offers all links where something speaks against relying on the plan, unless the comparison shows that it is better.
fn offer(outcome: &Outcome) -> String {
    let ahead = paired(&outcome.rows, Method::StLf.name(), Method::FedAvg.name());
    if ahead.is_some_and(|ahead| ahead.mean > CLEARLY && ahead.interval().0 > 0.0) {
        return String::new();
    }
    let mut doubts = Vec::new();
    let planned = outcome.strangers.saturating_sub(outcome.mixed_for_strangers);
    if planned > 0 {
        doubts.push(format!("no source is near {}", counted(planned, "target")));
    }
    let all = outcome.expected.len();
    let little = outcome.expected.iter().filter(|row| row.warning.is_some()).count();
    if little > 0 && 2 * little >= all {
        let of_all = counted(all, "target");
        doubts.push(format!(
            "little is expected, or known of what to expect, at {little} of {of_all}"
        ));
    }
    let behind = ahead.filter(|ahead| ahead.mean < -CLEARLY && ahead.interval().1 < 0.0);
    if let Some(ahead) = behind {
        doubts.push(format!(
            "FedAvg over all links is {:.1} points ahead by the true classes",
            -100.0 * ahead.mean
        ));
    }
    if doubts.is_empty() {
        return String::new();
    }
    format!(
        "The evidence does not show that this plan is as good as sending everything: {}. To send the models of all sources to every target, mixed by samples: -c planner.all-links=true\n",
        doubts.join("; ")
    )
}

/// Returns a line that names the scale of features, if the fleet chose it, and what decided.
pub(crate) fn scale(outcome: &Outcome) -> String {
    if outcome.tried_scales.is_empty() {
        return String::new();
    }
    let seeds = outcome.scales.len();
    let chosen = Scale::ALL.into_iter().filter_map(|scale| {
        let count = outcome.scales.iter().filter(|s| **s == scale).count();
        let whose = by_whom(scale);
        match count {
            0 => None,
            all if all == seeds => Some(whose.to_owned()),
            _ => Some(format!("{whose} in {count} of {}", counted(seeds, "seed"))),
        }
    });
    let chosen: Vec<String> = chosen.collect();
    let tried = Scale::ALL.into_iter().filter_map(|scale| {
        let of_scale = outcome.tried_scales.iter().filter(|row| row.scale == scale.name());
        let accuracies: Vec<f64> = of_scale.map(|row| row.accuracy).collect();
        let mean = Spread::of(&accuracies)?.mean;
        Some(format!("{:.1} % {}", 100.0 * mean, by_whom(scale)))
    });
    let tried: Vec<String> = tried.collect();
    format!(
        "Features are scaled {}. The fleet chose it on the sources' labels; linear classifiers of the other sources gave {} (scale.csv).\n",
        chosen.join(", "),
        tried.join(", ")
    )
}

/// Returns a line that says how much divergences and energy count, if that was measured.
pub(crate) fn calibration(outcome: &Outcome, config: &Config) -> String {
    let (near, rest): (Vec<Calibrated>, Vec<Calibrated>) =
        outcome.calibrated.iter().partition(|c| c.near_gain.is_some());
    let mean = |some: &[Calibrated], value: fn(&Calibrated) -> f64| {
        let values: Vec<f64> = some.iter().map(value).collect();
        Spread::of(&values).map(|spread| spread.mean)
    };
    let Some(weight) = mean(&outcome.calibrated, |c| c.energy) else { return String::new() };
    let seeds = outcome.scales.len();
    let where_so = |some: &[Calibrated]| match some.len() < seeds {
        true => format!(" in {} of {}", some.len(), counted(seeds, "seed")),
        false => String::new(),
    };
    let in_full = mean(&near, |c| c.near_gain.unwrap_or_default()).map(|gain| {
        format!(
            "Divergences count in full{}: there linear classifiers of the nearest third of the sources did {:.1} points better on a source's labels than those of all.",
            where_so(&near),
            100.0 * gain
        )
    });
    let share = mean(&rest, |c| c.share);
    let in_part = share.map(|share| {
        format!(
            "Divergences count {}{}: so much of what they say was found where sources tried each other's linear classifiers on their labels.",
            percent(share),
            where_so(&rest)
        )
    });
    let usual = config.planner.weights().energy;
    let is_less = weight < usual;
    let spent = is_less.then(|| {
        let (weight, usual) = (short(weight), short(usual));
        format!("Energy counts {weight} instead of {usual}: {}.", budget(&outcome.calibrated))
    });
    let told = [in_full, in_part, spent, on_devices(outcome, share, is_less.then_some(weight))];
    told.into_iter().flatten().collect::<Vec<_>>().join(" ") + "\n"
}

/// How real devices make the same plans, in words: with this share, and with this weight of energy, where these are not as usual.
fn on_devices(outcome: &Outcome, share: Option<f64>, weight: Option<f64>) -> Option<String> {
    let share = share.map(|share| format!("planner.calibration = {share:.2}"));
    let weight = weight.map(|weight| format!("planner.phi-e = {weight:.4}"));
    let set: Vec<String> = share.into_iter().chain(weight).collect();
    let is_own = |scale: &Scale| matches!(scale, Scale::Own | Scale::None);
    match outcome.scales.iter().all(is_own) {
        _ if set.is_empty() => None,
        true => Some(format!("Real devices do the same with {}.", set.join(" and "))),
        // Of divergences at another scale it says nothing.
        false => Some(
            "Real devices cannot do the same, since each scales features by its own values: -c data.standardise=own tells what they can."
                .to_owned(),
        ),
    }
}

/// What calibrated plans may cost, in words.
fn budget(calibrated: &[Calibrated]) -> String {
    let (some, all) = (calibrated.iter().filter(|c| c.is_apart).count(), calibrated.len());
    match some {
        0 => "the total stays within a third of all links".to_owned(),
        _ if some == all => {
            "no source is near another, so that a plan may cost as much as all links".to_owned()
        }
        _ => format!(
            "the total stays within a third of all links or, in {some} of {all} seeds, in which no source is near another, within all"
        ),
    }
}

/// By whose values features are scaled, in words.
fn by_whom(scale: Scale) -> &'static str {
    match scale {
        Scale::Fleet => "by the whole fleet's values",
        Scale::Own => "by each device's own values",
        Scale::Both => "by both",
        Scale::None => "not at all",
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use stlf_lab::record::{ExpectedRow, Row};
    use stlf_lab::summary::summarise;
    use stlf_method::expectation::Warning;

    use super::*;

    /// What ST-LF's only target of a seed pays, hand-overs included, where all links cost 10 joules.
    fn row(method: &str, accuracy: f64, joules: f64) -> Row {
        Row {
            seed: 0,
            method: method.to_owned(),
            target: "dock".to_owned(),
            accuracy: Some(accuracy),
            samples: 100,
            links: 1,
            joules,
            all_joules: 10.0,
            bytes: 8,
            measuring_joules: 0.0,
            measuring_bytes: 0,
            warm_up_joules: 0.0,
            warm_up_bytes: 0,
        }
    }

    /// What is told with these changes of the configuration.
    fn told(outcome: &Outcome, changes: &[&str]) -> String {
        let config = Config::default().with(changes.iter().copied()).unwrap();
        support(outcome, &summarise(&outcome.rows), &config)
    }

    /// An expected accuracy, with what its target is told.
    fn expected(warning: Option<Warning>) -> ExpectedRow {
        ExpectedRow {
            seed: 0,
            target: "dock".to_owned(),
            expected: 0.8,
            low: 0.2,
            high: 0.9,
            accuracy: None,
            warning,
            doubt: None,
            bias: None,
            bias_deviation: None,
            own_deviation: None,
            models: None,
            trials_at_senders: None,
            trials_on_routes: None,
            trial_labels: None,
        }
    }

    #[test]
    fn hand_overs_are_no_links_to_targets() {
        let rows = vec![row("st-lf", 0.9, 9.9)];
        let outcome = Outcome { rows, strangers: 1, links_shares: vec![0.4], ..Outcome::default() };
        let of_few = told(&outcome, &[]);
        assert!(of_few.contains("-c planner.all-links=true"), "{of_few}");
        let of_all = told(&Outcome { links_shares: vec![0.95], ..outcome }, &[]);
        assert!(of_all.ends_with("Models go over nearly all links already.\n"), "{of_all}");
    }

    #[test]
    fn all_links_are_offered_where_the_evidence_is_weak_and_only_there() {
        let offer = "-c planner.all-links=true";
        let with = |ours: f64, fedavg: f64, warnings: &[Option<Warning>]| Outcome {
            rows: vec![row("st-lf", ours, 4.0), row("fedavg", fedavg, 10.0)],
            links_shares: vec![0.4],
            expected: warnings.iter().copied().map(expected).collect(),
            ..Outcome::default()
        };
        let little = Some(Warning::SaysLittle);
        assert_eq!(told(&with(0.9, 0.902, &[None, None, little]), &[]), "");
        let behind = told(&with(0.9, 0.92, &[None]), &[]);
        assert!(behind.contains("FedAvg over all links is 2.0 points ahead"), "{behind}");
        let unknown = told(&with(0.9, 0.9, &[None, little]), &[]);
        assert!(unknown.contains("at 1 of 2 targets"));
        assert!(behind.contains(offer) && unknown.contains(offer));
        assert_eq!(
            told(&with(0.92, 0.9, &[little]), &[]),
            "",
            "the true classes speak for the plan"
        );
        // It cannot be had, or is had already.
        let weak = Outcome { strangers: 1, ..with(0.9, 0.92, &[little]) };
        for changes in
            [["planner.bound=paper"], ["planner.solver=successive"], ["planner.all-links=true"]]
        {
            let told = told(&weak, &changes);
            assert!(
                !told.contains(offer) && told.starts_with("No source is near 1 of 1"),
                "{told}"
            );
        }
        // Strangers that get all models rely on none of them.
        let mixed = Outcome {
            mixed_for_strangers: 1,
            ..Outcome { strangers: 1, ..with(0.9, 0.9, &[None]) }
        };
        let told = told(&mixed, &[]);
        assert!(told.contains("So 1 of them get") && !told.contains(offer), "{told}");
    }

    #[test]
    fn the_plan_without_hand_overs_is_offered_where_it_is_better() {
        let with = |ours: f64, links: f64| Outcome {
            rows: vec![row("st-lf", ours, 4.0), row("st-lf-links", links, 5.0)],
            links_shares: vec![0.4],
            ..Outcome::default()
        };
        let better = told(&with(0.90, 0.92), &[]);
        assert!(better.contains("2.0 points ahead"), "{better}");
        assert!(better.ends_with(": -c planner.handovers=false\n"), "{better}");
        assert_eq!(told(&with(0.90, 0.902), &[]), "");
        assert_eq!(told(&with(0.92, 0.90), &[]), "");
    }

    /// A quarter, at the usual weight of energy.
    const QUARTER: Calibrated =
        Calibrated { share: 0.25, energy: 0.05, is_apart: false, near_gain: None };

    #[test]
    fn seeds_in_which_the_nearest_do_better_are_told_apart() {
        let near = Calibrated { share: 1.0, near_gain: Some(0.013), ..QUARTER };
        let told = |calibrated: &[Calibrated]| {
            let (scales, calibrated) = (vec![Scale::Own; 3], calibrated.to_vec());
            calibration(&Outcome { calibrated, scales, ..Outcome::default() }, &Config::default())
        };
        let all = told(&[near; 3]);
        assert!(
            all.starts_with("Divergences count in full: ") && all.contains("1.3 points"),
            "{all}"
        );
        assert!(!all.contains("Real devices") && all.ends_with(".\n"), "{all}");
        let some = told(&[near, QUARTER, QUARTER]);
        for part in ["in full in 1 of 3 seeds", "count 25 % in 2 of 3 seeds", "calibration = 0.25."]
        {
            assert!(some.contains(part), "{some}");
        }
        assert_eq!(told(&[]), "");
    }

    #[test]
    fn real_devices_are_told_of_a_share_only_at_a_scale_that_they_can_have() {
        let calibrated = vec![QUARTER; 2];
        let of = |scales: [Scale; 2]| {
            let (calibrated, scales) = (calibrated.clone(), scales.to_vec());
            let outcome = Outcome { calibrated, scales, ..Outcome::default() };
            calibration(&outcome, &Config::default())
        };
        let set = "Real devices do the same with planner.calibration = 0.25.";
        assert!(of([Scale::Own; 2]).contains(set), "{}", of([Scale::Own; 2]));
        for other in [Scale::Fleet, Scale::Both] {
            let told = of([Scale::Own, other]);
            assert!(!told.contains(set) && told.contains("-c data.standardise=own"), "{told}");
        }
    }
}
