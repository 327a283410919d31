//! Where models are kept, on disk or in memory: opened, opened again when it has failed, and closed with the last that has it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use iroh_blobs::api::Store;
use iroh_blobs::store::GcConfig;
use iroh_blobs::store::fs::FsStore;
use iroh_blobs::store::fs::options::Options as FsOptions;
use iroh_blobs::store::mem::MemStore;
use tokio::runtime::Handle;
use tokio::time::timeout;

/// What the names begin with that an earlier version gave to all models, by which none was ever removed.
const NAMED_BEFORE: &str = "auto-";

/// The longest time that a store which has failed may take to be closed, and then to be opened.
const CLOSED_WITHIN: Duration = Duration::from_secs(2);

/// The error that models cannot be stored.
#[derive(Debug, thiserror::Error)]
#[error("cannot keep models: {0}")]
pub struct StoreError(pub(super) String);

/// The store that is open. It is closed when nobody has it any more: its own task that removes old models would keep it open for ever.
#[derive(Debug)]
pub(super) struct Shelf {
    store: Mutex<Store>,
    /// Where the store is, if it is on disk.
    folder: Option<PathBuf>,
    /// How often models are removed that newer ones have replaced.
    clean_up: Duration,
    /// Whether the store has failed since it was opened. It does not mend itself when there is room again.
    has_failed: AtomicBool,
}

impl Shelf {
    /// Opens the store in a folder, or in memory if none is given.
    pub(super) async fn open(
        folder: Option<&Path>,
        clean_up: Duration,
    ) -> Result<Shelf, StoreError> {
        let store = match folder {
            Some(folder) => load(folder, clean_up).await?,
            None => MemStore::new().into(),
        };
        let folder = folder.map(Path::to_owned);
        Ok(Shelf { store: Mutex::new(store), folder, clean_up, has_failed: AtomicBool::new(false) })
    }

    /// Returns the store as it is now.
    pub(super) fn store(&self) -> Store {
        self.store.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes that the store has failed.
    pub(super) fn fails(&self) {
        self.has_failed.store(true, Ordering::Relaxed);
    }

    /// Returns whether the store has failed, so that it must be opened again.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Opens a store that has failed again. Returns whether that worked.
    pub(super) async fn mend(&self) -> bool {
        let Some(folder) = &self.folder else { return false };
        // One that cannot be closed any more has let go of its files.
        let _ = timeout(CLOSED_WITHIN, self.store().shutdown()).await;
        let Ok(Ok(store)) = timeout(CLOSED_WITHIN, load(folder, self.clean_up)).await else {
            return false;
        };
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = store;
        self.has_failed.store(false, Ordering::Relaxed);
        true
    }

    /// Writes to disk what is still in memory.
    pub(super) async fn close(&self) {
        // A store that cannot be closed is as good as one that was killed: it is read again from what is on disk.
        let _ = self.store().shutdown().await;
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        let store = self.store();
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                // One that is closed already needs no more.
                let _ = store.shutdown().await;
            });
        }
    }
}

/// Opens a store on disk.
async fn load(folder: &Path, clean_up: Duration) -> Result<Store, StoreError> {
    let failed = |e: String| StoreError(format!("{}: {e}", folder.display()));
    let gc = Some(GcConfig { interval: clean_up, add_protected: None });
    let options = FsOptions { gc, ..FsOptions::new(folder) };
    let opened = FsStore::load_with_opts(folder.join("blobs.db"), options).await;
    let store: Store = opened
        .map_err(|e| match e.to_string() {
            // The database's error has no kind that could be asked for.
            text if text.contains("already open") => {
                failed("another process has them open; is this device running already?".to_owned())
            }
            text => failed(text),
        })?
        .into();
    let unnamed = store.tags().delete_prefix(NAMED_BEFORE).await;
    unnamed.map_err(|e| failed(e.to_string()))?;
    Ok(store)
}
