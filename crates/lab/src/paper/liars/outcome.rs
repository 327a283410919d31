//! One seed with every lie and every defence.

use std::sync::OnceLock;

use rayon::prelude::*;
use stlf_data::Class;
use stlf_learn::Params;
use stlf_learn::evaluate::{Predictions, predict};
use stlf_method::expectation::{Trial, Tried, doubt};
use stlf_method::handed::{Standard, Verdict};
use stlf_method::known::Known;
use stlf_method::trust::{Heard, among_compared, compared, trust_sent};
use stlf_planning::device::Role;
use stlf_planning::examiner::Examination;
use stlf_planning::witness::Claim;
use stlf_planning::{Plan, Problem, planner};
use stlf_protocol::Place;

use super::handing_on::{Sent, Trainings};
use super::lies::{Lie, TRIGGERED, mark};
use super::{DEVICES, cases};
use crate::Error;
use crate::stages::SeedRun;
use crate::stages::measure::measure;
use crate::stages::plan::problem;
use crate::stages::train::train;

/// What targets do to protect themselves from liars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Defence {
    /// They believe everything and check nothing.
    None,
    /// They check what they receive by the plan, which has an examiner for every source that sends to them, and witnesses for those that get a model of a
    /// conspicuous source: the default of real devices.
    Checked,
    /// They hear at least three models.
    Three,
    /// They hear at least seven, or all that there are.
    Seven,
    /// They hear at least three models, and know ten labels.
    Labels,
}

impl Defence {
    pub(super) const ALL: [Defence; 5] =
        [Defence::None, Defence::Checked, Defence::Three, Defence::Seven, Defence::Labels];

    pub(super) fn name(self) -> &'static str {
        match self {
            Defence::None => "unchecked",
            Defence::Checked => "checked",
            Defence::Three => "3 models",
            Defence::Seven => "7 models",
            Defence::Labels => "3 models, 10 labels",
        }
    }

    /// How many liars a target is to withstand.
    fn liars(self) -> usize {
        match self {
            Defence::None | Defence::Checked => 0,
            Defence::Three | Defence::Labels => 1,
            Defence::Seven => 3,
        }
    }
}

/// How many labels a target knows, where it knows any.
const LABELS: usize = 10;

/// The most epochs. The next one begins if a model is refused, and has another plan.
const EPOCHS: usize = 10;

/// What came of a seed with a lie and a defence.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    pub(super) seed: u64,
    pub(super) lie: Option<Lie>,
    pub(super) liars: usize,
    pub(super) defence: Defence,
    pub(super) accuracy: f64,
    pub(super) triggered: Option<f64>,
    pub(super) refused: Option<f64>,
    pub(super) wrongly_refused: Option<f64>,
    pub(super) energy: f64,
}

/// A fleet in which some lie, and its plan.
pub(super) struct Deceit<'a> {
    pub(super) run: &'a SeedRun<'a>,
    pub(super) lie: Option<Lie>,
    pub(super) liars: Vec<usize>,
    /// The model of each device as the device sends it, if it sends one.
    pub(super) models: Vec<Option<Params>>,
    pub(super) trainings: &'a Trainings,
    problem: Problem,
    plan: Plan,
}

/// The models that are on their way in an epoch.
struct Models {
    models: Vec<Option<Params>>,
    /// `[sender][receiver]`: what each device's model says of each device's data, once somebody asked.
    said: Vec<Vec<OnceLock<Predictions>>>,
}

/// What targets came to, added up.
#[derive(Default)]
struct Sums {
    accuracies: Vec<f64>,
    triggered: Vec<f64>,
    /// Models of liars that were heard, and of these refused; the same of honest devices.
    liars: [usize; 2],
    honest: [usize; 2],
    joules: f64,
    planned_joules: f64,
    /// Links over which a model came that was refused, in this epoch.
    refused: Vec<(usize, usize)>,
}

