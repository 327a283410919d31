//! What the loop does for the participant.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use stlf_learn::Params;
use stlf_planning::plan::Way;
use stlf_protocol::identity::PeerId;
use stlf_protocol::job::Job;
use stlf_protocol::participant::{Closing, Event, Participant, Surroundings};
use stlf_protocol::roster::Place;
use stlf_protocol::wire::Offer;

use super::outside::{Outside, add_traffic};
use super::{Observer, View};
use crate::network::jobs::Jobs;
use crate::network::link::{self, Ears, NOT_IN_ROSTER};

/// What surrounds the participant, with somebody who is told of every event.
pub(super) struct World<'a, 'o> {
    pub(super) outside: &'a mut Outside,
    pub(super) observer: &'a mut Observer<'o>,
}

impl Surroundings for World<'_, '_> {
    fn send(&mut self, to: Place, bytes: Arc<[u8]>) {
        self.outside.transmit(to, bytes);
    }

    fn close(&mut self, place: Place, why: Closing) {
        let connections = &mut self.outside.connections;
        match why {
            Closing::Removed => {
                if let Some(connection) = connections.remove(&place) {
                    connection.close(NOT_IN_ROSTER.into(), b"no longer in the roster");
                }
            }
            Closing::TooMuchRefused => {
                if let Some(connection) = connections.get(&place) {
                    connection.close(429_u32.into(), b"too many messages that are refused");
                }
            }
        }
    }

    fn begin_epoch(&mut self, now: Duration) {
        self.outside.jobs = Jobs::new(self.outside.ears.queue.clone(), now);
        self.outside.arriving.clear();
    }

    fn compute(&mut self, job: Job) {
        self.outside.jobs.add(job);
    }

    fn is_computing(&mut self) -> bool {
        self.outside.jobs.start_waiting();
        self.outside.jobs.is_busy()
    }

    fn progress(&mut self, now: Duration, every: Duration) -> Option<u8> {
        self.outside.jobs.news(now, every)
    }

    fn offer(&mut self, model: &Params, way: Way, to: Vec<(Place, PeerId)>, epoch: u64) {
        let Ok(model) = model.to_safetensors(&self.outside.layout) else { return };
        let Ears { models, queue, .. } = self.outside.ears.clone();
        self.outside.sending.spawn(link::offer(models, model, way, to, epoch, queue));
    }

    fn fetch(&mut self, from: Place, offer: Offer, epoch: u64) -> bool {
        let connection = self.outside.connections.get(&from).filter(|c| c.close_reason().is_none());
        let Some(connection) = connection.cloned() else { return false };
        let Ears { models, queue, .. } = self.outside.ears.clone();
        let arrived: Arc<AtomicU64> = Arc::default();
        self.outside.arriving.insert((from, offer.way), arrived.clone());
        self.outside.fetching.spawn(link::fetch(
            connection,
            models,
            (offer, arrived),
            epoch,
            queue,
        ));
        true
    }

    fn arriving(&mut self) -> BTreeMap<(Place, Way), u64> {
        let arriving = self.outside.arriving.iter();
        arriving.map(|(&sent, arrived)| (sent, arrived.load(Ordering::Relaxed))).collect()
    }

    fn joules(&mut self, of: &[Place]) -> Option<BTreeMap<Place, f64>> {
        let Outside { rates, joule_bits_per_second, .. } = &self.outside;
        let all_known = of.iter().all(|&place| rates.is_known(place));
        all_known.then(|| rates.joules(*joule_bits_per_second))
    }

    fn tell(&mut self, participant: &Participant, event: Event) {
        if matches!(event, Event::Alive) {
            self.outside.look_where_all_are();
        }
        let Outside { connections, tally, ears, introduction, absences, addresses, .. } =
            &mut *self.outside;
        if matches!(event, Event::Refused { .. }) {
            tally.refused += 1;
        }
        if matches!(event, Event::Roster(_)) {
            ears.longest.store(participant.device().limits().longest(), Ordering::Relaxed);
            introduction.send_replace(participant.introduction().into());
        }
        let came = match event {
            Event::Came(place) => Some(place),
            _ => None,
        };
        let mut tally = *tally;
        connections.values().for_each(|connection| add_traffic(&mut tally, connection));
        let (device, membership) = (participant.device(), participant.membership());
        let roster = participant.roster();
        let absent = absences.all(roster, addresses);
        let seen = addresses.seen();
        let used_twice = participant.used_twice();
        let view = View {
            device,
            membership,
            roster,
            absent: &absent,
            used_twice: &used_twice,
            seen,
            tally,
        };
        (self.observer)(&view, event);
        if let Some(place) = came {
            self.outside.rates.came(place);
            self.outside.probe(place, participant);
        }
    }
}
