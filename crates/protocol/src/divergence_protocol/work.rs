//! What takes long in measuring divergences: work on all inputs of a device, or on what everyone published.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use stlf_data::Shape;
use stlf_method::divergence::disclosure::independent;
use stlf_method::divergence::discriminant::{self, Halves, Side, discriminants, own_halves};
use stlf_method::divergence::privacy::Privacy;
use stlf_method::divergence::sketch::{self, Sketch, Statistic, agreed_features, own_bandwidth};
use stlf_method::divergence::{Embedding, Features, Fleet, OwnMoments, drift};

use super::pair::{Played, Round};
use super::replies::{Replied, replied};
use super::side;
use super::worked_out::WorkedOut;
use crate::job::{Sign, Task, Watch};
use crate::privacy_ledger::Publication;
use crate::publication_record::{CurrentMeans, SampleNames, sample_names};
use crate::published_data::PublishedData;
use crate::reply_record::Replying;
use crate::roster::Place;
use crate::wire::Measured;

/// What a device measures with.
#[derive(Debug, Clone)]
pub(super) struct Own {
    pub(super) shape: Shape,
    pub(super) seed: u64,
    /// What noise is drawn from, which hides something only from those that do not know it.
    pub(super) noise_key: [u8; 32],
    pub(super) place: Place,
    pub(super) inputs: Arc<[f32]>,
    /// What it publishes instead of means of its inputs as they are now.
    pub(super) kept: Option<Arc<Sketch>>,
    /// What is kept of the data behind that, by which it measures then.
    pub(super) behind: Option<Arc<PublishedData>>,
    /// What it knows already of what follows.
    pub(super) worked_out: Arc<WorkedOut>,
}

impl Own {
    /// The features of the sketches that all members publish.
    fn features(
        &self,
        settings: &sketch::Settings,
        bandwidths: &[Option<f64>],
    ) -> Option<Arc<Features>> {
        self.worked_out.features(self.shape, self.seed, settings, bandwidths)
    }

    /// Returns what it publishes of these features.
    fn sketch(&self, features: &Features, settings: &sketch::Settings) -> Sketch {
        match &self.kept {
            Some(kept) => (**kept).clone(),
            None => self.new_sketch(features, settings),
        }
    }

    /// The same of its inputs as they are now.
    fn new_sketch(&self, features: &Features, settings: &sketch::Settings) -> Sketch {
        let seed = |s: &Sketch| noise_seed(&self.noise_key, settings.privacy_of(s.samples), s);
        Sketch::new(features, &self.inputs, settings, seed)
    }
}

/// Returns what a device goes by: the means that it publishes, with its noise, and the data that they are of. Where it publishes more than means, or
/// something else, they are those that it would publish by default and with base noise alone; nobody hears of them then.
pub(super) fn goes_by(own: &Own, settings: Option<&sketch::Settings>) -> Option<drift::GoesBy> {
    let default = sketch::Settings::means(own.shape).with(|s| s.privacy = None);
    let are_means =
        |s: &&sketch::Settings| !s.publishes_covariance() && s.bandwidth.known().is_some();
    let settings = settings.filter(are_means).copied().unwrap_or(default);
    let features = own.features(&settings, &[settings.bandwidth.known()])?;
    let published = own.sketch(&features, &settings);
    let is_new = published == own.new_sketch(&features, &settings);
    Some(drift::GoesBy::new((*features).clone(), settings, published, &own.inputs, is_new))
}

/// Returns what a device publishes with (ε, δ); `None` without. It is the same in every epoch: where there is noise, everything that its
/// features follow from is known in advance.
pub(super) fn publication(own: &Own, settings: &sketch::Settings) -> Option<Publication> {
    let samples = own.inputs.len() / own.shape.len().max(1);
    let privacy = settings.privacy_of(samples as u64)?;
    let width = settings.bandwidth.known()?;
    let features = own.features(settings, &[Some(width)])?;
    let mut seed = None;
    let sketch = Sketch::new(&features, &own.inputs, settings, |exact| {
        *seed.insert(noise_seed(&own.noise_key, Some(privacy), exact))
    });
    let publication = Publication::new(&seed?, privacy.ratio());
    Some(publication.of_means(&features_id(own, settings, width), sketch))
}

/// Everything that the features of published means follow from, hashed.
fn features_id(own: &Own, settings: &sketch::Settings, width: f64) -> [u8; 32] {
    let mut id = Sha256::new_with_prefix(own.seed.to_le_bytes());
    id.update(width.to_le_bytes());
    id.update(format!("{} {:?} {}", settings.features, settings.embedding, own.shape));
    id.finalize().into()
}

