//! What may say which source suits a target.

use rayon::prelude::*;
use stlf_learn::evaluate::Predictions;
use stlf_learn::{Params, Spec};
use stlf_method::divergence::sketch::{self, agreed_features};
use stlf_method::divergence::{Embedding, Features, Settings, discriminant, measure};
use stlf_method::scout::{Labeled, Scout};

use super::natural::{ByPair, Half};
use super::{Failure, go_on};

/// How near every source is to every target, by one measure.
pub(super) struct Candidate {
    pub(super) name: String,
    /// What a source sends for it, where it can be sent.
    pub(super) bytes: Option<usize>,
    pub(super) near: ByPair<f64>,
}

impl Candidate {
    /// The share of a target's samples to which a source's classifier gives the class that those of all other sources together give.
    pub(super) fn agreement(
        name: &str,
        bytes: usize,
        predictions: &ByPair<Predictions>,
    ) -> Candidate {
        let at = |made: &Vec<Predictions>| -> Vec<f64> {
            let with_others = |own: usize| {
                let others = made.iter().enumerate().filter(|(k, _)| *k != own);
                let Some(mixed) = Predictions::mix(others.map(|(_, made)| (made, 1.0))) else {
                    return 0.0;
                };
                let same = made[own].classes().zip(mixed.classes()).filter(|(a, b)| a == b);
                same.count() as f64 / mixed.len() as f64
            };
            (0..made.len()).map(with_others).collect()
        };
        let near = predictions.par_iter().map(at).collect();
        Candidate { name: name.to_owned(), bytes: Some(bytes), near }
    }
}

/// The estimators, which know inputs alone.
pub(super) fn of_inputs(half: &Half<'_>, seed: u64) -> Result<Vec<Candidate>, Failure> {
    let shape = half.fleet.shape;
    let plain = |noisy: sketch::Settings| noisy.with(|s| s.privacy = None);
    let noisy = |plain: sketch::Settings| plain.with(|s| s.privacy_required = true);
    let (means, alone) =
        (sketch::Settings::means(shape), sketch::Settings::discrepancy(Embedding::Inputs, shape));
    let estimators = [
        ("means", Settings::Sketch(plain(means))),
        ("means, ε = 1", Settings::Sketch(noisy(means))),
        ("discrepancy", Settings::Sketch(plain(alone))),
        ("discrepancy, ε = 1", Settings::Sketch(noisy(alone))),
        ("discriminant", Settings::Discriminant(discriminant::Settings::default())),
        ("sketch", Settings::Sketch(sketch::Settings::default())),
    ];
    let devices: Vec<&[f32]> = half.fleet.inputs.iter().map(Vec::as_slice).collect();
    let candidate = |(name, settings): (&str, Settings)| {
        let found = measure(&devices, shape, &settings, seed, &mut |_| go_on())?;
        let found = found.ok_or("nobody stops it")?;
        let at = |&target: &usize| {
            half.sources.iter().map(|&source| -found.get(source, target).value).collect()
        };
        let near = half.targets.iter().map(at).collect();
        // What it sends to one other device, less the d̂ of the pair.
        let bytes = Some(settings.bytes(2, shape)? as usize - 8);
        Ok(Candidate { name: name.to_owned(), bytes, near })
    };
    estimators.into_iter().map(candidate).collect()
}

