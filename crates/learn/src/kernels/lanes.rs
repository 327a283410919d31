//! One register of numbers, as each instruction set has it.
//!
//! A kernel is written once over [`Lanes`]; `super` compiles it for every instruction set.

/// Numbers that one instruction handles together.
///
/// # Safety
///
/// Callers of every method must run on a processor that has the implementing type's instruction set,
/// and pass pointers to as many readable or writable numbers as the method touches: `N`, or `n`.
pub(super) trait Lanes: Copy {
    /// How many numbers a register holds.
    const N: usize;
    /// How many registers of one output row a tile of [`rows`](super::rows) keeps.
    const WIDTH: usize;
    /// How many left factors a tile of [`dots`](super::dots) takes, with four right ones.
    const LEFT: usize;
    /// How many sums [`gather`](super::patches::gather) keeps for five rows at once.
    const TILE: usize;

    unsafe fn splat(x: f32) -> Self;
    unsafe fn load(from: *const f32) -> Self;
    /// The first `n < N` numbers; the others are zero.
    unsafe fn load_part(from: *const f32, n: usize) -> Self;
    unsafe fn store(self, to: *mut f32);
    /// Stores the first `n < N` numbers.
    unsafe fn store_part(self, to: *mut f32, n: usize);
    /// Returns `self + a·b`, number by number.
    unsafe fn plus_product(self, a: Self, b: Self) -> Self;
    /// Returns `self + other`, number by number.
    unsafe fn plus(self, other: Self) -> Self;
    /// The sum of all N numbers: the second half is added to the first, and so on until one number is left.
    unsafe fn sum(self) -> f32;
    /// The sums of several registers, each to the bit that [`sum`](Lanes::sum) gives. Four at once may be faster.
    #[inline(always)]
    unsafe fn sums<const M: usize>(all: [Self; M]) -> [f32; M] {
        // SAFETY: the caller vouches for the instruction set.
        all.map(|one| unsafe { one.sum() })
    }
}

/// Registers for any processor: arrays that the compiler vectorises as it can.
#[derive(Clone, Copy)]
pub(super) struct Plain([f32; 8]);

impl Lanes for Plain {
    const N: usize = 8;
    const WIDTH: usize = 1;
    const LEFT: usize = 2;
    const TILE: usize = 5;

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        Plain([x; 8])
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller vouches for N readable numbers; an array of f32 needs no more alignment.
        Plain(unsafe { from.cast::<[f32; 8]>().read() })
    }

    #[inline(always)]
    unsafe fn load_part(from: *const f32, n: usize) -> Self {
        let mut lanes = [0.0; 8];
        for (i, lane) in lanes.iter_mut().enumerate().take(n) {
            // SAFETY: i < n, and the caller vouches for n readable numbers.
            *lane = unsafe { from.add(i).read() };
        }
        Plain(lanes)
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller vouches for N writable numbers.
        unsafe { to.cast::<[f32; 8]>().write(self.0) }
    }

    #[inline(always)]
    unsafe fn store_part(self, to: *mut f32, n: usize) {
        for (i, lane) in self.0.into_iter().enumerate().take(n) {
            // SAFETY: i < n, and the caller vouches for n writable numbers.
            unsafe { to.add(i).write(lane) }
        }
    }

    #[inline(always)]
    unsafe fn plus_product(self, a: Self, b: Self) -> Self {
        Plain(std::array::from_fn(|i| self.0[i] + a.0[i] * b.0[i]))
    }

    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        Plain(std::array::from_fn(|i| self.0[i] + other.0[i]))
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        let [a, b, c, d, e, f, g, h] = self.0;
        ((a + e) + (c + g)) + ((b + f) + (d + h))
    }
}
