//! What a source's model gives away about whom it was trained on, and prints the table of `docs/privacy.md`.
//!
//! ```text
//! model_membership DOMAIN MODEL STEPS   as in: mnist cnn 10000
//! ```
//!
//! Two attacks say of a sample whether the model was trained on it: by its loss (Yeom et al. 2018), and by its loss less the mean loss of models
//! that the attacker trains on samples of its own (Watson et al. 2022). Each is tried on as many samples that were in as samples that were not.
//! `STLF_DATA` names the folder of the real sets.
#![allow(clippy::print_stdout, reason = "a program that prints tables")]

use std::ops::ControlFlow;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use stlf_data::Dataset;
use stlf_data::domains::{Domain, Options, load};
use stlf_learn::evaluate::{accuracy, predict};
use stlf_learn::{Augment, Descent, Params, Spec};
use stlf_method::class_shares::balanced;
use stlf_method::local_training::{Split, Training};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Models that the attacker trains itself.
const OWN_MODELS: usize = 2;

/// Training sets, and how many models of that size are attacked.
const SIZES: [(usize, u64); 3] = [(50, 6), (200, 3), (1_000, 1)];

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [domain, model, steps] = words[..] else {
        return Err("usage: model_membership DOMAIN MODEL STEPS".into());
    };
    let domain: Domain = domain.parse()?;
    let folder = std::env::var_os("STLF_DATA").map(Into::into);
    let data = load(&[domain], &Options { folder, ..Options::default() })?;
    let spec = match model {
        "cnn" => Spec::cnn(data.shape().channels, data.classes().len())?,
        "mlp" => Spec::mlp(data.shape(), data.classes().len())?,
        _ => return Err(format!("there is no model {model:?}: cnn, mlp").into()),
    };
    let training = Training {
        descent: Descent::default(),
        augment: Augment::None,
        steps: steps.parse()?,
        averaged: false,
    };
    println!(
        "| trained on | accuracy, in / not in | by loss: AUC, advantage | with models of one's own | after a hand-over: the first's samples | the second's |"
    );
    println!("|---|---|---|---|---|---|");
    for (samples, models) in SIZES {
        let fleet = Fleet { data: &data, spec: &spec, training, samples };
        let attacked: Vec<Attacked> = (0..models)
            .into_par_iter()
            .map(|seed| fleet.attacked(seed))
            .collect::<Result<_, _>>()?;
        let row = |part: fn(&Attacked) -> &Scores| {
            let all = |of: fn(&Scores) -> &Vec<f64>| -> Vec<f64> {
                attacked.iter().flat_map(|one| of(part(one)).iter().copied()).collect()
            };
            told_apart(&all(|scores| &scores.of_members), &all(|scores| &scores.of_others))
        };
        let mean = |k: usize| {
            attacked.iter().map(|one| one.accuracy[k]).sum::<f64>() / attacked.len() as f64 * 100.0
        };
        println!(
            "| {samples} | {:.1} / {:.1} % | {} | {} | {} | {} |",
            mean(0),
            mean(1),
            row(|one| &one.by_loss),
            row(|one| &one.calibrated),
            row(|one| &one.first_after),
            row(|one| &one.second_after),
        );
    }
    Ok(())
}

/// How much each sample looks as if it had been in.
struct Scores {
    of_members: Vec<f64>,
    of_others: Vec<f64>,
}

struct Attacked {
    /// On what it was trained on, and on what it was not.
    accuracy: [f64; 2],
    by_loss: Scores,
    calibrated: Scores,
    /// By the loss of the model that another source trained on: the samples of the first one and of the second.
    first_after: Scores,
    second_after: Scores,
}

/// Sources that train on so many samples each.
struct Fleet<'a> {
    data: &'a Dataset,
    spec: &'a Spec,
    training: Training,
    samples: usize,
}

