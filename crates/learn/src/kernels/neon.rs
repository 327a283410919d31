//! NEON, which every 64-bit ARM processor has.

use std::arch::aarch64::{
    float32x4_t, vadd_f32, vaddq_f32, vdupq_n_f32, vfmaq_f32, vget_high_f32, vget_lane_f32,
    vget_low_f32, vld1q_f32, vst1q_f32,
};

use super::lanes::Lanes;

/// A NEON register, which holds 4 numbers.
#[derive(Clone, Copy)]
pub(super) struct Neon(float32x4_t);

// SAFETY of all intrinsics below: NEON is part of the architecture, and `Lanes` makes the caller vouch
// for the memory behind the pointers; partial loads and stores go through an array of their own.
impl Lanes for Neon {
    const N: usize = 4;
    const WIDTH: usize = 4;
    const LEFT: usize = 5;
    const TILE: usize = 25;

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        Neon(unsafe { vdupq_n_f32(x) })
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        Neon(unsafe { vld1q_f32(from) })
    }

    #[inline(always)]
    unsafe fn load_part(from: *const f32, n: usize) -> Self {
        let mut lanes = [0.0f32; 4];
        unsafe {
            std::ptr::copy_nonoverlapping(from, lanes.as_mut_ptr(), n);
            Neon(vld1q_f32(lanes.as_ptr()))
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe { vst1q_f32(to, self.0) }
    }

    #[inline(always)]
    unsafe fn store_part(self, to: *mut f32, n: usize) {
        let mut lanes = [0.0f32; 4];
        unsafe {
            vst1q_f32(lanes.as_mut_ptr(), self.0);
            std::ptr::copy_nonoverlapping(lanes.as_ptr(), to, n);
        }
    }

    #[inline(always)]
    unsafe fn plus_product(self, a: Self, b: Self) -> Self {
        Neon(unsafe { vfmaq_f32(self.0, a.0, b.0) })
    }

    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        Neon(unsafe { vaddq_f32(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        unsafe {
            let pair = vadd_f32(vget_low_f32(self.0), vget_high_f32(self.0));
            vget_lane_f32::<0>(pair) + vget_lane_f32::<1>(pair)
        }
    }
}
