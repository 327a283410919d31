//! What `stlf node start` tells people: events, and how it ended.

use stlf_node::network::{Error, Event};
use stlf_planning::Role;
use stlf_planning::number_format::{clean, counted, grouped, percent};
use stlf_protocol::{Device, Roster};

use super::state_dir::StateDir;
use crate::error::Failure;
use crate::ui::Ui;

/// A device's name, fit to be shown.
pub(super) fn name(roster: &Roster, place: usize) -> String {
    roster.devices.get(place).map_or(String::new(), |member| clean(&member.name))
}

/// An event in words.
pub(super) fn words(roster: &Roster, event: &Event) -> String {
    let name = |place: &usize| name(roster, *place);
    match event {
        Event::Listens(address) => format!("listening on {address}"),
        Event::Came(place) => format!("{} is here", name(place)),
        Event::Lost(place) => format!("{} is lost", name(place)),
        Event::Differs { from, difference } => {
            format!("{} takes no part: {}", name(from), clean(&difference.to_string()))
        }
        Event::TurnedAway(key) => format!("turned away {key}, who is not in the roster"),
        Event::Roster(roster) => {
            format!("version {} of the roster is used from now on", roster.roster().version)
        }
        Event::Began { epoch, devices } => {
            format!("epoch {epoch} begins with {}", counted(*devices, "device"))
        }
        Event::Planned { optimal: true } => "there is a plan; nothing is better, proven".to_owned(),
        Event::Planned { optimal: false } => {
            "there is a plan, near the best that is known; a better one may exist".to_owned()
        }
        Event::NoPlan(reason) => format!("there is no plan: {}", clean(reason)),
        Event::LeftOut(place) => format!("{} is left out for now", name(place)),
        Event::Forbidden { from, to } => {
            format!("no usable model came from {} to {}; planning without", name(from), name(to))
        }
        Event::Received { from, bytes } => {
            format!("received {} bytes, the model of {}", grouped(*bytes), name(from))
        }
        Event::NotReceived { from, reason } => {
            format!("did not receive the model of {}: {}", name(from), clean(reason))
        }
        Event::Awaits { from } => {
            format!("waiting for the model of {}, to train it on", name(from))
        }
        Event::TrainsOn { from } => format!("training on the model of {}", name(from)),
        Event::TrainedOn { from } => format!("trained on the model of {}", name(from)),
        Event::Ended => "done".to_owned(),
        Event::Complete => "the epoch is over for all".to_owned(),
        Event::Alive => String::new(),
        Event::Refused { from, reason } => {
            format!("refused a message of {}: {}", name(from), clean(reason))
        }
    }
}

/// Why there is no outcome, and what would help.
pub(super) fn ended_badly(error: &Error) -> Failure {
    match error {
        Error::Alone(_) => Failure::io(error.to_string()).hint(
            "devices before this one in the roster are called at --peers; those after it call",
        ),
        Error::Listen { .. } | Error::Deadline(..) | Error::Store(_) => {
            Failure::io(error.to_string())
        }
    }
}

/// Says what came of it.
pub(super) fn tell_end(
    ui: &Ui,
    roster: &Roster,
    device: &Device,
    kept: &StateDir,
) -> Result<(), Failure> {
    let place = device.place();
    if let Some(reason) = device.no_plan() {
        return Err(Failure::infeasible(format!("there is no plan: {}", clean(reason))));
    }
    let Some(plan) = device.plan() else {
        return ui.print(&format!("{}: no epoch is over\n", name(roster, place)));
    };
    if device.outcome().is_none() {
        let sent = plan.links.iter().filter(|link| link.from as usize == place).count();
        let handed_on = plan.handovers.iter().filter(|h| h.from as usize == place).count();
        let what = match plan.role(place) {
            Some(Role::Source) => {
                let own = match plan.handed_from(place) {
                    Some(from) => format!("what it made of {}'s model", name(roster, from)),
                    None => "its model".to_owned(),
                };
                let on = match handed_on {
                    0 => String::new(),
                    some => format!(", and was handed on to {}", counted(some, "source")),
                };
                format!("is a source; {own} went to {}{on}", counted(sent, "target"))
            }
            _ => "is a target; its models have not come yet".to_owned(),
        };
        return ui.print(&format!("{} {what}\n", name(roster, place)));
    }
    let from: Vec<String> = plan
        .incoming(place)
        .map(|link| format!("{} {}", percent(link.weight), name(roster, link.from as usize)))
        .collect();
    let told =
        kept.accuracy(device).map_or(String::new(), |a| format!("; accuracy {}", percent(a)));
    ui.print(&format!("{} is a target of {}{told}\n", name(roster, place), from.join(", ")))
}