impl Fleet<'_> {
    fn attacked(&self, seed: u64) -> Result<Attacked, Failure> {
        let mut order: Vec<usize> = (0..self.data.len()).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        for i in (1..order.len()).rev() {
            order.swap(i, rng.random_range(0..=i));
        }
        let sets: Vec<Split> = order
            .chunks_exact(self.samples)
            .take(3 + OWN_MODELS)
            .map(|set| self.split(set))
            .collect();
        let [members, others, second, own @ ..] = &sets[..] else {
            return Err("too few samples".into());
        };
        let first = Params::initial(self.spec, seed);
        let model = self.sent(members, first.clone(), seed)?;
        let own: Vec<Params> = (10..)
            .zip(own)
            .map(|(k, set)| self.sent(set, first.clone(), 100 * seed + k))
            .collect::<Result<_, _>>()?;
        let train_on =
            second.train_on(self.spec, model.clone(), self.training, seed, &mut go_on)?;
        let after = train_on.ok_or("nobody stops it")?;
        let by_loss = |model: &Params, set: &Split| -> Vec<f64> {
            self.losses(model, set).into_iter().map(|loss| -loss).collect()
        };
        let calibrated = |model: &Params, set: &Split| -> Vec<f64> {
            let mut scores = by_loss(model, set);
            for own in &own {
                let losses = self.losses(own, set);
                scores.iter_mut().zip(losses).for_each(|(s, l)| *s += l / OWN_MODELS as f64);
            }
            scores
        };
        let scores = |score: &dyn Fn(&Params, &Split) -> Vec<f64>, model: &Params, set: &Split| {
            Scores { of_members: score(model, set), of_others: score(model, others) }
        };
        Ok(Attacked {
            accuracy: [members, others].map(|set| accuracy(self.spec, &model, set.examples())),
            by_loss: scores(&by_loss, &model, members),
            calibrated: scores(&calibrated, &model, members),
            first_after: scores(&by_loss, &after, members),
            second_after: scores(&by_loss, &after, second),
        })
    }

    fn split(&self, samples: &[usize]) -> Split {
        let labels = self.data.labels(samples).unwrap_or_default();
        Split::new(&self.data.inputs(samples), &labels, self.data.shape().len(), 0.0, 0)
    }

    /// The model that a source with these samples sends.
    fn sent(&self, set: &Split, first: Params, seed: u64) -> Result<Params, Failure> {
        let model = set.train(self.spec, first, self.training, seed, &mut go_on)?;
        let model = model.ok_or("nobody stops it")?;
        Ok(balanced(self.spec, &model, set.examples().labels))
    }

    /// −ln of the probability of every sample's own class.
    fn losses(&self, model: &Params, set: &Split) -> Vec<f64> {
        let examples = set.examples();
        let predictions = predict(self.spec, model, examples.inputs);
        let loss = |(probabilities, &label): (&[f32], &u16)| {
            -f64::from(probabilities[usize::from(label)]).max(1e-30).ln()
        };
        predictions.probabilities().zip(examples.labels).map(loss).collect()
    }
}

fn go_on() -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// The area under the curve of hits over false alarms (0.5: nothing is told apart), and the largest difference of the two.
fn told_apart(of_members: &[f64], of_others: &[f64]) -> String {
    let mut all: Vec<(f64, bool)> = (of_members.iter().map(|&score| (score, true)))
        .chain(of_others.iter().map(|&score| (score, false)))
        .collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (mut hits, mut alarms, mut area, mut most) = (0.0f64, 0.0f64, 0.0, 0.0f64);
    // Equal scores count together.
    for alike in all.chunk_by(|a, b| a.0 == b.0) {
        let members = alike.iter().filter(|(_, is_member)| *is_member).count() as f64;
        let more_hits = members / of_members.len() as f64;
        let more_alarms = (alike.len() as f64 - members) / of_others.len() as f64;
        area += more_alarms * (hits + 0.5 * more_hits);
        hits += more_hits;
        alarms += more_alarms;
        most = most.max(hits - alarms);
    }
    format!("{area:.2}, {most:.2}")
}
