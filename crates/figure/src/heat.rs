//! Draws tables of numbers as colours.

use crate::axis::{Axis, Span};
use crate::clip::Frame;
use crate::colour::Colour;
use crate::figure::{Anchor, Figure, Mark, Stroke, Text, Weight};
use crate::head::{self, EDGE, LABEL, TICK};
use crate::{font, number};

/// The longest name of a row or column.
const LONGEST_NAME: f64 = 150.0;
/// How far names of columns are turned where they do not fit side by side.
const TURN: f64 = -45.0;
/// The side of a badge with a letter, and of one that is too small for it.
const BADGE: f64 = 14.0;
const STRIP: f64 = 4.0;
/// The distance between the cells and the text next to them, in units.
const BESIDE: f64 = 6.0;
/// The colour bar: its distance from the cells and its width.
const BAR_AWAY: f64 = 20.0;
const BAR: f64 = 13.0;

/// A map: rows from top to bottom, columns from left to right, a colour for each number.
#[derive(Debug, Clone, PartialEq)]
pub struct Map {
    /// Above the map; may be empty.
    pub title: String,
    /// Below the title, smaller; may be empty.
    pub subtitle: String,
    /// The names of the rows, from top to bottom.
    pub rows: Vec<String>,
    /// The names of the columns, from left to right.
    pub columns: Vec<String>,
    /// What the rows are; may be empty.
    pub rows_label: String,
    /// What the columns are; may be empty.
    pub columns_label: String,
    /// A number for each row and column; what is missing or not finite is hatched.
    pub values: Vec<Vec<Option<f64>>>,
    /// The numbers at the ends of the colour scale. Without, the least and the greatest.
    pub range: Option<(f64, f64)>,
    /// What the colours measure, beside the colour bar.
    pub bar_label: String,
    /// Signs beside the names of rows; those that are not there are empty.
    pub row_badges: Vec<Option<Badge>>,
    /// Signs beside the names of columns.
    pub column_badges: Vec<Option<Badge>>,
    /// The greatest width of the figure, as far as cells can still be seen.
    pub width: f64,
}

impl Default for Map {
    fn default() -> Map {
        Map {
            title: String::new(),
            subtitle: String::new(),
            rows: Vec::new(),
            columns: Vec::new(),
            rows_label: String::new(),
            columns_label: String::new(),
            values: Vec::new(),
            range: None,
            bar_label: String::new(),
            row_badges: Vec::new(),
            column_badges: Vec::new(),
            width: 640.0,
        }
    }
}

/// A letter on a colour, such as the role of a device.
#[derive(Debug, Clone, PartialEq)]
pub struct Badge {
    /// The letter or two that are written.
    pub letter: String,
    /// The colour of the ground that they stand on.
    pub colour: Colour,
}

/// Where the parts of a map stand.
struct Layout {
    cells: Frame,
    /// Width and height of a cell.
    cell: (f64, f64),
    row_names: Vec<String>,
    column_names: Vec<String>,
    /// Whether the names of columns are turned.
    turned: bool,
    /// Sides of the badges of rows and of columns.
    badges: (f64, f64),
    span: Span,
}

impl Map {
    /// Draws the map.
    pub fn draw(&self) -> Figure {
        // The head is as wide as what is below it, so that is found out first.
        let layout = self.layout(0.0);
        let bar = self.bar_width(&layout.span);
        let wide = layout.cells.right + bar + EDGE;
        let mut figure = Figure::new(&self.title, wide.max(self.width.clamp(160.0, 360.0)), 0.0);
        figure.description = self.describe();
        let top = head::draw(&mut figure, &self.title, &self.subtitle, &[]);
        let layout = Layout {
            cells: Frame { top, bottom: layout.cells.bottom + top, ..layout.cells },
            ..layout
        };
        let below = layout.below() + if self.columns_label.trim().is_empty() { 0.0 } else { 20.0 };
        figure.height = layout.cells.bottom.max(top + 90.0) + below + EDGE;
        if self.rows.is_empty() || self.columns.is_empty() {
            head::no_data(&mut figure, layout.cells.middle());
            return figure;
        }
        self.draw_cells(&mut figure, &layout);
        self.draw_rows(&mut figure, &layout);
        self.draw_columns(&mut figure, &layout);
        self.draw_bar(&mut figure, &layout);
        figure
    }

    fn describe(&self) -> String {
        format!(
            "A map of {} by {} values: {}.",
            self.rows.len(),
            self.columns.len(),
            self.bar_label
        )
    }

