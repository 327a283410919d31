//! The engine's side of the comparison with PyTorch: `benches/peers/learn.py` runs it and reads what it prints.
//!
//! ```text
//! peer export FOLDER               samples and labels of the embedded digits, for both sides
//! peer steps FOLDER KERNELS SECONDS  training steps per second, as JSON
//! peer fleet FOLDER THREADS SECONDS  ten devices' models on so many threads: steps per second, peak memory
//! peer outputs FOLDER              outputs and gradients of a batch for FOLDER/model.safetensors
//! peer initial FOLDER              writes FOLDER/model.safetensors
//! peer accuracy DATA EPOCHS SEED   test accuracy on MNIST after training on all of it, as JSON
//! peer kernels                     the instruction sets of this processor, as JSON
//! ```
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program for one script")]

use std::fs;
use std::hint::black_box;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use rayon::prelude::*;
use stlf_data::Shape;
use stlf_data::domains::{Domain, Half, Options, load};
use stlf_learn::evaluate::accuracy;
use stlf_learn::loss::cross_entropy;
use stlf_learn::{Descent, Examples, Fusion, Kernels, Mode, Network, Params, Spec, Trainer};

const SAMPLES: usize = 1600;
const BATCH: usize = 10;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["export", folder] => export(Path::new(folder)),
        ["steps", folder, name, seconds] => {
            steps(Path::new(folder), kernels(name), seconds.parse().unwrap());
        }
        ["fleet", folder, threads, seconds] => {
            fleet(Path::new(folder), threads.parse().unwrap(), seconds.parse().unwrap());
        }
        ["outputs", folder] => outputs(Path::new(folder)),
        ["initial", folder] => {
            let spec = Spec::cnn(Shape::grey(28), 10).unwrap();
            let file = Params::initial(&spec, 1).to_safetensors(&spec).unwrap();
            fs::write(Path::new(folder).join("model.safetensors"), file).unwrap();
        }
        ["accuracy", data, epochs, seed] => {
            train_on_mnist(Path::new(data), epochs.parse().unwrap(), seed.parse().unwrap());
        }
        ["kernels"] => {
            let names: Vec<String> =
                Kernels::available().iter().map(|k| format!("{:?}", k.name())).collect();
            println!("[{}]", names.join(", "));
        }
        _ => panic!("see the head of this file"),
    }
}

fn kernels(name: &str) -> &'static Kernels {
    Kernels::available().into_iter().find(|k| k.name() == name).expect("kernels of this processor")
}

fn export(folder: &Path) {
    let options = Options { samples: Some(SAMPLES), seed: 1, ..Options::default() };
    let digits = load(&[Domain::Strokes], &options).unwrap();
    let all: Vec<usize> = (0..digits.len()).collect();
    write_floats(&folder.join("inputs"), &digits.inputs(&all));
    let labels: Vec<u8> = digits.labels(&all).unwrap().iter().map(|&l| l as u8).collect();
    fs::write(folder.join("labels"), labels).unwrap();
}

fn write_floats(path: &Path, numbers: &[f32]) {
    let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    fs::write(path, bytes).unwrap();
}

/// Reads the inputs and labels that `export` wrote.
fn samples(folder: &Path) -> (Vec<f32>, Vec<u16>) {
    let inputs = fs::read(folder.join("inputs")).unwrap();
    let inputs = inputs.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
    let labels = fs::read(folder.join("labels")).unwrap().into_iter().map(u16::from).collect();
    (inputs, labels)
}

