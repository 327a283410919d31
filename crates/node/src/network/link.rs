//! Connections: calls, answers, and what arrives over them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use iroh::endpoint::{Connection, ConnectionError};
use iroh::{Endpoint, EndpointAddr};
use stlf_planning::plan::Way;
use stlf_protocol::identity::PeerId;
use stlf_protocol::job::Computed;
use stlf_protocol::roster::Place;
use stlf_protocol::wire::Offer;
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc::Sender;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::models::Models;
use super::pace::Paces;
use super::{PROTOCOL, peer_of};

/// The longest time that a peer may take to send one message.
const LONGEST_MESSAGE: Duration = Duration::from_secs(60);

/// The pause between two calls to a device that did not answer, at first.
const CALL_AGAIN_AFTER: Duration = Duration::from_millis(300);

/// The longer a device does not answer, the less often it is called: the pause is this part of the time that it has not answered.
const PART_OF_SILENCE: u32 = 20;

/// The longest pause between two calls to a device that does not answer.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// The pause between two calls to a device that has turned this one away, introduction and all.
const CALL_AGAIN_AFTER_REFUSAL: Duration = Duration::from_secs(5);

/// The code with which a device closes the connection to one that is not in its roster.
pub(super) const NOT_IN_ROSTER: u32 = 403;

/// The number of calls that may be answered at once; further calls wait.
const MOST_HANDSHAKES: usize = 64;

/// Everything that the loop gets from its queue.
pub(super) enum News {
    /// News of the peer with this key.
    Of(PeerId, PeerNews),
    /// The model that this device offers in an epoch to the devices at these places, or the reason why it cannot.
    Offered(u64, Vec<Place>, Result<Offer, String>),
    /// The result of a finished job.
    Computed(Box<Computed>),
}

/// What the loop is told about a peer.
pub(super) enum PeerNews {
    /// A new connection with the peer.
    Came(Connection),
    /// The connection with this number is lost.
    Lost(usize),
    /// The bytes of a message on the connection with this number. The next one is read once the permit is dropped.
    Message(usize, Vec<u8>, OwnedSemaphorePermit),
    /// A message of so many bytes has arrived after this time, or with `None` never will.
    Sent(usize, Option<Duration>),
    /// A model that was asked for in this epoch, of this way, or the reason why it did not arrive.
    Model(u64, Way, Result<Vec<u8>, String>),
    /// The peer does not know this device, although it was shown the roster.
    TurnsAway,
    /// The connection broke before a model arrived that was asked for in this epoch.
    Interrupted(u64, Offer),
}

/// Where the tasks that read from connections put what they receive.
#[derive(Clone)]
pub(super) struct Ears {
    pub(super) models: Models,
    pub(super) queue: Sender<News>,
    /// The most bytes of a message that is read.
    pub(super) longest: Arc<AtomicUsize>,
    /// How fast each peer is read.
    pub(super) paces: Paces,
}

