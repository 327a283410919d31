//! The one loop's knowledge: who is connected, what the device wants, and what is on its way.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use iroh::endpoint::Connection;
use stlf_learn::Params;
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;

use super::link::{self, News};
use super::models::Models;
use super::rates::Rates;
use super::{Event, Options};
use crate::device::{Action, Device, Refusal};
use crate::identity::PeerId;
use crate::membership::{Decision, Membership};
use crate::roster::{Invalid, Roster, SignedRoster};
use crate::status::{Status, Tally};
use crate::wire::{Envelope, Message};

/// A new epoch is not further than this from those that are known, so that nobody can use numbers up.
const FURTHEST_EPOCH: u64 = 1 << 32;

/// A member whose messages were refused so often is not heard until it comes anew.
const MOST_REFUSED: u64 = 1_000;

/// What an observer may look at.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The device.
    pub device: &'a Device,
    /// Who takes part.
    pub membership: &'a Membership,
    /// Who belongs to the fleet.
    pub roster: &'a Roster,
    /// What went over the network.
    pub tally: Tally,
}

impl View<'_> {
    /// How the device stands.
    pub fn status(&self) -> Status {
        Status::new(self.device, self.membership, self.roster, self.tally)
    }
}

type Observer<'o> = dyn FnMut(&View<'_>, Event) + Send + 'o;

/// A device among others.
pub(super) struct Member {
    device: Device,
    membership: Membership,
    roster: SignedRoster,
    models: Models,
    queue: Sender<News>,
    connections: BTreeMap<usize, Connection>,
    /// What is for those that are in the roster but not connected yet.
    waiting: BTreeMap<usize, Vec<Action>>,
    /// To whom the model goes in this epoch.
    offers: Vec<usize>,
    rates: Rates,
    asks_for_links: bool,
    joule_bits_per_second: f64,
    refused: BTreeMap<usize, u64>,
    tally: Tally,
    has_ended: bool,
    told_of_plan: bool,
    sending: JoinSet<()>,
    fetching: JoinSet<()>,
    now: Duration,
}

impl Member {
    pub(super) fn new(
        device: Device,
        roster: SignedRoster,
        models: Models,
        options: &Options,
        queue: Sender<News>,
    ) -> Member {
        let expected = present(roster.roster());
        let membership = Membership::new(
            device.place(),
            expected,
            options.epoch,
            options.timing,
            Duration::ZERO,
        );
        Member {
            device,
            membership,
            roster,
            models,
            queue,
            connections: BTreeMap::new(),
            waiting: BTreeMap::new(),
            offers: Vec::new(),
            rates: Rates::default(),
            asks_for_links: false,
            joule_bits_per_second: options.joule_bits_per_second,
            refused: BTreeMap::new(),
            tally: Tally::default(),
            has_ended: false,
            told_of_plan: false,
            sending: JoinSet::new(),
            fetching: JoinSet::new(),
            now: Duration::ZERO,
        }
    }

    /// How many others are connected.
    pub(super) fn connected(&self) -> usize {
        self.connections.len()
    }

    /// Who they are.
    pub(super) fn places(&self) -> Vec<usize> {
        self.connections.keys().copied().collect()
    }

    /// Whether the epoch is over for all.
    pub(super) fn is_over(&self) -> bool {
        self.membership.is_over()
    }

    /// Those of the roster whose address is known.
    pub(super) fn to_call(&self, peers: &BTreeMap<usize, SocketAddr>) -> Vec<(usize, PeerId)> {
        let devices = &self.roster.roster().devices;
        let known = devices.iter().enumerate().filter(|(place, _)| peers.contains_key(place));
        known.filter(|(_, member)| member.present).map(|(place, m)| (place, m.key)).collect()
    }

    /// Waits for what is being sent.
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

    /// Looks at the clock.
    pub(super) fn tick(&mut self, now: Duration, observer: &mut Observer<'_>) {
        self.now = now;
        while self.sending.try_join_next().is_some() {}
        while self.fetching.try_join_next().is_some() {}
        for decision in self.membership.tick(now, &self.device.missing()) {
            match decision {
                Decision::Begin { number, members } => {
                    self.enter(number, &members, observer);
                    let forbidden = self.membership.forbidden().clone();
                    let actions = self.device.begin(number, &members, &forbidden);
                    self.act(actions, observer);
                }
                Decision::Complain { to, missing } => {
                    let missing = missing.into_iter().map(|place| place as u32).collect();
                    self.say(to, Message::Missing(missing));
                }
                Decision::LeaveOut(place) => self.tell(Event::LeftOut(place), observer),
            }
        }
        self.measure_links(observer);
    }

