//! A device on a real network: QUIC between keys that the roster knows, messages as streams, models as verified blobs.
//!
//! Of two devices the one with the later place in the roster calls the other. All that a device hears goes into one queue, and
//! one loop drives the [`Device`] and its [`Membership`](stlf_protocol::membership::Membership); nothing else touches them.

mod jobs;
mod link;
mod meeting;
mod member;
mod models;
mod outbox;
mod rates;
mod transfers;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use iroh::endpoint::{Connection, IdleTimeout, QuicTransportConfig, VarInt, presets};
use iroh::{Endpoint, EndpointAddr, PublicKey, SecretKey};
use serde::Serialize;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use self::member::Member;
pub use self::member::View;
pub use self::models::StoreError;
use stlf_protocol::device::Device;
use stlf_protocol::identity::{Identity, PeerId};
use stlf_protocol::membership::Timing;
use stlf_protocol::roster::{Roster, SignedRoster};
use stlf_protocol::shared::{Difference, SharedSettings};

/// What both ends of a connection speak.
const PROTOCOL: &[u8] = b"stlf/node/4";

/// A connection on which nothing was heard for so long is lost, in a small fleet. In a large one every device has many, and to
/// keep them all alive so often would be most of what it does.
const LOST_AFTER: Duration = Duration::from_secs(4);

/// So many devices make a fleet large; the time grows with them.
const LARGE: u32 = 20;

/// So many times within that, something is said on a connection.
const SIGNS_OF_LIFE: u32 = 4;

/// How often an observer hears that all is well.
const ALIVE_EVERY: Duration = Duration::from_secs(1);

/// So many devices are called at once.
const CALLS_AT_ONCE: usize = 4;

/// Between two calls to a device that did not answer.
const CALL_AGAIN_AFTER: Duration = Duration::from_millis(300);

/// How often the membership looks at the clock.
const TICK: Duration = Duration::from_millis(50);

/// How a device takes part.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where devices listen, by place.
    pub peers: BTreeMap<usize, SocketAddr>,
    /// How long things may take.
    pub timing: Timing,
    /// Whether to leave once an epoch is over, and how long that may take; else it goes on until it is told to stop.
    pub once: Option<Duration>,
    /// The last epoch that this device took part in.
    pub epoch: u64,
    /// Where models are kept, so that a transfer that breaks goes on where it was; else in memory.
    pub store: Option<PathBuf>,
    /// Joules of sending a model over a link of so many bits per second, where links are measured: this over the rate.
    pub joule_bits_per_second: f64,
    /// What must be the same on all devices. Those with other settings take no part.
    pub settings: SharedSettings,
}

/// What an observer hears.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// It listens here.
    Listens(SocketAddr),
    /// A device came, by place.
    Came(usize),
    /// A device was lost.
    Lost(usize),
    /// A device of the fleet has other settings and takes no part as long as it has.
    Differs {
        /// Which.
        from: usize,
        /// The first setting that differs.
        #[serde(flatten)]
        difference: Difference,
    },
    /// Somebody who is not in the roster was turned away.
    TurnedAway(PeerId),
    /// A newer roster was heard of and is used from now on.
    Roster(Box<SignedRoster>),
    /// An epoch began with so many devices. Nothing of it has been done yet.
    Began {
        /// Its number.
        epoch: u64,
        /// How many take part.
        devices: usize,
    },
    /// There is a plan.
    Planned {
        /// Whether nothing is better: proven, and nothing was kept of the last plan that costs more.
        optimal: bool,
    },
    /// There is none, and why.
    NoPlan(String),
    /// A device is left out: it was silent for too long, or nothing can be planned for it.
    LeftOut(usize),
    /// No usable model came over a link; the planner does without it.
    Forbidden {
        /// The sender.
        from: usize,
        /// The receiver.
        to: usize,
    },
    /// A model came, so many bytes, some of which may have been here before.
    Received {
        /// Whose.
        from: usize,
        /// Its size.
        bytes: u64,
    },
    /// A model did not come, or is none, and why.
    NotReceived {
        /// Whose.
        from: usize,
        /// Why.
        reason: String,
    },
    /// By the plan this device trains on another's model, and waits for it.
    Awaits {
        /// Whose.
        from: usize,
    },
    /// It is here, and this device trains it on.
    TrainsOn {
        /// Whose.
        from: usize,
    },
    /// That is done; the result is this device's model in this epoch.
    TrainedOn {
        /// Whose.
        from: usize,
    },
    /// The epoch is over for this device, and others are told next.
    Ended,
    /// The epoch is over for all.
    Complete,
    /// Nothing new, every second.
    Alive,
    /// A message was refused, and why.
    Refused {
        /// Whose.
        from: usize,
        /// Why.
        reason: String,
    },
}

