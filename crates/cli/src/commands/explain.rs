//! `stlf explain`: why each device has its role, and what would change it.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use stlf_data::words::nearest;
use stlf_formats::{ExpectedEntry, ExplanationFile, PlanOrProblem, write_json};
use stlf_lab::Folder;
use stlf_lab::record::{ExpectedRow, RefusedRow, StudentRow, TrainingRow};
use stlf_lab::stages::expectation::TABLE as EXPECTED;
use stlf_lab::stages::handover::REFUSED;
use stlf_lab::stages::plan::FILE as PLAN;
use stlf_lab::stages::student;
use stlf_lab::stages::train::TABLE as TRAINING;
use stlf_method::expectation::{Basis, Expected};
use stlf_method::guard::{Guard, Standard};
use stlf_method::method::Method;
use stlf_planning::Plan;
use stlf_planning::Problem;
use stlf_planning::explain::{Alternative, Explanation, Sentences, account, doubt, explain};
use stlf_planning::number_format::{clean, counted, energy, percent, short};
use stlf_planning::plan::Status;
use stlf_planning::planner::{self, Limits, Outcome, Settings};

use super::numbers::positive;
use super::plan::{check_handovers, infeasible, seconds};
use crate::comparison::ask_for_labels;
use crate::error::Failure;
use crate::input;
use crate::progress::Watch;
use crate::report;
use crate::table::{Align, Cell, Table};
use crate::ui::Ui;

/// With more devices than this, only costs are shown unless a device is named: each explanation takes some ten plans.
const MOST_DEVICES: usize = 60;

/// Say why each device has its role, and what would change it.
///
/// For every device: its part of the objective, the cost of the best plan with the other role, the
/// best alternative to its main source, and the exact error, divergence and energy at which the
/// optimal choice changes while everything else stays as measured. Of a run folder also: the accuracy
/// that a target may expect without labels, and what that rests on.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stlf plan fleet.json -o plan.json && stlf explain plan.json
  stlf explain plan.json --device car-3
  stlf explain runs/mine-1a2b3c4d --device d6    # with the accuracy that d6 may expect
  stlf explain node                              # the plan that a real device follows
  stlf explain fleet.json --format json | jq '.devices[] | {name, role_flip}'")]
pub(crate) struct Args {
    /// A plan (stlf-plan/2), a problem (stlf-problem/1) to plan first, a run folder, or the folder of a real device; - for standard input.
    plan: PathBuf,

    /// Explain only this device, in full.
    #[arg(long, value_name = "NAME")]
    device: Option<String>,

    /// The problem that was planned, if the plan does not contain it.
    #[arg(long, value_name = "FILE")]
    problem: Option<PathBuf>,

    /// If a problem is planned first, let sources hand their models on, as in `stlf plan --handovers`.
    #[arg(long)]
    handovers: bool,

    /// Stop after this time, for all plans together; the answer is then not proven.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = positive)]
    time_limit: f64,

    /// What to print.
    #[arg(long, value_enum, default_value_t = FormatArg::Text)]
    format: FormatArg,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    /// Sentences and numbers for people.
    Text,
    /// One stlf-explanation/1 document.
    Json,
}

/// Explains a plan, for one device or for all.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    let mut watch = Watch::start(seconds(args.time_limit), ui)?;
    let (problem, plan) = load(args, &mut watch)?;
    let came = Came::read(&args.plan)?;
    let words = Sentences { problem: &problem, plan: &plan };
    let devices: Vec<usize> = match &args.device {
        Some(name) => vec![find(&problem, name)?],
        None => (0..problem.len()).collect(),
    };
    if args.format == FormatArg::Text && devices.len() > MOST_DEVICES {
        watch.finish();
        return ui.print(&costs(&words));
    }
    let limits = Limits::default();
    let explanations: Vec<Explanation> = devices
        .into_iter()
        .map(|device| explain(&problem, &plan, device, &limits, &mut |p| watch.see(p)))
        .collect();
    watch.finish();
    match (args.format, explanations.as_slice()) {
        (FormatArg::Json, all) => {
            let entry = |row: ExpectedRow| {
                let Expected { accuracy, low, high } = row.said()?;
                Some((row.target, ExpectedEntry { accuracy, low, high }))
            };
            let document = ExplanationFile::new(&words, all)
                .with_expected(came.expected.into_iter().filter_map(entry).collect());
            ui.write(|out| write_json(out, &document))
        }
        (FormatArg::Text, [one]) => ui.print(&in_full(&words, one, &came)),
        (FormatArg::Text, all) => ui.print(&overview(&words, all, &came)),
    }
}

