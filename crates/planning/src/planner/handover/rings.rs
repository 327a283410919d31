//! Rings: sources pass a model round twice and keep the mean, so that nothing is forgotten and a target has the mixture of all of them
//! for one link.
//!
//! Which sources are together is found in two steps. Clusters of sources by divergence (average linkage) give a partition for every
//! number of clusters; each of the cheapest begins a local search that moves one source at a time. A ring that saves less than it costs is
//! dropped. A target takes the model of a ring, or, of sources that are on none, the plan's links or one source's own model.

use std::collections::HashMap;
use std::rc::Rc;

use super::{Found, Watch};
use crate::bound::BoundKind;
use crate::device::Role;
use crate::plan::{Handover, PlanLink, evaluate, handed_on_cost, incoming};
use crate::problem::{Measured, Problem};

/// The largest number of sources that are clustered: more would take too long.
const MOST_SOURCES: usize = 300;

/// Prices of rings at targets that are computed at most: some seconds.
const EFFORT: usize = 2_000_000;

/// So many sources are put in order with care whenever a ring is tried, more only at the end.
const FEW: usize = 6;

/// So many partitions begin a search of their own, the cheapest first.
const STARTS: usize = 4;

/// The least fraction of the objective that a change must save.
const LEAST: f64 = 1e-9;

/// The best rings of at most so many sources, with what targets take; nothing where none pays.
pub(super) fn best(
    problem: &Problem,
    measured: &Measured,
    roles: &[Role],
    links: &[PlanLink],
    largest: usize,
    without: Option<Handover>,
    watch: &mut Watch<'_>,
) -> Option<Found> {
    let hands_on = |i: &usize| roles[*i] == Role::Source && measured.hands_on(*i);
    let sources: Vec<usize> = (0..roles.len()).filter(hands_on).collect();
    if largest < 2 || sources.len() < 2 || sources.len() > MOST_SOURCES {
        return None;
    }
    let target = |device: usize| {
        let planned = incoming(links, device);
        let single = measured.links.incoming(device).filter(|l| roles[l.from] == Role::Source);
        let single = single.map(|l| PlanLink { from: l.from, to: device, weight: 1.0 });
        let allowed = single.filter(|l| allows(problem, l)).map(|l| vec![l]);
        let offers = std::iter::once(planned.to_vec()).chain(allowed).filter(|o| !o.is_empty());
        let mut offers: Vec<Offer> = offers
            .filter_map(|offer| {
                let own: Vec<[usize; 1]> = offer.iter().map(|l| [l.from]).collect();
                let route =
                    |source| own.iter().find(|o| o[0] == source).map_or(&[][..], |o| &o[..]);
                let (error, energy) = handed_on_cost(measured, &offer, device, route, |_| true)?;
                Some(Offer { price: error + energy, links: offer })
            })
            .collect();
        offers.sort_by(|a, b| a.price.total_cmp(&b.price));
        Target { device, offers }
    };
    let targets: Vec<Target> =
        (0..roles.len()).filter(|&i| roles[i] == Role::Target).map(target).collect();
    let count = sources.len();
    let priced = HashMap::new();
    let mut search = Search {
        problem,
        measured,
        targets,
        sources: count,
        without,
        largest,
        effort: EFFORT,
        priced,
    };
    let mut begun: Vec<Solution> = Vec::new();
    for groups in clusters(measured, &sources) {
        if watch().is_break() || search.effort == 0 {
            break;
        }
        begun.push(search.solution(groups));
    }
    begun.sort_by(|a, b| a.objective.total_cmp(&b.objective));
    let mut found: Option<Ordered> = None;
    for begun in begun.into_iter().take(STARTS) {
        let solution = search.improved(begun, &sources, watch);
        let ordered = search.in_order(&solution);
        if found.as_ref().is_none_or(|best| is_below(ordered.objective, best.objective)) {
            found = Some(ordered);
        }
    }
    let (handovers, links) = search.taken(&found?.rings);
    let terms = evaluate(problem, BoundKind::Pooled, roles, &links, &handovers);
    (!handovers.is_empty()).then_some(Found { handovers, links, terms })
}

/// Whether a target may take a single model over this link: it takes no other, whatever links are asked for.
fn allows(problem: &Problem, link: &PlanLink) -> bool {
    problem.required_into(link.to).iter().all(|&asked| asked == link.from)
}

/// Links of sources that train alone, with what a target pays for them.
struct Offer {
    price: f64,
    links: Vec<PlanLink>,
}

/// A target with all that it can have without rings, the cheapest first.
struct Target {
    device: usize,
    offers: Vec<Offer>,
}

