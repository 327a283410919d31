//! Convolution, channel dropout, pooling and ReLU as one stage, of pictures (2×2 pixels are pooled) or series (two readings are).
//!
//! Three quarters of the gradients that pooling passes on are zero, and of the rest ReLU and dropout
//! leave about half. So dropped channels are not computed, and the gradients are sums over the patches of the
//! few pixels that matter ([`Patches`]) instead of dense ones. The result is that of the single layers.

use stlf_data::Shape;

use super::dropout::Drop;
use super::filters::{Filters, sum};
use super::transpose::transpose;
use super::{Mode, Pass};
use crate::buffer::{Buffer, LINE};
use crate::kernels::{Channel, ENTRY_ROOM, Entry, PICTURE_ROOM, Patches, Planes};

#[derive(Debug)]
pub(crate) struct Block {
    filters: Filters,
    drop: Option<Drop>,
    /// The shape of the planes that are pooled, and where they lie.
    pooled: Planes,
    /// The output channels that each sample of the batch keeps, in order.
    kept: Vec<Vec<u32>>,
    /// One sample's windows, convolved planes, and their largest pixels.
    windows: Buffer,
    planes: Buffer,
    largest: Buffer,
    /// Which pixel of four was the largest, `[sample][slot among the kept][pixel]`.
    which: Vec<u8>,
    /// The inputs of the batch, channels last, and room for their gradients in the same form.
    inputs: Buffer,
    inputs_len: usize,
    input_gradients: Buffer,
    /// Where the patch of each pooled pixel starts, if the first of its four was the largest.
    corners: Vec<u32>,
    /// The pixels of one channel through which a gradient passes.
    entries: Vec<Entry>,
    /// One channel's weights or their gradients, as a patch and in the order of the parameters.
    patch: Buffer,
    turned: Buffer,
}

impl Block {
    /// Returns a block for batches of this size, which pools so many rows together.
    pub(crate) fn new(filters: Filters, drop: Option<Drop>, rows: usize, batch: usize) -> Block {
        let Shape { channels: input_channels, height, width } = filters.input;
        let (height, out_width) = (height + 1 - filters.kernel.rows, filters.windows.out_width());
        let corner = |y: usize, x: usize| (rows * y * width + 2 * x) * input_channels;
        let corners: Vec<u32> = (0..height / rows)
            .flat_map(|y| (0..out_width / 2).map(move |x| corner(y, x) as u32))
            .collect();
        let inputs_len = (filters.input.len() + PICTURE_ROOM).next_multiple_of(LINE);
        let pooled = filters.channels * corners.len();
        Block {
            drop,
            pooled: Planes { height, width: out_width, rows },
            kept: vec![Vec::with_capacity(filters.channels); batch],
            windows: Buffer::new(filters.windows.len()),
            planes: Buffer::new(filters.channels * filters.plane),
            largest: Buffer::new(pooled),
            which: vec![0; batch * pooled],
            inputs: Buffer::new(batch * inputs_len),
            inputs_len,
            input_gradients: Buffer::new(batch * inputs_len),
            entries: vec![Entry { at: 0, gradient: 0.0 }; batch * corners.len() + ENTRY_ROOM],
            corners,
            patch: Buffer::new(filters.taps.len()),
            turned: Buffer::new(filters.taps.len()),
            filters,
        }
    }

    /// Returns the number of values in one sample's output.
    fn output_len(&self) -> usize {
        self.filters.channels * self.corners.len()
    }

    /// Returns the factor by which a kept channel grows.
    fn scale(&self, training: bool) -> f32 {
        self.drop.filter(|_| training).map_or(1.0, |drop| drop.scale())
    }

