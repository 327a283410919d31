//! A device among the others, without I/O: connections, bytes, time and results come in as arguments, and what is to be done goes to its
//! [`Surroundings`]. A real network and a simulated one drive the same code.

mod event;
mod hearing;
mod meeting;
mod outbox;
mod refusals;
mod starts;
mod surroundings;
mod transfers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use stlf_planning::plan::Way;

pub use self::event::{Absence, Event};
use self::meeting::Early;
use self::outbox::Outbox;
use self::refusals::Refusals;
use self::starts::Starts;
pub use self::surroundings::{Closing, Surroundings};
use crate::device::{Action, Device, Refusal};
use crate::job::{Blamed, Computed, Task};
use crate::membership::{Decision, Membership, Timing};
use crate::roster::{Place, Roster, SignedRoster};
use crate::shared::SharedSettings;
use crate::wire::{Envelope, EpochId, Message, Offer};

/// A device that has not looked at the clock for this long was asleep, and must not blame others for its own silence.
const ASLEEP: Duration = Duration::from_secs(2);

/// Within this part of the patience all links are measured. Nobody else loses patience meanwhile.
const MEASURED_IN: u32 = 2;

/// How many times, at most, other devices are told of the progress of a training, or of models on their way, within the time of their patience.
const TOLD_IN_PATIENCE: u32 = 4;

/// A device with what it knows of the others of its fleet.
#[derive(Debug)]
pub struct Participant {
    device: Device,
    membership: Membership,
    roster: SignedRoster,
    settings: SharedSettings,
    /// Drawn when this device started, by which others notice a restart.
    start: u64,
    /// The devices that a connection leads to.
    connected: BTreeSet<Place>,
    /// Those of them that have greeted and have equal settings.
    greeted: BTreeSet<Place>,
    /// The numbers that devices drew when they started, as they greeted with them.
    starts: BTreeMap<Place, Starts>,
    /// The messages that arrived before their sender's greeting.
    before_greeting: BTreeMap<Place, Early>,
    /// The messages that were sent in the running epoch.
    outbox: Outbox,
    /// The models to fetch from devices that are not connected, and the time since when.
    awaited: BTreeMap<(Place, Way), (Offer, Duration)>,
    /// The devices that this device's models of this epoch have yet to be offered to.
    offers: BTreeMap<Way, BTreeSet<Place>>,
    /// Since when links are measured, if they are.
    asks_for_links: Option<Duration>,
    /// The devices that took no probes in time. Nobody waits for them again until they do.
    takes_no_probes: BTreeSet<Place>,
    /// How many percent of the models that it needs have come, as it told others last in this epoch, and when.
    told_arrived: (u8, Duration),
    patience: Duration,
    refused: BTreeMap<Place, Refusals>,
    /// Who sent a plan that is none of an epoch that has not begun here.
    garbled: BTreeMap<Place, EpochId>,
    /// Which epoch of theirs planners waited in for this device when they were told that it takes part in another one.
    told_where: BTreeMap<Place, EpochId>,
    has_ended: bool,
    told_of_plan: bool,
    /// Whether it has asked for another epoch since the running one was over.
    has_asked: bool,
    now: Duration,
}

impl Participant {
    /// A device that has just started, at time 0. `epoch` is the last one that it took part in, and `start` a number drawn for this start.
    pub fn new(
        mut device: Device,
        roster: SignedRoster,
        settings: SharedSettings,
        timing: Timing,
        epoch: u64,
        start: u64,
    ) -> Participant {
        device.set_settings(settings.fingerprint());
        let expected = present(roster.roster());
        let membership = Membership::new(device.place(), expected, epoch, timing, Duration::ZERO);
        let mut participant = Participant {
            device,
            membership,
            roster,
            settings,
            start,
            connected: BTreeSet::new(),
            greeted: BTreeSet::new(),
            starts: BTreeMap::new(),
            before_greeting: BTreeMap::new(),
            outbox: Outbox::default(),
            awaited: BTreeMap::new(),
            offers: BTreeMap::new(),
            asks_for_links: None,
            takes_no_probes: BTreeSet::new(),
            told_arrived: (0, Duration::ZERO),
            patience: timing.patience,
            refused: BTreeMap::new(),
            garbled: BTreeMap::new(),
            told_where: BTreeMap::new(),
            has_ended: false,
            told_of_plan: false,
            has_asked: false,
            now: Duration::ZERO,
        };
        participant.start_anew(start);
        participant
    }

