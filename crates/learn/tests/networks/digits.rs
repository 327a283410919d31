//! The paper's network on digits: the embedded ones, and real MNIST where it is.

use std::ops::ControlFlow;

use rayon::prelude::*;
use stlf_data::Shape;
use stlf_data::domains::{Domain, Half, Options, load};
use stlf_learn::evaluate::accuracy;
use stlf_learn::{Descent, Examples, Network, Params, Spec, Trainer};

struct Digits {
    inputs: Vec<f32>,
    labels: Vec<u16>,
}

impl Digits {
    fn load(domain: Domain, options: &Options) -> Digits {
        let digits = load(&[domain], options).unwrap();
        let all: Vec<usize> = (0..digits.len()).collect();
        Digits { inputs: digits.inputs(&all), labels: digits.labels(&all).unwrap() }
    }

    fn examples(&self) -> Examples<'_> {
        Examples { inputs: &self.inputs, labels: &self.labels }
    }
}

fn trained(spec: &Spec, digits: &Digits, epochs: usize) -> Params {
    let initial = Params::initial(spec, 1);
    let mut trainer = Trainer::new(spec, initial, Descent::default(), 1).unwrap();
    let mut network = Network::new(spec, 10);
    trainer.epochs(&mut network, digits.examples(), epochs, &mut |_| ControlFlow::Continue(()));
    trainer.params
}

/// The table of docs/data.md: a domain is learned, and others are not learned with it.
#[test]
fn a_domain_is_learned_and_the_others_are_not() {
    let domains = [Domain::Strokes, Domain::StrokesCoarse, Domain::StrokesTextured];
    let spec = Spec::cnn(Shape::grey(28), 10).unwrap();
    let half = |domain: Domain, half: Half, samples: usize| {
        let colour = Some(stlf_data::domains::Colour::Grey);
        let options = Options { half, colour, samples: Some(samples), ..Options::default() };
        Digits::load(domain, &options)
    };
    let tests = domains.map(|domain| half(domain, Half::Test, 2000));
    let table: Vec<Vec<f64>> = domains
        .par_iter()
        .map(|&domain| {
            let params = trained(&spec, &half(domain, Half::Train, 10_000), 14);
            tests.iter().map(|test| accuracy(&spec, &params, test.examples())).collect()
        })
        .collect();
    println!("{table:.3?}");
    for (trained, row) in table.iter().enumerate() {
        assert!(row[trained] > 0.95, "{:.3?}", table);
    }
    let across: f64 =
        (0..9).filter(|k| k / 3 != k % 3).map(|k| table[k / 3][k % 3]).sum::<f64>() / 6.0;
    assert!(across < 0.8, "{across:.3}: {table:.3?}");
}

#[test]
fn mnist_is_learned() {
    let Some(folder) = stlf_testing::data() else { return };
    let half = |half| {
        let folder = Some(folder.clone());
        Digits::load(Domain::Mnist, &Options { folder, half, ..Options::default() })
    };
    let spec = Spec::cnn(Shape::grey(28), 10).unwrap();
    let params = trained(&spec, &half(Half::Train), 4);
    let test = half(Half::Test);
    let accuracy = accuracy(&spec, &params, test.examples());
    println!("{accuracy}");
    assert!(accuracy > 0.97, "{accuracy}");
}
