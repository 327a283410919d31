//! The arguments that choose how data is dealt.

use serde::Deserialize;
use stlf_data::Dataset;
use stlf_data::labels::Labeled;
use stlf_data::partition::{Partition, Scheme, deal};
use stlf_data::words::{in_words, nearest};
use toml::{Table, Value};

use super::super::numbers::whole;
use crate::error::Failure;

/// A partitioner, its settings, and the seed.
#[derive(clap::Args)]
pub(crate) struct SchemeArgs {
    /// How samples are dealt: paper, iid, dirichlet, shard, pathological or by-domain [default: by-domain where a
    /// table has a column device or domain, iid where it has none, paper for pictures]
    #[arg(long, value_name = "KIND", value_parser = Scheme::KINDS)]
    partition: Option<String>,

    /// Settings of the partitioner, such as "alpha=0.1 min-partition-size=20".
    #[arg(short, long = "config", value_name = "K=V ...")]
    config: Vec<String>,

    /// The number of devices [default: 10]
    #[arg(long, value_name = "N", value_parser = whole::<usize>)]
    devices: Option<usize>,

    /// The fraction of its labels that a device keeps, or one fraction per device, such as 1,0.5,0.
    ///
    /// The paper's partition has numbers of labels instead: labeled-devices, labeled-samples.
    #[arg(long, value_name = "FRACTION,...")]
    labeled: Option<Labeled>,

    /// The seed of all random draws.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u64>)]
    pub(crate) seed: u64,
}

impl SchemeArgs {
    /// Deals the data.
    pub(crate) fn deal(&self, data: &Dataset) -> Result<(Scheme, Partition), Failure> {
        let default = match &self.partition {
            Some(_) => None,
            None => Table::try_from(Scheme::for_data(data)).ok(),
        };
        let kind = self.partition.as_deref().unwrap_or(Scheme::for_data(data).kind());
        let scheme = self.scheme(kind, default.unwrap_or_default(), data.domains().len())?;
        let partition = deal(data, &scheme, self.seed).map_err(|e| Failure::in_data(&e))?;
        Ok((scheme, partition))
    }

    /// Says how the samples of a table are dealt, if the user does not say how to deal them.
    pub(crate) fn dealt_by(&self, data: &Dataset) -> Option<String> {
        let is_chosen =
            self.partition.is_some() || self.devices.is_some() || self.labeled.is_some();
        let is_by_domain = data.domain_column().is_some() && self.partition.is_none();
        Scheme::told_for_data(data).filter(|_| is_by_domain || !is_chosen)
    }

    /// Returns the scheme of this kind, for data with this number of domains, with these settings where the user gives no others.
    fn scheme(&self, kind: &str, mut table: Table, domains: usize) -> Result<Scheme, Failure> {
        // Several domains cannot be arranged singly, and mixing is what most people mean by listing them.
        if kind == "paper" && domains > 1 {
            table.insert("arrangement".to_owned(), "mixed".into());
        }
        for setting in self.config.iter().flat_map(|text| stlf_config::changes(text)) {
            let (key, value) = setting.split_once('=').ok_or_else(|| {
                Failure::input(format!("{setting:?} is not a setting"))
                    .hint("write KEY=VALUE, without spaces in it")
            })?;
            table.insert(key.to_owned(), value_of(value));
        }
        if let Some(devices) = self.devices {
            let key = if kind == "by-domain" { "devices-per-domain" } else { "devices" };
            let devices = match key {
                "devices" => devices,
                _ if devices.is_multiple_of(domains) => devices / domains,
                _ => {
                    return Err(Failure::input(format!(
                        "{devices} devices cannot be dealt evenly to {domains} domains"
                    )));
                }
            };
            let devices = i64::try_from(devices).unwrap_or(i64::MAX);
            table.insert(key.to_owned(), devices.into());
        }
        match &self.labeled {
            Some(_) if kind == "paper" => {
                return Err(Failure::input("the paper's partition has no fraction of labels")
                    .hint("use -c \"labeled-devices=5 labeled-samples=1600 hidden-samples=200\""));
            }
            Some(Labeled::Alike(share)) => {
                drop(table.insert("labeled".to_owned(), (*share).into()))
            }
            Some(Labeled::Each(shares)) => {
                drop(table.insert("labeled".to_owned(), shares.clone().into()));
            }
            Some(Labeled::Some { devices }) => {
                let some = Table::from_iter([("devices".to_owned(), Value::from(*devices))]);
                drop(table.insert("labeled".to_owned(), some.into()));
            }
            None => {}
        }
        table.insert("kind".to_owned(), kind.into());
        read(kind, table)
    }
}

