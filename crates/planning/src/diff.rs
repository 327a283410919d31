//! What changed between two plans, device by device.

use std::collections::{BTreeMap, HashMap};

use crate::device::Role;
use crate::plan::{Handover, PlanLink, Terms};

/// What a plan decides, without the problem that it solves.
#[derive(Debug, Clone, PartialEq)]
pub struct Decisions {
    /// The devices, in the problem's order where a file repeats the problem.
    pub names: Vec<String>,
    /// The role of each device, in the order of the names.
    pub roles: Vec<Role>,
    /// The links by index into the names, sorted by receiver, then sender.
    pub links: Vec<PlanLink>,
    /// The hand-overs by index into the names, sorted by receiver.
    pub handovers: Vec<Handover>,
    /// The terms of the plan's objective, each with its φ.
    pub terms: Terms,
}

/// The differences from a plan A to a plan B.
#[derive(Debug, Clone, PartialEq)]
pub struct Diff {
    /// Devices that only A has, sorted.
    pub removed_devices: Vec<String>,
    /// Devices that only B has, sorted.
    pub added_devices: Vec<String>,
    /// Devices of both whose role differs, sorted by name.
    pub roles: Vec<RoleChange>,
    /// Links that differ, sorted by receiver, then sender.
    pub links: Vec<LinkChange>,
    /// Sources that take another source's model than before, or none, sorted by name.
    pub handovers: Vec<HandoverChange>,
    /// The terms of A's objective, each with its φ.
    pub before: Terms,
    /// The terms of B's objective, each with its φ.
    pub after: Terms,
}

/// A device whose role in B differs from that in A.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleChange {
    /// The name of the device.
    pub device: String,
    /// The role of the device in A.
    pub before: Role,
    /// The role of the device in B.
    pub after: Role,
}

/// A link that was added, removed, or weighs something else.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkChange {
    /// The name of the sender.
    pub from: String,
    /// The name of the receiver.
    pub to: String,
    /// α_ij in A, if the link is there.
    pub before: Option<f64>,
    /// α_ij in B, if the link is there.
    pub after: Option<f64>,
}

/// A source that continues training a different model than before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandoverChange {
    /// The name of the source that takes a model.
    pub to: String,
    /// The source whose model it takes in A, if any.
    pub before: Option<String>,
    /// The source whose model it takes in B, if any.
    pub after: Option<String>,
}

impl Diff {
    /// Whether both plans have the same devices in the same roles over the same links and hand-overs. What they
    /// cost does not count: the same plan costs something else under other measurements.
    pub fn same_plan(&self) -> bool {
        self.removed_devices.is_empty()
            && self.added_devices.is_empty()
            && self.roles.is_empty()
            && self.links.is_empty()
            && self.handovers.is_empty()
    }
}

/// Compares two plans by device names. Weights that differ by at most `threshold` are the same.
pub fn diff(a: &Decisions, b: &Decisions, threshold: f64) -> Diff {
    let (roles_a, roles_b) = (roles_by_name(a), roles_by_name(b));
    let missing = |from: &HashMap<&str, Role>, names: &[String]| {
        let mut missing: Vec<String> =
            names.iter().filter(|n| !from.contains_key(n.as_str())).cloned().collect();
        missing.sort_unstable();
        missing
    };
    let mut roles: Vec<RoleChange> = roles_a
        .iter()
        .filter_map(|(&name, &before)| {
            let after = *roles_b.get(name)?;
            let change = RoleChange { device: name.to_owned(), before, after };
            (before != after).then_some(change)
        })
        .collect();
    roles.sort_unstable_by(|x, y| x.device.cmp(&y.device));
    Diff {
        removed_devices: missing(&roles_b, &a.names),
        added_devices: missing(&roles_a, &b.names),
        roles,
        links: link_changes(a, b, threshold),
        handovers: handover_changes(a, b),
        before: a.terms,
        after: b.terms,
    }
}

fn link_changes(a: &Decisions, b: &Decisions, threshold: f64) -> Vec<LinkChange> {
    let mut weights: BTreeMap<(&str, &str), [Option<f64>; 2]> = BTreeMap::new();
    for (k, side) in [a, b].into_iter().enumerate() {
        for l in &side.links {
            let key = (side.names[l.to].as_str(), side.names[l.from].as_str());
            weights.entry(key).or_default()[k] = Some(l.weight);
        }
    }
    weights
        .into_iter()
        .filter(|(_, [before, after])| match (before, after) {
            (Some(x), Some(y)) => (x - y).abs() > threshold,
            _ => true,
        })
        .map(|((to, from), [before, after])| LinkChange {
            from: from.to_owned(),
            to: to.to_owned(),
            before,
            after,
        })
        .collect()
}

fn handover_changes(a: &Decisions, b: &Decisions) -> Vec<HandoverChange> {
    let mut senders: BTreeMap<&str, [Option<&str>; 2]> = BTreeMap::new();
    for (k, side) in [a, b].into_iter().enumerate() {
        for h in &side.handovers {
            senders.entry(&side.names[h.to]).or_default()[k] = Some(&side.names[h.from]);
        }
    }
    let changed = senders.into_iter().filter(|(_, [before, after])| before != after);
    changed
        .map(|(to, [before, after])| HandoverChange {
            to: to.to_owned(),
            before: before.map(str::to_owned),
            after: after.map(str::to_owned),
        })
        .collect()
}

fn roles_by_name(plan: &Decisions) -> HashMap<&str, Role> {
    plan.names.iter().map(String::as_str).zip(plan.roles.iter().copied()).collect()
}
