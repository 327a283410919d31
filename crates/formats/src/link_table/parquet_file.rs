//! Reads a link table from Parquet.

use stlf_data::columns::{Broken, Cell, Kind, ParquetTable};
use stlf_planning::error::Error;

use super::{Column, Header, LinkTable, Place};

/// Where links stand in Parquet, which has no header: the first one is in row 1.
const PLACE: Place = Place::File { first_row: 1 };

impl LinkTable {
    /// Reads Parquet with the columns that [`LinkTable::read_csv`] knows: names as strings or
    /// integers, the rest as any kind of number.
    ///
    /// # Errors
    /// Names the row and the column.
    pub fn read_parquet(bytes: Vec<u8>, model_bits: f64) -> Result<LinkTable, crate::Error> {
        let read = |file: &ParquetTable| LinkTable::from_parquet(file, model_bits);
        Ok(ParquetTable::with(bytes, broken, read)?)
    }

    fn from_parquet(file: &ParquetTable, model_bits: f64) -> Result<LinkTable, Error> {
        let header = Header::new(file.names().iter().map(String::as_str))?;
        let mut table = LinkTable { place: PLACE, ..LinkTable::default() };
        for group in 0..file.groups() {
            let first = table.rows.len();
            let part = |at: usize, column: Column| Part { file, group, at, column, first };
            let from = part(header.from, Column::From).names(&mut table)?;
            let to = part(header.to, Column::To).names(&mut table)?;
            let divergence = part(header.divergence, Column::Divergence).numbers()?;
            let energy = header.energy.columns().map(|(c, at)| part(at, c).numbers());
            let energy: Vec<Vec<f64>> = energy.collect::<Result<_, _>>()?;
            table.rows.reserve(from.len());
            for k in 0..from.len() {
                let mut operands = energy.iter().map(|values| values[k]);
                let joules = header.energy.joules(model_bits, |column, _| {
                    let value = operands.next().unwrap_or(f64::NAN);
                    super::non_negative(value, || PLACE.cell(first + k, column.name()))?;
                    Ok(value)
                })?;
                table.rows.push((from[k], to[k], divergence[k], joules));
            }
        }
        Ok(table)
    }
}

/// One column of one group of rows.
struct Part<'a> {
    file: &'a ParquetTable,
    group: usize,
    at: usize,
    column: Column,
    /// The number of links in the groups before this one.
    first: usize,
}

impl Part<'_> {
    /// Each cell as `value` makes it, which is told the row in the table; a null is an error.
    fn read<T>(
        &self,
        mut value: impl FnMut(usize, Cell<'_>) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let mut values = Vec::new();
        self.file.read(self.group, self.at, broken, |row, cell| {
            let row = self.first + row;
            if cell == Cell::Null {
                return Err(Error::missing(PLACE.cell(row, self.column.name()), "is null")
                    .with_hint("leave out the rows of links that do not exist"));
            }
            values.push(value(row, cell)?);
            Ok(())
        })?;
        Ok(values)
    }

    fn wrong_type(&self, found: &str, wanted: &str) -> Error {
        Error::other(
            format!("column {}", self.column.name()),
            format!("holds {found}, expected {wanted}"),
        )
    }

    fn names(&self, table: &mut LinkTable) -> Result<Vec<u32>, Error> {
        let wrong = |found| Err(self.wrong_type(found, "a string"));
        match self.file.kind(self.at) {
            Kind::Lists => return wrong("a list"),
            Kind::Decimals => return wrong("decimals"),
            Kind::Booleans | Kind::Floats | Kind::Others => return wrong("something else"),
            Kind::Texts | Kind::Integers => {}
        }
        self.read(|row, cell| {
            let number = match cell {
                Cell::Text(name) => table.names.intern(name),
                Cell::Integer(number) => table.names.intern(number.to_string().as_bytes()),
                _ => None,
            };
            number.ok_or_else(|| {
                Error::other(PLACE.cell(row, self.column.name()), "the name is not UTF-8 text")
            })
        })
    }

    fn numbers(&self) -> Result<Vec<f64>, Error> {
        let wrong = |found| Err(self.wrong_type(found, "a number"));
        match self.file.kind(self.at) {
            Kind::Lists => return wrong("a list"),
            Kind::Decimals => return wrong("decimals"),
            Kind::Texts => return wrong("strings"),
            Kind::Booleans | Kind::Others => return wrong("something else"),
            Kind::Integers | Kind::Floats => {}
        }
        // Columns of this kind have numbers alone.
        self.read(|_, cell| Ok(cell.number().unwrap_or(f64::NAN)))
    }
}

