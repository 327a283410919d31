//! Attacks by a source that hands a crafted model on, and gets back what the next source's training made of it: it looks for rows of the next
//! source in how the weights have changed. The same attacks on training that sees the rows as they are show that they work.
//!
//! 12 columns, three classes, the default mlp and training for a table. The attacker has 200 rows of the same kind.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use std::ops::ControlFlow;
use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use stlf_data::{Class, Shape};
use stlf_learn::{Augment, Descent, Params, Spec};
use stlf_method::learner::{BuiltIn, Learner, Lesson};
use stlf_method::local_training::{Rows, Split, Training};

const COLUMNS: usize = 12;
const CLASSES: usize = 3;
const HIDDEN: usize = 64;
/// Hidden units that the attacker's model predicts with; all others are there to read rows.
const HONEST: usize = 12;
/// A row counts as found if what is found is so near to it, in deviations of a column.
const FOUND: f64 = 0.02;

fn spec() -> Spec {
    Spec::mlp(Shape { channels: 1, height: 1, width: COLUMNS }, CLASSES).unwrap()
}

/// The training that is the default for a table.
fn training() -> Training {
    let augment = Augment::None;
    Training { descent: Descent::default(), augment, steps: 10_000, averaged: false }
}

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    (0..12).map(|_| rng.random_range(0.0..1.0)).sum::<f64>() - 6.0
}

/// Rows of three classes with their labels, scaled by their own means and deviations.
struct Table {
    rows: Vec<Vec<f64>>,
    labels: Vec<Class>,
}

impl Table {
    /// So many rows. All tables have the same classes.
    fn drawn(rows: usize, seed: u64) -> Table {
        let mut centres = ChaCha8Rng::seed_from_u64(1);
        let centres: Vec<f64> =
            (0..CLASSES * COLUMNS).map(|_| 0.7 * normal(&mut centres)).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let labels: Vec<Class> = (0..rows).map(|row| (row % CLASSES) as Class).collect();
        let mut rows: Vec<Vec<f64>> = (labels.iter())
            .map(|&class| {
                let centre = &centres[usize::from(class) * COLUMNS..][..COLUMNS];
                centre.iter().map(|c| c + normal(&mut rng)).collect()
            })
            .collect();
        for column in 0..COLUMNS {
            let count = rows.len() as f64;
            let mean = rows.iter().map(|row| row[column]).sum::<f64>() / count;
            let squares = rows.iter().map(|row| (row[column] - mean).powi(2)).sum::<f64>();
            let deviation = (squares / count).sqrt();
            rows.iter_mut().for_each(|row| row[column] = (row[column] - mean) / deviation);
        }
        Table { rows, labels }
    }

    fn inputs(&self) -> Vec<f32> {
        self.rows.iter().flatten().map(|x| *x as f32).collect()
    }

    fn split(&self) -> Split {
        Split::of(
            &self.inputs(),
            &self.labels,
            COLUMNS,
            &Rows::new(self.labels.len(), 0.0, 0).trained,
        )
    }
}

/// The distance of two rows, in deviations of a column.
fn apart(a: &[f64], b: &[f64]) -> f64 {
    let squares: f64 = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum();
    (squares / a.len() as f64).sqrt()
}

/// A model as the weights and biases of its two layers.
#[derive(Clone)]
struct Layers {
    first: Vec<Vec<f64>>,
    first_bias: Vec<f64>,
    second: Vec<Vec<f64>>,
    second_bias: Vec<f64>,
}

impl Layers {
    fn of(params: &Params) -> Layers {
        let numbers: Vec<f64> = params.iter().map(|p| f64::from(*p)).collect();
        let (first, rest) = numbers.split_at(HIDDEN * COLUMNS);
        let (first_bias, rest) = rest.split_at(HIDDEN);
        let (second, second_bias) = rest.split_at(CLASSES * HIDDEN);
        Layers {
            first: first.chunks(COLUMNS).map(<[f64]>::to_vec).collect(),
            first_bias: first_bias.to_vec(),
            second: second.chunks(HIDDEN).map(<[f64]>::to_vec).collect(),
            second_bias: second_bias.to_vec(),
        }
    }

