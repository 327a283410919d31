//! Symmetric matrices as their lower triangles, row by row: what a covariance needs when it travels and
//! when distances are measured by it.

/// Where row `row` of a lower triangle begins.
pub(crate) fn start(row: usize) -> usize {
    row * (row + 1) / 2
}

/// Numbers in the lower triangle of a square of this side.
pub(crate) fn triangle(side: usize) -> usize {
    start(side)
}

/// The mean and the covariance (over n, lower triangle) of vectors that come one by one.
#[derive(Debug, Clone)]
pub(super) struct Moments {
    sums: Vec<f64>,
    /// Products summed in single precision over a few vectors at a time, which is fast, and from there
    /// in double, which is exact enough.
    recent: Vec<f32>,
    products: Vec<f64>,
    unsummed: usize,
    count: u64,
}

impl Moments {
    pub(super) fn new(side: usize) -> Moments {
        Moments {
            sums: vec![0.0; side],
            recent: vec![0.0; triangle(side)],
            products: vec![0.0; triangle(side)],
            unsummed: 0,
            count: 0,
        }
    }

    /// How many there were.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn see(&mut self, vector: &[f32]) {
        self.count += 1;
        self.sums.iter_mut().zip(vector).for_each(|(sum, &v)| *sum += f64::from(v));
        for (row, &x) in vector.iter().enumerate() {
            let products = &mut self.recent[start(row)..start(row + 1)];
            products.iter_mut().zip(vector).for_each(|(product, &y)| *product += x * y);
        }
        self.unsummed += 1;
        if self.unsummed == 64 {
            self.sum_up();
        }
    }

    fn sum_up(&mut self) {
        for (product, recent) in self.products.iter_mut().zip(&mut self.recent) {
            *product += f64::from(std::mem::take(recent));
        }
        self.unsummed = 0;
    }

    /// The mean and the covariance.
    pub(super) fn finish(mut self) -> (Vec<f64>, Vec<f64>) {
        self.sum_up();
        let count = self.count.max(1) as f64;
        let mean: Vec<f64> = self.sums.iter().map(|sum| sum / count).collect();
        for row in 0..mean.len() {
            let products = &mut self.products[start(row)..start(row + 1)];
            for (product, other) in products.iter_mut().zip(&mean) {
                *product = *product / count - mean[row] * other;
            }
        }
        (mean, self.products)
    }
}

/// A positive definite matrix A as its Cholesky factor L, A = L·Lᵀ.
#[derive(Debug, Clone)]
pub(crate) struct Cholesky {
    side: usize,
    factor: Vec<f64>,
}

impl Cholesky {
    /// Factors a lower triangle. A pivot that is not positive is taken for a direction without extent, which
    /// then counts for nothing.
    pub(crate) fn new(mut a: Vec<f64>, side: usize) -> Cholesky {
        for row in 0..side {
            for column in 0..=row {
                let (of_row, of_column) = (start(row), start(column));
                let known = dot(&a[of_row..of_row + column], &a[of_column..of_column + column]);
                let rest = a[of_row + column] - known;
                a[of_row + column] = if row > column {
                    rest / a[of_column + column]
                } else if rest > 0.0 {
                    rest.sqrt()
                } else {
                    f64::INFINITY
                };
            }
        }
        Cholesky { side, factor: a }
    }

    /// L⁻¹·x: coordinates in which the length is xᵀ·A⁻¹·x.
    pub(super) fn whiten(&self, x: &mut [f64]) {
        for row in 0..self.side {
            let factor = &self.factor[start(row)..start(row + 1)];
            x[row] = (x[row] - dot(&factor[..row], &x[..row])) / factor[row];
        }
    }

    /// Replaces x by A⁻¹·x.
    pub(crate) fn solve(&self, x: &mut [f64]) {
        self.whiten(x);
        for row in (0..self.side).rev() {
            let factor = &self.factor[start(row)..start(row + 1)];
            x[row] /= factor[row];
            let known = x[row];
            x[..row].iter_mut().zip(factor).for_each(|(x, l)| *x -= l * known);
        }
    }

