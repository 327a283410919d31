//! Devices to which nobody with labels is near, and what they get.
//!
//! Where all divergences are the largest there are, they do not tell which source suits a target, and a plan would choose by samples and
//! energies alone. The mixture of all sources is then the choice that relies on none of them.
//!
//! That is so in fleets in which most devices are strangers, sources among them: then nothing says either that one source could train on
//! another's model. Where sources are near each other, it depends on the models. Of those that were trained on pictures in many views, the
//! mixture is best; of others, the model that sources of one kind hand on may do better (docs/strangers.md).
//!
//! A fleet may also want the mixture of all for everybody, whatever divergences say: it is what FedAvg sends.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::{Measured, Model, Problem};
use crate::bound::BoundKind;
use crate::device::Role;

/// What a device without labels gets to which no device with labels is near.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strangers {
    /// The models of all sources, which it mixes.
    All,
    /// The models of all, if most devices are strangers to all others; else what the plan gives it.
    IfMost,
    /// What the plan gives it, as to any other device.
    Planned,
}

/// From this divergence on, the data of two devices can be told apart almost always. It says little then about how well one's model does
/// at the other.
pub const FAR: f64 = 1.9;

/// The most models that a stranger gets: a mixture of more is no better.
const MOST_MODELS: usize = 32;

/// A model that errs more often than this on its own device's labels is no help to others.
const USEFUL: f64 = 0.5;

/// Whether a divergence is so large that it tells nothing. Divergences of another scale go beyond 2, and are never far.
pub(crate) fn is_far(divergence: f64) -> bool {
    (FAR..=2.0).contains(&divergence)
}

impl Problem {
    /// The same problem in which strangers without labels, to which no device with labels is near, take the models of all others that
    /// are of use, and all of these count alike, so that weights go by samples. Of more than 32 models, those with most samples. Only under the pooled bound, by which a target can mix models.
    #[must_use]
    pub fn with_links_to(mut self, which: Strangers) -> Problem {
        let Model::Measured(measured) = &self.model else { return self };
        if measured.bound.kind != BoundKind::Pooled {
            return self;
        }
        let (strangers, others): (Vec<usize>, Vec<usize>) =
            (0..self.len()).partition(|&device| self.is_far_from_all(measured, device));
        let all = match which {
            Strangers::All => true,
            Strangers::IfMost => strangers.len() > others.len(),
            Strangers::Planned => false,
        };
        if !all {
            return self;
        }
        let targets = strangers.into_iter().filter(|&i| measured.devices[i].labeled == 0);
        let links: Vec<(usize, usize)> =
            targets.flat_map(|to| self.senders_of_use(measured, to)).collect();
        let served = self.require(links);
        self.with_strangers(&served)
    }

    /// The same problem in which all devices that cannot train take the models of all others that can, whatever their errors and
    /// divergences, and all of these count alike, so that weights go by samples: FedAvg's mixture. Only under the pooled bound.
    #[must_use]
    pub fn with_all_links(mut self) -> Problem {
        let Model::Measured(measured) = &self.model else { return self };
        if measured.bound.kind != BoundKind::Pooled {
            return self;
        }
        let targets = (0..self.len()).filter(|&device| !self.eligible(device));
        let senders = |to: usize| {
            let incoming = measured.links.incoming(to).filter(|link| self.eligible(link.from));
            incoming.map(move |link| (link.from, to)).collect::<Vec<_>>()
        };
        let links: Vec<(usize, usize)> = targets.flat_map(senders).collect();
        let served = self.require(links);
        self.with_all_alike(&served)
    }

    /// Has a plan use these links, which are sorted by receiver, and with them the roles of their ends; returns the receivers.
    fn require(&mut self, links: Vec<(usize, usize)>) -> Vec<usize> {
        for &(from, to) in &links {
            (self.pins[from], self.pins[to]) = (Some(Role::Source), Some(Role::Target));
        }
        let mut served: Vec<usize> = links.iter().map(|&(_, to)| to).collect();
        served.dedup();
        let known: HashSet<(usize, usize)> = self.required.iter().copied().collect();
        self.required.extend(links.into_iter().filter(|link| !known.contains(link)));
        served
    }