    fn value(&self, row: usize, column: usize) -> Option<f64> {
        let value = self.values.get(row)?.get(column).copied().flatten();
        value.filter(|value| value.is_finite())
    }

    /// Returns every number that there is, row by row.
    fn all(&self) -> Vec<f64> {
        let row = |row| (0..self.columns.len()).filter_map(move |column| self.value(row, column));
        (0..self.rows.len()).flat_map(row).collect()
    }

    fn span(&self) -> Span {
        let values = self.all();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let range = self.range.or(Some((least, most)));
        Span::over(&Axis { range, ..Axis::linear("") }, values.into_iter())
    }

    fn layout(&self, top: f64) -> Layout {
        let span = self.span();
        let shorten = |name: &String| font::shorten(name, LABEL, Weight::Regular, LONGEST_NAME);
        let row_names: Vec<String> = self.rows.iter().map(shorten).collect();
        let column_names: Vec<String> = self.columns.iter().map(shorten).collect();
        let label = if self.rows_label.trim().is_empty() { 0.0 } else { LABEL + BESIDE };
        let badge = if self.row_badges.is_empty() { 0.0 } else { BADGE + BESIDE };
        let left = (EDGE + label + widest(&row_names) + BESIDE + badge).round();
        let room = self.width.max(160.0) - left - self.bar_width(&span) - EDGE;
        let across = (room / self.columns.len().max(1) as f64).floor().clamp(4.0, 52.0);
        let down = across.min(34.0);
        let turned = widest(&column_names) + 6.0 > across;
        let (columns, rows) = (self.columns.len().max(1) as f64, self.rows.len().max(1) as f64);
        let cells = Frame { left, top, right: left + columns * across, bottom: top + rows * down };
        let side = |badges: &[Option<Badge>], cell: f64| match badges {
            [] => 0.0,
            _ if cell < BADGE => STRIP,
            _ => BADGE,
        };
        let badges = (side(&self.row_badges, down), side(&self.column_badges, across));
        Layout { cells, cell: (across, down), row_names, column_names, turned, badges, span }
    }

    fn draw_cells(&self, figure: &mut Figure, layout: &Layout) {
        let (across, down) = layout.cell;
        let gap = if down >= 10.0 { 1.0 } else { 0.0 };
        let size = (across - gap, down - gap);
        let (numbers, font_size) = self.numbers(size);
        let mut numbers = numbers.into_iter();
        for row in 0..self.rows.len() {
            for column in 0..self.columns.len() {
                let x = layout.cells.left + column as f64 * across;
                let y = layout.cells.top + row as f64 * down;
                let Some(value) = self.value(row, column) else {
                    hatch(figure, Frame { left: x, top: y, right: x + size.0, bottom: y + size.1 });
                    continue;
                };
                let colour = Colour::on_scale(layout.span.share_within(value));
                figure.fill_rect((x, y), size, colour);
                let number = numbers.next().unwrap_or_default();
                if let Some(font_size) = font_size {
                    let at = (x + size.0 / 2.0, y + size.1 / 2.0 + font_size * 0.36);
                    let text = Text::new(at, font_size, colour.readable(), number);
                    figure.text(text.anchored(Anchor::Middle));
                }
                let names = (&self.rows[row], &self.columns[column]);
                let note = format!("{}, {}: {}", names.0, names.1, number::short(value));
                figure.note((x, y), size, note);
            }
        }
    }

    /// Every number as it is written, and the size at which all of them fit into their cells, if there is one.
    fn numbers(&self, cell: (f64, f64)) -> (Vec<String>, Option<f64>) {
        let numbers = number::even(&self.all());
        let widths = numbers.iter().map(|number| font::room(number, 1.0, Weight::Regular));
        let widest = widths.fold(0.0, f64::max);
        let fits = |size: &f64| widest * size + 3.0 <= cell.0 && size + 3.0 <= cell.1;
        let size = [12.0, 11.0, 10.0, 9.0].into_iter().find(fits);
        (numbers, size)
    }

