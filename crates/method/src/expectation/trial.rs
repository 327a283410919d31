//! Trials: how models do on labels that they were not trained on, and those that go along with a model on its way.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stlf_data::Class;
use stlf_learn::evaluate::Predictions;

use super::{doubt, from_log_odds, log_odds, log_odds_of_doubt};

/// What is told of errors and doubt is rounded to so much, in log odds: far less than what devices differ by.
const TOLD_TO: f64 = 0.25;

/// How a model did on labels that it was not trained on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The number of labels; not 0.
    pub labels: u32,
    /// The number of these that it gave another class.
    pub errors: u32,
    /// Its mean doubt about them.
    pub doubt: f32,
}

impl Trial {
    /// What it takes to send one.
    pub const BYTES: u64 = 12;

    /// What a model said of samples with these labels; nothing without any, or of a model that says no numbers.
    pub fn of(predictions: &Predictions, labels: &[Class]) -> Option<Trial> {
        let errors = predictions.errors(labels) as u32;
        let doubt = doubt(predictions)? as f32;
        let trial = Trial { labels: labels.len() as u32, errors, doubt };
        Some(trial).filter(Trial::is_possible)
    }

    /// Whether these numbers can have been counted.
    pub fn is_possible(&self) -> bool {
        self.labels > 0 && self.errors <= self.labels && (0.0..=1.0).contains(&self.doubt)
    }

    /// What others are told of it. Whoever chose the model chose what its trial is about, so that it is no more exact than an expected accuracy
    /// needs.
    fn told(self) -> Trial {
        if !self.is_possible() {
            return self;
        }
        let rounded = |odds: f64| from_log_odds(TOLD_TO * (odds / TOLD_TO).round());
        let share = rounded(self.log_odds_of_error());
        let errors = (share * (f64::from(self.labels) + 1.0) - 0.5).round() as u32;
        let doubt = rounded(log_odds_of_doubt(f64::from(self.doubt))) as f32;
        Trial { errors: errors.min(self.labels), doubt, ..self }
    }

    /// Whether another one would be told as this one, or nearly so: neither errors nor doubt differ by more than what is told is rounded to.
    pub fn is_near(&self, other: &Trial) -> bool {
        let doubt = |trial: &Trial| log_odds_of_doubt(f64::from(trial.doubt));
        let errors = (self.log_odds_of_error() - other.log_odds_of_error()).abs();
        errors.max((doubt(self) - doubt(other)).abs()) <= TOLD_TO
    }

    /// One on so many labels, with the same share of errors.
    pub fn of_as_many(self, labels: u32) -> Trial {
        let share = f64::from(self.errors) / f64::from(self.labels.max(1));
        let errors = (share * f64::from(labels)).round() as u32;
        Trial { labels, errors: errors.min(labels), ..self }
    }

    /// The bias that it shows, and the variance that so few labels give it.
    pub(super) fn bias(&self) -> (f64, f64) {
        bias(f64::from(self.labels), f64::from(self.errors), f64::from(self.doubt))
    }

    /// The log odds of an error.
    pub(super) fn log_odds_of_error(&self) -> f64 {
        log_odds((f64::from(self.errors) + 0.5) / (f64::from(self.labels) + 1.0))
    }
}

/// The bias that so many errors among so many labels show, and its variance (Woolf 1955, with half an error more on either side).
fn bias(labels: f64, errors: f64, doubt: f64) -> (f64, f64) {
    let (errors, labels) = (errors + 0.5, labels + 1.0);
    let variance = 1.0 / errors + 1.0 / (labels - errors);
    (log_odds(errors / labels) - log_odds_of_doubt(doubt), variance)
}

/// The bias that several trials show as one, and its variance; nothing without any.
pub(super) fn bias_of_all(trials: &[Trial]) -> Option<(f64, f64)> {
    let sum = |value: &dyn Fn(&Trial) -> f64| trials.iter().map(value).sum::<f64>();
    let labels = sum(&|t| f64::from(t.labels));
    let doubt = sum(&|t| f64::from(t.labels) * f64::from(t.doubt));
    (!trials.is_empty()).then(|| bias(labels, sum(&|t| f64::from(t.errors)), doubt / labels))
}

/// The trials that go along with a model. Simulated and real devices send them by the rule that is written here.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// As it is sent, at its sender, on the labels that it held out; none without any.
    pub at_sender: Option<Trial>,
    /// As it was handed over, at each source of its route that had not seen it before, by the source's number; empty without hand-overs.
    pub on_route: BTreeMap<usize, Trial>,
}

impl Tried {
    /// Of a model that its sender trained alone.
    pub fn alone(at_sender: Option<Trial>) -> Tried {
        Tried { at_sender: at_sender.map(Trial::told), on_route: BTreeMap::new() }
    }

    /// Of what the source at a number made of a model that these go along with. It tried the model as it was handed over, and tries what it
    /// sends.
    pub fn handed_on(
        &self,
        at: usize,
        as_handed: Option<Trial>,
        at_sender: Option<Trial>,
    ) -> Tried {
        let mut on_route = self.on_route.clone();
        on_route.extend(as_handed.map(|trial| (at, trial.told())));
        Tried { at_sender: at_sender.map(Trial::told), on_route }
    }

