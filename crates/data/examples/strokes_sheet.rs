//! Draws `docs/images/strokes.png`: a row of digits in each of the three styles of strokes.
//!
//! `cargo run -p stlf-data --features images --example strokes_sheet docs/images/strokes.png`

use std::error::Error;
use std::fs::File;

use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{Rgb, RgbImage, imageops};
use stlf_data::dataset::Values;
use stlf_data::domains::{Colour, Half, SIDE, Style, strokes};

/// How often each digit stands in a row.
const TIMES: usize = 2;
const ENLARGED: u32 = 2;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("name the file to write")?;
    let side = SIDE as u32;
    let mut sheet = RgbImage::new(10 * TIMES as u32 * side, 3 * side);
    for (row, style) in [Style::Clean, Style::Coarse, Style::Textured].into_iter().enumerate() {
        let set = strokes(style, Half::Train, 400, 1, Colour::Rgb)?;
        let Values::Pixels(pixels) = set.values() else { return Err("digits are pixels".into()) };
        for digit in 0..10u16 {
            let samples = (0..set.len()).filter(|&i| set.label(i) == Some(digit));
            for (k, sample) in samples.take(TIMES).enumerate() {
                let image = &pixels[sample * 3 * SIDE * SIDE..];
                let left = (digit as u32 + 10 * k as u32) * side;
                for at in 0..SIDE * SIDE {
                    let pixel = Rgb([0, 1, 2].map(|channel| image[channel * SIDE * SIDE + at]));
                    let (x, y) = (left + at as u32 % side, (row * SIDE) as u32 + at as u32 / side);
                    sheet.put_pixel(x, y, pixel);
                }
            }
        }
    }
    let (width, height) = (ENLARGED * sheet.width(), ENLARGED * sheet.height());
    let sheet = imageops::resize(&sheet, width, height, imageops::FilterType::Nearest);
    let file = File::create(path)?;
    let small = PngEncoder::new_with_quality(file, CompressionType::Best, FilterType::Adaptive);
    sheet.write_with_encoder(small)?;
    Ok(())
}