/// Answers calls until the endpoint is closed. All tasks that it started end with it.
pub(super) async fn accept(endpoint: Endpoint, ears: Ears) {
    let mut connections = JoinSet::new();
    let handshakes = Arc::new(Semaphore::new(MOST_HANDSHAKES));
    while let Some(incoming) = endpoint.accept().await {
        let ears = ears.clone();
        let Ok(permit) = handshakes.clone().acquire_owned().await else { break };
        connections.spawn(async move {
            let connection = incoming.await;
            drop(permit);
            if let Ok(connection) = connection {
                listen(connection, ears).await;
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

/// A device to call.
pub(super) struct Callee {
    pub(super) key: PeerId,
    /// Where it is called, which may change; `None` while it is not to be called.
    pub(super) at: watch::Receiver<Option<EndpointAddr>>,
    /// What is said first to one that does not know this device.
    pub(super) introduction: watch::Receiver<Arc<[u8]>>,
}

/// Calls whenever the device is to be called, until it answers, and again when the connection is lost. The semaphore limits how many calls
/// run at once.
pub(super) async fn call(endpoint: Endpoint, callee: Callee, calls: Arc<Semaphore>, ears: Ears) {
    let Callee { key, mut at, introduction } = callee;
    let (mut introduces, mut answered) = (false, Instant::now());
    while !endpoint.is_closed() {
        if at.borrow_and_update().is_none() {
            if at.changed().await.is_err() {
                return;
            }
            answered = Instant::now();
            continue;
        }
        let Ok(permit) = calls.acquire().await else { return };
        // Somebody else may have held the permit for long.
        let Some(callee) = at.borrow().clone() else { continue };
        let connection = endpoint.connect(callee, PROTOCOL).await;
        drop(permit);
        let Ok(connection) = connection else {
            sleep(pause(answered.elapsed())).await;
            continue;
        };
        if introduces {
            let roster = introduction.borrow().clone();
            introduce(&connection, &roster).await;
        }
        let lost = listen(connection, ears.clone()).await;
        answered = Instant::now();
        // Who was turned away shows the roster with the next call; whoever is turned away even so calls less often.
        let was_introduced = std::mem::replace(&mut introduces, was_turned_away(lost));
        if introduces && was_introduced {
            let _ = ears.queue.send(News::Of(key, PeerNews::TurnsAway)).await;
            sleep(CALL_AGAIN_AFTER_REFUSAL).await;
        } else {
            sleep(CALL_AGAIN_AFTER).await;
        }
    }
}

/// Returns the pause before the next call to a device that has not answered for so long.
fn pause(silence: Duration) -> Duration {
    (silence / PART_OF_SILENCE).clamp(CALL_AGAIN_AFTER, LONGEST_PAUSE)
}

fn was_turned_away(lost: Option<ConnectionError>) -> bool {
    match lost {
        Some(ConnectionError::ApplicationClosed(why)) => why.error_code == NOT_IN_ROSTER.into(),
        _ => false,
    }
}

/// Shows the roster, before anything else is said on a connection.
async fn introduce(connection: &Connection, roster: &[u8]) {
    if let Ok(mut stream) = connection.open_uni().await
        && stream.write_all(roster).await.is_ok()
    {
        let _ = stream.finish();
    }
}

/// Passes on what arrives on a connection, until it is lost or says what is too long or too slow. Returns how it was lost.
async fn listen(connection: Connection, ears: Ears) -> Option<ConnectionError> {
    let Ears { models, queue, longest, paces } = ears;
    let peer = peer_of(&connection);
    if queue.send(News::Of(peer, PeerNews::Came(connection.clone()))).await.is_err() {
        return None;
    }
    let (one, id) = (Arc::new(Semaphore::new(1)), connection.stable_id());
    let messages = async {
        loop {
            let pause = paces.pause(peer);
            if !pause.is_zero() {
                sleep(pause).await;
            }
            let mut stream = match connection.accept_uni().await {
                Ok(stream) => stream,
                Err(lost) => return Some(lost),
            };
            // One message after the other: a peer cannot make this device hold more than one of its own.
            let Ok(permit) = one.clone().acquire_owned().await else { break };
            let (most, mut bytes) = (longest.load(Ordering::Relaxed), Vec::new());
            // One byte too many, by which the message is refused: who it is from may have to answer for it.
            let mut read = (&mut stream).take(most as u64 + 1);
            let Ok(Ok(length)) = timeout(LONGEST_MESSAGE, read.read_to_end(&mut bytes)).await
            else {
                break;
            };
            if queue.send(News::Of(peer, PeerNews::Message(id, bytes, permit))).await.is_err()
                || length > most
            {
                break;
            }
            paces.read(peer);
        }
        connection.close(400_u32.into(), b"a message too long or too slow");
        None
    };
    let (lost, ()) = tokio::join!(messages, models.serve(&connection));
    let _ = queue.send(News::Of(peer, PeerNews::Lost(id))).await;
    lost
}

/// Sends a message, and waits until it has arrived.
pub(super) async fn send(connection: Connection, bytes: Arc<[u8]>, queue: Sender<News>) {
    let started = Instant::now();
    // Who cannot be reached is noticed as lost; there is nobody else to tell here.
    let arrived = match connection.open_uni().await {
        Ok(mut stream) => {
            stream.write_all(&bytes).await.is_ok()
                && stream.finish().is_ok()
                && stream.stopped().await.is_ok()
        }
        Err(_) => false,
    };
    let after = arrived.then(|| started.elapsed());
    let news = PeerNews::Sent(bytes.len(), after);
    let _ = queue.send(News::Of(peer_of(&connection), news)).await;
}

/// Fetches a model, and puts the result into the queue.
pub(super) async fn fetch(
    connection: Connection,
    models: Models,
    (offer, arrived): (Offer, Arc<AtomicU64>),
    epoch: u64,
    queue: Sender<News>,
) {
    let fetched = models.fetch(&connection, offer, &arrived).await;
    let news = match fetched {
        Err(_) if connection.close_reason().is_some() => PeerNews::Interrupted(epoch, offer),
        fetched => PeerNews::Model(epoch, offer.way, fetched),
    };
    let _ = queue.send(News::Of(peer_of(&connection), news)).await;
}

/// Offers this device's model of a way to some devices, and puts the offer into the queue.
pub(super) async fn offer(
    models: Models,
    model: Vec<u8>,
    way: Way,
    to: Vec<(Place, PeerId)>,
    epoch: u64,
    queue: Sender<News>,
) {
    let (places, keys): (Vec<Place>, Vec<PeerId>) = to.into_iter().unzip();
    let offered = models.offer(model, way, &keys, epoch).await.map_err(|e| e.to_string());
    let _ = queue.send(News::Offered(epoch, places, offered)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_answer_is_called_ever_less_often() {
        let seconds = |s: u64| pause(Duration::from_secs(s)).as_millis();
        assert_eq!([0, 6, 60, 300, 86_400].map(seconds), [300, 300, 3_000, 15_000, 15_000]);
    }
}
