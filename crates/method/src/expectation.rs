//! The accuracy that a target may expect of what it received, though it has no label to measure it by.
//!
//! A mixture says how sure it is of every sample. Its *doubt* is the mean of one minus the highest probability: the error that a
//! calibrated mixture would have. Models are not calibrated, but how far they are off is much the same all over a fleet. So it is
//! measured where labels are: each sender tries the model that it sends on labels that it held out, and each source that a
//! model is handed to tries it on all its labels before it trains, when the model has not seen that device, like a target. A [`Trial`] is
//! the result of that, three numbers that go along with the model.
//!
//! On the scale of log odds, the error is taken to be the doubt plus a *bias* that the fleet's devices have in common, plus what is a
//! device's own. The common bias is normal given the trials (Gelman et al., Bayesian Data Analysis, 3rd ed., section 5.4), with a weak
//! prior; a device's own has longer tails. Together they give the errors among the target's samples an interval. docs/expectation.md
//! compares intervals with the truth on all fleets that we have.

mod guessing;
mod trial;
mod words;

use serde::{Deserialize, Serialize};
use stlf_learn::evaluate::{Predictions, likeliest};

pub use self::guessing::{Guessing, most_common};
use self::trial::bias_of_all;
pub use self::trial::{Trial, Tried};
pub use self::words::Warning;

/// The probability that the interval holds, if the model of it does.
pub const LEVEL: f64 = 0.9;

/// Some devices are unlike all others, so that the bias of a device has the tails of Student's t with so few degrees of freedom.
const FREEDOM: f64 = 4.0;

/// Its distribution is looked at in so many steps to both sides, each a tenth of a deviation.
const STEPS: i32 = 120;

/// The bias of models without any trial: networks are too sure of themselves. A mean and a standard deviation.
const PRIOR_BIAS: (f64, f64) = (0.3, 0.5);

/// How far the bias at a model's own device, where it was trained, is from that at others: a standard deviation.
const OWN_TO_OTHERS: f64 = 0.5;

/// How far one device's bias is from another's: the standard deviation without any trial, at divergence 0, and what it has more for each
/// unit of divergence between the target and its senders.
const DEVICES_APART: (f64, f64) = (0.3, 0.3);

/// As how many trials the prior of [`DEVICES_APART`] counts.
const APART_COUNTS: f64 = 2.0;

/// Devices are further apart than trials show: sources try a model on its first way, and what targets get has been trained on since and is
/// surer of itself. So much more is their variance.
const BEYOND_TRIALS: f64 = 3.0;

/// Several models that disagree are less sure together than they err: by so much for each factor of e in their number.
const DISAGREEMENT: f64 = 0.4;

/// No doubt counts as less, or as more than one minus it.
const LEAST_DOUBT: f64 = 1e-3;

/// A rate of errors that was counted on fewer labels says little of a model.
const LEAST_LABELS: u64 = 10;

/// No error rate is nearer to one than this.
const CERTAIN: f64 = 1e-12;

/// A trial that shows a bias so many deviations below that of models without any trial is not believed: hardly anybody errs so much less than
/// it doubts. At senders, and at sources on routes, where honest trials are worth more and a liar can spoil the model itself.
const UNBELIEVABLE: (f64, f64) = (2.0, 4.0);

/// A sender's own trial says nothing of a target that doubts its samples by more than so much, in log odds, than the sender claims to err.
const UNLIKE: f64 = 2.5;

/// One model that a target received, and how it did elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    /// Its weight in the mixture. One without weight counts for nothing, and neither do its trials.
    pub weight: f64,
    /// d̂ between the target and its sender.
    pub divergence: f64,
    /// The trials that came with it.
    pub tried: Tried,
}

/// The accuracy that a target may expect, with an interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// The median.
    pub accuracy: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// What an expected accuracy rests on. Numbers but for the doubt are on the scale of log odds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Basis {
    /// The doubt of what the target ends with about its samples.
    pub doubt: f64,
    /// The bias that the fleet's devices have in common, its mean given the trials.
    pub bias: f64,
    /// Its standard deviation.
    pub bias_deviation: f64,
    /// The standard deviation of what is a device's own.
    pub own_deviation: f64,
    /// How many models are mixed: 1 / Σ α².
    pub models: f64,
    /// The number of trials at senders that count.
    pub at_senders: usize,
    /// The number of trials at sources on routes that count.
    pub on_routes: usize,
    /// The labels of all trials, counted or not.
    pub labels: u64,
}

