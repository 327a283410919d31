//! The comparison of methods, as text.

use std::fmt::Display;

use stlf_config::Config;
use stlf_data::features::Scale;
use stlf_lab::Outcome;
use stlf_lab::record::{ComputingRow, ExpectedRow, StudentRow, TrainingRow};
use stlf_lab::stages::calibration::Calibrated;
use stlf_lab::stages::expectation::TABLE as EXPECTED;
use stlf_lab::stages::handover::REFUSED;
use stlf_lab::stages::student::FOLDER as STUDENTS;
use stlf_lab::stages::train::TABLE as TRAINING;
use stlf_lab::summary::{Line, Spread, summarise};
use stlf_method::expectation::{Expected, Warning};
use stlf_method::method::Method;
use stlf_planning::energy::PAPER_MODEL_BITS;
use stlf_planning::number_format::{clean, counted, energy, percent, short, size};
use stlf_planning::problem::{FAR, Preset};

use crate::table::{Align, Cell, Table};

/// The most devices that are named in a line.
const MOST_NAMES: usize = 5;

/// Returns the table of a run, and a line that says what it shows.
pub(crate) fn comparison(outcome: &Outcome, config: &Config, methods: &[Method]) -> String {
    let lines: Vec<Line> = summarise(&outcome.rows);
    if lines.is_empty() {
        return "No method has a target: every device trains for itself, and nothing is sent.\n"
            .to_owned();
    }
    let mut table = Table::new(&[
        ("method", Align::Left),
        ("target accuracy", Align::Right),
        ("targets", Align::Right),
        ("links", Align::Right),
        ("energy", Align::Right),
        ("of all links", Align::Right),
        ("sent", Align::Right),
    ]);
    for line in &lines {
        let label = line.method.parse::<Method>().map_or(line.method.as_str(), |m| m.label());
        let accuracy = match line.accuracy {
            Some(a) if a.count > 1 => {
                format!("{:.1} ± {:.1} %", 100.0 * a.mean, 100.0 * a.half_interval())
            }
            // One seed has no interval, which is not one of width 0.
            Some(a) => format!("{:.1} %", 100.0 * a.mean),
            None if line.links.mean > 0.0 => "not known".to_owned(),
            None => "no model".to_owned(),
        };
        let mean = |spread: &Spread| format!("{:.1}", spread.mean);
        let cells: [Cell; 7] = [
            label.into(),
            accuracy.into(),
            mean(&line.targets).into(),
            mean(&line.links).into(),
            energy(line.total_joules.mean).into(),
            line.energy_share.map_or(String::new(), |s| format!("{:.0} %", 100.0 * s.mean)).into(),
            size(line.total_bytes.mean).into(),
        ];
        table.row(cells);
    }
    let seeds = counted(config.seeds.len(), "seed");
    format!(
        "{}{}\nMeans over {seeds}; ± is the 95 % interval of the mean (Student's t).\n\
         Accuracy: of a method's own targets on their own data, by labels that no method but Oracle sees.\n\
         Energy and sent: totals; {}.\n\
         Of all links: that energy over what it costs if every source sends to every target, which needs no measuring.\n\
         {}{}{}{}{}{}{}{}{}{}{}{}{}",
        table.render(),
        missing(methods, &lines),
        paid(&lines),
        handovers(&lines, config),
        measuring(outcome, config),
        assumed(config),
        dealt(outcome),
        scale(outcome),
        calibration(outcome, config),
        guessing(outcome),
        refused(outcome),
        strangers(outcome, &lines),
        if ours(&lines).is_some() { expected(outcome) } else { String::new() },
        students(outcome, config),
        learners(outcome, config),
        computing(outcome, config)
    )
}

/// Returns a line on how the samples of a table were dealt, if the user did not say how to deal them.
pub(crate) fn dealt(outcome: &Outcome) -> String {
    let told = |how: &String| format!("{how}; another partition.kind deals them differently.\n");
    outcome.dealt_by.as_ref().map_or(String::new(), told)
}

