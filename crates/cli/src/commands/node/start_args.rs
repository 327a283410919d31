//! The arguments of `stlf node start`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use stlf_learner::{Limits, Program};
use stlf_method::learner::UserLearner;
use stlf_node::joining::Joined;
use stlf_node::service::{Error, Options, settings};
use stlf_protocol::membership::Timing;

use super::super::numbers::positive;
use crate::progress::Watch;

/// The folder within the device's for files between a learner and stlf.
const LEARNER: &str = "learner";

/// The file in the device's folder with the log of its learner.
const LEARNER_LOG: &str = "learner.log";

/// The bytes of a gibibyte.
const GIB: f64 = (1_u64 << 30) as f64;

const GIB_OF_LEARNER: f64 = Limits::DISK as f64 / GIB;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to run (TOML), the same on all devices but for [data] and [partition] [default: all defaults]
    config: Option<PathBuf>,

    /// Settings that differ from the file's: KEY=VALUE, separated by spaces.
    #[arg(short = 'c', long = "set", value_name = "KEY=VALUE ...")]
    set: Vec<String>,

    /// This device's own data: a table of features, or a folder of pictures domain/class/*.png. Features keep their scale. A table that changes
    /// while the device runs is read again, and if the change matters, the fleet plans anew (docs/drift.md).
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,

    #[command(flatten)]
    pub(super) own: OwnLearner,

    /// The fleet's signed roster [default: roster.json, or what a device that has joined keeps in --to]
    #[arg(long, visible_alias = "fleet", value_name = "FILE")]
    roster: Option<PathBuf>,

    /// This device's key [default: device.key, or what a device that has joined keeps in --to]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,

    /// Where to listen [default: 127.0.0.1:0; a device that has joined listens where it did then, or at another address of its
    /// machine if that one is gone]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,

    /// Where other devices listen, if they are not found by themselves. Those before this one in the roster are called; the others call,
    /// and are called too if they do not.
    #[arg(long, value_delimiter = ',', value_name = "NAME=ADDRESS,...", value_parser = peer)]
    peers: Vec<(String, SocketAddr)>,

    #[command(flatten)]
    pub(super) part: Part,
}

/// A learner of the user's, where the device has one.
#[derive(clap::Args)]
pub(crate) struct OwnLearner {
    /// A program of your own that has this device's data and model, instead of a built-in network: its command line, in quotation
    /// marks. `stlf learner check` tries it (docs/learners.md).
    #[arg(long, value_name = "PROGRAM …", conflicts_with = "data")]
    learner: Option<String>,

    /// Variables of the environment that the learner sees besides PATH, HOME, LANG and the like.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', requires = "learner")]
    learner_env: Vec<String>,

    /// The most gibibytes that the learner's folder may have before it is ended.
    #[arg(long, value_name = "GIB", default_value_t = GIB_OF_LEARNER, value_parser = positive, requires = "learner")]
    learner_disk: f64,
}

/// How a device takes part, however it came to its fleet.
#[derive(clap::Args)]
pub(crate) struct Part {
    /// Leave once an epoch is over; else go on until Ctrl-C, and take part in every epoch.
    #[arg(long)]
    once: bool,

    /// Measure links, and count this many watts while a model is sent; else joules come from [energy].
    #[arg(long, value_parser = positive)]
    watts: Option<f64>,

    /// Begin after this time with the devices that are there.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = positive)]
    wait: f64,

    /// After a device joins or leaves, wait this long for others to do the same.
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = positive)]
    settle: f64,

    /// Leave out a device that holds an epoch up for this long. The planner searches for a sixth of it, or for planner.time-limit if that is less,
    /// then takes the best plan so far.
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, value_parser = positive)]
    patience: f64,

    /// With --once: fail if no epoch is complete within this time after --wait.
    #[arg(long, value_name = "SECONDS", default_value_t = 600.0, value_parser = positive)]
    deadline: f64,

    /// Where everything is kept; started again with the same folder, it goes on where it was.
    #[arg(long, value_name = "DIR", default_value = "node")]
    pub(super) to: PathBuf,

    /// Serve numbers for Prometheus here, such as 127.0.0.1:9464.
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,

    /// How to print events on standard error.
    #[arg(long, value_enum, default_value_t = Log::Text)]
    pub(super) log: Log,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Log {
    /// A sentence each.
    Text,
    /// A JSON document each, a line each.
    Json,
}

