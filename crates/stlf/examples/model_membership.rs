//! What a source's model gives away about whom it was trained on, and prints the table of `docs/privacy.md`.
//!
//! ```text
//! model_membership DOMAIN MODEL STEPS [OWN [AUGMENT [SAMPLES]]]   as in: mnist mlp 10000, or mnist cnn 20000 64 both 50
//! ```
//!
//! OWN is the number of models that the attacker trains itself (2 if left out). AUGMENT says how the pictures are varied that all models are trained on: none,
//! shift, convolutions or both, which is the cnn's default in fleets. SAMPLES is one of the sizes of training sets, or all.
//!
//! Three attacks say of a sample whether the model was trained on it: by its loss (Yeom et al. 2018); by its loss less the mean loss of the attacker's own models
//! (Watson et al. 2022); and by the likelihood ratio (Carlini et al. 2022, offline): how far the logit of the sample's class is above what the attacker's models
//! give, in deviations of theirs. Each is tried on as many samples that were in as samples that were not. `STLF_DATA` names the folder of the real sets.
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
use stlf_method::local_training::{Rows, Split, Training};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// With fewer models of its own than this, the attacker takes the same deviation for all samples (Carlini et al. 2022, section VI).
const MODELS_FOR_A_DEVIATION: usize = 64;

/// Probabilities nearer to 0 and 1 than this are rounding.
const ROUNDING: f64 = 1e-7;

/// The share of false alarms at which hits are counted.
const FALSE_ALARMS: f64 = 0.01;

