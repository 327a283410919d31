//! Coloured grounds such as a small piece of a photograph shows.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

use super::super::SIDE;
use super::pen::{around, below, even};

/// The red, then the green, then the blue of a picture.
pub(super) type Ground = [[u8; SIDE * SIDE]; 3];

/// Paints a ground: two shades, mixed by patches, stripes or an edge, with fine grain.
pub(super) fn paint(rng: &mut ChaCha8Rng, ground: &mut Ground) {
    let mut mix = [0.0f32; SIDE * SIDE];
    let coarse = 2 + below(rng, 4) as usize;
    patches(rng, coarse, 1.0, &mut mix);
    patches(rng, 2 * coarse + 3, 0.45, &mut mix);
    match below(rng, 4) {
        0 => stripes(rng, &mut mix),
        1 | 2 => edge(rng, &mut mix),
        _ => {}
    }
    let shades = shades(rng);
    let strength = 6.0 + 14.0 * even(rng);
    let mut grain = [0u8; SIDE * SIDE];
    rng.fill_bytes(&mut grain);
    for (channel, [dark, light]) in ground.iter_mut().zip(shades) {
        for ((value, mix), &grain) in channel.iter_mut().zip(&mix).zip(&grain) {
            let mix = (0.5 + 0.5 * mix).clamp(0.0, 1.0);
            let grain = strength * (f32::from(grain) / 127.5 - 1.0);
            // Values beyond 0 and 255 become those.
            *value = (dark + (light - dark) * mix + grain) as u8;
        }
    }
}

/// The two ends of each channel. Their brightness varies; their hue strays from grey by a bounded
/// amount, as most things in photographs do.
fn shades(rng: &mut ChaCha8Rng) -> [[f32; 2]; 3] {
    // The nearer to the middle, the less inversion shows.
    let from_middle = 45.0 + 65.0 * even(rng);
    let middle = if below(rng, 2) == 0 { 127.5 - from_middle } else { 127.5 + from_middle };
    let contrast = 10.0 + 35.0 * even(rng);
    let tint: [f32; 3] = std::array::from_fn(|_| 40.0 * around(rng));
    let shift: [f32; 3] = std::array::from_fn(|_| 25.0 * around(rng));
    std::array::from_fn(|c| [middle - contrast + tint[c], middle + contrast + tint[c] + shift[c]])
}

/// Adds a smooth field: random heights on a grid of `cells` a side, blended between.
fn patches(rng: &mut ChaCha8Rng, cells: usize, strength: f32, mix: &mut [f32; SIDE * SIDE]) {
    const MOST: usize = 14;
    let mut heights = [[0.0f32; MOST]; MOST];
    for row in &mut heights[..=cells] {
        for height in &mut row[..=cells] {
            *height = strength * around(rng);
        }
    }
    let step = cells as f32 / SIDE as f32;
    let between = |at: usize| {
        let place = (at as f32 + 0.5) * step;
        let cell = (place as usize).min(cells - 1);
        let t = place - cell as f32;
        (cell, t * t * (3.0 - 2.0 * t))
    };
    let columns: [(usize, f32); SIDE] = std::array::from_fn(between);
    for y in 0..SIDE {
        let (row, down) = between(y);
        let (above, below) = (&heights[row], &heights[row + 1]);
        for (&(column, across), value) in columns.iter().zip(&mut mix[y * SIDE..]) {
            let blend = |h: &[f32; MOST]| h[column] + across * (h[column + 1] - h[column]);
            *value += blend(above) + down * (blend(below) - blend(above));
        }
    }
}

/// Adds waves along a random direction.
fn stripes(rng: &mut ChaCha8Rng, mix: &mut [f32; SIDE * SIDE]) {
    let (dx, dy) = (around(rng), around(rng));
    let period = 4.0 + 8.0 * even(rng);
    let start = even(rng);
    for (at, value) in mix.iter_mut().enumerate() {
        let along = (dx * (at % SIDE) as f32 + dy * (at / SIDE) as f32) / period + start;
        let phase = along - along.floor();
        *value += 3.0 * (phase - 0.5).abs() - 0.75;
    }
}

/// Makes one side of a random line lighter and the other darker.
fn edge(rng: &mut ChaCha8Rng, mix: &mut [f32; SIDE * SIDE]) {
    let (dx, dy) = (around(rng), around(rng));
    let middle = SIDE as f32 / 2.0;
    let [cx, cy] = [middle * (1.0 + 0.8 * around(rng)), middle * (1.0 + 0.8 * around(rng))];
    for (at, value) in mix.iter_mut().enumerate() {
        let side = dx * ((at % SIDE) as f32 - cx) + dy * ((at / SIDE) as f32 - cy);
        *value += side.clamp(-0.8, 0.8);
    }
}
