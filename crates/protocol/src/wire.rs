//! What devices say to each other. Everything that arrives is hostile until it is checked.

mod epoch_id;
mod limits;
mod means;
mod plan;
mod signed;

use serde::{Deserialize, Serialize};
use stlf_method::divergence::sketch::Sketch;
use stlf_method::expectation::Tried;
use stlf_planning::plan::Way;

pub use self::epoch_id::EpochId;
pub use self::limits::Limits;
pub use self::means::{Digest, Means, MeansSignature};
pub use self::plan::{Leg, Link, Plan, Sending};
pub use self::signed::{Denial, MOST_REPORTS, SignedOffer, SignedPlan, SignedReport};
use crate::roster::Place;
use crate::shared::SharedSettings;

/// The version of these messages. Others are not understood.
pub const VERSION: u16 = 14;

/// How much a [`Message::Probe`] has: enough to tell a link's rate rather than its delay, and less than most models.
pub const PROBE_BYTES: usize = 16 << 10;

/// The longest message: moments of 4,096 features take a little less than this.
pub const MOST_BYTES: usize = 72 << 20;

/// The longest reason, in bytes.
pub const LONGEST_REASON: usize = 500;

/// The longest roster, in bytes.
pub const LONGEST_ROSTER: usize = 4 << 20;

/// More samples than a device can hold; sums of such numbers are far from overflowing.
const MOST_SAMPLES: u64 = 1 << 32;

/// The percent of a whole training on the first way, and of another one on the second.
const MOST_PERCENT: u8 = 200;

/// The percent of all models that are sent to a device.
const ALL_MODELS: u8 = 100;

/// The weights of a network that learned anything are far below this.
const LARGEST_WEIGHT: f32 = 1e6;

/// A message on its way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// The version of the messages that the sender speaks, [`VERSION`].
    pub version: u16,
    /// The epoch that it is about.
    pub epoch: EpochId,
    /// What the sender says about that epoch.
    pub message: Message,
}

/// What is said. Devices are called by their places in the roster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Message {
    /// From the planner to all: an epoch begins, with these devices, ascending.
    Begin(Vec<Place>),
    /// To all: the median distance of the sender's inputs.
    Bandwidth(Option<f64>),
    /// To all: moments of the features of both halves of the sender's inputs.
    Moments([Option<Moments>; 2]),
    /// To all: moments of the features of all of the sender's inputs.
    Sketch(Moments),
    /// To all, where that is all they publish: means of the features of all of the sender's inputs; signed to the planner, who may have to pass them on.
    Means(Means, Option<MeansSignature>),
    /// To one that has them: the sender's means are those with this digest, which it sent in an epoch before; signed to the planner.
    Unchanged(Digest, Option<MeansSignature>),
    /// To one that said so: the sender does not have them.
    AskForMeans,
    /// To one other device: the sender's next turn in training the classifier that tells the two apart.
    Turn(Turn),
    /// To the planner: numbers, and nothing else, signed.
    Report(SignedReport),
    /// From the planner to all, signed, with the reports that it was made from.
    Plan(SignedPlan),
    /// From the planner to all: there is none, with the reports that this follows from.
    NoPlan(Denial),
    /// From a source to all that get its model: it may be fetched, and did so at sources that tried it.
    Offer(SignedOffer, Tried),
    /// From a target, or from who trains a model on, to the planner: no usable model came from this source.
    Failed(Place),
    /// To all: so many percent of training on a model that was handed to the sender are done, above 100 those of the second way; or of training a
    /// student, at a target.
    TrainedOn(u8),
    /// To the planner: the epoch is over for the sender.
    Done,
    /// From the planner to all: it is over for all.
    Complete,
    /// To the planner: the sender has long waited for these.
    Missing(Vec<Place>),
    /// To whoever is met, before anything else. The envelope has the last epoch that the sender knows of.
    Hello(Hello),
    /// To whoever has an older one: a signed roster, as JSON.
    Roster(Vec<u8>),
    /// To whoever may know of another one: the last epoch that the sender knows of, which the envelope has.
    Known,
    /// Nothing, but so much of it that the time it takes tells how fast the link is.
    Probe(Vec<u8>),
    /// To whoever began an epoch under a number that is not above the sender's: the epoch that the sender takes part in.
    TakesPart(EpochId),
    /// From the planner to one that waits for them: the means of another device, which that one has signed.
    PassedOn(Place, Means, MeansSignature),
    /// To the planner, once the epoch is over: the sender has other data since it began, and asks for another one.
    Renewed,
    /// From who has tried the model of this source on its labels, and believes it, to the source's targets: what the source offered it.
    Believed(Place, SignedOffer),
    /// To all: so many percent of all models that the plan sends to the sender have come, of which some take long.
    Arrived(u8),
}

