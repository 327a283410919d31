//! Building the candidate lists: sorted, in parallel, and shorter where there are too many links.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::instance::{Candidate, Candidates, FacilityError, Instance, Opening, Room};

/// Clients whose lists one thread builds at a time.
const BLOCK: usize = 64;

/// Clients that say which facilities many would share.
const SAMPLE: usize = 256;

/// Facilities that a good solution for a sample of the clients uses, as marks. Where opening is
/// expensive, few facilities serve many clients, and they are near the top of few lists.
pub(super) fn shared(
    opening: &[Opening],
    clients: usize,
    candidates: &Candidates<'_>,
) -> Result<Vec<bool>, FacilityError> {
    let sample = SAMPLE.min(clients);
    let share = sample as f64 / clients as f64;
    let cheaper = opening.iter().map(|&opening| match opening {
        Opening::May(cost) => Opening::May(cost * share),
        other => other,
    });
    let complete = Room { links: usize::MAX, fewest: 0 };
    let instance = Instance::within(complete, cheaper.collect(), sample, &|client, list| {
        candidates(client * clients / sample, list);
    })?;
    let none = vec![false; opening.len()];
    let solution = super::descend(&instance, none, &mut || true);
    let mut used = vec![false; opening.len()];
    for &facility in &solution.assigned {
        used[facility as usize] = true;
    }
    Ok(used)
}

/// Which candidates stay on the lists.
pub(super) enum Keep {
    /// All, as long as there are no more than this in all.
    All(usize),
    /// A client's cheapest, and those that are marked.
    Some { most: usize, shared: Vec<bool> },
}

/// The lists of a run of clients, as in [`Instance`].
pub(super) struct Block {
    pub(super) first: Vec<usize>,
    pub(super) facility: Vec<u32>,
    pub(super) cost: Vec<f64>,
    pub(super) tail: Vec<f64>,
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

    /// The lists of all clients; `None` where all were to be kept and are too many.
    pub(super) fn all(
        clients: usize,
        candidates: &Candidates<'_>,
        unpaid: &[f64],
        keep: &Keep,
    ) -> Result<Option<Block>, FacilityError> {
        let room = if let Keep::All(room) = keep { *room } else { usize::MAX };
        let kept = AtomicUsize::new(0);
        let build = |range: Range<usize>| {
            let mut block = Block::new(range.len());
            let mut list = Vec::new();
            for client in range {
                // Too many in any case: the rest need not be looked at.
                if kept.load(Ordering::Relaxed) > room {
                    break;
                }
                list.clear();
                candidates(client, &mut list);
                let before = block.cost.len();
                block.push(client, &list, unpaid, keep)?;
                kept.fetch_add(block.cost.len() - before, Ordering::Relaxed);
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
            if kept.load(Ordering::Relaxed) > room {
                return Ok(None);
            }
            Block::join(blocks)?
        };
        Ok((kept.into_inner() <= room).then_some(lists))
    }

    /// Sorts one client's list in. Many candidates are dropped, in no order that a processor could
    /// foresee, so the loops that see all of them do not branch.
    fn push(
        &mut self,
        client: usize,
        list: &[Candidate],
        unpaid: &[f64],
        keep: &Keep,
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
        if let Keep::Some { most, shared } = keep
            && kept > *most
        {
            let (_, next, _) = keys.select_nth_unstable(*most);
            let least = cost_of(*next);
            let mut end = *most;
            for at in *most..kept {
                if shared[keys[at] as u32 as usize] {
                    keys.swap(at, end);
                    end += 1;
                }
            }
            if end < kept {
                tail = least;
            }
            keys = &mut keys[..end];
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
