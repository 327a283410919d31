//! Every method's models at its targets, and how good they are there.

use rayon::prelude::*;
use stlf::Problem;
use stlf::baselines::{Assignment, Context, Method, fada};
use stlf::combine::{Combine, combine};
use stlf::device::Role;
use stlf::plan::PlanLink;
use stlf_learn::evaluate::{Predictions, predict};
use stlf_learn::{Examples, Params, Spec};

use super::Draw;
use crate::config::{self, Config};
use crate::fleet::{DeviceData, Fleet};
use crate::record::Row;
use crate::run::Watch;
use crate::{Error, Folder, Stage};

/// What all methods share in one seed.
pub struct Transfer<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// The network.
    pub spec: &'a Spec,
    /// The devices.
    pub fleet: &'a Fleet,
    /// One per device, where it has labels.
    pub models: &'a [Option<Params>],
    /// The problem that was planned.
    pub problem: &'a Problem,
    /// Ours' answer.
    pub plan: Assignment,
    /// The seed.
    pub seed: u64,
}

/// `[sender][receiver]`: what each device's model says of each device's data.
type AllPredictions = Vec<Vec<Option<Predictions>>>;

impl Transfer<'_> {
    /// The rows of all methods of the configuration, in its order; finished ones are read back.
    pub fn compare(&self, folder: &Folder, watch: &Watch<'_>) -> Result<Vec<Row>, Error> {
        let methods = self.config.compare.methods()?;
        let results = folder.folder("results")?;
        let count = watch.counter(Stage::Compare, methods.len());
        let mut predictions = None;
        let mut rows = Vec::new();
        for method in methods {
            let name = format!("{}.csv", method.name());
            let of_method = match results.read_csv(&name)? {
                Some(rows) => rows,
                None => {
                    let predictions = predictions.get_or_insert_with(|| self.predictions());
                    let rows = self.rows(method, predictions)?;
                    results.write_csv(&name, &rows)?;
                    rows
                }
            };
            rows.extend(of_method);
            count.one()?;
        }
        Ok(rows)
    }

    /// How one method serves its targets.
    fn rows(&self, method: Method, predictions: &AllPredictions) -> Result<Vec<Row>, Error> {
        let mut context = Context::new(self.problem, self.plan.clone())?;
        let accuracies = self.accuracies(predictions);
        context.accuracies = Some(&accuracies);
        let devices: Vec<fada::DeviceData<'_>> =
            self.fleet.devices.iter().map(|d| self.fada_data(d)).collect();
        if method.needs_data() {
            let settings = fada::Settings::default();
            context.data = Some(fada::Fleet { spec: self.spec, devices: &devices, settings });
        }
        let assignment = method.assign(&context, Draw::Baseline.seed(self.seed, 0))?;
        let targets: Vec<usize> = assignment.with_role(Role::Target).collect();
        targets
            .par_iter()
            .map(|&target| self.row(method, &assignment, target, predictions))
            .collect()
    }

    fn row(
        &self,
        method: Method,
        assignment: &Assignment,
        target: usize,
        predictions: &AllPredictions,
    ) -> Result<Row, Error> {
        let device = &self.fleet.devices[target];
        let links = assignment.incoming(target);
        let combined = self.combined(links, target, predictions)?;
        let accuracy = combined.zip(device.truth.as_ref()).map(|(p, truth)| p.accuracy(truth));
        let joules = |from: usize| self.problem.link_energy(from, target).unwrap_or(0.0);
        Ok(Row {
            seed: self.seed,
            method: method.name().to_owned(),
            target: device.name.clone(),
            accuracy,
            samples: device.samples(),
            links: links.len(),
            // An empty sum of floats is −0.
            joules: links.iter().map(|link| joules(link.from)).fold(0.0, |sum, j| sum + j),
            all_joules: assignment.with_role(Role::Source).map(joules).sum(),
            bytes: (links.len() * self.spec.parameters() * size_of::<f32>()) as u64,
        })
    }

    /// What a target makes of the models it receives; nothing of none.
    fn combined(
        &self,
        links: &[PlanLink],
        target: usize,
        predictions: &AllPredictions,
    ) -> Result<Option<Predictions>, Error> {
        match self.config.planner.combine {
            config::Combine::Predictions => {
                Ok(Predictions::mix(links.iter().filter_map(|link| {
                    Some((predictions[link.from][target].as_ref()?, link.weight))
                })))
            }
            config::Combine::Parameters => {
                let models = links.iter();
                let models: Vec<(&Params, f64)> = models
                    .filter_map(|link| Some((self.models[link.from].as_ref()?, link.weight)))
                    .collect();
                if models.is_empty() {
                    return Ok(None);
                }
                let inputs = &self.fleet.devices[target].inputs;
                Ok(Some(combine(Combine::Parameters, self.spec, &models, inputs)?))
            }
        }
    }

    fn predictions(&self) -> AllPredictions {
        let at = |model: &Params, device: &DeviceData| predict(self.spec, model, &device.inputs);
        self.models
            .par_iter()
            .map(|model| {
                let devices = self.fleet.devices.par_iter();
                devices.map(|device| model.as_ref().map(|m| at(m, device))).collect()
            })
            .collect()
    }

    /// `[sender][receiver]`: how good each device's model is at each device, by the hidden labels.
    fn accuracies(&self, predictions: &AllPredictions) -> Vec<Vec<f64>> {
        let accuracy = |(prediction, device): (&Option<Predictions>, &DeviceData)| {
            let (prediction, truth) = (prediction.as_ref()?, device.truth.as_ref()?);
            Some(prediction.accuracy(truth))
        };
        predictions
            .iter()
            .map(|of_model| {
                let devices = of_model.iter().zip(&self.fleet.devices);
                devices.map(|pair| accuracy(pair).unwrap_or(f64::NAN)).collect()
            })
            .collect()
    }

    /// A device as FADA takes it: the inputs with known labels come first.
    fn fada_data<'a>(&self, device: &'a DeviceData) -> fada::DeviceData<'a> {
        let known = device.labels.len() * self.spec.input().len();
        let labeled = Examples { inputs: &device.inputs[..known], labels: &device.labels };
        fada::DeviceData { labeled, inputs: &device.inputs }
    }
}
