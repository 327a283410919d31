//! Tables of categories in which every row is there once, as where repeats were removed. There are not many such rows, so that an attacker need only say of each whether
//! it is there.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use stlf_data::Shape;
use stlf_method::divergence::Settings;
use stlf_method::divergence::disclosure::check_inputs;
use stlf_method::divergence::sketch::{self, agreed_features};
use stlf_protocol::wire::Message;

use crate::attack::{Waves, dot};
use crate::reconstruction::received;
use crate::samples::{SEED, flat, mean_of, wide};

/// Categories of so many values each.
struct Categories {
    levels: &'static [usize],
    /// Whether each is a column for every value, which says whether it is that.
    is_encoded: bool,
}

impl Categories {
    fn shape(&self) -> Shape {
        let encoded = self.levels.iter().sum();
        let width = if self.is_encoded { encoded } else { self.levels.len() };
        Shape { channels: 1, height: 1, width }
    }

    /// Every row that there can be, in columns of mean 0 and deviation 1.
    fn all(&self) -> Vec<Vec<f64>> {
        let column = |levels: usize, at: usize| -> Vec<f64> {
            let count = levels as f64;
            let deviation = if self.is_encoded {
                (count - 1.0).sqrt() / count
            } else {
                ((count * count - 1.0) / 12.0).sqrt()
            };
            let is = |level: usize| (f64::from(u8::from(level == at)) - 1.0 / count) / deviation;
            if self.is_encoded {
                (0..levels).map(is).collect()
            } else {
                vec![(at as f64 - (count - 1.0) / 2.0) / deviation]
            }
        };
        let row = |mut k: usize| {
            let category = |&levels: &usize| {
                let at = k % levels;
                k /= levels;
                column(levels, at)
            };
            self.levels.iter().flat_map(category).collect()
        };
        (0..self.levels.iter().product()).map(row).collect()
    }

    fn settings(&self) -> sketch::Settings {
        sketch::Settings::means(self.shape())
    }

    /// Whether a device may publish means of these of all rows.
    fn may_publish(&self, is_there: &[bool]) -> bool {
        let inputs = flat(&self.rows(is_there));
        check_inputs(&Settings::Sketch(self.settings()), self.shape(), &inputs, false).is_ok()
    }

    fn rows(&self, is_there: &[bool]) -> Vec<Vec<f64>> {
        let rows = self.all().into_iter().zip(is_there);
        rows.filter(|(_, is_there)| **is_there).map(|(row, _)| row).collect()
    }

    /// What a device with these rows publishes, and the same without noise.
    fn published(&self, is_there: &[bool]) -> [Vec<f64>; 2] {
        let (settings, rows) = (self.settings(), self.rows(is_there));
        let heard = received(&Settings::Sketch(settings), self.shape(), [&rows, &rows]);
        let [Message::Means(means, _)] = &heard[..] else { panic!("more than a mean: {heard:?}") };
        let waves = self.waves();
        let exact = mean_of(&rows.iter().map(|row| waves.values(row)).collect::<Vec<_>>());
        [wide(&means.to_sketch(&settings).unwrap().mean), exact]
    }

    fn waves(&self) -> Waves {
        let sketch::Settings { bandwidth, embedding, features, .. } = self.settings();
        let features =
            agreed_features(&[bandwidth.known()], self.shape(), embedding, features, SEED);
        Waves::of(&features.unwrap(), self.shape())
    }

