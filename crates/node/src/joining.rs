//! The device's side of joining: it makes a key, shows its ticket to the owner, learns the settings of the fleet and the roster, and keeps
//! all of it in its folder. `stlf-joined/1`.

mod error;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use iroh::Endpoint;
use iroh::endpoint::{
    ConnectError, ConnectingError, Connection, ConnectionError, TransportErrorCode,
};
use serde::{Deserialize, Serialize};
use stlf_config::Config;
use stlf_data::atomic_folder::Folder;
use stlf_method::learner::UserLearner;
use stlf_protocol::terms::Brought;
use stlf_protocol::{Identity, PeerId, SignedRoster, Ticket};
use tokio::time::sleep;

pub use self::error::Error;
use crate::door::messages::{Answer, Asks, Knock, PROTOCOL, Refusal, answered, send};
use crate::key_file;
use crate::network::own_address::{moved, reachable};
use crate::network::{self, LOST_AFTER, address_of};
use crate::service::{self, ROSTER, with_own_data};

const KEY: &str = "device.key";

/// The file that tells how a device joined, in its folder.
pub const JOINED: &str = "joined.json";

/// The pause before the next call, and the interval at which the order to stop is checked.
const PAUSE: Duration = Duration::from_millis(200);

/// How a device joins.
#[derive(Debug, Clone)]
pub struct Options {
    /// What the owner gave it.
    pub ticket: Ticket,
    /// How it is to be called.
    pub name: String,
    /// Its data: a table of features, or a folder of pictures.
    pub data: Option<PathBuf>,
    /// The user's learner, which has the data instead.
    pub learner: Option<UserLearner>,
    /// The settings that it changes, each KEY=VALUE.
    pub changes: Vec<String>,
    /// The folder for everything that it keeps.
    pub folder: PathBuf,
    /// The address to listen on; else the one from which it reaches the owner, with a port that the system chooses.
    pub listen: Option<SocketAddr>,
    /// How long nobody may answer before the device gives up.
    pub patience: Duration,
}

/// Something that a device tells while it joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The owner does not answer yet, and is called again.
    NoAnswer {
        /// The address in the ticket that was called.
        address: SocketAddr,
        /// How much longer this is tried, in seconds.
        left: u64,
    },
    /// The owner waits for so many more devices before all agree.
    Waits(usize),
    /// The device belongs to a fleet of so many devices.
    Joined(usize),
    /// It has joined before.
    HasJoined,
}

/// The function that is called with every event.
pub type Observer<'o> = dyn FnMut(&Event) + 'o;

/// What a device keeps of its joining, with which it can be started again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Joined {
    format: Format,
    /// The id of the ticket, which is no secret.
    ticket: PeerId,
    fleet: String,
    name: String,
    /// Where it listens.
    listen: SocketAddr,
    /// Its whole configuration, as TOML.
    settings: String,
    /// The name of the user's learner, if the device joined with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    learner: Option<String>,
}

/// The version of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Format {
    #[serde(rename = "stlf-joined/1")]
    V1,
}

impl Joined {
    /// Reads what a folder has of a device that joined, if there is one.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn read(folder: &Path) -> Result<Option<Joined>, stlf_data::Error> {
        if !folder.join(JOINED).exists() {
            return Ok(None);
        }
        let folder = Folder::open(folder)?;
        let Some(bytes) = folder.read(JOINED)? else { return Ok(None) };
        let read = serde_json::from_slice(&bytes);
        read.map(Some).map_err(|e| folder.broken(JOINED, &e.to_string()))
    }

    /// Returns the name of the user's learner, if the device joined with one. It must be started with it again.
    pub fn learner(&self) -> Option<&str> {
        self.learner.as_deref()
    }

    /// Returns the options with which the device takes part.
    ///
    /// # Errors
    /// Settings that were changed by hand and cannot be used.
    pub fn options(&self, folder: &Path) -> Result<service::Options, stlf_config::Error> {
        let config = Config::parse(&self.settings, &folder.join(JOINED))?;
        let (roster, key) = (folder.join(ROSTER), folder.join(KEY));
        // The machine may have got another address since.
        let listen = moved(self.listen, other(&roster, self)).unwrap_or(self.listen);
        let options = service::Options::new(config, roster, key, folder);
        Ok(service::Options { listen, follows: true, ..options })
    }
}

/// Returns where another device of the roster in a file was when it joined, if any has an address.
fn other(roster: &Path, joined: &Joined) -> Option<SocketAddr> {
    let roster = SignedRoster::read(&std::fs::read(roster).ok()?).ok()?;
    let mut others = roster.roster().devices.iter().filter(|member| member.name != joined.name);
    others.find_map(|member| member.address)
}