    /// The same problem in which all sources count alike for these devices, under the pooled bound: see [`Problem::strangers`].
    #[must_use]
    pub fn with_strangers(mut self, devices: &[usize]) -> Problem {
        let n = self.len();
        if let Model::Measured(measured) = &mut self.model
            && !devices.is_empty()
        {
            measured.strangers = (0..n).map(|device| devices.contains(&device)).collect();
        }
        self
    }

    /// The same problem in which all sources count alike for these devices, whatever their errors, under the pooled bound: see
    /// [`Problem::all_alike`].
    #[must_use]
    pub fn with_all_alike(mut self, devices: &[usize]) -> Problem {
        let n = self.len();
        if let Model::Measured(measured) = &mut self.model
            && !devices.is_empty()
        {
            measured.all_alike = (0..n).map(|device| devices.contains(&device)).collect();
        }
        self
    }

    /// The devices to which the models of all sources are sent, since the fleet wants that: the error of each is taken to be 1 there.
    pub fn all_alike(&self) -> Vec<usize> {
        match &self.model {
            Model::Measured(m) => (0..self.len()).filter(|&i| m.takes_all(i)).collect(),
            Model::Costs(_) => Vec::new(),
        }
    }

    /// The devices for which all sources count alike, since none is near them: the error of a model of use is taken to be 1 there. That is
    /// the most that it can be, and the bound says hardly less of any of them.
    pub fn strangers(&self) -> Vec<usize> {
        match &self.model {
            Model::Measured(m) => (0..self.len()).filter(|&i| m.is_stranger(i)).collect(),
            Model::Costs(_) => Vec::new(),
        }
    }

    fn is_far_from_all(&self, measured: &Measured, device: usize) -> bool {
        let from_sources = measured.links.incoming(device).filter(|l| self.eligible(l.from));
        let mut from_sources = from_sources.peekable();
        from_sources.peek().is_some() && from_sources.all(|link| is_far(link.divergence))
    }

    fn senders_of_use(&self, measured: &Measured, to: usize) -> Vec<(usize, usize)> {
        let is_of_use = |from: &usize| {
            let error = measured.devices[*from].source_error;
            self.eligible(*from) && error.is_some_and(|error| error < USEFUL)
        };
        let mut senders: Vec<usize> =
            measured.links.incoming(to).map(|link| link.from).filter(is_of_use).collect();
        senders.sort_by_key(|&from| std::cmp::Reverse(measured.devices[from].samples()));
        senders.truncate(MOST_MODELS);
        senders.sort_unstable();
        senders.into_iter().map(|from| (from, to)).collect()
    }
}

impl Measured {
    /// Whether all sources count alike for a device.
    pub fn is_stranger(&self, device: usize) -> bool {
        self.strangers.get(device).is_some_and(|&stranger| stranger)
    }

    /// Whether all sources count alike for a device because the fleet wants all links.
    fn takes_all(&self, device: usize) -> bool {
        self.all_alike.get(device).is_some_and(|&alike| alike)
    }

