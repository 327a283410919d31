//! The layers at work: each holds what its backward pass needs of the forward pass.
//!
//! All take whole batches, sample after sample, and allocate nothing after they were made.

pub(crate) mod block;
pub(crate) mod convolution;
pub(crate) mod dropout;
pub(crate) mod filters;
pub(crate) mod linear;
pub(crate) mod pool;
pub(crate) mod relu;
mod transpose;

use rand_chacha::ChaCha8Rng;

/// Whether the network is trained or evaluated.
pub enum Mode<'a> {
    /// Training, in which dropout draws from this generator.
    Train(&'a mut ChaCha8Rng),
    /// Evaluation, in which dropout does nothing.
    Evaluate,
}

/// What a layer needs besides its input.
pub(crate) struct Pass<'a> {
    pub kernels: &'static crate::Kernels,
    /// The parameters of the whole network, in one flat vector.
    pub params: &'a [f32],
    /// The number of samples that pass through together.
    pub batch: usize,
}
