//! A lower bound on choosing links, strong where many links are alike.
//!
//! A subset A has value λ exactly where Σ_{i ∈ A} t_i(λ) = 1 with t_i(λ) = ((λ − a_i)⁺)² / s_i, so
//! choosing links is a covering problem along λ:
//!
//! ```text
//! minimise  λ + Σ_{i ∈ A} h_i   such that  Σ_{i ∈ A} t_i(λ) ≥ 1
//! ```
//!
//! For a multiplier μ ≥ 0 every solution with that λ costs at least
//!
//! ```text
//! G_μ(λ) = λ + μ − Σ_i (μ t_i(λ) − h_i)⁺ ,
//! ```
//!
//! and G_μ is concave in λ (each term taken away is convex), so over an interval it is least at an
//! end. Splitting the range of λ and taking μ from the middle of each piece gives a bound that is
//! off by no more than the covering problem's own rounding. Links already chosen cover their part
//! for a charge already paid.

use super::mixture::{self, Part};
use super::selection::Item;

/// The links to choose from, and working memory to bound what a choice costs.
#[derive(Debug, Default)]
pub(super) struct Cover {
    /// Links that may be chosen, and links that are.
    pub(super) open: Vec<Item>,
    pub(super) taken: Vec<Item>,
    /// Indices into `open`, best charge per cover first.
    order: Vec<(f64, u32)>,
    parts: Vec<Part>,
    /// (bound, from, to) of each piece of the range of λ.
    intervals: Vec<(f64, f64, f64)>,
    /// The cheapest subset met on the way, `at` of each link.
    pub(super) found: Vec<usize>,
    pub(super) found_cost: f64,
}

/// How often the range of λ may be cut.
const PIECES: usize = 12;

impl Cover {
    /// A lower bound on every subset of `taken` and `open` that has all of `taken`; exact
    /// subsets met on the way are left in `found`. Stops where the bound reaches `cutoff`.
    pub(super) fn bound(&mut self, cutoff: f64) -> f64 {
        self.found_cost = f64::INFINITY;
        let paid: f64 = self.taken.iter().map(|i| i.charge).sum();
        self.parts.clear();
        self.parts.extend(self.open.iter().chain(&self.taken).map(|i| i.part));
        let lowest = mixture::value(&mut self.parts);
        let highest = cutoff - paid;
        if lowest >= highest {
            return lowest + paid;
        }
        self.intervals.clear();
        self.add(lowest, highest, paid);
        // The weakest piece is split until none is below the cutoff.
        for _ in 0..PIECES {
            let weakest = self.intervals.iter().enumerate().min_by(|a, b| a.1.0.total_cmp(&b.1.0));
            let Some((k, &(bound, low, high))) = weakest else {
                return cutoff;
            };
            let middle = 0.5 * (low + high);
            if bound >= cutoff || middle <= low || middle >= high {
                break;
            }
            self.intervals.swap_remove(k);
            self.add(low, middle, paid);
            self.add(middle, high, paid);
        }
        self.intervals.iter().fold(cutoff, |bound, piece| bound.min(piece.0))
    }

    fn add(&mut self, low: f64, high: f64, paid: f64) {
        let multiplier = self.multiplier(0.5 * (low + high), paid);
        let bound = paid + self.least(multiplier, low).min(self.least(multiplier, high));
        self.intervals.push((bound, low, high));
    }

    /// Returns G_μ(λ), with `multiplier` for μ.
    fn least(&self, multiplier: f64, lambda: f64) -> f64 {
        let taken: f64 = self.taken.iter().map(|i| cover(i.part, lambda)).sum();
        let spared: f64 = self
            .open
            .iter()
            .map(|i| (multiplier * cover(i.part, lambda) - i.charge).max(0.0))
            .sum();
        lambda + multiplier * (1.0 - taken) - spared
    }

    /// The multiplier of the covering problem at λ with fractions allowed: the charge per cover of
    /// the last link needed. Also tries the links needed as a subset.
    fn multiplier(&mut self, lambda: f64, paid: f64) -> f64 {
        let mut missing = 1.0 - self.taken.iter().map(|i| cover(i.part, lambda)).sum::<f64>();
        self.order.clear();
        for (k, item) in self.open.iter().enumerate() {
            let covers = cover(item.part, lambda);
            if covers > 0.0 {
                self.order.push((item.charge / covers, k as u32));
            }
        }
        self.order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        self.parts.clear();
        self.parts.extend(self.taken.iter().map(|i| i.part));
        let mut charge = paid;
        let mut multiplier = 0.0;
        let mut needed = 0;
        for &(ratio, k) in &self.order {
            if missing <= 0.0 {
                break;
            }
            let item = &self.open[k as usize];
            self.parts.push(item.part);
            charge += item.charge;
            missing -= cover(item.part, lambda);
            multiplier = ratio;
            needed += 1;
        }
        if !self.parts.is_empty() {
            let cost = mixture::value(&mut self.parts) + charge;
            if cost < self.found_cost {
                self.found_cost = cost;
                self.found.clear();
                self.found.extend(self.taken.iter().map(|i| i.at));
                let chosen = self.order[..needed].iter().map(|&(_, k)| self.open[k as usize].at);
                self.found.extend(chosen);
            }
        }
        multiplier
    }
}

/// Returns t_i(λ), how much of the covering the link of this part does.
fn cover(part: Part, lambda: f64) -> f64 {
    let above = (lambda - part.slope).max(0.0);
    above * above * part.inverse_spread
}
