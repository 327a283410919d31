//! What may go wrong, and schedules of it that follow from a seed.

use std::time::Duration;

use stlf_protocol::Place;

use super::liars::Lie;
use super::random::Random;
use super::{Happening, LATER, LIE, LOST_AFTER, News, Simulation, TICK, ms};

#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// A process starts, if none runs.
    Start(Place),
    /// It ends, with a word to the others or without.
    End {
        place: Place,
        says_so: bool,
    },
    /// What it kept on disk is lost. It must have ended.
    Forget(Place),
    /// It stands still.
    Suspend(Place),
    Wake(Place),
    /// Two devices hear nothing of each other; what is sent meanwhile arrives later, if the connection outlives it.
    Cut(Place, Place),
    Mend(Place, Place),
    /// The connection of two devices breaks, and what is on its way with it.
    Break(Place, Place),
    /// Messages take so long at most.
    Delay(Duration),
    /// A device gets other data. Nothing is wrong with that.
    Renew(Place),
}

impl Fault {
    /// Whom it concerns.
    fn places(&self, devices: usize) -> Vec<Place> {
        match *self {
            Fault::Start(place)
            | Fault::End { place, .. }
            | Fault::Forget(place)
            | Fault::Suspend(place)
            | Fault::Wake(place) => vec![place],
            Fault::Cut(a, b) | Fault::Mend(a, b) | Fault::Break(a, b) => vec![a, b],
            Fault::Delay(_) => (0..devices).map(Place::new).collect(),
            Fault::Renew(_) => Vec::new(),
        }
    }
}

impl Simulation {
    pub(super) fn apply(&mut self, fault: Fault) {
        let (all, now) = (self.hosts.len(), self.now);
        self.watcher.trouble(fault.places(all), now);
        match fault {
            Fault::Start(place) => self.start(place),
            Fault::End { place, says_so } => self.end(place, says_so),
            Fault::Forget(place) => {
                let host = &mut self.hosts[place.index()];
                if host.process.is_none() {
                    host.disk = host.disk.emptied();
                }
            }
            Fault::Suspend(place) => {
                let now = self.now;
                if self.hosts[place.index()].asleep.replace(now).is_none() {
                    self.watcher.awake.remove(&place);
                    self.push(now + LOST_AFTER, Happening::Slept(place, now));
                }
            }
            Fault::Wake(place) => {
                let host = &mut self.hosts[place.index()];
                host.asleep = None;
                if host.process.is_some() {
                    self.watcher.awake.insert(place);
                }
                let mailbox = std::mem::take(&mut host.mailbox);
                mailbox.into_iter().for_each(|news| self.post(Duration::ZERO, place, news));
            }
            Fault::Cut(a, b) => {
                let (pair, now) = ((a.min(b), a.max(b)), self.now);
                if *self.cuts.entry(pair).or_insert(now) == now {
                    self.push(now + LOST_AFTER, Happening::Silence(pair.0, pair.1, now));
                }
            }
            Fault::Mend(a, b) => drop(self.cuts.remove(&(a.min(b), a.max(b)))),
            Fault::Break(a, b) => self.sever(a, b, false),
            Fault::Delay(most) => self.delay = most,
            Fault::Renew(place) => {
                let other = self.random.below(100) as f32;
                let host = &mut self.hosts[place.index()];
                let fresh = host.disk.device(other);
                if let Some(process) = &mut host.process {
                    process.renew(fresh);
                }
            }
        }
    }

    fn start(&mut self, place: Place) {
        let start = self.random.next();
        let now = self.now;
        let host = &mut self.hosts[place.index()];
        if host.process.is_some() {
            return;
        }
        (host.start, host.began, host.asleep, host.jobs) = (start, now, None, 0);
        host.transfers.clear();
        host.process = Some(host.disk.start(start, now));
        self.watcher.started(place);
        self.watcher.awake.insert(place);
        let first = self.random.within(TICK);
        self.post(first, place, News::Tick);
        for earlier in (0..place.index()).map(Place::new) {
            let after = self.random.within(ms(300));
            self.post(after, place, News::Call(earlier));
        }
        if self.hosts[place.index()].lie.is_some() {
            self.post(LIE, place, News::Lie);
        }
    }

