//! The rectified linear unit, max(x, 0) of every number.

pub(crate) fn forward(x: &[f32], y: &mut [f32]) {
    x.iter().zip(y).for_each(|(&x, y)| *y = if x > 0.0 { x } else { 0.0 });
}

/// Passes gradients back where the output `y` is above 0; elsewhere they are 0.
pub(crate) fn backward(y: &[f32], dy: &[f32], dx: &mut [f32]) {
    let gradients = dy.iter().zip(dx);
    y.iter().zip(gradients).for_each(|(&y, (&dy, dx))| *dx = if y > 0.0 { dy } else { 0.0 });
}