/// What a running device is told from outside.
#[derive(Debug)]
pub enum Order {
    /// Leave.
    Stop,
    /// Use this roster, if it is newer.
    Roster(Box<SignedRoster>),
}

/// Why it ended without an outcome.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot listen.
    #[error("cannot listen on {address}: {message}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        message: String,
    },
    /// Nobody came.
    #[error("no other device came within {0:?}")]
    Alone(Duration),
    /// The epoch took too long.
    #[error("no epoch ended within {0:?}; devices still here: {1:?}")]
    Deadline(Duration, Vec<usize>),
    /// Models cannot be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Takes part: joins, measures, plans or follows the plan, sends or receives models, epoch after epoch, until it is told to stop or, where
/// [`Options::once`] says so, an epoch is over. The device keeps what came of it.
///
/// # Errors
/// Says why there is no outcome.
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
    let endpoint = listen(identity, options.listen, lost_after).await?;
    let calls = Arc::new(Semaphore::new(CALLS_AT_ONCE));
    let address = endpoint.bound_sockets().first().copied().unwrap_or(options.listen);
    let (queue, mut news) = mpsc::channel(1024);
    let started = Instant::now();
    let own = device.place();
    let mut tasks = JoinSet::new();
    // Without a source of random numbers there would be no key either.
    let start = getrandom::u64().unwrap_or_default();
    let longest = Arc::new(AtomicUsize::new(device.limits().longest()));
    let ears = link::Ears { models: models.clone(), queue, longest };
    tasks.spawn(link::accept(endpoint.clone(), ears.clone()));
    let mut member = Member::new(device, roster, ears.clone(), start, &options);
    member.tell(Event::Listens(address), observer);
    let mut clock = interval(TICK);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let end = options.once.map(|most| started + options.timing.wait + most);
    let never = started + Duration::from_secs(60 * 60 * 24 * 365);
    let mut called = std::collections::BTreeSet::new();
    let mut has_met = false;
    let mut alive = ALIVE_EVERY;
    let ended = loop {
        // Whoever the roster has, and came before this device, is called.
        for (place, key) in member.to_call(&options.peers) {
            if place < own && called.insert(place) {
                let callee = link::Callee { key, address: options.peers[&place] };
                tasks.spawn(link::call(endpoint.clone(), callee, calls.clone(), ears.clone()));
            }
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

/// No relays, no lookups: addresses are given, and nobody else is told of them.
async fn listen(
    identity: &Identity,
    address: SocketAddr,
    lost_after: Duration,
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
        .alpns(vec![PROTOCOL.to_vec()])
        .transport_config(transport)
        .clear_ip_transports()
        .bind_addr(address)
        .map_err(|e| wrong(format!("{e:#}")))?
        .bind()
        .await
        .map_err(|e| wrong(format!("{e:#}")))
}

/// How long nothing may be heard on a connection.
fn lost_after(roster: &Roster) -> Duration {
    let devices = u32::try_from(roster.devices.len()).unwrap_or(u32::MAX);
    LOST_AFTER * devices.max(LARGE) / LARGE
}

/// Where a key is called.
fn address_of(key: PeerId, address: SocketAddr) -> Option<EndpointAddr> {
    let key = PublicKey::from_bytes(key.as_bytes()).ok()?;
    Some(EndpointAddr::new(key).with_ip_addr(address))
}

/// Whom a connection is with.
fn peer_of(connection: &Connection) -> PeerId {
    PeerId::from_bytes(*connection.remote_id().as_bytes())
}
