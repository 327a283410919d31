//! Models of sources that devices with labels try for the targets of these, where that is asked for.

use rayon::prelude::*;
use stlf_method::handed::{Standard, Verdict};
use stlf_method::method::Method;
use stlf_planning::device::Role;
use stlf_planning::examiner::Examination;
use stlf_planning::witness::Witness;

use super::transfer::Transfer;
use super::trust::is_ours;
use crate::Error;
use crate::baselines::Assignment;
use crate::record::{RefusedRow, Row};

impl Transfer<'_> {
    /// Who tries which models. Only ours asks for that.
    pub(super) fn examinations(&self, method: Method, assigned: &Assignment) -> Vec<Examination> {
        if !is_ours(method) || !self.run.setup.examiners {
            return Vec::new();
        }
        let witnesses: Vec<Witness> = assigned
            .with_role(Role::Target)
            .flat_map(|to| {
                let witnesses = self.witnesses(method, assigned, to).into_iter();
                witnesses.map(move |from| Witness { to, from })
            })
            .collect();
        self.problem.examinations(&assigned.links, &assigned.handovers, &witnesses)
    }

    /// Counts the models that go to examiners, each as a link of the first target that gets the same.
    pub(super) fn count_examinations(
        &self,
        method: Method,
        rows: &mut [Row],
        assigned: &Assignment,
    ) {
        let mut uncounted = self.examinations(method, assigned);
        for (row, target) in rows.iter_mut().zip(assigned.with_role(Role::Target)) {
            let gets = |from: usize| assigned.incoming(target).iter().any(|l| l.from == from);
            let first: Vec<Examination>;
            (first, uncounted) = uncounted.into_iter().partition(|one| gets(one.from));
            for Examination { to, from } in first {
                row.links += 1;
                row.joules += self.problem.link_energy(from, to).unwrap_or(0.0);
                row.bytes += self.model_bytes();
            }
        }
    }

    /// The models, as targets get them, that the labels of their examiners contradict. `before` has them as they were before hand-overs.
    pub(super) fn refused_by_examiners(
        &self,
        before: &Transfer<'_>,
        assigned: &Assignment,
    ) -> Result<Vec<RefusedRow>, Error> {
        let refused = |one: &Examination| self.refused_by_examiner(before, assigned, *one);
        let examinations = self.examinations(Method::StLf, assigned);
        let refused: Vec<Option<RefusedRow>> =
            examinations.par_iter().map(refused).collect::<Result<_, Error>>()?;
        Ok(refused.into_iter().flatten().collect())
    }

    fn refused_by_examiner(
        &self,
        before: &Transfer<'_>,
        assigned: &Assignment,
        Examination { to, from }: Examination,
    ) -> Result<Option<RefusedRow>, Error> {
        let standard = Standard::of_examiner(self.problem, &assigned.handovers, from, to);
        let trial = |model: Option<_>| match model {
            Some(model) => self.on_all_labels(model, to),
            None => Ok(None),
        };
        let sent = trial(self.models[from].as_ref())?;
        let judged = standard.judged(sent, || trial(before.models[to].as_ref()))?;
        let is_refused = judged == Verdict::Refused;
        let row = |labels: u32, errors: u32| {
            let [from, to] = [from, to].map(|device| self.problem.name(device).to_owned());
            RefusedRow { from, to, way: None, labels, errors }
        };
        Ok(sent.filter(|_| is_refused).map(|trial| row(trial.labels, trial.errors)))
    }
}
