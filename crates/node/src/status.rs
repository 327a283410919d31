//! The status of a device, for people and programs: `stlf-status/1`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stlf_method::expectation::Expected;
use stlf_planning::Role;

use stlf_protocol::device::{AsSource, AsTarget, Device, Part, Phase};
use stlf_protocol::membership::Membership;
use stlf_protocol::participant::Absence;
use stlf_protocol::roster::{Member, Place, Roster};

/// Counts of what went over the network since the device started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// The bytes that were sent, including the overhead of packets.
    pub sent: u64,
    /// The bytes that were received, including the overhead of packets.
    pub received: u64,
    /// The number of messages that were refused.
    pub refused: u64,
    /// The number of connections that were refused because their key is not in the roster.
    pub turned_away: u64,
}

/// What a device is doing in an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// It waits for other devices, before an epoch.
    Waiting,
    /// It measures divergences together with the other devices.
    Measuring,
    /// It waits for the plan, or makes it.
    Planning,
    /// It waits for models, or combines them.
    Receiving,
    /// It continues training a model that was handed over to it.
    TrainingOn,
    /// Its part of the epoch is over.
    Done,
    /// The epoch is over for all devices.
    Complete,
}

impl Stage {
    /// Returns what a device does in this phase of an epoch that is not over for all.
    fn of(phase: &Phase) -> Stage {
        match phase {
            Phase::Measuring | Phase::MeasuringLinks(_) => Stage::Measuring,
            Phase::Collecting | Phase::Reported | Phase::Searching | Phase::Unplannable(_) => {
                Stage::Planning
            }
            Phase::Unplanned(_) => Stage::Done,
            Phase::Following(following) => match following.part() {
                Part::Source(AsSource::Awaits(_)) => Stage::Receiving,
                Part::Source(AsSource::TrainsOn(_)) => Stage::TrainingOn,
                Part::Target(AsTarget::Awaits | AsTarget::Combines) => Stage::Receiving,
                Part::Source(AsSource::Offers) | Part::Target(AsTarget::Has(_)) => Stage::Done,
            },
        }
    }
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Stage::Waiting => "waiting",
            Stage::Measuring => "measuring",
            Stage::Planning => "planning",
            Stage::Receiving => "receiving",
            Stage::TrainingOn => "training on",
            Stage::Done => "done",
            Stage::Complete => "complete",
        })
    }
}

/// The status of a device and of its fleet, as that device sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The format of the document, `stlf-status/1`.
    pub format: String,
    /// The name of the fleet.
    pub fleet: String,
    /// The version of the roster that this device uses.
    pub roster: u64,
    /// The device's name.
    pub device: String,
    /// The last epoch that the device has heard of.
    pub epoch: u64,
    /// What the device is doing in that epoch.
    pub stage: Stage,
    /// The name of the device that plans the epoch.
    pub planner: Option<String>,
    /// The names of the devices whose models it waits for, once there is a plan.
    #[serde(default)]
    pub waits_for: Vec<String>,
    /// The names of the devices whose models it refuses, because labels or other models contradict them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refuses: Vec<String>,
    /// The names of the devices that are told no new divergence, because they, or all together, have asked too often.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
    /// What came of its student, if it is a target that may train one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub student: Option<String>,
    /// The accuracy that it may expect on its own samples, if it is a target that has its models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Expected>,
    /// What it is told if that is little, or little is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// What it is told of the model that it trained alone, if that is no better than guessing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guessing: Option<String>,
    /// The reason why there is no plan.
    pub no_plan: Option<String>,
    /// All devices of the roster, as this device sees them.
    pub devices: Vec<Peer>,
    /// Counts of what went over the network.
    pub traffic: Tally,
}

/// A device of the fleet, as another one sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Peer {
    /// The name of the device.
    pub name: String,
    /// Whether it is connected.
    pub here: bool,
    /// Whether it takes part in the epoch.
    pub takes_part: bool,
    /// Its role, `source` or `target`, once there is a plan.
    pub role: Option<String>,
    /// Whether its part of the epoch is done, if it has one. Until the epoch is over for all, only the planner knows that of others.
    pub done: Option<bool>,
    /// The names of the devices whose models it receives, with the weights of the links.
    pub from: Vec<(String, f64)>,
    /// If it is a source that was handed a model, the name of the device that handed it over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handed_from: Option<String>,
    /// The names of the targets to which no usable model of it came, by the plan: they did not get one, or refused it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused_by: Vec<String>,
    /// For how long it has not been connected, and where it is called; `None` if it is connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absence: Option<Absence>,
    /// The first setting that differs from this device's, if it takes no part because of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differs: Option<String>,
    /// How many seconds ago it was noticed last that two devices run with its key, if that is not long ago.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_twice: Option<u64>,
}

/// Two devices that run with one key take turns in being connected. If that is not noticed for so long, one of them is gone.
const TAKES_TURNS: Duration = Duration::from_secs(600);

