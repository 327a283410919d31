//! Renders the pen's path as pixels.

use super::pen::Segment;

/// Draws a path into a square picture of one channel, light on black.
///
/// A pixel is as bright as the line covers it: fully where its centre is inside, fading over `soft`
/// pixels at the line's edge. `cover` is scratch space of the picture's size.
pub(super) fn draw(
    path: &[Segment],
    side: usize,
    soft: f32,
    cover: &mut [f32],
    picture: &mut [u8],
) {
    cover.fill(0.0);
    let fade = 1.0 / soft;
    for segment in path {
        let [ax, ay] = segment.from;
        let [bx, by] = segment.to;
        let (dx, dy) = (bx - ax, by - ay);
        let length = dx * dx + dy * dy;
        let inverse = if length > 0.0 { 1.0 / length } else { 0.0 };
        let reach = segment.radius + 0.5 * soft;
        let edge = reach * fade;
        let within = |low: f32, high: f32| {
            let first = (low - reach - 0.5).max(0.0) as usize;
            // A negative number becomes 0, and the range is empty.
            let end = ((high + reach + 0.5) as usize).min(side);
            first..end.max(first)
        };
        let columns = within(ax.min(bx), ax.max(bx));
        let left = columns.start as f32 + 0.5 - ax;
        for y in within(ay.min(by), ay.max(by)) {
            let py = y as f32 + 0.5 - ay;
            let row = &mut cover[y * side..][columns.clone()];
            for (k, cover) in row.iter_mut().enumerate() {
                let px = left + k as u16 as f32;
                let along = ((px * dx + py * dy) * inverse).clamp(0.0, 1.0);
                let (ex, ey) = (px - along * dx, py - along * dy);
                let covered = edge - (ex * ex + ey * ey).sqrt() * fade;
                *cover = if covered > *cover { covered } else { *cover };
            }
        }
    }
    for (pixel, &cover) in picture.iter_mut().zip(cover.iter()) {
        *pixel = (255.0 * cover.min(1.0) + 0.5) as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(segment: Segment) -> Vec<u8> {
        let (mut cover, mut picture) = (vec![0.0; 100], vec![0; 100]);
        draw(&[segment], 10, 1.0, &mut cover, &mut picture);
        picture
    }

    #[test]
    fn a_line_covers_its_area() {
        let line = Segment { from: [2.0, 5.0], to: [8.0, 5.0], radius: 1.0 };
        let ink: u32 = picture(line).iter().map(|&p| u32::from(p)).sum();
        let area = 6.0 * 2.0 + std::f32::consts::PI;
        assert!((ink as f32 / 255.0 - area).abs() < 0.5, "{ink}");
        assert_eq!(picture(line)[4 * 10 + 5], 255);
        assert_eq!(picture(line)[2 * 10 + 5], 0);
    }

    #[test]
    fn what_leaves_the_picture_is_cut_off() {
        let outside = Segment { from: [-9.0, -9.0], to: [-5.0, 30.0], radius: 2.0 };
        assert!(picture(outside).iter().all(|&p| p == 0));
        let point = Segment { from: [0.0, 0.0], to: [0.0, 0.0], radius: 1.0 };
        assert!(picture(point)[0] > 0);
    }
}
