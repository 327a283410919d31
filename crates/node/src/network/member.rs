//! The state of the loop: the connections, what the device asks for, and what is on its way.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use iroh::endpoint::Connection;
use stlf_planning::plan::Way;
use stlf_protocol::device::{Action, Device, Refusal};
use stlf_protocol::identity::PeerId;
use stlf_protocol::membership::{Decision, Membership};
use stlf_protocol::roster::{Place, Roster, SignedRoster};
use stlf_protocol::shared::SharedSettings;
use stlf_protocol::wire::{Envelope, Message, Offer};
use tokio::task::JoinSet;

use super::jobs::Jobs;
use super::link::{self, Ears, News, PeerNews};
use super::outbox::Outbox;
use super::rates::Rates;
use super::{Event, Options};
use crate::status::{Status, Tally};

/// A device that has not looked at the clock for this long was asleep, and must not blame others for its own silence.
const ASLEEP: Duration = Duration::from_secs(2);

/// A device of which this many messages were refused is ignored until it connects again.
const MOST_REFUSED: u64 = 1_000;

/// What an observer may look at when it is told of an event.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The device with its plan and results.
    pub device: &'a Device,
    /// The devices that are connected and take part.
    pub membership: &'a Membership,
    /// The devices that belong to the fleet.
    pub roster: &'a Roster,
    /// The bytes that were sent and received, and what was refused.
    pub tally: Tally,
}

impl View<'_> {
    /// Returns the status of the device, as it is shown to users.
    pub fn status(&self) -> Status {
        Status::new(self.device, self.membership, self.roster, self.tally)
    }
}

pub(super) type Observer<'o> = dyn FnMut(&View<'_>, Event) + Send + 'o;

/// A device with its connections to the others of its fleet.
pub(super) struct Member {
    pub(super) device: Device,
    pub(super) membership: Membership,
    pub(super) roster: SignedRoster,
    pub(super) settings: SharedSettings,
    /// A random number that was drawn when this device started, by which others notice a restart.
    pub(super) start: u64,
    pub(super) ears: Ears,
    pub(super) connections: BTreeMap<Place, Connection>,
    /// The devices that have greeted on their connection and have equal settings.
    pub(super) greeted: BTreeSet<Place>,
    /// The messages that arrived before their sender's greeting.
    pub(super) before_greeting: BTreeMap<Place, Vec<Envelope>>,
    /// Messages that begin an epoch, from devices that may not begin one as far as this device knows. It may be about to lose the device
    /// that stands before them in the roster.
    pub(super) untimely: BTreeMap<Place, Envelope>,
    /// The messages that were sent in the running epoch.
    pub(super) outbox: Outbox,
    /// The models to fetch from devices that are not connected, and the time since when.
    pub(super) awaited: BTreeMap<(Place, Way), (Offer, Duration)>,
    /// The devices that this device's models of this epoch have yet to be offered to.
    pub(super) offers: BTreeMap<Way, BTreeSet<Place>>,
    /// The computations of this epoch.
    pub(super) jobs: Jobs,
    pub(super) rates: Rates,
    asks_for_links: bool,
    pub(super) joule_bits_per_second: f64,
    pub(super) patience: Duration,
    pub(super) refused: BTreeMap<Place, u64>,
    pub(super) tally: Tally,
    has_ended: bool,
    told_of_plan: bool,
    pub(super) sending: JoinSet<()>,
    pub(super) fetching: JoinSet<()>,
    pub(super) now: Duration,
}

impl Member {
    pub(super) fn new(
        device: Device,
        roster: SignedRoster,
        ears: Ears,
        start: u64,
        options: &Options,
    ) -> Member {
        let expected = present(roster.roster());
        let membership = Membership::new(
            device.place(),
            expected,
            options.epoch,
            options.timing,
            Duration::ZERO,
        );
        let jobs = Jobs::new(ears.queue.clone(), Duration::ZERO);
        Member {
            device,
            membership,
            roster,
            settings: options.settings.clone(),
            start,
            ears,
            connections: BTreeMap::new(),
            greeted: BTreeSet::new(),
            before_greeting: BTreeMap::new(),
            untimely: BTreeMap::new(),
            outbox: Outbox::default(),
            awaited: BTreeMap::new(),
            offers: BTreeMap::new(),
            jobs,
            rates: Rates::default(),
            asks_for_links: false,
            joule_bits_per_second: options.joule_bits_per_second,
            patience: options.timing.patience,
            refused: BTreeMap::new(),
            tally: Tally::default(),
            has_ended: false,
            told_of_plan: false,
            sending: JoinSet::new(),
            fetching: JoinSet::new(),
            now: Duration::ZERO,
        }
    }