/// What a device says of itself when it meets another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The version of its roster.
    pub roster: u64,
    /// Drawn when it started. Another one is of a device that was started anew, and does not know what it knew.
    pub start: u64,
    /// The epoch that it takes part in; that of number 0 before the first.
    pub running: EpochId,
    /// What must be the same everywhere.
    pub settings: SharedSettings,
}

/// A model that may be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Offer {
    /// The way that it has been on: on a ring a source has a model to hand on twice.
    pub way: Way,
    /// The BLAKE3 hash of its file, by which it is fetched and checked.
    pub hash: [u8; 32],
    /// The number of bytes of its file.
    pub bytes: u64,
}

/// The moments of the features of a device's inputs, from which divergences follow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    /// Of how many inputs.
    pub samples: u64,
    /// The mean of each feature.
    pub mean: Vec<f32>,
    /// The covariance, the lower triangle row by row.
    pub covariance: Vec<f32>,
}

/// A message of Algorithm `alg:fed_div_est`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// How many turns of this pair the sender has had before.
    pub number: u64,
    /// What is said in it.
    pub said: Said,
}

/// What is said in a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Said {
    /// The sender's classifier after a round of local training.
    Params(Vec<f32>),
    /// How the last average did on the sender's own data.
    Errors(Count),
}

/// How often a classifier erred on one device's samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// The sender's samples that were taken for the peer's.
    pub errors: u64,
    /// The sender's samples that were looked at.
    pub samples: u64,
}

/// What a device knows of itself and of its pairs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Samples with a label.
    pub labeled: u64,
    /// Samples without a label.
    pub unlabeled: u64,
    /// ε̂, where there are labels.
    pub source_error: Option<f64>,
    /// For every other device of the epoch, ascending.
    pub pairs: Vec<PairReport>,
}

/// What a device knows of a pair that it is in.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PairReport {
    /// The place of the other device of the pair.
    pub peer: Place,
    /// Its side of their divergence.
    pub measured: Measured,
    /// Joules of sending a model to the peer; none where it cannot.
    pub joules: Option<f64>,
}

/// What a device can say of a divergence: where errors are counted its own, of which d̂ follows with the peer's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Measured {
    /// How often the pair's classifier erred on its own samples.
    Errors(Count),
    /// The divergence d̂ itself, by an estimator that counts no errors.
    Divergence(f64),
}

impl From<stlf_method::divergence::classifier::Count> for Count {
    fn from(count: stlf_method::divergence::classifier::Count) -> Count {
        Count { errors: count.errors, samples: count.samples }
    }
}

impl From<Count> for stlf_method::divergence::classifier::Count {
    fn from(count: Count) -> stlf_method::divergence::classifier::Count {
        stlf_method::divergence::classifier::Count { errors: count.errors, samples: count.samples }
    }
}

/// Why a message is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Too long for its kind to be looked at.
    #[error("{bytes} bytes, where a message of this kind has at most {most}")]
    TooLong {
        /// The number of bytes that came.
        bytes: usize,
        /// What its kind may have.
        most: usize,
    },
    /// Bytes that cannot be read as a message.
    #[error("these bytes are no message")]
    Unreadable,
    /// A message of this version, which is not the one that is spoken here.
    #[error("messages of version {0} are not understood")]
    Version(u16),
    /// With numbers that cannot be.
    #[error("{0}")]
    Absurd(&'static str),
}

impl Envelope {
    /// A message of this version.
    pub fn new(epoch: impl Into<EpochId>, message: Message) -> Envelope {
        Envelope { version: VERSION, epoch: epoch.into(), message }
    }

    /// Returns its bytes as they are sent.
    pub fn to_bytes(&self) -> Vec<u8> {
        postcard::to_allocvec(self).unwrap_or_default()
    }

    /// Reads one as it arrives, within the [`Limits`] of the largest fleet.
    ///
    /// # Errors
    /// Says why it is refused.
    pub fn read(bytes: &[u8]) -> Result<Envelope, Malformed> {
        Limits::default().read(bytes)
    }
}

/// A share from 0 to 1.
fn is_share(x: f64) -> bool {
    (0.0..=1.0).contains(&x)
}

