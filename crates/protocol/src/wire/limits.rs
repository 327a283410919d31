//! How long a message of each kind may be. It is looked at before anything is decoded, because a few bytes can stand for much: a
//! pair of a report takes five bytes on the way and ten times that in memory.

use serde::Deserialize;
use stlf_data::Shape;
use stlf_method::divergence::Settings;

use super::{
    Envelope, EpochId, LONGEST_REASON, LONGEST_ROSTER, MOST_BYTES, MOST_REPORTS, Malformed,
    Message, PROBE_BYTES, VERSION,
};
use crate::roster::MOST_DEVICES;
use crate::shared;

/// Version, epoch, kind, lengths, a signature, and the few numbers that a message has besides its lists.
const HEAD: usize = 256;

/// The most bytes of a device's place.
const PLACE: usize = 5;

/// The most bytes of what a report says of a pair.
const PAIR: usize = 40;

/// The most bytes of a link of a plan.
const LINK: usize = 2 * PLACE + 8;

/// The most bytes of a hand-over of a plan.
const HANDOVER: usize = 2 * PLACE;

/// The most bytes of a trial, with the source where it was.
const TRIAL: usize = 24;

/// The most bytes of a report besides its pairs, with its signature.
const SIGNED: usize = 128;

/// [`super::Message`] without what it says, in the same order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum Kind {
    Begin,
    Bandwidth,
    Moments,
    Sketch,
    Means,
    Unchanged,
    AskForMeans,
    Turn,
    Report,
    Plan,
    NoPlan,
    Offer,
    Failed,
    TrainedOn,
    Done,
    Complete,
    Missing,
    Hello,
    Roster,
    Known,
    Probe,
    TakesPart,
    PassedOn,
    Renewed,
    Believed,
    Arrived,
}

/// What a device has use for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Devices of the roster.
    devices: usize,
    /// Moments, or parameters of a classifier, in one message.
    numbers: usize,
}

impl Default for Limits {
    /// Of the largest fleet with the largest messages.
    fn default() -> Limits {
        Limits { devices: MOST_DEVICES, numbers: MOST_BYTES / 4 }
    }
}

impl Limits {
    /// Of a fleet of so many devices that measures inputs of this shape in this way.
    pub fn new(devices: usize, settings: &Settings, shape: Shape) -> Limits {
        let moments = |features: usize| features * (features + 3) / 2;
        let numbers = match settings {
            Settings::Discriminant(settings) => 2 * moments(settings.features),
            Settings::Sketch(settings) if settings.publishes_covariance() => {
                moments(settings.features)
            }
            Settings::Sketch(settings) => settings.features,
            Settings::Classifier(settings) => {
                settings.architecture.spec(shape).map_or(0, |spec| spec.parameters())
            }
        };
        Limits { devices, numbers }
    }

    /// The longest message of any kind.
    pub fn longest(&self) -> usize {
        [Kind::Moments, Kind::Report, Kind::Plan, Kind::Hello, Kind::Roster, Kind::Probe]
            .map(|kind| self.most(kind))
            .into_iter()
            .fold(0, usize::max)
    }

    /// The longest message of a kind.
    fn most(&self, kind: Kind) -> usize {
        let list = match kind {
            Kind::Begin | Kind::Missing => PLACE * self.devices,
            Kind::Moments | Kind::Sketch | Kind::Turn => 4 * self.numbers,
            Kind::Means | Kind::PassedOn => 2 * self.numbers,
            Kind::Report => PAIR * self.devices,
            // A device is a source or a target, a link is from one to another, and a source is handed one model at most. Any other may be a
            // target's witness, any link forbidden, and a source has one examiner at most.
            Kind::Plan => {
                let reported = self.devices.min(MOST_REPORTS);
                (PLACE + 2 * HANDOVER) * self.devices
                    + LINK * self.devices.pow(2) / 4
                    + 2 * HANDOVER * self.devices.pow(2)
                    + reported * (SIGNED + PAIR * reported)
            }
            Kind::NoPlan => {
                let reported = self.devices.min(MOST_REPORTS);
                LONGEST_REASON + reported * (SIGNED + PAIR * reported)
            }
            Kind::Hello => shared::MOST_BYTES,
            Kind::Roster => LONGEST_ROSTER,
            Kind::Unchanged | Kind::AskForMeans => 0,
            // A source tries a model once.
            Kind::Offer => SIGNED + TRIAL * self.devices,
            Kind::Believed => SIGNED,
            Kind::Bandwidth | Kind::Failed | Kind::TrainedOn | Kind::Arrived => 0,
            Kind::Done | Kind::Complete | Kind::Known | Kind::TakesPart | Kind::Renewed => 0,
            Kind::Probe => PROBE_BYTES,
        };
        (HEAD + list).min(MOST_BYTES)
    }

    /// A message as it arrives. Nothing is believed: first its version and its length for its kind are looked at, then every number.
    ///
    /// # Errors
    /// Says why it is refused.
    pub fn read(&self, bytes: &[u8]) -> Result<Envelope, Malformed> {
        let unreadable = |_| Malformed::Unreadable;
        let (_, kind) = head(bytes)?;
        let most = self.most(kind);
        if bytes.len() > most {
            return Err(Malformed::TooLong { bytes: bytes.len(), most });
        }
        let (envelope, rest): (Envelope, &[u8]) =
            postcard::take_from_bytes(bytes).map_err(unreadable)?;
        if !rest.is_empty() {
            return Err(Malformed::Unreadable);
        }
        envelope.message.check()?;
        Ok(envelope)
    }

    /// Of which epoch these bytes say that they are its plan, or that it has none, whatever is wrong with the rest. Those of another version say nothing.
    pub fn plan_of(bytes: &[u8]) -> Option<EpochId> {
        let (epoch, kind) = head(bytes).ok()?;
        matches!(kind, Kind::Plan | Kind::NoPlan).then_some(epoch)
    }

    /// A message of somebody who is not in the roster: only another roster is decoded, and its bytes returned.
    ///
    /// # Errors
    /// It is none.
    pub fn read_roster(&self, bytes: &[u8]) -> Result<Vec<u8>, Malformed> {
        let another = Malformed::Absurd("only a roster is heard from who is not in this one");
        let (_, kind) = head(bytes)?;
        if kind != Kind::Roster {
            return Err(another);
        }
        match self.read(bytes)?.message {
            Message::Roster(roster) => Ok(roster),
            _ => Err(another),
        }
    }
}

/// Returns which epoch a message says that it is of, and its kind; nothing after that is looked at.
fn head(bytes: &[u8]) -> Result<(EpochId, Kind), Malformed> {
    let unreadable = |_| Malformed::Unreadable;
    let (version, rest) = postcard::take_from_bytes::<u16>(bytes).map_err(unreadable)?;
    if version != VERSION {
        return Err(Malformed::Version(version));
    }
    let (head, _) = postcard::take_from_bytes::<(EpochId, Kind)>(rest).map_err(unreadable)?;
    Ok(head)
}
