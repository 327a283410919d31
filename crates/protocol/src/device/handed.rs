//! Models that other sources hand to this device: each is fetched, trained on with the device's own labels, and only then sent. On a ring a
//! model comes twice.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use stlf_data::Class;
use stlf_learn::Params;
use stlf_method::expectation::Trial;
use stlf_method::learner::{Learner, Lesson, Progress};
use stlf_method::local_training::Rows;
use stlf_planning::plan::{RingPlace, Way};

use super::epoch::{AsSource, Epoch, Following, Part, WHOLE};
use super::trying::try_out;
use super::{Action, Device, Refusal};
use crate::job::{Job, Labour, Sign, Watch};
use crate::roster::Place;
use crate::setup::Setup;
use crate::wire::Leg;

/// What a device made of a model that was handed to it on one way. The same model in a later epoch need not be trained on again.
#[derive(Debug, Clone, PartialEq)]
pub struct HandedOn {
    /// A hash of the model as it was handed over.
    pub handed: [u8; 32],
    /// What the device's training made of it.
    pub trained: Params,
    /// How the model did as it was handed over, on all labels of the device; none on the second way.
    pub as_handed: Option<Trial>,
    /// How what the device hands on does on the labels that it held out.
    pub as_sent: Option<Trial>,
}

impl HandedOn {
    /// Whether it was made of this model.
    fn is_of(&self, model: &Params) -> bool {
        self.handed == hash(model)
    }
}

/// SHA-256 of a model's parameters.
fn hash(model: &Params) -> [u8; 32] {
    let mut hasher = Sha256::new();
    model.iter().for_each(|p| hasher.update(p.to_le_bytes()));
    hasher.finalize().into()
}

/// A model to train on with all that this takes.
#[derive(Debug)]
pub(crate) struct TrainingOn {
    pub(crate) from: Place,
    pub(crate) way: Way,
    learner: Arc<dyn Learner>,
    setup: Setup,
    labels: Vec<Class>,
    rows: Rows,
    seed: u64,
    handed: Arc<Params>,
    ring: Option<RingPlace>,
}

/// What came of training on, with how the model did before and does now.
#[derive(Debug)]
pub(crate) struct TrainedOn {
    trained: Params,
    as_handed: Option<Trial>,
    as_sent: Option<Trial>,
}

impl TrainingOn {
    /// Tries the model, trains on it, and tries what came of that; `None` if `watch`, which hears how many percent are done, on the second way
    /// above 100, ended it.
    ///
    /// # Errors
    /// The learner cannot train on this model.
    pub(crate) fn run(
        self,
        watch: &mut Watch<'_>,
    ) -> Result<Option<TrainedOn>, stlf_planning::Error> {
        let TrainingOn { way, learner, setup, labels, rows, seed, handed, ring, .. } = self;
        let all = Trial::rows_of_handed(labels.len(), way);
        let goes_on = &mut |_: Progress| watch(Sign::GoesOn);
        let Some(as_handed) = try_out(&*learner, &handed, &labels, &all, goes_on)? else {
            return Ok(None);
        };
        let lesson = Lesson { rows: &rows.trained, start: Some(&handed), seed };
        let percent = |progress: Progress| Sign::Percent(WHOLE * way as u8 + progress.percent());
        let trained = learner.train(lesson, &mut |progress| watch(percent(progress)))?;
        let Some(trained) = trained else { return Ok(None) };
        let sent = setup.handed_on(&handed, &trained, &labels, ring);
        let goes_on = &mut |_: Progress| watch(Sign::GoesOn);
        let as_sent = try_out(&*learner, &sent, &labels, &rows.held, goes_on)?;
        Ok(as_sent.map(|as_sent| TrainedOn { trained, as_handed, as_sent }))
    }
}

impl Device {
    /// Whose model it trains on in this epoch, if anybody's.
    pub fn handed_from(&self) -> Option<Place> {
        self.plan()?.handed_from(self.place)
    }

    /// Whether it has a model to train on, and has not done so yet.
    pub fn is_training_on(&self) -> bool {
        matches!(self.following().map(Following::part), Some(Part::Source(AsSource::TrainsOn(_))))
    }

    /// What it made of the last model that it trained on, on each way, for whoever keeps it ([`Device::resume`]).
    pub fn handed_on(&self) -> &BTreeMap<Way, HandedOn> {
        &self.handed_on
    }

