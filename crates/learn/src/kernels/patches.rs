//! Sums over few patches of a picture: what is left of a convolution's gradients once pooling and ReLU have
//! made most of them zero.
//!
//! Pictures lie channels last, so that each row of a patch is one stretch. Registers may reach beyond the
//! last stretch; pictures have room for that behind them.

use super::lanes::Lanes;

/// One output pixel with a gradient.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub(crate) struct Entry {
    /// Where its patch starts among the pictures.
    pub at: u32,
    pub gradient: f32,
}

/// The patches of some output pixels of one channel.
#[derive(Clone, Copy)]
pub(crate) struct Patches<'a> {
    pub entries: &'a [Entry],
    /// Stretches of a patch, and numbers of each.
    pub rows: usize,
    pub width: usize,
    /// The distance from one stretch to the next.
    pub pitch: usize,
}

/// Numbers that must follow the last picture: a register's.
pub(crate) const ROOM: usize = 16;

impl Patches<'_> {
    /// Whether every number touched lies inside the slices.
    pub(super) fn fits(&self, pictures: &[f32], patch: &[f32]) -> bool {
        let last = self.entries.iter().map(|e| e.at).max().unwrap_or(0) as usize;
        let end = last + self.rows.saturating_sub(1) * self.pitch + self.width + ROOM;
        patch.len() == self.rows * self.width && (self.entries.is_empty() || end <= pictures.len())
    }
}

/// Both directions over the same tiles: `$body` for constant numbers of rows and registers.
macro_rules! tiles {
    ($lanes:ident, $job:ident, |$row:ident, $column:ident| $call:ident($($argument:expr),*)) => {{
        let registers = $job.width.div_ceil($lanes::N);
        if $job.rows == 5 && registers <= 5 && 5 * registers <= $lanes::TILE {
            let ($row, $column) = (0, 0);
            match registers {
                1 => $call::<$lanes, 5, 1>($($argument),*),
                2 => $call::<$lanes, 5, 2>($($argument),*),
                3 => $call::<$lanes, 5, 3>($($argument),*),
                4 => $call::<$lanes, 5, 4>($($argument),*),
                _ => $call::<$lanes, 5, 5>($($argument),*),
            }
        } else {
            for $row in 0..$job.rows {
                let mut $column = 0;
                while $column < $job.width {
                    match ($job.width - $column).div_ceil($lanes::N) {
                        1 => $call::<$lanes, 1, 1>($($argument),*),
                        2 => $call::<$lanes, 1, 2>($($argument),*),
                        3 => $call::<$lanes, 1, 3>($($argument),*),
                        4 => $call::<$lanes, 1, 4>($($argument),*),
                        5 => $call::<$lanes, 1, 5>($($argument),*),
                        6 => $call::<$lanes, 1, 6>($($argument),*),
                        _ => $call::<$lanes, 1, 7>($($argument),*),
                    }
                    $column += 7 * $lanes::N;
                }
            }
        }
    }};
}

/// `patch[r][i] += Σ_entries gradient · pictures[at + r·pitch + i]`.
///
/// # Safety
///
/// The processor has the instruction set of `L`, and `job.fits(pictures, patch)`.
#[inline(always)]
pub(super) unsafe fn gather<L: Lanes>(job: Patches<'_>, pictures: &[f32], patch: &mut [f32]) {
    // SAFETY: as the caller vouches.
    unsafe { tiles!(L, job, |row, column| gather_tile(job, row, column, pictures, patch)) }
}

/// `pictures[at + r·pitch + i] += gradient · patch[r][i]` for all entries.
///
/// # Safety
///
/// The processor has the instruction set of `L`, and `job.fits(pictures, patch)`.
#[inline(always)]
pub(super) unsafe fn scatter<L: Lanes>(job: Patches<'_>, patch: &[f32], pictures: &mut [f32]) {
    // SAFETY: as the caller vouches.
    unsafe { tiles!(L, job, |row, column| scatter_tile(job, row, column, patch, pictures)) }
}

/// `R` rows of `V` registers, from this row and column on.
#[inline(always)]
unsafe fn gather_tile<L: Lanes, const R: usize, const V: usize>(
    job: Patches<'_>,
    row: usize,
    column: usize,
    pictures: &[f32],
    patch: &mut [f32],
) {
    // SAFETY: `fits` holds; the last register of a row reaches less than `ROOM` beyond it.
    unsafe {
        let mut sums = [[L::splat(0.0); V]; R];
        let from = pictures.as_ptr().add(row * job.pitch + column);
        for entry in job.entries {
            let gradient = L::splat(entry.gradient);
            let from = from.add(entry.at as usize);
            for r in 0..R {
                for v in 0..V {
                    let x = L::load(from.add(r * job.pitch + v * L::N));
                    sums[r][v] = sums[r][v].plus_product(gradient, x);
                }
            }
        }
        for r in 0..R {
            for v in 0..V {
                let start = (row + r) * job.width + column + v * L::N;
                let n = (job.width - column - v * L::N).min(L::N);
                let to = patch.as_mut_ptr().add(start);
                let one = L::splat(1.0);
                if n == L::N {
                    L::load(to).plus_product(one, sums[r][v]).store(to);
                } else {
                    L::load_part(to, n).plus_product(one, sums[r][v]).store_part(to, n);
                }
            }
        }
    }
}

/// `R` rows of `V` registers, from this row and column on.
#[inline(always)]
unsafe fn scatter_tile<L: Lanes, const R: usize, const V: usize>(
    job: Patches<'_>,
    row: usize,
    column: usize,
    patch: &[f32],
    pictures: &mut [f32],
) {
    // SAFETY: as in `gather_tile`. Beyond a row the patch counts as zero, so nothing changes there.
    unsafe {
        let weights: [[L; V]; R] = std::array::from_fn(|r| {
            std::array::from_fn(|v| {
                let start = (row + r) * job.width + column + v * L::N;
                let n = (job.width - column - v * L::N).min(L::N);
                let from = patch.as_ptr().add(start);
                if n == L::N { L::load(from) } else { L::load_part(from, n) }
            })
        });
        let to = pictures.as_mut_ptr().add(row * job.pitch + column);
        // Neighbours in the list are neighbours in a picture and overlap; a sum must have left the store
        // buffer before the next one reads it. So the list is walked in strides.
        let stride = job.entries.len().div_ceil(8).max(1);
        for first in 0..stride {
            for entry in job.entries.iter().skip(first).step_by(stride) {
                let gradient = L::splat(entry.gradient);
                let to = to.add(entry.at as usize);
                for r in 0..R {
                    for v in 0..V {
                        let to = to.add(r * job.pitch + v * L::N);
                        L::load(to).plus_product(gradient, weights[r][v]).store(to);
                    }
                }
            }
        }
    }
}
