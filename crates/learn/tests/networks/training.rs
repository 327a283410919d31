//! Training as a whole: it learns, it repeats, and both ways of running a network agree.

use std::ops::ControlFlow;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use stlf_data::Shape;
use stlf_learn::evaluate::accuracy;
use stlf_learn::{
    Augment, Descent, Examples, Fusion, Kernels, Mode, Network, Params, Spec, Trainer,
};

/// Pictures with one bright quarter, which is their class, under noise.
fn quarters(count: usize, channels: usize, seed: u64) -> (Vec<f32>, Vec<u16>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let labels: Vec<u16> = (0..count).map(|_| rng.random_range(0..4)).collect();
    let inputs = labels
        .iter()
        .flat_map(|label| {
            let rng = &mut rng;
            let pixels: Vec<f32> = (0..channels * 28 * 28)
                .map(|i| {
                    let (y, x) = (i / 28 % 28 / 14, i % 28 / 14);
                    let bright = y * 2 + x == *label as usize;
                    rng.random::<f32>() - 0.5 + if bright { 0.4 } else { 0.0 }
                })
                .collect();
            pixels
        })
        .collect();
    (inputs, labels)
}

fn trained(spec: &Spec, examples: Examples<'_>, seed: u64) -> Params {
    let params = Params::initial(spec, seed);
    let mut trainer = Trainer::new(spec, params, Descent::default(), seed).unwrap();
    trainer.steps(&mut Network::new(spec, 10), examples, 150);
    trainer.params
}

#[test]
fn both_networks_learn() {
    let (inputs, labels) = quarters(600, 1, 1);
    let (test_inputs, test_labels) = quarters(200, 1, 2);
    let test = Examples { inputs: &test_inputs, labels: &test_labels };
    for spec in [Spec::cnn(Shape::grey(28), 4).unwrap(), Spec::mlp(Shape::grey(28), 4).unwrap()] {
        let before = accuracy(&spec, &Params::initial(&spec, 1), test);
        let params = trained(&spec, Examples { inputs: &inputs, labels: &labels }, 1);
        let after = accuracy(&spec, &params, test);
        assert!(before < 0.6 && after > 0.95, "{before} {after}");
    }
}

#[test]
fn threads_change_no_bit() {
    let (inputs, labels) = quarters(60, 1, 3);
    let examples = Examples { inputs: &inputs, labels: &labels };
    let spec = Spec::cnn(Shape::grey(28), 4).unwrap();
    let seeds: Vec<u64> = (0..6).collect();
    let alone: Vec<Params> = seeds.iter().map(|&seed| trained(&spec, examples, seed)).collect();
    for threads in [1, 2, 5] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let beside: Vec<Params> =
            pool.install(|| seeds.par_iter().map(|&seed| trained(&spec, examples, seed)).collect());
        assert_eq!(alone, beside);
    }
}

