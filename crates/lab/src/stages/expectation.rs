//! The accuracy that targets may expect of what they received, by trials where labels are.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use stlf_learn::Params;
use stlf_method::expectation::{Expected, Received, Trial, doubt, expected};
use stlf_planning::plan::{PlanLink, route};
use stlf_planning::problem::Model;
use stlf_protocol::Place;

use super::transfer::{Served, Transfer};
use crate::Error;
use crate::record::ExpectedRow;

/// What targets may expect.
pub const TABLE: &str = "expected.csv";

/// How models did where they were handed to, before they were trained there, by device.
pub(super) type Trials = BTreeMap<usize, Trial>;

impl Transfer<'_> {
    /// The accuracy that each target may expect of what it ends with; nothing for a target without a model.
    pub(super) fn expected(&self, served: &[Served]) -> Result<Vec<ExpectedRow>, Error> {
        let senders: BTreeSet<usize> =
            served.iter().flat_map(|s| &s.links).map(|link| link.from).collect();
        let at_senders: Vec<(usize, Option<Trial>)> = (senders.into_par_iter())
            .map(|sender| Ok((sender, self.trial_of_sent(sender)?)))
            .collect::<Result<_, Error>>()?;
        let tried = at_senders.into_iter().filter_map(|(sender, trial)| Some((sender, trial?)));
        let at_senders: Trials = tried.collect();
        let row = |served: &Served| {
            let doubt = doubt(served.predictions.as_ref()?)?;
            let received = served.links.iter().map(|link| self.received(link, &at_senders));
            let received: Vec<Received> = received.collect();
            let samples = served.row.samples;
            let Expected { accuracy, low, high } = expected(doubt, samples, &received)?;
            let (seed, target) = (served.row.seed, served.row.target.clone());
            let truth = served.row.accuracy;
            Some(ExpectedRow { seed, target, expected: accuracy, low, high, accuracy: truth })
        };
        Ok(served.iter().filter_map(row).collect())
    }

    fn received(&self, link: &PlanLink, at_senders: &Trials) -> Received {
        let on_route = route(&self.plan.handovers, link.from).into_iter();
        let divergence = match self.problem.model() {
            Model::Measured(measured) => measured.links.get(link.from, link.to),
            Model::Costs(_) => None,
        };
        Received {
            weight: link.weight,
            divergence: divergence.map_or(0.0, |link| link.divergence),
            at_sender: at_senders.get(&link.from).copied(),
            on_route: on_route.filter_map(|at| Some((at, *self.trials.get(&at)?))).collect(),
        }
    }

    /// How the model that a device sends does on the labels that it held out; nothing without any.
    fn trial_of_sent(&self, sender: usize) -> Result<Option<Trial>, Error> {
        let device = &self.run.fleet.devices[sender];
        let held = self.run.setup.rows(Place::new(sender), device.labels.len()).held;
        let model = self.models[sender].as_ref();
        model.map_or(Ok(None), |model| self.trial(model, sender, &held))
    }

    /// How a model does on all labels of a device that it is handed to.
    pub(super) fn trial_of_handed(
        &self,
        handed: &Params,
        to: usize,
    ) -> Result<Option<Trial>, Error> {
        let all: Vec<usize> = (0..self.run.fleet.devices[to].labels.len()).collect();
        self.trial(handed, to, &all)
    }

    fn trial(&self, model: &Params, at: usize, rows: &[usize]) -> Result<Option<Trial>, Error> {
        if rows.is_empty() {
            return Ok(None);
        }
        let device = &self.run.fleet.devices[at];
        let labels: Vec<_> = rows.iter().map(|&row| device.labels[row]).collect();
        Ok(Trial::of(&self.run.predict_rows(at, model, rows)?, &labels))
    }
}
