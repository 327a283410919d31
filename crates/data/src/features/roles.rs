//! Which column of a table is what: labels, the domain, times, features.

use std::path::Path;

use super::{Labels, Series, Wanted};
use crate::Error;
use crate::words::but_for_case;

/// How many missing columns an error names.
const NAMED: usize = 6;

/// What to do about a column that is not there: of those that are, the one that is called so but for capital letters.
fn missing(name: &str, names: &[&str]) -> String {
    let columns = format!("the columns are: {}", names.join(", "));
    match but_for_case(name, names.iter().copied()) {
        Some(other) => {
            format!("capital letters count: name {other:?} instead, or rename it; {columns}")
        }
        None => columns,
    }
}

/// The indices and names of the columns by what they are used for.
pub(super) struct Columns {
    pub(super) label: Option<usize>,
    pub(super) domain: Option<usize>,
    pub(super) domain_name: Option<String>,
    pub(super) time: Option<usize>,
    pub(super) time_name: Option<String>,
    pub(super) features: Vec<usize>,
    pub(super) feature_names: Vec<String>,
}

impl Columns {
    pub(super) fn new(names: &[&str], path: &Path, wanted: &Wanted<'_>) -> Result<Columns, Error> {
        let column = |name: &str| format!("column {name:?}");
        for (k, name) in names.iter().enumerate() {
            if !name.is_empty() && names[..k].contains(name) {
                let message = format!("{} is there twice", column(name));
                return Err(Error::content(path, message));
            }
        }
        let find = |name: &str| names.iter().position(|n| *n == name);
        let options = match wanted {
            Wanted::All(options) => options,
            Wanted::Features(columns, series, labels) => {
                return Columns::of_features(names, path, columns, *series, *labels);
            }
        };
        let need = |name: &str| {
            find(name).ok_or_else(|| {
                let message = format!("{} is missing", column(name));
                Error::content(path, message).with_hint(missing(name, names))
            })
        };
        let label = need(&options.label)?;
        for name in &options.ignore {
            need(name)?;
        }
        let ignored = |k: usize| options.ignore.iter().any(|name| name == names[k]);
        let usual = |usual: [&str; 2], what: &str| match usual
            .map(|name| find(name).filter(|&k| !ignored(k)))
        {
            [Some(_), Some(_)] => {
                let [one, other] = usual;
                let message = format!("has both a column {one:?} and a column {other:?}");
                Err(Error::content(path, message)
                    .with_hint(format!("say which one gives the {what}, and ignore the other")))
            }
            [one, other] => Ok(one.or(other)),
        };
        let domain = match &options.domain {
            Some(name) => Some(need(name)?),
            None => usual(["domain", "device"], "domain")?,
        };
        let time = match (options.windows, &options.time) {
            (None, _) => None,
            (_, Some(name)) => Some(need(name)?),
            (_, None) => usual(["time", "timestamp"], "time")?,
        };
        let has_role = |k: usize| k == label || Some(k) == domain || Some(k) == time;
        let is_feature = |k: &usize| !names[*k].is_empty() && !has_role(*k) && !ignored(*k);
        let features: Vec<usize> = (0..names.len()).filter(is_feature).collect();
        if features.is_empty() {
            return Err(Error::content(path, "has no column of features").with_hint(match options
                .windows
            {
                Some(_) => "every column besides the label, the domain and the time is a channel",
                None => "every column besides the label and the domain is a feature",
            }));
        }
        let name = |k: usize| names[k].to_owned();
        let (domain_name, time_name) = (domain.map(name), time.map(name));
        let feature_names = features.iter().map(|&k| name(k)).collect();
        let label = Some(label);
        Ok(Columns { label, domain, domain_name, time, time_name, features, feature_names })
    }

    /// These columns as features, of a series the time, and the device where the table has it, and the labels if they are wanted.
    fn of_features(
        names: &[&str],
        path: &Path,
        columns: &[String],
        series: Option<&Series>,
        labels: Option<Labels<'_>>,
    ) -> Result<Columns, Error> {
        let place = |column: &str| names.iter().position(|name| *name == column);
        let (time_name, device) = match series {
            Some(Series { time, device, .. }) => (time.clone(), device.clone()),
            None => (None, None),
        };
        let named = labels.and_then(|labels| labels.column);
        let needed = || columns.iter().map(String::as_str).chain(time_name.as_deref()).chain(named);
        let Some(mut features) = needed().map(place).collect::<Option<Vec<usize>>>() else {
            let absent = || needed().filter(|column| place(column).is_none());
            let mut listed: Vec<String> = absent().map(|column| format!("{column:?}")).collect();
            let (noun, verb) =
                if listed.len() == 1 { ("column", "is") } else { ("columns", "are") };
            let others = listed.len().saturating_sub(NAMED);
            listed.truncate(NAMED);
            let and = if others > 0 { format!(" and {others} others") } else { String::new() };
            let message = format!("{noun} {}{and} {verb} missing", listed.join(", "));
            let in_capitals =
                absent().find(|name| but_for_case(name, names.iter().copied()).is_some());
            let hint = missing(in_capitals.unwrap_or_default(), names);
            return Err(Error::content(path, message).with_hint(hint));
        };
        let mut others = features.split_off(columns.len()).into_iter();
        let time = time_name.as_ref().and_then(|_| others.next());
        let usual = || place("label").filter(|at| !features.contains(at));
        let label = labels.and_then(|_| others.next().or_else(usual));
        let domain = device.as_deref().and_then(place);
        let domain_name = device.filter(|_| domain.is_some());
        let feature_names = columns.to_vec();
        Ok(Columns { label, domain, domain_name, time, time_name, features, feature_names })
    }
}