    fn params(&self) -> Params {
        let first = self.first.iter().flatten().chain(&self.first_bias);
        let all = first.chain(self.second.iter().flatten()).chain(&self.second_bias);
        Params::from(all.map(|x| *x as f32).collect::<Vec<f32>>())
    }

    /// A unit that is active above this threshold in this direction, with these weights on its way out.
    fn set_unit(&mut self, at: usize, direction: &[f64], threshold: f64, out: &[f64]) {
        self.first[at] = direction.to_vec();
        self.first_bias[at] = -threshold;
        self.second.iter_mut().zip(out).for_each(|(class, out)| class[at] = *out);
    }
}

/// An attacker with a table of its own.
struct Attacker {
    own: Table,
    rng: ChaCha8Rng,
}

impl Attacker {
    fn new() -> Attacker {
        Attacker { own: Table::drawn(200, 7), rng: ChaCha8Rng::seed_from_u64(3) }
    }

    /// A good model that has so many units in use.
    fn honest(&self, used: usize) -> Layers {
        let mut start = Layers::of(&Params::initial(&spec(), 5));
        for unit in used..HIDDEN {
            start.set_unit(unit, &[0.0; COLUMNS], 1.0, &[0.0; CLASSES]);
        }
        let mut go_on = || ControlFlow::Continue(());
        let own = self.own.split();
        let early = Training { steps: 1_500, ..training() };
        let trained = own.train(&spec(), start.params(), early, 1, &mut go_on);
        Layers::of(&trained.unwrap().unwrap())
    }

    fn direction(&mut self) -> Vec<f64> {
        let direction: Vec<f64> = (0..COLUMNS).map(|_| normal(&mut self.rng)).collect();
        let length = direction.iter().map(|x| x * x).sum::<f64>().sqrt();
        direction.iter().map(|x| x / length).collect()
    }

    /// Above which this share of the attacker's own rows is, in a direction.
    fn threshold(&self, direction: &[f64], share: f64) -> f64 {
        let along = |row: &Vec<f64>| row.iter().zip(direction).map(|(x, d)| x * d).sum::<f64>();
        let mut along: Vec<f64> = self.own.rows.iter().map(along).collect();
        along.sort_by(|a, b| b.total_cmp(a));
        along[((along.len() as f64 * share) as usize).min(along.len() - 1)]
    }

    fn outgoing(&mut self, scale: f64) -> Vec<f64> {
        (0..CLASSES).map(|_| scale * normal(&mut self.rng)).collect()
    }

    /// Units that about one row of so many activates.
    fn traps(&mut self, rows: usize) -> Layers {
        let mut model = self.honest(HONEST);
        for unit in HONEST..HIDDEN {
            let direction = self.direction();
            let threshold = self.threshold(&direction, 1.2 / rows as f64);
            let out = self.outgoing(1.0);
            model.set_unit(unit, &direction, threshold, &out);
        }
        model
    }

    /// Units in a few directions, each with many thresholds: the difference of two neighbours is about the rows between these.
    fn bins(&mut self) -> Layers {
        let mut model = self.honest(HONEST);
        let (in_each, scale) = (13, 0.3);
        for (at, first) in (HONEST..HIDDEN).step_by(in_each).enumerate() {
            let direction = self.direction();
            let out = self.outgoing(0.05);
            for bin in 0..in_each {
                let share = (bin as f64 + 0.3 + 0.1 * at as f64) / 60.0 + 0.2;
                let threshold = scale * self.threshold(&direction, share);
                let scaled: Vec<f64> = direction.iter().map(|d| scale * d).collect();
                model.set_unit(first + bin, &scaled, threshold, &out);
            }
        }
        model
    }

    /// An honest model that is sure of everything: only rows that it has wrong change it.
    fn sure(&mut self) -> Layers {
        let mut model = self.honest(HIDDEN);
        model.second.iter_mut().flatten().for_each(|w| *w *= 5.0);
        model
    }

    /// The same where hidden units hand the row itself to the second layer.
    fn second_layer(&mut self) -> Layers {
        let mut model = self.honest(HONEST);
        model.second.iter_mut().flatten().for_each(|w| *w *= 5.0);
        for column in 0..COLUMNS {
            let mut direction = [0.0; COLUMNS];
            direction[column] = 0.01;
            model.set_unit(HONEST + column, &direction, -1.0, &[0.0; CLASSES]);
        }
        model
    }
}

