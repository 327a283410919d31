//! A plan as text for people.

use std::fmt::Write;

use anstyle::Style;
use stlf_formats::{Run, StoppedBy};
use stlf_planning::Plan;
use stlf_planning::Problem;
use stlf_planning::Role;
use stlf_planning::bound::{BoundKind, Complexity};
use stlf_planning::explain::Sentences;
use stlf_planning::number_format::{clean, counted, energy, grouped, mixture, percent, short};
use stlf_planning::plan::{Handover, PlanLink, Status, SuccessiveReport};
use stlf_planning::planner::successive;
use stlf_planning::problem::FAR;
use stlf_planning::problem::{EnergyUnit, Model};

use crate::table::{Align, Cell, Table, role_style};

/// If a fleet has more devices than this, only some of them are shown.
const MOST_DEVICES: usize = 40;

/// A source of at least this divergence is far from a target.
const DISTANT: f64 = 1.5;

/// A required link of less weight than this counts as idle.
const IDLE: f64 = 1e-4;

/// Returns the whole summary of a plan.
pub(crate) fn plan(problem: &Problem, plan: &Plan, run: Run) -> String {
    let mut text = headline(plan, run);
    text.push('\n');
    text.push_str(&devices(problem, plan));
    text.push('\n');
    text.push_str(&figures(problem, plan, run));
    text
}

/// Returns the numbers of sources and targets, and how certain the plan is.
pub(crate) fn headline(plan: &Plan, run: Run) -> String {
    let bold = Style::new().bold();
    let of = |role: Role| {
        let (style, count) = (role_style(role), plan.with_role(role).count());
        format!("{style}{}{style:#}", counted(count, &role.to_string()))
    };
    format!(
        "{bold}{}{bold:#}: {}, {}; {}\n",
        counted(plan.roles.len(), "device"),
        of(Role::Source),
        of(Role::Target),
        certainty(plan, run),
    )
}

/// Returns in words whether the plan is proven optimal, or its gap.
pub(crate) fn certainty(plan: &Plan, run: Run) -> String {
    let why = match run.stopped_by(plan) {
        None => return "proven optimal".to_owned(),
        Some(StoppedBy::Gap) => "as requested",
        Some(StoppedBy::NodeLimit) => "node limit",
        Some(StoppedBy::Interrupt) => "interrupted",
        Some(StoppedBy::TimeLimit) => "time limit",
        Some(StoppedBy::NoProof) => "no proof",
    };
    match plan.gap() {
        gap if gap.is_finite() => {
            format!("within {} of optimal ({why})", percent(gap.max(1e-4)))
        }
        _ => format!("how far from optimal is unknown ({why})"),
    }
}

/// Returns a table of the devices, with their roles and the models that they receive.
pub(crate) fn devices(problem: &Problem, plan: &Plan) -> String {
    let measured = match problem.model() {
        Model::Measured(m) => Some(m),
        Model::Costs(_) => None,
    };
    let mut columns = vec![("device", Align::Left), ("role", Align::Left)];
    if measured.is_some() {
        columns.extend([
            ("samples", Align::Right),
            ("labeled", Align::Right),
            ("error", Align::Right),
        ]);
        columns.push(("energy", Align::Right));
    }
    columns.push(("receives from", Align::Left));
    let mut table = Table::new(&columns);
    let shown = selection(plan);
    for &device in &shown {
        let mut cells: Vec<Cell> = vec![problem.name(device).into(), plan.roles[device].into()];
        if let Some(m) = measured {
            let d = &m.devices[device];
            cells.push(grouped(d.samples()).into());
            cells.push(grouped(d.labeled).into());
            cells.push(d.source_error.map_or(String::new(), short).into());
            let links = plan.incoming(device).iter().map(|l| problem.link_energy(l.from, device));
            let handed = plan.handed_from(device).map(|from| Handover { from, to: device });
            let handed = handed.map(|handover| plan.handover_joules(problem, handover));
            let received: Vec<Option<f64>> = links.chain(handed).collect();
            let joules = received.iter().copied().sum::<Option<f64>>();
            let joules = joules.filter(|_| !received.is_empty());
            cells.push(joules.map_or(String::new(), energy).into());
        }
        cells.push(receives(problem, plan, device).into());
        table.row(cells);
    }
    let mut text = table.render();
    if shown.len() < plan.roles.len() {
        let _ = writeln!(
            text,
            "… {} of {} shown; `--format json` or `-o FILE` has all",
            shown.len(),
            counted(plan.roles.len(), "device"),
        );
    }
    text
}

