//! Numbers that start at a cache line, so that registers are not loaded across two.

/// The number of `f32` in a cache line of 64 bytes.
pub(crate) const LINE: usize = 16;

/// Zeros at first; starts at a multiple of 64 bytes.
#[derive(Debug, Clone)]
pub(crate) struct Buffer {
    storage: Vec<f32>,
    start: usize,
    len: usize,
}

impl Buffer {
    pub(crate) fn new(len: usize) -> Buffer {
        let storage = vec![0.0; len + LINE];
        let start = storage.as_ptr().align_offset(LINE * size_of::<f32>()).min(LINE);
        Buffer { storage, start, len }
    }
}

impl std::ops::Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.storage[self.start..self.start + self.len]
    }
}

impl std::ops::DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.storage[self.start..self.start + self.len]
    }
}
