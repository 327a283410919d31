//! Every device with labels trains a model of its own, and measures its error.

use std::sync::Arc;

use rayon::prelude::*;
use stlf_config::fleet::DeviceData;
use stlf_learn::Params;
use stlf_method::expectation::most_common;
use stlf_method::local_training::{Split, Training};
use stlf_method::seeds::Draw;
use stlf_protocol::Place;

use super::SeedRun;
use crate::record::TrainingRow;
use crate::shard::Block;
use crate::{Error, Folder, Stage};

/// The table that the stage ends with.
pub const TABLE: &str = "training.csv";

/// The models that devices trained on their own labels.
pub const MODELS: &str = "models";

/// Among them: what all models start from, where rounds of FedAvg come first.
pub(crate) const WARM_UP: &str = "warm-up.safetensors";

/// What the stage gives: a model for every device with labels, and the table.
#[derive(Debug, Clone)]
pub struct Trained {
    /// The model of each device, if it has labels.
    pub models: Vec<Option<Params>>,
    /// The row of each device, with its counts and its error.
    pub table: Vec<TrainingRow>,
}

/// Trains what is not trained yet; every model is kept as soon as it is there.
pub fn train(run: &SeedRun<'_>) -> Result<Trained, Error> {
    let splits = splits(run)?;
    let models = models(run, &splits, Block::WHOLE)?;
    let table: Vec<TrainingRow> = (models.par_iter().enumerate())
        .map(|(device, params)| row(run, device, params.as_ref()))
        .collect::<Result<_, Error>>()?;
    run.folder.write_csv(TABLE, &table)?;
    Ok(Trained { models, table })
}

/// Trains some devices, for others to go on with.
pub fn some(run: &SeedRun<'_>, block: Block) -> Result<(), Error> {
    models(run, &splits(run)?, block).map(|_| ())
}

/// The labels of every device, to train on and to measure on. In a simulated fleet a device's place is its index.
pub(crate) fn splits(run: &SeedRun<'_>) -> Result<Vec<Split>, Error> {
    let splits: Vec<Split> = (run.fleet.devices.iter().enumerate())
        .map(|(i, DeviceData { inputs, labels, .. })| {
            let rows = run.setup.rows(Place::new(i), labels.len());
            Split::of(inputs, labels, run.setup.shape.len(), &rows.trained)
        })
        .collect();
    let mut labeled = splits.iter().filter(|s| !s.is_empty());
    labeled.try_for_each(|s| s.examples().check(&run.setup.spec))?;
    Ok(splits)
}

/// The models of a block's devices, trained or read back.
fn models(run: &SeedRun<'_>, splits: &[Split], block: Block) -> Result<Vec<Option<Params>>, Error> {
    let folder = run.folder.folder(MODELS)?;
    let first = Arc::new(warm_up(run, splits, &folder)?);
    let asked = |i: usize| block.has(i) && !splits[i].is_empty();
    let count = run.watch.counter(Stage::Train, (0..splits.len()).filter(|&i| asked(i)).count());
    let model = |i: usize| {
        if !asked(i) {
            return Ok(None);
        }
        let name = format!("{}.safetensors", run.fleet.devices[i].name);
        let params = match folder.read(&name)? {
            Some(file) => Params::from_safetensors(run.layout(), &file)
                .map_err(|e| folder.broken(&name, &e.to_string()))?,
            None => {
                let params = run.train(i, &first, &mut || run.goes_on(&count))?;
                folder.write(&name, &params.to_safetensors(run.layout())?)?;
                params
            }
        };
        count.one()?;
        Ok(Some(params))
    };
    (0..splits.len()).into_par_iter().map(model).collect()
}

/// What all models start from: first values that all share, moved by rounds of FedAvg where they are asked for.
pub(super) fn warm_up(
    run: &SeedRun<'_>,
    splits: &[Split],
    models: &Folder,
) -> Result<Params, Error> {
    let (setup, training) = (&run.setup, &run.config.training);
    let mut shared = (*run.first).clone();
    if training.warm_up_rounds == 0 {
        return Ok(shared);
    }
    if let Some(file) = models.read(WARM_UP)? {
        return Params::from_safetensors(&run.setup.spec, &file)
            .map_err(|e| models.broken(WARM_UP, &e.to_string()).into());
    }
    for round in 0..training.warm_up_rounds {
        let locals: Vec<(Params, f64)> = splits
            .par_iter()
            .enumerate()
            .filter(|(_, split)| !split.is_empty())
            .map(|(i, split)| {
                let seed = Draw::Training.seed(run.setup.seed, splits.len() * (round + 1) + i);
                let round = Training { steps: training.warm_up_steps, ..setup.training };
                let mut flow = || run.watch.flow();
                let trained = split.train(&setup.spec, shared.clone(), round, seed, &mut flow)?;
                Ok((trained.ok_or(Error::Stopped)?, split.len() as f64))
            })
            .collect::<Result<_, Error>>()?;
        shared = Params::average(locals.iter().map(|(params, weight)| (params, *weight)))?;
    }
    models.write(WARM_UP, &shared.to_safetensors(&run.setup.spec)?)?;
    Ok(shared)
}

fn row(run: &SeedRun<'_>, at: usize, params: Option<&Params>) -> Result<TrainingRow, Error> {
    let device = &run.fleet.devices[at];
    let own = params.map(|params| run.own_error(at, params)).transpose()?;
    Ok(TrainingRow {
        device: device.name.clone(),
        labeled: device.labels.len(),
        unlabeled: device.unlabeled,
        measured: own.map_or(0, |own| own.measured),
        errors: own.map_or(0, |own| own.errors),
        source_error: own.map(|own| own.source_error),
        most_common: most_common(&device.labels),
    })
}
