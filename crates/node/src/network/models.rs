//! The transfer of models as verified blobs: a source gives them to its targets only, and a target keeps on disk what has arrived. Of its own
//! models and of each other device's a device keeps the last of each way; what is older is removed after a while.

mod shelf;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use iroh::endpoint::Connection;
use iroh_blobs::api::{RequestError, Store};
use iroh_blobs::get::GetError;
use iroh_blobs::get::request::get_verified_size;
use iroh_blobs::protocol::ERR_INTERNAL;
use iroh_blobs::provider::events::{
    AbortReason, ConnectMode, EventMask, EventSender, ObserveMode, ProviderMessage, RequestMode,
    ThrottleMode,
};
use iroh_blobs::provider::{StreamPair, handle_stream};
use iroh_blobs::{Hash, HashAndFormat};
use stlf_planning::plan::Way;
use stlf_protocol::identity::PeerId;
use stlf_protocol::wire::Offer;
use tokio::task::JoinSet;
use tokio::time::sleep;

pub use self::shelf::StoreError;

use self::shelf::Shelf;
use super::peer_of;

/// The time after which a model of which nothing more has arrived is given up.
const NO_MODEL_AFTER: Duration = Duration::from_secs(600);

/// How often it is looked at how much of a model has arrived.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The pauses between requests to a source that could not read the model it offered. When many targets ask at once, its store fails some of
/// them for a moment.
const ASK_AGAIN_AFTER: [Duration; 4] = [
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
];

/// How often models are removed that newer ones have replaced.
const CLEAN_UP_EVERY: Duration = Duration::from_secs(300);

/// The reason why a model did not arrive.
struct Failure {
    reason: String,
    whose: Whose,
}

/// Where a transfer failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// The sender failed, so that it may still be able to give the model later.
    Source,
    /// The store of this device failed, such as for want of room.
    Store,
    /// On the way, or what was sent is not what was offered.
    Other,
}

impl Failure {
    fn of_store(error: impl std::fmt::Display) -> Failure {
        Failure { reason: format!("{error:#}"), whose: Whose::Store }
    }
}

impl From<GetError> for Failure {
    fn from(error: GetError) -> Failure {
        let whose = match &error {
            GetError::IrpcSend { .. } | GetError::LocalFailure { .. } => Whose::Store,
            error if error.iroh_error_code() == Some(ERR_INTERNAL) => Whose::Source,
            _ => Whose::Other,
        };
        Failure { reason: format!("{error:#}"), whose }
    }
}

/// The store of models, and the devices that may fetch each of them.
#[derive(Debug, Clone)]
pub(super) struct Models {
    shelf: Arc<Shelf>,
    allowed: Arc<Mutex<BTreeSet<(PeerId, Hash)>>>,
    /// The last epoch in which a model was offered. Held while one is stored, so that what is offered last is stored last.
    last: Arc<tokio::sync::Mutex<u64>>,
}

impl Models {
    /// Opens the store in a folder, or in memory if none is given.
    pub(super) async fn open(folder: Option<&Path>) -> Result<Models, StoreError> {
        Models::open_with(folder, CLEAN_UP_EVERY).await
    }

    async fn open_with(folder: Option<&Path>, clean_up: Duration) -> Result<Models, StoreError> {
        let shelf = Arc::new(Shelf::open(folder, clean_up).await?);
        Ok(Models { shelf, allowed: Arc::default(), last: Arc::default() })
    }

    fn store(&self) -> Store {
        self.shelf.store()
    }

    /// Returns whether the store has failed, so that it must be opened again.
    pub(super) fn has_failed(&self) -> bool {
        self.shelf.has_failed()
    }

    /// Opens a store that has failed again. Returns whether that worked.
    pub(super) async fn mend(&self) -> bool {
        self.shelf.mend().await
    }

    /// Stores the model of a way in an epoch, and lets these devices and nobody else fetch it. A model that was offered before has been fetched
    /// by then or is not needed any more: on a ring, the second way begins where the first has ended. Offers are made side by side, and one
    /// of an earlier epoch that is late changes nothing: nobody asks for it any more.
    pub(super) async fn offer(
        &self,
        model: Vec<u8>,
        way: Way,
        to: &[PeerId],
        epoch: u64,
    ) -> Result<Offer, StoreError> {
        let bytes = model.len() as u64;
        let mut last = self.last.lock().await;
        if epoch < *last {
            return Ok(Offer { way, hash: *Hash::new(&model).as_bytes(), bytes });
        }
        *last = epoch;
        let store = self.store();
        let added = store.blobs().add_bytes(model).with_named_tag(name(None, way)).await;
        let failed = |e: RequestError| {
            self.shelf.fails();
            StoreError(e.to_string())
        };
        let hash = added.map_err(failed)?.hash;
        let mut allowed = self.allowed.lock().unwrap_or_else(PoisonError::into_inner);
        *allowed = to.iter().map(|&peer| (peer, hash)).collect();
        Ok(Offer { way, hash: *hash.as_bytes(), bytes })
    }