    /// Returns whether any other device takes part.
    pub(super) fn has_met(&self) -> bool {
        self.membership.here().len() > 1
    }

    /// Returns the places of all connected devices.
    pub(super) fn places(&self) -> Vec<Place> {
        self.connections.keys().copied().collect()
    }

    /// Returns whether the epoch is over for all devices.
    pub(super) fn is_over(&self) -> bool {
        self.membership.is_over()
    }

    /// Returns the devices of the roster whose address is known, by place and key.
    pub(super) fn to_call(&self, peers: &BTreeMap<Place, SocketAddr>) -> Vec<(Place, PeerId)> {
        let all = self.roster.roster().with_places();
        let known = all.filter(|(place, _)| peers.contains_key(place));
        known.filter(|(_, member)| member.present).map(|(place, m)| (place, m.key)).collect()
    }

    /// Waits until everything is sent, up to a time limit.
    pub(super) async fn settle(&mut self) {
        let all = async { while self.sending.join_next().await.is_some() {} };
        // Who does not take it by then is gone.
        let _ = tokio::time::timeout(super::LOST_AFTER, all).await;
    }

    pub(super) fn into_device(self) -> Device {
        self.device
    }

    pub(super) fn tell(&mut self, event: Event, observer: &mut Observer<'_>) {
        let mut tally = self.tally;
        self.connections.values().for_each(|connection| add_traffic(&mut tally, connection));
        let (device, membership) = (&self.device, &self.membership);
        let view = View { device, membership, roster: self.roster.roster(), tally };
        observer(&view, event);
    }

    fn look_at(&mut self, now: Duration) {
        if now.saturating_sub(self.now) > ASLEEP {
            self.membership.progressed(now);
        }
        self.now = now;
    }

    /// Does what is due at this time: begins epochs, complains about missing messages, gives up on devices and models.
    pub(super) fn tick(&mut self, now: Duration, observer: &mut Observer<'_>) {
        self.look_at(now);
        while self.sending.try_join_next().is_some() {}
        while self.fetching.try_join_next().is_some() {}
        self.look_at_jobs();
        for decision in self.membership.tick(now, &self.device.missing()) {
            match decision {
                Decision::Begin { number, members } => {
                    self.enter(number, &members, observer);
                    let forbidden = self.membership.forbidden().clone();
                    let actions = self.device.begin(number, &members, &forbidden);
                    self.act(actions, observer);
                }
                Decision::Complain { to, missing } => {
                    self.say(to, Message::Missing(missing));
                }
                Decision::LeaveOut(place) => self.tell(Event::LeftOut(place), observer),
            }
        }
        self.measure_links(observer);
        self.give_up_models(observer);
        self.tell_progress();
        let timely = self.untimely.keys().find(|&&from| self.membership.may_begin(from, now));
        if let Some((from, envelope)) = timely.copied().and_then(|p| self.untimely.remove_entry(&p))
        {
            self.hear_work(from, &envelope, observer);
        }
    }

    fn enter(&mut self, epoch: u64, members: &[Place], observer: &mut Observer<'_>) {
        self.membership.enter(epoch, members, self.now);
        self.offers.clear();
        self.jobs = Jobs::new(self.ears.queue.clone(), self.now);
        self.awaited.clear();
        self.outbox.clear();
        self.asks_for_links = false;
        self.has_ended = false;
        self.told_of_plan = false;
        self.tell(Event::Began { epoch, devices: members.len() }, observer);
        let late = self.untimely.iter().filter(|(_, other)| other.epoch <= epoch);
        for from in late.map(|(&from, _)| from).collect::<Vec<_>>() {
            self.untimely.remove(&from);
            self.refuse(from, Refusal::NotPlanner(from).to_string(), observer);
        }
    }

    /// Handles one item of the queue.
    pub(super) fn hear(&mut self, news: News, now: Duration, observer: &mut Observer<'_>) {
        self.look_at(now);
        let (key, news) = match news {
            News::Offered(epoch, places, offered) => {
                return self.send_offers(epoch, &places, &offered, observer);
            }
            News::Computed(computed) => return self.hear_computed(*computed, observer),
            News::Of(key, news) => (key, news),
        };
        let Some(place) = self.roster.roster().place(key) else {
            if let PeerNews::Came(connection) = news {
                connection.close(403_u32.into(), b"not in the roster");
                self.tally.turned_away += 1;
                self.tell(Event::TurnedAway(key), observer);
            }
            return;
        };
        match news {
            PeerNews::Came(connection) => self.connect(place, connection),
            PeerNews::Lost(id) => self.lose(place, id, observer),
            PeerNews::Message(bytes, _permit) => self.hear_message(place, &bytes, observer),
            PeerNews::Sent(bytes, after) => {
                self.rates.arrived(place, bytes, after);
                self.probe(place);
            }
            PeerNews::Model(epoch, way, model) => {
                self.hear_model((place, way), epoch, model, observer);
            }
            PeerNews::Interrupted(epoch, offer) if epoch == self.running() => {
                self.act(vec![Action::Fetch(place, offer)], observer);
            }
            PeerNews::Interrupted(..) => {}
        }
    }

