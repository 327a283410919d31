//! Models at their targets: sent, combined, and put to work.

use std::sync::OnceLock;

use crate::baselines::Assignment;
use rayon::prelude::*;
use stlf_learn::Params;
use stlf_learn::evaluate::{Predictions, likeliest};
use stlf_method::combine::Combine;
use stlf_method::method::Method;
use stlf_method::predictions::PredictionRow;
use stlf_method::student::Student;
use stlf_planning::Problem;
use stlf_planning::device::Role;
use stlf_planning::plan::{Plan, PlanLink};

use stlf_config::fleet::DeviceData;
use stlf_config::model_bytes;

use super::SeedRun;
use super::expectation::{self, TriedModels};
use super::handover::REFUSED;
use super::student::{Adapted, Tried};
use crate::record::{ClassRow, ConfusionRow, MeasuringRow, RefusedRow, Row};
use crate::{Error, Folder, Stage};

/// The name of the folder with what each target ended with.
pub const FOLDER: &str = "targets";

/// How often targets took one class for another.
pub const CONFUSION: &str = "confusion.csv";

/// How often classes are there, and how often they are predicted.
pub const CLASSES: &str = "classes.csv";

/// What one target ends with under some method.
pub(super) struct Served {
    pub(super) target: usize,
    /// What the target says of its samples; `None` if it has no model.
    pub(super) predictions: Option<Predictions>,
    /// The target's links, with the weights of the models that come over them.
    pub(super) links: Vec<PlanLink>,
    /// The student, if the target uses one.
    pub(super) student: Option<Student>,
    pub(super) row: Row,
}

/// What all methods share in one seed.
pub struct Transfer<'a> {
    pub(super) run: &'a SeedRun<'a>,
    /// The model of each device with labels, as the device sends it.
    pub(super) models: Vec<Option<Params>>,
    /// As each device has trained it on its own labels, where it has any; none of what is tried beside the plan.
    pub(super) trained: Option<&'a [Option<Params>]>,
    pub(super) problem: &'a Problem,
    /// What every device sent before anything could be planned.
    pub(super) measuring: &'a [MeasuringRow],
    /// Whether each device is conspicuous by its numbers.
    pub(super) conspicuous: Vec<bool>,
    /// The roles, links and hand-overs of ST-LF's own plan.
    pub(super) plan: Assignment,
    /// The trials that go along with models after hand-overs.
    pub(super) tried: TriedModels,
    /// Models that sources refused on the way.
    pub(super) refused: Vec<RefusedRow>,
    /// `[sender][receiver]`: what each device's model says of each device's data, once somebody asked.
    predictions: Vec<Vec<OnceLock<Predictions>>>,
}

