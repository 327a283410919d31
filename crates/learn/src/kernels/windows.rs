//! A picture as its windows: for every shift s < k, the columns s .. s + width of every row.
//!
//! A k×k convolution of a picture then is a sum over k² contiguous stretches of its windows, and the
//! convolution's gradient adds up in the same form. `expand` and `fold` are each other's adjoint.

use super::lanes::Lanes;

/// `planes` pictures of `height` × `width`, seen through windows of `out_width = width − shifts + 1` columns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Windows {
    pub planes: usize,
    pub height: usize,
    pub width: usize,
    pub shifts: usize,
}

impl Windows {
    /// Returns the number of columns of a window.
    pub(crate) fn out_width(self) -> usize {
        self.width + 1 - self.shifts
    }

    /// Numbers in the windows of one shift of one plane.
    pub(crate) fn window_len(self) -> usize {
        self.height * self.out_width()
    }

    /// Returns the number of values in all windows: `[plane][shift][row][column]`.
    pub(crate) fn len(self) -> usize {
        self.planes * self.shifts * self.window_len()
    }

    pub(super) fn fits(self, pictures: &[f32], windows: &[f32]) -> bool {
        pictures.len() == self.planes * self.height * self.width && windows.len() == self.len()
    }
}

/// `windows[plane][s][y][x] = pictures[plane][y][x + s]`.
///
/// # Safety
///
/// The processor has the instruction set of `L`, and `shape.fits(pictures, windows)`.
#[inline(always)]
pub(super) unsafe fn expand<L: Lanes>(shape: Windows, pictures: &[f32], windows: &mut [f32]) {
    let (out_width, window) = (shape.out_width(), shape.window_len());
    for plane in 0..shape.planes {
        for y in 0..shape.height {
            // SAFETY: row y of the plane has `width` numbers, and x + s + N or n stays within them;
            // windows have `out_width` numbers a row.
            unsafe {
                let row = pictures.as_ptr().add((plane * shape.height + y) * shape.width);
                let to = windows.as_mut_ptr().add(plane * shape.shifts * window + y * out_width);
                for s in 0..shape.shifts {
                    let (row, to) = (row.add(s), to.add(s * window));
                    let mut x = 0;
                    while x + L::N <= out_width {
                        L::load(row.add(x)).store(to.add(x));
                        x += L::N;
                    }
                    if x < out_width {
                        L::load_part(row.add(x), out_width - x)
                            .store_part(to.add(x), out_width - x);
                    }
                }
            }
        }
    }
}

/// `pictures[plane][y][x] = Σ_s windows[plane][s][y][x − s]`.
///
/// # Safety
///
/// The processor has the instruction set of `L`, and `shape.fits(pictures, windows)`.
#[inline(always)]
pub(super) unsafe fn fold<L: Lanes>(shape: Windows, windows: &[f32], pictures: &mut [f32]) {
    let (out_width, window) = (shape.out_width(), shape.window_len());
    pictures.fill(0.0);
    // Shift by shift through all rows: a row comes back only after its last sum has left the store buffer.
    for s in 0..shape.shifts {
        for plane in 0..shape.planes {
            for y in 0..shape.height {
                // SAFETY: as in `expand`.
                unsafe {
                    let row =
                        pictures.as_mut_ptr().add((plane * shape.height + y) * shape.width + s);
                    let from = (plane * shape.shifts + s) * window + y * out_width;
                    let from = windows.as_ptr().add(from);
                    let one = L::splat(1.0);
                    let mut x = 0;
                    while x + L::N <= out_width {
                        let sum = L::load(row.add(x)).plus_product(one, L::load(from.add(x)));
                        sum.store(row.add(x));
                        x += L::N;
                    }
                    if x < out_width {
                        let n = out_width - x;
                        let sum = L::load_part(row.add(x), n);
                        sum.plus_product(one, L::load_part(from.add(x), n))
                            .store_part(row.add(x), n);
                    }
                }
            }
        }
    }
}
