//! `[divergence]`: the estimator, its settings, and who adds noise.

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use stlf_data::Shape;
use stlf_method::divergence::{self, Embedding};
use stlf_planning::error::Range;

use crate::Config;

/// `[divergence]`: how the difference of two devices' data is measured.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Divergence {
    /// `means`: every device publishes few means; `discrepancy`: the same, compared by a third party; `discriminant`: moments of its data, of which a pair's classifier follows; `sketch`:
    /// half of that; `classifier`: the paper's, a network trained by every pair; `published`: the same with the settings of the
    /// paper's published runs. Left out, it is [`Estimator::DEFAULT`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimator: Option<Estimator>,
    /// Real devices: lets them publish more than means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accept: Option<Accepted>,
    /// Discriminant, sketch and means: random features.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub features: Option<usize>,
    /// Means: over which distance of inputs the features vary, where inputs have an unusual scale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<f64>,
    /// Sketch and means: only links from this many of the nearest devices with labels to every device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<usize>,
    /// Classifier: how often a pair averages its models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<usize>,
    /// Classifier: steps on each side between averages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<usize>,
    /// Classifier: how often it is all done, from different first values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeats: Option<usize>,
    /// Means: noise on what leaves a device, for differential privacy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub privacy: Option<Noise>,
}

/// ε that publications of a device spend in all, unless its user says another number: some fifty with ε = 1. Above it the theorem promises little.
const USUAL_BUDGET: f64 = 10.0;

/// `divergence.privacy`: who adds noise to what it publishes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Noise {
    /// `"auto"`: devices with samples enough, so that the noise is small beside what they publish.
    Auto,
    /// `"base"`: nobody adds more than base noise, with which others cannot reconstruct samples.
    Base,
    /// `"none"`: nobody adds any. Others can reconstruct samples of few values, so that devices must accept that.
    None,
    /// `{ epsilon, delta }`: everybody adds noise of this strength.
    Always(Privacy),
}

impl Serialize for Noise {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Noise::Auto => serializer.serialize_str("auto"),
            Noise::Base => serializer.serialize_str("base"),
            Noise::None => serializer.serialize_str("none"),
            Noise::Always(privacy) => privacy.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Noise {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Noise, D::Error> {
        deserializer.deserialize_any(AsWritten)
    }
}

/// Reads [`Noise`] as users write it.
struct AsWritten;

impl<'de> Visitor<'de> for AsWritten {
    type Value = Noise;

    fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("\"auto\", \"base\", \"none\" or { epsilon = 1.0, delta = 1e-5 }")
    }

    fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Noise, E> {
        match word {
            "auto" => Ok(Noise::Auto),
            "base" => Ok(Noise::Base),
            "none" => Ok(Noise::None),
            _ => Err(E::invalid_value(serde::de::Unexpected::Str(word), &self)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Noise, A::Error> {
        Privacy::deserialize(MapAccessDeserializer::new(map)).map(Noise::Always)
    }
}

/// `[divergence.privacy]`: replacing one sample changes the probability of what a device publishes by at most a factor e^ε, up to δ.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Privacy {
    /// ε, above 0 and at most 20.
    pub epsilon: f64,
    /// δ, by how much the probability may change beyond that factor, between 0 and 1.
    pub delta: f64,
    /// Real devices: the largest ε that all publications of this device together may spend. Left out, there is no limit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub budget: Option<f64>,
}

impl From<(f64, f64)> for Noise {
    fn from((epsilon, delta): (f64, f64)) -> Noise {
        Noise::Always(Privacy { epsilon, delta, budget: None })
    }
}

/// What a user accepts, in words that say it: [`divergence::disclosure::ACCEPTED`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Accepted {
    /// Of what other members can do with moments and networks that this device publishes.
    #[serde(rename = "others can rebuild my samples")]
    Disclosure,
}

/// How the difference of data is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// Fisher's discriminant from shared random features.
    Discriminant,
    /// Distance of the moments of shared random features.
    Sketch,
    /// Distance of the means of few shared random features, by each device's own covariance.
    Means,
    /// The same means compared by a third party, who has no covariance to measure by.
    Discrepancy,
    /// The classifier of the paper's Algorithm 1.
    Classifier,
    /// The classifier of the paper's published runs.
    Published,
}

impl Estimator {
    /// Every estimator, in the order of the documentation.
    pub const ALL: [Estimator; 6] = [
        Estimator::Means,
        Estimator::Discrepancy,
        Estimator::Discriminant,
        Estimator::Sketch,
        Estimator::Classifier,
        Estimator::Published,
    ];
    /// The default: others cannot reconstruct samples from it.
    pub const DEFAULT: Estimator = Estimator::Means;

    /// Returns the name that users type.
    pub fn name(self) -> &'static str {
        match self {
            Estimator::Discriminant => "discriminant",
            Estimator::Sketch => "sketch",
            Estimator::Means => "means",
            Estimator::Discrepancy => "discrepancy",
            Estimator::Classifier => "classifier",
            Estimator::Published => "published",
        }
    }
}

impl Config {
    /// How devices with inputs of a shape measure divergences.
    pub fn measuring(&self, shape: Shape) -> divergence::Settings {
        match self.divergence.settings(self.data.embedding(), shape) {
            divergence::Settings::Sketch(settings) => {
                let overlap = self.data.overlap();
                divergence::Settings::Sketch(settings.with(|s| s.overlap = overlap))
            }
            others => others,
        }
    }
}

impl Divergence {
    /// The estimator, the default where none is named.
    pub fn estimator(&self) -> Estimator {
        self.estimator.unwrap_or(Estimator::DEFAULT)
    }

