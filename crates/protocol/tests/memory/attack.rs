//! Rebuilding samples from what a device publishes, by optimisation against the features that all members know.

use std::f64::consts::TAU;

use stlf_data::Shape;
use stlf_method::divergence::Features;

use crate::samples::{flat, mean_of, wide};

/// Shared random features as an attacker computes with them: cosine and sine of every wave, and their derivatives.
pub(crate) enum Waves {
    /// Waves over the inputs as they are.
    OfInputs {
        /// Wave by wave, a number per input.
        directions: Vec<Vec<f64>>,
        scale: f64,
    },
    /// Waves over anything else: the features are asked, and their derivatives are differences.
    Asked(Features),
}

impl Waves {
    /// Found by asking the features for inputs of one number each.
    pub(crate) fn of(features: &Features, shape: Shape) -> Waves {
        const STEP: f32 = 0.5;
        let waves = features.count() / 2;
        let mut directions = vec![vec![0.0; shape.len()]; waves];
        for k in 0..shape.len() {
            let mut input = vec![0.0; shape.len()];
            input[k] = STEP;
            features.each(&input, |values| {
                for (direction, pair) in directions.iter_mut().zip(values.chunks_exact(2)) {
                    direction[k] = f64::from(pair[1]).atan2(f64::from(pair[0])) / f64::from(STEP);
                }
            });
        }
        Waves::OfInputs { directions, scale: (1.0 / waves as f64).sqrt() }
    }

