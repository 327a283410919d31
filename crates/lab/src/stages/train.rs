//! Every device with labels trains a model of its own, and measures its error.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use stlf_data::{Class, Shape};
use stlf_learn::evaluate::{predict, source_error};
use stlf_learn::{Examples, Learner, Network, Params, Spec};

use super::{Draw, SeedRun};
use crate::config::{Config, Model};
use crate::fleet::DeviceData;
use crate::record::TrainingRow;
use crate::shard::Block;
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
pub fn train(run: &SeedRun<'_>) -> Result<Trained, Error> {
    let splits = splits(run)?;
    let models = models(run, &splits, Block::WHOLE)?;
    let table: Vec<TrainingRow> = (run.fleet.devices.par_iter().zip(&splits).zip(&models))
        .map(|((device, split), params)| row(run, device, split, params.as_ref()))
        .collect();
    run.folder.write_csv(TABLE, &table)?;
    Ok(Trained { models, table })
}

/// Trains some devices, for others to go on with.
pub fn some(run: &SeedRun<'_>, block: Block) -> Result<(), Error> {
    models(run, &splits(run)?, block).map(|_| ())
}

fn splits(run: &SeedRun<'_>) -> Result<Vec<Split>, Error> {
    let (numbers, held_out) = (run.spec.input().len(), run.config.training.held_out);
    let splits: Vec<Split> = (run.fleet.devices.iter().enumerate())
        .map(|(i, device)| Split::new(device, numbers, held_out, Draw::HeldOut.seed(run.seed, i)))
        .collect();
    let mut labeled = splits.iter().filter(|s| !s.labels.is_empty());
    labeled.try_for_each(|s| s.examples().check(&run.spec))?;
    Ok(splits)
}

/// The models of a block's devices, trained or read back.
fn models(run: &SeedRun<'_>, splits: &[Split], block: Block) -> Result<Vec<Option<Params>>, Error> {
    let folder = run.folder.folder("models")?;
    let start = warm_up(run, splits, &folder)?;
    let asked = |i: usize| block.has(i) && !splits[i].labels.is_empty();
    let count = run.watch.counter(Stage::Train, (0..splits.len()).filter(|&i| asked(i)).count());
    let model = |i: usize| {
        if !asked(i) {
            return Ok(None);
        }
        let name = format!("{}.safetensors", run.fleet.devices[i].name);
        let params = match folder.read(&name)? {
            Some(file) => Params::from_safetensors(&run.spec, &file)
                .map_err(|e| folder.broken(&name, &e.to_string()))?,
            None => {
                let seed = Draw::Training.seed(run.seed, i);
                let steps = run.config.training.steps;
                let params = descend(run, &splits[i], start.clone(), steps, seed)?;
                folder.write(&name, &params.to_safetensors(&run.spec)?)?;
                params
            }
        };
        count.one()?;
        Ok(Some(params))
    };
    (0..splits.len()).into_par_iter().map(model).collect()
}

/// So many steps on a device's labels.
fn descend(
    run: &SeedRun<'_>,
    split: &Split,
    start: Params,
    steps: usize,
    seed: u64,
) -> Result<Params, Error> {
    let mut learner = Learner::new(&run.spec, start, run.config.descent(), seed)?;
    let mut network = Network::new(&run.spec, run.config.training.batch);
    let mut left = steps;
    while left > 0 {
        let some = left.min(STRIDE);
        learner.steps(&mut network, split.examples(), some);
        left -= some;
        run.watch.check()?;
    }
    Ok(learner.params)
}

/// What all models start from: first values that all share, moved by rounds of FedAvg where they are asked for.
fn warm_up(run: &SeedRun<'_>, splits: &[Split], models: &Folder) -> Result<Params, Error> {
    const FILE: &str = "warm-up.safetensors";
    let training = &run.config.training;
    let mut shared = Params::initial(&run.spec, Draw::Initial.seed(run.seed, 0));
    if training.warm_up_rounds == 0 {
        return Ok(shared);
    }
    if let Some(file) = models.read(FILE)? {
        return Params::from_safetensors(&run.spec, &file)
            .map_err(|e| models.broken(FILE, &e.to_string()));
    }
    for round in 0..training.warm_up_rounds {
        let locals: Vec<(Params, f64)> = splits
            .par_iter()
            .enumerate()
            .filter(|(_, split)| !split.labels.is_empty())
            .map(|(i, split)| {
                let seed = Draw::Training.seed(run.seed, splits.len() * (round + 1) + i);
                let params = descend(run, split, shared.clone(), training.warm_up_steps, seed)?;
                Ok((params, split.labels.len() as f64))
            })
            .collect::<Result<_, Error>>()?;
        shared = Params::average(locals.iter().map(|(params, weight)| (params, *weight)))?;
    }
    models.write(FILE, &shared.to_safetensors(&run.spec)?)?;
    Ok(shared)
}

fn row(
    run: &SeedRun<'_>,
    device: &DeviceData,
    split: &Split,
    params: Option<&Params>,
) -> TrainingRow {
    let measured = split.measured();
    let errors = params.map(|p| predict(&run.spec, p, measured.inputs).errors(measured.labels));
    let (labeled, unlabeled) = (device.labels.len(), device.unlabeled);
    let u = run.config.training.unlabeled_as;
    TrainingRow {
        device: device.name.clone(),
        labeled,
        unlabeled,
        measured: errors.map_or(0, |_| measured.len()),
        errors: errors.unwrap_or(0),
        source_error: errors.map(|e| source_error(e, measured.len(), labeled, unlabeled, u)),
    }
}
