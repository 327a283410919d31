//! A table of features in Parquet.

use std::path::Path;

use super::series::Time;
use super::{Columns, NotNumbers, Options, Table, Wanted, cell_hint, feature, time, unusable};
use crate::columns::{Broken, Cell, Kind, ParquetTable};
use crate::{Dataset, Error};

/// Reads Parquet: labels and domains as strings or whole numbers, features as any kind of number;
/// errors name `path`.
///
/// # Errors
/// Names the row (the first is 1: Parquet has no header row) and the column.
pub fn read_parquet(bytes: Vec<u8>, path: &Path, options: &Options) -> Result<Dataset, Error> {
    read(bytes, path, &Wanted::All(options))
}

pub(super) fn read(bytes: Vec<u8>, path: &Path, wanted: &Wanted<'_>) -> Result<Dataset, Error> {
    ParquetTable::with(bytes, |e| broken(path, &e), |file| rows(file, path, wanted))
}

/// Returns the names of all columns, in the order of the file.
pub(super) fn names(bytes: Vec<u8>, path: &Path) -> Result<Vec<String>, Error> {
    ParquetTable::with(bytes, |e| broken(path, &e), |file| Ok(file.names()))
}

/// The columns that are not numbers in every row.
pub(super) fn not_numbers(bytes: Vec<u8>, path: &Path) -> Result<Vec<NotNumbers>, Error> {
    let look = |file: &ParquetTable| {
        let names = file.names();
        let mut columns: Vec<NotNumbers> = names.iter().cloned().map(NotNumbers::new).collect();
        for (at, column) in columns.iter_mut().enumerate() {
            for group in 0..file.groups() {
                let first = column.numbers + column.missing + column.others;
                let part = Part { file, group, name: &names[at], at, path, first, options: true };
                part.look_at(column)?;
            }
        }
        columns.retain(NotNumbers::is_no_feature);
        Ok(columns)
    };
    ParquetTable::with(bytes, |e| broken(path, &e), look)
}

fn rows(file: &ParquetTable, path: &Path, wanted: &Wanted<'_>) -> Result<Dataset, Error> {
    let names = file.names();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut table = Table::new(Columns::new(&names, path, wanted)?, 1);
    for group in 0..file.groups() {
        let first = table.labels.len();
        let options = matches!(wanted, Wanted::All(_));
        let part = |at: usize| Part { file, group, name: names[at], at, path, first, options };
        if let Some(at) = table.columns.label {
            part(at).texts(|_, text| {
                table.push_label(text);
                Ok(())
            })?;
        }
        if let Some(at) = table.columns.domain {
            let column = part(at);
            column.texts(|row, text| {
                table.push_domain(text.ok_or_else(|| column.cell(row, "is null"))?);
                Ok(())
            })?;
        }
        if let Some(at) = table.columns.time {
            let column = part(at);
            column.texts(|row, text| {
                let text = text.ok_or_else(|| column.cell(row, "is null"))?;
                let no_time = || column.cell(row, &format!("{text:?} is no time"));
                let time = Time::new(text).ok_or_else(|| no_time().with_hint(time::EXPECTED))?;
                table.times.push(time);
                Ok(())
            })?;
        }
        let features = table.columns.features.iter().map(|&at| part(at).numbers());
        let features: Vec<Vec<f64>> = features.collect::<Result<_, _>>()?;
        let rows = features.first().map_or(0, Vec::len);
        (table.labels.len()..first + rows).for_each(|_| table.push_label(None));
        table.values.reserve(rows * features.len());
        for row in 0..rows {
            table.values.extend(features.iter().map(|column| column[row]));
        }
    }
    table.into_dataset(path, wanted)
}

/// One column of one group of rows.
struct Part<'a> {
    file: &'a ParquetTable,
    group: usize,
    name: &'a str,
    at: usize,
    path: &'a Path,
    /// The number of rows in the groups before this one.
    first: usize,
    /// Whether options say which columns are features.
    options: bool,
}