fn peer(text: &str) -> Result<(String, SocketAddr), String> {
    let wrong = || "write NAME=ADDRESS, such as gate=10.0.0.5:7000".to_owned();
    let (name, address) = text.split_once('=').ok_or_else(wrong)?;
    Ok((name.to_owned(), address.parse().map_err(|_| wrong())?))
}

impl Args {
    /// Converts the arguments to options of the service. A folder in which a device has joined needs no more than its name.
    pub(super) fn options(&self) -> Result<Options, Error> {
        let to = &self.part.to;
        let names_nothing = self.config.is_none() && self.data.is_none();
        let names_no_fleet = self.roster.is_none() && self.key.is_none();
        let joined = match names_nothing && names_no_fleet {
            true => Joined::read(to)?,
            false => None,
        };
        let mut options = match joined {
            Some(joined) => {
                let options = joined.options(to)?;
                let config = options.config.with(changes(&self.set))?;
                Options { config, ..options }
            }
            None => {
                let config =
                    settings(self.config.as_deref(), self.data.as_deref(), &changes(&self.set))?;
                let roster = self.roster.clone().unwrap_or("roster.json".into());
                Options::new(config, roster, self.key.clone().unwrap_or("device.key".into()), to)
            }
        };
        // Who looks for a device that has joined where it listened then is called by it after a while.
        options.follows &= self.listen.is_none();
        options.listen = self.listen.unwrap_or(options.listen);
        options.peers = self.peers.clone();
        self.part.set(&mut options);
        Ok(options)
    }

    /// Returns the name of the learner that the device joined with, if it is to be started without one.
    pub(super) fn lacks_learner(&self) -> Result<Option<String>, Error> {
        if self.own.learner.is_some() || self.data.is_some() || self.config.is_some() {
            return Ok(None);
        }
        Ok(Joined::read(&self.part.to)?.and_then(|joined| joined.learner().map(str::to_owned)))
    }
}

impl OwnLearner {
    /// Starts the learner, if one is named, until Ctrl-C is pressed. Its files are in the device's folder.
    pub(super) fn start(
        &self,
        folder: &Path,
        seed: u64,
    ) -> Result<Option<UserLearner>, stlf_learner::Error> {
        let Some(program) = &self.learner else { return Ok(None) };
        let options = stlf_learner::Options {
            log: Some(folder.join(LEARNER_LOG)),
            environment: self.learner_env.clone(),
            limits: Limits { disk: (self.learner_disk * GIB) as u64, ..Limits::default() },
            ..stlf_learner::Options::new(program, folder.join(LEARNER), seed)?
        };
        Program::start(options, &mut |_| Watch::flow()).map(Some)
    }
}

impl Part {
    /// Sets the options of the service that these arguments are about.
    pub(super) fn set(&self, options: &mut Options) {
        options.timing = Timing {
            wait: seconds(self.wait),
            settle: seconds(self.settle),
            patience: seconds(self.patience),
        };
        options.once = self.once.then(|| seconds(self.deadline));
        options.watts = self.watts;
        options.numbers = self.metrics;
    }
}

/// Returns the settings of `-c`, each KEY=VALUE.
pub(super) fn changes(set: &[String]) -> Vec<&str> {
    set.iter().flat_map(|set| stlf_config::changes(set)).collect()
}

fn seconds(s: f64) -> Duration {
    Duration::try_from_secs_f64(s).unwrap_or(Duration::MAX)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use clap::Parser;
    use serde_json::json;
    use stlf_node::joining::JOINED;
    use stlf_protocol::Identity;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn a_device_that_has_joined_listens_where_it_is_told_to_or_where_it_did_then() {
        let folder = tempfile::tempdir().unwrap();
        let joined = json!({
            "format": "stlf-joined/1", "ticket": Identity::from_bytes(&[1; 32]).id(), "fleet": "harbour",
            "name": "gate", "listen": "127.0.0.1:7001", "settings": "",
        });
        std::fs::write(folder.path().join(JOINED), joined.to_string()).unwrap();
        let at = folder.path().to_str().unwrap();
        let options = |more: &[&str]| {
            let words = [&["start", "--to", at], more].concat();
            Command::try_parse_from(words).unwrap().args.options().unwrap()
        };
        let before = options(&[]);
        assert_eq!(
            (before.listen.to_string(), before.follows),
            ("127.0.0.1:7001".to_owned(), true)
        );
        for told in ["127.0.0.1:0", "127.0.0.1:7002", "0.0.0.0:0"] {
            let listens = options(&["--listen", told]);
            assert_eq!((listens.listen.to_string(), listens.follows), (told.to_owned(), false));
        }
    }
}
