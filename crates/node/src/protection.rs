//! What protects the samples behind what a device publishes, for people and programs.

use serde::{Deserialize, Serialize};
#[cfg(feature = "network")]
use stlf_data::{Shape, features::Scale};
use stlf_method::divergence::capacity::MOST_BITS;
#[cfg(feature = "network")]
use stlf_method::divergence::{Settings, disclosure};
use stlf_planning::number_format::counted;
#[cfg(feature = "network")]
use stlf_protocol::privacy_ledger::Ledger;

/// What is said of a device whose divergences are not limited, since its user accepts that.
const UNLIMITED: &str = "; tells divergences without limit (accepted)";

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// What protects the samples behind what a device publishes to measure divergences. `docs/privacy.md` says what each means.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "level", rename_all = "kebab-case")]
pub enum Protection {
    /// Noise, with a theorem: (ε, δ)-differential privacy.
    Noise {
        /// ε of each publication.
        epsilon: f64,
        /// δ, at which everything spent is counted.
        delta: f64,
        /// ε that all publications together have spent.
        spent: f64,
        /// The number of different publications.
        publications: usize,
        /// The number of those before them with base noise alone, which spent too.
        #[serde(default, skip_serializing_if = "is_zero")]
        with_base_noise: usize,
        /// ε that may be spent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget: Option<f64>,
        /// Whether the device scales its inputs by its own rows, which the theorem does not cover.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        own_scale: bool,
        /// The reason why the device refuses to publish its data as they are now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refused: Option<String>,
        /// Whether the device tells divergences as often as somebody publishes new means, as its user accepts.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unlimited_replies: bool,
    },
    /// Base noise alone, so that a mean tells a few bits at most, and far fewer means than numbers behind them.
    NotInvertible {
        /// The number of published means.
        means: usize,
        /// The number of samples behind each.
        samples: usize,
        /// In how many samples the device's data differ from those. They are too few to be published: the difference would give them away.
        #[serde(default)]
        behind: usize,
        /// Whether the device tells divergences as often as somebody publishes new means, as its user accepts.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unlimited_replies: bool,
    },
    /// Nothing: others can rebuild samples, and the user accepts that.
    Accepted,
}

impl Protection {
    /// Returns what protects a device with so many samples, which has published what its ledger says.
    #[cfg(feature = "network")]
    pub fn new(
        settings: &Settings,
        shape: Shape,
        samples: usize,
        ledger: &Ledger,
        budget: Option<f64>,
    ) -> Protection {
        let Settings::Sketch(sketch) = settings else { return Protection::Accepted };
        match sketch.privacy_of(samples as u64) {
            Some(privacy) => Protection::Noise {
                epsilon: privacy.epsilon(),
                delta: privacy.delta(),
                spent: ledger.spent(privacy.delta()),
                publications: ledger.publications(),
                with_base_noise: ledger.publications_besides(),
                budget,
                own_scale: false,
                refused: None,
                unlimited_replies: false,
            },
            None if disclosure::check(settings, shape, samples, false).is_ok() => {
                let (means, unlimited_replies) = (sketch.features, false);
                Protection::NotInvertible { means, samples, behind: 0, unlimited_replies }
            }
            None => Protection::Accepted,
        }
    }

    /// Returns the same for a device that publishes means of so many samples, from which its data differ in so many.
    #[cfg(feature = "network")]
    pub fn of(mut self, published: u64, differing: usize) -> Protection {
        if let Protection::NotInvertible { samples, behind, .. } = &mut self {
            (*samples, *behind) = (published as usize, differing);
        }
        self
    }

    /// Returns the same for a device that scales its inputs in this way.
    #[cfg(feature = "network")]
    pub fn for_inputs(mut self, scale: Scale) -> Protection {
        if let Protection::Noise { own_scale, .. } = &mut self {
            *own_scale = scale.needs_own();
        }
        self
    }

    /// Returns the same for a device that may tell divergences without limit.
    #[cfg(feature = "network")]
    pub fn replying_without_limit(mut self, may: bool) -> Protection {
        if let Protection::Noise { unlimited_replies, .. }
        | Protection::NotInvertible { unlimited_replies, .. } = &mut self
        {
            *unlimited_replies = may;
        }
        self
    }