    pub(crate) fn forward(
        &mut self,
        pass: &Pass<'_>,
        x: &[f32],
        y: &mut [f32],
        mode: &mut Mode<'_>,
    ) {
        let scale = self.scale(matches!(mode, Mode::Train(_)));
        let (output_len, pixels) = (self.output_len(), self.corners.len());
        let filters = &mut self.filters;
        let input_pixels = filters.input.height * filters.input.width;
        let samples = x.chunks_exact(filters.input.len()).zip(y.chunks_exact_mut(output_len));
        for (n, (x, y)) in samples.enumerate() {
            let kept = &mut self.kept[n];
            kept.clear();
            let channels = 0..filters.channels as u32;
            match (&self.drop, &mut *mode) {
                (Some(drop), Mode::Train(rng)) => kept.extend(channels.filter(|_| drop.keeps(rng))),
                _ => kept.extend(channels),
            }
            pass.kernels.expand(filters.windows, x, &mut self.windows);
            let planes = &mut self.planes[..kept.len() * filters.plane];
            filters.apply(pass, &self.windows, kept, planes);
            let largest = &mut self.largest[..kept.len() * pixels];
            let which = &mut self.which[n * output_len..][..kept.len() * pixels];
            pass.kernels.pool(self.pooled, planes, largest, which);
            if kept.len() < filters.channels {
                y.fill(0.0);
            }
            for (&o, largest) in kept.iter().zip(largest.chunks_exact(pixels)) {
                let y = &mut y[o as usize * pixels..][..pixels];
                for (y, &x) in y.iter_mut().zip(largest) {
                    *y = if x > 0.0 { x * scale } else { 0.0 };
                }
            }
            let last = &mut self.inputs[n * self.inputs_len..];
            transpose(filters.input.channels, input_pixels, x, last);
        }
    }

    /// Adds to the gradients of the parameters; writes the input's where it is asked for. `y` is what came out.
    pub(crate) fn backward(
        &mut self,
        pass: &Pass<'_>,
        y: &[f32],
        dy: &[f32],
        dx: Option<&mut [f32]>,
        gradients: &mut [f32],
        training: bool,
    ) {
        let Filters { kernel, channels, input, .. } = self.filters;
        let weight = self.filters.weight.clone();
        let scale = self.scale(training);
        let taps = self.filters.taps.len();
        if dx.is_some() {
            self.input_gradients.fill(0.0);
        }
        for o in 0..channels {
            let count = self.list(pass, o, y, dy, scale);
            let entries = &self.entries[..count];
            let bias = sum(entries, |e| e.gradient);
            gradients[self.filters.bias.start + o] += bias;
            let patches = Patches {
                entries,
                rows: kernel.rows,
                width: kernel.columns * input.channels,
                pitch: input.width * input.channels,
            };
            self.patch.fill(0.0);
            pass.kernels.gather(patches, &self.inputs, &mut self.patch);
            let range = weight.start + o * taps..weight.start + (o + 1) * taps;
            let taps_of_channel = kernel.rows * kernel.columns;
            transpose(taps_of_channel, input.channels, &self.patch, &mut self.turned);
            let sums = gradients[range.clone()].iter_mut().zip(self.turned.iter());
            sums.for_each(|(sum, gradient)| *sum += gradient);
            if dx.is_some() {
                let weights = &pass.params[range];
                transpose(input.channels, taps_of_channel, weights, &mut self.patch);
                pass.kernels.scatter(patches, &self.patch, &mut self.input_gradients);
            }
        }
        if let Some(dx) = dx {
            let pixels = input.height * input.width;
            let samples = dx.chunks_exact_mut(input.len());
            for (dx, gradients) in samples.zip(self.input_gradients.chunks_exact(self.inputs_len)) {
                transpose(pixels, input.channels, gradients, dx);
            }
        }
    }

    /// Lists the pixels of channel `o` through which a gradient passes, in all samples; returns their number.
    fn list(&mut self, pass: &Pass<'_>, o: usize, y: &[f32], dy: &[f32], scale: f32) -> usize {
        let (output_len, pixels) = (self.output_len(), self.corners.len());
        let Shape { channels, width, .. } = self.filters.input;
        let steps = [0, 1, width, width + 1].map(|step| (step * channels) as u32);
        let mut count = 0;
        for n in 0..pass.batch {
            let Ok(slot) = self.kept[n].binary_search(&(o as u32)) else { continue };
            let start = n * output_len + o * pixels;
            let channel = Channel {
                y: &y[start..start + pixels],
                dy: &dy[start..start + pixels],
                which: &self.which[n * output_len + slot * pixels..][..pixels],
                corners: &self.corners,
                steps: steps.map(|step| step + (n * self.inputs_len) as u32),
                scale,
            };
            count += pass.kernels.passing(channel, &mut self.entries[count..]);
        }
        count
    }
}