    fn enter(&mut self, epoch: u64, members: &[usize], observer: &mut Observer<'_>) {
        self.membership.enter(epoch, members, self.now);
        self.offers.clear();
        self.waiting.clear();
        self.asks_for_links = false;
        self.has_ended = false;
        self.told_of_plan = false;
        self.tell(Event::Began { epoch, devices: members.len() }, observer);
    }

    /// Takes what came in.
    pub(super) fn hear(&mut self, news: News, now: Duration, observer: &mut Observer<'_>) {
        self.now = now;
        let key = match &news {
            News::Came(key, _) | News::Lost(key, _) | News::Message(key, _) => *key,
            News::Sent(key, ..) | News::Model(key, ..) => *key,
            News::Offered(epoch, places, offered) => {
                return self.send_offers(*epoch, places, offered, observer);
            }
        };
        let Some(place) = self.roster.roster().place(key) else {
            if let News::Came(key, connection) = news {
                connection.close(403_u32.into(), b"not in the roster");
                self.tally.turned_away += 1;
                self.tell(Event::TurnedAway(key), observer);
            }
            return;
        };
        match news {
            News::Came(_, connection) => self.come(place, connection, observer),
            News::Lost(_, id) => self.lose(place, id, observer),
            News::Message(_, bytes) => self.hear_message(place, &bytes, observer),
            News::Sent(_, bytes, after) => self.rates.arrived(place, bytes, after),
            News::Model(_, epoch, model) => self.hear_model(place, epoch, model, observer),
            News::Offered(..) => {}
        }
    }

    fn come(&mut self, place: usize, connection: Connection, observer: &mut Observer<'_>) {
        if let Some(old) = self.connections.insert(place, connection) {
            add_traffic(&mut self.tally, &old);
            old.close(200_u32.into(), b"there is a newer connection");
        }
        self.refused.remove(&place);
        self.membership.came(place, self.now);
        self.tell(Event::Came(place), observer);
        self.say(place, Message::Hello(self.roster.roster().version));
        let waiting = self.waiting.remove(&place).unwrap_or_default();
        self.act(waiting, observer);
    }

    fn lose(&mut self, place: usize, id: usize, observer: &mut Observer<'_>) {
        // A newer connection may have taken the place of the one that was lost.
        if self.connections.get(&place).is_none_or(|known| known.stable_id() != id) {
            return;
        }
        if let Some(connection) = self.connections.remove(&place) {
            add_traffic(&mut self.tally, &connection);
        }
        let planner = self.membership.planner();
        self.membership.lost(place, self.now);
        self.tell(Event::Lost(place), observer);
        // Who plans next may not have heard of the epoch that the last planner began, and must not use its number again.
        if planner == Some(place)
            && let Some(&next) = self.membership.here().first()
        {
            self.say(next, Message::Hello(self.roster.roster().version));
        }
    }

