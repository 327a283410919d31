//! Every device with labels trains a model of its own, and measures its error.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use stlf_data::{Class, Shape};
use stlf_learn::evaluate::{predict, source_error};
use stlf_learn::{Examples, Learner, Network, Params, Spec};

use super::Draw;
use crate::config::{Config, Model};
use crate::fleet::{DeviceData, Fleet};
use crate::record::TrainingRow;
use crate::run::Watch;
use crate::{Error, Folder, Stage};

/// The table that the stage ends with.
pub const TABLE: &str = "training.csv";

/// Steps between two looks at whether to stop.
const STRIDE: usize = 500;

/// What the stage gives: a model for every device with labels, and the table.
#[derive(Debug, Clone)]
pub struct Trained {
    /// One per device.
    pub models: Vec<Option<Params>>,
    /// One per device.
    pub table: Vec<TrainingRow>,
}

/// The network that the configuration names, for inputs of this shape.
pub fn network(config: &Config, shape: Shape, classes: usize) -> Result<Spec, Error> {
    let spec = match config.training.model {
        Model::Cnn if (shape.height, shape.width) != (28, 28) => {
            let message =
                format!("the cnn takes pictures of 28 × 28, not {shape}; use model = \"mlp\"");
            return Err(stlf_learn::Error::Training(message).into());
        }
        Model::Cnn => Spec::cnn(shape.channels, classes),
        Model::Mlp => Spec::mlp(shape, classes),
    };
    Ok(spec?)
}

/// One device's labels, apart: to train on, and to measure on.
struct Split {
    inputs: Vec<f32>,
    labels: Vec<Class>,
    /// Empty where nothing is held out; then the error is measured on the others.
    held_inputs: Vec<f32>,
    held_labels: Vec<Class>,
}

impl Split {
    /// Holds out this share of each device's labels, but leaves at least one to train on.
    fn new(device: &DeviceData, numbers: usize, share: f64, seed: u64) -> Split {
        let mut order: Vec<usize> = (0..device.labels.len()).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        for i in (1..order.len()).rev() {
            order.swap(i, rng.random_range(0..=i));
        }
        let held = (order.len() as f64 * share).floor() as usize;
        let held = held.min(order.len().saturating_sub(1));
        let gather = |samples: &[usize]| {
            let inputs =
                samples.iter().flat_map(|&s| &device.inputs[s * numbers..(s + 1) * numbers]);
            (inputs.copied().collect(), samples.iter().map(|&s| device.labels[s]).collect())
        };
        let (held_inputs, held_labels) = gather(&order[..held]);
        let (inputs, labels) = gather(&order[held..]);
        Split { inputs, labels, held_inputs, held_labels }
    }

    fn examples(&self) -> Examples<'_> {
        Examples { inputs: &self.inputs, labels: &self.labels }
    }

    /// What the error is measured on.
    fn measured(&self) -> Examples<'_> {
        match self.held_labels.is_empty() {
            true => self.examples(),
            false => Examples { inputs: &self.held_inputs, labels: &self.held_labels },
        }
    }
}