impl Part<'_> {
    /// Hands every cell to `each`, with its row in the table.
    fn read(
        &self,
        mut each: impl FnMut(usize, Cell<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let broken = |e| broken(self.path, &e);
        self.file.read(self.group, self.at, broken, |row, cell| each(self.first + row, cell))
    }

    fn wrong_type(&self, found: &str, wanted: &str) -> Error {
        let message = format!("column {}: holds {found}, expected {wanted}", self.name);
        Error::content(self.path, message)
    }

    /// The same error with what to do about a column that cannot be a feature.
    fn no_feature(&self, error: Error) -> Error {
        error.with_hint(cell_hint(self.name, self.options))
    }

    /// An error in a cell; rows are counted from 1.
    fn cell(&self, row: usize, message: &str) -> Error {
        let message = format!("row {}, column {}: {message}", row + 1, self.name);
        Error::content(self.path, message)
    }

    /// Hands every text, or number as text, to `each`, with its row; `None` for null.
    fn texts(
        &self,
        mut each: impl FnMut(usize, Option<&str>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let wrong = |found| Err(self.wrong_type(found, "strings or whole numbers"));
        match self.file.kind(self.at) {
            Kind::Lists => return wrong("lists"),
            Kind::Decimals => return wrong("decimals"),
            Kind::Others => return wrong("something else"),
            // Tables with gaps often turn whole numbers into floats.
            Kind::Texts | Kind::Booleans | Kind::Integers | Kind::Floats => {}
        }
        self.read(|row, cell| match cell {
            Cell::Null => each(row, None),
            Cell::Text(bytes) => {
                let text = std::str::from_utf8(bytes);
                each(row, Some(text.map_err(|_| self.cell(row, "is not UTF-8 text"))?))
            }
            Cell::Boolean(value) => each(row, Some(&value.to_string())),
            Cell::Integer(value) => each(row, Some(&value.to_string())),
            Cell::Single(value) => each(row, Some(&value.to_string())),
            Cell::Double(value) => each(row, Some(&value.to_string())),
        })
    }

    /// Counts in `column` the rows in which nothing stands, and notes whether there is something else than numbers.
    fn look_at(&self, column: &mut NotNumbers) -> Result<(), Error> {
        if !matches!(self.file.kind(self.at), Kind::Booleans | Kind::Integers | Kind::Floats) {
            column.others = 1;
            return Ok(());
        }
        self.read(|row, cell| {
            match cell.number() {
                Some(number) if feature(number).is_some() => column.numbers += 1,
                Some(number) if !number.is_nan() => column.see_other(row + 1, &number.to_string()),
                _ => column.see_missing(row + 1),
            }
            Ok(())
        })
    }

    fn numbers(&self) -> Result<Vec<f64>, Error> {
        let wrong = |found| Err(self.no_feature(self.wrong_type(found, "numbers")));
        match self.file.kind(self.at) {
            Kind::Lists => return wrong("lists"),
            Kind::Decimals => return wrong("decimals"),
            Kind::Texts => return wrong("strings"),
            Kind::Others => return wrong("something else"),
            Kind::Booleans | Kind::Integers | Kind::Floats => {}
        }
        let mut numbers = Vec::new();
        self.read(|row, cell| {
            let wrong = |message: &str| self.no_feature(self.cell(row, message));
            let value = cell.number().ok_or_else(|| wrong("is null"))?;
            let why = || wrong(&unusable(value, &value.to_string()));
            numbers.push(feature(value).ok_or_else(why)?);
            Ok(())
        })?;
        Ok(numbers)
    }
}

fn broken(path: &Path, error: &Broken) -> Error {
    Error::content(path, error.to_string())
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

    /// A column for tests, in which rows may have no value.
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
        read_parquet(bytes, Path::new("t.parquet"), &Options::default())
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
        assert_eq!(set.columns(), ["x", "y"]);
    }

    #[test]
    fn some_columns_can_be_read_by_name() {
        let columns = ["y", "x"].map(str::to_owned);
        let set =
            super::read(good(), Path::new("t.parquet"), &Wanted::Features(&columns, None, None))
                .unwrap();
        assert_eq!(set.values(), &Values::Features([1.0, 1.5, 2.0, 2.5].repeat(2)));
        assert_eq!((set.len(), set.columns()), (4, &columns[..]));
        assert!((0..4).all(|sample| set.label(sample).is_none()));
    }

    #[test]
    fn readings_are_cut_into_windows_across_groups_of_rows() {
        let windows = Some(super::super::Windows { length: 2, stride: 2 });
        let by = |time: &str| {
            let options = Options { windows, time: Some(time.to_owned()), ..Options::default() };
            read_parquet(good(), Path::new("t.parquet"), &options)
        };
        let set = by("y").unwrap();
        assert_eq!(set.values(), &Values::Features(vec![1.5, 1.5, 2.5, 2.5]));
        assert_eq!(
            (set.label(0), set.label(1), set.columns()),
            (None, Some(0), &["x".to_owned()][..])
        );
        let times: Vec<_> = set.beginnings().iter().map(|b| (b.row, b.time.as_deref())).collect();
        assert_eq!(times, [(0, Some("1")), (1, Some("2"))]);
        let error = by("device").unwrap_err().to_string();
        assert_eq!(error, "t.parquet: row 1, column device: \"b\" is no time");
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