    fn refuse(&mut self, from: usize, reason: String, observer: &mut Observer<'_>) {
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

    fn hear_message(&mut self, place: usize, bytes: &[u8], observer: &mut Observer<'_>) {
        if self.refused.get(&place).is_some_and(|&count| count >= MOST_REFUSED) {
            return;
        }
        let envelope = match Envelope::read(bytes) {
            Ok(envelope) => envelope,
            Err(malformed) => return self.refuse(place, malformed.to_string(), observer),
        };
        if envelope.epoch > self.membership.epoch().saturating_add(FURTHEST_EPOCH) {
            return self.refuse(place, "an epoch far in the future".to_owned(), observer);
        }
        let heard = match &envelope.message {
            Message::Hello(version) => self.hear_hello(place, envelope.epoch, *version),
            Message::Roster(bytes) => self.hear_roster(bytes, observer),
            Message::Done | Message::Complete | Message::Missing(_) => {
                self.hear_of_epoch(place, &envelope, observer)
            }
            _ => return self.hear_work(place, &envelope, observer),
        };
        if let Err(reason) = heard {
            self.refuse(place, reason, observer);
        }
    }

    fn hear_hello(&mut self, place: usize, epoch: u64, version: u64) -> Result<(), String> {
        self.membership.heard_of(epoch);
        if version < self.roster.roster().version {
            self.say(place, Message::Roster(self.roster.to_json().into_bytes()));
        }
        Ok(())
    }

    fn hear_roster(&mut self, bytes: &[u8], observer: &mut Observer<'_>) -> Result<(), String> {
        let roster = SignedRoster::read(bytes).map_err(|e| e.to_string())?;
        match roster.replaces(&self.roster) {
            Ok(()) => self.use_roster(roster, observer),
            // Whoever hears of a newer one passes it on, also to those that have it.
            Err(Invalid::Older { .. }) => {}
            Err(foreign) => return Err(foreign.to_string()),
        }
        Ok(())
    }

    /// A roster that the user named; only a newer one of the same fleet is used.
    pub(super) fn offer_roster(&mut self, roster: SignedRoster, observer: &mut Observer<'_>) {
        if roster.replaces(&self.roster).is_ok() {
            self.use_roster(roster, observer);
        }
    }

    /// A newer roster: who left is turned away, and all are told.
    fn use_roster(&mut self, roster: SignedRoster, observer: &mut Observer<'_>) {
        let list = roster.roster().clone();
        self.membership.expect(present(&list));
        self.device.set_roster(list.clone());
        self.roster = roster.clone();
        let gone = |place: usize| !list.devices.get(place).is_some_and(|member| member.present);
        let left: Vec<usize> = self.places().into_iter().filter(|&place| gone(place)).collect();
        for place in left {
            if let Some(connection) = self.connections.remove(&place) {
                connection.close(403_u32.into(), b"no longer in the roster");
            }
            self.membership.lost(place, self.now);
            self.tell(Event::Lost(place), observer);
        }
        for place in self.places() {
            self.say(place, Message::Roster(roster.to_json().into_bytes()));
        }
        self.tell(Event::Roster(Box::new(roster)), observer);
    }

    fn hear_of_epoch(
        &mut self,
        place: usize,
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
            Message::Missing(places) => {
                let places: Vec<usize> = places.iter().map(|&place| place as usize).collect();
                self.membership.hear_missing(place, &places);
            }
            _ if planner == Some(place) => {
                self.membership.hear_complete();
                self.tell(Event::Complete, observer);
            }
            _ => return Err(Refusal::NotPlanner(place).to_string()),
        }
        Ok(())
    }

    /// As the planner: once all are done, all are told.
    fn hear_done(&mut self, place: usize, observer: &mut Observer<'_>) {
        self.membership.progressed(self.now);
        if self.membership.hear_done(place) {
            let own = self.device.place();
            let members = self.membership.members().into_iter().flatten();
            for member in members.copied().filter(|&m| m != own).collect::<Vec<_>>() {
                self.say(member, Message::Complete);
            }
            self.tell(Event::Complete, observer);
        }
    }

    fn hear_work(&mut self, place: usize, envelope: &Envelope, observer: &mut Observer<'_>) {
        let begins: Option<Vec<usize>> = match &envelope.message {
            Message::Begin(places) => Some(places.iter().map(|&p| p as usize).collect()),
            _ => None,
        };
        match self.device.receive(place, envelope) {
            Ok(actions) => {
                if let Some(members) = begins {
                    self.enter(envelope.epoch, &members, observer);
                }
                if envelope.epoch == self.running() {
                    self.membership.progressed(self.now);
                }
                self.act(actions, observer);
            }
            Err(refusal) => self.refuse(place, refusal.to_string(), observer),
        }
    }

    fn hear_model(
        &mut self,
        place: usize,
        epoch: u64,
        model: Result<Vec<u8>, String>,
        observer: &mut Observer<'_>,
    ) {
        // A model that was asked for in an epoch that is no more is in the store, where the next one finds it.
        if epoch != self.running() {
            return;
        }
        let taken = model.and_then(|bytes| {
            let params = Params::from_safetensors(self.device.spec(), &bytes)
                .map_err(|_| Refusal::Unfit("bytes that are no model").to_string())?;
            let actions = self.device.receive_model(place, params).map_err(|e| e.to_string())?;
            Ok((bytes.len() as u64, actions))
        });
        let actions = match taken {
            Ok((bytes, actions)) => {
                self.membership.progressed(self.now);
                self.tell(Event::Received { from: place, bytes }, observer);
                actions
            }
            Err(reason) => {
                self.tell(Event::NotReceived { from: place, reason }, observer);
                self.device.model_failed(place)
            }
        };
        self.act(actions, observer);
    }

