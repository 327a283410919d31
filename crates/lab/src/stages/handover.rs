//! Models that sources hand on: each is trained on where it comes to, with labels that no other device sees.

use std::collections::BTreeSet;

use stlf_learn::Params;
use stlf_method::method::Method;
use stlf_planning::device::Role;
use stlf_planning::plan::{Handover, route};
use stlf_protocol::Place;

use crate::baselines::Assignment;
use rayon::prelude::*;

use super::train::splits;
use super::transfer::Transfer;
use crate::record::{RelayRow, Row};
use crate::{Error, Stage};

/// Who hands on to whom, and what targets get.
pub const TABLE: &str = "relays.csv";

/// The models that were handed on.
const FOLDER: &str = "relayed";

impl Transfer<'_> {
    /// The same with models as they are after hand-overs; nothing where there are none.
    pub(super) fn after_handovers(
        &self,
        assigned: &Assignment,
    ) -> Result<Option<Transfer<'_>>, Error> {
        if assigned.handovers.is_empty() {
            return Ok(None);
        }
        let folder = &self.run.folder;
        let table = self.table(assigned);
        // Models of other hand-overs are no models of these.
        if folder.read_csv(TABLE)?.as_ref() != Some(&table) {
            folder.remove_folder(FOLDER)?;
            folder.write_csv(TABLE, &table)?;
        }
        let models = self.hand_on(assigned)?;
        Ok(Some(Transfer::of(self.run, models, self.problem, self.measuring, &self.plan)))
    }

    /// How a method serves its targets, hand-overs and all. A hand-over counts as a link of the first target that profits from it.
    pub(super) fn rows_with_handovers(
        &self,
        method: Method,
        assigned: &Assignment,
    ) -> Result<Vec<Row>, Error> {
        let handed_on = self.after_handovers(assigned)?;
        let mut rows = handed_on.as_ref().unwrap_or(self).rows(method, assigned)?;
        let mut seen = BTreeSet::new();
        for (row, target) in rows.iter_mut().zip(assigned.with_role(Role::Target)) {
            for link in assigned.incoming(target) {
                for hop in route(&assigned.handovers, link.from).windows(2) {
                    if seen.insert((hop[0], hop[1])) {
                        row.links += 1;
                        row.joules += self.problem.link_energy(hop[0], hop[1]).unwrap_or(0.0);
                        row.bytes += self.model_bytes();
                    }
                }
            }
        }
        Ok(rows)
    }

    /// The models after all hand-overs, as each device sends them; what is trained is kept at once.
    fn hand_on(&self, assigned: &Assignment) -> Result<Vec<Option<Params>>, Error> {
        let (run, splits) = (self.run, splits(self.run)?);
        let folder = run.folder.folder(FOLDER)?;
        let mut models = self.models.to_vec();
        let mut waves: Vec<Vec<(usize, usize)>> = Vec::new();
        for &Handover { from, to } in &assigned.handovers {
            let depth = route(&assigned.handovers, from).len() - 1;
            waves.resize_with(waves.len().max(depth + 1), Vec::new);
            waves[depth].push((from, to));
        }
        let count = run.watch.counter(Stage::Relay, waves.iter().map(Vec::len).sum());
        let train = |models: &[Option<Params>], from: usize, to: usize| {
            let device = &run.fleet.devices[to];
            let name = format!("{}.safetensors", device.name);
            let Some(start) = &models[from] else { return Ok((to, models[to].clone())) };
            let params = match folder.read(&name)? {
                Some(file) => Params::from_safetensors(&run.setup.spec, &file)
                    .map_err(|e| folder.broken(&name, &e.to_string()))?,
                None => {
                    let (handed, mut flow) = (start.clone(), || run.watch.flow());
                    let place = Place::new(to);
                    let trained = run.setup.train_on(place, &splits[to], handed, &mut flow)?;
                    let params = trained.ok_or(Error::Stopped)?;
                    folder.write(&name, &params.to_safetensors(&run.setup.spec)?)?;
                    params
                }
            };
            count.one()?;
            Ok((to, Some(run.setup.sent(&params, &device.labels))))
        };
        for wave in waves {
            let trained: Vec<(usize, Option<Params>)> = wave
                .par_iter()
                .map(|&(from, to)| train(&models, from, to))
                .collect::<Result<_, Error>>()?;
            trained.into_iter().for_each(|(to, model)| models[to] = model);
        }
        Ok(models)
    }

    fn table(&self, assigned: &Assignment) -> Vec<RelayRow> {
        let row = |from: usize, to: usize, weight: Option<f64>| RelayRow {
            from: self.problem.name(from).to_owned(),
            to: self.problem.name(to).to_owned(),
            weight,
            joules: self.problem.link_energy(from, to),
        };
        let hand_overs = assigned.handovers.iter().map(|h| row(h.from, h.to, None));
        let links = assigned.links.iter().map(|l| row(l.from, l.to, Some(l.weight)));
        hand_overs.chain(links).collect()
    }
}
