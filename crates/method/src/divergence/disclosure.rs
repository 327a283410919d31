//! What devices that measure give away to each other, and when a device refuses to.
//!
//! A device's samples are unknowns, and every number that it publishes is an equation for them. Means and covariances of F features
//! are F(F+3)/2 equations: another member solves them for hundreds of samples. Means alone are F, with noise, so that each tells
//! [three bits](super::capacity) at most. They are refused where they are not far fewer than what stands behind them;
//! `crates/protocol/tests/memory/reconstruction.rs` attacks both. Several publications count together, by the [leverage](super::leverage) that they give a
//! sample.

use stlf_data::Shape;
use stlf_planning::error::{Error, Reason};

use super::Settings;
use super::capacity::{MOST_BITS, bits, largest_ratio};
use super::{possible_rows, sketch};

/// The sentence by which a user accepts what all estimators but means disclose.
pub const ACCEPTED: &str = "others can rebuild my samples";

/// The least number of input numbers behind every number that is published. Where each has a bit, as in columns of two values that are equally frequent, three
/// of ten bits are told at most.
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
    let numbers = samples * numbers_of_a_sample(shape);
    check_behind(settings, shape, Behind { samples, numbers, with_repeats: numbers }, accepted)
}

/// The same for these inputs of a device: numbers that are the same in all samples count for nothing, and samples that are there again are [not counted](independent).
///
/// # Errors
/// As those of [`check`].
pub fn check_inputs(
    settings: &Settings,
    shape: Shape,
    inputs: &[f32],
    accepted: bool,
) -> Result<(), Error> {
    check_behind(settings, shape, numbers_behind(inputs, shape), accepted)
}

/// What stands behind what is published.
#[derive(Debug, Clone, Copy, Default)]
struct Behind {
    samples: usize,
    /// The numbers in samples that are [not there again](independent), or the [bits of which ones these are](possible_rows), if that is fewer.
    numbers: usize,
    /// The same where a sample that is there again counts for one number: independent samples may be equal by chance, if there are few values.
    with_repeats: usize,
}

fn numbers_behind(inputs: &[f32], shape: Shape) -> Behind {
    let numbers = shape.len().max(1);
    let samples: Vec<&[f32]> = inputs.chunks_exact(numbers).collect();
    let Some(&first) = samples.first() else { return Behind::default() };
    let varies = |k: &usize| samples.iter().any(|sample| sample[*k] != first[*k]);
    let varying = (0..first.len()).filter(varies).take(NUMBERS_OF_A_SAMPLE).count().max(1);
    let alike = alike(inputs, numbers);
    let times: Vec<usize> = alike.iter().map(|(_, times)| *times).collect();
    let rows: Vec<&[f32]> = alike.into_iter().map(|(row, _)| row).collect();
    let (count, different) = (samples.len(), rows.len());
    let of_which = possible_rows::bits(&rows, &times, NUMBERS_OF_A_SAMPLE as f64);
    Behind {
        samples: count,
        numbers: (independent(inputs, numbers) * varying as f64).min(of_which) as usize,
        with_repeats: different * varying + count - different,
    }
}

/// Each different sample of so many numbers among these inputs, and how often it is there.
fn alike(inputs: &[f32], numbers: usize) -> Vec<(&[f32], usize)> {
    let mut samples: Vec<&[f32]> = inputs.chunks_exact(numbers.max(1)).collect();
    let bits = |sample: &[f32]| sample.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
    samples
        .sort_unstable_by(|a, b| a.iter().map(|x| x.to_bits()).cmp(b.iter().map(|x| x.to_bits())));
    samples.chunk_by(|a, b| bits(a) == bits(b)).map(|alike| (alike[0], alike.len())).collect()
}

/// By how many different samples a mean of these inputs is, each of so many numbers: (Σc)²/Σc² where each is there c times. That is their number if all are there equally
/// often, and near 1 if one is there far more often than all others. The mean of so many independent samples varies as much as one of these inputs.
pub fn independent(inputs: &[f32], numbers: usize) -> f64 {
    let alike = alike(inputs, numbers);
    let sum: f64 = alike.iter().map(|(_, c)| *c as f64).sum();
    let squares: f64 = alike.iter().map(|(_, c)| (*c as f64).powi(2)).sum();
    if squares > 0.0 { sum * sum / squares } else { 0.0 }
}

