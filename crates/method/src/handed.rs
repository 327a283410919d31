//! Whether a source believes a model that is handed to it, or that it tries as an examiner for targets that have no labels.
//!
//! A source has labels, so that it needs no other model to judge one by. It refuses a model that has fewer of them right than
//!
//! - half as many as is claimed by the sources that it has been at, which claim to err on ε̂_k + ½ d̂_kj in the mean over their samples; or, where
//!   they claim to have hardly any right, a tenth of all labels fewer. Divergences between people are often too small, so that honest models err on
//!   more than is claimed;
//! - guessing would have;
//! - on the second way round a ring, where the model has been here before: one that has half as many right as what the source handed on the
//!   first time.
//!
//! It then goes on with what it has itself: with its own model, and on the second way with what it handed on the first time.

use stlf_planning::Problem;
use stlf_planning::plan::{Handover, Leg, Way, been_at, route};
use stlf_planning::witness::Claim;

use crate::expectation::Trial;
use crate::trust::{DELTA, HALF, TOLERANCE};

/// What a device tries a model for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To train on it.
    Training {
        /// The number of classes: the model must be better than guessing.
        classes: usize,
    },
    /// As an examiner, for targets without labels. An honest model may know other classes, so that it may be no better than guessing.
    Examining,
}

/// What a device holds a model against that comes from another one.
#[derive(Debug, Clone, PartialEq)]
pub struct Standard {
    /// What the sources claim here that the model has been at.
    pub claims: Vec<Claim>,
    /// What it tries the model for.
    pub purpose: Purpose,
    /// The way that the model is on here: the second, where it has been here before.
    pub way: Way,
}

/// What these sources claim at a device.
fn claims(problem: &Problem, sources: Vec<usize>, at: usize) -> Vec<Claim> {
    let claim = |source| problem.claim(source, at).unwrap_or(Claim::NOTHING);
    sources.into_iter().map(claim).collect()
}

/// What a source makes of a model that is handed to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// It trains on it. The trial goes along with what comes of that; none on the second way, where the model has seen this source.
    Believed(Option<Trial>),
    /// It goes on with what it has itself.
    Refused,
}

impl Standard {
    /// What a source holds a model against that is handed to it on this leg, by the numbers of the problem.
    pub fn of_leg(
        problem: &Problem,
        handovers: &[Handover],
        leg: &Leg,
        classes: usize,
    ) -> Standard {
        let to = leg.handover.to;
        let claims = claims(problem, been_at(handovers, leg), to);
        Standard { claims, purpose: Purpose::Training { classes }, way: leg.taken }
    }

    /// What an examiner holds the model against that a source sends to targets, by the numbers of the problem.
    pub fn of_examiner(
        problem: &Problem,
        handovers: &[Handover],
        source: usize,
        examiner: usize,
    ) -> Standard {
        let mut route = route(handovers, source);
        let way = if route.contains(&examiner) { Way::Second } else { Way::First };
        route.retain(|source| *source != examiner);
        Standard { claims: claims(problem, route, examiner), purpose: Purpose::Examining, way }
    }

    /// Returns what the device makes of a model that did so on all its labels. What it has itself is tried only where that matters.
    ///
    /// # Errors
    /// What it has itself cannot be tried.
    pub fn judged<E>(
        &self,
        handed: Option<Trial>,
        own: impl FnOnce() -> Result<Option<Trial>, E>,
    ) -> Result<Verdict, E> {
        let own = if self.compares() { own()? } else { None };
        Ok(self.verdict(handed, own))
    }

    /// Whether what the source has itself is to be tried, too.
    pub fn compares(&self) -> bool {
        self.way == Way::Second
    }

    /// What the source makes of a model that did so on all its labels, where what it has itself did so. Without labels it believes everything.
    pub fn verdict(&self, handed: Option<Trial>, own: Option<Trial>) -> Verdict {
        match handed.is_some_and(|trial| exceeds(trial, self.most_errors(own))) {
            true => Verdict::Refused,
            false => Verdict::Believed(handed.filter(|_| self.way == Way::First)),
        }
    }

    /// The share of its labels on which a model may err.
    fn most_errors(&self, own: Option<Trial>) -> f64 {
        let claimed = claimed_error(&self.claims);
        let usual = (claimed + TOLERANCE).max(1.0 - HALF * (1.0 - claimed));
        let most = match self.purpose {
            Purpose::Training { classes } => usual.min(1.0 - 1.0 / classes.max(1) as f64),
            Purpose::Examining => usual,
        };
        let half = match own.filter(|_| self.compares()) {
            Some(own) => 1.0 - HALF * (1.0 - error(own)),
            None => 1.0,
        };
        most.min(half)
    }
}

/// What sources claim of a model that went from one to the other: the mean of what each claims, by their samples, as in the bound of hand-overs
/// (docs/relays.md). At most 1, and 1 where nobody claims anything.
fn claimed_error(claims: &[Claim]) -> f64 {
    let samples: f64 = claims.iter().map(|claim| claim.samples).sum();
    let errors: f64 = claims.iter().map(|claim| claim.samples * claim.error.min(1.0)).sum();
    if samples > 0.0 { errors / samples } else { 1.0 }
}