/// Joins a fleet, unless that was done before, and returns what is kept of it. Blocks, and starts threads of its own.
///
/// # Errors
/// Returns the reason why the device cannot join. Its ticket can still be used then.
pub fn join(
    options: &Options,
    observer: &mut Observer<'_>,
    stop: &dyn Fn() -> bool,
) -> Result<Joined, Error> {
    if let Some(joined) = Joined::read(&options.folder)? {
        return match joined.ticket == options.ticket.id() {
            true => {
                observer(&Event::HasJoined);
                Ok(joined)
            }
            false => {
                let (folder, Joined { name, fleet, .. }) = (options.folder.clone(), joined);
                Err(Error::OtherTicket { folder, name, fleet })
            }
        };
    }
    let names_data =
        options.data.is_some() || options.changes.iter().any(|change| change.starts_with("data."));
    if !names_data && options.learner.is_none() {
        return Err(Error::NoData);
    }
    let folder = Folder::open(&options.folder)?;
    let key = folder.file(KEY);
    let identity = if key.exists() { key_file::read(&key)? } else { key_file::create(&key)? };
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build().map_err(Error::Start)?;
    let asking = async {
        let joined = ask(options, &identity, &folder, observer);
        tokio::pin!(joined);
        loop {
            tokio::select! {
                joined = &mut joined => return joined,
                () = sleep(PAUSE) => if stop() {
                    return Err(Error::Stopped);
                },
            }
        }
    };
    runtime.block_on(asking)
}

/// Asks until there is an answer, and keeps it.
async fn ask(
    options: &Options,
    identity: &Identity,
    folder: &Folder,
    observer: &mut Observer<'_>,
) -> Result<Joined, Error> {
    let ticket = &options.ticket;
    let towards = ticket.addresses().first().copied();
    let any = match towards {
        Some(SocketAddr::V6(_)) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        _ => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
    };
    // The address of one network of this machine is enough, and nobody else can reach it then.
    let listen = options.listen.unwrap_or_else(|| reachable(any, towards));
    let endpoint = network::listen(identity, listen, LOST_AFTER, PROTOCOL, None).await?;
    let bound = endpoint.bound_sockets().first().copied().unwrap_or(listen);
    let (mut silent, mut is_told) = (Instant::now(), false);
    let joined = loop {
        let connection = match call(&endpoint, ticket).await {
            Ok(connection) => connection,
            Err(Silence::Other(address)) => break Err(Error::OtherKey { address }),
            Err(Silence::None(address)) if silent.elapsed() >= options.patience => {
                break Err(Error::NoAnswer { address, within: options.patience });
            }
            Err(Silence::None(address)) => {
                if !std::mem::replace(&mut is_told, true) {
                    let left = options.patience.saturating_sub(silent.elapsed()).as_secs();
                    observer(&Event::NoAnswer { address, left });
                }
                sleep(PAUSE).await;
                continue;
            }
        };
        let mut visit = Visit { options, identity, listens: reachable(bound, towards), observer };
        match visit.ask(&connection).await {
            Ok(told) => break keep(options, identity, folder, bound, told),
            Err(Ended::For(error)) => break Err(error),
            // The owner may have stopped and come back: what it decided is on its disk.
            Err(Ended::Lost) => (silent, is_told) = (Instant::now(), false),
        }
    };
    endpoint.close().await;
    let joined = joined?;
    let devices = Joined::devices(folder).unwrap_or_default();
    observer(&Event::Joined(devices));
    Ok(joined)
}

impl Joined {
    fn devices(folder: &Folder) -> Option<usize> {
        let roster = SignedRoster::read(&folder.read(ROSTER).ok()??).ok()?;
        Some(roster.roster().devices.iter().filter(|member| member.present).count())
    }
}

/// Why there is no connection to the owner.
enum Silence {
    /// Nobody answers here.
    None(SocketAddr),
    /// Somebody else answers here.
    Other(SocketAddr),
}

/// Calls the owner at one address of the ticket after the other.
async fn call(endpoint: &Endpoint, ticket: &Ticket) -> Result<Connection, Silence> {
    let mut silence = Silence::None(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)));
    for &address in ticket.addresses() {
        let Some(owner) = address_of(ticket.owner(), &[address]) else {
            return Err(Silence::Other(address));
        };
        match endpoint.connect(owner, PROTOCOL).await {
            Ok(connection) => return Ok(connection),
            Err(error) if is_silence(&error) => silence = Silence::None(address),
            Err(_) => silence = Silence::Other(address),
        }
    }
    Err(silence)
}

fn is_silence(error: &ConnectError) -> bool {
    let source = match error {
        ConnectError::Connection { source, .. } => source,
        ConnectError::Connecting {
            source: ConnectingError::ConnectionError { source, .. },
            ..
        } => source,
        _ => return false,
    };
    match source {
        ConnectionError::TimedOut | ConnectionError::Reset => true,
        // An owner that is about to stop takes no more calls.
        ConnectionError::ApplicationClosed(_) => true,
        ConnectionError::ConnectionClosed(closed) => {
            let of_stopping =
                [TransportErrorCode::CONNECTION_REFUSED, TransportErrorCode::APPLICATION_ERROR];
            of_stopping.contains(&closed.error_code)
        }
        _ => false,
    }
}