    /// The lower triangle of A⁻¹.
    pub(super) fn inverse(&self) -> Vec<f64> {
        let side = self.side;
        // Columns of L⁻¹, then A⁻¹ = L⁻ᵀ·L⁻¹: its entries are the columns' products.
        let columns: Vec<Vec<f64>> = (0..side)
            .map(|at| {
                let mut unit = vec![0.0; side];
                unit[at] = 1.0;
                self.whiten(&mut unit);
                unit
            })
            .collect();
        let entry = |row: usize, column: usize| dot(&columns[row][row..], &columns[column][row..]);
        (0..side)
            .flat_map(|row| (0..=row).map(move |column| (row, column)))
            .map(|(r, c)| entry(r, c))
            .collect()
    }
}

/// tr(A·B) of two lower triangles.
pub(super) fn trace_of_product(a: impl Iterator<Item = f64>, b: &[f64], side: usize) -> f64 {
    let products: Vec<f64> = a.zip(b).map(|(a, b)| a * b).collect();
    2.0 * products.iter().sum::<f64>() - trace(&products, side)
}

/// tr(A) of a lower triangle.
pub(crate) fn trace(a: &[f64], side: usize) -> f64 {
    (0..side).map(|row| a[start(row) + row]).sum()
}

/// Adds `value` to the diagonal of a lower triangle.
pub(crate) fn add_to_diagonal(a: &mut [f64], side: usize, value: f64) {
    (0..side).for_each(|row| a[start(row) + row] += value);
}

/// Σ x·y in eight sums, which the compiler keeps in one or two registers.
fn dot(x: &[f64], y: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (x, y) = (x.chunks_exact(8), y.chunks_exact(8));
    let rest: f64 = x.remainder().iter().zip(y.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in x.zip(y) {
        sums.iter_mut().zip(x.iter().zip(y)).for_each(|(sum, (x, y))| *sum += x * y);
    }
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn random(side: usize, count: usize) -> Vec<Vec<f32>> {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        (0..count).map(|_| (0..side).map(|_| rng.random::<f32>()).collect()).collect()
    }

    #[test]
    fn moments_are_their_definition() {
        let vectors = random(5, 150);
        let mut moments = Moments::new(5);
        vectors.iter().for_each(|v| moments.see(v));
        let (mean, covariance) = moments.finish();
        let of = |i: usize| vectors.iter().map(|v| f64::from(v[i])).sum::<f64>() / 150.0;
        for row in 0..5 {
            assert!((mean[row] - of(row)).abs() < 1e-12);
            for column in 0..=row {
                let products = vectors
                    .iter()
                    .map(|v| (f64::from(v[row]) - of(row)) * (f64::from(v[column]) - of(column)));
                let expected = products.sum::<f64>() / 150.0;
                assert!((covariance[start(row) + column] - expected).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn the_factor_inverts_and_whitens() {
        let side = 6;
        let mut moments = Moments::new(side);
        random(side, 40).iter().for_each(|v| moments.see(v));
        let (mean, a) = moments.finish();
        let cholesky = Cholesky::new(a.clone(), side);
        let inverse = cholesky.inverse();
        assert!((trace_of_product(a.iter().copied(), &inverse, side) - side as f64).abs() < 1e-8);
        let (mut white, mut solved) = (mean.clone(), mean.clone());
        cholesky.whiten(&mut white);
        cholesky.solve(&mut solved);
        let length = dot(&white, &white);
        let symmetric =
            |row: usize, column: usize| inverse[start(row.max(column)) + row.min(column)];
        let by_inverse: f64 = (0..side)
            .flat_map(|r| (0..side).map(move |c| (r, c)))
            .map(|(r, c)| mean[r] * symmetric(r, c) * mean[c])
            .sum();
        assert!((length / by_inverse - 1.0).abs() < 1e-9);
        assert!((dot(&mean, &solved) / by_inverse - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_direction_without_extent_counts_for_nothing() {
        let cholesky = Cholesky::new(vec![4.0, 0.0, 0.0], 2);
        let mut x = [2.0, 5.0];
        cholesky.whiten(&mut x);
        assert_eq!(x, [1.0, 0.0]);
    }
}
