//! Samples that attacks are tried on, and what counts as having found them.

use std::f64::consts::TAU;
use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use stlf_data::Shape;
use stlf_data::domains::{Colour, Half, Style, strokes};
use stlf_method::divergence::sketch::{self, agreed_features};
use stlf_method::divergence::{Embedding, Features, Settings};

use crate::attack::{Waves, nearest};

pub(crate) const SEED: u64 = 11;

/// A sample counts as rebuilt if its numbers are right to a fiftieth of their range, in the mean square.
const REBUILT: f64 = 0.02;

/// A kind of samples.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    /// What their features are waves over.
    pub(crate) embedding: Embedding,
    /// The range of a number.
    pub(crate) range: f64,
    /// So many of them, from a seed.
    pub(crate) draw: fn(usize, u64) -> Vec<Vec<f64>>,
    /// Whether means of them have base noise.
    pub(crate) base_noise: bool,
}

pub(crate) const PICTURES: Kind = Kind {
    name: "pictures",
    shape: Shape::grey(7),
    embedding: Embedding::Inputs,
    range: 1.0,
    draw: pictures,
    base_noise: true,
};
pub(crate) const ROWS: Kind = Kind {
    name: "rows",
    shape: Shape { channels: 1, height: 1, width: 12 },
    embedding: Embedding::Inputs,
    range: 4.0,
    draw: rows,
    base_noise: true,
};
pub(crate) const WINDOWS: Kind = Kind {
    name: "windows",
    shape: Shape { channels: 1, height: 1, width: 16 },
    embedding: Embedding::Windows,
    range: 4.0,
    draw: windows,
    base_noise: true,
};

impl Kind {
    /// What devices with such samples measure by.
    pub(crate) fn means(&self) -> sketch::Settings {
        let usual = sketch::Settings::means_over(self.embedding, self.shape);
        usual.with(|s| s.base_noise = self.base_noise)
    }

    /// The same samples, of which devices would publish means without noise.
    pub(crate) fn without_noise(self) -> Kind {
        Kind { base_noise: false, ..self }
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings::Sketch(self.means())
    }

    /// The features of it, which all members know.
    pub(crate) fn features(&self) -> Features {
        let sketch::Settings { bandwidth, embedding, features, .. } = self.means();
        agreed_features(&[bandwidth.known()], self.shape, embedding, features, SEED).unwrap()
    }

    /// The same as an attacker computes with them.
    pub(crate) fn waves(&self) -> Waves {
        match self.embedding {
            Embedding::Windows => Waves::Asked(self.features()),
            Embedding::Inputs | Embedding::Convolutions => Waves::of(&self.features(), self.shape),
        }
    }

    /// How many samples are among what was rebuilt, and the mean distance to it; prints both.
    pub(crate) fn found(
        &self,
        what: &str,
        victim: &[Vec<f64>],
        rebuilt: &[Vec<f64>],
    ) -> (usize, f64) {
        let distances: Vec<f64> = victim.iter().map(|s| nearest(s, rebuilt) / self.range).collect();
        let count = distances.iter().filter(|d| **d < REBUILT).count();
        let mean = distances.iter().sum::<f64>() / distances.len() as f64;
        let (all, name) = (victim.len(), self.name);
        println!("{what}: {count} of {all} {name} rebuilt, mean distance {mean:.3} of the range");
        (count, mean)
    }
}

/// Drawn digits, each pixel the mean of sixteen.
fn pictures(samples: usize, seed: u64) -> Vec<Vec<f64>> {
    let drawn = strokes(Style::Clean, Half::Train, samples, seed, Colour::Grey).unwrap();
    let small = |k: usize| {
        let large = drawn.inputs(&[k]);
        let pixel = |at: usize| {
            let (y, x) = (at / 7 * 4, at % 7 * 4);
            let sixteen = (0..16).map(|k| f64::from(large[(y + k / 4) * 28 + x + k % 4]));
            sixteen.sum::<f64>() / 16.0
        };
        (0..49).map(pixel).collect()
    };
    (0..samples).map(small).collect()
}

/// Rows of a table whose columns follow four hidden causes, as columns do; their range is about four.
fn rows(samples: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut uniform = || rng.random_range(-1.0..1.0);
    let row = |uniform: &mut dyn FnMut() -> f64| {
        let causes: Vec<f64> = (0..4).map(|_| uniform()).collect();
        (0..12).map(|k| causes[k % 4] + 0.5 * causes[(k / 4 + 1) % 4] + 0.5 * uniform()).collect()
    };
    (0..samples).map(|_| row(&mut uniform)).collect()
}

/// Vibrations of any speed that begin anywhere; their range is about four.
fn windows(samples: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut window = |_| {
        let (speed, phase) = (rng.random_range(0.3..1.5), rng.random_range(0.0..TAU));
        let reading = |k: u32| (phase + speed * f64::from(k)).sin();
        (0..16).map(|k| 1.5 * reading(k) + rng.random_range(-0.5..0.5)).collect()
    };
    (0..samples).map(&mut window).collect()
}

pub(crate) fn flat(samples: &[Vec<f64>]) -> Arc<[f32]> {
    samples.iter().flatten().map(|&x| x as f32).collect()
}

pub(crate) fn wide(numbers: &[f32]) -> Vec<f64> {
    numbers.iter().map(|&x| f64::from(x)).collect()
}

pub(crate) fn mean_of(samples: &[Vec<f64>]) -> Vec<f64> {
    let count = samples.len() as f64;
    (0..samples[0].len()).map(|k| samples.iter().map(|s| s[k]).sum::<f64>() / count).collect()
}