fn read(kind: &str, table: Table) -> Result<Scheme, Failure> {
    let keys: Vec<String> = table.keys().cloned().collect();
    Scheme::deserialize(Value::Table(table)).map_err(|e| {
        let known = known_settings(kind);
        let unknown = keys.iter().find(|key| *key != "kind" && !known.contains(key));
        match unknown {
            Some(key) => {
                let failure = Failure::input(format!("{kind} has no setting {key:?}"));
                match nearest(key, known.iter().map(String::as_str)) {
                    Some(near) => failure.hint(format!("did you mean {near}?")),
                    None => failure.hint(format!("its settings: {}", known.join(", "))),
                }
            }
            None => Failure::input(format!("{kind}: {}", in_words(e.message()))),
        }
    })
}

/// Parses a number, a truth value or a list as TOML writes them; any other text is a string.
fn value_of(text: &str) -> Value {
    let parsed: Result<Table, _> = format!("value = {text}").parse();
    match parsed.ok().and_then(|mut table| table.remove("value")) {
        Some(value) => value,
        None => Value::String(text.to_owned()),
    }
}

/// Returns the names of the settings of a kind.
fn known_settings(kind: &str) -> Vec<String> {
    let mut table = Table::new();
    table.insert("kind".to_owned(), kind.into());
    let defaults = Scheme::deserialize(Value::Table(table)).ok();
    let defaults = defaults.and_then(|scheme| Table::try_from(scheme).ok()).unwrap_or_default();
    // Left out of the defaults: half of the devices and all classes are no numbers, and no domains are no list.
    let hidden =
        ["labeled-devices", "unlabeled-domains", "unlabeled-classes", "mislabeled-devices"];
    let hidden = hidden.into_iter().filter(|_| kind == "paper").map(str::to_owned);
    defaults.keys().filter(|key| *key != "kind").cloned().chain(hidden).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use stlf_data::partition::{Arrangement, Dirichlet, Paper};

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        scheme: SchemeArgs,
    }

    fn scheme(arguments: &[&str], domains: usize) -> Result<Scheme, String> {
        let all = std::iter::once("stlf").chain(arguments.iter().copied());
        let args = Command::parse_from(all).scheme;
        let kind = args.partition.clone().unwrap_or("paper".to_owned());
        args.scheme(&kind, Table::new(), domains).map_err(|e| e.to_string())
    }

    #[test]
    fn settings_are_read_as_toml_or_as_words() {
        assert_eq!(scheme(&[], 1), Ok(Scheme::default()));
        let mixed = Paper { arrangement: Arrangement::Mixed, ..Paper::default() };
        assert_eq!(scheme(&[], 2), Ok(Scheme::Paper(mixed)));
        let split = Paper {
            arrangement: Arrangement::Split,
            classes_per_device: "all".parse().unwrap(),
            disjoint: false,
            labeled_devices: Some(3),
            devices: 6,
            ..Paper::default()
        };
        let words = "arrangement=split classes-per-device=all disjoint=false";
        let arguments = ["-c", words, "-c", "labeled-devices=3", "--devices", "6"];
        assert_eq!(scheme(&arguments, 2), Ok(Scheme::Paper(split)));
        let dirichlet = Dirichlet {
            alpha: 1.0,
            devices: 3,
            labeled: Labeled::Each(vec![1.0, 0.5, 0.0]),
            ..Dirichlet::default()
        };
        let arguments = ["--partition", "dirichlet", "-c", "alpha=1", "--labeled", "1,0.5,0"];
        let arguments = [&arguments[..], &["--devices", "3"]].concat();
        assert_eq!(scheme(&arguments, 1), Ok(Scheme::Dirichlet(dirichlet)));
    }

    #[test]
    fn unknown_settings_are_refused() {
        let dirichlet = |setting| scheme(&["--partition", "dirichlet", "-c", setting], 1);
        assert_eq!(dirichlet("alhpa=1").unwrap_err(), "dirichlet has no setting \"alhpa\"");
        assert_eq!(dirichlet("alpha").unwrap_err(), "\"alpha\" is not a setting");
        assert!(
            dirichlet("alpha=high").unwrap_err().starts_with("dirichlet: expected a number, found")
        );
        assert!(scheme(&["-c", "labeled=1"], 1).unwrap_err().contains("no setting \"labeled\""));
    }
}
