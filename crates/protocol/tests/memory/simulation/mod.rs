//! Whole fleets in virtual time, driven by a seed: the real participants, with their messages, epochs and plans, among connections that
//! break, processes that end or sleep, and members that lie. Only what takes long is small: models of ten numbers that nobody trains.
//!
//! A connection is as QUIC has it: messages overtake each other, and those on their way are lost when it breaks, which each end notices by
//! itself, at once or after [`LOST_AFTER`]. The device that stands later in the roster calls the other one again.

mod devices;
mod faults;
mod invariants;
mod liars;
mod named;
mod process;
mod random;
mod schedules;
mod slow_models;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use stlf_planning::plan::Way;
use stlf_protocol::job::Computed;
use stlf_protocol::membership::Timing;
use stlf_protocol::wire::Offer;
use stlf_protocol::{Participant, Place};

use self::devices::Disk;
use self::faults::Fault;
use self::invariants::Watcher;
use self::liars::Lie;
use self::random::Random;

/// A connection on which nothing is heard for so long is lost.
pub(crate) const LOST_AFTER: Duration = Duration::from_secs(4);

/// One end may notice this much later than the other.
const LATER: Duration = Duration::from_secs(1);

/// How long things may take in these fleets.
pub(crate) const TIMING: Timing = Timing {
    wait: Duration::from_secs(10),
    settle: Duration::from_secs(1),
    patience: Duration::from_secs(8),
};

const CALL_AGAIN_AFTER: Duration = Duration::from_millis(300);
const TICK: Duration = Duration::from_millis(250);
const LIE: Duration = Duration::from_millis(500);

pub(crate) fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// A fleet, and what is going to happen to it.
pub(crate) struct Simulation {
    pub(crate) now: Duration,
    happened: u64,
    random: Random,
    queue: BTreeMap<(Duration, u64), Happening>,
    hosts: Vec<Host>,
    /// Which pairs hear nothing of each other, and since when; the first place is the smaller one.
    cuts: BTreeMap<(Place, Place), Duration>,
    connections: Vec<Connection>,
    /// Messages take so long at most.
    delay: Duration,
    /// How many percent of the messages arrive twice.
    twice: u64,
    watcher: Watcher,
    /// The links, from and to, over which models take long.
    slow_links: BTreeMap<(Place, Place), Slow>,
}

/// How a model goes over a slow link.
#[derive(Debug, Clone, Copy)]
struct Slow {
    /// How long a whole one takes.
    takes: Duration,
    /// After so many percent nothing more comes, if that is not all.
    stalls_at: u64,
}

/// A model that is being fetched.
#[derive(Debug, Clone, Copy)]
struct Transfer {
    since: Duration,
    bytes: u64,
    slow: Slow,
}

impl Transfer {
    /// How much of it has come.
    fn came(&self, now: Duration) -> u64 {
        let Slow { takes, stalls_at } = self.slow;
        let passed = now.saturating_sub(self.since).min(takes).as_millis() as u64;
        let percent = (100 * passed / (takes.as_millis() as u64).max(1)).min(stalls_at);
        self.bytes * percent / 100
    }
}

/// A device's machine.
struct Host {
    process: Option<Participant>,
    /// Which of its processes that is.
    start: u64,
    began: Duration,
    /// Since when it is suspended, and what it finds when it wakes.
    asleep: Option<Duration>,
    mailbox: Vec<News>,
    /// By the place of the other end.
    connections: BTreeMap<Place, usize>,
    /// Jobs of its epoch that have not ended.
    jobs: usize,
    /// Models on their way over slow links, by whose they are and their way.
    transfers: BTreeMap<(Place, Way), Transfer>,
    disk: Disk,
    lie: Option<Lie>,
}

/// A connection; the later place has called the earlier one.
struct Connection {
    ends: [(Place, u64); 2],
    is_alive: bool,
}

enum Happening {
    Fault(Fault),
    /// A process, and what it is told.
    News(Place, u64, News),
    /// A pair has heard nothing of each other for long, if it is still cut since then.
    Silence(Place, Place, Duration),
    /// The same of a machine that is suspended.
    Slept(Place, Duration),
}

enum News {
    Tick,
    Lie,
    Call(Place),
    Answered(Place, usize),
    Lost(Place, usize),
    Heard(Place, usize, Arc<[u8]>),
    Computed(Box<Computed>),
    Offered(u64, Vec<Place>, Offer),
    Model { from: Place, connection: usize, epoch: u64, offer: Offer },
}

