//! Fleets that nobody arranged: how well each candidate for a divergence says which source suits a target.

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use stlf_data::domains::{Domain, Options, load};
use stlf_data::features::{self, Scale, Scaler};
use stlf_data::{Class, Dataset, Shape};
use stlf_learn::evaluate::{Predictions, predict};
use stlf_learn::{Augment, Descent, Layer, Params, Spec};
use stlf_method::local_training::{Rows, Split, Training};

use super::candidates::{self, Candidate};
use super::{Failure, correlation, go_on, ranks};

/// Writers of MNIST's digits in their fleet.
const WRITERS: usize = 40;

/// Steps of a source: the default for tables, and what `experiments/natural` takes for writers.
const TABLE_STEPS: usize = 10_000;
const PICTURE_STEPS: usize = 3_000;

/// Hidden units of a small network.
const FEW_UNITS: usize = 8;

/// The devices of a fleet with all their samples, and how many steps a source trains.
pub(super) struct Fleet {
    pub(super) shape: Shape,
    pub(super) classes: usize,
    pub(super) inputs: Vec<Vec<f32>>,
    pub(super) truth: Vec<Vec<Class>>,
    steps: usize,
    /// Who has labels: first these, then all others.
    labeled: fn(usize, usize) -> bool,
}

impl Fleet {
    fn named(name: &str) -> Result<Fleet, Failure> {
        let folder = std::env::var_os("STLF_DATA").map(PathBuf::from);
        let folder = folder.ok_or("STLF_DATA must name the folder that has natural/")?;
        let every_second = |device: usize, _: usize| device.is_multiple_of(2);
        match name {
            "har" => {
                let ignore = vec!["split".to_owned()];
                let options = features::Options { ignore, ..features::Options::default() };
                let table = folder.join("natural/har/features-63.csv.gz");
                Fleet::of(&features::load(&table, &options)?, TABLE_STEPS, every_second)
            }
            "writers" => {
                let (folder, writers) = (Some(folder), Some(WRITERS));
                let options = Options { folder, writers, ..Options::default() };
                Fleet::of(&load(&[Domain::Mnist], &options)?, PICTURE_STEPS, every_second)
            }
            "gas-drift" => {
                let domain = Some("batch".to_owned());
                let options = features::Options { domain, ..features::Options::default() };
                let table: &Path = &folder.join("natural/gas-drift/gas-drift.csv.gz");
                let data = features::load(table, &options)?;
                Fleet::of(&data, TABLE_STEPS, |batch, batches| batch < batches / 2)
            }
            _ => Err(format!("there is no fleet {name:?}: har, writers, gas-drift").into()),
        }
    }

    /// Every domain is a device, on its own scale.
    fn of(
        data: &Dataset,
        steps: usize,
        labeled: fn(usize, usize) -> bool,
    ) -> Result<Fleet, Failure> {
        let scaler = Scaler::new(data, Scale::Own);
        let devices: Vec<Vec<usize>> = (0..data.domains().len())
            .map(|device| (0..data.len()).filter(|&k| data.domain(k) == device).collect())
            .collect();
        let labels = |samples: &Vec<usize>| data.labels(samples).ok_or("a sample has no label");
        let truth = devices.iter().map(labels).collect::<Result<_, _>>()?;
        let inputs = |samples: &Vec<usize>| scaler.scaling(samples).inputs(data, samples);
        let inputs = devices.iter().map(inputs).collect();
        let (shape, classes) = (scaler.shape(), data.classes().len());
        Ok(Fleet { shape, classes, inputs, truth, steps, labeled })
    }

    /// Returns the network that sources train.
    fn whole(&self) -> Result<Spec, Failure> {
        Ok(match self.shape.height {
            1 => Spec::mlp(self.shape, self.classes)?,
            _ => Spec::cnn(self.shape, self.classes)?,
        })
    }

    /// Returns a network with one hidden layer of few units.
    fn small(&self) -> Result<Spec, Failure> {
        let [hidden, classes] = [FEW_UNITS, self.classes].map(|outputs| Layer::Linear { outputs });
        Ok(Spec::new(self.shape, vec![hidden, Layer::Relu, classes])?)
    }

    fn trained(&self, spec: &Spec, source: usize, seed: u64) -> Result<Params, Failure> {
        let (descent, augment) = (Descent::default(), Augment::None);
        let training = Training { descent, augment, steps: self.steps, averaged: false };
        let (inputs, labels) = (&self.inputs[source], &self.truth[source]);
        let split =
            Split::of(inputs, labels, self.shape.len(), &Rows::new(labels.len(), 0.0, 0).trained);
        let (first, own) = (Params::initial(spec, seed), 1_000 * seed + source as u64);
        let trained = split.train(spec, first, training, own, &mut go_on)?;
        Ok(trained.ok_or("nobody stops it")?)
    }
}

/// Sources and targets of a fleet, and what the sources' models make of the targets' samples.
pub(super) struct Half<'f> {
    pub(super) fleet: &'f Fleet,
    pub(super) sources: Vec<usize>,
    pub(super) targets: Vec<usize>,
}

/// One value for each pair, `[target][source]`.
pub(super) type ByPair<T> = Vec<Vec<T>>;

