//! The state of the loop: a participant, and what surrounds it: connections, jobs, models on their way.

mod strangers;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use iroh::endpoint::{Connection, Side};
use iroh::{EndpointAddr, TransportAddr};
use stlf_learn::{Layout, Params};
use stlf_planning::plan::Way;
use stlf_protocol::device::{Device, Refusal};
use stlf_protocol::identity::PeerId;
use stlf_protocol::job::Job;
use stlf_protocol::membership::Membership;
use stlf_protocol::participant::{Absence, Closing, Event, Participant, Surroundings};
use stlf_protocol::roster::{Place, Roster, SignedRoster};
use stlf_protocol::wire::{Envelope, Message, Offer, PROBE_BYTES};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::absences::Absences;
use super::addresses::Addresses;
use super::jobs::Jobs;
use super::link::{self, Ears, NOT_IN_ROSTER, News, PeerNews};
use super::neighbours::{self, Announced};
use super::rates::Rates;
use super::waiting::Waiting;
use super::{Options, lost_after, times_large};
use crate::status::{Status, Tally};

/// What an observer may look at when it is told of an event.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The device with its plan and results.
    pub device: &'a Device,
    /// The devices that are connected and take part.
    pub membership: &'a Membership,
    /// The devices that belong to the fleet.
    pub roster: &'a Roster,
    /// The devices that are not connected.
    pub absent: &'a BTreeMap<Place, Absence>,
    /// Where each device was when it was connected last, as the connection had it.
    pub seen: &'a BTreeMap<Place, SocketAddr>,
    /// The bytes that were sent and received, and what was refused.
    pub tally: Tally,
}

impl View<'_> {
    /// Returns the status of the device, as it is shown to users.
    pub fn status(&self) -> Status {
        Status::new(self.device, self.membership, self.roster, self.absent, self.tally)
    }
}

pub(super) type Observer<'o> = dyn FnMut(&View<'_>, Event) + Send + 'o;

/// A device with its connections to the others of its fleet.
pub(super) struct Member {
    participant: Participant,
    outside: Outside,
}

/// What the loop does for the participant.
struct Outside {
    layout: Layout,
    ears: Ears,
    connections: BTreeMap<Place, Connection>,
    /// Connections to keys that are not in the roster, and since when.
    strangers: BTreeMap<PeerId, (Connection, Duration)>,
    absences: Absences,
    addresses: Addresses,
    /// What this device says first to one that does not know it.
    introduction: watch::Sender<Arc<[u8]>>,
    /// The computations of this epoch.
    jobs: Jobs,
    rates: Rates,
    waiting: Waiting,
    joule_bits_per_second: f64,
    tally: Tally,
    sending: JoinSet<()>,
    fetching: JoinSet<()>,
}

/// The same with somebody who is told of every event.
struct World<'a, 'o> {
    outside: &'a mut Outside,
    observer: &'a mut Observer<'o>,
}

impl Member {
    pub(super) fn new(
        device: Device,
        roster: SignedRoster,
        ears: Ears,
        start: u64,
        options: &Options,
    ) -> Member {
        let outside = Outside {
            layout: device.layout().clone(),
            jobs: Jobs::new(ears.queue.clone(), Duration::ZERO),
            ears,
            connections: BTreeMap::new(),
            strangers: BTreeMap::new(),
            absences: Absences::new(device.place()),
            addresses: Addresses::new(
                options.peers.clone(),
                options.seen.clone(),
                options.relay.clone(),
            ),
            introduction: watch::Sender::new(Arc::default()),
            rates: Rates::default(),
            waiting: Waiting::default(),
            joule_bits_per_second: options.joule_bits_per_second,
            tally: Tally::default(),
            sending: JoinSet::new(),
            fetching: JoinSet::new(),
        };
        let settings = options.settings.clone();
        let participant =
            Participant::new(device, roster, settings, options.timing, options.epoch, start);
        outside.introduction.send_replace(participant.introduction().into());
        Member { participant, outside }
    }

    /// Returns the place of this device.
    pub(super) fn place(&self) -> Place {
        self.participant.device().place()
    }

    /// Returns whether any other device takes part.
    pub(super) fn has_met(&self) -> bool {
        self.participant.membership().here().len() > 1
    }

