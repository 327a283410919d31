//! One seed: how a fleet lives through all steps under each policy.

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use stlf_config::model_bytes;
use stlf_learn::Params;
use stlf_learn::evaluate::{Predictions, predict};
use stlf_method::divergence::sketch::{self, Sketch, agreed_features};
use stlf_method::divergence::{self, Features, drift::GoesBy};
use stlf_method::expectation::doubt;
use stlf_method::trust::{Heard, compared, trust};
use stlf_planning::plan::Plan;
use stlf_planning::planner::Outcome;
use stlf_planning::problem::Links;
use stlf_planning::witness::Claim;
use stlf_planning::{Device, Problem, Role};
use stlf_protocol::{Place, Setup};

use super::windows::{Held, Windows};
use crate::Error;
use crate::watch::{Stage, Watch};

/// What the devices of a fleet do when their data drift.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Policy {
    /// They measure, plan and train once, and keep that for ever.
    Once,
    /// They do so again at every step.
    Always,
    /// Those do so whose data have changed in a way that matters, as soon as they have.
    WhenItMatters,
}

impl Policy {
    pub(super) const ALL: [Policy; 3] = [Policy::Once, Policy::Always, Policy::WhenItMatters];

    pub(super) fn name(self) -> &'static str {
        match self {
            Policy::Once => "once",
            Policy::Always => "at every step",
            Policy::WhenItMatters => "when it matters",
        }
    }
}

/// A step of a fleet under a policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct StepRow {
    pub(super) fleet: String,
    pub(super) seed: u64,
    pub(super) policy: String,
    pub(super) step: usize,
    /// The mean over the devices without labels, on the rows that they hold at this step.
    pub(super) accuracy: f64,
    pub(super) worst_device: f64,
    /// The number of the batch that the middle one of these rows is of, from 1; the mean over these devices.
    pub(super) batch: f64,
    /// Whether the fleet made a plan at this step.
    pub(super) planned: bool,
    /// Devices that published new means and, where they have labels, trained.
    pub(super) renewed: usize,
    /// How many of these trained a model.
    pub(super) trained: usize,
    /// What all devices sent to measure.
    pub(super) measuring_bytes: u64,
    /// The number of models that were sent at this step.
    pub(super) models: usize,
    /// All bytes and joules, of measuring and of models.
    pub(super) bytes: u64,
    pub(super) joules: f64,
    /// Looks at a device whose rows were all of the batch that all the published ones were of, and how many of them were alarms; the same
    /// where at least half of the rows were of later batches.
    pub(super) looks_alike: usize,
    pub(super) alarms_alike: usize,
    pub(super) looks_apart: usize,
    pub(super) alarms_apart: usize,
}

/// A fleet of one seed with all that it ever holds.
pub(super) struct Lives<'a> {
    setup: &'a Setup,
    watch: &'a Watch<'a>,
    windows: &'a Windows<'a>,
    /// What each device holds at each step, `[device][step]`.
    held: Vec<Vec<Held>>,
    /// By device and step, of those with labels: the model as it is sent, and ε̂.
    models: BTreeMap<(usize, usize), (Params, f64)>,
    /// K, the energy of sending a model, of all links, in joules.
    energies: Vec<f64>,
    settings: sketch::Settings,
    features: Features,
}

/// What a fleet goes by: a plan of what devices had when they last took part, by their steps.
struct Agreed {
    since: Vec<usize>,
    plan: Plan,
    /// What every device goes by.
    goes_by: Vec<GoesBy>,
    /// The senders of every target's models with the weights that these have there.
    mixtures: BTreeMap<usize, Vec<(usize, f64)>>,
}

