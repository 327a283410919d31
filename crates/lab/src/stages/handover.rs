//! Models that sources hand on: each is trained on where it comes to, with labels that no other device sees.

use std::collections::BTreeSet;

use stlf_learn::Params;
use stlf_method::method::Method;
use stlf_method::ring;
use stlf_planning::device::Role;
use stlf_planning::plan::{Handover, handed_from, is_on_ring, route, times};
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
                for to in route(&assigned.handovers, link.from) {
                    let Some(from) = handed_from(&assigned.handovers, to) else { continue };
                    if seen.insert(to) {
                        let sent =
                            times(&assigned.handovers, &assigned.links, Handover { from, to });
                        row.links += sent;
                        let joules = self.problem.link_energy(from, to).unwrap_or(0.0);
                        row.joules += sent as f64 * joules;
                        row.bytes += sent as u64 * self.model_bytes();
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
        let handovers = &assigned.handovers;
        let on_ring = |h: &&Handover| is_on_ring(handovers, h.to);
        let mut waves: Vec<Vec<(usize, usize)>> = Vec::new();
        for &Handover { from, to } in handovers.iter().filter(|h| !on_ring(h)) {
            let depth = route(handovers, from).len() - 1;
            waves.resize_with(waves.len().max(depth + 1), Vec::new);
            waves[depth].push((from, to));
        }
        let sends = |source: usize| assigned.links.iter().any(|link| link.from == source);
        let lasts = handovers.iter().filter(on_ring).map(|h| h.to).filter(|&last| sends(last));
        let rings: Vec<Vec<usize>> = lasts.map(|last| route(handovers, last)).collect();
        let sent = handovers.iter().map(|&h| times(handovers, &assigned.links, h)).sum();
        let count = run.watch.counter(Stage::Relay, sent);
        // A device's training of a model, kept at once, as the device sends it.
        let train = |handed: &Params, to: usize, again: bool| -> Result<Params, Error> {
            let device = &run.fleet.devices[to];
            let name = format!("{}{}.safetensors", device.name, if again { "-again" } else { "" });
            let params = match folder.read(&name)? {
                Some(file) => Params::from_safetensors(&run.setup.spec, &file)
                    .map_err(|e| folder.broken(&name, &e.to_string()))?,
                None => {
                    let (handed, mut flow) = (handed.clone(), || run.watch.flow());
                    let (place, split) = (Place::new(to), &splits[to]);
                    let trained = match again {
                        true => run.setup.train_again(place, split, handed, &mut flow)?,
                        false => run.setup.train_on(place, split, handed, &mut flow)?,
                    };
                    let params = trained.ok_or(Error::Stopped)?;
                    folder.write(&name, &params.to_safetensors(&run.setup.spec)?)?;
                    params
                }
            };
            count.one()?;
            Ok(run.setup.sent(&params, &device.labels))
        };
        let round = |order: &Vec<usize>| -> Result<Option<(usize, Params)>, Error> {
            let (Some(&last), Some(own)) = (order.last(), &models[order[0]]) else {
                return Ok(None);
            };
            let mut model = own.clone();
            for &source in &order[1..] {
                model = train(&model, source, false)?;
            }
            for (place, &source) in order.iter().enumerate() {
                let trained = train(&model, source, true)?;
                model = ring::mean(&model, &trained, ring::own_share(place, order.len()));
            }
            Ok(Some((last, model)))
        };
        let gone_round: Vec<(usize, Params)> = rings
            .par_iter()
            .filter_map(|order| round(order).transpose())
            .collect::<Result<_, _>>()?;
        gone_round.into_iter().for_each(|(last, model)| models[last] = Some(model));
        for wave in waves {
            let trained: Vec<(usize, Option<Params>)> = wave
                .par_iter()
                .map(|&(from, to)| match &models[from] {
                    Some(handed) => Ok((to, Some(train(handed, to, false)?))),
                    None => Ok((to, models[to].clone())),
                })
                .collect::<Result<_, Error>>()?;
            trained.into_iter().for_each(|(to, model)| models[to] = model);
        }
        Ok(models)
    }

    fn table(&self, assigned: &Assignment) -> Vec<RelayRow> {
        let row = |from: usize, to: usize, weight: Option<f64>, sent: usize| RelayRow {
            from: self.problem.name(from).to_owned(),
            to: self.problem.name(to).to_owned(),
            weight,
            joules: self.problem.link_energy(from, to).map(|joules| sent as f64 * joules),
        };
        let sent = |h: &Handover| times(&assigned.handovers, &assigned.links, *h);
        let hand_overs = assigned.handovers.iter().map(|h| row(h.from, h.to, None, sent(h)));
        let links = assigned.links.iter().map(|l| row(l.from, l.to, Some(l.weight), 1));
        hand_overs.chain(links).collect()
    }
}
