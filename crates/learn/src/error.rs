//! What can be wrong with a network, its parameters or what it is given.

/// A network, a file of parameters or training data that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A layer that does not fit its input.
    #[error("layer {at}: {message}")]
    Layer {
        /// The place of the layer in the network, counted from 0.
        at: usize,
        /// What is wrong with the layer.
        message: String,
    },
    /// A file of parameters that is not one, or not of this network.
    #[error("parameters: {0}")]
    Params(String),
    /// Training data or settings that cannot be used.
    #[error("{0}")]
    Training(String),
}

impl Error {
    pub(crate) fn layer(at: usize, message: impl Into<String>) -> Error {
        Error::Layer { at, message: message.into() }
    }
}
