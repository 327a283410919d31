//! A configuration for data of one's own, which runs as it is: the template with what a table or a folder of pictures itself tells.

mod classes;

use std::collections::BTreeSet;
use std::path::Path;

use stlf_data::features::{NotNumbers, Series};
use stlf_data::partition::Scheme;
use stlf_data::words::but_for_case;
use stlf_data::{Dataset, features};
use stlf_planning::number_format::counted;

use self::classes::{too_many_classes, unequal_classes};
use crate::fleet::check_names;
use crate::{Error, TEMPLATE, Wrong};

/// What columns of devices and of times are called where nobody names one.
const DEVICES: [&str; 2] = ["device", "domain"];
const TIMES: [&str; 2] = ["time", "timestamp"];

/// Keys of a section with their values.
type Keys = Vec<(&'static str, String)>;

/// A configuration, and what was decided in it that the user should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The text of the configuration file.
    pub text: String,
    /// What the user should know of the choices, one sentence each.
    pub told: Vec<String>,
}

/// Writes the template for a table of features, or of readings from which windows are cut. Columns that are not numbers are ignored,
/// besides those of labels, devices and, for windows, times, which the options name; all others of the options are as they are.
///
/// # Errors
/// A table that cannot be read, that has no such column, or in which nothing has a label.
pub fn for_table(table: &Path, mut options: features::Options) -> Result<Written, Error> {
    let is_role = |name: &str| {
        let is = |named: &Option<String>, usual: [&str; 2]| match named {
            Some(named) => name == named,
            None => usual.contains(&name),
        };
        let is_time = options.windows.is_some() && is(&options.time, TIMES);
        name == options.label || is(&options.domain, DEVICES) || is_time
    };
    let (unused, nameless): (Vec<NotNumbers>, Vec<_>) = features::not_numbers(table)?
        .into_iter()
        .filter(|column| !is_role(&column.name))
        .partition(|column| !column.name.is_empty());
    let all = features::columns(table, &options)?;
    if all.len() == unused.len() {
        return Err(Error::Setting {
            path: table.to_owned(),
            line: None,
            what: Wrong::NoNumbers(unused),
            hint: Some(
                "fill in empty cells or remove their rows, and replace words by numbers".to_owned(),
            ),
        });
    }
    options.ignore = unused.iter().map(|column| column.name.clone()).collect();
    let label = &options.label;
    let data = features::load(table, &options)?;
    let wrong = |what: Wrong, hint: &str| Error::Setting {
        path: table.to_owned(),
        line: None,
        what,
        hint: Some(format!("{hint}; --label names another column")),
    };
    match data.classes() {
        [] => {
            let what = Wrong::NoLabel { column: label.clone() };
            return Err(wrong(what, "some devices need labels"));
        }
        [class] => {
            let what = Wrong::OneClass { column: label.clone(), class: class.clone() };
            let hint = "there should be two classes or more";
            return Err(match without_label(&data) {
                0 => wrong(what, hint),
                _ => wrong(what, &format!("{hint}, and {NO_LABEL} is none")),
            });
        }
        _ => {}
    }
    if data.domain_column().is_some() {
        check_names(data.domains().iter().map(String::as_str), table)?;
    }
    let (partition, mut told) = partition(&data, table)?;
    let others = || data.columns().iter().chain(unused.iter().map(|c| &c.name)).map(String::as_str);
    if data.domain_column().is_none() {
        told.extend(in_capitals(others(), DEVICES, "the one of devices", "--device"));
    }
    told.extend(data.series().map(|series| told_of(series, &data)));
    if data.series().is_some_and(|series| series.time.is_none()) {
        told.extend(in_capitals(others(), TIMES, "the one of times", "--time"));
    }
    told.extend(some_without_label(&data));
    let quantity = too_many_classes(&data, label);
    // Of values of a quantity, shares mean nothing.
    let unequal = if quantity.is_none() { unequal_classes(&data) } else { None };
    told.extend(quantity);
    told.extend(unequal.clone());
    if !unused.is_empty() {
        let names = list(&unused);
        told.push(format!("Not used, because they are not numbers in every row: {names}."));
        told.extend(how_to_use(&unused, table));
    }
    if !nameless.is_empty() {
        let (columns, have) = match nameless.len() {
            1 => ("the column", "has"),
            _ => ("the columns", "have"),
        };
        told.push(format!("Not used: {columns} that {have} no name."));
    }
    let mut lines = vec![
        ("[data]", "features", quoted(&table.to_string_lossy())),
        ("[data]", "label", quoted(label)),
        ("[training]", "model", quoted(if data.series().is_some() { "cnn" } else { "mlp" })),
    ];
    if unequal.is_some() {
        lines.push(("[training]", "balanced", "false".to_owned()));
    }
    if let Some(Series { windows, time, .. }) = data.series() {
        lines.push(("[data]", "window", windows.length.to_string()));
        lines.push(("[data]", "stride", windows.stride.to_string()));
        lines.extend(time.iter().map(|column| ("[data]", "time", quoted(column))));
    }
    lines.extend(data.domain_column().map(|column| ("[data]", "device", quoted(column))));
    if !options.ignore.is_empty() {
        lines.push(("[data]", "ignore", toml::Value::from(options.ignore).to_string()));
    }
    lines.extend(partition.into_iter().map(|(key, value)| ("[partition]", key, value)));
    Ok(Written { text: filled(&lines), told })
}

