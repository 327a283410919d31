//! The network of our own that a side of a pair trains.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use stlf_data::Class;
use stlf_learn::{Examples, Mode, Network, Params, Spec, Trainer};
use stlf_planning::error::Error;

use super::super::derive;
use super::{Classifier, Count, Settings, Side};

/// A small network with two outputs, and the inputs of one side, `I`.
#[derive(Debug)]
pub struct OwnNetwork<I> {
    spec: Spec,
    settings: Settings,
    side: Side,
    inputs: I,
    labels: Vec<Class>,
    seed: u64,
    network: Network,
    trainer: Trainer,
    rng: ChaCha8Rng,
    /// All samples in a random order; the part held out stays in place within a repeat.
    order: Vec<u32>,
    /// The samples trained on, in the order of this pass, and how far it got.
    training: Vec<u32>,
    next: usize,
    repeat: usize,
}

impl<I: AsRef<[f32]>> OwnNetwork<I> {
    pub(super) fn new(
        spec: &Spec,
        settings: &Settings,
        side: Side,
        inputs: I,
        seed: u64,
    ) -> Result<OwnNetwork<I>, Error> {
        settings.check()?;
        let samples = inputs.as_ref().len() / spec.input().len();
        if samples == 0 {
            return Err(Error::no_samples("divergence", "a device has no sample to compare"));
        }
        let mut rng = ChaCha8Rng::seed_from_u64(derive(seed, &[1 + side as u64]));
        let mut order: Vec<u32> = (0..samples as u32).collect();
        shuffle(&mut order, &mut rng);
        Ok(OwnNetwork {
            spec: spec.clone(),
            settings: *settings,
            side,
            inputs,
            labels: vec![side as Class; samples],
            seed,
            network: Network::new(spec, settings.descent.batch.max(MEASURED_TOGETHER)),
            trainer: trainer(spec, settings, seed, side, 0)?,
            rng,
            order,
            training: Vec::new(),
            next: 0,
            repeat: 0,
        })
    }

    /// The samples of this repeat to train on: all but those held out.
    fn choose_training(&mut self) {
        let held_out = self.settings.held_out(self.repeat, self.order.len());
        let count = self.order.len() - held_out.len();
        let rest = self.order.iter().cycle().skip(held_out.end).take(count);
        self.training = rest.copied().collect();
        self.next = self.training.len();
    }
}

impl<I: AsRef<[f32]>> Classifier for OwnNetwork<I> {
    fn begin(&mut self, repeat: usize) -> Result<Params, Error> {
        self.repeat = repeat;
        self.trainer = trainer(&self.spec, &self.settings, self.seed, self.side, repeat)?;
        self.choose_training();
        Ok(self.trainer.params.clone())
    }

    fn train(&mut self, params: Params) -> Result<Params, Error> {
        self.trainer.params = params;
        let examples = Examples { inputs: self.inputs.as_ref(), labels: &self.labels };
        let batch = self.settings.descent.batch;
        for _ in 0..self.settings.steps {
            if self.next == self.training.len() {
                shuffle(&mut self.training, &mut self.rng);
                self.next = 0;
            }
            let end = (self.next + batch).min(self.training.len());
            self.trainer.step(&mut self.network, examples, &self.training[self.next..end]);
            self.next = end;
        }
        Ok(self.trainer.params.clone())
    }

    /// The average's errors on the samples held out, or on all where none is.
    fn count_errors(&mut self, params: &Params) -> Result<Count, Error> {
        let held_out = self.settings.held_out(self.repeat, self.order.len());
        let count = if held_out.is_empty() { self.order.len() } else { held_out.len() };
        let measured: Vec<u32> =
            self.order.iter().cycle().skip(held_out.start).take(count).copied().collect();
        let numbers = self.spec.input().len();
        let own = self.side as usize;
        let mut errors = 0;
        for samples in measured.chunks(MEASURED_TOGETHER) {
            let inputs = self.network.inputs(samples.len()).chunks_exact_mut(numbers);
            for (input, &sample) in inputs.zip(samples) {
                let start = sample as usize * numbers;
                input.copy_from_slice(&self.inputs.as_ref()[start..start + numbers]);
            }
            let outputs = self.network.forward(params, Mode::Evaluate);
            // Where both outputs are equal, the guess is half right; counted as wrong on one side only.
            let wrong = |o: &&[f32]| if own == 0 { o[1] > o[0] } else { o[0] >= o[1] };
            errors += outputs.chunks_exact(2).filter(wrong).count() as u64;
        }
        Ok(Count { errors, samples: measured.len() as u64 })
    }
}

/// How many samples are measured together.
const MEASURED_TOGETHER: usize = 32;

/// Both sides start from the same first values, but take their own random way from there.
fn trainer(
    spec: &Spec,
    settings: &Settings,
    seed: u64,
    side: Side,
    repeat: usize,
) -> Result<Trainer, Error> {
    let params = Params::initial(spec, derive(seed, &[0, repeat as u64]));
    let own = derive(seed, &[3 + side as u64, repeat as u64]);
    Trainer::new(spec, params, settings.descent, own)
        .map_err(|e| Error::other("divergence.classifier", e.to_string()))
}

fn shuffle(order: &mut [u32], rng: &mut ChaCha8Rng) {
    for i in (1..order.len()).rev() {
        order.swap(i, rng.random_range(0..=i));
    }
}
