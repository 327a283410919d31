//! Guards without labels: whether a target should use another predictor than its mixture, judged on samples that it has no labels of.
//!
//! A guard gives a predictor a score, from what it says of samples that were held out and of random views of them. The predictor is
//! accepted if its score exceeds the mixture's by the guard's threshold. [`Guard::Stability`] is the one in use. The others are here so that
//! they, and the next idea, can be compared with it: `docs/strangers.md` says how often each accepts what does harm.

use stlf_learn::evaluate::{Predictions, likeliest};

/// How a predictor is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Guard {
    /// The share of predictions on views that are those on the plain samples: who has learned what a sample shows says the same of it
    /// however it looks.
    #[default]
    Stability,
    /// The mean probability of the likeliest class.
    Confidence,
    /// How much predictions tell about samples, in nats: sure of each, and different for different ones (Krause, Perona and Gomes,
    /// "Discriminative clustering by regularized information maximization", 2010).
    Information,
    /// The share of samples of which it says what the mixture says.
    Agreement,
}

/// What a predictor says of held-out samples, as they are and in views.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// Of the samples as they are.
    pub plain: &'a Predictions,
    /// Of one view of each sample after the other, again and again.
    pub views: &'a Predictions,
}

/// What a guard says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict {
    /// The score of the predictor that is judged.
    pub score: f64,
    /// The score of the mixture.
    pub of_mixture: f64,
    /// Whether the predictor should be used.
    pub accepted: bool,
}

impl Verdict {
    /// By how much the score exceeds the mixture's.
    pub fn margin(&self) -> f64 {
        self.score - self.of_mixture
    }
}

impl Guard {
    /// Every guard.
    pub const ALL: [Guard; 4] =
        [Guard::Stability, Guard::Confidence, Guard::Information, Guard::Agreement];

    /// Returns the name that tables show.
    pub fn name(self) -> &'static str {
        match self {
            Guard::Stability => "stability",
            Guard::Confidence => "confidence",
            Guard::Information => "information",
            Guard::Agreement => "agreement",
        }
    }

    /// By how much a score must exceed the mixture's. The mixture agrees with itself always, so that agreement can only fall.
    pub fn threshold(self) -> f64 {
        match self {
            Guard::Stability => 0.02,
            Guard::Confidence | Guard::Information => 0.0,
            Guard::Agreement => -0.1,
        }
    }

    /// Judges a predictor against the mixture, both on the same samples and views.
    ///
    /// # Panics
    /// If they are not of the same samples.
    pub fn judge(self, predictor: Seen<'_>, mixture: Seen<'_>) -> Verdict {
        let score = self.score(predictor, mixture.plain);
        let of_mixture = self.score(mixture, mixture.plain);
        Verdict { score, of_mixture, accepted: score - of_mixture >= self.threshold() }
    }

    fn score(self, of: Seen<'_>, mixture: &Predictions) -> f64 {
        match self {
            Guard::Stability => {
                let plain: Vec<_> = of.plain.classes().collect();
                let views = of.views.classes().enumerate();
                share(views.map(|(at, class)| class == plain[at % plain.len()]))
            }
            Guard::Confidence => mean(of.plain.probabilities().map(|p| f64::from(likeliest(p).1))),
            Guard::Information => information(of.plain),
            Guard::Agreement => {
                share(of.plain.classes().zip(mixture.classes()).map(|(own, other)| own == other))
            }
        }
    }
}

/// The mutual information of samples and their predicted classes: H(mean p) − mean H(p).
fn information(of: &Predictions) -> f64 {
    let entropy = |p: &mut dyn Iterator<Item = f64>| -> f64 {
        p.filter(|&p| p > 0.0).map(|p| -p * p.ln()).sum()
    };
    let counts = of.expected_counts();
    let total: f64 = counts.iter().sum();
    let each = of.probabilities().map(|p| entropy(&mut p.iter().map(|&p| f64::from(p))));
    entropy(&mut counts.iter().map(|count| count / total)) - mean(each)
}

