//! Every order in which few devices can meet, lose each other, start anew and hear of epochs, within so many faults: breadth first, each
//! state once.
//!
//! What is explored is [`Membership`], the machine that decides who begins, numbers and ends epochs. The work of an epoch is to say that it is
//! done, no time passes, and nobody lies; the simulation has all of that. Messages overtake each other in every possible way.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use stlf_protocol::Place;
use stlf_protocol::membership::{Beginning, Decision, Membership, Timing};
use stlf_protocol::wire::EpochId;

/// Nothing is waited for, and nobody loses patience.
const TIMING: Timing =
    Timing { wait: Duration::ZERO, settle: Duration::ZERO, patience: Duration::from_secs(1) };

/// The most devices.
const MOST: usize = 4;

const NOW: Duration = Duration::ZERO;

/// More epochs than so few faults can lead to.
const MOST_EPOCHS: u64 = 40;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Said {
    Hello { epoch: u64, start: u64, running: EpochId },
    Begin(EpochId, Vec<Place>),
    Done(EpochId),
    Complete(EpochId),
    Known(u64),
    TakesPart(EpochId),
}

/// One end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum End {
    /// There is none.
    Down,
    /// The other device has not greeted yet.
    Open,
    Greeted,
    /// It is dead, which this end has not noticed.
    Dead,
}

/// A device as it is shared by all states that it is the same in.
#[derive(Debug, PartialEq, Eq)]
struct Device {
    membership: Membership,
    name: u64,
    /// Whether a look at the clock leads to anything.
    looks: bool,
}

impl Device {
    fn new(membership: Membership) -> Arc<Device> {
        let mut hasher = DefaultHasher::new();
        membership.hash(&mut hasher);
        let mut later = membership.clone();
        let looks = !later.tick(NOW, &[]).is_empty() || later.timely(NOW).is_some();
        Arc::new(Device { membership, name: hasher.finish(), looks })
    }
}

impl Hash for Device {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    devices: Vec<Arc<Device>>,
    starts: Vec<u64>,
    /// `ends[a][b]` is what device a has of its connection to b.
    ends: [[End; MOST]; MOST],
    /// By sender and receiver. Where messages overtake each other their order says nothing, and each is there once.
    mail: BTreeMap<(usize, usize), Vec<Said>>,
    detail: Detail,
    faults: u32,
}

/// How much of what is possible is explored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Detail {
    /// Messages arrive in any order, and devices look at the clock at any time.
    All,
    /// Messages between two devices keep their order, both greet at once, and devices look at the clock whenever there is anything to do.
    Coarse,
}

/// A step, as it is told of where something is violated.
#[derive(Debug, Clone)]
enum Step {
    Hears(usize, usize, Said),
    Loses(usize, usize),
    Calls(usize, usize),
    Looks(usize),
    Breaks(usize, usize),
    Restarts { device: usize, forgets: bool },
}

impl State {
    /// Devices that have completed their first epoch together.
    fn new(devices: usize, faults: u32, detail: Detail) -> State {
        let places: Vec<Place> = (0..devices).map(Place::new).collect();
        let one = |&own: &Place| {
            let mut membership = Membership::new(own, devices, 0, TIMING, NOW);
            for &other in places.iter().filter(|&&other| other != own) {
                membership.came(other, start(other.index(), 0), 0, NOW);
            }
            let first = EpochId { number: 1, begun: start(0, 0) as u32 };
            membership.enter(first, &places, NOW);
            membership.planned(BTreeSet::new(), NOW);
            let over = places.iter().filter(|&&place| membership.hear_done(place)).count();
            assert_eq!(over, 1);
            Device::new(membership)
        };
        State {
            devices: places.iter().map(one).collect(),
            starts: (0..devices).map(|device| start(device, 0)).collect(),
            ends: [[End::Greeted; MOST]; MOST],
            mail: BTreeMap::new(),
            detail,
            faults,
        }
    }

    fn others(&self, of: usize) -> impl Iterator<Item = usize> + use<> {
        (0..self.devices.len()).filter(move |&other| other != of)
    }

