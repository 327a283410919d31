//! A device of the fleet as a machine without I/O: a message in, actions out.

mod combining;
mod epoch;
mod examining;
mod handed;
mod hearing;
mod judging;
mod phase;
mod refusal;
mod renewal;
mod steps;
mod trying;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use stlf_data::Class;
use stlf_learn::{Layout, Params};
use stlf_method::adapt::Adapt;
use stlf_method::divergence::sketch::Sketch;
use stlf_method::expectation::Trial;
use stlf_method::known::Known;
use stlf_method::learner::{Learner, Progress};
use stlf_method::local_training::OwnError;
use stlf_planning::plan::Way;

pub use self::combining::{Combined, Schooled};
pub(crate) use self::combining::{Combining, Failed};
pub use self::epoch::Following;
use self::epoch::{Epoch, Seat};
pub(crate) use self::examining::Examining;
pub use self::handed::HandedOn;
pub(crate) use self::handed::{TrainedOn, TrainingOn};
pub use self::phase::{AsSource, AsTarget, Part, Phase};
pub use self::refusal::Refusal;
pub(crate) use self::refusal::{note, note_of};
pub use self::renewal::{Change, GoesBy};
pub use self::trying::Trained;
use self::trying::try_out;
use crate::divergence_protocol::WorkedOut;
use crate::identity::Identity;
use crate::job::Job;
use crate::published_data::PublishedData;
use crate::reply_record::Replying;
use crate::roster::{Place, Roster};
use crate::setup::Setup;
use crate::shared::Fingerprint;
use crate::verdict_record::Judging;
use crate::wire::{Envelope, EpochId, Limits, Message, Offer, Plan};

/// What a device holds; none of it leaves.
#[derive(Debug, Clone)]
pub struct Holdings {
    /// All inputs, those with a label first: what built-in networks take, and what divergences are measured on.
    pub inputs: Arc<[f32]>,
    /// The classes of the first inputs, one for each that has a label.
    pub labels: Vec<Class>,
    /// Samples without a label.
    pub unlabeled: usize,
    /// Labels that somebody has told since, by the place of their sample among the inputs.
    pub answers: Vec<Known>,
}

impl Holdings {
    /// Every sample whose label the device knows: those that it trains on, and answers.
    fn known(&self) -> Vec<Known> {
        let own = self.labels.iter().copied().enumerate();
        own.chain(self.answers.iter().copied()).collect()
    }

    /// The numbers of all samples.
    fn rows(&self) -> Vec<usize> {
        (0..self.labels.len() + self.unlabeled).collect()
    }
}

/// What a device asks its surroundings to do.
#[derive(Debug, PartialEq)]
pub enum Action {
    /// Send this to the device at a place.
    Send(Place, Envelope),
    /// Let the device at a place have this device's model of this way ([`Device::sent_model`]), and send it the [`Offer`].
    Offer(Place, Way),
    /// Keep what this device has told of divergences ([`Device::told`]), before anything that follows is done.
    KeepReplies,
    /// Keep what this device has answered to models of others ([`Device::judged`]), before anything that follows is done.
    KeepVerdicts,
    /// Get a model from the device at a place.
    Fetch(Place, Offer),
    /// Run this without holding anything up, and give the device what it comes to ([`Device::computed`]).
    Compute(Job),
    /// Say what a model costs to each place ([`Device::links_measured`]).
    MeasureLinks,
    /// Say that this device refuses the model of the device at a place, which offers others another one.
    Distrust(Place),
    /// As the planner: no usable model came over this link, from and to.
    Forbid(Place, Place),
    /// As the planner: no plan can have this device in it.
    LeaveOut(Place),
    /// Say that what the device at a place said of the epoch before it began is not heeded, and why.
    Refuse(Place, Refusal),
    /// The epoch is over for this device.
    Finish,
}

/// A device in an epoch: it hears messages and results of jobs, and answers with actions.
#[derive(Debug)]
pub struct Device {
    setup: Setup,
    roster: Roster,
    identity: Identity,
    place: Place,
    /// By which the epochs that it begins are told from others of the same number.
    start: u32,
    /// Of the settings that all devices share, with which it signs its reports.
    settings: Fingerprint,
    holdings: Holdings,
    /// What trains and predicts.
    learner: Arc<dyn Learner>,
    /// Whether that is the user's. Then predictions may take long, and targets tell how far they are.
    has_user_learner: bool,
    /// Joules of sending a model to each place that something is known of.
    joules: BTreeMap<Place, f64>,
    /// Whether they were measured in the running epoch, as far as others let them be.
    has_measured_links: bool,
    trained: Option<Trained>,
    handed_on: BTreeMap<Way, HandedOn>,
    /// The student that it trained last, which is not trained again of the same.
    schooled: Option<Arc<Schooled>>,
    epoch: Option<Epoch>,
    /// What others said of an epoch that this device has not heard the beginning of yet.
    early: BTreeMap<Place, Vec<Envelope>>,
    /// The plan before this epoch's, which the next one changes as little as it can.
    last_plan: Option<Plan>,
    /// What it publishes instead of means of its inputs as they are now.
    published: Option<Arc<Sketch>>,
    /// What is kept of the data behind that, by which it replies if it has others now.
    behind: Option<Arc<PublishedData>>,
    /// What it has worked out of its data to measure by.
    worked_out: Arc<WorkedOut>,
    /// A device whose data it has from the next epoch on.
    fresh: Option<Box<Device>>,
    /// How often it has got other data.
    renewals: usize,
    /// What it has told of divergences, where that is limited.
    replying: Option<Arc<Replying>>,
    /// Those of whom it ever told a planner that nothing of use came from them. Plans may do without the links from these, and from no others.
    complained_of: BTreeSet<Place>,
    /// What it has answered to models of others, where that is limited.
    judging: Option<Judging>,
}

