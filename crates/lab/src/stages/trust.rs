//! Whether targets believe the models that they receive.

use stlf_method::expectation::{Tried, doubt};
use stlf_method::method::Method;
use stlf_method::trust::{Heard, among_compared, compared, trust_sent};
use stlf_planning::plan::PlanLink;
use stlf_planning::witness::Claim;

use super::transfer::Transfer;
use crate::Error;
use crate::baselines::Assignment;

impl Transfer<'_> {
    /// Whose models a target gets beside those of its links, to check these against them. Only ours asks for any.
    pub(super) fn witnesses(
        &self,
        method: Method,
        assigned: &Assignment,
        target: usize,
    ) -> Vec<usize> {
        match is_ours(method) {
            true => {
                let (planned, liars) = (assigned.incoming(target), self.run.setup.liars);
                self.problem.witnesses_of(target, planned, liars, &self.conspicuous)
            }
            false => Vec::new(),
        }
    }

    /// The links into a target with the weights that their models have once it has checked them, and those of witnesses that it takes
    /// instead. Other methods believe everything. One model alone keeps its weight whatever comes of a check.
    pub(super) fn believed(
        &self,
        method: Method,
        assigned: &Assignment,
        target: usize,
    ) -> Result<Vec<PlanLink>, Error> {
        let planned = assigned.incoming(target).iter().copied();
        let witnesses = self.witnesses(method, assigned, target).into_iter();
        let witnesses = witnesses.map(|from| PlanLink { from, to: target, weight: 0.0 });
        let links: Vec<PlanLink> = planned.chain(witnesses).collect();
        if !is_ours(method) || links.len() < 2 {
            return Ok(links);
        }
        let device = &self.run.fleet.devices[target];
        let known = device.known();
        let samples = compared(device.samples(), &known);
        let mut heard: Vec<Heard> = Vec::new();
        for link in &links {
            let Some(made) = self.prediction(link.from, target)? else { return Ok(links) };
            let (made, weight) = (made.of_all(&samples), link.weight);
            let claim = self.problem.claim(link.from, target).unwrap_or(Claim::NOTHING);
            let mut doubt = doubt(&made).unwrap_or_default();
            // How the model did at its sender makes no difference else.
            if doubt > claim.error {
                doubt -= self.modesty(link.from)?;
            }
            heard.push(Heard { classes: made.classes().collect(), doubt, weight, claim });
        }
        let own = self.own_said(target, &samples)?;
        let weights = trust_sent(heard, own, true, &among_compared(&samples, &known)).weights;
        let believed = links.into_iter().zip(weights);
        Ok(believed
            .map(|(link, weight)| PlanLink { weight, ..link })
            .filter(|link| link.weight > 0.0)
            .collect())
    }

    /// What the model that a target trained on its own labels says of these samples, where it has any.
    fn own_said(&self, target: usize, samples: &[usize]) -> Result<Option<Heard>, Error> {
        let model = self.trained.and_then(|models| models[target].as_ref());
        let Some((model, claim)) = model.zip(self.problem.own_claim(target)) else {
            return Ok(None);
        };
        let said = self.run.predict_rows(target, model, samples)?;
        Ok(Some(Heard::own(said.classes().collect(), claim)))
    }

    /// How much more the model that a device sends doubts than it errs there.
    fn modesty(&self, sender: usize) -> Result<f64, Error> {
        let Some(model) = &self.models[sender] else { return Ok(0.0) };
        Ok(Tried::alone(self.trial_of_sent(model, sender)?).modesty())
    }
}

/// Returns whether a method is ST-LF, with hand-overs or with links only.
pub(super) fn is_ours(method: Method) -> bool {
    matches!(method, Method::StLf | Method::Links)
}
