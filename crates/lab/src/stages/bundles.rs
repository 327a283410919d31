//! What every device ends with, as a bundle that can be put to work.

use stlf_bundle::folder::{OF_SEED, Written, prepare, sha256};
use stlf_bundle::models::{self, Models};
use stlf_bundle::{Member, Mixture};
use stlf_learn::Params;
use stlf_method::combine::Combine;
use stlf_planning::Role;

use super::plan::FILE as PLAN;
use super::train::MODELS;
use super::transfer::{Served, Transfer};
use crate::record::ExpectedRow;
use crate::{Error, Learners};

impl Transfer<'_> {
    /// Keeps a bundle for each device: a target's models with their weights, and a source's own model. Models are kept once, however many
    /// bundles they are in, where the system can have one file under several names.
    pub(super) fn keep_bundles(
        &self,
        served: &[Served],
        expected: &[ExpectedRow],
        classes: &[String],
    ) -> Result<(), Error> {
        let seed = &self.run.folder;
        let (bundles, models) = (seed.folder(OF_SEED)?, seed.folder(MODELS)?);
        let plan = seed.read(PLAN)?.unwrap_or_default();
        let mut written = Written::from([(sha256(&plan), seed.file(PLAN))]);
        let keep = |device: usize, mixture: Mixture, written: &mut Written| {
            let path = bundles.file(&mixture.device);
            let prepared = match self.run.learners {
                Some(learners) => {
                    models::prepare(&path, &of_learners(mixture, learners), &plan, written)?
                }
                None => {
                    let inputs = &self.run.fleet.devices[device].inputs;
                    let mixture = match mixture.role {
                        Role::Target => mixture.with_class_shares(inputs),
                        Role::Source => mixture,
                    };
                    prepare(&path, &mixture, &plan, written)?
                }
            };
            Ok::<(), Error>(prepared.publish()?)
        };
        for source in self.plan.with_role(Role::Source) {
            let name = &self.run.fleet.devices[source].name;
            let file = format!("{name}.safetensors");
            let Some(bytes) = models.read(&file)? else { continue };
            written.insert(sha256(&bytes), models.file(&file));
            let params = Params::from_safetensors(self.run.layout(), &bytes)?;
            let own = vec![Member { name: name.clone(), weight: 1.0, params }];
            let mixture = self.mixture(source, Role::Source, own, classes);
            keep(source, mixture, &mut written)?;
        }
        for Served { target, links, student, .. } in served {
            let links = links.iter().filter(|link| link.weight > 0.0);
            let members = links.filter_map(|link| {
                let name = self.run.fleet.devices[link.from].name.clone();
                let params = self.models[link.from].clone()?;
                Some(Member { name, weight: link.weight, params })
            });
            let members: Vec<Member> = members.collect();
            if members.is_empty() {
                continue;
            }
            let mixture = self.mixture(*target, Role::Target, members, classes);
            let expected = expected.iter().find(|row| row.target == mixture.device);
            let expected = expected.and_then(ExpectedRow::said);
            let student = student.clone();
            keep(*target, Mixture { student, expected, ..mixture }, &mut written)?;
        }
        Ok(())
    }

    /// What a device with these models ends with.
    fn mixture(
        &self,
        device: usize,
        role: Role,
        members: Vec<Member>,
        classes: &[String],
    ) -> Mixture {
        let (setup, device) = (&self.run.setup, &self.run.fleet.devices[device]);
        Mixture {
            device: device.name.clone(),
            role,
            epoch: None,
            seed: Some(setup.seed),
            classes: classes.to_vec(),
            scaling: device.scaling.clone(),
            spec: setup.spec.clone(),
            combine: if role == Role::Source { Combine::Predictions } else { setup.combine },
            class_shares: None,
            members,
            student: None,
            expected: None,
        }
    }
}

/// Returns the bundle of the same device where learners of the user's made the models.
fn of_learners(mixture: Mixture, learners: &Learners) -> Models {
    Models {
        device: mixture.device,
        role: mixture.role,
        epoch: mixture.epoch,
        seed: mixture.seed,
        learner: learners.name().to_owned(),
        classes: mixture.classes,
        layout: learners.layout().clone(),
        combine: mixture.combine,
        members: mixture.members,
        student: mixture.student,
        expected: mixture.expected,
    }
}
