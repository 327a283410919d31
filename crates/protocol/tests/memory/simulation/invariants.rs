//! What must hold, whatever happens.
//!
//! - An epoch that an honest device began has the same members and the same plan at all honest devices.
//! - A device's epochs count up while it runs.
//! - The device that plans never leaves an honest one out that answers.
//! - Once nothing goes wrong any more, all honest devices have completed one epoch together within [`CONVERGED_AFTER`].

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use stlf_protocol::participant::Event;
use stlf_protocol::wire::{Envelope, EpochId, Plan};
use stlf_protocol::{Participant, Place};

use super::{Simulation, TIMING};

/// All honest devices have one plan this long after the last fault, if nobody lies.
pub(crate) const CONVERGED_AFTER: Duration = Duration::from_secs(10);

/// The same if somebody does: twenty times the patience. It is found out by that, in each of the steps of an epoch, and if it stands first in
/// the roster, devices give it up at different times, and may leave each other out for ten times the patience.
pub(crate) const CONVERGED_AMONG_LIARS_AFTER: Duration = Duration::from_secs(160);

/// A device answers again this long after something happened to it: that is noticed, and its connections are new.
const TROUBLED_FOR: Duration = Duration::from_secs(6);

/// What one epoch is to all.
struct Known {
    members: BTreeSet<Place>,
    plan: Option<Plan>,
}

pub(crate) struct Watcher {
    honest: BTreeSet<Place>,
    epochs: BTreeMap<EpochId, Known>,
    /// How many times honest devices took part in an epoch that a liar began.
    of_liars: usize,
    /// The last epoch of each device.
    last: BTreeMap<Place, EpochId>,
    /// When something last happened to a device, or began or ended.
    troubled: BTreeMap<Place, Duration>,
    /// Devices that run and are awake.
    pub(super) awake: BTreeSet<Place>,
    pub(super) violation: Option<String>,
    pub(super) trace: Option<Vec<String>>,
}

impl Watcher {
    pub(super) fn new(honest: impl Iterator<Item = Place>) -> Watcher {
        Watcher {
            honest: honest.collect(),
            epochs: BTreeMap::new(),
            of_liars: 0,
            last: BTreeMap::new(),
            troubled: BTreeMap::new(),
            awake: BTreeSet::new(),
            violation: None,
            trace: None,
        }
    }

    pub(super) fn note(&mut self, now: Duration, what: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:9.3} {}", now.as_secs_f64(), what()));
        }
    }

    pub(super) fn hears(&mut self, now: Duration, at: Place, from: Place, bytes: &[u8]) {
        self.note(now, || match Envelope::read(bytes) {
            Ok(Envelope { epoch, message, .. }) => {
                let said = format!("{message:?}");
                let said: String = said.chars().take(60).collect();
                format!("{at} hears {from}: {}.{} {said}", epoch.number, epoch.begun % 1_000)
            }
            Err(_) => format!("{at} hears {from}: something"),
        });
    }

    fn violated(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    pub(super) fn told(
        &mut self,
        now: Duration,
        at: Place,
        participant: &Participant,
        event: &Event,
    ) {
        self.note(now, || format!("{at} tells {event:?}"));
        if !self.honest.contains(&at) {
            return;
        }
        let membership = participant.membership();
        let id = membership.running_id().unwrap_or_default();
        match event {
            Event::Began { .. } => {
                if self.last.insert(at, id).is_some_and(|before| before.number >= id.number) {
                    self.violated(format!("{at} goes back to epoch {id}"));
                }
                let members = membership.members().cloned().unwrap_or_default();
                if !members.first().is_some_and(|planner| self.honest.contains(planner)) {
                    self.of_liars += 1;
                    return;
                }
                let known =
                    self.epochs.entry(id).or_insert(Known { members: members.clone(), plan: None });
                if known.members != members {
                    self.violated(format!("epoch {id:?} has other members at {at}: {members:?}"));
                }
            }
            Event::Planned { .. } => {
                let Some(known) = self.epochs.get_mut(&id) else { return };
                let plan = participant.device().plan().cloned();
                match &known.plan {
                    Some(_) if known.plan != plan => {
                        self.violated(format!("epoch {id:?} has another plan at {at}"));
                    }
                    _ => known.plan = plan,
                }
            }
            Event::LeftOut(out) => {
                // Where somebody before it is awake, this device plans for nobody, and nobody heeds it.
                let plans = self.awake.first() == Some(&at);
                // Whoever something just happened to does not answer yet, or what it answered was lost.
                let answers = |place: &Place| match self.troubled.get(place) {
                    Some(&last) => now > last + TROUBLED_FOR,
                    None => true,
                };
                if plans && self.honest.contains(out) && answers(out) && answers(&at) {
                    self.violated(format!("{at} leaves {out} out"));
                }
            }
            _ => {}
        }
    }

    pub(super) fn trouble(&mut self, places: Vec<Place>, now: Duration) {
        self.troubled.extend(places.into_iter().map(|place| (place, now)));
    }

    /// A device takes no part for reasons of its own, or does again.
    pub(super) fn set_apart(&mut self, place: Place, is_apart: bool) {
        match is_apart {
            true => self.honest.remove(&place),
            false => self.honest.insert(place),
        };
    }

    /// A process has started: it may take part under any number if it has lost its own.
    pub(super) fn started(&mut self, at: Place) {
        self.last.remove(&at);
    }
}

