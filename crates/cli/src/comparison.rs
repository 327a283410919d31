//! The comparison of methods, as text.

use stlf_config::Config;
use stlf_lab::Outcome;
use stlf_lab::summary::{Line, Spread, summarise};
use stlf_method::method::Method;
use stlf_planning::energy::PAPER_MODEL_BITS;
use stlf_planning::number_format::{counted, energy, short, size};
use stlf_planning::problem::Preset;

use crate::table::{Align, Cell, Table};

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
         {}{}{}{}",
        table.render(),
        missing(methods, &lines),
        paid(&lines),
        relays(&lines),
        measuring(outcome, config),
        assumed(config),
        dealt(outcome)
    )
}

/// Returns a line that names the column by which samples were dealt, if the user did not say how to deal them.
pub(crate) fn dealt(outcome: &Outcome) -> String {
    outcome.dealt_by.as_ref().map_or(String::new(), |column| {
        format!(
            "The table's column {column} says which device holds which sample; another partition.kind deals them differently.\n"
        )
    })
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

/// Explains the one method that changes models, if it is in the comparison.
fn relays(lines: &[Line]) -> &'static str {
    match lines.iter().any(|line| line.method == Method::Relay.name()) {
        true => {
            "Relays: sources hand models on to other sources, which continue training them, where that pays off; hand-overs count as links.\n"
        }
        false => "",
    }
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
