//! A device on a real network: QUIC connections between keys that are in the roster, messages as streams, models as verified blobs.
//!
//! Of two devices, the one with the later place in the roster calls the other; if it does not for long, the other one calls. Everything
//! that a device receives goes into one queue, and one loop drives the [`Participant`](stlf_protocol::participant::Participant); nothing
//! else touches it.

mod absences;
mod addresses;
mod jobs;
mod link;
mod member;
mod models;
mod neighbours;
pub(crate) mod own_address;
mod pace;
mod rates;
mod reach;
mod waiting;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

pub use iroh::RelayUrl;
use iroh::endpoint::{Connection, IdleTimeout, QuicTransportConfig, VarInt, presets};
use iroh::{Endpoint, EndpointAddr, PublicKey, RelayMode, SecretKey, TransportAddr};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use self::link::Ears;
use self::member::Member;
pub use self::member::View;
pub use self::models::StoreError;
use self::pace::Paces;
use self::reach::Reach;
use stlf_protocol::device::Device;
use stlf_protocol::identity::{Identity, PeerId};
use stlf_protocol::membership::Timing;
pub use stlf_protocol::participant::{Absence, Event};
use stlf_protocol::roster::{Place, Roster, SignedRoster};
use stlf_protocol::shared::SharedSettings;

/// The name and version of the protocol that both ends of a connection must speak.
const PROTOCOL: &[u8] = b"stlf/node/7";

/// In a small fleet, a connection on which nothing was received for this long counts as lost. In a large fleet every device has many
/// connections, and keeping all of them alive at this rate would be most of its work.
pub(crate) const LOST_AFTER: Duration = Duration::from_secs(4);

/// A fleet of more devices than this is large; the time after which a connection counts as lost grows in proportion.
const LARGE: u32 = 20;

/// How many keep-alive packets are sent on a connection within the time after which it counts as lost.
const SIGNS_OF_LIFE: u32 = 4;

/// How many messages of a peer may be on their way at once, of which one is read after the other.
const UNREAD_MESSAGES: u32 = 16;

/// How many requests of a peer may be on their way at once.
const UNREAD_REQUESTS: u32 = 4;

/// How many bytes of each of these this device holds for a peer before it reads them. With all of them a connection takes 5 MiB at most, and none
/// of them keeps another one from being read.
const UNREAD_BYTES: u32 = 256 * 1024;

/// How often an observer gets [`Event::Alive`].
const ALIVE_EVERY: Duration = Duration::from_secs(1);

/// How often a store of models that has failed is opened again, until that works.
const MEND_EVERY: Duration = Duration::from_secs(5);

/// How many announcements on the local network wait to be handled; further ones are not heard.
const MOST_ANNOUNCED: usize = 16;

/// The interval at which timeouts of the membership are checked.
const TICK: Duration = Duration::from_millis(50);

/// Settings with which a device takes part in its fleet.
#[derive(Debug, Clone)]
pub struct Options {
    /// The address on which this device listens.
    pub listen: SocketAddr,
    /// Whether to listen elsewhere, with the same port, if this machine no longer has that address.
    pub follows: bool,
    /// The addresses of other devices, by their place in the roster, if they are not as the roster has them.
    pub peers: BTreeMap<Place, SocketAddr>,
    /// Where each of them was connected last, in an earlier run.
    pub seen: BTreeMap<Place, SocketAddr>,
    /// Whether to announce this device on the local network, and to look for others there.
    pub searches: bool,
    /// The relay by which devices reach each other that cannot do so directly, if there is one.
    pub relay: Option<RelayUrl>,
    /// The time limits for joining, settling and progress within an epoch.
    pub timing: Timing,
    /// If given, the device leaves once an epoch is over, and fails if that takes longer than this. Otherwise it continues until it is told
    /// to stop.
    pub once: Option<Duration>,
    /// The last epoch that this device took part in.
    pub epoch: u64,
    /// The planners that this device found to have lied, and for how long it does without them from its start on.
    pub convicted: BTreeMap<Place, Duration>,
    /// The folder for received models, with which an interrupted transfer can be resumed; without one, models are kept in memory.
    pub store: Option<PathBuf>,
    /// If links are measured, this number divided by a link's bits per second gives the joules of sending a model over it.
    pub joule_bits_per_second: f64,
    /// The settings that must be equal on all devices. A device with different ones does not take part.
    pub settings: SharedSettings,
}

