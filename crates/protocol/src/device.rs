//! A device of the fleet as a machine without I/O: a message in, actions out.

mod handed;
mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use stlf_data::Class;
use stlf_learn::evaluate::Predictions;
use stlf_learn::{Params, Spec};
use stlf_method::local_training::OwnError;

use self::handed::HandedOn;
pub use self::handed::TrainingOn;
use crate::divergence_protocol::Exchange;
use crate::identity::Identity;
use crate::planning::Planner;
use crate::roster::Roster;
use crate::setup::Setup;
use crate::wire::{Envelope, Limits, Message, Offer, Plan};

/// What a device holds; none of it leaves.
#[derive(Debug, Clone)]
pub struct Holdings {
    /// All inputs, those with a label first.
    pub inputs: Arc<[f32]>,
    /// The labels.
    pub labels: Vec<Class>,
    /// Samples without a label.
    pub unlabeled: usize,
}

/// What a device asks its surroundings to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Send this to the device at a place.
    Send(usize, Envelope),
    /// Let the device at a place have this device's model, and send it the [`Offer`].
    Offer(usize),
    /// Get a model from the device at a place.
    Fetch(usize, Offer),
    /// Train on the model of the device at a place ([`Device::to_train_on`]), without holding anything up.
    TrainOn(usize),
    /// Say what a model costs to each place ([`Device::links_measured`]).
    MeasureLinks,
    /// As the planner: no usable model came over this link, from and to.
    Forbid(usize, usize),
    /// As the planner: no plan can have this device in it.
    LeaveOut(usize),
    /// The epoch is over for this device.
    Finish,
}

/// Why a message is not heeded; counted, and otherwise without effect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Of an epoch that is not this one.
    #[error("epoch {offered}, where it is {known}")]
    Epoch {
        /// The message's.
        offered: u64,
        /// The device's.
        known: u64,
    },
    /// From a device that does not take part.
    #[error("place {0} does not take part")]
    Stranger(usize),
    /// From a device that has no say in this.
    #[error("place {0} is not the planner")]
    NotPlanner(usize),
    /// Said before, differently.
    #[error("place {0} says two things")]
    Twice(usize),
    /// Of another size than all agreed on, or without what it must have.
    #[error("{0}")]
    Unfit(&'static str),
    /// A signature that is not the planner's.
    #[error("the plan is not signed by its planner")]
    Unsigned,
}

/// A device.
#[derive(Debug)]
pub struct Device {
    setup: Setup,
    roster: Roster,
    identity: Identity,
    place: usize,
    holdings: Holdings,
    /// Joules of sending a model to each place that something is known of.
    joules: BTreeMap<usize, f64>,
    trained: Option<(Params, OwnError)>,
    handed_on: Option<HandedOn>,
    epoch: Option<Epoch>,
    /// What others said of an epoch that this device has not heard the beginning of yet.
    early: BTreeMap<usize, Vec<Envelope>>,
    /// The plan before this epoch's, which the next one changes as little as it can.
    last_plan: Option<Plan>,
}

/// A device says so much before it needs an answer.
const MOST_EARLY: usize = 4;

/// What is known in an epoch.
#[derive(Debug)]
struct Epoch {
    number: u64,
    /// Ascending.
    members: Vec<usize>,
    exchange: Exchange,
    has_asked_for_links: bool,
    has_reported: bool,
    planner: Option<Planner>,
    plan: Option<Plan>,
    no_plan: Option<String>,
    offers: BTreeMap<usize, Offer>,
    fetched: BTreeSet<usize>,
    has_followed: bool,
    models: BTreeMap<usize, Params>,
    has_begun_training: bool,
    /// How many percent those have done that train on a model.
    trained_on: BTreeMap<usize, u8>,
    outcome: Option<Predictions>,
}

impl Device {
    /// A device that has not trained yet; `None` if its key has no place in the roster.
    pub fn new(
        setup: Setup,
        roster: Roster,
        identity: Identity,
        holdings: Holdings,
        joules: BTreeMap<usize, f64>,
    ) -> Option<Device> {
        let place = roster.place(identity.id())?;
        let (trained, handed_on, epoch, last_plan) = (None, None, None, None);
        Some(Device {
            setup,
            roster,
            identity,
            place,
            holdings,
            joules,
            trained,
            handed_on,
            epoch,
            early: BTreeMap::new(),
            last_plan,
        })
    }

