//! The inner loops, compiled for every instruction set and chosen when the program runs.
//!
//! The only unsafe code of the project is in this folder. A kernel is written once, over
//! [`lanes::Lanes`]; its safe entrance here checks that every number it touches is there.

#![allow(unsafe_code, reason = "intrinsics, and loops whose bounds are checked once before them")]
#![allow(clippy::needless_range_loop, reason = "tiles of constant size, which must unroll")]

mod columns;
mod dots;
mod lanes;
#[cfg(target_arch = "aarch64")]
mod neon;
mod passing;
mod patches;
mod pool;
mod rows;
#[cfg(test)]
mod tests;
mod windows;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(crate) use columns::{Columns, STRIDE as COLUMN_STRIDE};
pub(crate) use dots::{Dots, Factor, Segment};
pub(crate) use passing::{Channel, ROOM as ENTRY_ROOM};
pub(crate) use patches::{Entry, Patches, ROOM as PICTURE_ROOM};
pub(crate) use pool::Planes;
pub(crate) use rows::{OutputRow, Rows, Start, Term};
pub(crate) use windows::Windows;

use lanes::Lanes;

/// The kernels of one instruction set.
pub struct Kernels {
    name: &'static str,
    rows: unsafe fn(&Rows<'_>, &mut [f32]),
    dots: unsafe fn(&Dots<'_>, &mut [f32]),
    columns: unsafe fn(&Columns<'_>, &mut [f32]),
    gather: unsafe fn(Patches<'_>, &[f32], &mut [f32]),
    scatter: unsafe fn(Patches<'_>, &[f32], &mut [f32]),
    passing: unsafe fn(Channel<'_>, &mut [Entry]) -> usize,
    expand: unsafe fn(Windows, &[f32], &mut [f32]),
    fold: unsafe fn(Windows, &[f32], &mut [f32]),
    pool: unsafe fn(Planes, &[f32], &mut [f32], &mut [u8]),
    unpool: unsafe fn(Planes, &[f32], &[u8], &mut [f32]),
}

impl std::fmt::Debug for Kernels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Kernels({})", self.name)
    }
}

/// The kernels of one instruction set, as a constant. `$narrow` handles rows of a picture, which seldom
/// fill a wide register.
macro_rules! kernels {
    ($constant:ident, $name:literal, $lanes:ty, $narrow:ty, $passing:expr $(, $features:literal)?) => {
        static $constant: Kernels = {
            $(#[target_feature(enable = $features)])?
            unsafe fn rows(job: &Rows<'_>, out: &mut [f32]) {
                // SAFETY: `Kernels::rows` checked; `Kernels::available` asked the processor.
                unsafe { rows::rows::<$lanes>(job, out) }
            }
            $(#[target_feature(enable = $features)])?
            unsafe fn dots(job: &Dots<'_>, out: &mut [f32]) {
                // SAFETY: as above.
                unsafe { dots::dots::<$lanes>(job, out) }
            }
            $(#[target_feature(enable = $features)])?
            unsafe fn columns(job: &Columns<'_>, out: &mut [f32]) {
                // SAFETY: as above.
                unsafe { columns::columns::<$lanes>(job, out) }
            }
            $(#[target_feature(enable = $features)])?
            unsafe fn gather(job: Patches<'_>, pictures: &[f32], patch: &mut [f32]) {
                // SAFETY: as above.
                unsafe {
                    match job.width <= <$narrow>::N {
                        true => patches::gather::<$narrow>(job, pictures, patch),
                        false => patches::gather::<$lanes>(job, pictures, patch),
                    }
                }
            }
            $(#[target_feature(enable = $features)])?
            unsafe fn scatter(job: Patches<'_>, patch: &[f32], pictures: &mut [f32]) {
                // SAFETY: as above.
                unsafe {
                    match job.width <= <$narrow>::N {
                        true => patches::scatter::<$narrow>(job, patch, pictures),
                        false => patches::scatter::<$lanes>(job, patch, pictures),
                    }
                }
            }
            $(#[target_feature(enable = $features)])?
            unsafe fn expand(shape: Windows, pictures: &[f32], windows: &mut [f32]) {
                // SAFETY: as above.
                unsafe { windows::expand::<$narrow>(shape, pictures, windows) }
            }
            $(#[target_feature(enable = $features)])?
            unsafe fn fold(shape: Windows, windows: &[f32], pictures: &mut [f32]) {
                // SAFETY: as above.
                unsafe { windows::fold::<$narrow>(shape, windows, pictures) }
            }
            $(#[target_feature(enable = $features)])?
            unsafe fn pool(planes: Planes, x: &[f32], y: &mut [f32], which: &mut [u8]) {
                pool::pool(planes, x, y, which);
            }
            $(#[target_feature(enable = $features)])?
            unsafe fn unpool(planes: Planes, dy: &[f32], which: &[u8], dx: &mut [f32]) {
                pool::unpool(planes, dy, which, dx);
            }
            Kernels { name: $name, rows, dots, columns, gather, scatter, passing: $passing, expand, fold, pool, unpool }
        };
    };
}

#[cfg(target_arch = "x86_64")]
kernels!(
    AVX512,
    "avx512",
    x86::Avx512,
    x86::Avx2,
    x86::passing,
    "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"
);
#[cfg(target_arch = "x86_64")]
kernels!(AVX2, "avx2", x86::Avx2, x86::Avx2, passing::passing, "avx2,fma");
#[cfg(target_arch = "aarch64")]
kernels!(NEON, "neon", neon::Neon, neon::Neon, passing::passing);
kernels!(PLAIN, "plain", lanes::Plain, lanes::Plain, passing::passing);

impl Kernels {
    /// All kernels this processor can run, the fastest first.
    pub fn available() -> Vec<&'static Kernels> {
        let mut found = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            if avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
            {
                found.push(&AVX512);
            }
            if avx2 {
                found.push(&AVX2);
            }
        }
        #[cfg(target_arch = "aarch64")]
        found.push(&NEON);
        found.push(&PLAIN);
        found
    }

    /// Returns the fastest kernels that this processor can run.
    pub fn fastest() -> &'static Kernels {
        Kernels::available()[0]
    }

    /// Returns the name of the instructions in use: `avx512`, `avx2`, `neon` or `plain`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Computes sums of rows; see [`Rows`].
    pub(crate) fn rows(&self, job: &Rows<'_>, out: &mut [f32]) {
        assert!(job.fits(out), "rows inside their slices");
        // SAFETY: the job fits, and kernels are handed out by `available` alone.
        unsafe { (self.rows)(job, out) }
    }

    /// Computes sums of dot products; see [`Dots`].
    pub(crate) fn dots(&self, job: &Dots<'_>, out: &mut [f32]) {
        assert!(job.fits(out), "segments inside their slices");
        // SAFETY: as above.
        unsafe { (self.dots)(job, out) }
    }

    /// Computes products with weights side by side; see [`Columns`].
    pub(crate) fn columns(&self, job: &Columns<'_>, out: &mut [f32]) {
        assert!(job.fits(out), "rows and weights inside their slices");
        // SAFETY: as above.
        unsafe { (self.columns)(job, out) }
    }

    /// Gathers patches of pictures; see [`patches::gather`].
    pub(crate) fn gather(&self, job: Patches<'_>, pictures: &[f32], patch: &mut [f32]) {
        assert!(job.fits(pictures, patch), "patches inside their pictures");
        // SAFETY: as above.
        unsafe { (self.gather)(job, pictures, patch) }
    }

    /// Adds patches back to pictures; see [`patches::scatter`].
    pub(crate) fn scatter(&self, job: Patches<'_>, patch: &[f32], pictures: &mut [f32]) {
        assert!(job.fits(pictures, patch), "patches inside their pictures");
        // SAFETY: as above.
        unsafe { (self.scatter)(job, patch, pictures) }
    }

    /// Lists the pixels that pass a gradient; see [`passing::passing`].
    pub(crate) fn passing(&self, channel: Channel<'_>, entries: &mut [Entry]) -> usize {
        assert!(channel.fits(entries), "room for every pixel");
        // SAFETY: as above.
        unsafe { (self.passing)(channel, entries) }
    }

    /// Expands pictures into windows; see [`windows::expand`].
    pub(crate) fn expand(&self, shape: Windows, pictures: &[f32], windows: &mut [f32]) {
        assert!(shape.fits(pictures, windows), "pictures and windows of one shape");
        // SAFETY: as above.
        unsafe { (self.expand)(shape, pictures, windows) }
    }

    /// Adds windows back to pictures; see [`windows::fold`].
    pub(crate) fn fold(&self, shape: Windows, windows: &[f32], pictures: &mut [f32]) {
        assert!(shape.fits(pictures, windows), "pictures and windows of one shape");
        // SAFETY: as above.
        unsafe { (self.fold)(shape, windows, pictures) }
    }

    /// Takes the largest of every 2×2 pixels; see [`pool::pool`].
    pub(crate) fn pool(&self, planes: Planes, x: &[f32], y: &mut [f32], which: &mut [u8]) {
        // SAFETY: kernels are handed out by `available` alone; the code itself is safe.
        unsafe { (self.pool)(planes, x, y, which) }
    }

    /// Sends gradients back through pooling; see [`pool::unpool`].
    pub(crate) fn unpool(&self, planes: Planes, dy: &[f32], which: &[u8], dx: &mut [f32]) {
        // SAFETY: as above.
        unsafe { (self.unpool)(planes, dy, which, dx) }
    }
}