    pub(super) fn refuse(&mut self, from: Place, reason: String, observer: &mut Observer<'_>) {
        self.tally.refused += 1;
        let count = self.refused.entry(from).or_default();
        *count += 1;
        if *count == MOST_REFUSED
            && let Some(connection) = self.connections.get(&from)
        {
            connection.close(429_u32.into(), b"too much that is refused");
        }
        self.tell(Event::Refused { from, reason }, observer);
    }

    fn hear_message(&mut self, place: Place, bytes: &[u8], observer: &mut Observer<'_>) {
        if self.refused.get(&place).is_some_and(|&count| count >= MOST_REFUSED) {
            return;
        }
        let read = self.device.limits().read(bytes).map_err(|malformed| malformed.to_string());
        let heard =
            read.and_then(|envelope| Ok(self.is_greeted(place, &envelope)?.then_some(envelope)));
        match heard {
            Ok(Some(envelope)) => self.hear_envelope(place, &envelope, observer),
            Ok(None) => {}
            Err(reason) => self.refuse(place, reason, observer),
        }
    }

    pub(super) fn hear_envelope(
        &mut self,
        place: Place,
        envelope: &Envelope,
        observer: &mut Observer<'_>,
    ) {
        let heard = match &envelope.message {
            Message::Hello(hello) => self.hear_hello(place, envelope.epoch, hello, observer),
            Message::Known => self.hear_known(envelope.epoch),
            // That it has arrived is all that it says.
            Message::Probe(_) => Ok(()),
            Message::Roster(bytes) => self.hear_roster(bytes, observer),
            _ if !self.membership.is_near(envelope.epoch) => self.hear_known(envelope.epoch),
            Message::Done | Message::Complete | Message::Missing(_) => {
                self.hear_of_epoch(place, envelope, observer)
            }
            _ => return self.hear_work(place, envelope, observer),
        };
        if let Err(reason) = heard {
            self.refuse(place, reason, observer);
        }
    }

    fn hear_of_epoch(
        &mut self,
        place: Place,
        envelope: &Envelope,
        observer: &mut Observer<'_>,
    ) -> Result<(), String> {
        let known = self.running();
        let members = self.membership.members();
        if envelope.epoch != known || !members.is_some_and(|members| members.contains(&place)) {
            return Err(Refusal::Epoch { offered: envelope.epoch, known }.to_string());
        }
        let planner = self.membership.planner();
        match &envelope.message {
            Message::Done => self.hear_done(place, observer),
            Message::Missing(places) => self.membership.hear_missing(place, places),
            _ if planner == Some(place) => {
                if !self.membership.is_over() {
                    self.membership.hear_complete();
                    self.tell(Event::Complete, observer);
                }
            }
            _ => return Err(Refusal::NotPlanner(place).to_string()),
        }
        Ok(())
    }

    /// Notes that a device has finished. The planner tells all devices once every one has.
    fn hear_done(&mut self, place: Place, observer: &mut Observer<'_>) {
        if !self.membership.done().is_some_and(|done| done.contains(&place)) {
            self.membership.progressed(self.now);
        }
        if self.membership.hear_done(place) {
            let own = self.device.place();
            let members = self.membership.members().into_iter().flatten();
            for member in members.copied().filter(|&m| m != own).collect::<Vec<_>>() {
                self.say(member, Message::Complete);
            }
            self.tell(Event::Complete, observer);
        }
    }

    fn hear_work(&mut self, place: Place, envelope: &Envelope, observer: &mut Observer<'_>) {
        let begins: Option<&[Place]> = match &envelope.message {
            Message::Begin(members) if envelope.epoch > self.running() => {
                if !self.membership.may_begin(place, self.now) {
                    if self.untimely.insert(place, envelope.clone()).is_some() {
                        self.refuse(place, Refusal::NotPlanner(place).to_string(), observer);
                    }
                    return;
                }
                Some(members)
            }
            _ => None,
        };
        let known = self.device.known();
        match self.device.receive(place, envelope) {
            Ok(actions) => {
                if let Some(members) = begins {
                    self.enter(envelope.epoch, members, observer);
                } else if self.device.known() > known {
                    self.membership.progressed(self.now);
                }
                self.act(actions, observer);
            }
            Err(refusal) => self.refuse(place, refusal.to_string(), observer),
        }
    }

