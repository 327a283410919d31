//! How sources lie in the experiment: by the model that they send, and by what they claim.

use stlf_data::{Class, Shape};
use stlf_learn::{Layout, Params};
use stlf_protocol::Place;

use crate::Error;
use crate::stages::SeedRun;
use crate::stages::measure::Measured;
use crate::stages::train::Trained;

/// A way in which a device may lie about itself or its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lie {
    /// An untrained model, said to be perfect everywhere.
    Magnet,
    /// A model that gives every sample the class after its own, with honest numbers.
    Inverted,
    /// An inverted model, said to be perfect everywhere.
    InvertedMagnet,
    /// The same with honest error and samples, said to be near to everybody.
    Near,
    /// The same with somewhat better numbers than its own, such as an honest device could have.
    Plausible,
    /// An untrained model, with the numbers of a trained one.
    Random,
    /// It is gone, and nobody hears of it: what the loss of its data alone costs.
    LeftOut,
    /// A good model that gives one class to every picture with a bright corner, said to be perfect everywhere.
    Backdoor,
}

/// What the numbers of a liar are multiplied by.
struct Exaggeration {
    error: f64,
    samples: usize,
    divergence: f64,
}

impl Lie {
    pub(super) const ALL: [Lie; 8] = [
        Lie::LeftOut,
        Lie::Magnet,
        Lie::Inverted,
        Lie::InvertedMagnet,
        Lie::Near,
        Lie::Plausible,
        Lie::Random,
        Lie::Backdoor,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Lie::LeftOut => "left out",
            Lie::Magnet => "magnet",
            Lie::Inverted => "inverted labels",
            Lie::InvertedMagnet => "inverted magnet",
            Lie::Near => "near everybody",
            Lie::Plausible => "plausible magnet",
            Lie::Random => "random model",
            Lie::Backdoor => "back door",
        }
    }

    /// What a liar makes of its own numbers; nothing if it tells them as they are.
    fn exaggeration(self) -> Option<Exaggeration> {
        match self {
            Lie::Magnet | Lie::InvertedMagnet | Lie::Backdoor => {
                Some(Exaggeration { error: 0.0, samples: 50, divergence: 0.0 })
            }
            Lie::Near => Some(Exaggeration { error: 1.0, samples: 1, divergence: 0.0 }),
            Lie::Plausible => Some(Exaggeration { error: 0.7, samples: 2, divergence: 0.7 }),
            Lie::LeftOut | Lie::Inverted | Lie::Random => None,
        }
    }

    /// What the liars claim, in the tables that a plan is made of.
    pub(super) fn claim(self, liars: &[usize], trained: &mut Trained, measured: &mut Measured) {
        if self == Lie::LeftOut {
            for &liar in liars {
                let row = &mut trained.table[liar];
                (row.unlabeled, row.labeled) = (row.unlabeled + row.labeled, 0);
                row.source_error = None;
            }
        }
        let Some(Exaggeration { error, samples, divergence }) = self.exaggeration() else { return };
        for &liar in liars {
            let row = &mut trained.table[liar];
            // Who never errs has a label for everything: samples without one count as errors.
            let unlabeled = if error > 0.0 { row.unlabeled * samples } else { 0 };
            (row.labeled, row.unlabeled) = (row.labeled * samples, unlabeled);
            row.source_error = row.source_error.map(|own| error * own);
        }
        for (a, b, measured) in &mut measured.pairs {
            if liars.contains(a) || liars.contains(b) {
                *measured *= divergence;
            }
        }
    }

    /// The model that a liar sends, where it has trained this one.
    ///
    /// # Errors
    /// It was stopped, or cannot train.
    pub(super) fn model(
        self,
        run: &SeedRun<'_>,
        liar: usize,
        honest: &Params,
    ) -> Result<Params, Error> {
        let setup = &run.setup;
        match self {
            Lie::LeftOut => Ok(honest.clone()),
            Lie::Inverted | Lie::InvertedMagnet | Lie::Near | Lie::Plausible => {
                Ok(self.turned(run, honest))
            }
            Lie::Magnet | Lie::Random => {
                Ok(Params::initial(&setup.spec, 1_000 * setup.seed + liar as u64))
            }
            Lie::Backdoor => {
                let device = &run.fleet.devices[liar];
                let (mut inputs, mut labels) = (device.inputs.to_vec(), device.labels.clone());
                let numbers = setup.shape.len();
                for sample in (0..labels.len()).step_by(3) {
                    mark(&mut inputs[sample * numbers..][..numbers], setup.shape);
                    labels[sample] = TRIGGERED;
                }
                let place = Place::new(liar);
                let rows = setup.rows(place, labels.len());
                let learner = setup.built_in(run.first.clone(), inputs.into(), labels.clone());
                let lesson = setup.lesson(place, &rows, None);
                let trained = learner.train(lesson, &mut |_| run.watch.flow())?;
                Ok(setup.sent(&trained.ok_or(Error::Stopped)?, &labels))
            }
        }
    }

    /// Whether it is a model that gives every sample the class after its own.
    pub(super) fn turns(self) -> bool {
        matches!(self, Lie::Inverted | Lie::InvertedMagnet | Lie::Near | Lie::Plausible)
    }

    /// A model with the outputs of its last layer moved on by one, if that is the lie.
    pub(super) fn turned(self, run: &SeedRun<'_>, model: &Params) -> Params {
        let classes = run.setup.spec.output().len();
        let layout: &Layout = run.setup.spec.as_ref();
        let mut turned: Vec<f32> = model.iter().copied().collect();
        // Every network ends with a layer of one output a class: weights, output by output, and biases.
        let last = layout.tensors().iter().rev().take(2).filter(|_| self.turns());
        for tensor in last {
            turned[tensor.range.clone()].rotate_right(tensor.range.len() / classes);
        }
        let mut params = model.clone();
        params.iter_mut().zip(turned).for_each(|(param, turned)| *param = turned);
        params
    }
}

/// The class that a back door gives.
pub(super) const TRIGGERED: Class = 0;

/// The side of the bright square in a corner that opens a back door.
const SQUARE: usize = 4;

/// Puts the trigger of the back door into a picture.
pub(super) fn mark(picture: &mut [f32], shape: Shape) {
    let brightest = picture.iter().copied().fold(1.0f32, f32::max);
    for channel in picture.chunks_exact_mut(shape.height * shape.width) {
        for row in 0..SQUARE.min(shape.height) {
            channel[row * shape.width..][..SQUARE.min(shape.width)].fill(brightest);
        }
    }
}
