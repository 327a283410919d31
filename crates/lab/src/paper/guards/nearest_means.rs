//! The learner of the study, which stands for learners of the user's: a class is where the mean of its pictures lies, and pictures are altered in a
//! way that stlf knows nothing of.

use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use stlf_config::fleet::{DeviceData, Fleet};
use stlf_data::{Class, Shape};
use stlf_learn::augment::Scratch;
use stlf_learn::evaluate::Predictions;
use stlf_learn::{Layout, Params, View};
use stlf_method::learner::{Adaptation, Adapts, Learner, Lesson, UserLearner, Watch};
use stlf_planning::Error as MethodError;

use crate::{Error, Learners};

/// The squared distance over which a class becomes e times less likely than another.
const SOFTNESS: f32 = 5.0;

/// How often a student takes the means of its samples anew.
const ROUNDS: usize = 5;

/// How far noise moves a pixel at most.
const NOISE: f32 = 0.5;

/// How the learner alters pictures to judge a student by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alteration {
    /// Every pixel gets noise, of at most [`NOISE`].
    Noise,
    /// Moved by up to a pixel.
    Shift,
    /// A strong view: moved, turned, sheared, and most of them through a random convolution.
    Views,
}

impl Alteration {
    /// Every way to alter pictures that is tried.
    pub(super) const ALL: [Alteration; 3] =
        [Alteration::Noise, Alteration::Shift, Alteration::Views];

    /// Returns the name that tables and folders have.
    pub(super) fn name(self) -> &'static str {
        match self {
            Alteration::Noise => "noise",
            Alteration::Shift => "shift",
            Alteration::Views => "views",
        }
    }

    fn apply(self, picture: &mut [f32], scratch: &mut Scratch, rng: &mut ChaCha8Rng) {
        match self {
            Alteration::Noise => {
                picture.iter_mut().for_each(|pixel| *pixel += rng.random_range(-NOISE..=NOISE));
            }
            Alteration::Shift => View::SHIFT.apply(picture, scratch, rng),
            Alteration::Views => View::STRONG.apply(picture, scratch, rng),
        }
    }
}

/// A device's pictures, and the means of its classes as a model: how many pictures of each class it is of, and the means.
#[derive(Debug)]
struct NearestMeans {
    layout: Layout,
    classes: usize,
    shape: Shape,
    pictures: Vec<f32>,
    labels: Vec<Class>,
    alteration: Alteration,
}

/// The learners of a fleet, one for each device.
///
/// # Errors
/// A device has no sample.
pub(super) fn learners(
    fleet: Fleet,
    classes: &[String],
    alteration: Alteration,
) -> Result<Learners, Error> {
    let shape = fleet.shape;
    let (of, pixels) = (classes.len(), shape.len());
    let layout = Layout::new([("counts", &[of][..]), ("means", &[of, pixels][..])])?;
    let user = |device: DeviceData| {
        let DeviceData { name, places, inputs, labels, truth, .. } = device;
        let learner = NearestMeans {
            layout: layout.clone(),
            classes: of,
            shape,
            pictures: inputs.to_vec(),
            labels: labels.clone(),
            alteration,
        };
        let user = UserLearner {
            name: format!("nearest-means-{}/1", alteration.name()),
            classes: classes.to_vec(),
            features: inputs.to_vec(),
            labels,
            told_truth: truth,
            // Samples with a label come first, and that is the learner's own order.
            places: (0..places.len()).collect(),
            learner: Arc::new(learner),
        };
        (name, user)
    };
    Learners::new(fleet.devices.into_iter().map(user).collect())
}

impl NearestMeans {
    fn picture(&self, row: usize) -> &[f32] {
        &self.pictures[row * self.shape.len()..][..self.shape.len()]
    }

    /// The means of these pictures by these classes, added to those of a model.
    fn means(&self, start: Option<&Params>, of: impl Iterator<Item = (usize, usize)>) -> Params {
        let pixels = self.shape.len();
        let mut values = start.map_or(vec![0.0; self.classes * (1 + pixels)], |p| p.to_vec());
        let (counts, means) = values.split_at_mut(self.classes);
        for (row, class) in of {
            counts[class] += 1.0;
            let mean = &mut means[class * pixels..][..pixels];
            let step = 1.0 / counts[class];
            mean.iter_mut().zip(self.picture(row)).for_each(|(m, x)| *m += step * (x - *m));
        }
        Params::from(values)
    }