    /// All that can happen next.
    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut looks = (0..self.devices.len()).filter(|&own| self.devices[own].looks);
        if let (Detail::Coarse, Some(first)) = (self.detail, looks.next()) {
            return vec![Step::Looks(first)];
        }
        for ((from, to), all) in &self.mail {
            let is_heard = |said: &&Said| match self.ends[*to][*from] {
                End::Open => matches!(said, Said::Hello { .. }),
                End::Greeted => !matches!(said, Said::Hello { .. }),
                End::Down | End::Dead => false,
            };
            let next = match self.detail {
                Detail::Coarse => &all[..all.len().min(1)],
                Detail::All => all,
            };
            let heard = next.iter().filter(is_heard);
            steps.extend(heard.map(|said| Step::Hears(*to, *from, said.clone())));
        }
        for own in 0..self.devices.len() {
            for other in self.others(own) {
                match (self.ends[own][other], self.ends[other][own]) {
                    (End::Dead, _) => steps.push(Step::Loses(own, other)),
                    // The later place calls the earlier one, which may believe in an older connection.
                    (End::Down, End::Down | End::Dead) if own > other => {
                        steps.push(Step::Calls(own, other));
                    }
                    (End::Open | End::Greeted, _) if self.faults > 0 && own > other => {
                        steps.push(Step::Breaks(own, other));
                    }
                    _ => {}
                }
            }
            if self.devices[own].looks {
                steps.push(Step::Looks(own));
            }
            if self.faults > 0 {
                steps.extend([false, true].map(|forgets| Step::Restarts { device: own, forgets }));
            }
        }
        steps
    }

    fn say(&mut self, from: usize, to: usize, said: Said) {
        if self.ends[from][to] == End::Greeted || matches!(said, Said::Hello { .. }) {
            let all = self.mail.entry((from, to)).or_default();
            match self.detail {
                Detail::Coarse => all.push(said),
                Detail::All => {
                    if let Err(at) = all.binary_search(&said) {
                        all.insert(at, said);
                    }
                }
            }
        }
    }

    fn after(&self, step: &Step) -> State {
        let mut next = self.clone();
        match step {
            Step::Hears(to, from, said) => {
                let all = next.mail.entry((*from, *to)).or_default();
                all.iter().position(|other| other == said).map(|at| all.remove(at));
                next.mail.retain(|_, all| !all.is_empty());
                next.hear(*to, *from, said);
            }
            Step::Loses(own, other) => next.lose(*own, *other),
            Step::Calls(own, other) => {
                (next.ends[*own][*other], next.ends[*other][*own]) = (End::Open, End::Open);
                for (a, b) in [(*own, *other), (*other, *own)] {
                    next.greet(a, b);
                }
                if next.detail == Detail::Coarse {
                    let pairs = [(*own, *other), (*other, *own)];
                    let hellos = pairs.map(|pair| next.mail.remove(&pair).unwrap_or_default());
                    for ((from, to), hello) in pairs.into_iter().zip(hellos) {
                        hello.iter().for_each(|hello| next.hear(to, from, hello));
                    }
                }
            }
            Step::Looks(own) => next.look(*own),
            Step::Breaks(a, b) => {
                next.faults -= 1;
                next.cut(*a, *b);
                (next.ends[*a][*b], next.ends[*b][*a]) = (End::Dead, End::Dead);
            }
            Step::Restarts { device, forgets } => {
                next.faults -= 1;
                next.restart(*device, *forgets);
            }
        }
        next
    }

    /// Has a device do something.
    fn with<T>(&mut self, own: usize, does: impl FnOnce(&mut Membership) -> T) -> T {
        let mut membership = self.devices[own].membership.clone();
        let done = does(&mut membership);
        self.devices[own] = Device::new(membership);
        done
    }

    fn device(&self, own: usize) -> &Membership {
        &self.devices[own].membership
    }

    /// What is on its way between two devices is lost.
    fn cut(&mut self, a: usize, b: usize) {
        self.mail.retain(|ends, _| *ends != (a, b) && *ends != (b, a));
    }

    fn restart(&mut self, device: usize, forgets: bool) {
        let known = if forgets { 0 } else { self.device(device).running().unwrap_or(0) };
        let (own, all) = (Place::new(device), self.devices.len());
        self.devices[device] = Device::new(Membership::new(own, all, known, TIMING, NOW));
        self.starts[device] += 1;
        for other in self.others(device) {
            self.cut(device, other);
            self.ends[device][other] = End::Down;
            if self.ends[other][device] != End::Down {
                self.ends[other][device] = End::Dead;
            }
        }
    }

    fn greet(&mut self, own: usize, to: usize) {
        let device = self.device(own);
        let running = device.running_id().unwrap_or_default();
        let hello = Said::Hello { epoch: device.epoch(), start: self.starts[own], running };
        self.say(own, to, hello);
    }

    fn lose(&mut self, own: usize, other: usize) {
        self.ends[own][other] = End::Down;
        let planner = self.device(own).planner();
        self.with(own, |device| device.lost(Place::new(other), NOW));
        if planner == Some(Place::new(other))
            && let Some(&next) = self.device(own).here().first()
        {
            let known = Said::Known(self.device(own).epoch());
            match self.detail {
                Detail::All => self.say(own, next.index(), known),
                Detail::Coarse if self.ends[next.index()][own] == End::Greeted => {
                    self.hear(next.index(), own, &known);
                }
                Detail::Coarse => {}
            }
        }
    }

    fn look(&mut self, own: usize) {
        for decision in self.with(own, |device| device.tick(NOW, &[])) {
            if let Decision::Begin { number, members } = decision {
                self.enter(own, EpochId { number, begun: self.starts[own] as u32 }, &members);
            }
        }
        if let Some((from, id, members)) = self.with(own, |device| device.timely(NOW)) {
            self.hear(own, from.index(), &Said::Begin(id, members));
        }
    }

    fn enter(&mut self, own: usize, id: EpochId, members: &[Place]) {
        self.with(own, |device| {
            device.enter(id, members, NOW);
            device.planned(BTreeSet::new(), NOW);
            members.first() == Some(&Place::new(own)) && device.hear_done(Place::new(own))
        });
        members.iter().for_each(|to| self.say_all(own, to.index()));
    }

    /// What a device has to say to another in its epoch. On a new connection it is said again.
    fn say_all(&mut self, own: usize, to: usize) {
        let device = self.device(own);
        let (Some(id), Some(members)) = (device.running_id(), device.members()) else { return };
        let (planner, is_over) = (device.planner(), device.is_over());
        if own == to || !members.contains(&Place::new(to)) {
            return;
        }
        let members: Vec<Place> = members.iter().copied().collect();
        if planner == Some(Place::new(own)) {
            self.say(own, to, Said::Begin(id, members));
            if is_over {
                self.say(own, to, Said::Complete(id));
            }
        } else if planner == Some(Place::new(to)) {
            self.say(own, to, Said::Done(id));
        }
    }

    fn hear(&mut self, own: usize, from: usize, said: &Said) {
        let place = Place::new(from);
        let running = self.device(own).running_id();
        match said {
            Said::Hello { epoch, start, running } => {
                self.ends[own][from] = End::Greeted;
                self.with(own, |device| {
                    assert!(device.hear_claim(place, *epoch, NOW));
                    device.came(place, *start, *running, NOW);
                });
                self.say_all(own, from);
            }
            Said::Begin(id, members) => {
                match self.with(own, |device| device.hear_begin(place, *id, members, NOW)) {
                    Beginning::Enter => self.enter(own, *id, members),
                    Beginning::Late(running) => self.say(own, from, Said::TakesPart(running)),
                    Beginning::Again | Beginning::Untimely { .. } => {}
                }
            }
            Said::Done(id) if running == Some(*id) => {
                if self.with(own, |device| device.hear_done(place)) {
                    self.others(own).for_each(|to| self.say_all(own, to));
                }
            }
            Said::Complete(id) if running == Some(*id) => {
                self.with(own, |device| device.hear_complete());
            }
            Said::Known(epoch) => {
                self.with(own, |device| device.hear_claim(place, *epoch, NOW));
            }
            Said::TakesPart(id) => {
                self.with(own, |device| device.hear_takes_part(place, *id, NOW));
            }
            Said::Done(_) | Said::Complete(_) => {}
        }
    }

    /// What is wrong in this state, whatever comes after it.
    fn violation(&self) -> Option<String> {
        let mut epochs: Vec<(EpochId, Vec<Place>)> = Vec::new();
        for device in self.devices.iter().map(|device| &device.membership) {
            let members = device.members().map(|members| members.iter().copied().collect());
            epochs.extend(device.running_id().zip(members));
        }
        for said in self.mail.values().flatten() {
            if let Said::Begin(id, members) = said {
                epochs.push((*id, members.clone()));
            }
        }
        epochs.sort();
        let twice = epochs.windows(2).find(|two| two[0].0 == two[1].0 && two[0].1 != two[1].1);
        if let Some(two) = twice {
            return Some(format!("two epochs of one name: {two:?}"));
        }
        let highest = epochs.last().map_or(0, |(id, _)| id.number);
        (highest > MOST_EPOCHS).then(|| format!("epochs without an end, up to {highest}"))
    }

    /// Whether all have completed one epoch with all.
    fn is_whole(&self) -> bool {
        let first = self.device(0).running_id();
        let all = self.devices.len();
        let is = |device: &Membership| {
            let has_all = device.members().is_some_and(|members| members.len() == all);
            device.running_id() == first && device.is_over() && has_all
        };
        self.devices.iter().all(|device| is(&device.membership))
    }

    fn name(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

/// Unlike any other device's or time's.
fn start(device: usize, times: u64) -> u64 {
    1_000 * (device as u64 + 1) + times
}

/// Explores all states; how many there are, and how many of them are ends, at which nothing can happen but another fault.
fn explore(devices: usize, faults: u32, detail: Detail) -> (usize, usize) {
    let first = State::new(devices, faults, detail);
    let mut known = HashSet::from([first.name()]);
    // The state that led to each, and by which of its steps.
    let mut paths: Vec<(usize, usize)> = vec![(0, 0)];
    let mut layer = vec![(0, first.clone())];
    let mut ends = 0;
    while !layer.is_empty() {
        let mut next = Vec::new();
        for (at, state) in layer {
            if let Some(what) = state.violation() {
                panic!("{}\n{what}", way(&first, &paths, at));
            }
            let steps = state.steps();
            let is_fault = |step: &Step| matches!(step, Step::Breaks(..) | Step::Restarts { .. });
            if steps.iter().all(is_fault) {
                ends += 1;
                let way = || way(&first, &paths, at);
                assert!(state.is_whole(), "{}\nis the end of all, in {state:#?}", way());
            }
            for (number, step) in steps.iter().enumerate() {
                let after = state.after(step);
                if known.insert(after.name()) {
                    paths.push((at, number));
                    next.push((paths.len() - 1, after));
                }
            }
        }
        layer = next;
    }
    (known.len(), ends)
}

/// The steps that led to a state.
fn way(first: &State, paths: &[(usize, usize)], mut at: usize) -> String {
    let mut numbers = Vec::new();
    while at > 0 {
        numbers.push(paths[at].1);
        at = paths[at].0;
    }
    let (mut state, mut way) = (first.clone(), String::new());
    for number in numbers.into_iter().rev() {
        let step = state.steps().swap_remove(number);
        way += &format!("{step:?}\n");
        state = state.after(&step);
    }
    way
}

#[test]
fn two_devices_come_together_after_any_three_faults() {
    let (states, ends) = explore(2, 3, Detail::All);
    println!("{states} states, {ends} ends");
}

#[test]
fn three_devices_come_together_after_any_fault() {
    let (states, ends) = explore(3, 1, Detail::All);
    println!("{states} states, {ends} ends");
}

#[test]
fn four_devices_come_together_after_any_fault() {
    let (states, ends) = explore(4, 1, Detail::Coarse);
    println!("{states} states, {ends} ends");
}

#[test]
fn three_devices_whose_messages_keep_their_order_come_together_after_any_two_faults() {
    let (states, ends) = explore(3, 2, Detail::Coarse);
    println!("{states} states, {ends} ends");
}
