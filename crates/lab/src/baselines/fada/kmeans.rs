//! k-means: Lloyd's iteration from centres chosen far apart (Arthur and Vassilvitskii, "k-means++", 2007).

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

const ITERATIONS: usize = 30;
const RESTARTS: usize = 3;

/// How tightly points lie in the best clusters found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    /// Mean squared distance of a point to the centre of its cluster.
    pub within: f64,
    /// Mean squared distance of a point to the centre of all.
    pub total: f64,
}

impl Spread {
    /// The share of the spread that clusters do not explain: 0 for points in k places, 1 for no clusters at all,
    /// whatever the scale. Points that all fell together have no clusters.
    pub(super) fn unexplained(&self) -> f64 {
        if self.total > 0.0 { (self.within / self.total).min(1.0) } else { 1.0 }
    }
}

/// Clusters points of `width` numbers each, of which there is at least one, from several random starts.
pub(super) fn cluster(points: &[f32], width: usize, k: usize, rng: &mut ChaCha8Rng) -> Spread {
    let all: Vec<&[f32]> = points.chunks_exact(width).collect();
    let mut middle = vec![vec![0.0; width]];
    centres(&all, &vec![0; all.len()], &mut middle);
    let mean = |sum: f64| sum / all.len() as f64;
    let total = mean(all.iter().map(|p| distance(p, &middle[0])).sum());
    let within = (0..RESTARTS).map(|_| mean(lloyd(&all, k.min(all.len()), rng)));
    Spread { within: within.fold(f64::INFINITY, f64::min), total }
}

/// The sum of squared distances to the centres where the iteration comes to rest.
fn lloyd(points: &[&[f32]], k: usize, rng: &mut ChaCha8Rng) -> f64 {
    let mut centre = far_apart(points, k, rng);
    let mut member = vec![usize::MAX; points.len()];
    let mut sum = f64::INFINITY;
    for _ in 0..ITERATIONS {
        let mut moved = false;
        sum = 0.0;
        for (point, member) in points.iter().zip(&mut member) {
            let (nearest, d) = nearest(point, &centre);
            moved |= *member != nearest;
            *member = nearest;
            sum += d;
        }
        if !moved {
            break;
        }
        centres(points, &member, &mut centre);
    }
    sum
}

/// The mean of every cluster's points; an empty cluster keeps its centre.
fn centres(points: &[&[f32]], member: &[usize], centre: &mut [Vec<f32>]) {
    let mut count = vec![0usize; centre.len()];
    member.iter().for_each(|&c| count[c] += 1);
    for (centre, _) in centre.iter_mut().zip(&count).filter(|(_, count)| **count > 0) {
        centre.fill(0.0);
    }
    for (point, &c) in points.iter().zip(member) {
        let share = 1.0 / count[c] as f32;
        centre[c].iter_mut().zip(*point).for_each(|(sum, &x)| *sum += share * x);
    }
}

/// k points as centres, each drawn in proportion to its squared distance to those before it.
fn far_apart(points: &[&[f32]], k: usize, rng: &mut ChaCha8Rng) -> Vec<Vec<f32>> {
    let mut centre = vec![points[rng.random_range(0..points.len())].to_vec()];
    let mut gap: Vec<f64> = points.iter().map(|p| distance(p, &centre[0])).collect();
    while centre.len() < k {
        let mut left = rng.random::<f64>() * gap.iter().sum::<f64>();
        let chosen = gap.iter().position(|g| {
            left -= g;
            left < 0.0
        });
        let next = points[chosen.unwrap_or(points.len() - 1)].to_vec();
        gap.iter_mut().zip(points).for_each(|(g, p)| *g = g.min(distance(p, &next)));
        centre.push(next);
    }
    centre
}

fn nearest(point: &[f32], centre: &[Vec<f32>]) -> (usize, f64) {
    let mut best = (0, f64::INFINITY);
    for (c, centre) in centre.iter().enumerate() {
        let d = distance(point, centre);
        if d < best.1 {
            best = (c, d);
        }
    }
    best
}

fn distance(point: &[f32], centre: &[f32]) -> f64 {
    // Eight sums at a time: one alone would wait for each addition.
    let mut sums = [0.0f32; 8];
    let (points, rest) = point.as_chunks::<8>();
    let (centres, centre_rest) = centre.as_chunks::<8>();
    for (p, c) in points.iter().zip(centres) {
        for (sum, (p, c)) in sums.iter_mut().zip(p.iter().zip(c)) {
            *sum += (p - c) * (p - c);
        }
    }
    let rest: f32 = rest.iter().zip(centre_rest).map(|(p, c)| (p - c) * (p - c)).sum();
    f64::from(sums.iter().sum::<f32>() + rest)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    /// The least sum over all ways to put the points into k clusters.
    fn by_enumeration(points: &[f32], width: usize, k: usize) -> f64 {
        let all: Vec<&[f32]> = points.chunks_exact(width).collect();
        let ways = k.pow(all.len() as u32);
        let sums = (0..ways).map(|way| {
            let member: Vec<usize> = (0..all.len()).map(|p| way / k.pow(p as u32) % k).collect();
            let mut centre = vec![vec![0.0; width]; k];
            centres(&all, &member, &mut centre);
            all.iter().zip(&member).map(|(p, &c)| distance(p, &centre[c])).sum::<f64>()
        });
        sums.fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn small_cases_are_solved_as_by_enumeration() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for k in [2, 3] {
            for _ in 0..20 {
                // Points around k far places: the optimum that a heuristic must not miss.
                let points: Vec<f32> = (0..8)
                    .flat_map(|p| {
                        let place = (p % k) as f32 * 10.0;
                        [place + rng.random::<f32>(), -place + rng.random::<f32>()]
                    })
                    .collect();
                let found = cluster(&points, 2, k, &mut rng).within * 8.0;
                let best = by_enumeration(&points, 2, k);
                assert!((found - best).abs() < 1e-6 * best.max(1.0), "{found} {best}");
            }
        }
    }

    #[test]
    fn spreads_are_what_they_say() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let two_places = [0.0, 0.0, 4.0, 4.0];
        let spread = cluster(&two_places, 1, 2, &mut rng);
        assert_eq!((spread.within, spread.total, spread.unexplained()), (0.0, 4.0, 0.0));
        assert_eq!(cluster(&two_places, 1, 1, &mut rng).unexplained(), 1.0);
        assert_eq!(cluster(&[1.0; 6], 1, 2, &mut rng).unexplained(), 1.0);
        // More clusters than points.
        assert_eq!(cluster(&[1.0, 2.0], 1, 5, &mut rng).within, 0.0);
        // The scale does not count.
        let points = [0.3, 0.1, 2.0, 2.2, 5.0, 5.5f32];
        let large = points.map(|x| 100.0 * x);
        let [a, b] = [&points, &large].map(|p| cluster(p, 1, 2, &mut rng).unexplained());
        assert!((a - b).abs() < 1e-6);
    }
}
