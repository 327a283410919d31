//! Sensor data: a table of features in CSV, plain or gzip, or Parquet, one sample a row; or of readings in the order of time, from which
//! windows are cut ([`Series`]).
//!
//! One column holds the labels (strings or whole numbers; empty, null, NA or −1 where there is none),
//! one may hold the domain (the device, say; then samples are dealt by it), and every other column that has a name is a feature and
//! must be a number. Rows keep their order: sample 0 is the first row.
//!
//! Features are kept as they are in the table; [`Scaler`] scales them once it is known which device holds which rows.

mod csv_file;
mod own_scale;
#[cfg(feature = "parquet")]
mod parquet_file;
mod roles;
mod scale;
mod series;
mod time;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

pub use csv_file::read_csv;
pub use own_scale::{Origin, OwnScale};
#[cfg(feature = "parquet")]
pub use parquet_file::read_parquet;
pub use scale::{Scale, Scaler};
pub use series::{Beginning, Series, Windows};

use self::roles::Columns;
use self::series::Time;
use crate::columns::PARQUET;
use crate::dataset::Values;
use crate::gzip::unpacked;
use crate::{Class, Dataset, Error, Shape};

/// The options by which a table is read.
#[derive(Debug, Clone)]
pub struct Options {
    /// The column of labels. Default: `label`.
    pub label: String,
    /// The column that gives the domain. Left out: `domain` or `device` where the table has one,
    /// else every row is of one domain, named after the file.
    pub domain: Option<String>,
    /// The columns that are neither label, domain nor feature; they are left out.
    pub ignore: Vec<String>,
    /// All classes in their order, where the table need not have a label of each. Left out: those that it has.
    pub classes: Option<Vec<String>>,
    /// Rows are readings in the order of time, and samples are windows of them. Left out: every row is a sample.
    pub windows: Option<Windows>,
    /// The column of times, for windows. Left out: `time` or `timestamp` where the table has one, else no reading is missing.
    pub time: Option<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            label: "label".to_owned(),
            domain: None,
            ignore: Vec::new(),
            classes: None,
            windows: None,
            time: None,
        }
    }
}

/// Reads a table; that it is Parquet is told by its first bytes.
///
/// # Errors
/// Names the row (as a spreadsheet counts, the header being row 1) and the column.
pub fn load(path: &Path, options: &Options) -> Result<Dataset, Error> {
    read(path, &Wanted::All(options))
}

/// Where the labels of a table are whose features and classes are known.
#[derive(Debug, Clone, Copy)]
pub struct Labels<'a> {
    /// Their column. Left out: `label`, where the table has one that is no feature.
    pub column: Option<&'a str>,
    /// The names of all classes in their order, which is that of their indices.
    pub classes: &'a [String],
}

/// Reads these columns of a table as features, in this order, whatever other columns it has, or cuts windows of them as others of the series
/// were cut. Unless it is said where labels are, no sample has one.
///
/// # Errors
/// As [`load`]; names the columns that are missing.
pub fn load_columns(
    path: &Path,
    columns: &[String],
    series: Option<&Series>,
    labels: Option<Labels<'_>>,
) -> Result<Dataset, Error> {
    read(path, &Wanted::Features(columns, series, labels))
}

fn read(path: &Path, wanted: &Wanted<'_>) -> Result<Dataset, Error> {
    match open(path)? {
        Opened::Csv(reader) => csv_file::read(reader, path, wanted),
        #[cfg(feature = "parquet")]
        Opened::Parquet(bytes) => parquet_file::read(bytes, path, wanted),
    }
}

/// What is wanted of a table.
enum Wanted<'a> {
    /// Labels, domains, and every other column as a feature.
    All(&'a Options),
    /// These columns as features, and of the others those that say what belongs together, and perhaps the labels.
    Features(&'a [String], Option<&'a Series>, Option<Labels<'a>>),
}

impl Wanted<'_> {
    /// All classes in their order, where they are given.
    fn classes(&self) -> Option<&[String]> {
        match self {
            Wanted::All(options) => options.classes.as_deref(),
            Wanted::Features(_, _, labels) => labels.map(|labels| labels.classes),
        }
    }

    /// How rows are cut into windows, where they are.
    fn windows(&self) -> Option<Windows> {
        match self {
            Wanted::All(options) => options.windows,
            Wanted::Features(_, series, _) => series.map(|series| series.windows),
        }
    }
}

/// The names of a table's features, in their order.
///
/// # Errors
/// A table without a header that can be read, or without the columns that the options name.
pub fn columns(path: &Path, options: &Options) -> Result<Vec<String>, Error> {
    let names = match open(path)? {
        Opened::Csv(reader) => csv_file::header(reader, path)?.1,
        #[cfg(feature = "parquet")]
        Opened::Parquet(bytes) => parquet_file::names(bytes, path)?,
    };
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Ok(Columns::new(&names, path, &Wanted::All(options))?.feature_names)
}

