//! The sketches of a fleet together: d̂ of any pair, and the nearest senders of every receiver.

use rayon::prelude::*;
use stlf_planning::error::{Counted, Error, Range, Reason};

use super::Estimate;
use super::covariance::{Cholesky, add_to_diagonal, trace, trace_of_product, triangle};
use super::separation::separated;
use super::sketch::{Settings, Sketch, Statistic};

/// All devices as points; memory grows with the number of devices, not of pairs.
#[derive(Debug, Clone)]
pub struct Fleet {
    statistic: Statistic,
    dimensions: usize,
    /// Device after device, in coordinates in which the distance is the plain one.
    points: Vec<f32>,
    /// By how much each device's sampling raises its squared distance from any other, on average.
    excess: Vec<f64>,
    /// The number of independent directions in which that happens.
    directions: f64,
    samples: Vec<f64>,
    confidence: f64,
}

/// A sender that is near a receiver.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// The index of the sender.
    pub from: usize,
    /// The index of the receiver.
    pub to: usize,
    /// d̂ of the two devices, with its interval.
    pub divergence: Estimate,
}

impl Fleet {
    /// Puts sketches together.
    ///
    /// # Errors
    /// Names the sketch that does not fit the settings.
    pub fn new(sketches: &[Sketch], settings: &Settings) -> Result<Fleet, Error> {
        settings.check()?;
        let dimensions = settings.features;
        check(sketches, dimensions)?;
        let samples: Vec<f64> = sketches.iter().map(|s| s.samples as f64).collect();
        let (points, excess, directions) = match settings.statistic {
            Statistic::Separation { ridge } => separate(sketches, dimensions, ridge)?,
            Statistic::OwnSeparation { .. } => {
                let message = "every device measures by its own covariance, which it keeps";
                return Err(Error::other("divergence.statistic", message)
                    .with_hint("use the statistic discrepancy, for which means are enough"));
            }
            Statistic::Discrepancy { .. } => {
                let points = sketches.iter().flat_map(|s| s.mean.iter().copied()).collect();
                let excess = sketches.iter().map(|s| discrepancy_excess(s, settings)).collect();
                (points, excess, dimensions as f64)
            }
        };
        let (statistic, confidence) = (settings.statistic, settings.confidence);
        Ok(Fleet { statistic, dimensions, points, excess, directions, samples, confidence })
    }

    /// How many devices there are.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    fn point(&self, device: usize) -> &[f32] {
        &self.points[device * self.dimensions..(device + 1) * self.dimensions]
    }

    /// d̂ of two devices.
    pub fn divergence(&self, i: usize, j: usize) -> Estimate {
        let squares =
            self.point(i).iter().zip(self.point(j)).map(|(a, b)| f64::from(a - b).powi(2));
        self.estimate(i, j, squares.sum())
    }

    /// d̂ from the squared distance of the two points. Subtracting what sampling adds makes it unbiased.
    fn estimate(&self, i: usize, j: usize, squared: f64) -> Estimate {
        let excess = self.excess[i] + self.excess[j];
        let unbiased = squared - excess;
        match self.statistic {
            Statistic::Separation { .. } | Statistic::OwnSeparation { .. } => {
                separated(unbiased, excess, self.directions, self.confidence)
            }
            Statistic::Discrepancy { gain } => {
                // Features have length 1, so that McDiarmid's inequality holds for each mean.
                let spread = 1.0 / self.samples[i] + 1.0 / self.samples[j];
                let half = ((1.0 / (1.0 - self.confidence)).ln() * spread.max(excess)).sqrt();
                let distance = unbiased.max(0.0).sqrt();
                let [value, low, high] = [distance, distance - half, distance + half]
                    .map(|distance| saturating(gain * distance));
                Estimate::new(value, low, high)
            }
        }
    }

    /// For every receiver the `count` nearest senders other than itself, nearest first. It compares all of
    /// them with all, a block at a time and without a matrix, so that it misses none.
    pub fn nearest(&self, senders: &[usize], receivers: &[usize], count: usize) -> Vec<Candidate> {
        let tiles: Vec<Tile> = senders.chunks(TILE).map(|tile| self.tile(tile)).collect();
        // Few enough receivers for their points and lists to stay near, many enough to share out.
        let blocks = receivers.par_chunks(64).map(|block| {
            let mut lists: Vec<Vec<(f32, usize)>> =
                vec![Vec::with_capacity(count + 1); block.len()];
            for tiles in tiles.chunks(32) {
                for (&receiver, list) in block.iter().zip(&mut lists) {
                    for tile in tiles {
                        tile.offer(self.point(receiver), receiver, count, list);
                    }
                }
            }
            let lists = block.iter().zip(lists);
            lists
                .flat_map(|(&to, list)| {
                    list.into_iter().map(move |(_, from)| Candidate {
                        from,
                        to,
                        divergence: self.divergence(from, to),
                    })
                })
                .collect::<Vec<_>>()
        });
        blocks.flatten_iter().collect()
    }

    fn tile(&self, senders: &[usize]) -> Tile {
        let mut tile = Tile {
            senders: senders.to_vec(),
            coordinates: vec![[0.0; TILE]; self.dimensions],
            offsets: [f32::INFINITY; TILE],
        };
        for (lane, &sender) in senders.iter().enumerate() {
            let point = self.point(sender);
            for (lanes, &x) in tile.coordinates.iter_mut().zip(point) {
                lanes[lane] = -2.0 * x;
            }
            let length: f64 = point.iter().map(|&x| f64::from(x).powi(2)).sum();
            tile.offsets[lane] = (length - self.excess[sender]) as f32;
        }
        tile
    }
}

