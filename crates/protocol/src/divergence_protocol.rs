//! How devices measure their divergences: one device's part in it as a machine without I/O, by any estimator.
//!
//! Its numbers are those of [`stlf_method::divergence::measure`] over the members' inputs, bit for bit: both use the same
//! functions, and seeds that follow from places.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use stlf_data::Shape;
use stlf_learn::{Params, Spec};
use stlf_method::divergence::classifier::{self, OwnNetwork, Party, Reply, Side, pair_seed};
use stlf_method::divergence::discriminant::{self, Halves, discriminants, own_halves};
use stlf_method::divergence::sketch::{self, Bandwidth, Sketch, agreed_features, own_bandwidth};
use stlf_method::divergence::{Embedded, Embedding, Features, Fleet, Settings, disclosure};

use crate::device::{Refusal, note};
use crate::wire::{Count, MOST_BYTES, Measured, Message, Moments, Said, Turn};

/// One device's part in measuring all pairs of an epoch.
#[derive(Debug)]
pub struct Exchange {
    shape: Shape,
    seed: u64,
    /// What noise is drawn from, which hides something only from those that do not know it.
    noise_key: [u8; 32],
    place: usize,
    /// Ascending.
    members: Vec<usize>,
    inputs: Arc<[f32]>,
    /// What everyone published for the bandwidth, for the estimators that need one.
    bandwidths: BTreeMap<usize, Option<f64>>,
    estimator: Estimator,
}

/// An estimator, and what it knows so far.
#[derive(Debug)]
enum Estimator {
    Discriminant {
        settings: discriminant::Settings,
        /// This device's own, once all bandwidths are known.
        halves: Option<Halves>,
        published: BTreeMap<usize, [Option<Sketch>; 2]>,
    },
    Sketch {
        settings: sketch::Settings,
        published: BTreeMap<usize, Sketch>,
    },
    Classifier {
        settings: classifier::Settings,
        pairs: BTreeMap<usize, Pair>,
    },
}

/// Messages, and to whom they go.
type Outgoing = Vec<(usize, Message)>;

/// That a device with so many inputs can measure in this way, and may: `accepted` says that its user
/// [accepts](disclosure::ACCEPTED) that others can rebuild them.
///
/// # Errors
/// A setting out of its range, inputs that an embedding or a network does not take, a network too large to be sent, or
/// samples that others could rebuild.
pub fn check(
    settings: &Settings,
    shape: Shape,
    samples: usize,
    accepted: bool,
) -> Result<(), stlf_planning::Error> {
    is_possible(settings, shape)?;
    disclosure::check(settings, shape, samples, accepted)
}

fn is_possible(settings: &Settings, shape: Shape) -> Result<(), stlf_planning::Error> {
    let embeds = |embedding: Embedding| Embedded::new(embedding, shape, 0).map(|_| ());
    match settings {
        Settings::Discriminant(settings) => {
            settings.check().and_then(|()| embeds(settings.embedding))
        }
        Settings::Sketch(settings) => settings.check().and_then(|()| embeds(settings.embedding)),
        Settings::Classifier(settings) => {
            settings.check()?;
            let parameters = settings.architecture.spec(shape)?.parameters();
            // What a message holds besides its parameters takes less than a hundred bytes.
            if 4 * parameters + 100 > MOST_BYTES {
                let message = format!("{parameters} parameters are too many for a message");
                return Err(stlf_planning::Error::field("divergence.network", message));
            }
            Ok(())
        }
    }
}

/// d̂ of a pair from what its two devices say, the first and the second; `None` if that is not what the estimator asks
/// for.
pub fn divergence(settings: &Settings, said: [Measured; 2]) -> Option<f64> {
    match (settings, said) {
        (Settings::Discriminant(settings), [Measured::Errors(a), Measured::Errors(b)]) => {
            Some(discriminant::estimate([a.into(), b.into()], settings).value)
        }
        (Settings::Classifier(settings), [Measured::Errors(a), Measured::Errors(b)]) => {
            Some(classifier::estimate([a.into(), b.into()], settings).value)
        }
        // Both compute it of the same sketches. Where they disagree, somebody lies or was lied to; by the larger value
        // nobody comes nearer to another than the other agrees to.
        (Settings::Sketch(_), [Measured::Divergence(a), Measured::Divergence(b)]) => Some(a.max(b)),
        _ => None,
    }
}

