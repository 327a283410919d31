//! What a target does with the models it receives.

use std::ops::Bound::{Included, Unbounded};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use stlf_data::Shape;
use stlf_data::words::nearest;
use stlf_learn::evaluate::{Predictions, predict};
use stlf_learn::{Params, Spec};
use stlf_planning::error::{Counted, Error, Field, Named, Range, Reason};

use crate::class_shares::corrected;

/// What a weight may be.
const WEIGHT: Range = Range::new(Included(0.0), Unbounded);

/// How several models become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Combine {
    /// h_j = Σ α_ij h_i, taken literally, in the space of hypotheses: the models' probabilities are mixed.
    /// A target runs every model it receives.
    #[default]
    Predictions,
    /// Probabilities are mixed and corrected for how frequent classes are at the target, which it estimates from its
    /// inputs. Models must have been sent [balanced](crate::class_shares::balanced).
    Corrected,
    /// The parameters are averaged, and the target runs one model. Only models that began from the same first
    /// values have a useful average, and even theirs is the worse the longer they were trained apart.
    Parameters,
}

impl Combine {
    /// Every way to combine models.
    pub const ALL: [Combine; 3] = [Combine::Predictions, Combine::Corrected, Combine::Parameters];

    /// Returns the name that users type.
    pub fn name(self) -> &'static str {
        match self {
            Combine::Predictions => "predictions",
            Combine::Corrected => "corrected",
            Combine::Parameters => "parameters",
        }
    }

    /// What a target makes of predictions; nothing without a part of weight above zero. Averaged parameters are one model, whose
    /// predictions are taken as they are.
    pub fn mixed(self, parts: &[(&Predictions, f64)]) -> Option<Predictions> {
        match self {
            Combine::Corrected => corrected(parts),
            Combine::Predictions | Combine::Parameters => Predictions::mix(parts.iter().copied()),
        }
    }
}

impl std::fmt::Display for Combine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Combine {
    type Err = Error;

    fn from_str(text: &str) -> Result<Combine, Error> {
        let found = Combine::ALL.into_iter().find(|c| c.name() == text);
        found.ok_or_else(|| {
            let names = Combine::ALL.map(Combine::name);
            let likely = nearest(text, names).unwrap_or(Combine::default().name());
            let (given, meant) = (text.to_owned(), Some(likely.to_owned()));
            Error::new("combine", Reason::Unknown { what: Named::Combination, given, meant })
                .with_hint(format!("did you mean {likely}? There are: {}", names.join(", ")))
        })
    }
}

/// The predictions of a target that received these models with these weights. Weights are relative: what
/// counts is their share of the sum.
///
/// # Errors
/// Without a model of weight above zero, or with models or inputs of another network.
pub fn combine(
    how: Combine,
    spec: &Spec,
    models: &[(&Params, f64)],
    inputs: &[f32],
) -> Result<Predictions, Error> {
    let numbers = spec.input().len();
    if !inputs.len().is_multiple_of(numbers) {
        let Shape { channels, height, width } = spec.input();
        let (numbers, shape) = (inputs.len(), [channels, height, width]);
        return Err(Error::new("inputs", Reason::NotWhole { numbers, shape }));
    }
    for (at, (params, weight)) in models.iter().enumerate() {
        check_length(spec, params, || format!("models[{at}]"))?;
        WEIGHT.check(*weight, || format!("models[{at}].weight"))?;
    }
    let mixed = combine_with(how, models, |_, params| Ok(Some(predict(spec, params, inputs))))?;
    mixed.ok_or_else(no_model)
}

/// The same where something else predicts: it is given a model and its number in the list, or none for the average of all. `None` if it
/// says so for one of them.
///
/// # Errors
/// Without a model of weight above zero, or what the predictor says.
pub fn combine_with(
    how: Combine,
    models: &[(&Params, f64)],
    mut predict: impl FnMut(Option<usize>, &Params) -> Result<Option<Predictions>, Error>,
) -> Result<Option<Predictions>, Error> {
    let numbered = models.iter().enumerate().filter(|(_, (_, weight))| *weight > 0.0);
    if numbered.clone().next().is_none() {
        return Err(no_model());
    }
    match how {
        Combine::Predictions | Combine::Corrected => {
            let mut made = Vec::new();
            for (at, (params, weight)) in numbered {
                let Some(predictions) = predict(Some(at), params)? else { return Ok(None) };
                made.push((predictions, *weight));
            }
            let parts: Vec<(&Predictions, f64)> = made.iter().map(|(p, w)| (p, *w)).collect();
            how.mixed(&parts).map(Some).ok_or_else(no_model)
        }
        Combine::Parameters => {
            let mean = Params::average(numbered.map(|(_, (params, weight))| (*params, *weight)));
            predict(None, &mean.map_err(|e| Error::other("models", e.to_string()))?)
        }
    }
}