    /// The probabilities of all classes of a picture; those that the model is of no picture of have none.
    fn probabilities(&self, model: &Params, picture: &[f32]) -> Vec<f32> {
        let (counts, means) = model.split_at(self.classes);
        let distances: Vec<f32> = (counts.iter().zip(means.chunks_exact(self.shape.len())))
            .map(|(&count, mean)| if count > 0.0 { distance(mean, picture) } else { f32::INFINITY })
            .collect();
        let nearest = distances.iter().copied().fold(f32::INFINITY, f32::min);
        if nearest.is_infinite() {
            return vec![1.0 / self.classes as f32; self.classes];
        }
        let odds: Vec<f32> = distances.iter().map(|d| ((nearest - d) / SOFTNESS).exp()).collect();
        let sum: f32 = odds.iter().sum();
        odds.into_iter().map(|odds| odds / sum).collect()
    }

    fn likeliest(&self, model: &Params, row: usize) -> usize {
        let probabilities = self.probabilities(model, self.picture(row));
        let best = |a: &usize, b: &usize| probabilities[*a].total_cmp(&probabilities[*b]);
        (0..self.classes).max_by(best).unwrap_or(0)
    }
}

/// The squared distance of two pictures, in sums side by side, which a processor adds up together.
fn distance(a: &[f32], b: &[f32]) -> f32 {
    const TOGETHER: usize = 16;
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<TOGETHER>(), b.as_chunks::<TOGETHER>());
    let mut sums = [0.0; TOGETHER];
    for (a, b) in a.iter().zip(b) {
        for i in 0..TOGETHER {
            sums[i] += (a[i] - b[i]) * (a[i] - b[i]);
        }
    }
    let rest = a_rest.iter().zip(b_rest).map(|(a, b)| (a - b).powi(2));
    sums.into_iter().sum::<f32>() + rest.sum::<f32>()
}

impl Learner for NearestMeans {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn train(
        &self,
        lesson: Lesson<'_>,
        _watch: &mut Watch<'_>,
    ) -> Result<Option<Params>, MethodError> {
        let labeled = lesson.rows.iter().map(|&row| (row, usize::from(self.labels[row])));
        Ok(Some(self.means(lesson.start, labeled)))
    }

    fn predict(
        &self,
        model: &Params,
        rows: &[usize],
        _watch: &mut Watch<'_>,
    ) -> Result<Option<Predictions>, MethodError> {
        let all = rows.iter().flat_map(|&row| self.probabilities(model, self.picture(row)));
        Ok(Some(Predictions::new(all.collect(), self.classes)))
    }

    fn adapts(&self) -> Option<&dyn Adapts> {
        Some(self)
    }
}

impl Adapts for NearestMeans {
    fn adapt(
        &self,
        adaptation: Adaptation<'_>,
        _watch: &mut Watch<'_>,
    ) -> Result<Option<Params>, MethodError> {
        let taught = adaptation.teacher.classes().map(usize::from);
        let mut student = self.means(None, adaptation.rows.iter().copied().zip(taught));
        for _ in 1..ROUNDS {
            let own = adaptation.rows.iter().map(|&row| (row, self.likeliest(&student, row)));
            student = self.means(None, own);
        }
        Ok(Some(student))
    }

    fn predict_altered(
        &self,
        model: &Params,
        rows: &[usize],
        seed: u64,
        _watch: &mut Watch<'_>,
    ) -> Result<Option<Predictions>, MethodError> {
        let (mut rng, mut scratch) = (ChaCha8Rng::seed_from_u64(seed), Scratch::new(self.shape));
        let all = rows.iter().flat_map(|&row| {
            let mut picture = self.picture(row).to_vec();
            self.alteration.apply(&mut picture, &mut scratch, &mut rng);
            self.probabilities(model, &picture)
        });
        Ok(Some(Predictions::new(all.collect(), self.classes)))
    }
}