impl Device {
    /// A device with a built-in network that has not trained yet; `None` if its key has no place in the roster.
    pub fn new(
        setup: Setup,
        roster: Roster,
        identity: Identity,
        holdings: Holdings,
        joules: BTreeMap<Place, f64>,
    ) -> Option<Device> {
        let place = roster.place(identity.id())?;
        let (trained, epoch, last_plan) = (None, None, None);
        let first = Arc::new(setup.first_model());
        let learner = setup.built_in(first, holdings.inputs.clone(), holdings.labels.clone());
        Some(Device {
            setup,
            roster,
            identity,
            place,
            start: 0,
            settings: Fingerprint::default(),
            holdings,
            learner,
            has_user_learner: false,
            joules,
            has_measured_links: false,
            trained,
            handed_on: BTreeMap::new(),
            schooled: None,
            epoch,
            early: BTreeMap::new(),
            last_plan,
            published: None,
            behind: None,
            worked_out: Arc::default(),
            fresh: None,
            renewals: 0,
            replying: None,
            complained_of: BTreeSet::new(),
            judging: None,
        })
    }

    /// The same with a learner of the user's, which has the samples that this device holds.
    pub fn with_learner(mut self, learner: Arc<dyn Learner>) -> Device {
        (self.learner, self.has_user_learner) = (learner, true);
        self
    }

    /// Returns its place in the roster.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Returns what all devices agreed on.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Names and shapes of the tensors that all models have.
    pub fn layout(&self) -> &Layout {
        self.learner.layout()
    }