    /// Holds against others that they have lied as planners, as this device found out before it was started again, each for so long from now on.
    pub fn recall_convicted(&mut self, convicted: &BTreeMap<Place, Duration>) {
        self.membership.recall_convicted(convicted);
    }

    /// Greets with another number from now on, as if this device was started again. Whoever drives it must then close all connections.
    pub fn start_anew(&mut self, start: u64) {
        self.device.set_start((start ^ (start >> 32)) as u32);
        self.start = start;
    }

    /// The device, with its plan and results.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The same once it takes no part any more.
    pub fn into_device(self) -> Device {
        self.device
    }

    /// Returns who takes part, and in which epoch, as this device knows it.
    pub fn membership(&self) -> &Membership {
        &self.membership
    }

    /// Returns who belongs to the fleet.
    pub fn roster(&self) -> &Roster {
        self.roster.roster()
    }

    /// The places of all connected devices.
    pub fn connected(&self) -> &BTreeSet<Place> {
        &self.connected
    }

    /// Returns whose keys two devices use, and how long ago that was noticed last.
    pub fn used_twice(&self) -> BTreeMap<Place, Duration> {
        let since = |(&place, starts): (&Place, &Starts)| {
            Some((place, self.now.saturating_sub(starts.used_twice()?)))
        };
        self.starts.iter().filter_map(since).collect()
    }

    /// Does what is due at this time: begins epochs, complains about missing messages, gives up on devices and models.
    pub fn tick(&mut self, now: Duration, world: &mut impl Surroundings) {
        self.look_at(now);
        // A device that computes must not blame others for its own silence.
        if world.is_computing() {
            self.membership.was_busy(now);
        }
        self.tell_arrived(world);
        self.pass_on_to_all(world);
        self.ask_for_epoch(world);
        for decision in self.membership.tick(now, &self.device.missing()) {
            match decision {
                Decision::Begin { number, members } => {
                    let begun = EpochId { number, begun: self.device.start() };
                    self.enter(begun, &members, world);
                    // Of others a plan says nothing, and those that have a roster of before need not know them.
                    let takes_part = |place: &Place| members.contains(place);
                    let mut forbidden = self.membership.forbidden().clone();
                    forbidden.retain(|(from, to)| takes_part(from) && takes_part(to));
                    let actions = self.device.begin(number, &members, &forbidden);
                    self.act(actions, world);
                }
                Decision::Complain { to, missing } => {
                    self.device.complain_of(&missing);
                    self.say(to, Message::Missing(missing), world)
                }
                Decision::Remind(first) => {
                    self.tell_known(first, Message::TakesPart(self.running_id()), world);
                }
                Decision::LeaveOut(place) => world.tell(self, Event::LeftOut(place)),
                Decision::Forbid { from, to } => world.tell(self, Event::Forbidden { from, to }),
            }
        }
        self.measure_links(world);
        self.give_up_models(world);
        self.tell_progress(world);
        if let Some((from, id, members)) = self.membership.timely(now) {
            self.hear_work(from, &Envelope::new(id, Message::Begin(members)), world);
        }
    }

    /// As the planner, before it blames anybody: those that it waits for may wait for what this device has.
    fn pass_on_to_all(&mut self, world: &mut impl Surroundings) {
        if !self.membership.has_waited(self.now) {
            return;
        }
        let members = self.membership.members().into_iter().flatten();
        let members: Vec<Place> = members.copied().collect();
        for to in self.device.missing() {
            let passed_on = self.device.pass_on(&members, to);
            self.act(passed_on, world);
        }
    }

    /// From the next epoch on this device has the data of another one of the same place ([`Device::renew`]). It asks for one as soon as the running
    /// one is over.
    pub fn renew(&mut self, fresh: Device) {
        self.device.renew(fresh);
        self.has_asked = false;
    }

    /// Asks for an epoch if this device has other data since the one that is over began.
    fn ask_for_epoch(&mut self, world: &mut impl Surroundings) {
        if self.has_asked || !self.device.awaits_renewal() || !self.membership.is_over() {
            return;
        }
        self.has_asked = true;
        let own = self.device.place();
        match self.membership.planner() {
            Some(planner) if planner != own => self.say(planner, Message::Renewed, world),
            _ => self.membership.hear_renewed(own, self.now),
        }
    }

