//! What an observer of a participant is told.

// An address is only a number; nothing is opened here.
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use stlf_planning::plan::Way;

use crate::identity::PeerId;
use crate::roster::{Place, SignedRoster};
use crate::shared::Difference;

/// That a device of the roster is not connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absence {
    /// For how many seconds.
    pub seconds: u64,
    /// Whether it is the one to call, because it is later in the roster.
    pub calls: bool,
    /// Where it is called, if it is not the one to call and its address is known.
    pub address: Option<SocketAddr>,
}

impl std::fmt::Display for Absence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Absence { seconds, calls, address } = self;
        match address {
            _ if *calls => write!(f, "has not called for {seconds} s"),
            Some(address) => write!(f, "has not answered at {address} for {seconds} s"),
            None => write!(f, "has been away for {seconds} s, and its address is not known"),
        }
    }
}

/// Something that happened among the devices, as an observer is told of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// The device listens on this address, as text for people.
    Listens(String),
    /// The device can neither announce itself on the local network nor look for others there, for this reason, as text for people.
    CannotSearch(String),
    /// The device at this place of the roster has connected and takes part.
    Came(Place),
    /// The connection to the device at this place of the roster was lost.
    Lost(Place),
    /// A device of the roster has not been connected for some time; told again after twice that time.
    Absent {
        /// The place of that device in the roster.
        from: Place,
        /// For how long, and where it is called.
        #[serde(flatten)]
        absence: Absence,
    },
    /// A device of the roster turns this one away, because it does not know it or knows that it was removed.
    NotKnownTo {
        /// The place of that device in the roster.
        from: Place,
    },
    /// Two devices run with the key of this one: a start of it that another had followed is there again.
    UsedTwice {
        /// The place of that device in the roster.
        from: Place,
    },
    /// A device of the fleet has different settings and cannot take part until they are equal.
    Differs {
        /// The place of that device in the roster.
        from: Place,
        /// The first setting that differs, with both of its values.
        #[serde(flatten)]
        difference: Difference,
    },
    /// A connection from a key that is not in the roster was refused.
    TurnedAway(PeerId),
    /// A newer roster was received and is used from now on.
    Roster(Box<SignedRoster>),
    /// An epoch began. None of its work has been done yet.
    Began {
        /// The number of the epoch.
        epoch: u64,
        /// The number of devices that take part in the epoch.
        devices: usize,
    },
    /// Divergences are measured that were not told before. Those that are told next are on the device's record.
    Measured,
    /// This device has judged a model of another one by its own samples. What it says of it next is on the device's record.
    Judged,
    /// The plan of the epoch is known.
    Planned {
        /// Whether no plan is better: it is proven optimal, and nothing that costs more was kept from the last plan.
        optimal: bool,
    },
    /// There is no plan, for this reason.
    NoPlan(String),
    /// The device at this place is left out: it was silent for too long, or nothing can be planned for it.
    LeftOut(Place),
    /// No usable model came over a link; the planner no longer uses that link.
    Forbidden {
        /// The place of the device that should have sent the model.
        from: Place,
        /// The place of the device that should have received it.
        to: Place,
    },
    /// A model was received.
    Received {
        /// The place of the device that sent it.
        from: Place,
        /// Its size in bytes, of which some may have been received earlier.
        bytes: u64,
    },
    /// A model did not arrive, or is not usable.
    NotReceived {
        /// The place of the device that should have sent it.
        from: Place,
        /// The reason, as text for people.
        reason: String,
    },
    /// The model of another device is refused, because labels or the models of others contradict what that device says of it, or because it offers others another one.
    Distrusts {
        /// The place of the device that sent it.
        from: Place,
    },
    /// The plan lets this device continue training another device's model, and it waits for that model.
    Awaits {
        /// The place of the device that hands its model over.
        from: Place,
    },
    /// The handed-over model has arrived, and this device continues training it.
    TrainsOn {
        /// The place of the device that handed its model over.
        from: Place,
        /// Whether the model comes for the first or, on a ring, for the second time.
        way: Way,
    },
    /// That training is finished, and this device can hand its result on.
    TrainedOn {
        /// The place of the device that handed its model over.
        from: Place,
        /// Whether the model came for the first or, on a ring, for the second time.
        way: Way,
    },
    /// The epoch is over for this device; the others are told next.
    Ended,
    /// The epoch is over for all devices.
    Complete,
    /// Nothing happened; sent once per second.
    Alive,
    /// A message from another device was refused.
    Refused {
        /// The place of the device that sent the message.
        from: Place,
        /// The reason, as text for people.
        reason: String,
    },
}
