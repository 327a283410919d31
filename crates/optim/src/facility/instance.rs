//! The problem's data: sorted candidate lists, one per client, and the same links by facility.

use rayon::prelude::*;

/// An input that is not a facility location problem.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FacilityError {
    /// Costs must be finite and at least 0.
    #[error("client {client}: the cost {cost} from facility {facility} is not a finite number ≥ 0")]
    Cost {
        /// Who is served.
        client: usize,
        /// By whom.
        facility: usize,
        /// The cost given.
        cost: f64,
    },
    /// Opening costs must be finite and at least 0.
    #[error("facility {facility}: the opening cost {cost} is not a finite number ≥ 0")]
    OpenCost {
        /// Which.
        facility: usize,
        /// The cost given.
        cost: f64,
    },
    /// No facility that may open serves this client.
    #[error("client {client} has no candidate")]
    Unservable {
        /// Who cannot be served.
        client: usize,
    },
}

/// Whether a facility may, must or may not open.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Opening {
    /// May open at this cost.
    May(f64),
    /// Is open, at this cost.
    Must(f64),
    /// Stays closed.
    Never,
}

impl Opening {
    /// f_i; infinite where the facility stays closed.
    pub fn cost(self) -> f64 {
        match self {
            Opening::May(cost) | Opening::Must(cost) => cost,
            Opening::Never => f64::INFINITY,
        }
    }
}

/// A facility that can serve a client, and at what cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Which facility.
    pub facility: u32,
    /// c_ij ≥ 0.
    pub cost: f64,
}

/// Uncapacitated facility location over sparse candidate lists.
#[derive(Debug, Clone)]
pub struct Instance {
    pub(super) opening: Vec<Opening>,
    /// Candidates of client j at `first[j]..first[j + 1]`, cheapest first.
    pub(super) first: Vec<usize>,
    pub(super) facility: Vec<u32>,
    pub(super) cost: Vec<f64>,
    /// Candidates of client j that were left out cost at least this. A dual price v_j up to it is
    /// valid for the whole problem, so lower bounds stay true.
    pub(super) tail: Vec<f64>,
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

/// Above this many links in all, each client keeps only its cheapest candidates.
const LINKS_KEPT: usize = 16_000_000;
/// But never fewer than this many a client.
const FEWEST_KEPT: usize = 64;

impl Instance {
    /// Builds the sorted lists; `candidates(j, list)` pushes the candidates of client j in any
    /// order. Facilities that stay closed may be listed and are ignored.
    ///
    /// A candidate that costs no less than opening some facility k for this client alone,
    /// c_kj + f_k, is left out: swapping to k is never worse, so the optimum stays.
    ///
    /// # Errors
    /// If a cost is negative or not finite, or a client has no candidate.
    pub fn new(
        opening: Vec<Opening>,
        clients: usize,
        candidates: impl Fn(usize, &mut Vec<Candidate>) + Sync,
    ) -> Result<Instance, FacilityError> {
        for (facility, opening) in opening.iter().enumerate() {
            let cost = opening.cost();
            if *opening != Opening::Never && !(cost.is_finite() && cost >= 0.0) {
                return Err(FacilityError::OpenCost { facility, cost });
            }
        }
        let keep = (LINKS_KEPT / clients.max(1)).max(FEWEST_KEPT);
        // Few clients: one block, since a thread hand-over would take longer than the work.
        let block = if clients < 256 { clients.max(1) } else { 64 };
        let blocks: Vec<usize> = (0..clients).step_by(block).collect();
        let build = |&start: &usize| {
            let mut built = Block::default();
            let mut list = Vec::new();
            for client in start..(start + block).min(clients) {
                list.clear();
                candidates(client, &mut list);
                built.push(client, &mut list, &opening, keep)?;
            }
            Ok(built)
        };
        let blocks: Vec<Result<Block, FacilityError>> = if blocks.len() <= 1 {
            blocks.iter().map(build).collect()
        } else {
            blocks.par_iter().map(build).collect()
        };
        let mut instance = Instance {
            opening: Vec::new(),
            first: Vec::with_capacity(clients + 1),
            facility: Vec::new(),
            cost: Vec::new(),
            tail: Vec::with_capacity(clients),
        };
        instance.first.push(0);
        for block in blocks {
            let block = block?;
            for length in block.length {
                let last = instance.first[instance.first.len() - 1];
                instance.first.push(last + length);
            }
            instance.facility.extend(block.facility);
            instance.cost.extend(block.cost);
            instance.tail.extend(block.tail);
        }
        instance.opening = opening;
        Ok(instance)
    }

    /// Number of facilities.
    pub fn facilities(&self) -> usize {
        self.opening.len()
    }

    /// Number of clients.
    pub fn clients(&self) -> usize {
        self.tail.len()
    }

    /// Candidate links kept.
    pub fn links(&self) -> usize {
        self.cost.len()
    }

    /// A client's positions in the candidate arrays.
    pub(super) fn list(&self, client: usize) -> std::ops::Range<usize> {
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
    pub(super) fn without(&self, closed: &[bool]) -> Instance {
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
        }
        reduced
    }

    /// What opening exactly `open` costs, every client served by its cheapest open candidate.
    pub fn objective(&self, open: &[bool]) -> f64 {
        let opened: f64 =
            (0..open.len()).filter(|&i| open[i]).map(|i| self.opening[i].cost()).sum();
        let served: f64 = (0..self.clients())
            .map(|j| self.cheapest_open(j, open).map_or(f64::INFINITY, |at| self.cost[at]))
            .sum();
        opened + served
    }

    /// The position of a client's cheapest open candidate.
    pub(super) fn cheapest_open(&self, client: usize, open: &[bool]) -> Option<usize> {
        self.list(client).find(|&at| open[self.facility[at] as usize])
    }
}

/// The lists of a run of clients.
#[derive(Default)]
struct Block {
    length: Vec<usize>,
    facility: Vec<u32>,
    cost: Vec<f64>,
    tail: Vec<f64>,
}

impl Block {
    fn push(
        &mut self,
        client: usize,
        list: &mut Vec<Candidate>,
        opening: &[Opening],
        keep: usize,
    ) -> Result<(), FacilityError> {
        list.retain(|c| opening[c.facility as usize] != Opening::Never);
        let mut alone = f64::INFINITY;
        for c in list.iter() {
            if !(c.cost.is_finite() && c.cost >= 0.0) {
                let facility = c.facility as usize;
                return Err(FacilityError::Cost { client, facility, cost: c.cost });
            }
            alone = alone.min(match opening[c.facility as usize] {
                Opening::May(open) => c.cost + open,
                Opening::Must(_) => c.cost,
                Opening::Never => f64::INFINITY,
            });
        }
        if list.is_empty() {
            return Err(FacilityError::Unservable { client });
        }
        // The facility that attains `alone` with nothing to pay for opening must stay.
        list.retain(|c| c.cost <= alone);
        // Costs are ≥ 0, where the bits of a float sort as the float does.
        let key = |c: &Candidate| (c.cost.to_bits(), c.facility);
        let mut tail = f64::INFINITY;
        if list.len() > keep {
            let (_, next, _) = list.select_nth_unstable_by_key(keep, key);
            tail = next.cost;
            list.truncate(keep);
        }
        list.sort_unstable_by_key(key);
        self.length.push(list.len());
        self.facility.extend(list.iter().map(|c| c.facility));
        self.cost.extend(list.iter().map(|c| c.cost));
        self.tail.push(tail);
        Ok(())
    }
}