/// The means that a device publishes with base noise alone, of samples with these names; `None` with (ε, δ), or where it publishes more.
pub(super) fn means(
    own: &Own,
    settings: &sketch::Settings,
    samples: &SampleNames,
) -> Option<CurrentMeans> {
    let width = settings.bandwidth.known()?;
    if settings.publishes_covariance() || settings.privacy_of(samples.all.len() as u64).is_some() {
        return None;
    }
    let features = own.features(settings, &[Some(width)])?;
    let sketch = own.new_sketch(&features, settings);
    let ratio = settings.ratio(sketch.samples);
    Some(CurrentMeans::new(&features_id(own, settings, width), sketch, samples.clone(), ratio))
}

/// What is to be kept of a device's data, of which it publishes these means; `None` where the features are not known in advance.
pub(super) fn data_behind(
    own: &Own,
    settings: &sketch::Settings,
    means: &Sketch,
    samples: &SampleNames,
) -> Option<PublishedData> {
    let features = own.features(settings, &[Some(settings.bandwidth.known()?)])?;
    let moments = OwnMoments::of(&features, &own.inputs);
    let counted = independent(&own.inputs, own.shape.len());
    Some(PublishedData::new(means, settings, samples.all.clone(), counted, moments))
}

/// Returns what a device's samples are known by in records: their inputs, or what these were before they were scaled, hashed with a key.
pub(super) fn samples(own: &Own, unscaled: Option<&[f64]>, sample_key: &[u8; 32]) -> SampleNames {
    let numbers = own.shape.len().max(1);
    match unscaled {
        Some(rows) => {
            let samples = own.inputs.len() / numbers;
            let rows = rows.chunks_exact((rows.len() / samples.max(1)).max(1));
            let bytes = rows.map(|row| row.iter().flat_map(|x| x.to_le_bytes()).collect());
            sample_names(bytes, sample_key)
        }
        None => {
            let inputs = own.inputs.chunks_exact(numbers);
            let bytes = inputs.map(|input| input.iter().flat_map(|x| x.to_le_bytes()).collect());
            sample_names(bytes, sample_key)
        }
    }
}

/// Moments of both halves of a device's inputs.
pub(super) type BothHalves = [Option<Sketch>; 2];

/// Work that takes long. Two works are equal if they are for the same.
#[derive(Debug)]
pub struct Work(pub(super) Kind);

#[derive(Debug)]
pub(super) enum Kind {
    Bandwidth {
        own: Own,
        embedding: Embedding,
    },
    Halves {
        own: Own,
        settings: discriminant::Settings,
        bandwidths: Vec<Option<f64>>,
    },
    Sketch {
        own: Box<Own>,
        settings: sketch::Settings,
        bandwidths: Vec<Option<f64>>,
    },
    Errors {
        place: Place,
        settings: discriminant::Settings,
        halves: Arc<Halves>,
        published: BTreeMap<Place, Arc<BothHalves>>,
    },
    Distances {
        own: Box<Own>,
        settings: sketch::Settings,
        bandwidths: Vec<Option<f64>>,
        published: BTreeMap<Place, Arc<Sketch>>,
        replying: Option<Arc<Replying>>,
    },
    Turn {
        peer: Place,
        round: Round,
    },
}

/// What it came to.
#[derive(Debug)]
pub struct Finding(pub(super) Found);

/// Nothing, where settings are none that anybody can measure with.
#[derive(Debug)]
pub(super) enum Found {
    Bandwidth(Option<Option<f64>>),
    Halves(Option<Halves>),
    Sketch(Option<Sketch>),
    Pairs(Option<Vec<(Place, Measured)>>),
    Replied(Replied),
    Turn(Place, Option<Played>),
}

impl PartialEq for Work {
    fn eq(&self, other: &Work) -> bool {
        self.task() == other.task()
    }
}

impl Work {
    /// Returns what it is for.
    pub fn task(&self) -> Task {
        match &self.0 {
            Kind::Bandwidth { .. } => Task::Bandwidth,
            Kind::Halves { .. } | Kind::Sketch { .. } => Task::Moments,
            Kind::Errors { .. } | Kind::Distances { .. } => Task::Divergences,
            Kind::Turn { peer, round } => Task::Turn { peer: *peer, number: round.number() },
        }
    }

