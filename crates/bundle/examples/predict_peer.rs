//! Our side of the comparison with ONNX Runtime: `benches/peers/predict.py` runs it and reads what it prints.
//!
//! ```text
//! predict_peer export FOLDER KIND    a mixture as FOLDER/mixture.onnx, and FOLDER/samples, for both sides
//! predict_peer time FOLDER KIND RUNS  seconds of each run as JSON; writes FOLDER/probabilities
//! ```
//!
//! A kind is `one` or `four` models of a table, or `pictures`.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program for one script")]

use std::fs;
use std::path::Path;
use std::time::Instant;

use stlf_bundle::{Member, Mixture, Samples, onnx};
use stlf_data::scaling::Unit;
use stlf_data::{Scaling, Shape};
use stlf_learn::{Params, Spec};
use stlf_method::combine::Combine;
use stlf_planning::Role;

const COLUMNS: usize = 63;
const ROWS: usize = 10_000;
const CLASSES: usize = 6;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["export", folder, kind] => export(Path::new(folder), &mixture(kind)),
        ["time", folder, kind, runs] => {
            time(Path::new(folder), &mixture(kind), runs.parse().unwrap());
        }
        _ => panic!("see the head of this file"),
    }
}

/// A target's mixture of models that nobody trained: what they say does not change how long it takes.
fn mixture(kind: &str) -> Mixture {
    let table = Shape { channels: 1, height: 1, width: COLUMNS };
    let (spec, models) = match kind {
        "one" => (Spec::mlp(table, CLASSES), 1),
        "four" => (Spec::mlp(table, CLASSES), 4),
        "pictures" => (Spec::cnn(Shape::grey(28), CLASSES), 1),
        other => panic!("{other} is no kind"),
    };
    let spec = spec.unwrap();
    let unit = |k: usize| Unit { centre: k as f64, deviation: 1.5, limit: 10.0 };
    let scaling = match kind {
        "pictures" => Scaling::Pixels,
        _ => Scaling::Features {
            columns: (0..COLUMNS).map(|k| format!("c{k}")).collect(),
            units: vec![(0..COLUMNS).map(unit).collect()],
            series: None,
        },
    };
    let member = |k: u64| Member {
        name: format!("s{k}"),
        weight: 1.0 / models as f64,
        params: Params::initial(&spec, k),
    };
    Mixture {
        device: "gate".to_owned(),
        role: Role::Target,
        epoch: None,
        seed: Some(0),
        classes: (0..CLASSES).map(|k| format!("class {k}")).collect(),
        scaling,
        combine: Combine::Predictions,
        class_shares: None,
        members: (0..models).map(member).collect(),
        student: None,
        expected: None,
        spec,
    }
}

/// Rows of a table around its centres, or pixels: any numbers that are not all the same.
fn samples(mixture: &Mixture) -> Vec<f64> {
    let numbers = mixture.spec.input().len();
    let value = |k: usize| {
        let any = (k * 7919 % 20_011) as f64 / 20_011.0;
        match mixture.scaling {
            Scaling::Pixels => (any * 256.0).floor(),
            Scaling::Features { .. } => (k % numbers) as f64 + 6.0 * any - 3.0,
        }
    };
    (0..ROWS * numbers).map(value).collect()
}

fn export(folder: &Path, mixture: &Mixture) {
    let bytes: Vec<u8> = samples(mixture).iter().flat_map(|value| value.to_le_bytes()).collect();
    fs::write(folder.join("samples"), bytes).unwrap();
    fs::write(folder.join("mixture.onnx"), onnx::write(mixture).unwrap()).unwrap();
}

/// From samples as a caller has them to probabilities, every time.
fn time(folder: &Path, mixture: &Mixture, runs: usize) {
    let samples = samples(mixture);
    let mut seconds = Vec::new();
    let mut probabilities = Vec::new();
    for _ in 0..runs {
        let start = Instant::now();
        let scaled = Samples::scaled(mixture, &samples).unwrap();
        let predicted = mixture.predict(&scaled.inputs).unwrap();
        seconds.push(start.elapsed().as_secs_f64());
        probabilities = predicted.as_slice().to_vec();
    }
    let bytes: Vec<u8> = probabilities.iter().flat_map(|p: &f32| p.to_le_bytes()).collect();
    fs::write(folder.join("probabilities"), bytes).unwrap();
    println!("{seconds:?}");
}