    /// How much more a model doubts than it errs at its sender, at least 0: what a learner that says little of how sure it is doubts everywhere.
    pub fn modesty(&self) -> f64 {
        let more = |t: Trial| f64::from(t.doubt) - f64::from(t.errors) / f64::from(t.labels);
        self.at_sender.map_or(0.0, more).max(0.0)
    }

    /// What they add to a model that is sent.
    pub fn bytes(&self) -> u64 {
        Trial::BYTES * (u64::from(self.at_sender.is_some()) + self.on_route.len() as u64)
    }

    /// Whether all of them can have been counted.
    pub fn is_possible(&self) -> bool {
        self.at_sender.iter().chain(self.on_route.values()).all(Trial::is_possible)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_trial_counts_errors_and_doubt() {
        let predictions = Predictions::new(vec![0.9, 0.1, 0.4, 0.6, 0.7, 0.3], 2);
        let trial = Trial::of(&predictions, &[0, 0, 0]).unwrap();
        assert_eq!((trial.labels, trial.errors), (3, 1));
        assert!((f64::from(trial.doubt) - (0.1 + 0.4 + 0.3) / 3.0).abs() < 1e-6);
        assert!(trial.is_possible());
        assert_eq!(Trial::of(&Predictions::new(Vec::new(), 2), &[]), None);
        assert_eq!(Trial::of(&Predictions::new(vec![f32::NAN; 2], 2), &[0]), None);
        assert!(!Trial { errors: 4, ..trial }.is_possible());
        assert!(!Trial { doubt: f32::NAN, ..trial }.is_possible());
        assert!(!Trial { labels: 0, errors: 0, ..trial }.is_possible());
    }

    #[test]
    fn trials_together_show_the_bias_of_one_with_all_their_labels() {
        let [one, two] = [(100, 7, 0.125), (300, 40, 0.25)].map(|(labels, errors, doubt)| Trial {
            labels,
            errors,
            doubt,
        });
        let all = Trial { labels: 400, errors: 47, doubt: 0.21875 };
        assert_eq!(bias_of_all(&[one, two]), Some(all.bias()));
        assert_eq!(bias_of_all(&[]), None);
        // However many labels somebody claims.
        let most = Trial { labels: u32::MAX, errors: u32::MAX, doubt: 0.5 };
        assert!(bias_of_all(&[most, most]).unwrap().0.is_finite());
    }

    #[test]
    fn a_model_takes_the_trials_of_its_route_along() {
        let trial = |errors| Some(Trial { labels: 10, errors, doubt: 0.1 });
        let first = Tried::alone(trial(1));
        assert_eq!(first.bytes(), 12);
        let second = first.handed_on(7, trial(2), trial(3));
        let third = second.handed_on(4, trial(5), None);
        assert_eq!(third.at_sender, None);
        assert!(third.on_route.keys().eq(&[4, 7]));
        assert_eq!((second.bytes(), third.bytes()), (24, 24));
        // The second way round a ring adds nothing to the route.
        assert_eq!(third.handed_on(7, None, trial(6)).on_route, third.on_route);
        assert!(third.is_possible() && !Tried::alone(trial(11)).is_possible());
    }

    #[test]
    fn what_is_told_of_a_trial_is_rounded_but_says_nearly_the_same() {
        for labels in [1, 7, 60, 300, 5_000, u32::MAX] {
            for share in [0.0, 0.003, 0.02, 0.1, 0.4, 0.9, 1.0] {
                for doubt in [0.0f32, 0.0007, 0.012, 0.1, 0.37, 0.8, 1.0] {
                    let errors = (f64::from(labels) * share).round() as u32;
                    let trial = Trial { labels, errors, doubt };
                    let told = trial.told();
                    assert!(told.is_possible() && told.labels == labels, "{told:?}");
                    let moved = (told.log_odds_of_error() - trial.log_odds_of_error()).abs();
                    // Errors are whole numbers.
                    let count = 1.0 / (f64::from(errors.min(labels - errors)) + 0.5);
                    assert!(moved <= TOLD_TO / 2.0 + count, "{trial:?} {told:?}");
                    let [before, after] =
                        [trial, told].map(|trial| log_odds_of_doubt(f64::from(trial.doubt)));
                    assert!((before - after).abs() <= TOLD_TO / 2.0 + 1e-4, "{trial:?} {told:?}");
                }
            }
        }
        // Models that differ on few labels, or are a little surer, are told alike.
        let told = |errors, doubt| Tried::alone(Some(Trial { labels: 300, errors, doubt }));
        assert_eq!(told(40, 0.1231), told(41, 0.1198));
        let mut values: Vec<u32> = (0..=300)
            .map(|errors| Trial { labels: 300, errors, doubt: 0.1 }.told().errors)
            .collect();
        values.dedup();
        assert!(values.len() < 60, "{}", values.len());
        let first = told(40, 0.1231);
        let trial = Trial { labels: 300, errors: 41, doubt: 0.1198 };
        assert_eq!(first.handed_on(1, Some(trial), Some(trial)).on_route[&1], trial.told());
    }

    #[test]
    fn who_doubts_more_than_it_errs_is_modest() {
        let tried = |errors, doubt| Tried::alone(Some(Trial { labels: 10, errors, doubt }));
        assert_eq!((tried(1, 0.5).modesty() * 1e6).round(), 4e5);
        assert_eq!((tried(9, 0.5).modesty(), Tried::default().modesty()), (0.0, 0.0));
    }
}
