//! A table of features in Parquet.

use std::path::Path;

use parquet::basic::ConvertedType;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::schema::types::ColumnDescriptor;

use super::{Columns, Options, Table, feature};
use crate::{Dataset, Error};

const BATCH: usize = 8192;

/// Reads Parquet: labels and domains as strings or whole numbers, features as any kind of number;
/// errors name `path`.
///
/// # Errors
/// Names the row (the first is 1: Parquet has no header row) and the column.
pub fn read_parquet(bytes: Vec<u8>, path: &Path, options: &Options) -> Result<Dataset, Error> {
    unless_corrupt(path, || read(bytes, path, options))
}

/// The names of all columns.
pub(super) fn names(bytes: Vec<u8>, path: &Path) -> Result<Vec<String>, Error> {
    unless_corrupt(path, || Ok(column_names(&open(bytes, path)?)))
}

/// On some corrupt files the Parquet crate fails an assertion instead of returning an error.
fn unless_corrupt<T>(
    path: &Path,
    read: impl FnOnce() -> Result<T, Error> + std::panic::UnwindSafe,
) -> Result<T, Error> {
    crate::quiet::caught(read)
        .unwrap_or_else(|| Err(broken(path, ParquetError::General("it is corrupt".into()))))
}

type Reader = SerializedFileReader<bytes::Bytes>;

fn open(bytes: Vec<u8>, path: &Path) -> Result<Reader, Error> {
    SerializedFileReader::new(bytes::Bytes::from(bytes)).map_err(|e| broken(path, e))
}

fn column_names(file: &Reader) -> Vec<String> {
    let schema = file.metadata().file_metadata().schema_descr();
    schema.columns().iter().map(|c| c.path().string()).collect()
}

fn read(bytes: Vec<u8>, path: &Path, options: &Options) -> Result<Dataset, Error> {
    let failed = |e| broken(path, e);
    let file = open(bytes, path)?;
    let schema = file.metadata().file_metadata().schema_descr_ptr();
    let names = column_names(&file);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut table = Table::new(Columns::new(&names, path, options)?);
    for group in 0..file.num_row_groups() {
        let group = file.get_row_group(group).map_err(failed)?;
        let first = table.labels.len();
        let part = |at: usize| Part {
            group: &*group,
            descriptor: schema.column(at),
            name: names[at],
            at,
            path,
            first,
        };
        part(table.columns.label).texts(|text| {
            table.push_label(text.unwrap_or_default());
            Ok(())
        })?;
        let rows = table.labels.len() - first;
        if let Some(at) = table.columns.domain {
            let before = table.domain_of.len();
            let column = part(at);
            column.texts(|text| {
                let row = first + table.domain_of.len() - before;
                table.push_domain(text.ok_or_else(|| column.cell(row, "is null"))?);
                Ok(())
            })?;
            column.check_length(table.domain_of.len() - before, rows)?;
        }
        let mut columns = Vec::with_capacity(table.columns.features.len());
        for &at in &table.columns.features {
            let column = part(at);
            let numbers = column.numbers()?;
            column.check_length(numbers.len(), rows)?;
            columns.push(numbers);
        }
        table.values.reserve(rows * columns.len());
        for row in 0..rows {
            table.values.extend(columns.iter().map(|column| column[row]));
        }
    }
    table.into_dataset(path, options)
}

/// One column of one row group.
struct Part<'a> {
    group: &'a dyn RowGroupReader,
    descriptor: std::sync::Arc<ColumnDescriptor>,
    name: &'a str,
    at: usize,
    path: &'a Path,
    /// Rows in the groups before.
    first: usize,
}