    /// Returns the places of all connected devices.
    pub(super) fn places(&self) -> Vec<Place> {
        self.participant.connected().iter().copied().collect()
    }

    /// Returns whether the epoch is over for all devices.
    pub(super) fn is_over(&self) -> bool {
        self.participant.membership().is_over()
    }

    /// Returns all other devices, each with its key and how it is called now, if at all: not if it is connected. Of two devices the later
    /// one of the roster calls; the earlier one does so too once the other is missed for long, since its own address may be another by
    /// now.
    pub(super) fn to_call(&self) -> Vec<(Place, PeerId, Option<EndpointAddr>)> {
        let own = self.participant.device().place();
        let roster = self.participant.roster();
        // A large fleet that starts all at once takes long to find together; it is no reason to call twice.
        let patience = lost_after(roster).mul_f64(times_large(roster));
        let Outside { absences, addresses, .. } = &self.outside;
        let is_called = |place: Place| {
            let absence = absences.length(place);
            absence.is_some_and(|absence| place < own || absence > patience)
        };
        let others = roster.with_places().filter(|(place, _)| *place != own);
        // Most are connected, and to make an address checks a key.
        let at = |place, member| is_called(place).then(|| addresses.endpoint(place, member))?;
        others.map(|(place, member)| (place, member.key, at(place, member))).collect()
    }

    /// Takes what was announced on the local network.
    pub(super) fn hear_announced(&mut self, (name, at): Announced) {
        if let Some(place) = neighbours::who(self.participant.roster(), &name) {
            self.outside.addresses.announced(place, at);
        }
    }

    /// Returns where some other device is or was, if that is known of any.
    pub(super) fn towards(&self) -> Option<SocketAddr> {
        let own = self.participant.device().place();
        let others = self.participant.roster().with_places().filter(|(place, _)| *place != own);
        let mut known = others.flat_map(|(place, member)| self.outside.addresses.of(place, member));
        known.next()
    }

    /// Closes all connections and greets with another number, as if this device was started again.
    pub(super) fn start_anew(&mut self, start: u64, now: Duration, observer: &mut Observer<'_>) {
        self.participant.start_anew(start);
        self.lose_all(now, observer);
    }

    /// Loses all connections, because this device is elsewhere now.
    pub(super) fn lose_all(&mut self, now: Duration, observer: &mut Observer<'_>) {
        let Member { participant, outside } = self;
        outside.strangers.clear();
        for (place, connection) in std::mem::take(&mut outside.connections) {
            add_traffic(&mut outside.tally, &connection);
            connection.close(200_u32.into(), b"this device begins anew");
            participant.lose(place, now, &mut World { outside, observer });
        }
    }

    /// Returns what this device says first to one that does not know it, as it changes with the roster.
    pub(super) fn introduction(&self) -> watch::Receiver<Arc<[u8]>> {
        self.outside.introduction.subscribe()
    }

    /// Waits until everything is sent, up to a time limit.
    pub(super) async fn settle(&mut self) {
        let sending = &mut self.outside.sending;
        let all = async { while sending.join_next().await.is_some() {} };
        // Who does not take it by then is gone.
        let _ = tokio::time::timeout(super::LOST_AFTER, all).await;
    }

    pub(super) fn into_device(self) -> Device {
        self.participant.into_device()
    }

    pub(super) fn tell(&mut self, event: Event, observer: &mut Observer<'_>) {
        World { outside: &mut self.outside, observer }.tell(&self.participant, event);
    }

    /// Does what is due at this time.
    pub(super) fn tick(&mut self, now: Duration, observer: &mut Observer<'_>) {
        while self.outside.sending.try_join_next().is_some() {}
        while self.outside.fetching.try_join_next().is_some() {}
        self.look_at_strangers(now, observer);
        let roster = self.participant.roster();
        let Outside { absences, addresses, connections, .. } = &mut self.outside;
        let connected = |place: Place| connections.contains_key(&place);
        for (from, absence) in absences.look(now, roster, addresses, connected) {
            self.tell(Event::Absent { from, absence }, observer);
        }
        self.participant.tick(now, &mut World { outside: &mut self.outside, observer });
    }

    /// Uses a roster that the user gave, if it is newer and of the same fleet.
    pub(super) fn offer_roster(&mut self, roster: SignedRoster, observer: &mut Observer<'_>) {
        let world = &mut World { outside: &mut self.outside, observer };
        self.participant.offer_roster(roster, world);
    }