impl Simulation {
    /// How many times honest devices took part in an epoch that a liar began.
    pub(crate) fn epochs_of_liars(&self) -> usize {
        self.watcher.of_liars
    }

    /// The links, from and to, that models go over by the plan that a device follows.
    pub(crate) fn links(&self, at: Place) -> BTreeSet<(Place, Place)> {
        let process = self.hosts[at.index()].process.as_ref();
        process.and_then(|process| Some(process.device().plan()?.sends())).unwrap_or_default()
    }

    /// Whether a device takes part in the epoch of any honest one.
    pub(crate) fn takes_part(&self, place: Place) -> bool {
        let honest = self.watcher.honest.iter();
        let running = honest.filter_map(|at| self.hosts[at.index()].process.as_ref());
        let mut members = running.filter_map(|process| process.membership().members());
        members.any(|members| members.contains(&place))
    }

    /// The epoch that all honest devices have completed together with the data that they have, if there is one.
    pub(crate) fn converged(&self) -> Option<EpochId> {
        let mut common = None;
        for &place in &self.watcher.honest {
            let process = self.hosts[place.index()].process.as_ref()?;
            let membership = process.membership();
            let id = membership.running_id().filter(|_| membership.is_over())?;
            let has_all = membership.members()?.is_superset(&self.watcher.honest);
            let is_done = process.device().is_done() && !process.device().awaits_renewal();
            if !has_all || !is_done || common.is_some_and(|other| other != id) {
                return None;
            }
            common = Some(id);
        }
        common
    }

    /// Lets time pass until all have converged, at most this long after the last fault; how long that took.
    ///
    /// # Errors
    /// What was violated.
    pub(crate) fn converge(&mut self, last: Duration, most: Duration) -> Result<Duration, String> {
        self.run_until(last);
        loop {
            if let Some(what) = &self.watcher.violation {
                return Err(what.clone());
            }
            if self.converged().is_some() {
                return Ok(self.now.saturating_sub(last));
            }
            if self.now >= last + most {
                return Err(format!(
                    "not converged {most:?} after the last fault: {}",
                    self.state()
                ));
            }
            self.run_until(self.now + Duration::from_millis(100));
        }
    }

    /// Lets time pass until then and for a while longer. How long after the last fault there was one plan that nothing changed any more.
    ///
    /// # Errors
    /// What was violated.
    pub(crate) fn stay_converged(
        &mut self,
        last: Duration,
        most: Duration,
    ) -> Result<Duration, String> {
        self.converge(last, most)?;
        let (mut since, mut plan) = (self.now, self.converged());
        while self.now < last + most + TIMING.patience {
            self.run_until(self.now + Duration::from_millis(200));
            if self.converged() != plan {
                (since, plan) = (self.now, self.converged());
            }
            if let Some(what) = &self.watcher.violation {
                return Err(what.clone());
            }
        }
        match plan {
            Some(_) if since <= last + most => Ok(since.saturating_sub(last)),
            _ => Err(format!(
                "{:?} after the last fault things change: {}",
                since - last,
                self.state()
            )),
        }
    }

    /// How all devices stand.
    pub(crate) fn state(&self) -> String {
        let one = |place: Place| {
            let Some(process) = &self.hosts[place.index()].process else {
                return format!("\n  {place}: does not run");
            };
            let membership = process.membership();
            let phase = process.device().phase().map(stlf_protocol::Phase::order);
            format!(
                "\n  {place}: epoch {:?}, members {:?}, over {}, phase {phase:?}, here {:?}",
                membership.running_id(),
                membership.members(),
                membership.is_over(),
                membership.here(),
            )
        };
        self.places().map(one).collect()
    }

    /// What happened last, if it was written down.
    pub(crate) fn trace(&self) -> String {
        let lines = self.watcher.trace.iter().flatten();
        let lines: Vec<&str> = lines.map(String::as_str).collect();
        lines[lines.len().saturating_sub(2_000)..].join("\n")
    }
}
