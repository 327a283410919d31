//! The problem's data: sorted candidate lists, one per client, and the same links by facility.

use std::ops::Range;

use super::lists::{Block, Keep, shared};

/// An input that is not a facility location problem.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FacilityError {
    /// Costs must be at least 0.
    #[error("client {client}: the cost {cost} from facility {facility} is not a number ≥ 0")]
    Cost {
        /// The index of the client that is served.
        client: usize,
        /// The index of the facility that serves it.
        facility: usize,
        /// The cost that was given.
        cost: f64,
    },
    /// Opening costs must be finite and at least 0.
    #[error("facility {facility}: the opening cost {cost} is not a finite number ≥ 0")]
    OpenCost {
        /// The facility with this opening cost.
        facility: usize,
        /// The opening cost that was given.
        cost: f64,
    },
    /// No facility that may open serves this client.
    #[error("client {client} has no candidate")]
    Unservable {
        /// The client that no facility can serve.
        client: usize,
    },
}

/// Whether a facility may, must or may not open.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Opening {
    /// The facility may open, at this cost.
    May(f64),
    /// The facility is open in every solution, at this cost.
    Must(f64),
    /// The facility stays closed.
    Never,
}

impl Opening {
    /// Returns f_i, which is infinite where the facility stays closed.
    pub fn cost(self) -> f64 {
        match self {
            Opening::May(cost) | Opening::Must(cost) => cost,
            Opening::Never => f64::INFINITY,
        }
    }

    /// What using the facility adds: nothing where it is open in any case.
    pub(crate) fn unpaid(self) -> f64 {
        match self {
            Opening::Must(_) => 0.0,
            other => other.cost(),
        }
    }
}

/// A facility that can serve a client, and at what cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// The index of the facility.
    pub facility: u32,
    /// c_ij ≥ 0; where it is infinite there is no such link.
    pub cost: f64,
}

/// Pushes the candidates of a client, in any order.
pub(super) type Candidates<'a> = dyn Fn(usize, &mut Vec<Candidate>) + Sync + 'a;

/// Uncapacitated facility location over sparse candidate lists.
#[derive(Debug, Clone)]
pub struct Instance {
    pub(super) opening: Vec<Opening>,
    /// Candidates of client j at `first[j]..first[j + 1]`, cheapest first.
    pub(super) first: Vec<usize>,
    pub(super) facility: Vec<u32>,
    pub(super) cost: Vec<f64>,
    /// Candidates of client j that were left out cost at least this, so client j may be served at
    /// this cost by facilities that its list does not name. A dual price v_j up to it is valid for
    /// the whole problem, so lower bounds stay true.
    pub(super) tail: Vec<f64>,
}

/// The number of links to keep.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// The approximate total: above this each client keeps only some of its candidates.
    pub(super) links: usize,
    /// The fewest links that each client keeps.
    pub(super) fewest: usize,
}

impl Default for Room {
    /// Less than what the links of such a fleet take themselves.
    fn default() -> Room {
        Room { links: 64_000_000, fewest: 64 }
    }
}

/// What is left of an instance once some facilities are closed.
pub(super) enum Reduced {
    /// The smaller instance that is left.
    Instance(Instance),
    /// A client whose list is complete has no candidate: there is no solution.
    Unservable,
    /// A client has no candidate on its list, but may have others.
    ServedElsewhere,
}

/// Links by facility: (client, position of the link in the client's list).
#[derive(Debug, Clone)]
pub(super) struct Served {
    first: Vec<usize>,
    entries: Vec<(u32, u32)>,
}

impl Served {
    pub(super) fn by(&self, facility: usize) -> &[(u32, u32)] {
        &self.entries[self.first[facility]..self.first[facility + 1]]
    }
}

impl Instance {
    /// Builds the sorted lists; `candidates(j, list)` pushes the candidates of client j in any
    /// order. Facilities that stay closed may be listed and are ignored.
    ///
    /// A candidate that costs no less than opening some facility k for this client alone,
    /// c_kj + f_k, is left out: swapping to k is never worse, so the optimum stays. Where too many
    /// are left even so, each client keeps its cheapest ones and those that many would share;
    /// lower bounds count what is missing.
    ///
    /// # Errors
    /// If a cost is negative or not a number, or a client has no candidate.
    pub fn new(
        opening: Vec<Opening>,
        clients: usize,
        candidates: impl Fn(usize, &mut Vec<Candidate>) + Sync,
    ) -> Result<Instance, FacilityError> {
        Instance::within(Room::default(), opening, clients, &candidates)
    }

