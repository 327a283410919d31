//! Parquet: the columns of a file, group of rows by group of rows, cell by cell.

use std::panic::UnwindSafe;

use parquet::basic::{ConvertedType, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::schema::types::SchemaDescPtr;

const BATCH: usize = 8192;

/// A file that is no Parquet, or corrupt.
#[derive(Debug, thiserror::Error)]
#[error("not a readable Parquet file: {0}")]
pub struct Broken(ParquetError);

impl Broken {
    fn because(message: &str) -> Broken {
        Broken(ParquetError::General(message.to_owned()))
    }
}

/// The kind of values that a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Strings, or bytes that should be.
    Texts,
    /// Values that are true or false.
    Booleans,
    /// Whole numbers that are read as 64-bit integers.
    Integers,
    /// Floating-point numbers, in single or double precision.
    Floats,
    /// Decimal numbers, which have a fixed precision.
    Decimals,
    /// Several values in one row, as lists have them.
    Lists,
    /// Values of other types: 96-bit times and byte strings of fixed length.
    Others,
}

/// A value with the precision that the file gives it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    /// The row has no value in this column.
    Null,
    /// A string, or bytes that should be one.
    Text(&'a [u8]),
    /// A value that is true or false.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A number in single precision.
    Single(f32),
    /// A number in double precision.
    Double(f64),
}

impl Cell<'_> {
    /// The number that it is, true being 1; `None` for null and text.
    pub fn number(self) -> Option<f64> {
        match self {
            Cell::Null | Cell::Text(_) => None,
            Cell::Boolean(value) => Some(f64::from(u8::from(value))),
            Cell::Integer(value) => Some(value as f64),
            Cell::Single(value) => Some(f64::from(value)),
            Cell::Double(value) => Some(value),
        }
    }
}

/// A Parquet file that is open, with the schema of its columns.
pub struct ParquetTable {
    file: SerializedFileReader<bytes::Bytes>,
    schema: SchemaDescPtr,
}

impl ParquetTable {
    /// Opens a file and does `work` with it. What is found to be corrupt, at once or later, is told by `broken`.
    ///
    /// # Errors
    /// Those of `work` and `broken`.
    pub fn with<T, E>(
        bytes: Vec<u8>,
        broken: impl Fn(Broken) -> E + UnwindSafe + Copy,
        work: impl FnOnce(&ParquetTable) -> Result<T, E> + UnwindSafe,
    ) -> Result<T, E> {
        // On some corrupt files the Parquet crate fails an assertion instead of returning an error.
        let read = crate::quiet::caught(move || {
            let file = SerializedFileReader::new(bytes::Bytes::from(bytes));
            let file = file.map_err(|e| broken(Broken(e)))?;
            let schema = file.metadata().file_metadata().schema_descr_ptr();
            work(&ParquetTable { file, schema })
        });
        read.unwrap_or_else(|| Err(broken(Broken::because("it is corrupt"))))
    }

    /// The names of all columns, those inside of others with the names around them.
    pub fn names(&self) -> Vec<String> {
        self.schema.columns().iter().map(|column| column.path().string()).collect()
    }

    /// Returns the number of groups of rows.
    pub fn groups(&self) -> usize {
        self.file.num_row_groups()
    }

    /// Returns what the column at this position holds.
    pub fn kind(&self, column: usize) -> Kind {
        let column = self.schema.column(column);
        if column.max_rep_level() > 0 {
            return Kind::Lists;
        }
        match (column.converted_type(), column.physical_type()) {
            (ConvertedType::DECIMAL, _) => Kind::Decimals,
            (_, Type::BYTE_ARRAY) => Kind::Texts,
            (_, Type::BOOLEAN) => Kind::Booleans,
            (_, Type::INT32 | Type::INT64) => Kind::Integers,
            (_, Type::FLOAT | Type::DOUBLE) => Kind::Floats,
            (_, Type::INT96 | Type::FIXED_LEN_BYTE_ARRAY) => Kind::Others,
        }
    }

    /// Hands every cell that a column has in a group of rows to `each`, with its row in the group. A column of [`Kind::Lists`] or [`Kind::Others`] has no cells.
    ///
    /// # Errors
    /// Those of `each`, and of `broken` where the file is corrupt, which it also is if the column has more or fewer cells than the
    /// group has rows.
    pub fn read<E>(
        &self,
        group: usize,
        column: usize,
        broken: impl Fn(Broken) -> E,
        mut each: impl FnMut(usize, Cell<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let group = self.file.get_row_group(group).map_err(|e| broken(Broken(e)))?;
        let present = self.schema.column(column).max_def_level();
        let mut rows = 0;
        let each = |cell: Cell<'_>| {
            rows += 1;
            each(rows - 1, cell)
        };
        let reader = group.get_column_reader(column).map_err(|e| broken(Broken(e)))?;
        match reader {
            ColumnReader::ByteArrayColumnReader(r) => {
                drain(r, present, &broken, |v: &ByteArray| Cell::Text(v.data()), each)
            }
            ColumnReader::BoolColumnReader(r) => {
                drain(r, present, &broken, |&v| Cell::Boolean(v), each)
            }
            ColumnReader::Int32ColumnReader(r) => {
                drain(r, present, &broken, |&v| Cell::Integer(i64::from(v)), each)
            }
            ColumnReader::Int64ColumnReader(r) => {
                drain(r, present, &broken, |&v| Cell::Integer(v), each)
            }
            ColumnReader::FloatColumnReader(r) => {
                drain(r, present, &broken, |&v| Cell::Single(v), each)
            }
            ColumnReader::DoubleColumnReader(r) => {
                drain(r, present, &broken, |&v| Cell::Double(v), each)
            }
            _ => return Ok(()),
        }?;
        match i64::try_from(rows) == Ok(group.metadata().num_rows()) {
            true => Ok(()),
            false => Err(broken(Broken::because("the columns have different lengths"))),
        }
    }
}

/// Hands every value of a column to `each`.
fn drain<T: DataType, E>(
    mut reader: ColumnReaderImpl<T>,
    present: i16,
    broken: impl Fn(Broken) -> E,
    cell: impl Fn(&T::T) -> Cell<'_>,
    mut each: impl FnMut(Cell<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    loop {
        levels.clear();
        values.clear();
        let read = reader.read_records(BATCH, Some(&mut levels), None, &mut values);
        let (records, _, _) = read.map_err(|e| broken(Broken(e)))?;
        if records == 0 {
            return Ok(());
        }
        // A required column has no levels: all its values are there.
        levels.resize(records, present);
        let mut there = values.iter();
        for &level in &levels {
            let value = if level < present { None } else { there.next() };
            each(value.map_or(Cell::Null, &cell))?;
        }
    }
}