/// A column that cannot be a feature, because not every row has a number there, or because it has no name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotNumbers {
    /// Empty where it has none, as the numbers of rows that some programs write.
    pub name: String,
    /// The rows in which nothing stands there.
    pub missing: usize,
    /// The first row in which nothing stands there, as errors count rows.
    pub first_missing: Option<usize>,
    /// The rows with something that is no number, or none that training can use.
    pub others: usize,
    /// The first of these rows, as errors count rows, and what stands there.
    pub first_other: Option<(usize, String)>,
    /// The rows with a number.
    pub numbers: usize,
}

impl NotNumbers {
    fn new(name: String) -> NotNumbers {
        let (first_missing, first_other) = (None, None);
        NotNumbers { name, missing: 0, first_missing, others: 0, first_other, numbers: 0 }
    }

    /// Whether it is a column of numbers, but for some cells that may be mistakes.
    pub fn is_mostly_numbers(&self) -> bool {
        self.numbers >= self.others
    }

    fn see_missing(&mut self, row: usize) {
        self.missing += 1;
        self.first_missing.get_or_insert(row);
    }

    fn see_other(&mut self, row: usize, cell: &str) {
        self.others += 1;
        self.first_other.get_or_insert_with(|| (row, start_of(cell)));
    }

    fn is_no_feature(&self) -> bool {
        self.name.is_empty() || self.missing > 0 || self.others > 0
    }
}

/// The columns that cannot be features, in their order.
///
/// # Errors
/// A table that cannot be read.
pub fn not_numbers(path: &Path) -> Result<Vec<NotNumbers>, Error> {
    match open(path)? {
        Opened::Csv(reader) => csv_file::not_numbers(reader, path),
        #[cfg(feature = "parquet")]
        Opened::Parquet(bytes) => parquet_file::not_numbers(bytes, path),
    }
}

/// A table whose kind is known.
enum Opened {
    Csv(Box<dyn Read>),
    #[cfg(feature = "parquet")]
    Parquet(Vec<u8>),
}

fn open(path: &Path) -> Result<Opened, Error> {
    let failed = |e| Error::file(path, e);
    let mut file = BufReader::new(File::open(path).map_err(failed)?);
    let mut start = Vec::with_capacity(PARQUET.len());
    file.by_ref().take(PARQUET.len() as u64).read_to_end(&mut start).map_err(failed)?;
    if start != PARQUET {
        let text = unpacked(std::io::Cursor::new(start).chain(file)).map_err(failed)?;
        return Ok(Opened::Csv(text));
    }
    #[cfg(not(feature = "parquet"))]
    return Err(Error::content(path, "this build does not read Parquet")
        .with_hint("save the table as CSV, or build with the feature `parquet`"));
    #[cfg(feature = "parquet")]
    {
        file.read_to_end(&mut start).map_err(failed)?;
        Ok(Opened::Parquet(start))
    }
}

/// Every distinct name once, numbered in order of appearance.
#[derive(Default)]
struct Names(BTreeMap<String, usize>);

impl Names {
    fn number(&mut self, name: &str) -> usize {
        if let Some(&known) = self.0.get(name) {
            return known;
        }
        let number = self.0.len();
        self.0.insert(name.to_owned(), number);
        number
    }

    fn sorted(&self, less: impl Fn(&str, &str) -> std::cmp::Ordering) -> Vec<(String, usize)> {
        let mut names: Vec<(String, usize)> = self.0.clone().into_iter().collect();
        names.sort_by(|a, b| less(&a.0, &b.0));
        names
    }
}

/// The rows of a table that have been read so far.
struct Table {
    columns: Columns,
    classes: Names,
    labels: Vec<Option<usize>>,
    domains: Names,
    domain_of: Vec<usize>,
    times: Vec<Time>,
    /// The features of all rows, row by row.
    values: Vec<f64>,
    /// The number of the first row for the user.
    first_row: usize,
}

impl Table {
    fn new(columns: Columns, first_row: usize) -> Table {
        Table {
            columns,
            first_row,
            times: Vec::new(),
            classes: Names::default(),
            labels: Vec::new(),
            domains: Names::default(),
            domain_of: Vec::new(),
            values: Vec::new(),
        }
    }

    fn push_label(&mut self, text: Option<&str>) {
        let label = text.and_then(class_name).map(|name| self.classes.number(&name));
        self.labels.push(label);
    }

    fn push_domain(&mut self, text: &str) {
        let domain = self.domains.number(text);
        self.domain_of.push(domain);
    }

    /// These classes with the numbers that the table gave them; it may have no other.
    fn given_classes(
        &mut self,
        given: &[String],
        path: &Path,
    ) -> Result<Vec<(String, usize)>, Error> {
        let numbered: Vec<(String, usize)> =
            given.iter().map(|name| (name.clone(), self.classes.number(name))).collect();
        if self.classes.0.len() > given.len() {
            let other = self.classes.sorted(as_numbers_first).into_iter().map(|(name, _)| name);
            let other = other.into_iter().find(|name| !given.contains(name)).unwrap_or_default();
            return Err(Error::content(
                path,
                format!("has the label {other:?}, which is not a class"),
            )
            .with_hint(format!("the classes are: {}", given.join(", "))));
        }
        Ok(numbered)
    }

