//! Rows of few values. All rows that there can be are known, so that an attacker need not search for numbers, only for how often each row is there. From means
//! in sixteen bits alone it finds that out.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use stlf_data::Shape;
use stlf_method::divergence::Settings;
use stlf_method::divergence::disclosure::check_inputs;
use stlf_method::divergence::sketch::{self, agreed_features};
use stlf_protocol::wire::Message;

use crate::attack::{Root, Waves, dot};
use crate::reconstruction::received;
use crate::samples::{SEED, flat, mean_of, wide};

/// A table whose columns have two values each.
struct Table {
    columns: usize,
    /// By how much both hidden causes move each column, and where it is without them.
    causes: Vec<[f64; 3]>,
}

impl Table {
    fn new(columns: usize, seed: u64) -> Table {
        let mut rng = ChaCha8Rng::seed_from_u64(1_000 + seed);
        let mut cause = || [1.0, 1.0, 0.5].map(|most: f64| most * rng.random_range(-1.7..1.7));
        Table { columns, causes: (0..columns).map(|_| cause()).collect() }
    }

    fn shape(&self) -> Shape {
        Shape { channels: 1, height: 1, width: self.columns }
    }

    fn rows(&self, samples: usize, seed: u64) -> Vec<Vec<f64>> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut uniform = || rng.random_range(-1.7..1.7);
        let mut row = || {
            let [first, second] = [uniform(), uniform()];
            let value = |cause: &[f64; 3], chance: f64| {
                let sum = cause[0] * first + cause[1] * second + cause[2] + 0.6 * chance;
                if sum > 0.0 { 1.0 } else { -1.0 }
            };
            self.causes.iter().map(|cause| value(cause, uniform())).collect::<Vec<f64>>()
        };
        (0..samples).map(|_| row()).collect()
    }

    /// Every row that there can be.
    fn all(&self) -> Vec<Vec<f64>> {
        let value = |row: usize, k: usize| if row >> k & 1 == 1 { 1.0 } else { -1.0 };
        (0..1 << self.columns)
            .map(|row| (0..self.columns).map(|k| value(row, k)).collect())
            .collect()
    }

    /// How often each of these is among some.
    fn counts(&self, rows: &[Vec<f64>]) -> Vec<usize> {
        let times = |one: &Vec<f64>| rows.iter().filter(|row| *row == one).count();
        self.all().iter().map(times).collect()
    }

    fn settings(&self) -> sketch::Settings {
        sketch::Settings::means(self.shape())
    }

    fn waves(&self) -> Waves {
        let sketch::Settings { bandwidth, embedding, features, .. } = self.settings();
        let known = [bandwidth.known()];
        Waves::of(
            &agreed_features(&known, self.shape(), embedding, features, SEED).unwrap(),
            self.shape(),
        )
    }

    /// The mean that a device publishes of these rows.
    fn published(&self, rows: &[Vec<f64>]) -> Vec<f64> {
        let heard = received(&Settings::Sketch(self.settings()), self.shape(), [rows, rows]);
        let [Message::Means(means, _)] = &heard[..] else { panic!("more than a mean: {heard:?}") };
        wide(&means.to_sketch(&self.settings()).unwrap().mean)
    }

    /// How often each row is there by this mean of so many: least squares among counts that are none below 0 (Lawson and Hanson).
    fn rebuilt(&self, mean: &[f64], samples: usize) -> Vec<usize> {
        let waves = self.waves();
        // That all counts add up is one more equation.
        let column = |row: &Vec<f64>| [waves.values(row), vec![1.0]].concat();
        let columns: Vec<Vec<f64>> = self.all().iter().map(column).collect();
        let sums: Vec<f64> = mean.iter().chain(&[1.0]).map(|x| x * samples as f64).collect();
        let mut counts = vec![0.0; columns.len()];
        let mut free: Vec<usize> = Vec::new();
        for _ in 0..200 {
            let gain = |k: &usize| {
                let rest = sums.iter().enumerate().map(|(row, sum)| {
                    sum - counts.iter().zip(&columns).map(|(n, c)| n * c[row]).sum::<f64>()
                });
                rest.zip(&columns[*k]).map(|(rest, x)| rest * x).sum::<f64>()
            };
            let bound = (0..columns.len()).filter(|k| !free.contains(k)).map(|k| (gain(&k), k));
            let Some((_, best)) =
                bound.filter(|(gain, _)| *gain > 1e-9).max_by(|a, b| a.0.total_cmp(&b.0))
            else {
                break;
            };
            free.push(best);
            loop {
                let found = least_squares(&free, &columns, &sums);
                let ends = free.iter().zip(&found).filter(|(_, to)| **to <= 0.0);
                let share = ends.map(|(&k, to)| counts[k] / (counts[k] - to)).fold(1.0, f64::min);
                for (&k, to) in free.iter().zip(&found) {
                    counts[k] += share * (to - counts[k]);
                }
                if share >= 1.0 {
                    break;
                }
                free.retain(|&k| counts[k] > 1e-12);
                (0..counts.len()).filter(|k| !free.contains(k)).for_each(|k| counts[k] = 0.0);
            }
        }
        counts.into_iter().map(|count| count.round() as usize).collect()
    }
}

