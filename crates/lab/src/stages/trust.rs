//! Whether targets believe the models that they receive.

use stlf_data::Class;
use stlf_method::method::Method;
use stlf_method::trust::{Heard, among_compared, compared, trust};
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
        let liars = if is_ours(method) { self.run.setup.liars } else { 0 };
        self.problem.witnesses_of(target, assigned.incoming(target), liars)
    }

    /// The links into a target with the weights that their models have once it has checked them, and those of witnesses that it takes
    /// instead. Other methods believe everything.
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
            let classes: Vec<Class> = made.classes().collect();
            let classes = samples.iter().map(|&sample| classes[sample]).collect();
            let claim = self.problem.claim(link.from, target).unwrap_or(Claim::NOTHING);
            heard.push(Heard { classes, weight: link.weight, claim });
        }
        let weights = trust(&heard, &among_compared(&samples, &known)).weights;
        let believed = links.into_iter().zip(weights);
        Ok(believed
            .map(|(link, weight)| PlanLink { weight, ..link })
            .filter(|link| link.weight > 0.0)
            .collect())
    }
}

/// Whether a method is ours.
pub(super) fn is_ours(method: Method) -> bool {
    matches!(method, Method::StLf | Method::Links)
}
