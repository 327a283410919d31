//! Trains and evaluates small networks: hundreds of them, at the speed of the machine.
//!
//! A [`Spec`] says what a network is made of. [`Params`] is one flat vector of all its parameters. A
//! [`Network`] is the working memory that runs a spec forward and backward, one per thread. A [`Trainer`]
//! is one model being trained.
//!
//! The inner loops are compiled for AVX-512, AVX2, NEON and plain processors, and chosen when the
//! program runs ([`Kernels`]). The same seed gives the same bits on the same kernels, whatever the number of
//! threads. The crate opens no file, prints nothing, reads no clock and no global random source.

pub mod augment;
mod buffer;
pub mod error;
pub mod evaluate;
mod kernels;
mod layers;
pub mod layout;
pub mod loss;
pub mod network;
pub mod params;
pub mod spec;
pub mod train;

pub use augment::{Augment, View};
pub use error::Error;
pub use kernels::Kernels;
pub use layers::Mode;
pub use layout::Layout;
pub use network::{Fusion, Network};
pub use params::Params;
pub use spec::{Layer, Spec};
pub use train::{Descent, Examples, Trainer};
