//! The largest of every 2×2 pixels, or of every two readings of a series, and the way back. Plain loops that the compiler vectorises.

/// Planes of pictures, `height` × `width` each, one after the other. An odd last row or column is left out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Planes {
    pub height: usize,
    pub width: usize,
    /// The rows of a block, 1 or 2. All blocks have two columns.
    pub rows: usize,
}

/// The largest of each block of each plane of `x`, and which of the four or two it was (the first, if equal).
#[inline(always)]
pub(super) fn pool(planes: Planes, x: &[f32], y: &mut [f32], which: &mut [u8]) {
    match planes.rows {
        1 => pool_pairs(planes.width, x, y, which),
        _ => pool_fours(planes, x, y, which),
    }
}

/// The gradient of [`pool`]: each gradient goes to the pixel that was the largest; the others get zero.
#[inline(always)]
pub(super) fn unpool(planes: Planes, dy: &[f32], which: &[u8], dx: &mut [f32]) {
    match planes.rows {
        1 => unpool_pairs(planes.width, dy, which, dx),
        _ => unpool_fours(planes, dy, which, dx),
    }
}

/// Rows of `width`, one after the other, each in blocks of two.
#[inline(always)]
fn pool_pairs(width: usize, x: &[f32], y: &mut [f32], which: &mut [u8]) {
    let pooled = y.chunks_exact_mut(width / 2).zip(which.chunks_exact_mut(width / 2));
    for (x, (y, which)) in x.chunks_exact(width).zip(pooled) {
        for (&[a, b], (y, which)) in x.as_chunks().0.iter().zip(y.iter_mut().zip(which)) {
            *y = if b > a { b } else { a };
            *which = u8::from(b > a);
        }
    }
}

#[inline(always)]
fn unpool_pairs(width: usize, dy: &[f32], which: &[u8], dx: &mut [f32]) {
    let pooled = dy.chunks_exact(width / 2).zip(which.chunks_exact(width / 2));
    for (dx, (dy, which)) in dx.chunks_exact_mut(width).zip(pooled) {
        let (pairs, edge) = dx.as_chunks_mut();
        for (pair, (&dy, &which)) in pairs.iter_mut().zip(dy.iter().zip(which)) {
            *pair = if which == 0 { [dy, 0.0] } else { [0.0, dy] };
        }
        edge.fill(0.0);
    }
}

#[inline(always)]
fn pool_fours(planes: Planes, x: &[f32], y: &mut [f32], which: &mut [u8]) {
    let (height, width) = (planes.height / 2, planes.width / 2);
    let plane = planes.height * planes.width;
    let pooled = y.chunks_exact_mut(height * width).zip(which.chunks_exact_mut(height * width));
    for (x, (y, which)) in x.chunks_exact(plane).zip(pooled) {
        let rows = y.chunks_exact_mut(width).zip(which.chunks_exact_mut(width));
        for (x, (y, which)) in x.chunks_exact(2 * planes.width).zip(rows) {
            let (upper, lower) = x.split_at(planes.width);
            let pairs = upper.as_chunks().0.iter().zip(lower.as_chunks().0);
            for ((&[a, b], &[c, d]), (y, which)) in pairs.zip(y.iter_mut().zip(which)) {
                let (left, right) = (if b > a { b } else { a }, if d > c { d } else { c });
                let (upper_which, lower_which) = (u8::from(b > a), 2 + u8::from(d > c));
                *y = if right > left { right } else { left };
                *which = if right > left { lower_which } else { upper_which };
            }
        }
    }
}

#[inline(always)]
fn unpool_fours(planes: Planes, dy: &[f32], which: &[u8], dx: &mut [f32]) {
    let (height, width) = (planes.height / 2, planes.width / 2);
    let plane = planes.height * planes.width;
    let pooled = dy.chunks_exact(height * width).zip(which.chunks_exact(height * width));
    for (dx, (dy, which)) in dx.chunks_exact_mut(plane).zip(pooled) {
        let rows = dy.chunks_exact(width).zip(which.chunks_exact(width));
        for (dx, (dy, which)) in dx.chunks_exact_mut(2 * planes.width).zip(rows) {
            let (upper, lower) = dx.split_at_mut(planes.width);
            let ((upper, upper_edge), (lower, lower_edge)) =
                (upper.as_chunks_mut(), lower.as_chunks_mut());
            let pairs = upper.iter_mut().zip(lower);
            for ((upper, lower), (&dy, &which)) in pairs.zip(dy.iter().zip(which)) {
                let at = |k: u8| if which == k { dy } else { 0.0 };
                *upper = [at(0), at(1)];
                *lower = [at(2), at(3)];
            }
            upper_edge.fill(0.0);
            lower_edge.fill(0.0);
        }
        dx[2 * height * planes.width..].fill(0.0);
    }
}
