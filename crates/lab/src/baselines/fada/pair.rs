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
use stlf_planning::error::Error;

use super::Settings;
use super::information::negative_information;
use super::part::{Part, add_scaled, columns};

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

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use stlf_data::Shape;

    use super::*;

    const WIDTH: usize = 6;
    const HALF: usize = WIDTH / 2;
    const LABELS: [Class; 4] = [0, 2, 1, 2];

    fn pair() -> Pair<'static> {
        let rng = ChaCha8Rng::seed_from_u64(1);
        let spec = Spec::mlp(Shape::grey(2), WIDTH).unwrap();
        let source = Examples { inputs: &[0.1, 0.2, 0.3, 0.4], labels: &[1] };
        let settings = Settings {
            features: WIDTH,
            align_weight: 0.3,
            disentangle_weight: 0.7,
            ..Settings::default()
        };
        Pair::new(&spec, 3, source, &[0.5, 0.6, 0.7, 0.8], settings, rng).unwrap()
    }

    fn some_features(rows: usize) -> Vec<f32> {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        (0..rows * WIDTH).map(|_| rng.random::<f32>() * 2.0 - 1.0).collect()
    }

    /// A part's loss for these inputs, changing nothing.
    fn loss(
        part: &mut Part,
        inputs: &[f32],
        rows: usize,
        loss: impl FnOnce(&[f32], &mut [f32]) -> f32,
    ) -> f32 {
        part.inputs(rows).copy_from_slice(inputs);
        part.forward(&mut ChaCha8Rng::seed_from_u64(0));
        part.backward(loss).0
    }

    fn slopes(at: &[f32], mut value: impl FnMut(&[f32]) -> f32) -> Vec<f32> {
        (0..at.len())
            .map(|i| {
                let mut moved = |step: f32| {
                    let mut there = at.to_vec();
                    there[i] += step;
                    value(&there)
                };
                (moved(1e-2) - moved(-1e-2)) / 2e-2
            })
            .collect()
    }

    fn assert_close(gradients: &[f32], slopes: &[f32]) {
        assert!(slopes.iter().any(|s| s.abs() > 1e-3));
        for (gradient, slope) in gradients.iter().zip(slopes) {
            assert!((gradient - slope).abs() < 2e-3, "{gradient} {slope}");
        }
    }

    #[test]
    fn alignment_drives_the_identifier_and_the_features_apart() {
        let mut pair = pair();
        let features = some_features(8);
        let domains = [0, 0, 0, 0, 1, 1, 1, 1];
        let identify = |part: &mut Part, features: &[f32]| {
            loss(part, features, 8, |y, dy| cross_entropy(y, &domains, dy))
        };
        let slopes = slopes(&features, |f| -0.3 * identify(&mut pair.domain_identifier, f));
        let before = identify(&mut pair.domain_identifier, &features);
        let mut to_features = vec![0.0; features.len()];
        pair.align(&features, &mut to_features);
        assert_close(&to_features, &slopes);
        let after = identify(&mut pair.domain_identifier, &features);
        assert!(after < before, "the identifier gets better: {before} to {after}");
        let alike: Vec<f32> = features.iter().zip(&to_features).map(|(f, g)| f - g).collect();
        let fooled = identify(&mut pair.domain_identifier, &alike);
        assert!(fooled > after, "the features' step makes it worse: {after} to {fooled}");
    }

    #[test]
    fn disentanglement_descends_what_it_says() {
        let mut pair = pair();
        let (halves, features) = (some_features(4), some_features(4));
        // The same shuffle that the pair is about to draw.
        let mut apart: Vec<usize> = (0..4).collect();
        apart.shuffle(&mut pair.rng.clone());
        let slopes = slopes(&halves, |halves| {
            let specific: Vec<f32> =
                columns(halves, WIDTH, HALF, HALF).flatten().copied().collect();
            let class = loss(&mut pair.class_identifier, &specific, 4, |y, dy| {
                cross_entropy(y, &LABELS, dy)
            });
            let row = |r: usize| &halves[r * WIDTH..(r + 1) * WIDTH];
            let shuffled = (0..4).flat_map(|r| [&row(r)[..HALF], &row(apart[r])[HALF..]].concat());
            let pairs: Vec<f32> = halves.iter().copied().chain(shuffled).collect();
            let information = -loss(&mut pair.information, &pairs, 8, negative_information);
            let rebuilt =
                loss(&mut pair.reconstructor, halves, 4, |y, dy| squared_error(y, &features, dy));
            0.7 * (rebuilt + information - class)
        });
        let mut to_halves = vec![0.0; halves.len()];
        pair.disentangle(&halves, &features, &LABELS, &mut to_halves);
        assert_close(&to_halves, &slopes);
    }

    #[test]
    fn a_source_learns_its_classes() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        // Two classes on either side of a line, and a target that looks the same.
        let inputs: Vec<f32> = (0..400).map(|_| rng.random::<f32>() * 2.0 - 1.0).collect();
        let labels: Vec<Class> =
            inputs.chunks_exact(4).map(|x| Class::from(x[0] + x[3] > 0.0)).collect();
        let spec = Spec::mlp(Shape::grey(2), WIDTH).unwrap();
        let source = Examples { inputs: &inputs, labels: &labels };
        let settings = Settings { features: WIDTH, steps: 300, ..Settings::default() };
        let mut pair = Pair::new(&spec, 2, source, &inputs, settings, rng.clone()).unwrap();
        pair.train(&Params::initial(&spec, 4));
        let mut errors = 0;
        for _ in 0..20 {
            let batch = pair.draw();
            pair.generator.inputs(20).copy_from_slice(&batch.inputs);
            let features = pair.generator.forward(&mut rng)[..10 * WIDTH].to_vec();
            pair.disentangler.inputs(10).copy_from_slice(&features);
            let halves = pair.disentangler.forward(&mut rng).to_vec();
            fill(pair.classifier.inputs(10), columns(&halves, WIDTH, 0, HALF));
            let outputs = pair.classifier.forward(&mut rng).chunks_exact(2);
            errors +=
                outputs.zip(&batch.labels).filter(|(y, l)| (y[1] > y[0]) != (**l == 1)).count();
        }
        assert!(errors < 20, "{errors} of 200 wrong");
    }
}