    /// The directions of waves over the inputs as they are.
    fn directions(&self) -> &[Vec<f64>] {
        match self {
            Waves::OfInputs { directions, .. } => directions,
            Waves::Asked(_) => panic!("this attack is for waves over inputs"),
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        match self {
            Waves::OfInputs { directions, .. } => directions.len(),
            Waves::Asked(features) => features.count() / 2,
        }
    }

    pub(crate) fn values(&self, input: &[f64]) -> Vec<f64> {
        match self {
            Waves::OfInputs { directions, scale } => {
                let pair = |direction: &Vec<f64>| {
                    let (sine, cosine) = dot(direction, input).sin_cos();
                    [scale * cosine, scale * sine]
                };
                directions.iter().flat_map(pair).collect()
            }
            Waves::Asked(features) => asked(features, &[input.to_vec()]).remove(0),
        }
    }

    /// Value by value, the derivative by every number of the input.
    pub(crate) fn derivatives(&self, input: &[f64]) -> Vec<Vec<f64>> {
        match self {
            Waves::OfInputs { directions, scale } => {
                let pair = |direction: &Vec<f64>| {
                    let (sine, cosine) = dot(direction, input).sin_cos();
                    [-scale * sine, scale * cosine]
                        .map(|slope| direction.iter().map(|w| slope * w).collect::<Vec<f64>>())
                };
                directions.iter().flat_map(pair).collect()
            }
            Waves::Asked(features) => {
                const STEP: f64 = 0.02;
                let moved = |k: usize, step: f64| {
                    let mut moved = input.to_vec();
                    moved[k] += step;
                    moved
                };
                let inputs: Vec<Vec<f64>> =
                    (0..input.len()).flat_map(|k| [moved(k, STEP), moved(k, -STEP)]).collect();
                let found = asked(features, &inputs);
                let slope = |value: usize, k: usize| {
                    (found[2 * k][value] - found[2 * k + 1][value]) / (2.0 * STEP)
                };
                let of = |value| (0..input.len()).map(|k| slope(value, k)).collect();
                (0..features.count()).map(of).collect()
            }
        }
    }
}

/// The features of some inputs.
fn asked(features: &Features, inputs: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut found = Vec::new();
    features.each(&flat(inputs), |values| found.push(wide(values)));
    found
}

/// Ones at some places, zeros elsewhere.
pub(crate) fn unit(side: usize, ones: &[usize]) -> Vec<f64> {
    (0..side).map(|k| f64::from(u8::from(ones.contains(&k)))).collect()
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// A symmetric positive matrix as L·Lᵀ.
pub(crate) struct Root(Vec<Vec<f64>>);

impl Root {
    pub(crate) fn of(matrix: &[Vec<f64>]) -> Root {
        let n = matrix.len();
        let mut root = vec![vec![0.0; n]; n];
        for i in 0..n {
            for j in 0..=i {
                let rest = matrix[i][j] - dot(&root[i][..j], &root[j][..j]);
                root[i][j] = if i == j { rest.max(1e-300).sqrt() } else { rest / root[j][j] };
            }
        }
        Root(root)
    }

    /// L·b.
    pub(crate) fn times(&self, b: &[f64]) -> Vec<f64> {
        self.0.iter().map(|row| dot(row, b)).collect()
    }

    /// A row of L.
    pub(crate) fn row(&self, k: usize) -> Vec<f64> {
        self.0[k].clone()
    }

    /// L⁻¹·b.
    fn forward(&self, b: &[f64]) -> Vec<f64> {
        let mut x: Vec<f64> = Vec::with_capacity(b.len());
        for (row, b) in self.0.iter().zip(b) {
            x.push((b - dot(&row[..x.len()], &x)) / row[x.len()]);
        }
        x
    }

    pub(crate) fn solve(&self, b: &[f64]) -> Vec<f64> {
        let mut x = self.forward(b);
        for i in (0..x.len()).rev() {
            x[i] /= self.0[i][i];
            for j in 0..i {
                x[j] -= self.0[i][j] * x[i];
            }
        }
        x
    }
}

/// From a mean and a covariance: samples are the inputs whose features lie in the span of those that were seen, which is where the
/// covariance does not vanish. One descent (Levenberg and Marquardt) from every start, each ends at a sample or nowhere; those
/// that ended at one.
pub(crate) fn from_moments(
    waves: &Waves,
    mean: &[f64],
    covariance: &[Vec<f64>],
    starts: &[Vec<f64>],
) -> Vec<Vec<f64>> {
    let trace: f64 = covariance.iter().enumerate().map(|(i, row)| row[i]).sum();
    let mut widened = covariance.to_vec();
    let outside = 1e-6 * trace;
    widened.iter_mut().enumerate().for_each(|(i, row)| row[i] += outside);
    let root = Root::of(&widened);
    // λ(C + λ)⁻¹ leaves what is outside the span as it is, and of what is within next to nothing.
    let without_span =
        |v: &[f64]| -> Vec<f64> { root.solve(v).into_iter().map(|x| outside * x).collect() };
    let residual = |input: &[f64]| -> Vec<f64> {
        let offset: Vec<f64> = waves.values(input).iter().zip(mean).map(|(v, m)| v - m).collect();
        without_span(&offset)
    };
    let mut rebuilt = Vec::new();
    for start in starts {
        let (mut input, mut damping) = (start.clone(), 1e-2);
        let mut own = residual(&input);
        for _ in 0..60 {
            if dot(&own, &own) < 1e-13 || damping > 1e6 {
                break;
            }
            let slopes = waves.derivatives(&input);
            let columns: Vec<Vec<f64>> = (0..input.len())
                .map(|k| without_span(&slopes.iter().map(|row| row[k]).collect::<Vec<f64>>()))
                .collect();
            let mut normal: Vec<Vec<f64>> =
                columns.iter().map(|a| columns.iter().map(|b| dot(a, b)).collect()).collect();
            for (k, row) in normal.iter_mut().enumerate() {
                row[k] *= 1.0 + damping;
            }
            let slope: Vec<f64> = columns.iter().map(|column| -dot(column, &own)).collect();
            let step = Root::of(&normal).solve(&slope);
            let next: Vec<f64> = input.iter().zip(&step).map(|(x, s)| x + s).collect();
            let there = residual(&next);
            if dot(&there, &there) < dot(&own, &own) {
                (input, own) = (next, there);
                damping = (damping * 0.3_f64).max(1e-9);
            } else {
                damping *= 4.0;
            }
        }
        if dot(&own, &own) < 1e-8 {
            rebuilt.push(input);
        }
    }
    rebuilt
}

/// From the features of one sample: the inputs that have them.
pub(crate) fn of_one(waves: &Waves, features: &[f64], starts: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let side = features.len();
    let equally: Vec<Vec<f64>> = (0..side).map(|k| unit(side, &[k])).collect();
    from_moments(waves, features, &equally, starts)
}

/// From the features of one sample, by an attacker who has samples of the same kind: the angles of the waves are linear in the sample, and of all inputs that
/// have them the likeliest is taken, if such samples are normal.
pub(crate) fn likeliest(waves: &Waves, features: &[f64], own: &[Vec<f64>]) -> Vec<f64> {
    let (count, mean) = (own.len() as f64, mean_of(own));
    let apart = |sample: &Vec<f64>| sample.iter().zip(&mean).map(|(s, m)| s - m).collect();
    let apart: Vec<Vec<f64>> = own.iter().map(apart).collect();
    // Inputs and angles of the attacker's samples vary together; a regression of the one on the other.
    let angles: Vec<Vec<f64>> = (apart.iter())
        .map(|sample| waves.directions().iter().map(|d| dot(d, sample)).collect())
        .collect();
    let missing: Vec<f64> = (waves.directions().iter().zip(features.chunks_exact(2)))
        .map(|(direction, pair)| {
            let turned = pair[1].atan2(pair[0]) - dot(direction, &mean);
            turned - TAU * (turned / TAU).round()
        })
        .collect();
    let waves = waves.directions().len();
    let mut together = vec![vec![0.0; waves]; waves];
    for sample in &angles {
        for (row, a) in together.iter_mut().zip(sample) {
            row.iter_mut().zip(sample).for_each(|(t, b)| *t += a * b / count);
        }
    }
    let trace: f64 = (0..waves).map(|k| together[k][k]).sum();
    (0..waves).for_each(|k| together[k][k] += 1e-9 * trace);
    let weights = Root::of(&together).solve(&missing);
    let mut found = mean;
    for (sample, angles) in apart.iter().zip(&angles) {
        let weight = dot(angles, &weights) / count;
        found.iter_mut().zip(sample).for_each(|(f, s)| *f += weight * s);
    }
    found
}

/// From a mean alone: as many inputs as there were samples.
pub(crate) fn from_mean(waves: &Waves, mean: &[f64], start: &[Vec<f64>]) -> Vec<Vec<f64>> {
    from_sum(waves, mean, &vec![1.0 / start.len() as f64; start.len()], start)
}

/// From a sum of features with a weight for each sample: inputs, moved together from a start until their features have that sum
/// (Gauss and Newton, the shortest step that is enough).
pub(crate) fn from_sum(
    waves: &Waves,
    sum: &[f64],
    weights: &[f64],
    start: &[Vec<f64>],
) -> Vec<Vec<f64>> {
    let mut inputs = start.to_vec();
    let scale: f64 = weights.iter().map(|w| w.abs()).sum();
    for _ in 0..12 {
        let mut missing = sum.to_vec();
        let mut slopes = Vec::new();
        for (input, weight) in inputs.iter().zip(weights) {
            missing.iter_mut().zip(waves.values(input)).for_each(|(m, v)| *m -= weight * v);
            slopes.push(waves.derivatives(input));
        }
        // As near as the single precision of what was published.
        if dot(&missing, &missing) < 1e-14 * scale * scale {
            break;
        }
        let side = missing.len();
        let mut gram = vec![vec![0.0; side]; side];
        for (slopes, weight) in slopes.iter().zip(weights) {
            for (i, (row, a)) in gram.iter_mut().zip(slopes).enumerate() {
                let until = row[..=i].iter_mut().zip(slopes);
                until.for_each(|(g, b)| *g += weight * weight * dot(a, b));
            }
        }
        let trace: f64 = (0..side).map(|i| gram[i][i]).sum();
        (0..side).for_each(|i| gram[i][i] += 1e-9 * trace);
        let multipliers = Root::of(&gram).solve(&missing);
        for ((input, slopes), weight) in inputs.iter_mut().zip(&slopes).zip(weights) {
            for (row, m) in slopes.iter().zip(&multipliers) {
                input.iter_mut().zip(row).for_each(|(x, s)| *x += weight * m * s);
            }
        }
    }
    inputs
}

/// The distance of a sample to the nearest of some inputs, a root mean square over its numbers.
pub(crate) fn nearest(sample: &[f64], inputs: &[Vec<f64>]) -> f64 {
    let distance = |input: &Vec<f64>| {
        let squares = sample.iter().zip(input).map(|(a, b)| (a - b).powi(2));
        (squares.sum::<f64>() / sample.len() as f64).sqrt()
    };
    inputs.iter().map(distance).fold(f64::INFINITY, f64::min)
}

/// The mean and the covariance of the features of some inputs.
pub(crate) fn moments_of(features: &Features, inputs: &[f32]) -> (Vec<f64>, Vec<Vec<f64>>) {
    let side = features.count();
    let (mut mean, mut products, mut count) = (vec![0.0; side], vec![vec![0.0; side]; side], 0.0);
    features.each(inputs, |values| {
        count += 1.0;
        for (i, &a) in values.iter().enumerate() {
            mean[i] += f64::from(a);
            products[i].iter_mut().zip(values).for_each(|(p, &b)| *p += f64::from(a * b));
        }
    });
    mean.iter_mut().for_each(|m| *m /= count);
    for (row, a) in products.iter_mut().zip(&mean) {
        row.iter_mut().zip(&mean).for_each(|(p, b)| *p = *p / count - a * b);
    }
    (mean, products)
}

/// What features are like, taken for normal.
pub(crate) struct Normal {
    mean: Vec<f64>,
    root: Root,
    /// The number of directions in which they vary.
    pub(crate) dimension: f64,
}

impl Normal {
    pub(crate) fn new(mean: Vec<f64>, covariance: &[Vec<f64>]) -> Normal {
        let side = mean.len();
        let trace: f64 = (0..side).map(|k| covariance[k][k]).sum();
        let added = 1e-3 * trace / side as f64;
        let mut widened = covariance.to_vec();
        (0..side).for_each(|k| widened[k][k] += added);
        let root = Root::of(&widened);
        let outside: f64 = (0..side).map(|k| added * root.solve(&unit(side, &[k]))[k]).sum();
        Normal { mean, root, dimension: side as f64 - outside }
    }

    /// How a mean that was published speaks for each vector of features: (m − μ)ᵀ·Σ⁻¹·(φ − μ), by which the logarithm of the likelihood ratio rises.
    pub(crate) fn scores<'a>(&'a self, published: &[f64]) -> impl Fn(&[f64]) -> f64 + 'a {
        let less = |a: &[f64]| a.iter().zip(&self.mean).map(|(a, m)| a - m).collect::<Vec<f64>>();
        let direction = self.root.solve(&less(published));
        move |values| dot(&direction, &less(values))
    }
}
