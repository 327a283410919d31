//! The problem's data: sorted candidate lists, one per client, and the same links by facility.

use std::ops::Range;

use rayon::prelude::*;

/// An input that is not a facility location problem.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FacilityError {
    /// Costs must be at least 0.
    #[error("client {client}: the cost {cost} from facility {facility} is not a number ≥ 0")]
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
    /// Which facility.
    pub facility: u32,
    /// c_ij ≥ 0; where it is infinite there is no such link.
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
/// Clients whose lists one thread builds at a time.
const BLOCK: usize = 64;

impl Instance {
    /// Builds the sorted lists; `candidates(j, list)` pushes the candidates of client j in any
    /// order. Facilities that stay closed may be listed and are ignored.
    ///
    /// A candidate that costs no less than opening some facility k for this client alone,
    /// c_kj + f_k, is left out: swapping to k is never worse, so the optimum stays.
    ///
    /// # Errors
    /// If a cost is negative or not a number, or a client has no candidate.
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
        let unpaid: Vec<f64> = opening.iter().map(|opening| opening.unpaid()).collect();
        let keep = (LINKS_KEPT / clients.max(1)).max(FEWEST_KEPT);
        let build = |range: Range<usize>| {
            let mut block = Block::new(range.len());
            let mut list = Vec::new();
            for client in range {
                list.clear();
                candidates(client, &mut list);
                block.push(client, &list, &unpaid, keep)?;
            }
            Ok(block)
        };
        // Few clients: one block, since a thread hand-over would take longer than the work.
        let lists = if clients < 256 {
            build(0..clients)?
        } else {
            let starts: Vec<usize> = (0..clients).step_by(BLOCK).collect();
            let blocks: Vec<Result<Block, FacilityError>> =
                starts.par_iter().map(|&j| build(j..(j + BLOCK).min(clients))).collect();
            Block::join(blocks)?
        };
        let Block { first, facility, cost, tail, .. } = lists;
        Ok(Instance { opening, first, facility, cost, tail })
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

/// The lists of a run of clients, as in [`Instance`].
struct Block {
    first: Vec<usize>,
    facility: Vec<u32>,
    cost: Vec<f64>,
    tail: Vec<f64>,
    /// One client's candidates while they are sorted.
    keys: Vec<u128>,
}

/// Sorts as (cost, facility): costs are ≥ 0, where the bits of a float sort as the float does.
/// Adding 0 takes the sign off −0.
fn key(candidate: &Candidate) -> u128 {
    u128::from((candidate.cost + 0.0).to_bits()) << 64 | u128::from(candidate.facility)
}

fn cost_of(key: u128) -> f64 {
    f64::from_bits((key >> 64) as u64)
}

impl Block {
    fn new(clients: usize) -> Block {
        let mut first = Vec::with_capacity(clients + 1);
        first.push(0);
        let tail = Vec::with_capacity(clients);
        Block { first, facility: Vec::new(), cost: Vec::new(), tail, keys: Vec::new() }
    }

    /// Sorts one client's list in. Many candidates are dropped, in no order that a processor could
    /// foresee, so the loops that see all of them do not branch.
    fn push(
        &mut self,
        client: usize,
        list: &[Candidate],
        unpaid: &[f64],
        keep: usize,
    ) -> Result<(), FacilityError> {
        // False for a NaN.
        let is_cost = |cost: f64| cost >= 0.0;
        let mut limit = f64::INFINITY;
        let mut is_valid = true;
        for c in list {
            is_valid &= is_cost(c.cost);
            let alone = c.cost + unpaid[c.facility as usize];
            limit = if alone < limit { alone } else { limit };
        }
        if !is_valid && let Some(c) = list.iter().find(|c| !is_cost(c.cost)) {
            return Err(FacilityError::Cost {
                client,
                facility: c.facility as usize,
                cost: c.cost,
            });
        }
        if limit == f64::INFINITY {
            return Err(FacilityError::Unservable { client });
        }
        self.keys.resize(list.len(), 0);
        let mut keys = self.keys.as_mut_slice();
        let mut kept = 0;
        for c in list {
            keys[kept] = key(c);
            // The facility that attains the limit with nothing to pay for opening must stay.
            let is_kept = (c.cost <= limit) & (unpaid[c.facility as usize] < f64::INFINITY);
            kept += usize::from(is_kept);
        }
        keys = &mut keys[..kept];
        let mut tail = f64::INFINITY;
        if kept > keep {
            let (cheaper, next, _) = keys.select_nth_unstable(keep);
            tail = cost_of(*next);
            keys = cheaper;
        }
        keys.sort_unstable();
        self.facility.extend(keys.iter().map(|&key| key as u32));
        self.cost.extend(keys.iter().map(|&key| cost_of(key)));
        self.first.push(self.cost.len());
        self.tail.push(tail);
        Ok(())
    }

    fn join(blocks: Vec<Result<Block, FacilityError>>) -> Result<Block, FacilityError> {
        let blocks = blocks.into_iter().collect::<Result<Vec<Block>, FacilityError>>()?;
        let mut all = Block::new(blocks.iter().map(|block| block.tail.len()).sum());
        let links = blocks.iter().map(|block| block.cost.len()).sum();
        all.facility.reserve_exact(links);
        all.cost.reserve_exact(links);
        for block in blocks {
            let before = all.cost.len();
            all.first.extend(block.first[1..].iter().map(|at| before + at));
            all.facility.extend(block.facility);
            all.cost.extend(block.cost);
            all.tail.extend(block.tail);
        }
        Ok(all)
    }
}
