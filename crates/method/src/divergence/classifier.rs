//! The paper's Algorithm `alg:fed_div_est`: a pair of devices trains a classifier that tells their data
//! apart, and its error is their divergence.
//!
//! A [`Party`] is one side, a state machine: [`Party::start`] gives its first message, [`Party::receive`]
//! takes the other side's and gives the next. [`estimate_pair`] passes the messages in memory; a node passes
//! them over a network. What is trained is a [`Classifier`]: a network of our own, or whatever the caller has.

mod own_network;

use std::ops::Bound::{Excluded, Included};
use std::ops::Range;

use stlf_data::Shape;
use stlf_learn::{Descent, Params, Spec};

pub use super::estimate::Count;
use super::estimate::from_counts;
use super::{Estimate, Observer, derive, in_parallel};
pub use own_network::OwnNetwork;
use stlf_planning::error::{self, Error};

/// The network that tells two devices apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Architecture {
    /// The convolutional network with two outputs for the pictures that it is meant for; for other inputs the network with one
    /// hidden layer.
    #[default]
    Convolutional,
    /// One hidden layer of 64.
    Hidden,
}

impl Architecture {
    /// The network for inputs of a shape.
    pub fn spec(self, shape: Shape) -> Result<Spec, Error> {
        let spec = match self {
            Architecture::Convolutional if Spec::is_for_cnn(shape) => Spec::cnn(shape, 2),
            _ => Spec::mlp(shape, 2),
        };
        spec.map_err(|e| Error::other("divergence.network", e.to_string()))
    }
}

/// How a pair trains its classifier.
///
/// | name | default | meaning | range |
/// |---|---|---|---|
/// | `architecture` | convolutional | the network | |
/// | `rounds` | 200 | τ, averages taken | ≥ 1 |
/// | `steps` | 1 | T, local steps before an average | ≥ 1 |
/// | `descent` | batch 10, learning rate 0.02, momentum 0.9 | a local step | as in training |
/// | `held_out` | 0.3 | fraction of the local data to measure on, not trained on; 0 = train and measure on all | 0 ≤ h < 1 |
/// | `repeats` | 1 | trainings from different first values, each holding out another part | ≥ 1 |
/// | `confidence` | 0.95 | of the interval | 0 < c < 1 |
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// The network that tells two devices apart.
    pub architecture: Architecture,
    /// τ, how often the two models are averaged.
    pub rounds: usize,
    /// T, steps on each side between averages.
    pub steps: usize,
    /// The settings of a local step.
    pub descent: Descent,
    /// The fraction of the local data to measure on, 0 ≤ h < 1.
    pub held_out: f64,
    /// The number of trainings, at least 1.
    pub repeats: usize,
    /// The confidence of the interval, between 0 and 1.
    pub confidence: f64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            architecture: Architecture::Convolutional,
            rounds: 200,
            // A side sees one label only: left alone for longer, it just learns to say that label.
            steps: 1,
            descent: Descent { learning_rate: 0.02, momentum: 0.9, ..Descent::default() },
            held_out: 0.3,
            repeats: 1,
            confidence: 0.95,
        }
    }
}

impl Settings {
    /// Returns the same settings with what `change` sets; it is how a caller sets any of them.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// The settings of the paper's published runs, but measured on all local data: 50 rounds, in each
    /// about a third of a pass over the data.
    pub fn published() -> Settings {
        Settings {
            rounds: 50,
            steps: 50,
            descent: Descent::default(),
            held_out: 0.0,
            ..Settings::default()
        }
    }

    /// Checks that all settings are within their ranges.
    pub fn check(&self) -> Result<(), Error> {
        self.in_rounds().check()?;
        error::Range::AT_LEAST_ONE.check(self.steps as f64, || "divergence.steps")?;
        let held_out = error::Range::new(Included(0.0), Excluded(1.0)).as_formula('h');
        held_out.check(self.held_out, || "divergence.held-out")?;
        super::check_confidence(self.confidence)?;
        self.descent.check().map_err(|e| Error::other("divergence.descent", e.to_string()))
    }

    fn in_rounds(&self) -> Rounds {
        Rounds { rounds: self.rounds, repeats: self.repeats }
    }

    /// Bytes that a device of a fleet sends: a network per round and its errors at the end, in each pair.
    pub fn bytes(&self, devices: usize, shape: Shape) -> Result<u64, Error> {
        let parameters = self.architecture.spec(shape)?.parameters() as u64;
        let training = self.rounds as u64 * 4 * parameters + 16;
        Ok(devices.saturating_sub(1) as u64 * self.repeats as u64 * training)
    }