    /// Answers requests on a connection until it ends.
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
                streams.spawn(handle_stream(pair, self.store()));
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

    /// Fetches a model, or what is missing of it, and asks again if its source could not read it. How many bytes of it are here is written to `arrived` now
    /// and then.
    pub(super) async fn fetch(
        &self,
        connection: &Connection,
        offer: Offer,
        arrived: &AtomicU64,
    ) -> Result<Vec<u8>, String> {
        let fetched = async {
            for pause in ASK_AGAIN_AFTER {
                match self.ask(connection, offer, arrived).await {
                    Err(failure) if failure.whose == Whose::Source => sleep(pause).await,
                    answer => return answer,
                }
            }
            self.ask(connection, offer, arrived).await
        };
        tokio::select! {
            fetched = fetched => fetched.map_err(|failure| {
                if failure.whose == Whose::Store {
                    self.shelf.fails();
                }
                failure.reason
            }),
            () = stands_still(arrived) => Err(format!("nothing came within {NO_MODEL_AFTER:?}")),
        }
    }

    /// Asks for a model once. Every part is checked against the hash as it arrives.
    async fn ask(
        &self,
        connection: &Connection,
        offer: Offer,
        arrived: &AtomicU64,
    ) -> Result<Vec<u8>, Failure> {
        let hash = Hash::from_bytes(offer.hash);
        // What a peer says of its size is not believed before the last part proves it.
        let (size, _) = get_verified_size(connection, &hash).await?;
        if size != offer.bytes {
            let reason = format!("{size} bytes, where {} were offered", offer.bytes);
            return Err(Failure { reason, whose: Whose::Other });
        }
        // From now on what arrives of it is kept, in place of the device's last model.
        let named = name(Some(peer_of(connection)), offer.way);
        let store = self.store();
        let kept = store.tags().set(named, HashAndFormat::raw(hash)).await;
        kept.map_err(Failure::of_store)?;
        let watched = async {
            loop {
                sleep(LOOK_EVERY).await;
                self.look(hash, arrived).await;
            }
        };
        tokio::select! {
            fetched = store.remote().fetch(connection.clone(), hash).complete() => {
                fetched?;
            }
            () = watched => {}
        }
        let bytes = store.blobs().get_bytes(hash).await;
        Ok(bytes.map_err(Failure::of_store)?.to_vec())
    }

    /// Looks how many bytes of a model are here. Those count too that came over an earlier connection.
    async fn look(&self, hash: Hash, arrived: &AtomicU64) {
        if let Ok(local) = self.store().remote().local(HashAndFormat::raw(hash)).await {
            arrived.fetch_max(local.local_bytes(), Ordering::Relaxed);
        }
    }

    /// Writes to disk what is still in memory.
    pub(super) async fn close(&self) {
        self.shelf.close().await;
    }
}

/// Waits until no more bytes have come for very long.
async fn stands_still(arrived: &AtomicU64) {
    let mut before = arrived.load(Ordering::Relaxed);
    loop {
        sleep(NO_MODEL_AFTER).await;
        let now = arrived.load(Ordering::Relaxed);
        if now == before {
            return;
        }
        before = now;
    }
}

