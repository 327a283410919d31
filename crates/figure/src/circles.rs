//! Tables of amounts as circles: the area is the whole, and a part of it is filled.

use crate::colour::Colour;
use crate::figure::{Anchor, Figure, Fill, Mark, Stroke, Text, Weight};
use crate::font;
use crate::head::{self, EDGE, Entry, LABEL, Sample, TICK};

/// The height of a row, and the width of a column.
const ROW: f64 = 40.0;
const COLUMN: f64 = 52.0;
/// What the names of columns have above the first row.
const HEADS: f64 = 20.0;
/// The radius of the greatest amount.
const LARGEST: f64 = 18.0;
/// The longest name of a row.
const LONGEST_NAME: f64 = 240.0;
/// The distance between the circles and the names next to them, in units.
const BESIDE: f64 = 12.0;

/// A table: rows from top to bottom, columns from left to right.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Above the table; may be empty.
    pub title: String,
    /// Below the title, smaller; may be empty.
    pub subtitle: String,
    /// The names of the rows, from top to bottom.
    pub rows: Vec<String>,
    /// The names of the columns, from left to right.
    pub columns: Vec<String>,
    /// An amount for each row and column; those that are not there are nothing.
    pub cells: Vec<Vec<Cell>>,
    /// What the area of a circle is, in the legend.
    pub whole_label: String,
    /// What the filled part of it is, in the legend.
    pub part_label: String,
    /// The least width of the figure.
    pub width: f64,
}

impl Default for Table {
    fn default() -> Table {
        Table {
            title: String::new(),
            subtitle: String::new(),
            rows: Vec::new(),
            columns: Vec::new(),
            cells: Vec::new(),
            whole_label: String::new(),
            part_label: String::new(),
            width: 640.0,
        }
    }
}

/// An amount and a part of it. What is not above 0 is not drawn.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cell {
    /// The whole amount, drawn as the area of a circle.
    pub whole: f64,
    /// The part of it that is filled.
    pub part: f64,
    /// What a pointer over it shows; may be empty.
    pub note: String,
}

const COLOUR: Colour = Colour::PALETTE[1];

fn of_whole() -> (Fill, Stroke) {
    (Fill { colour: COLOUR, opacity: 0.13 }, Stroke::solid(COLOUR, 1.4))
}

impl Table {
    /// Draws the table.
    pub fn draw(&self) -> Figure {
        let shorten = |name: &String| font::shorten(name, LABEL, Weight::Regular, LONGEST_NAME);
        let names: Vec<String> = self.rows.iter().map(shorten).collect();
        let widest =
            names.iter().map(|name| font::room(name, LABEL, Weight::Regular)).fold(0.0, f64::max);
        let left = (EDGE + widest + BESIDE).round();
        let right = left + COLUMN * self.columns.len() as f64;
        let mut figure = Figure::new(&self.title, (right + EDGE).max(self.width.max(160.0)), 0.0);
        figure.description = self.describe();
        let top = head::draw(&mut figure, &self.title, &self.subtitle, &self.legend()) + HEADS;
        let bottom = top + ROW * self.rows.len().max(2) as f64;
        figure.height = bottom + EDGE;
        if self.rows.is_empty() || self.columns.is_empty() {
            let middle = (figure.width / 2.0, (top + bottom) / 2.0);
            head::no_data(&mut figure, middle);
            return figure;
        }
        let x = |column: usize| left + COLUMN * (column as f64 + 0.5);
        let y = |row: usize| top + ROW * (row as f64 + 0.5);
        let grid = Stroke::solid(Colour::GRID, 1.0);
        for (column, name) in self.columns.iter().enumerate() {
            figure.line((x(column), top), (x(column), y(self.rows.len() - 1) + ROW / 2.0), grid);
            let name = font::shorten(name, TICK, Weight::Regular, COLUMN - 4.0);
            let text = Text::new((x(column), top - 8.0), TICK, Colour::MUTED, name);
            figure.text(text.anchored(Anchor::Middle));
        }
        for (row, name) in names.into_iter().enumerate() {
            figure.line((left, y(row)), (right, y(row)), grid);
            let text = Text::new((left - BESIDE, y(row) + 4.0), LABEL, Colour::TEXT, name);
            figure.text(text.anchored(Anchor::End));
        }
        let greatest = self.drawn().map(|(_, _, cell)| cell.whole).fold(0.0, f64::max);
        for (row, column, cell) in self.drawn() {
            draw_cell(&mut figure, (x(column), y(row)), cell, greatest);
        }
        figure
    }

    fn describe(&self) -> String {
        let (rows, columns) = (self.rows.len(), self.columns.len());
        let labels = [&self.whole_label, &self.part_label];
        format!("Circles in {rows} rows and {columns} columns: {}, {}.", labels[0], labels[1])
    }

