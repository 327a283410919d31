//! One seed with every lie and every defence.

use stlf_data::Class;
use stlf_learn::Params;
use stlf_learn::evaluate::{Predictions, predict};
use stlf_method::known::Known;
use stlf_method::trust::{Heard, among_compared, compared, trust};
use stlf_planning::device::Role;
use stlf_planning::witness::Claim;
use stlf_planning::{Plan, Problem, planner};

use super::lies::{Lie, TRIGGERED, mark};
use super::{DEVICES, cases};
use crate::Error;
use crate::stages::SeedRun;
use crate::stages::measure::measure;
use crate::stages::plan::problem;
use crate::stages::train::train;

/// What targets do about liars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Defence {
    /// They believe everything.
    None,
    /// They check what they receive by the plan.
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
struct Deceit<'a> {
    run: &'a SeedRun<'a>,
    lie: Option<Lie>,
    liars: Vec<usize>,
    models: Vec<Option<Params>>,
    problem: Problem,
    plan: Plan,
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
}

/// All outcomes of a seed.
pub(super) fn of_seed(run: &SeedRun<'_>) -> Result<Vec<Outcome>, Error> {
    let (trained, measured) = (train(run)?, measure(run)?);
    let sent: Vec<Option<Params>> = (run.fleet.devices.iter().zip(&trained.models))
        .map(|(device, model)| Some(run.setup.sent(model.as_ref()?, &device.labels)))
        .collect();
    let mut outcomes = Vec::new();
    for (lie, count) in cases() {
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
            continue;
        };
        run.watch.check()?;
        let deceit = Deceit { run, lie, liars, models, problem, plan: *plan };
        outcomes.extend(Defence::ALL.map(|defence| deceit.outcome(defence)));
    }
    Ok(outcomes)
}

impl Deceit<'_> {
    fn outcome(&self, defence: Defence) -> Outcome {
        let mut sums = Sums::default();
        let witnesses = self.problem.witnesses(&self.plan.roles, &self.plan.links, defence.liars());
        for target in self.plan.with_role(Role::Target) {
            // Devices with labels are targets only where a liar has them.
            if self.run.fleet.devices[target].labels.is_empty() {
                let witnesses = witnesses.iter().filter(|w| w.to == target).map(|w| w.from);
                self.serve(target, &witnesses.collect::<Vec<_>>(), defence, &mut sums);
            }
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let share =
            |[heard, refused]: [usize; 2]| (heard > 0).then(|| refused as f64 / heard as f64);
        Outcome {
            seed: self.run.setup.seed,
            lie: self.lie,
            liars: self.liars.len(),
            defence,
            accuracy: mean(&sums.accuracies),
            triggered: (!sums.triggered.is_empty()).then(|| mean(&sums.triggered)),
            refused: share(sums.liars),
            wrongly_refused: share(sums.honest),
            energy: sums.joules / sums.planned_joules,
        }
    }

    /// What one target makes of the models that it gets.
    fn serve(&self, target: usize, witnesses: &[usize], defence: Defence, sums: &mut Sums) {
        let device = &self.run.fleet.devices[target];
        let links = self.plan.incoming(target);
        let joules = |from: usize| self.problem.link_energy(from, target).unwrap_or(0.0);
        sums.planned_joules += links.iter().map(|link| joules(link.from)).sum::<f64>();
        let senders: Vec<(usize, f64)> = links
            .iter()
            .map(|link| (link.from, link.weight))
            .chain(witnesses.iter().map(|&from| (from, 0.0)))
            .collect();
        sums.joules += senders.iter().map(|(from, _)| joules(*from)).sum::<f64>();
        let said: Vec<Predictions> =
            senders.iter().map(|(from, _)| self.says(*from, &device.inputs)).collect();
        let mut weights: Vec<f64> = senders.iter().map(|(_, weight)| *weight).collect();
        if defence != Defence::None {
            let known = self.known(target, defence);
            let samples = compared(device.samples(), &known);
            let heard: Vec<Heard> = (senders.iter().zip(&said))
                .map(|(&(from, weight), said)| {
                    let classes: Vec<Class> = said.classes().collect();
                    let classes = samples.iter().map(|&sample| classes[sample]).collect();
                    let claim = self.problem.claim(from, target).unwrap_or(Claim::NOTHING);
                    Heard { classes, weight, claim }
                })
                .collect();
            let found = trust(&heard, &among_compared(&samples, &known));
            for (at, (from, _)) in senders.iter().enumerate() {
                let lies = self.liars.contains(from);
                let counts = if lies { &mut sums.liars } else { &mut sums.honest };
                counts[0] += 1;
                counts[1] += usize::from(found.refused.contains(&at));
            }
            weights = found.weights;
        }
        let how = self.run.setup.combine;
        let mixed = |said: &[Predictions]| {
            how.mixed(&said.iter().zip(weights.iter().copied()).collect::<Vec<_>>())
        };
        let Some((truth, mixture)) = device.truth.as_ref().zip(mixed(&said)) else { return };
        sums.accuracies.push(mixture.accuracy(truth));
        if self.lie == Some(Lie::Backdoor) {
            let (mut inputs, shape) = (device.inputs.clone(), self.run.setup.shape);
            inputs.chunks_exact_mut(shape.len()).for_each(|picture| mark(picture, shape));
            let said: Vec<Predictions> =
                senders.iter().map(|(from, _)| self.says(*from, &inputs)).collect();
            let Some(marked) = mixed(&said) else { return };
            let others = marked.classes().zip(truth).filter(|(_, truth)| **truth != TRIGGERED);
            let (all, given) = others.fold((0, 0), |(all, given), (class, _)| {
                (all + 1, given + usize::from(class == TRIGGERED))
            });
            sums.triggered
                .push(f64::from(u32::try_from(given).unwrap_or(0)) / f64::from(all.max(1)));
        }
    }

    /// The labels that a target knows: none, or ten at equal steps.
    fn known(&self, target: usize, defence: Defence) -> Vec<Known> {
        let truth = self.run.fleet.devices[target].truth.as_ref();
        let Some(truth) = truth.filter(|_| defence == Defence::Labels) else { return Vec::new() };
        let step = (truth.len() / LABELS).max(1);
        (0..truth.len()).step_by(step).take(LABELS).map(|sample| (sample, truth[sample])).collect()
    }

    /// What a device's model says of inputs; what a liar sends is its lie.
    fn says(&self, from: usize, inputs: &[f32]) -> Predictions {
        let spec = &self.run.setup.spec;
        match (&self.models[from], self.lie.filter(|_| self.liars.contains(&from))) {
            (Some(model), Some(lie)) => lie.says(self.run, model, inputs),
            (Some(model), None) => predict(spec, model, inputs),
            // Only devices with labels send models.
            (None, _) => predict(spec, &Params::zeros(spec), inputs),
        }
    }
}
