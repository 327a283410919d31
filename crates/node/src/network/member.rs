//! The one loop's knowledge: who is connected, what the device wants, and what is on its way.

use std::collections::BTreeMap;

use iroh::endpoint::{Connection, SendStream};
use stlf_learn::Params;
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;

use super::link::{self, News};
use super::{Event, Places};
use crate::device::{Action, Device, Refusal};
use crate::roster::Roster;
use crate::wire::Envelope;

/// A device among others.
pub(super) struct Member {
    device: Device,
    roster: Roster,
    queue: Sender<News>,
    connections: BTreeMap<usize, Connection>,
    epoch: u64,
    members: Places,
    /// What is for those that are in the roster but not connected yet.
    waiting: BTreeMap<usize, Vec<Action>>,
    /// Who may have the model, and who had it.
    offered: Places,
    served: Places,
    /// Who asked before the plan was known here.
    asking: BTreeMap<usize, SendStream>,
    finished: bool,
    told_of_plan: bool,
    sending: JoinSet<()>,
    fetching: JoinSet<()>,
}

impl Member {
    pub(super) fn new(device: Device, roster: Roster, queue: Sender<News>) -> Member {
        Member {
            device,
            roster,
            queue,
            connections: BTreeMap::new(),
            epoch: 0,
            members: Places::new(),
            waiting: BTreeMap::new(),
            offered: Places::new(),
            served: Places::new(),
            asking: BTreeMap::new(),
            finished: false,
            told_of_plan: false,
            sending: JoinSet::new(),
            fetching: JoinSet::new(),
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

    /// Whether nothing is left to do here, for oneself or for others.
    pub(super) fn is_done(&self) -> bool {
        self.finished && self.offered == self.served && self.sending.is_empty()
    }

    /// Something that was being sent has arrived.
    pub(super) async fn sent(&mut self) -> Option<()> {
        self.sending.join_next().await.map(|_| ())
    }

    /// Waits for what is being sent.
    pub(super) async fn settle(&mut self) {
        while self.sending.join_next().await.is_some() {}
    }

    pub(super) fn into_device(self) -> Device {
        self.device
    }

    /// Begins the next epoch with those that are here, if nobody comes before this device.
    pub(super) fn begin_if_first(&mut self, observer: &mut dyn FnMut(Event)) {
        let own = self.device.place();
        let members: Places = self.connections.keys().copied().chain([own]).collect();
        let list: Vec<usize> = members.iter().copied().collect();
        if Device::planner_of(&list) != Some(own) {
            return;
        }
        self.enter(self.epoch + 1, members, observer);
        let actions = self.device.begin(self.epoch, &list);
        self.act(actions, observer);
    }

    fn enter(&mut self, epoch: u64, members: Places, observer: &mut dyn FnMut(Event)) {
        self.epoch = epoch;
        observer(Event::Began { epoch, devices: members.len() });
        self.members = members;
        self.offered.clear();
        self.served.clear();
        self.asking.clear();
        self.waiting.clear();
        self.finished = false;
        self.told_of_plan = false;
    }

    /// Takes what came in.
    pub(super) fn hear(&mut self, news: News, observer: &mut dyn FnMut(Event)) {
        let key = match &news {
            News::Came(key, _) | News::Lost(key) | News::Message(key, _) => *key,
            News::Asked(key, _) | News::Model(key, _) => *key,
        };
        let Some(place) = self.roster.place(key) else {
            if let News::Came(key, connection) = news {
                connection.close(403_u32.into(), b"not in the roster");
                observer(Event::TurnedAway(key));
            }
            return;
        };
        match news {
            News::Came(_, connection) => {
                self.connections.insert(place, connection);
                observer(Event::Came(place));
                let waiting = self.waiting.remove(&place).unwrap_or_default();
                self.act(waiting, observer);
            }
            News::Lost(_) => self.lose(place, observer),
            News::Message(_, bytes) => self.hear_message(place, &bytes, observer),
            News::Asked(_, stream) => {
                self.asking.insert(place, stream);
                self.serve();
            }
            News::Model(_, bytes) => self.hear_model(place, bytes, observer),
        }
    }

    fn lose(&mut self, place: usize, observer: &mut dyn FnMut(Event)) {
        let known = self.connections.get(&place);
        // A newer connection may have taken the place of the one that was lost.
        if known.is_none_or(|connection| connection.close_reason().is_none()) {
            return;
        }
        self.connections.remove(&place);
        observer(Event::Lost(place));
        self.offered.remove(&place);
        self.served.remove(&place);
        if self.epoch > 0 && !self.finished && self.members.contains(&place) {
            self.begin_if_first(observer);
        }
    }

    fn hear_message(&mut self, place: usize, bytes: &[u8], observer: &mut dyn FnMut(Event)) {
        let refused = |reason: String| Event::Refused { from: place, reason };
        let envelope = match Envelope::read(bytes) {
            Ok(envelope) => envelope,
            Err(malformed) => return observer(refused(malformed.to_string())),
        };
        let begins = match &envelope.message {
            crate::wire::Message::Begin(places) => {
                Some(places.iter().map(|&p| p as usize).collect())
            }
            _ => None,
        };
        match self.device.receive(place, &envelope) {
            Ok(actions) => {
                if let Some(members) = begins {
                    self.enter(envelope.epoch, members, observer);
                }
                self.act(actions, observer);
            }
            Err(refusal) => observer(refused(refusal.to_string())),
        }
    }

    fn hear_model(
        &mut self,
        place: usize,
        bytes: Option<Vec<u8>>,
        observer: &mut dyn FnMut(Event),
    ) {
        let Some(bytes) = bytes else { return };
        let read = Params::from_safetensors(self.device.spec(), &bytes);
        let taken = match read {
            Ok(params) => self.device.receive_model(place, params),
            Err(_) => Err(Refusal::Unfit("bytes that are no model")),
        };
        match taken {
            Ok(actions) => self.act(actions, observer),
            Err(refusal) => {
                observer(Event::Refused { from: place, reason: refusal.to_string() });
            }
        }
    }

    fn act(&mut self, actions: Vec<Action>, observer: &mut dyn FnMut(Event)) {
        for action in actions {
            match action {
                Action::Send(to, envelope) => match self.connections.get(&to) {
                    Some(connection) => {
                        self.sending.spawn(link::send(connection.clone(), envelope.to_bytes()));
                    }
                    None => self.waiting.entry(to).or_default().push(Action::Send(to, envelope)),
                },
                Action::Offer(to) => {
                    self.offered.insert(to);
                }
                Action::Fetch(from) => match self.connections.get(&from) {
                    Some(connection) => {
                        let queue = self.queue.clone();
                        self.fetching.spawn(link::fetch(connection.clone(), queue));
                    }
                    None => self.waiting.entry(from).or_default().push(Action::Fetch(from)),
                },
                Action::Finish => self.finished = true,
            }
        }
        if self.device.plan().is_some() && !self.told_of_plan {
            self.told_of_plan = true;
            observer(Event::Planned);
        }
        self.serve();
    }

    /// Gives the model to those that asked and may have it.
    fn serve(&mut self) {
        let ready: Vec<usize> =
            self.asking.keys().copied().filter(|place| self.offered.contains(place)).collect();
        let model = self.device.model().and_then(|m| m.to_safetensors(self.device.spec()).ok());
        let Some(model) = model else { return };
        for place in ready {
            if let Some(stream) = self.asking.remove(&place) {
                self.served.insert(place);
                self.sending.spawn(link::answer(stream, model.clone()));
            }
        }
    }
}