/// The mean of one minus the highest probability; nothing without samples.
pub fn doubt(predictions: &Predictions) -> Option<f64> {
    let doubts = predictions.probabilities().map(|p| 1.0 - f64::from(likeliest(p).1));
    (!predictions.is_empty()).then(|| doubts.sum::<f64>() / predictions.len() as f64)
}

/// The accuracy that a target may expect of these predictions for its samples, and what that rests on; nothing without a model or a sample.
pub fn expected(predictions: &Predictions, received: &[Received]) -> Option<(Expected, Basis)> {
    let basis = Basis::of(doubt(predictions)?, received)?;
    Some((basis.expected(predictions.len()), basis))
}

impl Basis {
    /// Of a target that has this doubt about its samples, with what it received; nothing without a model.
    pub fn of(doubt: f64, received: &[Received]) -> Option<Basis> {
        let received: Vec<&Received> = received.iter().filter(|r| r.weight > 0.0).collect();
        let total: f64 = received.iter().map(|r| r.weight).sum();
        if received.is_empty() {
            return None;
        }
        let share = |r: &Received| r.weight / total;
        let divergence: f64 = received.iter().map(|r| share(r) * r.divergence).sum();
        let models = 1.0 / received.iter().map(|r| share(r).powi(2)).sum::<f64>();
        let labels = labels(&received);
        let on_routes = on_routes(&received);
        let apart = devices_apart(divergence, &on_routes);
        let at_senders: Vec<Trial> = (received.iter().filter_map(|r| r.tried.at_sender))
            .filter(|trial| is_believable(trial, OWN_TO_OTHERS, UNBELIEVABLE.0))
            .filter(|trial| log_odds_of_doubt(doubt) - trial.log_odds_of_error() <= UNLIKE)
            .collect();
        let prior = PRIOR_BIAS.1.powi(2);
        let (mut precision, mut sum) = (1.0 / prior, PRIOR_BIAS.0 / prior);
        let mut see = |(bias, variance): (f64, f64), more: f64| {
            precision += 1.0 / (variance + more);
            sum += bias / (variance + more);
        };
        if let Some(shown) = bias_of_all(&at_senders) {
            see(shown, OWN_TO_OTHERS.powi(2));
        }
        on_routes.iter().for_each(|trial| see(trial.bias(), apart));
        Some(Basis {
            doubt,
            bias: sum / precision,
            bias_deviation: (1.0 / precision).sqrt(),
            own_deviation: apart.sqrt(),
            models,
            at_senders: at_senders.len(),
            on_routes: on_routes.len(),
            labels,
        })
    }

    /// Whether so few labels tried the models that nobody can say what to expect. The bias without trials is that of models of many labels: one of
    /// two labels is as sure of itself, and may be right or wrong about everything.
    pub fn has_too_few_labels(&self) -> bool {
        self.labels < LEAST_LABELS
    }

    /// What a target is told that may expect this, whose samples are of so many classes; whether no source is near it.
    pub fn warning(
        &self,
        expected: &Expected,
        classes: usize,
        is_stranger: bool,
    ) -> Option<Warning> {
        match self.has_too_few_labels() {
            true => Some(Warning::TooFewLabels),
            false => expected.warning(classes, is_stranger),
        }
    }

    /// The accuracy that the target may expect on so many samples.
    pub fn expected(&self, samples: usize) -> Expected {
        let middle = log_odds_of_doubt(self.doubt) + self.bias - DISAGREEMENT * self.models.ln();
        let deviation = self.bias_deviation.hypot(self.own_deviation);
        let tail = (1.0 - LEVEL) / 2.0;
        let [most, fewest] =
            [1.0 - tail, tail].map(|level| errors_below(level, samples.max(1), middle, deviation));
        let accuracy = 1.0 - from_log_odds(middle);
        Expected { accuracy, low: (1.0 - most).min(accuracy), high: (1.0 - fewest).max(accuracy) }
    }
}

/// Whether a trial can be what it says, at a device whose bias has this deviation from the common one. A source that claims to err far less than
/// it doubts cannot make a target expect more.
fn is_believable(trial: &Trial, apart: f64, deviations: f64) -> bool {
    let (bias, variance) = trial.bias();
    let deviation = (variance + apart.powi(2) + PRIOR_BIAS.1.powi(2)).sqrt();
    bias >= PRIOR_BIAS.0 - deviations * deviation
}

