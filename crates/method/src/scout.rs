//! Scouts: classifiers so small that sources can exchange them before anything is planned, to try a decision on labels that exist.
//!
//! A scout is a linear classifier in closed form: the least squares of one-hot labels over a device's labeled inputs, with a ridge
//! (Hoerl and Kennard 1970). The mean of scouts decides as their mixture does, because their outputs are linear in their weights. So
//! a device that knows the sum of all scouts knows how well all *others* together do on its own labels: it takes away its own. With
//! its labels it stands in for a target, for which there are none ([`at_pretended_targets`]).

use rayon::prelude::*;
use stlf_data::Class;

use crate::divergence::covariance::{Cholesky, add_to_diagonal, start, trace, triangle};

/// The ridge, as a part of the mean square of an input: little, since a device's inputs are often fewer than it needs without.
const RIDGE: f64 = 0.01;

/// The labeled samples of one device.
#[derive(Debug, Clone, Copy)]
pub struct Labeled<'a> {
    /// Their inputs, one after the other.
    pub inputs: &'a [f32],
    /// Their labels; not empty.
    pub labels: &'a [Class],
}

/// A linear classifier: for every class a weight for each input and, last, a constant.
#[derive(Debug, Clone, PartialEq)]
pub struct Scout {
    weights: Vec<Vec<f32>>,
}

impl Scout {
    /// Trains on a device's labels, `width` numbers an input. Weights are as they are sent, in eight bits each.
    pub fn new(own: Labeled<'_>, width: usize, classes: usize) -> Scout {
        let side = width + 1;
        let mut products = vec![0.0; triangle(side)];
        let mut answers = vec![vec![0.0; side]; classes];
        for (input, &label) in own.inputs.chunks_exact(width).zip(own.labels) {
            let input: Vec<f64> = input.iter().map(|&x| f64::from(x)).chain([1.0]).collect();
            for (row, x) in input.iter().enumerate() {
                let products = &mut products[start(row)..start(row + 1)];
                products.iter_mut().zip(&input).for_each(|(product, y)| *product += x * y);
            }
            for (class, answers) in answers.iter_mut().enumerate() {
                let own = f64::from(u8::from(usize::from(label) == class));
                let answer = own - 1.0 / classes as f64;
                answers.iter_mut().zip(&input).for_each(|(sum, x)| *sum += answer * x);
            }
        }
        let ridge = RIDGE * trace(&products, side) / side as f64;
        add_to_diagonal(&mut products, side, ridge);
        let factor = Cholesky::new(products, side);
        answers.iter_mut().for_each(|answers| factor.solve(answers));
        Scout { weights: answers.iter().map(|weights| in_eight_bits(weights)).collect() }
    }

    /// What a scout takes: a byte a weight, and a unit for every class.
    pub fn bytes(width: usize, classes: usize) -> u64 {
        (classes * (width + 1 + size_of::<f32>())) as u64
    }

    /// What it says of an input: the larger for a class, the likelier that is.
    pub fn outputs(&self, input: &[f32]) -> Vec<f64> {
        self.weights.iter().map(|weights| output(weights, input)).collect()
    }
}

/// The share of a device's labels that a sum of scouts gives.
fn accuracy(sum: &[Vec<f32>], at: Labeled<'_>, width: usize) -> f64 {
    let given = |input: &[f32]| {
        let outputs = sum.iter().map(|weights| output(weights, input));
        let best = outputs.enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
        best.map_or(0, |(class, _)| class)
    };
    let right = at.inputs.chunks_exact(width).zip(at.labels);
    let right = right.filter(|(input, label)| given(input) == usize::from(**label)).count();
    right as f64 / at.labels.len() as f64
}