fn load(args: &Args, watch: &mut Watch) -> Result<(Problem, Plan), Failure> {
    let name = input::name(&args.plan);
    let mut file = match input::plan_or_problem(&args.plan)? {
        PlanOrProblem::Plan(file) => *file,
        PlanOrProblem::Problem(file) => {
            let problem = file.into_problem(None).map_err(|e| Failure::in_file(&name, &e))?;
            // Reading a large file is no planning.
            watch.restart();
            let mut see = |progress: &planner::Progress| watch.see(progress);
            if args.handovers {
                check_handovers(&problem)?;
            }
            let settings = Settings::default().handing_on(args.handovers);
            return match planner::plan(&problem, &settings, &mut see) {
                Outcome::Planned(plan) => Ok((problem, *plan)),
                Outcome::Infeasible(reason) => Err(infeasible(&reason)),
            };
        }
    };
    match &args.problem {
        Some(path) => file.problem = Some(input::problem(path)?),
        None if file.problem.is_none() => {
            return Err(Failure::input(format!("{name} does not contain its problem")).hint(
                "name the problem's file with --problem; of a real device, its folder. In fleets of more than 64 devices only the one that plans has the problem",
            ));
        }
        None => {}
    }
    file.restore_checked().map_err(|e| Failure::in_file(&name, &e))
}

/// What came of a plan in a run folder.
#[derive(Default)]
struct Came {
    training: Vec<TrainingRow>,
    expected: Vec<ExpectedRow>,
    students: Vec<StudentRow>,
    refused: Vec<RefusedRow>,
}

impl Came {
    /// Reads what came of the first seed's plan; nothing of a file, or before models were sent.
    fn read(path: &Path) -> Result<Came, Failure> {
        if !path.is_dir() {
            return Ok(Came::default());
        }
        if input::full_plan(path).is_some() {
            return Ok(Came::default());
        }
        let plan = input::in_run(path, PLAN)?;
        let seed = Folder::open(plan.parent().unwrap_or(path)).map_err(|e| Failure::in_data(&e))?;
        let training = seed.read_csv(TRAINING).map_err(|e| Failure::in_data(&e))?;
        let expected = seed.read_csv(EXPECTED).map_err(|e| Failure::in_data(&e))?;
        let students = student::read(&seed, &[Method::StLf]);
        let students = students.map_err(|e| Failure::input(e.to_string()))?;
        let refused = seed.read_csv(REFUSED).map_err(|e| Failure::in_data(&e))?;
        let (training, expected) = (training.unwrap_or_default(), expected.unwrap_or_default());
        Ok(Came { training, expected, students, refused: refused.unwrap_or_default() })
    }

    /// What a device is told of its own model, if that is no better than guessing.
    fn trouble(&self, name: &str) -> Option<String> {
        let own = self.training.iter().find(|row| row.device == name)?;
        Some(format!("Trouble: {}.", own.guessing()?))
    }

    /// That, what a device may expect, what that rests on, and what came of its student.
    fn sentences(&self, name: &str) -> Vec<String> {
        let mut sentences: Vec<String> = self.trouble(name).into_iter().collect();
        let refused = self.refused.iter().filter(|row| row.to == name);
        sentences.extend(refused.map(|row| format!("Trouble: {}.", clean(&row.told()))));
        if let Some(row) = self.expected.iter().find(|row| row.target == name) {
            let warning = |but: &str| {
                let told = |warning| format!("{but}{}.", ask_for_labels(&warning, "RUN"));
                row.warning.map(told)
            };
            match row.said() {
                Some(expected) => {
                    sentences.push(format!("It may expect an accuracy of {expected}."));
                    sentences.extend(row.basis().iter().flat_map(Basis::sentences));
                    sentences.extend(warning("But "));
                }
                None => sentences.extend(warning("What it may expect is not known: ")),
            }
        }
        sentences.extend(self.students.iter().find(|row| row.target == name).map(of_student));
        sentences
    }
}

/// What came of a target's student, by what margin, and what it cost.
fn of_student(row: &StudentRow) -> String {
    if !row.tried {
        return format!("Its student: {}.", row.outcome);
    }
    let judged = match (row.labels_right.zip(row.mixture_labels_right), row.stability) {
        (Some((right, of_mixture)), _) => {
            format!(
                "of the labels that it held out, it gets {right} right, and the mixture alone {of_mixture}"
            )
        }
        (None, stability) => format!(
            "it gives {} of altered samples the class of the plain ones, and the mixture {}{}",
            known(stability),
            known(row.mixture_stability),
            asked(row)
        ),
    };
    let joules = row.joules.map_or(String::new(), |joules| format!(", {}", energy(joules)));
    let took =
        row.gflop.map(|all| format!(" That took {} GFLOP of computing{joules}.", short(all)));
    let outcome = row.outcome.split(" (").next().unwrap_or(&row.outcome);
    format!("It trained a student, which is {outcome}: {judged}.{}", took.unwrap_or_default())
}