    /// Takes part with the data of another device of the same place from the next epoch on.
    pub(super) fn renew(&mut self, fresh: Device) {
        self.participant.renew(fresh);
    }

    /// Handles one item of the queue.
    pub(super) fn hear(&mut self, news: News, now: Duration, observer: &mut Observer<'_>) {
        let Member { participant, outside } = self;
        let (key, news) = match news {
            News::Offered(epoch, places, offered) => {
                let world = &mut World { outside, observer };
                return participant.hear_offered(epoch, &places, &offered, now, world);
            }
            News::Computed(computed) => {
                outside.jobs.start_waiting();
                let world = &mut World { outside, observer };
                return participant.hear_computed(*computed, now, world);
            }
            News::Of(key, news) => (key, news),
        };
        let Some(place) = participant.roster().place(key) else {
            return self.hear_stranger(key, news, now, observer);
        };
        // Somebody else may have brought the roster that has it.
        if let Some((connection, _)) = outside.strangers.remove(&key) {
            outside.came(place, connection);
            participant.connect(place, now, &mut World { outside, observer });
        }
        let own = participant.device().place();
        let is_current = |outside: &Outside, id: usize| {
            outside.connections.get(&place).is_some_and(|known| known.stable_id() == id)
        };
        match news {
            PeerNews::Came(connection) if !outside.takes(place, own, &connection) => {
                connection.close(200_u32.into(), b"there is another connection");
            }
            PeerNews::Came(connection) => {
                outside.came(place, connection);
                participant.connect(place, now, &mut World { outside, observer });
            }
            // A newer connection may have taken the place of the one that was lost, or that this arrived on. Its device may have been
            // another then; what it still has to say it says again.
            PeerNews::Lost(id) if is_current(outside, id) => {
                if let Some(connection) = outside.connections.remove(&place) {
                    add_traffic(&mut outside.tally, &connection);
                }
                participant.lose(place, now, &mut World { outside, observer });
            }
            PeerNews::Message(id, bytes, _permit) if is_current(outside, id) => {
                let world = &mut World { outside, observer };
                participant.hear_message(place, &bytes, now, world);
            }
            PeerNews::Lost(_) | PeerNews::Message(..) => {}
            PeerNews::Sent(bytes, after) => {
                outside.waiting.is_through(place, bytes);
                outside.rates.arrived(place, bytes, after);
                outside.probe(place, participant);
            }
            PeerNews::Model(epoch, way, model) => {
                let model = model.and_then(|bytes| {
                    let params = Params::from_safetensors(&outside.layout, &bytes)
                        .map_err(|_| Refusal::Unfit("bytes that are no model").to_string())?;
                    Ok((params, bytes.len() as u64))
                });
                let world = &mut World { outside, observer };
                participant.hear_model((place, way), epoch, model, now, world);
            }
            PeerNews::TurnsAway => self.tell(Event::NotKnownTo { from: place }, observer),
            PeerNews::Interrupted(epoch, offer) => {
                let world = &mut World { outside, observer };
                participant.interrupted(place, epoch, offer, now, world);
            }
        }
    }
}

impl Outside {
    /// Returns whether a new connection takes the place of the one that there is, if any. Where both have called, the call of the one that
    /// is later in the roster counts, so that both ends keep the same.
    fn takes(&self, place: Place, own: Place, connection: &Connection) -> bool {
        let is_by_later = |c: &Connection| (c.side() == Side::Client) == (own > place);
        let yields = |known: &Connection| known.close_reason().is_some() || !is_by_later(known);
        is_by_later(connection) || self.connections.get(&place).is_none_or(yields)
    }