/// The smallest share of so many samples that errors stay within with this probability, if the log odds of an error have this mean and deviation and
/// the tails of Student's t.
fn errors_below(level: f64, samples: usize, mean: f64, deviation: f64) -> f64 {
    let places: Vec<f64> = (-STEPS..=STEPS).map(|step| 0.1 * f64::from(step)).collect();
    let density = |z: &f64| (1.0 + z * z / FREEDOM).powf(-0.5 * (FREEDOM + 1.0));
    let weights: Vec<f64> = places.iter().map(density).collect();
    let total: f64 = weights.iter().sum();
    // Of an error that is certain to the last bit, the log odds below would be infinite.
    let error = |z: &f64| from_log_odds(mean + deviation * z).min(1.0 - CERTAIN);
    let errors: Vec<f64> = places.iter().map(error).collect();
    // ln of the probability of as many errors as there were rounds, for each error rate, starting with none.
    let mut exactly: Vec<f64> = errors.iter().map(|e| samples as f64 * (-e).ln_1p()).collect();
    let mut within = 0.0;
    for count in 0..samples {
        let of_all = exactly.iter().zip(&weights).map(|(ln, weight)| weight * ln.exp());
        within += of_all.sum::<f64>() / total;
        if within >= level {
            return count as f64 / samples as f64;
        }
        let step = ((samples - count) as f64 / (count + 1) as f64).ln();
        exactly.iter_mut().zip(&errors).for_each(|(ln, e)| *ln += step + log_odds(*e));
    }
    1.0
}

/// The labels of all trials, at senders and on routes, those of a source on several routes once.
fn labels(received: &[&Received]) -> u64 {
    let at_senders = received.iter().filter_map(|r| r.tried.at_sender);
    at_senders.chain(each_source(received)).map(|trial| u64::from(trial.labels)).sum()
}

/// All trials at sources that a model was handed to, a source once.
fn each_source(received: &[&Received]) -> impl Iterator<Item = Trial> + use<> {
    let all =
        received.iter().flat_map(|r| r.tried.on_route.iter().map(|(&at, &trial)| (at, trial)));
    let mut sources: Vec<(usize, Trial)> = all.collect();
    sources.sort_by_key(|&(source, _)| source);
    sources.dedup_by_key(|(source, _)| *source);
    sources.into_iter().map(|(_, trial)| trial)
}

/// Those of them that can be believed.
fn on_routes(received: &[&Received]) -> Vec<Trial> {
    let trials = each_source(received);
    trials.filter(|trial| is_believable(trial, DEVICES_APART.0, UNBELIEVABLE.1)).collect()
}

/// The variance of bias between devices: the prior's, and that of the trials beyond what few labels explain (DerSimonian and Laird, "Meta-analysis
/// in clinical trials", 1986).
fn devices_apart(divergence: f64, trials: &[Trial]) -> f64 {
    let prior = (DEVICES_APART.0 + DEVICES_APART.1 * divergence).powi(2);
    if trials.len() < 2 {
        return prior;
    }
    let biases: Vec<(f64, f64)> = trials.iter().map(Trial::bias).collect();
    let sum = |term: &dyn Fn(f64, f64) -> f64| -> f64 {
        biases.iter().map(|&(bias, variance)| term(bias, 1.0 / variance)).sum()
    };
    let precision = sum(&|_, p| p);
    let mean = sum(&|bias, p| p * bias) / precision;
    let heterogeneity = sum(&|bias, p| p * (bias - mean).powi(2));
    let freedom = trials.len() as f64 - 1.0;
    let seen = (heterogeneity - freedom) / (precision - sum(&|_, p| p * p) / precision);
    (APART_COUNTS * prior + freedom * BEYOND_TRIALS * seen.max(0.0)) / (APART_COUNTS + freedom)
}

fn log_odds(probability: f64) -> f64 {
    (probability / (1.0 - probability)).ln()
}

fn log_odds_of_doubt(doubt: f64) -> f64 {
    log_odds(doubt.clamp(LEAST_DOUBT, 1.0 - LEAST_DOUBT))
}

