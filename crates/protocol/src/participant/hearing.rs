//! What a participant hears, and what it refuses.

use std::time::Duration;

use super::{Closing, Event, Participant, Surroundings};
use crate::checking::Objection;
use crate::device::Refusal;
use crate::membership::Beginning;
use crate::roster::Place;
use crate::wire::{Envelope, EpochId, Limits, Message};

impl Participant {
    /// Takes the bytes of a message that arrived on the connection of the device at a place.
    pub fn hear_message(
        &mut self,
        place: Place,
        bytes: &[u8],
        now: Duration,
        world: &mut impl Surroundings,
    ) {
        self.look_at(now);
        if self.refused.get_mut(&place).is_some_and(|refused| refused.are_too_many(now)) {
            return;
        }
        let read = match (self.device.limits().read(bytes), Limits::plan_of(bytes)) {
            (Err(malformed), Some(epoch)) => {
                self.hear_garbled(place, epoch);
                Err(Objection::Garbled(malformed.to_string()).to_string())
            }
            (read, _) => read.map_err(|malformed| malformed.to_string()),
        };
        let heard = read.and_then(|envelope| {
            Ok(self.is_greeted(place, &envelope, bytes.len())?.then_some(envelope))
        });
        match heard {
            Ok(Some(envelope)) => self.hear_envelope(place, &envelope, world),
            Ok(None) => {}
            Err(reason) => self.refuse(place, reason, world),
        }
    }

    /// A plan that cannot be read. The connection has proven who sends it, and no honest planner does.
    fn hear_garbled(&mut self, from: Place, epoch: EpochId) {
        if epoch == self.running_id() {
            self.convict(from);
        } else if epoch.number > self.running() {
            self.garbled.insert(from, epoch);
        }
    }

    /// A lie that only the planner can have told: if this device waits for its plan, it does without it from now on.
    pub(super) fn convict(&mut self, liar: Place) {
        if self.membership.planner() == Some(liar) && self.device.awaits_plan() {
            self.membership.convict_planner(self.now);
        }
    }

    /// Something that was said is not heeded, and may be a lie of the planner's.
    pub(super) fn hear_refusal(
        &mut self,
        from: Place,
        refusal: Refusal,
        world: &mut impl Surroundings,
    ) {
        if matches!(refusal, Refusal::Plan(_)) {
            self.convict(from);
        }
        self.refuse(from, refusal.told(self.roster()), world);
    }

    pub(super) fn refuse(&mut self, from: Place, reason: String, world: &mut impl Surroundings) {
        if self.refused.entry(from).or_default().add(self.now) && self.connected.contains(&from) {
            world.close(from, Closing::TooMuchRefused);
        }
        world.tell(self, Event::Refused { from, reason });
    }

    pub(super) fn hear_envelope(
        &mut self,
        place: Place,
        envelope: &Envelope,
        world: &mut impl Surroundings,
    ) {
        let number = envelope.epoch.number;
        let heard = match &envelope.message {
            Message::Hello(hello) => self.hear_hello(place, number, hello, world),
            Message::Known => self.hear_known(place, number),
            // That it has arrived is all that it says.
            Message::Probe(_) => Ok(()),
            Message::Roster(bytes) => self.hear_roster(bytes, world),
            Message::TakesPart(other) => {
                self.membership.hear_takes_part(place, *other, self.now);
                self.hear_known(place, other.number)
            }
            message if !self.membership.is_near(number, self.now) => {
                if let Message::Begin(members) = message {
                    self.membership.keep_far_begin(place, envelope.epoch, members);
                }
                self.hear_known(place, number)
            }
            Message::Done | Message::Complete | Message::Missing(_) | Message::Renewed => {
                self.hear_of_epoch(place, envelope, world)
            }
            _ => return self.hear_work(place, envelope, world),
        };
        if let Err(reason) = heard {
            self.refuse(place, reason, world);
        }
    }

    /// Takes the number of an epoch that another device knows of.
    pub(super) fn hear_known(&mut self, place: Place, epoch: u64) -> Result<(), String> {
        match self.membership.hear_claim(place, epoch, self.now) {
            true => Ok(()),
            false => Err(format!("epoch {epoch} is too far from the last one here")),
        }
    }

