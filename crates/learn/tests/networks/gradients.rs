//! Every layer's gradient against finite differences, on all kernels this processor can run.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use stlf_data::Shape;
use stlf_learn::{Fusion, Kernels, Layer, Mode, Network, Params, Spec};

const BATCH: usize = 3;

struct Case {
    spec: Spec,
    params: Params,
    inputs: Vec<f32>,
    /// The loss is the sum of the outputs times these.
    weights: Vec<f32>,
}

impl Case {
    fn new(input: Shape, layers: &[Layer]) -> Case {
        let spec = Spec::new(input, layers.to_vec()).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let mut numbers = |n: usize| (0..n).map(|_| rng.random::<f32>() * 2.0 - 1.0).collect();
        Case {
            params: Params::initial(&spec, 3),
            inputs: numbers(BATCH * input.len()),
            weights: numbers(BATCH * spec.output().len()),
            spec,
        }
    }

    /// The loss, in f64; every call draws the same dropout.
    fn loss(&self, network: &mut Network, params: &[f32], inputs: &[f32]) -> f64 {
        network.inputs(BATCH).copy_from_slice(inputs);
        let outputs = network.forward(params, Mode::Train(&mut ChaCha8Rng::seed_from_u64(9)));
        outputs.iter().zip(&self.weights).map(|(&y, &w)| f64::from(y) * f64::from(w)).sum()
    }

    /// Compares the gradients to parameters and inputs with slopes of the loss at `places` of each.
    fn check(&self, kernels: &'static Kernels, fusion: Fusion) {
        let mut network = Network::with(&self.spec, BATCH + 1, kernels, fusion);
        self.loss(&mut network, &self.params, &self.inputs);
        network.outputs_and_gradients().1.copy_from_slice(&self.weights);
        let mut gradients = vec![0.0; self.params.len()];
        let to_input = network.backward(&self.params, &mut gradients, true).unwrap().to_vec();
        let mut slope = |of: &[f32], at: usize, of_params: bool| {
            let step = 2e-3;
            let mut at_shift = |shift: f32| {
                let mut moved = of.to_vec();
                moved[at] += shift;
                match of_params {
                    true => self.loss(&mut network, &moved, &self.inputs),
                    false => self.loss(&mut network, &self.params, &moved),
                }
            };
            // Where a largest pixel or a sign changes within the step, there is no slope to compare with.
            let (left, middle, right) = (at_shift(-step), at_shift(0.0), at_shift(step));
            let (before, after) = (middle - left, right - middle);
            let smooth = (before - after).abs() < 1e-5 + 2e-3 * before.abs();
            smooth.then_some((right - left) / (2.0 * f64::from(step)))
        };
        let (mut compared, mut skipped) = (0, 0);
        for (of, gradients, of_params) in
            [(&self.params[..], &gradients, true), (&self.inputs, &to_input, false)]
        {
            for at in (0..of.len()).step_by(of.len() / 60 + 1) {
                match slope(of, at, of_params) {
                    None => skipped += 1,
                    Some(slope) => {
                        compared += 1;
                        let gradient = f64::from(gradients[at]);
                        let what = if of_params { "parameter" } else { "input" };
                        assert!(
                            (slope - gradient).abs() < 2e-3 + 5e-3 * slope.abs(),
                            "{}: {what} {at}: slope {slope}, gradient {gradient}",
                            kernels.name()
                        );
                    }
                }
            }
        }
        assert!(compared > 2 * skipped, "{compared} compared, {skipped} skipped");
        assert!(to_input.iter().any(|g| *g != 0.0));
    }
}

fn check(input: Shape, layers: &[Layer]) {
    let case = Case::new(input, layers);
    for kernels in Kernels::available() {
        case.check(kernels, Fusion::Blocks);
        case.check(kernels, Fusion::None);
    }
}

fn picture(channels: usize, height: usize, width: usize) -> Shape {
    Shape { channels, height, width }
}

#[test]
fn linear() {
    check(picture(1, 1, 37), &[Layer::Linear { outputs: 13 }]);
}

#[test]
fn relu() {
    check(picture(2, 3, 4), &[Layer::Linear { outputs: 21 }, Layer::Relu]);
}

#[test]
fn convolution() {
    check(picture(2, 9, 12), &[Layer::Conv2d { channels: 7, kernel: 5 }]);
    check(picture(3, 6, 5), &[Layer::Conv2d { channels: 6, kernel: 3 }]);
    check(picture(1, 4, 4), &[Layer::Conv2d { channels: 2, kernel: 4 }]);
}

#[test]
fn convolution_of_a_convolution() {
    let layers =
        [Layer::Conv2d { channels: 3, kernel: 3 }, Layer::Conv2d { channels: 5, kernel: 2 }];
    check(picture(2, 8, 9), &layers);
}

