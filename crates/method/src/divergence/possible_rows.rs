//! How much it takes to say which rows a table has, where its columns have few values.
//!
//! The order of rows tells nothing, and a row that many others are like is hardly news: of the 64 rows that three columns of four values can have, a table in
//! which fifty are there once is told by the fourteen that are not. That takes log₂ C(64, 50) = 45 bits, far less than fifty rows of ten numbers seem to have.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// Values of columns that never come together are taken for impossible where those that do are there this often on average.
const SEEN_OFTEN: usize = 4;

/// The bits of which rows these are, of all that there could be, for somebody who knows how many of them are there how often: log₂ of K!/(∏ k!), where k of the K possible
/// rows are there equally often. Infinite where they are so many that every row has `enough` bits of its own.
pub(super) fn bits(different: &[&[f32]], times: &[usize], enough: f64) -> f64 {
    let count = different.len() as f64;
    let Some(possible) = possible(different, enough + count.max(1.0).log2()) else {
        return f64::INFINITY;
    };
    let possible = possible.exp2().round().max(count);
    let arranged: f64 = (0..different.len()).map(|k| (possible - k as f64).log2()).sum();
    let mut alike: BTreeMap<usize, usize> = BTreeMap::new();
    times.iter().for_each(|&times| *alike.entry(times).or_default() += 1);
    // log₂ k!
    let orders = |k: usize| (2..=k).map(|k| (k as f64).log2()).sum::<f64>();
    arranged - alike.into_values().map(orders).sum::<f64>()
}

/// The logarithm of how many rows there could be: every value of a column with every other one's, but of columns next to each other that hang together, such as those that a
/// category is encoded by, only what is there. None where it is no less than `most`.
fn possible(rows: &[&[f32]], most: f64) -> Option<f64> {
    let columns = rows.first().map_or(0, |row| row.len());
    let (mut total, mut together) = (0.0, Numbered { of: vec![0; rows.len()], values: 1 });
    for k in 0..columns {
        // Zero is the same below and above.
        let column = Numbered::of(rows.iter().map(|row| (row[k] + 0.0).to_bits()));
        if column.values == 1 {
            continue;
        }
        let both = Numbered::of(together.of.iter().zip(&column.of));
        let hang_together = both.values < together.values * column.values;
        if hang_together && both.values * SEEN_OFTEN <= rows.len() {
            together = both;
        } else {
            total += (together.values as f64).log2();
            together = column;
        }
        if total >= most {
            return None;
        }
    }
    Some(total + (together.values as f64).log2()).filter(|&all| all < most)
}

/// Values, by numbers.
struct Numbered {
    of: Vec<usize>,
    /// How many different ones there are.
    values: usize,
}

impl Numbered {
    fn of<T: Hash + Eq>(values: impl Iterator<Item = T>) -> Numbered {
        let mut known: HashMap<T, usize> = HashMap::new();
        let number = |value| {
            let next = known.len();
            *known.entry(value).or_insert(next)
        };
        let of = values.map(number).collect();
        Numbered { of, values: known.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every row of columns with so many values each, or of columns that say of each value whether it is that.
    fn all(levels: &[usize], is_encoded: bool) -> Vec<Vec<f32>> {
        let count: usize = levels.iter().product();
        let row = |mut k: usize| {
            let value = |&levels: &usize| {
                let at = k % levels;
                k /= levels;
                let is = |level: usize| f32::from(u8::from(level == at));
                if is_encoded { (0..levels).map(is).collect() } else { vec![at as f32] }
            };
            levels.iter().flat_map(value).collect()
        };
        (0..count).map(row).collect()
    }

    fn bits_of(rows: &[Vec<f32>], times: &[usize]) -> f64 {
        let rows: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
        bits(&rows, times, 10.0)
    }

    #[test]
    fn which_rows_are_there_takes_the_bits_of_their_choice() {
        // C(64, 50) = 47,855,699,958,816, of plain columns and of encoded ones.
        for is_encoded in [false, true] {
            let rows = all(&[4, 4, 4], is_encoded);
            let fifty: Vec<Vec<f32>> = (0..50).map(|k| rows[k * 27 % 64].clone()).collect();
            assert!((bits_of(&fifty, &[1; 50]) - 47_855_699_958_816_f64.log2()).abs() < 1e-6);
            assert_eq!(bits_of(&fifty, &[10; 50]), bits_of(&fifty, &[1; 50]));
            assert!(bits_of(&rows, &[1; 64]).abs() < 1e-9, "all are there");
            // Half of them twice: which half is C(64, 32) more.
            let times: Vec<usize> = (0..64).map(|k| 1 + k % 2).collect();
            assert!((bits_of(&rows, &times) - 1.832_624_140_942_591e18_f64.log2()).abs() < 1e-6);
        }
    }

    #[test]
    fn rows_of_many_values_have_enough() {
        let number = |k: usize, c: usize| ((k * 7919 + c * 104_729) % 2003) as f32;
        let rows = |count: usize| (0..count).map(|k| (0..4).map(|c| number(k, c)).collect());
        for count in [1, 48, 1_000] {
            let rows: Vec<Vec<f32>> = rows(count).collect();
            let is_infinite = bits_of(&rows, &vec![1; count]).is_infinite();
            assert_eq!(is_infinite, count > 1, "a single row has one value in every column");
        }
        assert_eq!(bits_of(&[], &[]), 0.0);
    }
}