impl Simulation {
    /// Devices that are started one after the other within a moment. The liars among them lie from the beginning.
    pub(crate) fn new(seed: u64, devices: usize, liars: &[(usize, Lie)]) -> Simulation {
        let mut random = Random::new(seed);
        let hands_on = random.below(2) == 0;
        let measures_links = liars.iter().any(|(_, lie)| lie.takes_no_probes());
        let host = |place: usize| Host {
            process: None,
            start: 0,
            began: Duration::ZERO,
            asleep: None,
            mailbox: Vec::new(),
            connections: BTreeMap::new(),
            jobs: 0,
            transfers: BTreeMap::new(),
            disk: Disk::new(Place::new(place), devices, hands_on, measures_links),
            lie: liars.iter().find(|(liar, _)| *liar == place).map(|(_, lie)| lie.clone()),
        };
        let honest = (0..devices).filter(|place| liars.iter().all(|(liar, _)| liar != place));
        let mut simulation = Simulation {
            now: Duration::ZERO,
            happened: 0,
            watcher: Watcher::new(honest.map(Place::new)),
            random,
            queue: BTreeMap::new(),
            hosts: (0..devices).map(host).collect(),
            cuts: BTreeMap::new(),
            connections: Vec::new(),
            delay: ms(40),
            twice: 0,
            slow_links: BTreeMap::new(),
        };
        for place in 0..devices {
            let after = simulation.random.within(ms(500));
            simulation.at(after, Fault::Start(Place::new(place)));
        }
        simulation
    }

    /// Writes down what happens, for whoever reads of a violation.
    pub(crate) fn traced(mut self) -> Simulation {
        self.watcher.trace = Some(Vec::new());
        self
    }

    /// Messages take up to this long, and so many percent of them arrive twice.
    pub(crate) fn slow(mut self, delay: Duration, twice: u64) -> Simulation {
        (self.delay, self.twice) = (delay, twice);
        self
    }

    /// Models take this long over a link, and stop after so many percent, if that is not all.
    pub(crate) fn with_slow_link(
        mut self,
        (from, to): (Place, Place),
        takes: Duration,
        stalls_at: u64,
    ) -> Simulation {
        self.slow_links.insert((from, to), Slow { takes, stalls_at });
        self
    }

    /// This device's next process has other settings than all others, or the same again.
    pub(crate) fn with_settings(mut self, place: Place, settings: &'static str) -> Simulation {
        self.hosts[place.index()].disk.settings = settings;
        self.watcher.set_apart(place, self.hosts.iter().any(|h| h.disk.settings != settings));
        self
    }

    /// The epoch that a device takes part in.
    pub(crate) fn epoch_of(&self, place: Place) -> Option<u64> {
        self.hosts[place.index()].process.as_ref()?.device().epoch()
    }

    pub(crate) fn at(&mut self, when: Duration, fault: Fault) {
        self.push(when, Happening::Fault(fault));
    }

    fn push(&mut self, when: Duration, happening: Happening) {
        self.happened += 1;
        self.queue.insert((when.max(self.now), self.happened), happening);
    }

    /// Tells a process something later, if it still runs then.
    fn post(&mut self, after: Duration, to: Place, news: News) {
        let start = self.hosts[to.index()].start;
        self.push(self.now + after, Happening::News(to, start, news));
    }

    fn places(&self) -> impl Iterator<Item = Place> + use<> {
        (0..self.hosts.len()).map(Place::new)
    }