impl Exchange {
    /// The part of the device at `place`. The seed is that of [`stlf_method::divergence::measure`]. With settings that do not
    /// pass the [check], nothing is said and nothing ends. Whoever knows `noise_key` can take the noise of
    /// [`sketch::Settings::privacy`] away again.
    pub fn new(
        settings: &Settings,
        shape: Shape,
        seed: u64,
        noise_key: [u8; 32],
        place: usize,
        members: &[usize],
        inputs: Arc<[f32]>,
    ) -> Exchange {
        let estimator = match settings {
            Settings::Discriminant(settings) => {
                let (settings, published) = (*settings, BTreeMap::new());
                Estimator::Discriminant { settings, halves: None, published }
            }
            Settings::Sketch(settings) => {
                Estimator::Sketch { settings: *settings, published: BTreeMap::new() }
            }
            Settings::Classifier(settings) => {
                Estimator::Classifier { settings: *settings, pairs: BTreeMap::new() }
            }
        };
        let (members, bandwidths) = (members.to_vec(), BTreeMap::new());
        Exchange { shape, seed, noise_key, place, members, inputs, bandwidths, estimator }
    }

    /// What it says first; to be asked once, and before anything is received.
    pub fn start(&mut self) -> Outgoing {
        let Some((embedding, _)) = self.features() else { return self.start_pairs() };
        if self.known_bandwidth().is_some() {
            return self.publish();
        }
        let (inputs, seed, place) = (&self.inputs, self.seed, self.place);
        let Ok(own) = own_bandwidth(inputs, self.shape, embedding, seed, place) else {
            return Vec::new();
        };
        self.bandwidths.insert(place, own);
        let mut outgoing = self.to_others(&Message::Bandwidth(own));
        outgoing.extend(self.publish());
        outgoing
    }

    /// Takes what another device says.
    ///
    /// # Errors
    /// Says why it is not heeded. Nothing has changed then.
    pub fn receive(&mut self, from: usize, message: &Message) -> Result<Outgoing, Refusal> {
        if from == self.place || !self.members.contains(&from) {
            return Err(Refusal::Stranger(from));
        }
        match (message, &mut self.estimator) {
            (
                Message::Bandwidth(bandwidth),
                Estimator::Discriminant { .. }
                | Estimator::Sketch {
                    settings: sketch::Settings { bandwidth: Bandwidth::Median, .. },
                    ..
                },
            ) => {
                let known = self.bandwidths.len();
                note(&mut self.bandwidths, from, *bandwidth)?;
                if self.bandwidths.len() > known {
                    return Ok(self.publish());
                }
            }
            (Message::Moments(halves), Estimator::Discriminant { settings, published, .. }) => {
                let fits = |half: &Moments| half.mean.len() == settings.features;
                if !halves.iter().flatten().all(fits) {
                    return Err(Refusal::Unfit("moments of another number of features"));
                }
                let sketches = halves.each_ref().map(|half| half.as_ref().map(Moments::to_sketch));
                note(published, from, sketches)?;
            }
            (Message::Sketch(moments), Estimator::Sketch { settings, published }) => {
                let whole = moments.covariance.is_some() == settings.publishes_covariance();
                if moments.mean.len() != settings.features || !whole {
                    return Err(Refusal::Unfit("a sketch of another size"));
                }
                note(published, from, moments.to_sketch())?;
            }
            (Message::Turn(turn), Estimator::Classifier { pairs, .. }) => {
                let pair = pairs.get_mut(&from).ok_or(Refusal::Unfit("a turn before the first"))?;
                let replies = pair.receive(from, turn)?;
                return Ok(replies.into_iter().map(|t| (from, Message::Turn(t))).collect());
            }
            _ => return Err(Refusal::Unfit("a message of another estimator")),
        }
        Ok(Vec::new())
    }

    /// What this device can say of every other, ascending, once everything is measured.
    pub fn pairs(&self) -> Option<Vec<(usize, Measured)>> {
        let others = self.members.iter().copied().filter(|&member| member != self.place);
        match &self.estimator {
            Estimator::Discriminant { settings, halves, published } => {
                let halves = halves.as_ref().filter(|_| published.len() == self.members.len())?;
                let own = &halves.sketches;
                let pair = |peer: usize| {
                    let theirs = published.get(&peer)?;
                    let both = match side(self.place, peer) {
                        Side::First => discriminants(own, theirs, settings),
                        Side::Second => discriminants(theirs, own, settings),
                    };
                    let count = halves.count(&both, side(self.place, peer));
                    Some((peer, Measured::Errors(count.into())))
                };
                others.map(pair).collect()
            }
            Estimator::Sketch { settings, published } => {
                if published.len() < self.members.len() {
                    return None;
                }
                let sketches: Vec<Sketch> = published.values().cloned().collect();
                let fleet = Fleet::new(&sketches, settings).ok()?;
                let index = |place: usize| self.members.binary_search(&place).ok();
                let own = index(self.place)?;
                let pair = |peer: usize| {
                    let value = fleet.divergence(own, index(peer)?).value;
                    // Moments that no inputs have may come to no number. Nobody is near such a device.
                    let value = if value.is_nan() { 2.0 } else { value };
                    Some((peer, Measured::Divergence(value)))
                };
                others.map(pair).collect()
            }
            Estimator::Classifier { pairs, .. } => {
                let pair = |peer| Some((peer, Measured::Errors(pairs.get(&peer)?.errors?)));
                others.map(pair).collect()
            }
        }
    }