fn from_log_odds(odds: f64) -> f64 {
    1.0 / (1.0 + (-odds).exp())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn trial(labels: u32, errors: u32, doubt: f32) -> Trial {
        Trial { labels, errors, doubt }
    }

    fn received(weight: f64, divergence: f64, at_sender: Option<Trial>, on: &[Trial]) -> Received {
        let on_route = on.iter().copied().enumerate().collect();
        Received { weight, divergence, tried: Tried { at_sender, on_route } }
    }

    fn expected(doubt: f64, samples: usize, received: &[Received]) -> Option<Expected> {
        Some(Basis::of(doubt, received)?.expected(samples))
    }

    #[test]
    fn many_trials_decide_and_few_leave_the_prior() {
        // Sources at which the model errs twice as often as it doubts.
        let twice = [trial(20_000, 2_000, 0.0526); 30];
        let sure = expected(0.0526, 100_000, &[received(1.0, 0.0, None, &twice)]).unwrap();
        assert!((sure.accuracy - 0.9).abs() < 0.005, "{sure:?}");
        let unsure = expected(0.0526, 100_000, &[received(1.0, 0.0, None, &[])]).unwrap();
        assert!(unsure.high - unsure.low > 1.5 * (sure.high - sure.low), "{unsure:?} {sure:?}");
        // By the prior alone, the odds of an error are e^0.3 times those of the doubt.
        let odds = (0.0526f64 / 0.9474) * 0.3f64.exp();
        assert!((unsure.accuracy - 1.0 / (1.0 + odds)).abs() < 1e-9);
        assert_eq!(expected(0.1, 100, &[]), None);
    }

    #[test]
    fn far_senders_and_devices_that_differ_widen_the_interval() {
        let width = |divergence: f64, on: &[Trial]| {
            let e = expected(0.1, 1_000, &[received(1.0, divergence, None, on)]).unwrap();
            e.high - e.low
        };
        assert!(width(1.5, &[]) > width(0.1, &[]));
        let alike = [trial(400, 40, 0.1); 8];
        let unlike = [trial(400, 10, 0.1), trial(400, 150, 0.1)].repeat(4);
        assert!(width(0.1, &unlike) > 1.5 * width(0.1, &alike));
    }

    #[test]
    fn a_source_on_two_routes_counts_once() {
        let once = received(0.5, 0.2, None, &[trial(100, 30, 0.1)]);
        let twice = [once.clone(), Received { weight: 0.5, ..once.clone() }];
        assert_eq!(on_routes(&twice.each_ref()).len(), 1);
    }

    #[test]
    fn a_model_without_weight_counts_for_nothing() {
        let used = received(1.0, 0.2, Some(trial(100, 30, 0.1)), &[]);
        let refused = received(0.0, 1.9, Some(trial(100, 0, 0.1)), &[trial(90, 1, 0.1)]);
        let alone = Basis::of(0.1, std::slice::from_ref(&used));
        let both = Basis::of(0.1, &[used, refused.clone()]);
        assert_eq!(alone, both);
        assert_eq!(Basis::of(0.1, &[refused]), None);
    }

    #[test]
    fn who_claims_few_errors_narrows_no_interval_where_the_doubt_is_high() {
        let without = expected(0.4, 500, &[received(1.0, 0.5, None, &[])]).unwrap();
        for labels in [100, 500, 10_000, u32::MAX] {
            for errors in [0, labels / 1_000, labels / 100] {
                for doubt in [0.0, 0.001, 0.01, 0.1, 0.4, 0.9, 1.0] {
                    let claim = Some(trial(labels, errors, doubt));
                    let with = expected(0.4, 500, &[received(1.0, 0.5, claim, &[])]).unwrap();
                    assert_eq!(with, without, "{claim:?}");
                }
            }
        }
        // Nor does one on a route that claims too much.
        let invented = [trial(u32::MAX, 0, 0.9), trial(1_000, 10, 0.5)];
        let with = expected(0.4, 500, &[received(1.0, 0.5, None, &invented)]).unwrap();
        assert_eq!(with, without);
        // A claim that fits the doubt is heard.
        let honest = Some(trial(500, 200, 0.4));
        assert_ne!(expected(0.4, 500, &[received(1.0, 0.5, honest, &[])]).unwrap(), without);
    }

    #[test]
    fn whatever_a_sender_claims_it_halves_the_odds_of_an_error_at_most() {
        let prior = Basis::of(0.1, &[received(1.0, 0.0, None, &[])]).unwrap();
        for labels in [1, 10, 100, 1_000, 1_000_000, u32::MAX] {
            for tenths in 0..=100 {
                let errors = (u64::from(labels) * tenths / 1_000) as u32;
                for doubt in 0..=200 {
                    let claim = trial(labels, errors, doubt as f32 / 200.0);
                    let basis = Basis::of(0.1, &[received(1.0, 0.0, Some(claim), &[])]).unwrap();
                    assert!(basis.bias - prior.bias >= -(2.03f64).ln(), "{claim:?} {basis:?}");
                    assert!(basis.bias_deviation >= 0.5 * 0.5f64.sqrt() - 1e-9);
                }
            }
        }
    }

    #[test]
    fn quantiles_of_errors_are_those_of_drawn_fleets() {
        let (mean, deviation, samples) = (-2.0, 0.6, 50);
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let normal =
            |rng: &mut ChaCha8Rng| (0..12).map(|_| rng.random_range(0.0..1.0)).sum::<f64>() - 6.0;
        let mut shares: Vec<f64> = (0..20_000)
            .map(|_| {
                // Student's t: a normal number over the root of a mean of squares of as many others as it has degrees of freedom.
                let squares: f64 = (0..4).map(|_| normal(&mut rng).powi(2)).sum();
                let z = normal(&mut rng) / (squares / FREEDOM).sqrt();
                let error = from_log_odds(mean + deviation * z);
                let errors = (0..samples).filter(|_| rng.random_range(0.0..1.0) < error).count();
                errors as f64 / samples as f64
            })
            .collect();
        shares.sort_by(f64::total_cmp);
        for level in [0.05, 0.5, 0.95] {
            let drawn = shares[(level * shares.len() as f64) as usize];
            let computed = errors_below(level, samples, mean, deviation);
            assert!(
                (drawn - computed).abs() <= 1.01 / samples as f64,
                "{level}: {drawn} {computed}"
            );
        }
    }

    #[test]
    fn an_interval_holds_what_it_should_where_trials_differ_by_many_log_odds() {
        let on = [trial(300, 60, 0.03), trial(300, 9, 0.03), trial(300, 200, 0.01)];
        let wide = expected(0.8, 1_000, &[received(1.0, 1.0, None, &on)]).unwrap();
        assert!(wide.low < 0.01 && wide.high > 0.95, "{wide:?}");
        // However wide it is, the errors that are not exceeded grow with the probability.
        for deviation in [0.5, 3.0, 5.0, 20.0] {
            for mean in [-3.0, 0.0, 3.0] {
                let within =
                    [0.05, 0.3, 0.5, 0.7, 0.95].map(|p| errors_below(p, 200, mean, deviation));
                assert!(within.is_sorted(), "{mean} {deviation}: {within:?}");
            }
        }
        assert!(errors_below(0.05, 1_000, 2.0, 3.0) < 0.1);
    }

    #[test]
    fn nine_of_ten_intervals_hold_in_fleets_as_the_model_has_them() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let normal =
            |rng: &mut ChaCha8Rng| (0..12).map(|_| rng.random_range(0.0..1.0)).sum::<f64>() - 6.0;
        let (mut held, fleets) = (0, 2_000);
        for _ in 0..fleets {
            let bias = PRIOR_BIAS.0 + PRIOR_BIAS.1 * normal(&mut rng);
            let device = |rng: &mut ChaCha8Rng| {
                let doubt = rng.random_range(0.02..0.3);
                let own = bias + DEVICES_APART.0 * normal(rng);
                let error = from_log_odds(log_odds(doubt) + own);
                let errors = (0..300).filter(|_| rng.random_range(0.0..1.0) < error).count();
                (trial(300, errors as u32, doubt as f32), doubt)
            };
            let on: Vec<Trial> = (0..6).map(|_| device(&mut rng).0).collect();
            let (truth, doubt) = device(&mut rng);
            let expected = expected(doubt, 300, &[received(1.0, 0.0, None, &on)]).unwrap();
            let accuracy = 1.0 - f64::from(truth.errors) / 300.0;
            held += u32::from((expected.low..=expected.high).contains(&accuracy));
        }
        let share = f64::from(held) / f64::from(fleets);
        assert!((0.88..0.99).contains(&share), "{share}");
    }
}