    /// Its place in the roster.
    pub fn place(&self) -> usize {
        self.place
    }

    /// The network of its model.
    pub fn spec(&self) -> &Spec {
        &self.setup.spec
    }

    /// Trains on its own labels, from first values that all share; `false` if `observer` ended it.
    ///
    /// # Errors
    /// Labels or inputs that are not of the network.
    pub fn train(
        &mut self,
        observer: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<bool, stlf_planning::Error> {
        let (setup, split) = (&self.setup, self.split());
        if split.is_empty() {
            return Ok(true);
        }
        let Some(params) = setup.train(self.place, &split, setup.first_model(), observer)? else {
            return Ok(false);
        };
        let error = setup.own_error(&split, &params, self.holdings.unlabeled);
        self.trained = Some((params, error));
        Ok(true)
    }

    /// Its own model, where it has labels and has trained.
    pub fn model(&self) -> Option<&Params> {
        self.trained.as_ref().map(|(params, _)| params)
    }

    /// The model as others get it: its own, or where the plan has it train on another's, what that became.
    pub fn sent_model(&self) -> Option<Params> {
        let model = match self.handed_from() {
            Some(_) => self.trained_on(),
            None => self.model(),
        };
        model.map(|model| self.setup.sent(model, &self.holdings.labels))
    }

    /// Takes up a training that this device finished before it was started anew, and the plan that it followed, if it is one.
    pub fn resume(&mut self, trained: Option<(Params, OwnError)>, last_plan: Option<Plan>) {
        let last_plan = last_plan.filter(|plan| plan.check().is_ok());
        (self.trained, self.last_plan) = (trained, last_plan);
    }

    /// Its error on its own labels, once it has trained.
    pub fn own_error(&self) -> Option<OwnError> {
        self.trained.as_ref().map(|(_, error)| *error)
    }

    /// A newer roster. Places stay what they were.
    pub fn set_roster(&mut self, roster: Roster) {
        self.roster = roster;
    }

    /// Who plans among these devices: the first of the roster.
    pub fn planner_of(members: &[usize]) -> Option<usize> {
        members.iter().copied().min()
    }

    /// As the planner: begins an epoch among these devices. Links over which no model came are not used.
    pub fn begin(
        &mut self,
        number: u64,
        members: &[usize],
        forbidden: &BTreeSet<(usize, usize)>,
    ) -> Vec<Action> {
        let places: Vec<u32> = members.iter().map(|&m| m as u32).collect();
        let mut actions = self.to_others(members, number, &Message::Begin(places));
        actions.extend(self.enter(number, members.to_vec(), forbidden));
        actions
    }

    /// Those that this device waits for.
    pub fn missing(&self) -> Vec<usize> {
        let Some(epoch) = &self.epoch else { return Vec::new() };
        let planner = Device::planner_of(&epoch.members).unwrap_or(self.place);
        let Some(plan) = &epoch.plan else {
            return match &epoch.planner {
                _ if epoch.no_plan.is_some() => Vec::new(),
                _ if !epoch.has_reported => epoch.exchange.missing(),
                Some(desk) => {
                    let others = epoch.members.iter().copied().filter(|&m| m != self.place);
                    others.filter(|&m| !desk.has_heard(m)).collect()
                }
                None => vec![planner],
            };
        };
        plan.senders(self.place).filter(|from| !epoch.models.contains_key(from)).collect()
    }

    /// How much others have told of the epoch so far. Only what makes it more is progress; what is said again is not.
    pub fn known(&self) -> usize {
        self.epoch.as_ref().map_or(0, |epoch| {
            let reports = epoch.planner.as_ref().map_or(0, Planner::heard);
            let planned = usize::from(epoch.plan.is_some()) + usize::from(epoch.no_plan.is_some());
            let handed = epoch.plan.iter().flat_map(|plan| &plan.handovers);
            let trained = handed.filter_map(|h| epoch.trained_on.get(&(h.to as usize)));
            let trained: usize = trained.map(|&percent| usize::from(percent)).sum();
            let models = epoch.offers.len() + epoch.models.len();
            epoch.exchange.known() + reports + planned + models + trained
        })
    }

    /// How long the messages may be that it has use for.
    pub fn limits(&self) -> Limits {
        Limits::new(self.roster.devices.len(), &self.setup.divergence, self.setup.shape)
    }

    /// What it costs to send a model to each place, as measured.
    pub fn links_measured(&mut self, joules: BTreeMap<usize, f64>) -> Vec<Action> {
        self.joules = joules;
        self.go_on()
    }

    /// A model that was asked for did not come, or is none.
    pub fn model_failed(&mut self, from: usize) -> Vec<Action> {
        let Some(epoch) = &self.epoch else { return Vec::new() };
        let place = self.place;
        match &epoch.planner {
            Some(_) => vec![Action::Forbid(from, place)],
            None => {
                let to = Device::planner_of(&epoch.members).unwrap_or(place);
                let message = Message::Failed(from as u32);
                vec![Action::Send(to, Envelope::new(epoch.number, message))]
            }
        }
    }

    /// Whether everything is measured and told to the planner.
    pub fn has_reported(&self) -> bool {
        self.epoch.as_ref().is_some_and(|epoch| epoch.has_reported)
    }

    /// Whether its part of the epoch is over.
    pub fn is_done(&self) -> bool {
        self.epoch.as_ref().is_some_and(|epoch| {
            epoch.no_plan.is_some() || epoch.outcome.is_some() || epoch.has_followed
        })
    }

    /// Why there is no plan in this epoch.
    pub fn no_plan(&self) -> Option<&str> {
        self.epoch.as_ref()?.no_plan.as_deref()
    }

    /// What its samples came to under the epoch's plan; `None` as long as there is nothing, and for a source.
    pub fn outcome(&self) -> Option<&Predictions> {
        self.epoch.as_ref()?.outcome.as_ref()
    }

    /// The epoch's plan.
    pub fn plan(&self) -> Option<&Plan> {
        self.epoch.as_ref()?.plan.as_ref()
    }

    /// Takes a message from the device at a place, whose key the connection has proven.
    ///
    /// # Errors
    /// Says why it is not heeded. Nothing has changed then.
    pub fn receive(&mut self, from: usize, envelope: &Envelope) -> Result<Vec<Action>, Refusal> {
        if let Message::Begin(places) = &envelope.message {
            return self.hear_begin(from, envelope.epoch, places);
        }
        let (offered, known) = (envelope.epoch, self.epoch.as_ref().map_or(0, |e| e.number));
        if offered > known {
            return self.keep_for_later(from, envelope);
        }
        let Some(epoch) = self.epoch.as_mut().filter(|e| e.number == offered) else {
            return Err(Refusal::Epoch { offered, known });
        };
        if !epoch.members.contains(&from) {
            return Err(Refusal::Stranger(from));
        }
        let mut actions = Vec::new();
        match &envelope.message {
            Message::Begin(_) => {}
            Message::Bandwidth(_) | Message::Moments(_) | Message::Sketch(_) | Message::Turn(_) => {
                let replies = epoch.exchange.receive(from, &envelope.message)?;
                actions.extend(in_epoch(offered, replies));
            }
            Message::Report(report) => {
                let planner = epoch.planner.as_mut();
                let planner = planner.ok_or(Refusal::Unfit("a report for somebody else"))?;
                planner.hear(from, report)?;
            }
            Message::Plan(signed) => self.hear_plan(from, signed)?,
            Message::NoPlan(reason) => {
                if Device::planner_of(&epoch.members) != Some(from) {
                    return Err(Refusal::NotPlanner(from));
                }
                if epoch.no_plan.as_ref().is_some_and(|known| known != reason) {
                    return Err(Refusal::Twice(from));
                }
                epoch.no_plan = Some(reason.clone());
                return Ok(vec![Action::Finish]);
            }
            Message::Offer(offer) => {
                // A model with its names; a header of names is short.
                let most = 4 * self.setup.spec.parameters() as u64 + (64 << 10);
                if offer.bytes > most {
                    return Err(Refusal::Unfit("a model larger than the network"));
                }
                note(&mut epoch.offers, from, *offer)?;
            }
            Message::Failed(source) => {
                let source = *source as usize;
                let plan = epoch.plan.as_ref().filter(|_| epoch.planner.is_some());
                if !plan.is_some_and(|plan| plan.senders(from).any(|sender| sender == source)) {
                    return Err(Refusal::Unfit("a failure of a link that is not used"));
                }
                return Ok(vec![Action::Forbid(source, from)]);
            }
            Message::TrainedOn(percent) => {
                let known = epoch.trained_on.entry(from).or_default();
                *known = (*known).max(*percent);
            }
            Message::Done
            | Message::Complete
            | Message::Missing(_)
            | Message::Hello(_)
            | Message::Known
            | Message::Probe(_)
            | Message::Roster(_) => {
                return Err(Refusal::Unfit("not a message of an epoch's work"));
            }
        }
        actions.extend(self.go_on());
        Ok(actions)
    }

    /// Takes a model that was asked for.
    ///
    /// # Errors
    /// It was not asked for, or is not a model of this network.
    pub fn receive_model(&mut self, from: usize, params: Params) -> Result<Vec<Action>, Refusal> {
        let is_sender = |plan: &Plan| plan.senders(self.place).any(|sender| sender == from);
        if !self.plan().is_some_and(is_sender) {
            return Err(Refusal::Unfit("a model that nobody asked for"));
        }
        self.check_model(&params)?;
        if let Some(epoch) = &mut self.epoch {
            note(&mut epoch.models, from, params)?;
        }
        Ok(self.go_on())
    }

    /// Others may have heard of an epoch before this device has.
    fn keep_for_later(&mut self, from: usize, envelope: &Envelope) -> Result<Vec<Action>, Refusal> {
        if !self.is_present(from) {
            return Err(Refusal::Stranger(from));
        }
        let kept = self.early.entry(from).or_default();
        kept.retain(|other| other.epoch == envelope.epoch);
        if kept.len() == MOST_EARLY {
            return Err(Refusal::Unfit("too much before the epoch began"));
        }
        kept.push(envelope.clone());
        Ok(Vec::new())
    }

    fn is_present(&self, place: usize) -> bool {
        self.roster.devices.get(place).is_some_and(|member| member.present)
    }

    fn hear_begin(
        &mut self,
        from: usize,
        number: u64,
        places: &[u32],
    ) -> Result<Vec<Action>, Refusal> {
        let members: Vec<usize> = places.iter().map(|&p| p as usize).collect();
        let known = self.epoch.as_ref().map_or(0, |e| e.number);
        // It is said again on a new connection.
        if self.epoch.as_ref().is_some_and(|e| e.number == number && e.members == members) {
            return Ok(Vec::new());
        }
        if number <= known {
            return Err(Refusal::Epoch { offered: number, known });
        }
        if Device::planner_of(&members) != Some(from) {
            return Err(Refusal::NotPlanner(from));
        }
        let all_present = members.iter().all(|&m| self.is_present(m));
        if !members.contains(&self.place) || !all_present {
            return Err(Refusal::Unfit("an epoch with strangers, or without this device"));
        }
        Ok(self.enter(number, members, &BTreeSet::new()))
    }

    fn to_others(&self, members: &[usize], epoch: u64, message: &Message) -> Vec<Action> {
        let others = members.iter().filter(|&&m| m != self.place);
        others.map(|&m| Action::Send(m, Envelope::new(epoch, message.clone()))).collect()
    }
}

/// What devices say of their divergences, as actions.
fn in_epoch(number: u64, messages: Vec<(usize, Message)>) -> impl Iterator<Item = Action> {
    messages.into_iter().map(move |(to, message)| Action::Send(to, Envelope::new(number, message)))
}

/// Notes what a device said; twice the same is fine, two things are not.
pub(crate) fn note<T: PartialEq>(
    known: &mut BTreeMap<usize, T>,
    from: usize,
    said: T,
) -> Result<(), Refusal> {
    match known.get(&from) {
        Some(before) if *before != said => Err(Refusal::Twice(from)),
        Some(_) => Ok(()),
        None => {
            known.insert(from, said);
            Ok(())
        }
    }
}