/// Trains what is not trained yet; every model is kept as soon as it is there.
pub fn train(
    config: &Config,
    spec: &Spec,
    fleet: &Fleet,
    folder: &Folder,
    seed: u64,
    watch: &Watch<'_>,
) -> Result<Trained, Error> {
    let models = folder.folder("models")?;
    let labeled = fleet.devices.iter().filter(|d| !d.labels.is_empty()).count();
    let numbers = spec.input().len();
    let splits: Vec<Split> = (fleet.devices.iter().enumerate())
        .map(|(i, device)| {
            Split::new(device, numbers, config.training.held_out, Draw::HeldOut.seed(seed, i))
        })
        .collect();
    splits.iter().filter(|s| !s.labels.is_empty()).try_for_each(|s| s.examples().check(spec))?;
    let start = warm_up(config, spec, &splits, &models, seed, watch)?;
    let count = watch.counter(Stage::Train, labeled);
    let trained: Vec<Option<Params>> = splits
        .par_iter()
        .zip(&fleet.devices)
        .enumerate()
        .map(|(i, (split, device))| {
            if split.labels.is_empty() {
                return Ok(None);
            }
            let name = format!("{}.safetensors", device.name);
            let params = match models.read(&name)? {
                Some(file) => Params::from_safetensors(spec, &file)
                    .map_err(|e| models.broken(&name, &e.to_string()))?,
                None => {
                    let seed = Draw::Training.seed(seed, i);
                    let mut learner = Learner::new(spec, start.clone(), config.descent(), seed)?;
                    descend(&mut learner, spec, config, split, config.training.steps, watch)?;
                    models.write(&name, &learner.params.to_safetensors(spec)?)?;
                    learner.params
                }
            };
            count.one()?;
            Ok(Some(params))
        })
        .collect::<Result<_, Error>>()?;
    let table: Vec<TrainingRow> = (fleet.devices.par_iter().zip(&splits).zip(&trained))
        .map(|((device, split), params)| row(config, spec, device, split, params.as_ref()))
        .collect();
    folder.write_csv(TABLE, &table)?;
    Ok(Trained { models: trained, table })
}

fn descend(
    learner: &mut Learner,
    spec: &Spec,
    config: &Config,
    split: &Split,
    steps: usize,
    watch: &Watch<'_>,
) -> Result<(), Error> {
    let mut network = Network::new(spec, config.training.batch);
    let mut left = steps;
    while left > 0 {
        let some = left.min(STRIDE);
        learner.steps(&mut network, split.examples(), some);
        left -= some;
        watch.check()?;
    }
    Ok(())
}

/// What all models start from: first values that all share, moved by rounds of FedAvg where they are asked for.
fn warm_up(
    config: &Config,
    spec: &Spec,
    splits: &[Split],
    models: &Folder,
    seed: u64,
    watch: &Watch<'_>,
) -> Result<Params, Error> {
    const FILE: &str = "warm-up.safetensors";
    let mut shared = Params::initial(spec, Draw::Initial.seed(seed, 0));
    if config.training.warm_up_rounds == 0 {
        return Ok(shared);
    }
    if let Some(file) = models.read(FILE)? {
        return Params::from_safetensors(spec, &file)
            .map_err(|e| models.broken(FILE, &e.to_string()));
    }
    for round in 0..config.training.warm_up_rounds {
        let locals: Vec<(Params, f64)> = splits
            .par_iter()
            .enumerate()
            .filter(|(_, split)| !split.labels.is_empty())
            .map(|(i, split)| {
                let number = splits.len() * (round + 1) + i;
                let seed = Draw::Training.seed(seed, number);
                let mut learner = Learner::new(spec, shared.clone(), config.descent(), seed)?;
                descend(&mut learner, spec, config, split, config.training.warm_up_steps, watch)?;
                Ok((learner.params, split.labels.len() as f64))
            })
            .collect::<Result<_, Error>>()?;
        shared = Params::average(locals.iter().map(|(params, weight)| (params, *weight)))?;
    }
    models.write(FILE, &shared.to_safetensors(spec)?)?;
    Ok(shared)
}

fn row(
    config: &Config,
    spec: &Spec,
    device: &DeviceData,
    split: &Split,
    params: Option<&Params>,
) -> TrainingRow {
    let measured = split.measured();
    let errors = params.map(|p| predict(spec, p, measured.inputs).errors(measured.labels));
    let (labeled, unlabeled) = (device.labels.len(), device.unlabeled);
    let u = config.training.unlabeled_as;
    TrainingRow {
        device: device.name.clone(),
        labeled,
        unlabeled,
        measured: errors.map_or(0, |_| measured.len()),
        errors: errors.unwrap_or(0),
        source_error: errors.map(|e| source_error(e, measured.len(), labeled, unlabeled, u)),
    }
}