    pub(super) fn act(&mut self, actions: Vec<Action>, observer: &mut Observer<'_>) {
        for action in actions {
            match action {
                Action::Send(to, envelope) => self.send(to, &envelope),
                Action::Offer(to, way) => {
                    self.offers.entry(way).or_default().insert(to);
                }
                Action::Fetch(from, offer) => self.fetch(from, offer),
                Action::Compute(job) => self.compute(job, observer),
                Action::MeasureLinks => self.asks_for_links = true,
                Action::Forbid(from, to) => {
                    self.membership.forbid(from, to);
                    self.tell(Event::Forbidden { from, to }, observer);
                }
                Action::LeaveOut(place) => {
                    self.membership.leave_out(place, self.now);
                    self.tell(Event::LeftOut(place), observer);
                }
                Action::Finish => self.finish(observer),
            }
        }
        self.tell_of_plan(observer);
        self.offer_models();
    }

    fn tell_of_plan(&mut self, observer: &mut Observer<'_>) {
        let Some(plan) = self.device.plan().filter(|_| !self.told_of_plan) else { return };
        let optimal = plan.optimal;
        self.told_of_plan = true;
        self.tell(Event::Planned { optimal }, observer);
        if let Some(from) = self.device.handed_from() {
            self.tell(Event::Awaits { from }, observer);
        }
    }

    /// Ends this device's part of the epoch: the observer keeps the results first, and only then are the others told.
    fn finish(&mut self, observer: &mut Observer<'_>) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        if let Some(reason) = self.device.no_plan() {
            let reason = reason.to_owned();
            self.tell(Event::NoPlan(reason), observer);
        }
        self.tell_of_plan(observer);
        self.tell(Event::Ended, observer);
        let own = self.device.place();
        let planner = self.membership.planner();
        match planner {
            Some(planner) if planner != own => self.say(planner, Message::Done),
            _ => self.hear_done(own, observer),
        }
    }

    /// Gives the device the energies of its links once all of them are measured, or their devices are gone.
    fn measure_links(&mut self, observer: &mut Observer<'_>) {
        let own = self.device.place();
        let Some(members) = self.membership.members().filter(|_| self.asks_for_links) else {
            return;
        };
        let here = members.iter().filter(|&&m| m != own && self.connections.contains_key(&m));
        if !here.into_iter().all(|&place| self.rates.is_known(place)) {
            return;
        }
        let joules = self.rates.joules(self.joule_bits_per_second);
        self.asks_for_links = false;
        let actions = self.device.links_measured(joules);
        self.act(actions, observer);
    }

    /// Returns the epoch that this device takes part in; 0 before the first.
    pub(super) fn running(&self) -> u64 {
        self.membership.running().unwrap_or_default()
    }

    /// Sends a message about the running epoch.
    fn say(&mut self, to: Place, message: Message) {
        self.send(to, &Envelope::new(self.running(), message));
    }

    /// Sends a message that is not about an epoch, with the number of the last one that this device heard of.
    pub(super) fn tell_known(&mut self, to: Place, message: Message) {
        let envelope = Envelope::new(self.membership.epoch(), message);
        self.transmit(to, envelope.to_bytes().into());
    }

    /// Sends a message of the running epoch, now or once its receiver has greeted.
    fn send(&mut self, to: Place, envelope: &Envelope) {
        let bytes = self.outbox.keep(to, envelope);
        if self.greeted.contains(&to) {
            self.transmit(to, bytes);
        }
    }

    pub(super) fn transmit(&mut self, to: Place, bytes: Arc<[u8]>) {
        let Some(connection) = self.connections.get(&to).cloned() else { return };
        self.rates.sets_out(to);
        self.sending.spawn(link::send(connection, bytes, self.ears.queue.clone()));
    }
}

/// Adds the bytes that went over a connection, including the overhead of packets.
pub(super) fn add_traffic(tally: &mut Tally, connection: &Connection) {
    let stats = connection.stats();
    tally.sent += stats.udp_tx.bytes;
    tally.received += stats.udp_rx.bytes;
}

/// Returns the number of devices in a roster.
pub(super) fn present(roster: &Roster) -> usize {
    roster.devices.iter().filter(|member| member.present).count()
}