    /// Creates an instance like [`Instance::new`], with this many links.
    pub(super) fn within(
        room: Room,
        opening: Vec<Opening>,
        clients: usize,
        candidates: &Candidates<'_>,
    ) -> Result<Instance, FacilityError> {
        for (facility, opening) in opening.iter().enumerate() {
            let cost = opening.cost();
            if *opening != Opening::Never && !(cost.is_finite() && cost >= 0.0) {
                return Err(FacilityError::OpenCost { facility, cost });
            }
        }
        let unpaid: Vec<f64> = opening.iter().map(|opening| opening.unpaid()).collect();
        let mut lists = Block::all(clients, candidates, &unpaid, &Keep::All(room.links))?;
        if lists.is_none() {
            let most = (room.links / clients.max(1)).max(room.fewest);
            let shared = shared(&opening, clients, candidates)?;
            lists = Block::all(clients, candidates, &unpaid, &Keep::Some { most, shared })?;
        }
        let lists = lists.expect("only lists that keep all can be too long");
        let Block { first, facility, cost, tail, .. } = lists;
        Ok(Instance { opening, first, facility, cost, tail })
    }

    /// Whether no candidate was left out that could matter.
    pub fn is_complete(&self) -> bool {
        self.tail.iter().all(|&tail| tail == f64::INFINITY)
    }

    /// Returns the number of facilities.
    pub fn facilities(&self) -> usize {
        self.opening.len()
    }

    /// Returns the number of clients.
    pub fn clients(&self) -> usize {
        self.tail.len()
    }

    /// Returns the number of candidate links that were kept.
    pub fn links(&self) -> usize {
        self.cost.len()
    }

    /// Returns the positions of a client's candidates in the arrays.
    pub(super) fn list(&self, client: usize) -> Range<usize> {
        self.first[client]..self.first[client + 1]
    }

    pub(super) fn served(&self) -> Served {
        let mut first = vec![0usize; self.facilities() + 1];
        for &facility in &self.facility {
            first[facility as usize + 1] += 1;
        }
        for i in 0..self.facilities() {
            first[i + 1] += first[i];
        }
        let mut next = first.clone();
        let mut entries = vec![(0, 0); self.facility.len()];
        for client in 0..self.clients() {
            for at in self.list(client) {
                let slot = &mut next[self.facility[at] as usize];
                entries[*slot] = (client as u32, at as u32);
                *slot += 1;
            }
        }
        Served { first, entries }
    }

    /// The same instance without the facilities that `closed` marks, which then stay closed.
    pub(super) fn without(&self, closed: &[bool]) -> Reduced {
        let mut served_elsewhere = false;
        let mut reduced = Instance {
            opening: self.opening.clone(),
            first: vec![0],
            facility: Vec::new(),
            cost: Vec::new(),
            tail: self.tail.clone(),
        };
        for (opening, &closed) in reduced.opening.iter_mut().zip(closed) {
            if closed {
                *opening = Opening::Never;
            }
        }
        for client in 0..self.clients() {
            for at in self.list(client) {
                if !closed[self.facility[at] as usize] {
                    reduced.facility.push(self.facility[at]);
                    reduced.cost.push(self.cost[at]);
                }
            }
            reduced.first.push(reduced.cost.len());
            if reduced.list(client).is_empty() {
                served_elsewhere = true;
                if self.tail[client] == f64::INFINITY {
                    return Reduced::Unservable;
                }
            }
        }
        if served_elsewhere { Reduced::ServedElsewhere } else { Reduced::Instance(reduced) }
    }

    /// What opening exactly `open` costs, every client served by its cheapest open candidate.
    pub fn objective(&self, open: &[bool]) -> f64 {
        self.objective_and_bound(open).0
    }

    /// The objective, and what it is at least where candidates that were left out may serve.
    pub(super) fn objective_and_bound(&self, open: &[bool]) -> (f64, f64) {
        let opened: f64 =
            (0..open.len()).filter(|&i| open[i]).map(|i| self.opening[i].cost()).sum();
        let (mut served, mut least) = (0.0, 0.0);
        for (client, &tail) in self.tail.iter().enumerate() {
            let at = self.cheapest_open(client, open);
            let cost = at.map_or(f64::INFINITY, |at| self.cost[at]);
            served += cost;
            least += cost.min(tail);
        }
        (opened + served, opened + least)
    }

    /// The position of a client's cheapest open candidate.
    pub(super) fn cheapest_open(&self, client: usize, open: &[bool]) -> Option<usize> {
        self.list(client).find(|&at| open[self.facility[at] as usize])
    }
}