    /// Which of `samples` shuffled samples a repeat holds out: another part each, around the circle.
    fn held_out(&self, repeat: usize, samples: usize) -> Range<usize> {
        let count = (self.held_out * samples as f64).round() as usize;
        let count = if self.held_out > 0.0 { count.clamp(1, samples.max(2) - 1) } else { 0 };
        let start = (repeat * count) % samples;
        start..start + count
    }
}

/// What one side of a pair sends to the other.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// h_i after a round of local training.
    Params(Params),
    /// How the last average did on the sender's own data.
    Error(Count),
}

impl Message {
    /// Its payload in bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Message::Params(params) => 4 * params.len() as u64,
            Message::Error(_) => 16,
        }
    }
}

/// What a side does upon a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// Sends this and waits for the next message.
    Send(Message),
    /// Is done: both sides' errors, the first device's and the second's.
    Done([Count; 2]),
}

/// Which label a side's data have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The device that comes first labels its data 0.
    First,
    /// The other labels its data 1.
    Second,
}

/// What a side trains to tell its data from the other's, and measures on its own.
pub trait Classifier {
    /// The first values of a training, which are the same on both sides.
    fn begin(&mut self, repeat: usize) -> Result<Params, Error>;

    /// T local steps from these parameters.
    fn train(&mut self, params: Params) -> Result<Params, Error>;

    /// How often these parameters take the side's samples for the other's.
    fn count_errors(&mut self, params: &Params) -> Result<Count, Error>;
}

/// How often the two sides of a pair average, and how often they start again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rounds {
    /// τ, the number of averages, at least 1.
    pub rounds: usize,
    /// The number of trainings, at least 1.
    pub repeats: usize,
}

impl Rounds {
    fn check(&self) -> Result<(), Error> {
        for (field, value) in [("rounds", self.rounds), ("repeats", self.repeats)] {
            error::Range::AT_LEAST_ONE.check(value as f64, || format!("divergence.{field}"))?;
        }
        Ok(())
    }
}

/// One side of a pair: trains on its own data, averages, measures.
#[derive(Debug)]
pub struct Party<C> {
    classifier: C,
    rounds: Rounds,
    side: Side,
    repeat: usize,
    round: usize,
    awaits: Awaits,
    counts: [Count; 2],
}

#[derive(Debug, Clone, PartialEq)]
enum Awaits {
    Start,
    /// Waits for the other side's parameters, with those that this side sent.
    Params(Params),
    Error,
    Nothing,
}

impl<I: AsRef<[f32]>> Party<OwnNetwork<I>> {
    /// One side with all its inputs, borrowed, or shared with its sides of other pairs. Both sides are given the same
    /// seed.
    pub fn new(
        spec: &Spec,
        settings: &Settings,
        side: Side,
        inputs: I,
        seed: u64,
    ) -> Result<Party<OwnNetwork<I>>, Error> {
        let network = OwnNetwork::new(spec, settings, side, inputs, seed)?;
        Party::with(network, settings.in_rounds(), side)
    }
}

impl<C: Classifier> Party<C> {
    /// Creates one side with the caller's own classifier.
    ///
    /// # Errors
    /// No rounds, or no trainings.
    pub fn with(classifier: C, rounds: Rounds, side: Side) -> Result<Party<C>, Error> {
        rounds.check()?;
        Ok(Party {
            classifier,
            rounds,
            side,
            repeat: 0,
            round: 0,
            awaits: Awaits::Start,
            counts: [Count::default(); 2],
        })
    }

    /// The first message.
    ///
    /// # Errors
    /// It has been started before, or the classifier cannot be trained.
    pub fn start(&mut self) -> Result<Message, Error> {
        if self.awaits != Awaits::Start {
            return Err(self.unexpected("started twice"));
        }
        let first = self.classifier.begin(0)?;
        self.train(first)
    }

