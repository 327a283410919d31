//! What a device has published with noise, and how much of its privacy that spent.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use stlf_method::divergence::gaussian_mechanism::{composed, epsilon};
use stlf_method::divergence::sketch::Sketch;

use crate::identity::{hex, unhex};
use crate::publication_record::Record;

const FORMAT: &str = "stlf-privacy/1";

/// Something that a device publishes with noise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Publication {
    /// By which it is known again. Only the device itself can compute it, so that it tells nobody else anything.
    id: String,
    /// How far one sample moves it at most, in standard deviations of its noise.
    ratio: f64,
    /// Of the last one, what was published, so that it can be published again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    means: Option<Published>,
}

/// Means with noise, as everyone has seen them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Published {
    /// What their features follow from, hashed.
    features: String,
    samples: u64,
    mean: Vec<f32>,
}

impl Published {
    fn sketch(&self) -> Sketch {
        Sketch { samples: self.samples, mean: self.mean.clone(), covariance: None }
    }
}

impl Publication {
    /// With noise that was drawn from this seed, by which it is known again.
    pub fn new(noise_seed: &[u8; 32], ratio: f64) -> Publication {
        // Who reads the one cannot compute the other.
        Publication { id: hex(&Sha256::digest(noise_seed)), ratio, means: None }
    }

    /// The same of these means, whose features follow from what this is a hash of.
    pub(crate) fn of_means(self, features: &[u8], sketch: Sketch) -> Publication {
        let Sketch { samples, mean, .. } = sketch;
        Publication { means: Some(Published { features: hex(features), samples, mean }), ..self }
    }

    /// Returns what was published last, if that was by the same features.
    pub fn instead(&self, before: &Ledger) -> Option<Sketch> {
        let last = before.publications.last()?.means.as_ref()?;
        let are_alike = self.means.as_ref().is_some_and(|own| own.features == last.features);
        are_alike.then(|| last.sketch())
    }

    /// What is published, where it is means.
    pub fn sketch(&self) -> Option<Sketch> {
        Some(self.means.as_ref()?.sketch())
    }

    fn is_one(&self) -> bool {
        let is_ratio = self.ratio > 0.0 && self.ratio.is_finite();
        is_ratio && unhex(&self.id).is_some_and(|bytes| bytes.len() == 32)
    }
}

/// Everything that a device has published with noise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    format: String,
    publications: Vec<Publication>,
    /// What was published besides, which has a record of its own.
    #[serde(skip)]
    besides: Besides,
}

/// Means that a device has published with base noise alone, at other times.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Besides {
    /// The number of different publications.
    publications: usize,
    /// How far one sample moves all of them together at most, in standard deviations of their noise.
    ratio: f64,
}

impl Default for Ledger {
    fn default() -> Ledger {
        let besides = Besides::default();
        Ledger { format: FORMAT.to_owned(), publications: Vec::new(), besides }
    }
}

/// A publication would spend more than a device may.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error(
    "publishing this device's data as they are now would spend ε = {after:.2} in all, and the budget is {budget}; so far it \
     has spent {spent:.2}"
)]
pub struct Overspent {
    /// ε that is spent.
    pub spent: f64,
    /// ε that would be.
    pub after: f64,
    /// ε that may be.
    pub budget: f64,
}

impl Ledger {
    /// Reads a ledger.
    ///
    /// # Errors
    /// Says why these bytes are none.
    pub fn read(bytes: &[u8]) -> Result<Ledger, String> {
        let ledger: Ledger = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
        if ledger.format != FORMAT {
            return Err(format!("this is {:?}, not {FORMAT:?}", ledger.format));
        }
        let ids: BTreeSet<&str> = ledger.publications.iter().map(|p| p.id.as_str()).collect();
        let are_ones = ledger.publications.iter().all(Publication::is_one);
        match are_ones && ids.len() == ledger.publications.len() {
            true => Ok(ledger),
            false => Err("a publication is none, or is there twice".to_owned()),
        }
    }

    /// The number of different publications.
    pub fn publications(&self) -> usize {
        self.publications.len()
    }

    /// The same of a device that has published this besides, which spends too.
    pub fn besides(self, record: &Record) -> Ledger {
        let besides = Besides { publications: record.publications(), ratio: record.ratio() };
        Ledger { besides, ..self }
    }

    /// The number of different publications that it does not list itself, and that spent too.
    pub fn publications_besides(&self) -> usize {
        self.besides.publications
    }

    /// The ε that all publications together spent at this δ, those [besides](Ledger::besides) among them.
    pub fn spent(&self, delta: f64) -> f64 {
        let ratios = self.publications.iter().map(|p| p.ratio);
        epsilon(composed(ratios.chain([self.besides.ratio])), delta)
    }

