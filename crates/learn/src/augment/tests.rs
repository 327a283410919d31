//! Views against their definitions, pixel by pixel.

use rand::SeedableRng;

use super::*;
use crate::Kernels;

const SHAPES: [Shape; 4] = [
    Shape::grey(28),
    Shape { channels: 3, height: 5, width: 9 },
    Shape { channels: 2, height: 8, width: 2 },
    Shape { channels: 1, height: 2, width: 3 },
];

fn random(shape: Shape, seed: u64) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..shape.len()).map(|_| rng.random_range(-1.0..=1.0f32)).collect()
}

/// The pixel at a place, or at the edge that is nearest to it.
fn at(shape: Shape, picture: &[f32], channel: usize, y: i32, x: i32) -> f32 {
    let y = y.clamp(0, shape.height as i32 - 1) as usize;
    let x = x.clamp(0, shape.width as i32 - 1) as usize;
    picture[(channel * shape.height + y) * shape.width + x]
}

/// What `pixel` gives for every channel, row and column.
fn each(shape: Shape, pixel: impl Fn(usize, i32, i32) -> f32) -> Vec<f32> {
    let numbers = 0..shape.len();
    let place = |i: usize| {
        let (row, x) = (i / shape.width, i % shape.width);
        pixel(row / shape.height, (row % shape.height) as i32, x as i32)
    };
    numbers.map(place).collect()
}

fn assert_close(a: &[f32], b: &[f32]) {
    assert_eq!(a.len(), b.len());
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() < 1e-4, "number {i}: {a} and {b}");
    }
}

#[test]
fn a_convolution_is_its_definition_on_every_instruction_set() {
    for (shape, kernels) in
        SHAPES.iter().flat_map(|s| Kernels::available().into_iter().map(|k| (*s, k)))
    {
        let mut scratch = Scratch::with(shape, kernels);
        for (size, &kernel) in KERNELS.iter().enumerate() {
            let picture = random(shape, 1);
            let mut rng = ChaCha8Rng::seed_from_u64(2);
            scratch.draw(size, &mut rng);
            let (factors, middle) = (scratch.factors.to_vec(), (kernel / 2) as i32);
            let moved = (1, -1);
            let expected = each(shape, |to, y, x| {
                let mut sum = 0.0;
                for from in 0..shape.channels {
                    for i in 0..kernel * kernel {
                        let (row, column) = ((i / kernel) as i32, (i % kernel) as i32);
                        let factor = factors[(to * shape.channels + from) * kernel * kernel + i];
                        let (y, x) = (y + row - middle, x + column - middle);
                        // What was moved out is still seen by the pixels beside it.
                        sum += factor * at(shape, &picture, from, y - moved.0, x - moved.1);
                    }
                }
                sum
            });
            let mut view = picture.clone();
            scratch.convolve(&mut view, moved, size);
            assert_close(&view, &expected);
        }
    }
}

#[test]
fn a_convolution_with_one_factor_is_the_picture() {
    for shape in SHAPES {
        let mut scratch = Scratch::new(shape);
        for (size, kernel) in KERNELS.into_iter().enumerate() {
            let taps = kernel * kernel;
            scratch.factors.fill(0.0);
            for channel in 0..shape.channels {
                scratch.factors[channel * (shape.channels + 1) * taps + taps / 2] = 1.0;
            }
            let mut view = random(shape, 3);
            scratch.convolve(&mut view, (0, 0), size);
            assert_eq!(view, random(shape, 3));
        }
    }
}

#[test]
fn factors_have_the_papers_variance_and_the_picture_its_share() {
    for shape in [Shape::grey(4), Shape { channels: 3, height: 4, width: 4 }] {
        let mut scratch = Scratch::new(shape);
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        for (size, kernel) in KERNELS.into_iter().enumerate() {
            let taps = kernel * kernel;
            let draws = 4_000;
            let (mut shares, mut squares) = (0.0f64, 0.0f64);
            for _ in 0..draws {
                scratch.draw(size, &mut rng);
                shares += f64::from(scratch.factors[taps / 2]);
                // The first factor that is none of the picture's own.
                let other = if taps == 1 { 0 } else { taps / 2 + 1 };
                squares += f64::from(scratch.factors[other]).powi(2);
            }
            // E α = ½; E (1 − α)² = ⅓. A kernel of 1 has the share in its only factor: E α² = ⅓ more.
            let variance = 1.0 / (3 * taps * shape.channels) as f64;
            let expected = if taps == 1 { variance + 1.0 / 3.0 } else { variance };
            assert!((shares / f64::from(draws) - 0.5).abs() < 0.04, "{shares}");
            let found = squares / f64::from(draws);
            assert!((found / expected - 1.0).abs() < 0.15, "{kernel}: {found} {expected}");
        }
    }
}

