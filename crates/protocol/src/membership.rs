//! Who takes part, and when an epoch begins, is over, or is begun anew. A machine without I/O: time comes in as an argument.
//!
//! The first of those that are here plans, and nobody else is believed to. An epoch is over when all its devices have said so. It is
//! begun anew, under a new number, when a device is lost, starts anew, or stays silent; and, after it is over, when somebody joins,
//! leaves, starts anew, has other data, or has taken part in another one meanwhile.
//!
//! Devices that do not hear of each other may begin epochs of the same number. These are two epochs ([`EpochId`]); whoever takes part in one
//! of them is in no other of that number, and when their devices meet, the first of them begins a later one with all.

mod beginning;
mod blame;
mod convicting;
mod deciding;
mod ending;
mod forgiving;
mod numbers;
mod patience;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub use self::beginning::Beginning;
pub use self::deciding::Decision;
use self::ending::Ended;
use self::numbers::Numbers;
use crate::roster::Place;
use crate::shared::Difference;
use crate::wire::EpochId;

/// How long things may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Timing {
    /// For all to come; then those that came begin.
    pub wait: Duration,
    /// After somebody joined or left, for others to do so too.
    pub settle: Duration,
    /// For the next sign of progress within an epoch.
    pub patience: Duration,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            wait: Duration::from_secs(60),
            settle: Duration::from_secs(2),
            patience: Duration::from_secs(30),
        }
    }
}

/// A device that was silent is not asked again for so many times the patience.
const LEFT_OUT_FOR: u32 = 10;

/// A device says again whom it waits for, if these are others by then, so many times at most within the patience.
const COMPLAINS_IN_PATIENCE: u32 = 4;

/// A planner that does not act upon complaints is given up after so many times the patience.
const PLANNER_MUST_ACT: u32 = 3;

/// What one device knows of who takes part.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Membership {
    own: Place,
    timing: Timing,
    /// How many devices the roster has.
    expected: usize,
    started: Duration,
    /// Those that have greeted, and this device itself.
    here: BTreeSet<Place>,
    changed: Duration,
    /// Which start of theirs those that ever greeted told of last.
    starts: BTreeMap<Place, u64>,
    /// Connected, but with other settings.
    unlike: BTreeMap<Place, Difference>,
    /// Whether somebody here has told of an epoch that it takes part in.
    others_work: bool,
    numbers: Numbers,
    running: Option<Running>,
    /// Until when silent devices are left out.
    left_out: BTreeMap<Place, Duration>,
    /// Those that lied as planners, and until when they are done without, whatever they start or connect anew.
    convicted: BTreeMap<Place, Duration>,
    /// Links over which no model came.
    forbidden: BTreeSet<(Place, Place)>,
    /// When what is held against a device was last dropped because it came or started anew.
    forgiven: BTreeMap<Place, Duration>,
    /// How many times in a row a device has started anew, or ended an epoch otherwise.
    ended: BTreeMap<Place, Ended>,
    /// Those whose loss has ended an epoch that this device planned, until they come back.
    broke: BTreeSet<Place>,
    /// Those that were left out outside of any look at the clock, and that nobody was told of yet.
    untold: BTreeSet<Place>,
    /// Since when somebody should have begun an epoch, and whether it was reminded.
    due: Option<Duration>,
    has_reminded: bool,
    /// Epochs that others began although somebody before them is here.
    untimely: BTreeMap<Place, (EpochId, Vec<Place>)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Running {
    id: EpochId,
    members: BTreeSet<Place>,
    progress: Duration,
    /// When it began, or there was a plan.
    since: Duration,
    /// Whom this device said it waits for since then, and when.
    complained: Option<(Duration, Vec<Place>)>,
    complaints: BTreeMap<Place, BTreeSet<Place>>,
    /// Those that have reported.
    reported: BTreeSet<Place>,
    /// The links that models go over, from and to, once there is a plan. None where it is known that there is none.
    links: Option<BTreeSet<(Place, Place)>>,
    done: BTreeSet<Place>,
    is_over: bool,
    /// It cannot go on, or, once it is over, does not hold any more.
    is_broken: bool,
}

