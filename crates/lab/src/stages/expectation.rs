//! The accuracy that targets may expect of what they received, by trials where labels are.

use std::collections::BTreeMap;

use rayon::prelude::*;
use stlf_learn::Params;
use stlf_method::expectation::{Basis, Expected, Received, Trial, Tried, expected};
use stlf_method::method::Method;
use stlf_planning::device::Role;
use stlf_planning::plan::{PlanLink, Way, legs, way_to_targets};
use stlf_planning::witness::Claim;
use stlf_protocol::Place;

use super::transfer::{Served, Transfer};
use crate::Error;
use crate::baselines::Assignment;
use crate::record::{ExpectedRow, Row};

/// The name of the table with what targets may expect.
pub const TABLE: &str = "expected.csv";

/// The trials that go along with models, by who sends them and the way that they have been on there.
pub(super) type TriedModels = BTreeMap<(usize, Way), Tried>;

impl Transfer<'_> {
    /// The trials that go along with every model that is sent: those of hand-overs or, without any, of each device's own model.
    pub(super) fn all_tried(&self) -> Result<TriedModels, Error> {
        if !self.tried.is_empty() {
            return Ok(self.tried.clone());
        }
        let models = self.models.par_iter().enumerate();
        let own = models.filter_map(|(device, model)| Some((device, model.as_ref()?)));
        own.map(|(device, model)| {
            Ok(((device, Way::First), Tried::alone(self.trial_of_sent(model, device)?)))
        })
        .collect()
    }

    /// The accuracy that each target may expect of what it ends with; nothing for a target without a model.
    pub(super) fn expected(&self, served: &[Served], tried: &TriedModels) -> Vec<ExpectedRow> {
        let row = |served: &Served| {
            let received = served.links.iter().map(|link| self.received(link, tried));
            let received: Vec<Received> = received.collect();
            let predictions = served.predictions.as_ref()?;
            let (expected, basis): (Expected, Basis) = expected(predictions, &received)?;
            let classes = predictions.of(0).len();
            let warning = basis.warning(&expected, classes, self.is_stranger(served.target));
            let (seed, target) = (served.row.seed, served.row.target.clone());
            let truth = served.row.accuracy;
            Some(ExpectedRow::new(seed, target, expected, truth, warning, basis))
        };
        served.iter().filter_map(row).collect()
    }

    /// Whether no source of the plan is near a target, whatever method it takes part in.
    pub(super) fn is_stranger(&self, target: usize) -> bool {
        let claim = |from: usize| self.problem.claim(from, target);
        self.plan.with_role(Role::Source).filter_map(claim).all(|claim| claim.is_far())
    }

    fn received(&self, link: &PlanLink, tried: &TriedModels) -> Received {
        let claim = self.problem.claim(link.from, link.to).unwrap_or(Claim::NOTHING);
        let (weight, divergence) = (link.weight, claim.divergence);
        let sent = (link.from, way_to_targets(&self.plan.handovers, link.from));
        Received { weight, divergence, tried: tried.get(&sent).cloned().unwrap_or_default() }
    }

    /// Counts the trials that go along with models of ours, with what is sent to measure: at the first target.
    pub(super) fn count_trials(
        &self,
        method: Method,
        plan: &Assignment,
        rows: &mut [Row],
        tried: &TriedModels,
    ) {
        let legs = legs(&plan.handovers, &plan.links)
            .into_iter()
            .map(|leg| ((leg.handover.from, leg.sent), leg.handover.to));
        let heard = plan.with_role(Role::Target).flat_map(|to| {
            let witnesses = self.witnesses(method, plan, to);
            let senders = plan.incoming(to).iter().map(|link| link.from).chain(witnesses);
            let sent = |from: usize| ((from, way_to_targets(&plan.handovers, from)), to);
            senders.map(sent).collect::<Vec<_>>()
        });
        let examinations = self.examinations(method, plan).into_iter();
        let tried_by =
            examinations.map(|one| ((one.from, way_to_targets(&plan.handovers, one.from)), one.to));
        let Some(first) = rows.first_mut() else { return };
        for ((from, way), to) in legs.chain(heard).chain(tried_by) {
            let bytes = tried.get(&(from, way)).map_or(0, Tried::bytes);
            let joules = self.problem.link_energy(from, to).unwrap_or(0.0);
            first.measuring_bytes += bytes;
            first.measuring_joules += joules * 8.0 * bytes as f64 / self.run.setup.model_bits;
        }
    }

    /// How the model that a device sends does on the labels that it held out; nothing without any.
    pub(super) fn trial_of_sent(
        &self,
        model: &Params,
        sender: usize,
    ) -> Result<Option<Trial>, Error> {
        let labels = self.run.fleet.devices[sender].labels.len();
        self.trial(model, sender, &self.run.setup.rows(Place::new(sender), labels).held)
    }

    /// How a model does on these labels of a device; nothing on none.
    pub(super) fn trial(
        &self,
        model: &Params,
        at: usize,
        rows: &[usize],
    ) -> Result<Option<Trial>, Error> {
        if rows.is_empty() {
            return Ok(None);
        }
        let device = &self.run.fleet.devices[at];
        let labels: Vec<_> = rows.iter().map(|&row| device.labels[row]).collect();
        Ok(Trial::of(&self.run.predict_rows(at, model, rows)?, &labels))
    }
}
