//! Dual ascent (Erlenkotter 1978): prices v_j that no facility can undercut.
//!
//! The dual of the linear relaxation is: maximise Σ_j v_j such that Σ_j (v_j − c_ij)⁺ ≤ f_i for
//! every facility i. Each client's price is raised from one candidate's cost to the next until
//! some facility's slack is used up. Any such prices bound the optimum from below.

use super::instance::{Instance, Opening};
use crate::status::{Leash, PULSE};

/// Prices and what is left of each opening cost.
#[derive(Debug, Clone)]
pub(super) struct Prices {
    pub(super) value: Vec<f64>,
    /// f_i − Σ_j (v_j − c_ij)⁺ ≥ 0.
    pub(super) slack: Vec<f64>,
    /// Σ_j v_j plus the cost of facilities that must open.
    pub(super) lower_bound: f64,
}

/// Beyond this many candidates a price is raised past several at once: more prices of a long list
/// could be tried than are worth their time.
const EACH: usize = 64;

/// Prices that nobody can raise, or as far as they came when told to stop.
pub(super) fn ascend(instance: &Instance, leash: &mut Leash<'_>) -> Prices {
    let mut slack: Vec<f64> = instance.opening.iter().map(|opening| opening.unpaid()).collect();
    let clients = instance.clients();
    let mut value: Vec<f64> = (0..clients).map(|j| instance.cost[instance.first[j]]).collect();
    // How many candidates a client's price has reached.
    let mut reached: Vec<u32> = vec![0; clients];
    let mut active: Vec<u32> = (0..clients as u32).collect();
    let mut work = 0;
    while !active.is_empty() && !leash.stopped() {
        active.retain(|&client| {
            work += reached[client as usize] as usize + 1;
            if work > PULSE {
                work = 0;
                leash.go_on();
            }
            !leash.stopped()
                && raise(instance, client as usize, &mut value, &mut reached, &mut slack)
        });
    }
    let fixed: f64 = instance
        .opening
        .iter()
        .map(|o| if let Opening::Must(cost) = o { *cost } else { 0.0 })
        .sum();
    let lower_bound = fixed + value.iter().sum::<f64>();
    Prices { value, slack, lower_bound }
}

/// Raises one price to the next level; false once a facility or the end of the list blocks it.
fn raise(
    instance: &Instance,
    client: usize,
    value: &mut [f64],
    reached: &mut [u32],
    slack: &mut [f64],
) -> bool {
    let list = instance.list(client);
    let cost = &instance.cost[list.clone()];
    let facility = &instance.facility[list];
    let mut count = reached[client] as usize;
    let v = value[client];
    while count < cost.len() && cost[count] <= v {
        count += 1;
    }
    reached[client] = count as u32;
    let passed = (count + count / EACH).min(cost.len());
    let level = cost.get(passed).copied().unwrap_or(f64::INFINITY).min(instance.tail[client]);
    let mut step = level - v;
    for &i in &facility[..count] {
        step = step.min(slack[i as usize]);
    }
    // Those passed on the way are paid from their own cost on.
    for (&i, c) in facility[count..passed].iter().zip(&cost[count..passed]) {
        step = step.min(c - v + slack[i as usize]);
    }
    if step <= 0.0 {
        return false;
    }
    for &i in &facility[..count] {
        slack[i as usize] -= step;
    }
    for (&i, c) in facility[count..passed].iter().zip(&cost[count..passed]) {
        slack[i as usize] -= (step - (c - v)).max(0.0);
    }
    // Set, not added, at a level, so that the next candidate counts as reached.
    value[client] = if step == level - v { level } else { v + step };
    step == level - v && level < instance.tail[client]
}