    /// ε̂_i as it counts at a receiver. At a stranger, that of a model of use and half of its divergence make 1; where the fleet wants all
    /// links, that of any model.
    pub(crate) fn error_at(&self, from: usize, to: usize, divergence: f64) -> f64 {
        let own = self.devices[from].source_error.unwrap_or(f64::INFINITY);
        let is_alike = self.is_stranger(to) && own < USEFUL || self.takes_all(to);
        if is_alike && own.is_finite() { 1.0 - self.bound.transfer(divergence) } else { own }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::ops::ControlFlow;

    use crate::device::Device;
    use crate::explain::{Sentences, explain};
    use crate::plan::Status;
    use crate::planner::{Limits, Outcome, optimum};
    use crate::problem::{Links, Parts, Preset};

    /// Sources with these errors at such a distance from each other, and a target at each of these distances from all of them.
    fn problem(errors: &[f64], apart: f64, targets: &[f64], kind: BoundKind) -> Problem {
        let n = errors.len() + targets.len();
        let device = |i: usize| Device {
            name: format!("d{i}"),
            labeled: if i < errors.len() { 100 + i as u64 } else { 0 },
            unlabeled: 500,
            source_error: errors.get(i).copied(),
        };
        let divergence = |i: usize, j: usize| match (i.min(j), i.max(j)) {
            (low, high) if low == high => 0.0,
            (_, high) if high >= errors.len() => targets[high - errors.len()],
            _ => apart,
        };
        let divergences = (0..n * n).map(|k| divergence(k / n, k % n)).collect();
        let links = Links::from_rows(n, divergences, vec![1.0; n * n]);
        let devices = (0..n).map(device).collect();
        let preset = Preset::Balanced;
        Problem::new(Parts::measured(devices, links, preset, preset.weights(), kind)).unwrap()
    }

    #[test]
    fn a_stranger_takes_all_models_that_are_of_use() {
        let errors = [0.1, 0.2, 0.7];
        let before = problem(&errors, 2.0, &[2.0, 0.4, 1.9], BoundKind::Pooled);
        let problem = before.clone().with_links_to(Strangers::IfMost);
        assert_eq!(problem.required(), [(0, 3), (1, 3), (0, 5), (1, 5)]);
        let Outcome::Planned(plan) = optimum(&problem) else { panic!("no plan") };
        assert_eq!(plan.status, Status::Optimal);
        let senders = |to: usize| plan.incoming(to).iter().map(|l| l.from).collect::<Vec<_>>();
        assert_eq!(senders(3), [0, 1]);
        // 600 and 601 samples: where all count alike, the best weights are those of FedAvg.
        let weights: Vec<f64> = plan.incoming(3).iter().map(|l| l.weight).collect();
        for (weight, samples) in weights.iter().zip([600.0, 601.0]) {
            assert!((weight - samples / 1201.0).abs() < 1e-9, "{weights:?}");
        }
        assert_eq!(problem.strangers(), [3, 5]);
        let Outcome::Planned(free) = optimum(&before) else { panic!("no plan") };
        assert_eq!(free.incoming(4), plan.incoming(4), "others get what they got");
        // To do it twice changes nothing.
        assert_eq!(problem.clone().with_links_to(Strangers::IfMost), problem);
        assert_eq!(before.clone().with_links_to(Strangers::All), problem);
        assert_eq!(before.clone().with_links_to(Strangers::Planned), before);
    }

    #[test]
    fn why_it_takes_all_is_told_and_its_costs_add_up() {
        let problem = problem(&[0.1, 0.2], 2.0, &[2.0], BoundKind::Pooled);
        let problem = problem.with_links_to(Strangers::All);
        let Outcome::Planned(plan) = optimum(&problem) else { panic!("no plan") };
        let go_on = &mut |_: &_| ControlFlow::Continue(());
        let mut told = |device| explain(&problem, &plan, device, &Limits::default(), go_on);
        let sentences = Sentences { problem: &problem, plan: &plan };
        let (source, stranger) = (told(0), told(2));
        let why = "so all models of use are sent there.";
        assert_eq!(sentences.role(&source), format!("d0 is a source: no source is near d2, {why}"));
        assert_eq!(
            sentences.role(&stranger),
            format!("d2 is a target: no source is near it, {why}")
        );
        let parts: f64 = (0..3).map(|device| told(device).account.total()).sum();
        assert!((plan.objective() - parts).abs() < 1e-9, "{} and {parts}", plan.objective());
    }

    #[test]
    fn with_all_links_every_model_counts_by_its_samples() {
        // Near and far, of use and not, and a mixture of two would be better at the second target.
        let errors = [0.1, 0.2, 0.9];
        let before = problem(&errors, 0.5, &[2.0, 0.4], BoundKind::Pooled);
        let problem = before.clone().with_all_links();
        assert_eq!(problem.required(), [(0, 3), (1, 3), (2, 3), (0, 4), (1, 4), (2, 4)]);
        assert_eq!((problem.all_alike(), problem.strangers()), (vec![3, 4], vec![]));
        let Outcome::Planned(plan) = optimum(&problem) else { panic!("no plan") };
        assert_eq!(plan.status, Status::Optimal);
        for to in [3, 4] {
            let weights: Vec<f64> = plan.incoming(to).iter().map(|l| l.weight).collect();
            // 600, 601 and 602 samples.
            for (weight, samples) in weights.iter().zip([600.0, 601.0, 602.0]) {
                assert!((weight - samples / 1803.0).abs() < 1e-9, "{weights:?}");
            }
        }
        let go_on = &mut |_: &_| ControlFlow::Continue(());
        let mut told = |device| explain(&problem, &plan, device, &Limits::default(), go_on);
        let sentences = Sentences { problem: &problem, plan: &plan };
        let source = sentences.role(&told(2));
        assert!(
            source.ends_with("the fleet wants all links, so all models are sent to d3."),
            "{source}"
        );
        let target = told(4);
        let role = sentences.role(&target);
        assert!(
            role.ends_with("the fleet wants all links, so all models are sent to it."),
            "{role}"
        );
        let main = sentences.further(&target).concat();
        assert!(main.contains("as one of all models."), "{main}");
        let parts: f64 = (0..5).map(|device| told(device).account.total()).sum();
        assert!((plan.objective() - parts).abs() < 1e-9, "{} and {parts}", plan.objective());
        assert_eq!(problem.clone().with_all_links(), problem, "to do it twice changes nothing");
        let paper = self::problem(&errors, 0.5, &[2.0], BoundKind::Paper);
        assert_eq!(paper.clone().with_all_links(), paper);
    }

    #[test]
    fn nobody_else_must_take_a_link() {
        let none = |p: Problem| p.clone().with_links_to(Strangers::IfMost) == p;
        let pooled = |errors: &[f64], apart: f64, targets: &[f64]| {
            problem(errors, apart, targets, BoundKind::Pooled)
        };
        assert!(!none(pooled(&[0.1, 0.2], 2.0, &[2.0])));
        let near_each_other = pooled(&[0.1, 0.2], 1.8, &[2.0]);
        let all = near_each_other.clone().with_links_to(Strangers::All);
        assert_eq!(all.required(), [(0, 2), (1, 2)], "whatever sources are to each other");
        assert!(none(near_each_other), "sources are near each other");
        assert!(none(pooled(&[0.1, 0.2], 2.0, &[0.4, 0.4])), "half are no strangers");
        assert!(none(pooled(&[0.1], 2.0, &[2.0])), "of the only source nothing is known");
        assert!(none(pooled(&[0.8, 0.9], 2.0, &[2.0])), "no model is of use");
        assert!(
            none(pooled(&[0.1, 0.2], 7.0, &[7.0])),
            "on another scale, distances say something"
        );
        assert!(none(problem(&[0.1, 0.2], 2.0, &[2.0], BoundKind::Paper)));
    }

    #[test]
    fn of_many_models_those_with_most_samples_are_enough() {
        let problem =
            problem(&[0.1; 40], 2.0, &[2.0], BoundKind::Pooled).with_links_to(Strangers::All);
        let expected: Vec<(usize, usize)> = (8..40).map(|from| (from, 40)).collect();
        assert_eq!(problem.required(), expected);
    }
}