/// How many senders are compared with a receiver at once.
const TILE: usize = 32;

/// Some senders, coordinate by coordinate, so that the inner loop runs along senders.
struct Tile {
    senders: Vec<usize>,
    /// −2x of each sender, coordinate by coordinate.
    coordinates: Vec<[f32; TILE]>,
    /// |x|² less the excess: with −2x·y it orders senders as the unbiased distance does.
    offsets: [f32; TILE],
}

impl Tile {
    /// Enters into a receiver's sorted list those senders that are nearer than its last.
    fn offer(&self, to: &[f32], receiver: usize, count: usize, list: &mut Vec<(f32, usize)>) {
        let mut scores = self.offsets;
        for (lanes, &y) in self.coordinates.iter().zip(to) {
            scores.iter_mut().zip(lanes).for_each(|(score, x)| *score += x * y);
        }
        for (&score, &sender) in scores.iter().zip(&self.senders) {
            let full = list.len() >= count;
            if sender == receiver || full && list.last().is_none_or(|last| score >= last.0) {
                continue;
            }
            let at = list.partition_point(|entry| entry.0 <= score);
            list.insert(at, (score, sender));
            list.truncate(count);
        }
    }
}

fn check(sketches: &[Sketch], dimensions: usize) -> Result<(), Error> {
    for (k, sketch) in sketches.iter().enumerate() {
        let covariance = sketch.covariance.as_deref();
        if sketch.samples == 0 {
            return Err(Error::no_samples(format!("sketches[{k}]"), "it has no samples"));
        }
        let length = |found: usize, expected: usize, part: &str| match found == expected {
            true => Ok(()),
            false => {
                let reason = Reason::Length { found, expected, of: Counted::Numbers };
                Err(Error::new(format!("sketches[{k}]{part}"), reason))
            }
        };
        length(sketch.mean.len(), dimensions, "")?;
        if let Some(covariance) = covariance {
            length(covariance.len(), triangle(dimensions), ".covariance")?;
        }
        for &number in sketch.mean.iter().chain(covariance.unwrap_or_default()) {
            Range::FINITE.check(number.into(), || format!("sketches[{k}]"))?;
        }
    }
    Ok(())
}

/// Points at which the plain distance is that by the mean covariance S, with what sampling adds to it.
fn separate(
    sketches: &[Sketch],
    side: usize,
    ridge: f64,
) -> Result<(Vec<f32>, Vec<f64>, f64), Error> {
    let mut pooled = vec![0.0; triangle(side)];
    let mut total = 0.0;
    for sketch in sketches {
        let weight = sketch.samples as f64;
        if let Some(covariance) = &sketch.covariance {
            pooled.iter_mut().zip(covariance).for_each(|(sum, &c)| *sum += weight * f64::from(c));
            total += weight;
        }
    }
    if total == 0.0 && !sketches.is_empty() {
        return Err(Error::missing("sketches", "no device published its covariance")
            .with_hint("some must, or use the statistic discrepancy"));
    }
    pooled.iter_mut().for_each(|sum| *sum /= total.max(1.0));
    // Identical inputs everywhere have no spread at all, and then nothing is far.
    let added = (ridge * trace(&pooled, side) / side as f64).max(1e-12);
    add_to_diagonal(&mut pooled, side, added);
    let cholesky = Cholesky::new(pooled, side);
    let inverse = cholesky.inverse();
    // With A = (S + λ)⁻¹·S, a mean of n samples strays by tr(A)/n, in (tr A)²/tr(A²) directions.
    let kept = side as f64 - added * trace(&inverse, side);
    let squared = trace_of_product(inverse.iter().copied(), &inverse, side);
    let kept_squared = side as f64 - 2.0 * added * trace(&inverse, side) + added * added * squared;
    let directions = (kept * kept / kept_squared).max(1.0);
    let excess = |sketch: &Sketch| {
        let strays = match &sketch.covariance {
            Some(own) if sketch.samples > 1 => {
                trace_of_product(own.iter().map(|&c| f64::from(c)), &inverse, side)
            }
            _ => kept,
        };
        strays / (sketch.samples as f64 - 1.0).max(1.0)
    };
    // The inverse of a covariance of few samples is too large, on average by 1/(1 − tr(A)/samples).
    let shrink = (1.0 - kept / total.max(1.0)).max(0.0).sqrt();
    let points = sketches.par_iter().flat_map_iter(|sketch| {
        let mut mean: Vec<f64> = sketch.mean.iter().map(|&m| f64::from(m)).collect();
        cholesky.whiten(&mut mean);
        mean.into_iter().map(move |m| (shrink * m) as f32)
    });
    Ok((points.collect(), sketches.par_iter().map(excess).collect(), directions))
}

/// What sampling and noise add to the squared distance of a mean: features have length 1, so that a mean's
/// own variance is (1 − |mean|²)/(n − 1).
fn discrepancy_excess(sketch: &Sketch, settings: &Settings) -> f64 {
    let noise = settings.features as f64 * settings.noise(sketch.samples).powi(2);
    let length: f64 = sketch.mean.iter().map(|&m| f64::from(m).powi(2)).sum::<f64>() - noise;
    (1.0 - length).clamp(0.0, 1.0) / (sketch.samples as f64 - 1.0).max(1.0) + noise
}

/// Near x where that is small, and below 2 however large it is, so that of two far devices the farther one is still seen.
fn saturating(x: f64) -> f64 {
    2.0 * (1.0 - (-x / 2.0).exp())
}

#[cfg(test)]
mod tests;