/// The sum of scouts, as devices hear it: in eight bits a weight, like what they sent.
fn sum<'s>(
    scouts: impl IntoIterator<Item = &'s Scout>,
    width: usize,
    classes: usize,
) -> Vec<Vec<f32>> {
    let mut sum = vec![vec![0.0; width + 1]; classes];
    for scout in scouts {
        for (sum, weights) in sum.iter_mut().zip(&scout.weights) {
            sum.iter_mut().zip(weights).for_each(|(s, &w)| *s += f64::from(w));
        }
    }
    sum.iter().map(|weights| in_eight_bits(weights)).collect()
}

/// Weights for each input times the inputs, and the constant that comes last.
fn output<W: Copy + Default + Into<f64>>(weights: &[W], input: &[f32]) -> f64 {
    let constant: f64 = weights.last().copied().unwrap_or_default().into();
    input.iter().zip(weights).map(|(&x, &w)| f64::from(x) * w.into()).sum::<f64>() + constant
}

/// Weights as they arrive: whole numbers of eight bits of a unit that is sent with them.
fn in_eight_bits(weights: &[f64]) -> Vec<f32> {
    let largest = weights.iter().fold(0.0f64, |largest, w| largest.max(w.abs()));
    let unit = (largest / f64::from(i8::MAX)) as f32;
    let sent = |w: &f64| if unit > 0.0 { (w / f64::from(unit)).round() as f32 * unit } else { 0.0 };
    weights.iter().map(sent).collect()
}

