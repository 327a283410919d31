//! A measured divergence with its interval.

/// d̂_ij with a confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// d̂_ij, the divergence, 0 to 2.
    pub value: f64,
    /// Lower end of the interval, 0..2.
    pub low: f64,
    /// Upper end of the interval, 0..2.
    pub high: f64,
}

impl Estimate {
    /// A value with an interval around it, all brought into 0..2.
    pub(super) fn new(value: f64, low: f64, high: f64) -> Estimate {
        let clip = |d: f64| d.clamp(0.0, 2.0);
        Estimate { value: clip(value), low: clip(low), high: clip(high) }
    }

    /// Whether the interval excludes that the two devices' data are alike. Where it does not, the estimate
    /// is noise and says only that the divergence is not above `high`.
    pub fn has_signal(&self) -> bool {
        self.low > 0.0
    }
}

/// How often a classifier erred on one device's samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// Samples taken for the other device's.
    pub errors: u64,
    /// The number of samples on which errors were counted.
    pub samples: u64,
}

impl Count {
    pub(super) fn add(&mut self, more: Count) {
        self.errors += more.errors;
        self.samples += more.samples;
    }

    /// Returns the error rate; for no samples, that of a guess.
    fn rate(self) -> f64 {
        if self.samples == 0 { 0.5 } else { self.errors as f64 / self.samples as f64 }
    }
}

/// d̂ = 2(1 − 2 err), err the mean of the error rates on both sides, clipped at 0: the last line of
/// `alg:fed_div_est`.
pub fn from_error(error: f64) -> f64 {
    (2.0 * (1.0 - 2.0 * error)).max(0.0)
}

/// d̂ from both sides' errors, with Hoeffding's interval at this confidence.
///
/// d̂ = 2(1 − p₁ − p₂) with independent rates of m₁ and m₂ samples, so it deviates by
/// 2√(ln(2/(1 − confidence))/2 · (1/m₁ + 1/m₂)) at most. This holds where the classifier has not
/// seen the samples that it is measured on.
pub(super) fn from_counts(sides: [Count; 2], confidence: f64) -> Estimate {
    let [first, second] = sides;
    let error = 0.5 * (first.rate() + second.rate());
    let spread = 1.0 / first.samples.max(1) as f64 + 1.0 / second.samples.max(1) as f64;
    let half = 2.0 * ((2.0 / (1.0 - confidence)).ln() / 2.0 * spread).sqrt();
    // The interval is that of the value before clipping, so that chance level is seen as such.
    let unclipped = 2.0 * (1.0 - 2.0 * error);
    Estimate::new(from_error(error), unclipped - half, unclipped + half)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_no_divergence_and_certainty_is_two() {
        assert_eq!([0.0, 0.25, 0.5, 0.9].map(from_error), [2.0, 1.0, 0.0, 0.0]);
    }

    #[test]
    fn the_interval_narrows_with_samples_and_chance_gives_no_signal() {
        let of = |errors, samples| from_counts([Count { errors, samples }; 2], 0.95);
        let (few, many) = (of(10, 100), of(100, 1000));
        assert_eq!((few.value, many.value), (1.6, 1.6));
        // The square root of ten times as many samples.
        let width = |estimate: Estimate| estimate.high - estimate.low;
        assert!((width(few) / width(many) - 10f64.sqrt()).abs() < 1e-9);
        assert!(!of(48, 100).has_signal() && of(480, 1000).value > 0.0);
        assert!(!of(480, 1000).has_signal() && of(48_000, 100_000).has_signal());
        // Nobody counted anything: a guess, and no interval worth the name.
        assert_eq!(of(0, 0), Estimate { value: 0.0, low: 0.0, high: 2.0 });
    }
}
