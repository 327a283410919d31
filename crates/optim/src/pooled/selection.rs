//! Which links a client uses, given that each costs a charge whatever its weight.
//!
//! ```text
//! minimise  λ(A) + Σ_{i ∈ A} h_i   over subsets A of the items
//! ```
//!
//! with λ(A) the value of the best mixture over A. A charge h_i costs at least h_i α_i, so adding
//! the charges of undecided items to their slopes gives a lower bound; the covering bound is better
//! where many links are alike. Branch and bound on "link i is used" does the rest.

use super::cover::Cover;
use super::mixture::{self, Part};
use crate::status::Leash;

/// A link that may be used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Item {
    pub(super) part: Part,
    /// h_i, the cost of using the link at all, plus any price.
    pub(super) charge: f64,
    /// Where the link is in its owner's arrays.
    pub(super) at: usize,
}

impl Item {
    /// The cost of this link alone at weight 1.
    fn alone(&self) -> f64 {
        self.part.slope + self.part.inverse_spread.sqrt().recip() + self.charge
    }
}

/// A subset, its cost, and what is proven about it.
#[derive(Debug, Clone, Default)]
pub(super) struct Selection {
    /// The links that are used, by their [`Item::at`].
    pub(super) used: Vec<usize>,
    pub(super) cost: f64,
    /// No subset costs less; equal to `cost` unless the search was cut short.
    pub(super) lower_bound: f64,
}

/// Working memory, so that a selection allocates nothing once warm.
#[derive(Debug, Default)]
pub(super) struct Selector {
    /// Items that can be in an optimal subset.
    items: Vec<Item>,
    required: usize,
    parts: Vec<Part>,
    stack: Vec<Branch>,
    state: Vec<State>,
    cover: Cover,
    /// Whether the covering bound is worth its price.
    covers: bool,
    pub(super) best: Selection,
}

#[derive(Debug, Clone)]
struct Branch {
    decided: Vec<(u16, bool)>,
    lower_bound: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Undecided,
    In,
    Out,
}

/// Subsets closer than this (relative) cost the same.
const TOLERANCE: f64 = 1e-12;

impl Selector {
    /// Finds the cheapest subset of `items` that has all those for which `required` holds; at most
    /// `nodes` branchings and at least one, and few more once told to stop. The result is in
    /// [`Selector::best`]. Without items its cost is infinite.
    pub(super) fn select(
        &mut self,
        items: impl Iterator<Item = Item>,
        required: impl Fn(&Item) -> bool,
        nodes: usize,
        leash: &mut Leash<'_>,
    ) {
        self.items.clear();
        self.items.extend(items);
        self.best.used.clear();
        self.best.cost = f64::INFINITY;
        self.best.lower_bound = f64::INFINITY;
        if self.items.is_empty() {
            return;
        }
        self.prune(required);
        self.stack.clear();
        let decided = (0..self.required).map(|i| (i as u16, true)).collect();
        self.stack.push(Branch { decided, lower_bound: f64::NEG_INFINITY });
        // The first branching finds a subset and a bound whatever else is allowed.
        let go_on = leash.go_on();
        self.covers = go_on && self.items.len() >= ALIKE;
        let mut left = if go_on { nodes.max(1) } else { 1 };
        while let Some(node) = self.stack.pop() {
            if node.lower_bound >= self.best.cost * (1.0 - TOLERANCE) {
                continue;
            }
            if left == 0 {
                self.best.lower_bound = self.best.lower_bound.min(node.lower_bound);
                continue;
            }
            left -= 1;
            self.branch(node);
            if left % ASKED == 0 && left > 0 && !leash.go_on() {
                left = 0;
            }
        }
        self.best.lower_bound = self.best.lower_bound.min(self.best.cost);
    }

    /// Puts required items first and drops those no optimal subset has: if i is used, the cost is
    /// at least a_i + h_i, so that must be below the best link alone.
    fn prune(&mut self, required: impl Fn(&Item) -> bool) {
        let mut front = 0;
        for k in 0..self.items.len() {
            if required(&self.items[k]) {
                self.items.swap(front, k);
                front += 1;
            }
        }
        self.required = front;
        if front == 0 {
            let alone = |item: &Item| item.alone();
            let best = self.items.iter().min_by(|a, b| alone(a).total_cmp(&alone(b)));
            if let Some(&best) = best {
                self.best.used.push(best.at);
                self.best.cost = best.alone();
                let cost = self.best.cost;
                self.items.retain(|i| i.at == best.at || i.part.slope + i.charge < cost);
            }
        }
        // Decisions are kept as 16 bits; the cheapest that many are more than enough to choose
        // from, and what is dropped is bounded by its own a_i + h_i.
        let most = usize::from(u16::MAX).min(MOST_ITEMS.max(self.required));
        if self.items.len() > most {
            let least = |i: &Item| i.part.slope + i.charge;
            let tail = &mut self.items[self.required..];
            let keep = most - self.required;
            tail.select_nth_unstable_by(keep, |a, b| least(a).total_cmp(&least(b)));
            let dropped = tail[keep..].iter().map(least).fold(f64::INFINITY, f64::min);
            self.best.lower_bound = dropped;
            self.items.truncate(most);
        }
    }