    /// Returns the same settings with this estimator.
    pub fn by(&self, estimator: Estimator) -> Divergence {
        Divergence { estimator: Some(estimator), ..*self }
    }

    /// δ of the noise, where a device adds some.
    pub fn delta(&self) -> f64 {
        match self.privacy {
            Some(Noise::Always(privacy)) => privacy.delta,
            Some(Noise::Auto | Noise::Base | Noise::None) | None => {
                divergence::privacy::Privacy::usual().delta()
            }
        }
    }

    /// The largest ε that all publications of this device together may spend.
    pub fn budget(&self) -> Option<f64> {
        match self.privacy {
            Some(Noise::Always(privacy)) => privacy.budget,
            Some(Noise::Auto | Noise::Base | Noise::None) | None => None,
        }
    }

    /// The largest ε that all publications of this device with noise together spend where the device adds noise of its own accord: then it goes on with its last
    /// means.
    pub fn usual_budget(&self) -> Option<f64> {
        match self.privacy {
            Some(Noise::Auto) | None => Some(USUAL_BUDGET),
            Some(Noise::Always(_) | Noise::Base | Noise::None) => None,
        }
    }

    /// Whether the user accepts that others can reconstruct samples.
    pub fn accepts_disclosure(&self) -> bool {
        self.accept.is_some()
    }

    /// What the estimator takes for inputs of a shape; the classifier takes them as they are.
    pub fn settings(&self, embedding: Embedding, shape: Shape) -> divergence::Settings {
        match self.estimator() {
            Estimator::Discriminant => {
                let default = divergence::discriminant::Settings::default();
                divergence::Settings::Discriminant(default.with(|s| {
                    s.features = self.features.unwrap_or(default.features);
                    s.embedding = embedding;
                }))
            }
            Estimator::Sketch | Estimator::Means | Estimator::Discrepancy => {
                divergence::Settings::Sketch(self.sketch(embedding, shape))
            }
            Estimator::Classifier | Estimator::Published => {
                divergence::Settings::Classifier(self.classifier())
            }
        }
    }

    /// Returns the settings of the sketch, or of the means.
    pub fn sketch(&self, embedding: Embedding, shape: Shape) -> divergence::sketch::Settings {
        use divergence::sketch::Settings;
        let default = match self.estimator() {
            Estimator::Means => Settings::means_over(embedding, shape),
            Estimator::Discrepancy => Settings::discrepancy(embedding, shape),
            _ => Settings::default().with(|s| s.embedding = embedding),
        };
        let (privacy, privacy_required) = match self.privacy {
            None | Some(Noise::Auto) => (default.privacy, default.privacy_required),
            Some(Noise::Base | Noise::None) => (None, false),
            Some(Noise::Always(Privacy { epsilon, delta, .. })) => {
                (Some(divergence::privacy::Privacy::new(epsilon, delta)), true)
            }
        };
        let fixed = self.bandwidth.map(divergence::sketch::Bandwidth::Fixed);
        default.with(|s| {
            s.features = self.features.unwrap_or(default.features);
            s.bandwidth = fixed.unwrap_or(default.bandwidth);
            (s.privacy, s.privacy_required) = (privacy, privacy_required);
            s.base_noise &= self.privacy != Some(Noise::None);
        })
    }

    /// Returns the settings of the classifier, with the usual ones where nothing is said.
    pub fn classifier(&self) -> divergence::classifier::Settings {
        let default = match self.estimator() {
            Estimator::Published => divergence::classifier::Settings::published(),
            _ => divergence::classifier::Settings::default(),
        };
        default.with(|s| {
            s.rounds = self.rounds.unwrap_or(default.rounds);
            s.steps = self.steps.unwrap_or(default.steps);
            s.repeats = self.repeats.unwrap_or(default.repeats);
        })
    }

    /// Settings that are there, but not for this estimator.
    pub fn misplaced(&self) -> Option<String> {
        let estimator = self.estimator();
        let trained = matches!(estimator, Estimator::Classifier | Estimator::Published);
        let of_means = matches!(estimator, Estimator::Means | Estimator::Discrepancy);
        let sketched = of_means || estimator == Estimator::Sketch;
        let given = [
            ("rounds", self.rounds.is_some(), trained, "classifier"),
            ("steps", self.steps.is_some(), trained, "classifier"),
            ("repeats", self.repeats.is_some(), trained, "classifier"),
            ("nearest", self.nearest.is_some(), sketched, "means"),
            ("privacy", self.privacy.is_some(), of_means, "means"),
            ("bandwidth", self.bandwidth.is_some(), sketched, "means"),
            ("features", self.features.is_some(), !trained, "means"),
        ];
        let wrong = given.into_iter().find(|(_, is_given, fits, _)| *is_given && !fits);
        wrong.map(|(key, _, _, estimator)| format!("{key} is only for estimator = \"{estimator}\""))
    }

    /// Checks that all settings are in their ranges.
    pub(crate) fn check(&self) -> Result<(), stlf_planning::Error> {
        if let Some(budget) = self.budget() {
            Range::ABOVE_ZERO.check(budget, || "divergence.privacy.budget")?;
        }
        // Of any shape: none makes a setting wrong.
        match self.settings(Embedding::Inputs, Shape::grey(28)) {
            divergence::Settings::Classifier(settings) => settings.check(),
            divergence::Settings::Discriminant(settings) => settings.check(),
            divergence::Settings::Sketch(settings) => settings.check(),
        }
    }
}