    fn draw_rows(&self, figure: &mut Figure, layout: &Layout) {
        let every = (13.0 / layout.cell.1).ceil() as usize;
        let badge_left = layout.cells.left - BESIDE - layout.badges.0;
        for (row, name) in layout.row_names.iter().enumerate() {
            let middle = layout.cells.top + (row as f64 + 0.5) * layout.cell.1;
            if let Some(Some(badge)) = self.row_badges.get(row) {
                let side = (layout.badges.0, layout.badges.0.max(layout.cell.1.min(BADGE)));
                draw_badge(figure, badge, (badge_left + side.0 / 2.0, middle), side);
            }
            if row % every == 0 {
                let away = if layout.badges.0 > 0.0 { BESIDE } else { 0.0 };
                let at = (badge_left - away, middle + LABEL * 0.35);
                figure.text(Text::new(at, LABEL, Colour::TEXT, name).anchored(Anchor::End));
            }
        }
        let label = font::shorten(
            self.rows_label.trim(),
            LABEL,
            Weight::Regular,
            figure.height - 2.0 * EDGE,
        );
        if !label.is_empty() {
            let at = (EDGE + LABEL * 0.6, layout.cells.middle().1);
            let text = Text::new(at, LABEL, Colour::MUTED, label);
            figure.text(text.anchored(Anchor::Middle).turned(-90.0));
        }
    }

    fn draw_columns(&self, figure: &mut Figure, layout: &Layout) {
        let every = if layout.turned { (15.0 / layout.cell.0).ceil() as usize } else { 1 };
        let badge_top = layout.cells.bottom + BESIDE;
        let names_top =
            badge_top + layout.badges.1 + if layout.badges.1 > 0.0 { BESIDE } else { 0.0 };
        for (column, name) in layout.column_names.iter().enumerate() {
            let middle = layout.cells.left + (column as f64 + 0.5) * layout.cell.0;
            if let Some(Some(badge)) = self.column_badges.get(column) {
                let side = (layout.badges.1.max(layout.cell.0.min(BADGE)), layout.badges.1);
                draw_badge(figure, badge, (middle, badge_top + side.1 / 2.0), side);
            }
            if column % every != 0 {
                continue;
            }
            figure.text(if layout.turned {
                let at = (middle + 5.0, names_top + LABEL * 0.6);
                let name = font::shorten_turned(name, at.0, TURN);
                Text::new(at, LABEL, Colour::TEXT, name).anchored(Anchor::End).turned(TURN)
            } else {
                let at = (middle, names_top + LABEL * 0.85);
                Text::new(at, LABEL, Colour::TEXT, name).anchored(Anchor::Middle)
            });
        }
        let room = figure.width - 2.0 * EDGE;
        let label = font::shorten(self.columns_label.trim(), LABEL, Weight::Regular, room);
        if !label.is_empty() {
            let half = font::room(&label, LABEL, Weight::Regular) / 2.0;
            let x = layout.cells.middle().0;
            let x = x.clamp(EDGE + half, (figure.width - EDGE - half).max(EDGE + half));
            let at = (x, layout.cells.bottom + layout.below() + LABEL + 4.0);
            figure.text(Text::new(at, LABEL, Colour::MUTED, label).anchored(Anchor::Middle));
        }
    }

    /// What the colour bar needs to the right of the cells.
    fn bar_width(&self, span: &Span) -> f64 {
        let ticks = span.ticks(5);
        let numbers: Vec<String> = ticks.into_iter().filter_map(|tick| tick.label).collect();
        let label = if self.bar_label.trim().is_empty() { 0.0 } else { LABEL + BESIDE };
        BAR_AWAY + BAR + BESIDE + widest(&numbers) * TICK / LABEL + label
    }

    fn draw_bar(&self, figure: &mut Figure, layout: &Layout) {
        let height = layout.cells.height().clamp(90.0, 320.0).round();
        let (left, top) = (layout.cells.right + BAR_AWAY, layout.cells.top);
        // Each step reaches to the foot, so that no seam shows between two.
        let steps = 96;
        for step in 0..steps {
            let share = f64::from(step) / f64::from(steps);
            let colour = Colour::on_scale(1.0 - share - 0.5 / f64::from(steps));
            figure.fill_rect((left, top + share * height), (BAR, height * (1.0 - share)), colour);
        }
        let edge = left + BAR;
        for tick in layout.span.ticks(((height / 40.0) as usize).clamp(2, 5)) {
            let y = top + height * (1.0 - layout.span.share_within(tick.value));
            figure.line((edge, y), (edge + 3.0, y), Stroke::solid(Colour::AXIS, 1.0));
            let at = (edge + BESIDE, y + 4.0);
            figure.text(Text::new(at, TICK, Colour::MUTED, tick.label.unwrap_or_default()));
        }
        let label = font::shorten(
            self.bar_label.trim(),
            LABEL,
            Weight::Regular,
            figure.height - 2.0 * EDGE,
        );
        if !label.is_empty() {
            let half = font::room(&label, LABEL, Weight::Regular) / 2.0;
            let at = (
                layout.cells.right + self.bar_width(&layout.span),
                (top + height / 2.0).max(EDGE + half),
            );
            let text = Text::new(at, LABEL, Colour::TEXT, label);
            figure.text(text.anchored(Anchor::Middle).turned(-90.0));
        }
    }
}