fn check_behind(
    settings: &Settings,
    shape: Shape,
    behind: Behind,
    accepted: bool,
) -> Result<(), Error> {
    if accepted {
        return Ok(());
    }
    match settings {
        Settings::Sketch(settings) if !settings.publishes_covariance() => {
            check_means(settings, shape, behind)
        }
        Settings::Sketch(_) | Settings::Discriminant(_) => Err(needs_consent(
            "it publishes covariances, from which every other member can reconstruct samples of this device",
        )),
        Settings::Classifier(_) => Err(needs_consent(
            "it publishes networks trained on this device's inputs, which others can search for samples",
        )),
    }
}

/// The most numbers that all publications with base noise alone may tell about one sample of this shape. One publication of m means of n samples tells m/n; several
/// tell m times the sample's [leverage](super::leverage). Of windows that overlap, as many as a reading lies in stand for one.
pub fn most_told(settings: &Settings, shape: Shape) -> f64 {
    numbers_of_a_sample(shape) as f64 / (NUMBERS_BEHIND_ONE * settings.overlap()) as f64
}

/// What all publications with base noise alone may tell together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// The most numbers about one sample ([`most_told`]).
    pub most: f64,
}

impl Limit {
    /// That of samples of this shape.
    pub fn of(settings: &Settings, shape: Shape) -> Limit {
        Limit { most: most_told(settings, shape) }
    }

    /// None: they may tell everything.
    pub fn lifted() -> Limit {
        Limit { most: f64::INFINITY }
    }
}

/// The bits that may be told about so many numbers.
fn bits_of(numbers: usize) -> f64 {
    f64::from(MOST_BITS) * numbers as f64 / NUMBERS_BEHIND_ONE as f64
}

/// The largest ratio μ of what a sample moves to the noise of (ε, δ), of all publications together, with which no sample is told more of than the rule allows.
pub fn most_ratio(settings: &sketch::Settings, shape: Shape) -> f64 {
    largest_ratio(settings.features, bits_of(numbers_of_a_sample(shape)))
}

fn numbers_of_a_sample(shape: Shape) -> usize {
    shape.len().clamp(1, NUMBERS_OF_A_SAMPLE)
}

fn discloses(field: &str, message: impl Into<String>) -> Error {
    Error::new(field, Reason::Discloses { message: message.into() })
}

fn needs_consent(message: &str) -> Error {
    discloses("divergence.estimator", message)
        .with_hint(format!("use estimator = \"means\", or add accept = \"{ACCEPTED}\""))
}

