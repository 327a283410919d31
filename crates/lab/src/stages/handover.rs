//! Models that sources hand on: each is trained on where it comes to, with labels that no other device sees.

use std::collections::{BTreeMap, BTreeSet};

use stlf_learn::Params;
use stlf_method::expectation::{Trial, Tried};
use stlf_method::handed::{Standard, Verdict};
use stlf_method::method::Method;
use stlf_planning::device::Role;
use stlf_planning::plan::{Handover, Leg, Way, handed_from, legs, route, times, way_to_targets};

use crate::baselines::Assignment;
use rayon::prelude::*;

use super::expectation::TriedModels;
use super::transfer::Transfer;
use super::trust::is_ours;
use crate::record::{RefusedRow, RelayRow, Row};
use crate::{Error, Stage};

/// The name of the table of who hands on to whom, and what targets get.
pub const TABLE: &str = "relays.csv";

/// Models that a source refused; absent if there is none.
pub const REFUSED: &str = "refused.csv";

/// The models that were handed on.
const FOLDER: &str = "relayed";

/// What a source sends after one leg.
struct Sent {
    of: (usize, Way),
    model: Params,
    tried: Tried,
    /// If that is not what it was handed.
    refused: Option<RefusedRow>,
}

/// What all hand-overs lead to.
struct HandedOn {
    /// The model of each device as the device sends it.
    models: Vec<Option<Params>>,
    /// The trials that go along with every model that is sent.
    tried: TriedModels,
    refused: Vec<RefusedRow>,
}

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
        let HandedOn { models, tried, refused } = self.hand_on(assigned)?;
        let mut handed_on =
            Transfer::of(self.run, models, self.problem, self.measuring, &self.plan);
        (handed_on.tried, handed_on.refused) = (tried, refused);
        handed_on.trained = self.trained;
        Ok(Some(handed_on))
    }

    /// How a method serves its targets, hand-overs and all.
    pub(super) fn rows_with_handovers(
        &self,
        method: Method,
        assigned: &Assignment,
    ) -> Result<Vec<Row>, Error> {
        let handed_on = self.after_handovers(assigned)?;
        let sent = handed_on.as_ref().unwrap_or(self);
        let mut rows = sent.rows(method, assigned)?;
        self.count_handovers(&mut rows, assigned);
        self.count_examinations(method, &mut rows, assigned);
        if is_ours(method) {
            sent.count_trials(method, assigned, &mut rows, &sent.all_tried()?);
        }
        Ok(rows)
    }

    /// Counts hand-overs, each as a link of the first target that profits from it.
    pub(super) fn count_handovers(&self, rows: &mut [Row], assigned: &Assignment) {
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
    }

    /// What comes of all hand-overs; what is trained is kept at once.
    fn hand_on(&self, assigned: &Assignment) -> Result<HandedOn, Error> {
        let run = self.run;
        let folder = run.folder.folder(FOLDER)?;
        let legs = legs(&assigned.handovers, &assigned.links);
        let count = run.watch.counter(Stage::Relay, legs.len());
        // What a device makes of a model that it is handed, kept at once.
        let train = |handed: &Params, to: usize, way: Way| -> Result<Params, Error> {
            let again = if way == Way::Second { "-again" } else { "" };
            let name = format!("{}{again}.safetensors", run.fleet.devices[to].name);
            let params = match folder.read(&name)? {
                Some(file) => Params::from_safetensors(run.layout(), &file)
                    .map_err(|e| folder.broken(&name, &e.to_string()))?,
                None => {
                    let params = run.train_on(to, way, handed, &mut || run.goes_on(&count))?;
                    folder.write(&name, &params.to_safetensors(run.layout())?)?;
                    params
                }
            };
            count.one()?;
            Ok(params)
        };
        let own = self.models.iter().enumerate();
        let mut sent: BTreeMap<(usize, Way), Params> = own
            .filter_map(|(device, model)| Some(((device, Way::First), model.clone()?)))
            .collect();
        let (mut tried, mut refused) = (self.all_tried()?, Vec::new());
        // Models that have been handed on equally often do not wait for each other.
        for wave in legs.chunk_by(|a, b| a.before == b.before) {
            let made: Vec<Sent> = wave
                .par_iter()
                .filter_map(|leg| Some((leg, sent.get(&(leg.handover.from, leg.sent))?)))
                .map(|(leg, handed)| {
                    let (to, from) = (leg.handover.to, (leg.handover.from, leg.sent));
                    let of = (to, leg.taken);
                    let labels = &run.fleet.devices[to].labels;
                    let instead = sent.get(&(to, Way::First));
                    let came = self.on_all_labels(handed, to)?;
                    let standard = Standard::of_leg(
                        self.problem,
                        &assigned.handovers,
                        leg,
                        run.setup.spec.output().len(),
                    );
                    let own = || match instead {
                        Some(own) => self.on_all_labels(own, to),
                        None => Ok(None),
                    };
                    let verdict = standard.judged(came, own)?;
                    let Verdict::Believed(as_handed) = verdict else {
                        let tried = tried.get(&(to, Way::First)).cloned().unwrap_or_default();
                        let refused = came.map(|trial| self.refused_row(leg, trial));
                        count.one()?;
                        return Ok(instead.map(|own| Sent {
                            of,
                            model: own.clone(),
                            tried,
                            refused,
                        }));
                    };
                    let trained = train(handed, to, leg.taken)?;
                    let model = run.setup.handed_on(handed, &trained, labels, leg.ring);
                    let before = tried.get(&from).cloned();
                    let as_sent = self.trial_of_sent(&model, to)?;
                    let tried = before.unwrap_or_default().handed_on(to, as_handed, as_sent);
                    Ok(Some(Sent { of, model, tried, refused: None }))
                })
                .filter_map(Result::transpose)
                .collect::<Result<_, Error>>()?;
            for made in made {
                sent.insert(made.of, made.model);
                tried.insert(made.of, made.tried);
                refused.extend(made.refused);
            }
        }
        let to_targets = |device| (device, way_to_targets(&assigned.handovers, device));
        let models = (0..self.models.len()).map(|device| sent.remove(&to_targets(device)));
        Ok(HandedOn { models: models.collect(), tried, refused })
    }

    /// How a model does on all labels of a device.
    pub(super) fn on_all_labels(&self, model: &Params, at: usize) -> Result<Option<Trial>, Error> {
        let all: Vec<usize> = (0..self.run.fleet.devices[at].labels.len()).collect();
        self.trial(model, at, &all)
    }

    fn refused_row(&self, leg: &Leg, Trial { labels, errors, .. }: Trial) -> RefusedRow {
        let [from, to] =
            [leg.handover.from, leg.handover.to].map(|device| self.problem.name(device).to_owned());
        RefusedRow { from, to, way: Some(leg.taken), labels, errors }
    }

    /// Returns the rows of what an assignment sends: hand-overs, then links.
    pub(super) fn table(&self, assigned: &Assignment) -> Vec<RelayRow> {
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
