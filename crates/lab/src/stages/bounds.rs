//! Both sides of the paper's inequalities at every target, which only an experiment with hidden labels can look at.

use stlf_learn::evaluate::Predictions;
use stlf_planning::bound::{Complexity, Measured, Share};
use stlf_planning::device::Role;
use stlf_planning::plan::PlanLink;
use stlf_planning::problem::Model;

use crate::baselines::Assignment;

use super::transfer::Transfer;
use crate::Error;
use crate::record::BoundRow;

/// The name of the table with both sides of the bounds at each target.
pub const TABLE: &str = "bounds.csv";

/// ρ of the paper's published numbers, √(2 log₁₀ 2) where its text has the natural logarithm.
pub fn published_complexity() -> Complexity {
    Complexity::Value((2.0 * 2f64.log10()).sqrt())
}

impl Transfer<'_> {
    /// Theorem 2 and Corollary 1 at the targets of the plan.
    pub fn bounds(&self) -> Result<(), Error> {
        let folder = &self.run.folder;
        if folder.read(TABLE)?.is_some() {
            return Ok(());
        }
        let plan: &Assignment = &self.plan;
        let mut rows = Vec::new();
        for target in plan.with_role(Role::Target) {
            rows.extend(self.bound_row(target, plan.incoming(target))?);
        }
        Ok(folder.write_csv(TABLE, &rows)?)
    }

    fn bound_row(&self, target: usize, links: &[PlanLink]) -> Result<Option<BoundRow>, Error> {
        let Model::Measured(measured) = self.problem.model() else { return Ok(None) };
        let device = &self.run.fleet.devices[target];
        let Some(combined) = self.combined(links, target)? else { return Ok(None) };
        let Some(truth) = device.truth.as_ref() else { return Ok(None) };
        let mixed: Vec<_> = combined.classes().collect();
        let part = |link: &PlanLink, own: &Predictions| {
            let source = &measured.devices[link.from];
            Some(Measured {
                share: Share {
                    weight: link.weight,
                    source_error: source.source_error?,
                    divergence: measured.links.get(link.from, target)?.divergence,
                    samples: source.samples() as f64,
                },
                // One labeling of digits holds on every device.
                labeling_error: 0.0,
                noise: own.errors(&mixed) as f64 / mixed.len().max(1) as f64,
            })
        };
        let mut mixture: Vec<Measured> = Vec::new();
        for link in links {
            let own = self.alone(link.from, target)?;
            mixture.extend(own.and_then(|own| part(link, &own)));
        }
        let bound = measured.bound.with(|s| {
            s.complexity = published_complexity();
            s.calibration = 1.0;
        });
        let error = 1.0 - combined.accuracy(truth);
        let samples = device.samples() as f64;
        let sum = |term: &dyn Fn(&Measured) -> f64| {
            mixture.iter().map(|m| m.share.weight * term(m)).sum::<f64>()
        };
        Ok(Some(BoundRow {
            target: device.name.clone(),
            error,
            source_error: sum(&|m| m.share.source_error),
            half_divergence: sum(&|m| 0.5 * m.share.divergence),
            noise: sum(&|m| m.noise),
            theorem_2: bound.theorem_2(error, &mixture).right,
            corollary_1: bound.corollary_1(error, samples, &mixture).right,
        }))
    }
}
