//! A table of features in CSV.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use super::series::Time;
use super::{
    Columns, NotNumbers, Options, Table, Wanted, cell_hint, feature, is_missing, start_of, time,
    unusable,
};
use crate::columns::{RowError, csv_reader};
use crate::{Dataset, Error};

/// What some spreadsheets write in front of a table in UTF-8. It would be a part of the first column's name.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The header is row 1, so the first sample is row 2, as a spreadsheet counts.
const FIRST_ROW: usize = 2;

/// A header longer than this is not looked at for its separator.
const LONGEST_HEADER: u64 = 1 << 20;

/// Reads CSV with a header; errors name `path`.
///
/// # Errors
/// Names the row (the header is row 1) and the column.
pub fn read_csv(reader: impl Read, path: &Path, options: &Options) -> Result<Dataset, Error> {
    read(reader, path, &Wanted::All(options))
}

pub(super) fn read(reader: impl Read, path: &Path, wanted: &Wanted<'_>) -> Result<Dataset, Error> {
    let failed = |e: csv::Error| csv_error(e, path);
    let (mut csv, header, separator) = header(reader, path)?;
    let names: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut table = Table::new(Columns::new(&names, path, wanted)?, FIRST_ROW);
    let mut record = csv::StringRecord::new();
    while csv.read_record(&mut record).map_err(failed)? {
        let cell = |at: usize| record.get(at).unwrap_or_default().trim();
        let row = table.labels.len() + table.first_row;
        table.push_label(table.columns.label.map(cell));
        if let Some(at) = table.columns.domain {
            if cell(at).is_empty() {
                let message = format!("row {row}, column {}: is empty", names[at]);
                return Err(Error::content(path, message).with_hint("every row needs its device"));
            }
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
            let number = separator.number(cell(at));
            table
                .values
                .push(number.ok_or_else(|| not_a_number(path, row, names[at], cell(at), wanted))?);
        }
    }
    table.into_dataset(path, wanted)
}

/// What is left to read after the header, the names in it, and what stands between cells.
pub(super) fn header<R: Read>(
    reader: R,
    path: &Path,
) -> Result<(csv::Reader<impl Read + use<R>>, Vec<String>, Separator), Error> {
    let mut reader = BufReader::new(reader);
    let mut first = Vec::new();
    let line = reader.by_ref().take(LONGEST_HEADER).read_until(b'\n', &mut first);
    line.map_err(|e| Error::file(path, e))?;
    if first.starts_with(BYTE_ORDER_MARK) {
        first.drain(..BYTE_ORDER_MARK.len());
    }
    let separator = Separator::of(&first);
    // Cells are trimmed where they are used: a trimmed record is a copy.
    let mut csv = csv_reader()
        .trim(csv::Trim::Headers)
        .delimiter(separator.0)
        .from_reader(std::io::Cursor::new(first).chain(reader));
    let header = csv.headers().map_err(|e| csv_error(e, path))?;
    if header.is_empty() {
        return Err(Error::content(path, "the file is empty")
            .with_hint("the first row must name the columns"));
    }
    let names = header.iter().map(str::to_owned).collect();
    Ok((csv, names, separator))
}

/// What stands between two cells: commas, or what spreadsheets write instead of them, semicolons and tabs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Separator(u8);

impl Separator {
    /// The most frequent one of a header, outside quotes; of two the first here.
    fn of(header: &[u8]) -> Separator {
        let count = |separator: u8| {
            let mut quoted = false;
            let outside = header.iter().filter(|&&byte| {
                quoted ^= byte == b'"';
                byte == separator && !quoted
            });
            outside.count()
        };
        let most = b"\t;,".iter().copied().max_by_key(|&separator| count(separator));
        Separator(most.unwrap_or(b','))
    }

    /// A cell as a number. Where semicolons stand between cells, a comma may be the decimal point.
    fn number(self, cell: &str) -> Option<f64> {
        let number = match cell.parse() {
            Ok(number) => number,
            Err(_) if self.0 == b';' && !cell.contains('.') => {
                cell.replacen(',', ".", 1).parse().ok()?
            }
            Err(_) => return None,
        };
        feature(number)
    }
}

