//! What a device works out of its own samples to measure by. With the same data that is the same in every epoch, and it is kept.

use std::sync::{Arc, Mutex, PoisonError};

use stlf_data::Shape;
use stlf_method::divergence::bandwidth::agree;
use stlf_method::divergence::sketch::{self, agreed_features};
use stlf_method::divergence::{Embedding, Features, OwnMetric};

use crate::published_data::PublishedData;

/// What was worked out last.
#[derive(Debug, Default)]
pub(crate) struct WorkedOut {
    features: Mutex<Option<(FeaturesOf, Arc<Features>)>>,
    metric: Mutex<Option<(MetricOf, Arc<OwnMetric>)>>,
}

/// All that features follow from.
#[derive(Debug, Clone, Copy, PartialEq)]
struct FeaturesOf {
    shape: Shape,
    embedding: Embedding,
    count: usize,
    bandwidth: f64,
    seed: u64,
}

/// All that a metric follows from.
#[derive(Debug)]
struct MetricOf {
    features: Arc<Features>,
    inputs: Arc<[f32]>,
    behind: Option<Arc<PublishedData>>,
    ridge: f64,
}

impl MetricOf {
    /// Whether both are of the very same data, and not of equal ones.
    fn is(&self, other: &MetricOf) -> bool {
        let is_behind = match (&self.behind, &other.behind) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        };
        is_behind
            && Arc::ptr_eq(&self.features, &other.features)
            && Arc::ptr_eq(&self.inputs, &other.inputs)
            && self.ridge == other.ridge
    }

    fn metric(&self) -> OwnMetric {
        match &self.behind {
            Some(data) => OwnMetric::of(data.moments().clone(), self.ridge),
            None => OwnMetric::new(&self.features, &self.inputs, self.ridge),
        }
    }
}

impl WorkedOut {
    /// The features of the sketches that devices with these bandwidths publish; `None` if inputs of this shape do not allow them.
    pub(super) fn features(
        &self,
        shape: Shape,
        seed: u64,
        settings: &sketch::Settings,
        bandwidths: &[Option<f64>],
    ) -> Option<Arc<Features>> {
        let (embedding, count) = (settings.embedding, settings.features);
        let of = FeaturesOf { shape, embedding, count, bandwidth: agree(bandwidths), seed };
        let mut last = self.features.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, features)) = &*last
            && *known == of
        {
            return Some(features.clone());
        }
        let features = agreed_features(bandwidths, shape, embedding, count, seed).ok()?;
        Some(last.insert((of, Arc::new(features))).1.clone())
    }

    /// The metric of these inputs, or of the data behind what the device publishes.
    pub(super) fn metric(
        &self,
        features: Arc<Features>,
        inputs: &Arc<[f32]>,
        behind: Option<&Arc<PublishedData>>,
        ridge: f64,
    ) -> Arc<OwnMetric> {
        let of = MetricOf { features, inputs: inputs.clone(), behind: behind.cloned(), ridge };
        let mut last = self.metric.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, metric)) = &*last
            && known.is(&of)
        {
            return metric.clone();
        }
        let metric = Arc::new(of.metric());
        last.insert((of, metric)).1.clone()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_what_would_be_worked_out_again() {
        let shape = Shape { channels: 1, height: 1, width: 3 };
        let settings = sketch::Settings::means(shape);
        let known = WorkedOut::default();
        let features = |seed: u64, width: f64| {
            known.features(shape, seed, &settings, &[Some(width), None, Some(width)]).unwrap()
        };
        let first = features(1, 2.0);
        assert!(Arc::ptr_eq(&first, &features(1, 2.0)));
        for (seed, width) in [(2, 2.0), (1, 3.0), (1, 2.0)] {
            let (embedding, count) = (settings.embedding, settings.features);
            let alone = agreed_features(&[Some(width)], shape, embedding, count, seed).unwrap();
            assert_eq!(*features(seed, width), alone);
        }
        let inputs =
            |from: f32| -> Arc<[f32]> { (0..60).map(|k| (from + k as f32).sin()).collect() };
        let (one, other) = (inputs(0.0), inputs(0.5));
        let metric =
            |inputs: &Arc<[f32]>, ridge: f64| known.metric(first.clone(), inputs, None, ridge);
        let of_one = metric(&one, 0.1);
        assert!(Arc::ptr_eq(&of_one, &metric(&one, 0.1)));
        for (inputs, ridge) in [(&other, 0.1), (&one, 0.2), (&one, 0.1)] {
            let alone = OwnMetric::new(&first, inputs, ridge);
            assert_eq!(format!("{:?}", metric(inputs, ridge)), format!("{alone:?}"));
        }
    }
}