/// The scouts of some devices.
fn scouts(devices: &[Labeled<'_>], width: usize, classes: usize) -> Vec<Scout> {
    devices.par_iter().map(|device| Scout::new(*device, width, classes)).collect()
}

/// Each device in turn plays a target: the accuracy of the mixture of all others' scouts on its labels. Empty for fewer than two devices.
pub fn at_pretended_targets(devices: &[Labeled<'_>], width: usize, classes: usize) -> Vec<f64> {
    if devices.len() < 2 {
        return Vec::new();
    }
    let scouts = scouts(devices, width, classes);
    let all = sum(&scouts, width, classes);
    let of_others = |(&at, own): (&Labeled<'_>, &Scout)| {
        let without = |(all, own): (&Vec<f32>, &Vec<f32>)| -> Vec<f32> {
            all.iter().zip(own).map(|(a, o)| a - o).collect()
        };
        let others: Vec<Vec<f32>> = all.iter().zip(&own.weights).map(without).collect();
        accuracy(&others, at, width)
    };
    devices.par_iter().zip(&scouts).map(of_others).collect()
}

/// The same with the scouts of a few others alone, for each device by their places: of those that are near it, say.
///
/// # Panics
/// If there is no such place.
pub fn of_a_few_at_pretended_targets(
    devices: &[Labeled<'_>],
    few: &[Vec<usize>],
    width: usize,
    classes: usize,
) -> Vec<f64> {
    let scouts = scouts(devices, width, classes);
    let of_few = |(&at, few): (&Labeled<'_>, &Vec<usize>)| {
        accuracy(&sum(few.iter().map(|&other| &scouts[other]), width, classes), at, width)
    };
    devices.par_iter().zip(few).map(of_few).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    const WIDTH: usize = 3;
    const CLASSES: usize = 2;

    /// Inputs around 0 whose class is the sign of the first number, moved by so much.
    fn device(seed: u64, moved: f32) -> (Vec<f32>, Vec<Class>) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut inputs: Vec<f32> = (0..200 * WIDTH).map(|_| rng.random_range(-1.0..1.0)).collect();
        let labels = inputs.chunks(WIDTH).map(|x| Class::from(x[0] > 0.0)).collect();
        inputs.iter_mut().for_each(|x| *x += moved);
        (inputs, labels)
    }

    fn labeled((inputs, labels): &(Vec<f32>, Vec<Class>)) -> Labeled<'_> {
        Labeled { inputs, labels }
    }

    fn loss(weights: &[f64], class: usize, own: Labeled<'_>) -> f64 {
        let rows = own.inputs.chunks(WIDTH).zip(own.labels);
        let of_row = |(x, &label): (&[f32], &Class)| {
            let x: Vec<f64> = x.iter().map(|&x| f64::from(x)).chain([1.0]).collect();
            let output: f64 = x.iter().zip(weights).map(|(x, w)| x * w).sum();
            let square: f64 = x.iter().map(|x| x * x).sum();
            let target = f64::from(u8::from(usize::from(label) == class)) - 0.5;
            ((output - target).powi(2), square)
        };
        let (errors, squares) = rows.map(of_row).fold((0.0, 0.0), |(e, s), r| (e + r.0, s + r.1));
        let ridge = RIDGE * squares / (WIDTH + 1) as f64;
        errors + ridge * weights.iter().map(|w| w * w).sum::<f64>()
    }

    #[test]
    fn weights_are_the_least_of_the_penalised_squares() {
        let own = device(1, 0.3);
        let scout = Scout::new(labeled(&own), WIDTH, CLASSES);
        for (class, weights) in scout.weights.iter().enumerate() {
            let weights: Vec<f64> = weights.iter().map(|&w| f64::from(w)).collect();
            let least = loss(&weights, class, labeled(&own));
            for at in 0..weights.len() {
                for step in [-0.01, 0.01] {
                    let mut other = weights.clone();
                    other[at] += step;
                    assert!(loss(&other, class, labeled(&own)) > least);
                }
            }
        }
    }

    #[test]
    fn a_pretended_target_sees_what_the_others_make_of_its_labels() {
        let own = [device(1, 0.0), device(2, 0.0), device(3, 0.0)];
        let devices = own.each_ref().map(labeled);
        let alike = at_pretended_targets(&devices, WIDTH, CLASSES);
        assert!(alike.iter().all(|&accuracy| accuracy > 0.9), "{alike:?}");
        // The mean of two is not more than the mean of the two outputs.
        let [a, b] = [0, 1].map(|at| Scout::new(devices[at], WIDTH, CLASSES));
        let output = |scout: &Scout, class: usize, x: &[f32]| -> f32 {
            let weights = &scout.weights[class];
            x.iter().zip(weights).map(|(x, w)| x * w).sum::<f32>() + weights[WIDTH]
        };
        let given = |x: &[f32]| {
            let [no, yes] = [0, 1].map(|class| output(&a, class, x) + output(&b, class, x));
            Class::from(yes > no)
        };
        let rows = devices[2].inputs.chunks(WIDTH).zip(devices[2].labels);
        let right = rows.filter(|(x, label)| given(x) == **label).count();
        // The sum is heard in eight bits a weight, which may decide for a row or two.
        assert!((alike[2] - right as f64 / 200.0).abs() <= 0.01, "{alike:?} {right}");

        // A device whose zero lies elsewhere is served badly, and serves the others badly.
        let moved = [device(1, 0.0), device(2, 0.0), device(3, 2.0)];
        let accuracies = at_pretended_targets(&moved.each_ref().map(labeled), WIDTH, CLASSES);
        assert!(accuracies[2] < 0.6 && accuracies[0] < alike[0], "{accuracies:?}");
        assert!(at_pretended_targets(&devices[..1], WIDTH, CLASSES).is_empty());

        // Without it, the others do as well as they can; and of all others a few are all.
        let moved = moved.each_ref().map(labeled);
        let of_a_few = |few: [&[usize]; 3]| {
            of_a_few_at_pretended_targets(&moved, &few.map(<[usize]>::to_vec), WIDTH, CLASSES)
        };
        let near = of_a_few([&[1], &[0], &[0]]);
        assert!(near[0] > accuracies[0] && near[1] > accuracies[1], "{near:?} {accuracies:?}");
        let all = of_a_few([&[1, 2], &[0, 2], &[0, 1]]);
        assert!(all.iter().zip(&accuracies).all(|(a, b)| (a - b).abs() <= 0.01), "{all:?}");
    }
}