    /// Does it; `None` if `watch` ended it.
    pub fn run(self, watch: &mut Watch<'_>) -> Option<Finding> {
        Some(Finding(match self.0 {
            Kind::Bandwidth { own: Own { shape, seed, place, inputs, .. }, embedding } => {
                Found::Bandwidth(own_bandwidth(&inputs, shape, embedding, seed, place.index()).ok())
            }
            Kind::Halves { own: Own { shape, seed, place, inputs, .. }, settings, bandwidths } => {
                let (embedding, count) = (settings.embedding, settings.features);
                let features = agreed_features(&bandwidths, shape, embedding, count, seed).ok();
                let halves = |features| own_halves(&features, &inputs, shape, seed, place.index());
                Found::Halves(features.map(halves))
            }
            Kind::Sketch { own, settings, bandwidths } => {
                let features = own.features(&settings, &bandwidths);
                Found::Sketch(features.map(|features| own.sketch(&features, &settings)))
            }
            Kind::Errors { place, settings, halves, published } => {
                let pair = |peer: Place, theirs: &Arc<BothHalves>| {
                    let own = &halves.sketches;
                    let both = match side(place, peer) {
                        Side::First => discriminants(own, theirs, &settings),
                        Side::Second => discriminants(theirs, own, &settings),
                    };
                    Measured::Errors(halves.count(&both, side(place, peer)).into())
                };
                Found::Pairs(Some(with_others(place, &published, watch, pair)?))
            }
            Kind::Distances { own, settings, bandwidths, published, replying } => {
                let place = own.place;
                let Some(distance) = distances(*own, settings, &bandwidths, &published) else {
                    return Some(Finding(Found::Pairs(None)));
                };
                let value = |peer: Place, theirs: &Sketch| {
                    let value = distance(peer, theirs);
                    // Moments that no inputs have may come to no number. Nobody is near such a device.
                    if value.is_nan() { 2.0 } else { value }
                };
                match replying {
                    Some(known) => {
                        Found::Replied(replied(place, &settings, &published, &known, value))
                    }
                    None => {
                        let pair = |peer: Place, theirs: &Arc<Sketch>| {
                            Measured::Divergence(value(peer, theirs))
                        };
                        Found::Pairs(Some(with_others(place, &published, watch, pair)?))
                    }
                }
            }
            Kind::Turn { peer, round } => Found::Turn(peer, round.play().ok()),
        }))
    }
}

/// How far every other member is from this device, from what it published.
type Distance = Box<dyn Fn(Place, &Sketch) -> f64>;

fn distances(
    own: Own,
    settings: sketch::Settings,
    bandwidths: &[Option<f64>],
    published: &BTreeMap<Place, Arc<Sketch>>,
) -> Option<Distance> {
    if let Statistic::OwnSeparation { ridge } = settings.statistic {
        let features = own.features(&settings, bandwidths)?;
        let Own { inputs, behind, worked_out, .. } = &own;
        let metric = worked_out.metric(features, inputs, behind.as_ref(), ridge);
        return Some(Box::new(move |_, theirs| metric.divergence(theirs, &settings).value));
    }
    let sketches: Vec<Sketch> = published.values().map(|s| (**s).clone()).collect();
    let members: Vec<Place> = published.keys().copied().collect();
    let fleet = Fleet::new(&sketches, &settings).ok()?;
    // The fleet counts by indices among the members.
    let index = move |place: Place| members.partition_point(|&member| member < place);
    Some(Box::new(move |peer, _| fleet.divergence(index(own.place), index(peer)).value))
}

/// Returns what this device can say of every other, ascending; `None` if `watch` ended it.
fn with_others<T>(
    place: Place,
    published: &BTreeMap<Place, T>,
    watch: &mut Watch<'_>,
    pair: impl Fn(Place, &T) -> Measured,
) -> Option<Vec<(Place, Measured)>> {
    let others = published.iter().filter(|(peer, _)| **peer != place);
    let mut one = |(&peer, theirs): (&Place, &T)| match watch(Sign::GoesOn).is_break() {
        true => None,
        false => Some((peer, pair(peer, theirs))),
    };
    others.map(&mut one).collect()
}

/// The seed of the noise on a sketch: another for every other sketch and every other strength of noise, and nobody can know it who has not
/// the key. The same draws at two strengths would give the sketch away.
fn noise_seed(key: &[u8; 32], privacy: Option<Privacy>, sketch: &Sketch) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(key);
    hash.update(privacy.map_or(0.0, |privacy| privacy.ratio()).to_le_bytes());
    hash.update(sketch.samples.to_le_bytes());
    sketch.mean.iter().for_each(|m| hash.update(m.to_le_bytes()));
    hash.finalize().into()
}
