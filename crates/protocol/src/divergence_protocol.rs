//! How devices measure their divergences: one device's part in it as a machine without I/O, by any estimator.
//!
//! Its numbers are those of [`stlf_method::divergence::measure`] over the members' inputs, bit for bit: both use the same
//! functions, and seeds that follow from places. What takes long it asks for as [`Work`], and goes on meanwhile.

mod check;
mod means;
mod pair;
mod progress;
mod replies;
mod work;
mod worked_out;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use stlf_data::Shape;
use stlf_method::divergence::classifier::{self, Side, pair_seed};
use stlf_method::divergence::discriminant::{self, Halves};
use stlf_method::divergence::sketch::{self, Bandwidth, Sketch};
use stlf_method::divergence::{Settings, drift};

pub use self::check::check;
use self::means::MeansOfEpoch;
pub use self::means::Remembered;
use self::pair::{Pair, Round};
use self::replies::Replied;
use self::work::{BothHalves, Found, Kind, Own};
pub use self::work::{Finding, Work};
pub(crate) use self::worked_out::WorkedOut;
use crate::device::{Refusal, note};
use crate::privacy_ledger::Publication;
use crate::publication_record::{CurrentMeans, SampleNames};
use crate::published_data::PublishedData;
use crate::reply_record::Replying;
use crate::roster::Place;
use crate::wire::{Means, Measured, Message, Moments};

/// One device's part in measuring all pairs of an epoch.
#[derive(Debug)]
pub struct Exchange {
    own: Own,
    /// Ascending.
    members: Vec<Place>,
    /// What everyone published for the bandwidth, for the estimators that need one.
    bandwidths: BTreeMap<Place, Option<f64>>,
    estimator: Estimator,
    means: MeansOfEpoch,
    /// What it has told of divergences, where that is limited.
    replying: Option<Arc<Replying>>,
    withheld: BTreeSet<Place>,
}

/// An estimator, and what it knows so far.
#[derive(Debug)]
enum Estimator {
    Discriminant {
        settings: discriminant::Settings,
        /// This device's own, once all bandwidths are known and it is computed.
        halves: Option<Arc<Halves>>,
        published: BTreeMap<Place, Arc<BothHalves>>,
        measured: Option<Vec<(Place, Measured)>>,
    },
    Sketch {
        settings: sketch::Settings,
        published: BTreeMap<Place, Arc<Sketch>>,
        measured: Option<Vec<(Place, Measured)>>,
    },
    Classifier {
        settings: classifier::Settings,
        pairs: BTreeMap<Place, Pair>,
    },
}

