//! Every device with labels trains a model of its own, and measures its error.

use rayon::prelude::*;
use stlf_data::Shape;
use stlf_learn::{Params, Spec};
use stlf_method::local_training::{Split, Training};
use stlf_method::seeds::Draw;

use super::SeedRun;
use crate::record::TrainingRow;
use crate::shard::Block;
use crate::{Error, Folder, Stage};
use stlf_config::fleet::DeviceData;
use stlf_config::{Config, Model};

/// The table that the stage ends with.
pub const TABLE: &str = "training.csv";

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
        _ if classes == 0 => {
            let message = "no sample has a label, so that no class is known; \
                           name them, the same on all devices: data.classes = [\"a\", \"b\"]";
            return Err(stlf_learn::Error::Training(message.to_owned()).into());
        }
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

/// The labels of every device, to train on and to measure on.
pub(super) fn splits(run: &SeedRun<'_>) -> Result<Vec<Split>, Error> {
    let (numbers, held_out) = (run.spec.input().len(), run.config.training.held_out);
    let splits: Vec<Split> = (run.fleet.devices.iter().enumerate())
        .map(|(i, device)| {
            let seed = Draw::HeldOut.seed(run.seed, i);
            Split::new(&device.inputs, &device.labels, numbers, held_out, seed)
        })
        .collect();
    let mut labeled = splits.iter().filter(|s| !s.is_empty());
    labeled.try_for_each(|s| s.examples().check(&run.spec))?;
    Ok(splits)
}

/// The models of a block's devices, trained or read back.
fn models(run: &SeedRun<'_>, splits: &[Split], block: Block) -> Result<Vec<Option<Params>>, Error> {
    let folder = run.folder.folder("models")?;
    let start = warm_up(run, splits, &folder)?;
    let asked = |i: usize| block.has(i) && !splits[i].is_empty();
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
    let training = Training { descent: run.config.descent(), steps, averaged: false };
    let trained = split.train(&run.spec, start, training, seed, &mut || run.watch.flow())?;
    trained.ok_or(Error::Stopped)
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
            .filter(|(_, split)| !split.is_empty())
            .map(|(i, split)| {
                let seed = Draw::Training.seed(run.seed, splits.len() * (round + 1) + i);
                let params = descend(run, split, shared.clone(), training.warm_up_steps, seed)?;
                Ok((params, split.len() as f64))
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
    let (labeled, unlabeled) = (device.labels.len(), device.unlabeled);
    let u = run.config.training.unlabeled_as;
    let own = params.map(|p| split.own_error(&run.spec, p, unlabeled, u));
    TrainingRow {
        device: device.name.clone(),
        labeled,
        unlabeled,
        measured: own.map_or(0, |own| own.measured),
        errors: own.map_or(0, |own| own.errors),
        source_error: own.map(|own| own.source_error),
    }
}
