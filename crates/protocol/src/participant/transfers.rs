//! How a participant offers and fetches models.

use std::time::Duration;

use stlf_learn::Params;
use stlf_planning::plan::Way;

use super::{Event, Participant, Surroundings, TOLD_IN_PATIENCE};
use crate::device::Action;
use crate::roster::Place;
use crate::wire::{Envelope, Message, Offer};

impl Participant {
    /// Offers this device's models to the devices that the plan sends them to.
    pub(super) fn offer_models(&mut self, world: &mut impl Surroundings) {
        for way in Way::ALL {
            let Some(offers) = self.offers.get(&way) else { continue };
            let Some(model) = self.device.sent_model(way) else { continue };
            let roster = self.roster.roster();
            let to = offers.iter().filter_map(|&place| Some((place, roster.at(place)?.key)));
            let to = to.collect();
            self.offers.remove(&way);
            world.offer(&model, way, to, self.running());
        }
    }

    /// A model of an epoch may be fetched by these devices, or cannot be offered for this reason.
    pub fn hear_offered(
        &mut self,
        epoch: u64,
        places: &[Place],
        offered: &Result<Offer, String>,
        now: Duration,
        world: &mut impl Surroundings,
    ) {
        self.look_at(now);
        if epoch != self.running() {
            return;
        }
        match offered {
            Ok(offer) => {
                let signed = self.device.sign_offer(*offer);
                let message = Message::Offer(signed, self.device.tried(offer.way));
                let envelope = Envelope::new(self.running_id(), message);
                let send = |&to: &Place| Action::Send(to, envelope.clone());
                self.act(places.iter().map(send).collect(), world);
            }
            Err(reason) => {
                let (from, reason) = (self.device.place(), reason.clone());
                world.tell(self, Event::NotReceived { from, reason });
            }
        }
    }

    /// Fetches a model, as soon as its sender is connected.
    pub(super) fn fetch(&mut self, from: Place, offer: Offer, world: &mut impl Surroundings) {
        if !self.greeted.contains(&from) || !world.fetch(from, offer, self.running()) {
            self.awaited.insert((from, offer.way), (offer, self.now));
        }
    }

    /// The connection broke before a model came that was asked for in an epoch.
    pub fn interrupted(
        &mut self,
        from: Place,
        epoch: u64,
        offer: Offer,
        now: Duration,
        world: &mut impl Surroundings,
    ) {
        self.look_at(now);
        if epoch == self.running() {
            self.fetch(from, offer, world);
        }
    }

    /// Tells the other devices how much of the models that this one needs has come, where they take long: who waits for this device has patience as long as that
    /// becomes more.
    pub(super) fn tell_arrived(&mut self, world: &mut impl Surroundings) {
        let (told, when) = self.told_arrived;
        if self.now.saturating_sub(when) < self.patience / TOLD_IN_PATIENCE {
            return;
        }
        let percent = self.device.percent_arrived(&world.arriving());
        let Some(percent) = percent.filter(|percent| *percent > told) else { return };
        self.told_arrived = (percent, self.now);
        self.membership.progressed(self.now);
        self.tell_once(Message::Arrived(percent), world);
    }

    /// Resumes the fetches that a broken connection interrupted.
    pub(super) fn fetch_again(&mut self, from: Place, world: &mut impl Surroundings) {
        for way in Way::ALL {
            if let Some((offer, _)) = self.awaited.remove(&(from, way)) {
                self.fetch(from, offer, world);
            }
        }
    }

    /// Gives up models whose sender, other than the planner, has not been connected for too long.
    pub(super) fn give_up_models(&mut self, world: &mut impl Surroundings) {
        let late = |since: Duration| self.now.saturating_sub(since) >= self.patience / 2;
        // Without the planner there is nobody to tell, and this epoch does not go on.
        let planner = self.membership.planner();
        let others = self.awaited.iter().filter(|((from, _), _)| Some(*from) != planner);
        let gone = others.filter(|(_, (_, since))| late(*since));
        for (from, way) in gone.map(|(&sent, _)| sent).collect::<Vec<_>>() {
            self.awaited.remove(&(from, way));
            let reason = Err("it is not connected".to_owned());
            self.hear_model((from, way), self.running(), reason, self.now, world);
        }
    }

    /// A model came that was asked for in an epoch, with its size in bytes, or did not for this reason.
    pub fn hear_model(
        &mut self,
        (place, way): (Place, Way),
        epoch: u64,
        model: Result<(Params, u64), String>,
        now: Duration,
        world: &mut impl Surroundings,
    ) {
        self.look_at(now);
        // A model that was asked for in an epoch that is no more is kept where the next one finds it.
        if epoch != self.running() {
            return;
        }
        let taken = model.and_then(|(params, bytes)| {
            let actions = self.device.receive_model(place, way, params);
            Ok((bytes, actions.map_err(|e| e.to_string())?))
        });
        let actions = match taken {
            Ok((bytes, actions)) => {
                self.membership.progressed(self.now);
                world.tell(self, Event::Received { from: place, bytes });
                actions
            }
            Err(reason) => {
                world.tell(self, Event::NotReceived { from: place, reason });
                self.device.model_failed(place)
            }
        };
        self.act(actions, world);
    }
}
