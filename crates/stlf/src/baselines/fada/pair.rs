//! One source training against one target.
//!
//! ```text
//!  source's inputs ─┐             ┌─ features ─► disentangler ─► invariant half ─► classifier
//!                   ├─► generator ┤                              specific half ──► class identifier   (reversed)
//!  target's inputs ─┘             └─ both ────► domain identifier (reversed)
//!                                   both halves ─► mutual information (reversed), reconstructor
//! ```
//!
//! Each end runs its own inputs through its copy of the generator; features, gradients and parameters cross, inputs do
//! not, and the target's labels are not known to anybody.

use rand::RngExt;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use stlf_data::Class;
use stlf_learn::loss::{cross_entropy, squared_error};
use stlf_learn::{Examples, Params, Spec};

use super::information::negative_information;
use super::part::{Part, add_scaled, columns};
use super::settings::Settings;
use crate::error::Error;

/// All networks of one source, and what they draw from.
#[derive(Debug)]
pub(super) struct Pair<'a> {
    settings: Settings,
    source: Examples<'a>,
    target: &'a [f32],
    numbers: usize,
    rng: ChaCha8Rng,
    generator: Part,
    disentangler: Part,
    classifier: Part,
    class_identifier: Part,
    domain_identifier: Part,
    information: Part,
    reconstructor: Part,
}

/// One batch of the source's, with as many of the target's inputs.
struct Batch {
    inputs: Vec<f32>,
    labels: Vec<Class>,
}

