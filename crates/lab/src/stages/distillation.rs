//! KD3A: a target and all sources average their models in rounds, and the target learns what the sources agree on.

use rayon::prelude::*;
use stlf_learn::Params;
use stlf_learn::evaluate::{Predictions, predict};
use stlf_method::local_training::{Rows, Split, Training};
use stlf_method::method::Method;
use stlf_method::seeds::Draw;
use stlf_planning::device::Role;

use super::train::{splits, warm_up};
use super::transfer::Transfer;
use crate::baselines::Assignment;
use crate::baselines::kd3a::{Consensus, focus, gate, vote};
use crate::record::Row;
use crate::watch::Counter;
use crate::{Error, Stage};

/// A target among the sources that send to it.
struct Class<'t> {
    target: usize,
    sources: Vec<usize>,
    splits: &'t [Split],
    rounds: usize,
    count: &'t Counter<'t>,
}

impl Transfer<'_> {
    /// How KD3A serves its targets. In every round each source sends its model to the target and gets the average back.
    pub(super) fn rows_of_kd3a(&self, assigned: &Assignment) -> Result<Vec<Row>, Error> {
        let (run, rounds) = (self.run, self.run.config.compare.kd3a_rounds());
        let splits = splits(run)?;
        let start = warm_up(run, &splits, &run.folder.folder("models")?)?;
        let targets: Vec<usize> = assigned.with_role(Role::Target).collect();
        let count = run.watch.counter(Stage::Adapt, targets.len() * rounds);
        let rows = targets.par_iter().map(|&target| {
            let links = assigned.incoming(target);
            let sources: Vec<usize> = links.iter().map(|link| link.from).collect();
            let both_ways = |&source: &usize| {
                let joules = |from, to| self.problem.link_energy(from, to).unwrap_or(0.0);
                joules(source, target) + joules(target, source)
            };
            let joules = rounds as f64 * sources.iter().map(both_ways).sum::<f64>();
            let sent = rounds * 2 * sources.len();
            let class = Class { target, sources, splits: &splits, rounds, count: &count };
            let predictions = self.taught_together(&class, start.clone())?;
            let row = self.row(Method::Kd3a, assigned, target, Some(&predictions));
            Ok(Row { links: sent, joules, bytes: sent as u64 * self.model_bytes(), ..row })
        });
        rows.collect()
    }

    /// What the last average says of the target's samples. In all rounds together, everybody trains as long as a source alone.
    fn taught_together(&self, class: &Class<'_>, start: Params) -> Result<Predictions, Error> {
        let (run, spec) = (self.run, &self.run.setup.spec);
        let Class { target, sources, splits, rounds, count } = class;
        let inputs = &run.fleet.devices[*target].inputs;
        let samples = |device: usize| run.fleet.devices[device].samples() as f64;
        let all: f64 = sources.iter().map(|&source| samples(source)).sum();
        let own_share = samples(*target) / (samples(*target) + all);
        let mut shared = start;
        for round in 0..*rounds {
            let until = |round: usize| run.setup.training.steps * round / rounds;
            let training =
                Training { steps: until(round + 1) - until(round), ..run.setup.training };
            let train = |split: &Split, device: usize| -> Result<Params, Error> {
                let number = run.fleet.len() * round + device;
                let seed = Draw::Training.seed(run.setup.seed, number);
                let mut flow = || run.watch.flow();
                let trained = split.train(spec, shared.clone(), training, seed, &mut flow)?;
                trained.ok_or(Error::Stopped)
            };
            let models: Vec<Params> = (sources.par_iter())
                .map(|&source| train(&splits[source], source))
                .collect::<Result<_, Error>>()?;
            let said: Vec<Predictions> =
                models.iter().map(|model| predict(spec, model, inputs)).collect();
            let teachers: Vec<&Predictions> = said.iter().collect();
            let gate = gate(round, *rounds);
            let lesson = lesson(inputs, &vote(&teachers, gate));
            let own = match lesson.is_empty() {
                true => None,
                false => Some(train(&lesson, *target)?),
            };
            let sizes: Vec<f64> = sources.iter().map(|&source| samples(source)).collect();
            let left = if own.is_some() { 1.0 - own_share } else { 1.0 };
            let weights = focus(&teachers, &sizes, gate).into_iter().map(|weight| left * weight);
            let weighed = models.iter().zip(weights).chain(own.iter().map(|own| (own, own_share)));
            shared = Params::average(weighed)?;
            count.one()?;
        }
        Ok(predict(spec, &shared, inputs))
    }
}

/// The samples on which sources agree, each as often as sources support its class.
fn lesson(inputs: &[f32], votes: &[Consensus]) -> Split {
    let numbers = inputs.len() / votes.len().max(1);
    let taught = votes.iter().enumerate().flat_map(|(at, vote)| {
        let sample = (&inputs[at * numbers..(at + 1) * numbers], vote.class);
        std::iter::repeat_n(sample, vote.supporters)
    });
    let (inputs, labels): (Vec<&[f32]>, Vec<_>) = taught.unzip();
    let rows = Rows::new(labels.len(), 0.0, 0).trained;
    Split::of(&inputs.concat(), &labels, numbers, &rows)
}