impl Target {
    /// The best of sources that are on none of these rings.
    fn alone(&self, rings: &[Ring]) -> Option<&Offer> {
        let is_free = |link: &PlanLink| rings.iter().all(|ring| !ring.order.contains(&link.from));
        self.offers.iter().find(|offer| offer.links.iter().all(is_free))
    }

    /// The price of the best of sources that are on no ring, and for every ring the same if it is left out. `ring_of` has each device's ring.
    fn prices_alone(&self, ring_of: &[Option<usize>], rings: usize) -> (f64, Vec<f64>) {
        let mut without = vec![f64::INFINITY; rings];
        for offer in &self.offers {
            let mut of = offer.links.iter().filter_map(|link| ring_of[link.from]);
            match of.next() {
                None => {
                    without.iter_mut().for_each(|price| *price = price.min(offer.price));
                    return (offer.price, without);
                }
                // Offers ascend.
                Some(ring) if of.all(|other| other == ring) => {
                    without[ring] = without[ring].min(offer.price);
                }
                Some(_) => {}
            }
        }
        (f64::INFINITY, without)
    }
}

/// Sources in the order in which they pass a model on, the last one sends it to targets.
#[derive(Clone)]
struct Ring {
    order: Vec<usize>,
    /// φ^E Σ K of its hand-overs, those within it twice.
    price: f64,
}

/// A ring with what its model costs each target.
struct Priced {
    ring: Ring,
    at: Vec<f64>,
}

/// Groups of sources with the rings that pay, and what all of it costs besides sources.
struct Solution {
    groups: Vec<Vec<usize>>,
    rings: Vec<Rc<Priced>>,
    objective: f64,
}

/// Rings in which the sources stand in a cheap order.
struct Ordered {
    rings: Vec<Ring>,
    objective: f64,
}

/// Whether one objective is below another by more than rounding.
fn is_below(objective: f64, other: f64) -> bool {
    objective < other - LEAST * other.abs()
}

/// Partitions of the sources, from one group to as many as there are sources: the two groups that are nearest in the mean are joined.
fn clusters(measured: &Measured, sources: &[usize]) -> Vec<Vec<Vec<usize>>> {
    /// A pair that cannot reach each other is further apart than any other.
    const UNREACHABLE: f64 = 4.0;
    let apart = |i: usize, j: usize| {
        let links = [measured.links.get(i, j), measured.links.get(j, i)].into_iter().flatten();
        links
            .map(|link| link.divergence)
            .fold(None, |most: Option<f64>, d| Some(most.map_or(d, |most| most.max(d))))
    };
    let mut groups: Vec<Vec<usize>> = sources.iter().map(|&i| vec![i]).collect();
    // Sums of distances between groups, which merge by adding.
    let sum = |a: &usize, b: &usize| apart(*a, *b).unwrap_or(UNREACHABLE);
    let mut sums: Vec<Vec<f64>> =
        sources.iter().map(|a| sources.iter().map(|b| sum(a, b)).collect()).collect();
    let mut partitions = vec![groups.clone()];
    while groups.len() > 1 {
        let mean = |a: usize, b: usize| sums[a][b] / (groups[a].len() * groups[b].len()) as f64;
        let pairs = (0..groups.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
        let nearest = pairs.min_by(|&(a, b), &(c, d)| mean(a, b).total_cmp(&mean(c, d)));
        let Some((a, b)) = nearest else { break };
        let joined = groups.remove(b);
        groups[a].extend(joined);
        let row = sums.remove(b);
        sums[a].iter_mut().zip(&row).for_each(|(sum, more)| *sum += more);
        for row in &mut sums {
            let more = row.remove(b);
            row[a] += more;
        }
        partitions.push(groups.clone());
    }
    partitions.reverse();
    partitions
}

/// An order in which no two sources can change places and make it cheaper.
fn reordered(mut order: Vec<usize>, cost: impl Fn(&[usize]) -> f64) -> Vec<usize> {
    let mut least = cost(&order);
    loop {
        let before = least;
        for (a, b) in (0..order.len()).flat_map(|b| (0..b).map(move |a| (a, b))) {
            for change in [
                |o: &mut [usize], a, b| o.swap(a, b),
                |o: &mut [usize], a, b| {
                    o[a..=b].rotate_left(1);
                },
            ] {
                let mut other = order.clone();
                change(&mut other, a, b);
                let price = cost(&other);
                if price < least - LEAST * least.abs() {
                    (order, least) = (other, price);
                }
            }
        }
        if least >= before {
            return order;
        }
    }
}

struct Search<'a> {
    problem: &'a Problem,
    measured: &'a Measured,
    targets: Vec<Target>,
    sources: usize,
    /// A hand-over that is not to be.
    without: Option<Handover>,
    largest: usize,
    /// How many prices may still be computed, or looked up again.
    effort: usize,
    /// The rings of groups that were tried; none where a group has none.
    priced: HashMap<Vec<usize>, Option<Rc<Priced>>>,
}