impl Membership {
    /// A device that has just started. `epoch` is the last one that it knows of.
    pub fn new(
        own: Place,
        expected: usize,
        epoch: u64,
        timing: Timing,
        now: Duration,
    ) -> Membership {
        Membership {
            own,
            timing,
            expected,
            started: now,
            here: BTreeSet::from([own]),
            changed: now,
            starts: BTreeMap::new(),
            unlike: BTreeMap::new(),
            others_work: false,
            numbers: Numbers::from(epoch, now),
            running: None,
            left_out: BTreeMap::new(),
            convicted: BTreeMap::new(),
            forbidden: BTreeSet::new(),
            forgiven: BTreeMap::new(),
            ended: BTreeMap::new(),
            broke: BTreeSet::new(),
            untold: BTreeSet::new(),
            due: None,
            has_reminded: false,
            untimely: BTreeMap::new(),
        }
    }

    /// The highest epoch that was heard of.
    pub fn epoch(&self) -> u64 {
        self.numbers.highest()
    }

    /// A number that another device knows of. Whether it is believed.
    pub fn heard_of(&mut self, epoch: u64) -> bool {
        self.numbers.hear(epoch)
    }

    /// The same of a device that may insist on it, and then is believed later.
    pub fn hear_claim(&mut self, from: Place, epoch: u64, now: Duration) -> bool {
        self.numbers.hear_from(from, epoch, now)
    }

    /// Returns whether an epoch may have this number now. Whoever begins epochs may get so far from the last ones only within each patience.
    pub fn is_near(&self, epoch: u64, now: Duration) -> bool {
        self.numbers.is_near(epoch, self.timing.patience, now)
    }

    /// The epoch that this device takes part in. Others may know of later ones; that alone changes nothing here.
    pub fn running(&self) -> Option<u64> {
        self.running_id().map(|id| id.number)
    }

    /// Returns which one that is.
    pub fn running_id(&self) -> Option<EpochId> {
        self.running.as_ref().map(|running| running.id)
    }

    /// Returns who is here, this device included.
    pub fn here(&self) -> &BTreeSet<Place> {
        &self.here
    }

    /// Returns who takes part in the running epoch.
    pub fn members(&self) -> Option<&BTreeSet<Place>> {
        self.running.as_ref().map(|running| &running.members)
    }

    /// Returns who plans the running epoch: the first of those that take part.
    pub fn planner(&self) -> Option<Place> {
        self.members()?.first().copied()
    }

    /// Returns who has said that the running epoch is over for them; only its planner knows.
    pub fn done(&self) -> Option<&BTreeSet<Place>> {
        self.running.as_ref().map(|running| &running.done)
    }