/// Returns what comes of every lie and defence in a seed.
pub(super) fn of_seed(run: &SeedRun<'_>) -> Result<Vec<Outcome>, Error> {
    let (trained, measured) = (train(run)?, measure(run)?);
    let sent: Vec<Option<Params>> = (run.fleet.devices.iter().zip(&trained.models))
        .map(|(device, model)| Some(run.setup.sent(model.as_ref()?, &device.labels)))
        .collect();
    let trainings = Trainings::default();
    let of_case = |(lie, count): (Option<Lie>, usize)| -> Result<Vec<Outcome>, Error> {
        // Other devices lie in other seeds.
        let first = run.setup.seed as usize;
        let liars: Vec<usize> = (0..count).map(|k| (first + k) % DEVICES.1).collect();
        let (mut trained, mut measured, mut models) =
            (trained.clone(), measured.clone(), sent.clone());
        if let Some(lie) = lie {
            lie.claim(&liars, &mut trained, &mut measured);
            for &liar in &liars {
                if let Some(honest) = models[liar].take() {
                    models[liar] = Some(lie.model(run, liar, &honest)?);
                }
            }
        }
        let problem = problem(run, &trained.table, &measured)?;
        let mut observer = |_: &_| run.watch.flow();
        let planner::Outcome::Planned(plan) = run.setup.plan(&problem, &mut observer) else {
            return Ok(Vec::new());
        };
        run.watch.check()?;
        let (plan, trainings) = (*plan, &trainings);
        let deceit = Deceit { run, lie, liars, models, trainings, problem, plan };
        Defence::ALL.into_iter().map(|defence| deceit.outcome(defence)).collect()
    };
    let hands_on = run.setup.planner.handovers.is_some();
    let outcomes: Vec<Vec<Outcome>> =
        cases(hands_on).into_par_iter().map(of_case).collect::<Result<_, Error>>()?;
    Ok(outcomes.concat())
}