    /// Takes the other side's message.
    ///
    /// # Errors
    /// The message is not the one that comes next, or holds a network of another size.
    pub fn receive(&mut self, message: &Message) -> Result<Reply, Error> {
        match (&self.awaits, message) {
            (Awaits::Params(own), Message::Params(other)) => {
                if other.iter().any(|p| !p.is_finite()) {
                    return Err(self.unexpected("parameters that are not finite"));
                }
                let average = Params::average([(own, 1.0), (other, 1.0)])
                    .map_err(|e| self.unexpected(&e.to_string()))?;
                self.round += 1;
                if self.round < self.rounds.rounds {
                    return Ok(Reply::Send(self.train(average)?));
                }
                let own = self.classifier.count_errors(&average)?;
                self.counts[self.side as usize].add(own);
                self.awaits = Awaits::Error;
                Ok(Reply::Send(Message::Error(own)))
            }
            (Awaits::Error, Message::Error(other)) => {
                if other.errors > other.samples {
                    return Err(self.unexpected("more errors than samples"));
                }
                self.counts[1 - self.side as usize].add(*other);
                self.repeat += 1;
                if self.repeat == self.rounds.repeats {
                    self.awaits = Awaits::Nothing;
                    return Ok(Reply::Done(self.counts));
                }
                self.round = 0;
                let first = self.classifier.begin(self.repeat)?;
                Ok(Reply::Send(self.train(first)?))
            }
            (_, Message::Params(_)) => Err(self.unexpected("parameters out of turn")),
            (_, Message::Error(_)) => Err(self.unexpected("errors out of turn")),
        }
    }

    fn train(&mut self, params: Params) -> Result<Message, Error> {
        let params = self.classifier.train(params)?;
        self.awaits = Awaits::Params(params.clone());
        Ok(Message::Params(params))
    }

    fn unexpected(&self, what: &str) -> Error {
        let place = format!("repeat {}, round {}", self.repeat + 1, self.round + 1);
        Error::other("divergence.classifier", format!("{what} in {place}"))
    }
}

/// A pair's estimate, and the bytes that each side sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairEstimate {
    /// d̂_ij with its interval.
    pub estimate: Estimate,
    /// How the averages did on either side.
    pub counts: [Count; 2],
    /// Bytes from the first device and from the second.
    pub sent: [u64; 2],
}

/// The seed that both sides of a pair are given; `first` comes before `second` in the fleet.
pub fn pair_seed(seed: u64, first: usize, second: usize) -> u64 {
    derive(seed, &[first as u64, second as u64])
}

/// d̂ from the errors that both devices of a pair counted.
pub fn estimate(counts: [Count; 2], settings: &Settings) -> Estimate {
    from_counts(counts, settings.confidence)
}

/// Runs both sides of a pair and passes their messages in memory.
pub fn estimate_pair(
    spec: &Spec,
    settings: &Settings,
    inputs: [&[f32]; 2],
    seed: u64,
) -> Result<PairEstimate, Error> {
    let first = Party::new(spec, settings, Side::First, inputs[0], seed)?;
    let second = Party::new(spec, settings, Side::Second, inputs[1], seed)?;
    pass_messages(first, second, settings.confidence)
}

/// The same with the callers' own classifiers on both sides.
///
/// # Errors
/// What either classifier says, or two whose parameters have no average.
pub fn pass_messages<C: Classifier>(
    mut first: Party<C>,
    mut second: Party<C>,
    confidence: f64,
) -> Result<PairEstimate, Error> {
    super::check_confidence(confidence)?;
    let mut messages = [first.start()?, second.start()?];
    let mut sent = [0, 0];
    loop {
        sent[0] += messages[0].bytes();
        sent[1] += messages[1].bytes();
        match (first.receive(&messages[1])?, second.receive(&messages[0])?) {
            (Reply::Send(from_first), Reply::Send(from_second)) => {
                messages = [from_first, from_second];
            }
            (Reply::Done(counts), _) | (_, Reply::Done(counts)) => {
                let estimate = from_counts(counts, confidence);
                return Ok(PairEstimate { estimate, counts, sent });
            }
        }
    }
}

/// These pairs of a fleet, in parallel.
pub(super) fn measure(
    devices: &[&[f32]],
    shape: Shape,
    settings: &Settings,
    pairs: &[(usize, usize)],
    seed: u64,
    observer: &mut Observer<'_>,
) -> Result<Option<Vec<Estimate>>, Error> {
    settings.check()?;
    let spec = settings.architecture.spec(shape)?;
    in_parallel(pairs, observer, |&(i, j)| {
        let inputs = [devices[i], devices[j]];
        Ok(estimate_pair(&spec, settings, inputs, pair_seed(seed, i, j))?.estimate)
    })
}
