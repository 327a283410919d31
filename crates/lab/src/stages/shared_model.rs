//! Methods after which all sources have one and the same model: rounds of FedAvg, and a network trained on pooled labels.

use rayon::prelude::*;
use stlf_data::Class;
use stlf_learn::Params;
use stlf_method::local_training::{Split, Training};
use stlf_method::method::Method;
use stlf_method::seeds::Draw;
use stlf_planning::device::Role;

use super::train::{MODELS, splits, warm_up};
use super::transfer::Transfer;
use crate::Error;
use crate::baselines::Assignment;
use crate::baselines::fedavg_rounds::Round;
use crate::record::Row;

impl Transfer<'_> {
    /// How FedAvg in rounds serves its targets. What the rounds send counts for the first target, so that a sum over targets is a total.
    pub(super) fn rows_after_rounds(&self, assigned: &Assignment) -> Result<Vec<Row>, Error> {
        let rounds = self.run.config.compare.rounds();
        let round = Round::new(self.problem, &assigned.roles)?;
        let shared = self.averaged_in_rounds(assigned, rounds)?;
        let mut rows = self.rows_with(Method::FedAvgRounds, assigned, &shared)?;
        if let Some(first) = rows.first_mut() {
            first.links += rounds * round.models;
            first.joules += rounds as f64 * round.joules;
            first.bytes += (rounds * round.models) as u64 * self.model_bytes();
        }
        Ok(rows)
    }

    /// Adds what the rounds before all training sent among the devices with labels: to the first target, so that a sum over targets is a total.
    pub(super) fn count_warm_up(&self, rows: &mut [Row]) -> Result<(), Error> {
        let rounds = self.run.config.training.warm_up_rounds;
        let Some(first) = rows.first_mut().filter(|_| rounds > 0) else { return Ok(()) };
        let trains = self.run.fleet.devices.iter().map(|device| !device.labels.is_empty());
        let roles: Vec<Role> =
            trains.map(|trains| if trains { Role::Source } else { Role::Target }).collect();
        let round = Round::among(self.problem, &roles).ok_or_else(|| {
            let what = "no device with labels has links to and from all others, which could average their models";
            stlf_planning::error::Error::missing("training.warm-up-rounds", what)
                .with_hint("leave it out")
        })?;
        first.warm_up_joules = rounds as f64 * round.joules;
        first.warm_up_bytes = (rounds * round.models) as u64 * self.model_bytes();
        Ok(())
    }

    /// How a network that was trained on all sources' labels serves the targets. It sends no model; data are not counted.
    pub(super) fn rows_of_pooled(&self, assigned: &Assignment) -> Result<Vec<Row>, Error> {
        let pooled = self.trained_on_all(assigned)?;
        let mut rows = self.rows_with(Method::Pooled, assigned, &pooled)?;
        for row in &mut rows {
            (row.links, row.joules, row.bytes) = (0, 0.0, 0);
        }
        Ok(rows)
    }

    /// The rows of a method whose sources all have this model.
    fn rows_with(
        &self,
        method: Method,
        assigned: &Assignment,
        shared: &Params,
    ) -> Result<Vec<Row>, Error> {
        let has = |role: &Role| (*role == Role::Source).then(|| shared.clone());
        let models = assigned.roles.iter().map(has).collect();
        Transfer::of(self.run, models, self.problem, self.measuring, assigned)
            .rows(method, assigned)
    }

    /// The last average of the sources' models, as it is sent to targets: in all rounds together a source trains as long as alone.
    fn averaged_in_rounds(&self, assigned: &Assignment, rounds: usize) -> Result<Params, Error> {
        let (run, splits) = (self.run, splits(self.run)?);
        let sources: Vec<usize> = assigned.with_role(Role::Source).collect();
        let mut shared = warm_up(run, &splits, &run.folder.folder(MODELS)?)?;
        for round in 0..rounds {
            let until = |round: usize| run.setup.training.steps * round / rounds;
            let training =
                Training { steps: until(round + 1) - until(round), ..run.setup.training };
            let local = |&source: &usize| -> Result<(Params, f64), Error> {
                let device = &run.fleet.devices[source];
                let seed = Draw::Training.seed(run.setup.seed, splits.len() * round + source);
                let (start, mut flow) = (shared.clone(), || run.watch.flow());
                let split = &splits[source];
                let trained = split.train(&run.setup.spec, start, training, seed, &mut flow)?;
                let own = trained.ok_or(Error::Stopped)?;
                let is_last = round + 1 == rounds;
                let sent = if is_last { run.setup.sent(&own, &device.labels) } else { own };
                Ok((sent, device.samples() as f64))
            };
            let locals: Vec<(Params, f64)> =
                sources.par_iter().map(local).collect::<Result<_, Error>>()?;
            shared = Params::average(locals.iter().map(|(params, weight)| (params, *weight)))?;
        }
        Ok(shared)
    }

    /// A network on the labels of all sources, trained for as many steps as all of them together.
    fn trained_on_all(&self, assigned: &Assignment) -> Result<Params, Error> {
        let (run, splits) = (self.run, splits(self.run)?);
        let sources: Vec<usize> = assigned.with_role(Role::Source).collect();
        let start = warm_up(run, &splits, &run.folder.folder(MODELS)?)?;
        let steps = run.setup.training.steps * sources.len();
        let training = Training { steps, ..run.setup.training };
        let first = sources.first().copied().unwrap_or_default();
        let seed = Draw::Training.seed(run.setup.seed, first);
        let split = Split::pooled(sources.iter().map(|&source| &splits[source]));
        let mut flow = || run.watch.flow();
        let trained = split.train(&run.setup.spec, start, training, seed, &mut flow)?;
        let labels: Vec<Class> = (sources.iter())
            .flat_map(|&source| &run.fleet.devices[source].labels)
            .copied()
            .collect();
        Ok(run.setup.sent(&trained.ok_or(Error::Stopped)?, &labels))
    }
}