    /// Returns whether the epoch is over for all.
    pub fn is_over(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.is_over)
    }

    /// Links over which no model came.
    pub fn forbidden(&self) -> &BTreeSet<(Place, Place)> {
        &self.forbidden
    }

    /// The roster has so many devices now.
    pub fn expect(&mut self, devices: usize) {
        self.expected = devices;
    }

    /// Returns whether a device that greets with this number has started anew since it greeted last.
    pub fn starts_anew(&self, place: Place, start: u64) -> bool {
        self.starts.get(&place).is_some_and(|before| *before != start)
    }

    /// A device has greeted. Whoever has started anew does not know what it knew, and whoever takes part in a later epoch than this
    /// device's, or in another of the same number, knows of no way back: with one of its members like that, the running epoch is begun anew.
    pub fn came(&mut self, place: Place, start: u64, running: impl Into<EpochId>, now: Duration) {
        let running = running.into();
        let is_new = self.starts_anew(place, start);
        self.starts.insert(place, start);
        self.unlike.remove(&place);
        let was_away = self.here.insert(place);
        let has_broken = self.broke.remove(&place);
        self.new_first(place);
        self.others_work |= running.number > 0;
        let of_member = |own: &&mut Running| own.members.contains(&place);
        let own = self.running.as_mut().filter(of_member);
        let is_broken = own.is_some_and(|own| {
            let is_broken = is_new || own.is_beside(running);
            own.is_broken |= is_broken;
            // What it said before it started anew it may not be able to say again.
            if is_new && !own.is_over {
                own.done.remove(&place);
            }
            is_broken
        });
        if is_new || is_broken || has_broken {
            self.has_ended(place, now);
        }
        // Nobody waits for those to settle that get no other chance, or that only connect anew.
        if self.forgive(place, is_new, now) && (was_away || is_new) {
            self.changed = now;
        }
    }

    /// What a device holds against others was for the planner that it was, or might have been, with those that stood before it. What it holds against
    /// the planner itself is not for that one to end.
    fn new_first(&mut self, place: Place) {
        self.untimely.remove(&place);
        if place < self.own {
            self.left_out.retain(|&out, _| out <= place);
        }
    }

    /// A device that was asked to take part in an epoch takes part in this one. If it cannot come along, the planner begins anew.
    pub fn hear_takes_part(&mut self, place: Place, other: EpochId, now: Duration) {
        if !self.hear_claim(place, other.number, now) {
            return;
        }
        let own = self.own;
        let begun =
            |r: &&mut Running| r.members.first() == Some(&own) && r.members.contains(&place);
        if let Some(running) = self.running.as_mut().filter(begun)
            && running.is_beside(other)
        {
            // Once it is over that may honestly be said more than once.
            let counts = !running.is_over || !running.is_broken;
            running.is_broken = true;
            if counts {
                self.has_ended(place, now);
            }
        }
    }

    /// As the planner, once the epoch is over: a member, or this device itself, has other data since it began. Another epoch is to begin; others
    /// that have other data too have time to say so. Whoever asks for epochs all the time is left out like one that starts anew all the time.
    pub fn hear_renewed(&mut self, place: Place, now: Duration) {
        let over = |running: &&mut Running| running.is_over && running.members.contains(&place);
        let Some(running) = self.running.as_mut().filter(over) else { return };
        running.is_broken = true;
        if place != self.own {
            self.has_ended(place, now);
        }
        if !self.is_restless(place, now) {
            self.changed = now;
        }
    }

    /// A device is lost.
    pub fn lost(&mut self, place: Place, now: Duration) {
        self.unlike.remove(&place);
        self.untimely.remove(&place);
        self.numbers.forget(place);
        if self.here.remove(&place) && !self.is_restless(place, now) {
            self.changed = now;
            self.new_first(place);
        }
        if let Some(running) = self.running.as_mut().filter(|r| !r.is_over)
            && running.members.contains(&place)
        {
            running.is_broken = true;
            if running.members.first() == Some(&self.own) {
                self.broke.insert(place);
            }
        }
    }

    /// A device that is connected has other settings, and takes no part.
    pub fn set_apart(&mut self, place: Place, difference: Difference, now: Duration) {
        self.lost(place, now);
        self.unlike.insert(place, difference);
    }

    /// Returns those that are connected, but have other settings.
    pub fn unlike(&self) -> &BTreeMap<Place, Difference> {
        &self.unlike
    }

    /// This device takes part in an epoch. Epochs that others began before it under a number that is not above its own will never be;
    /// who they were.
    pub fn enter(
        &mut self,
        epoch: impl Into<EpochId>,
        members: &[Place],
        now: Duration,
    ) -> Vec<Place> {
        let id = epoch.into();
        self.numbers.take_part(id.number, self.timing.patience, now);
        (self.due, self.has_reminded) = (None, false);
        // Whoever stands behind the planner is the planner's to leave out.
        if let Some(&planner) = members.first().filter(|&&planner| planner != self.own) {
            self.left_out.retain(|&out, _| out < planner);
        }
        let late = |(from, (other, _)): (&Place, &(EpochId, Vec<Place>))| {
            (other.number <= id.number).then_some(*from)
        };
        let late: Vec<Place> = self.untimely.iter().filter_map(late).collect();
        late.iter().for_each(|from| drop(self.untimely.remove(from)));
        self.running = Some(Running {
            id,
            members: members.iter().copied().collect(),
            progress: now,
            since: now,
            complained: None,
            complaints: BTreeMap::new(),
            reported: BTreeSet::new(),
            links: None,
            done: BTreeSet::new(),
            is_over: false,
            is_broken: false,
        });
        late
    }

    /// Something new of the running epoch arrived.
    pub fn progressed(&mut self, now: Duration) {
        if let Some(running) = &mut self.running {
            running.progress = now;
        }
    }

    /// This device itself was asleep, or has work to do: it holds nothing up that others do not hold up from now on.
    pub fn was_busy(&mut self, now: Duration) {
        self.progressed(now);
        if let Some(running) = &mut self.running {
            running.since = now;
        }
    }

    /// As the planner: a device says that the epoch is over for it, which counts once [it is known](Membership::planned) what there was to do.
    /// Whether it now is over for all.
    pub fn hear_done(&mut self, from: Place) -> bool {
        let goes_on = |running: &&mut Running| !running.is_over && running.links.is_some();
        let Some(running) = self.running.as_mut().filter(goes_on) else { return false };
        if running.members.contains(&from) {
            running.done.insert(from);
        }
        running.is_over = running.done == running.members;
        let is_over = running.is_over;
        if is_over {
            self.has_completed();
        }
        is_over
    }

    /// There is a plan, which has models sent over these links, from and to, or it is known that there is none. What devices waited for before that is
    /// of no interest any more.
    pub fn planned(&mut self, links: BTreeSet<(Place, Place)>, now: Duration) {
        if let Some(running) = &mut self.running {
            (running.since, running.complained) = (now, None);
            running.complaints.clear();
            // Those that it complained of have another chance if it plans with them all the same.
            let own = self.own;
            if running.members.first() == Some(&own) {
                self.forbidden.retain(|link| link.1 != own || !links.contains(link));
            }
            running.links = Some(links);
        }
    }

    /// Returns whether there is a plan in the running epoch, or it is known that there is none.
    pub fn is_planned(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.links.is_some())
    }

    /// The planner says that the epoch is over.
    pub fn hear_complete(&mut self) {
        if let Some(running) = &mut self.running {
            running.is_over = true;
            self.has_completed();
        }
    }

    /// As the planner: a device has reported.
    pub fn hear_report(&mut self, from: Place) {
        if let Some(running) = self.running.as_mut().filter(|r| r.members.contains(&from)) {
            running.reported.insert(from);
        }
    }

    /// As the planner: a device waits for others.
    pub fn hear_missing(&mut self, from: Place, missing: &[Place]) {
        if let Some(running) = self.running.as_mut().filter(|r| r.members.contains(&from)) {
            let named = missing.iter().copied().filter(|place| running.members.contains(place));
            running.complaints.insert(from, named.collect());
        }
    }

    /// Returns whether this device has said so before, since there was a plan or since there is none.
    pub fn has_complained(&self, place: Place) -> bool {
        self.running.as_ref().is_some_and(|running| running.complaints.contains_key(&place))
    }

    /// As the planner: no model came over this link; the next plan does without it.
    pub fn forbid(&mut self, from: Place, to: Place, now: Duration) {
        self.do_without((from, to), now);
        if let Some(running) = &mut self.running {
            running.is_broken = true;
            running.is_over = false;
        }
    }

    /// As the planner: nothing can be planned for this device as things are.
    pub fn leave_out(&mut self, place: Place, now: Duration) {
        self.left_out.insert(place, now + self.timing.patience * LEFT_OUT_FOR);
        self.has_ended(place, now);
        if let Some(running) = &mut self.running {
            running.is_broken = true;
        }
    }

    /// Whoever is here and not left out.
    fn candidates(&self, now: Duration) -> BTreeSet<Place> {
        let is_in =
            |place: &Place| !self.is_left_out(*place, now) && !self.is_convicted(*place, now);
        self.here.iter().copied().filter(is_in).collect()
    }
}

impl Running {
    /// Returns whether a device that takes part in the other epoch has not come along to this one, and will not.
    fn is_beside(&self, other: EpochId) -> bool {
        other != self.id && other.number >= self.id.number
    }
}

#[cfg(test)]
mod tests;