/// Whether more errors are in a trial than a model makes that errs on this share, but for one chance in a thousand: the chance is at most
/// e^(−n KL(error ‖ share)) (Hoeffding 1963, theorem 1).
fn exceeds(trial: Trial, share: f64) -> bool {
    let (error, labels) = (error(trial), f64::from(trial.labels));
    error > share && labels * relative_entropy(error, share) > (1.0 / DELTA).ln()
}

/// The share of its labels that a model had wrong.
fn error(trial: Trial) -> f64 {
    f64::from(trial.errors) / f64::from(trial.labels.max(1))
}

/// KL(a ‖ b) between two Bernoulli distributions.
fn relative_entropy(a: f64, b: f64) -> f64 {
    let part = |a: f64, b: f64| if a > 0.0 { a * (a / b).ln() } else { 0.0 };
    part(a, b) + part(1.0 - a, 1.0 - b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(labels: u32, errors: u32) -> Option<Trial> {
        Some(Trial { labels, errors, doubt: 0.1 })
    }

    fn claim(error: f64, samples: f64) -> Claim {
        Claim { error, samples, divergence: 0.0 }
    }

    fn is_kept(standard: &Standard, handed: Option<Trial>, own: Option<Trial>) -> bool {
        standard.verdict(handed, own) != Verdict::Refused
    }

    fn standard(errors: &[f64], classes: usize, way: Way) -> Standard {
        let claims = errors.iter().map(|&error| claim(error, 500.0)).collect();
        Standard { claims, purpose: Purpose::Training { classes }, way }
    }

    #[test]
    fn a_model_has_half_as_many_right_as_its_sources_claim() {
        let near = standard(&[0.1, 0.3], 10, Way::First);
        assert!((claimed_error(&near.claims) - 0.2).abs() < 1e-12);
        // Those with more samples have the larger part.
        let claims = [claim(0.1, 100.0), claim(0.5, 300.0)];
        assert!((claimed_error(&claims) - 0.4).abs() < 1e-12);
        assert!(is_kept(&near, trial(1000, 600), None) && is_kept(&near, trial(1000, 650), None));
        assert!(!is_kept(&near, trial(1000, 680), None));
        // Few labels prove little.
        assert!(is_kept(&near, trial(10, 9), None) && !is_kept(&near, trial(20, 20), None));
        assert!(is_kept(&near, None, None));
        // What goes along with the model is tried where it has not been.
        assert_eq!(near.verdict(trial(9, 1), None), Verdict::Believed(trial(9, 1)));
        let again = standard(&[0.1], 10, Way::Second);
        assert_eq!(again.verdict(trial(9, 1), trial(9, 1)), Verdict::Believed(None));
    }

    #[test]
    fn whatever_is_claimed_no_model_is_worse_than_guessing() {
        let far = standard(&[1.4], 4, Way::First);
        assert!(is_kept(&far, trial(200, 150), None) && is_kept(&far, trial(200, 165), None));
        assert!(!is_kept(&far, trial(200, 190), None));
        let nobody = Standard { claims: Vec::new(), ..far };
        assert!(
            is_kept(&nobody, trial(200, 150), None) && !is_kept(&nobody, trial(200, 190), None)
        );
    }

    #[test]
    fn an_examiner_wants_half_as_many_right_as_is_claimed() {
        let examining = |claimed: f64| Standard {
            purpose: Purpose::Examining,
            ..standard(&[claimed], 10, Way::First)
        };
        let (far, near) = (examining(1.4), examining(0.4));
        assert!(is_kept(&far, trial(1000, 1000), trial(1000, 10)), "of other classes");
        assert!(is_kept(&near, trial(1000, 700), None) && !is_kept(&near, trial(1000, 760), None));
        let nearly_far = examining(0.88);
        assert!(is_kept(&nearly_far, trial(1000, 970), None));
        let trained_here = Standard { way: Way::Second, ..far.clone() };
        assert!(!is_kept(&trained_here, trial(1000, 1000), trial(1000, 10)));
    }

    #[test]
    fn a_model_that_was_here_before_has_half_as_many_right_as_then() {
        let own = trial(100, 10);
        let [first, second] = Way::ALL.map(|way| standard(&[1.0], 10, way));
        assert!(is_kept(&first, trial(100, 85), own));
        assert!(is_kept(&second, trial(100, 55), own) && !is_kept(&second, trial(100, 85), own));
    }

    /// The bound is never below the chance itself, which can be counted.
    #[test]
    fn an_honest_model_is_refused_once_in_a_thousand_at_most() {
        for labels in [5u32, 20, 60] {
            for share in [0.1, 0.4, 0.75, 0.9] {
                let chance = |errors: u32| {
                    let ways = (0..errors).map(|k| f64::from(labels - k) / f64::from(k + 1));
                    let (wrong, right) = (errors as i32, (labels - errors) as i32);
                    ways.product::<f64>() * f64::powi(share, wrong) * f64::powi(1.0 - share, right)
                };
                let refused = (0..=labels)
                    .filter(|&errors| exceeds(Trial { labels, errors, doubt: 0.0 }, share));
                let chance: f64 = refused.map(chance).sum();
                assert!(chance <= DELTA, "{labels} {share}: {chance}");
            }
        }
    }
}