fn check_means(
    settings: &sketch::Settings,
    shape: Shape,
    Behind { samples, numbers, with_repeats }: Behind,
) -> Result<(), Error> {
    if !settings.base_noise {
        let message = "it publishes means without noise, from which others can reconstruct samples of few values";
        return Err(discloses("divergence.privacy", message).with_hint(format!(
            "use privacy = \"base\" or \"auto\", or add accept = \"{ACCEPTED}\""
        )));
    }
    let features = settings.features;
    // Of windows that overlap, as many as a reading lies in have no more numbers than one.
    let numbers = numbers / settings.overlap;
    // Noise of (ε, δ) stands in for the rule where it leaves no more bits than that: three of every ten numbers.
    if let Some(privacy) = settings.privacy_of(samples as u64) {
        if privacy.ratio() > most_ratio(settings, shape) {
            let message = format!(
                "ε = {} with δ = {:e} leaves more than {:.1} bits of a sample",
                privacy.epsilon(),
                privacy.delta(),
                bits_of(numbers_of_a_sample(shape))
            );
            return Err(discloses("divergence.privacy", message).with_hint(
                "choose a smaller ε or δ, fewer features (divergence.features), or privacy = \"base\"",
            ));
        }
        let (apart, noise) = (settings.apart(samples as u64), settings.noise(samples as u64));
        if bits(features, apart, noise) <= bits_of(with_repeats / settings.overlap) {
            return Ok(());
        }
    }
    if numbers >= NUMBERS_BEHIND_ONE * features {
        return Ok(());
    }
    let of_a_sample = numbers_of_a_sample(shape);
    let needed = (NUMBERS_BEHIND_ONE * features * settings.overlap).div_ceil(of_a_sample);
    let noun = if samples == 1 { "sample" } else { "samples" };
    let repeats = match samples >= needed {
        true => ", many of which are the same or have the same few numbers",
        false if settings.overlap > 1 => ", which overlap,",
        false => "",
    };
    let message = format!(
        "others could reconstruct {samples} {noun}{repeats} from {features} published means of them"
    );
    let possible = numbers / NUMBERS_BEHIND_ONE / 2 * 2;
    let hint = match possible {
        0 if samples >= needed => {
            "a device needs more different samples, or noise (divergence.privacy)".to_owned()
        }
        _ if samples >= needed => format!(
            "a device needs more different samples, or set divergence.features = {possible} or fewer on all devices, or noise (divergence.privacy)"
        ),
        0 => format!("a device needs at least {needed} samples, or noise (divergence.privacy)"),
        _ => format!(
            "a device needs at least {needed} samples, or set divergence.features = {possible} or fewer on all devices, or noise \
             (divergence.privacy)"
        ),
    };
    let (present, needed) = (samples as u64, needed as u64);
    let reason = Reason::TooFewSamples { present, needed, message };
    Err(Error::new("divergence.features", reason).with_hint(hint))
}