    fn branch(&mut self, node: Branch) {
        self.state.clear();
        self.state.resize(self.items.len(), State::Undecided);
        for &(i, used) in &node.decided {
            self.state[usize::from(i)] = if used { State::In } else { State::Out };
        }
        let mut paid = 0.0;
        self.parts.clear();
        for (item, state) in self.items.iter().zip(&self.state) {
            let mut part = item.part;
            match state {
                State::Out => continue,
                State::In => paid += item.charge,
                State::Undecided => part.slope += item.charge,
            }
            self.parts.push(part);
        }
        if self.parts.is_empty() {
            return;
        }
        let lambda = mixture::value(&mut self.parts);
        let cutoff = self.best.cost * (1.0 - TOLERANCE);
        let mut lower_bound = (lambda + paid).max(node.lower_bound);
        if lower_bound >= cutoff {
            return;
        }
        // The undecided item with the largest weight, if any has weight.
        let share = |i: usize| {
            let mut part = self.items[i].part;
            part.slope += self.items[i].charge;
            mixture::share(part, lambda)
        };
        let undecided = (0..self.items.len()).filter(|&i| self.state[i] == State::Undecided);
        let largest = undecided.map(|i| (share(i), i)).filter(|(s, _)| *s > 0.0);
        let largest = largest.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, i)| i);
        self.offer_support(lambda);
        let Some(largest) = largest else { return };
        if self.covers {
            lower_bound = lower_bound.max(self.cover_bound());
            if lower_bound >= self.best.cost * (1.0 - TOLERANCE) {
                return;
            }
        }
        for used in [false, true] {
            let mut decided = Vec::with_capacity(node.decided.len() + 1);
            decided.extend_from_slice(&node.decided);
            decided.push((largest as u16, used));
            self.stack.push(Branch { decided, lower_bound });
        }
    }

    /// The covering bound at the current decisions, and the subset it meets.
    fn cover_bound(&mut self) -> f64 {
        self.cover.open.clear();
        self.cover.taken.clear();
        for (item, state) in self.items.iter().zip(&self.state) {
            match state {
                State::Out => {}
                State::In => self.cover.taken.push(*item),
                State::Undecided => self.cover.open.push(*item),
            }
        }
        let bound = self.cover.bound(self.best.cost);
        if self.cover.found_cost < self.best.cost {
            self.best.cost = self.cover.found_cost;
            self.best.used.clone_from(&self.cover.found);
        }
        bound
    }

    /// Tries the items that have weight in the relaxation as a subset.
    fn offer_support(&mut self, lambda: f64) {
        self.parts.clear();
        let mut paid = 0.0;
        let support = |item: &Item, state: State| match state {
            State::Out => false,
            State::In => true,
            State::Undecided => item.part.slope + item.charge < lambda,
        };
        for (item, &state) in self.items.iter().zip(&self.state) {
            if support(item, state) {
                self.parts.push(item.part);
                paid += item.charge;
            }
        }
        let cost = mixture::value(&mut self.parts) + paid;
        if cost < self.best.cost {
            self.best.cost = cost;
            self.best.used.clear();
            let pairs = self.items.iter().zip(&self.state);
            let used = pairs.filter(|(item, state)| support(item, **state));
            self.best.used.extend(used.map(|(item, _)| item.at));
        }
    }
}

/// The number of items from which on the covering bound is worth its price.
const ALIKE: usize = 8;

/// Branchings between two questions whether to go on.
const ASKED: usize = 16;

/// Items considered for one client beside the required ones.
const MOST_ITEMS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn enumerate(items: &[Item], required: u32) -> f64 {
        (1..1u32 << items.len())
            .filter(|set| set & required == required)
            .map(|set| {
                let chosen = items.iter().filter(|i| set >> i.at & 1 == 1);
                let mut parts: Vec<Part> = chosen.clone().map(|i| i.part).collect();
                mixture::value(&mut parts) + chosen.map(|i| i.charge).sum::<f64>()
            })
            .fold(f64::INFINITY, f64::min)
    }

    proptest! {
        #[test]
        fn the_cheapest_subset_is_that_of_enumeration(
            values in prop::collection::vec((0.0..1.0f64, 1.0..300.0f64, 0.0..0.2f64), 1..12),
            required in 0u32..8,
            cut in prop::bool::ANY,
        ) {
            let items: Vec<Item> = values
                .iter()
                .enumerate()
                .map(|(at, &(slope, inverse_spread, charge))| Item {
                    part: Part { slope, inverse_spread }, charge, at,
                })
                .collect();
            let required = required & ((1 << items.len()) - 1) & 0b101;
            let expected = enumerate(&items, required);
            let mut selector = Selector::default();
            let nodes = if cut { 2 } else { usize::MAX };
            let mut never = || true;
            let leash = &mut Leash::new(&mut never);
            selector.select(items.iter().copied(), |i| required >> i.at & 1 == 1, nodes, leash);
            let best = &selector.best;
            prop_assert!(best.lower_bound <= expected + 1e-9);
            prop_assert!(best.cost >= expected - 1e-9);
            if !cut {
                prop_assert!((best.cost - expected).abs() < 1e-9);
                prop_assert!((best.lower_bound - expected).abs() < 1e-9);
            }
            for i in 0..items.len() {
                prop_assert!(required >> i & 1 == 0 || best.used.contains(&i));
            }
        }
    }
}