    fn end(&mut self, place: Place, says_so: bool) {
        let connections = self.connections_of(place);
        let host = &mut self.hosts[place.index()];
        host.process = None;
        self.watcher.awake.remove(&place);
        host.asleep = None;
        host.mailbox.clear();
        host.connections.clear();
        for id in connections {
            self.connections[id].is_alive = false;
            let ends = self.connections[id].ends;
            let peer = if ends[0].0 == place { ends[1].0 } else { ends[0].0 };
            let noticed = if says_so { Duration::ZERO } else { LOST_AFTER };
            let after = noticed + self.random.within(if says_so { ms(50) } else { LATER });
            self.post(after, peer, News::Lost(place, id));
        }
    }
}

/// A schedule: how many devices, who of them lies, what happens when.
#[derive(Debug)]
pub(crate) struct Schedule {
    pub(crate) devices: usize,
    pub(crate) liars: Vec<(usize, Lie)>,
    pub(crate) twice: u64,
    pub(crate) faults: Vec<(Duration, Fault)>,
}

impl Schedule {
    /// Up to six devices, of which one may lie, and up to six faults within twenty seconds, each over after at most twelve. Up to two devices get
    /// other data meanwhile.
    pub(crate) fn random(seed: u64) -> Schedule {
        let mut random = Random::new(!seed);
        let devices = 2 + random.below(5) as usize;
        let mut liars = Vec::new();
        if devices > 2 && random.below(4) == 0 {
            let lie = Lie::random(&mut random);
            // The first of the roster may begin epochs, and nobody but the owner ends it if it does nothing else.
            let first = u64::from(lie.begins());
            liars.push(((first + random.below(devices as u64 - first)) as usize, lie));
        }
        let mut faults = Vec::new();
        for _ in 0..random.below(7) {
            let begins = random.within(Duration::from_secs(20));
            let most = [ms(50), ms(1_500), LOST_AFTER, Duration::from_secs(12)];
            let longest = most[random.below(4) as usize];
            let ends = begins + random.within(longest);
            let place = Place::new(random.below(devices as u64) as usize);
            let other = Place::new(random.below(devices as u64) as usize);
            faults.extend(fault(&mut random, devices, place, other, begins, ends));
        }
        let twice = random.below(2) * random.below(20);
        for _ in 0..random.below(3) {
            let when = random.within(Duration::from_secs(20));
            faults.push((when, Fault::Renew(Place::new(random.below(devices as u64) as usize))));
        }
        Schedule { devices, liars, twice, faults }
    }

    /// When the last fault is over.
    pub(crate) fn last(&self) -> Duration {
        self.faults.iter().map(|(when, _)| *when).max().unwrap_or_default()
    }

    pub(crate) fn simulation(&self, seed: u64) -> Simulation {
        let mut simulation =
            Simulation::new(seed, self.devices, &self.liars).slow(ms(40), self.twice);
        for (when, fault) in &self.faults {
            simulation.at(*when, fault.clone());
        }
        simulation
    }
}

/// A fault and its end.
fn fault(
    random: &mut Random,
    devices: usize,
    place: Place,
    other: Place,
    begins: Duration,
    ends: Duration,
) -> Vec<(Duration, Fault)> {
    match random.below(6) {
        0 | 1 => {
            let end = Fault::End { place, says_so: random.below(3) == 0 };
            let mut faults = vec![(begins, end)];
            if random.below(3) == 0 {
                faults.push((begins, Fault::Forget(place)));
            }
            faults.push((ends, Fault::Start(place)));
            faults
        }
        2 => vec![(begins, Fault::Suspend(place)), (ends, Fault::Wake(place))],
        3 if place != other => vec![(begins, Fault::Break(place, other))],
        4 => {
            let most = ms(100) + random.within(ms(1_500));
            vec![(begins, Fault::Delay(most)), (ends, Fault::Delay(ms(40)))]
        }
        _ => {
            // One pair, or all pairs of two parts.
            let part = random.next();
            let is_in = |place: usize| part >> place & 1 == 1;
            let pairs = (0..devices).flat_map(|a| (a + 1..devices).map(move |b| (a, b)));
            let all = random.below(2) == 0;
            let cut = |&(a, b): &(usize, usize)| match all {
                true => is_in(a) != is_in(b),
                false => {
                    (a, b) == (place.index().min(other.index()), place.index().max(other.index()))
                }
            };
            let pairs = pairs.filter(cut).map(|(a, b)| (Place::new(a), Place::new(b)));
            pairs
                .flat_map(|(a, b)| [(begins, Fault::Cut(a, b)), (ends, Fault::Mend(a, b))])
                .collect()
        }
    }
}
