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
    /// At least as many as outputs, and a multiple of [`STRIDE`].
    pub stride: usize,
}

/// The widest tile of any instruction set is a divisor of this.
pub(crate) const STRIDE: usize = 32;

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
    let mut pairs = out.chunks_exact_mut(2 * outputs);
    let mut row = 0;
    // SAFETY: `fits` holds, so that there are inputs for every row of the output.
    unsafe {
        for pair in &mut pairs {
            let x = [row, row + 1].map(|row| job.x.as_ptr().add(row * job.inputs));
            strip::<L, 2>(job, x, pair);
            row += 2;
        }
        let rest = pairs.into_remainder();
        if !rest.is_empty() {
            strip::<L, 1>(job, [job.x.as_ptr().add(row * job.inputs)], rest);
        }
    }
}

/// All outputs of `R` rows, two registers at a time.
#[inline(always)]
unsafe fn strip<L: Lanes, const R: usize>(job: &Columns<'_>, x: [*const f32; R], out: &mut [f32]) {
    let outputs = job.start.len();
    let mut sums = [0.0; STRIDE];
    let mut first = 0;
    // SAFETY: two registers hold at most STRIDE numbers, of which the stride of the weights is a multiple.
    unsafe {
        while first < outputs {
            let tile = total::<L, R>(job, x, job.weights.as_ptr().add(first));
            let count = (outputs - first).min(2 * L::N);
            for r in 0..R {
                tile[r][0].store(sums.as_mut_ptr());
                tile[r][1].store(sums.as_mut_ptr().add(L::N));
                let at = r * outputs + first;
                let start = &job.start[first..first + count];
                let to = out[at..at + count].iter_mut().zip(start).zip(&sums);
                to.for_each(|((to, start), sum)| *to = start + sum);
            }
            first += 2 * L::N;
        }
    }
}

/// `R` rows of two registers.
type Tile<L, const R: usize> = [[L; 2]; R];

/// The sums of the products at places i, i + N, i + 2N … of a row.
#[inline(always)]
unsafe fn lane<L: Lanes, const R: usize>(
    job: &Columns<'_>,
    x: [*const f32; R],
    weights: *const f32,
    i: usize,
) -> Tile<L, R> {
    // SAFETY: as the caller vouches, k stays below `inputs`, and there are two registers at every k.
    unsafe {
        let mut sums = [[L::splat(0.0); 2]; R];
        let mut k = i;
        while k < job.inputs {
            let from = weights.add(k * job.stride);
            let columns = [L::load(from), L::load(from.add(L::N))];
            for r in 0..R {
                let factor = L::splat(x[r].add(k).read());
                for v in 0..2 {
                    sums[r][v] = sums[r][v].plus_product(factor, columns[v]);
                }
            }
            k += L::N;
        }
        sums
    }
}

#[inline(always)]
unsafe fn both<L: Lanes, const R: usize>(a: Tile<L, R>, b: Tile<L, R>) -> Tile<L, R> {
    // SAFETY: as the caller vouches for the instruction set.
    std::array::from_fn(|r| std::array::from_fn(|v| unsafe { a[r][v].plus(b[r][v]) }))
}

/// The sum of lanes i, i + 8 …, as [`Lanes::sum`] adds them; and so on for 4, 2 and 1.
#[inline(always)]
unsafe fn eighth<L: Lanes, const R: usize>(
    job: &Columns<'_>,
    x: [*const f32; R],
    w: *const f32,
    i: usize,
) -> Tile<L, R> {
    unsafe {
        match L::N {
            16 => both(lane(job, x, w, i), lane(job, x, w, i + 8)),
            _ => lane(job, x, w, i),
        }
    }
}

#[inline(always)]
unsafe fn quarter<L: Lanes, const R: usize>(
    job: &Columns<'_>,
    x: [*const f32; R],
    w: *const f32,
    i: usize,
) -> Tile<L, R> {
    unsafe {
        match L::N {
            4 => lane(job, x, w, i),
            _ => both(eighth(job, x, w, i), eighth(job, x, w, i + 4)),
        }
    }
}

#[inline(always)]
unsafe fn half<L: Lanes, const R: usize>(
    job: &Columns<'_>,
    x: [*const f32; R],
    w: *const f32,
    i: usize,
) -> Tile<L, R> {
    unsafe { both(quarter(job, x, w, i), quarter(job, x, w, i + 2)) }
}

#[inline(always)]
unsafe fn total<L: Lanes, const R: usize>(
    job: &Columns<'_>,
    x: [*const f32; R],
    w: *const f32,
) -> Tile<L, R> {
    unsafe { both(half(job, x, w, 0), half(job, x, w, 1)) }
}
