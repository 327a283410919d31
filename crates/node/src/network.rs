//! A device on a real network: QUIC connections between keys that are in the roster, messages as streams, models as verified blobs.
//!
//! Of two devices, the one with the later place in the roster calls the other. Everything that a device receives goes into one queue, and
//! one loop drives the [`Participant`](stlf_protocol::participant::Participant); nothing else touches it.

mod absences;
mod jobs;
mod link;
mod member;
mod models;
mod rates;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use iroh::endpoint::{Connection, IdleTimeout, QuicTransportConfig, VarInt, presets};
use iroh::{Endpoint, EndpointAddr, PublicKey, SecretKey};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use self::member::Member;
pub use self::member::View;
pub use self::models::StoreError;
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

/// How often an observer gets [`Event::Alive`].
const ALIVE_EVERY: Duration = Duration::from_secs(1);

/// The number of devices that are called at the same time.
const CALLS_AT_ONCE: usize = 4;

/// The pause between two calls to a device that did not answer.
const CALL_AGAIN_AFTER: Duration = Duration::from_millis(300);

/// The pause between two calls to a device that has turned this one away, introduction and all.
const CALL_AGAIN_AFTER_REFUSAL: Duration = Duration::from_secs(5);

/// The interval at which timeouts of the membership are checked.
const TICK: Duration = Duration::from_millis(50);

/// Settings with which a device takes part in its fleet.
#[derive(Debug, Clone)]
pub struct Options {
    /// The address on which this device listens.
    pub listen: SocketAddr,
    /// The addresses of other devices, by their place in the roster, if they are not as the roster has them.
    pub peers: BTreeMap<Place, SocketAddr>,
    /// The time limits for joining, settling and progress within an epoch.
    pub timing: Timing,
    /// If given, the device leaves once an epoch is over, and fails if that takes longer than this. Otherwise it continues until it is told
    /// to stop.
    pub once: Option<Duration>,
    /// The last epoch that this device took part in.
    pub epoch: u64,
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
    #[error("no other device came within {0:?}")]
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
    let lost_after = lost_after(roster.roster());
    let endpoint = listen(identity, options.listen, lost_after, PROTOCOL).await?;
    let calls = Arc::new(Semaphore::new(CALLS_AT_ONCE));
    let address = endpoint.bound_sockets().first().copied().unwrap_or(options.listen);
    let (queue, mut news) = mpsc::channel(1024);
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    // Without a source of random numbers there would be no key either.
    let start = getrandom::u64().unwrap_or_default();
    let longest = Arc::new(AtomicUsize::new(device.limits().longest()));
    let ears = link::Ears { models: models.clone(), queue, longest };
    tasks.spawn(link::accept(endpoint.clone(), ears.clone()));
    let mut member = Member::new(device, roster, ears.clone(), start, &options);
    member.tell(Event::Listens(address.to_string()), observer);
    let mut clock = interval(TICK);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let end = options.once.map(|most| started + options.timing.wait + most);
    let never = started + Duration::from_secs(60 * 60 * 24 * 365);
    let mut called: BTreeMap<Place, watch::Sender<SocketAddr>> = BTreeMap::new();
    let mut has_met = false;
    let mut alive = ALIVE_EVERY;
    let ended = loop {
        // Whoever the roster has, and came before this device, is called.
        for (place, key, address) in member.to_call() {
            if let Some(known) = called.get(&place) {
                known.send_if_modified(|known| std::mem::replace(known, address) != address);
                continue;
            }
            let (tell, address) = watch::channel(address);
            called.insert(place, tell);
            let callee = link::Callee { key, address, introduction: member.introduction() };
            tasks.spawn(link::call(endpoint.clone(), callee, calls.clone(), ears.clone()));
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
            _ = clock.tick() => {
                let now = started.elapsed();
                member.tick(now, observer);
                if now >= alive {
                    alive = now + ALIVE_EVERY;
                    member.tell(Event::Alive, observer);
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
    tasks.abort_all();
    endpoint.close().await;
    models.close().await;
    ended.map(|()| member.into_device())
}

/// Opens the endpoint, without relays or address lookups: addresses are given, and nobody else learns them.
pub(crate) async fn listen(
    identity: &Identity,
    address: SocketAddr,
    lost_after: Duration,
    protocol: &[u8],
) -> Result<Endpoint, Error> {
    let wrong = |message: String| Error::Listen { address, message };
    let idle = IdleTimeout::try_from(lost_after).map_err(|e| wrong(e.to_string()))?;
    let transport = QuicTransportConfig::builder()
        .max_idle_timeout(Some(idle))
        .keep_alive_interval(lost_after / SIGNS_OF_LIFE)
        .max_concurrent_uni_streams(VarInt::from_u32(64))
        .max_concurrent_bidi_streams(VarInt::from_u32(4))
        .build();
    Endpoint::builder(presets::Minimal)
        .secret_key(SecretKey::from_bytes(&identity.to_bytes()))
        .alpns(vec![protocol.to_vec()])
        .transport_config(transport)
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
    let devices = u32::try_from(roster.devices.len()).unwrap_or(u32::MAX);
    LOST_AFTER * devices.max(LARGE) / LARGE
}

/// Returns the address at which a key can be called, or nothing if the key is not valid.
pub(crate) fn address_of(key: PeerId, address: SocketAddr) -> Option<EndpointAddr> {
    let key = PublicKey::from_bytes(key.as_bytes()).ok()?;
    Some(EndpointAddr::new(key).with_ip_addr(address))
}

/// Returns the key of the device at the other end of a connection.
pub(crate) fn peer_of(connection: &Connection) -> PeerId {
    PeerId::from_bytes(*connection.remote_id().as_bytes())
}