/// The means of a source's classes: a target fits the mean of its inputs as a mixture of them, so that other shares of classes are no divergence.
pub(super) fn of_class_means(half: &Half<'_>, seed: u64) -> Result<Candidate, Failure> {
    let fleet = half.fleet;
    let sketch::Settings { bandwidth, embedding, features, .. } =
        sketch::Settings::means(fleet.shape);
    let features = agreed_features(&[bandwidth.known()], fleet.shape, embedding, features, seed)?;
    let of_classes = |&source: &usize| -> Vec<Vec<f64>> {
        let vectors = vectors(&features, &fleet.inputs[source]);
        let classes = 0..fleet.classes as u16;
        let of_class = |class: u16| {
            let own =
                vectors.iter().zip(&fleet.truth[source]).filter(|(_, label)| **label == class);
            let own: Vec<&Vec<f64>> = own.map(|(vector, _)| vector).collect();
            (!own.is_empty()).then(|| mean(&own))
        };
        classes.filter_map(of_class).collect()
    };
    let sources: Vec<Vec<Vec<f64>>> = half.sources.par_iter().map(of_classes).collect();
    let at = |&target: &usize| -> Vec<f64> {
        let vectors = vectors(&features, &fleet.inputs[target]);
        let own = mean(&vectors.iter().collect::<Vec<_>>());
        let variance: Vec<f64> = (0..own.len())
            .map(|f| {
                let squares = vectors.iter().map(|v| (v[f] - own[f]).powi(2)).sum::<f64>();
                (squares / vectors.len() as f64).max(1e-9)
            })
            .collect();
        let scaled = |vector: &[f64]| -> Vec<f64> {
            vector.iter().zip(&variance).map(|(x, v)| x / v.sqrt()).collect()
        };
        let own = scaled(&own);
        let near = |classes: &Vec<Vec<f64>>| {
            let classes: Vec<Vec<f64>> = classes.iter().map(|class| scaled(class)).collect();
            -to_mixture(&own, &classes)
        };
        sources.iter().map(near).collect()
    };
    let near = half.targets.par_iter().map(at).collect();
    let bytes = fleet.classes * (8 + 2 * features.count());
    let name = "means of every class, fitted as a mixture".to_owned();
    Ok(Candidate { name, bytes: Some(bytes), near })
}

fn vectors(features: &Features, inputs: &[f32]) -> Vec<Vec<f64>> {
    let mut vectors = Vec::new();
    features.each(inputs, |vector| vectors.push(vector.iter().map(|&x| f64::from(x)).collect()));
    vectors
}

fn mean(vectors: &[&Vec<f64>]) -> Vec<f64> {
    let sum = |f: usize| vectors.iter().map(|vector| vector[f]).sum::<f64>();
    (0..vectors[0].len()).map(|f| sum(f) / vectors.len() as f64).collect()
}

/// The squared distance of a point to the nearest mixture of others (Frank and Wolfe, with the best step each time).
fn to_mixture(point: &[f64], corners: &[Vec<f64>]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let less = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<f64>>();
    let mut at = corners[0].clone();
    for _ in 0..500 {
        let missing = less(point, &at);
        let best = corners.iter().max_by(|a, b| dot(a, &missing).total_cmp(&dot(b, &missing)));
        let towards = less(best.unwrap_or(&at), &at);
        let length = dot(&towards, &towards);
        if length == 0.0 {
            break;
        }
        let step = (dot(&towards, &missing) / length).clamp(0.0, 1.0);
        at.iter_mut().zip(&towards).for_each(|(x, t)| *x += step * t);
    }
    let missing = less(point, &at);
    dot(&missing, &missing)
}

/// Returns the agreement of linear classifiers, one of each source, on the targets' samples.
pub(super) fn of_scouts(half: &Half<'_>) -> Candidate {
    let (fleet, width) = (half.fleet, half.fleet.shape.len());
    let train = |&source: &usize| {
        let (inputs, labels) = (&fleet.inputs[source], &fleet.truth[source]);
        Scout::new(Labeled { inputs, labels }, width, fleet.classes)
    };
    let scouts: Vec<Scout> = half.sources.par_iter().map(train).collect();
    let at = |&target: &usize| -> Vec<Predictions> {
        let outputs = |scout: &Scout| {
            let inputs = fleet.inputs[target].chunks_exact(width);
            let outputs = inputs.flat_map(|input| scout.outputs(input)).map(|x| x as f32);
            Predictions::new(outputs.collect(), fleet.classes)
        };
        scouts.iter().map(outputs).collect()
    };
    let predictions = half.targets.par_iter().map(at).collect();
    let bytes = Scout::bytes(width, fleet.classes) as usize;
    Candidate::agreement("agreement of linear scouts", bytes, &predictions)
}

/// A network as it arrives if every tensor is sent in whole numbers of eight bits and a unit.
pub(super) fn in_eight_bits(spec: &Spec, mut params: Params) -> Params {
    for tensor in spec.tensors() {
        let numbers = &mut params[tensor.range.clone()];
        let largest = numbers.iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
        let unit = largest / f32::from(i8::MAX);
        if unit > 0.0 {
            numbers.iter_mut().for_each(|x| *x = (*x / unit).round() * unit);
        }
    }
    params
}
