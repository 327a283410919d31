//! The sentences of `stlf node start` about events and about how it ended.

use stlf_data::features::Origin;
use stlf_node::network::Event;
use stlf_node::service::{self, Ended};
use stlf_planning::Role;
use stlf_planning::number_format::{clean, counted, grouped, percent};
use stlf_planning::plan::Way;
use stlf_protocol::wire::Plan;
use stlf_protocol::{Place, Roster};

use super::status::with_cost;
use crate::error::Failure;

/// Returns a device's name, cleaned for the terminal.
fn name(roster: &Roster, place: Place) -> String {
    roster.at(place).map_or(String::new(), |member| clean(&member.name))
}

/// Returns an event of the service in words.
pub(super) fn sentence(event: &service::Event<'_>) -> String {
    match event {
        service::Event::OldRoster { path, version } => {
            format!("{} is outdated; using version {version}, which others sent", path.display())
        }
        service::Event::Scales { device, rows, origin } => {
            format!("{}: {}", clean(device), scaling(*rows, *origin))
        }
        service::Event::HasTrained { device } => format!("{}: was trained before", clean(device)),
        service::Event::Trains { device, labels: 0 } => {
            format!("{}: has no labels, and trains nothing", clean(device))
        }
        service::Event::Trains { device, labels } => {
            format!("{}: training on {}", clean(device), counted(*labels, "label"))
        }
        service::Event::CannotTrain { device, reason } => {
            let (device, reason) = (clean(device), clean(reason));
            format!("{device}: cannot train, and takes part as a device without labels: {reason}")
        }
        service::Event::Guesses { device, guessing } => format!("{}: {guessing}", clean(device)),
        service::Event::ServesNumbers(address) => {
            format!("numbers for Prometheus at http://{address}/metrics")
        }
        service::Event::Data { device, change } => {
            format!("{}: {}", clean(device), clean(&change.to_string()))
        }
        service::Event::Untold { events } => format!(
            "{} more events within a minute are not listed, since one device or callers from outside caused too many",
            grouped(*events)
        ),
        service::Event::CannotKeep(trouble) => format!("cannot write the event log: {trouble}"),
        service::Event::Network { view, event } => words(view.roster, event),
        _ => String::new(),
    }
}

/// Returns by which rows a device scales its features, in words.
fn scaling(rows: usize, origin: Origin) -> String {
    let rows = counted(rows, "row");
    let new = "all its inputs change";
    match origin {
        Origin::First => format!("scales features by its {rows}, and keeps this scale"),
        Origin::Kept(0) => format!("scales features by its {rows}, as before"),
        Origin::Kept(since) => {
            let change = if since > 0 { "more" } else { "fewer" };
            let since = since.unsigned_abs();
            format!("scales features by the {rows} that it had, as before; {since} {change} now")
        }
        Origin::OtherColumns => format!("takes a new scale from {rows} of other columns; {new}"),
        Origin::OtherSize(was) => format!("takes a new scale from {rows}, after {was}; {new}"),
    }
}