/// Returns the names of the devices whose models a device receives: a target mixes them, a source continues training one.
pub(crate) fn receives(problem: &Problem, plan: &Plan, device: usize) -> String {
    match plan.handed_from(device) {
        Some(from) => format!("{} (hand-over)", problem.name(from)),
        None => mixture(problem, plan.incoming(device)),
    }
}

/// Returns the devices to show: all of them, or the first of each role.
fn selection(plan: &Plan) -> Vec<usize> {
    if plan.roles.len() <= MOST_DEVICES {
        return (0..plan.roles.len()).collect();
    }
    let count = |role| plan.with_role(role).count();
    let half = MOST_DEVICES / 2;
    let spare = half.saturating_sub(count(Role::Target));
    let sources = count(Role::Source).min(half + spare);
    let mut shown: Vec<usize> = plan.with_role(Role::Source).take(sources).collect();
    shown.extend(plan.with_role(Role::Target).take(MOST_DEVICES - sources));
    shown.sort_unstable();
    shown
}

/// Returns objective, energy, settings and solver, with one line for each.
fn figures(problem: &Problem, plan: &Plan, run: Run) -> String {
    let mut lines = vec![("objective", objective(problem, plan))];
    if let (Some(joules), Some(all)) = (plan.joules(problem), plan.all_to_all_joules(problem)) {
        let share = if all > 0.0 {
            format!(", {} of every source sending to every target in reach", percent(joules / all))
        } else {
            String::new()
        };
        let mut over = counted(plan.links.len(), "link");
        if !plan.handovers.is_empty() {
            over += &format!(" and {}", counted(plan.handovers.len(), "hand-over"));
            let twice = plan.handovers.iter().filter(|&&h| plan.times(h) == 2).count();
            if twice > 0 {
                over += &format!(", {twice} of them twice");
            }
        }
        lines.push(("energy", format!("{} over {over}{share}", energy(joules))));
    }
    let idle = |l: &&PlanLink| l.weight < IDLE && problem.required().contains(&(l.from, l.to));
    for link in plan.links.iter().filter(idle) {
        let (from, to) = (problem.name(link.from), problem.name(link.to));
        let line =
            format!("the link {from} → {to} carries almost nothing, but is required and paid for");
        lines.push(("note", clean(&line)));
    }
    let strangers = plan.strangers(problem);
    if !strangers.is_empty() {
        let names = Sentences { problem, plan }.list(&strangers);
        let line = format!(
            "no source is near {names}: divergences of {FAR} and more do not show which source fits"
        );
        lines.push(("note", line));
    }
    lines.extend(distant(problem, plan, &strangers).map(|line| ("note", line)));
    lines.push(("bound", settings(problem, plan.bound)));
    lines.push(("solver", solver(plan, run)));
    if let Some(report) = &plan.solver.successive {
        lines.push(("", steps(plan, report)));
    }
    let dim = Style::new().dimmed();
    lines.iter().map(|(name, line)| format!("{dim}{name:<11}{dim:#}{line}\n")).collect()
}

