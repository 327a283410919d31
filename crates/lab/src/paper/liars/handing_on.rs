//! Models that sources hand on while some of them lie.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use stlf_learn::Params;
use stlf_learn::evaluate::predict;
use stlf_method::expectation::Trial;
use stlf_method::handed::{Standard, Verdict};
use stlf_planning::plan::{Leg, Way, legs, way_to_targets};
use stlf_planning::{Plan, Problem};

use super::outcome::Deceit;
use crate::Error;
use crate::stages::SeedRun;

/// What devices made of models that were handed to them. Many lies and defences have the same models on the way.
#[derive(Default)]
pub(super) struct Trainings {
    made: Mutex<HashMap<(usize, Way, u64), Params>>,
}

/// The models of a plan as they go to targets, and the links over which a source refused one.
pub(super) struct Sent {
    pub(super) models: Vec<Option<Params>>,
    pub(super) refused: Vec<(usize, usize)>,
}

impl Trainings {
    fn of(&self, run: &SeedRun<'_>, to: usize, way: Way, handed: &Params) -> Result<Params, Error> {
        let mut hasher = DefaultHasher::new();
        handed.iter().for_each(|p| p.to_bits().hash(&mut hasher));
        let key = (to, way, hasher.finish());
        let known = || self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = known().get(&key) {
            return Ok(made.clone());
        }
        let trained = run.train_on(to, way, handed, &mut || run.watch.flow())?;
        known().insert(key, trained.clone());
        Ok(trained)
    }
}

impl Deceit<'_> {
    /// The models of a plan after its hand-overs. Honest sources refuse what their labels contradict, unless all believe everything.
    pub(super) fn hand_on(
        &self,
        problem: &Problem,
        plan: &Plan,
        believe_all: bool,
    ) -> Result<Sent, Error> {
        let (run, devices) = (self.run, &self.run.fleet.devices);
        let own = self.models.iter().enumerate();
        let mut sent: BTreeMap<(usize, Way), Params> = own
            .filter_map(|(device, model)| Some(((device, Way::First), model.clone()?)))
            .collect();
        let mut refused = Vec::new();
        for leg in legs(&plan.handovers, &plan.links) {
            let (from, to) = (leg.handover.from, leg.handover.to);
            let Some(handed) = sent.get(&(from, leg.sent)) else { continue };
            let lies = self.liars.contains(&to);
            let instead = sent.get(&(to, Way::First));
            let verdict = || self.verdict(problem, plan, &leg, handed, instead);
            let made = match (self.lie.filter(|_| lies), instead) {
                (None, Some(own)) if !believe_all && verdict() == Verdict::Refused => {
                    refused.push((from, to));
                    own.clone()
                }
                (Some(lie), Some(own)) if !lie.turns() => own.clone(),
                (lie, _) => {
                    let trained = self.trainings.of(run, to, leg.taken, handed)?;
                    let labels = &devices[to].labels;
                    let honest = run.setup.handed_on(handed, &trained, labels, leg.ring);
                    lie.map_or_else(|| honest.clone(), |lie| lie.turned(run, &honest))
                }
            };
            sent.insert((to, leg.taken), made);
        }
        let way = |device: usize| {
            let way = way_to_targets(&plan.handovers, device);
            if sent.contains_key(&(device, way)) { way } else { Way::First }
        };
        let models = (0..devices.len()).map(|device| sent.get(&(device, way(device))).cloned());
        Ok(Sent { models: models.collect(), refused })
    }

    /// Whether a source believes the model that is handed to it, where it would send this instead.
    fn verdict(
        &self,
        problem: &Problem,
        plan: &Plan,
        leg: &Leg,
        handed: &Params,
        instead: Option<&Params>,
    ) -> Verdict {
        let to = leg.handover.to;
        let (setup, device) = (&self.run.setup, &self.run.fleet.devices[to]);
        let classes = setup.spec.output().len();
        let standard = Standard::of_leg(problem, &plan.handovers, leg, classes);
        let inputs = &device.inputs[..device.labels.len() * setup.shape.len()];
        let trial =
            |model: &Params| Trial::of(&predict(&setup.spec, model, inputs), &device.labels);
        let own = instead.filter(|_| standard.compares()).and_then(trial);
        standard.verdict(trial(handed), own)
    }
}
