//! A table of features in CSV.

use std::io::Read;
use std::path::Path;

use super::series::Time;
use super::{Columns, Options, Table, Wanted, feature, time};
use crate::columns::{RowError, csv_reader};
use crate::{Dataset, Error};

/// Reads CSV with a header; errors name `path`.
///
/// # Errors
/// Names the row (the header is row 1) and the column.
pub fn read_csv(reader: impl Read, path: &Path, options: &Options) -> Result<Dataset, Error> {
    read(reader, path, &Wanted::All(options))
}

pub(super) fn read(reader: impl Read, path: &Path, wanted: &Wanted<'_>) -> Result<Dataset, Error> {
    let failed = |e: csv::Error| csv_error(e, path);
    let (mut csv, header) = header(reader, path)?;
    let names: Vec<&str> = header.iter().map(String::as_str).collect();
    // The header is row 1, so the first sample is row 2, as a spreadsheet counts.
    let mut table = Table::new(Columns::new(&names, path, wanted)?, 2);
    let mut record = csv::StringRecord::new();
    while csv.read_record(&mut record).map_err(failed)? {
        let cell = |at: usize| record.get(at).unwrap_or_default().trim();
        let row = table.labels.len() + table.first_row;
        table.push_label(table.columns.label.map(cell));
        if let Some(at) = table.columns.domain {
            table.push_domain(cell(at));
        }
        if let Some(at) = table.columns.time {
            let no_time = || {
                let message = format!("row {row}, column {}: {:?} is no time", names[at], cell(at));
                Error::content(path, message).with_hint(time::EXPECTED)
            };
            table.times.push(Time::new(cell(at)).ok_or_else(no_time)?);
        }
        for &at in &table.columns.features {
            let number = cell(at).parse().ok().and_then(feature);
            table.values.push(number.ok_or_else(|| not_a_number(path, row, names[at], cell(at)))?);
        }
    }
    table.into_dataset(path, wanted)
}

/// What is left to read after the header, and the names in it.
pub(super) fn header<R: Read>(
    reader: R,
    path: &Path,
) -> Result<(csv::Reader<R>, Vec<String>), Error> {
    // Cells are trimmed where they are used: a trimmed record is a copy.
    let mut csv = csv_reader().trim(csv::Trim::Headers).from_reader(reader);
    let header = csv.headers().map_err(|e| csv_error(e, path))?;
    if header.is_empty() {
        return Err(Error::content(path, "the file is empty")
            .with_hint("the first row must name the columns"));
    }
    let names = header.iter().map(str::to_owned).collect();
    Ok((csv, names))
}

/// The names of the columns that are not numbers in every row.
pub(super) fn not_numbers(reader: impl Read, path: &Path) -> Result<Vec<String>, Error> {
    let (mut csv, names) = header(reader, path)?;
    let mut are_numbers = vec![true; names.len()];
    let mut record = csv::StringRecord::new();
    while csv.read_record(&mut record).map_err(|e| csv_error(e, path))? {
        for (is_number, cell) in are_numbers.iter_mut().zip(&record) {
            *is_number &= cell.trim().parse().ok().and_then(feature).is_some();
        }
    }
    Ok(names.into_iter().zip(are_numbers).filter(|(_, is)| !is).map(|(name, _)| name).collect())
}

fn not_a_number(path: &Path, row: usize, column: &str, cell: &str) -> Error {
    let message = match cell.parse::<f64>() {
        Ok(_) => format!("{cell} is not a finite number"),
        Err(_) if cell.is_empty() => "is empty".to_owned(),
        Err(_) => {
            let start: String = cell.chars().take(40).collect();
            format!("{start:?} is not a number")
        }
    };
    Error::content(path, format!("row {row}, column {column}: {message}"))
        .with_hint("every column besides the label and the domain is a feature; ignore other ones")
}

