//! The largest of every 2×2 pixels, or of every two readings of a series.

use stlf_data::Shape;

use super::Pass;
use crate::kernels::Planes;

#[derive(Debug)]
pub(crate) struct MaxPool {
    planes: Planes,
    /// Which of the four or two each output of the batch was.
    which: Vec<u8>,
}

impl MaxPool {
    /// Blocks have so many rows, and two columns.
    pub(crate) fn new(input: Shape, rows: usize, batch: usize) -> MaxPool {
        let Shape { channels, height, width } = input;
        let planes = Planes { height, width, rows };
        MaxPool { planes, which: vec![0; batch * channels * (height / rows) * (width / 2)] }
    }

    pub(crate) fn forward(&mut self, pass: &Pass<'_>, x: &[f32], y: &mut [f32]) {
        pass.kernels.pool(self.planes, x, y, &mut self.which);
    }

    pub(crate) fn backward(&self, pass: &Pass<'_>, dy: &[f32], dx: &mut [f32]) {
        pass.kernels.unpool(self.planes, dy, &self.which, dx);
    }
}
