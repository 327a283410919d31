//! What the devices of a fleet compute: each alone ([`local_training`], by a [`learner`]), two about each other ([`divergence`]), a source with what it is handed ([`handed`]), a target with what it
//! received ([`trust`], [`combine`], [`student`]), and may expect of it ([`expectation`]).
//!
//! The crate opens no file, prints nothing, reads no clock and no global random source: everything drawn follows from [`seeds`].

pub mod adapt;
pub mod answers;
pub mod ask;
pub mod class_shares;
pub mod combine;
pub mod divergence;
pub mod energy;
pub mod expectation;
pub mod guard;
pub mod handed;
pub mod known;
mod label_noise;
pub mod learner;
pub mod local_training;
pub mod method;
pub mod mingled;
pub mod predictions;
pub mod ring;
pub mod scout;
pub mod seeds;
pub mod student;
pub mod trust;

pub use method::Method;