fn csv_error(error: csv::Error, path: &Path) -> Error {
    let RowError { row, message, hint } = RowError::from(&error);
    if let csv::ErrorKind::Io(e) = error.into_kind() {
        return Error::file(path, e);
    }
    let error = Error::content(path, format!("row {row}: {message}"));
    match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Values;

    fn read(text: &str, options: &Options) -> Result<Dataset, Error> {
        read_csv(text.as_bytes(), Path::new("t.csv"), options)
    }

    fn features(set: &Dataset) -> &[f64] {
        match set.values() {
            Values::Features(features) => features,
            Values::Pixels(_) => panic!("features"),
        }
    }

    fn labels(set: &Dataset) -> Vec<Option<u16>> {
        (0..set.len()).map(|i| set.label(i)).collect()
    }

    #[test]
    fn rows_keep_their_order_and_find_their_domain() {
        let text = "x,device,label,y\n1,b,run,2\n3,a,,4\n5,b,walk,6\n7,a,-1,8\n9, a ,run,1e1\n";
        let set = read(text, &Options::default()).unwrap();
        assert_eq!(set.domains(), ["a", "b"]);
        assert_eq!(set.classes(), ["run", "walk"]);
        assert_eq!(features(&set), [1., 2., 3., 4., 5., 6., 7., 8., 9., 10.]);
        assert_eq!(labels(&set), [Some(0), None, Some(1), None, Some(0)]);
        let domains: Vec<usize> = (0..5).map(|i| set.domain(i)).collect();
        assert_eq!(domains, [1, 0, 1, 0, 0]);
    }

    #[test]
    fn whole_numbers_are_classes_in_their_order() {
        let set =
            read("label,x\n10,1\n2.0,1\n,1\n2,1\n-1.0,1\nnull,1\n", &Options::default()).unwrap();
        assert_eq!(set.classes(), ["2", "10"]);
        assert_eq!(labels(&set), [Some(1), Some(0), None, Some(0), None, None]);
        assert_eq!(set.domains(), ["t"]);
    }

    #[test]
    fn classes_can_be_given_where_labels_are_missing() {
        let classes = Some(vec!["walk".to_owned(), "run".to_owned()]);
        let options = Options { classes, ..Options::default() };
        let set = read("label,x\nrun,1\n,2\n", &options).unwrap();
        assert_eq!(set.classes(), ["walk", "run"]);
        assert_eq!(labels(&set), [Some(1), None]);
        let none = read("label,x\n,1\n", &options).unwrap();
        assert_eq!(none.classes(), ["walk", "run"]);
        let error = read("label,x\nswim,1\n", &options).unwrap_err();
        assert_eq!(error.to_string(), "t.csv: has the label \"swim\", which is not a class");
    }

    #[test]
    fn columns_can_be_named_and_left_out() {
        let text = "activity,note,device,domain,x\nrun,hot,1,home,2\n";
        let options = Options {
            label: "activity".to_owned(),
            domain: Some("device".to_owned()),
            ignore: vec!["note".to_owned(), "domain".to_owned()],
            ..Options::default()
        };
        let set = read(text, &options).unwrap();
        assert_eq!((set.domains(), features(&set)), (&["1".to_owned()][..], &[2.0][..]));
    }

    #[test]
    fn some_columns_can_be_read_by_name_whatever_else_there_is() {
        let of = |text: &str| {
            let columns = ["y", "x"].map(str::to_owned);
            super::read(text.as_bytes(), Path::new("t.csv"), &Wanted::Features(&columns, None))
        };
        let set = of("x,note,y,label\n1,hot,2,a\n3,,4,\n").unwrap();
        assert_eq!(
            (features(&set), set.columns()),
            (&[2., 1., 4., 3.][..], &["y", "x"].map(str::to_owned)[..])
        );
        assert_eq!((labels(&set), set.classes().len()), (vec![None, None], 0));
        let error = |text: &str| of(text).unwrap_err();
        assert_eq!(error("x,z\n1,2\n").to_string(), "t.csv: column \"y\" is missing");
        assert_eq!(error("x,z\n1,2\n").hint(), Some("the columns are: x, z"));
        assert_eq!(error("z\n1\n").to_string(), "t.csv: columns \"y\", \"x\" are missing");
    }

    #[test]
    fn columns_that_are_not_always_numbers_are_named() {
        let text = "time,label,x,y,z\n12:00,1,1e3,2,\n12:01,,4,inf,5\n";
        let found = not_numbers(text.as_bytes(), Path::new("t.csv")).unwrap();
        assert_eq!(found, ["time", "label", "y", "z"]);
    }

    #[test]
    fn errors_name_row_and_column() {
        let error = |text: &str| read(text, &Options::default()).unwrap_err().to_string();
        let head = "label,x,y\n1,1,1\n";
        let row = |row: &str| error(&format!("{head}{row}"));
        assert_eq!(row("1,a,1\n"), "t.csv: row 3, column x: \"a\" is not a number");
        assert_eq!(row("1,1,\n"), "t.csv: row 3, column y: is empty");
        assert_eq!(row("1,1,inf\n"), "t.csv: row 3, column y: inf is not a finite number");
        assert_eq!(row("1,1e39,1\n"), "t.csv: row 3, column x: 1e39 is not a finite number");
        assert_eq!(row("1,1\n"), "t.csv: row 3: has 2 columns, expected 3");
        assert_eq!(error(""), "t.csv: the file is empty");
        assert_eq!(error("label,x\n"), "t.csv: has no rows");
        assert_eq!(error("x,y\n1,2\n"), "t.csv: column \"label\" is missing");
        assert_eq!(error("label,x,x\n1,2,3\n"), "t.csv: column \"x\" is there twice");
        assert_eq!(error("label,device\n1,2\n"), "t.csv: has no column of features");
        assert_eq!(
            error("label,device,domain,x\n1,2,3,4\n"),
            "t.csv: has both a column \"domain\" and a column \"device\""
        );
        let utf8 = read_csv(&b"label,x\n\xff,1\n"[..], Path::new("t.csv"), &Options::default())
            .unwrap_err();
        assert_eq!(utf8.to_string(), "t.csv: row 2: is not UTF-8 text");
    }
}
