//! Random features that all devices share: the same seed gives the same map everywhere, so that only
//! summaries of its values need to travel.

use std::borrow::Cow;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use stlf_data::Shape;
use stlf_learn::{Layer, Mode, Network, Params, Spec};
use stlf_planning::error::Error;

use super::derive;
use super::privacy::normal;
use super::windows::Filters;

/// What the waves are laid over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Embedding {
    /// The inputs as they are.
    #[default]
    Inputs,
    /// Two layers of random convolutions of 5 × 5, 10 and 20 of them, each with pooling and ReLU. For pictures
    /// of at least 16 × 16 pixels; others are taken as they are.
    Convolutions,
    /// Windows of a series, whatever moment they begin at: energies of random filters along the time, and the level of every channel.
    Windows,
}

impl Embedding {
    fn layers(self, shape: Shape) -> Vec<Layer> {
        let layer =
            |channels| [Layer::Conv2d { channels, kernel: 5 }, Layer::MaxPool2d, Layer::Relu];
        match self {
            Embedding::Convolutions if shape.height.min(shape.width) >= 16 => {
                [layer(10), layer(20)].concat()
            }
            _ => Vec::new(),
        }
    }
}

/// How many inputs go through a map together.
const TOGETHER: usize = 32;

/// An embedding with its random weights.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedded {
    /// What windows go through before the network.
    filters: Option<Filters>,
    spec: Spec,
    params: Params,
}

impl Embedded {
    /// The embedding that this seed gives for inputs of a shape.
    pub fn new(embedding: Embedding, shape: Shape, seed: u64) -> Result<Embedded, Error> {
        let filters = (embedding == Embedding::Windows && !shape.is_empty())
            .then(|| Filters::new(shape, seed));
        let shape = filters.as_ref().map_or(shape, Filters::answers);
        let spec = Spec::new(shape, embedding.layers(shape)).map_err(unfit)?;
        let params = Params::initial(&spec, seed);
        Ok(Embedded { filters, spec, params })
    }

    /// The median distance of random pairs of a device's inputs within the embedding; without two
    /// inputs, none.
    pub fn median_distance(&self, inputs: &[f32], seed: u64) -> Option<f64> {
        const PAIRS: usize = 300;
        let inputs = &*filtered(self.filters.as_ref(), inputs);
        let numbers = self.spec.input().len();
        let samples = inputs.len() / numbers;
        if samples < 2 {
            return None;
        }
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut network = Network::new(&self.spec, 2);
        let mut distances: Vec<f64> = (0..PAIRS)
            .map(|_| {
                let a = rng.random_range(0..samples);
                let b = (a + rng.random_range(1..samples)) % samples;
                let pair = network.inputs(2).chunks_exact_mut(numbers);
                for (input, sample) in pair.zip([a, b]) {
                    input.copy_from_slice(&inputs[sample * numbers..(sample + 1) * numbers]);
                }
                let outputs = network.forward(&self.params, Mode::Evaluate);
                let (a, b) = outputs.split_at(outputs.len() / 2);
                a.iter().zip(b).map(|(x, y)| f64::from(x - y).powi(2)).sum::<f64>().sqrt()
            })
            .collect();
        distances.sort_unstable_by(f64::total_cmp);
        Some(distances[PAIRS / 2])
    }
}

/// Inputs as the network takes them.
fn filtered<'i>(filters: Option<&Filters>, inputs: &'i [f32]) -> Cow<'i, [f32]> {
    filters.map_or(Cow::Borrowed(inputs), |filters| Cow::Owned(filters.of(inputs)))
}

/// Random Fourier features (Rahimi and Recht 2007) of an embedding: the cosines and sines of random
/// projections, scaled so that the features of every input have length 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    filters: Option<Filters>,
    spec: Spec,
    params: Params,
    count: usize,
}

impl Features {
    /// `count` features (an even number) of a Gaussian kernel of this bandwidth.
    pub fn new(
        embedded: &Embedded,
        count: usize,
        bandwidth: f64,
        seed: u64,
    ) -> Result<Features, Error> {
        let mut layers: Vec<Layer> = embedded.spec.layers().map(|(layer, _)| layer).collect();
        layers.push(Layer::Linear { outputs: count / 2 });
        let spec = Spec::new(embedded.spec.input(), layers).map_err(unfit)?;
        let mut params = Params::zeros(&spec);
        let start = embedded.params.len();
        params[..start].copy_from_slice(&embedded.params);
        let mut rng = ChaCha8Rng::seed_from_u64(derive(seed, &[0]));
        let weights = count / 2 * embedded.spec.output().len();
        params[start..start + weights].fill_with(|| (normal(&mut rng) / bandwidth) as f32);
        Ok(Features { filters: embedded.filters.clone(), spec, params, count })
    }

    /// Returns the number of features per input.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The numbers of a sample.
    pub fn numbers(&self) -> usize {
        self.filters.as_ref().map_or(self.spec.input(), Filters::window).len()
    }

    /// Calls `see` with the features of every input, in order.
    pub fn each(&self, inputs: &[f32], mut see: impl FnMut(&[f32])) {
        let (filters, numbers) = (self.filters.as_ref(), self.numbers());
        let mut network = Network::new(&self.spec, TOGETHER);
        let scale = (2.0 / self.count as f32).sqrt();
        let mut features = vec![0.0; self.count];
        for inputs in inputs.chunks(TOGETHER * numbers) {
            let into = network.inputs(inputs.len() / numbers);
            into.copy_from_slice(&filtered(filters, inputs));
            let outputs = network.forward(&self.params, Mode::Evaluate);
            for angles in outputs.chunks_exact(self.count / 2) {
                for (pair, angle) in features.chunks_exact_mut(2).zip(angles) {
                    let (sine, cosine) = angle.sin_cos();
                    pair[0] = scale * cosine;
                    pair[1] = scale * sine;
                }
                see(&features);
            }
        }
    }
}

fn unfit(error: stlf_learn::Error) -> Error {
    Error::other("divergence.features", error.to_string())
}