#[test]
fn max_pool() {
    check(picture(3, 8, 10), &[Layer::Conv2d { channels: 2, kernel: 1 }, Layer::MaxPool2d]);
    check(picture(1, 7, 9), &[Layer::Conv2d { channels: 2, kernel: 2 }, Layer::MaxPool2d]);
}

#[test]
fn convolution_of_a_series() {
    let convolution = |channels, kernel| Layer::Conv1d { channels, kernel };
    check(picture(3, 1, 40), &[convolution(5, 7)]);
    check(picture(1, 1, 9), &[convolution(2, 9)]);
    check(picture(2, 1, 33), &[convolution(4, 3), convolution(17, 5)]);
    check(picture(2, 1, 21), &[convolution(3, 2), Layer::MaxPool1d]);
    let block = |channels| [convolution(channels, 5), Layer::MaxPool1d, Layer::Relu];
    let two = [&block(6)[..], &block(19)[..], &[Layer::MaxPool1d]].concat();
    check(picture(4, 1, 50), &two);
}

/// A convolution of a series by its definition, on every kernel.
#[test]
fn a_series_is_convolved_and_pooled_by_its_definition() {
    let (channels, length, filters, taps) = (3, 37, 6, 7);
    let shape = picture(channels, 1, length);
    let layers = [Layer::Conv1d { channels: filters, kernel: taps }, Layer::MaxPool1d, Layer::Relu];
    let Case { spec, params, inputs, .. } = Case::new(shape, &layers);
    let (weight, bias) = params.split_at(filters * channels * taps);
    let convolved = |sample: usize, filter: usize, at: usize| {
        let tap = |k: usize| {
            let (channel, step) = (k / taps, k % taps);
            let input = inputs[(sample * channels + channel) * length + at + step];
            f64::from(weight[filter * channels * taps + k]) * f64::from(input)
        };
        f64::from(bias[filter]) + (0..channels * taps).map(tap).sum::<f64>()
    };
    let pooled = (length + 1 - taps) / 2;
    for kernels in Kernels::available() {
        for fusion in [Fusion::Blocks, Fusion::None] {
            let mut network = Network::with(&spec, BATCH, kernels, fusion);
            network.inputs(BATCH).copy_from_slice(&inputs);
            let outputs = network.forward(&params, Mode::Evaluate);
            assert_eq!(outputs.len(), BATCH * filters * pooled);
            for (k, &output) in outputs.iter().enumerate() {
                let (sample, filter, at) =
                    (k / (filters * pooled), k / pooled % filters, k % pooled);
                let largest =
                    convolved(sample, filter, 2 * at).max(convolved(sample, filter, 2 * at + 1));
                assert!((f64::from(output) - largest.max(0.0)).abs() < 1e-5, "{}", kernels.name());
            }
        }
    }
}

#[test]
fn dropout() {
    check(picture(1, 1, 30), &[Layer::Linear { outputs: 40 }, Layer::Dropout { p: 0.3 }]);
}

#[test]
fn dropout_of_channels() {
    let convolution = Layer::Conv2d { channels: 8, kernel: 3 };
    let drop = Layer::Dropout2d { p: 0.5 };
    check(picture(2, 6, 7), &[convolution, drop]);
    check(picture(2, 6, 7), &[convolution, Layer::Relu, drop]);
}

#[test]
fn convolution_dropout_pool_and_relu_together() {
    let block = |channels: usize| {
        let convolution = Layer::Conv2d { channels, kernel: 3 };
        [convolution, Layer::Dropout2d { p: 0.4 }, Layer::MaxPool2d, Layer::Relu]
    };
    check(picture(2, 12, 15), &block(9));
    let two = [&block(6)[..], &block(7)[..], &[Layer::Linear { outputs: 4 }]].concat();
    check(picture(1, 16, 14), &two);
}

#[test]
fn the_built_in_networks() {
    let layers = |spec: &Spec| spec.layers().map(|(layer, _)| layer).collect::<Vec<_>>();
    let case = |spec: Spec| check(spec.input(), &layers(&spec));
    case(Spec::cnn(Shape::grey(28), 10).unwrap());
    case(Spec::cnn(picture(3, 28, 28), 10).unwrap());
    case(Spec::cnn(Shape::grey(32), 10).unwrap());
    // That of larger pictures on the smallest that it can take: a weight moves fewer pixels, of which fewer pass another on the way.
    check(picture(2, 37, 36), &layers(&Spec::cnn(Shape::grey(64), 10).unwrap()));
    case(Spec::mlp(Shape::grey(28), 10).unwrap());
    case(Spec::series_cnn(2, 40, 5).unwrap());
}
