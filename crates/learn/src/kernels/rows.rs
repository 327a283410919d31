//! Sums of rows: `out_m[p] = start_m + Σ_k a_m[k] · b_k[p]`.
//!
//! The rows b_k may start anywhere and overlap, so a convolution needs no copy of its input per tap.

use super::lanes::Lanes;

/// One product of the sum: which factor of each output row, and where the row it multiplies starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Term {
    /// The factor's place, counted from [`OutputRow::a`].
    pub a: u32,
    /// Where the row starts in [`Rows::b`].
    pub b: u32,
}

/// One row of the output, and what adds up to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutputRow {
    /// Where its factors start in [`Rows::a`].
    pub a: u32,
    /// Where it starts in the output.
    pub out: u32,
    /// The number that its sums start from.
    pub start: Start,
}

/// The number that a sum starts from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Start {
    /// What the output already holds there.
    Output,
    Number(f32),
}

/// `out[row.out + p] = start + Σ_terms a[row.a + term.a] · b[term.b + p]` for every row and p < len.
pub(crate) struct Rows<'a> {
    pub a: &'a [f32],
    pub b: &'a [f32],
    pub terms: &'a [Term],
    pub rows: &'a [OutputRow],
    pub len: usize,
}

impl Rows<'_> {
    /// Whether every number touched lies inside the slices.
    pub(super) fn fits(&self, out: &[f32]) -> bool {
        let nothing = self.terms.is_empty() || self.rows.is_empty() || self.len == 0;
        let farthest = |(a, b): (u32, u32), (x, y): (u32, u32)| (a.max(x), b.max(y));
        let of_rows = self.rows.iter().map(|r| (r.a, r.out)).fold((0, 0), farthest);
        let of_terms = self.terms.iter().map(|t| (t.a, t.b)).fold((0, 0), farthest);
        let (a, b) = (of_rows.0 as usize + of_terms.0 as usize, of_terms.1 as usize);
        let o = of_rows.1 as usize;
        nothing || a < self.a.len() && b + self.len <= self.b.len() && o + self.len <= out.len()
    }
}

/// # Safety
///
/// The processor has the instruction set of `L`, and `job.fits(out)`.
#[inline(always)]
pub(super) unsafe fn rows<L: Lanes>(job: &Rows<'_>, out: &mut [f32]) {
    // SAFETY: as the caller vouches; five rows at a time, then what is left.
    unsafe {
        let mut fives = job.rows.chunks_exact(5);
        for five in &mut fives {
            block::<L, 5>(job, five, out);
        }
        match fives.remainder() {
            four @ [_, _, _, _] => block::<L, 4>(job, four, out),
            three @ [_, _, _] => block::<L, 3>(job, three, out),
            two @ [_, _] => block::<L, 2>(job, two, out),
            one @ [_] => block::<L, 1>(job, one, out),
            _ => {}
        }
    }
}

/// `M` output rows, in tiles as wide as registers allow.
#[inline(always)]
unsafe fn block<L: Lanes, const M: usize>(job: &Rows<'_>, rows: &[OutputRow], out: &mut [f32]) {
    let mut p = 0;
    // SAFETY: `fits` holds, so every row of a, b and out reaches to `len`, and p + the tile does not pass it.
    unsafe {
        let a: [*const f32; M] = std::array::from_fn(|m| job.a.as_ptr().add(rows[m].a as usize));
        let start: [Start; M] = std::array::from_fn(|m| rows[m].start);
        let b = job.b.as_ptr();
        let to: [*mut f32; M] = std::array::from_fn(|m| out.as_mut_ptr().add(rows[m].out as usize));
        // Three rows leave registers for wider tiles, which read each factor less often.
        if L::WIDTH >= 4 && M <= 3 {
            while p + 6 * L::N <= job.len {
                tile::<L, M, 6>(a, start, job.terms, b.add(p), to.map(|o| o.add(p)));
                p += 6 * L::N;
            }
        }
        if L::WIDTH >= 4 {
            while p + 4 * L::N <= job.len {
                tile::<L, M, 4>(a, start, job.terms, b.add(p), to.map(|o| o.add(p)));
                p += 4 * L::N;
            }
        }
        if L::WIDTH >= 2 {
            while p + 2 * L::N <= job.len {
                tile::<L, M, 2>(a, start, job.terms, b.add(p), to.map(|o| o.add(p)));
                p += 2 * L::N;
            }
        }
        while p + L::N <= job.len {
            tile::<L, M, 1>(a, start, job.terms, b.add(p), to.map(|o| o.add(p)));
            p += L::N;
        }
        if p < job.len {
            edge::<L, M>(a, start, job.terms, b.add(p), to.map(|o| o.add(p)), job.len - p);
        }
    }
}

/// Computes a tile of the output: `M` rows of `V` registers.
#[inline(always)]
unsafe fn tile<L: Lanes, const M: usize, const V: usize>(
    a: [*const f32; M],
    start: [Start; M],
    terms: &[Term],
    b: *const f32,
    to: [*mut f32; M],
) {
    // SAFETY: the caller vouches for V·N numbers behind every row.
    unsafe {
        let mut sums: [[L; V]; M] = std::array::from_fn(|m| match start[m] {
            Start::Output => std::array::from_fn(|v| L::load(to[m].add(v * L::N))),
            Start::Number(x) => [L::splat(x); V],
        });
        for term in terms {
            let row = b.add(term.b as usize);
            let x: [L; V] = std::array::from_fn(|v| L::load(row.add(v * L::N)));
            for m in 0..M {
                let factor = L::splat(a[m].add(term.a as usize).read());
                for v in 0..V {
                    sums[m][v] = sums[m][v].plus_product(factor, x[v]);
                }
            }
        }
        for m in 0..M {
            for v in 0..V {
                sums[m][v].store(to[m].add(v * L::N));
            }
        }
    }
}

/// `M` rows of the last `n < N` numbers.
#[inline(always)]
unsafe fn edge<L: Lanes, const M: usize>(
    a: [*const f32; M],
    start: [Start; M],
    terms: &[Term],
    b: *const f32,
    to: [*mut f32; M],
    n: usize,
) {
    // SAFETY: the caller vouches for n numbers behind every row.
    unsafe {
        let mut sums: [L; M] = std::array::from_fn(|m| match start[m] {
            Start::Output => L::load_part(to[m], n),
            Start::Number(x) => L::splat(x),
        });
        for term in terms {
            let x = L::load_part(b.add(term.b as usize), n);
            for m in 0..M {
                let factor = L::splat(a[m].add(term.a as usize).read());
                sums[m] = sums[m].plus_product(factor, x);
            }
        }
        for m in 0..M {
            sums[m].store_part(to[m], n);
        }
    }
}
