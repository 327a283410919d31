//! Puts figures side by side into one.

use crate::colour::Colour;
use crate::figure::{Figure, Text, Weight};
use crate::font;
use crate::head::EDGE;

/// The distance between two panels, in units.
const GAP: f64 = 12.0;
/// The size of the common title.
const TITLE: f64 = 18.0;

/// Puts figures into a grid of this many columns, row by row, below a common title that may be empty.
///
/// A column is as wide as its widest figure, a row as high as its highest.
pub fn arrange(title: &str, columns: usize, panels: Vec<Figure>) -> Figure {
    let columns = columns.clamp(1, panels.len().max(1));
    let rows = panels.len().div_ceil(columns);
    let mut widths = vec![0.0_f64; columns];
    let mut heights = vec![0.0_f64; rows];
    for (k, panel) in panels.iter().enumerate() {
        let (width, height) = (&mut widths[k % columns], &mut heights[k / columns]);
        *width = width.max(extent(panel.width));
        *height = height.max(extent(panel.height));
    }
    let across = widths.iter().sum::<f64>() + GAP * (columns - 1) as f64;
    let mut figure = Figure::new(title, across.max(160.0), 0.0);
    let room = figure.width - 2.0 * EDGE;
    let mut down = 0.0;
    for line in font::wrap(title, TITLE, Weight::Bold, room, 3) {
        down += if down == 0.0 { EDGE + TITLE } else { TITLE * 1.3 };
        figure.text(Text::new((EDGE, down), TITLE, Colour::INK, line).weighing(Weight::Bold));
    }
    if down > 0.0 {
        down += 6.0;
    }
    let descriptions: Vec<String> = panels.iter().map(described).collect();
    figure.description = descriptions.join(" ");
    let mut panels = panels.into_iter();
    for height in &heights {
        let mut right = 0.0;
        for (width, panel) in widths.iter().zip(panels.by_ref()) {
            figure.marks.extend(panel.marks.into_iter().map(|mark| mark.moved(right, down)));
            right += width + GAP;
        }
        down += height + GAP;
    }
    figure.height = (down - GAP).max(60.0);
    figure
}

/// A panel's title before its description, as a sentence.
fn described(panel: &Figure) -> String {
    match panel.title.as_str() {
        "" => panel.description.clone(),
        title => format!("{title}. {}", panel.description),
    }
}

fn extent(length: f64) -> f64 {
    if length.is_finite() { length.max(0.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Mark;

    fn panel(width: f64, height: f64) -> Figure {
        let mut figure = Figure::new("", width, height);
        figure.fill_rect((0.0, 0.0), (1.0, 1.0), Colour::INK);
        figure
    }

    #[test]
    fn panels_stand_in_rows_and_columns() {
        let panels = vec![panel(200.0, 50.0), panel(100.0, 80.0), panel(120.0, 40.0)];
        let figure = arrange("", 2, panels);
        assert_eq!((figure.width, figure.height), (312.0, 132.0));
        let places: Vec<(f64, f64)> = figure
            .marks
            .iter()
            .filter_map(|mark| if let Mark::Rect { at, .. } = mark { Some(*at) } else { None })
            .collect();
        assert_eq!(places, [(0.0, 0.0), (212.0, 0.0), (0.0, 92.0)]);
    }

    #[test]
    fn any_number_of_panels_and_columns_is_arranged() {
        for count in 0..5 {
            for columns in 0..7 {
                let figure = arrange("Title", columns, vec![panel(50.0, f64::NAN); count]);
                assert!(figure.width > 0.0 && figure.height > 0.0);
                assert!(figure.height.is_finite());
            }
        }
    }
}
