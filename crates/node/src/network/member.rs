//! The state of the loop: a participant, and what surrounds it: connections, jobs, models on their way.

mod outside;
mod strangers;
mod world;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use iroh::EndpointAddr;
use stlf_learn::Params;
use stlf_protocol::device::{Device, Refusal};
use stlf_protocol::identity::PeerId;
use stlf_protocol::membership::Membership;
use stlf_protocol::participant::{Absence, Event, Participant, Surroundings};
use stlf_protocol::roster::{Place, Roster, SignedRoster};
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::outside::{Outside, add_traffic};
use self::world::World;
use super::absences::Absences;
use super::addresses::Addresses;
use super::jobs::Jobs;
use super::link::{Ears, NOT_IN_ROSTER, News, PeerNews};
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
    /// The devices whose key two devices use, and how long ago that was noticed last.
    pub used_twice: &'a BTreeMap<Place, Duration>,
    /// Where each device was when it was connected last, as the connection had it.
    pub seen: &'a BTreeMap<Place, SocketAddr>,
    /// The bytes that were sent and received, and what was refused.
    pub tally: Tally,
}

impl View<'_> {
    /// Returns the status of the device, as it is shown to users.
    pub fn status(&self) -> Status {
        let View { device, membership, roster, absent, used_twice, tally, .. } = *self;
        Status::new(device, membership, roster, (absent, used_twice), tally)
    }
}

pub(super) type Observer<'o> = dyn FnMut(&View<'_>, Event) + Send + 'o;

/// A device with its connections to the others of its fleet.
pub(super) struct Member {
    participant: Participant,
    outside: Outside,
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
            arriving: BTreeMap::new(),
        };
        let settings = options.settings.clone();
        let mut participant =
            Participant::new(device, roster, settings, options.timing, options.epoch, start);
        participant.recall_convicted(&options.convicted);
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