    fn look_at(&mut self, now: Duration) {
        if now.saturating_sub(self.now) > ASLEEP {
            self.membership.was_busy(now);
        }
        self.now = now;
    }

    fn enter(&mut self, epoch: EpochId, members: &[Place], world: &mut impl Surroundings) {
        let late = self.membership.enter(epoch, members, self.now);
        world.begin_epoch(self.now);
        self.offers.clear();
        self.awaited.clear();
        self.outbox.clear();
        self.asks_for_links = None;
        self.told_arrived = (0, self.now);
        self.has_ended = false;
        self.told_of_plan = false;
        self.has_asked = false;
        let (id, epoch, devices) = (epoch, epoch.number, members.len());
        world.tell(self, Event::Began { epoch, devices });
        for from in late {
            // Who planned them would otherwise wait for this device, and take it for silent.
            self.tell_known(from, Message::TakesPart(id), world);
            self.refuse(from, Refusal::NotPlanner(from).told(self.roster()), world);
        }
        if let Some(planner) = self.membership.planner()
            && self.garbled.get(&planner) == Some(&id)
        {
            self.convict(planner);
        }
        self.garbled.retain(|_, of| of.number > id.number);
    }

    /// Takes what a job came to.
    pub fn hear_computed(
        &mut self,
        computed: Computed,
        now: Duration,
        world: &mut impl Surroundings,
    ) {
        self.look_at(now);
        if computed.epoch() != self.running() {
            return;
        }
        self.membership.progressed(now);
        let (task, blamed) = (computed.task(), computed.blamed().cloned());
        let actions = match (self.device.computed(computed), task) {
            (Ok(actions), Task::TrainOn { from, way }) => {
                let event = match self.device.refuses_on(way) {
                    true => Event::Distrusts { from },
                    false => Event::TrainedOn { from, way },
                };
                world.tell(self, event);
                actions
            }
            (Ok(actions), Task::Examine { from }) => {
                if self.device.refuses_as_examiner(from) {
                    world.tell(self, Event::Distrusts { from });
                }
                actions
            }
            (Ok(actions), Task::Combine) => {
                let refused = self.device.combined().map(|c| c.refused.clone()).unwrap_or_default();
                refused.into_iter().for_each(|from| world.tell(self, Event::Distrusts { from }));
                actions
            }
            (Ok(actions), _) => actions,
            (Err(refusal), Task::TrainOn { from, .. }) => {
                let reason = match blamed {
                    Some(blamed) => blamed.reason,
                    None => format!("trained on, it is {refusal}"),
                };
                world.tell(self, Event::NotReceived { from, reason });
                self.device.model_failed(from)
            }
            (Err(refusal), Task::Turn { peer, .. } | Task::Check { planner: peer }) => {
                return self.hear_refusal(peer, refusal, world);
            }
            (Err(refusal), _) => {
                let Some(Blamed { from, reason }) = blamed else {
                    return self.refuse(self.device.place(), refusal.told(self.roster()), world);
                };
                world.tell(self, Event::NotReceived { from, reason });
                self.device.model_failed(from)
            }
        };
        self.act(actions, world);
    }

    fn act(&mut self, actions: Vec<Action>, world: &mut impl Surroundings) {
        for action in actions {
            match action {
                Action::Send(to, envelope) => self.send(to, &envelope, world),
                Action::Offer(to, way) => {
                    self.offers.entry(way).or_default().insert(to);
                }
                Action::Distrust(from) => world.tell(self, Event::Distrusts { from }),
                Action::KeepReplies => world.tell(self, Event::Measured),
                Action::KeepVerdicts => world.tell(self, Event::Judged),
                Action::Fetch(from, offer) => self.fetch(from, offer, world),
                Action::Compute(job) => {
                    if let Task::TrainOn { from, way } = job.task() {
                        world.tell(self, Event::TrainsOn { from, way });
                    }
                    world.compute(job);
                }
                Action::MeasureLinks => self.asks_for_links = Some(self.now),
                Action::Forbid(from, to) => {
                    self.membership.forbid(from, to, self.now);
                    world.tell(self, Event::Forbidden { from, to });
                }
                Action::LeaveOut(place) => {
                    self.membership.leave_out(place, self.now);
                    world.tell(self, Event::LeftOut(place));
                }
                Action::Refuse(from, refusal) => self.hear_refusal(from, refusal, world),
                Action::Finish => self.finish(world),
            }
        }
        self.tell_of_plan(world);
        self.offer_models(world);
    }

