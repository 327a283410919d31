//! Guards without labels: whether a target should use another predictor than its mixture, judged on samples that it has no labels of.
//!
//! A guard gives a predictor a score, from what it says of samples that were held out and of altered ones. The predictor is
//! accepted if its score exceeds the mixture's by the guard's threshold. [`Guard::Occlusion`] is the one in use. The others are here so that
//! they, and the next idea, can be compared with it: `docs/strangers.md` says how often each accepts what does harm.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use stlf_data::{Class, Shape};
use stlf_learn::evaluate::{Predictions, likeliest};

/// How a predictor is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Guard {
    /// The share of samples of which it says the same after a part of them was covered: who has learned what a sample shows needs no single
    /// part of it. Neither sources nor students are trained on covered pictures, so that it favours none of them.
    #[default]
    Occlusion,
    /// The same share after strong views. Students are trained on these, so that it favours them unless sources are too.
    Views,
    /// The mean probability of the likeliest class.
    Confidence,
    /// How much predictions tell about samples, in nats: sure of each, and different for different ones (Krause, Perona and Gomes,
    /// "Discriminative clustering by regularized information maximization", 2010).
    Information,
    /// The share of samples of which it says what the mixture says.
    Agreement,
}

/// How much a guard asks of a predictor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Standard {
    /// Of any predictor of which nothing more is known.
    #[default]
    Usual,
    /// Of a built-in network's student at a target to which no source is near. Where sources know all classes, hardly any of these does harm
    /// (`experiments/guards`), so that less is asked.
    Stranger,
}

/// Who says the same of everything is perfectly stable. So whoever tells less about samples than this share of what the mixture tells is not
/// accepted for its stability.
const LEAST_INFORMATION: f64 = 0.9;

/// What a predictor says of held-out samples, as they are and in views.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// Of the samples as they are.
    pub plain: &'a Predictions,
    /// Of the samples with a part covered, all one after the other, again and again.
    pub covered: &'a Predictions,
    /// Of strong views of the samples, in the same order.
    pub views: &'a Predictions,
}

/// What a guard says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict {
    /// The score of the predictor that is judged.
    pub score: f64,
    /// The score of the mixture.
    pub of_mixture: f64,
    /// By how much the guard asks the score to exceed the mixture's.
    pub threshold: f64,
    /// Whether the predictor should be used.
    pub accepted: bool,
}

impl Verdict {
    /// By how much the score exceeds the mixture's.
    pub fn margin(&self) -> f64 {
        self.score - self.of_mixture
    }

    /// Whether the score is high enough, and the predictor is refused since it says too much the same of all samples.
    pub fn has_collapsed(&self) -> bool {
        !self.accepted && self.margin() >= self.threshold
    }
}

impl Guard {
    /// Every guard.
    pub const ALL: [Guard; 5] =
        [Guard::Occlusion, Guard::Views, Guard::Confidence, Guard::Information, Guard::Agreement];

    /// Returns the name that tables show.
    pub fn name(self) -> &'static str {
        match self {
            Guard::Occlusion => "occlusion",
            Guard::Views => "views",
            Guard::Confidence => "confidence",
            Guard::Information => "information",
            Guard::Agreement => "agreement",
        }
    }

    /// By how much a score must exceed the mixture's. Only of the guard in use it is known what it may ask of strangers. The mixture agrees
    /// with itself always, so that agreement can only fall.
    pub fn threshold(self, standard: Standard) -> f64 {
        match (self, standard) {
            (Guard::Occlusion, Standard::Stranger) => 0.005,
            (Guard::Occlusion | Guard::Views, _) => 0.02,
            (Guard::Confidence | Guard::Information, _) => 0.0,
            (Guard::Agreement, _) => -0.1,
        }
    }

    /// Judges a predictor against the mixture, both on the same samples and views.
    ///
    /// # Panics
    /// If they are not of the same samples.
    pub fn judge(self, predictor: Seen<'_>, mixture: Seen<'_>, standard: Standard) -> Verdict {
        let score = self.score(predictor, mixture.plain);
        let of_mixture = self.score(mixture, mixture.plain);
        let has_collapsed =
            self.takes_for_collapsed(information(predictor.plain), information(mixture.plain));
        let threshold = self.threshold(standard);
        let accepted = score - of_mixture >= threshold && !has_collapsed;
        Verdict { score, of_mixture, threshold, accepted }
    }

    /// Whether this guard refuses a predictor whose predictions tell so much about samples, where the mixture's tell so much, however high its score.
    pub fn takes_for_collapsed(self, information: f64, of_mixture: f64) -> bool {
        match self {
            Guard::Occlusion | Guard::Views => information < LEAST_INFORMATION * of_mixture,
            Guard::Confidence | Guard::Information | Guard::Agreement => false,
        }
    }

    fn score(self, of: Seen<'_>, mixture: &Predictions) -> f64 {
        match self {
            Guard::Occlusion => unchanged(of.plain, of.covered),
            Guard::Views => unchanged(of.plain, of.views),
            Guard::Confidence => mean(of.plain.probabilities().map(|p| f64::from(likeliest(p).1))),
            Guard::Information => information(of.plain),
            Guard::Agreement => {
                share(of.plain.classes().zip(mixture.classes()).map(|(own, other)| own == other))
            }
        }
    }
}

