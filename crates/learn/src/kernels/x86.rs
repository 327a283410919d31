//! AVX-512 and AVX2 with fused multiply-add.

use std::arch::x86_64::{
    __m256, __m256i, __m512, _CMP_GT_OQ, _mm_add_ps, _mm_add_ss, _mm_cvtss_f32, _mm_loadu_si128,
    _mm_movehdup_ps, _mm_movehl_ps, _mm_storeu_ps, _mm256_add_ps, _mm256_castps256_ps128,
    _mm256_extractf128_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_loadu_si256,
    _mm256_maskload_ps, _mm256_maskstore_ps, _mm256_permute_ps, _mm256_permute2f128_ps,
    _mm256_set1_ps, _mm256_shuffle_ps, _mm256_storeu_ps, _mm512_add_epi32, _mm512_add_ps,
    _mm512_castps_si512, _mm512_castps512_ps128, _mm512_castsi128_si512, _mm512_cmp_ps_mask,
    _mm512_cvtepu8_epi32, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_loadu_si512,
    _mm512_mask_storeu_ps, _mm512_maskz_compress_epi32, _mm512_maskz_compress_ps,
    _mm512_maskz_loadu_ps, _mm512_mul_ps, _mm512_permute_ps, _mm512_permutex2var_epi32,
    _mm512_permutexvar_epi32, _mm512_reduce_add_ps, _mm512_set_epi32, _mm512_set1_ps,
    _mm512_setzero_ps, _mm512_shuffle_f32x4, _mm512_storeu_ps, _mm512_storeu_si512,
};

use super::lanes::Lanes;
use super::passing::{self, Channel};
use super::patches::Entry;

/// 16 numbers; the processor has AVX-512 F.
#[derive(Clone, Copy)]
pub(super) struct Avx512(__m512);