fn no_model() -> Error {
    Error::missing("models", "a target without a model has no predictions")
}

/// Checks that a model has the parameters of this network; `field` says which one it is.
pub(crate) fn check_length<F: Into<Field>>(
    spec: &Spec,
    model: &Params,
    field: impl FnOnce() -> F,
) -> Result<(), Error> {
    let (found, expected) = (model.len(), spec.parameters());
    match found == expected {
        true => Ok(()),
        false => {
            let of = Counted::Parameters;
            Err(Error::new(field(), Reason::Length { found, expected, of }))
        }
    }
}

#[cfg(test)]
mod tests {
    use stlf_data::Shape;

    use super::*;

    fn spec() -> Spec {
        Spec::mlp(Shape::grey(2), 3).unwrap()
    }

    /// The ways in which models alone decide.
    const PLAIN: [Combine; 2] = [Combine::Predictions, Combine::Parameters];

    const INPUTS: [f32; 8] = [0.1, -0.4, 0.9, 0.3, -1.0, 0.2, 0.0, 0.7];

    #[test]
    fn one_source_of_weight_one_is_that_source() {
        let spec = spec();
        let [a, b] = [1, 2].map(|seed| Params::initial(&spec, seed));
        let alone = predict(&spec, &a, &INPUTS);
        for how in PLAIN {
            assert_eq!(combine(how, &spec, &[(&a, 1.0)], &INPUTS), Ok(alone.clone()));
            assert_eq!(combine(how, &spec, &[(&b, 0.0), (&a, 1.0)], &INPUTS), Ok(alone.clone()));
        }
    }

    #[test]
    fn equal_models_are_unchanged_by_any_weights() {
        let spec = spec();
        let a = Params::initial(&spec, 1);
        let alone = predict(&spec, &a, &INPUTS);
        for how in PLAIN {
            let both = combine(how, &spec, &[(&a, 0.3), (&a, 0.7)], &INPUTS).unwrap();
            for (both, alone) in both.probabilities().zip(alone.probabilities()) {
                both.iter().zip(alone).for_each(|(p, q)| assert!((p - q).abs() < 1e-6));
            }
        }
    }

    #[test]
    fn mixing_and_averaging_are_what_they_say() {
        let spec = spec();
        let [a, b] = [1, 2].map(|seed| Params::initial(&spec, seed));
        let parts = [(&a, 0.25), (&b, 0.75)];
        let mixed = combine(Combine::Predictions, &spec, &parts, &INPUTS).unwrap();
        let (pa, pb) = (predict(&spec, &a, &INPUTS), predict(&spec, &b, &INPUTS));
        for ((mixed, pa), pb) in
            mixed.probabilities().zip(pa.probabilities()).zip(pb.probabilities())
        {
            for ((p, a), b) in mixed.iter().zip(pa).zip(pb) {
                assert!((p - (0.25 * a + 0.75 * b)).abs() < 1e-6);
            }
        }
        let averaged = combine(Combine::Parameters, &spec, &parts, &INPUTS).unwrap();
        let mean = Params::average(parts).unwrap();
        assert_eq!(averaged, predict(&spec, &mean, &INPUTS));
        assert_ne!(averaged, mixed);
        let shifted = combine(Combine::Corrected, &spec, &parts, &INPUTS).unwrap();
        assert_eq!(Some(&shifted), corrected(&[(&pa, 0.25), (&pb, 0.75)]).as_ref());
        assert_ne!(shifted, mixed);
    }

    #[test]
    fn what_cannot_be_combined_is_refused() {
        let spec = spec();
        let a = Params::initial(&spec, 1);
        let other = Params::zeros(&Spec::mlp(Shape::grey(3), 3).unwrap());
        for how in Combine::ALL {
            let refused = |models: &[(&Params, f64)], inputs: &[f32]| {
                combine(how, &spec, models, inputs).map_err(|e| e.to_string()).unwrap_err()
            };
            let none = "models: a target without a model has no predictions";
            assert_eq!(refused(&[], &INPUTS), none);
            assert_eq!(refused(&[(&a, 0.0)], &INPUTS), none);
            assert_eq!(refused(&[(&a, -1.0)], &INPUTS), "models[0].weight: -1 is not at least 0");
            assert!(refused(&[(&a, 1.0), (&other, 1.0)], &INPUTS).starts_with("models[1]: "));
            assert!(refused(&[(&a, 1.0)], &INPUTS[1..]).starts_with("inputs: 7 numbers"));
        }
    }

    #[test]
    fn names_are_what_users_type() {
        for how in Combine::ALL {
            assert_eq!(how.to_string().parse(), Ok(how));
        }
        let wrong = "prediction".parse::<Combine>().unwrap_err();
        assert!(wrong.hint().is_some_and(|h| h.starts_with("did you mean predictions?")));
    }
}