/// Covers a square of a quarter of the picture's width and height, somewhere in its middle, with the mean of each colour (DeVries and Taylor,
/// "Improved regularization of convolutional neural networks with cutout", 2017).
pub(crate) fn cover(picture: &mut [f32], shape: Shape, rng: &mut ChaCha8Rng) {
    let mut place = |side: usize| {
        let (size, edge) = (side.div_ceil(4), side / 7);
        let first = rng.random_range(edge..=side - edge - size);
        first..first + size
    };
    let (rows, columns) = (place(shape.height), place(shape.width));
    for colour in picture.chunks_exact_mut(shape.height * shape.width) {
        let mean = colour.iter().sum::<f32>() / colour.len() as f32;
        for row in rows.clone() {
            colour[row * shape.width..][columns.clone()].fill(mean);
        }
    }
}

/// The share of altered samples that are given the class of the plain one.
fn unchanged(plain: &Predictions, altered: &Predictions) -> f64 {
    let plain: Vec<Class> = plain.classes().collect();
    share(altered.classes().enumerate().map(|(at, class)| class == plain[at % plain.len()]))
}

/// The mutual information of samples and their predicted classes: H(mean p) − mean H(p).
fn information(of: &Predictions) -> f64 {
    let entropy = |p: &mut dyn Iterator<Item = f64>| -> f64 {
        p.filter(|&p| p > 0.0).map(|p| -p * p.ln()).sum()
    };
    let counts = of.expected_counts();
    let total: f64 = counts.iter().sum();
    let each = of.probabilities().map(|p| entropy(&mut p.iter().map(|&p| f64::from(p))));
    // Never below zero, but for rounding.
    (entropy(&mut counts.iter().map(|count| count / total)) - mean(each)).max(0.0)
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
    use rand::SeedableRng;
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

    /// What a guard says of predictions on plain and on altered samples, and of the mixture's.
    fn judged(guard: Guard, own: [&Predictions; 2], mixture: [&Predictions; 2]) -> Verdict {
        let [own, mixture] =
            [own, mixture].map(|[plain, altered]| Seen { plain, covered: altered, views: altered });
        guard.judge(own, mixture, Standard::Usual)
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
        close(verdict(Guard::Occlusion), 0.75, 1.0);
        close(verdict(Guard::Views), 0.75, 1.0);
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
        let accepts = |guard: Guard, standard, own: usize, mixture: usize| {
            let (own, mixture) = (views(own), views(mixture));
            let [own, mixture] = [&own, &mixture].map(|altered| Seen {
                plain: &plain,
                covered: altered,
                views: altered,
            });
            let verdict = guard.judge(own, mixture, standard);
            assert_eq!(verdict.threshold, guard.threshold(standard));
            assert_eq!(verdict.accepted, verdict.margin() >= verdict.threshold);
            assert!(!verdict.has_collapsed());
            verdict.accepted
        };
        for (guard, standard, less_is_enough) in [
            (Guard::Occlusion, Standard::Usual, false),
            (Guard::Occlusion, Standard::Stranger, true),
            (Guard::Views, Standard::Usual, false),
            (Guard::Views, Standard::Stranger, false),
        ] {
            let accepts = |own, mixture| accepts(guard, standard, own, mixture);
            assert!(accepts(10, 13) && !accepts(13, 10) && !accepts(0, 0));
            assert_eq!(accepts(10, 11), less_is_enough, "{guard:?} {standard:?}");
        }
    }

    #[test]
    fn who_says_the_same_of_everything_is_stable_and_is_not_accepted() {
        let (yes, no) = ([0.9, 0.1], [0.1, 0.9]);
        let (same, mixture) = (predictions(&[yes; 2]), predictions(&[yes, no]));
        let (unchanged, changed) = (predictions(&[yes, no]), predictions(&[yes, yes]));
        for guard in [Guard::Occlusion, Guard::Views] {
            let verdict = judged(guard, [&same, &same], [&mixture, &changed]);
            assert_eq!((verdict.margin(), verdict.accepted), (0.5, false));
            assert!(verdict.has_collapsed());
            // A stranger's no less.
            let [own, of_mixture] = [(&same, &same), (&mixture, &changed)]
                .map(|(plain, altered)| Seen { plain, covered: altered, views: altered });
            assert!(!guard.judge(own, of_mixture, Standard::Stranger).accepted);
            assert!(judged(guard, [&mixture, &unchanged], [&mixture, &changed]).accepted);
        }
        let verdict = judged(Guard::Information, [&same, &same], [&mixture, &mixture]);
        assert!(verdict.score.abs() < 1e-6 && !verdict.accepted);
    }

    #[test]
    fn a_square_in_the_middle_is_covered_and_nothing_else() {
        let shape = Shape { channels: 2, height: 28, width: 28 };
        let plain: Vec<f32> = (0..shape.len()).map(|k| (k % 13) as f32).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut seen = [false; 28];
        for _ in 0..200 {
            let mut picture = plain.clone();
            cover(&mut picture, shape, &mut rng);
            for (now, before) in picture.chunks(784).zip(plain.chunks(784)) {
                let mean = before.iter().sum::<f32>() / 784.0;
                let changed: Vec<usize> = (0..784).filter(|&p| now[p] != before[p]).collect();
                let (top, left) = (changed[0] / 28, changed.iter().map(|p| p % 28).min().unwrap());
                assert!(changed.len() == 49 && changed.iter().all(|&p| now[p] == mean));
                assert!(changed.iter().all(|p| (p / 28 - top) < 7 && (p % 28 - left) < 7));
                changed.iter().for_each(|p| seen[p / 28] = true);
            }
        }
        assert!((4..24).all(|row| seen[row]) && !seen[3] && !seen[24]);
    }
}