/// The columns that are not numbers in every row.
pub(super) fn not_numbers(reader: impl Read, path: &Path) -> Result<Vec<NotNumbers>, Error> {
    let (mut csv, names, separator) = header(reader, path)?;
    let mut columns: Vec<NotNumbers> = names.into_iter().map(NotNumbers::new).collect();
    let mut record = csv::StringRecord::new();
    let mut row = FIRST_ROW;
    while csv.read_record(&mut record).map_err(|e| csv_error(e, path))? {
        for (column, cell) in columns.iter_mut().zip(&record) {
            let cell = cell.trim();
            match separator.number(cell) {
                Some(_) => column.numbers += 1,
                None if is_missing(cell) => column.see_missing(row),
                None => column.see_other(row, cell),
            }
        }
        row += 1;
    }
    columns.retain(NotNumbers::is_no_feature);
    Ok(columns)
}

fn not_a_number(path: &Path, row: usize, column: &str, cell: &str, wanted: &Wanted<'_>) -> Error {
    let message = match cell.parse::<f64>() {
        Ok(number) => unusable(number, cell),
        Err(_) if cell.is_empty() => "is empty".to_owned(),
        Err(_) => format!("{:?} is not a number", start_of(cell)),
    };
    Error::content(path, format!("row {row}, column {column}: {message}"))
        .with_hint(cell_hint(column, matches!(wanted, Wanted::All(_))))
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
            super::read(
                text.as_bytes(),
                Path::new("t.csv"),
                &Wanted::Features(&columns, None, None),
            )
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
        let found: Vec<_> =
            found.iter().map(|c| (c.name.as_str(), c.missing, c.others > 0)).collect();
        assert_eq!(
            found,
            [("time", 0, true), ("label", 1, false), ("y", 0, true), ("z", 1, false)]
        );
    }

    #[test]
    fn cells_that_cost_a_column_are_named_by_row_and_value() {
        let text = "label,x,y,note\na,1,1,hot\nb,-inf,2,\na,3,,cold\nb,1e300,nan,cold\n";
        let found = not_numbers(text.as_bytes(), Path::new("t.csv")).unwrap();
        let [label, x, y, note] = &found[..] else { panic!("{found:?}") };
        assert_eq!((x.others, x.first_other.clone()), (2, Some((3, "-inf".to_owned()))));
        assert_eq!((y.missing, y.first_missing, y.others), (2, Some(4), 0));
        let is_mostly = [x, y, note, label].map(NotNumbers::is_mostly_numbers);
        assert_eq!(is_mostly, [true, true, false, false]);
    }

    #[test]
    fn a_cell_that_is_no_feature_is_told_with_the_setting_that_leaves_its_column_out() {
        let text = "label,x,y\na,1,inf\n";
        let error = read(text, &Options::default()).unwrap_err();
        let hint = error.hint().unwrap();
        assert!(hint.ends_with("leave the column out: data.ignore = [\"y\"]"), "{hint}");
        // Where a model says which columns are features, none can be left out.
        let columns = ["x", "y"].map(str::to_owned);
        let wanted = Wanted::Features(&columns, None, None);
        let error = super::read(text.as_bytes(), Path::new("t.csv"), &wanted).unwrap_err();
        assert!(!error.hint().unwrap().contains("data.ignore"), "{error:?}");
        let ignored = Options { ignore: vec!["y".to_owned()], ..Options::default() };
        assert_eq!(read(text, &ignored).unwrap().columns(), ["x"]);
    }

    #[test]
    fn what_other_programs_write_for_a_missing_label_is_none() {
        let text = "label,x\nrun,1\nNA,2\nN/A,3\nNULL,4\nNaN,5\n<NA>,6\nna,7\n";
        let set = read(text, &Options::default()).unwrap();
        assert_eq!(set.classes(), ["na", "run"]);
        assert_eq!(labels(&set), [Some(1), None, None, None, None, None, Some(0)]);
    }

    #[test]
    fn a_column_that_differs_by_capital_letters_is_hinted_at() {
        let of = |text: &str, options: &Options| read(text, options).unwrap_err();
        let error = of("Device,Label,x\na,run,1\n", &Options::default());
        assert_eq!(error.to_string(), "t.csv: column \"label\" is missing");
        let hint = "capital letters count: name \"Label\" instead, or rename it; the columns are: Device, Label, x";
        assert_eq!(error.hint(), Some(hint));
        let columns = ["y", "x"].map(str::to_owned);
        let wanted = Wanted::Features(&columns, None, None);
        let error = super::read(&b"z,X\n1,2\n"[..], Path::new("t.csv"), &wanted).unwrap_err();
        assert!(error.hint().unwrap().starts_with("capital letters count: name \"X\""));
    }

    #[test]
    fn columns_without_a_name_are_no_features() {
        // The first as R and pandas number rows, the last two as spreadsheets leave them behind.
        let text = "\"\",device,x,label,,\n1,a,10,run,,\n2,b,20,walk,,\n";
        let set = read(text, &Options::default()).unwrap();
        assert_eq!((features(&set), set.columns()), (&[10., 20.][..], &["x".to_owned()][..]));
        let path = Path::new("t.csv");
        let found = not_numbers(text.as_bytes(), path).unwrap();
        assert_eq!(found.len(), 2 + 3, "{found:?}");
    }

    #[test]
    fn semicolons_and_tabs_are_read_as_spreadsheets_write_them() {
        let commas = "device,label,x,y\na,run,1.5,-2e-1\nb,walk,3,4\n";
        let semicolons = "\u{feff}device;label;x;y\r\na;run;1,5;-2e-1\r\nb;walk;3;4\r\n";
        let expected = read(commas, &Options::default()).unwrap();
        assert_eq!(features(&expected), [1.5, -0.2, 3.0, 4.0]);
        for text in [semicolons.to_owned(), commas.replace(',', "\t"), semicolons.replace(',', ".")]
        {
            let set = read(&text, &Options::default()).unwrap();
            assert_eq!(features(&set), features(&expected), "{text}");
            assert_eq!((set.domains(), set.columns()), (expected.domains(), expected.columns()));
            assert_eq!(labels(&set), labels(&expected));
        }
        // A comma in a name is one, and 1.234,5 or 1,234 between tabs could be either number.
        let set = read("label;\"x, y\";\"z, w\"\na;1;2\n", &Options::default()).unwrap();
        assert_eq!(set.columns(), ["x, y", "z, w"].map(str::to_owned));
        for text in ["label;x\na;1.234,5\n", "label\tx\na\t1,234\n", "label;x\na;1,2,3\n"] {
            let error = read(text, &Options::default()).unwrap_err().to_string();
            assert!(error.ends_with("is not a number"), "{error}");
        }
    }

    #[test]
    fn errors_name_row_and_column() {
        let error = |text: &str| read(text, &Options::default()).unwrap_err().to_string();
        let head = "label,x,y\n1,1,1\n";
        let row = |row: &str| error(&format!("{head}{row}"));
        assert_eq!(row("1,a,1\n"), "t.csv: row 3, column x: \"a\" is not a number");
        assert_eq!(row("1,1,\n"), "t.csv: row 3, column y: is empty");
        assert_eq!(row("1,1,inf\n"), "t.csv: row 3, column y: inf is not a finite number");
        assert_eq!(
            row("1,1e39,1\n"),
            "t.csv: row 3, column x: 1e39 is too large: features go up to 3.4e38"
        );
        assert_eq!(row("1,1\n"), "t.csv: row 3: has 2 columns, expected 3");
        assert_eq!(error(""), "t.csv: the file is empty");
        assert_eq!(error("label,x\n"), "t.csv: has no rows");
        assert_eq!(error("x,y\n1,2\n"), "t.csv: column \"label\" is missing");
        assert_eq!(error("label,x,x\n1,2,3\n"), "t.csv: column \"x\" is there twice");
        assert_eq!(error("label,device\n1,2\n"), "t.csv: has no column of features");
        assert_eq!(
            error("label,device,x\n1,a,3\n1, ,4\n"),
            "t.csv: row 3, column device: is empty"
        );
        assert_eq!(
            error("label,device,domain,x\n1,2,3,4\n"),
            "t.csv: has both a column \"domain\" and a column \"device\""
        );
        let utf8 = read_csv(&b"label,x\n\xff,1\n"[..], Path::new("t.csv"), &Options::default())
            .unwrap_err();
        assert_eq!(utf8.to_string(), "t.csv: row 2: is not UTF-8 text");
    }
}
