//! A network within one program: messages are delivered in an order that a seed chooses, as bytes, and jobs end in such an order too.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::ControlFlow;

use stlf_learn::Params;
use stlf_planning::plan::Way;

use stlf_protocol::device::{Action, Device, Refusal};
use stlf_protocol::job::{Job, Task};
use stlf_protocol::roster::Place;
use stlf_protocol::wire::{Envelope, Malformed, Message, Offer};

/// Sees the bytes of every message that is delivered.
type Spy = Box<dyn FnMut(&[u8])>;

/// Devices, and what is on its way between them.
pub(crate) struct Network {
    /// All devices of the network, in the order of their places in the roster.
    pub(crate) devices: Vec<Device>,
    waiting: VecDeque<Parcel>,
    /// Bytes that each place has sent.
    pub(crate) sent: Vec<u64>,
    /// What was refused, and by whom.
    pub(crate) refused: Vec<(Place, Refusal)>,
    /// Devices for which the epoch is over.
    pub(crate) finished: Vec<bool>,
    /// What a model costs from each place to each, where devices ask for it.
    pub(crate) joules: Vec<BTreeMap<Place, f64>>,
    /// Links over which a planner was told that no model came.
    pub(crate) forbidden: Vec<(Place, Place)>,
    /// Devices without which a planner has to do.
    pub(crate) left_out: Vec<Place>,
    lost: BTreeSet<Place>,
    random: u64,
    says_twice: bool,
    /// What a device sends to another one instead of its model.
    instead: BTreeMap<(Place, Place), Params>,
    spy: Option<Spy>,
}

#[derive(Debug)]
enum Parcel {
    Message { from: Place, to: Place, bytes: Vec<u8> },
    Model { from: Place, to: Place, way: Way },
    Job { at: Place, job: Job },
}

impl Parcel {
    fn ends(&self) -> (Place, Place) {
        match self {
            Parcel::Message { from, to, .. } | Parcel::Model { from, to, .. } => (*from, *to),
            Parcel::Job { at, .. } => (*at, *at),
        }
    }
}

impl Network {
    /// A network of these devices, which stand at their places.
    pub(crate) fn new(devices: Vec<Device>, seed: u64) -> Network {
        let n = devices.len();
        Network {
            devices,
            waiting: VecDeque::new(),
            sent: vec![0; n],
            refused: Vec::new(),
            finished: vec![false; n],
            joules: vec![BTreeMap::new(); n],
            forbidden: Vec::new(),
            left_out: Vec::new(),
            lost: BTreeSet::new(),
            random: seed,
            says_twice: false,
            instead: BTreeMap::new(),
            spy: None,
        }
    }

    /// Has a device begin an epoch.
    pub(crate) fn begin(&mut self, planner: Place, number: u64, members: &[Place]) {
        self.finished.fill(false);
        let actions = self.devices[planner.index()].begin(number, members, &BTreeSet::new());
        self.act(planner, actions);
    }

    /// Puts bytes on the way, whoever made them.
    pub(crate) fn inject(&mut self, from: Place, to: Place, bytes: Vec<u8>) {
        self.waiting.push_back(Parcel::Message { from, to, bytes });
    }

    /// Shows the bytes of every message from now on, models included.
    pub(crate) fn watch(&mut self, spy: impl FnMut(&[u8]) + 'static) {
        self.spy = Some(Box::new(spy));
    }

    /// Delivers every message twice from now on, as after a connection that broke.
    pub(crate) fn say_twice(&mut self) {
        self.says_twice = true;
    }

    /// Has a device send another model to one that gets its model.
    pub(crate) fn send_instead(&mut self, from: Place, to: Place, model: Params) {
        self.instead.insert((from, to), model);
    }

    /// Loses a device, and all that is on its way from and to it.
    pub(crate) fn lose(&mut self, place: Place) {
        self.waiting.retain(|parcel| {
            let (from, to) = parcel.ends();
            from != place && to != place
        });
        self.lost.insert(place);
    }

    /// Delivers everything, until nothing is on its way. Between two devices the order is kept, as on a connection;
    /// else any is possible.
    ///
    /// # Errors
    /// A device got bytes that are no message.
    pub(crate) fn run(&mut self) -> Result<(), Malformed> {
        self.run_until(|_| false)
    }