impl Search<'_> {
    /// The rings that these groups give, without those that do not pay.
    fn solution(&mut self, groups: Vec<Vec<usize>>) -> Solution {
        let sizes = 2..=self.largest;
        let formed = groups.iter().filter(|g| sizes.contains(&g.len()));
        let mut rings: Vec<Rc<Priced>> = formed.filter_map(|group| self.priced(group)).collect();
        let prices = rings.len() * self.targets.len();
        self.effort = self.effort.saturating_sub(prices.max(1));
        loop {
            let (objective, without) = self.costs(&rings);
            let less = without.into_iter().zip(0..);
            let less = less.min_by(|a, b| a.0.total_cmp(&b.0)).filter(|l| l.0 <= objective);
            let Some((_, ring)) = less else { return Solution { groups, rings, objective } };
            rings.remove(ring);
        }
    }

    /// The ring of a group, which many solutions have.
    fn priced(&mut self, group: &[usize]) -> Option<Rc<Priced>> {
        if let Some(known) = self.priced.get(group) {
            return known.clone();
        }
        let priced = self.ring(group).map(|ring| {
            let at = self.targets.iter().map(|target| self.price(&ring, target)).collect();
            Rc::new(Priced { ring, at })
        });
        self.priced.insert(group.to_vec(), priced.clone());
        priced
    }

    /// What everything costs with these rings, and without each of them.
    fn costs(&self, rings: &[Rc<Priced>]) -> (f64, Vec<f64>) {
        let mut ring_of = vec![None; self.problem.len()];
        for (number, priced) in rings.iter().enumerate() {
            priced.ring.order.iter().for_each(|&source| ring_of[source] = Some(number));
        }
        let (mut all, mut without) = (0.0, vec![0.0; rings.len()]);
        for (at, target) in self.targets.iter().enumerate() {
            let (alone, alone_without) = target.prices_alone(&ring_of, rings.len());
            // The cheapest ring, and the price of the second.
            let (mut first, mut second) = ((f64::INFINITY, None), f64::INFINITY);
            for (number, priced) in rings.iter().enumerate() {
                let price = priced.at[at];
                match price < first.0 {
                    true => (first, second) = ((price, Some(number)), first.0),
                    false => second = second.min(price),
                }
            }
            all += alone.min(first.0);
            for (number, (paid, alone)) in without.iter_mut().zip(alone_without).enumerate() {
                *paid += alone.min(if first.1 == Some(number) { second } else { first.0 });
            }
        }
        let passing_on = |except: Option<usize>| -> f64 {
            let kept = rings.iter().enumerate().filter(|(number, _)| Some(*number) != except);
            kept.map(|(_, priced)| priced.ring.price).sum()
        };
        let numbered = without.into_iter().enumerate();
        let without = numbered.map(|(number, paid)| paid + passing_on(Some(number))).collect();
        (all + passing_on(None), without)
    }

    /// Moves one source to another group, or out of all, as long as that helps.
    fn improved(
        &mut self,
        mut best: Solution,
        sources: &[usize],
        watch: &mut Watch<'_>,
    ) -> Solution {
        loop {
            let mut is_better = false;
            for &source in sources {
                if watch().is_break() || self.effort == 0 {
                    return best;
                }
                for place in 0..=best.groups.len() {
                    let mut groups = best.groups.clone();
                    groups.iter_mut().for_each(|group| group.retain(|&s| s != source));
                    match groups.get_mut(place) {
                        Some(group) => group.push(source),
                        None => groups.push(vec![source]),
                    }
                    groups.retain(|group| !group.is_empty());
                    let other = self.solution(groups);
                    if is_below(other.objective, best.objective) {
                        best = other;
                        is_better = true;
                    }
                }
            }
            if !is_better {
                return best;
            }
        }
    }

    /// φ^E Σ K of a ring in this order; nothing where a link is missing.
    fn hops(&self, order: &[usize]) -> Option<f64> {
        let hop = |from: usize, to: usize| {
            let is_free = self.without != Some(Handover { from, to });
            let link = self.measured.links.get(from, to).filter(|_| is_free)?;
            Some(self.measured.energy_cost(link.energy))
        };
        let within: f64 =
            order.windows(2).map(|pair| hop(pair[0], pair[1])).sum::<Option<f64>>()?;
        Some(2.0 * within + hop(order[order.len() - 1], order[0])?)
    }

    /// φ^E Σ K of links from a source to some targets.
    fn sending(&self, from: usize, targets: impl Iterator<Item = usize>) -> f64 {
        let energy = |to: usize| self.measured.links.get(from, to).map(|link| link.energy);
        targets.map(|to| energy(to).map_or(f64::INFINITY, |e| self.measured.energy_cost(e))).sum()
    }

    /// A ring of these sources, in an order that is cheap: from each of them to the nearest by energy that is left, and the cheapest of
    /// these ways; nothing where none closes. Its last source is to send to a part of all targets.
    fn ring(&self, group: &[usize]) -> Option<Ring> {
        let from = |first: usize| {
            let mut left: Vec<usize> = group.iter().copied().filter(|&i| i != first).collect();
            let mut order = vec![first];
            while !left.is_empty() {
                let last = order[order.len() - 1];
                let energy = |to: usize| self.measured.links.get(last, to).map(|l| l.energy);
                let hops = left.iter().enumerate();
                let hops = hops.filter_map(|(place, &to)| Some((energy(to)?, place)));
                let (_, place) = hops.min_by(|a, b| a.0.total_cmp(&b.0))?;
                order.push(left.remove(place));
            }
            Some(order)
        };
        let share = group.len() as f64 / self.sources as f64;
        let all = || self.targets.iter().map(|target| target.device);
        let cost = |order: &[usize]| {
            let sending = self.sending(order[order.len() - 1], all());
            let sending = if sending.is_finite() { share * sending } else { 0.0 };
            self.hops(order).map_or(f64::INFINITY, |hops| hops + sending)
        };
        let ways = group.iter().filter_map(|&first| from(first));
        let order = ways.min_by(|a, b| cost(a).total_cmp(&cost(b)))?;
        let order = if order.len() <= FEW { reordered(order, cost) } else { order };
        Some(Ring { price: self.hops(&order)?, order })
    }

    /// What a target pays for the model of a ring; infinite where it cannot have it.
    fn price(&self, ring: &Ring, target: &Target) -> f64 {
        let from = ring.order[ring.order.len() - 1];
        let link = PlanLink { from, to: target.device, weight: 1.0 };
        if !allows(self.problem, &link) {
            return f64::INFINITY;
        }
        let route = |_| &ring.order[..];
        let price = handed_on_cost(self.measured, &[link], target.device, route, |_| false);
        price.map_or(f64::INFINITY, |(error, energy)| error + energy)
    }

    /// The rings of a solution with their sources in an order that is cheap for the targets that take the model.
    fn in_order(&self, solution: &Solution) -> Ordered {
        let rings = solution.rings.iter().map(|priced| priced.ring.clone());
        let mut ordered = Ordered { rings: rings.collect(), objective: solution.objective };
        let (_, links) = self.taken(&ordered.rings);
        for ring in &mut ordered.rings {
            let last = ring.order[ring.order.len() - 1];
            let targets = || links.iter().filter(|link| link.from == last).map(|link| link.to);
            let cost = |order: &[usize]| {
                let hops = self.hops(order).unwrap_or(f64::INFINITY);
                hops + self.sending(order[order.len() - 1], targets())
            };
            let may_change = targets().all(|to| self.problem.required_into(to).is_empty());
            if may_change {
                let before = cost(&ring.order);
                ring.order = reordered(std::mem::take(&mut ring.order), cost);
                ring.price = self.hops(&ring.order).unwrap_or(f64::INFINITY);
                ordered.objective += cost(&ring.order) - before;
            }
        }
        ordered
    }

    /// Returns the hand-overs of these rings and the best links from them, each sorted by receiver.
    fn taken(&self, rings: &[Ring]) -> (Vec<Handover>, Vec<PlanLink>) {
        let mut links = Vec::new();
        for target in &self.targets {
            let offers = rings.iter().map(|ring| (self.price(ring, target), ring));
            let best = offers.min_by(|a, b| a.0.total_cmp(&b.0));
            match (best, target.alone(rings)) {
                (best, Some(alone)) if best.is_none_or(|(price, _)| alone.price <= price) => {
                    links.extend_from_slice(&alone.links);
                }
                (Some((_, ring)), _) => {
                    let from = ring.order[ring.order.len() - 1];
                    links.push(PlanLink { from, to: target.device, weight: 1.0 });
                }
                (None, _) => {}
            }
        }
        let hops = |ring: &Ring| -> Vec<Handover> {
            let next = ring.order.iter().cycle().skip(1);
            ring.order.iter().zip(next).map(|(&from, &to)| Handover { from, to }).collect()
        };
        let mut handovers: Vec<Handover> = rings.iter().flat_map(hops).collect();
        handovers.sort_unstable_by_key(|h| h.to);
        (handovers, links)
    }
}