/// A warning of targets whose nearest source is far, though not so far that nothing can be told.
fn distant(problem: &Problem, plan: &Plan, strangers: &[usize]) -> Option<String> {
    let Model::Measured(measured) = problem.model() else { return None };
    let nearest = |target: usize| {
        let incoming = measured.links.incoming(target);
        let from_sources = incoming.filter(|link| plan.roles[link.from] == Role::Source);
        from_sources.map(|link| link.divergence).reduce(f64::min)
    };
    let targets = plan.with_role(Role::Target).filter(|target| !strangers.contains(target));
    let far: Vec<(usize, f64)> = targets
        .filter_map(|target| Some((target, nearest(target)?)))
        .filter(|(_, divergence)| (DISTANT..=2.0).contains(divergence))
        .collect();
    let least = far.iter().map(|(_, divergence)| *divergence).reduce(f64::min)?;
    let names = Sentences { problem, plan }
        .list(&far.iter().map(|(target, _)| *target).collect::<Vec<_>>());
    let least = short(least);
    Some(format!(
        "no source is closer to {names} than {least} of at most 2: expect little of its model"
    ))
}

fn objective(problem: &Problem, plan: &Plan) -> String {
    let total = short(plan.objective());
    let terms = match problem.model() {
        Model::Measured(_) => format!(
            "{total} = {} sources + {} targets + {} energy",
            short(plan.terms.source),
            short(plan.terms.target),
            short(plan.terms.energy),
        ),
        Model::Costs(_) => format!(
            "{total} = {} sources + {} links",
            short(plan.terms.source),
            short(plan.terms.target),
        ),
    };
    match plan.status {
        Status::Optimal => terms,
        Status::Feasible(_) => format!("{terms}; no plan costs under {}", short(plan.lower_bound)),
    }
}

fn settings(problem: &Problem, bound: BoundKind) -> String {
    let Model::Measured(m) = problem.model() else { return "none: raw costs".to_owned() };
    let complexity = match m.bound.complexity {
        Complexity::None => "none".to_owned(),
        Complexity::Massart => format!("massart ({})", short(m.bound.complexity.value())),
        Complexity::Value(rho) => short(rho),
    };
    let unit = match m.energy_unit {
        EnergyUnit::Joules => "joules",
        EnergyUnit::MeanLink => "mean links",
    };
    let calibration = match m.bound.calibration {
        1.0 => String::new(),
        share => format!(", divergences count {}", percent(share)),
    };
    let w = m.weights;
    format!(
        "{bound}, delta {}, complexity {complexity}{calibration}; weights {} source, {} target, {} energy in {unit}",
        short(m.bound.delta),
        short(w.source),
        short(w.target),
        short(w.energy),
    )
}

fn solver(plan: &Plan, run: Run) -> String {
    let unit = if plan.solver.successive.is_some() { "iteration" } else { "node" };
    let work = counted(plan.solver.iterations as usize, unit);
    format!("{}, {work}, {}", plan.solver.name, duration(run.seconds))
}

/// Formats a time in a suitable unit.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.0} µs", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s => format!("{s:.1} s"),
    }
}

/// Returns what the paper's method found on its own, compared with the optimum.
fn steps(plan: &Plan, report: &SuccessiveReport) -> String {
    let above = |value: f64| {
        let gap = (value - report.exact_objective) / report.exact_objective.abs();
        if gap.abs() < 1e-9 { "the optimum".to_owned() } else { format!("{} above", percent(gap)) }
    };
    let ended = match report.stop {
        successive::Stop::Converged => "converged",
        successive::Stop::IterationLimit => "iteration limit",
        successive::Stop::Observer => "stopped",
        successive::Stop::Stalled(_) | successive::Stop::Unreachable(_) => "stalled",
    };
    let exact = if report.exact_is_proven { "optimum, proven" } else { "best known" };
    let [relaxed, rounded, planned, best] = [
        report.relaxed_objective,
        report.rounded_objective,
        plan.objective(),
        report.exact_objective,
    ]
    .map(short);
    let indent = " ".repeat(11);
    format!(
        "relaxed    {relaxed} ({ended})\n\
         {indent}rounded    {rounded} ({})\n\
         {indent}plan       {planned} ({})\n\
         {indent}exact      {best} ({exact})",
        above(report.rounded_objective),
        above(plan.objective()),
    )
}
