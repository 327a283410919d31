//! Reads a link table from CSV.

use std::io::Read;

use stlf_data::columns::{RowError, csv_reader};
use stlf_planning::error::Error;

use super::super::document::shorten;
use super::{Header, LinkTable, Place};

/// The header is row 1, so the first link is row 2, as a spreadsheet counts.
const PLACE: Place = Place::File { first_row: 2 };

impl LinkTable {
    /// Reads CSV with a header: from, to, divergence, and energy in joules or what gives it for a
    /// model of `model_bits` (bits_per_second and watts, or joules_per_bit).
    ///
    /// # Errors
    /// Names the row and the column.
    pub fn read_csv(reader: impl Read, model_bits: f64) -> Result<LinkTable, crate::Error> {
        let mut csv = csv_reader().from_reader(reader);
        let header = csv.headers().map_err(|e| csv_error(&e))?;
        if header.is_empty() {
            return Err(Error::missing("table", "the file is empty")
                .with_hint("the first row must name the columns: from,to,divergence,energy")
                .into());
        }
        let header = Header::new(header.iter())?;
        let mut table = LinkTable { place: PLACE, ..LinkTable::default() };
        let mut record = csv::ByteRecord::new();
        while csv.read_byte_record(&mut record).map_err(|e| csv_error(&e))? {
            let row = table.rows.len();
            let cell = |at: usize| record.get(at).unwrap_or_default().trim_ascii();
            let number = |column: &str, at: usize| {
                parse(cell(at)).ok_or_else(|| not_a_number(row, column, cell(at)))
            };
            let divergence = number("divergence", header.divergence)?;
            let energy = header.energy.joules(model_bits, |c, at| {
                let value = number(c.name(), at)?;
                super::non_negative(value, || PLACE.cell(row, c.name())).map(|()| value)
            })?;
            let mut name = |column: &str, at: usize| {
                table.names.intern(cell(at)).ok_or_else(|| {
                    Error::other(PLACE.cell(row, column), "the name is not UTF-8 text")
                })
            };
            let (from, to) = (name("from", header.from)?, name("to", header.to)?);
            table.rows.push((from, to, divergence, energy));
        }
        Ok(table)
    }
}

fn parse(cell: &[u8]) -> Option<f64> {
    std::str::from_utf8(cell).ok()?.parse().ok()
}

fn not_a_number(row: usize, column: &str, cell: &[u8]) -> Error {
    let text = String::from_utf8_lossy(&cell[..cell.len().min(100)]);
    let message = if cell.is_empty() {
        "is empty".to_owned()
    } else {
        format!("{:?} is not a number", shorten(&text))
    };
    Error::other(PLACE.cell(row, column), message)
        .with_hint("leave out the rows of links that do not exist")
}

fn csv_error(error: &csv::Error) -> crate::Error {
    let RowError { row, message, hint } = RowError::from(error);
    crate::Error::Row { row, message, hint: hint.map(str::to_owned) }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::ScaleEntry;

    fn read(text: &str) -> Result<LinkTable, crate::Error> {
        LinkTable::read_csv(text.as_bytes(), 1e9)
    }

    fn links(text: &str) -> Result<stlf_planning::problem::Links, crate::Error> {
        let index: HashMap<String, usize> =
            ["a", "b", "c"].iter().enumerate().map(|(i, n)| ((*n).to_owned(), i)).collect();
        Ok(read(text)?.resolve(&index, ScaleEntry::Unit)?)
    }

    #[test]
    fn three_ways_to_give_an_energy_agree() {
        let joules = links("to,from,energy,divergence\nb,a,4,0.5\n").unwrap();
        let power = links("from,to,divergence,bits_per_second,watts\na,b,0.5,5e7,0.2\n").unwrap();
        let per_bit = links("from,to,divergence,joules_per_bit\na,b,0.5,4e-9\n").unwrap();
        assert_eq!(joules.get(0, 1).unwrap().energy, 4.0);
        assert!((power.get(0, 1).unwrap().energy - 4.0).abs() < 1e-9);
        assert!((per_bit.get(0, 1).unwrap().energy - 4.0).abs() < 1e-9);
    }

    #[test]
    fn a_byte_order_mark_spaces_and_windows_lines_do_no_harm() {
        let table = "\u{feff}from, to ,divergence,energy\r\n a ,b, 0.5 ,1\r\n";
        assert_eq!(links(table).unwrap().count(), 1);
    }

    #[test]
    fn errors_name_row_and_column() {
        let head = "from,to,divergence,energy\na,b,1,1\n";
        let error = |rows: &str| links(&format!("{head}{rows}")).unwrap_err().to_string();
        assert_eq!(error("a,c,x,1\n"), "row 3, column divergence: \"x\" is not a number");
        assert_eq!(error("a,c,1,\n"), "row 3, column energy: is empty");
        assert_eq!(error("a,c,1\n"), "row 3: has 3 columns, expected 4");
        assert_eq!(error("a,z,1,1\n"), "row 3, column to: there is no device \"z\"");
        assert_eq!(error("c,c,1,1\n"), "row 3: c cannot send to itself");
        assert_eq!(error("b,a,1,1\na,b,2,2\n"), "row 4: a → b is already in row 2");
        assert_eq!(error("a,c,1,nan\n"), "row 3, column energy: NaN is not a number");
        assert_eq!(error("a,c,-1,1\n"), "row 3, column divergence (a → c): -1 is negative");
    }

    #[test]
    fn columns_are_checked() {
        let error = |text: &str| read(text).unwrap_err();
        let wrong = error("from,to,divergance,energy\n");
        assert_eq!(wrong.to_string(), "column \"divergance\": unknown column");
        assert_eq!(wrong.hint(), Some("did you mean `divergence`?"));
        assert_eq!(error("from;to\n").hint(), Some("columns are separated by commas"));
        assert_eq!(error("from,to,divergence\n").to_string(), "column energy: is missing");
        assert_eq!(error("").to_string(), "table: the file is empty");
        let both = error("from,to,divergence,energy,watts,bits_per_second\n").to_string();
        assert_eq!(both, "column energy: the energy is given in two ways");
    }

    #[test]
    fn a_rate_of_zero_is_refused_by_name() {
        let error = links("from,to,divergence,bits_per_second,watts\na,b,0.5,0,1\n").unwrap_err();
        assert_eq!(error.to_string(), "row 2, column energy (a → b): sending would take forever");
        assert_eq!(error.hint(), Some("bits_per_second must be above 0"));
    }
}