    /// The ledger with one more publication. The same one again spends nothing.
    ///
    /// # Errors
    /// It would spend more at this δ than the budget has.
    pub fn with(
        &self,
        publication: Publication,
        delta: f64,
        budget: Option<f64>,
    ) -> Result<Ledger, Overspent> {
        let mut ledger = self.clone();
        if self.publications.iter().any(|known| known.id == publication.id) {
            return Ok(ledger);
        }
        ledger.publications.iter_mut().for_each(|earlier| earlier.means = None);
        ledger.publications.push(publication);
        let (spent, after) = (self.spent(delta), ledger.spent(delta));
        match budget.filter(|&budget| after > budget) {
            Some(budget) => Err(Overspent { spent, after, budget }),
            None => Ok(ledger),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stlf_method::divergence::gaussian_mechanism::ratio;

    use super::*;

    const DELTA: f64 = 1e-5;

    fn publication(id: u8, ratio: f64) -> Publication {
        Publication::new(&[id; 32], ratio)
    }

    #[test]
    fn different_publications_add_up_and_the_same_one_does_not() {
        let one = ratio(1.0, DELTA);
        let mut ledger = Ledger::default();
        assert_eq!((ledger.spent(DELTA), ledger.publications()), (0.0, 0));
        for id in [1, 2, 3, 2, 1] {
            ledger = ledger.with(publication(id, one), DELTA, None).unwrap();
        }
        assert_eq!(ledger.publications(), 3);
        assert!((ledger.spent(DELTA) - epsilon(3f64.sqrt() * one, DELTA)).abs() < 1e-9);
        assert!(ledger.spent(DELTA) > 1.7 && ledger.spent(DELTA) < 3.0);
    }

    #[test]
    fn means_with_base_noise_before_are_spent_too() {
        // 64 means of 2,399 samples: μ = 2√(63·64/2399). The table in docs/privacy.md has what that spends.
        let before =
            |samples: f64| Besides { publications: 1, ratio: 2.0 * (63.0 * 64.0 / samples).sqrt() };
        for (samples, expected) in [(2_399.0, 13.9), (500.0, 39.7)] {
            let ledger = Ledger { besides: before(samples), ..Ledger::default() };
            let one = publication(1, ratio(1.0, DELTA));
            let after = ledger.with(one.clone(), DELTA, None).unwrap();
            assert!((after.spent(DELTA) - expected).abs() < 0.05, "{}", after.spent(DELTA));
            assert_eq!((after.publications(), after.publications_besides()), (1, 1));
            assert!(ledger.with(one, DELTA, Some(3.0)).is_err());
            // Each file has its own.
            let text = serde_json::to_string(&after).unwrap();
            assert!((Ledger::read(text.as_bytes()).unwrap().spent(DELTA) - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn a_budget_is_kept_and_what_is_published_already_stays_allowed() {
        let one = ratio(1.0, DELTA);
        let ledger = Ledger::default().with(publication(1, one), DELTA, Some(1.5)).unwrap();
        let refused = ledger.with(publication(2, one), DELTA, Some(1.2)).unwrap_err();
        assert!((refused.spent - 1.0).abs() < 1e-6 && refused.after > 1.2, "{refused}");
        assert_eq!(ledger.with(publication(1, one), DELTA, Some(0.5)).unwrap(), ledger);
    }

    #[test]
    fn what_was_published_last_can_be_published_again_by_the_same_features() {
        let sketch = |x: f32| Sketch { samples: 9, mean: vec![x, 0.1], covariance: None };
        let of = |id: u8, features: u8| {
            publication(id, 0.3).of_means(&[features], sketch(f32::from(id)))
        };
        let mut ledger = Ledger::default();
        assert_eq!(of(1, 7).instead(&ledger), None);
        for id in 1..=2 {
            ledger = ledger.with(of(id, 7), DELTA, None).unwrap();
        }
        let text = serde_json::to_string(&ledger).unwrap();
        assert_eq!(text.matches("mean\"").count(), 1, "{text}");
        let ledger = Ledger::read(text.as_bytes()).unwrap();
        assert!(ledger.with(of(3, 7), DELTA, Some(0.1)).is_err());
        assert_eq!(of(3, 7).instead(&ledger), Some(sketch(2.0)));
        assert_eq!(of(3, 8).instead(&ledger), None);
    }

    #[test]
    fn what_is_no_ledger_is_never_an_empty_one() {
        let good = Ledger::default().with(publication(1, 0.3), DELTA, None).unwrap();
        let text = serde_json::to_string(&good).unwrap();
        assert_eq!(Ledger::read(text.as_bytes()), Ok(good));
        let twice = text
            .replace("]", &format!(",{}]", &text[text.find("[{").unwrap() + 1..text.len() - 2]));
        for bad in [
            "",
            "{}",
            "[]",
            &text[..text.len() - 1],
            &twice,
            &text.replace("0.3", "-0.3"),
            &text.replace("0.3", "1e999"),
            &text.replace("0.3", "0"),
            &text.replace("/1", "/2"),
            &text.replace("\"id\":\"", "\"id\":\"00"),
        ] {
            assert!(Ledger::read(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn the_order_of_publications_does_not_matter_and_each_spends(ratios in prop::collection::vec(0.01..2.0f64, 1..6)) {
            let of = |ratios: &[f64]| {
                let add = |ledger: Ledger, (id, &ratio): (usize, &f64)| {
                    ledger.with(publication(id as u8, ratio), DELTA, None).unwrap()
                };
                ratios.iter().enumerate().fold(Ledger::default(), add).spent(DELTA)
            };
            let reversed: Vec<f64> = ratios.iter().rev().copied().collect();
            prop_assert!((of(&ratios) - of(&reversed)).abs() < 1e-9 * of(&ratios));
            prop_assert!(of(&ratios) > of(&ratios[1..]));
        }
    }
}
