//! Sources that pretend to be targets: each hides its labels from itself and trains a student from what the other sources' models make of its
//! samples. Guards judge these students as those of targets, and here labels say what each of them adds.

use rayon::prelude::*;
use stlf_config::fleet::DeviceData;
use stlf_method::method::Method;
use stlf_planning::device::Role;

use super::transfer::{Transfer, sent};
use super::{SeedRun, measure, plan, student, train};
use crate::Error;
use crate::baselines::Assignment;
use crate::record::{GuardRow, TrainingRow};

/// The students of all sources that pretend, in a folder for each of them.
const FOLDER: &str = "pretended";

/// What guards say of the students of all sources of a seed, for each of these methods. Sources are trained and measured already, or are first.
/// Plans are without hand-overs, so that no model has seen the labels that are hidden.
pub(crate) fn pretended(
    run: &SeedRun<'_>,
    methods: &[Method],
) -> Result<Vec<(Method, GuardRow)>, Error> {
    let trained = train::train(run)?;
    let measured = measure::measure(run)?;
    let models = sent(run, &trained.models);
    let folder = run.folder.folder(FOLDER)?;
    let sources: Vec<usize> = (0..models.len()).filter(|&i| models[i].is_some()).collect();
    let of_source = |&source: &usize| -> Result<Vec<(Method, GuardRow)>, Error> {
        let mut fleet = run.fleet.clone();
        fleet.devices[source] = without_labels(&run.fleet.devices[source], fleet.shape.len());
        let own = SeedRun {
            config: run.config,
            setup: run.setup.clone(),
            folder: folder.folder(&fleet.devices[source].name)?,
            fleet,
            first: run.first.clone(),
            learners: run.learners,
            scouted: Vec::new(),
            scouting_bytes: 0,
            watch: run.watch.of(run.setup.seed),
        };
        let (mut table, mut models) = (trained.table.clone(), models.clone());
        models[source] = None;
        table[source] = TrainingRow {
            labeled: 0,
            unlabeled: own.fleet.devices[source].unlabeled,
            measured: 0,
            errors: 0,
            source_error: None,
            most_common: None,
            ..table[source].clone()
        };
        let problem = plan::problem(&own, &table, &measured)?;
        let planned = plan::links_only(&own, &problem)?;
        let transfer = Transfer::of(&own, models, &problem, &measured.cost, &planned);
        let mut rows = Vec::new();
        for &method in methods {
            transfer.rows(method, &into(&transfer.assign(method)?, source))?;
            let guards = student::read_guards(&own.folder, method)?;
            rows.extend(guards.into_iter().map(|row| (method, row)));
        }
        Ok(rows)
    };
    let all: Vec<_> = sources.par_iter().map(of_source).collect::<Result<_, Error>>()?;
    Ok(all.concat())
}

/// A device that has only the samples that it knows labels of, and does not know them. They are the truth.
fn without_labels(device: &DeviceData, numbers: usize) -> DeviceData {
    let labeled = device.labels.len();
    DeviceData {
        name: device.name.clone(),
        places: device.places[..labeled].to_vec(),
        inputs: device.inputs[..labeled * numbers].into(),
        scaling: device.scaling.clone(),
        labels: Vec::new(),
        unlabeled: labeled,
        answers: Vec::new(),
        truth: Some(device.labels.clone()),
    }
}

/// The part of an assignment that is for one target: it is the only one, and only its links are there.
fn into(assigned: &Assignment, target: usize) -> Assignment {
    let role = |device: usize| if device == target { Role::Target } else { Role::Source };
    let roles = (0..assigned.roles.len()).map(role).collect();
    Assignment::new(roles, assigned.incoming(target).to_vec())
}