    /// Those that it waits for.
    pub fn missing(&self) -> Vec<usize> {
        let has = |peer: usize| match &self.estimator {
            Estimator::Discriminant { halves, published, .. } => match halves {
                None => self.bandwidths.contains_key(&peer),
                Some(_) => published.contains_key(&peer),
            },
            Estimator::Sketch { published, .. } => match published.contains_key(&self.place) {
                false => self.bandwidths.contains_key(&peer),
                true => published.contains_key(&peer),
            },
            Estimator::Classifier { pairs, .. } => {
                pairs.get(&peer).is_some_and(|pair| pair.errors.is_some())
            }
        };
        let others = self.members.iter().copied().filter(|&member| member != self.place);
        others.filter(|&peer| !has(peer)).collect()
    }

    /// How much others have told so far; what comes again adds nothing.
    pub fn known(&self) -> usize {
        let told = match &self.estimator {
            Estimator::Discriminant { published, .. } => published.len(),
            Estimator::Sketch { published, .. } => published.len(),
            Estimator::Classifier { pairs, .. } => pairs
                .values()
                .map(|pair| 2 * pair.taken as usize + usize::from(pair.kept.is_some()))
                .sum(),
        };
        self.bandwidths.len() + told
    }

    /// What features are waves over, and how many there are; the classifier has none.
    fn features(&self) -> Option<(Embedding, usize)> {
        match &self.estimator {
            Estimator::Discriminant { settings, .. } => {
                Some((settings.embedding, settings.features))
            }
            Estimator::Sketch { settings, .. } => Some((settings.embedding, settings.features)),
            Estimator::Classifier { .. } => None,
        }
    }

    /// The bandwidth, where nobody has to publish anything for it.
    fn known_bandwidth(&self) -> Option<f64> {
        match &self.estimator {
            Estimator::Sketch { settings, .. } => settings.bandwidth.known(),
            Estimator::Discriminant { .. } | Estimator::Classifier { .. } => None,
        }
    }

    /// Moments of shared features, when the last bandwidth has become known.
    fn publish(&mut self) -> Outgoing {
        if self.known_bandwidth().is_none() && self.bandwidths.len() < self.members.len() {
            return Vec::new();
        }
        let Some(features) = self.agreed() else { return Vec::new() };
        let (inputs, seed, place) = (&self.inputs, self.seed, self.place);
        let message = match &mut self.estimator {
            Estimator::Discriminant { halves, published, .. } => {
                let own = own_halves(&features, inputs, self.shape, seed, place);
                let sent = own.sketches.each_ref().map(|half| half.as_ref().map(Moments::of));
                published.insert(place, own.sketches.clone());
                *halves = Some(own);
                Message::Moments(sent)
            }
            Estimator::Sketch { settings, published } => {
                let own =
                    Sketch::new(&features, inputs, settings, |s| noise_seed(&self.noise_key, s));
                let sent = Moments::of(&own);
                published.insert(place, own);
                Message::Sketch(sent)
            }
            Estimator::Classifier { .. } => return Vec::new(),
        };
        self.to_others(&message)
    }

    /// The features that follow from all bandwidths.
    fn agreed(&self) -> Option<Features> {
        let (embedding, count) = self.features()?;
        let bandwidths: Vec<Option<f64>> = match self.known_bandwidth() {
            Some(width) => vec![Some(width)],
            None => self.bandwidths.values().copied().collect(),
        };
        agreed_features(&bandwidths, self.shape, embedding, count, self.seed).ok()
    }

    /// The first turn in every pair.
    fn start_pairs(&mut self) -> Outgoing {
        let Estimator::Classifier { settings, pairs } = &mut self.estimator else {
            return Vec::new();
        };
        let Ok(spec) = settings.architecture.spec(self.shape) else { return Vec::new() };
        let mut outgoing = Vec::new();
        for &peer in self.members.iter().filter(|&&member| member != self.place) {
            let seed = pair_seed(self.seed, self.place.min(peer), self.place.max(peer));
            let (side, inputs) = (side(self.place, peer), self.inputs.clone());
            if let Ok((pair, first)) = Pair::start(&spec, settings, side, inputs, seed) {
                pairs.insert(peer, pair);
                outgoing.push((peer, Message::Turn(first)));
            }
        }
        outgoing
    }