/// Training sets, and how many models of that size are attacked.
const SIZES: [(usize, u64); 3] = [(50, 6), (200, 3), (1_000, 1)];

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (first, rest) = words.split_at(words.len().min(3));
    let [domain, model, steps] = first[..] else {
        return Err("usage: model_membership DOMAIN MODEL STEPS [OWN [AUGMENT [SAMPLES]]]".into());
    };
    let domain: Domain = domain.parse()?;
    let folder = std::env::var_os("STLF_DATA").map(Into::into);
    let data = load(&[domain], &Options { folder, ..Options::default() })?;
    let spec = match model {
        "cnn" => Spec::cnn(data.shape(), data.classes().len())?,
        "mlp" => Spec::mlp(data.shape(), data.classes().len())?,
        _ => return Err(format!("there is no model {model:?}: cnn, mlp").into()),
    };
    let own_models = rest.first().map_or(Ok(2), |own| own.parse())?;
    let augment = match rest.get(1) {
        Some(&name) => Augment::ALL.into_iter().find(|augment| augment.name() == name),
        None => Some(Augment::None),
    };
    let augment = augment.ok_or("there is no such AUGMENT: none, shift, convolutions, both")?;
    let wanted = rest.get(2).filter(|samples| **samples != "all");
    let wanted: Option<usize> = wanted.map(|samples| samples.parse()).transpose()?;
    let descent = Descent::default();
    let training = Training { descent, augment, steps: steps.parse()?, averaged: false };
    println!(
        "| trained on | accuracy, in / not in | by loss: AUC, advantage | with {own_models} models of one's own | likelihood ratio: AUC, advantage, hits at {FALSE_ALARMS} false alarms | after a hand-over: the first's samples | the second's |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (samples, models) in SIZES {
        if wanted.is_some_and(|wanted| wanted != samples) {
            continue;
        }
        let fleet = Fleet { data: &data, spec: &spec, training, samples, own_models };
        let attacked: Vec<Attacked> = (0..models)
            .into_par_iter()
            .map(|seed| fleet.attacked(seed))
            .collect::<Result<_, _>>()?;
        let row = |part: fn(&Attacked) -> &Scores| {
            let all = |of: fn(&Scores) -> &Vec<f64>| -> Vec<f64> {
                attacked.iter().flat_map(|one| of(part(one)).iter().copied()).collect()
            };
            ToldApart::new(&all(|scores| &scores.of_members), &all(|scores| &scores.of_others))
        };
        let mean = |k: usize| {
            attacked.iter().map(|one| one.accuracy[k]).sum::<f64>() / attacked.len() as f64 * 100.0
        };
        let by_ratio = row(|one| &one.by_ratio);
        println!(
            "| {samples} | {:.1} / {:.1} % | {} | {} | {by_ratio}, {:.2} | {} | {} |",
            mean(0),
            mean(1),
            row(|one| &one.by_loss),
            row(|one| &one.calibrated),
            by_ratio.hits,
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
    by_ratio: Scores,
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
    /// The number of models that the attacker trains itself.
    own_models: usize,
}

impl Fleet<'_> {
    fn attacked(&self, seed: u64) -> Result<Attacked, Failure> {
        let mut order: Vec<usize> = (0..self.data.len()).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        shuffle(&mut order, &mut rng);
        let (known, pool) = order.split_at_mut((3 * self.samples).min(self.data.len()));
        let sets: Vec<Split> = known.chunks_exact(self.samples).map(|s| self.split(s)).collect();
        let [members, others, second] = &sets[..] else { return Err("too few samples".into()) };
        let first = Params::initial(self.spec, seed);
        // What is left, set after set; when it is used up, in another order.
        let mut own = Vec::new();
        while own.len() < self.own_models {
            let sets = pool.chunks_exact(self.samples).take(self.own_models - own.len());
            let before = own.len();
            own.extend(sets.map(|set| self.split(set)));
            if own.len() == before {
                return Err("too few samples".into());
            }
            shuffle(pool, &mut rng);
        }
        let train_own =
            |(k, set): (usize, &Split)| self.sent(set, first.clone(), 100 * seed + 10 + k as u64);
        let (model, own) = rayon::join(
            || self.sent(members, first.clone(), seed),
            || own.par_iter().enumerate().map(train_own).collect::<Result<Vec<Params>, _>>(),
        );
        let (model, own) = (model?, own?);
        let train_on =
            second.train_on(self.spec, model.clone(), self.training, seed, &mut go_on)?;
        let after = train_on.ok_or("nobody stops it")?;
        let by_loss = |model: &Params, set: &Split| -> Vec<f64> {
            self.losses(model, set).into_iter().map(|loss| -loss).collect()
        };
        let calibrated = |model: &Params, set: &Split| -> Vec<f64> {
            let (mut scores, count) = (by_loss(model, set), own.len() as f64);
            for own in &own {
                let losses = self.losses(own, set);
                scores.iter_mut().zip(losses).for_each(|(s, l)| *s += l / count);
            }
            scores
        };
        let scores = |score: &dyn Fn(&Params, &Split) -> Vec<f64>, model: &Params, set: &Split| {
            Scores { of_members: score(model, set), of_others: score(model, others) }
        };
        let [of_members, of_others] = self.by_ratio(&model, &own, [members, others]);
        Ok(Attacked {
            accuracy: [members, others].map(|set| accuracy(self.spec, &model, set.examples())),
            by_loss: scores(&by_loss, &model, members),
            calibrated: scores(&calibrated, &model, members),
            by_ratio: Scores { of_members, of_others },
            first_after: scores(&by_loss, &after, members),
            second_after: scores(&by_loss, &after, second),
        })
    }

    /// How far the logits of the samples of two sets are above what models of the attacker's own give, in deviations of these.
    fn by_ratio(&self, model: &Params, own: &[Params], sets: [&Split; 2]) -> [Vec<f64>; 2] {
        let count = own.len() as f64;
        let spread = sets.map(|set| {
            let theirs: Vec<Vec<f64>> = own.par_iter().map(|own| self.logits(own, set)).collect();
            let of_sample = |k: usize| {
                let mean = theirs.iter().map(|logits| logits[k]).sum::<f64>() / count;
                let squares = theirs.iter().map(|logits| (logits[k] - mean).powi(2)).sum::<f64>();
                (mean, squares / (count - 1.0).max(1.0))
            };
            (0..set.examples().labels.len()).map(of_sample).collect::<Vec<(f64, f64)>>()
        });
        let variances: Vec<f64> = spread.iter().flatten().map(|(_, variance)| *variance).collect();
        let common = variances.iter().sum::<f64>() / variances.len() as f64;
        let deviation = |variance: f64| match own.len() < MODELS_FOR_A_DEVIATION {
            true => common.sqrt(),
            false => variance.sqrt(),
        };
        let [members, others] = sets;
        [(members, &spread[0]), (others, &spread[1])].map(|(set, spread)| {
            let logits = self.logits(model, set);
            let above = |(logit, &(mean, variance)): (f64, &(f64, f64))| {
                (logit - mean) / deviation(variance).max(ROUNDING)
            };
            logits.into_iter().zip(spread).map(above).collect()
        })
    }

    /// ln p/(1 − p) of the probability of every sample's own class.
    fn logits(&self, model: &Params, set: &Split) -> Vec<f64> {
        let logit = |loss: f64| {
            let p = (-loss).exp().clamp(ROUNDING, 1.0 - ROUNDING);
            (p / (1.0 - p)).ln()
        };
        self.losses(model, set).into_iter().map(logit).collect()
    }

    fn split(&self, samples: &[usize]) -> Split {
        let labels = self.data.labels(samples).unwrap_or_default();
        let rows = Rows::new(labels.len(), 0.0, 0).trained;
        Split::of(&self.data.inputs(samples), &labels, self.data.shape().len(), &rows)
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

fn shuffle(order: &mut [usize], rng: &mut ChaCha8Rng) {
    for i in (1..order.len()).rev() {
        order.swap(i, rng.random_range(0..=i));
    }
}

/// How well scores tell samples that were in from others.
struct ToldApart {
    /// The area under the curve of hits over false alarms (0.5: nothing is told apart).
    area: f64,
    /// The largest difference of the two.
    advantage: f64,
    /// Hits where there are few false alarms.
    hits: f64,
}

impl ToldApart {
    fn new(of_members: &[f64], of_others: &[f64]) -> ToldApart {
        let mut all: Vec<(f64, bool)> = (of_members.iter().map(|&score| (score, true)))
            .chain(of_others.iter().map(|&score| (score, false)))
            .collect();
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        let (mut hits, mut alarms) = (0.0f64, 0.0f64);
        let mut apart = ToldApart { area: 0.0, advantage: 0.0, hits: 0.0 };
        // Equal scores count together.
        for alike in all.chunk_by(|a, b| a.0 == b.0) {
            let members = alike.iter().filter(|(_, is_member)| *is_member).count() as f64;
            let more_hits = members / of_members.len() as f64;
            let more_alarms = (alike.len() as f64 - members) / of_others.len() as f64;
            apart.area += more_alarms * (hits + 0.5 * more_hits);
            hits += more_hits;
            alarms += more_alarms;
            apart.advantage = apart.advantage.max(hits - alarms);
            if alarms <= FALSE_ALARMS {
                apart.hits = hits;
            }
        }
        apart
    }
}

impl std::fmt::Display for ToldApart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.2}, {:.2}", self.area, self.advantage)
    }
}
