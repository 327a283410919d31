//! FADA (Peng, Huang, Zhu, Saenko, "Federated adversarial domain adaptation", ICLR 2020), used for its weights.
//!
//! For one target and its sources, in rounds: every source takes the target's feature generator and trains it on its
//! own labels, made adversarially alike on both domains and with the classes disentangled from the domain
//! (`pair.rs`). The target clusters its features by k-means under each source's generator. The drop in their
//! spread is that source's gain, the softmax of the gains its weight (`attention.rs`), and the target goes on from
//! the generators averaged with these weights. The weights of all rounds, averaged, are the result.
//!
//! The generator is the fleet's own network with a larger output layer. Where this leaves the published method, and
//! why, is in `docs/baselines.md`.

mod attention;
mod information;
mod kmeans;
mod pair;
mod part;

pub use stlf_config::FadaSettings as Settings;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use rand::seq::index;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use stlf_learn::{Examples, Layer, Mode, Network, Params, Spec};
use stlf_planning::device::Role;
use stlf_planning::error::{Counted, Error, Reason};

use self::pair::Pair;
use super::{Assignment, Context, with_role};

/// The data of one device, as FADA sees them.
#[derive(Debug, Clone, Copy)]
pub struct DeviceData<'a> {
    /// What it trains on as a source. As a target its labels are not looked at.
    pub labeled: Examples<'a>,
    /// All its inputs, with and without label: what it adapts to as a target.
    pub inputs: &'a [f32],
}

/// Hears how many of all trainings of a source for a target are done, from any thread, and may end the work.
pub type Watch<'a> = dyn Fn(usize, usize) -> ControlFlow<()> + Sync + 'a;

/// The data of all devices, and how to adapt them.
#[derive(Clone, Copy)]
pub struct Fleet<'a> {
    /// The network that the devices' models have; it ends in a linear layer to the classes.
    pub spec: &'a Spec,
    /// The data of each device.
    pub devices: &'a [DeviceData<'a>],
    /// How FADA's networks are trained.
    pub settings: Settings,
    /// Hears how many trainings are done, and may end the work.
    pub watch: &'a Watch<'a>,
}

impl std::fmt::Debug for Fleet<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (devices, settings) = (self.devices.len(), self.settings);
        let mut debug = f.debug_struct("Fleet");
        debug.field("devices", &devices).field("settings", &settings).finish_non_exhaustive()
    }
}

/// ST-LF's roles with FADA's weights.
///
/// # Errors
/// Names a target that no source reaches, or what is wrong with the data or the settings.
pub fn assign(context: &Context<'_>, seed: u64) -> Result<Assignment, Error> {
    adapted_weights(context, context.ours().roles.clone(), seed)
}

/// Gives these roles links with FADA's weights, all targets in parallel.
pub(super) fn adapted_weights(
    context: &Context<'_>,
    roles: Vec<Role>,
    seed: u64,
) -> Result<Assignment, Error> {
    let fleet =
        context.data.ok_or_else(|| Error::missing("data", "FADA needs the devices' inputs"))?;
    if fleet.devices.len() != roles.len() {
        let (found, expected) = (fleet.devices.len(), roles.len());
        let reason = Reason::Length { found, expected, of: Counted::Devices };
        return Err(Error::new("data", reason));
    }
    let targets: Vec<usize> = with_role(&roles, Role::Target).collect();
    let senders: Vec<Vec<usize>> = (targets.iter())
        .map(|&target| context.senders(&roles, target))
        .collect::<Result<_, _>>()?;
    let rounds = fleet.settings.rounds;
    let total = senders.iter().map(|s| if s.len() > 1 { s.len() * rounds } else { 0 }).sum();
    let done = AtomicUsize::new(0);
    let one = |_, _| (fleet.watch)(done.fetch_add(1, Ordering::Relaxed) + 1, total);
    let fleet = Fleet { watch: &one, ..fleet };
    let weights: Vec<Vec<f64>> = (targets.par_iter().zip(&senders))
        .map(|(&target, senders)| fleet.weights(target, senders, seed))
        .collect::<Result<_, _>>()?;
    let mut weights = weights.into_iter();
    context.every_link(roles, |_, _| Ok(weights.next().unwrap_or_default()))
}