    /// The likeliest share of each row that can be there, from 0 to 1, by the mean of so many: least squares against noise of this deviation, with a share that is
    /// usual before.
    fn shares(&self, mean: &[f64], count: usize, noise: f64) -> Vec<f64> {
        let (waves, all) = (self.waves(), self.all());
        let usual = count as f64 / all.len() as f64;
        let spread = usual * (1.0 - usual);
        // How many there are in all is one more equation, and exact.
        let weight = 1.0 / (count as f64 * noise);
        let scaled = |values: &[f64]| -> Vec<f64> {
            values.iter().map(|x| weight * x).chain([30.0]).collect()
        };
        let columns: Vec<Vec<f64>> = all.iter().map(|row| scaled(&waves.values(row))).collect();
        let mut shares = vec![usual; all.len()];
        let mut rest = mean
            .iter()
            .map(|x| weight * count as f64 * x)
            .chain([30.0 * count as f64])
            .collect::<Vec<f64>>();
        for column in &columns {
            rest.iter_mut().zip(column).for_each(|(rest, x)| *rest -= usual * x);
        }
        let squares: Vec<f64> = columns.iter().map(|column| dot(column, column)).collect();
        for _ in 0..300_000 / all.len() {
            for ((share, column), square) in shares.iter_mut().zip(&columns).zip(&squares) {
                let slope = dot(column, &rest) + (usual - *share) / spread;
                let to = (*share + slope / (square + 1.0 / spread)).clamp(0.0, 1.0);
                rest.iter_mut().zip(column).for_each(|(rest, x)| *rest -= (to - *share) * x);
                *share = to;
            }
        }
        shares
    }
}

/// So many of all rows, drawn.
fn drawn(all: usize, count: usize, seed: u64) -> Vec<bool> {
    let mut is_there: Vec<bool> = (0..all).map(|k| k < count).collect();
    is_there.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    is_there
}

/// Of the rows that are rarer, those that are there or those that are not: how many there are, and how many are named right as those of the most or least share.
fn named(is_there: &[bool], shares: &[f64]) -> (usize, usize) {
    let present = is_there.iter().filter(|is| **is).count();
    let is_few = 2 * present <= is_there.len();
    let count = if is_few { present } else { is_there.len() - present };
    let mut order: Vec<usize> = (0..is_there.len()).collect();
    order.sort_by(|&a, &b| shares[a].total_cmp(&shares[b]));
    if is_few {
        order.reverse();
    }
    (count, order[..count].iter().filter(|&&k| is_there[k] == is_few).count())
}

#[test]
fn which_rows_of_categories_are_there_is_not_rebuilt() {
    const TABLES: u64 = 8;
    for (levels, is_encoded, count, may) in [
        (&[4, 4, 4][..], true, 50, false),
        (&[4, 4, 4], true, 56, false),
        (&[2, 2, 2, 2, 2, 2], true, 60, false),
        (&[2, 2, 2, 2, 2, 2], false, 56, false),
        (&[5, 5, 5], true, 62, false),
        (&[8, 8, 8], false, 54, true),
        (&[6, 6, 6], false, 60, true),
        (&[3, 3, 3, 3, 3], false, 70, true),
    ] {
        let table = Categories { levels, is_encoded };
        let all = table.all().len();
        let [mut rare, mut right, mut exact, mut by_chance] = [0; 4];
        for seed in 0..TABLES {
            let [victim, other] = [seed, 100 + seed].map(|seed| drawn(all, count, seed));
            assert_eq!(table.may_publish(&victim), may, "{levels:?} {count}");
            // Base noise, as everyone knows it.
            let noise = (63 * count * table.settings().features) as f64;
            let noise = noise.sqrt().recip();
            let [published, true_mean] = table.published(&victim);
            let named = |mean: &[f64], noise| named(&victim, &table.shares(mean, count, noise));
            let (found, of_exact) = (named(&published, noise), named(&true_mean, noise / 10.0));
            rare += found.0;
            right += found.1;
            exact += of_exact.1;
            let as_there: Vec<f64> = other.iter().map(|is| f64::from(u8::from(*is))).collect();
            by_chance += self::named(&victim, &as_there).1;
        }
        let columns = if is_encoded { "encoded categories" } else { "categories" };
        let rule = if may { "published" } else { "refused" };
        println!(
            "{count} of the {all} rows of {columns} of {levels:?}: {rule}; of {rare} that are there, or are not, {right} are named by the published mean, {exact} by the \
             exact one, {by_chance} by chance"
        );
        assert!(!may || right <= by_chance + rare / 10, "{levels:?} {count}");
        if levels == [4, 4, 4] {
            assert!(
                right > 2 * by_chance,
                "the attack no longer works where it must: {right} {by_chance}"
            );
        }
    }
}