    fn act(&mut self, actions: Vec<Action>, observer: &mut Observer<'_>) {
        for action in actions {
            match action {
                Action::Send(to, envelope) => {
                    if !self.send(to, &envelope) {
                        self.waiting.entry(to).or_default().push(Action::Send(to, envelope));
                    }
                }
                Action::Offer(to) => self.offers.push(to),
                Action::Fetch(from, offer) => match self.connections.get(&from) {
                    Some(connection) => {
                        let (connection, queue) = (connection.clone(), self.queue.clone());
                        let (models, epoch) = (self.models.clone(), self.running());
                        self.fetching.spawn(link::fetch(connection, models, offer, epoch, queue));
                    }
                    None => self.waiting.entry(from).or_default().push(Action::Fetch(from, offer)),
                },
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
        self.offer_model();
    }

    fn tell_of_plan(&mut self, observer: &mut Observer<'_>) {
        let Some(plan) = self.device.plan().filter(|_| !self.told_of_plan) else { return };
        let optimal = plan.optimal;
        self.told_of_plan = true;
        self.tell(Event::Planned { optimal }, observer);
    }

    /// First what came of it is kept, then others hear that it is over.
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

    /// Gives the model to those that may have it.
    fn offer_model(&mut self) {
        if self.offers.is_empty() {
            return;
        }
        let model = self.device.sent_model();
        let model = model.and_then(|m| m.to_safetensors(self.device.spec()).ok());
        let Some(model) = model else { return };
        let devices = &self.roster.roster().devices;
        let offers: BTreeSet<usize> = std::mem::take(&mut self.offers).into_iter().collect();
        let to = offers.into_iter().filter_map(|place| Some((place, devices.get(place)?.key)));
        let (models, queue) = (self.models.clone(), self.queue.clone());
        let offer = link::offer(models, model, to.collect(), self.running(), queue);
        self.sending.spawn(offer);
    }

    fn send_offers(
        &mut self,
        epoch: u64,
        places: &[usize],
        offered: &Result<crate::wire::Offer, String>,
        observer: &mut Observer<'_>,
    ) {
        match offered {
            Ok(offer) => {
                let envelope = Envelope::new(epoch, Message::Offer(*offer));
                let send = |&to: &usize| Action::Send(to, envelope.clone());
                self.act(places.iter().map(send).collect(), observer);
            }
            Err(reason) => {
                let (from, reason) = (self.device.place(), reason.clone());
                self.tell(Event::NotReceived { from, reason }, observer);
            }
        }
    }

    /// Answers the device once every member has taken a message, or is gone.
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

    /// The epoch that this device takes part in; 0 before the first.
    fn running(&self) -> u64 {
        self.membership.running().unwrap_or_default()
    }

    /// Says something about the running epoch, or, to whom it meets, the last that it heard of.
    fn say(&mut self, to: usize, message: Message) {
        let epoch = match message {
            Message::Hello(_) => self.membership.epoch(),
            _ => self.running(),
        };
        self.send(to, &Envelope::new(epoch, message));
    }

    /// Whether there is a connection to send it over.
    fn send(&mut self, to: usize, envelope: &Envelope) -> bool {
        let Some(connection) = self.connections.get(&to) else { return false };
        let (connection, queue) = (connection.clone(), self.queue.clone());
        self.rates.sets_out(to);
        self.sending.spawn(link::send(connection, envelope.to_bytes(), queue));
        true
    }
}

/// What went over a connection, packets and all.
fn add_traffic(tally: &mut Tally, connection: &Connection) {
    let stats = connection.stats();
    tally.sent += stats.udp_tx.bytes;
    tally.received += stats.udp_rx.bytes;
}

/// How many devices a roster has.
fn present(roster: &Roster) -> usize {
    roster.devices.iter().filter(|member| member.present).count()
}
