//! What can be set about FADA.

use std::ops::Bound::{Included, Unbounded};

use stlf_learn::Descent;

use stlf_planning::error::{Error, Range};

/// How FADA's networks are trained, and which of its parts take part.
///
/// | name | default | meaning | range |
/// |---|---|---|---|
/// | `features` | 64 | numbers that the generator makes of an input; half of them domain-invariant | even, ≥ 2 |
/// | `rounds` | 2 | how often the target takes the sources' updates | ≥ 1 |
/// | `steps` | 600 | steps of each source in a round | ≥ 1 |
/// | `descent` | batch 10, rate 0.01, momentum 0.9 | of every network | see [`Descent`] |
/// | `align` | true | adversarial alignment by a domain identifier | |
/// | `align_weight` | 0.1 | of its reversed gradient | ≥ 0 |
/// | `disentangle` | true | class identifier, mutual information and reconstruction | |
/// | `disentangle_weight` | 0.1 | of their gradients | ≥ 0 |
/// | `attention` | true | weights by the gain in clustering; else all sources weigh the same | |
/// | `clusters` | as many as classes | k of k-means | ≥ 1 |
/// | `cluster_samples` | 500 | how many of the target's samples are clustered, at most | ≥ 1 |
/// | `temperature` | 0.05 | gains are divided by it before the softmax; lower is sharper | > 0 |
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Numbers that the generator makes of an input; half of them domain-invariant.
    pub features: usize,
    /// How often the target takes the sources' updates.
    pub rounds: usize,
    /// Steps of each source in a round.
    pub steps: usize,
    /// The settings of a step, for every network.
    pub descent: Descent,
    /// Adversarial alignment by a domain identifier.
    pub align: bool,
    /// The weight of the domain identifier's reversed gradient, at least 0.
    pub align_weight: f32,
    /// Class identifier, mutual information and reconstruction.
    pub disentangle: bool,
    /// The weight of their gradients, at least 0.
    pub disentangle_weight: f32,
    /// Weights by the gain in clustering; else all sources weigh the same.
    pub attention: bool,
    /// k of k-means; as many as there are classes, if not given.
    pub clusters: Option<usize>,
    /// How many of the target's samples are clustered, at most.
    pub cluster_samples: usize,
    /// Gains are divided by it before the softmax.
    pub temperature: f64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            features: 64,
            rounds: 2,
            steps: 600,
            descent: Descent { momentum: 0.9, ..Descent::default() },
            align: true,
            align_weight: 0.1,
            disentangle: true,
            disentangle_weight: 0.1,
            attention: true,
            clusters: None,
            cluster_samples: 500,
            temperature: 0.05,
        }
    }
}

impl Settings {
    /// That all settings are within their ranges.
    ///
    /// # Errors
    /// Names the first that is not.
    pub fn check(&self) -> Result<(), Error> {
        let named = |name: &str| format!("fada.{name}");
        for (name, count) in [
            ("rounds", self.rounds),
            ("steps", self.steps),
            ("clusters", self.clusters.unwrap_or(1)),
            ("cluster-samples", self.cluster_samples),
        ] {
            Range::AT_LEAST_ONE.check(count as f64, || named(name))?;
        }
        let even = Range::new(Included(2.0), Unbounded).even();
        even.check(self.features as f64, || named("features"))?;
        let weight = Range::new(Included(0.0), Unbounded);
        weight.check(self.align_weight.into(), || named("align-weight"))?;
        weight.check(self.disentangle_weight.into(), || named("disentangle-weight"))?;
        Range::ABOVE_ZERO.check(self.temperature, || named("temperature"))?;
        self.descent.check().map_err(|e| Error::other("fada", e.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_out_of_range_are_named() {
        let refused = |settings: Settings| settings.check().unwrap_err().to_string();
        let good = Settings::default();
        assert_eq!(good.check(), Ok(()));
        assert_eq!(refused(Settings { steps: 0, ..good }), "fada.steps: must be at least 1");
        assert_eq!(refused(Settings { features: 3, ..good }), "fada.features: 3 is not even");
        let cold = Settings { temperature: 0.0, ..good };
        assert_eq!(refused(cold), "fada.temperature: 0 is not above 0");
        let astray = Settings { align_weight: f32::NAN, ..good };
        assert!(refused(astray).starts_with("fada.align-weight: NaN"));
        let descent = Descent { batch: 0, ..good.descent };
        assert!(refused(Settings { descent, ..good }).starts_with("fada: batch"));
    }
}
