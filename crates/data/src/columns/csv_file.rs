//! CSV: how it is read, and what a row can lack.

/// Settings of a reader for a long table whose first row names the columns.
pub fn csv_reader() -> csv::ReaderBuilder {
    let mut reader = csv::ReaderBuilder::new();
    reader.buffer_capacity(1 << 18);
    reader
}

/// A row that is none of its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowError {
    /// The row as a spreadsheet counts: the header is row 1.
    pub row: u64,
    /// What is wrong with the row.
    pub message: String,
    /// What the user can do about it, if there is anything to say.
    pub hint: Option<&'static str>,
}

impl From<&csv::Error> for RowError {
    fn from(error: &csv::Error) -> RowError {
        let row = error.position().map_or(1, |p| p.record() + 1);
        let (message, hint) = match error.kind() {
            csv::ErrorKind::UnequalLengths { expected_len, len, .. } => (
                format!("has {len} columns, expected {expected_len}"),
                Some("every row needs a value in every column"),
            ),
            csv::ErrorKind::Utf8 { .. } => {
                ("is not UTF-8 text".to_owned(), Some("is this a CSV or Parquet file?"))
            }
            _ => (format!("cannot be read: {error}"), None),
        };
        RowError { row, message, hint }
    }
}