impl Fleet<'_> {
    /// How one target weighs its sources; the weights sum to one.
    ///
    /// # Errors
    /// Without sources, with data that are not of this network, if all training went astray, or if it was ended.
    pub fn weights(&self, target: usize, sources: &[usize], seed: u64) -> Result<Vec<f64>, Error> {
        self.settings.check()?;
        let generator = self.generator()?;
        let inputs = self.target_inputs(target)?;
        for &source in sources {
            let wrong =
                |e: stlf_learn::Error| Error::other(format!("data[{source}]"), e.to_string());
            self.devices[source].labeled.check(self.spec).map_err(wrong)?;
        }
        if sources.is_empty() {
            return Err(Error::missing(format!("data[{target}]"), "there is no source to weigh"));
        }
        let equal = vec![1.0 / sources.len() as f64; sources.len()];
        if !self.settings.attention || sources.len() == 1 {
            return Ok(equal);
        }
        let classes = self.spec.output().len();
        let mut pairs: Vec<Pair<'_>> = sources
            .iter()
            .map(|&source| {
                let labeled = self.devices[source].labeled;
                let rng = rng(seed, target, Some(source));
                Pair::new(&generator, classes, labeled, inputs, self.settings, rng)
            })
            .collect::<Result<_, _>>()?;

        let clusters = Clusters::new(self, &generator, inputs, rng(seed, target, None));
        let mut shared = clusters.first_generator();
        let mut sums = vec![0.0; sources.len()];
        let (done, total) = (AtomicUsize::new(0), self.settings.rounds * sources.len());
        for _ in 0..self.settings.rounds {
            let before = clusters.spread(&shared);
            let after: Vec<f64> = pairs
                .par_iter_mut()
                .map(|pair| {
                    let spread = clusters.spread(pair.train(&shared));
                    let trained = done.fetch_add(1, Ordering::Relaxed) + 1;
                    match (self.watch)(trained, total) {
                        ControlFlow::Continue(()) => Ok(spread),
                        ControlFlow::Break(()) => Err(Error::other("fada", "it was stopped")),
                    }
                })
                .collect::<Result<_, _>>()?;
            let weights = attention::weights(before, &after, self.settings.temperature);
            let weights = weights.ok_or_else(|| {
                Error::other(format!("data[{target}]"), "FADA's training diverged at every source")
                    .with_hint("lower its learning rate")
            })?;
            sums.iter_mut().zip(&weights).for_each(|(sum, weight)| *sum += weight);
            // What went astray has no weight, and must not be multiplied by it.
            let used = pairs.iter().zip(&weights).filter(|(_, weight)| **weight > 0.0);
            shared = Params::average(used.map(|(pair, &weight)| (pair.generator(), weight)))
                .map_err(|e| Error::other("data", e.to_string()))?;
        }
        let rounds = self.settings.rounds as f64;
        Ok(sums.iter().map(|sum| sum / rounds).collect())
    }

    /// The fleet's network with `features` outputs in the place of the classes.
    fn generator(&self) -> Result<Spec, Error> {
        let mut layers: Vec<Layer> = self.spec.layers().map(|(layer, _)| layer).collect();
        match layers.last_mut() {
            Some(Layer::Linear { outputs }) => *outputs = self.settings.features,
            _ => return Err(Error::other("data", "the network does not end in a linear layer")),
        }
        Spec::new(self.spec.input(), layers).map_err(|e| Error::other("data", e.to_string()))
    }

    fn target_inputs(&self, target: usize) -> Result<&[f32], Error> {
        let inputs = self.devices[target].inputs;
        let shape = self.spec.input();
        if inputs.is_empty() || !inputs.len().is_multiple_of(shape.len()) {
            let message = format!("{} numbers are not inputs of {shape}", inputs.len());
            return Err(Error::other(format!("data[{target}]"), message));
        }
        Ok(inputs)
    }
}

/// The target's end of the attention: some of its inputs, and how tightly their features cluster.
struct Clusters<'a> {
    generator: &'a Spec,
    inputs: Vec<f32>,
    k: usize,
    rng: ChaCha8Rng,
}

impl<'a> Clusters<'a> {
    fn new(
        fleet: &Fleet<'_>,
        generator: &'a Spec,
        inputs: &[f32],
        mut rng: ChaCha8Rng,
    ) -> Clusters<'a> {
        let numbers = generator.input().len();
        let samples = inputs.len() / numbers;
        let some = index::sample(&mut rng, samples, samples.min(fleet.settings.cluster_samples));
        let chosen = some.iter().flat_map(|at| &inputs[at * numbers..(at + 1) * numbers]);
        let k = fleet.settings.clusters.unwrap_or(fleet.spec.output().len());
        Clusters { generator, inputs: chosen.copied().collect(), k, rng }
    }

    fn first_generator(&self) -> Params {
        Params::initial(self.generator, self.rng.clone().random())
    }

    /// The spread that clusters leave unexplained. All generators are judged from the same draws, so that luck in
    /// choosing centres favours none.
    fn spread(&self, generator: &Params) -> f64 {
        const BATCH: usize = 32;
        let numbers = self.generator.input().len();
        let mut network = Network::new(self.generator, BATCH);
        let mut features = Vec::new();
        for inputs in self.inputs.chunks(BATCH * numbers) {
            network.inputs(inputs.len() / numbers).copy_from_slice(inputs);
            features.extend_from_slice(network.forward(generator, Mode::Evaluate));
        }
        if features.iter().any(|f| !f.is_finite()) {
            return f64::NAN;
        }
        let width = self.generator.output().len();
        kmeans::cluster(&features, width, self.k, &mut self.rng.clone()).unexplained()
    }
}

/// A sequence of its own for every pair, and one for the target itself.
fn rng(seed: u64, target: usize, source: Option<usize>) -> ChaCha8Rng {
    let mut key = *b"seed....target..source..stlffada";
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&(target as u64).to_le_bytes());
    key[16..24].copy_from_slice(&source.map_or(u64::MAX, |s| s as u64).to_le_bytes());
    ChaCha8Rng::from_seed(key)
}
