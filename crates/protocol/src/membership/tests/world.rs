//! Small worlds of devices that meet, start anew and are cut off.

use super::*;

/// What one device of a [`World`] hears of another.
#[derive(Debug, Clone)]
enum Said {
    /// What the greeting says is looked up when it arrives.
    Hello,
    Lost,
    Begin(u64, Vec<Place>),
    Done(u64),
    Complete(u64),
}

/// Devices and what is on its way between them, by a clock of their own. All the work of an epoch is to say that it is done.
struct World {
    now: Duration,
    devices: Vec<Membership>,
    starts: Vec<u64>,
    asleep: Option<Place>,
    /// When it arrives, from, to.
    mail: Vec<(Duration, Place, Place, Said)>,
    untimely: BTreeMap<(Place, Place), (u64, Vec<Place>)>,
}

/// A connection on which nothing is heard for so long is lost.
const LOST_AFTER: Duration = Duration::from_secs(4);

impl World {
    /// All of these have met.
    fn of(places: &[Place], roster: usize) -> World {
        let devices = places.iter().map(|&own| Membership::new(own, roster, 0, TIMING, at(0)));
        let mut world = World {
            now: at(0),
            devices: devices.collect(),
            starts: vec![1; places.len()],
            asleep: None,
            mail: Vec::new(),
            untimely: BTreeMap::new(),
        };
        for &a in places {
            places[..a.index()].iter().for_each(|&b| world.meet(Duration::ZERO, a, b));
        }
        world
    }

    fn post(&mut self, after: Duration, from: Place, to: Place, said: Said) {
        self.mail.push((self.now + after, from, to, said));
    }

    fn meet(&mut self, after: Duration, a: Place, b: Place) {
        self.post(after, a, b, Said::Hello);
        self.post(after, b, a, Said::Hello);
    }

    fn others(&self, of: Place) -> Vec<Place> {
        self.devices.iter().map(|device| device.own).filter(|&other| other != of).collect()
    }

    /// Ends a device, and starts it again at once with what it keeps on disk. It calls those before it; those after it call again only
    /// when they have noticed.
    fn restart(&mut self, place: Place) {
        let before = &mut self.devices[place.index()];
        let known = before.running().unwrap_or(0);
        *before = Membership::new(place, before.expected, known, TIMING, self.now);
        self.starts[place.index()] += 1;
        self.mail.retain(|(_, _, to, _)| *to != place);
        for other in self.others(place) {
            if other > place {
                self.post(LOST_AFTER, place, other, Said::Lost);
                self.meet(LOST_AFTER + Duration::from_millis(300), place, other);
            } else {
                self.meet(Duration::from_millis(100), place, other);
            }
        }
    }

    /// The others lose a device; it itself may be asleep and lose them when it wakes.
    fn cut_off(&mut self, place: Place) {
        for other in self.others(place) {
            self.post(LOST_AFTER, place, other, Said::Lost);
            self.post(LOST_AFTER, other, place, Said::Lost);
        }
    }

    /// It is back, and meets one after the other.
    fn reunite(&mut self, place: Place) {
        for other in self.others(place) {
            self.meet(Duration::from_millis(300 + 200 * other.index() as u64), place, other);
        }
    }

    fn hear(&mut self, from: Place, to: Place, said: Said) {
        let (now, start) = (self.now, self.starts[from.index()]);
        let sender = &self.devices[from.index()];
        let (epoch, running) = (sender.epoch(), sender.running());
        let device = &mut self.devices[to.index()];
        match said {
            Said::Hello => {
                assert!(device.heard_of(epoch));
                device.came(from, start, running.unwrap_or(0), now);
            }
            Said::Lost => device.lost(from, now),
            Said::Begin(number, members) if device.running().is_none_or(|own| number > own) => {
                if !device.may_begin(from, now) {
                    self.untimely.insert((from, to), (number, members));
                    return;
                }
                device.enter(number, &members, now);
                self.post(Duration::from_millis(100), to, from, Said::Done(number));
            }
            Said::Done(number) if device.running() == Some(number) => {
                if device.hear_done(from) {
                    for other in self.others(to) {
                        self.post(Duration::from_millis(10), to, other, Said::Complete(number));
                    }
                }
            }
            Said::Complete(number) if device.running() == Some(number) => device.hear_complete(),
            Said::Begin(..) | Said::Done(_) | Said::Complete(_) => {}
        }
    }