impl Part<'_> {
    fn reader(&self, wanted: &str) -> Result<ColumnReader, Error> {
        if self.descriptor.max_rep_level() > 0 {
            return Err(self.wrong_type("lists", wanted));
        }
        if self.descriptor.converted_type() == ConvertedType::DECIMAL {
            return Err(self.wrong_type("decimals", wanted));
        }
        self.group.get_column_reader(self.at).map_err(|e| broken(self.path, e))
    }

    fn wrong_type(&self, found: &str, wanted: &str) -> Error {
        let message = format!("column {}: holds {found}, expected {wanted}", self.name);
        Error::content(self.path, message).with_hint(
            "every column besides the label and the domain is a feature; ignore other ones",
        )
    }

    /// An error in a cell; rows are counted from 1.
    fn cell(&self, row: usize, message: &str) -> Error {
        let message = format!("row {}, column {}: {message}", row + 1, self.name);
        Error::content(self.path, message)
    }

    fn check_length(&self, found: usize, rows: usize) -> Result<(), Error> {
        match found == rows {
            true => Ok(()),
            false => Err(broken(self.path, ParquetError::General("a column is too short".into()))),
        }
    }

    /// Hands every text, or whole number as text, to `each`; `None` for null.
    fn texts(&self, mut each: impl FnMut(Option<&str>) -> Result<(), Error>) -> Result<(), Error> {
        const WANTED: &str = "strings or whole numbers";
        match self.reader(WANTED)? {
            ColumnReader::ByteArrayColumnReader(r) => self.drain(r, |row, v| {
                let text = v.map(|v| std::str::from_utf8(v.data())).transpose();
                each(text.map_err(|_| self.cell(row, "is not UTF-8 text"))?)
            }),
            ColumnReader::BoolColumnReader(r) => {
                self.drain(r, |_, v| each(v.map(|v| v.to_string()).as_deref()))
            }
            ColumnReader::Int32ColumnReader(r) => {
                self.drain(r, |_, v| each(v.map(|v| v.to_string()).as_deref()))
            }
            ColumnReader::Int64ColumnReader(r) => {
                self.drain(r, |_, v| each(v.map(|v| v.to_string()).as_deref()))
            }
            // Tables with gaps often turn whole numbers into floats.
            ColumnReader::FloatColumnReader(r) => {
                self.drain(r, |_, v| each(v.map(|v| v.to_string()).as_deref()))
            }
            ColumnReader::DoubleColumnReader(r) => {
                self.drain(r, |_, v| each(v.map(|v| v.to_string()).as_deref()))
            }
            _ => Err(self.wrong_type("something else", WANTED)),
        }
    }

    fn numbers(&self) -> Result<Vec<f64>, Error> {
        const WANTED: &str = "numbers";
        let mut numbers = Vec::new();
        let mut push = |row: usize, value: Option<f64>| {
            let value = value.ok_or_else(|| self.cell(row, "is null"))?;
            let finite = feature(value)
                .ok_or_else(|| self.cell(row, &format!("{value} is not a finite number")))?;
            numbers.push(finite);
            Ok(())
        };
        match self.reader(WANTED)? {
            ColumnReader::DoubleColumnReader(r) => self.drain(r, |row, v| push(row, v.copied())),
            ColumnReader::FloatColumnReader(r) => {
                self.drain(r, |row, v| push(row, v.map(|&v| f64::from(v))))
            }
            ColumnReader::Int32ColumnReader(r) => {
                self.drain(r, |row, v| push(row, v.map(|&v| f64::from(v))))
            }
            ColumnReader::Int64ColumnReader(r) => {
                self.drain(r, |row, v| push(row, v.map(|&v| v as f64)))
            }
            ColumnReader::BoolColumnReader(r) => {
                self.drain(r, |row, v| push(row, v.map(|&v| f64::from(u8::from(v)))))
            }
            ColumnReader::ByteArrayColumnReader(_) => Err(self.wrong_type("strings", WANTED)),
            _ => Err(self.wrong_type("something else", WANTED)),
        }?;
        Ok(numbers)
    }

    /// Hands every row of the table and its value, or `None` for null, to `each`.
    fn drain<T: DataType>(
        &self,
        mut reader: ColumnReaderImpl<T>,
        mut each: impl FnMut(usize, Option<&T::T>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let present = self.descriptor.max_def_level();
        let (mut levels, mut values) = (Vec::new(), Vec::new());
        let mut row = self.first;
        loop {
            levels.clear();
            values.clear();
            let (records, _, _) = reader
                .read_records(BATCH, Some(&mut levels), None, &mut values)
                .map_err(|e| broken(self.path, e))?;
            if records == 0 {
                return Ok(());
            }
            // A required column has no levels: all its values are there.
            levels.resize(records, present);
            let mut there = values.iter();
            for &level in &levels {
                let value = if level < present { None } else { there.next() };
                each(row, value)?;
                row += 1;
            }
        }
    }
}