fn steps(folder: &Path, kernels: &'static Kernels, seconds: f64) {
    let (inputs, labels) = samples(folder);
    let examples = Examples { inputs: &inputs, labels: &labels };
    let spec = Spec::cnn(Shape::grey(28), 10).unwrap();
    let mut network = Network::with(&spec, BATCH, kernels, Fusion::Blocks);
    let initial = Params::initial(&spec, 1);
    let mut trainer = Trainer::new(&spec, initial, Descent::default(), 1).unwrap();
    trainer.steps(&mut network, examples, 200);
    let (start, mut count) = (Instant::now(), 0);
    while start.elapsed() < Duration::from_secs_f64(seconds) {
        trainer.steps(&mut network, examples, 100);
        count += 100;
    }
    let rate = f64::from(count) / start.elapsed().as_secs_f64();
    let operations = spec.operations_per_sample() * BATCH;
    println!(r#"{{"steps_per_second": {rate}, "operations_per_step": {operations}}}"#);
    black_box(&trainer.params);
}

/// Ten devices, each with its own copy of the samples, as many at a time as there are threads.
fn fleet(folder: &Path, threads: usize, seconds: f64) {
    let spec = Spec::cnn(Shape::grey(28), 10).unwrap();
    let mut devices: Vec<_> = (0..10)
        .map(|seed| {
            let initial = Params::initial(&spec, 1);
            (samples(folder), Trainer::new(&spec, initial, Descent::default(), seed).unwrap())
        })
        .collect();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let (start, mut count) = (Instant::now(), 0);
    while start.elapsed() < Duration::from_secs_f64(seconds) {
        pool.install(|| {
            devices.par_iter_mut().for_each_init(
                || Network::new(&spec, BATCH),
                |network, ((inputs, labels), trainer)| {
                    trainer.steps(network, Examples { inputs, labels }, 200);
                },
            );
        });
        count += 200 * devices.len();
    }
    let rate = count as f64 / start.elapsed().as_secs_f64();
    // Linux counts the peak in kB; elsewhere it is not known.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|kb| kb.trim().trim_end_matches(" kB").parse::<u64>().ok());
    let peak = peak.map_or("null".to_owned(), |kb| (kb / 1024).to_string());
    println!(r#"{{"steps_per_second": {rate}, "peak_mib": {peak}}}"#);
}

/// The outputs of the first batch, and the gradients of its loss, without dropout.
fn outputs(folder: &Path) {
    let spec = Spec::cnn(Shape::grey(28), 10).unwrap();
    let file = fs::read(folder.join("model.safetensors")).unwrap();
    let params = Params::from_safetensors(&spec, &file).unwrap();
    let (inputs, labels) = samples(folder);
    let mut network = Network::new(&spec, BATCH);
    network.inputs(BATCH).copy_from_slice(&inputs[..BATCH * spec.input().len()]);
    let outputs = network.forward(&params, Mode::Evaluate).to_vec();
    write_floats(&folder.join("outputs"), &outputs);
    let (outputs, to_outputs) = network.outputs_and_gradients();
    cross_entropy(outputs, &labels[..BATCH], to_outputs);
    let mut gradients = Params::zeros(&spec);
    let to_input = network.backward(&params, &mut gradients, true).unwrap().to_vec();
    write_floats(&folder.join("input-gradients"), &to_input);
    fs::write(folder.join("gradients.safetensors"), gradients.to_safetensors(&spec).unwrap())
        .unwrap();
}

fn train_on_mnist(data: &Path, epochs: usize, seed: u64) {
    let half = |half| {
        let options = Options { folder: Some(data.to_owned()), half, ..Options::default() };
        let digits = load(&[Domain::Mnist], &options).unwrap();
        let all: Vec<usize> = (0..digits.len()).collect();
        (digits.inputs(&all), digits.labels(&all).unwrap())
    };
    let (inputs, labels) = half(Half::Train);
    let spec = Spec::cnn(Shape::grey(28), 10).unwrap();
    let initial = Params::initial(&spec, seed);
    let mut trainer = Trainer::new(&spec, initial, Descent::default(), seed).unwrap();
    let examples = Examples { inputs: &inputs, labels: &labels };
    let start = Instant::now();
    let mut go_on = |_| ControlFlow::Continue(());
    trainer.epochs(&mut Network::new(&spec, BATCH), examples, epochs, &mut go_on);
    let seconds = start.elapsed().as_secs_f64();
    let (inputs, labels) = half(Half::Test);
    let accuracy = accuracy(&spec, &trainer.params, Examples { inputs: &inputs, labels: &labels });
    println!(r#"{{"accuracy": {accuracy}, "seconds": {seconds}}}"#);
}
