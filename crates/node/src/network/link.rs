//! Connections: calling, answering, and what comes in over them.

use std::net::SocketAddr;

use iroh::Endpoint;
use iroh::endpoint::{Connection, SendStream};
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{CALL_AGAIN_AFTER, PROTOCOL, address_of, peer_of};
use crate::identity::PeerId;
use crate::wire::MOST_BYTES;

/// What a request for a model says.
const MODEL: &[u8] = b"model";

/// The largest model, as safetensors.
const MOST_MODEL_BYTES: usize = 1 << 30;

/// What the one loop hears.
pub(super) enum News {
    /// A connection, with whom.
    Came(PeerId, Connection),
    /// A connection is lost.
    Lost(PeerId),
    /// Bytes of a message.
    Message(PeerId, Vec<u8>),
    /// Somebody asks for this device's model.
    Asked(PeerId, SendStream),
    /// A model that was asked for; none where it could not be had.
    Model(PeerId, Option<Vec<u8>>),
}

/// Answers calls, as long as the endpoint is there. All that it started ends with it.
pub(super) async fn accept(endpoint: Endpoint, queue: Sender<News>) {
    let mut connections = JoinSet::new();
    while let Some(incoming) = endpoint.accept().await {
        let queue = queue.clone();
        connections.spawn(async move {
            if let Ok(connection) = incoming.await {
                listen(connection, queue).await;
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

/// Calls until somebody answers, and again when the connection is lost.
pub(super) async fn call(
    endpoint: Endpoint,
    key: PeerId,
    address: SocketAddr,
    queue: Sender<News>,
) {
    let Some(address) = address_of(key, address) else { return };
    while !endpoint.is_closed() {
        if let Ok(connection) = endpoint.connect(address.clone(), PROTOCOL).await {
            listen(connection, queue.clone()).await;
        }
        sleep(CALL_AGAIN_AFTER).await;
    }
}

/// Passes on what comes in, until the connection is lost.
async fn listen(connection: Connection, queue: Sender<News>) {
    let peer = peer_of(&connection);
    if queue.send(News::Came(peer, connection.clone())).await.is_err() {
        return;
    }
    let messages = async {
        while let Ok(mut stream) = connection.accept_uni().await {
            // One message after the other: a peer cannot make this device hold more than one of its own.
            let Ok(bytes) = stream.read_to_end(MOST_BYTES).await else { break };
            if queue.send(News::Message(peer, bytes)).await.is_err() {
                break;
            }
        }
    };
    let requests = async {
        while let Ok((send, mut receive)) = connection.accept_bi().await {
            match receive.read_to_end(MODEL.len()).await {
                Ok(request) if request == MODEL => {
                    if queue.send(News::Asked(peer, send)).await.is_err() {
                        break;
                    }
                }
                _ => break,
            }
        }
    };
    tokio::join!(messages, requests);
    let _ = queue.send(News::Lost(peer)).await;
}

/// Sends a message, and waits until it has arrived.
pub(super) async fn send(connection: Connection, bytes: Vec<u8>) {
    // Who cannot be reached is noticed as lost; there is nobody to tell here.
    if let Ok(mut stream) = connection.open_uni().await
        && stream.write_all(&bytes).await.is_ok()
        && stream.finish().is_ok()
    {
        let _ = stream.stopped().await;
    }
}

/// Answers a request for a model, and waits until it has arrived.
pub(super) async fn answer(mut stream: SendStream, bytes: Vec<u8>) {
    if stream.write_all(&bytes).await.is_ok() && stream.finish().is_ok() {
        let _ = stream.stopped().await;
    }
}

/// Asks for a model.
pub(super) async fn fetch(connection: Connection, queue: Sender<News>) {
    let peer = peer_of(&connection);
    let fetched = async {
        let (mut send, mut receive) = connection.open_bi().await.ok()?;
        send.write_all(MODEL).await.ok()?;
        send.finish().ok()?;
        receive.read_to_end(MOST_MODEL_BYTES).await.ok()
    };
    let _ = queue.send(News::Model(peer, fetched.await)).await;
}
