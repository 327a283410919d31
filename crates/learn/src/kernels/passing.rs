//! The pixels through which a pooled and rectified channel passes its gradient back.

use super::patches::Entry;

/// One channel of one sample's output: what came out, its gradient, and where each pixel's patch starts.
#[derive(Clone, Copy)]
pub(crate) struct Channel<'a> {
    pub y: &'a [f32],
    pub dy: &'a [f32],
    /// Which of the four pixels was the largest.
    pub which: &'a [u8],
    /// Where the patch of the first of the four starts.
    pub corners: &'a [u32],
    /// The distance from there to the patch of each of the four.
    pub steps: [u32; 4],
    /// The factor that gradients are multiplied by.
    pub scale: f32,
}

impl Channel<'_> {
    pub(super) fn fits(&self, entries: &[Entry]) -> bool {
        let pixels = self.y.len();
        self.dy.len() == pixels
            && self.which.len() == pixels
            && self.corners.len() == pixels
            && entries.len() >= pixels + ROOM
    }
}

/// Places that must be free behind the last entry: a register's.
pub(crate) const ROOM: usize = 16;

/// Writes an entry for each pixel with y > 0, and returns their number. What lies behind them is scratch.
#[inline(always)]
pub(super) fn passing(channel: Channel<'_>, entries: &mut [Entry]) -> usize {
    let Channel { y, dy, which, corners, steps, scale } = channel;
    let mut count = 0;
    for ((&y, &dy), (&which, &corner)) in y.iter().zip(dy).zip(which.iter().zip(corners)) {
        // Which pixels pass is as good as random: written always, counted if so, without a branch.
        let at = corner + steps[which as usize & 3];
        entries[count] = Entry { at, gradient: dy * scale };
        count += usize::from(y > 0.0);
    }
    count
}
