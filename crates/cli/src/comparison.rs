//! Methods side by side, as text.

use stlf::baselines::Method;
use stlf_lab::summary::{Line, Spread, summarise};
use stlf_lab::{Config, Outcome};

use crate::table::{Align, Cell, Table};
use stlf::words::{counted, size};

/// The table of a run, and a line that says what it shows.
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
                format!("{:.1} ± {:.1} %", 100.0 * a.mean, 100.0 * a.deviation)
            }
            // One seed has no deviation, which is not a deviation of 0.
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
            format!("{:.1} J", line.joules.mean).into(),
            line.energy_share.map_or(String::new(), |s| format!("{:.0} %", 100.0 * s.mean)).into(),
            size(line.bytes.mean).into(),
        ];
        table.row(cells);
    }
    let seeds = counted(config.seeds.len(), "seed");
    format!(
        "{}{}\nMeans over {seeds}; ± is the standard deviation between seeds. Accuracy is that of a method's own targets on\n\
         their own data, by labels that no method but Oracle sees. Of all links: the share of the energy that it would\n\
         cost if every source sent to every target. {}{}",
        table.render(),
        missing(methods, &lines),
        relays(&lines),
        measuring(outcome, config) + &dealt(outcome)
    )
}

/// By whose word samples were dealt, where nobody had said how.
pub(crate) fn dealt(outcome: &Outcome) -> String {
    outcome.dealt_by.as_ref().map_or(String::new(), |column| {
        format!(
            "The table's column {column} says who holds which sample; another partition.kind deals them anew.\n"
        )
    })
}

/// What the one method does that changes models.
fn relays(lines: &[Line]) -> &'static str {
    match lines.iter().any(|line| line.method == Method::Relay.name()) {
        true => {
            "With relays, sources hand models on and train\nthem on where that pays; hand-overs count as links. "
        }
        false => "",
    }
}

/// Methods that are asked for and have no line, and why.
fn missing(methods: &[Method], lines: &[Line]) -> String {
    let absent = methods.iter().filter(|m| lines.iter().all(|line| line.method != m.name()));
    let (blind, idle): (Vec<&Method>, Vec<&Method>) = absent.partition(|m| m.needs_accuracies());
    let names =
        |methods: &[&Method]| methods.iter().map(|m| m.label()).collect::<Vec<_>>().join(", ");
    let mut text = String::new();
    if !blind.is_empty() {
        let who = names(&blind);
        text +=
            &format!("\n{who}: left out, as the data do not have the true classes at targets.\n");
    }
    if !idle.is_empty() {
        text += &format!("\n{}: no target, every device trains for itself.\n", names(&idle));
    }
    text
}

/// What measuring divergences cost, and what privacy it kept.
pub(crate) fn measuring(outcome: &Outcome, config: &Config) -> String {
    let seeds = config.seeds.len() as f64;
    let bytes = outcome.measuring.iter().map(|row| row.bytes as f64).sum::<f64>() / seeds;
    let joules = outcome.measuring.iter().map(|row| row.joules).sum::<f64>() / seeds;
    let privacy = config.divergence.privacy.map_or(String::new(), |p| {
        format!(
            " Every device's message is (ε = {}, δ = {})-differentially private.",
            p.epsilon, p.delta
        )
    });
    format!(
        "Measuring divergences ({}) sent {} and\ncost {joules:.2} J a seed.{privacy}\n",
        config.divergence.estimator.name(),
        size(bytes),
    )
}
