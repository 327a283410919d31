//! A link table in Parquet.

use parquet::basic::ConvertedType;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::schema::types::ColumnDescriptor;
use stlf_planning::error::Error;

use super::{Column, Header, LinkTable, Place};

/// Parquet has no header row.
const PLACE: Place = Place::File { first_row: 1 };

const BATCH: usize = 8192;

impl LinkTable {
    /// Reads Parquet with the columns that [`LinkTable::read_csv`] knows: names as strings or
    /// integers, the rest as any kind of number.
    ///
    /// # Errors
    /// Names the row and the column.
    pub fn read_parquet(bytes: Vec<u8>, model_bits: f64) -> Result<LinkTable, Error> {
        // On some corrupt files the Parquet crate fails an assertion instead of returning an error.
        stlf_data::quiet::caught(|| LinkTable::from_parquet(bytes, model_bits))
            .unwrap_or_else(|| Err(broken(ParquetError::General("it is corrupt".into()))))
    }

    fn from_parquet(bytes: Vec<u8>, model_bits: f64) -> Result<LinkTable, Error> {
        let file = SerializedFileReader::new(bytes::Bytes::from(bytes)).map_err(broken)?;
        let schema = file.metadata().file_metadata().schema_descr_ptr();
        let header = Header::new(schema.columns().iter().map(|c| c.name()))?;
        let mut table = LinkTable { place: PLACE, ..LinkTable::default() };
        for group in 0..file.num_row_groups() {
            let group = file.get_row_group(group).map_err(broken)?;
            let first = table.rows.len();
            let column = |at: usize, column: Column| Part {
                group: &*group,
                descriptor: schema.column(at),
                at,
                column,
                first,
            };
            let from = column(header.from, Column::From).names(&mut table)?;
            let to = column(header.to, Column::To).names(&mut table)?;
            let divergence = column(header.divergence, Column::Divergence).numbers()?;
            let energy = header.energy.columns().map(|(c, at)| column(at, c).numbers());
            let energy: Vec<Vec<f64>> = energy.collect::<Result<_, _>>()?;
            let count = from.len();
            let mut others = energy.iter().map(Vec::len).chain([to.len(), divergence.len()]);
            if others.any(|length| length != count) {
                return Err(Error::field("table", "the columns have different lengths"));
            }
            table.rows.reserve(count);
            for k in 0..count {
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

/// One column of one row group.
struct Part<'a> {
    group: &'a dyn RowGroupReader,
    descriptor: std::sync::Arc<ColumnDescriptor>,
    at: usize,
    column: Column,
    /// Links in the row groups before.
    first: usize,
}

impl Part<'_> {
    fn reader(&self) -> Result<ColumnReader, Error> {
        if self.descriptor.max_rep_level() > 0 {
            return Err(self.wrong_type("a list"));
        }
        self.group.get_column_reader(self.at).map_err(broken)
    }

    fn wrong_type(&self, found: &str) -> Error {
        let wanted = match self.column {
            Column::From | Column::To => "a string",
            _ => "a number",
        };
        Error::field(
            format!("column {}", self.column.name()),
            format!("holds {found}, expected {wanted}"),
        )
    }

    fn names(&self, table: &mut LinkTable) -> Result<Vec<u32>, Error> {
        let mut names = Vec::new();
        let mut push = |name: &[u8]| {
            let number = table.names.intern(name);
            let row = self.first + names.len();
            names.push(number.ok_or_else(|| {
                Error::field(PLACE.cell(row, self.column.name()), "the name is not UTF-8 text")
            })?);
            Ok(())
        };
        match self.reader()? {
            ColumnReader::ByteArrayColumnReader(r) => self.drain(r, |v| push(v.data())),
            ColumnReader::Int32ColumnReader(r) => self.drain(r, |v| push(v.to_string().as_bytes())),
            ColumnReader::Int64ColumnReader(r) => self.drain(r, |v| push(v.to_string().as_bytes())),
            _ => Err(self.wrong_type("something else")),
        }?;
        Ok(names)
    }

    fn numbers(&self) -> Result<Vec<f64>, Error> {
        if self.descriptor.converted_type() == ConvertedType::DECIMAL {
            return Err(self.wrong_type("decimals"));
        }
        let mut numbers = Vec::new();
        let mut push = |value: f64| {
            numbers.push(value);
            Ok(())
        };
        match self.reader()? {
            ColumnReader::DoubleColumnReader(r) => self.drain(r, |v| push(*v)),
            ColumnReader::FloatColumnReader(r) => self.drain(r, |v| push(f64::from(*v))),
            ColumnReader::Int32ColumnReader(r) => self.drain(r, |v| push(f64::from(*v))),
            ColumnReader::Int64ColumnReader(r) => self.drain(r, |v| push(*v as f64)),
            ColumnReader::ByteArrayColumnReader(_) => Err(self.wrong_type("strings")),
            _ => Err(self.wrong_type("something else")),
        }?;
        Ok(numbers)
    }

    /// Hands every value to `each`; a null is an error.
    fn drain<T: DataType>(
        &self,
        mut reader: ColumnReaderImpl<T>,
        mut each: impl FnMut(&T::T) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (mut levels, mut values) = (Vec::new(), Vec::new());
        let mut row = self.first;
        loop {
            levels.clear();
            values.clear();
            let (records, _, _) =
                reader.read_records(BATCH, Some(&mut levels), None, &mut values).map_err(broken)?;
            if records == 0 {
                return Ok(());
            }
            if let Some(k) = levels.iter().position(|&l| l < self.descriptor.max_def_level()) {
                return Err(Error::field(PLACE.cell(row + k, self.column.name()), "is null")
                    .with_hint("leave out the rows of links that do not exist"));
            }
            values.iter().try_for_each(&mut each)?;
            row += records;
        }
    }
}

fn broken(error: ParquetError) -> Error {
    Error::field("table", format!("not a readable Parquet file: {error}"))
        .with_hint("a link table is a CSV or Parquet file")
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