    fn step(&mut self) {
        self.now += Duration::from_millis(50);
        let (now, asleep) = (self.now, self.asleep);
        let is_due =
            |mail: &(Duration, Place, Place, Said)| mail.0 <= now && asleep != Some(mail.2);
        let (mut due, rest) =
            std::mem::take(&mut self.mail).into_iter().partition::<Vec<_>, _>(is_due);
        self.mail = rest;
        due.sort_by_key(|(when, ..)| *when);
        due.into_iter().for_each(|(_, from, to, said)| self.hear(from, to, said));
        for own in ALL[..self.devices.len()].iter().copied().filter(|&own| asleep != Some(own)) {
            for decision in self.devices[own.index()].tick(now, &[]) {
                let Decision::Begin { number, members } = decision else { continue };
                self.devices[own.index()].enter(number, &members, now);
                self.devices[own.index()].planned(BTreeSet::new(), now);
                self.devices[own.index()].hear_done(own);
                for &other in members.iter().filter(|&&other| other != own) {
                    let begin = Said::Begin(number, members.clone());
                    self.post(Duration::from_millis(10), own, other, begin);
                }
            }
        }
        for ((from, to), (number, members)) in std::mem::take(&mut self.untimely) {
            self.hear(from, to, Said::Begin(number, members));
        }
    }

    /// Returns how long it takes until these, and nobody else, have completed one epoch after this one; its number.
    fn whole(&mut self, places: &[Place], after: u64) -> (Duration, u64) {
        let started = self.now;
        loop {
            let of = |place: &Place| {
                let device = &self.devices[place.index()];
                let all = device.members().is_some_and(|m| m.iter().eq(places));
                device.running().filter(|_| all && device.is_over())
            };
            let numbers: BTreeSet<Option<u64>> = places.iter().map(of).collect();
            if let (1, Some(Some(number))) = (numbers.len(), numbers.first().copied())
                && number > after
            {
                return (self.now - started, number);
            }
            assert!(self.now - started < at(60), "never whole: {:#?}", self.devices);
            self.step();
        }
    }
}

const TEN: Duration = Duration::from_secs(10);

#[test]
fn whoever_starts_again_right_after_an_epoch_is_in_the_next() {
    for place in ALL {
        let mut world = World::of(&ALL, 4);
        let (_, before) = world.whole(&ALL, 0);
        world.restart(place);
        let (took, after) = world.whole(&ALL, before);
        assert!(took < TEN && after == before + 1, "{place}: {took:?}, epoch {after}");
        // And again, in the middle of it.
        world.restart(place);
        world.step();
        world.restart(place);
        assert!(world.whole(&ALL, after).0 < TEN, "{place}");
    }
}

#[test]
fn a_planner_that_was_asleep_or_cut_off_does_not_split_the_fleet() {
    for sleeps in [true, false] {
        let mut world = World::of(&ALL, 4);
        let (_, before) = world.whole(&ALL, 0);
        world.cut_off(ALL[0]);
        world.asleep = sleeps.then_some(ALL[0]);
        let (_, without) = world.whole(&ALL[1..], before);
        while world.now < at(30) {
            world.step();
        }
        world.asleep = None;
        world.reunite(ALL[0]);
        let (took, number) = world.whole(&ALL, without);
        assert!(took < TEN, "{sleeps}: {took:?}");
        // Nothing more happens.
        let end = world.now + at(60);
        while world.now < end {
            world.step();
        }
        assert_eq!(world.whole(&ALL, 0), (Duration::ZERO, number));
    }
}

#[test]
fn a_planner_that_starts_again_does_not_wait_for_who_is_away() {
    let mut world = World::of(&ALL[..3], 4);
    let (_, before) = world.whole(&ALL[..3], 0);
    world.restart(ALL[0]);
    assert!(world.whole(&ALL[..3], before).0 < TEN);
}