/// Columns by name; of those that would be numbers, in how many rows they are not.
pub(crate) fn list(columns: &[NotNumbers]) -> String {
    let and = |rows: usize| match rows - 1 {
        0 => String::new(),
        others => format!(" and {}", counted(others, "other row")),
    };
    let named = columns.iter().map(|column| match (&column.first_other, column.first_missing) {
        (Some((row, cell)), _) if column.is_mostly_numbers() => {
            format!("{} ({cell:?} in row {row}{})", column.name, and(column.others))
        }
        (None, Some(row)) => {
            format!("{} (empty in row {row}{})", column.name, and(column.missing))
        }
        _ => column.name.clone(),
    });
    named.collect::<Vec<_>>().join(", ")
}

/// Says how to use columns that are numbers but for a few cells.
fn how_to_use(unused: &[NotNumbers], table: &Path) -> Option<String> {
    unused.iter().any(NotNumbers::is_mostly_numbers).then(|| {
        format!(
            "To use columns that are numbers but for the cells named, correct these in {} or remove their rows, and write the configuration again.",
            table.display()
        )
    })
}

/// Says that a column which nobody named is not looked at, because its name is the usual one but for capital letters.
fn in_capitals<'a>(
    columns: impl Iterator<Item = &'a str>,
    usual: [&str; 2],
    what: &str,
    option: &str,
) -> Option<String> {
    let columns: Vec<&str> = columns.collect();
    let found = usual.iter().find_map(|name| but_for_case(name, columns.iter().copied()))?;
    let [one, other] = usual;
    Some(format!(
        "Column {found} is not taken for {what}, since only {one} or {other} in small letters is: {option} {found} names it."
    ))
}

