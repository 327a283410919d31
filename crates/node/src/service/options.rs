//! The options with which a service starts.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use stlf_config::Config;
use stlf_config::fleet::DeviceData;
use stlf_data::Shape;
use stlf_method::learner::UserLearner;
use stlf_protocol::membership::Timing;
use stlf_protocol::{Place, Roster, Setup};

use super::Error;
use crate::network::RelayUrl;

/// The planner searches up to three times, and other devices have patience for twice that time.
const PLANNING_IN_PATIENCE: u32 = 6;

/// The options of a service: the device's key, its work, the addresses of others, and the folder for its files.
#[derive(Debug, Clone)]
pub struct Options {
    /// The configuration, which must be the same on all devices except for the data and how they are dealt; [`settings`] reads it.
    pub config: Config,
    /// The file with the fleet's signed roster. If a newer one is put there, it is used from then on.
    pub roster: PathBuf,
    /// The file with this device's key.
    pub key: PathBuf,
    /// The folder for everything that the device keeps; started again with the same folder, the device continues where it was.
    pub folder: PathBuf,
    /// The address on which this device listens.
    pub listen: SocketAddr,
    /// Whether to listen elsewhere, with the same port, if this machine no longer has that address.
    pub follows: bool,
    /// The addresses of other devices, by name. Devices before this one in the roster are called; those after it call this one.
    pub peers: Vec<(String, SocketAddr)>,
    /// The time limits for joining, settling and progress. The planner searches for a sixth of the patience, or for `planner.time-limit` if
    /// that is less.
    pub timing: Timing,
    /// If given, the device leaves once an epoch is over, and fails if that takes longer than this after the time for all devices to join.
    /// Otherwise it continues until it is told to stop.
    pub once: Option<Duration>,
    /// The watts that are counted while a model is sent. If given, links are measured; otherwise their joules come from the configuration.
    pub watts: Option<f64>,
    /// The address on which metrics for Prometheus are served, if any.
    pub numbers: Option<SocketAddr>,
    /// The user's learner, which has the data and the model of this device; otherwise a built-in network learns from the data that the
    /// configuration names.
    pub learner: Option<UserLearner>,
}

impl Options {
    /// Returns the options of a device that listens on this machine alone and takes part until it is told to stop.
    pub fn new(
        config: Config,
        roster: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
        folder: impl Into<PathBuf>,
    ) -> Options {
        Options {
            config,
            roster: roster.into(),
            key: key.into(),
            folder: folder.into(),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            follows: false,
            peers: Vec::new(),
            timing: Timing::default(),
            once: None,
            watts: None,
            numbers: None,
            learner: None,
        }
    }

    /// Returns the seed of all random draws.
    pub(super) fn seed(&self) -> u64 {
        self.config.seeds.first().copied().unwrap_or_default()
    }

    /// Returns the configuration as it takes effect.
    pub(super) fn config(&self) -> Config {
        match &self.learner {
            Some(user) => self.config.for_learners(user.learner.adapts().is_some()),
            None => self.config.clone(),
        }
    }

    /// Returns the settings of each step, for a device with this data.
    pub(super) fn setup(
        &self,
        config: &Config,
        own: &DeviceData,
        shape: Shape,
        classes: usize,
    ) -> Result<Setup, Error> {
        let samples = own.inputs.len() / shape.len().max(1);
        let setup = Setup::for_devices(config, shape, classes, samples, self.seed())?;
        let setup = match &self.learner {
            Some(user) => setup.for_models_of(config, &*user.learner)?,
            None => setup,
        };
        let measures_links = self.watts.is_some();
        Ok(Setup { measures_links, planning: self.planning(), ..setup })
    }

    /// Returns how long the planner searches: as long as other devices have patience for it, or less if the configuration says so.
    fn planning(&self) -> Duration {
        let most = self.timing.patience / PLANNING_IN_PATIENCE;
        self.config.planner.limit().map_or(most, |limit| limit.min(most))
    }

