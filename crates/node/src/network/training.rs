//! A model that was handed over, trained on by a thread of its own while the loop goes on.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use tokio::sync::mpsc::Sender;
use tokio::task::spawn_blocking;

use super::link::News;
use stlf_protocol::device::TrainingOn;

/// A training that goes on; dropped, it ends soon.
#[derive(Debug)]
pub(super) struct Training {
    percent: Arc<AtomicU8>,
    stop: Arc<AtomicBool>,
    told: (u8, Duration),
}

impl Training {
    /// Trains, and passes on what comes of it.
    pub(super) fn start(
        training: TrainingOn,
        epoch: u64,
        queue: Sender<News>,
        now: Duration,
    ) -> Training {
        let (percent, stop) = (Arc::<AtomicU8>::default(), Arc::<AtomicBool>::default());
        let (done, ends) = (percent.clone(), stop.clone());
        spawn_blocking(move || {
            let trained = training.run(&mut |percent| {
                done.store(percent, Ordering::Relaxed);
                match ends.load(Ordering::Relaxed) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            });
            // What was ended is of no interest to anybody.
            if let Some(trained) = trained.map_err(|e| e.to_string()).transpose() {
                let _ = queue.blocking_send(News::TrainedOn(epoch, trained));
            }
        });
        Training { percent, stop, told: (0, now) }
    }

    /// How far it is, where it is further than when that was told last, which is a while ago.
    pub(super) fn news(&mut self, now: Duration, every: Duration) -> Option<u8> {
        let (percent, (told, then)) = (self.percent.load(Ordering::Relaxed), self.told);
        if percent <= told || now.saturating_sub(then) < every {
            return None;
        }
        self.told = (percent, now);
        Some(percent)
    }
}

impl Drop for Training {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