impl<'a> Transfer<'a> {
    /// Returns what all methods share once the plan is made.
    pub fn new(
        run: &'a SeedRun<'a>,
        models: &'a [Option<Params>],
        problem: &'a Problem,
        measuring: &'a [MeasuringRow],
        plan: &Plan,
    ) -> Transfer<'a> {
        let sent = sent(run, models);
        let after = Transfer::of(run, sent, problem, measuring, &Assignment::from(plan));
        Transfer { trained: Some(models), ..after }
    }

    /// Returns what all methods share, with models as their devices send them.
    pub(super) fn of(
        run: &'a SeedRun<'a>,
        models: Vec<Option<Params>>,
        problem: &'a Problem,
        measuring: &'a [MeasuringRow],
        plan: &Assignment,
    ) -> Transfer<'a> {
        let n = run.fleet.len();
        let predictions = (0..n).map(|_| (0..n).map(|_| OnceLock::new()).collect()).collect();
        let (plan, tried, refused) = (plan.clone(), TriedModels::new(), Vec::new());
        let conspicuous = problem.conspicuous();
        Transfer {
            run,
            models,
            trained: None,
            problem,
            measuring,
            conspicuous,
            plan,
            tried,
            refused,
            predictions,
        }
    }

    /// Sends models by the plan. Every target keeps what it makes of its samples and, where parameters are averaged,
    /// its model; every device, what it ends with as a bundle.
    pub fn transfer(&self, classes: &[String]) -> Result<Vec<Row>, Error> {
        self.forget_other_answers(classes)?;
        let results = self.run.folder.folder("results")?;
        let name = table(Method::StLf);
        if let Some(rows) = results.read_csv(&name)? {
            return Ok(rows);
        }
        let folder = self.run.folder.folder(FOLDER)?;
        let handed_on = self.after_handovers(&self.plan)?;
        let sent = handed_on.as_ref().unwrap_or(self);
        let targets = self.plan.with_role(Role::Target).count();
        let count = self.run.watch.counter(Stage::Transfer, targets);
        let served = sent.serve(Method::StLf, &self.plan)?;
        let confusion: Vec<Vec<ConfusionRow>> = (served.par_iter())
            .map(|served| {
                let rows = sent.keep(&folder, served, classes)?;
                count.one()?;
                Ok(rows)
            })
            .collect::<Result<_, Error>>()?;
        self.run.folder.write_csv(CONFUSION, &confusion.concat())?;
        self.run.folder.write_csv(CLASSES, &self.classes(&served, classes))?;
        let tried = sent.all_tried()?;
        let expected = sent.expected(&served, &tried);
        self.run.folder.write_csv(expectation::TABLE, &expected)?;
        let examined = sent.refused_by_examiners(self, &self.plan)?;
        let refused: Vec<&RefusedRow> = sent.refused.iter().chain(&examined).collect();
        if !refused.is_empty() {
            self.run.folder.write_csv(REFUSED, &refused)?;
        }
        sent.keep_bundles(&served, &expected, classes)?;
        let mut rows = self.with_measuring(Method::StLf, served);
        self.count_handovers(&mut rows, &self.plan);
        self.count_examinations(Method::StLf, &mut rows, &self.plan);
        sent.count_trials(Method::StLf, &self.plan, &mut rows, &tried);
        self.count_warm_up(&mut rows)?;
        results.write_csv(&name, &rows)?;
        Ok(rows)
    }

    /// How often each class is there, and how often targets predict it.
    fn classes(&self, served: &[Served], classes: &[String]) -> Vec<ClassRow> {
        let row = |class: &String| ClassRow {
            class: class.clone(),
            labels: 0,
            predicted: 0,
            samples: 0,
            right: 0,
        };
        let mut rows: Vec<ClassRow> = classes.iter().map(row).collect();
        let labels = self.run.fleet.devices.iter().flat_map(|device| &device.labels);
        labels.for_each(|&class| rows[usize::from(class)].labels += 1);
        for Served { target, predictions, .. } in served {
            let Some(predictions) = predictions else { continue };
            let given = predictions.probabilities().map(|p| usize::from(likeliest(p).0));
            let given: Vec<usize> = given.collect();
            given.iter().for_each(|&class| rows[class].predicted += 1);
            let truth = self.run.fleet.devices[*target].truth.iter().flatten();
            for (&class, given) in truth.zip(given) {
                let row = &mut rows[usize::from(class)];
                row.samples += 1;
                row.right += usize::from(given == usize::from(class));
            }
        }
        rows
    }

    /// Keeps what one target ends with, and says what it took for what.
    fn keep(
        &self,
        folder: &Folder,
        served: &Served,
        classes: &[String],
    ) -> Result<Vec<ConfusionRow>, Error> {
        let device = &self.run.fleet.devices[served.target];
        let links = self.plan.incoming(served.target);
        let Some(predictions) = &served.predictions else { return Ok(Vec::new()) };
        let rows = PredictionRow::all(predictions, &device.places, classes);
        folder.write_csv(&format!("{}.csv", device.name), &rows)?;
        if self.run.setup.combine == Combine::Parameters {
            let average = Params::average(self.senders(links))?;
            let file = average.to_safetensors(self.run.layout())?;
            folder.write(&format!("{}.safetensors", device.name), &file)?;
        }
        let counts = device.truth.as_ref().map(|truth| predictions.confusion(truth));
        let rows = counts.into_iter().flatten().zip(classes).flat_map(|(given, class)| {
            let seen = given.into_iter().zip(classes).filter(|(samples, _)| *samples > 0);
            seen.map(|(samples, given)| ConfusionRow {
                target: device.name.clone(),
                class: class.clone(),
                given: given.clone(),
                samples,
            })
            .collect::<Vec<_>>()
        });
        Ok(rows.collect())
    }

    /// Serves the targets of one method, and returns the rows of that.
    pub(super) fn rows(&self, method: Method, assigned: &Assignment) -> Result<Vec<Row>, Error> {
        Ok(self.with_measuring(method, self.serve(method, assigned)?))
    }

    /// The rows of a method, with what measuring cost where it needs that.
    fn with_measuring(&self, method: Method, served: Vec<Served>) -> Vec<Row> {
        let mut rows: Vec<Row> = served.into_iter().map(|served| served.row).collect();
        // Devices measure once for all targets, so the first one has it, and a sum over targets is a total.
        if let Some(first) = rows.first_mut().filter(|_| method.needs_divergences()) {
            first.measuring_joules = self.measuring.iter().map(|row| row.joules).sum();
            first.measuring_bytes = self.measuring.iter().map(|row| row.bytes).sum();
        }
        rows
    }

    /// What the targets of a method end with, students and all.
    fn serve(&self, method: Method, assigned: &Assignment) -> Result<Vec<Served>, Error> {
        let targets: Vec<usize> = assigned.with_role(Role::Target).collect();
        let students = self.students(method, assigned)?;
        let served = targets.par_iter().map(|&target| -> Result<_, Error> {
            let planned = &self.believed(method, assigned, target)?;
            let adapted = match &students {
                Some(folder) => self.with_student(method, folder, planned, target)?,
                None => None,
            };
            let row = |made: Option<&Predictions>| self.row(method, assigned, target, made);
            Ok(match adapted {
                Some(Adapted { predictions, accuracy, links, student, tried }) => {
                    let row = Row { accuracy, ..row(Some(&predictions)) };
                    let predictions = Some(predictions);
                    (Served { target, predictions, links, student, row }, Some(tried))
                }
                None => {
                    let (predictions, links) = (self.combined(planned, target)?, planned.to_vec());
                    let (row, student) = (row(predictions.as_ref()), None);
                    (Served { target, predictions, links, student, row }, None)
                }
            })
        });
        let served: Vec<(Served, Option<Tried>)> = served.collect::<Result<_, Error>>()?;
        let (served, tried): (Vec<Served>, Vec<Option<Tried>>) = served.into_iter().unzip();
        if students.is_some() {
            self.write_students(method, tried.into_iter().flatten().collect())?;
        }
        Ok(served)
    }

    pub(super) fn row(
        &self,
        method: Method,
        assigned: &Assignment,
        target: usize,
        predictions: Option<&Predictions>,
    ) -> Row {
        let device = &self.run.fleet.devices[target];
        let witnesses = self.witnesses(method, assigned, target).into_iter();
        let links: Vec<usize> =
            assigned.incoming(target).iter().map(|link| link.from).chain(witnesses).collect();
        let accuracy = predictions.zip(device.truth.as_ref()).map(|(p, truth)| p.accuracy(truth));
        let joules = |from: usize| self.problem.link_energy(from, target).unwrap_or(0.0);
        Row {
            seed: self.run.setup.seed,
            method: method.name().to_owned(),
            target: device.name.clone(),
            accuracy,
            samples: device.samples(),
            links: links.len(),
            // An empty sum of floats is −0.
            joules: links.iter().map(|&from| joules(from)).fold(0.0, |sum, j| sum + j),
            all_joules: assigned.with_role(Role::Source).map(joules).sum(),
            bytes: links.len() as u64 * self.model_bytes(),
            measuring_joules: 0.0,
            measuring_bytes: 0,
            warm_up_joules: 0.0,
            warm_up_bytes: 0,
        }
    }

    /// Returns the number of bytes of one model as it is sent.
    pub(super) fn model_bytes(&self) -> u64 {
        model_bytes(self.run.layout())
    }

    /// The models that come in over these links.
    pub(super) fn senders<'l>(
        &'l self,
        links: &'l [PlanLink],
    ) -> impl Iterator<Item = (&'l Params, f64)> {
        links.iter().filter_map(|link| Some((self.models[link.from].as_ref()?, link.weight)))
    }

    /// What a target makes of the models it receives; nothing of none.
    pub(super) fn combined(
        &self,
        links: &[PlanLink],
        target: usize,
    ) -> Result<Option<Predictions>, Error> {
        let how = self.run.setup.combine;
        if how == Combine::Parameters {
            let models: Vec<(&Params, f64)> = self.senders(links).collect();
            if models.is_empty() {
                return Ok(None);
            }
            return Ok(Some(self.run.combine(target, &models)?));
        }
        let mut parts: Vec<(&Predictions, f64)> = Vec::new();
        for link in links {
            parts.extend(self.prediction(link.from, target)?.map(|made| (made, link.weight)));
        }
        Ok(how.mixed(&parts))
    }

    /// What a device would make of one other's model alone; nothing without a model.
    pub(super) fn alone(
        &self,
        sender: usize,
        receiver: usize,
    ) -> Result<Option<Predictions>, Error> {
        let how = self.run.setup.combine;
        Ok(self.prediction(sender, receiver)?.and_then(|made| how.mixed(&[(made, 1.0)])))
    }

    /// What one device's model says of another's data; nothing without a model.
    pub(super) fn prediction(
        &self,
        sender: usize,
        receiver: usize,
    ) -> Result<Option<&Predictions>, Error> {
        let Some(model) = self.models[sender].as_ref() else { return Ok(None) };
        let place = &self.predictions[sender][receiver];
        if let Some(made) = place.get() {
            return Ok(Some(made));
        }
        let made = self.run.predict(receiver, model)?;
        Ok(Some(place.get_or_init(|| made)))
    }
}

/// Returns models as their devices send them.
pub(super) fn sent(run: &SeedRun<'_>, models: &[Option<Params>]) -> Vec<Option<Params>> {
    let balanced = |(device, model): (&DeviceData, &Option<Params>)| {
        model.as_ref().map(|model| run.setup.sent(model, &device.labels))
    };
    run.fleet.devices.iter().zip(models).map(balanced).collect()
}

/// Returns the name of the table with a method's rows.
pub(crate) fn table(method: Method) -> String {
    format!("{}.csv", method.name())
}
