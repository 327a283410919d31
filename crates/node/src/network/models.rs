//! Models on their way: verified blobs, which a source gives to its targets only and a target keeps on disk as they come.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use iroh::endpoint::Connection;
use iroh_blobs::Hash;
use iroh_blobs::api::Store;
use iroh_blobs::get::request::get_verified_size;
use iroh_blobs::provider::events::{
    AbortReason, ConnectMode, EventMask, EventSender, ObserveMode, ProviderMessage, RequestMode,
    ThrottleMode,
};
use iroh_blobs::provider::{StreamPair, handle_stream};
use iroh_blobs::store::fs::FsStore;
use iroh_blobs::store::mem::MemStore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::peer_of;
use crate::identity::PeerId;
use crate::wire::Offer;

/// Nothing of a model for so long: it does not come.
const NO_MODEL_AFTER: Duration = Duration::from_secs(600);

/// Models cannot be kept.
#[derive(Debug, thiserror::Error)]
#[error("cannot keep models: {0}")]
pub struct StoreError(String);

/// The store of models, and who may have which.
#[derive(Debug, Clone)]
pub(super) struct Models {
    store: Store,
    allowed: Arc<Mutex<BTreeSet<(PeerId, Hash)>>>,
}

impl Models {
    /// In a folder, or else in memory.
    pub(super) async fn open(folder: Option<&Path>) -> Result<Models, StoreError> {
        let store: Store = match folder {
            Some(folder) => {
                let opened = FsStore::load(folder).await;
                opened.map_err(|e| StoreError(format!("{}: {e}", folder.display())))?.into()
            }
            None => MemStore::new().into(),
        };
        Ok(Models { store, allowed: Arc::default() })
    }

    /// Lets these devices, and nobody else, have a model.
    pub(super) async fn offer(&self, model: Vec<u8>, to: &[PeerId]) -> Result<Offer, StoreError> {
        let bytes = model.len() as u64;
        let added = self.store.blobs().add_bytes(model).with_tag().await;
        let hash = added.map_err(|e| StoreError(e.to_string()))?.hash;
        let mut allowed = self.allowed.lock().unwrap_or_else(PoisonError::into_inner);
        *allowed = to.iter().map(|&peer| (peer, hash)).collect();
        Ok(Offer { hash: *hash.as_bytes(), bytes })
    }

    /// Answers requests that come over a connection, as long as it is there.
    pub(super) async fn serve(&self, connection: &Connection) {
        let peer = peer_of(connection);
        let mask = EventMask {
            connected: ConnectMode::None,
            get: RequestMode::Intercept,
            get_many: RequestMode::Disabled,
            push: RequestMode::Disabled,
            observe: ObserveMode::Intercept,
            throttle: ThrottleMode::None,
        };
        let (events, mut asked) = EventSender::channel(8, mask);
        let decide = async {
            while let Some(message) = asked.recv().await {
                match message {
                    ProviderMessage::GetRequestReceived(request) => {
                        let may = request.request.ranges.is_blob()
                            && self.may_have(peer, request.request.hash);
                        let answer = if may { Ok(()) } else { Err(AbortReason::Permission) };
                        let _ = request.tx.send(answer).await;
                    }
                    ProviderMessage::ObserveRequestReceived(request) => {
                        let _ = request.tx.send(Err(AbortReason::Permission)).await;
                    }
                    _ => {}
                }
            }
        };
        let answer = async {
            // A connection has few streams at once, so these are few.
            let mut streams = JoinSet::new();
            while let Ok(pair) = StreamPair::accept(connection, events.clone()).await {
                streams.spawn(handle_stream(pair, self.store.clone()));
                while streams.try_join_next().is_some() {}
            }
        };
        tokio::select! {
            () = decide => {}
            () = answer => {}
        }
    }

    fn may_have(&self, peer: PeerId, hash: Hash) -> bool {
        let allowed = self.allowed.lock().unwrap_or_else(PoisonError::into_inner);
        allowed.contains(&(peer, hash))
    }

    /// Gets a model, or what is missing of it. Every part is checked against the hash as it comes.
    pub(super) async fn fetch(
        &self,
        connection: &Connection,
        offer: Offer,
    ) -> Result<Vec<u8>, String> {
        let hash = Hash::from_bytes(offer.hash);
        let fetched = async {
            // What a peer says of its size is not believed before the last part proves it.
            let (size, _) =
                get_verified_size(connection, &hash).await.map_err(|e| format!("{e:#}"))?;
            if size != offer.bytes {
                return Err(format!("{size} bytes, where {} were offered", offer.bytes));
            }
            let fetch = self.store.remote().fetch(connection.clone(), hash);
            fetch.complete().await.map_err(|e| format!("{e:#}"))?;
            let bytes = self.store.blobs().get_bytes(hash).await;
            Ok(bytes.map_err(|e| format!("{e:#}"))?.to_vec())
        };
        match timeout(NO_MODEL_AFTER, fetched).await {
            Ok(fetched) => fetched,
            Err(_) => Err(format!("nothing came within {NO_MODEL_AFTER:?}")),
        }
    }

    /// Writes what is in memory.
    pub(super) async fn close(&self) {
        // A store that cannot be closed is as good as one that was killed: it is read again from what is on disk.
        let _ = self.store.shutdown().await;
    }
}
