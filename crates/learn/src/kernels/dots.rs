//! Sums of dot products: `out_mk += Σ_s Σ_p g_ms[p] · x_ks[p]`.

use super::lanes::Lanes;

/// The places where the factors of one sample start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment {
    /// The start of the left factors in [`Dots::g`].
    pub g: u32,
    /// The start of the right factors in [`Dots::x`].
    pub x: u32,
}

/// A left or right factor: where it starts, and where its sums go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Factor {
    /// The start in [`Dots::g`] or [`Dots::x`], after the segment's start.
    pub start: u32,
    /// In the output; a sum goes where its two factors' places add up to.
    pub out: u32,
}

/// `out[l.out + r.out] += Σ_segments Σ_{p < len} g[segment.g + l.start + p] · x[segment.x + r.start + p]`
/// for every left factor l and right factor r.
pub(crate) struct Dots<'a> {
    pub g: &'a [f32],
    pub x: &'a [f32],
    pub segments: &'a [Segment],
    pub left: &'a [Factor],
    pub right: &'a [Factor],
    pub len: usize,
}

impl Dots<'_> {
    /// Whether every number touched lies inside the slices.
    pub(super) fn fits(&self, out: &[f32]) -> bool {
        let last = |starts: &mut dyn Iterator<Item = u32>| starts.max().unwrap_or(0) as usize;
        let side = |start: fn(&Segment) -> u32, factors: &[Factor]| {
            let segment = last(&mut self.segments.iter().map(start));
            segment + last(&mut factors.iter().map(|f| f.start)) + self.len
        };
        let out_end = [self.left, self.right].map(|f| last(&mut f.iter().map(|f| f.out)));
        let nothing = self.left.is_empty() || self.right.is_empty() || self.segments.is_empty();
        nothing
            || side(|s| s.g, self.left) <= self.g.len()
                && side(|s| s.x, self.right) <= self.x.len()
                && out_end[0] + out_end[1] < out.len()
    }
}

/// # Safety
///
/// The processor has the instruction set of `L`, and `job.fits(out)`.
#[inline(always)]
pub(super) unsafe fn dots<L: Lanes>(job: &Dots<'_>, out: &mut [f32]) {
    let mut left = job.left;
    // SAFETY: as the caller vouches; as many left factors at a time as registers allow.
    unsafe {
        if L::LEFT >= 5 {
            left = strips::<L, 5>(job, left, out);
        }
        left = strips::<L, 2>(job, left, out);
        strips::<L, 1>(job, left, out);
    }
}

/// All right factors against as many strips of `A` left ones as there are; returns what is left.
#[inline(always)]
unsafe fn strips<'a, L: Lanes, const A: usize>(
    job: &Dots<'_>,
    left: &'a [Factor],
    out: &mut [f32],
) -> &'a [Factor] {
    let strips = left.chunks_exact(A);
    let rest = strips.remainder();
    for strip in strips {
        let fours = job.right.chunks_exact(4);
        // SAFETY: `fits` holds.
        unsafe {
            for one in fours.remainder() {
                tile::<L, A, 1>(job, strip, std::slice::from_ref(one), out);
            }
            for four in fours {
                tile::<L, A, 4>(job, strip, four, out);
            }
        }
    }
    rest
}

/// The sums of `A` left and `B` right factors.
#[inline(always)]
unsafe fn tile<L: Lanes, const A: usize, const B: usize>(
    job: &Dots<'_>,
    left: &[Factor],
    right: &[Factor],
    out: &mut [f32],
) {
    // SAFETY: `fits` holds, so every factor reaches to `len` in every segment, which p + N does not pass.
    unsafe {
        let mut sums = [[L::splat(0.0); B]; A];
        let whole = job.len - job.len % L::N;
        for segment in job.segments {
            let g: [*const f32; A] =
                std::array::from_fn(|a| job.g.as_ptr().add((segment.g + left[a].start) as usize));
            let x: [*const f32; B] =
                std::array::from_fn(|b| job.x.as_ptr().add((segment.x + right[b].start) as usize));
            let mut p = 0;
            while p < whole {
                let columns: [L; B] = std::array::from_fn(|b| L::load(x[b].add(p)));
                for a in 0..A {
                    let row = L::load(g[a].add(p));
                    for b in 0..B {
                        sums[a][b] = sums[a][b].plus_product(row, columns[b]);
                    }
                }
                p += L::N;
            }
        }
        let n = job.len - whole;
        if n > 0 {
            for segment in job.segments {
                let g = job.g.as_ptr().add(segment.g as usize + whole);
                let x = job.x.as_ptr().add(segment.x as usize + whole);
                for a in 0..A {
                    let row = L::load_part(g.add(left[a].start as usize), n);
                    for b in 0..B {
                        let column = L::load_part(x.add(right[b].start as usize), n);
                        sums[a][b] = sums[a][b].plus_product(row, column);
                    }
                }
            }
        }
        // Sums that lie side by side are added together.
        let side_by_side = (1..B).all(|b| right[b].out == right[0].out + b as u32);
        for a in 0..A {
            let sums = L::sums(sums[a]);
            if side_by_side {
                let first = (left[a].out + right[0].out) as usize;
                let to = &mut out[first..first + B];
                for b in 0..B {
                    to[b] += sums[b];
                }
                continue;
            }
            for b in 0..B {
                out[(left[a].out + right[b].out) as usize] += sums[b];
            }
        }
    }
}