#[cfg(test)]
mod tests {
    use super::super::Embedding;
    use super::super::privacy::Privacy;
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
            let most = most_told(&means(64), shape);
            assert_eq!(64.0 / samples as f64 <= most, fine, "{shape} {samples}");
        }
        let refused = check(&means(64), PICTURE, 9, false).unwrap_err().to_string();
        assert!(refused.contains("reconstruct 9 samples from 64"), "{refused}");
        assert!(check(&means(8), PICTURE, 9, false).is_ok());
        let noisy = sketch::Settings { privacy_required: true, ..sketch::Settings::means(PICTURE) };
        assert!(check(&Settings::Sketch(noisy), PICTURE, 1, false).is_ok());
    }

    #[test]
    fn windows_that_overlap_count_as_the_readings_that_they_have() {
        let shape = Shape { channels: 1, height: 1, width: 16 };
        let usual = sketch::Settings::means_over(Embedding::Windows, shape);
        let by_stride =
            |stride: usize| sketch::Settings { overlap: 16_usize.div_ceil(stride), ..usual };
        // So many windows, from sixteen readings and a stride for each more.
        let windows = |count: usize, stride: usize| -> Vec<f32> {
            let reading = |at: usize| ((at * 7919) % 2003) as f32;
            (0..count).flat_map(|k| (0..16).map(move |at| reading(k * stride + at))).collect()
        };
        for (stride, least) in [(16, 64), (8, 128), (1, 1_024)] {
            let settings = Settings::Sketch(by_stride(stride));
            for (count, fine) in [(least - 1, false), (least, true)] {
                let found = check_inputs(&settings, shape, &windows(count, stride), false);
                assert_eq!(found.is_ok(), fine, "{count} windows by {stride}: {found:?}");
                assert_eq!(check(&settings, shape, count, false).is_ok(), fine);
            }
            let Limit { most, .. } = Limit::of(&settings, shape);
            assert!((most * least as f64 - 64.0).abs() < 1e-9, "{most}");
        }
        // Their noise is that of as many windows that share nothing.
        let (alone, shared) = (by_stride(16), by_stride(1));
        assert_eq!(shared.noise(1_600), alone.noise(100));
        assert_eq!(shared.ratio(1_600), alone.ratio(100));
        let required = |s| sketch::Settings { privacy_required: true, ..s };
        assert_eq!(required(shared).noise(1_600), required(alone).noise(100));
        let refused = check(&Settings::Sketch(shared), shape, 64, false).unwrap_err().to_string();
        assert!(refused.contains("64 samples, which overlap, from 64"), "{refused}");
    }

    #[test]
    fn noise_stands_in_for_samples_only_where_it_leaves_as_little() {
        let with = |epsilon, delta, shape, samples| {
            let privacy = Some(Privacy::new(epsilon, delta));
            let usual = sketch::Settings::means(shape);
            let settings = sketch::Settings { privacy, privacy_required: true, ..usual };
            check(&Settings::Sketch(settings), shape, samples, false)
        };
        for epsilon in [0.5, 1.0, 4.0, 8.0] {
            for samples in [1, 20, 63, 500] {
                assert!(with(epsilon, 1e-5, PICTURE, samples).is_ok(), "{epsilon} {samples}");
            }
            assert!(with(epsilon, 1e-5, TABLE, 20).is_ok(), "{epsilon}");
        }
        // Weak noise is refused however many samples there are: it would switch off the record of publications too.
        for (epsilon, delta) in [(20.0, 0.99), (1.0, 0.999)] {
            for (shape, samples) in [(PICTURE, 20), (PICTURE, 63), (PICTURE, 500), (TABLE, 20)] {
                let refused = with(epsilon, delta, shape, samples).unwrap_err();
                assert!(
                    refused.hint().is_some() && refused.to_string().contains("bits"),
                    "{refused}"
                );
            }
        }
        // Numbers that are all the same have no bits.
        let privacy = Some(Privacy::new(8.0, 1e-5));
        let weak =
            sketch::Settings { privacy, privacy_required: true, ..sketch::Settings::means(TABLE) };
        let still = vec![1.0; 4 * 8];
        assert!(check_inputs(&Settings::Sketch(weak), TABLE, &still, false).is_err());
    }

    #[test]
    fn samples_that_are_alike_count_little() {
        let check = |rows: &[[f32; 4]], shape, features| {
            check_inputs(&means(features), shape, rows.as_flattened(), false)
        };
        let different = |count: usize| (0..count).map(|k| [0, 1, 2, 3].map(|c| (k * 4 + c) as f32));
        let all: Vec<[f32; 4]> = different(160).collect();
        assert!(check(&all, TABLE, 64).is_ok() && check(&all[1..], TABLE, 64).is_err());
        // Two values in every column: at most sixteen different rows, of which 64 means need forty. All of them, each as often, is one table; some of them can be many.
        let bit = |k: usize, c: usize| (k >> c & 1) as f32;
        let binary =
            |count| (0..count).map(|k| [0, 1, 2, 3].map(|c| bit(k, c))).collect::<Vec<_>>();
        assert!(check(&binary(112), TABLE, 2).is_err());
        let often: Vec<[f32; 4]> = (1..16).flat_map(binary).collect();
        assert!(check(&often, TABLE, 4).is_ok() && check(&often, TABLE, 6).is_err());
        let refused = check(&binary(112), TABLE, 16).unwrap_err().to_string();
        assert!(refused.contains("112 samples, many of which are the same"), "{refused}");
        // Ten times the same is the same, and one that is there often is nearly alone.
        let ten_times = |count: usize| all[..count].repeat(10);
        assert!(check(&ten_times(160), TABLE, 64).is_ok());
        assert!(check(&ten_times(159), TABLE, 64).is_err());
        let one_often = [&all[..], &vec![all[0]; 400]].concat();
        assert!(check(&one_often, TABLE, 8).is_err());
        assert_eq!(independent(ten_times(16).as_flattened(), 4), 16.0);
        assert!(independent(one_often.as_flattened(), 4) < 2.0);
        // A machine that stands still, and a column that never changes.
        let still: Vec<[f32; 4]> = (0..160).map(|k| [(k % 2) as f32; 4]).collect();
        assert!(check(&still, TABLE, 64).is_err());
        let constant: Vec<[f32; 4]> = different(160).map(|[a, b, c, _]| [a, b, c, 7.0]).collect();
        assert!(check(&constant, TABLE, 64).is_err() && check(&constant, TABLE, 48).is_ok());
        assert!(check(&[], TABLE, 2).is_err());
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
