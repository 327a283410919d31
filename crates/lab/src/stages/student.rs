//! Students: models that targets train for themselves, judged by guards, and used where the configuration says so.

use stlf_learn::Params;
use stlf_learn::evaluate::Predictions;
use stlf_method::adapt::{self, Adapt, Judged, Obstacle};
use stlf_method::guard::Guard;
use stlf_method::method::Method;
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

/// A target's student, with what every guard says of it.
pub(super) struct Tried {
    /// The student, if the target uses it.
    pub(super) student: Option<Params>,
    row: StudentRow,
    guards: Vec<GuardRow>,
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

    /// What a target ends with, and what came of its student; nothing without a model.
    pub(super) fn with_student(
        &self,
        method: Method,
        folder: &Folder,
        links: &[PlanLink],
        target: usize,
    ) -> Result<(Option<Predictions>, Option<Tried>), Error> {
        let (setup, device) = (&self.run.setup, &self.run.fleet.devices[target]);
        let models: Vec<(&Params, f64)> = self.senders(links).collect();
        if models.is_empty() {
            return Ok((None, None));
        }
        if let Some(obstacle) = Obstacle::of(setup.shape, device.samples()) {
            let mixture = self.combined(links, target)?;
            let known = mixture.as_ref().zip(device.truth.as_ref());
            let row = StudentRow {
                mixture_accuracy: known.map(|(mixture, truth)| mixture.accuracy(truth)),
                ..self.row_of(method, target, adapt::Tried::Not(obstacle))
            };
            return Ok((mixture, Some(Tried { student: None, row, guards: Vec::new() })));
        }
        let at = setup.target(Place::new(target), &models, &device.inputs);
        let name = format!("{}.safetensors", device.name);
        // A student is kept as soon as it is there.
        let student = match folder.read(&name)? {
            Some(file) => Params::from_safetensors(&setup.spec, &file)
                .map_err(|e| folder.broken(&name, &e.to_string()))?,
            None => {
                let trained = at.student(setup.schooling, &mut || self.run.watch.flow())?;
                let student = trained.ok_or(Error::Stopped)?;
                folder.write(&name, &student.to_safetensors(&setup.spec)?)?;
                student
            }
        };
        let judged = at.judge(&student)?;
        let tried = self.tried(method, target, &judged);
        let student = Some(student).filter(|_| judged.is_used(setup.adapt));
        let tried = Tried { student, ..tried };
        Ok((Some(judged.predictions(setup.adapt)), Some(tried)))
    }

    /// The tables of a method's students.
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
            outcome: tried.to_string(),
            tried: false,
            stability: None,
            mixture_stability: None,
            accepted: false,
            used: false,
            mixture_accuracy: None,
            student_accuracy: None,
            gflop: 0.0,
            joules: None,
        }
    }

    /// What came of a target's student.
    fn tried(&self, method: Method, target: usize, judged: &Judged) -> Tried {
        let (setup, device) = (&self.run.setup, &self.run.fleet.devices[target]);
        let accuracy = |of: &Predictions| device.truth.as_ref().map(|truth| of.accuracy(truth));
        let (mixture_accuracy, student_accuracy) =
            (accuracy(&judged.mixture), accuracy(&judged.with_student));
        let verdict = judged.verdict(Guard::default());
        let gflop = setup.schooling.operations(&setup.spec) as f64 / 1e9;
        let row = StudentRow {
            tried: true,
            stability: Some(verdict.score),
            mixture_stability: Some(verdict.of_mixture),
            accepted: verdict.accepted,
            used: judged.is_used(setup.adapt),
            mixture_accuracy,
            student_accuracy,
            gflop,
            joules: self.run.config.energy.gflop_per_joule.map(|per_joule| gflop / per_joule),
            ..self.row_of(method, target, judged.tried(setup.adapt))
        };
        let guards = Guard::ALL.map(|guard| {
            let verdict = judged.verdict(guard);
            GuardRow {
                target: device.name.clone(),
                guard: guard.name().to_owned(),
                score: verdict.score,
                of_mixture: verdict.of_mixture,
                accepted: verdict.accepted,
                gain: student_accuracy.zip(mixture_accuracy).map(|(with, alone)| with - alone),
            }
        });
        Tried { student: None, row, guards: guards.to_vec() }
    }
}