impl<'f> Half<'f> {
    fn new(fleet: &'f Fleet, is_first: bool) -> Half<'f> {
        let devices = fleet.inputs.len();
        let has_labels = |device: &usize| (fleet.labeled)(*device, devices) == is_first;
        let (sources, targets) = (0..devices).partition(has_labels);
        Half { fleet, sources, targets }
    }

    /// What networks of all sources make of every target's samples; `sent` is what becomes of a model on its way.
    fn predictions(
        &self,
        spec: &Spec,
        seed: u64,
        sent: impl Fn(&Spec, Params) -> Params + Sync,
    ) -> Result<ByPair<Predictions>, Failure> {
        let train = |&source: &usize| {
            self.fleet.trained(spec, source, seed).map(|params| sent(spec, params))
        };
        let models: Vec<Params> = self.sources.par_iter().map(train).collect::<Result<_, _>>()?;
        let at = |&target: &usize| {
            let inputs = &self.fleet.inputs[target];
            models.iter().map(|params| predict(spec, params, inputs)).collect()
        };
        Ok(self.targets.par_iter().map(at).collect())
    }

    fn accuracies(&self, predictions: &ByPair<Predictions>) -> ByPair<f64> {
        let at = |(&target, predictions): (&usize, &Vec<Predictions>)| {
            let truth = &self.fleet.truth[target];
            predictions.iter().map(|made| made.accuracy(truth)).collect()
        };
        self.targets.iter().zip(predictions).map(at).collect()
    }

    /// All candidates, each with what it says of every source at every target.
    fn candidates(&self, seed: u64) -> Result<Tried, Failure> {
        let (whole, small) = (self.fleet.whole()?, self.fleet.small()?);
        let models = self.predictions(&whole, seed, |_, params| params)?;
        let few = self.predictions(&small, seed, candidates::in_eight_bits)?;
        let again = self.predictions(&whole, seed + 1_000, |_, params| params)?;
        let mut all = candidates::of_inputs(self, seed)?;
        all.push(candidates::of_class_means(self, seed)?);
        all.push(candidates::of_scouts(self));
        let bytes = small.parameters() + 4 * small.tensors().len();
        let name = format!("agreement of networks with {FEW_UNITS} hidden units, 8 bits a weight");
        all.push(Candidate::agreement(&name, bytes, &few));
        let bytes = 4 * whole.parameters();
        all.push(Candidate::agreement("agreement of the models themselves", bytes, &models));
        let name = "accuracy of the same networks with another seed, by hidden labels";
        let (name, near) = (name.to_owned(), self.accuracies(&again));
        all.push(Candidate { name, bytes: None, near });
        Ok((self.accuracies(&models), all))
    }
}

/// The mean rank correlation of nearness and accuracy over targets, and the mean accuracy of the source that is nearest.
fn judged(near: &ByPair<f64>, accuracy: &ByPair<f64>) -> (f64, f64) {
    let count = near.len() as f64;
    let pairs = || near.iter().zip(accuracy);
    let rank = pairs().map(|(near, right)| correlation(&ranks(near), &ranks(right))).sum::<f64>();
    // Of several that are equally near, their mean.
    let picked = |(near, right): (&Vec<f64>, &Vec<f64>)| {
        let most = near.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let first: Vec<f64> =
            near.iter().zip(right).filter(|(n, _)| **n == most).map(|(_, r)| *r).collect();
        first.iter().sum::<f64>() / first.len() as f64
    };
    (rank / count, pairs().map(picked).sum::<f64>() / count)
}

/// A half of a fleet with one seed: the accuracy of every source at every target, and all candidates.
type Tried = (ByPair<f64>, Vec<Candidate>);

/// Prints the table of a fleet: of both halves of its devices as sources, each the mean over seeds.
pub(super) fn compare(name: &str, seeds: &[u64]) -> Result<(), Failure> {
    let fleet = Fleet::named(name)?;
    let tried = |is_first: bool| -> Result<Vec<Tried>, Failure> {
        let half = Half::new(&fleet, is_first);
        seeds.iter().map(|&seed| half.candidates(seed)).collect()
    };
    let halves = [tried(true)?, tried(false)?];
    println!("\n{name}, {} devices, seeds {seeds:?}\n", fleet.inputs.len());
    println!(
        "| measure | bytes a source | rank correlation (accuracy of the source ranked first) |"
    );
    println!("|---|---|---|");
    let mean = |half: &[Tried], of: &dyn Fn(&Tried) -> f64| {
        half.iter().map(of).sum::<f64>() / half.len() as f64
    };
    for (k, candidate) in halves[0][0].1.iter().enumerate() {
        let cells = halves.each_ref().map(|half| {
            let of = |tried: &Tried| judged(&tried.1[k].near, &tried.0);
            let rank = mean(half, &|tried| of(tried).0);
            format!("{rank:.2} ({:.1} %)", 100.0 * mean(half, &|tried| of(tried).1))
        });
        let bytes = candidate.bytes.map_or_else(String::new, |bytes| bytes.to_string());
        println!("| {} | {bytes} | {} |", candidate.name, cells.join(", "));
    }
    type Pick = fn(&[f64]) -> f64;
    let picks: [(&str, Pick); 2] = [
        ("any source, on average", |right| right.iter().sum::<f64>() / right.len() as f64),
        ("the best source, by hidden labels", |right| right.iter().copied().fold(0.0, f64::max)),
    ];
    for (name, pick) in picks {
        let cells = halves.each_ref().map(|half| {
            let of = |(accuracy, _): &Tried| {
                accuracy.iter().map(|right| pick(right)).sum::<f64>() / accuracy.len() as f64
            };
            format!("({:.1} %)", 100.0 * mean(half, &of))
        });
        println!("| {name} | | {} |", cells.join(", "));
    }
    Ok(())
}
