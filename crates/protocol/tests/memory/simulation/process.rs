//! What surrounds a simulated participant: its requests become happenings.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use stlf_learn::Params;
use stlf_planning::plan::Way;
use stlf_protocol::job::Job;
use stlf_protocol::participant::{Closing, Event};
use stlf_protocol::wire::Offer;
use stlf_protocol::{Participant, PeerId, Place, Surroundings};

use super::devices::Disk;
use super::liars::Lie;
use super::{Host, News, Simulation, Transfer, ms};

enum Request {
    Send(Place, Arc<[u8]>),
    Close(Place),
    Compute(Job),
    Offer(Way, Vec<Place>, u64, u64),
    Fetch(Place, Offer, u64),
}

/// What a process may ask for while it hears something.
pub(super) struct Port<'a> {
    place: Place,
    now: Duration,
    /// When the process began, from which its own clock counts.
    began: Duration,
    requests: Vec<Request>,
    jobs: &'a mut usize,
    transfers: &'a mut BTreeMap<(Place, Way), Transfer>,
    disk: &'a mut Disk,
    connections: &'a BTreeMap<Place, usize>,
    /// Those to which no link can be measured.
    unmeasured: &'a BTreeSet<Place>,
    watcher: &'a mut super::Watcher,
}

impl Surroundings for Port<'_> {
    fn send(&mut self, to: Place, bytes: Arc<[u8]>) {
        self.requests.push(Request::Send(to, bytes));
    }

    fn close(&mut self, place: Place, _: Closing) {
        self.requests.push(Request::Close(place));
    }

    fn begin_epoch(&mut self, _: Duration) {
        *self.jobs = 0;
        self.transfers.clear();
    }

    fn compute(&mut self, job: Job) {
        *self.jobs += 1;
        self.requests.push(Request::Compute(job));
    }

    fn is_computing(&mut self) -> bool {
        *self.jobs > 0
    }

    fn progress(&mut self, _: Duration, _: Duration) -> Option<u8> {
        None
    }

    fn offer(&mut self, model: &Params, way: Way, to: Vec<(Place, PeerId)>, epoch: u64) {
        let to = to.into_iter().map(|(place, _)| place).collect();
        self.requests.push(Request::Offer(way, to, epoch, 4 * model.len() as u64));
    }

    fn fetch(&mut self, from: Place, offer: Offer, epoch: u64) -> bool {
        let is_connected = self.connections.contains_key(&from);
        if is_connected {
            self.requests.push(Request::Fetch(from, offer, epoch));
        }
        is_connected
    }

    fn arriving(&mut self) -> BTreeMap<(Place, Way), u64> {
        self.transfers.iter().map(|(&sent, transfer)| (sent, transfer.came(self.now))).collect()
    }

    fn joules(&mut self, of: &[Place]) -> Option<BTreeMap<Place, f64>> {
        let is_known = |place: &Place| !self.unmeasured.contains(place);
        let known = self.connections.keys().copied().filter(is_known);
        let known = known.map(|place| (place, 1.0 + place.index() as f64)).collect();
        of.iter().all(is_known).then_some(known)
    }

    fn tell(&mut self, participant: &Participant, event: Event) {
        match &event {
            Event::Began { epoch, .. } => self.disk.epoch = *epoch,
            Event::Planned { .. } => self.disk.plan = participant.device().plan().cloned(),
            Event::TrainedOn { .. } => {
                self.disk.handed_on = participant.device().handed_on().clone();
            }
            Event::LeftOut(_) => {
                let convicted = participant.membership().convicted().iter();
                self.disk.convicted =
                    convicted.map(|(&place, &until)| (place, self.began + until)).collect();
            }
            _ => {}
        }
        self.watcher.told(self.now, self.place, participant, &event);
    }
}

impl Simulation {
    /// Has a process do something, and does what it asks for.
    pub(super) fn with(
        &mut self,
        at: Place,
        does: impl FnOnce(&mut Participant, Duration, &mut Port<'_>),
    ) {
        let now = self.now;
        let lies = |host: &Host| host.lie.as_ref().is_some_and(Lie::takes_no_probes);
        let unmeasured = self.places().zip(&self.hosts).filter(|(_, host)| lies(host));
        let unmeasured: BTreeSet<Place> = unmeasured.map(|(place, _)| place).collect();
        let Host { process, began, jobs, transfers, disk, connections, .. } =
            &mut self.hosts[at.index()];
        let Some(process) = process else { return };
        let watcher = &mut self.watcher;
        let mut port = Port {
            place: at,
            now,
            began: *began,
            requests: Vec::new(),
            jobs,
            transfers,
            disk,
            connections,
            unmeasured: &unmeasured,
            watcher,
        };
        does(process, now - port.began, &mut port);
        for request in port.requests {
            self.grant(at, request);
        }
    }

    fn grant(&mut self, at: Place, request: Request) {
        match request {
            Request::Send(to, bytes) => {
                if self.may_say(at, to, &bytes) {
                    self.transmit(at, to, bytes);
                }
            }
            Request::Close(peer) => self.sever(at, peer, true),
            Request::Compute(job) => {
                let computed = job.run(&mut |_| ControlFlow::Continue(()));
                let after = ms(1) + self.random.within(ms(200));
                if let Some(computed) = computed {
                    self.post(after, at, News::Computed(Box::new(computed)));
                }
            }
            Request::Offer(way, to, epoch, bytes) => {
                let offer = Offer { way, hash: [0; 32], bytes };
                let after = self.random.within(ms(20));
                self.post(after, at, News::Offered(epoch, to, offer));
            }
            Request::Fetch(from, offer, epoch) => {
                let Some(&connection) = self.hosts[at.index()].connections.get(&from) else {
                    return;
                };
                let mut after = ms(5) + self.random.within(self.delay);
                if let Some(&slow) = self.slow_links.get(&(from, at)) {
                    let transfer = Transfer { since: self.now, bytes: offer.bytes, slow };
                    self.hosts[at.index()].transfers.insert((from, offer.way), transfer);
                    if slow.stalls_at < 100 {
                        return;
                    }
                    after += slow.takes;
                }
                self.post(after, at, News::Model { from, connection, epoch, offer });
            }
        }
    }

    /// Puts bytes on their way over the connection that the sender has.
    pub(super) fn transmit(&mut self, at: Place, to: Place, bytes: Arc<[u8]>) {
        let Some(&id) = self.hosts[at.index()].connections.get(&to) else { return };
        let connection = &self.connections[id];
        let Some(&(_, start)) = connection.ends.iter().find(|(place, _)| *place == to) else {
            return;
        };
        let times = 1 + u64::from(self.random.below(100) < self.twice);
        for _ in 0..times {
            let after = ms(1) + self.random.within(self.delay);
            let news = News::Heard(at, id, bytes.clone());
            self.push(self.now + after, super::Happening::News(to, start, news));
        }
    }
}