    fn to_others(&self, message: &Message) -> Outgoing {
        let others = self.members.iter().filter(|&&member| member != self.place);
        others.map(|&member| (member, message.clone())).collect()
    }
}

/// The seed of the noise on a sketch: another for every other sketch, and nobody can know it who has not the key.
fn noise_seed(key: &[u8; 32], sketch: &Sketch) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(key);
    hash.update(sketch.samples.to_le_bytes());
    sketch.mean.iter().for_each(|m| hash.update(m.to_le_bytes()));
    hash.finalize().into()
}

/// On which side of its pair with `peer` the device at `place` is.
fn side(place: usize, peer: usize) -> Side {
    if place < peer { Side::First } else { Side::Second }
}

/// This device's side of a pair that trains a classifier.
#[derive(Debug)]
struct Pair {
    spec: Spec,
    settings: classifier::Settings,
    side: Side,
    party: Party<OwnNetwork<Arc<[f32]>>>,
    /// How many of the peer's turns were taken.
    taken: u64,
    /// The peer's turn after the next, which may overtake it on the way. There is none after that, since the peer has
    /// to wait for this device's.
    kept: Option<Said>,
    /// This device's own, in the end.
    errors: Option<Count>,
}

impl Pair {
    /// With this device's first turn.
    fn start(
        spec: &Spec,
        settings: &classifier::Settings,
        side: Side,
        inputs: Arc<[f32]>,
        seed: u64,
    ) -> Result<(Pair, Turn), stlf_planning::Error> {
        let mut party = Party::new(spec, settings, side, inputs, seed)?;
        let first = Turn { number: 0, said: said(party.start()?) };
        let (spec, settings) = (spec.clone(), *settings);
        Ok((Pair { spec, settings, side, party, taken: 0, kept: None, errors: None }, first))
    }

    /// Takes a turn of the peer's, and the one after it where that came first.
    fn receive(&mut self, from: usize, turn: &Turn) -> Result<Vec<Turn>, Refusal> {
        self.check(turn)?;
        match turn.number.checked_sub(self.taken) {
            Some(0) => {
                let mut replies: Vec<Turn> = self.take(&turn.said)?.into_iter().collect();
                if let Some(next) = self.kept.take() {
                    replies.extend(self.take(&next)?);
                }
                Ok(replies)
            }
            Some(1) => match &self.kept {
                Some(before) if *before != turn.said => Err(Refusal::Twice(from)),
                _ => {
                    self.kept = Some(turn.said.clone());
                    Ok(Vec::new())
                }
            },
            // It was taken before, and is said again on a new connection.
            None => Ok(Vec::new()),
            Some(_) => Err(Refusal::Unfit("a turn of another round")),
        }
    }

    /// That this is what a turn of this number says: every repeat ends with errors, after its rounds.
    fn check(&self, turn: &Turn) -> Result<(), Refusal> {
        let in_repeat = self.settings.rounds as u64 + 1;
        if turn.number / in_repeat >= self.settings.repeats as u64 {
            return Err(Refusal::Unfit("a turn after the last"));
        }
        let is_last = turn.number % in_repeat == in_repeat - 1;
        let fits = match &turn.said {
            Said::Params(params) => !is_last && params.len() == self.spec.parameters(),
            Said::Errors(_) => is_last,
        };
        match fits && turn.said.check().is_ok() {
            true => Ok(()),
            false => Err(Refusal::Unfit("a turn that says something else than it must")),
        }
    }

    /// This device's next turn, unless it was the last.
    fn take(&mut self, theirs: &Said) -> Result<Option<Turn>, Refusal> {
        let message = match theirs {
            Said::Params(numbers) => {
                let mut params = Params::zeros(&self.spec);
                params.copy_from_slice(numbers);
                classifier::Message::Params(params)
            }
            Said::Errors(count) => classifier::Message::Error((*count).into()),
        };
        let reply = self.party.receive(&message);
        let reply = reply.map_err(|_| Refusal::Unfit("a turn that cannot be taken"))?;
        self.taken += 1;
        match reply {
            Reply::Send(next) => Ok(Some(Turn { number: self.taken, said: said(next) })),
            Reply::Done(counts) => {
                self.errors = Some(counts[self.side as usize].into());
                Ok(None)
            }
        }
    }
}

/// As it is sent.
fn said(message: classifier::Message) -> Said {
    match message {
        classifier::Message::Params(params) => Said::Params(params.to_vec()),
        classifier::Message::Error(count) => Said::Errors(count.into()),
    }
}
