//! Convolution of any picture, with dense gradients.

use super::Pass;
use super::filters::{Filters, Kernel, sum};
use crate::buffer::{Buffer, LINE};
use crate::kernels::{Dots, Factor, OutputRow, Rows, Segment, Start, Term};

#[derive(Debug)]
pub(crate) struct Convolution {
    filters: Filters,
    /// The indices of all output channels.
    all: Vec<u32>,
    /// The windows of every sample, each starting at a cache line.
    expanded: Buffer,
    expanded_len: usize,
    /// Every output channel and every tap, as factors of the weights' gradients.
    planes: Vec<Factor>,
    stretches: Vec<Factor>,
    segments: Vec<Segment>,
    gradient: InputGradient,
}

/// What the gradient to the input needs, for one sample at a time.
#[derive(Debug)]
struct InputGradient {
    /// Gradients of all channels, with a filter's rows but one of zeros above and below.
    padded: Buffer,
    padded_len: usize,
    windows: Buffer,
    rows: Vec<OutputRow>,
    terms: Vec<Term>,
}

impl Convolution {
    pub(crate) fn new(filters: Filters, batch: usize) -> Convolution {
        let Filters { channels, kernel, plane, windows, ref taps, .. } = filters;
        let Kernel { rows, columns } = kernel;
        let row = windows.out_width();
        let margin = (rows - 1) * row;
        let padded_len = (plane + 2 * margin).next_multiple_of(LINE);
        let window = |at: usize| OutputRow {
            a: (at / columns * rows * columns + at % columns) as u32,
            out: (at * windows.window_len()) as u32,
            start: Start::Number(0.0),
        };
        let term = |at: usize| {
            let (o, ky) = (at / rows, at % rows);
            Term {
                a: (o * taps.len() + ky * columns) as u32,
                b: (o * padded_len + margin - ky * row) as u32,
            }
        };
        let gradient = InputGradient {
            padded: Buffer::new(channels * padded_len),
            padded_len,
            windows: Buffer::new(windows.len()),
            rows: (0..windows.planes * columns).map(window).collect(),
            terms: (0..channels * rows).map(term).collect(),
        };
        let expanded_len = windows.len().next_multiple_of(LINE);
        let sample =
            |n: usize| Segment { g: (n * channels * plane) as u32, x: (n * expanded_len) as u32 };
        Convolution {
            all: (0..channels as u32).collect(),
            expanded: Buffer::new(batch * expanded_len),
            expanded_len,
            planes: (0..channels)
                .map(|o| Factor { start: (o * plane) as u32, out: (o * taps.len()) as u32 })
                .collect(),
            stretches: taps.iter().map(|t| Factor { start: t.b, out: t.a }).collect(),
            segments: (0..batch).map(sample).collect(),
            gradient,
            filters,
        }
    }

    pub(crate) fn forward(&mut self, pass: &Pass<'_>, x: &[f32], y: &mut [f32]) {
        let filters = &mut self.filters;
        let samples = x.chunks_exact(filters.input.len());
        let outputs = y.chunks_exact_mut(filters.channels * filters.plane);
        for ((x, y), expanded) in
            samples.zip(outputs).zip(self.expanded.chunks_exact_mut(self.expanded_len))
        {
            let windows = &mut expanded[..filters.windows.len()];
            pass.kernels.expand(filters.windows, x, windows);
            filters.apply(pass, windows, &self.all, y);
        }
    }

    /// Adds to the gradients of the parameters; writes the input's where it is asked for.
    pub(crate) fn backward(
        &mut self,
        pass: &Pass<'_>,
        dy: &[f32],
        dx: Option<&mut [f32]>,
        gradients: &mut [f32],
    ) {
        let filters = &self.filters;
        for dy in dy.chunks_exact(filters.channels * filters.plane) {
            let bias = &mut gradients[filters.bias.clone()];
            let planes = dy.chunks_exact(filters.plane);
            bias.iter_mut().zip(planes).for_each(|(bias, plane)| *bias += sum(plane, |x| *x));
        }
        let job = Dots {
            g: dy,
            x: &self.expanded,
            segments: &self.segments[..pass.batch],
            left: &self.planes,
            right: &self.stretches,
            len: filters.plane,
        };
        pass.kernels.dots(&job, &mut gradients[filters.weight.clone()]);
        if let Some(dx) = dx {
            self.input_gradient(pass, dy, dx);
        }
    }

    fn input_gradient(&mut self, pass: &Pass<'_>, dy: &[f32], dx: &mut [f32]) {
        let Filters { channels, kernel, plane, windows: shape, ref weight, input, .. } =
            self.filters;
        let InputGradient { padded, padded_len, windows, rows, terms } = &mut self.gradient;
        let margin = (kernel.rows - 1) * shape.out_width();
        let samples = dy.chunks_exact(channels * plane);
        for (dy, dx) in samples.zip(dx.chunks_exact_mut(input.len())) {
            let slots = padded.chunks_exact_mut(*padded_len);
            for (dy, slot) in dy.chunks_exact(plane).zip(slots) {
                slot[margin..margin + plane].copy_from_slice(dy);
            }
            let weight = &pass.params[weight.clone()];
            let job = Rows { a: weight, b: padded, terms, rows, len: shape.window_len() };
            pass.kernels.rows(&job, windows);
            pass.kernels.fold(shape, windows, dx);
        }
    }
}
