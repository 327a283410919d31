//! What a device ended with as a bundle in its folder, so that it can be put to work.

use std::sync::Arc;

use stlf_bundle::folder::{OF_DEVICE, Written, prepare};
use stlf_bundle::models::{self, Models};
use stlf_bundle::{Member, Mixture};
use stlf_config::fleet::DeviceData;
use stlf_data::atomic_folder::Folder;
use stlf_formats::{Followed, PlanFile, ProblemFile, write_json};
use stlf_learn::Params;
use stlf_method::combine::Combine;
use stlf_method::expectation::Expected;
use stlf_method::student::Student;
use stlf_planning::Role;
use stlf_planning::bound::BoundKind;
use stlf_planning::plan::Terms;
use stlf_protocol::wire::Plan;
use stlf_protocol::{Place, Roster};

use crate::network::View;

/// Writes the bundle whole or not at all; the one before stays until then. Without a model there is none.
pub(super) fn keep(
    folder: &Folder,
    view: &View<'_>,
    own: &DeviceData,
    classes: &[String],
    learner: Option<&str>,
) -> Result<(), stlf_data::Error> {
    let Some(plan) = plan(view) else { return Ok(()) };
    let broken = |e: &dyn std::fmt::Display| folder.broken(OF_DEVICE, &e.to_string());
    let mut text = Vec::new();
    write_json(&mut text, &plan).map_err(|e| broken(&e))?;
    let place = folder.file(OF_DEVICE);
    let prepared = match learner {
        Some(learner) => models(view, classes, learner)
            .map(|m| models::prepare(&place, &m, &text, &mut Written::new())),
        None => mixture(view, own, classes)
            .map(|mixture| prepare(&place, &mixture, &text, &mut Written::new())),
    };
    let Some(prepared) = prepared else { return Ok(()) };
    match prepared {
        Ok(new) => new.publish_durably(),
        Err(stlf_bundle::Error::Data(e)) => Err(e),
        Err(e) => Err(broken(&e)),
    }
}

/// The plan that the device follows, with the problem that it solves, as far as the device knows it.
pub(super) fn full_plan(view: &View<'_>) -> Option<PlanFile> {
    let problem = view.device.problem().map(ProblemFile::from_problem);
    Some(PlanFile { problem, ..plan(view)? })
}

/// The plan that the device follows. A bundle may be copied to where nobody is to know what others reported.
fn plan(view: &View<'_>) -> Option<PlanFile> {
    let device = view.device;
    followed(device.plan()?, device.plan_terms(), view.roster, device.setup().bound)
}

/// A device's name.
fn name(view: &View<'_>, place: Place) -> Option<String> {
    view.roster.at(place).map(|member| member.name.clone())
}

/// The device's role, and the models that it ended with: a source with its own.
fn members(view: &View<'_>) -> Option<(Role, Vec<Member>)> {
    let device = view.device;
    let role = device.plan()?.role(device.place())?;
    let members: Option<Vec<Member>> = match role {
        Role::Source => {
            let params = device.model()?.clone();
            Some(vec![Member { name: name(view, device.place())?, weight: 1.0, params }])
        }
        Role::Target => {
            let mut received = device.received()?;
            // Known labels may have changed the planned weights.
            if let Some(combined) = device.combined() {
                let weights = received.iter_mut().map(|(.., weight)| weight).zip(&combined.weights);
                weights.for_each(|(weight, informed)| *weight = *informed);
            }
            let received = received.into_iter().filter(|(.., weight)| *weight > 0.0);
            let member = |(from, params, weight): (Place, Arc<Params>, f64)| {
                Some(Member { name: name(view, from)?, weight, params: (*params).clone() })
            };
            received.map(member).collect()
        }
    };
    Some((role, members?))
}

/// Returns what a device with the user's learner ended with.
fn models(view: &View<'_>, classes: &[String], learner: &str) -> Option<Models> {
    let (device, (role, members)) = (view.device, members(view)?);
    Some(Models {
        device: name(view, device.place())?,
        role,
        epoch: Some(device.plan()?.epoch),
        seed: None,
        learner: learner.to_owned(),
        classes: classes.to_vec(),
        layout: device.layout().clone(),
        combine: combine(role, device.setup().combine),
        members,
        student: student(view),
        expected: expected(view),
    })
}

/// The student that the device uses, if it does.
fn student(view: &View<'_>) -> Option<Student> {
    view.device.combined()?.student.clone()
}

/// The accuracy that the device may expect, if it is a target.
fn expected(view: &View<'_>) -> Option<Expected> {
    view.device.combined()?.expected
}

/// Returns how a device with this role combines its models.
fn combine(role: Role, of_fleet: Combine) -> Combine {
    if role == Role::Source { Combine::Predictions } else { of_fleet }
}

/// Returns what the device ended with.
fn mixture(view: &View<'_>, own: &DeviceData, classes: &[String]) -> Option<Mixture> {
    let device = view.device;
    let (plan, setup) = (device.plan()?, device.setup());
    let (role, members) = members(view)?;
    let mixture = Mixture {
        device: name(view, device.place())?,
        role,
        epoch: Some(plan.epoch),
        seed: None,
        classes: classes.to_vec(),
        scaling: own.scaling.clone(),
        spec: setup.spec.clone(),
        combine: combine(role, setup.combine),
        class_shares: None,
        members,
        student: student(view),
        expected: expected(view),
    };
    Some(mixture.with_class_shares(&own.inputs))
}

/// A plan by names instead of places.
fn followed(
    plan: &Plan,
    terms: Option<Terms>,
    roster: &Roster,
    bound: BoundKind,
) -> Option<PlanFile> {
    let name = |place: Place| roster.at(place).map(|member| member.name.clone());
    let names = |places: &[Place]| -> Option<Vec<String>> {
        places.iter().map(|&place| name(place)).collect()
    };
    let links = plan.links.iter().map(|l| Some((name(l.from)?, name(l.to)?, l.weight)));
    let handovers = plan.handovers.iter().map(|h| Some((name(h.from)?, name(h.to)?)));
    let followed = Followed {
        sources: names(&plan.sources)?,
        targets: names(&plan.targets)?,
        links: links.collect::<Option<_>>()?,
        handovers: handovers.collect::<Option<_>>()?,
        objective: plan.objective,
        terms,
        optimal: plan.optimal,
        bound,
    };
    Some(followed.into())
}