impl<'a> Lives<'a> {
    /// Trains all models that any policy needs.
    pub(super) fn new(
        setup: &'a Setup,
        windows: &'a Windows<'a>,
        watch: &'a Watch<'a>,
    ) -> Result<Lives<'a>, Error> {
        let devices = 0..windows.devices();
        let of = |device: usize| -> Result<Vec<Held>, Error> {
            (0..windows.steps).map(|step| windows.held(device, step)).collect()
        };
        let held: Vec<Vec<Held>> = devices.clone().map(of).collect::<Result<_, Error>>()?;
        let labeled = devices.filter(|&device| windows.is_labeled(device));
        let needed: Vec<(usize, usize)> = labeled
            .flat_map(|device| (0..windows.steps).map(move |step| (device, step)))
            .filter(|&(device, step)| windows.since(device, step) == step)
            .collect();
        let count = watch.counter(Stage::Train, needed.len());
        let first = Arc::new(setup.first_model());
        let train = |&(device, step): &(usize, usize)| {
            let (own, place) = (&held[device][step], Place::new(device));
            let rows = setup.rows(place, own.classes.len());
            let learner = setup.built_in(first.clone(), own.inputs.clone(), own.classes.clone());
            let lesson = setup.lesson(place, &rows, None);
            let trained = learner.train(lesson, &mut |_| watch.flow())?;
            let model = trained.ok_or(Error::Stopped)?;
            let said = learner.predict(&model, rows.measured(), &mut |_| watch.flow())?;
            let said = said.ok_or(Error::Stopped)?;
            let error = rows.own_error(&said, &own.classes, 0, setup.unlabeled_as).source_error;
            count.one()?;
            Ok(((device, step), (setup.sent(&model, &own.classes), error)))
        };
        let models: BTreeMap<_, _> = needed.par_iter().map(train).collect::<Result<_, Error>>()?;
        let divergence::Settings::Sketch(settings) = setup.divergence else {
            let message = "drift is measured by means";
            return Err(stlf_planning::Error::other("divergence.estimator", message).into());
        };
        let width = settings.bandwidth.known();
        let (embedding, count) = (settings.embedding, settings.features);
        let seed = setup.divergence_seed();
        let features = agreed_features(&[width], setup.shape, embedding, count, seed)?;
        let energies = setup.energies(windows.devices());
        Ok(Lives { setup, watch, windows, held, models, energies, settings, features })
    }

    /// All steps of the fleet of this name under a policy.
    pub(super) fn under(&self, policy: Policy, fleet: &str) -> Result<Vec<StepRow>, Error> {
        let mut rows = Vec::new();
        let mut agreed: Option<Agreed> = None;
        for step in 0..self.windows.steps {
            let mut row = StepRow { fleet: fleet.to_owned(), ..self.row(policy, step) };
            let now: Vec<usize> =
                (0..self.held.len()).map(|device| self.windows.since(device, step)).collect();
            let since = match (&agreed, policy) {
                (None, _) | (_, Policy::Always) => now,
                (Some(agreed), Policy::Once) => agreed.since.clone(),
                (Some(agreed), Policy::WhenItMatters) => self.looked(agreed, &now, &mut row),
            };
            let is_new = agreed.as_ref().is_none_or(|agreed| agreed.since != since);
            if is_new || policy == Policy::Always {
                let next = self.agree(since)?;
                self.count(agreed.as_ref(), &next, &mut row);
                agreed = Some(next);
            }
            if let Some(agreed) = &agreed {
                self.judge(agreed, step, &mut row);
            }
            rows.push(row);
        }
        Ok(rows)
    }

    fn row(&self, policy: Policy, step: usize) -> StepRow {
        StepRow {
            fleet: String::new(),
            seed: self.setup.seed,
            policy: policy.name().to_owned(),
            step: step + 1,
            accuracy: f64::NAN,
            worst_device: f64::NAN,
            batch: f64::NAN,
            planned: false,
            renewed: 0,
            trained: 0,
            measuring_bytes: 0,
            models: 0,
            bytes: 0,
            joules: 0.0,
            looks_alike: 0,
            alarms_alike: 0,
            looks_apart: 0,
            alarms_apart: 0,
        }
    }

    /// Every device looks at its own data. Those whose change matters take part with what they have now, the others with what they had.
    fn looked(&self, agreed: &Agreed, now: &[usize], row: &mut StepRow) -> Vec<usize> {
        let look = |device: usize| {
            let (before, now) = (agreed.since[device], now[device]);
            let [then, own] = [before, now].map(|step| &self.held[device][step]);
            let matters = agreed.goes_by[device].change(&own.inputs).matters();
            let is_one_batch = own.batches.first == own.batches.last;
            if before != now && then.batches == own.batches && is_one_batch {
                row.looks_alike += 1;
                row.alarms_alike += usize::from(matters);
            }
            if then.batches.last < own.batches.middle {
                row.looks_apart += 1;
                row.alarms_apart += usize::from(matters);
            }
            if matters { now } else { before }
        };
        (0..now.len()).map(look).collect()
    }

    /// Measures, plans and combines with what devices had at these steps.
    fn agree(&self, since: Vec<usize>) -> Result<Agreed, Error> {
        let setup = self.setup;
        let n = since.len();
        let held: Vec<&Held> =
            since.iter().zip(&self.held).map(|(&step, of_device)| &of_device[step]).collect();
        let inputs: Vec<&[f32]> = held.iter().map(|held| &held.inputs[..]).collect();
        let mut observer = |_: divergence::Progress| self.watch.flow();
        let (seed, shape) = (setup.divergence_seed(), setup.shape);
        let measured = divergence::measure(&inputs, shape, &setup.divergence, seed, &mut observer)?;
        let measured = measured.ok_or(Error::Stopped)?;
        let device = |device: usize| {
            let samples = held[device].classes.len() as u64;
            let is_labeled = self.windows.is_labeled(device);
            Device {
                name: format!("d{}", device + 1),
                labeled: if is_labeled { samples } else { 0 },
                unlabeled: if is_labeled { 0 } else { samples },
                source_error: self.model(&since, device).map(|(_, error)| *error),
            }
        };
        let links = Links::from_rows(n, measured.matrix(), self.energies.clone());
        let problem = setup.problem((0..n).map(device).collect(), links, Vec::new())?;
        let flow = self.watch.within(setup.planning);
        let plan = match setup.plan(&problem, &mut |_| flow()) {
            Outcome::Planned(plan) => *plan,
            Outcome::Infeasible(reason) => {
                return Err(Error::Infeasible { seed: setup.seed, reason: reason.to_string() });
            }
        };
        self.watch.check()?;
        let exact = |_: &Sketch| [0; 32];
        let (features, settings) = (&self.features, self.settings);
        let goes_by = inputs.iter().map(|inputs| {
            let published = Sketch::new(features, inputs, &settings, exact);
            GoesBy::new(features.clone(), settings, published, inputs, true)
        });
        let goes_by = goes_by.collect();
        let targets = plan.with_role(Role::Target);
        let mixtures = targets
            .map(|target| (target, self.believed(&since, &plan, &problem, target, held[target])))
            .collect();
        Ok(Agreed { since, plan, goes_by, mixtures })
    }

    fn model(&self, since: &[usize], device: usize) -> Option<&(Params, f64)> {
        self.models.get(&(device, since[device]))
    }

    /// The models that a target believes of those that it gets, with their weights.
    fn believed(
        &self,
        since: &[usize],
        plan: &Plan,
        problem: &Problem,
        target: usize,
        held: &Held,
    ) -> Vec<(usize, f64)> {
        let links = plan.incoming(target);
        let samples = compared(held.classes.len(), &[]);
        let heard: Option<Vec<Heard>> = links
            .iter()
            .map(|link| {
                let (model, _) = self.model(since, link.from)?;
                let said = predict(&self.setup.spec, model, &held.inputs).of_all(&samples);
                let (doubt, weight) = (doubt(&said).unwrap_or_default(), link.weight);
                let claim = problem.claim(link.from, target).unwrap_or(Claim::NOTHING);
                Some(Heard { classes: said.classes().collect(), doubt, weight, claim })
            })
            .collect();
        let weights = heard.map(|heard| trust(&heard, &[]).weights).unwrap_or_default();
        links.iter().map(|link| link.from).zip(weights).collect()
    }

    /// Counts what the fleet did and sent to come from the one to the other.
    fn count(&self, before: Option<&Agreed>, next: &Agreed, row: &mut StepRow) {
        let n = next.since.len();
        let model_bytes = model_bytes(&self.setup.spec);
        let joules = |from: usize, to: usize| self.energies[from * n + to];
        row.planned = true;
        for device in 0..n {
            let is_same = before.is_some_and(|before| before.since[device] == next.since[device]);
            let bytes = match is_same {
                true => self.settings.bytes_unchanged(n),
                false => self.settings.bytes(n),
            };
            row.renewed += usize::from(!is_same);
            row.trained += usize::from(!is_same && self.windows.is_labeled(device));
            row.measuring_bytes += bytes;
            let links = (0..n).filter(|&to| to != device).map(|to| joules(device, to));
            let mean = links.sum::<f64>() / (n as f64 - 1.0);
            row.joules += mean * 8.0 * bytes as f64 / self.setup.model_bits;
        }
        for link in &next.plan.links {
            // A target has the model if it got the same one over the same link last time.
            let has = before.is_some_and(|before| {
                let links = before.plan.incoming(link.to);
                before.since[link.from] == next.since[link.from]
                    && links.iter().any(|known| known.from == link.from)
            });
            if !has {
                row.models += 1;
                row.joules += joules(link.from, link.to);
            }
        }
        row.bytes = row.measuring_bytes + row.models as u64 * model_bytes;
    }

    /// How good the mixtures are on what the devices without labels hold at a step.
    fn judge(&self, agreed: &Agreed, step: usize, row: &mut StepRow) {
        let unlabeled = (0..self.held.len()).filter(|&device| !self.windows.is_labeled(device));
        let (mut accuracies, mut batches) = (Vec::new(), Vec::new());
        for device in unlabeled {
            let held = &self.held[device][self.windows.since(device, step)];
            let members = agreed.mixtures.get(&device).into_iter().flatten();
            let said: Vec<(Predictions, f64)> = members
                .filter_map(|&(from, weight)| {
                    let (model, _) = self.model(&agreed.since, from)?;
                    Some((predict(&self.setup.spec, model, &held.inputs), weight))
                })
                .collect();
            let parts: Vec<(&Predictions, f64)> = said.iter().map(|(p, w)| (p, *w)).collect();
            let mixed = self.setup.combine.mixed(&parts);
            accuracies.push(mixed.map_or(0.0, |mixed| mixed.accuracy(&held.classes)));
            batches.push(1.0 + held.batches.middle as f64);
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        row.accuracy = mean(&accuracies);
        row.worst_device = accuracies.iter().copied().fold(f64::INFINITY, f64::min);
        row.batch = mean(&batches);
    }
}
