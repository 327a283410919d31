//! Students: models that targets train for themselves, judged by guards, and used where the configuration says so.

use std::collections::BTreeSet;

use stlf_learn::Params;
use stlf_learn::evaluate::Predictions;
use stlf_method::adapt::{self, Adapt, Judged, Judgement, Obstacle};
use stlf_method::ask::ask;
use stlf_method::guard::Guard;
use stlf_method::known::{Known, weighted_accuracy};
use stlf_method::learner::Progress;
use stlf_method::method::Method;
use stlf_method::student::Student;
use stlf_planning::plan::PlanLink;
use stlf_protocol::Place;

use super::transfer::{Transfer, table};
use crate::baselines::Assignment;
use crate::record::{GuardRow, StudentRow};
use crate::{Error, Folder};

/// The students of all methods, and a table of each method's.
pub const FOLDER: &str = "students";

/// What a method's students were taught by: others are no students of these models.
const TEACHERS: &str = "links.csv";

/// What came of a target's student, with what every guard says of it.
pub(super) struct Tried {
    row: StudentRow,
    guards: Vec<GuardRow>,
}

/// What a target ends with that may train a student and learn from labels.
pub(super) struct Adapted {
    /// What the target says of its samples.
    pub(super) predictions: Predictions,
    /// The accuracy of that, where the truth is known.
    pub(super) accuracy: Option<f64>,
    /// Its links, with the weights of their models after known labels were seen.
    pub(super) links: Vec<PlanLink>,
    /// The student, if the target uses it.
    pub(super) student: Option<Student>,
    /// What came of the student, with what every guard says of it.
    pub(super) tried: Tried,
}

/// The table of what all guards say of a method's students.
fn guard_table(method: Method) -> String {
    format!("{}-guards.csv", method.name())
}

/// The rows of all methods that have students, those of the configuration in its order.
///
/// # Errors
/// A table that cannot be read.
pub fn read(seed: &Folder, methods: &[Method]) -> Result<Vec<StudentRow>, Error> {
    let mut rows = Vec::new();
    if seed.file(FOLDER).is_dir() {
        let folder = seed.folder(FOLDER)?;
        for &method in methods {
            rows.extend(folder.read_csv(&table(method))?.unwrap_or_default());
        }
    }
    Ok(rows)
}

/// What all guards say of a method's students; nothing where there are none.
///
/// # Errors
/// A table that cannot be read.
pub fn read_guards(seed: &Folder, method: Method) -> Result<Vec<GuardRow>, Error> {
    match seed.file(FOLDER).is_dir() {
        true => Ok(seed.folder(FOLDER)?.read_csv(&guard_table(method))?.unwrap_or_default()),
        false => Ok(Vec::new()),
    }
}

/// Removes the tables of a method's students, and the students of these targets.
pub(super) fn forget(seed: &Folder, method: Method, targets: &BTreeSet<&str>) -> Result<(), Error> {
    if !seed.file(FOLDER).is_dir() {
        return Ok(());
    }
    let folder = seed.folder(FOLDER)?;
    folder.remove_file(&table(method))?;
    folder.remove_file(&guard_table(method))?;
    if folder.file(method.name()).is_dir() {
        let students = folder.folder(method.name())?;
        targets.iter().try_for_each(|target| students.remove_file(&file_of(target)))?;
    }
    Ok(())
}

/// Returns the name of the file with a target's student.
fn file_of(target: &str) -> String {
    format!("{target}.safetensors")
}