fn broken(path: &Path, error: ParquetError) -> Error {
    Error::content(path, format!("not a readable Parquet file: {error}"))
        .with_hint("a table of features is a CSV or Parquet file")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    use proptest::prelude::*;

    use super::*;
    use crate::dataset::Values;

    /// A column with gaps.
    enum Column<'a> {
        Text(&'a [Option<&'a str>]),
        Double(&'a [Option<f64>]),
        Int(&'a [Option<i64>]),
    }

    /// A file with the same optional columns in each of two row groups.
    fn file(schema: &str, columns: &[Column<'_>]) -> Vec<u8> {
        fn levels<T>(values: &[Option<T>]) -> Vec<i16> {
            values.iter().map(|v| i16::from(v.is_some())).collect()
        }
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let mut bytes = Vec::new();
        let mut writer = SerializedFileWriter::new(&mut bytes, schema, Default::default()).unwrap();
        for _ in 0..2 {
            let mut group = writer.next_row_group().unwrap();
            for values in columns {
                let mut column = group.next_column().unwrap().unwrap();
                match values {
                    Column::Text(v) => {
                        let there: Vec<ByteArray> =
                            v.iter().flatten().map(|&t| ByteArray::from(t)).collect();
                        let typed = column.typed::<ByteArrayType>();
                        typed.write_batch(&there, Some(&levels(v)), None)
                    }
                    Column::Double(v) => {
                        let there: Vec<f64> = v.iter().flatten().copied().collect();
                        column.typed::<DoubleType>().write_batch(&there, Some(&levels(v)), None)
                    }
                    Column::Int(v) => {
                        let there: Vec<i64> = v.iter().flatten().copied().collect();
                        column.typed::<Int64Type>().write_batch(&there, Some(&levels(v)), None)
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

    const SCHEMA: &str = "message m { optional double x; optional binary device (UTF8); \
                          optional int64 label; optional int64 y; }";

    fn good() -> Vec<u8> {
        file(
            SCHEMA,
            &[
                Column::Double(&[Some(1.5), Some(2.5)]),
                Column::Text(&[Some("b"), Some("a")]),
                Column::Int(&[None, Some(7)]),
                Column::Int(&[Some(1), Some(2)]),
            ],
        )
    }

    fn read(bytes: Vec<u8>) -> Result<Dataset, Error> {
        let options = Options { standardise: false, ..Options::default() };
        read_parquet(bytes, Path::new("t.parquet"), &options)
    }

    #[test]
    fn columns_of_any_kind_are_read_in_row_order() {
        let set = read(good()).unwrap();
        assert_eq!(set.values(), &Values::Features([1.5, 1.0, 2.5, 2.0].repeat(2)));
        let labels: Vec<Option<u16>> = (0..4).map(|i| set.label(i)).collect();
        assert_eq!(labels, [None, Some(0), None, Some(0)]);
        assert_eq!(
            (set.classes(), set.domains()),
            (&["7".to_owned()][..], &["a".to_owned(), "b".to_owned()][..])
        );
        assert_eq!((set.domain(0), set.domain(3)), (1, 0));
    }

    #[test]
    fn errors_name_row_and_column() {
        let error = |x: &[Option<f64>], device: &[Option<&str>]| {
            let [label, y] = [[Some(1), Some(2)]; 2];
            let columns =
                [Column::Double(x), Column::Text(device), Column::Int(&label), Column::Int(&y)];
            read(file(SCHEMA, &columns)).unwrap_err().to_string()
        };
        let (numbers, names) = ([Some(1.0), Some(2.0)], [Some("a"), Some("b")]);
        assert_eq!(error(&[Some(1.0), None], &names), "t.parquet: row 2, column x: is null");
        assert_eq!(error(&numbers, &[None, Some("a")]), "t.parquet: row 1, column device: is null");
        assert_eq!(
            error(&[Some(1.0), Some(f64::NAN)], &names),
            "t.parquet: row 2, column x: NaN is not a finite number"
        );
        let text = file(
            "message m { optional int64 label; optional binary x (UTF8); }",
            &[Column::Int(&[Some(1)]), Column::Text(&[Some("a")])],
        );
        let error = read(text).unwrap_err().to_string();
        assert_eq!(error, "t.parquet: column x: holds strings, expected numbers");
    }

    #[test]
    fn a_file_is_told_by_its_first_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table");
        std::fs::write(&path, good()).unwrap();
        assert_eq!(super::super::load(&path, &Options::default()).unwrap().len(), 4);
        std::fs::write(&path, "label,x\n1,2\n").unwrap();
        assert_eq!(super::super::load(&path, &Options::default()).unwrap().len(), 1);
    }

    proptest! {
        #[test]
        fn a_broken_file_does_no_harm(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
            length in any::<prop::sample::Index>(),
        ) {
            let mut bytes = good();
            for (at, byte) in &changes {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            let _ = read(bytes.clone());
            bytes.truncate(length.index(bytes.len()));
            let _ = read(bytes);
        }
    }
}