// SAFETY of all intrinsics below: `Lanes` makes the caller vouch for the instruction set and for the
// memory behind the pointers; masked loads and stores touch the first `n` numbers alone.
impl Lanes for Avx512 {
    const N: usize = 16;
    const WIDTH: usize = 4;
    const LEFT: usize = 5;
    const TILE: usize = 25;

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        Avx512(unsafe { _mm512_set1_ps(x) })
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        Avx512(unsafe { _mm512_loadu_ps(from) })
    }

    #[inline(always)]
    unsafe fn load_part(from: *const f32, n: usize) -> Self {
        Avx512(unsafe { _mm512_maskz_loadu_ps((1 << n) - 1, from) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe { _mm512_storeu_ps(to, self.0) }
    }

    #[inline(always)]
    unsafe fn store_part(self, to: *mut f32, n: usize) {
        unsafe { _mm512_mask_storeu_ps(to, (1 << n) - 1, self.0) }
    }

    #[inline(always)]
    unsafe fn plus_product(self, a: Self, b: Self) -> Self {
        Avx512(unsafe { _mm512_fmadd_ps(a.0, b.0, self.0) })
    }

    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        Avx512(unsafe { _mm512_add_ps(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        unsafe { _mm512_reduce_add_ps(self.0) }
    }

    #[inline(always)]
    unsafe fn sums<const M: usize>(all: [Self; M]) -> [f32; M] {
        if M != 4 {
            return all.map(|one| unsafe { one.sum() });
        }
        // Halves are added, quarters, then numbers within quarters, as in the sum of one: q0 + q2 and q1 + q3 of two registers
        // side by side, the sums of these of four, then those of all numbers.
        let mut four = [0.0; 4];
        unsafe {
            let halves = |a: __m512, b: __m512| {
                _mm512_add_ps(
                    _mm512_shuffle_f32x4::<0x44>(a, b),
                    _mm512_shuffle_f32x4::<0xEE>(a, b),
                )
            };
            let (first, second) = (halves(all[0].0, all[1].0), halves(all[2].0, all[3].0));
            let quarters = _mm512_add_ps(
                _mm512_shuffle_f32x4::<0x88>(first, second),
                _mm512_shuffle_f32x4::<0xDD>(first, second),
            );
            let pairs = _mm512_add_ps(quarters, _mm512_permute_ps::<0x4E>(quarters));
            let each = _mm512_add_ps(pairs, _mm512_permute_ps::<0xB1>(pairs));
            let four_of_them = _mm512_maskz_compress_ps(0x1111, each);
            _mm_storeu_ps(four.as_mut_ptr(), _mm512_castps512_ps128(four_of_them));
        }
        std::array::from_fn(|m| four[m])
    }
}

/// 8 numbers; the processor has AVX2 and FMA.
#[derive(Clone, Copy)]
pub(super) struct Avx2(__m256);

/// Eight numbers from here on, at 8 − n, have their first n set.
static MASKS: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

/// A mask of the first `n < 8` numbers.
#[inline(always)]
unsafe fn first(n: usize) -> __m256i {
    debug_assert!(n <= 8, "a register holds 8 numbers");
    unsafe { _mm256_loadu_si256(MASKS.as_ptr().add(8 - n).cast()) }
}

impl Lanes for Avx2 {
    const N: usize = 8;
    const WIDTH: usize = 2;
    const LEFT: usize = 2;
    const TILE: usize = 10;

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        Avx2(unsafe { _mm256_set1_ps(x) })
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        Avx2(unsafe { _mm256_loadu_ps(from) })
    }

    #[inline(always)]
    unsafe fn load_part(from: *const f32, n: usize) -> Self {
        Avx2(unsafe { _mm256_maskload_ps(from, first(n)) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe { _mm256_storeu_ps(to, self.0) }
    }

    #[inline(always)]
    unsafe fn store_part(self, to: *mut f32, n: usize) {
        unsafe { _mm256_maskstore_ps(to, first(n), self.0) }
    }

    #[inline(always)]
    unsafe fn plus_product(self, a: Self, b: Self) -> Self {
        Avx2(unsafe { _mm256_fmadd_ps(a.0, b.0, self.0) })
    }

    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        Avx2(unsafe { _mm256_add_ps(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        unsafe {
            let quarter =
                _mm_add_ps(_mm256_castps256_ps128(self.0), _mm256_extractf128_ps::<1>(self.0));
            let pair = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
            _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)))
        }
    }

    #[inline(always)]
    unsafe fn sums<const M: usize>(all: [Self; M]) -> [f32; M] {
        if M != 4 {
            return all.map(|one| unsafe { one.sum() });
        }
        // As above, with two registers side by side: 0 and 1, 2 and 3.
        let mut eight = [0.0; 8];
        unsafe {
            let halves = |a: __m256, b: __m256| {
                _mm256_add_ps(
                    _mm256_permute2f128_ps::<0x20>(a, b),
                    _mm256_permute2f128_ps::<0x31>(a, b),
                )
            };
            let (first, second) = (halves(all[0].0, all[1].0), halves(all[2].0, all[3].0));
            let pairs = _mm256_add_ps(
                _mm256_shuffle_ps::<0x44>(first, second),
                _mm256_shuffle_ps::<0xEE>(first, second),
            );
            let each = _mm256_add_ps(pairs, _mm256_permute_ps::<0xB1>(pairs));
            _mm256_storeu_ps(eight.as_mut_ptr(), each);
        }
        std::array::from_fn(|m| eight[[0, 4, 2, 6][m]])
    }
}

/// [`passing::passing`], sixteen pixels at a time.
///
/// # Safety
///
/// The processor has AVX-512 F, and `channel.fits(entries)`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
pub(super) unsafe fn passing(channel: Channel<'_>, entries: &mut [Entry]) -> usize {
    const N: usize = 16;
    let Channel { y, dy, which, corners, steps, scale } = channel;
    let whole = y.len() - y.len() % N;
    let mut count = 0;
    // SAFETY: p + N does not pass the slices, which are of one length. An entry is two numbers of 32 bits
    // (`repr(C)`), and behind `count ≤ p` entries there is room for N more, and N behind the last pixel.
    unsafe {
        let table = _mm512_castsi128_si512(_mm_loadu_si128(steps.as_ptr().cast()));
        let scale = _mm512_set1_ps(scale);
        let low = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
        let high = _mm512_set_epi32(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8);
        let mut p = 0;
        while p < whole {
            let passes = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(
                _mm512_loadu_ps(y.as_ptr().add(p)),
                _mm512_setzero_ps(),
            );
            let which = _mm512_cvtepu8_epi32(_mm_loadu_si128(which.as_ptr().add(p).cast()));
            let corner = _mm512_loadu_si512(corners.as_ptr().add(p).cast());
            let at = _mm512_add_epi32(corner, _mm512_permutexvar_epi32(which, table));
            let gradient = _mm512_mul_ps(_mm512_loadu_ps(dy.as_ptr().add(p)), scale);
            let at = _mm512_maskz_compress_epi32(passes, at);
            let gradient = _mm512_maskz_compress_epi32(passes, _mm512_castps_si512(gradient));
            let to = entries.as_mut_ptr().add(count).cast::<i32>();
            _mm512_storeu_si512(to.cast(), _mm512_permutex2var_epi32(at, low, gradient));
            _mm512_storeu_si512(to.add(N).cast(), _mm512_permutex2var_epi32(at, high, gradient));
            count += passes.count_ones() as usize;
            p += N;
        }
    }
    let rest = Channel {
        y: &y[whole..],
        dy: &dy[whole..],
        which: &which[whole..],
        corners: &corners[whole..],
        ..channel
    };
    count + passing::passing(rest, &mut entries[count..])
}