    /// Returns the same for a device that refuses to publish, for this reason.
    pub fn but_refuses(mut self, reason: String) -> Protection {
        if let Protection::Noise { refused, .. } = &mut self {
            *refused = Some(reason);
        }
        self
    }

    /// Returns it in the format of Prometheus; an empty text without noise.
    pub fn metrics(&self) -> String {
        let Protection::Noise { spent, publications, .. } = self else { return String::new() };
        format!(
            "# HELP stlf_privacy_spent_epsilon Epsilon that all publications together have spent.\n\
             # TYPE stlf_privacy_spent_epsilon gauge\nstlf_privacy_spent_epsilon {spent}\n\
             # HELP stlf_privacy_publications Different publications with noise.\n\
             # TYPE stlf_privacy_publications gauge\nstlf_privacy_publications {publications}\n"
        )
    }
}

impl std::fmt::Display for Protection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Protection::Noise {
                epsilon,
                delta,
                spent,
                publications,
                budget,
                own_scale,
                refused,
                with_base_noise,
                unlimited_replies,
            } => {
                let count = counted(*publications, "publication");
                write!(f, "(ε, δ): ε = {epsilon} per publication, spent {spent:.2}")?;
                if let Some(budget) = budget {
                    write!(f, " of {budget}")?;
                }
                write!(f, " at δ = {delta:e} in {count}")?;
                if *with_base_noise > 0 {
                    write!(f, " and {with_base_noise} with base noise")?;
                }
                if *own_scale {
                    f.write_str("; the device's own scale is not covered")?;
                }
                if *unlimited_replies {
                    f.write_str(UNLIMITED)?;
                }
                match refused {
                    Some(reason) => write!(f, "; refuses: {reason}"),
                    None => Ok(()),
                }
            }
            Protection::NotInvertible { means, samples, behind, unlimited_replies } => {
                let samples = counted(*samples, "sample");
                write!(
                    f,
                    "not invertible: {means} means of {samples}, at most {MOST_BITS} bits each"
                )?;
                if *behind > 0 {
                    let changed = counted(*behind, "sample");
                    write!(f, "; {changed} changed since, too few to publish")?;
                }
                if *unlimited_replies { f.write_str(UNLIMITED) } else { Ok(()) }
            }
            Protection::Accepted => f.write_str("others can rebuild samples (accepted)"),
        }
    }
}

#[cfg(all(test, feature = "network"))]
mod tests {
    use stlf_method::divergence::{discriminant, sketch};

    use super::*;

    #[test]
    fn every_level_says_what_holds() {
        let shape = Shape::grey(28);
        let of = |settings: &Settings, samples| {
            Protection::new(settings, shape, samples, &Ledger::default(), Some(2.0))
        };
        let means = sketch::Settings::means(shape);
        let noisy = means.with(|s| s.privacy_required = true);
        let noise = of(&Settings::Sketch(noisy), 10);
        assert_eq!(
            noise.to_string(),
            "(ε, δ): ε = 1 per publication, spent 0.00 of 2 at δ = 1e-5 in 0 publications"
        );
        assert_eq!(noise.clone().for_inputs(Scale::None), noise);
        let own = noise.clone().for_inputs(Scale::Own).to_string();
        assert_eq!(own, format!("{noise}; the device's own scale is not covered"));
        assert!(noise.metrics().contains("\nstlf_privacy_spent_epsilon 0\n"));
        assert!(noise.but_refuses("spent".to_owned()).to_string().ends_with("; refuses: spent"));
        assert!(of(&Settings::Sketch(means), 3000).to_string().starts_with("(ε, δ): ε = 1"));
        let alone = of(&Settings::Sketch(means), 500);
        assert_eq!(
            alone.to_string(),
            "not invertible: 64 means of 500 samples, at most 3 bits each"
        );
        assert_eq!(alone.metrics(), "");
        let unlimited = alone.clone().replying_without_limit(true).to_string();
        assert_eq!(unlimited, format!("{alone}; tells divergences without limit (accepted)"));
        let behind = alone.of(490, 12).to_string();
        assert!(behind.ends_with(
            "490 samples, at most 3 bits each; 12 samples changed since, too few to publish"
        ));
        for settings in
            [Settings::Sketch(means), Settings::Discriminant(discriminant::Settings::default())]
        {
            assert_eq!(of(&settings, 10), Protection::Accepted);
        }
    }
}
