//! How far the data of several sources together are from a target's.

use crate::problem::Measured;
use crate::separation::{from_separation, to_separation};

/// A mixture is never taken to be nearer than this part of what its sources are in the mean: d̂ is an estimate.
pub(crate) const LEAST_PART: f64 = 0.5;

/// The data of several sources, each in proportion to its samples: what a model of a ring was trained on.
///
/// A mixture is nearer to a target than its sources are in the mean: what is peculiar to each of them averages out. A bound of a
/// model that was trained on a mixture has the divergence of the mixture (Ben-David et al. 2010, theorem 5). It follows from those of
/// the sources: where d̂ comes from means that lie Δ apart, the mean of means is at
///
/// ```text
/// Δ² = Σ_k w_k Δ²_kj − ½ Σ_kl w_k w_l Δ²_kl,   w_k = D̂_k / Σ D̂
/// ```
#[derive(Debug, Clone)]
pub(crate) struct Together {
    /// Every source with its share.
    shares: Vec<(usize, f64)>,
    /// ½ Σ w_k w_l Δ²_kl.
    within: f64,
}

impl Together {
    pub(crate) fn new(m: &Measured, sources: &[usize]) -> Together {
        let samples = |i: usize| m.devices[i].samples() as f64;
        let all: f64 = sources.iter().map(|&i| samples(i)).sum();
        let shares: Vec<(usize, f64)> = sources.iter().map(|&i| (i, samples(i) / all)).collect();
        // What is not known counts as no distance, which brings the mixture no nearer.
        let apart = |k: usize, l: usize| {
            let links = [m.links.get(k, l), m.links.get(l, k)].into_iter().flatten();
            let least = links.map(|link| link.divergence).min_by(f64::total_cmp);
            least.map_or(0.0, to_separation)
        };
        let pairs = (0..shares.len()).flat_map(|l| (0..l).map(move |k| (k, l)));
        let within =
            pairs.map(|(k, l)| shares[k].1 * shares[l].1 * apart(shares[k].0, shares[l].0)).sum();
        Together { shares, within }
    }

    /// d̂ of the mixture and a target; nothing where that of a source is not known. Divergences of another scale, which go beyond 2, say
    /// nothing of means: there it is the mean of them.
    pub(crate) fn divergence(&self, m: &Measured, target: usize) -> Option<f64> {
        let (mut mean, mut squared, mut largest) = (0.0, -self.within, 0.0f64);
        for &(source, share) in &self.shares {
            let divergence = m.links.get(source, target)?.divergence;
            mean += share * divergence;
            squared += share * to_separation(divergence);
            largest = largest.max(divergence);
        }
        let mixed = if largest > 2.0 { mean } else { from_separation(squared) };
        Some(mixed.clamp(LEAST_PART * mean, mean))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::bound::BoundKind;
    use crate::device::Device;
    use crate::problem::{Links, Model, Parts, Preset, Problem};

    /// Devices at these points of a plane, d̂ as of normal features around them; all but the last have labels.
    fn problem(points: &[[f64; 2]], samples: &[u64], times: f64) -> Problem {
        let n = points.len();
        let device = |i: usize| Device {
            name: format!("d{i}"),
            labeled: if i + 1 < n { samples[i] } else { 0 },
            unlabeled: if i + 1 < n { 0 } else { 100 },
            source_error: (i + 1 < n).then_some(0.1),
        };
        let squared = |a: [f64; 2], b: [f64; 2]| (a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2);
        let pair = |k: usize| times * from_separation(squared(points[k / n], points[k % n]));
        let energy = |k: usize| if k / n == k % n { f64::INFINITY } else { 1.0 };
        let links =
            Links::from_rows(n, (0..n * n).map(pair).collect(), (0..n * n).map(energy).collect());
        let (preset, kind) = (Preset::Balanced, BoundKind::Pooled);
        let devices = (0..n).map(device).collect();
        Problem::new(Parts::measured(devices, links, preset, preset.weights(), kind)).unwrap()
    }

    fn measured(problem: &Problem) -> &Measured {
        match problem.model() {
            Model::Measured(measured) => measured,
            Model::Costs(_) => unreachable!("measured"),
        }
    }

    #[test]
    fn a_mixture_is_where_the_mean_of_its_means_is() {
        let points = [[0.0, 1.0], [1.5, -0.5], [-0.5, 0.2], [0.4, 1.6]];
        let problem = problem(&points, &[100, 300, 600, 0], 1.0);
        let together = Together::new(measured(&problem), &[0, 1, 2]);
        let centre =
            [0, 1].map(|at| 0.1 * points[0][at] + 0.3 * points[1][at] + 0.6 * points[2][at]);
        let squared = (centre[0] - 0.4).powi(2) + (centre[1] - 1.6).powi(2);
        let found = together.divergence(measured(&problem), 3).unwrap();
        assert!((found - from_separation(squared)).abs() < 1e-5, "{found}");
    }

    #[test]
    fn around_a_target_it_is_nearer_than_any_source_but_not_too_near() {
        // Four sources on a circle around the target: their mean is at the target.
        let points = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [0.0, 0.0]];
        let problem = problem(&points, &[50, 50, 50, 50, 0], 1.0);
        let each = from_separation(1.0);
        let together = |sources: &[usize]| {
            Together::new(measured(&problem), sources).divergence(measured(&problem), 4).unwrap()
        };
        assert!((together(&[0, 1, 2, 3]) - LEAST_PART * each).abs() < 1e-9);
        assert!((together(&[0, 2]) - from_separation(0.5)).abs() < 1e-5);
        // One source alone, and sources on one side, are no nearer than they are.
        assert!((together(&[0]) - each).abs() < 1e-5);
    }

    #[test]
    fn divergences_of_another_scale_are_averaged() {
        let points = [[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]];
        let problem = problem(&points, &[50, 50, 0], 100.0);
        let together = Together::new(measured(&problem), &[0, 1]);
        let found = together.divergence(measured(&problem), 2).unwrap();
        assert!((found - 100.0 * from_separation(1.0)).abs() < 1e-9);
    }
}