impl Peer {
    /// Says that two devices run with its key, and what to do about it, if that is so.
    pub fn key_trouble(&self) -> Option<String> {
        let seconds = self.used_twice?;
        Some(format!(
            "two devices run with its key, noticed {seconds} s ago; stop one of them, or give it a key of its own"
        ))
    }
}

impl Status {
    /// Collects the status of a device.
    pub fn new(
        device: &Device,
        membership: &Membership,
        roster: &Roster,
        (absent, used_twice): (&BTreeMap<Place, Absence>, &BTreeMap<Place, Duration>),
        traffic: Tally,
    ) -> Status {
        let own = device.place();
        let name = |place: Place| roster.at(place).map(|member| member.name.clone());
        let members = membership.members();
        let planner = membership.planner();
        let plan = device.plan();
        let stage = match (members, device.phase()) {
            (None, _) => Stage::Waiting,
            (Some(_), _) if membership.is_over() => Stage::Complete,
            (Some(_), None) => Stage::Measuring,
            (Some(_), Some(phase)) => Stage::of(phase),
        };
        let done = |place: Place| match membership.done() {
            _ if !members?.contains(&place) => None,
            _ if membership.is_over() => Some(true),
            Some(done) if planner == Some(own) => Some(done.contains(&place)),
            _ => (place == own).then_some(stage == Stage::Done),
        };
        let peer = |(place, member): (Place, &Member)| Peer {
            name: member.name.clone(),
            here: membership.here().contains(&place),
            takes_part: members.is_some_and(|members| members.contains(&place)),
            role: plan.and_then(|plan| plan.role(place)).map(|role| match role {
                Role::Source => "source".to_owned(),
                Role::Target => "target".to_owned(),
            }),
            done: done(place),
            from: plan
                .into_iter()
                .flat_map(|plan| plan.incoming(place))
                .filter_map(|link| Some((name(link.from)?, link.weight)))
                .collect(),
            handed_from: plan.and_then(|plan| plan.handed_from(place)).and_then(name),
            refused_by: plan
                .into_iter()
                .flat_map(|plan| plan.forbidden.iter().filter(|(from, _)| *from == place))
                .filter_map(|(_, to)| name(*to))
                .collect(),
            absence: absent.get(&place).copied(),
            differs: membership.unlike().get(&place).map(ToString::to_string),
            used_twice: used_twice.get(&place).filter(|t| **t < TAKES_TURNS).map(Duration::as_secs),
        };
        let present = roster.with_places().filter(|(_, member)| member.present);
        Status {
            format: "stlf-status/1".to_owned(),
            fleet: roster.fleet.clone(),
            roster: roster.version,
            device: name(own).unwrap_or_default(),
            epoch: membership.epoch(),
            stage,
            planner: planner.and_then(name),
            waits_for: (device.missing().into_iter().filter(|_| stage == Stage::Receiving))
                .filter_map(name)
                .collect(),
            refuses: device.refuses().into_iter().filter_map(name).collect(),
            withheld: device.withheld().filter_map(name).collect(),
            student: device.combined().and_then(|c| Some(c.tried.as_ref()?.to_string())),
            expected: device.combined().and_then(|c| c.expected),
            warning: device.combined().and_then(|c| Some(c.warning()?.to_string())),
            guessing: device.guessing().map(|told| told.to_string()),
            no_plan: device.no_plan().map(str::to_owned),
            devices: present.map(peer).collect(),
            traffic,
        }
    }

    /// Returns the status in the format of Prometheus.
    pub fn metrics(&self) -> String {
        let mut text = String::new();
        let mut metric = |name: &str, kind: &str, help: &str, value: u64| {
            text += &format!("# HELP stlf_{name} {help}\n# TYPE stlf_{name} {kind}\n");
            text += &format!("stlf_{name} {value}\n");
        };
        let count = |is: fn(&Peer) -> bool| self.devices.iter().filter(|p| is(p)).count() as u64;
        let done = matches!(self.stage, Stage::Done | Stage::Complete);
        let t = self.traffic;
        metric("epoch", "gauge", "The last epoch heard of.", self.epoch);
        metric("epoch_done", "gauge", "Whether this device has finished it.", u64::from(done));
        metric("roster_version", "gauge", "The version of the roster.", self.roster);
        metric("devices", "gauge", "Devices in the roster.", self.devices.len() as u64);
        metric("devices_here", "gauge", "Devices connected, this one included.", count(|p| p.here));
        let unlike = count(|p| p.differs.is_some());
        metric(
            "devices_unlike",
            "gauge",
            "Devices with other settings, which take no part.",
            unlike,
        );
        metric("members", "gauge", "Devices in the epoch.", count(|p| p.takes_part));
        metric("sent_bytes_total", "counter", "Bytes sent.", t.sent);
        metric("received_bytes_total", "counter", "Bytes received.", t.received);
        metric("refused_messages_total", "counter", "Messages refused.", t.refused);
        metric("turned_away_total", "counter", "Strangers turned away.", t.turned_away);
        text
    }
}