    /// Returns the relay that the configuration names.
    pub(super) fn relay(&self) -> Result<Option<RelayUrl>, Error> {
        let relay = self.config.node.relay.as_ref();
        let wrong = |url: &String| Error::Relay { url: url.clone() };
        relay.map(|url| url.parse().map_err(|_| wrong(url))).transpose()
    }

    /// Returns the addresses of other devices, by their place in the roster.
    pub(super) fn places(&self, roster: &Roster) -> Result<BTreeMap<Place, SocketAddr>, Error> {
        let place = |(name, address): &(String, SocketAddr)| {
            let found = roster.with_places().find(|(_, member)| member.name == *name);
            let (place, _) = found.ok_or_else(|| Error::UnknownPeer { name: name.clone() })?;
            Ok((place, *address))
        };
        self.peers.iter().map(place).collect()
    }
}

/// Returns the settings in a file, or all defaults, with a device's own data (a table of features or a folder of pictures) and with
/// changes, each KEY=VALUE.
///
/// # Errors
/// Names the wrong key and its line.
pub fn settings(
    file: Option<&Path>,
    own_data: Option<&Path>,
    changes: &[&str],
) -> Result<Config, stlf_config::Error> {
    let config = match file {
        Some(path) => Config::read(path),
        None => Ok(Config::default()),
    };
    with_own_data(&config?, own_data, changes)
}

/// Returns the same settings with a device's own data and with changes, each KEY=VALUE.
pub(crate) fn with_own_data(
    config: &Config,
    own_data: Option<&Path>,
    changes: &[&str],
) -> Result<Config, stlf_config::Error> {
    let own = own_data.map(of_own_data).unwrap_or_default();
    config.with(own.iter().map(String::as_str).chain(changes.iter().copied()))
}

/// Returns the changes with which one device holds all data at a path.
fn of_own_data(path: &Path) -> Vec<String> {
    let key = if path.is_dir() { "images" } else { "features" };
    let data = format!("data.{key}={}", path.display());
    let one = ["partition.kind=iid", "partition.devices=1"];
    std::iter::once(data).chain(one.map(str::to_owned)).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn options(changes: &[&str]) -> Options {
        let config = settings(None, None, changes).unwrap();
        Options::new(config, "roster.json", "device.key", "node")
    }

    #[test]
    fn the_planner_searches_as_long_as_patience_and_configuration_allow() {
        let within = |limit: &str| options(&[&format!("planner.time-limit={limit}")]).planning();
        assert_eq!(options(&[]).planning(), Duration::from_secs(5));
        assert_eq!(within("2.5"), Duration::from_millis(2_500));
        assert_eq!(within("3600"), Duration::from_secs(5));
    }

    #[test]
    fn own_data_is_all_one_device_s_unless_changes_say_otherwise() {
        let own = |changes: &[&str]| settings(None, Some(Path::new("table.csv")), changes).unwrap();
        let config = own(&[]);
        assert_eq!(config.data.features, Some(PathBuf::from("table.csv")));
        assert_eq!(config.partition.map(|scheme| scheme.kind()), Some("iid"));
        let changed = own(&["partition.kind=by-domain"]).partition;
        assert_eq!(changed.map(|scheme| scheme.kind()), Some("by-domain"));
    }

    #[test]
    fn who_is_not_in_the_roster_has_no_address() {
        let mut options = options(&[]);
        let owner = stlf_protocol::Identity::from_bytes(&[1; 32]).id();
        let roster = Roster::new("small", owner).with("gate", owner).unwrap();
        options.peers = vec![("gate".to_owned(), options.listen)];
        assert_eq!(
            options.places(&roster).unwrap(),
            BTreeMap::from([(Place::new(0), options.listen)])
        );
        options.peers.push(("pier".to_owned(), options.listen));
        let error = options.places(&roster).unwrap_err();
        assert_eq!(error.to_string(), "there is no device \"pier\" in the roster");
    }
}
