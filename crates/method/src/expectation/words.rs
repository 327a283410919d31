//! An expected accuracy, what it rests on, and what a device is told of it, in words.

use std::fmt;

use serde::{Deserialize, Serialize};
use stlf_planning::number_format::{counted, percent};

use super::{Basis, DISAGREEMENT, Expected, LEVEL};

/// An interval that is wider says little.
const WIDE: f64 = 0.5;

/// What a target is told that may expect little, or of which little is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Warning {
    /// What its models were tried on is too little to say anything, so that no accuracy is named.
    TooFewLabels,
    /// What it ends with is expected to be no better than guessing.
    Guessing,
    /// No source is near, and the interval holds guessing, or more than half of all accuracies.
    NobodyNear,
    /// The interval does so, though a source is near.
    SaysLittle,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Warning::TooFewLabels => {
                "models were tried on too few labels to say what accuracy to expect"
            }
            Warning::Guessing => "no source helps, and no better than guessing is expected",
            Warning::NobodyNear => "no source is near, and the interval is too wide to say much",
            Warning::SaysLittle => "the interval is too wide to say much",
        })
    }
}

impl Expected {
    /// What its device is told, whose samples are of so many classes; nothing where the expectation is of use. Whether it is a stranger, to
    /// which no source is near, divergences say: an interval may be wide for other reasons.
    pub fn warning(&self, classes: usize, is_stranger: bool) -> Option<Warning> {
        let guessing = 1.0 / classes.max(1) as f64;
        if self.accuracy <= guessing {
            return Some(Warning::Guessing);
        }
        let says_little = self.low <= guessing || self.high - self.low > WIDE;
        let why = if is_stranger { Warning::NobodyNear } else { Warning::SaysLittle };
        says_little.then_some(why)
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Expected { accuracy, low, high } = self;
        let [accuracy, low, high] = [accuracy, low, high].map(|share| percent(*share));
        write!(f, "{accuracy}, {} interval {low} to {high}", percent(LEVEL))
    }
}

impl Basis {
    /// What it says, in short sentences.
    pub fn sentences(&self) -> Vec<String> {
        let times = |odds: f64| format!("{:.2}", odds.exp());
        let trials = match (self.on_routes, self.at_senders) {
            (0, 0) => "Without any trial".to_owned(),
            (0, own) => format!("By {} at its senders", counted(own, "trial")),
            (others, 0) => {
                format!("By {} at sources that a model was handed to", counted(others, "trial"))
            }
            (others, own) => format!(
                "By {} at sources that a model was handed to and {own} at its senders",
                counted(others, "trial")
            ),
        };
        let mut sentences = vec![
            format!("Its doubt about its samples is {}.", percent(self.doubt)),
            format!(
                "{trials}, the odds of an error are {} times those of the doubt (give or take a factor of {}).",
                times(self.bias),
                times(self.bias_deviation)
            ),
            format!(
                "One device differs from another by a factor of {}.",
                times(self.own_deviation)
            ),
        ];
        if self.models > 1.0 + 1e-9 {
            let less = times(DISAGREEMENT * self.models.ln());
            sentences.push(format!(
                "It mixes {:.1} models, which are less sure together than they err: the odds are {less} times lower.",
                self.models
            ));
        }
        sentences
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::super::{Received, Tried};
    use super::*;

    #[test]
    fn an_interval_is_of_use_or_its_device_is_told() {
        let expected = |low, accuracy, high| Expected { accuracy, low, high };
        for (of, classes, warning) in [
            (expected(0.85, 0.91, 0.95), 10, None),
            (expected(0.45, 0.8, 0.95), 10, None),
            (expected(0.44, 0.8, 0.95), 10, Some(Warning::SaysLittle)),
            (expected(0.1, 0.3, 0.55), 10, Some(Warning::SaysLittle)),
            // Of two classes, a half is guessing.
            (expected(0.5, 0.8, 0.95), 2, Some(Warning::SaysLittle)),
            (expected(0.51, 0.8, 0.95), 2, None),
            (expected(0.2, 0.5, 0.8), 2, Some(Warning::Guessing)),
            (expected(0.01, 0.1, 0.3), 10, Some(Warning::Guessing)),
        ] {
            assert_eq!(of.warning(classes, false), warning, "{of:?}");
            let far = match warning {
                Some(Warning::SaysLittle) => Some(Warning::NobodyNear),
                other => other,
            };
            assert_eq!(of.warning(classes, true), far, "{of:?}");
        }
    }

    #[test]
    fn an_interval_that_doubt_alone_widens_does_not_say_that_nobody_is_near() {
        // Two classes, a source like the target, and no trial.
        let received = [Received { weight: 1.0, divergence: 0.0, tried: Tried::default() }];
        let expected = Basis::of(0.35, &received).unwrap().expected(200);
        let told = expected.warning(2, false).unwrap().to_string();
        assert_eq!(told, "the interval is too wide to say much");
    }

    #[test]
    fn models_that_hardly_any_label_tried_let_nobody_expect_anything() {
        let of = |labels: [u32; 3]| {
            let trial = |labels| super::super::Trial { labels, errors: 0, doubt: 0.01 };
            let [own, first, second] = labels.map(trial);
            let tried = Tried::alone(Some(own)).handed_on(1, Some(first), Some(own));
            let both = [tried.clone(), tried.handed_on(2, Some(second), Some(own))];
            let received = both.map(|tried| Received { weight: 0.5, divergence: 0.0, tried });
            let basis = Basis::of(0.01, &received).unwrap();
            basis.warning(&basis.expected(200), 2, false)
        };
        // Both senders' labels count, and those of the source on both routes once.
        assert_eq!(of([1, 1, 6]), Some(Warning::TooFewLabels));
        assert_eq!(of([1, 1, 7]), None);
        // Two labels and a model that is sure of itself.
        let sure =
            Basis::of(0.001, &[Received { weight: 1.0, divergence: 0.0, tried: Tried::default() }]);
        let sure = sure.unwrap();
        assert_eq!(sure.expected(200).warning(2, false), None);
        let told = sure.warning(&sure.expected(200), 2, true).unwrap().to_string();
        assert_eq!(told, "models were tried on too few labels to say what accuracy to expect");
    }

    #[test]
    fn words_have_the_numbers() {
        let expected = Expected { accuracy: 0.91, low: 0.85, high: 0.951 };
        assert_eq!(expected.to_string(), "91 %, 90 % interval 85 % to 95.1 %");
        let received = |weight| Received { weight, divergence: 0.0, tried: Tried::default() };
        let two = Basis::of(0.07, &[received(0.5), received(0.5)]).unwrap();
        assert_eq!(
            two.sentences(),
            [
                "Its doubt about its samples is 7 %.",
                "Without any trial, the odds of an error are 1.35 times those of the doubt (give or take a factor of 1.65).",
                "One device differs from another by a factor of 1.35.",
                "It mixes 2.0 models, which are less sure together than they err: the odds are 1.32 times lower.",
            ]
        );
        let one = Basis { on_routes: 14, at_senders: 1, models: 1.0, ..two };
        let sentences = one.sentences();
        assert_eq!(sentences.len(), 3);
        let by =
            "By 14 trials at sources that a model was handed to and 1 at its senders, the odds";
        assert!(sentences[1].starts_with(by), "{}", sentences[1]);
    }
}