    /// The same until the devices are such.
    ///
    /// # Errors
    /// A device got bytes that are no message.
    pub(crate) fn run_until(&mut self, is: impl Fn(&[Device]) -> bool) -> Result<(), Malformed> {
        while !self.waiting.is_empty() && !is(&self.devices) {
            let parcel = self.next();
            let (to, result) = match parcel {
                Parcel::Message { from, to, bytes } => {
                    if let Some(spy) = &mut self.spy {
                        spy(&bytes);
                    }
                    (to, self.devices[to.index()].receive(from, &Envelope::read(&bytes)?))
                }
                Parcel::Model { from, to, way } => {
                    let Some(model) = self.model(from, to, way) else { continue };
                    if let Some(spy) = &mut self.spy {
                        spy(&model.iter().flat_map(|p| p.to_le_bytes()).collect::<Vec<_>>());
                    }
                    self.sent[from.index()] += 4 * model.len() as u64;
                    (to, self.devices[to.index()].receive_model(from, way, model))
                }
                Parcel::Job { at, job } => {
                    self.compute(at, job);
                    continue;
                }
            };
            match result {
                Ok(actions) => self.act(to, actions),
                Err(refusal) => self.refused.push((to, refusal)),
            }
        }
        Ok(())
    }

    /// Returns what a device gets as another one's model.
    fn model(&self, from: Place, to: Place, way: Way) -> Option<Params> {
        let model = self.devices[from.index()].sent_model(way)?;
        Some(self.instead.get(&(from, to)).cloned().unwrap_or(model))
    }

    /// Runs a job, and gives the device what it comes to. Nobody measures time here, so that no search is cut short.
    fn compute(&mut self, at: Place, job: Job) {
        let task = job.task();
        let Some(computed) = job.run(&mut |_| ControlFlow::Continue(())) else { return };
        let blamed = computed.blamed().map(|blamed| blamed.from);
        let actions = match (self.devices[at.index()].computed(computed), task, blamed) {
            (Ok(actions), ..) => actions,
            (Err(_), Task::TrainOn { from, .. } | Task::Examine { from }, _)
            | (Err(_), Task::Combine, Some(from)) => self.devices[at.index()].model_failed(from),
            (Err(refusal), ..) => return self.refused.push((at, refusal)),
        };
        self.act(at, actions);
    }

    /// Any parcel that no older one between the same two stands before; jobs overtake each other.
    fn next(&mut self) -> Parcel {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let chosen = (self.random >> 33) as usize % self.waiting.len();
        let pair = self.waiting[chosen].ends();
        let first = match self.waiting[chosen] {
            Parcel::Job { .. } => chosen,
            _ => self.waiting.iter().position(|p| p.ends() == pair).unwrap_or(chosen),
        };
        self.waiting.remove(first).unwrap_or(Parcel::Message {
            from: pair.0,
            to: pair.1,
            bytes: Vec::new(),
        })
    }

    fn act(&mut self, place: Place, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Send(to, _) | Action::Fetch(to, _) if self.lost.contains(&to) => {}
                Action::Send(to, envelope) => {
                    let bytes = envelope.to_bytes();
                    self.sent[place.index()] += bytes.len() as u64;
                    if self.says_twice {
                        self.inject(place, to, bytes.clone());
                    }
                    self.inject(place, to, bytes);
                }
                Action::Fetch(from, Offer { way, .. }) => {
                    self.waiting.push_back(Parcel::Model { from, to: place, way });
                }
                Action::Compute(job) => self.waiting.push_back(Parcel::Job { at: place, job }),
                Action::Offer(to, way) => {
                    // Within one program nobody else can take it.
                    let hash = [u8::from(self.instead.contains_key(&(place, to))); 32];
                    let device = &self.devices[place.index()];
                    let signed = device.sign_offer(Offer { way, hash, bytes: 0 });
                    let message = Message::Offer(signed, device.tried(way));
                    let envelope = Envelope::new(device.epoch_id().unwrap_or_default(), message);
                    self.act(place, vec![Action::Send(to, envelope)]);
                }
                Action::KeepReplies | Action::KeepVerdicts | Action::Distrust(_) => {}
                Action::MeasureLinks => {
                    let joules = self.joules[place.index()].clone();
                    let actions = self.devices[place.index()].links_measured(joules);
                    self.act(place, actions);
                }
                Action::Forbid(from, to) => self.forbidden.push((from, to)),
                Action::LeaveOut(out) => self.left_out.push(out),
                Action::Refuse(_, refusal) => self.refused.push((place, refusal)),
                Action::Finish => self.finished[place.index()] = true,
            }
        }
    }
}
