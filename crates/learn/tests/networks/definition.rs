//! Networks for series against backpropagation by its definition, in double precision and one number at a time. Finite differences cannot judge long
//! windows: among their many pooled pairs some change places within any step that single precision can see.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use stlf_data::Shape;
use stlf_learn::{Fusion, Kernels, Layer, Mode, Network, Params, Spec};

/// What a layer saw, for the way back.
struct Seen {
    layer: Layer,
    before: Shape,
    after: Shape,
    inputs: Vec<f64>,
    /// Where the parameters of the layer begin.
    params: usize,
}

/// The outputs of one sample, and what every layer saw.
fn forward(spec: &Spec, params: &[f32], sample: &[f32]) -> (Vec<f64>, Vec<Seen>) {
    let layers: Vec<(Layer, Shape)> = spec.layers().collect();
    let mut numbers: Vec<f64> = sample.iter().copied().map(f64::from).collect();
    let (mut at, mut seen) = (0, Vec::new());
    for (k, &(layer, before)) in layers.iter().enumerate() {
        let after = layers.get(k + 1).map_or(spec.output(), |(_, next)| *next);
        let weight = |k: usize| f64::from(params[at + k]);
        let (outputs, count) = match layer {
            Layer::Conv1d { channels, kernel } => {
                let fan = before.channels * kernel;
                let output = |o: usize| {
                    let (to, place) = (o / after.width, o % after.width);
                    let product = |k: usize| {
                        let (from, tap) = (k / kernel, k % kernel);
                        weight(to * fan + k) * numbers[from * before.width + place + tap]
                    };
                    weight(channels * fan + to) + (0..fan).map(product).sum::<f64>()
                };
                ((0..after.len()).map(output).collect(), channels * (fan + 1))
            }
            Layer::Linear { outputs } => {
                let fan = before.len();
                let output = |o: usize| {
                    let products = (0..fan).map(|k| weight(o * fan + k) * numbers[k]);
                    weight(outputs * fan + o) + products.sum::<f64>()
                };
                ((0..outputs).map(output).collect(), outputs * (fan + 1))
            }
            Layer::MaxPool1d => {
                let output = |o: usize| numbers[larger(&numbers, before, after, o)];
                ((0..after.len()).map(output).collect(), 0)
            }
            Layer::Relu => (numbers.iter().map(|x| x.max(0.0)).collect(), 0),
            Layer::Dropout { .. } => (numbers.clone(), 0),
            other => panic!("{other:?} is not for series"),
        };
        let inputs = std::mem::replace(&mut numbers, outputs);
        seen.push(Seen { layer, before, after, inputs, params: at });
        at += count;
    }
    (numbers, seen)
}

/// Where the larger number of a pair stands.
fn larger(numbers: &[f64], before: Shape, after: Shape, output: usize) -> usize {
    let first = output / after.width * before.width + 2 * (output % after.width);
    if numbers[first + 1] > numbers[first] { first + 1 } else { first }
}

/// From the slope of the loss by the outputs, adds that by the parameters and returns that by the inputs.
fn backward(
    seen: &[Seen],
    params: &[f32],
    mut slopes: Vec<f64>,
    of_params: &mut [f64],
) -> Vec<f64> {
    for Seen { layer, before, after, inputs, params: at } in seen.iter().rev() {
        let mut of_inputs = vec![0.0; before.len()];
        for (o, &slope) in slopes.iter().enumerate() {
            match *layer {
                Layer::Conv1d { channels, kernel } => {
                    let fan = before.channels * kernel;
                    let (to, place) = (o / after.width, o % after.width);
                    of_params[at + channels * fan + to] += slope;
                    for k in 0..fan {
                        let input = k / kernel * before.width + place + k % kernel;
                        of_params[at + to * fan + k] += slope * inputs[input];
                        of_inputs[input] += slope * f64::from(params[at + to * fan + k]);
                    }
                }
                Layer::Linear { outputs } => {
                    let fan = before.len();
                    of_params[at + outputs * fan + o] += slope;
                    for k in 0..fan {
                        of_params[at + o * fan + k] += slope * inputs[k];
                        of_inputs[k] += slope * f64::from(params[at + o * fan + k]);
                    }
                }
                Layer::MaxPool1d => of_inputs[larger(inputs, *before, *after, o)] += slope,
                Layer::Relu if inputs[o] <= 0.0 => {}
                _ => of_inputs[o] += slope,
            }
        }
        slopes = of_inputs;
    }
    slopes
}

/// How far numbers are from what they should be, as a share of the largest.
fn apart(found: &[f32], expected: &[f64]) -> f64 {
    let largest = expected.iter().fold(0.0f64, |largest, x| largest.max(x.abs()));
    let pairs = found.iter().zip(expected);
    pairs.map(|(&x, y)| (f64::from(x) - y).abs()).fold(0.0, f64::max) / largest
}

#[test]
fn whole_networks_for_windows_of_any_length() {
    const BATCH: usize = 3;
    for (channels, window, classes) in
        [(1, 8, 2), (2, 64, 5), (3, 100, 4), (1, 257, 3), (6, 512, 7)]
    {
        let spec = Spec::series_cnn(channels, window, classes).unwrap();
        let params = Params::initial(&spec, 3);
        let mut rng = ChaCha8Rng::seed_from_u64(window as u64);
        let mut numbers =
            |n: usize| -> Vec<f32> { (0..n).map(|_| rng.random::<f32>() * 2.0 - 1.0).collect() };
        let inputs = numbers(BATCH * spec.input().len());
        let weights = numbers(BATCH * classes);
        let (mut outputs, mut to_inputs) = (Vec::new(), Vec::new());
        let mut to_params = vec![0.0; params.len()];
        let samples = inputs.chunks_exact(spec.input().len());
        for (sample, weights) in samples.zip(weights.chunks_exact(classes)) {
            let (output, seen) = forward(&spec, &params, sample);
            let slopes = weights.iter().copied().map(f64::from).collect();
            to_inputs.extend(backward(&seen, &params, slopes, &mut to_params));
            outputs.extend(output);
        }
        for kernels in Kernels::available() {
            for fusion in [Fusion::Blocks, Fusion::None] {
                let mut network = Network::with(&spec, BATCH, kernels, fusion);
                network.inputs(BATCH).copy_from_slice(&inputs);
                let found = network.forward(&params, Mode::Evaluate);
                let what = format!("{} {fusion:?}, {channels} × {window}", kernels.name());
                assert!(apart(found, &outputs) < 1e-5, "{what}");
                network.outputs_and_gradients().1.copy_from_slice(&weights);
                let mut gradients = vec![0.0; params.len()];
                let found = network.backward(&params, &mut gradients, true).unwrap();
                assert!(apart(found, &to_inputs) < 1e-5, "{what}: inputs");
                assert!(apart(&gradients, &to_params) < 1e-5, "{what}: parameters");
            }
        }
    }
}