#[test]
fn fused_layers_give_what_single_ones_give() {
    for channels in [1, 3] {
        let spec = Spec::cnn(Shape { channels, height: 28, width: 28 }, 4).unwrap();
        let (inputs, labels) = quarters(12, channels, 4);
        let examples = Examples { inputs: &inputs, labels: &labels };
        for kernels in Kernels::available() {
            let params = |fusion| {
                let initial = Params::initial(&spec, 5);
                let mut trainer = Trainer::new(&spec, initial, Descent::default(), 6).unwrap();
                trainer.steps(&mut Network::with(&spec, 10, kernels, fusion), examples, 5);
                trainer.params
            };
            let (fused, single) = (params(Fusion::Blocks), params(Fusion::None));
            let furthest =
                fused.iter().zip(single.iter()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(furthest < 1e-5, "{}: {furthest}", kernels.name());
        }
    }
}

#[test]
fn a_smaller_batch_is_the_same_batch() {
    let spec = Spec::cnn(Shape::grey(28), 4).unwrap();
    let params = Params::initial(&spec, 5);
    let (inputs, _) = quarters(5, 1, 4);
    let mut network = Network::new(&spec, 5);
    network.inputs(5).copy_from_slice(&inputs);
    let together = network.forward(&params, Mode::Evaluate).to_vec();
    for (input, expected) in inputs.chunks_exact(784).zip(together.chunks_exact(4)) {
        network.inputs(1).copy_from_slice(input);
        assert_eq!(network.forward(&params, Mode::Evaluate), expected);
    }
}

#[test]
fn an_observer_ends_the_training() {
    let spec = Spec::mlp(Shape::grey(28), 4).unwrap();
    let (inputs, labels) = quarters(25, 1, 4);
    let examples = Examples { inputs: &inputs, labels: &labels };
    let mut trainer =
        Trainer::new(&spec, Params::initial(&spec, 5), Descent::default(), 6).unwrap();
    let mut losses = Vec::new();
    trainer.epochs(&mut Network::new(&spec, 10), examples, 50, &mut |epoch| {
        losses.push(epoch.loss);
        if epoch.number == 7 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(losses.len(), 7);
    assert!(losses[6] < losses[0]);
}

#[test]
fn what_cannot_be_trained_is_refused() {
    let spec = Spec::mlp(Shape::grey(2), 3).unwrap();
    let message = |inputs: &[f32], labels: &[u16]| {
        Examples { inputs, labels }.check(&spec).err().map(|e| e.to_string())
    };
    assert_eq!(message(&[], &[]).as_deref(), Some("there is no example to train on"));
    assert_eq!(message(&[0.0; 7], &[0, 1]).as_deref(), Some("7 numbers are not 2 inputs of 1×2×2"));
    assert_eq!(
        message(&[0.0; 8], &[0, 3]).as_deref(),
        Some("example 1 has label 3, but the network has 3 classes")
    );
    assert_eq!(message(&[0.0; 8], &[0, 2]), None);
    let descent = |change: fn(&mut Descent)| {
        let mut descent = Descent::default();
        change(&mut descent);
        Trainer::new(&spec, Params::zeros(&spec), descent, 1).err().map(|e| e.to_string())
    };
    assert!(descent(|d| d.batch = 0).is_some());
    assert!(descent(|d| d.learning_rate = 0.0).is_some());
    assert!(descent(|d| d.momentum = 1.0).is_some());
    assert!(descent(|d| d.weight_decay = f32::NAN).is_some());
    let endless = descent(|d| d.weight_decay = f32::INFINITY);
    assert!(endless.is_some_and(|e| e.contains("weight-decay: inf is not a finite number")));
    assert_eq!(descent(|_| ()), None);
}

#[test]
fn views_change_what_is_seen_and_nothing_else_that_is_drawn() {
    let (inputs, labels) = quarters(60, 1, 3);
    let examples = Examples { inputs: &inputs, labels: &labels };
    let spec = Spec::cnn(Shape::grey(28), 4).unwrap();
    let trained = |inputs: Examples<'_>, augment: Augment, seed: u64| {
        let trainer = Trainer::new(&spec, Params::initial(&spec, 5), Descent::default(), seed);
        let mut trainer = trainer.unwrap().augmented(&spec, augment).unwrap();
        trainer.steps(&mut Network::new(&spec, 10), inputs, 20);
        trainer.params
    };
    let plain = trained(examples, Augment::None, 6);
    let mut untold = Trainer::new(&spec, Params::initial(&spec, 5), Descent::default(), 6).unwrap();
    untold.steps(&mut Network::new(&spec, 10), examples, 20);
    assert_eq!(plain, untold.params);
    for augment in [Augment::Shift, Augment::Convolutions, Augment::Both] {
        let first = trained(examples, augment, 6);
        assert_eq!(first, trained(examples, augment, 6));
        assert_ne!(first, trained(examples, augment, 7));
        assert_ne!(first, plain);
    }
    // Pictures of one colour look the same wherever they are moved.
    let even: Vec<f32> = (0..60 * 784).map(|i| (i / 784) as f32 / 60.0).collect();
    let even = Examples { inputs: &even, labels: &labels };
    assert_eq!(trained(even, Augment::Shift, 6), trained(even, Augment::None, 6));
}
