//! Models that other sources hand to this device: each is fetched, trained on with the device's own labels, and only then sent. On a ring a
//! model comes twice. One that the device does not believe ([`stlf_method::handed`]) it does not train on, and sends what it has itself.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use stlf_learn::Params;
use stlf_method::expectation::Trial;
use stlf_method::handed::{Purpose, Standard, Verdict};
use stlf_method::learner::Progress;
use stlf_method::local_training::Rows;
use stlf_planning::plan::{RingPlace, Way};

use super::epoch::{Epoch, Following, WHOLE};
use super::phase::{AsSource, Part};
use super::trying::{Trying, try_out};
use super::{Action, Device, Refusal};
use crate::job::{Job, Labour, Sign, Watch};
use crate::roster::Place;
use crate::setup::Setup;
use crate::verdict_record::May;
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
    /// Returns whether it was made of this model.
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
    setup: Setup,
    rows: Rows,
    place: Place,
    ring: Option<RingPlace>,
    trying: Trying,
    /// Whether the device has said before that it believes the model.
    is_believed: bool,
}

/// What came of a model that was handed over.
#[derive(Debug)]
pub(crate) enum TrainedOn {
    /// The device trained on it. With that is how the model did before, and does now.
    Made { trained: Params, as_handed: Option<Trial>, as_sent: Option<Trial> },
    /// The device does not believe it.
    Refused,
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
        let TrainingOn { way, setup, place, rows, ring, trying, is_believed, .. } = self;
        let as_handed = match trying.verdict(watch)? {
            Some(Verdict::Believed(as_handed)) => as_handed,
            Some(Verdict::Refused) if is_believed => None,
            Some(Verdict::Refused) => return Ok(Some(TrainedOn::Refused)),
            None => return Ok(None),
        };
        let Trying { learner, labels, handed, .. } = trying;
        let lesson = setup.lesson(place, &rows, Some((&handed, way)));
        let percent = |progress: Progress| Sign::Percent(WHOLE * way as u8 + progress.percent());
        let trained = learner.train(lesson, &mut |progress| watch(percent(progress)))?;
        let Some(trained) = trained else { return Ok(None) };
        let sent = setup.handed_on(&handed, &trained, &labels, ring);
        let goes_on = &mut |_: Progress| watch(Sign::GoesOn);
        let as_sent = try_out(&*learner, &sent, &labels, &rows.held, goes_on)?;
        Ok(as_sent.map(|as_sent| TrainedOn::Made { trained, as_handed, as_sent }))
    }
}

impl Device {
    /// Returns whose model it trains on in this epoch, if anybody's.
    pub fn handed_from(&self) -> Option<Place> {
        self.plan()?.handed_from(self.place)
    }

    /// Returns whether it has a model to train on, and has not done so yet.
    pub fn is_training_on(&self) -> bool {
        matches!(self.following().map(Following::part), Some(Part::Source(AsSource::TrainsOn(_))))
    }

    /// Returns what it made of the last model that it trained on, on each way, for whoever keeps it ([`Device::resume`]).
    pub fn handed_on(&self) -> &BTreeMap<Way, HandedOn> {
        &self.handed_on
    }

    /// The model as others get it: its own, or where the plan has it train on another's, what that became on this way.
    pub fn sent_model(&self, way: Way) -> Option<Params> {
        let labels = &self.holdings.labels;
        let handed = self.following().and_then(|f| Some((f, f.leg(self.place, way)?)));
        match (handed, way) {
            (Some((following, _)), _) if following.refuses(way) => self.instead(way),
            (Some((following, leg)), _) => {
                let trained =
                    &self.handed_on.get(&way).filter(|_| following.has_made(way))?.trained;
                let handed = following.models.get(&(leg.from, leg.sent))?;
                Some(self.setup.handed_on(handed, trained, labels, leg.ring))
            }
            (None, Way::First) => self.own_sent(),
            (None, Way::Second) => None,
        }
    }

    /// Its own model as others get it.
    pub(super) fn own_sent(&self) -> Option<Params> {
        self.model().map(|model| self.setup.sent(model, &self.holdings.labels))
    }

    /// Returns what it sends on this way if it does not believe the model that was handed to it: its own, and on the second way what it sent on the first.
    fn instead(&self, way: Way) -> Option<Params> {
        match way {
            Way::First => self.own_sent(),
            Way::Second => self.sent_model(Way::First),
        }
    }