/// Returns an event among the devices in words.
fn words(roster: &Roster, event: &Event) -> String {
    let name = |place: &Place| name(roster, *place);
    match event {
        Event::Listens(address) => format!("listening on {address}"),
        Event::CannotSearch(reason) => {
            format!("cannot look for devices on the local network: {}", clean(reason))
        }
        Event::Came(place) => format!("{} is here", name(place)),
        Event::Lost(place) => format!("{} is lost", name(place)),
        Event::Differs { from, difference } => {
            format!("{} takes no part: {}", name(from), clean(&difference.to_string()))
        }
        Event::Absent { from, absence } => format!("{} {absence}", name(from)),
        Event::NotKnownTo { from } => {
            format!("{} turns this device away: it is not in the roster there", name(from))
        }
        Event::UsedTwice { from } => format!(
            "two devices run with the key of {}; stop one of them, or give it a key of its own",
            name(from)
        ),
        Event::TurnedAway(key) => format!("turned away {key}, who is not in the roster"),
        Event::Roster(roster) => {
            format!("version {} of the roster is used from now on", roster.roster().version)
        }
        Event::Began { epoch, devices } => {
            format!("epoch {epoch} begins with {}", counted(*devices, "device"))
        }
        Event::Measured => "measured divergences".to_owned(),
        Event::Judged => "judged a model by its own samples".to_owned(),
        Event::Planned { optimal: true } => "plan ready: proven optimal".to_owned(),
        Event::Planned { optimal: false } => {
            "plan ready: not proven optimal (a better one may exist)".to_owned()
        }
        Event::NoPlan(reason) => format!("there is no plan: {}", clean(reason)),
        Event::LeftOut(place) => format!("{} is left out for now", name(place)),
        Event::Forbidden { from, to } => {
            format!(
                "no usable model came from {} to {}; planning without that link",
                name(from),
                name(to)
            )
        }
        Event::Received { from, bytes } => {
            format!("received {} bytes, the model of {}", grouped(*bytes), name(from))
        }
        Event::NotReceived { from, reason } => {
            format!("did not receive the model of {}: {}", name(from), clean(reason))
        }
        Event::Distrusts { from } => {
            format!("refused the model of {}: labels or other models contradict it", name(from))
        }
        Event::Awaits { from } => {
            format!("waiting for the model of {}, to train it on", name(from))
        }
        Event::TrainsOn { from, way } => {
            format!("training on the model of {}{}", name(from), again(*way))
        }
        Event::TrainedOn { from, way } => {
            format!("trained on the model of {}{}", name(from), again(*way))
        }
        Event::Ended => "done".to_owned(),
        Event::Complete => "the epoch is over for all".to_owned(),
        Event::Alive => String::new(),
        Event::Refused { from, reason } => {
            format!("refused a message of {}: {}", name(from), clean(reason))
        }
    }
}

/// Says that a model has gone round a ring and comes again.
fn again(way: Way) -> &'static str {
    match way {
        Way::First => "",
        Way::Second => ", which comes for the second time",
    }
}

/// Returns a sentence on how the device ended, or a failure if there is no plan.
pub(super) fn end(ended: &Ended) -> Result<String, Failure> {
    let Ended { device, roster, accuracy, student_cost } = ended;
    let place = device.place();
    let own = name(roster, place);
    if let Some(reason) = device.no_plan() {
        return Err(Failure::infeasible(format!("there is no plan: {}", clean(reason))));
    }
    let Some(plan) = device.plan() else {
        return Ok(format!("{own}: no epoch has finished\n"));
    };
    if device.outcome().is_none() {
        return Ok(format!("{own} {}\n", without_outcome(plan, place, roster)));
    }
    let from: Vec<String> = plan
        .incoming(place)
        .map(|link| format!("{} {}", percent(link.weight), name(roster, link.from)))
        .collect();
    let told = accuracy.map_or(String::new(), |a| format!("; accuracy {}", percent(a)));
    let tried = device.combined().and_then(|combined| combined.tried.as_ref());
    let student = tried.map_or(String::new(), |tried| {
        format!("; its student: {}", with_cost(&tried.to_string(), student_cost.as_ref()))
    });
    Ok(format!("{own} is a target of {}{told}{student}\n", from.join(", ")))
}

/// Describes the part of a device in its plan, if it has no predictions.
fn without_outcome(plan: &Plan, place: Place, roster: &Roster) -> String {
    if plan.role(place) != Some(Role::Source) {
        return "is a target; its models have not come yet".to_owned();
    }
    let sent = plan.links.iter().filter(|link| link.from == place).count();
    let own = match plan.handed_from(place) {
        Some(from) => format!("what it made of {}'s model", name(roster, from)),
        None => "its model".to_owned(),
    };
    let on = match plan.handovers.iter().filter(|h| h.from == place).count() {
        0 => String::new(),
        some => format!(", and was handed on to {}", counted(some, "source")),
    };
    format!("is a source; {own} went to {}{on}", counted(sent, "target"))
}