/// What a device's part asks for.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Say this to the device at a place.
    Say(Place, Message),
    /// Do this, without holding anything up, and give what it comes to to [`Exchange::computed`].
    Compute(Work),
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
        // Each measures by its own covariance, or both by the same sketches. Where they disagree then, somebody lies or was lied to; by
        // the larger value nobody comes nearer to another than the other agrees to.
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
        place: Place,
        members: &[Place],
        inputs: Arc<[f32]>,
    ) -> Exchange {
        let measured = None;
        let estimator = match settings {
            Settings::Discriminant(settings) => {
                let (settings, published) = (*settings, BTreeMap::new());
                Estimator::Discriminant { settings, halves: None, published, measured }
            }
            Settings::Sketch(settings) => {
                Estimator::Sketch { settings: *settings, published: BTreeMap::new(), measured }
            }
            Settings::Classifier(settings) => {
                Estimator::Classifier { settings: *settings, pairs: BTreeMap::new() }
            }
        };
        let (kept, behind, worked_out) = (None, None, Arc::default());
        let own = Own { shape, seed, noise_key, place, inputs, kept, behind, worked_out };
        let (members, means) = (members.to_vec(), MeansOfEpoch::default());
        let (bandwidths, withheld) = (BTreeMap::new(), BTreeSet::new());
        Exchange { own, members, bandwidths, estimator, means, replying: None, withheld }
    }

    /// Returns what it publishes with (ε, δ), in this epoch and in every other; `None` without.
    pub fn publication(&self) -> Option<Publication> {
        match &self.estimator {
            Estimator::Sketch { settings, .. } => work::publication(&self.own, settings),
            Estimator::Discriminant { .. } | Estimator::Classifier { .. } => None,
        }
    }

    /// The means that it publishes with base noise alone, in this epoch and in every other, of samples with these [names](Exchange::sample_names); `None` with
    /// (ε, δ), or where it publishes more.
    pub fn means(&self, samples: &SampleNames) -> Option<CurrentMeans> {
        match &self.estimator {
            Estimator::Sketch { settings, .. } => work::means(&self.own, settings, samples),
            Estimator::Discriminant { .. } | Estimator::Classifier { .. } => None,
        }
    }

    /// Returns by what its samples are known in records: their inputs, or what these were before they were scaled. Whoever knows `sample_key` can find out whether a
    /// sample is among them.
    pub fn sample_names(&self, unscaled: Option<&[f64]>, sample_key: &[u8; 32]) -> SampleNames {
        work::samples(&self.own, unscaled, sample_key)
    }

    /// Returns what it goes by: the means that it publishes in every epoch, or would by default where it publishes more, and the data that they are of.
    pub(crate) fn goes_by(&self) -> Option<drift::GoesBy> {
        let settings = match &self.estimator {
            Estimator::Sketch { settings, .. } => Some(settings),
            Estimator::Discriminant { .. } | Estimator::Classifier { .. } => None,
        };
        work::goes_by(&self.own, settings)
    }

    /// The same, but it publishes this instead of means of its inputs.
    pub fn publishing(mut self, kept: Option<Arc<Sketch>>) -> Exchange {
        self.own.kept = kept;
        self
    }

    /// The same, but it measures by the data behind what it [publishes](Exchange::publishing), and not by its inputs as they are now.
    pub fn measuring_by(mut self, behind: Option<Arc<PublishedData>>) -> Exchange {
        self.own.behind = behind;
        self
    }

    /// The same, but what it has worked out of its data before, it need not work out again.
    pub(crate) fn knowing(mut self, worked_out: Arc<WorkedOut>) -> Exchange {
        self.own.worked_out = worked_out;
        self
    }

    /// Returns what it does first; to be asked once, and before anything is received.
    pub fn start(&mut self) -> Vec<Step> {
        let embedding = match &self.estimator {
            Estimator::Classifier { .. } => return self.start_pairs(),
            Estimator::Discriminant { settings, .. } => settings.embedding,
            Estimator::Sketch { settings, .. } => settings.embedding,
        };
        match self.known_bandwidth() {
            Some(_) => self.publish(),
            None => vec![compute(Kind::Bandwidth { own: self.own.clone(), embedding })],
        }
    }

    /// Takes what another device says.
    ///
    /// # Errors
    /// Says why it is not heeded. Nothing has changed then.
    pub fn receive(&mut self, from: Place, message: &Message) -> Result<Vec<Step>, Refusal> {
        if from == self.own.place || !self.members.contains(&from) {
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
            ) => match note(&mut self.bandwidths, from, *bandwidth)? {
                true => Ok(self.publish()),
                false => Ok(Vec::new()),
            },
            (Message::Moments(halves), Estimator::Discriminant { settings, published, .. }) => {
                let fits = |half: &Moments| half.mean.len() == settings.features;
                if !halves.iter().flatten().all(fits) {
                    return Err(Refusal::Unfit("moments of another number of features"));
                }
                let sketches = halves.each_ref().map(|half| half.as_ref().map(Moments::to_sketch));
                match note(published, from, Arc::new(sketches))? {
                    true => Ok(self.compare()),
                    false => Ok(Vec::new()),
                }
            }
            (Message::Sketch(moments), Estimator::Sketch { settings, published, .. }) => {
                if moments.mean.len() != settings.features || !settings.publishes_covariance() {
                    return Err(Refusal::Unfit("a sketch of another size"));
                }
                match note(published, from, Arc::new(moments.to_sketch()))? {
                    true => Ok(self.compare()),
                    false => Ok(Vec::new()),
                }
            }
            (Message::Means(..) | Message::Unchanged(..) | Message::AskForMeans, _) => {
                self.hear_of_means(from, message)
            }
            (Message::Turn(turn), Estimator::Classifier { pairs, .. }) => {
                let pair = pairs.get_mut(&from).ok_or(Refusal::Unfit("a turn before the first"))?;
                Ok(pair
                    .receive(from, turn)?
                    .map(|round| in_turn(from, round))
                    .into_iter()
                    .collect())
            }
            _ => Err(Refusal::Unfit("a message of another estimator")),
        }
    }

    /// Takes what [`Step::Compute`] asked for.
    ///
    /// # Errors
    /// A turn of another's that nothing follows from.
    pub fn computed(&mut self, finding: Finding) -> Result<Vec<Step>, Refusal> {
        let place = self.own.place;
        match (finding.0, &mut self.estimator) {
            (Found::Bandwidth(Some(own)), _) => {
                self.bandwidths.insert(place, own);
                let mut steps = self.to_others(&Message::Bandwidth(own));
                steps.extend(self.publish());
                Ok(steps)
            }
            (Found::Halves(Some(own)), Estimator::Discriminant { halves, published, .. }) => {
                let sent = own.sketches.each_ref().map(|half| half.as_ref().and_then(Moments::of));
                published.insert(place, Arc::new(own.sketches.clone()));
                *halves = Some(Arc::new(own));
                let mut steps = self.to_others(&Message::Moments(sent));
                steps.extend(self.compare());
                Ok(steps)
            }
            (Found::Sketch(Some(own)), Estimator::Sketch { settings, published, .. }) => {
                let (moments, means) = (Moments::of(&own), Means::of(&own, settings));
                published.insert(place, Arc::new(own));
                let mut steps = match moments {
                    Some(moments) => self.to_others(&Message::Sketch(moments)),
                    None => {
                        let others = others(&self.members, place);
                        self.means.publish(means, others)
                    }
                };
                steps.extend(self.compare());
                Ok(steps)
            }
            (
                Found::Pairs(pairs),
                Estimator::Discriminant { measured, .. } | Estimator::Sketch { measured, .. },
            ) => {
                *measured = pairs;
                Ok(Vec::new())
            }
            (Found::Replied(replied), Estimator::Sketch { measured, .. }) => {
                let Replied { pairs, withheld, told } = replied;
                *measured = Some(pairs);
                self.withheld = withheld;
                self.replying = told.or(self.replying.take());
                Ok(Vec::new())
            }
            (Found::Turn(peer, played), Estimator::Classifier { pairs, .. }) => {
                let Some(played) = played else {
                    pairs.remove(&peer);
                    return Ok(Vec::new());
                };
                let Some(pair) = pairs.get_mut(&peer) else { return Ok(Vec::new()) };
                let (turn, next) = pair.played(played)?;
                let turn = turn.map(|turn| Step::Say(peer, Message::Turn(turn)));
                Ok(turn.into_iter().chain(next.map(|round| in_turn(peer, round))).collect())
            }
            _ => Ok(Vec::new()),
        }
    }

    /// The bandwidth, where nobody has to publish anything for it.
    fn known_bandwidth(&self) -> Option<f64> {
        match &self.estimator {
            Estimator::Sketch { settings, .. } => settings.bandwidth.known(),
            Estimator::Discriminant { .. } | Estimator::Classifier { .. } => None,
        }
    }

    /// Returns what the features' bandwidth follows from, once that is known.
    fn all_bandwidths(&self) -> Option<Vec<Option<f64>>> {
        match self.known_bandwidth() {
            Some(width) => Some(vec![Some(width)]),
            None if self.bandwidths.len() < self.members.len() => None,
            None => Some(self.bandwidths.values().copied().collect()),
        }
    }

    /// Moments of shared features, when the last bandwidth has become known.
    fn publish(&self) -> Vec<Step> {
        let Some(bandwidths) = self.all_bandwidths() else { return Vec::new() };
        let own = self.own.clone();
        match &self.estimator {
            Estimator::Discriminant { settings, .. } => {
                vec![compute(Kind::Halves { own, settings: *settings, bandwidths })]
            }
            Estimator::Sketch { settings, .. } => {
                let (own, settings) = (Box::new(own), *settings);
                vec![compute(Kind::Sketch { own, settings, bandwidths })]
            }
            Estimator::Classifier { .. } => Vec::new(),
        }
    }

    /// Divergences, when the last moments have become known.
    fn compare(&self) -> Vec<Step> {
        let (place, all) = (self.own.place, self.members.len());
        match &self.estimator {
            Estimator::Discriminant { settings, halves: Some(halves), published, .. }
                if published.len() == all =>
            {
                let (settings, halves, published) = (*settings, halves.clone(), published.clone());
                vec![compute(Kind::Errors { place, settings, halves, published })]
            }
            Estimator::Sketch { settings, published, .. } if published.len() == all => {
                let Some(bandwidths) = self.all_bandwidths() else { return Vec::new() };
                let own = Box::new(self.own.clone());
                let (settings, published) = (*settings, published.clone());
                let replying = self.replying.clone();
                vec![compute(Kind::Distances { own, settings, bandwidths, published, replying })]
            }
            _ => Vec::new(),
        }
    }

    /// The first turn in every pair.
    fn start_pairs(&mut self) -> Vec<Step> {
        let Own { shape, seed, place, inputs, .. } = &self.own;
        let Estimator::Classifier { settings, pairs } = &mut self.estimator else {
            return Vec::new();
        };
        let Ok(spec) = settings.architecture.spec(*shape) else { return Vec::new() };
        let mut steps = Vec::new();
        for &peer in self.members.iter().filter(|&member| member != place) {
            let seed = pair_seed(*seed, peer.min(*place).index(), peer.max(*place).index());
            let side = side(*place, peer);
            let (pair, first) = Pair::begin(&spec, settings, side, inputs.clone(), seed);
            pairs.insert(peer, pair);
            steps.push(in_turn(peer, first));
        }
        steps
    }

    fn others(&self) -> impl Iterator<Item = Place> + '_ {
        others(&self.members, self.own.place)
    }

    fn to_others(&self, message: &Message) -> Vec<Step> {
        self.others().map(|member| Step::Say(member, message.clone())).collect()
    }
}

fn others(members: &[Place], own: Place) -> impl Iterator<Item = Place> + '_ {
    members.iter().copied().filter(move |&member| member != own)
}

fn compute(kind: Kind) -> Step {
    Step::Compute(Work(kind))
}

fn in_turn(peer: Place, round: Round) -> Step {
    compute(Kind::Turn { peer, round })
}

/// On which side of its pair with `peer` the device at `place` is.
fn side(place: Place, peer: Place) -> Side {
    if place < peer { Side::First } else { Side::Second }
}