/// The line of ST-LF, if it was compared.
fn ours(lines: &[Line]) -> Option<&Line> {
    lines.iter().find(|line| line.method == Method::StLf.name())
}

/// Says what is not done where devices have learners of the user's.
fn learners(outcome: &Outcome, config: &Config) -> String {
    match config.training.learner {
        Some(_) if outcome.students.is_empty() => {
            "Devices have learners: no students (transfer.adapt), no balanced models (training.balanced).\n".to_owned()
        }
        Some(_) => "Devices have learners: no balanced models (training.balanced).\n".to_owned(),
        None => String::new(),
    }
}

/// Says that divergences did not help to choose, if there were targets to which no source was near.
fn strangers(outcome: &Outcome, lines: &[Line]) -> String {
    let targets = ours(lines).map_or(0.0, |line| line.targets.mean * line.targets.count as f64);
    let far = outcome.strangers;
    if far == 0 {
        return String::new();
    }
    // Of the links alone: what measuring costs does not say whether there are more of them.
    let share = |line: &Line| {
        line.energy_share.map(|all| all.mean * line.joules.mean / line.total_joules.mean)
    };
    let all = ours(lines).and_then(share).is_some_and(|share| share > 0.9);
    let then = match outcome.mixed_for_strangers {
        0 if all => "Models go over nearly all links already.".to_owned(),
        0 => {
            "Models over all links may do better there: -c \"planner.handovers=false planner.phi-e=0.001\"."
                .to_owned()
        }
        mixed => format!(
            "So {mixed} of them get the models of all sources that are of use, mixed by samples; to send less: -c planner.strangers=planned"
        ),
    };
    format!(
        "No source is near {far} of {targets:.0} targets: divergences of {FAR} and more tell little about who suits whom.\n{then}\n"
    )
}

/// Returns a line with the accuracy that targets may expect without any label, and how often the truth was as expected.
pub(crate) fn expected(outcome: &Outcome) -> String {
    let rows = &outcome.expected;
    let mean = |value: fn(&ExpectedRow) -> f64| {
        Spread::of(&rows.iter().map(value).collect::<Vec<f64>>()).map(|spread| spread.mean)
    };
    let ends = mean(|row| row.low).zip(mean(|row| row.high));
    let Some((middle, (low, high))) = mean(|row| row.expected).zip(ends) else {
        return String::new();
    };
    let held: Vec<bool> = rows.iter().filter_map(ExpectedRow::holds).collect();
    let truth = match held.len() {
        0 => String::new(),
        known => {
            let right = held.iter().filter(|held| **held).count();
            format!("; the truth is in the interval at {right} of {}", counted(known, "target"))
        }
    };
    let expected = Expected { accuracy: middle, low, high };
    format!(
        "Expected accuracy of ST-LF, without labels of targets: {expected}, means over targets{truth} (seed-*/{EXPECTED}).\n{}",
        warnings(rows)
    )
}

/// Returns a line for each thing that targets are told because they may expect little, or little is known of what they may.
fn warnings(rows: &[ExpectedRow]) -> String {
    let line = |warning: Warning| {
        let told = rows.iter().filter(|row| row.warning == Some(warning));
        let names: Vec<&str> = told.map(|row| row.target.as_str()).collect();
        (!names.is_empty()).then(|| {
            let (count, of) = (names.len(), counted(rows.len(), "target"));
            let (names, told) = (few(names), ask_for_labels(&warning, "RUN"));
            format!("At {count} of {of} ({names}) {told}\n")
        })
    };
    [Warning::Guessing, Warning::SaysLittle].into_iter().filter_map(line).collect()
}

/// Returns the first of these names, each once, and how many more there are.
fn few(mut names: Vec<&str>) -> String {
    names.sort_unstable();
    names.dedup();
    let others = names.len().saturating_sub(MOST_NAMES);
    let named: Vec<String> = names.into_iter().take(MOST_NAMES).map(clean).collect();
    let more = if others > 0 { format!(" and {others} more") } else { String::new() };
    named.join(", ") + &more
}

