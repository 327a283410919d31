//! What a participant asks of whoever drives it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use stlf_learn::Params;
use stlf_planning::plan::Way;

use super::{Event, Participant};
use crate::identity::PeerId;
use crate::job::Job;
use crate::roster::Place;
use crate::wire::Offer;

/// Why a connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closing {
    /// The other device is no longer in the roster.
    Removed,
    /// Too many of its messages were refused.
    TooMuchRefused,
}

/// What a participant can do to the world. Whoever drives it implements this.
pub trait Surroundings {
    /// Sends bytes to a connected device. They may arrive after others that are sent later, and never if the connection breaks.
    fn send(&mut self, to: Place, bytes: Arc<[u8]>);

    /// Closes the connection to a device. Its loss is told only if this device did not ask for it.
    fn close(&mut self, place: Place, why: Closing);

    /// Forgets the jobs of the epoch before: another one begins.
    fn begin_epoch(&mut self, now: Duration);

    /// Runs a job apart from the device, which then is told what it came to ([`Participant::hear_computed`]).
    fn compute(&mut self, job: Job);

    /// Starts jobs that wait, and returns whether any is under way.
    fn is_computing(&mut self) -> bool;

    /// The percent of a training that others are to be told now, if they were not told within the last `every`.
    fn progress(&mut self, now: Duration, every: Duration) -> Option<u8>;

    /// Lets some devices fetch a model, and then says what they are offered ([`Participant::hear_offered`]).
    fn offer(&mut self, model: &Params, way: Way, to: Vec<(Place, PeerId)>, epoch: u64);

    /// Fetches a model ([`Participant::hear_model`]); `false` if the connection is gone.
    fn fetch(&mut self, from: Place, offer: Offer, epoch: u64) -> bool;

    /// Returns how many bytes have come of the models that are being fetched, by whose they are and their way. Some may have come altogether.
    fn arriving(&mut self) -> BTreeMap<(Place, Way), u64>;

    /// Returns what a model costs to each place, as far as that is measured, once it is for these.
    fn joules(&mut self, of: &[Place]) -> Option<BTreeMap<Place, f64>>;

    /// Something happened. What an observer keeps of it is kept when this returns.
    fn tell(&mut self, participant: &Participant, event: Event);
}
