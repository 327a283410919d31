//! Work that takes long, done in threads of its own while the loop continues.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use stlf_protocol::job::{Job, Sign};
use tokio::sync::mpsc::Sender;
use tokio::task::spawn_blocking;

use super::link::News;

/// The most jobs of a device that run at once, even with more processors; further jobs wait in their order.
const MOST_AT_ONCE: usize = 4;

/// The jobs of an epoch. They end soon after this is dropped.
#[derive(Debug)]
pub(super) struct Jobs {
    queue: Sender<News>,
    waiting: VecDeque<Job>,
    /// State that the loop has in common with the jobs. Every running job holds a reference, so that they can be counted.
    shared: Arc<Shared>,
    /// As many as may run at once. The operating system reads files to say how many processors there are.
    most: usize,
    /// The percentage of the trainings on handed-over models, or of a student's, that others were told last, and the time of that.
    told: (u8, Duration),
}

/// State through which the loop and the jobs communicate.
#[derive(Debug, Default)]
struct Shared {
    percent: AtomicU8,
    stop: AtomicBool,
}

impl Shared {
    /// Returns a function that watches a job: it ends the job once nobody needs it any more, and a search once its time is up.
    fn watch(&self) -> impl FnMut(Sign) -> ControlFlow<()> + '_ {
        let mut search: Option<(Instant, Duration)> = None;
        move |sign| {
            match sign {
                Sign::Searches(longest) => search = Some((Instant::now(), longest)),
                Sign::Percent(percent) => self.percent.store(percent, Ordering::Relaxed),
                Sign::GoesOn => {}
            }
            let is_late = search.is_some_and(|(began, longest)| began.elapsed() >= longest);
            match is_late || self.stop.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    }
}

impl Jobs {
    /// Returns an empty list of jobs for an epoch that begins now. Their results go into the queue.
    pub(super) fn new(queue: Sender<News>, now: Duration) -> Jobs {
        let most = available_parallelism().map_or(1, |count| count.get()).min(MOST_AT_ONCE);
        Jobs { queue, waiting: VecDeque::new(), shared: Arc::default(), most, told: (0, now) }
    }

    /// Returns whether this device computes something that it or other devices wait for.
    pub(super) fn is_busy(&self) -> bool {
        self.running() > 0 || !self.waiting.is_empty()
    }

    fn running(&self) -> usize {
        Arc::strong_count(&self.shared) - 1
    }

    /// Starts a job, or queues it behind others.
    pub(super) fn add(&mut self, job: Job) {
        self.waiting.push_back(job);
        self.start_waiting();
    }

    /// Starts as many waiting jobs as may run at once.
    pub(super) fn start_waiting(&mut self) {
        while self.running() < self.most
            && let Some(job) = self.waiting.pop_front()
        {
            let (shared, queue) = (self.shared.clone(), self.queue.clone());
            spawn_blocking(move || {
                let computed = job.run(&mut shared.watch());
                // Whoever hears of it may start another in its place.
                drop(shared);
                // What was ended is of no interest to anybody.
                if let Some(computed) = computed {
                    let _ = queue.blocking_send(News::Computed(Box::new(computed)));
                }
            });
        }
    }

    /// Returns the progress of training on a handed-over model, or of a student, if it has increased and enough time has passed since others were told.
    pub(super) fn news(&mut self, now: Duration, every: Duration) -> Option<u8> {
        let (percent, (told, then)) = (self.shared.percent.load(Ordering::Relaxed), self.told);
        if percent <= told || now.saturating_sub(then) < every {
            return None;
        }
        self.told = (percent, now);
        Some(percent)
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_told_now_and_then_on_both_ways() {
        let (queue, _news) = tokio::sync::mpsc::channel(1);
        let mut jobs = Jobs::new(queue, Duration::ZERO);
        let shared = jobs.shared.clone();
        let mut at = |seconds: u64, percent: u8| {
            assert!(shared.watch()(Sign::Percent(percent)).is_continue());
            jobs.news(Duration::from_secs(seconds), Duration::from_secs(5))
        };
        assert_eq!(
            [at(4, 10), at(5, 60), at(9, 80), at(10, 100)],
            [None, Some(60), None, Some(100)]
        );
        assert_eq!([at(20, 100), at(21, 101), at(22, 140)], [None, Some(101), None]);
        assert_eq!([at(26, 200), at(40, 200)], [Some(200), None]);
    }

    #[test]
    fn a_search_ends_when_its_time_is_up_and_every_job_with_its_epoch() {
        let (queue, _news) = tokio::sync::mpsc::channel(1);
        let jobs = Jobs::new(queue, Duration::ZERO);
        let shared = jobs.shared.clone();
        let mut watch = shared.watch();
        let long = Sign::Searches(Duration::from_secs(3_600));
        assert!(watch(Sign::GoesOn).is_continue() && watch(long).is_continue());
        assert!(watch(Sign::Searches(Duration::ZERO)).is_break());
        assert!(watch(Sign::GoesOn).is_break(), "it is still the same search");
        assert!(watch(long).is_continue() && watch(Sign::Percent(7)).is_continue());
        assert!(jobs.is_busy());
        drop(jobs);
        assert!(watch(Sign::GoesOn).is_break() && watch(long).is_break());
    }
}