/// What the attacker takes for rows: by each unit, by the difference of each two, and by the second layer.
fn candidates(before: &Layers, after: &Layers) -> Vec<Vec<f64>> {
    let weights = |unit: usize| -> Vec<f64> {
        let (after, before) = (&after.first[unit], &before.first[unit]);
        after.iter().zip(before).map(|(a, b)| a - b).collect()
    };
    let bias = |unit: usize| after.first_bias[unit] - before.first_bias[unit];
    let divided = |weights: Vec<f64>, bias: f64| -> Option<Vec<f64>> {
        (bias.abs() > 1e-6).then(|| weights.iter().map(|w| w / bias).collect())
    };
    let units = (0..HIDDEN).filter_map(|unit| divided(weights(unit), bias(unit)));
    let pairs = (0..HIDDEN).flat_map(|a| (0..a).map(move |b| (a, b))).filter_map(|(a, b)| {
        let difference = weights(a).iter().zip(weights(b)).map(|(a, b)| a - b).collect();
        divided(difference, bias(a) - bias(b))
    });
    let second = (0..CLASSES).filter_map(|class| {
        let hidden = HONEST..HONEST + COLUMNS;
        let weights = hidden.map(|unit| after.second[class][unit] - before.second[class][unit]);
        let hidden =
            divided(weights.collect(), after.second_bias[class] - before.second_bias[class])?;
        Some(hidden.iter().map(|h| (h - 1.0) / 0.01).collect())
    });
    units.chain(pairs).chain(second).collect()
}

/// How many rows the attacker finds.
fn found(table: &Table, candidates: &[Vec<f64>]) -> usize {
    let near = |row: &&Vec<f64>| candidates.iter().any(|c| apart(c, row) < FOUND);
    table.rows.iter().filter(near).count()
}

/// What came of one attack: how many rows it finds if training sees them as they are, and how many in the product, by the learner of a device and
/// in a simulation.
fn attack(victim: &Table, handed: &Params) -> (usize, usize) {
    let (spec, split) = (spec(), victim.split());
    let mut go_on = || ControlFlow::Continue(());
    let handed_over = split.handed_over(&spec, training());
    let plain = split.train(&spec, handed.clone(), handed_over, 9, &mut go_on).unwrap().unwrap();
    let simulated = split.train_on(&spec, handed.clone(), training(), 9, &mut go_on);
    let learner = BuiltIn {
        spec: spec.clone(),
        training: training(),
        first: Arc::new(Params::initial(&spec, 5)),
        inputs: victim.inputs().into(),
        labels: victim.labels.clone(),
    };
    let rows = Rows::new(victim.labels.len(), 0.0, 0).trained;
    let lesson = Lesson { rows: &rows, start: Some(handed), seed: 9 };
    let device = learner.train(lesson, &mut |_| ControlFlow::Continue(())).unwrap().unwrap();
    assert_eq!(Some(&device), simulated.unwrap().as_ref(), "a device does what is simulated");
    let before = Layers::of(handed);
    let [plain, device] =
        [plain, device].map(|after| found(victim, &candidates(&before, &Layers::of(&after))));
    (plain, device)
}

#[test]
fn a_crafted_model_reads_no_row_of_the_next_source() {
    let (mut by_traps, mut in_all) = (0, 0);
    for rows in [60, 200] {
        let (victim, mut attacker) = (Table::drawn(rows, 11), Attacker::new());
        for (name, model) in [
            ("units that one row activates", attacker.traps(rows)),
            ("differences of units", attacker.bins()),
            ("a model that is sure of nearly all rows", attacker.sure()),
            ("the second layer", attacker.second_layer()),
        ] {
            let (plain, device) = attack(&victim, &model.params());
            println!("{name}: {plain} of {rows} rows as they are, {device} mingled");
            assert_eq!(device, 0, "{name}");
            by_traps += if name.starts_with("units") { plain } else { 0 };
            in_all += plain;
        }
    }
    assert!(by_traps >= 10 && in_all > by_traps, "the attacks themselves work: {in_all}");
}