fn broken(error: Broken) -> Error {
    Error::other("table", error.to_string()).with_hint("a link table is a CSV or Parquet file")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, FloatType, Int64Type};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    use proptest::prelude::*;

    use super::*;

    enum Values<'a> {
        Text(&'a [&'a str]),
        Double(&'a [f64]),
        Float(&'a [f32]),
        Int(&'a [i64]),
        Maybe(&'a [Option<f64>]),
    }

    /// A file with the same columns in each of two row groups.
    fn file(schema: &str, columns: &[Values<'_>]) -> Vec<u8> {
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let mut bytes = Vec::new();
        let mut writer = SerializedFileWriter::new(&mut bytes, schema, Default::default()).unwrap();
        for _ in 0..2 {
            let mut group = writer.next_row_group().unwrap();
            for values in columns {
                let mut column = group.next_column().unwrap().unwrap();
                match values {
                    Values::Text(v) => {
                        let v: Vec<ByteArray> = v.iter().map(|&t| ByteArray::from(t)).collect();
                        column.typed::<ByteArrayType>().write_batch(&v, None, None)
                    }
                    Values::Double(v) => column.typed::<DoubleType>().write_batch(v, None, None),
                    Values::Float(v) => column.typed::<FloatType>().write_batch(v, None, None),
                    Values::Int(v) => column.typed::<Int64Type>().write_batch(v, None, None),
                    Values::Maybe(v) => {
                        let levels: Vec<i16> = v.iter().map(|x| i16::from(x.is_some())).collect();
                        let v: Vec<f64> = v.iter().flatten().copied().collect();
                        column.typed::<DoubleType>().write_batch(&v, Some(&levels), None)
                    }
                }
                .unwrap();
                column.close().unwrap();
            }
            group.close().unwrap();
        }
        writer.close().unwrap();
        bytes
    }

    const PLAIN: &str = "message m { required double energy; required binary to (UTF8); \
                         required binary from (UTF8); required float divergence; }";

    fn plain() -> Vec<u8> {
        file(
            PLAIN,
            &[
                Values::Double(&[4.0, 5.0]),
                Values::Text(&["b", "c"]),
                Values::Text(&["a", "a"]),
                Values::Float(&[0.5, 0.25]),
            ],
        )
    }

    #[test]
    fn columns_of_any_kind_and_order_are_read() {
        let table = LinkTable::read_parquet(plain(), 1e9).unwrap();
        assert_eq!(table.rows, [(0, 1, 0.5, 4.0), (0, 2, 0.25, 5.0)].repeat(2));
        assert_eq!(table.names.list, ["a", "b", "c"]);
        let numbered = file(
            "message m { required int64 from; required int64 to; required int64 divergence; \
             optional double joules_per_bit; }",
            &[
                Values::Int(&[1]),
                Values::Int(&[2]),
                Values::Int(&[1]),
                Values::Maybe(&[Some(4e-9)]),
            ],
        );
        let table = LinkTable::read_parquet(numbered, 1e9).unwrap();
        assert_eq!(table.names.list, ["1", "2"]);
        assert!((table.rows[1].3 - 4.0).abs() < 1e-9);
    }

    #[test]
    fn nulls_and_wrong_types_are_named() {
        let null = file(
            "message m { required binary from (UTF8); required binary to (UTF8); \
             required double divergence; optional double energy; }",
            &[
                Values::Text(&["a", "a"]),
                Values::Text(&["b", "c"]),
                Values::Double(&[1.0, 1.0]),
                Values::Maybe(&[Some(1.0), None]),
            ],
        );
        let error = LinkTable::read_parquet(null, 1e9).unwrap_err();
        assert_eq!(error.to_string(), "row 2, column energy: is null");
        let text = file(
            "message m { required binary from (UTF8); required binary to (UTF8); \
             required binary divergence (UTF8); required double energy; }",
            &[
                Values::Text(&["a"]),
                Values::Text(&["b"]),
                Values::Text(&["c"]),
                Values::Double(&[1.0]),
            ],
        );
        let error = LinkTable::read_parquet(text, 1e9).unwrap_err();
        assert_eq!(error.to_string(), "column divergence: holds strings, expected a number");
        // Their digits alone would be names of other devices.
        let decimals = file(
            "message m { required int64 from (DECIMAL(9, 2)); required int64 to; \
             required int64 divergence; required double energy; }",
            &[Values::Int(&[100]), Values::Int(&[2]), Values::Int(&[1]), Values::Double(&[1.0])],
        );
        let error = LinkTable::read_parquet(decimals, 1e9).unwrap_err();
        assert_eq!(error.to_string(), "column from: holds decimals, expected a string");
    }

    proptest! {
        #[test]
        fn a_broken_file_does_no_harm(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
            length in any::<prop::sample::Index>(),
        ) {
            let mut bytes = plain();
            for (at, byte) in &changes {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            let _ = LinkTable::read_parquet(bytes.clone(), 1e9);
            bytes.truncate(length.index(bytes.len()));
            let _ = LinkTable::read_parquet(bytes, 1e9);
        }
    }
}