    fn into_dataset(mut self, path: &Path, wanted: &Wanted<'_>) -> Result<Dataset, Error> {
        let rows = self.labels.len();
        if rows == 0 {
            return Err(Error::content(path, "has no rows"));
        }
        if self.columns.domain.is_none() {
            let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
            self.domains.number(&name.unwrap_or_else(|| "table".to_owned()));
            self.domain_of = vec![0; rows];
        }
        if self.classes.0.len().max(self.domains.0.len()) > usize::from(Class::MAX) {
            let message = format!("has more than {} labels or domains", Class::MAX);
            return Err(Error::content(path, message)
                .with_hint("is this the right column of labels? there should be few classes"));
        }
        let classes = match wanted.classes() {
            Some(given) => self.given_classes(given, path)?,
            None => self.classes.sorted(as_numbers_first),
        };
        let channels = self.columns.features.len();
        let mut shape = Shape { channels: 1, height: 1, width: channels };
        let mut beginnings = Vec::new();
        if let Some(windows) = wanted.windows() {
            shape = Shape { channels, height: 1, width: windows.length };
            (self, beginnings) = self.cut(windows, path)?;
        }
        let (samples, numbers) = (self.labels.len(), shape.len());
        let mut class_of = vec![0; classes.len()];
        for (class, &(_, number)) in classes.iter().enumerate() {
            class_of[number] = class as Class;
        }
        let classes: Vec<String> = classes.into_iter().map(|(name, _)| name).collect();

        // A data set is made of one domain at a time; `place` brings the samples back to their order.
        let mut joined: Option<Dataset> = None;
        let mut place = vec![0; samples];
        let mut placed = 0;
        for (domain, number) in self.domains.sorted(as_numbers_first) {
            let (mut features, mut labels) = (Vec::new(), Vec::new());
            for sample in (0..samples).filter(|&sample| self.domain_of[sample] == number) {
                features.extend_from_slice(&self.values[sample * numbers..][..numbers]);
                labels.push(self.labels[sample].map(|number| class_of[number]));
                place[sample] = placed;
                placed += 1;
            }
            let values = Values::Features(features);
            let set = Dataset::new(domain, shape, values, labels, classes.clone())?;
            joined = Some(match joined {
                Some(all) => all.join(set)?,
                None => set,
            });
        }
        let joined = joined.ok_or_else(|| Error::content(path, "has no rows"))?;
        let joined = if joined.domains().len() > 1 { joined.select(&place) } else { joined };
        let Columns { domain_name, time_name, feature_names, .. } = self.columns;
        let series = wanted.windows().map(|windows| Series {
            windows,
            time: time_name,
            device: domain_name.clone(),
        });
        let dataset = joined.with_domain_column(domain_name).with_columns(feature_names);
        Ok(match series {
            Some(series) => dataset.with_series(series, beginnings),
            None => dataset,
        })
    }
}

/// The class that a label names. A whole number is the same class however it is written: tables with
/// gaps often turn 3 into 3.0.
fn class_name(text: &str) -> Option<String> {
    let text = text.trim();
    match text.parse::<f64>() {
        Ok(-1.0) => None,
        Ok(number) if number.fract() == 0.0 && number.abs() < 1e15 => {
            Some((number as i64).to_string())
        }
        _ if is_missing(text) => None,
        _ => Some(text.to_owned()),
    }
}

/// Whether a cell has nothing in it, as the programs that write tables put it.
fn is_missing(cell: &str) -> bool {
    matches!(cell, "" | "null" | "NULL" | "NA" | "N/A" | "<NA>")
        || cell.parse().is_ok_and(f64::is_nan)
}

/// Whole numbers by size, then everything else by the alphabet.
fn as_numbers_first(a: &str, b: &str) -> std::cmp::Ordering {
    let key = |text: &str| (text.parse::<i64>().map_or((1, 0), |n| (0, n)), text.to_owned());
    key(a).cmp(&key(b))
}

/// As much of a cell as an error shows.
fn start_of(cell: &str) -> String {
    cell.chars().take(40).collect()
}

/// Says why a number cannot be a feature.
fn unusable(number: f64, shown: &str) -> String {
    match number.is_finite() {
        true => format!("{shown} is too large: features go up to {:.1e}", f32::MAX),
        false => format!("{shown} is not a finite number"),
    }
}

/// Says what to do about a cell that cannot be a feature, and whether the columns that are features can be chosen.
fn cell_hint(column: &str, can_choose: bool) -> String {
    match can_choose {
        true => format!(
            "correct the cell or remove its row, or leave the column out: data.ignore = [{column:?}]"
        ),
        false => "correct the cell or remove its row".to_owned(),
    }
}

/// A number that a feature may be; f32 is what training takes.
fn feature(number: f64) -> Option<f64> {
    (number as f32).is_finite().then_some(number)
}
