//! What every convolution shares: its taps, and its outputs for one sample.

use std::ops::Range;

use stlf_data::Shape;

use super::Pass;
use crate::kernels::{OutputRow, Rows, Start, Term, Windows};

/// The rows and columns of a filter; for a series, one row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kernel {
    pub rows: usize,
    pub columns: usize,
}

/// `out[o] = bias[o] + Σ_{c,ky,kx} weight[o][c][ky][kx] · x[c][· + ky][· + kx]`.
#[derive(Debug)]
pub(crate) struct Filters {
    pub weight: Range<usize>,
    pub bias: Range<usize>,
    pub channels: usize,
    pub kernel: Kernel,
    pub input: Shape,
    /// The number of values in one output channel.
    pub plane: usize,
    pub windows: Windows,
    /// Every tap: which weight, and which stretch of the windows.
    pub taps: Vec<Term>,
    rows: Vec<OutputRow>,
}

impl Filters {
    pub(crate) fn new(
        input: Shape,
        weight: Range<usize>,
        bias: Range<usize>,
        kernel: Kernel,
    ) -> Filters {
        let channels = bias.len();
        let Shape { channels: planes, height, width } = input;
        let Kernel { rows, columns } = kernel;
        let windows = Windows { planes, height, width, shifts: columns };
        let tap = |a: usize| {
            let (c, ky, kx) = (a / (rows * columns), a / columns % rows, a % columns);
            let b = (c * columns + kx) * windows.window_len() + ky * windows.out_width();
            Term { a: a as u32, b: b as u32 }
        };
        Filters {
            weight,
            bias,
            channels,
            kernel,
            input,
            plane: (height + 1 - rows) * windows.out_width(),
            windows,
            taps: (0..planes * rows * columns).map(tap).collect(),
            rows: Vec::with_capacity(channels),
        }
    }

    /// The outputs of the kept channels, one after the other, from the windows of one sample.
    pub(crate) fn apply(
        &mut self,
        pass: &Pass<'_>,
        windows: &[f32],
        kept: &[u32],
        out: &mut [f32],
    ) {
        let bias = &pass.params[self.bias.clone()];
        self.rows.clear();
        self.rows.extend(kept.iter().enumerate().map(|(slot, &o)| OutputRow {
            a: o * self.taps.len() as u32,
            out: (slot * self.plane) as u32,
            start: Start::Number(bias[o as usize]),
        }));
        let weight = &pass.params[self.weight.clone()];
        let job =
            Rows { a: weight, b: windows, terms: &self.taps, rows: &self.rows, len: self.plane };
        pass.kernels.rows(&job, out);
    }
}

/// The sum in 8 strands: a plain one waits for every addition before the next.
pub(crate) fn sum<T>(items: &[T], number: impl Fn(&T) -> f32) -> f32 {
    let mut strands = [0.0f32; 8];
    let (eights, rest) = items.as_chunks::<8>();
    for eight in eights {
        for (strand, item) in strands.iter_mut().zip(eight) {
            *strand += number(item);
        }
    }
    strands.iter().sum::<f32>() + rest.iter().map(number).sum::<f32>()
}
