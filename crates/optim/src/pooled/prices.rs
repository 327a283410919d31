//! The Lagrangian bound over mixtures.
//!
//! "A link is used only if its facility is open" is priced at w_ij ≥ 0. Then facilities stand
//! alone, and each client chooses its mixture with the prices added to the charges:
//!
//! ```text
//! L(w) = Σ_j min over mixtures of client j (cost + Σ_{i used} w_ij)
//!        + Σ_i min(0, f_i − Σ_j w_ij)
//! ```
//!
//! is a lower bound for any w ≥ 0; subgradient steps climb it. Facilities fixed open have no
//! prices, those fixed closed no links.

use super::clients::{Answer, ask_all};
use super::instance::Instance;
use super::selection::Selector;
use crate::best_first::{self, Fixing};
use crate::facility;
use crate::status::Leash;

/// Prices in one part of the search and the bound they give.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) fixing: Vec<Fixing>,
    /// w_ij, the price of every link.
    price: Vec<f64>,
    /// w_jj, for being served by the client's own facility.
    own_price: Vec<f64>,
    pub(super) lower_bound: f64,
}

impl Node {
    /// Starts from dual-ascent prices v_j of the single-source problem: w_ij = (v_j − c_ij)⁺ are
    /// the prices at which no single source undercuts v_j.
    pub(super) fn root(instance: &Instance, value: &[f64]) -> Node {
        let mut price = vec![0.0; instance.links()];
        for (client, v) in value.iter().enumerate() {
            for at in instance.list(client) {
                price[at] = (v - instance.vertex(client, at)).max(0.0);
            }
        }
        Node {
            fixing: instance.opening.iter().map(|&o| facility::fixing(o)).collect(),
            price,
            own_price: value.to_vec(),
            lower_bound: f64::NEG_INFINITY,
        }
    }
}

/// How a client is served at the current prices, and what it pays.
#[derive(Debug, Clone, Copy)]
enum Choice {
    Own(f64),
    Mixture(f64),
}

/// The subgradient method with its working memory.
#[derive(Debug)]
pub(super) struct Prices<'a> {
    instance: &'a Instance,
    selector: Selector,
    /// Branchings allowed for one client's choice.
    pub(super) nodes: usize,
    /// Σ_j w_ij, the revenue of each facility.
    revenue: Vec<f64>,
    chosen: Vec<bool>,
    /// How often each facility was chosen lately, 0..1.
    pub(super) frequency: Vec<f64>,
    /// Links used by clients, and clients served by their own facility.
    used: Vec<usize>,
    used_own: Vec<usize>,
    price: Vec<f64>,
    own_price: Vec<f64>,
    gradient: Vec<f64>,
    own_gradient: Vec<f64>,
}

impl<'a> Prices<'a> {
    pub(super) fn new(instance: &'a Instance, nodes: usize) -> Self {
        let (facilities, clients) = (instance.facilities(), instance.clients());
        Prices {
            instance,
            selector: Selector::default(),
            nodes,
            revenue: vec![0.0; facilities],
            chosen: vec![false; facilities],
            frequency: vec![0.0; facilities],
            used: Vec::new(),
            used_own: Vec::new(),
            price: vec![0.0; instance.links()],
            own_price: vec![0.0; clients],
            gradient: vec![0.0; instance.links()],
            own_gradient: vec![0.0; clients],
        }
    }

    /// Climbs for at most `rounds` steps, as long as the bound is worth `raising`, keeping the best
    /// prices in `node` and fixing what they decide. True if the node holds nothing that costs less
    /// than `cutoff`.
    pub(super) fn climb(
        &mut self,
        node: &mut Node,
        cutoff: f64,
        rounds: usize,
        leash: &mut Leash<'_>,
        mut raising: impl FnMut(f64) -> bool,
    ) -> bool {
        const PATIENCE: usize = 6;
        self.price.copy_from_slice(&node.price);
        self.own_price.copy_from_slice(&node.own_price);
        for (frequency, fixing) in self.frequency.iter_mut().zip(&node.fixing) {
            *frequency = if *fixing == Fixing::Open { 1.0 } else { 0.0 };
        }
        let mut agility = 1.0;
        let mut waited = 0;
        for _ in 0..rounds {
            let bound = self.evaluate(&node.fixing, leash);
            if bound > node.lower_bound {
                node.lower_bound = bound;
                node.price.copy_from_slice(&self.price);
                node.own_price.copy_from_slice(&self.own_price);
                waited = 0;
                if bound >= cutoff {
                    return true;
                }
                let room = cutoff - node.lower_bound;
                best_first::fix(&self.instance.opening, &self.revenue, &mut node.fixing, room);
            }
            waited += 1;
            if waited > PATIENCE {
                agility *= 0.5;
                waited = 0;
                if agility < 0.02 {
                    break;
                }
            }
            let memory = 0.8;
            for (frequency, &chosen) in self.frequency.iter_mut().zip(&self.chosen) {
                *frequency = memory * *frequency + (1.0 - memory) * f64::from(u8::from(chosen));
            }
            if leash.stopped()
                || !self.step(&node.fixing, agility * (cutoff - bound))
                || !raising(node.lower_bound)
                || !leash.go_on()
            {
                break;
            }
        }
        false
    }