    /// Trains on its own labels, from first values that all share; `false` if `observer` ended it.
    ///
    /// # Errors
    /// Its learner cannot train on its labels.
    pub fn train(
        &mut self,
        observer: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<bool, stlf_planning::Error> {
        let Holdings { labels, unlabeled, .. } = &self.holdings;
        if labels.is_empty() {
            return Ok(true);
        }
        let rows = self.setup.rows(self.place, labels.len());
        let lesson = self.setup.lesson(self.place, &rows, None);
        let watch = &mut |_: Progress| observer();
        let Some(params) = self.learner.train(lesson, watch)? else { return Ok(false) };
        let measured = rows.measured();
        let Some(predictions) = self.learner.predict(&params, measured, watch)? else {
            return Ok(false);
        };
        let true_classes: Vec<Class> = measured.iter().map(|&row| labels[row]).collect();
        let error = rows.own_error(&predictions, labels, *unlabeled, self.setup.unlabeled_as);
        let sent = self.setup.sent(&params, labels);
        // What has just been predicted need not be again.
        let trial = match sent == params && !rows.held.is_empty() {
            true => Some(Trial::of(&predictions, &true_classes)),
            false => try_out(&*self.learner, &sent, labels, &rows.held, watch)?,
        };
        let Some(trial) = trial else { return Ok(false) };
        self.trained = Some(Trained { model: params, error, trial });
        Ok(true)
    }

    /// Goes on as a device without labels, whose learner cannot train on them.
    pub fn forget_labels(&mut self) {
        self.holdings.unlabeled += self.holdings.labels.len();
        self.holdings.labels.clear();
    }

    /// Returns what it has learned on its own labels, where it has some and has trained.
    pub fn trained(&self) -> Option<&Trained> {
        self.trained.as_ref()
    }

    /// Its own model, where it has labels and has trained.
    pub fn model(&self) -> Option<&Params> {
        self.trained.as_ref().map(|trained| &trained.model)
    }

    /// Takes up what this device finished before it was started anew: its training, what it made of models that were handed to it,
    /// if those can be models, and the plan that it followed, if it is one.
    pub fn resume(
        &mut self,
        trained: Option<Trained>,
        mut handed_on: BTreeMap<Way, HandedOn>,
        last_plan: Option<Plan>,
    ) {
        handed_on.retain(|_, known| self.check_model(&known.trained).is_ok());
        self.handed_on = handed_on;
        let last_plan = last_plan.filter(|plan| plan.check().is_ok());
        (self.trained, self.last_plan) = (trained, last_plan);
    }

    /// Takes up the student that this device trained before it was started anew, if it can be one.
    pub fn remember_student(&mut self, schooled: Schooled) {
        if self.check_model(&schooled.student).is_ok() {
            self.schooled = Some(Arc::new(schooled));
        }
    }

    /// Its error on its own labels, once it has trained.
    pub fn own_error(&self) -> Option<OwnError> {
        self.trained.as_ref().map(|trained| trained.error)
    }

    /// A number that was drawn when this device started. The epochs that it begins have it in their [`EpochId`].
    pub fn set_start(&mut self, start: u32) {
        self.start = start;
    }

    /// Returns the number that was drawn when this device started.
    pub fn start(&self) -> u32 {
        self.start
    }

    /// The settings that all devices are to share. Reports are signed together with them.
    pub fn set_settings(&mut self, settings: Fingerprint) {
        self.settings = settings;
    }

    /// As the planner: what one that waits for these needs of them, as far as this device has it and may pass it on.
    pub fn pass_on(&mut self, of: &[Place], to: Place) -> Vec<Action> {
        match self.epoch.as_mut() {
            Some(epoch) if matches!(epoch.seat, Seat::Planner(_)) => {
                steps::in_epoch(epoch.id, epoch.exchange.pass_on(of, to))
            }
            _ => Vec::new(),
        }
    }

    /// A newer roster. Places stay what they were.
    pub fn set_roster(&mut self, roster: Roster) {
        self.roster = roster;
    }

    /// Returns who plans among these devices: the first of the roster.
    pub fn planner_of(members: &[Place]) -> Option<Place> {
        members.iter().copied().min()
    }

    /// As the planner: begins an epoch among these devices. Links over which no model came are not used.
    pub fn begin(
        &mut self,
        number: u64,
        members: &[Place],
        forbidden: &BTreeSet<(Place, Place)>,
    ) -> Vec<Action> {
        let id = EpochId { number, begun: self.start };
        let mut actions = self.to_others(members, id, &Message::Begin(members.to_vec()));
        actions.extend(self.enter(id, members.to_vec(), forbidden));
        actions
    }

    /// Returns whether it takes part in an epoch of which it knows neither a plan nor that there is none.
    pub fn awaits_plan(&self) -> bool {
        let is_known = |phase: &Phase| {
            matches!(phase, Phase::Following(_) | Phase::Unplanned(_) | Phase::Unplannable(_))
        };
        self.phase().is_some_and(|phase| !is_known(phase))
    }

    /// Returns those that this device waits for.
    pub fn missing(&self) -> Vec<Place> {
        self.epoch.as_ref().map_or_else(Vec::new, |epoch| epoch.missing(self.place))
    }

    /// This device tells its planner that it waits for these, so that plans may do without the links from them.
    pub fn complain_of(&mut self, missing: &[Place]) {
        self.complained_of.extend(missing);
    }

    /// Returns how much others have told of the epoch so far. Only what makes it more is progress; what is said again is not.
    pub fn known(&self) -> usize {
        let targets_tell = self.setup.adapt != Adapt::Off || self.has_user_learner;
        self.epoch.as_ref().map_or(0, |epoch| epoch.known(targets_tell))
    }

    /// Returns how many percent of the models that it needs have come, where so many bytes of some have come that are on their way; none if that is so
    /// of none.
    pub fn percent_arrived(&self, arriving: &BTreeMap<(Place, Way), u64>) -> Option<u8> {
        self.epoch.as_ref()?.percent_arrived(arriving)
    }

    /// Returns how long the messages may be that it has use for.
    pub fn limits(&self) -> Limits {
        Limits::new(self.roster.devices.len(), &self.setup.divergence, self.setup.shape)
    }

    /// Takes what it costs to send a model to each place, as far as that was measured.
    pub fn links_measured(&mut self, joules: BTreeMap<Place, f64>) -> Vec<Action> {
        self.joules = joules;
        self.has_measured_links = true;
        self.go_on()
    }

    /// A model that was asked for did not come, or is none.
    pub fn model_failed(&mut self, from: Place) -> Vec<Action> {
        self.complained_of.insert(from);
        let Some(epoch) = &self.epoch else { return Vec::new() };
        match epoch.seat {
            Seat::Planner(_) => vec![Action::Forbid(from, self.place)],
            Seat::Reporter(planner) => {
                let message = Message::Failed(from);
                vec![Action::Send(planner, Envelope::new(epoch.id, message))]
            }
        }
    }

    fn following(&self) -> Option<&Following> {
        self.epoch.as_ref()?.following()
    }

    fn to_others(&self, members: &[Place], epoch: EpochId, message: &Message) -> Vec<Action> {
        let others = members.iter().filter(|&&m| m != self.place);
        others.map(|&m| Action::Send(m, Envelope::new(epoch, message.clone()))).collect()
    }
}