/// The numbers by which these columns come nearest to some sums.
fn least_squares(of: &[usize], columns: &[Vec<f64>], sums: &[f64]) -> Vec<f64> {
    let row = |&i: &usize| of.iter().map(|&j| dot(&columns[i], &columns[j])).collect();
    let mut squares: Vec<Vec<f64>> = of.iter().map(row).collect();
    squares.iter_mut().enumerate().for_each(|(k, row)| row[k] += 1e-11);
    let right: Vec<f64> = of.iter().map(|&k| dot(&columns[k], sums)).collect();
    Root::of(&squares).solve(&right)
}

/// How many rows that are there once are found, by counts that say so.
fn single_rows_found(counts: &[usize], truth: &[usize]) -> usize {
    counts.iter().zip(truth).filter(|&counts| counts == (&1, &1)).count()
}

#[test]
fn rows_of_few_values_are_not_rebuilt() {
    for (columns, samples) in [(3, 144), (4, 112), (6, 60)] {
        let mut found = [0; 4];
        for seed in 0..8 {
            let table = Table::new(columns, seed);
            let (victim, other) = (table.rows(samples, seed), table.rows(samples, 100 + seed));
            let [truth, others] = [&victim, &other].map(|rows| table.counts(rows));
            let exact =
                mean_of(&victim.iter().map(|r| table.waves().values(r)).collect::<Vec<_>>());
            let counts = [exact, table.published(&victim)].map(|m| table.rebuilt(&m, samples));
            let single = |counts: &[usize]| single_rows_found(counts, &truth);
            found[0] += truth.iter().filter(|&&times| times == 1).count();
            found[1] += single(&counts[0]);
            found[2] += single(&counts[1]);
            found[3] += single(&others);
        }
        let [all, exact, published, by_chance] = found;
        println!(
            "{samples} rows of {columns} columns with two values: of {all} that are there once, {exact} are rebuilt from the exact mean, {published} from the \
             published one, and {by_chance} are there once in data of the same kind"
        );
        assert!(published <= by_chance + all / 10, "{found:?}");
        assert!(
            columns > 4 || 2 * exact > all,
            "the attack no longer works where it must: {found:?}"
        );
    }
}

#[test]
fn rows_that_repeat_count_little() {
    let table = Table::new(4, 0);
    let is_fine = |samples: usize| {
        let inputs = flat(&table.rows(samples, 0));
        let settings = Settings::Sketch(table.settings());
        check_inputs(&settings, table.shape(), &inputs, false).is_ok()
    };
    let least = (1..).find(|&samples| is_fine(samples)).unwrap();
    println!("{least} rows of 4 columns with two values are the least");
    assert!(least >= 112, "{least}");
}
