//! Work that takes long, done by threads of their own while the loop goes on.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use stlf_protocol::job::{Computed, Job, Sign, Task};
use stlf_protocol::wire::{Envelope, Message};
use tokio::sync::mpsc::Sender;
use tokio::task::spawn_blocking;

use super::Event;
use super::link::News;
use super::member::{Member, Observer};

/// No more jobs of a device than this run at once, whatever it has of processors; others wait, in their order.
const MOST_AT_ONCE: usize = 4;

/// Others hear of a training at most so many times in the time that they have patience for.
const TOLD_IN_PATIENCE: u32 = 4;

/// The jobs of an epoch; dropped, they end soon.
#[derive(Debug)]
pub(super) struct Jobs {
    queue: Sender<News>,
    waiting: VecDeque<Job>,
    /// Every job that runs holds it.
    shared: Arc<Shared>,
    /// How many percent of training on a model others have heard of, and when.
    told: (u8, Duration),
}

/// What the loop and the jobs tell each other.
#[derive(Debug, Default)]
struct Shared {
    percent: AtomicU8,
    stop: AtomicBool,
}

impl Shared {
    /// Watches a job: it ends when nobody needs it any more, and a search when its time is up.
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
    /// None yet, of an epoch that begins now. What they come to goes into the queue.
    pub(super) fn new(queue: Sender<News>, now: Duration) -> Jobs {
        Jobs { queue, waiting: VecDeque::new(), shared: Arc::default(), told: (0, now) }
    }

    /// Whether this device computes something that it, or others, wait for.
    pub(super) fn is_busy(&self) -> bool {
        self.running() > 0 || !self.waiting.is_empty()
    }

    fn running(&self) -> usize {
        Arc::strong_count(&self.shared) - 1
    }

    /// Starts a job, or has it wait for others.
    fn add(&mut self, job: Job) {
        self.waiting.push_back(job);
        self.start_waiting();
    }

    /// Starts as many as may run.
    pub(super) fn start_waiting(&mut self) {
        let processors = available_parallelism().map_or(1, |count| count.get());
        while self.running() < processors.min(MOST_AT_ONCE)
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

    /// How far training on a model is, where it is further than when that was told last, which is a while ago.
    fn news(&mut self, now: Duration, every: Duration) -> Option<u8> {
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

impl Member {
    /// Has a job done, apart from this loop.
    pub(super) fn compute(&mut self, job: Job, observer: &mut Observer<'_>) {
        if let Task::TrainOn { from } = job.task() {
            self.tell(Event::TrainsOn { from }, observer);
        }
        self.jobs.add(job);
    }

    /// Who computes does not blame others for its own silence.
    pub(super) fn look_at_jobs(&mut self) {
        self.jobs.start_waiting();
        if self.jobs.is_busy() {
            self.membership.progressed(self.now);
        }
    }

    /// Lets the others know that a training goes on. On a connection that breaks this is lost; the next word makes up for it.
    pub(super) fn tell_progress(&mut self) {
        let every = self.patience / TOLD_IN_PATIENCE;
        let Some(percent) = self.jobs.news(self.now, every) else { return };
        self.device.trains_on(percent);
        let envelope = Envelope::new(self.running(), Message::TrainedOn(percent));
        let bytes: Arc<[u8]> = envelope.to_bytes().into();
        let members = self.membership.members().into_iter().flatten().copied();
        for member in members.filter(|m| self.greeted.contains(m)).collect::<Vec<_>>() {
            self.transmit(member, bytes.clone());
        }
    }

    /// Takes what came of a job.
    pub(super) fn hear_computed(&mut self, computed: Computed, observer: &mut Observer<'_>) {
        self.jobs.start_waiting();
        if computed.epoch() != self.running() {
            return;
        }
        self.membership.progressed(self.now);
        let task = computed.task();
        let actions = match (self.device.computed(computed), task) {
            (Ok(actions), Task::TrainOn { from }) => {
                self.tell(Event::TrainedOn { from }, observer);
                actions
            }
            (Ok(actions), _) => actions,
            (Err(refusal), Task::TrainOn { from }) => {
                let reason = format!("trained on, it is {refusal}");
                self.tell(Event::NotReceived { from, reason }, observer);
                self.device.model_failed(from)
            }
            (Err(refusal), Task::Turn { peer, .. }) => {
                return self.refuse(peer, refusal.to_string(), observer);
            }
            (Err(refusal), _) => {
                return self.refuse(self.device.place(), refusal.to_string(), observer);
            }
        };
        self.act(actions, observer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
