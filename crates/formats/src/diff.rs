//! The difference of two plans as JSON, `stlf-diff/1`.

use serde::Serialize;
use stlf_planning::Role;
use stlf_planning::diff::{Diff, HandoverChange, LinkChange, RoleChange};

use super::TermsEntry;

/// What changed between two plans, as the file has it.
#[derive(Debug, Serialize)]
pub struct DiffFile<'a> {
    format: &'static str,
    /// Whether devices, roles, links and hand-overs are the same.
    same: bool,
    removed_devices: &'a [String],
    added_devices: &'a [String],
    roles: Vec<RoleEntry<'a>>,
    links: Vec<LinkEntry<'a>>,
    handovers: Vec<HandoverEntry<'a>>,
    terms: Change<TermsEntry>,
    objective: Change<f64>,
}

#[derive(Debug, Serialize)]
struct Change<T> {
    before: T,
    after: T,
}

#[derive(Debug, Serialize)]
struct RoleEntry<'a> {
    device: &'a str,
    before: Role,
    after: Role,
}

#[derive(Debug, Serialize)]
struct LinkEntry<'a> {
    from: &'a str,
    to: &'a str,
    /// Null where the link is new.
    before: Option<f64>,
    /// Null where the link is gone.
    after: Option<f64>,
}

#[derive(Debug, Serialize)]
struct HandoverEntry<'a> {
    to: &'a str,
    /// The source whose model it took; null where it trained its own.
    before: Option<&'a str>,
    /// The source whose model it takes now.
    after: Option<&'a str>,
}

impl<'a> DiffFile<'a> {
    /// Returns the file that tells of these changes.
    pub fn new(changes: &'a Diff) -> DiffFile<'a> {
        let role =
            |c: &'a RoleChange| RoleEntry { device: &c.device, before: c.before, after: c.after };
        let link = |c: &'a LinkChange| LinkEntry {
            from: &c.from,
            to: &c.to,
            before: c.before,
            after: c.after,
        };
        let handover = |c: &'a HandoverChange| HandoverEntry {
            to: &c.to,
            before: c.before.as_deref(),
            after: c.after.as_deref(),
        };
        DiffFile {
            format: "stlf-diff/1",
            same: changes.same_plan(),
            removed_devices: &changes.removed_devices,
            added_devices: &changes.added_devices,
            roles: changes.roles.iter().map(role).collect(),
            links: changes.links.iter().map(link).collect(),
            handovers: changes.handovers.iter().map(handover).collect(),
            terms: Change { before: changes.before.into(), after: changes.after.into() },
            objective: Change { before: changes.before.total(), after: changes.after.total() },
        }
    }
}
