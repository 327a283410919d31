//! The problem's data, kept by client.

use super::mixture::{self, Part};
use super::selection::{Item, Selector};
use crate::facility::{self, Opening};
use crate::status::Leash;

/// A link that a client's mixture may use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// The index of the facility.
    pub facility: u32,
    /// a_ij ≥ 0, the cost per weight.
    pub slope: f64,
    /// h_ij ≥ 0, the cost of using the link at all.
    pub charge: f64,
}

/// A client and the links that may serve it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Client {
    /// Added whenever the client is served by a mixture.
    pub constant: f64,
    /// The facility that, when open, serves this client for nothing.
    pub own: Option<u32>,
    /// Facilities whose links must be used.
    pub required: Vec<u32>,
    /// The links that may serve the client, in any order.
    pub candidates: Vec<Candidate>,
}

/// Facility location where a client may be served by a mixture.
#[derive(Debug, Clone)]
pub struct Instance {
    pub(super) opening: Vec<Opening>,
    /// 1 / s_i, one per facility.
    inverse_spread: Vec<f64>,
    pub(super) constant: Vec<f64>,
    pub(super) own: Vec<Option<u32>>,
    /// Links of client j at `first[j]..first[j + 1]`.
    first: Vec<usize>,
    pub(super) facility: Vec<u32>,
    slope: Vec<f64>,
    charge: Vec<f64>,
    required: Vec<bool>,
}

/// Spreads below this fraction of the largest count as none, which keeps 1 / s finite.
const LEAST_SPREAD: f64 = 1e-24;

/// The least spread where there is none at all.
const NO_SPREAD: f64 = 1e-280;

/// The weight of a required link that the best mixture would not use.
const LEAST_WEIGHT: f64 = 1e-12;

impl Instance {
    /// `spread[i]` is s_i ≥ 0; `client(j)` for j = 0..clients gives the clients, one for each
    /// entry of `opening` in a fleet.
    ///
    /// A link with constant + a_ij + h_ij above what opening some facility k for this client
    /// alone would cost is left out: a mixture that used it would cost more than that.
    pub fn new(
        opening: Vec<Opening>,
        spread: Vec<f64>,
        clients: usize,
        client: impl Fn(usize) -> Client,
    ) -> Instance {
        let largest = spread.iter().copied().fold(0.0, f64::max);
        let least = (LEAST_SPREAD * largest).max(NO_SPREAD);
        let mut instance = Instance {
            inverse_spread: spread.iter().map(|s| s.max(least).recip()).collect(),
            opening,
            constant: Vec::with_capacity(clients),
            own: Vec::with_capacity(clients),
            first: vec![0],
            facility: Vec::new(),
            slope: Vec::new(),
            charge: Vec::new(),
            required: Vec::new(),
        };
        for j in 0..clients {
            instance.push(client(j));
        }
        // Who has no link left is served by its own facility, which must open then.
        for j in 0..clients {
            if let (true, Some(own)) = (instance.list(j).is_empty(), instance.own[j]) {
                let opening = &mut instance.opening[own as usize];
                *opening = Opening::Must(opening.cost());
            }
        }
        instance
    }

    fn push(&mut self, client: Client) {
        let Client { constant, own, required, mut candidates } = client;
        let opening = |i: u32| self.opening[i as usize];
        candidates.retain(|c| opening(c.facility) != Opening::Never);
        let own = own.filter(|&i| opening(i) != Opening::Never);
        if required.is_empty() {
            let vertex = |c: &Candidate| {
                constant
                    + c.slope
                    + self.inverse_spread[c.facility as usize].sqrt().recip()
                    + c.charge
            };
            let alone = candidates
                .iter()
                .map(|c| vertex(c) + opening(c.facility).unpaid())
                .chain(own.map(|i| opening(i).unpaid()))
                .fold(f64::INFINITY, f64::min);
            // The tolerance keeps the link that attains `alone` when opening costs nothing.
            candidates.retain(|c| constant + c.slope + c.charge <= alone * (1.0 + 1e-12));
        }
        for c in candidates {
            self.required.push(required.contains(&c.facility));
            self.facility.push(c.facility);
            self.slope.push(c.slope);
            self.charge.push(c.charge);
        }
        self.constant.push(constant);
        self.own.push(own);
        self.first.push(self.facility.len());
    }