/// Returns the name under which the last model of a way is kept, of this device or of another one.
fn name(of: Option<PeerId>, way: Way) -> String {
    let of = of.map_or("own".to_owned(), |peer| peer.to_string());
    match way {
        Way::First => format!("{of}/first"),
        Way::Second => format!("{of}/second"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use iroh::Endpoint;
    use tokio::time::timeout;

    use super::super::{LOST_AFTER, PROTOCOL, address_of, listen};
    use super::*;
    use stlf_protocol::identity::Identity;

    /// An address that only these tests use.
    const HOST: &str = "127.0.8.9:0";

    /// A source that gives its models to the devices that may have them.
    struct Source {
        models: Models,
        endpoint: Endpoint,
        key: PeerId,
    }

    impl Source {
        async fn with(models: Models) -> Source {
            let identity = Identity::from_bytes(&[1; 32]);
            let endpoint =
                listen(&identity, HOST.parse().unwrap(), LOST_AFTER, PROTOCOL, None).await.unwrap();
            let (calls, served) = (endpoint.clone(), models.clone());
            tokio::spawn(async move {
                while let Some(call) = calls.accept().await {
                    let served = served.clone();
                    tokio::spawn(async move { served.serve(&call.await.unwrap()).await });
                }
            });
            Source { models, endpoint, key: identity.id() }
        }

        /// Returns a target with a key made from this number, which has called the source.
        async fn called(&self, number: u8) -> Target {
            let identity = Identity::from_bytes(&[number; 32]);
            let endpoint =
                listen(&identity, HOST.parse().unwrap(), LOST_AFTER, PROTOCOL, None).await.unwrap();
            let address = address_of(self.key, &self.endpoint.bound_sockets()).unwrap();
            let connection = endpoint.connect(address, PROTOCOL).await.unwrap();
            let models = Models::open(None).await.unwrap();
            Target { models, connection, key: identity.id(), _endpoint: endpoint }
        }
    }

    struct Target {
        models: Models,
        connection: Connection,
        key: PeerId,
        _endpoint: Endpoint,
    }

    impl Target {
        async fn fetch(&self, offer: Offer) -> Result<Vec<u8>, String> {
            self.models.fetch(&self.connection, offer, &AtomicU64::new(0)).await
        }
    }

    fn run(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(test);
    }

    #[test]
    fn a_model_that_its_source_cannot_read_yet_is_asked_for_again() {
        run(async {
            let source = Source::with(Models::open(None).await.unwrap()).await;
            let target = source.called(2).await;
            let model = vec![7; 100_000];
            let hash = Hash::new(&model);
            source.models.allowed.lock().unwrap().insert((target.key, hash));
            let offer = Offer { way: Way::First, hash: *hash.as_bytes(), bytes: 100_000 };
            let later = async {
                sleep(Duration::from_millis(200)).await;
                source.models.offer(model.clone(), Way::First, &[target.key], 1).await.unwrap()
            };
            let fetched = target.fetch(offer);
            let (fetched, offered) = tokio::join!(fetched, later);
            assert_eq!(offered.hash, offer.hash);
            assert_eq!(fetched.unwrap(), model);
        });
    }

    /// Checks it with a store on disk, which fails some of the requests that arrive while it opens a model.
    #[test]
    fn many_targets_at_once_all_get_the_model() {
        run(async {
            let folder = tempfile::tempdir().unwrap();
            let source = Source::with(Models::open(Some(folder.path())).await.unwrap()).await;
            let mut targets = Vec::new();
            for number in 10..50 {
                targets.push(source.called(number).await);
            }
            let keys: Vec<PeerId> = targets.iter().map(|target| target.key).collect();
            for round in 0..4 {
                let model: Vec<u8> = (0..200_000_u32).map(|k| (k % 251) as u8 ^ round).collect();
                let offer = source.models.offer(model.clone(), Way::First, &keys, 1).await.unwrap();
                let mut fetches = JoinSet::new();
                for target in &targets {
                    let (models, connection) = (target.models.clone(), target.connection.clone());
                    fetches.spawn(async move {
                        models.fetch(&connection, offer, &AtomicU64::new(0)).await
                    });
                }
                while let Some(fetched) = fetches.join_next().await {
                    assert!(fetched.unwrap().unwrap() == model, "another model");
                }
            }
        });
    }

    #[test]
    fn who_may_not_have_a_model_does_not_wait_for_it() {
        run(async {
            let source = Source::with(Models::open(None).await.unwrap()).await;
            let target = source.called(2).await;
            let offer = source.models.offer(vec![7; 100_000], Way::First, &[], 1).await.unwrap();
            let failure =
                target.models.ask(&target.connection, offer, &AtomicU64::new(0)).await.unwrap_err();
            assert_eq!(failure.whose, Whose::Other, "{}", failure.reason);
        });
    }

    #[test]
    fn a_late_offer_of_the_epoch_before_takes_nothing_back() {
        run(async {
            let source = Source::with(Models::open(None).await.unwrap()).await;
            let target = source.called(2).await;
            let (model, keys) = (vec![7; 100_000], [target.key]);
            let offer = source.models.offer(model.clone(), Way::First, &keys, 8).await.unwrap();
            let late = source.models.offer(vec![6; 100_000], Way::First, &[], 7).await.unwrap();
            assert!(!source.models.store().blobs().has(Hash::from_bytes(late.hash)).await.unwrap());
            assert_eq!(target.fetch(offer).await.unwrap(), model);
        });
    }

    #[test]
    fn models_that_newer_ones_have_replaced_are_removed_at_both_ends() {
        run(async {
            let folders = [(), ()].map(|()| tempfile::tempdir().unwrap());
            let often = Duration::from_millis(50);
            let open = async |k: usize| {
                let folder: &tempfile::TempDir = &folders[k];
                Models::open_with(Some(folder.path()), often).await.unwrap()
            };
            let source = Source::with(open(0).await).await;
            let target = Target { models: open(1).await, ..source.called(2).await };
            let mut hashes = Vec::new();
            for round in 0..3 {
                let model = vec![round; 100_000];
                let keys = [target.key];
                let offer = source.models.offer(model.clone(), Way::First, &keys, 1).await.unwrap();
                assert_eq!(target.fetch(offer).await.unwrap(), model);
                hashes.push(Hash::from_bytes(offer.hash));
            }
            let kept = async |models: &Models| {
                let mut kept = Vec::new();
                for hash in &hashes {
                    kept.push(models.store().blobs().has(*hash).await.unwrap());
                }
                kept
            };
            let only_the_last = async {
                for models in [&source.models, &target.models] {
                    while kept(models).await != [false, false, true] {
                        sleep(Duration::from_millis(10)).await;
                    }
                }
            };
            assert!(timeout(stlf_testing::DEADLINE, only_the_last).await.is_ok());
        });
    }
}