    /// Returns the facilities that were chosen at the last prices.
    pub(super) fn chosen(&self) -> Vec<bool> {
        self.chosen.clone()
    }

    /// L(w); leaves the links used and the facilities chosen behind.
    fn evaluate(&mut self, fixing: &[Fixing], leash: &mut Leash<'_>) -> f64 {
        let instance = self.instance;
        self.used.clear();
        self.used_own.clear();
        let mut bound = 0.0;
        let mut selector = std::mem::take(&mut self.selector);
        let choose =
            |client: usize, nodes: usize, selector: &mut Selector, leash: &mut Leash<'_>| {
                let choice = self.choose(client, fixing, nodes, selector, leash);
                let best = &selector.best;
                match choice {
                    // More branchings make a mixture no cheaper than they found it to be at least.
                    Choice::Own(_) => Answer { value: (choice, Vec::new()), is_final: true },
                    Choice::Mixture(_) => {
                        let is_final = best.lower_bound >= best.cost;
                        Answer { value: (choice, best.used.clone()), is_final }
                    }
                }
            };
        let choices = ask_all(instance, self.nodes, &mut selector, leash, choose);
        self.selector = selector;
        for (client, (choice, used)) in choices.into_iter().enumerate() {
            match choice {
                Choice::Own(price) => {
                    bound += price;
                    self.used_own.push(client);
                }
                Choice::Mixture(cost) => {
                    bound += cost;
                    self.used.extend(used);
                }
            }
        }
        self.collect_revenue(fixing);
        bound + best_first::choose(&instance.opening, &self.revenue, fixing, &mut self.chosen)
    }

    /// What a client would do at the current prices; a mixture's links are left in the selector.
    fn choose(
        &self,
        client: usize,
        fixing: &[Fixing],
        nodes: usize,
        selector: &mut Selector,
        leash: &mut Leash<'_>,
    ) -> Choice {
        let instance = self.instance;
        let own_price = match instance.own[client].map(|i| fixing[i as usize]) {
            Some(Fixing::Open) => 0.0,
            Some(Fixing::Free) => self.own_price[client],
            Some(Fixing::Closed) | None => f64::INFINITY,
        };
        // Nothing is cheaper than free.
        if own_price <= 0.0 {
            return Choice::Own(own_price);
        }
        let items =
            instance.list(client).filter_map(|at| match fixing[instance.facility[at] as usize] {
                Fixing::Free => Some(instance.item(at, self.price[at])),
                Fixing::Open => Some(instance.item(at, 0.0)),
                Fixing::Closed => None,
            });
        selector.select(items, |item| instance.is_required(item.at), nodes, leash);
        let served = instance.constant[client] + selector.best.lower_bound;
        if served < own_price { Choice::Mixture(served) } else { Choice::Own(own_price) }
    }

    /// Adds up Σ_j w_ij of every free facility.
    fn collect_revenue(&mut self, fixing: &[Fixing]) {
        self.revenue.fill(0.0);
        for (&i, price) in self.instance.facility.iter().zip(&self.price) {
            self.revenue[i as usize] += price;
        }
        for (own, price) in self.instance.own.iter().zip(&self.own_price) {
            if let Some(i) = own {
                self.revenue[*i as usize] += price;
            }
        }
        for (revenue, &fixing) in self.revenue.iter_mut().zip(fixing) {
            if fixing != Fixing::Free {
                *revenue = 0.0;
            }
        }
    }

    /// Raises the prices of links used from facilities not chosen, lowers those of links not used
    /// from facilities chosen. False where the two agree: the prices are optimal.
    fn step(&mut self, fixing: &[Fixing], distance: f64) -> bool {
        let instance = self.instance;
        self.gradient.fill(0.0);
        self.own_gradient.fill(0.0);
        for &at in &self.used {
            self.gradient[at] = 1.0;
        }
        for &client in &self.used_own {
            self.own_gradient[client] = 1.0;
        }
        let mut norm = 0.0;
        let mut settle = |gradient: &mut f64, price: f64, i: usize| {
            if fixing[i] != Fixing::Free {
                *gradient = 0.0;
                return;
            }
            if self.chosen[i] {
                *gradient -= 1.0;
            }
            if *gradient < 0.0 && price <= 0.0 {
                *gradient = 0.0;
            }
            norm += *gradient * *gradient;
        };
        for (at, gradient) in self.gradient.iter_mut().enumerate() {
            settle(gradient, self.price[at], instance.facility[at] as usize);
        }
        for (client, gradient) in self.own_gradient.iter_mut().enumerate() {
            if let Some(i) = instance.own[client] {
                settle(gradient, self.own_price[client], i as usize);
            }
        }
        if norm == 0.0 {
            return false;
        }
        let length = distance / norm;
        for (price, gradient) in self.price.iter_mut().zip(&self.gradient) {
            *price = (*price + length * gradient).max(0.0);
        }
        for (price, gradient) in self.own_price.iter_mut().zip(&self.own_gradient) {
            *price = (*price + length * gradient).max(0.0);
        }
        true
    }
}