    fn legend(&self) -> [Entry; 2] {
        let (fill, stroke) = of_whole();
        let entry =
            |name: &str, sample| Entry { name: name.to_owned(), sample, weight: Weight::Regular };
        [
            entry(&self.part_label, Sample::Disc(COLOUR.into(), None)),
            entry(&self.whole_label, Sample::Disc(fill, Some(stroke))),
        ]
    }

    /// What is there to draw, each with its row and column.
    fn drawn(&self) -> impl Iterator<Item = (usize, usize, &Cell)> {
        let rows = self.cells.iter().take(self.rows.len()).enumerate();
        let cells = rows.flat_map(|(row, cells)| {
            let cells = cells.iter().take(self.columns.len()).enumerate();
            cells.map(move |(column, cell)| (row, column, cell))
        });
        cells.filter(|(_, _, cell)| cell.whole.is_finite() && cell.whole > 0.0)
    }
}

fn draw_cell(figure: &mut Figure, centre: (f64, f64), cell: &Cell, greatest: f64) {
    let radius = |amount: f64| LARGEST * (amount / greatest).clamp(0.0, 1.0).sqrt();
    let (fill, stroke) = of_whole();
    let whole = radius(cell.whole);
    let disc = |radius, fill, stroke| Mark::Circle { centre, radius, fill: Some(fill), stroke };
    figure.marks.push(disc(whole, fill, Some(stroke)));
    if cell.part > 0.0 {
        figure.marks.push(disc(radius(cell.part.min(cell.whole)), COLOUR.into(), None));
    }
    if !cell.note.is_empty() {
        // Small circles are still met by a pointer.
        let reach = whole.max(6.0);
        let corner = (centre.0 - reach, centre.1 - reach);
        figure.note(corner, (2.0 * reach, 2.0 * reach), &cell.note);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(cells: &[&[(f64, f64)]]) -> Table {
        let cell = |&(whole, part): &(f64, f64)| Cell { whole, part, note: String::new() };
        let cells: Vec<Vec<Cell>> =
            cells.iter().map(|row| row.iter().map(cell).collect()).collect();
        let columns = cells.iter().map(Vec::len).max().unwrap_or(0);
        Table {
            rows: (0..cells.len()).map(|k| format!("row {k}")).collect(),
            columns: (0..columns).map(|k| format!("a column {k}")).collect(),
            cells,
            ..Table::default()
        }
    }

    fn circles(figure: &Figure) -> Vec<((f64, f64), f64)> {
        let marks = figure.marks.iter();
        marks
            .filter_map(|mark| match mark {
                Mark::Circle { centre, radius, .. } => Some((*centre, *radius)),
                _ => None,
            })
            .collect()
    }

    fn says(figure: &Figure, content: &str) -> bool {
        figure.marks.iter().any(|mark| matches!(mark, Mark::Text(text) if text.content == content))
    }

    #[test]
    fn areas_are_in_proportion() {
        let circles = circles(&table(&[&[(4.0, 1.0), (1.0, 0.0)], &[(2.0, 9.0)]]).draw());
        let areas: Vec<f64> =
            circles.iter().map(|(_, radius)| (radius / LARGEST).powi(2)).collect();
        for (area, expected) in areas.iter().zip([1.0, 0.25, 0.25, 0.5, 0.5]) {
            assert!((area - expected).abs() < 1e-9, "{areas:?}");
        }
        assert_eq!(areas.len(), 5);
        assert_eq!(circles[0].0, circles[1].0, "a part lies within its whole");
    }

    #[test]
    fn what_is_nothing_is_not_drawn() {
        let drawn = table(&[&[(0.0, 0.0), (f64::NAN, 1.0), (-1.0, 0.0), (1.0, f64::NAN)]]).draw();
        assert_eq!(circles(&drawn).len(), 1);
        assert!(says(&Table::default().draw(), "no data"));
    }

    #[test]
    fn names_of_columns_do_not_run_into_each_other() {
        let drawn = table(&[&[(1.0, 1.0), (1.0, 1.0)]]).draw();
        assert!(!says(&drawn, "a column 0"));
        assert!(says(&drawn, "row 0"));
    }

    #[test]
    fn the_legend_has_both_samples() {
        let labelled = Table {
            whole_label: "all".to_owned(),
            part_label: "known".to_owned(),
            ..table(&[&[(1.0, 0.0)]])
        };
        let drawn = labelled.draw();
        assert!(says(&drawn, "all") && says(&drawn, "known"));
        assert_eq!(circles(&drawn).len(), 3);
    }
}