impl<'a> Pair<'a> {
    pub(super) fn new(
        generator: &Spec,
        classes: usize,
        source: Examples<'a>,
        target: &'a [f32],
        settings: Settings,
        mut rng: ChaCha8Rng,
    ) -> Result<Pair<'a>, Error> {
        let (features, batch) = (settings.features, settings.descent.batch);
        let half = features / 2;
        Ok(Pair {
            settings,
            source,
            target,
            numbers: generator.input().len(),
            generator: Part::new(generator, 2 * batch, &mut rng),
            disentangler: Part::head(features, &[features], batch, &mut rng)?,
            classifier: Part::head(half, &[half, classes], batch, &mut rng)?,
            class_identifier: Part::head(half, &[half, classes], batch, &mut rng)?,
            domain_identifier: Part::head(features, &[half, 2], 2 * batch, &mut rng)?,
            information: Part::head(features, &[half, 1], 2 * batch, &mut rng)?,
            reconstructor: Part::head(features, &[features], batch, &mut rng)?,
            rng,
        })
    }

    /// The source's update: what its steps make of the target's generator.
    pub(super) fn train(&mut self, from: &Params) -> &Params {
        self.generator.restart(from);
        for _ in 0..self.settings.steps {
            let batch = self.draw();
            self.step(&batch);
        }
        &self.generator.params
    }

    /// The generator as the last training left it.
    pub(super) fn generator(&self) -> &Params {
        &self.generator.params
    }

    fn draw(&mut self) -> Batch {
        let (count, numbers) = (self.settings.descent.batch, self.numbers);
        let mut inputs = Vec::with_capacity(2 * count * numbers);
        let mut labels = Vec::with_capacity(count);
        for _ in 0..count {
            let at = self.rng.random_range(0..self.source.len());
            inputs.extend_from_slice(&self.source.inputs[at * numbers..(at + 1) * numbers]);
            labels.push(self.source.labels[at]);
        }
        for _ in 0..count {
            let at = self.rng.random_range(0..self.target.len() / numbers);
            inputs.extend_from_slice(&self.target[at * numbers..(at + 1) * numbers]);
        }
        Batch { inputs, labels }
    }

    fn step(&mut self, batch: &Batch) {
        let count = batch.labels.len();
        self.generator.inputs(2 * count).copy_from_slice(&batch.inputs);
        let features = self.generator.forward(&mut self.rng).to_vec();
        let mut to_features = vec![0.0; features.len()];
        let of_source = count * self.settings.features;
        self.heads(&features[..of_source], &batch.labels, &mut to_features[..of_source]);
        if self.settings.align {
            self.align(&features, &mut to_features);
        }
        self.generator.backward_last(&to_features);
        let Pair { generator, disentangler, classifier, .. } = self;
        for part in [generator, disentangler, classifier] {
            part.descend(&self.settings.descent);
        }
    }

    /// The disentangler and what stands on its halves, for the source's features.
    fn heads(&mut self, features: &[f32], labels: &[Class], to_features: &mut [f32]) {
        let (count, width) = (labels.len(), self.settings.features);
        let half = width / 2;
        self.disentangler.inputs(count).copy_from_slice(features);
        let halves = self.disentangler.forward(&mut self.rng).to_vec();
        let mut to_halves = vec![0.0; halves.len()];

        fill(self.classifier.inputs(count), columns(&halves, width, 0, half));
        self.classifier.forward(&mut self.rng);
        let (_, gradients) = self.classifier.backward(|y, dy| cross_entropy(y, labels, dy));
        add_columns(&mut to_halves, width, 0, 1.0, gradients);

        if self.settings.disentangle {
            self.disentangle(&halves, features, labels, &mut to_halves);
        }
        let (_, gradients) = self.disentangler.backward(|_, dy| {
            dy.copy_from_slice(&to_halves);
            0.0
        });
        add_scaled(to_features, 1.0, gradients);
    }

    /// No class in the specific half, nothing in common between the halves, and everything in both together.
    fn disentangle(
        &mut self,
        halves: &[f32],
        features: &[f32],
        labels: &[Class],
        to_halves: &mut [f32],
    ) {
        let (count, width) = (labels.len(), self.settings.features);
        let (half, weight) = (width / 2, self.settings.disentangle_weight);

        fill(self.class_identifier.inputs(count), columns(halves, width, half, half));
        self.class_identifier.forward(&mut self.rng);
        let (_, gradients) = self.class_identifier.backward(|y, dy| cross_entropy(y, labels, dy));
        add_columns(to_halves, width, half, -weight, gradients);

        let mut apart: Vec<usize> = (0..count).collect();
        apart.shuffle(&mut self.rng);
        let (joint, marginal) = self.information.inputs(2 * count).split_at_mut(count * width);
        joint.copy_from_slice(halves);
        for ((pair, own), &other) in
            marginal.chunks_exact_mut(width).zip(halves.chunks_exact(width)).zip(&apart)
        {
            pair[..half].copy_from_slice(&own[..half]);
            pair[half..].copy_from_slice(&halves[other * width + half..(other + 1) * width]);
        }
        self.information.forward(&mut self.rng);
        let (_, gradients) = self.information.backward(negative_information);
        let (joint, marginal) = gradients.split_at(count * width);
        add_scaled(to_halves, -weight, joint);
        for ((at, pair), &other) in marginal.chunks_exact(width).enumerate().zip(&apart) {
            add_scaled(&mut to_halves[at * width..][..half], -weight, &pair[..half]);
            add_scaled(&mut to_halves[other * width + half..][..half], -weight, &pair[half..]);
        }

        self.reconstructor.inputs(count).copy_from_slice(halves);
        self.reconstructor.forward(&mut self.rng);
        let (_, gradients) = self.reconstructor.backward(|y, dy| squared_error(y, features, dy));
        add_scaled(to_halves, weight, gradients);

        let Pair { class_identifier, information, reconstructor, .. } = self;
        for part in [class_identifier, information, reconstructor] {
            part.descend(&self.settings.descent);
        }
    }

    /// The domain identifier learns to tell the source's features from the target's, the generator to make them alike.
    fn align(&mut self, features: &[f32], to_features: &mut [f32]) {
        let count = features.len() / self.settings.features;
        let domains: Vec<Class> = (0..count).map(|at| Class::from(at >= count / 2)).collect();
        self.domain_identifier.inputs(count).copy_from_slice(features);
        self.domain_identifier.forward(&mut self.rng);
        let (_, gradients) =
            self.domain_identifier.backward(|y, dy| cross_entropy(y, &domains, dy));
        add_scaled(to_features, -self.settings.align_weight, gradients);
        self.domain_identifier.descend(&self.settings.descent);
    }
}

fn fill<'a>(into: &mut [f32], rows: impl Iterator<Item = &'a [f32]>) {
    let mut rest = into;
    for row in rows {
        let (place, after) = rest.split_at_mut(row.len());
        place.copy_from_slice(row);
        rest = after;
    }
}

/// [`add_scaled`] into columns from `start` of rows of `width` numbers.
fn add_columns(rows: &mut [f32], width: usize, start: usize, weight: f32, more: &[f32]) {
    let columns = more.len() * width / rows.len();
    for (row, more) in rows.chunks_exact_mut(width).zip(more.chunks_exact(columns)) {
        add_scaled(&mut row[start..start + columns], weight, more);
    }
}
