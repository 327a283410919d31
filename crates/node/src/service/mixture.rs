//! What a device ended with as a bundle in its folder, so that it can be put to work.

use std::sync::Arc;

use stlf_bundle::folder::{OF_DEVICE, Written, prepare};
use stlf_bundle::{Member, Mixture};
use stlf_config::fleet::DeviceData;
use stlf_data::atomic_folder::Folder;
use stlf_formats::{Followed, PlanFile, write_json};
use stlf_learn::Params;
use stlf_method::combine::Combine;
use stlf_planning::Role;
use stlf_planning::bound::BoundKind;
use stlf_protocol::wire::Plan;
use stlf_protocol::{Place, Roster};

use crate::network::View;

/// Writes the bundle whole or not at all; the one before stays until then. Without a model there is none.
pub(super) fn keep(
    folder: &Folder,
    view: &View<'_>,
    own: &DeviceData,
    classes: &[String],
) -> Result<(), stlf_data::Error> {
    let Some((mixture, plan)) = mixture(view, own, classes) else { return Ok(()) };
    let broken = |e: &dyn std::fmt::Display| folder.broken(OF_DEVICE, &e.to_string());
    let mut text = Vec::new();
    write_json(&mut text, &plan).map_err(|e| broken(&e))?;
    let prepared = prepare(&folder.file(OF_DEVICE), &mixture, &text, &mut Written::new());
    match prepared {
        Ok(new) => new.publish_durably(),
        Err(stlf_bundle::Error::Data(e)) => Err(e),
        Err(e) => Err(broken(&e)),
    }
}

/// What the device ended with, and the plan that it followed.
fn mixture(view: &View<'_>, own: &DeviceData, classes: &[String]) -> Option<(Mixture, PlanFile)> {
    let (device, roster) = (view.device, view.roster);
    let (plan, setup) = (device.plan()?, device.setup());
    let role = plan.role(device.place())?;
    let name = |place: Place| roster.at(place).map(|member| member.name.clone());
    let members: Option<Vec<Member>> = match role {
        Role::Source => {
            let params = device.model()?.clone();
            Some(vec![Member { name: name(device.place())?, weight: 1.0, params }])
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
                Some(Member { name: name(from)?, weight, params: (*params).clone() })
            };
            received.map(member).collect()
        }
    };
    let mixture = Mixture {
        device: name(device.place())?,
        role,
        epoch: Some(plan.epoch),
        seed: None,
        classes: classes.to_vec(),
        scaling: own.scaling.clone(),
        spec: setup.spec.clone(),
        combine: if role == Role::Source { Combine::Predictions } else { setup.combine },
        class_shares: None,
        members: members?,
        student: device.combined().and_then(|combined| combined.student.clone()),
    };
    Some((mixture.with_class_shares(&own.inputs), followed(plan, roster, setup.bound)?))
}

/// A plan by names instead of places.
fn followed(plan: &Plan, roster: &Roster, bound: BoundKind) -> Option<PlanFile> {
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
        optimal: plan.optimal,
        bound,
    };
    Some(followed.into())
}