/// Returns a text as TOML writes it.
fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// Writes the template for a folder of pictures `device/class/picture`: each folder in it is a device. Square
/// pictures of one size that the cnn takes stay as they are; others are resized.
///
/// # Errors
/// A folder that cannot be read, with one device only, or in which nothing has a label.
#[cfg(feature = "images")]
pub fn for_pictures(folder: &Path) -> Result<Written, Error> {
    use stlf_data::Shape;
    use stlf_data::image_folder::{Survey, survey};
    use stlf_learn::Spec;

    let Survey { domains, labeled, classes, sizes } = survey(folder)?;
    let wrong = |what: Wrong, hint: &str| Error::Setting {
        path: folder.to_owned(),
        line: None,
        what,
        hint: Some(hint.to_owned()),
    };
    if domains.len() < 2 {
        let hint = "put pictures into device/class/, as in kitchen/cup/1.jpg and garden/cup/1.jpg";
        return Err(wrong(Wrong::OneFolder, hint));
    }
    if classes.is_empty() {
        let hint = "the name of a folder is the class of its pictures, as in kitchen/cup/1.jpg";
        return Err(wrong(Wrong::NoLabeledPicture, hint));
    }
    let (partition, told) = by_device(
        "Each folder is a device:",
        domains.len(),
        labeled.iter().filter(|has| **has).count(),
    );
    let mut told = vec![told];
    let mut lines = vec![("[data]", "images", quoted(&folder.to_string_lossy()))];
    let is_for_cnn = |side: usize| Spec::is_for_cnn(Shape::grey(side));
    if !matches!(sizes[..], [[rows, columns]] if rows == columns && is_for_cnn(rows as usize)) {
        lines.push(("[data]", "image-size", SIDE.to_string()));
        told.push(format!(
            "Pictures are resized to {SIDE} × {SIDE} for the built-in cnn. Where that shows too little, data.image-size = 32, 64 or 96 shows more and takes longer."
        ));
    }
    lines.extend(partition.into_iter().map(|(key, value)| ("[partition]", key, value)));
    Ok(Written { text: filled(&lines), told })
}

/// Rows and columns to which pictures are resized: the least that the cnn takes, which is learned the fastest.
#[cfg(feature = "images")]
const SIDE: u32 = 28;

/// Tells the user what windows were cut from a series.
fn told_of(series: &Series, data: &Dataset) -> String {
    let channels = data.columns().join(", ");
    let gaps = match &series.time {
        Some(column) => format!("none spans a gap in column {column}"),
        None => "no column has times, so no reading counts as missing".to_owned(),
    };
    format!(
        "{} rows are a sample, and the next begins {} rows later: {} windows of {channels}; {gaps}.",
        series.windows.length,
        series.windows.stride,
        data.len()
    )
}

/// What is said where half of the devices hide their labels: if all had some, there would be nothing to decide.
const HIDDEN: &str =
    "half of them hide their labels in every seed, so that accuracy can be measured";

/// Returns the key by which half of the devices hide their labels, with its value.
fn half() -> (&'static str, String) {
    ("labeled", "{ devices = 0.5 }".to_owned())
}

/// What stands for no label in a table.
const NO_LABEL: &str = "an empty cell, null, NA or -1";

fn without_label(data: &Dataset) -> usize {
    (0..data.len()).filter(|&sample| data.label(sample).is_none()).count()
}

/// A sentence on samples without a label, if a device has some beside others that have one: a class may have been taken for none.
fn some_without_label(data: &Dataset) -> Option<String> {
    let devices = |is_labeled: bool| -> BTreeSet<usize> {
        let samples = (0..data.len()).filter(|&k| data.label(k).is_some() == is_labeled);
        samples.map(|sample| data.domain(sample)).collect()
    };
    if devices(true).is_disjoint(&devices(false)) {
        return None;
    }
    let what = if data.series().is_some() { "windows" } else { "rows" };
    let (without, all) = (without_label(data), data.len());
    Some(format!("{without} of {all} {what} have no label, that is {NO_LABEL}."))
}

/// How the rows of a table are dealt: by the column that names devices, else at random.
fn partition(data: &Dataset, table: &Path) -> Result<(Keys, Vec<String>), Error> {
    let Some(column) = data.domain_column() else {
        let mut keys = vec![("kind", "\"iid\"".to_owned()), half()];
        let mut told = Vec::new();
        if let Scheme::Iid(iid) = Scheme::for_data(data) {
            let (devices, what) =
                (iid.devices, if data.series().is_some() { "windows" } else { "rows" });
            keys.push(("devices", devices.to_string()));
            told.push(format!(
                "No column says which device holds a row, so {what} are dealt at random to {devices} devices; {HIDDEN}. \
                 --device names such a column."
            ));
        }
        return Ok((keys, told));
    };
    let devices = data.domains().len();
    if devices < 2 {
        let (path, line) = (table.to_owned(), None);
        let what = Wrong::OneDevice { column: column.to_owned() };
        let hint = Some("--device names another column".to_owned());
        return Err(Error::Setting { path, line, what, hint });
    }
    let with_label = (0..data.len()).filter(|&sample| data.label(sample).is_some());
    let labeled = with_label.map(|sample| data.domain(sample)).collect::<BTreeSet<_>>().len();
    let (keys, told) = by_device(&format!("Column {column} names"), devices, labeled);
    Ok((keys, vec![told]))
}