    /// Lets time pass until then, or until an invariant is violated.
    pub(crate) fn run_until(&mut self, end: Duration) {
        while self.watcher.violation.is_none()
            && let Some(entry) = self.queue.first_entry()
            && entry.key().0 <= end
        {
            self.now = entry.key().0;
            let happening = entry.remove();
            self.happen(happening);
        }
        self.now = self.now.max(end);
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Fault(fault) => {
                self.watcher.note(self.now, || format!("{fault:?}"));
                self.apply(fault);
            }
            Happening::News(to, start, news) => {
                let host = &mut self.hosts[to.index()];
                if host.process.is_none() || host.start != start {
                    return;
                }
                match host.asleep {
                    Some(_) => host.mailbox.push(news),
                    None => self.hear(to, news),
                }
            }
            Happening::Silence(a, b, since) => {
                if self.cuts.get(&(a, b)) == Some(&since) {
                    self.sever(a, b, true);
                }
            }
            Happening::Slept(place, since) => {
                if self.hosts[place.index()].asleep == Some(since) {
                    for other in self.places().filter(|&other| other != place) {
                        self.sever(place, other, true);
                    }
                }
            }
        }
    }

    fn is_cut(&self, a: Place, b: Place) -> bool {
        self.cuts.contains_key(&(a.min(b), a.max(b)))
    }

    fn hear(&mut self, at: Place, news: News) {
        match news {
            News::Tick => {
                let again = TICK + self.random.within(ms(20));
                self.post(again, at, News::Tick);
                self.with(at, |process, now, world| process.tick(now, world));
            }
            News::Lie => self.lie(at),
            News::Call(peer) => self.call(at, peer),
            News::Answered(peer, id) => self.answered(at, peer, id),
            News::Lost(peer, id) => {
                let host = &mut self.hosts[at.index()];
                if host.connections.get(&peer) != Some(&id) {
                    return;
                }
                host.connections.remove(&peer);
                if peer < at {
                    self.post(CALL_AGAIN_AFTER, at, News::Call(peer));
                }
                self.with(at, |process, now, world| process.lose(peer, now, world));
            }
            News::Heard(peer, id, bytes) => self.heard(at, peer, id, bytes),
            News::Computed(computed) => {
                let host = &mut self.hosts[at.index()];
                if host.process.as_ref().and_then(|p| p.device().epoch()) == Some(computed.epoch())
                {
                    host.jobs = host.jobs.saturating_sub(1);
                }
                self.with(at, |process, now, world| process.hear_computed(*computed, now, world));
            }
            News::Offered(epoch, places, offer) => self.with(at, |process, now, world| {
                process.hear_offered(epoch, &places, &Ok(offer), now, world);
            }),
            News::Model { from, connection, epoch, offer } => {
                self.fetched(at, from, connection, epoch, offer);
            }
        }
    }

    /// The later place calls the earlier one, until it answers.
    fn call(&mut self, at: Place, peer: Place) {
        if self.hosts[at.index()].connections.contains_key(&peer) {
            return;
        }
        let other = &self.hosts[peer.index()];
        if other.process.is_none() || other.asleep.is_some() || self.is_cut(at, peer) {
            return self.post(CALL_AGAIN_AFTER, at, News::Call(peer));
        }
        let ends = [at, peer].map(|end| (end, self.hosts[end.index()].start));
        let id = self.connections.len();
        self.connections.push(Connection { ends, is_alive: true });
        for (own, other) in [(at, peer), (peer, at)] {
            let after = self.random.within(self.delay);
            self.post(after, own, News::Answered(other, id));
        }
    }

    fn answered(&mut self, at: Place, peer: Place, id: usize) {
        if !self.connections[id].is_alive {
            if peer < at {
                self.post(CALL_AGAIN_AFTER, at, News::Call(peer));
            }
            return;
        }
        if let Some(old) = self.hosts[at.index()].connections.insert(peer, id) {
            self.connections[old].is_alive = false;
        }
        self.with(at, |process, now, world| process.connect(peer, now, world));
    }

    fn heard(&mut self, at: Place, peer: Place, id: usize, bytes: Arc<[u8]>) {
        if !self.connections[id].is_alive {
            return;
        }
        let known = self.hosts[at.index()].connections.get(&peer).copied();
        if self.is_cut(at, peer) || known.is_none_or(|known| known < id) {
            return self.post(ms(50), at, News::Heard(peer, id, bytes));
        }
        self.watcher.hears(self.now, at, peer, &bytes);
        self.with(at, |process, now, world| process.hear_message(peer, &bytes, now, world));
    }

    /// What a fetch comes to: the source gives its model of the way if it is still at that epoch.
    fn fetched(&mut self, at: Place, from: Place, connection: usize, epoch: u64, offer: Offer) {
        let is_there = self.connections[connection].is_alive && !self.is_cut(at, from);
        if !is_there {
            return self.with(at, |process, now, world| {
                process.interrupted(from, epoch, offer, now, world);
            });
        }
        let source = self.hosts[from.index()].process.as_ref().map(Participant::device);
        let model = source.filter(|d| d.epoch() == Some(epoch));
        let model = model.and_then(|device| device.sent_model(offer.way));
        let model = model.map(|model| (model, offer.bytes));
        let model = model.ok_or_else(|| "it may not be fetched".to_owned());
        let way: Way = offer.way;
        self.with(at, |process, now, world| {
            process.hear_model((from, way), epoch, model, now, world);
        });
    }

    /// Breaks the connection of two devices. They notice at once, or each when it has heard nothing for long.
    fn sever(&mut self, a: Place, b: Place, have_waited: bool) {
        for id in self.connections_of(a) {
            let places = self.connections[id].ends.map(|(place, _)| place);
            if !places.contains(&b) {
                continue;
            }
            self.connections[id].is_alive = false;
            for (own, other) in [(a, b), (b, a)] {
                let soon = have_waited || self.random.below(3) == 0;
                let noticed = if soon { Duration::ZERO } else { LOST_AFTER };
                let after = noticed + self.random.within(LATER);
                self.post(after, own, News::Lost(other, id));
            }
        }
    }

    /// The connections of a process that have not broken, also those that it has not heard of yet.
    fn connections_of(&self, place: Place) -> Vec<usize> {
        let end = (place, self.hosts[place.index()].start);
        let all = self.connections.iter().enumerate();
        all.filter(|(_, c)| c.is_alive && c.ends.contains(&end)).map(|(id, _)| id).collect()
    }
}