    fn hear_of_epoch(
        &mut self,
        place: Place,
        envelope: &Envelope,
        world: &mut impl Surroundings,
    ) -> Result<(), String> {
        let known = self.running_id();
        let members = self.membership.members();
        if envelope.epoch != known || !members.is_some_and(|members| members.contains(&place)) {
            let (offered, known) = (envelope.epoch.number, known.number);
            return Err(Refusal::Epoch { offered, known }.to_string());
        }
        let planner = self.membership.planner();
        match &envelope.message {
            Message::Done if !self.membership.is_planned() => {
                return Err("it says that it is done before there is a plan".to_owned());
            }
            Message::Done => self.hear_done(place, world),
            Message::Renewed if planner == Some(self.device.place()) => {
                self.membership.hear_renewed(place, self.now);
            }
            Message::Renewed => return Err("this device does not plan".to_owned()),
            Message::Missing(places) => {
                let is_first = !self.membership.has_complained(place);
                self.membership.hear_missing(place, places);
                let passed_on = self.device.pass_on(places, place);
                // It has what it waited for only now, and needs its time.
                if is_first && !passed_on.is_empty() {
                    self.membership.progressed(self.now);
                }
                self.act(passed_on, world);
            }
            // It is over for all only if it is over here. All that it is said to see that at about the same time.
            _ if planner == Some(place) && !self.has_ended => {
                self.membership.convict_planner(self.now);
                return Err("it says that an epoch is over which is not over here".to_owned());
            }
            _ if planner == Some(place) => {
                if !self.membership.is_over() {
                    self.membership.hear_complete();
                    world.tell(self, Event::Complete);
                }
            }
            _ => return Err(Refusal::NotPlanner(place).told(self.roster())),
        }
        Ok(())
    }

    /// Notes that a device has finished. The planner tells all devices once every one has.
    pub(super) fn hear_done(&mut self, place: Place, world: &mut impl Surroundings) {
        if !self.membership.done().is_some_and(|done| done.contains(&place)) {
            self.membership.progressed(self.now);
        }
        if self.membership.hear_done(place) {
            let own = self.device.place();
            let members = self.membership.members().into_iter().flatten();
            for member in members.copied().filter(|&m| m != own).collect::<Vec<_>>() {
                self.say(member, Message::Complete, world);
            }
            world.tell(self, Event::Complete);
        }
    }

    pub(super) fn hear_work(
        &mut self,
        place: Place,
        envelope: &Envelope,
        world: &mut impl Surroundings,
    ) {
        if let Message::Begin(members) = &envelope.message {
            return self.hear_begin(place, envelope, members, world);
        }
        let known = self.device.known();
        match self.device.receive(place, envelope) {
            Ok(actions) => {
                if self.device.known() > known {
                    self.membership.progressed(self.now);
                }
                if let Message::Report(_) = &envelope.message {
                    self.membership.hear_report(place);
                }
                self.act(actions, world);
            }
            Err(refusal) => {
                self.tell_where_it_is(place, envelope, &refusal, world);
                self.hear_refusal(place, refusal, world);
            }
        }
    }

    /// A planner passes on what it has to those that it waits for. If this device has left its epoch for another one, the planner may not know, and would
    /// take it for silent. It is told once of each epoch.
    fn tell_where_it_is(
        &mut self,
        planner: Place,
        envelope: &Envelope,
        refusal: &Refusal,
        world: &mut impl Surroundings,
    ) {
        let is_waited_for = matches!(envelope.message, Message::PassedOn(..));
        let has_left = matches!(refusal, Refusal::Epoch { offered, known } if offered <= known);
        if is_waited_for
            && has_left
            && self.told_where.insert(planner, envelope.epoch) != Some(envelope.epoch)
        {
            self.tell_known(planner, Message::TakesPart(self.running_id()), world);
        }
    }

    fn hear_begin(
        &mut self,
        place: Place,
        envelope: &Envelope,
        members: &[Place],
        world: &mut impl Surroundings,
    ) {
        match self.membership.hear_begin(place, envelope.epoch, members, self.now) {
            Beginning::Again | Beginning::Untimely { again: false } => {}
            Beginning::Untimely { again: true } => {
                self.refuse(place, Refusal::NotPlanner(place).told(self.roster()), world);
            }
            Beginning::Late(own) => self.tell_known(place, Message::TakesPart(own), world),
            Beginning::Enter => match self.device.receive(place, envelope) {
                Ok(actions) => {
                    self.enter(envelope.epoch, members, world);
                    self.act(actions, world);
                }
                Err(refusal) => self.refuse(place, refusal.told(self.roster()), world),
            },
        }
    }
}