impl Deceit<'_> {
    /// What targets end with once no model is refused any more. As real devices do, they go on without links over which one was.
    fn outcome(&self, defence: Defence) -> Result<Outcome, Error> {
        let (mut problem, mut plan) = (self.problem.clone(), self.plan.clone());
        let mut sums = self.epoch(&problem, &plan, defence, Sums::default())?;
        let mut refused: Vec<(usize, usize)> = Vec::new();
        for _ in 1..EPOCHS {
            if sums.refused.is_empty() {
                break;
            }
            refused.extend(&sums.refused);
            let links = sums.refused.iter();
            problem = links.fold(problem, |problem, &(from, to)| problem.without_link(from, to));
            problem = problem.with_disputes(refused.iter().copied());
            let mut observer = |_: &_| self.run.watch.flow();
            match self.run.setup.plan(&problem, &mut observer) {
                planner::Outcome::Planned(next) => plan = *next,
                planner::Outcome::Infeasible(_) => break,
            }
            self.run.watch.check()?;
            sums = self.epoch(&problem, &plan, defence, sums)?;
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let share =
            |[heard, refused]: [usize; 2]| (heard > 0).then(|| refused as f64 / heard as f64);
        Ok(Outcome {
            seed: self.run.setup.seed,
            lie: self.lie,
            liars: self.liars.len(),
            defence,
            accuracy: mean(&sums.accuracies),
            triggered: (!sums.triggered.is_empty()).then(|| mean(&sums.triggered)),
            refused: share(sums.liars),
            wrongly_refused: share(sums.honest),
            energy: sums.joules / sums.planned_joules,
        })
    }

    /// What comes of one plan. Only refusals are counted on from those of the epochs before.
    fn epoch(
        &self,
        problem: &Problem,
        plan: &Plan,
        defence: Defence,
        before: Sums,
    ) -> Result<Sums, Error> {
        let (liars, honest) = (before.liars, before.honest);
        let Sent { models, refused } = self.hand_on(problem, plan, defence == Defence::None)?;
        let models = Models::new(models);
        let mut sums = Sums { liars, honest, refused, ..Sums::default() };
        let witnesses = match defence {
            Defence::None => Vec::new(),
            _ => problem.witnesses(&plan.roles, &plan.links, defence.liars()),
        };
        let examinations = match defence {
            Defence::None => Vec::new(),
            _ => problem.examinations(&plan.links, &plan.handovers, &witnesses),
        };
        let joules = |from: usize, to: usize| problem.link_energy(from, to).unwrap_or(0.0);
        let of_witnesses = witnesses.iter().map(|w| joules(w.from, w.to));
        let of_examiners = examinations.iter().map(|one| joules(one.from, one.to));
        sums.planned_joules = plan.joules(problem).unwrap_or(0.0);
        sums.joules = sums.planned_joules + of_witnesses.chain(of_examiners).sum::<f64>();
        for Examination { to, from } in examinations {
            let is_refused = || self.refuses_as_examiner(&models, problem, plan, [from, to]);
            if !self.liars.contains(&to) && is_refused() {
                sums.refused.push((from, to));
            }
        }
        // What liars make of models that they get is nobody's loss.
        for to in plan.with_role(Role::Target).filter(|to| !self.liars.contains(to)) {
            let witnesses = witnesses.iter().filter(|w| w.to == to).map(|w| (w.from, 0.0));
            let links = plan.incoming(to).iter().map(|link| (link.from, link.weight));
            let senders: Vec<(usize, f64)> = links.chain(witnesses).collect();
            let weights = match defence {
                Defence::None => senders.iter().map(|(_, weight)| *weight).collect(),
                _ => self.checked(&models, problem, to, &senders, defence, &mut sums),
            };
            // Devices with labels are targets only where a liar has them.
            if self.run.fleet.devices[to].labels.is_empty() {
                self.serve(&models, to, &senders, &weights, &mut sums);
            }
        }
        Ok(sums)
    }

    /// The weights of models at a target once it has checked them. One with labels has a model of its own to compare them with.
    fn checked(
        &self,
        models: &Models,
        problem: &Problem,
        to: usize,
        senders: &[(usize, f64)],
        defence: Defence,
        sums: &mut Sums,
    ) -> Vec<f64> {
        let device = &self.run.fleet.devices[to];
        let known = self.known(to, defence);
        let samples = compared(device.samples(), &known);
        let heard = |from: usize, weight: f64, claim: Claim| {
            let said = models.say(self.run, from, to).of_all(&samples);
            let doubt = doubt(&said).unwrap_or_default() - self.modesty(models, from);
            Heard { classes: said.classes().collect(), doubt, weight, claim }
        };
        let claim = |from: usize| problem.claim(from, to).unwrap_or(Claim::NOTHING);
        let sent = senders.iter().map(|&(from, weight)| heard(from, weight, claim(from)));
        let own =
            problem.own_claim(to).map(|claim| Heard::own(heard(to, 0.0, claim).classes, claim));
        let known = among_compared(&samples, &known);
        let found = trust_sent(sent.collect(), own, true, &known);
        for (at, &(from, _)) in senders.iter().enumerate() {
            let is_refused = found.refused.contains(&at);
            let lies = self.liars.contains(&from);
            let counts = if lies { &mut sums.liars } else { &mut sums.honest };
            counts[0] += 1;
            counts[1] += usize::from(is_refused);
            sums.refused.extend(is_refused.then_some((from, to)));
        }
        found.weights
    }

    /// Whether the second device refuses the model of the first as targets get it, by its labels.
    fn refuses_as_examiner(
        &self,
        models: &Models,
        problem: &Problem,
        plan: &Plan,
        [from, to]: [usize; 2],
    ) -> bool {
        let (setup, device) = (&self.run.setup, &self.run.fleet.devices[to]);
        let standard = Standard::of_examiner(problem, &plan.handovers, from, to);
        let inputs = &device.inputs[..device.labels.len() * setup.shape.len()];
        let trial =
            |model: &Params| Trial::of(&predict(&setup.spec, model, inputs), &device.labels);
        let [sent, own] =
            [&models.models[from], &self.models[to]].map(|m| m.as_ref().and_then(trial));
        standard.verdict(sent, own) == Verdict::Refused
    }

    /// How much more the model of a device doubts than it errs on the labels that it held out. A liar has none to show.
    fn modesty(&self, models: &Models, from: usize) -> f64 {
        let labels = &self.run.fleet.devices[from].labels;
        if self.liars.contains(&from) || labels.is_empty() {
            return 0.0;
        }
        let held = self.run.setup.rows(Place::new(from), labels.len()).held;
        let truth: Vec<Class> = held.iter().map(|&row| labels[row]).collect();
        Tried::alone(Trial::of(&models.say(self.run, from, from).of_all(&held), &truth)).modesty()
    }

    /// What one target makes of the models that it gets.
    fn serve(
        &self,
        models: &Models,
        target: usize,
        senders: &[(usize, f64)],
        weights: &[f64],
        sums: &mut Sums,
    ) {
        let device = &self.run.fleet.devices[target];
        let said = senders.iter().map(|(from, _)| models.say(self.run, *from, target));
        let said: Vec<&Predictions> = said.collect();
        let how = self.run.setup.combine;
        let mixed = |said: &[&Predictions]| {
            how.mixed(&said.iter().copied().zip(weights.iter().copied()).collect::<Vec<_>>())
        };
        let Some((truth, mixture)) = device.truth.as_ref().zip(mixed(&said)) else { return };
        sums.accuracies.push(mixture.accuracy(truth));
        if self.lie == Some(Lie::Backdoor) {
            let (mut inputs, shape) = (device.inputs.to_vec(), self.run.setup.shape);
            inputs.chunks_exact_mut(shape.len()).for_each(|picture| mark(picture, shape));
            let said: Vec<Predictions> =
                senders.iter().map(|(from, _)| models.say_of(self.run, *from, &inputs)).collect();
            let Some(marked) = mixed(&said.iter().collect::<Vec<_>>()) else { return };
            let others = marked.classes().zip(truth).filter(|(_, truth)| **truth != TRIGGERED);
            let (all, given) = others.fold((0, 0), |(all, given), (class, _)| {
                (all + 1, given + usize::from(class == TRIGGERED))
            });
            sums.triggered
                .push(f64::from(u32::try_from(given).unwrap_or(0)) / f64::from(all.max(1)));
        }
    }

    /// The labels that a target knows: its own, none, or ten at equal steps.
    fn known(&self, target: usize, defence: Defence) -> Vec<Known> {
        let device = &self.run.fleet.devices[target];
        if !device.labels.is_empty() {
            return device.labels.iter().copied().enumerate().collect();
        }
        let truth = device.truth.as_ref();
        let Some(truth) = truth.filter(|_| defence == Defence::Labels) else { return Vec::new() };
        let step = (truth.len() / LABELS).max(1);
        (0..truth.len()).step_by(step).take(LABELS).map(|sample| (sample, truth[sample])).collect()
    }
}

impl Models {
    fn new(models: Vec<Option<Params>>) -> Models {
        let n = models.len();
        let said = (0..n).map(|_| (0..n).map(|_| OnceLock::new()).collect()).collect();
        Models { models, said }
    }

    /// What a device's model says of a target's samples.
    fn say(&self, run: &SeedRun<'_>, from: usize, target: usize) -> &Predictions {
        let inputs = &run.fleet.devices[target].inputs;
        self.said[from][target].get_or_init(|| self.say_of(run, from, inputs))
    }

    /// What a device's model says of inputs. Only devices with labels send models.
    fn say_of(&self, run: &SeedRun<'_>, from: usize, inputs: &[f32]) -> Predictions {
        let spec = &run.setup.spec;
        match &self.models[from] {
            Some(model) => predict(spec, model, inputs),
            None => predict(spec, &Params::zeros(spec), inputs),
        }
    }
}