fn share(of: impl ExactSizeIterator<Item = bool>) -> f64 {
    mean(of.map(|is| if is { 1.0 } else { 0.0 }))
}

fn mean(of: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = of.len() as f64;
    of.sum::<f64>() / count
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use stlf_data::Shape;
    use stlf_learn::evaluate::predict;
    use stlf_learn::{Layer, Params, Spec};

    use super::*;

    /// Predictions with these probabilities: a network that passes on what comes in says the softmax of their logarithms.
    fn predictions(rows: &[[f32; 2]]) -> Predictions {
        let input = Shape { channels: 1, height: 1, width: 2 };
        let spec = Spec::new(input, vec![Layer::Linear { outputs: 2 }]).unwrap();
        let mut params = Params::zeros(&spec);
        (params[0], params[3]) = (1.0, 1.0);
        let logarithms: Vec<f32> = rows.iter().flatten().map(|p| p.ln()).collect();
        predict(&spec, &params, &logarithms)
    }

    fn judged(guard: Guard, own: [&Predictions; 2], mixture: [&Predictions; 2]) -> Verdict {
        let [own, mixture] = [own, mixture].map(|[plain, views]| Seen { plain, views });
        guard.judge(own, mixture)
    }

    #[test]
    fn scores_are_what_they_say() {
        let (sure, other) = ([0.9, 0.1], [0.2, 0.8]);
        let plain = predictions(&[sure, other]);
        // Of four views of two samples, the last is taken for the other class.
        let views = predictions(&[sure, other, sure, sure]);
        let mixture = predictions(&[sure, [0.6, 0.4]]);
        let unchanged = predictions(&[sure, sure, sure, sure]);
        let verdict = |guard| judged(guard, [&plain, &views], [&mixture, &unchanged]);
        let close = |verdict: Verdict, score: f64, of_mixture: f64| {
            assert!((verdict.score - score).abs() < 1e-6, "{verdict:?}");
            assert!((verdict.of_mixture - of_mixture).abs() < 1e-6, "{verdict:?}");
        };
        close(verdict(Guard::Stability), 0.75, 1.0);
        close(verdict(Guard::Confidence), 0.85, 0.75);
        close(verdict(Guard::Agreement), 0.5, 1.0);
        let h = |p: f64| -p * p.ln() - (1.0 - p) * (1.0 - p).ln();
        let information = h(0.55) - (h(0.9) + h(0.2)) / 2.0;
        close(verdict(Guard::Information), information, h(0.75) - (h(0.9) + h(0.6)) / 2.0);
    }

    #[test]
    fn a_margin_must_reach_the_threshold() {
        let plain = predictions(&[[0.9, 0.1]]);
        let views = |changed: usize| {
            let views = (0..100).map(|k| if k < changed { [0.1, 0.9] } else { [0.9, 0.1] });
            predictions(&views.collect::<Vec<_>>())
        };
        let accepts = |own: usize, mixture: usize| {
            let (own, mixture) = (views(own), views(mixture));
            let verdict = judged(Guard::Stability, [&plain, &own], [&plain, &mixture]);
            assert_eq!(verdict.accepted, verdict.margin() >= Guard::Stability.threshold());
            verdict.accepted
        };
        assert!(accepts(10, 13) && !accepts(10, 11) && !accepts(13, 10) && !accepts(0, 0));
    }

    #[test]
    fn who_says_the_same_of_everything_is_stable_and_tells_nothing() {
        let same = predictions(&[[0.9, 0.1]; 3]);
        let verdict = judged(Guard::Information, [&same, &same], [&same, &same]);
        assert!(verdict.score.abs() < 1e-6);
        assert_eq!(judged(Guard::Stability, [&same, &same], [&same, &same]).score, 1.0);
    }
}