/// One conversation with the owner.
struct Visit<'a, 'o> {
    options: &'a Options,
    identity: &'a Identity,
    listens: SocketAddr,
    observer: &'a mut Observer<'o>,
}

/// Why a conversation ended without a welcome.
enum Ended {
    /// The connection broke.
    Lost,
    /// There is no use in asking again.
    For(Error),
}

impl<E: Into<Error>> From<E> for Ended {
    fn from(error: E) -> Ended {
        Ended::For(error.into())
    }
}

/// What the owner said at last.
struct Told {
    settings: String,
    roster: String,
}

impl Visit<'_, '_> {
    async fn ask(&mut self, connection: &Connection) -> Result<Told, Ended> {
        let Options { ticket, name, changes, .. } = self.options;
        let lost = |_: String| Ended::Lost;
        let opened = connection.open_bi().await;
        let (mut out, mut from) = opened.map_err(|_| Ended::Lost)?;
        let proof = ticket.prove(self.identity.id(), name);
        let knock = Knock { ticket: ticket.id(), name: name.clone(), proof };
        send(&mut out, &knock).await.map_err(lost)?;
        let terms = match answered(&mut from).await.map_err(lost)? {
            Answer::Terms(settings) => settings,
            other => return self.last(other).map_err(Ended::For),
        };
        let brought = self.brought(&terms)?;
        let (changes, listens) = (changes.clone(), self.listens);
        send(&mut out, &Asks { brought, changes, listens }).await.map_err(lost)?;
        loop {
            match answered(&mut from).await.map_err(lost)? {
                Answer::Waits(devices) => (self.observer)(&Event::Waits(devices)),
                other => return self.last(other).map_err(Ended::For),
            }
        }
    }

    fn last(&self, answer: Answer) -> Result<Told, Error> {
        let fleet = self.options.ticket.fleet().to_owned();
        match answer {
            Answer::Welcome { settings, roster } => Ok(Told { settings, roster }),
            Answer::Refused(Refusal { reason, setting }) => {
                Err(Error::Refused { fleet, reason, setting })
            }
            Answer::Terms(_) | Answer::Waits(_) => {
                Err(Error::Unusable { fleet, message: "no answer".to_owned() })
            }
        }
    }

    /// Reads this device's data by the settings of the fleet, and checks all that it will check of them when it starts, before the ticket is used.
    fn brought(&self, settings: &str) -> Result<Brought, Error> {
        let Options { ticket, name, folder, learner, .. } = self.options;
        let config = configured(self.options, settings)?;
        let options = service::Options::new(config, folder.join(ROSTER), folder.join(KEY), folder);
        let options = service::Options { learner: learner.clone(), ..options };
        Ok(service::brought(options, self.identity, name, ticket.owner())?)
    }
}

/// Returns the configuration of a device under the settings of its fleet.
fn configured(options: &Options, settings: &str) -> Result<Config, stlf_config::Error> {
    let config = of_fleet(settings)?;
    // It may be started again from elsewhere.
    let data = options.data.as_ref().map(|path| std::path::absolute(path).unwrap_or(path.clone()));
    let changes: Vec<&str> = options.changes.iter().map(String::as_str).collect();
    with_own_data(&config, data.as_deref(), &changes)
}

/// Reads the settings that the owner gives to all devices.
fn of_fleet(settings: &str) -> Result<Config, stlf_config::Error> {
    Config::parse(settings, Path::new("the fleet's settings"))
}

/// Checks what the owner said, and keeps it: last of all that the device has joined.
fn keep(
    options: &Options,
    identity: &Identity,
    folder: &Folder,
    listen: SocketAddr,
    told: Told,
) -> Result<Joined, Error> {
    let ticket = &options.ticket;
    let fleet = ticket.fleet().to_owned();
    let wrong =
        |message: &str| Error::Unusable { fleet: fleet.clone(), message: message.to_owned() };
    let roster = SignedRoster::read(told.roster.as_bytes()).map_err(|e| wrong(&e.to_string()))?;
    let list = roster.roster();
    if (list.owner, list.fleet.as_str()) != (ticket.owner(), ticket.fleet()) {
        return Err(wrong("a roster of another fleet or owner"));
    }
    if list.place(identity.id()).is_none() {
        return Err(wrong("a roster without this device"));
    }
    let mut config = configured(options, &told.settings)?;
    // The classes that all agreed on, in their order, are not the device's to change.
    if let Some(agreed) = of_fleet(&told.settings)?.data.classes {
        config.data.classes = Some(agreed);
    }
    let settings = config.to_toml()?;
    let (format, ticket, name) = (Format::V1, ticket.id(), options.name.clone());
    let learner = options.learner.as_ref().map(|user| user.name.clone());
    let joined = Joined { format, ticket, fleet: fleet.clone(), name, listen, settings, learner };
    folder.write_durably(ROSTER, roster.to_json().as_bytes())?;
    folder.write_json_durably(JOINED, &joined)?;
    Ok(joined)
}