    /// Notes where all devices are that are connected.
    fn look_where_all_are(&mut self) {
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
    fn came(&mut self, place: Place, connection: Connection) {
        if let Some(old) = self.connections.insert(place, connection) {
            add_traffic(&mut self.tally, &old);
            old.close(200_u32.into(), b"there is a newer connection");
        }
    }

    fn transmit(&mut self, to: Place, bytes: Arc<[u8]>) {
        let Some(connection) = self.connections.get(&to).cloned() else { return };
        if !self.waiting.takes(to, bytes.len()) {
            // It is noticed as lost; what it has not got is sent again if it comes back.
            return connection.close(429_u32.into(), b"it does not take what it is sent");
        }
        self.rates.sets_out(to);
        self.sending.spawn(link::send(connection, bytes, self.ears.queue.clone()));
    }

    /// Sends the next probe over a link, if links are measured and nothing else is on its way there.
    fn probe(&mut self, to: Place, participant: &Participant) {
        if self.joule_bits_per_second > 0.0 && self.rates.takes_probe(to) {
            let known = participant.membership().epoch();
            let probe = Envelope::new(known, Message::Probe(vec![0; PROBE_BYTES]));
            self.transmit(to, probe.to_bytes().into());
        }
    }
}

impl Surroundings for World<'_, '_> {
    fn send(&mut self, to: Place, bytes: Arc<[u8]>) {
        self.outside.transmit(to, bytes);
    }

    fn close(&mut self, place: Place, why: Closing) {
        let connections = &mut self.outside.connections;
        match why {
            Closing::Removed => {
                if let Some(connection) = connections.remove(&place) {
                    connection.close(NOT_IN_ROSTER.into(), b"no longer in the roster");
                }
            }
            Closing::TooMuchRefused => {
                if let Some(connection) = connections.get(&place) {
                    connection.close(429_u32.into(), b"too much that is refused");
                }
            }
        }
    }

    fn begin_epoch(&mut self, now: Duration) {
        self.outside.jobs = Jobs::new(self.outside.ears.queue.clone(), now);
    }

    fn compute(&mut self, job: Job) {
        self.outside.jobs.add(job);
    }

    fn is_computing(&mut self) -> bool {
        self.outside.jobs.start_waiting();
        self.outside.jobs.is_busy()
    }

    fn progress(&mut self, now: Duration, every: Duration) -> Option<u8> {
        self.outside.jobs.news(now, every)
    }

    fn offer(&mut self, model: &Params, way: Way, to: Vec<(Place, PeerId)>, epoch: u64) {
        let Ok(model) = model.to_safetensors(&self.outside.layout) else { return };
        let Ears { models, queue, .. } = self.outside.ears.clone();
        self.outside.sending.spawn(link::offer(models, model, way, to, epoch, queue));
    }

    fn fetch(&mut self, from: Place, offer: Offer, epoch: u64) -> bool {
        let connection = self.outside.connections.get(&from).filter(|c| c.close_reason().is_none());
        let Some(connection) = connection.cloned() else { return false };
        let Ears { models, queue, .. } = self.outside.ears.clone();
        self.outside.fetching.spawn(link::fetch(connection, models, offer, epoch, queue));
        true
    }

    fn joules(&mut self, of: &[Place]) -> Option<BTreeMap<Place, f64>> {
        let Outside { rates, joule_bits_per_second, .. } = &self.outside;
        let all_known = of.iter().all(|&place| rates.is_known(place));
        all_known.then(|| rates.joules(*joule_bits_per_second))
    }

    fn tell(&mut self, participant: &Participant, event: Event) {
        if matches!(event, Event::Alive) {
            self.outside.look_where_all_are();
        }
        let Outside { connections, tally, ears, introduction, absences, addresses, .. } =
            &mut *self.outside;
        if matches!(event, Event::Refused { .. }) {
            tally.refused += 1;
        }
        if matches!(event, Event::Roster(_)) {
            ears.longest.store(participant.device().limits().longest(), Ordering::Relaxed);
            introduction.send_replace(participant.introduction().into());
        }
        let came = match event {
            Event::Came(place) => Some(place),
            _ => None,
        };
        let mut tally = *tally;
        connections.values().for_each(|connection| add_traffic(&mut tally, connection));
        let (device, membership) = (participant.device(), participant.membership());
        let roster = participant.roster();
        let absent = absences.all(roster, addresses);
        let seen = addresses.seen();
        let view = View { device, membership, roster, absent: &absent, seen, tally };
        (self.observer)(&view, event);
        if let Some(place) = came {
            self.outside.rates.came(place);
            self.outside.probe(place, participant);
        }
    }
}

/// Adds the bytes that went over a connection, including the overhead of packets.
fn add_traffic(tally: &mut Tally, connection: &Connection) {
    let stats = connection.stats();
    tally.sent += stats.udp_tx.bytes;
    tally.received += stats.udp_rx.bytes;
}
