//! Other ways to choose roles and links, and how good they are at their targets.

use std::ops::ControlFlow;

use crate::baselines::{Assignment, Context, fada};
use rayon::prelude::*;
use stlf_learn::Examples;
use stlf_method::method::Method;
use stlf_method::seeds::Draw;

use stlf_config::fleet::DeviceData;

use super::plan::links_only;
use super::transfer::{Transfer, table};
use crate::methods::assign;
use crate::record::Row;
use crate::{Error, Stage};

impl Transfer<'_> {
    /// The rows of these methods, in their order; finished ones are read back.
    pub fn compare(&self, methods: &[Method]) -> Result<Vec<Row>, Error> {
        let results = self.run.folder.folder("results")?;
        let count = self.run.watch.counter(Stage::Compare, methods.len());
        let mut rows = Vec::new();
        for &method in methods {
            let name = table(method);
            let of_method = match results.read_csv(&name)? {
                Some(rows) => rows,
                // Nobody knows the best source where nobody knows the truth.
                None if method.needs_accuracies() && !self.is_truth_known() => Vec::new(),
                None => {
                    let assigned = self.assign(method)?;
                    let mut rows = match method {
                        Method::FedAvgRounds => self.rows_after_rounds(&assigned)?,
                        Method::Kd3a => self.rows_of_kd3a(&assigned)?,
                        Method::Pooled => self.rows_of_pooled(&assigned)?,
                        _ => self.rows_with_handovers(method, &assigned)?,
                    };
                    self.count_warm_up(&mut rows)?;
                    results.write_csv(&name, &rows)?;
                    rows
                }
            };
            rows.extend(of_method);
            count.one()?;
        }
        Ok(rows)
    }

    /// Whether the hidden labels of all devices are there to be looked at.
    fn is_truth_known(&self) -> bool {
        self.run.fleet.devices.iter().all(|device| device.truth.is_some())
    }

    /// Returns the roles and links that a method chooses.
    pub(super) fn assign(&self, method: Method) -> Result<Assignment, Error> {
        let run = self.run;
        let mut context = Context::new(self.problem, self.plan.clone())?;
        if method.needs_links_only() && !self.plan.handovers.is_empty() {
            context.without_handovers = Some(links_only(run, self.problem)?);
        }
        let accuracies = if method.needs_accuracies() { self.accuracies()? } else { Vec::new() };
        if method.needs_accuracies() {
            context.accuracies = Some(&accuracies);
        }
        let devices: Vec<fada::DeviceData<'_>> =
            run.fleet.devices.iter().map(|d| self.fada_data(d)).collect();
        let watch =
            |done, total| -> ControlFlow<()> { run.watch.goes_on(Stage::Adapt, done, total) };
        if method.needs_data() {
            context.data = Some(fada::Fleet {
                spec: &run.setup.spec,
                devices: &devices,
                settings: run.config.compare.fada.settings(),
                watch: &watch,
            });
        }
        let assigned = assign(method, &context, Draw::Baseline.seed(run.setup.seed, 0));
        // What was ended from outside has no other reason.
        run.watch.check()?;
        Ok(assigned?)
    }

    /// `[sender][receiver]`: how good each device's model is at each device, by the hidden labels.
    fn accuracies(&self) -> Result<Vec<Vec<f64>>, Error> {
        let devices = &self.run.fleet.devices;
        let accuracy = |sender: usize, receiver: usize| -> Result<f64, Error> {
            let Some(truth) = devices[receiver].truth.as_ref() else { return Ok(f64::NAN) };
            let alone = self.alone(sender, receiver)?;
            Ok(alone.map_or(f64::NAN, |predictions| predictions.accuracy(truth)))
        };
        // Receiver by receiver: a learner that has to be started for this is started once.
        let all = 0..devices.len();
        let of_receiver = |receiver: usize| -> Result<Vec<f64>, Error> {
            all.clone().into_par_iter().map(|sender| accuracy(sender, receiver)).collect()
        };
        let by_receiver: Vec<Vec<f64>> =
            all.clone().into_par_iter().map(of_receiver).collect::<Result<_, Error>>()?;
        Ok(all.clone().map(|sender| by_receiver.iter().map(|of| of[sender]).collect()).collect())
    }

    /// A device as FADA takes it: the inputs with known labels come first.
    fn fada_data<'d>(&self, device: &'d DeviceData) -> fada::DeviceData<'d> {
        let known = device.labels.len() * self.run.setup.spec.input().len();
        let labeled = Examples { inputs: &device.inputs[..known], labels: &device.labels };
        fada::DeviceData { labeled, inputs: &device.inputs }
    }
}