impl Transfer<'_> {
    /// Where the students of a method are kept; nothing if its targets train none.
    pub(super) fn students(
        &self,
        method: Method,
        assigned: &Assignment,
    ) -> Result<Option<Folder>, Error> {
        let asked = self.run.config.compare.students()?.contains(&method);
        if !asked || self.run.setup.adapt == Adapt::Off {
            return Ok(None);
        }
        let all = self.run.folder.folder(FOLDER)?;
        let (folder, teachers) = (all.folder(method.name())?, self.table(assigned));
        if folder.read_csv(TEACHERS)?.as_ref() == Some(&teachers) {
            return Ok(Some(folder));
        }
        all.remove_folder(method.name())?;
        let folder = all.folder(method.name())?;
        folder.write_csv(TEACHERS, &teachers)?;
        Ok(Some(folder))
    }

    /// What a target ends with, and what came of its student; nothing without a model. The labels that it knows change the weights of
    /// models, and the student learns from them.
    pub(super) fn with_student(
        &self,
        method: Method,
        folder: &Folder,
        links: &[PlanLink],
        target: usize,
    ) -> Result<Option<Adapted>, Error> {
        let (setup, device) = (&self.run.setup, &self.run.fleet.devices[target]);
        let links: Vec<PlanLink> =
            links.iter().filter(|link| self.models[link.from].is_some()).copied().collect();
        let Some(before) = self.combined(&links, target)? else { return Ok(None) };
        let known = self.known(&before, target)?;
        let planned: Vec<(&Params, f64)> = self.senders(&links).collect();
        let (place, owner) = (Place::new(target), self.run.owner(target));
        let failed = |source| self.run.failed(target, source);
        let is_stranger = self.is_stranger(target);
        let mut watch = |_: Progress| self.run.watch.flow();
        let informed =
            setup.target(place, owner, &planned, &known, is_stranger).informed(&mut watch);
        let models = informed.map_err(failed)?.ok_or(Error::Stopped)?;
        let weights = links.iter().zip(&models);
        let links = weights.map(|(&link, &(_, weight))| PlanLink { weight, ..link }).collect();
        let truth = device.truth.as_ref();
        if let Some(obstacle) = Obstacle::of(owner, known.len()) {
            let mixture = match known.is_empty() {
                true => before.clone(),
                false => self.run.combine(target, &models)?,
            };
            let accuracy = truth.map(|truth| mixture.accuracy(truth));
            let row = StudentRow {
                labels: known.len(),
                mixture_accuracy: accuracy,
                ..self.row_of(method, target, adapt::Tried::Not(obstacle))
            };
            let (tried, predictions) = (Tried { row, guards: Vec::new() }, mixture);
            return Ok(Some(Adapted { predictions, accuracy, links, student: None, tried }));
        }
        let at = setup.target(place, owner, &models, &known, is_stranger);
        let name = file_of(&device.name);
        // A student is kept as soon as it is there.
        let student = match folder.read(&name)? {
            Some(file) => Params::from_safetensors(self.run.layout(), &file)
                .map_err(|e| folder.broken(&name, &e.to_string()))?,
            None => {
                let trained = at.student(setup.schooling, &mut watch).map_err(failed)?;
                let student = trained.ok_or(Error::Stopped)?;
                folder.write(&name, &student.to_safetensors(self.run.layout())?)?;
                student
            }
        };
        let judged = at.judge(&student, &mut watch).map_err(failed)?.ok_or(Error::Stopped)?;
        let accuracies = truth.map(|truth| {
            let weights = at.evaluation_weights();
            let with_student = weighted_accuracy(&judged.with_student, truth, &weights);
            (judged.mixture.accuracy(truth), with_student)
        });
        let tried = self.tried(method, target, &judged, known.len(), accuracies);
        let student = Student { params: student, share: judged.share };
        let student = Some(student).filter(|_| judged.is_used(setup.adapt));
        let accuracy = accuracies.map(|(mixture, with_student)| match student {
            Some(_) => with_student,
            None => mixture,
        });
        let predictions = judged.predictions(setup.adapt);
        Ok(Some(Adapted { predictions, accuracy, links, student, tried }))
    }

    /// The labels that a target knows, and those that it asks for, which the simulator answers with the true ones.
    fn known(&self, mixture: &Predictions, target: usize) -> Result<Vec<Known>, Error> {
        let device = &self.run.fleet.devices[target];
        let mut known = device.known();
        let asked = ask(mixture, &known, self.run.config.transfer.ask);
        if asked.is_empty() {
            return Ok(known);
        }
        let truth = device.truth.as_ref().ok_or_else(|| {
            let message = format!("the data has no true labels of {}'s samples", device.name);
            stlf_planning::Error::missing("transfer.ask", message).with_hint(
                "leave it out; `stlf ask` names samples to label, and data.answers has their labels",
            )
        })?;
        known.extend(asked.into_iter().map(|sample| (sample, truth[sample])));
        known.sort_unstable();
        Ok(known)
    }

    /// Writes the tables of a method's students.
    pub(super) fn write_students(&self, method: Method, tried: Vec<Tried>) -> Result<(), Error> {
        let folder = self.run.folder.folder(FOLDER)?;
        let (rows, guards): (Vec<StudentRow>, Vec<Vec<GuardRow>>) =
            tried.into_iter().map(|tried| (tried.row, tried.guards)).unzip();
        folder.write_csv(&guard_table(method), &guards.concat())?;
        Ok(folder.write_csv(&table(method), &rows)?)
    }

    /// The row of a target that trained no student.
    fn row_of(&self, method: Method, target: usize, tried: adapt::Tried) -> StudentRow {
        let device = &self.run.fleet.devices[target];
        StudentRow {
            seed: self.run.setup.seed,
            method: method.name().to_owned(),
            target: device.name.clone(),
            samples: device.samples(),
            labels: 0,
            outcome: tried.to_string(),
            tried: false,
            stability: None,
            mixture_stability: None,
            threshold: None,
            labels_right: None,
            mixture_labels_right: None,
            accepted: false,
            used: false,
            mixture_accuracy: None,
            student_accuracy: None,
            gflop: None,
            joules: None,
        }
    }

    /// What came of the student of a target that knows so many labels; the accuracies are of the mixture and with the student.
    fn tried(
        &self,
        method: Method,
        target: usize,
        judged: &Judged,
        labels: usize,
        accuracies: Option<(f64, f64)>,
    ) -> Tried {
        let (setup, device) = (&self.run.setup, &self.run.fleet.devices[target]);
        let (mixture_accuracy, student_accuracy) = accuracies.unzip();
        let verdict = judged.verdict(Guard::default());
        let by_labels = match judged.judgement() {
            Judgement::Labels(by_labels) => Some(by_labels),
            Judgement::Guard(_) | Judgement::Nothing => None,
        };
        // Nobody knows what a learner of the user's computes.
        let is_built_in = self.run.learners.is_none();
        let gflop = is_built_in.then(|| setup.schooling.operations(&setup.spec) as f64 / 1e9);
        let row = StudentRow {
            labels,
            tried: true,
            stability: verdict.map(|verdict| verdict.score),
            mixture_stability: verdict.map(|verdict| verdict.of_mixture),
            threshold: verdict.map(|verdict| verdict.threshold),
            labels_right: by_labels.map(|labels| labels.right),
            mixture_labels_right: by_labels.map(|labels| labels.of_mixture),
            accepted: judged.judgement().accepts(),
            used: judged.is_used(setup.adapt),
            mixture_accuracy,
            student_accuracy,
            gflop,
            joules: gflop.zip(self.run.config.energy.gflop_per_joule).map(|(all, per)| all / per),
            ..self.row_of(method, target, judged.tried(setup.adapt))
        };
        let guards = Guard::ALL.into_iter().filter_map(|guard| {
            let verdict = judged.verdict(guard)?;
            Some(GuardRow {
                target: device.name.clone(),
                guard: guard.name().to_owned(),
                score: verdict.score,
                of_mixture: verdict.of_mixture,
                threshold: Some(verdict.threshold),
                accepted: verdict.accepted,
                gain: student_accuracy.zip(mixture_accuracy).map(|(with, alone)| with - alone),
            })
        });
        Tried { row, guards: guards.collect() }
    }
}
