//! What a device ends with: models with weights, and how they become one.

use rayon::prelude::*;
use stlf_data::{Scaling, Shape};
use stlf_learn::evaluate::{Predictions, predict};
use stlf_learn::{Params, Spec};
use stlf_method::class_shares::{corrected_by, own_shares};
use stlf_method::combine::{Combine, combine};
use stlf_method::expectation::Expected;
use stlf_method::student::Student;
use stlf_planning::Role;

use crate::Error;

/// How many inputs, at least, are worth a thread of their own. Models are prepared anew for every part of the inputs.
const PART: usize = 1024;

/// One model of a mixture, with its weight.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// The device whose model it is.
    pub name: String,
    /// Its weight; what counts is its share of the sum.
    pub weight: f64,
    /// The model, as the device sent it.
    pub params: Params,
}

/// What a device ends with: models, their weights, and how samples become inputs.
#[derive(Debug, Clone, PartialEq)]
pub struct Mixture {
    /// The device whose mixture it is.
    pub device: String,
    /// Its role. A source's mixture is its own model.
    pub role: Role,
    /// The epoch that it comes from, on a real device.
    pub epoch: Option<u64>,
    /// The seed that it comes from, in a simulation.
    pub seed: Option<u64>,
    /// The names of the classes, in the order of the network's outputs.
    pub classes: Vec<String>,
    /// How a sample becomes an input.
    pub scaling: Scaling,
    /// The network that all models have.
    pub spec: Spec,
    /// How the predictions or the parameters of the models are combined.
    pub combine: Combine,
    /// The shares of classes at the device, by which [`Combine::Corrected`] corrects; none otherwise.
    pub class_shares: Option<Vec<f64>>,
    /// The models of the mixture, at least one.
    pub members: Vec<Member>,
    /// The student, if the device uses one.
    pub student: Option<Student>,
    /// The accuracy that a target may expect on its own samples; none for a source.
    pub expected: Option<Expected>,
}

impl Mixture {
    /// The shape of a sample before it is scaled.
    pub fn sample_shape(&self) -> Shape {
        let input = self.spec.input();
        match &self.scaling {
            Scaling::Features { units, series: None, .. } if units.len() > 1 => {
                Shape { width: input.width / units.len(), ..input }
            }
            Scaling::Features { units, series: Some(_), .. } if units.len() > 1 => {
                Shape { channels: input.channels / units.len(), ..input }
            }
            _ => input,
        }
    }

    /// Estimates the shares of classes at the device from its inputs, where predictions are corrected by them. From then on they stay what
    /// they are: new samples, however few, are corrected by the shares of the device's own.
    pub fn with_class_shares(mut self, inputs: &[f32]) -> Mixture {
        if self.combine == Combine::Corrected {
            self.class_shares = own_shares(&self.weighted(&self.of_members(inputs)));
        }
        self
    }

    /// What the mixture says of these inputs, which lie one after the other. Many are shared among threads: what comes of an input does
    /// not depend on the others.
    ///
    /// # Errors
    /// No model, or inputs of another network.
    pub fn predict(&self, inputs: &[f32]) -> Result<Predictions, Error> {
        let numbers = self.spec.input().len();
        let part =
            (inputs.len() / numbers).div_ceil(rayon::current_num_threads()).max(PART) * numbers;
        if inputs.len() <= part {
            return self.predict_part(inputs);
        }
        let parts = inputs.par_chunks(part).map(|part| self.predict_part(part));
        let parts: Vec<Predictions> = parts.collect::<Result<_, Error>>()?;
        Predictions::joined(parts).ok_or_else(nothing)
    }

    fn predict_part(&self, inputs: &[f32]) -> Result<Predictions, Error> {
        let mixed = self.of_all_members(inputs)?;
        let Some(student) = &self.student else { return Ok(mixed) };
        let own = predict(&self.spec, &student.params, inputs);
        Predictions::mix([(&mixed, 1.0 - student.share), (&own, student.share)]).ok_or_else(nothing)
    }

    /// What the members together say of inputs, without the student.
    pub(crate) fn of_all_members(&self, inputs: &[f32]) -> Result<Predictions, Error> {
        let mixed = match &self.class_shares {
            Some(shares) => corrected_by(shares, &self.weighted(&self.of_members(inputs))),
            None => {
                let models: Vec<(&Params, f64)> =
                    self.members.iter().map(|member| (&member.params, member.weight)).collect();
                let combined = combine(self.combine, &self.spec, &models, inputs);
                Some(combined.map_err(|e| Error::Mixture(e.to_string()))?)
            }
        };
        mixed.ok_or_else(nothing)
    }

    fn of_members(&self, inputs: &[f32]) -> Vec<Predictions> {
        self.members.iter().map(|member| predict(&self.spec, &member.params, inputs)).collect()
    }

    /// What members say, with their weights.
    fn weighted<'p>(&self, made: &'p [Predictions]) -> Vec<(&'p Predictions, f64)> {
        made.iter().zip(&self.members).map(|(made, member)| (made, member.weight)).collect()
    }

    /// The models that are run on every input. Averaged parameters are one model.
    ///
    /// # Errors
    /// No model.
    pub fn parts(&self) -> Result<Vec<Part>, Error> {
        let of_members = self.student.as_ref().map_or(1.0, |own| 1.0 - own.share);
        let total: f64 = self.members.iter().map(|member| member.weight).sum();
        let corrected = self.class_shares.is_some();
        let mut parts: Vec<Part> = match self.combine {
            Combine::Parameters => {
                let weighted = self.members.iter().map(|member| (&member.params, member.weight));
                let params =
                    Params::average(weighted).map_err(|e| Error::Mixture(e.to_string()))?;
                vec![Part { params, share: of_members, corrected }]
            }
            Combine::Predictions | Combine::Corrected => {
                let part = |Member { params, weight, .. }: &Member| Part {
                    params: params.clone(),
                    share: of_members * weight / total,
                    corrected,
                };
                self.members.iter().map(part).collect()
            }
        };
        let student = self.student.iter();
        parts.extend(student.map(|Student { params, share }| Part {
            params: params.clone(),
            share: *share,
            corrected: false,
        }));
        Ok(parts)
    }
}

/// A model that is run on every input.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The parameters of the model.
    pub params: Params,
    /// Its share of the result; all shares add up to 1.
    pub share: f64,
    /// Whether its probabilities are corrected by the shares of classes first.
    pub corrected: bool,
}

fn nothing() -> Error {
    Error::Mixture("a mixture without a model has no predictions".to_owned())
}
