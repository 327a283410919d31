//! A network at work: forward, and backward to the parameters and to the input.

use stlf_data::Shape;

use crate::buffer::Buffer;
use crate::kernels::Kernels;
use crate::layers::block::Block;
use crate::layers::convolution::Convolution;
use crate::layers::dropout::{Drop, Dropout};
use crate::layers::filters::{Filters, Kernel};
use crate::layers::linear::Linear;
use crate::layers::pool::MaxPool;
use crate::layers::{Mode, Pass, relu};
use crate::spec::{Layer, Spec};

/// The working memory of one network: one per thread. Parameters come in with every call.
#[derive(Debug)]
pub struct Network {
    kernels: &'static Kernels,
    stages: Vec<Stage>,
    /// `activations[s]` goes into stage s; the last is the output. Gradients alike.
    activations: Vec<Buffer>,
    gradients: Vec<Buffer>,
    /// Numbers per sample at each of these places.
    lens: Vec<usize>,
    parameters: usize,
    capacity: usize,
    /// The samples of the last forward pass, and whether it was a training one.
    batch: usize,
    training: bool,
}

#[derive(Debug)]
enum Stage {
    Block(Block),
    Convolution(Convolution),
    MaxPool(MaxPool),
    Relu,
    Dropout(Dropout),
    Linear(Linear),
}

/// Whether layers that follow each other may run as one stage. The results are the same but for rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fusion {
    /// Convolution, channel dropout, pooling and ReLU run together.
    Blocks,
    /// Every layer runs by itself.
    None,
}

/// If these layers begin with a block: its channel dropout, its pooling, and how many layers it takes.
fn block(layers: &[(Layer, Shape)]) -> Option<(Option<Drop>, Layer, usize)> {
    let mut kinds = [None; 4];
    kinds.iter_mut().zip(layers).for_each(|(kind, (layer, _))| *kind = Some(*layer));
    match kinds {
        [_, Some(pool @ (Layer::MaxPool2d | Layer::MaxPool1d)), Some(Layer::Relu), _] => {
            Some((None, pool, 3))
        }
        [_, Some(Layer::Dropout2d { p }), Some(pool @ Layer::MaxPool2d), Some(Layer::Relu)] => {
            Some((Some(Drop::new(p)), pool, 4))
        }
        _ => None,
    }
}

impl Network {
    /// Working memory for batches of up to `capacity` samples, on the fastest kernels.
    pub fn new(spec: &Spec, capacity: usize) -> Network {
        Network::with(spec, capacity, Kernels::fastest(), Fusion::Blocks)
    }

    /// Creates a network that uses these kernels, with or without fused layers.
    pub fn with(
        spec: &Spec,
        capacity: usize,
        kernels: &'static Kernels,
        fusion: Fusion,
    ) -> Network {
        let mut tensors = spec.tensors().iter().map(|t| t.range.clone());
        let mut weight_and_bias =
            || (tensors.next().unwrap_or_default(), tensors.next().unwrap_or_default());
        let mut stages = Vec::new();
        let mut lens = vec![spec.input().len()];
        let layers: Vec<(Layer, Shape)> = spec.layers().collect();
        let mut rest = &layers[..];
        while let [(layer, input), ..] = *rest {
            let mut taken = 1;
            let stage = match layer {
                Layer::Conv2d { kernel, .. } | Layer::Conv1d { kernel, .. } => {
                    let (weight, bias) = weight_and_bias();
                    let kernel = Kernel { rows: layer.rows(), columns: kernel };
                    let filters = Filters::new(input, weight, bias, kernel);
                    match block(rest).filter(|_| fusion == Fusion::Blocks) {
                        None => Stage::Convolution(Convolution::new(filters, capacity)),
                        Some((drop, pool, layers)) => {
                            taken = layers;
                            Stage::Block(Block::new(filters, drop, pool.rows(), capacity))
                        }
                    }
                }
                Layer::MaxPool2d | Layer::MaxPool1d => {
                    Stage::MaxPool(MaxPool::new(input, layer.rows(), capacity))
                }
                Layer::Relu => Stage::Relu,
                Layer::Dropout { p } => Stage::Dropout(Dropout::new(p, 1, capacity * input.len())),
                Layer::Dropout2d { p } => {
                    let group = input.height * input.width;
                    Stage::Dropout(Dropout::new(p, group, capacity * input.channels))
                }
                Layer::Linear { .. } => {
                    let (weight, bias) = weight_and_bias();
                    Stage::Linear(Linear::new(weight, bias, capacity))
                }
            };
            stages.push(stage);
            rest = &rest[taken..];
            lens.push(rest.first().map_or(spec.output(), |(_, next)| *next).len());
        }
        let buffers = || lens.iter().map(|len| Buffer::new(capacity * len)).collect();
        Network {
            kernels,
            stages,
            activations: buffers(),
            gradients: buffers(),
            lens,
            parameters: spec.parameters(),
            capacity,
            batch: 0,
            training: false,
        }
    }