/// Returns a line that names the devices whose own models are no better than guessing, if there are any.
pub(crate) fn guessing(outcome: &Outcome) -> String {
    let labeled = outcome.training.iter().filter(|row| row.source_error.is_some());
    let useless = outcome.training.iter().filter(|row| row.guessing().is_some());
    let names: Vec<&str> = useless.map(|row: &TrainingRow| row.device.as_str()).collect();
    match names.len() {
        0 => String::new(),
        count => format!(
            "At {count} of {} with labels ({}) the own model is no better than guessing: look at the labels and features there (seed-*/{TRAINING}).\n",
            counted(labeled.count(), "device"),
            few(names)
        ),
    }
}

/// Returns a line that names the devices whose models other sources refused, if there are any.
pub(crate) fn refused(outcome: &Outcome) -> String {
    let names: Vec<&str> = outcome.refused.iter().map(|row| row.from.as_str()).collect();
    match names.len() {
        0 => String::new(),
        count => format!(
            "{} handed on by {} contradicted by the labels of the next source, which handed on what it had itself: look at the labels of both (seed-*/{REFUSED}).\n",
            counted(count, "model"),
            few(names) + if count == 1 { " was" } else { " were" },
        ),
    }
}

/// Returns what a target is told, with what to do about it; `what` follows `stlf ask`.
pub(crate) fn ask_for_labels(warning: &dyn Display, what: &str) -> String {
    format!("{warning}: ask for labels with stlf ask {what}")
}

/// Returns a line for every method whose targets may train students: how many did, how many use it, and what that changes.
pub(crate) fn students(outcome: &Outcome, config: &Config) -> String {
    let methods = config.compare.students().unwrap_or_default();
    let lines = methods.into_iter().filter_map(|method| {
        let of_method = outcome.students.iter().filter(|row| row.method == method.name());
        let (tried, idle): (Vec<&StudentRow>, Vec<&StudentRow>) =
            of_method.partition(|row| row.tried);
        let targets = tried.len() + idle.len();
        let used = tried.iter().filter(|row| row.used).count();
        let mut line = (targets > 0).then(|| {
            let (count, label) = (counted(targets, "target"), method.label());
            format!("Students in {label}: {} of {count} trained one, {used} use it", tried.len())
        })?;
        let mean = |value: fn(&StudentRow) -> Option<f64>| {
            let known: Vec<f64> = tried.iter().filter_map(|row| value(row)).collect();
            Spread::of(&known).map(|spread| percent(spread.mean))
        };
        let accuracies = mean(|row| row.mixture_accuracy).zip(mean(|row| row.student_accuracy));
        if let Some((mixture, student)) = accuracies {
            line +=
                &format!("; the mixture alone has {mixture} there, every student used {student}");
        }
        if let Some(row) = idle.first() {
            line += &format!("; {} {}", row.target, row.outcome);
        }
        Some(format!("{line} (seed-*/{STUDENTS}).\n"))
    });
    lines.collect()
}