    /// Returns the number of facilities.
    pub fn facilities(&self) -> usize {
        self.opening.len()
    }

    /// Returns the number of clients.
    pub fn clients(&self) -> usize {
        self.constant.len()
    }

    /// Returns the number of links that were kept.
    pub fn links(&self) -> usize {
        self.facility.len()
    }

    pub(super) fn list(&self, client: usize) -> std::ops::Range<usize> {
        self.first[client]..self.first[client + 1]
    }

    fn part(&self, at: usize) -> Part {
        let inverse_spread = self.inverse_spread[self.facility[at] as usize];
        Part { slope: self.slope[at], inverse_spread }
    }

    /// A link with `price` added to its charge.
    pub(super) fn item(&self, at: usize, price: f64) -> Item {
        Item { part: self.part(at), charge: self.charge[at] + price, at }
    }

    /// constant + a_ij + h_ij: no mixture that uses the link costs less.
    pub(super) fn least(&self, client: usize, at: usize) -> f64 {
        self.constant[client] + self.slope[at] + self.charge[at]
    }

    /// What the link alone costs, at weight 1.
    pub(super) fn vertex(&self, client: usize, at: usize) -> f64 {
        let part = self.part(at);
        self.least(client, at) + part.inverse_spread.sqrt().recip()
    }

    pub(super) fn is_required(&self, at: usize) -> bool {
        self.required[at]
    }

    /// Puts the cheapest mixture of a client over open facilities into `selector.best`, the
    /// constant included; nothing is used and the cost is 0 where its own facility is open.
    pub(super) fn serve(
        &self,
        client: usize,
        open: impl Fn(usize) -> bool,
        nodes: usize,
        selector: &mut Selector,
        leash: &mut Leash<'_>,
    ) {
        if self.own[client].is_some_and(|i| open(i as usize)) {
            selector.best = Default::default();
            return;
        }
        let items = self
            .list(client)
            .filter(|&at| open(self.facility[at] as usize))
            .map(|at| self.item(at, 0.0));
        selector.select(items, |item| self.required[item.at], nodes, leash);
        selector.best.cost += self.constant[client];
        selector.best.lower_bound += self.constant[client];
    }

    /// The weights of a set of links. One that the mixture gives no weight is left out, or, where
    /// it is required, kept at a weight too small to cost anything.
    pub(super) fn weights(&self, used: &[usize]) -> Vec<(u32, f64)> {
        let parts: Vec<Part> = used.iter().map(|&at| self.part(at)).collect();
        let lambda = mixture::value(&mut parts.clone());
        let weights = mixture::weights(&parts, lambda);
        used.iter()
            .zip(weights)
            .map(|(&at, weight)| match self.required[at] {
                true => (self.facility[at], weight.max(LEAST_WEIGHT)),
                false => (self.facility[at], weight),
            })
            .filter(|&(_, weight)| weight > 0.0)
            .collect()
    }

    /// One source per client: where the search starts.
    pub(super) fn single_sources(&self) -> facility::Instance {
        let mut selector = Selector::default();
        let mut never = || true;
        let leash = &mut Leash::new(&mut never);
        let forced: Vec<Option<facility::Candidate>> = (0..self.clients())
            .map(|client| {
                let at = self.list(client).find(|&at| self.required[at])?;
                let needed = |i: usize| {
                    self.list(client).any(|at| self.required[at] && self.facility[at] as usize == i)
                };
                self.serve(client, needed, usize::MAX, &mut selector, leash);
                Some(facility::Candidate { facility: self.facility[at], cost: selector.best.cost })
            })
            .collect();
        facility::Instance::new(self.opening.clone(), self.clients(), |client, list| {
            if let Some(forced) = forced[client] {
                list.push(forced);
                return;
            }
            if let Some(facility) = self.own[client] {
                list.push(facility::Candidate { facility, cost: 0.0 });
            }
            list.extend(self.list(client).map(|at| facility::Candidate {
                facility: self.facility[at],
                cost: self.vertex(client, at),
            }));
        })
        // The pooled problem's own conditions: costs are finite and every client has a candidate.
        .expect("every client of a pooled instance can be served by one facility")
    }
}
