//! What surrounds a participant: connections, jobs, models on their way.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use iroh::TransportAddr;
use iroh::endpoint::{Connection, Side};
use stlf_learn::Layout;
use stlf_planning::plan::Way;
use stlf_protocol::identity::PeerId;
use stlf_protocol::participant::Participant;
use stlf_protocol::roster::Place;
use stlf_protocol::wire::{Envelope, Message, PROBE_BYTES};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::network::absences::Absences;
use crate::network::addresses::Addresses;
use crate::network::jobs::Jobs;
use crate::network::link::{self, Ears};
use crate::network::rates::Rates;
use crate::network::waiting::Waiting;
use crate::status::Tally;

/// What the loop does for the participant.
pub(super) struct Outside {
    pub(super) layout: Layout,
    pub(super) ears: Ears,
    pub(super) connections: BTreeMap<Place, Connection>,
    /// Connections to keys that are not in the roster, and since when.
    pub(super) strangers: BTreeMap<PeerId, (Connection, Duration)>,
    pub(super) absences: Absences,
    pub(super) addresses: Addresses,
    /// What this device says first to one that does not know it.
    pub(super) introduction: watch::Sender<Arc<[u8]>>,
    /// The computations of this epoch.
    pub(super) jobs: Jobs,
    pub(super) rates: Rates,
    pub(super) waiting: Waiting,
    pub(super) joule_bits_per_second: f64,
    pub(super) tally: Tally,
    pub(super) sending: JoinSet<()>,
    pub(super) fetching: JoinSet<()>,
    /// How many bytes of the models of this epoch have come, by whose they are and their way.
    pub(super) arriving: BTreeMap<(Place, Way), Arc<AtomicU64>>,
}

impl Outside {
    /// Returns whether a new connection takes the place of the one that there is, if any. Where both have called, the call of the one that
    /// is later in the roster counts, so that both ends keep the same.
    pub(super) fn takes(&self, place: Place, own: Place, connection: &Connection) -> bool {
        let is_by_later = |c: &Connection| (c.side() == Side::Client) == (own > place);
        let yields = |known: &Connection| known.close_reason().is_some() || !is_by_later(known);
        is_by_later(connection) || self.connections.get(&place).is_none_or(yields)
    }

    /// Notes where all devices are that are connected.
    pub(super) fn look_where_all_are(&mut self) {
        for (place, connection) in &self.connections {
            let paths = connection.paths();
            let direct = paths.iter().filter(|path| path.is_ip());
            if let Some(path) = direct.max_by_key(|path| path.is_selected())
                && let TransportAddr::Ip(address) = path.remote_addr()
            {
                self.addresses.saw(*place, *address);
            }
        }
    }

    /// Uses a new connection to a device in place of any other.
    pub(super) fn came(&mut self, place: Place, connection: Connection) {
        if let Some(old) = self.connections.insert(place, connection) {
            add_traffic(&mut self.tally, &old);
            old.close(200_u32.into(), b"there is a newer connection");
        }
    }

    pub(super) fn transmit(&mut self, to: Place, bytes: Arc<[u8]>) {
        let Some(connection) = self.connections.get(&to).cloned() else { return };
        if !self.waiting.takes(to, bytes.len()) {
            // It is noticed as lost; what it has not got is sent again if it comes back.
            return connection.close(429_u32.into(), b"it does not take what it is sent");
        }
        self.rates.sets_out(to);
        self.sending.spawn(link::send(connection, bytes, self.ears.queue.clone()));
    }

    /// Sends the next probe over a link, if links are measured and nothing else is on its way there.
    pub(super) fn probe(&mut self, to: Place, participant: &Participant) {
        if self.joule_bits_per_second > 0.0 && self.rates.takes_probe(to) {
            let known = participant.membership().epoch();
            let probe = Envelope::new(known, Message::Probe(vec![0; PROBE_BYTES]));
            self.transmit(to, probe.to_bytes().into());
        }
    }
}

/// Adds the bytes that went over a connection, including the overhead of packets.
pub(super) fn add_traffic(tally: &mut Tally, connection: &Connection) {
    let stats = connection.stats();
    tally.sent += stats.udp_tx.bytes;
    tally.received += stats.udp_rx.bytes;
}