/// Returns a line with what devices compute for ST-LF, where that is priced.
fn computing(outcome: &Outcome, config: &Config) -> String {
    let Some(per_joule) = config.energy.gflop_per_joule else { return String::new() };
    let per_seed = |value: fn(&ComputingRow) -> f64| {
        outcome.computing.iter().map(value).sum::<f64>() / config.seeds.len() as f64
    };
    format!(
        "Computing for ST-LF, per seed: {:.0} GFLOP of training, {:.0} of training on models handed over, {:.0} of students; \
         together {} at {} GFLOP per joule, which no energy above contains.\n",
        per_seed(|row| row.training_gflop),
        per_seed(|row| row.handed_gflop),
        per_seed(|row| row.student_gflop),
        energy(per_seed(|row| row.joules)),
        short(per_joule)
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
    let mean = |value: fn(&Calibrated) -> f64| {
        let values: Vec<f64> = outcome.calibrated.iter().map(value).collect();
        Spread::of(&values).map(|spread| spread.mean)
    };
    let (Some(share), Some(weight)) = (mean(|c| c.share), mean(|c| c.energy)) else {
        return String::new();
    };
    let (spent, set) = match weight < config.planner.weights().energy {
        true => (
            format!(
                " Energy counts {} instead of {}: {}.",
                short(weight),
                short(config.planner.weights().energy),
                budget(&outcome.calibrated)
            ),
            format!(" and planner.phi-e = {weight:.4}"),
        ),
        false => (String::new(), String::new()),
    };
    let (some, seeds) = (outcome.calibrated.len(), outcome.scales.len());
    let where_so =
        if some < seeds { format!(" in {some} of {seeds} seeds") } else { String::new() };
    format!(
        "Divergences count {}{where_so}: so much of what they say was found where sources tried each other's linear classifiers on their labels.{spent} \
         Real devices do the same with planner.calibration = {share:.2}{set}.\n",
        percent(share)
    )
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

/// Says what the total energies consist of: links, and measuring if a method needs divergences.
fn paid(lines: &[Line]) -> &'static str {
    let pays =
        |line: &&Line| line.method.parse::<Method>().is_ok_and(|method| method.needs_divergences());
    match lines.iter().find(pays) {
        Some(_) => "links and, for ST-LF, the measuring without which it cannot choose them",
        None => "links alone",
    }
}

/// Explains hand-overs, which change models, if ST-LF may have some, and the method without them.
fn handovers(lines: &[Line], config: &Config) -> String {
    let has = |method: Method| lines.iter().any(|line| line.method == method.name());
    let mut text = String::new();
    if has(Method::StLf) && config.planner.hands_on() {
        text += "In ST-LF, sources hand models on to other sources, which continue training them, where that pays off; hand-overs count as links.\n";
        if has(Method::Links) {
            text += "ST-LF links is the plan without hand-overs.\n";
        }
    }
    text
}

/// Names the requested methods that have no line in the table, with the reason.
fn missing(methods: &[Method], lines: &[Line]) -> String {
    let absent = methods.iter().filter(|m| lines.iter().all(|line| line.method != m.name()));
    let (blind, idle): (Vec<&Method>, Vec<&Method>) = absent.partition(|m| m.needs_accuracies());
    let names =
        |methods: &[&Method]| methods.iter().map(|m| m.label()).collect::<Vec<_>>().join(", ");
    let mut text = String::new();
    if !blind.is_empty() {
        let who = names(&blind);
        text +=
            &format!("\n{who}: left out, because the targets' true classes are not in the data.\n");
    }
    if !idle.is_empty() {
        text += &format!("\n{}: no target, every device trains for itself.\n", names(&idle));
    }
    text
}

/// Returns a warning if the joules are not those of the models that are really sent.
fn assumed(config: &Config) -> String {
    let bits = match (config.energy.model_bits, config.planner.preset) {
        (Some(bits), _) => bits,
        (None, Preset::Paper) => PAPER_MODEL_BITS,
        (None, Preset::Balanced) => return String::new(),
    };
    format!(
        "Joules of links assume models of {} bits (energy.model-bits), whatever their real size.\n",
        short(bits)
    )
}

/// Returns what measuring divergences cost, and the privacy that it guarantees.
pub(crate) fn measuring(outcome: &Outcome, config: &Config) -> String {
    let seeds = config.seeds.len() as f64;
    let bytes = outcome.measuring.iter().map(|row| row.bytes as f64).sum::<f64>() / seeds;
    let joules = outcome.measuring.iter().map(|row| row.joules).sum::<f64>() / seeds;
    let noisy: Vec<f64> = outcome.measuring.iter().filter_map(|row| row.epsilon).collect();
    let privacy = noisy.first().map_or(String::new(), |epsilon| {
        let who = match outcome.measuring.len() {
            all if all == noisy.len() => "Every device".to_owned(),
            all => format!("{} of {all} devices", noisy.len()),
        };
        let delta = config.divergence.delta();
        format!(" {who} added noise: (ε = {epsilon}, δ = {delta})-differential privacy.")
    });
    format!(
        "Measuring divergences ({}) sent {} and cost {} per seed.{privacy}\n",
        config.divergence.estimator().name(),
        size(bytes),
        energy(joules),
    )
}