#[test]
fn a_shift_moves_pixels_and_repeats_edges() {
    let shape = Shape { channels: 1, height: 2, width: 3 };
    let picture = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let scratch = Scratch::new(shape);
    let moved = |down, right| {
        let mut view = picture;
        scratch.shift(&mut view, (down, right));
        view
    };
    assert_eq!(moved(0, 1), [1.0, 1.0, 2.0, 4.0, 4.0, 5.0]);
    assert_eq!(moved(0, -1), [2.0, 3.0, 3.0, 5.0, 6.0, 6.0]);
    assert_eq!(moved(1, 0), [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
    assert_eq!(moved(-1, -2), [6.0, 6.0, 6.0, 6.0, 6.0, 6.0]);
    // Further than the picture is wide.
    assert_eq!(moved(-9, 9), [4.0; 6]);
    assert_eq!(moved(9, -9), [3.0; 6]);
}

#[test]
fn every_shift_is_its_definition() {
    for shape in SHAPES {
        let (scratch, picture) = (Scratch::new(shape), random(shape, 10));
        for (down, right) in (-9..=9).flat_map(|down| (-10..=10).map(move |right| (down, right))) {
            let mut view = picture.clone();
            scratch.shift(&mut view, (down, right));
            let moved = |channel, y, x| at(shape, &picture, channel, y - down, x - right);
            assert_eq!(view, each(shape, moved), "{shape} by {down} and {right}");
        }
    }
}

const STRAIGHT: Map = Map { x: [1.0, 0.0], y: [0.0, 1.0], moved: (0, 0) };

#[test]
fn a_map_that_does_nothing_is_the_picture_and_one_that_moves_is_a_shift() {
    for shape in SHAPES {
        let mut scratch = Scratch::new(shape);
        for moved in [(0, 0), (1, -1), (-1, 1), (0, 2)] {
            let (mut mapped, mut shifted) = (random(shape, 5), random(shape, 5));
            scratch.distort(&mut mapped, Map { moved, ..STRAIGHT });
            scratch.shift(&mut shifted, moved);
            assert_eq!(mapped, shifted);
        }
    }
}

#[test]
fn maps_turn_grow_and_shear() {
    let shape = Shape::grey(5);
    let picture: Vec<f32> = (0..25).map(|i| i as f32).collect();
    let mut scratch = Scratch::new(shape);
    let mut mapped = |map: Map| {
        let mut view = picture.clone();
        scratch.distort(&mut view, map);
        view
    };
    // A quarter turn; twice the size; each row half a pixel against the one above.
    let turned = mapped(Map { x: [0.0, -1.0], y: [1.0, 0.0], ..STRAIGHT });
    assert_eq!(turned, each(shape, |_, y, x| at(shape, &picture, 0, x, 4 - y)));
    let grown = mapped(Map { x: [0.5, 0.0], y: [0.0, 0.5], ..STRAIGHT });
    assert_eq!(grown[..5], [6.0, 6.5, 7.0, 7.5, 8.0]);
    let sheared = mapped(Map { x: [1.0, 0.5], ..STRAIGHT });
    assert_eq!(sheared[5..10], [5.0, 5.5, 6.5, 7.5, 8.5]);
    assert_eq!(sheared[10..15], picture[10..15]);
}

#[test]
fn drawn_maps_stay_within_the_views_limits() {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    let (mut widest, mut largest, mut smallest) = (0.0f32, 0.0f32, 2.0f32);
    for _ in 0..2_000 {
        let map = View { shear: 0.0, ..View::STRONG }.map((0, 0), &mut rng);
        let (cos, sin) = (map.x[0], map.y[0]);
        assert_eq!((map.x[1], map.y[1]), (-sin, cos));
        widest = widest.max(sin.atan2(cos).to_degrees().abs());
        let size = 1.0 / sin.hypot(cos);
        (largest, smallest) = (largest.max(size), smallest.min(size));
    }
    assert!((9.9..=10.001).contains(&widest), "{widest}");
    assert!((1.099..=1.1001).contains(&largest), "{largest}");
    assert!((0.8999..=0.901).contains(&smallest), "{smallest}");
}

#[test]
fn a_seed_gives_one_view_and_every_seed_another() {
    let shape = Shape { channels: 3, height: 12, width: 10 };
    let view = |seed: u64| {
        let (mut picture, mut scratch) = (random(shape, 7), Scratch::new(shape));
        View::STRONG.apply(&mut picture, &mut scratch, &mut ChaCha8Rng::seed_from_u64(seed));
        picture
    };
    assert_eq!(view(1), view(1));
    assert_ne!(view(1), view(2));
}

#[test]
fn things_happen_as_often_as_asked_for() {
    let shape = Shape::grey(6);
    let mut scratch = Scratch::new(shape);
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let mut changed = |view: View| {
        let mut change = || {
            let mut picture = random(shape, 9);
            view.apply(&mut picture, &mut scratch, &mut rng);
            picture != random(shape, 9)
        };
        (0..2_000).filter(|_| change()).count()
    };
    assert_eq!(changed(View::PLAIN), 0);
    // One of nine shifts leaves a picture where it is.
    assert!(changed(View::SHIFT).abs_diff(1_778) < 60);
    assert!(changed(View::CONVOLUTIONS).abs_diff(1_000) < 80);
    let both = Augment::Both.view().map_or(0, changed);
    assert!(both.abs_diff(1_889) < 60, "{both}");
}

#[test]
fn what_is_no_picture_has_no_views() {
    let table = Shape { channels: 1, height: 1, width: 5 };
    assert!(Augment::None.check(table).is_ok());
    assert!(Augment::Both.check(Shape::grey(28)).is_ok());
    let refused = Augment::Both.check(table).map_err(|e| e.to_string());
    assert!(refused.is_err_and(|e| e.contains("\"both\" is for pictures, and inputs of 1×1×5")));
}