/// What the guard asked of a student, and why it refused one that is as stable as that.
fn asked(row: &StudentRow) -> String {
    let Some(threshold) = row.threshold else { return String::new() };
    let of_strangers = threshold == Guard::default().threshold(Standard::Stranger);
    let place = if of_strangers { " where no source is near" } else { "" };
    let margin = row.stability.zip(row.mixture_stability).map(|(own, mixture)| own - mixture);
    let has_collapsed = !row.accepted && margin.is_some_and(|margin| margin >= threshold);
    let but = if has_collapsed { "; but it tells too little about samples" } else { "" };
    format!(", and at least {} points more are asked{place}{but}", short(100.0 * threshold))
}

fn known(share: Option<f64>) -> String {
    share.map_or("none".to_owned(), percent)
}

fn find(problem: &Problem, name: &str) -> Result<usize, Failure> {
    problem.find(name).ok_or_else(|| {
        let failure = Failure::input(format!("there is no device {name:?}"));
        let names = (0..problem.len()).map(|device| problem.name(device));
        match nearest(name, names) {
            Some(meant) => failure.hint(format!("did you mean {meant:?}?")),
            None => failure.hint("`stlf explain` without --device lists all"),
        }
    })
}

/// Returns the full explanation of one device: its cost by term, then all sentences about it.
fn in_full(words: &Sentences<'_>, e: &Explanation, came: &Came) -> String {
    let mut text = format!("{}\n\n", words.role(e));
    let mut table = Table::new(&[("cost", Align::Right), ("of", Align::Left)]);
    let mut parts = e.account.parts.clone();
    parts.sort_by(|a, b| b.cost.total_cmp(&a.cost));
    for part in &parts {
        table.row([short(part.cost).into(), words.term(part.term).into()]);
    }
    table.row([short(e.account.total()).into(), "together".into()]);
    text += &table.render();
    for sentences in [words.further(e), came.sentences(words.problem.name(e.device))] {
        if !sentences.is_empty() {
            text += &format!("\n{}\n", sentences.join("\n"));
        }
    }
    text
}

/// Returns an overview of all devices: a table, then a line for each.
fn overview(words: &Sentences<'_>, explanations: &[Explanation], came: &Came) -> String {
    let mut table = Table::new(&[
        ("device", Align::Left),
        ("role", Align::Left),
        ("costs", Align::Right),
        ("other role", Align::Right),
        ("flips at (now)", Align::Left),
        ("receives from", Align::Left),
        ("drops the first at (now)", Align::Left),
    ]);
    for e in explanations {
        let extra = match &e.other_role {
            Alternative::Possible(rival) => format!("{:+.4}", rival.extra),
            Alternative::Impossible(_) => "–".to_owned(),
        };
        table.row([
            words.problem.name(e.device).into(),
            e.role.into(),
            short(e.account.total()).into(),
            extra.into(),
            words.role_threshold(e).into(),
            report::receives(words.problem, words.plan, e.device).into(),
            words.link_thresholds(e).into(),
        ]);
    }
    let mut text = table.render();
    text.push('\n');
    for e in explanations {
        text += &words.role(e);
        let row = came.expected.iter().find(|row| row.target == words.problem.name(e.device));
        if let Some(expected) = row.and_then(ExpectedRow::said) {
            text += &format!(" It may expect an accuracy of {expected}.");
        }
        if let Some(trouble) = came.trouble(words.problem.name(e.device)) {
            text += &format!(" {trouble}");
        }
        text.push('\n');
    }
    if let Some(doubt) = doubt(explanations.iter().all(|e| e.proven)) {
        text += &format!("\n{doubt}\n");
    }
    text
}

/// Returns the cost of the most expensive devices, for a fleet that is too large to explain every device.
fn costs(words: &Sentences<'_>) -> String {
    let (problem, plan) = (words.problem, words.plan);
    let mut all: Vec<(f64, usize)> =
        (0..problem.len()).map(|i| (account(problem, plan, i).total(), i)).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let columns = [("device", Align::Left), ("role", Align::Left), ("costs", Align::Right)];
    let mut table = Table::new(&[columns.as_slice(), &[("receives from", Align::Left)]].concat());
    for &(cost, device) in all.iter().take(MOST_DEVICES) {
        let cells: [Cell; 4] = [
            problem.name(device).into(),
            plan.roles[device].into(),
            short(cost).into(),
            report::receives(problem, plan, device).into(),
        ];
        table.row(cells);
    }
    let proof = match plan.status {
        Status::Optimal => "proven optimal",
        Status::Feasible(_) => "not proven optimal",
    };
    let dearest = clean(problem.name(all[0].1));
    format!(
        "The {MOST_DEVICES} most expensive of {} ({proof}):\n\n{}\n`--device {dearest}` says why, and what would change it.\n",
        counted(problem.len(), "device"),
        table.render(),
    )
}