impl Message {
    fn check(&self) -> Result<(), Malformed> {
        let holds = |fine: bool, what| if fine { Ok(()) } else { Err(Malformed::Absurd(what)) };
        match self {
            Message::Begin(places) => {
                holds(places.is_sorted_by(|a, b| a < b), "members are not ascending")
            }
            Message::Bandwidth(bandwidth) => {
                let fine = bandwidth.is_none_or(|b| b.is_finite() && b >= 0.0);
                holds(fine, "a bandwidth is below 0")
            }
            Message::Moments(halves) => {
                holds(halves.iter().any(Option::is_some), "moments of no samples")?;
                halves.iter().flatten().try_for_each(Moments::check)
            }
            Message::Sketch(moments) => moments.check(),
            Message::Means(means, _) | Message::PassedOn(_, means, _) => means.check(),
            Message::Turn(turn) => turn.said.check(),
            Message::Report(signed) => signed.report.check(),
            Message::Plan(signed) => signed.check(),
            Message::NoPlan(denial) => denial.check(),
            Message::Missing(places) => {
                holds(places.is_sorted_by(|a, b| a < b), "places are not ascending")
            }
            Message::Roster(bytes) => holds(bytes.len() <= LONGEST_ROSTER, "a long roster"),
            Message::Hello(hello) => hello.settings.check(),
            Message::TrainedOn(percent) => {
                holds(*percent <= MOST_PERCENT, "more than two whole trainings")
            }
            Message::Arrived(percent) => holds(*percent <= ALL_MODELS, "more than all models"),
            Message::Unchanged(..) | Message::AskForMeans => Ok(()),
            Message::Offer(_, tried) => holds(
                tried.is_possible(),
                "a trial has no labels, more errors than labels, or a doubt that is not from 0 to 1",
            ),
            Message::Failed(_) | Message::Believed(..) => Ok(()),
            Message::Done | Message::Complete | Message::Known | Message::Probe(_) => Ok(()),
            Message::TakesPart(_) | Message::Renewed => Ok(()),
        }
    }
}

impl Moments {
    /// As the estimator takes them.
    pub fn to_sketch(&self) -> Sketch {
        let Moments { samples, mean, covariance } = self.clone();
        Sketch { samples, mean, covariance: Some(covariance) }
    }

    /// As they are sent; `None` of means alone.
    pub fn of(sketch: &Sketch) -> Option<Moments> {
        let Sketch { samples, mean, covariance } = sketch.clone();
        Some(Moments { samples, mean, covariance: covariance? })
    }

    fn check(&self) -> Result<(), Malformed> {
        let side = self.mean.len();
        if !is_number_of_samples(self.samples) || self.covariance.len() != side * (side + 1) / 2 {
            return Err(Malformed::Absurd("moments of another size than they claim"));
        }
        // Features have length 1, so that no moment is larger.
        let fine = |x: &f32| x.is_finite() && x.abs() <= 2.0;
        match self.mean.iter().chain(&self.covariance).all(fine) {
            true => Ok(()),
            false => Err(Malformed::Absurd("a moment is not a number, or larger than can be")),
        }
    }
}

fn is_number_of_samples(samples: u64) -> bool {
    (1..=MOST_SAMPLES).contains(&samples)
}

impl Said {
    pub(crate) fn check(&self) -> Result<(), Malformed> {
        let fine = |p: &f32| p.is_finite() && p.abs() <= LARGEST_WEIGHT;
        match self {
            Said::Params(params) if !params.iter().all(fine) => {
                Err(Malformed::Absurd("a parameter is not a number, or larger than can be"))
            }
            Said::Errors(count) if !count.is_possible() => {
                Err(Malformed::Absurd("a classifier has more errors than samples"))
            }
            Said::Params(_) | Said::Errors(_) => Ok(()),
        }
    }
}

impl Count {
    fn is_possible(self) -> bool {
        self.errors <= self.samples && self.samples <= MOST_SAMPLES
    }
}

impl Measured {
    fn is_possible(self) -> bool {
        match self {
            Measured::Errors(count) => count.is_possible(),
            Measured::Divergence(value) => (0.0..=2.0).contains(&value),
        }
    }
}

impl Report {
    /// Returns whether some number of errors on its labels makes this source error, where a sample without a label counts as `unlabeled_as`.
    pub(crate) fn is_consistent(&self, unlabeled_as: f64) -> bool {
        let Some(error) = self.source_error else { return true };
        let (labeled, unlabeled) = (self.labeled as f64, self.unlabeled as f64);
        let wrong = error * (labeled + unlabeled) - unlabeled_as * unlabeled;
        let rounding = 1e-9 * (labeled + unlabeled);
        (-rounding..=labeled + rounding).contains(&wrong)
    }

    fn check(&self) -> Result<(), Malformed> {
        let samples = self.labeled.checked_add(self.unlabeled);
        if samples.is_none_or(|n| n == 0 || n > MOST_SAMPLES) {
            return Err(Malformed::Absurd("a device has no samples, or more than there are"));
        }
        if self.source_error.is_some() != (self.labeled > 0)
            || self.source_error.is_some_and(|e| !is_share(e))
        {
            return Err(Malformed::Absurd("a source error is not from 0 to 1"));
        }
        if !self.pairs.is_sorted_by(|a, b| a.peer < b.peer) {
            return Err(Malformed::Absurd("pairs are not ascending"));
        }
        let fine = |pair: &PairReport| {
            let joules = pair.joules.is_none_or(|j| j.is_finite() && (0.0..1e15).contains(&j));
            pair.measured.is_possible() && joules
        };
        match self.pairs.iter().all(fine) {
            true => Ok(()),
            false => Err(Malformed::Absurd("a pair has an absurd divergence, or absurd joules")),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