    /// The model as others get it: its own, or where the plan has it train on another's, what that became on this way.
    pub fn sent_model(&self, way: Way) -> Option<Params> {
        let labels = &self.holdings.labels;
        let handed = self.following().and_then(|f| Some((f, f.leg(self.place, way)?)));
        match (handed, way) {
            (Some((following, leg)), _) => {
                let trained =
                    &self.handed_on.get(&way).filter(|_| following.has_made(way))?.trained;
                let handed = following.models.get(&(leg.from, leg.sent))?;
                Some(self.setup.handed_on(handed, trained, labels, leg.ring))
            }
            (None, Way::First) => self.model().map(|model| self.setup.sent(model, labels)),
            (None, Way::Second) => None,
        }
    }

    /// So many percent of training on are done, on the second way above 100. The others are to hear of it, who would lose patience.
    pub fn trains_on(&mut self, percent: u8) {
        if let Some(epoch) = &mut self.epoch {
            epoch.trained_on.insert(self.place, percent);
        }
    }

    /// A source's part of step 5: it trains on a model that was handed to it, unless it knows from before what comes of it.
    pub(super) fn train_on(&mut self) -> Vec<Action> {
        let Some(epoch) = self.epoch.as_mut() else { return Vec::new() };
        let number = epoch.id.number;
        let Some(following) = epoch.following_mut() else { return Vec::new() };
        let Part::Source(AsSource::Awaits(leg)) = following.part else { return Vec::new() };
        let Leg { from, sent, taken: way, ring, .. } = leg;
        let Some(handed) = following.models.get(&(from, sent)).cloned() else { return Vec::new() };
        if self.handed_on.get(&way).is_some_and(|known| known.is_of(&handed)) {
            let mut actions = self.offer(way);
            actions.extend(self.train_on());
            return actions;
        }
        following.part = Part::Source(AsSource::TrainsOn(leg));
        let (learner, setup) = (self.learner.clone(), self.setup.clone());
        let labels = self.holdings.labels.clone();
        let rows = self.setup.rows(self.place, labels.len());
        let seed = self.setup.training_seed(self.place, Some(way));
        let training = TrainingOn { from, way, learner, setup, labels, rows, seed, handed, ring };
        vec![Action::Compute(Job::new(number, Labour::TrainOn(Box::new(training))))]
    }

    /// Takes what came of training on.
    ///
    /// # Errors
    /// It was not asked for, or what was handed over led to no model.
    pub(super) fn has_trained_on(
        &mut self,
        trained: Option<TrainedOn>,
    ) -> Result<Vec<Action>, Refusal> {
        let asked = self.following().and_then(|following| match following.part() {
            Part::Source(AsSource::TrainsOn(leg)) => {
                Some((leg.taken, following.models.get(&(leg.from, leg.sent))?.clone()))
            }
            _ => None,
        });
        let (way, handed) = asked.ok_or(Refusal::Unfit("a training that nobody asked for"))?;
        let TrainedOn { trained, as_handed, as_sent } =
            trained.ok_or(Refusal::Unfit("a model that cannot be trained on"))?;
        self.check_model(&trained)?;
        let made = HandedOn { handed: hash(&handed), trained, as_handed, as_sent };
        self.handed_on.insert(way, made);
        Ok(self.offer(way))
    }

    /// A source whose model is what the plan makes of it on this way offers it to all that need it. If it comes again, on a ring, the
    /// source waits for that; else it is done.
    pub(super) fn offer(&mut self, way: Way) -> Vec<Action> {
        let place = self.place;
        let following = self.epoch.as_mut().and_then(Epoch::following_mut);
        let Some(following) = following else { return Vec::new() };
        let again = Some(Way::Second).filter(|&second| way < second);
        let next = again.and_then(|second| following.leg(place, second));
        following.part = Part::Source(next.map_or(AsSource::Offers, AsSource::Awaits));
        let offers = following.receivers(place, way).into_iter().map(|to| Action::Offer(to, way));
        offers.chain(next.is_none().then_some(Action::Finish)).collect()
    }

    /// That these are numbers that a model of the learner can have.
    pub(super) fn check_model(&self, params: &Params) -> Result<(), Refusal> {
        if params.len() != self.layout().parameters() {
            return Err(Refusal::Unfit("a model of another network"));
        }
        if params.iter().any(|p| !p.is_finite() || p.abs() > self.learner.most()) {
            return Err(Refusal::Unfit(
                "a model with a weight that is not finite or far too large",
            ));
        }
        Ok(())
    }
}