/// An instruction to a running device from outside.
#[derive(Debug)]
pub enum Order {
    /// Leave the fleet and end.
    Stop,
    /// Use this roster, if it is newer than the current one.
    Roster(Box<SignedRoster>),
    /// Take part with the data of this device from the next epoch on, and ask for one.
    Renew(Box<Device>),
}

/// The reason why a device ended without an outcome.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The device cannot listen on its address.
    #[error("cannot listen on {address}: {message}")]
    Listen {
        /// The address that was asked for.
        address: SocketAddr,
        /// The message of the operating system.
        message: String,
    },
    /// No other device connected in time.
    #[error("no other device connected within {0:?}")]
    Alone(Duration),
    /// No epoch ended within the time limit.
    #[error("no epoch ended within {0:?}; devices still here: [{here}]", here = listed(.1))]
    Deadline(Duration, Vec<Place>),
    /// Models cannot be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Takes part in the fleet: joins, measures, plans or follows the plan, sends or receives models, epoch after epoch, until it is told to
/// stop or, if [`Options::once`] is given, an epoch is over. Returns the device with its results.
///
/// # Errors
/// Returns the reason why there is no outcome.
pub async fn run(
    device: Device,
    roster: SignedRoster,
    identity: &Identity,
    options: Options,
    mut orders: mpsc::Receiver<Order>,
    observer: &mut (dyn FnMut(&View<'_>, Event) + Send),
) -> Result<Device, Error> {
    let models = models::Models::open(options.store.as_deref()).await?;
    let (queue, mut news) = mpsc::channel(1024);
    let (heard, mut announced) = mpsc::channel(MOST_ANNOUNCED);
    let started = Instant::now();
    // Without a source of random numbers there would be no key either.
    let start = getrandom::u64().unwrap_or_default();
    let longest = Arc::new(AtomicUsize::new(device.limits().longest()));
    let ears = Ears { models: models.clone(), queue, longest, paces: Paces::new() };
    let list = roster.roster().clone();
    let mut member = Member::new(device, roster, ears.clone(), start, &options);
    let open = async |address| {
        Reach::open(address, identity, &list, &options, (ears.clone(), heard.clone())).await
    };
    let (mut reach, mut trouble) = open(options.listen).await?;
    member.tell(Event::Listens(reach.address().to_string()), observer);
    let mut clock = interval(TICK);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let end = options.once.map(|most| started + options.timing.wait + most);
    let never = started + Duration::from_secs(60 * 60 * 24 * 365);
    let mut has_met = false;
    let (mut alive, mut mends) = (ALIVE_EVERY, MEND_EVERY);
    let ended = loop {
        if let Some(trouble) = trouble.take() {
            member.tell(Event::CannotSearch(trouble), observer);
        }
        has_met |= member.has_met();
        if options.once.is_some() && member.is_over() {
            break Ok(());
        }
        tokio::select! {
            news = news.recv() => match news {
                Some(news) => member.hear(news, started.elapsed(), observer),
                None => break Ok(()),
            },
            Some(announced) = announced.recv() => member.hear_announced(announced),
            _ = clock.tick() => {
                let now = started.elapsed();
                member.tick(now, observer);
                reach.call(&member);
                if now >= alive {
                    alive = now + ALIVE_EVERY;
                    member.tell(Event::Alive, observer);
                    if models.has_failed() && now >= mends {
                        mends = now + MEND_EVERY;
                        // To the others it is as if the device was started again, so that they send it models again.
                        if models.mend().await {
                            member.start_anew(getrandom::u64().unwrap_or_default(), now, observer);
                        }
                    }
                    // What cannot be opened now is tried again in a second.
                    if options.follows
                        && let Some(address) = own_address::moved(reach.address(), member.towards())
                        && let Ok((elsewhere, cannot)) = open(address).await
                    {
                        std::mem::replace(&mut reach, elsewhere).close(LOST_AFTER).await;
                        trouble = cannot;
                        member.lose_all(now, observer);
                        member.tell(Event::Listens(reach.address().to_string()), observer);
                    }
                }
                if options.once.is_some() && !has_met && now >= options.timing.wait {
                    break Err(Error::Alone(options.timing.wait));
                }
            }
            () = sleep_until(end.unwrap_or(never)), if end.is_some() => {
                break Err(Error::Deadline(options.once.unwrap_or_default(), member.places()));
            }
            order = orders.recv() => match order {
                Some(Order::Roster(roster)) => member.offer_roster(*roster, observer),
                Some(Order::Renew(fresh)) => member.renew(*fresh),
                Some(Order::Stop) | None => break Ok(()),
            },
        }
    };
    // Others may still be reading.
    member.settle().await;
    reach.close(LOST_AFTER).await;
    models.close().await;
    ended.map(|()| member.into_device())
}

/// Opens the endpoint, without address lookups and, unless there is one of the user's, without a relay: addresses are given, and nobody
/// else learns them.
pub(crate) async fn listen(
    identity: &Identity,
    address: SocketAddr,
    lost_after: Duration,
    protocol: &[u8],
    relay: Option<&RelayUrl>,
) -> Result<Endpoint, Error> {
    let wrong = |message: String| Error::Listen { address, message };
    let idle = IdleTimeout::try_from(lost_after).map_err(|e| wrong(e.to_string()))?;
    let mut transport = QuicTransportConfig::builder()
        .max_idle_timeout(Some(idle))
        .keep_alive_interval(lost_after / SIGNS_OF_LIFE)
        .max_concurrent_uni_streams(VarInt::from_u32(UNREAD_MESSAGES))
        .max_concurrent_bidi_streams(VarInt::from_u32(UNREAD_REQUESTS))
        .stream_receive_window(VarInt::from_u32(UNREAD_BYTES))
        .receive_window(VarInt::from_u32((UNREAD_MESSAGES + UNREAD_REQUESTS) * UNREAD_BYTES));
    // Looking for the longest packets that a path takes is about a third of what two devices send each other in an epoch of a large fleet.
    if lost_after > LOST_AFTER {
        transport = transport.mtu_discovery_config(None);
    }
    let relays = match relay {
        Some(relay) => RelayMode::custom([relay.clone()]),
        None => RelayMode::Disabled,
    };
    Endpoint::builder(presets::Minimal)
        .relay_mode(relays)
        .secret_key(SecretKey::from_bytes(&identity.to_bytes()))
        .alpns(vec![protocol.to_vec()])
        .transport_config(transport.build())
        .clear_ip_transports()
        .bind_addr(address)
        .map_err(|e| wrong(format!("{e:#}")))?
        .bind()
        .await
        .map_err(|e| wrong(format!("{e:#}")))
}

/// Returns places as text for people.
fn listed(places: &[Place]) -> String {
    places.iter().map(Place::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns how long a connection may be silent before it counts as lost, which depends on the size of the fleet.
fn lost_after(roster: &Roster) -> Duration {
    LOST_AFTER.mul_f64(times_large(roster))
}

/// Returns how many times as large a fleet is as one that is not large; 1 if it is not.
fn times_large(roster: &Roster) -> f64 {
    (roster.devices.len() as f64 / f64::from(LARGE)).max(1.0)
}

/// Returns how a key is called at these addresses, or nothing if the key is not valid.
pub(crate) fn address_of(key: PeerId, addresses: &[SocketAddr]) -> Option<EndpointAddr> {
    let key = PublicKey::from_bytes(key.as_bytes()).ok()?;
    Some(EndpointAddr::from_parts(key, addresses.iter().copied().map(TransportAddr::Ip)))
}

/// Returns the key of the device at the other end of a connection.
pub(crate) fn peer_of(connection: &Connection) -> PeerId {
    PeerId::from_bytes(*connection.remote_id().as_bytes())
}