impl Layout {
    /// What badges and names need below the cells.
    fn below(&self) -> f64 {
        let badge = if self.badges.1 > 0.0 { self.badges.1 + BESIDE } else { 0.0 };
        let names = if self.turned {
            widest(&self.column_names) * (-TURN).to_radians().sin() + LABEL
        } else {
            LABEL * 1.2
        };
        BESIDE + badge + names
    }
}

/// Returns the room that the widest name needs.
fn widest(names: &[String]) -> f64 {
    let widths = names.iter().map(|name| font::room(name, LABEL, Weight::Regular));
    widths.fold(0.0, f64::max)
}

/// Hatches a cell that has no number.
fn hatch(figure: &mut Figure, cell: Frame) {
    figure.fill_rect((cell.left, cell.top), (cell.width(), cell.height()), Colour::MISSING);
    let stroke = Stroke::solid(Colour::hex(0xd9dade), 1.0);
    let reach = cell.width() + cell.height();
    let mut start = 5.0;
    while start < reach && cell.height() >= 10.0 {
        let line = [(cell.left, cell.top + start), (cell.left + start, cell.top)];
        for points in cell.cut_line(&line) {
            figure.marks.push(Mark::Polyline { points, stroke });
        }
        start += 6.0;
    }
}

fn draw_badge(figure: &mut Figure, badge: &Badge, (x, y): (f64, f64), side: (f64, f64)) {
    figure.fill_rect((x - side.0 / 2.0, y - side.1 / 2.0), side, badge.colour);
    if side.0.min(side.1) >= BADGE {
        let letter = font::shorten(&badge.letter, 10.0, Weight::Bold, BADGE + 2.0);
        let text = Text::new((x, y + 3.6), 10.0, badge.colour.readable(), letter);
        figure.text(text.anchored(Anchor::Middle).weighing(Weight::Bold));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|k| format!("device {k}")).collect()
    }

    fn map(values: Vec<Vec<Option<f64>>>) -> Map {
        let columns = values.iter().map(Vec::len).max().unwrap_or(0);
        Map { rows: names(values.len()), columns: names(columns), values, ..Map::default() }
    }

    fn says(figure: &Figure, content: &str) -> bool {
        figure.marks.iter().any(|mark| matches!(mark, Mark::Text(text) if text.content == content))
    }

    #[test]
    fn numbers_are_written_where_they_fit() {
        let small = map(vec![vec![Some(0.25), Some(1.0)]]).draw();
        assert!(says(&small, "0.25") && says(&small, "1.00"));
        let large = map(vec![vec![Some(0.27); 60]; 2]).draw();
        assert!(!says(&large, "0.27"));
    }

    #[test]
    fn the_ends_of_the_range_have_the_ends_of_the_scale() {
        let figure =
            Map { range: Some((0.0, 2.0)), ..map(vec![vec![Some(0.0), Some(5.0)]]) }.draw();
        let fills: Vec<Colour> = figure
            .marks
            .iter()
            .filter_map(|mark| match mark {
                Mark::Rect { fill: Some(fill), .. } => Some(fill.colour),
                _ => None,
            })
            .collect();
        assert_eq!(fills[..2], [Colour::on_scale(0.0), Colour::on_scale(1.0)]);
    }

    #[test]
    fn missing_cells_are_hatched() {
        let figure = map(vec![vec![Some(1.0), None], vec![Some(f64::NAN)]]).draw();
        let missing = figure.marks.iter().filter(
            |mark| matches!(mark, Mark::Rect { fill: Some(fill), .. } if fill.colour == Colour::MISSING),
        );
        assert_eq!(missing.count(), 3);
    }

    #[test]
    fn badges_show_their_letters() {
        let badge = Some(Badge { letter: "S".to_owned(), colour: Colour::nth(0) });
        let with = Map { row_badges: vec![badge], ..map(vec![vec![Some(1.0)]; 2]) };
        assert!(says(&with.draw(), "S"));
        assert!(says(&Map::default().draw(), "no data"));
    }
}
