//! A device on a real network: QUIC between keys that the roster knows, messages as streams, models on request.
//!
//! Of two devices the one with the later place in the roster calls the other. All messages to a device go into one queue, and
//! one loop drives the [`Device`]; nothing else touches it.

mod link;
mod member;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use iroh::endpoint::{Connection, IdleTimeout, QuicTransportConfig, VarInt, presets};
use iroh::{Endpoint, EndpointAddr, PublicKey, SecretKey};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use self::member::Member;
use crate::device::Device;
use crate::identity::{Identity, PeerId};
use crate::roster::Roster;

/// What both ends of a connection speak.
const PROTOCOL: &[u8] = b"stlf/node/1";

/// A connection on which nothing was heard for so long is lost.
const LOST_AFTER: Duration = Duration::from_secs(4);

/// How often something is said on a connection.
const ALIVE_EVERY: Duration = Duration::from_secs(1);

/// Between two calls to a device that did not answer.
const CALL_AGAIN_AFTER: Duration = Duration::from_millis(300);

/// How a device takes part.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where devices listen, by place.
    pub peers: BTreeMap<usize, SocketAddr>,
    /// How long to wait for all to come; then those that came begin.
    pub wait: Duration,
    /// How long an epoch may take.
    pub deadline: Duration,
}

/// What an observer hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// It listens here.
    Listens(SocketAddr),
    /// A device came, by place.
    Came(usize),
    /// A device was lost.
    Lost(usize),
    /// Somebody who is not in the roster was turned away.
    TurnedAway(PeerId),
    /// An epoch began with so many devices.
    Began {
        /// Its number.
        epoch: u64,
        /// How many take part.
        devices: usize,
    },
    /// There is a plan.
    Planned,
    /// A message was refused, and why.
    Refused {
        /// Whose.
        from: usize,
        /// Why.
        reason: String,
    },
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
    #[error("the epoch did not end within {0:?}; devices still here: {1:?}")]
    Deadline(Duration, Vec<usize>),
}

/// Runs one epoch: joins, measures, plans or follows the plan, sends or receives models. The device keeps what came of it.
///
/// # Errors
/// Says why there is no outcome.
pub async fn run(
    device: Device,
    roster: Roster,
    identity: &Identity,
    options: Options,
    observer: &mut (dyn FnMut(Event) + Send),
) -> Result<Device, Error> {
    let endpoint = listen(identity, options.listen).await?;
    let address = endpoint.bound_sockets().first().copied().unwrap_or(options.listen);
    observer(Event::Listens(address));
    let (queue, mut news) = mpsc::channel(1024);
    let mut tasks = JoinSet::new();
    tasks.spawn(link::accept(endpoint.clone(), queue.clone()));
    for (&place, &address) in options.peers.iter().filter(|(place, _)| **place < device.place()) {
        if let Some(member) = roster.devices.get(place).filter(|member| member.present) {
            tasks.spawn(link::call(endpoint.clone(), member.key, address, queue.clone()));
        }
    }
    let others = roster.devices.iter().filter(|m| m.present).count().saturating_sub(1);
    let mut member = Member::new(device, roster, queue);
    let started = Instant::now();
    // First those that come, then the epoch.
    while member.connected() < others {
        match timeout(options.wait.saturating_sub(started.elapsed()), news.recv()).await {
            Ok(Some(news)) => member.hear(news, observer),
            Ok(None) | Err(_) => break,
        }
    }
    if member.connected() == 0 && others > 0 {
        endpoint.close().await;
        return Err(Error::Alone(options.wait));
    }
    member.begin_if_first(observer);
    let deadline = Instant::now() + options.deadline;
    while !member.is_done() {
        tokio::select! {
            news = news.recv() => match news {
                Some(news) => member.hear(news, observer),
                None => break,
            },
            Some(()) = member.sent() => {}
            () = sleep_until(deadline) => {
                endpoint.close().await;
                return Err(Error::Deadline(options.deadline, member.places()));
            }
        }
    }
    // Others may still be reading.
    member.settle().await;
    tasks.abort_all();
    endpoint.close().await;
    Ok(member.into_device())
}

/// No relays, no lookups: addresses are given, and nobody else is told of them.
async fn listen(identity: &Identity, address: SocketAddr) -> Result<Endpoint, Error> {
    let wrong = |message: String| Error::Listen { address, message };
    let idle = IdleTimeout::try_from(LOST_AFTER).map_err(|e| wrong(e.to_string()))?;
    let transport = QuicTransportConfig::builder()
        .max_idle_timeout(Some(idle))
        .keep_alive_interval(ALIVE_EVERY)
        .max_concurrent_uni_streams(VarInt::from_u32(64))
        .max_concurrent_bidi_streams(VarInt::from_u32(4))
        .build();
    Endpoint::builder(presets::Minimal)
        .secret_key(SecretKey::from_bytes(&identity.to_bytes()))
        .alpns(vec![PROTOCOL.to_vec()])
        .transport_config(transport)
        .clear_ip_transports()
        .bind_addr(address)
        .map_err(|e| wrong(e.to_string()))?
        .bind()
        .await
        .map_err(|e| wrong(e.to_string()))
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

/// Places as a set, for those that came.
type Places = BTreeSet<usize>;
