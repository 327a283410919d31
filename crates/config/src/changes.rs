//! Keys that are changed on the command line, as in `-c training.steps=500`.

use std::path::{Path, PathBuf};

use stlf_data::partition::Scheme;
use stlf_data::words::in_words;

use crate::error::suggestion;
use crate::{Config, Error, Wrong};

impl Config {
    /// This configuration with some keys changed: `training.steps=500`, `data.domains=["mnist"]`. A value that is
    /// no TOML is taken as a string.
    pub fn with<'a>(&self, changes: impl IntoIterator<Item = &'a str>) -> Result<Config, Error> {
        let mut table = self.to_table()?;
        let mut last = None;
        for change in changes {
            set(&mut table, change)?;
            // Types are looked at one change at a time, so that an error is about this one; whether all fit
            // together is seen at the end.
            if let Err(e) = table.clone().try_into::<Config>() {
                let hint = suggestion(e.message());
                let (change, reason) = (change.to_owned(), in_words(e.message()));
                return Err(error(Wrong::Change { change, reason }, hint));
            }
            last = Some(change);
        }
        let config: Config = table.try_into().map_err(|e: toml::de::Error| unreadable(&e))?;
        if last.is_some() {
            config.check(Path::new("-c"))?;
        }
        Ok(config)
    }
}

/// The changes that a text has, with spaces between them: `training.steps=500 data.label="wear of the pump"`. Spaces within quotes belong to a value.
pub fn changes(text: &str) -> impl Iterator<Item = &str> {
    let mut quote = None;
    let between = move |c: char| {
        match quote {
            Some(open) if open == c => quote = None,
            None if matches!(c, '"' | '\'') => quote = Some(c),
            Some(_) | None => {}
        }
        quote.is_none() && c.is_whitespace()
    };
    text.split(between).filter(|change| !change.is_empty())
}

/// Sets one key of a table: `training.steps=500`.
fn set(table: &mut toml::Table, change: &str) -> Result<(), Error> {
    let form = || Some("write KEY=VALUE, such as training.steps=500".to_owned());
    let (key, text) =
        change.split_once('=').ok_or_else(|| error(Wrong::NoChange(change.to_owned()), form()))?;
    let parsed = format!("v = {text}").parse::<toml::Table>().ok().and_then(|mut t| t.remove("v"));
    if parsed.is_none() && text.starts_with(['"', '\'']) {
        return Err(error(Wrong::OpenQuote(change.to_owned()), form()));
    }
    let value = parsed.unwrap_or_else(|| toml::Value::String(text.to_owned()));
    let (inside, name) = key.rsplit_once('.').map_or((None, key), |(a, b)| (Some(a), b));
    // Who sets a key of the default partition means that one.
    if key.starts_with("partition.") && !table.contains_key("partition") {
        let default = toml::Value::try_from(Scheme::default());
        table.extend(default.ok().map(|scheme| ("partition".to_owned(), scheme)));
    }
    let mut place = table;
    for part in inside.into_iter().flat_map(|inside| inside.split('.')) {
        let entry = place.entry(part).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        place = entry.as_table_mut().ok_or_else(|| {
            let (key, part) = (key.to_owned(), part.to_owned());
            error(Wrong::NoTable { key, part }, form())
        })?;
    }
    // Another kind of partition has other keys.
    if key == "partition.kind" && place.get(name) != Some(&value) {
        place.clear();
    }
    place.insert(name.to_owned(), value);
    Ok(())
}

fn error(what: Wrong, hint: Option<String>) -> Error {
    Error::Setting { path: PathBuf::from("-c"), line: None, what, hint }
}

/// All of a configuration cannot be read, or not be written as TOML.
pub(crate) fn unreadable(why: &impl ToString) -> Error {
    error(Wrong::Unreadable(why.to_string()), None)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn spaces_within_quotes_divide_nothing() {
        let of = |text: &'static str| changes(text).collect::<Vec<_>>();
        assert_eq!(of(" a=1  b=[2,3]\nc=x "), ["a=1", "b=[2,3]", "c=x"]);
        assert_eq!(
            of(r#"a="x y" b=['p q',"r's t"] c=2"#),
            [r#"a="x y""#, r#"b=['p q',"r's t"]"#, "c=2"]
        );
        assert_eq!(of(r#"a="never closed b=1"#), [r#"a="never closed b=1"#]);
        assert_eq!(of(""), [] as [&str; 0]);
    }

    #[test]
    fn a_quote_that_is_not_closed_is_an_error() {
        let change = r#"data.label="wear seeds=[1]"#;
        let refused = Config::default().with([change]).unwrap_err().to_string();
        assert!(refused.contains("a quote that is not closed"), "{refused}");
        assert!(Config::default().with([r#"data.label="wear of the pump""#]).is_ok());
    }
}