    /// Returns those whose models it does not believe: as a target, because others or labels contradict them, as a source or an examiner,
    /// because its labels do, and those who offer others another model.
    pub fn refuses(&self) -> Vec<Place> {
        let as_target = self.combined().into_iter().flat_map(|combined| combined.refused.clone());
        let as_source = self.following().into_iter().flat_map(|following| {
            let leg = |way: &Way| Some(following.leg(self.place, *way)?.from);
            following.refused.iter().filter_map(leg).collect::<Vec<_>>()
        });
        let as_examiner = self.following().into_iter().flat_map(Following::refused_as_examiner);
        let two_faced = self.following().into_iter().flat_map(|f| f.two_faced.iter().copied());
        let mut refuses: Vec<Place> =
            as_target.chain(as_source).chain(as_examiner).chain(two_faced).collect();
        refuses.sort_unstable();
        refuses.dedup();
        refuses
    }

    /// Returns whether it does not believe the model that was handed to it on this way.
    pub fn refuses_on(&self, way: Way) -> bool {
        self.following().is_some_and(|following| following.refuses(way))
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
            let mut actions = self.tell_believed(from);
            actions.extend(self.offer(way));
            actions.extend(self.train_on());
            return actions;
        }
        following.part = Part::Source(AsSource::TrainsOn(leg));
        let Some(trying) = self.trying_handed(&leg) else { return Vec::new() };
        let may = self.may_judge(from, &trying.question());
        if matches!(may, May::Repeat { refused: true } | May::Refuse | May::Abstain) {
            let mut actions = vec![Action::Distrust(from)];
            actions.extend(self.does_without(leg));
            actions.extend(self.train_on());
            return actions;
        }
        let is_believed = may == May::Repeat { refused: false };
        let setup = self.setup.clone();
        let rows = self.setup.rows(self.place, trying.labels.len());
        let place = self.place;
        let training = TrainingOn { from, way, setup, place, rows, ring, trying, is_believed };
        vec![Action::Compute(Job::new(number, Labour::TrainOn(Box::new(training))))]
    }

    /// A model that was handed over, with what this device holds it against.
    fn trying_handed(&self, leg: &Leg) -> Option<Trying> {
        let following = self.following()?;
        let handed = following.models.get(&(leg.from, leg.sent))?.clone();
        let claims = following.claims_before(leg);
        let purpose = Purpose::Training { classes: self.setup.spec.output().len() };
        let standard = Standard { claims, purpose, way: leg.taken };
        // What the device sends if it does not believe the model.
        let own = self.instead(leg.taken);
        let (learner, labels) = (self.learner.clone(), self.holdings.labels.clone());
        Some(Trying { learner, labels, handed, standard, own })
    }

    /// A source that does not believe the model that was handed to it goes on with what it has itself.
    fn does_without(&mut self, leg: Leg) -> Vec<Action> {
        if let Some(following) = self.epoch.as_mut().and_then(Epoch::following_mut) {
            following.refused.insert(leg.taken);
        }
        // The next plan does without it.
        let mut actions = self.model_failed(leg.from);
        actions.extend(self.offer(leg.taken));
        actions
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
            Part::Source(AsSource::TrainsOn(leg)) => Some((*leg, self.trying_handed(leg)?)),
            _ => None,
        });
        let (leg, trying) = asked.ok_or(Refusal::Unfit("a training that nobody asked for"))?;
        let way = leg.taken;
        let made = trained.ok_or(Refusal::Unfit("a model that cannot be trained on"))?;
        let TrainedOn::Made { trained, as_handed, as_sent } = made else {
            self.has_judged(leg.from, trying.question(), true);
            let kept = self.keeps_verdicts().into_iter();
            return Ok(kept.chain(self.does_without(leg)).collect());
        };
        self.check_model(&trained)?;
        self.has_judged(leg.from, trying.question(), false);
        let handed = hash(&trying.handed);
        let [as_handed, as_sent] = self.tells_of(&leg, handed, [as_handed, as_sent]);
        let made = HandedOn { handed, trained, as_handed, as_sent };
        self.handed_on.insert(way, made);
        let mut actions: Vec<Action> = self.keeps_verdicts().into_iter().collect();
        actions.extend(self.tell_believed(leg.from));
        actions.extend(self.offer(way));
        Ok(actions)
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
        let receivers = following.receivers(place, way);
        let offers = receivers.into_iter().map(|to| Action::Offer(to, way));
        offers.chain(self.finish()).collect()
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