    /// Prepares for many batches forward with these parameters, and no others. The outputs are the same to the bit.
    pub(crate) fn hold(&mut self, params: &[f32]) {
        assert_eq!(params.len(), self.parameters, "parameters of this network");
        for stage in &mut self.stages {
            if let Stage::Linear(linear) = stage {
                linear.hold(params);
            }
        }
    }

    /// Returns how many samples fit into a batch.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Where the inputs of the next batch of `batch` samples are to be written.
    pub fn inputs(&mut self, batch: usize) -> &mut [f32] {
        assert!(batch <= self.capacity, "a batch of at most {} samples", self.capacity);
        self.batch = batch;
        &mut self.activations[0][..batch * self.lens[0]]
    }

    /// The outputs for the inputs written before, sample after sample.
    pub fn forward(&mut self, params: &[f32], mode: Mode<'_>) -> &[f32] {
        self.pass(params, None, mode)
    }

    /// The outputs for inputs that lie elsewhere, which are not copied; there is no way back from them.
    pub(crate) fn evaluate(&mut self, params: &[f32], inputs: &[f32]) -> &[f32] {
        self.batch = inputs.len() / self.lens[0];
        assert_eq!(inputs.len(), self.batch * self.lens[0], "whole samples");
        assert!(self.batch <= self.capacity, "a batch of at most {} samples", self.capacity);
        self.pass(params, Some(inputs), Mode::Evaluate)
    }

    fn pass(&mut self, params: &[f32], inputs: Option<&[f32]>, mut mode: Mode<'_>) -> &[f32] {
        assert_eq!(params.len(), self.parameters, "parameters of this network");
        let pass = Pass { kernels: self.kernels, params, batch: self.batch };
        self.training = matches!(mode, Mode::Train(_));
        for (s, stage) in self.stages.iter_mut().enumerate() {
            let (before, after) = self.activations.split_at_mut(s + 1);
            let x = inputs.filter(|_| s == 0).unwrap_or(&before[s]);
            let x = &x[..self.batch * self.lens[s]];
            let y = &mut after[0][..self.batch * self.lens[s + 1]];
            match stage {
                Stage::Block(block) => block.forward(&pass, x, y, &mut mode),
                Stage::Convolution(convolution) => convolution.forward(&pass, x, y),
                Stage::MaxPool(pool) => pool.forward(&pass, x, y),
                Stage::Relu => relu::forward(x, y),
                Stage::Dropout(dropout) => dropout.forward(x, y, &mut mode),
                Stage::Linear(linear) => linear.forward(&pass, x, y),
            }
        }
        self.outputs()
    }

    /// Returns the outputs of the last forward pass.
    pub fn outputs(&self) -> &[f32] {
        let last = self.stages.len();
        &self.activations[last][..self.batch * self.lens[last]]
    }

    /// The outputs of the last forward pass, and where their gradients are to be written before
    /// [`backward`](Network::backward).
    pub fn outputs_and_gradients(&mut self) -> (&[f32], &mut [f32]) {
        let last = self.stages.len();
        let range = ..self.batch * self.lens[last];
        (&self.activations[last][range], &mut self.gradients[last][range])
    }

    /// From the outputs' gradients, adds the parameters' to `gradients` and, where it is asked for,
    /// returns the inputs', so that networks can be chained and reversed.
    pub fn backward(
        &mut self,
        params: &[f32],
        gradients: &mut [f32],
        to_input: bool,
    ) -> Option<&[f32]> {
        assert_eq!(params.len(), self.parameters, "parameters of this network");
        assert_eq!(gradients.len(), self.parameters, "gradients of this network");
        let pass = Pass { kernels: self.kernels, params, batch: self.batch };
        for (s, stage) in self.stages.iter_mut().enumerate().rev() {
            let (before, after) = self.gradients.split_at_mut(s + 1);
            let dx = &mut before[s][..self.batch * self.lens[s]];
            let dy = &after[0][..self.batch * self.lens[s + 1]];
            let wanted = s > 0 || to_input;
            match stage {
                Stage::Block(block) => {
                    let y = &self.activations[s + 1];
                    block.backward(&pass, y, dy, wanted.then_some(dx), gradients, self.training);
                }
                Stage::Convolution(convolution) => {
                    convolution.backward(&pass, dy, wanted.then_some(dx), gradients);
                }
                Stage::Linear(linear) => {
                    let x = &self.activations[s][..self.batch * self.lens[s]];
                    linear.backward(&pass, x, dy, wanted.then_some(dx), gradients);
                }
                Stage::MaxPool(pool) => pool.backward(&pass, dy, dx),
                Stage::Relu => relu::backward(&self.activations[s + 1], dy, dx),
                Stage::Dropout(dropout) => dropout.backward(dy, dx),
            }
        }
        to_input.then(|| &self.gradients[0][..self.batch * self.lens[0]])
    }
}