/// How samples are dealt that know their device, and what is said about it.
fn by_device(who: &str, devices: usize, labeled: usize) -> (Keys, String) {
    let kind = ("kind", "\"by-domain\"".to_owned());
    let told = format!("{who} {devices} devices, {labeled} with labels");
    match labeled < devices {
        true => (vec![kind], format!("{told}.")),
        false => (vec![kind, half()], format!("{told}; {HIDDEN} (partition.labeled).")),
    }
}

/// The template with these keys of these sections set, whether it has them as defaults or commented out.
fn filled(lines: &[(&str, &str, String)]) -> String {
    let mut section = "";
    let mut text = String::new();
    for line in TEMPLATE.lines() {
        if line.starts_with('[') {
            section = line.split_inclusive(']').next().unwrap_or_default();
            text += &format!("{line}\n");
            // The template has the keys that all kinds of partition share.
            let own = lines.iter().filter(|(of, key, _)| *of == section && *key == "devices");
            own.for_each(|(_, key, value)| text += &format!("{key} = {value}\n"));
            continue;
        }
        let key = line.strip_prefix("# ").unwrap_or(line).split(" = ").next().unwrap_or_default();
        let comment = line.split_once(" # ").map(|(_, comment)| format!("  # {comment}"));
        match lines.iter().find(|(of, known, _)| *of == section && *known == key) {
            Some((_, _, value)) => {
                text += &format!("{key} = {value}{}\n", comment.unwrap_or_default());
            }
            // What the table stands for.
            None if section == "[data]" && key == "domains" => text += &format!("# {line}\n"),
            None => text += &format!("{line}\n"),
        }
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use stlf_data::labels::Labeled;
    use stlf_data::partition::{ByDomain, Iid};

    use super::*;
    use crate::{Config, Model};

    pub(super) fn written(
        columns: &str,
        row: impl Fn(usize) -> String,
    ) -> (tempfile::TempDir, String) {
        let folder = tempfile::tempdir().unwrap();
        let table = folder.path().join("my \"own\".csv");
        let rows: String = (0..90).map(|k| row(k) + "\n").collect();
        std::fs::write(&table, format!("{columns}\n{rows}")).unwrap();
        let table = table.to_string_lossy().into_owned();
        (folder, table)
    }

    fn asked(label: &str, device: Option<&str>) -> features::Options {
        let domain = device.map(str::to_owned);
        features::Options { label: label.to_owned(), domain, ..features::Options::default() }
    }

    pub(super) fn config(table: &str, label: &str, device: Option<&str>) -> (Config, Vec<String>) {
        let Written { text, told } = for_table(Path::new(table), asked(label, device)).unwrap();
        (Config::parse(&text, Path::new("t")).unwrap(), told)
    }

    #[test]
    fn a_column_of_devices_deals_the_rows_and_some_keep_no_labels() {
        let row = |k: usize| format!("d{},{},calm,{k}", k % 3, ["", "a", "b"][k % 3]);
        let (_folder, table) = written("device,class,note,x", row);
        let (config, told) = config(&table, "class", None);
        let scheme = Scheme::ByDomain(ByDomain::default());
        assert_eq!(config.partition, Some(scheme));
        assert_eq!(
            (config.data.label.as_str(), config.data.ignore.as_slice()),
            ("class", &["note".to_owned()][..])
        );
        assert_eq!(
            (config.data.device.as_deref(), config.training.model),
            (Some("device"), Model::Mlp)
        );
        assert_eq!(config.data.features.as_deref(), Some(Path::new(&table)));
        assert_eq!(told[0], "Column device names 3 devices, 2 with labels.");
        assert!(told[1].ends_with("not numbers in every row: note."), "{told:?}");
    }

    #[test]
    fn fleets_with_all_labels_hide_half_and_rows_of_nobody_are_dealt() {
        let (_folder, table) = written("who,label,x", |k| format!("{},{},{k}", k % 4, k % 2));
        let half = Labeled::Some { devices: 0.5 };
        let (by_column, _) = config(&table, "label", Some("who"));
        let labeled = half.clone();
        let scheme = Scheme::ByDomain(ByDomain { labeled, ..ByDomain::default() });
        assert_eq!(by_column.partition, Some(scheme));
        let (dealt, told) = config(&table, "label", None);
        assert_eq!(dealt.partition, Some(Scheme::Iid(Iid { devices: 4, labeled: half })));
        assert!(told[0].contains("at random to 4 devices"), "{told:?}");
        // All else is as it always is.
        let expected = Config { partition: dealt.partition.clone(), ..Config::default() };
        assert_eq!(dealt.planner, expected.planner);
        assert_eq!(dealt.seeds, expected.seeds);
    }

    #[test]
    fn a_table_of_readings_is_cut_into_windows() {
        let row = |k: usize| format!("d{},00:{:02}:{:02},{k},{}", k % 3, k / 60, k % 60, k % 2);
        let (_folder, table) = written("device,time,x,label", row);
        let windows = Some(features::Windows { length: 9, stride: 3 });
        let options = features::Options { windows, ..asked("label", None) };
        let Written { text, told } = for_table(Path::new(&table), options).unwrap();
        let config = Config::parse(&text, Path::new("t")).unwrap();
        assert_eq!((config.data.windows(), config.training.model), (windows, Model::Cnn));
        assert_eq!((config.data.time.as_deref(), config.data.ignore.len()), (Some("time"), 0));
        assert_eq!(
            told[1],
            "9 rows are a sample, and the next begins 3 rows later: 24 windows of x; none spans a gap in column time."
        );
    }

    #[cfg(feature = "images")]
    #[test]
    fn a_folder_of_pictures_is_dealt_by_its_folders_and_resized() {
        // A black PNG of one pixel.
        let png: [u8; 67] = [
            137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 1, 0, 0, 0, 1,
            8, 0, 0, 0, 0, 58, 126, 155, 85, 0, 0, 0, 10, 73, 68, 65, 84, 120, 156, 99, 96, 0, 0,
            0, 2, 0, 1, 72, 175, 164, 113, 0, 0, 0, 0, 73, 69, 78, 68, 174, 66, 96, 130,
        ];
        let folder = tempfile::tempdir().unwrap();
        let put = |place: &str| {
            std::fs::create_dir_all(folder.path().join(place)).unwrap();
            std::fs::write(folder.path().join(place).join("1.png"), png).unwrap();
        };
        let error = || for_pictures(folder.path()).unwrap_err().to_string();
        put("day/unlabeled");
        assert!(error().ends_with("one device only: there is nothing to plan"));
        put("night/unlabeled");
        assert!(error().ends_with("no picture has a label"));
        put("night/dog");
        let Written { text, told } = for_pictures(folder.path()).unwrap();
        assert_eq!(told[0], "Each folder is a device: 2 devices, 1 with labels.");
        let config = Config::parse(&text, Path::new("t")).unwrap();
        assert_eq!(config.partition, Some(Scheme::ByDomain(ByDomain::default())));
        assert_eq!((config.data.image_size, config.training.model), (Some(28), Model::Cnn));
        assert_eq!(config.data.images.as_deref(), Some(folder.path()));
        // The same of 64 pixels a side, which the cnn takes; but not beside others.
        let black: [u8; 84] = [
            137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 64, 0, 0, 0, 64,
            8, 0, 0, 0, 0, 143, 2, 46, 2, 0, 0, 0, 27, 73, 68, 65, 84, 120, 218, 237, 193, 129, 0,
            0, 0, 0, 195, 160, 249, 83, 223, 224, 4, 85, 1, 0, 0, 0, 124, 3, 16, 64, 0, 1, 189, 60,
            183, 143, 0, 0, 0, 0, 73, 69, 78, 68, 174, 66, 96, 130,
        ];
        for (place, resized) in
            [("day/unlabeled", true), ("night/unlabeled", true), ("night/dog", false)]
        {
            std::fs::write(folder.path().join(place).join("1.png"), black).unwrap();
            let Written { text, told } = for_pictures(folder.path()).unwrap();
            let config = Config::parse(&text, Path::new("t")).unwrap();
            assert_eq!(config.data.image_size, resized.then_some(28));
            assert_eq!(told.len(), 1 + usize::from(resized));
        }
    }

    #[test]
    fn tables_that_cannot_be_planned_are_refused() {
        let (_folder, table) = written("device,label,x", |k| format!("one,,{k}"));
        let error = |label: &str| for_table(Path::new(&table), asked(label, None)).unwrap_err();
        assert!(error("label").to_string().contains("no row has a label"));
        assert!(error("y").hint().is_some_and(|hint| hint.contains("device, label, x")));
        let (_folder, table) = written("device,label,x", |k| format!("{},a,{k}", k % 3));
        let error = for_table(Path::new(&table), asked("label", None)).unwrap_err().to_string();
        assert!(error.ends_with("all labels are \"a\": there is nothing to learn"), "{error}");
        let (_folder, table) = written("device,label,x", |k| format!("one,{},{k}", k % 2));
        let error = for_table(Path::new(&table), asked("label", None)).unwrap_err().to_string();
        assert!(error.contains("names one device only"), "{error}");
        let (_folder, table) =
            written("device,label,x,y,z", |k| format!("{},a,{},hot,NA", k % 3, ["", "1"][k % 2]));
        let error = for_table(Path::new(&table), asked("label", None)).unwrap_err();
        assert!(
            error.to_string().ends_with(
                "no column is a number in every row: x (empty in row 2 and 44 other rows), y, z (empty in row 2 and 89 other rows)"
            ),
            "{error}"
        );
        assert!(error.hint().is_some_and(|hint| hint.starts_with("fill in empty cells")));
    }

    #[test]
    fn one_reading_that_is_no_number_is_named_by_row_and_value() {
        for cell in ["inf", "1e300", "#REF!"] {
            let row = |k: usize| {
                let x = if k == 7 { cell.to_owned() } else { k.to_string() };
                format!("d{},{},{x},{k}", k % 3, k % 2)
            };
            let (_folder, table) = written("device,label,x,y", row);
            let (config, told) = config(&table, "label", None);
            assert_eq!(config.data.ignore, ["x"]);
            assert!(
                told[1].ends_with(&format!("in every row: x ({cell:?} in row 9).")),
                "{told:?}"
            );
            assert!(told[2].contains("correct these in"), "{told:?}");
        }
    }

    #[test]
    fn a_column_whose_name_has_capital_letters_is_told() {
        let row = |k: usize| format!("{},{},{k}", k % 3, k % 2);
        let (_folder, table) = written("Device,label,x", row);
        let (_, told) = config(&table, "label", None);
        assert!(told[1].ends_with("small letters is: --device Device names it."), "{told:?}");
        let error = for_table(Path::new(&table), asked("LABEL", None)).unwrap_err();
        assert!(error.hint().unwrap().starts_with("capital letters count: name \"label\""));
        let (_, told) = config(&table, "label", Some("Device"));
        assert_eq!(told.len(), 1, "{told:?}");
    }

    #[test]
    fn columns_that_are_not_used_are_told_with_what_they_lack() {
        let row = |k: usize| {
            let age = if k == 7 { String::new() } else { k.to_string() };
            format!("{k},d{},{},calm,{k},{age}", k % 3, k % 2)
        };
        let (_folder, table) = written(",device,label,note,x,age", row);
        let (config, told) = config(&table, "label", None);
        assert_eq!(config.data.ignore, ["note", "age"].map(str::to_owned));
        assert!(told[1].ends_with("in every row: note, age (empty in row 9)."), "{told:?}");
        assert!(told[2].starts_with("To use columns that are numbers but for"), "{told:?}");
        assert_eq!(told[3], "Not used: the column that has no name.");
    }
}