    fn tell_of_plan(&mut self, world: &mut impl Surroundings) {
        let Some(plan) = self.device.plan().filter(|_| !self.told_of_plan) else { return };
        let (optimal, links) = (plan.optimal, plan.sends());
        self.told_of_plan = true;
        self.membership.planned(links, self.now);
        world.tell(self, Event::Planned { optimal });
        if let Some(from) = self.device.handed_from() {
            world.tell(self, Event::Awaits { from });
        }
    }

    /// Ends this device's part of the epoch: the observer keeps the results first, and only then are the others told.
    fn finish(&mut self, world: &mut impl Surroundings) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        if let Some(reason) = self.device.no_plan() {
            let reason = reason.to_owned();
            self.membership.planned(BTreeSet::new(), self.now);
            world.tell(self, Event::NoPlan(reason));
        }
        self.tell_of_plan(world);
        world.tell(self, Event::Ended);
        let own = self.device.place();
        match self.membership.planner() {
            Some(planner) if planner != own => self.say(planner, Message::Done, world),
            _ => self.hear_done(own, world),
        }
    }

    /// Gives the device the energies of its links once all of them are measured, or their devices are gone. Who takes no probes holds nobody up for
    /// longer than [`MEASURED_IN`] allows: its link counts like the others do on average.
    fn measure_links(&mut self, world: &mut impl Surroundings) {
        let (own, Some(since)) = (self.device.place(), self.asks_for_links) else { return };
        let members = self.membership.members().into_iter().flatten().copied();
        let here = members.filter(|m| *m != own && self.connected.contains(m));
        let (late, mut here): (Vec<Place>, Vec<Place>) =
            here.partition(|member| self.takes_no_probes.contains(member));
        for place in late {
            if world.joules(&[place]).is_some() {
                self.takes_no_probes.remove(&place);
            }
        }
        if self.now.saturating_sub(since) >= self.patience / MEASURED_IN {
            here.retain(|&place| {
                let is_known = world.joules(&[place]).is_some();
                if !is_known {
                    self.takes_no_probes.insert(place);
                }
                is_known
            });
        }
        let Some(joules) = world.joules(&here) else { return };
        self.asks_for_links = None;
        let actions = self.device.links_measured(joules);
        self.act(actions, world);
    }

    /// Tells the other devices that a training continues. If a connection breaks, such a message is lost; the next one makes up for it.
    fn tell_progress(&mut self, world: &mut impl Surroundings) {
        let Some(percent) = world.progress(self.now, self.patience / TOLD_IN_PATIENCE) else {
            return;
        };
        self.device.trains_on(percent);
        self.tell_once(Message::TrainedOn(percent), world);
    }

    /// Tells all other devices of the epoch something that a later message makes up for if it is lost.
    fn tell_once(&self, message: Message, world: &mut impl Surroundings) {
        let bytes: Arc<[u8]> = Envelope::new(self.running_id(), message).to_bytes().into();
        let members = self.membership.members().into_iter().flatten();
        members.filter(|m| self.greeted.contains(m)).for_each(|&m| world.send(m, bytes.clone()));
    }

    /// The number of the epoch that this device takes part in; 0 before the first.
    fn running(&self) -> u64 {
        self.running_id().number
    }

    fn running_id(&self) -> EpochId {
        self.membership.running_id().unwrap_or_default()
    }

    /// Sends a message about the running epoch.
    fn say(&mut self, to: Place, message: Message, world: &mut impl Surroundings) {
        self.send(to, &Envelope::new(self.running_id(), message), world);
    }

    /// Sends a message that is not about an epoch, with the number of the last one that this device heard of.
    fn tell_known(&self, to: Place, message: Message, world: &mut impl Surroundings) {
        world.send(to, Envelope::new(self.membership.epoch(), message).to_bytes().into());
    }

    /// Sends a message of the running epoch, now or once its receiver has greeted.
    fn send(&mut self, to: Place, envelope: &Envelope, world: &mut impl Surroundings) {
        let bytes = self.outbox.keep(to, envelope);
        if self.greeted.contains(&to) {
            world.send(to, bytes);
        }
    }
}

/// The number of devices in a roster.
fn present(roster: &Roster) -> usize {
    roster.devices.iter().filter(|member| member.present).count()
}
