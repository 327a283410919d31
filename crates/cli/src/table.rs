//! Lays out tables in plain text.

use anstyle::{AnsiColor, Style};
use stlf_planning::Role;
use stlf_planning::number_format::clean;

/// The alignment of a column's cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// Alignment to the left, for text.
    Left,
    /// Alignment to the right, for numbers.
    Right,
}

/// A text with the style in which a terminal shows it.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell { text: clean(&text), style: Style::new() }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        text.to_owned().into()
    }
}

impl From<Role> for Cell {
    fn from(role: Role) -> Cell {
        Cell { style: role_style(role), ..role.to_string().into() }
    }
}

/// Returns the colour of a role: green for sources and blue for targets, wherever they are shown.
pub(crate) fn role_style(role: Role) -> Style {
    let colour = match role {
        Role::Source => AnsiColor::Green,
        Role::Target => AnsiColor::Blue,
    };
    Style::new().fg_color(Some(colour.into()))
}

/// Rows of cells under a header.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Returns a table with these columns and no rows yet.
    pub(crate) fn new(columns: &[(&str, Align)]) -> Table {
        let columns = columns.iter().map(|(name, align)| ((*name).to_owned(), *align)).collect();
        Table { columns, rows: Vec::new() }
    }

    /// Adds a row, one cell per column.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Returns the text, with a line break after every row and no trailing spaces.
    pub(crate) fn render(&self) -> String {
        let header: Vec<Cell> = self
            .columns
            .iter()
            .map(|(name, _)| Cell { style: Style::new().bold(), ..name.as_str().into() })
            .collect();
        let lines = || std::iter::once(&header).chain(&self.rows);
        let width = |column: usize| {
            lines().filter_map(|l| l.get(column)).map(|c| c.text.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let mut text = String::new();
        for line in lines() {
            let mut pending = 0;
            for ((cell, width), (_, align)) in line.iter().zip(&widths).zip(&self.columns) {
                let space = width - cell.text.chars().count();
                let (before, after) = match align {
                    Align::Left => (0, space),
                    Align::Right => (space, 0),
                };
                if !cell.text.is_empty() {
                    let style = cell.style;
                    text.extend(std::iter::repeat_n(' ', pending + before));
                    text.push_str(&format!("{style}{}{style:#}", cell.text));
                    pending = after + 2;
                } else {
                    pending += width + 2;
                }
            }
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_do_not_trail() {
        let mut table = Table::new(&[("name", Align::Left), ("joules", Align::Right)]);
        table.row(["a".into(), "12.5".into()]);
        table.row(["länger".into(), "".into()]);
        table.row(["".into(), "3".into()]);
        let plain = anstream::adapter::strip_str(&table.render()).to_string();
        assert_eq!(plain, "name    joules\na         12.5\nlänger\n             3\n");
    }

    #[test]
    fn a_name_cannot_steer_the_terminal() {
        let cell = Cell::from("a\u{1b}[31mb");
        assert!(!cell.text.contains('\u{1b}'));
    }
}
