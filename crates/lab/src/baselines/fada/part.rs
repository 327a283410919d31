//! One of FADA's networks: its parameters, how it descends, and gradients reversed on their way out.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use stlf_data::Shape;
use stlf_learn::{Descent, Layer, Mode, Network, Params, Spec};

use stlf_planning::error::Error;

/// Longer gradients are shortened to this. An adversary's loss, reversed, has no least value: without a limit the two
/// drive each other beyond all numbers.
const LONGEST_GRADIENT: f32 = 1.0;

/// A network with its parameters and its momentum.
#[derive(Debug)]
pub(super) struct Part {
    network: Network,
    pub params: Params,
    gradients: Params,
    velocity: Params,
}

impl Part {
    /// Returns a part whose first parameters are drawn from `rng`.
    pub(super) fn new(spec: &Spec, capacity: usize, rng: &mut ChaCha8Rng) -> Part {
        Part {
            network: Network::new(spec, capacity),
            params: Params::initial(spec, rng.random()),
            gradients: Params::zeros(spec),
            velocity: Params::zeros(spec),
        }
    }

    /// A small network over vectors: linear layers with ReLU between them.
    pub(super) fn head(
        inputs: usize,
        outputs: &[usize],
        capacity: usize,
        rng: &mut ChaCha8Rng,
    ) -> Result<Part, Error> {
        let mut layers = Vec::new();
        for &outputs in outputs {
            if !layers.is_empty() {
                layers.push(Layer::Relu);
            }
            layers.push(Layer::Linear { outputs });
        }
        let input = Shape { channels: 1, height: 1, width: inputs };
        let spec = Spec::new(input, layers).map_err(|e| Error::other("fada", e.to_string()))?;
        Ok(Part::new(&spec, capacity, rng))
    }

    /// Starts a new descent from other parameters.
    pub(super) fn restart(&mut self, params: &Params) {
        self.params.copy_from_slice(params);
        self.velocity.fill(0.0);
    }

    /// Returns where `batch` inputs are to be written.
    pub(super) fn inputs(&mut self, batch: usize) -> &mut [f32] {
        self.network.inputs(batch)
    }

    /// Returns the outputs for the inputs written before.
    pub(super) fn forward(&mut self, rng: &mut ChaCha8Rng) -> &[f32] {
        self.network.forward(&self.params, Mode::Train(rng))
    }

    /// Writes the outputs' gradients by `loss`, goes back, and returns the loss and the inputs' gradients.
    pub(super) fn backward(
        &mut self,
        loss: impl FnOnce(&[f32], &mut [f32]) -> f32,
    ) -> (f32, &[f32]) {
        let (outputs, gradients) = self.network.outputs_and_gradients();
        let loss = loss(outputs, gradients);
        self.gradients.fill(0.0);
        let to_inputs = self.network.backward(&self.params, &mut self.gradients, true);
        (loss, to_inputs.unwrap_or_default())
    }

    /// Goes back from given gradients of the outputs, to the parameters alone: nothing lies below.
    pub(super) fn backward_last(&mut self, to_outputs: &[f32]) {
        let (_, gradients) = self.network.outputs_and_gradients();
        gradients.copy_from_slice(to_outputs);
        self.gradients.fill(0.0);
        self.network.backward(&self.params, &mut self.gradients, false);
    }

    /// Makes one step against the gradients of the last backward pass.
    pub(super) fn descend(&mut self, descent: &Descent) {
        let length = self.gradients.iter().map(|g| g * g).sum::<f32>().sqrt();
        if length > LONGEST_GRADIENT {
            self.gradients.iter_mut().for_each(|g| *g *= LONGEST_GRADIENT / length);
        }
        descent.step(&mut self.params, &mut self.velocity, &self.gradients);
    }
}

/// Adds `weight` times the gradients of one network's inputs to the gradients of what they came from.
///
/// A negative weight reverses them (Ganin and Lempitsky, 2015): the network above descends its loss while everything
/// below ascends it. Both then want opposite things of the features between them, which is all that is adversarial here.
pub(super) fn add_scaled(gradients: &mut [f32], weight: f32, more: &[f32]) {
    gradients.iter_mut().zip(more).for_each(|(sum, &g)| *sum += weight * g);
}

/// Columns `start..start + width` of rows of `of` numbers.
pub(super) fn columns(
    rows: &[f32],
    of: usize,
    start: usize,
    width: usize,
) -> impl Iterator<Item = &[f32]> {
    rows.chunks_exact(of).map(move |row| &row[start..start + width])
}
