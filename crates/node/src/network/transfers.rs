//! How the loop offers and fetches models.

use std::time::Duration;

use stlf_learn::Params;
use stlf_planning::plan::Way;
use stlf_protocol::device::{Action, Refusal};
use stlf_protocol::roster::Place;
use stlf_protocol::wire::{Envelope, Message, Offer};

use super::Event;
use super::link::{self, Ears};
use super::member::{Member, Observer};

impl Member {
    /// Offers this device's models to the devices that the plan sends them to.
    pub(super) fn offer_models(&mut self) {
        for way in Way::ALL {
            let Some(offers) = self.offers.get(&way) else { continue };
            let model = self.device.sent_model(way);
            let model = model.and_then(|m| m.to_safetensors(self.device.spec()).ok());
            let Some(model) = model else { continue };
            let roster = self.roster.roster();
            let to = offers.iter().filter_map(|&place| Some((place, roster.at(place)?.key)));
            let to = to.collect();
            self.offers.remove(&way);
            let Ears { models, queue, .. } = self.ears.clone();
            let offer = link::offer(models, model, way, to, self.running(), queue);
            self.sending.spawn(offer);
        }
    }

    pub(super) fn send_offers(
        &mut self,
        epoch: u64,
        places: &[Place],
        offered: &Result<Offer, String>,
        observer: &mut Observer<'_>,
    ) {
        match offered {
            Ok(offer) => {
                let envelope = Envelope::new(epoch, Message::Offer(*offer));
                let send = |&to: &Place| Action::Send(to, envelope.clone());
                self.act(places.iter().map(send).collect(), observer);
            }
            Err(reason) => {
                let (from, reason) = (self.device.place(), reason.clone());
                self.tell(Event::NotReceived { from, reason }, observer);
            }
        }
    }

    /// Fetches a model, as soon as its sender is connected.
    pub(super) fn fetch(&mut self, from: Place, offer: Offer) {
        let connection = self.connections.get(&from).filter(|c| c.close_reason().is_none());
        let Some(connection) = connection.filter(|_| self.greeted.contains(&from)) else {
            self.awaited.insert((from, offer.way), (offer, self.now));
            return;
        };
        let (connection, epoch) = (connection.clone(), self.running());
        let Ears { models, queue, .. } = self.ears.clone();
        self.fetching.spawn(link::fetch(connection, models, offer, epoch, queue));
    }

    /// Resumes the fetches that a broken connection interrupted.
    pub(super) fn fetch_again(&mut self, from: Place, observer: &mut Observer<'_>) {
        let again = Way::ALL.map(|way| self.awaited.remove(&(from, way)));
        let again = again.into_iter().flatten().map(|(offer, _)| Action::Fetch(from, offer));
        self.act(again.collect(), observer);
    }

    /// Gives up models whose sender has not been connected for too long.
    pub(super) fn give_up_models(&mut self, observer: &mut Observer<'_>) {
        let late = |since: Duration| self.now.saturating_sub(since) >= self.patience / 2;
        let gone = self.awaited.iter().filter(|(_, (_, since))| late(*since));
        for (from, way) in gone.map(|(&sent, _)| sent).collect::<Vec<_>>() {
            self.awaited.remove(&(from, way));
            let reason = Err("it is not connected".to_owned());
            self.hear_model((from, way), self.running(), reason, observer);
        }
    }

    pub(super) fn hear_model(
        &mut self,
        (place, way): (Place, Way),
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
            let actions = self.device.receive_model(place, way, params);
            let actions = actions.map_err(|e| e.to_string())?;
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
}
