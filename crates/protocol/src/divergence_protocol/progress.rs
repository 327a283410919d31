//! How far measuring is: who is waited for, how much is known, and what came of it.

use super::pair::Pair;
use super::{Estimator, Exchange};
use crate::roster::Place;
use crate::wire::Measured;

impl Exchange {
    /// Returns what this device can say of every other, ascending, once everything is measured.
    pub fn pairs(&self) -> Option<Vec<(Place, Measured)>> {
        match &self.estimator {
            Estimator::Discriminant { measured, .. } | Estimator::Sketch { measured, .. } => {
                measured.clone()
            }
            Estimator::Classifier { pairs, .. } => {
                let pair = |peer| Some((peer, Measured::Errors(pairs.get(&peer)?.errors()?)));
                self.others().map(pair).collect()
            }
        }
    }

    /// Returns those that it waits for.
    pub fn missing(&self) -> Vec<Place> {
        let has = |peer: Place| match &self.estimator {
            Estimator::Discriminant { halves: None, .. } => self.bandwidths.contains_key(&peer),
            Estimator::Discriminant { published, .. } => published.contains_key(&peer),
            Estimator::Sketch { published, .. } => {
                let widths = self.known_bandwidth().is_none();
                match widths && !published.contains_key(&self.own.place) {
                    true => self.bandwidths.contains_key(&peer),
                    false => published.contains_key(&peer),
                }
            }
            Estimator::Classifier { pairs, .. } => {
                pairs.get(&peer).is_some_and(|pair| pair.errors().is_some())
            }
        };
        self.others().filter(|&peer| !has(peer)).collect()
    }

    /// Returns how much others have told so far; what comes again adds nothing.
    pub fn known(&self) -> usize {
        let told = match &self.estimator {
            Estimator::Discriminant { published, .. } => published.len(),
            Estimator::Sketch { published, .. } => published.len(),
            Estimator::Classifier { pairs, .. } => pairs.values().map(Pair::known).sum(),
        };
        self.bandwidths.len() + told
    }
}
