//! The mathematics of planning; knows no device and no network.
//!
//! Three problems, each stated at the top of its module:
//!
//! * [`facility`]: uncapacitated facility location, with proof.
//! * [`pooled`]: facility location in which a client may be served by a mixture.
//! * [`gp`]: geometric programs over [`posynomial`]s, solved as exponential cones.
//!
//! Nothing here prints, reads a clock, touches a file or draws random numbers.

mod best_first;
mod conic;
pub mod facility;
pub mod gp;
pub mod pooled;
pub mod posynomial;
pub mod status;
