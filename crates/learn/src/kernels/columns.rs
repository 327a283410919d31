//! Products with weights that stay the same for many rows: `out_rm = start_m + Σ_k x_rk · w_km`.
//!
//! The weights lie with the outputs side by side, so that no sum is taken across a register. What is added to what is the same as in
//! [`dots`](super::dots), to the bit: there, every lane sums the products at its places, and lanes are added half to half.

use super::lanes::Lanes;

/// `out[row · outputs + m] = start[m] + Σ_{k < inputs} x[row · inputs + k] · weights[k · stride + m]` for every row and m < outputs.
pub(crate) struct Columns<'a> {
    pub x: &'a [f32],
    pub weights: &'a [f32],
    pub start: &'a [f32],
    pub inputs: usize,
    /// The distance between the weights of two inputs: at least as many as outputs, and a multiple
    /// of [`STRIDE`].
    pub stride: usize,
}

/// The widest register of any instruction set.
pub(crate) const STRIDE: usize = 16;

impl Columns<'_> {
    /// Whether every number touched lies inside the slices.
    pub(super) fn fits(&self, out: &[f32]) -> bool {
        let outputs = self.start.len();
        let rows = out.len() / outputs.max(1);
        outputs > 0
            && out.len() == rows * outputs
            && self.x.len() >= rows * self.inputs
            && self.stride.is_multiple_of(STRIDE)
            && outputs <= self.stride
            && self.weights.len() >= self.inputs * self.stride
    }
}

/// # Safety
///
/// The processor has the instruction set of `L`, and `job.fits(out)`.
#[inline(always)]
pub(super) unsafe fn columns<L: Lanes>(job: &Columns<'_>, out: &mut [f32]) {
    let outputs = job.start.len();
    let mut first = 0;
    // SAFETY: `fits` holds. Every register has an output at least, so that none reaches past the stride.
    unsafe {
        while outputs - first > L::N {
            strips::<L, 2, 2>(job, first, out);
            first = (first + 2 * L::N).min(outputs);
        }
        if first < outputs {
            strips::<L, 4, 1>(job, first, out);
        }
    }
}

/// `V` registers of outputs from the one numbered `first` on: of `R` rows at a time, then of single ones.
#[inline(always)]
unsafe fn strips<L: Lanes, const R: usize, const V: usize>(
    job: &Columns<'_>,
    first: usize,
    out: &mut [f32],
) {
    let rows = out.len() / job.start.len();
    let mut row = 0;
    // SAFETY: all rows are below their number.
    unsafe {
        while row + R <= rows {
            strip::<L, R, V>(job, row, first, out);
            row += R;
        }
        while row < rows {
            strip::<L, 1, V>(job, row, first, out);
            row += 1;
        }
    }
}

#[inline(always)]
unsafe fn strip<L: Lanes, const R: usize, const V: usize>(
    job: &Columns<'_>,
    row: usize,
    first: usize,
    out: &mut [f32],
) {
    let outputs = job.start.len();
    // SAFETY: `fits` holds, so that there are inputs and outputs for every row. Where fewer outputs than a register holds are left,
    // they alone are touched.
    unsafe {
        let x = std::array::from_fn(|r| job.x.as_ptr().add((row + r) * job.inputs));
        let tile: Tile<L, R, V> = total(job, x, job.weights.as_ptr().add(first));
        for v in 0..V {
            let at = first + v * L::N;
            let (start, count) = (job.start.as_ptr().add(at), outputs - at);
            for r in 0..R {
                let to = out.as_mut_ptr().add((row + r) * outputs + at);
                match count < L::N {
                    true => L::load_part(start, count).plus(tile[r][v]).store_part(to, count),
                    false => L::load(start).plus(tile[r][v]).store(to),
                }
            }
        }
    }
}

/// A tile of sums: `R` rows of `V` registers.
type Tile<L, const R: usize, const V: usize> = [[L; V]; R];

/// The sums of the products at places i, i + N, i + 2N … of a row.
#[inline(always)]
unsafe fn lane<L: Lanes, const R: usize, const V: usize>(
    job: &Columns<'_>,
    x: [*const f32; R],
    weights: *const f32,
    i: usize,
) -> Tile<L, R, V> {
    // SAFETY: as the caller vouches, k stays below `inputs`, and there are `V` registers at every k.
    unsafe {
        let mut sums = [[L::splat(0.0); V]; R];
        let mut k = i;
        while k < job.inputs {
            let from = weights.add(k * job.stride);
            let columns: [L; V] = std::array::from_fn(|v| L::load(from.add(v * L::N)));
            for r in 0..R {
                let factor = L::splat(x[r].add(k).read());
                for v in 0..V {
                    sums[r][v] = sums[r][v].plus_product(factor, columns[v]);
                }
            }
            k += L::N;
        }
        sums
    }
}

#[inline(always)]
unsafe fn both<L: Lanes, const R: usize, const V: usize>(
    a: Tile<L, R, V>,
    b: Tile<L, R, V>,
) -> Tile<L, R, V> {
    // SAFETY: as the caller vouches for the instruction set.
    std::array::from_fn(|r| std::array::from_fn(|v| unsafe { a[r][v].plus(b[r][v]) }))
}

/// The sum of lanes i, i + 8 …, as [`Lanes::sum`] adds them; and so on for 4, 2 and 1.
#[inline(always)]
unsafe fn eighth<L: Lanes, const R: usize, const V: usize>(
    job: &Columns<'_>,
    x: [*const f32; R],
    w: *const f32,
    i: usize,
) -> Tile<L, R, V> {
    unsafe {
        match L::N {
            16 => both(lane(job, x, w, i), lane(job, x, w, i + 8)),
            _ => lane(job, x, w, i),
        }
    }
}

#[inline(always)]
unsafe fn quarter<L: Lanes, const R: usize, const V: usize>(
    job: &Columns<'_>,
    x: [*const f32; R],
    w: *const f32,
    i: usize,
) -> Tile<L, R, V> {
    unsafe {
        match L::N {
            4 => lane(job, x, w, i),
            _ => both(eighth(job, x, w, i), eighth(job, x, w, i + 4)),
        }
    }
}

#[inline(always)]
unsafe fn half<L: Lanes, const R: usize, const V: usize>(
    job: &Columns<'_>,
    x: [*const f32; R],
    w: *const f32,
    i: usize,
) -> Tile<L, R, V> {
    unsafe { both(quarter(job, x, w, i), quarter(job, x, w, i + 2)) }
}

#[inline(always)]
unsafe fn total<L: Lanes, const R: usize, const V: usize>(
    job: &Columns<'_>,
    x: [*const f32; R],
    w: *const f32,
) -> Tile<L, R, V> {
    unsafe { both(half(job, x, w, 0), half(job, x, w, 1)) }
}
