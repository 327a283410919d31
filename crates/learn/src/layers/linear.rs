//! `y = weight · x + bias`.

use std::ops::Range;

use super::Pass;
use crate::buffer::Buffer;
use crate::kernels::{COLUMN_STRIDE, Columns, Dots, Factor, OutputRow, Rows, Segment, Start, Term};

#[derive(Debug)]
pub(crate) struct Linear {
    weight: Range<usize>,
    bias: Range<usize>,
    inputs: usize,
    outputs: usize,
    /// The weights with outputs side by side, while a network [holds](Linear::hold) its parameters.
    columns: Buffer,
    /// Every sample and every output's weights, as factors of the outputs.
    samples: Vec<Factor>,
    weights: Vec<Factor>,
    /// The gradient of the weights, a row per output, a term per sample; and that of the inputs, a row
    /// per sample, a term per output.
    weight_rows: Vec<OutputRow>,
    weight_terms: Vec<Term>,
    input_rows: Vec<OutputRow>,
    input_terms: Vec<Term>,
}

impl Linear {
    pub(crate) fn new(weight: Range<usize>, bias: Range<usize>, batch: usize) -> Linear {
        let outputs = bias.len();
        let inputs = weight.len() / outputs;
        let factors = |count: usize, out: usize| {
            let factor = |i| Factor { start: (i * inputs) as u32, out: (i * out) as u32 };
            (0..count).map(factor).collect()
        };
        // The gradient of the outputs, [sample][output], is the left factor of both backward products.
        let rows = |count: usize, a: usize, start: Start| {
            let row = |i| OutputRow { a: (i * a) as u32, out: (i * inputs) as u32, start };
            (0..count).map(row).collect()
        };
        let terms = |count: usize, a: usize| {
            (0..count).map(|i| Term { a: (i * a) as u32, b: (i * inputs) as u32 }).collect()
        };
        Linear {
            weight,
            bias,
            inputs,
            outputs,
            columns: Buffer::new(0),
            samples: factors(batch, outputs),
            weights: factors(outputs, 1),
            weight_rows: rows(outputs, 1, Start::Output),
            weight_terms: terms(batch, outputs),
            input_rows: rows(batch, outputs, Start::Number(0.0)),
            input_terms: terms(outputs, 1),
        }
    }

    /// Prepares for many samples with these parameters.
    pub(crate) fn hold(&mut self, params: &[f32]) {
        let stride = self.stride();
        self.columns = Buffer::new(self.inputs * stride);
        let weights = params[self.weight.clone()].chunks_exact(self.inputs);
        for (output, weights) in weights.enumerate() {
            let column = self.columns[output..].iter_mut().step_by(stride);
            column.zip(weights).for_each(|(to, &weight)| *to = weight);
        }
    }

    /// Returns the distance from one input's weights to those of the next.
    fn stride(&self) -> usize {
        self.outputs.next_multiple_of(COLUMN_STRIDE)
    }

    pub(crate) fn forward(&self, pass: &Pass<'_>, x: &[f32], y: &mut [f32]) {
        let bias = &pass.params[self.bias.clone()];
        if !self.columns.is_empty() {
            let (inputs, stride) = (self.inputs, self.stride());
            let job = Columns { x, weights: &self.columns, start: bias, inputs, stride };
            return pass.kernels.columns(&job, y);
        }
        y.chunks_exact_mut(self.outputs).for_each(|y| y.copy_from_slice(bias));
        let job = Dots {
            g: x,
            x: &pass.params[self.weight.clone()],
            segments: &[Segment { g: 0, x: 0 }],
            left: &self.samples[..pass.batch],
            right: &self.weights,
            len: self.inputs,
        };
        pass.kernels.dots(&job, y);
    }

    /// Adds to the gradients of the parameters; writes the input's where it is asked for.
    pub(crate) fn backward(
        &self,
        pass: &Pass<'_>,
        x: &[f32],
        dy: &[f32],
        dx: Option<&mut [f32]>,
        gradients: &mut [f32],
    ) {
        for dy in dy.chunks_exact(self.outputs) {
            let bias = &mut gradients[self.bias.clone()];
            bias.iter_mut().zip(dy).for_each(|(sum, dy)| *sum += dy);
        }
        let weights = Rows {
            a: dy,
            b: x,
            terms: &self.weight_terms[..pass.batch],
            rows: &self.weight_rows,
            len: self.inputs,
        };
        pass.kernels.rows(&weights, &mut gradients[self.weight.clone()]);
        if let Some(dx) = dx {
            let inputs = Rows {
                a: dy,
                b: &pass.params[self.weight.clone()],
                terms: &self.input_terms,
                rows: &self.input_rows[..pass.batch],
                len: self.inputs,
            };
            pass.kernels.rows(&inputs, dx);
        }
    }
}
