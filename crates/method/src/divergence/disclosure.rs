//! What devices that measure give away to each other, and when a device refuses to.
//!
//! A device's samples are unknowns, and every number that it publishes is an equation for them. Means and covariances of F features
//! are F(F+3)/2 equations: another member solves them for hundreds of samples. Means alone are F. They are refused where they are
//! not far fewer than what stands behind them; `crates/protocol/tests/memory/reconstruction.rs` attacks both. Several
//! publications count together, by the [leverage](super::leverage) that they give a sample.

use stlf_data::Shape;
use stlf_planning::error::Error;

use super::Settings;
use super::sketch;

/// The sentence by which a user accepts what all estimators but means disclose.
pub const ACCEPTED: &str = "others can rebuild my samples";

/// The least number of input numbers behind every number that is published.
const NUMBERS_BEHIND_ONE: usize = 10;

/// The largest number of numbers that a sample counts for. A picture has hundreds of pixels, but an attacker who knows what such pictures look like needs
/// to learn far fewer numbers to draw it.
const NUMBERS_OF_A_SAMPLE: usize = 10;

/// Checks that a device with this many inputs may publish what an estimator asks for. `accepted` says that its user accepts, in the words of
/// [`ACCEPTED`], that others can rebuild them.
///
/// # Errors
/// Says what others could rebuild, and what to do instead.
pub fn check(
    settings: &Settings,
    shape: Shape,
    samples: usize,
    accepted: bool,
) -> Result<(), Error> {
    if accepted {
        return Ok(());
    }
    match settings {
        Settings::Sketch(settings) if !settings.publishes_covariance() => {
            check_means(settings, shape, samples)
        }
        Settings::Sketch(_) | Settings::Discriminant(_) => Err(needs_consent(
            "it publishes covariances, from which every other member can reconstruct samples of this device",
        )),
        Settings::Classifier(_) => Err(needs_consent(
            "it publishes networks trained on this device's inputs, which others can search for samples",
        )),
    }
}

/// The most numbers that all publications without noise may tell about one sample of this shape. One publication of m means of n samples tells m/n; several
/// tell m times the sample's [leverage](super::leverage).
pub fn most_told(shape: Shape) -> f64 {
    numbers_of_a_sample(shape) as f64 / NUMBERS_BEHIND_ONE as f64
}

fn numbers_of_a_sample(shape: Shape) -> usize {
    shape.len().clamp(1, NUMBERS_OF_A_SAMPLE)
}

fn needs_consent(message: &str) -> Error {
    Error::field("divergence.estimator", message)
        .with_hint(format!("use estimator = \"means\", or add accept = \"{ACCEPTED}\""))
}

fn check_means(settings: &sketch::Settings, shape: Shape, samples: usize) -> Result<(), Error> {
    // Noise hides every single sample (differential privacy).
    if settings.privacy_of(samples as u64).is_some() {
        return Ok(());
    }
    let of_a_sample = numbers_of_a_sample(shape);
    let needed = (NUMBERS_BEHIND_ONE * settings.features).div_ceil(of_a_sample);
    if samples >= needed {
        return Ok(());
    }
    let features = settings.features;
    let noun = if samples == 1 { "sample" } else { "samples" };
    let message = format!(
        "others could reconstruct {samples} {noun} from {features} published means of them"
    );
    let possible = samples * of_a_sample / NUMBERS_BEHIND_ONE / 2 * 2;
    let hint = match possible {
        0 => format!("a device needs at least {needed} samples, or noise (divergence.privacy)"),
        _ => format!(
            "a device needs at least {needed} samples, or set divergence.features = {possible} or fewer on all devices, or noise \
             (divergence.privacy)"
        ),
    };
    Err(Error::field("divergence.features", message).with_hint(hint))
}

#[cfg(test)]
mod tests {
    use super::super::{classifier, discriminant};
    use super::*;

    const TABLE: Shape = Shape { channels: 1, height: 1, width: 4 };
    const PICTURE: Shape = Shape::grey(28);

    fn means(features: usize) -> Settings {
        Settings::Sketch(sketch::Settings { features, ..sketch::Settings::means(PICTURE) })
    }

    #[test]
    fn means_need_far_more_data_than_numbers() {
        for (shape, samples, fine) in
            [(TABLE, 159, false), (TABLE, 160, true), (PICTURE, 63, false), (PICTURE, 64, true)]
        {
            let found = check(&means(64), shape, samples, false);
            assert_eq!(found.is_ok(), fine, "{shape} {samples}");
            assert_eq!(64.0 / samples as f64 <= most_told(shape), fine, "{shape} {samples}");
        }
        let refused = check(&means(64), PICTURE, 9, false).unwrap_err().to_string();
        assert!(refused.contains("reconstruct 9 samples from 64"), "{refused}");
        assert!(check(&means(8), PICTURE, 9, false).is_ok());
        let noisy = sketch::Settings { privacy_required: true, ..sketch::Settings::means(PICTURE) };
        assert!(check(&Settings::Sketch(noisy), PICTURE, 1, false).is_ok());
    }

    #[test]
    fn everything_else_needs_consent() {
        for settings in [
            Settings::Discriminant(discriminant::Settings::default()),
            Settings::Sketch(sketch::Settings::default()),
            Settings::Classifier(classifier::Settings::default()),
        ] {
            let refused = check(&settings, PICTURE, 100_000, false).unwrap_err();
            let hint = refused.hint().unwrap_or_default();
            assert!(hint.contains(ACCEPTED), "{hint}");
            assert!(check(&settings, PICTURE, 1, true).is_ok());
        }
    }
}
