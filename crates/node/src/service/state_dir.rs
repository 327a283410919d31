//! The files of a device, with which it can be killed at any moment and continue: its training, what it made of models that were handed
//! to it, its scale, the last epoch, the plan, the predictions, the mixture.
//! Every file appears whole or not at all, and what a device must not forget is on disk before it goes on, even if the power fails.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use stlf_config::Config;
use stlf_config::fleet::DeviceData;
use stlf_data::atomic_folder::Folder;
use stlf_data::features::OwnScale;
use stlf_learn::{Layout, Params};
use stlf_method::expectation::Trial;
use stlf_method::learner::UserLearner;
use stlf_method::local_training::OwnError;
use stlf_method::predictions::PredictionRow;
use stlf_planning::plan::Way;
use stlf_protocol::device::{Combined, HandedOn, Schooled, Trained};
use stlf_protocol::identity::{hex, unhex};
use stlf_protocol::privacy_ledger::Ledger;
use stlf_protocol::publication_record::Record;
use stlf_protocol::reply_record::ReplyRecord;
use stlf_protocol::roster::{Place, Roster};
use stlf_protocol::wire::Plan;
use stlf_protocol::{Device, SignedRoster};

use super::address_book::AddressBook;
use super::event::{Line, now};
use super::event_log::EventLog;
use super::publishing::Publications;
use super::{Error, memory, mixture};
use crate::data_change::DataChange;
use crate::network::{Event, View};
use crate::protection::Protection;
use crate::status_file::{FILE as STATUS, StatusFile};

const EPOCH: &str = "epoch.json";
const TRAINING: &str = "training.json";
const MODEL: &str = "model.safetensors";
const PLAN: &str = "plan.json";
const PREDICTIONS: &str = "predictions.csv";
const STUDENT: &str = "student.safetensors";
const SCHOOLED: [&str; 2] = ["schooled.safetensors", "schooled.json"];
const LEDGER: &str = "privacy.json";
const RECORD: &str = "published.json";
const REPLIES: &str = "replies.json";

/// The file with the newest roster that the device has received.
pub(crate) const ROSTER: &str = "roster.json";

/// The file in which a device's own scale is kept.
pub(crate) const SCALE: &str = "scale.json";

/// The folder in which models are kept as they arrive.
pub(super) const MODELS: &str = "models";

/// A device's folder, with the data and classes that its files are about.
pub(super) struct StateDir {
    folder: Folder,
    events: EventLog,
    own: DeviceData,
    classes: Vec<String>,
    /// The name of the user's learner, where it has one.
    learner: Option<String>,
    /// A hash of the settings and data that trainings depend on.
    of: String,
    protection: Option<Protection>,
    /// The data that the device has from the next epoch on, with their hash.
    coming: Option<(DeviceData, String)>,
    /// How often the device has got other data.
    renewals: usize,
    /// What has become of its table, which is shown with its status.
    change: Option<DataChange>,
    /// Whether divergences were told that are not on disk yet.
    has_told: bool,
    addresses: AddressBook,
}

/// The last epoch that this device took part in.
#[derive(Serialize, Deserialize)]
struct Epoch {
    epoch: u64,
}

/// The result of the stored training, with a hash of the settings and data that it is of.
#[derive(Serialize, Deserialize)]
struct Training {
    of: String,
    measured: usize,
    errors: usize,
    source_error: f64,
    #[serde(default)]
    trial: Option<Trial>,
}

/// The origin of the stored relayed model: hashes of the settings and data, of the model that was handed over, and of the file itself, so
/// that it is never taken for a model made of something else.
#[derive(Serialize, Deserialize)]
struct Relay {
    of: String,
    handed: String,
    relayed: String,
    #[serde(default)]
    as_handed: Option<Trial>,
    #[serde(default)]
    as_sent: Option<Trial>,
}

/// The origin of the stored student: a hash of all that it was made of, and of the file itself.
#[derive(Serialize, Deserialize)]
struct School {
    of: String,
    student: String,
}

impl StateDir {
    /// Opens the folder of a device with these settings and this data.
    pub(super) fn open(
        path: &Path,
        config: &Config,
        own: DeviceData,
        classes: Vec<String>,
        user: Option<&UserLearner>,
    ) -> Result<StateDir, stlf_data::Error> {
        let folder = Folder::open(path)?;
        folder.sweep()?;
        let events = EventLog::open(&folder)?;
        let of = training_of(config, &own, user);
        let learner = user.map(|user| user.name.clone());
        let addresses = AddressBook::read(&folder);
        Ok(StateDir {
            folder,
            events,
            own,
            classes,
            learner,
            of,
            protection: None,
            coming: None,
            renewals: 0,
            change: None,
            has_told: false,
            addresses,
        })
    }

    /// Returns the newest roster that this device has received.
    pub(super) fn roster(path: &Path) -> Option<SignedRoster> {
        SignedRoster::read(&std::fs::read(path.join(ROSTER)).ok()?).ok()
    }

    /// Returns the last epoch and plan. A file that cannot be read counts as lost.
    pub(super) fn epoch(&self) -> (u64, Option<Plan>) {
        let epoch = self.read_json::<Epoch>(EPOCH);
        let plan = self.read_json::<Plan>(PLAN);
        let number = epoch.map_or(0, |epoch| epoch.epoch);
        (number.max(plan.as_ref().map_or(0, |plan| plan.epoch)), plan)
    }

    /// Returns where other devices were when they were connected last.
    pub(super) fn addresses(&self, roster: &Roster) -> BTreeMap<Place, SocketAddr> {
        self.addresses.places(roster)
    }

    fn read(&self, name: &str) -> Option<Vec<u8>> {
        self.folder.read(name).ok().flatten()
    }

    fn read_json<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_slice(&self.read(name)?).ok()
    }

    /// Returns the stored training, if it is one of these settings and data.
    pub(super) fn training(&self, layout: &Layout) -> Option<Trained> {
        let kept = self.read_json::<Training>(TRAINING).filter(|kept| kept.of == self.of)?;
        let model = Params::from_safetensors(layout, &self.read(MODEL)?).ok()?;
        let Training { measured, errors, source_error, trial, .. } = kept;
        let trial = trial.filter(Trial::is_possible);
        Some(Trained { model, error: OwnError { measured, errors, source_error }, trial })
    }

    /// Returns what this device made of models that were handed to it, of files that are whole and of these settings and data.
    pub(super) fn relayed(&self, layout: &Layout) -> BTreeMap<Way, HandedOn> {
        let known = |way: Way| Some((way, self.relayed_on(way, layout)?));
        Way::ALL.into_iter().filter_map(known).collect()
    }

    fn relayed_on(&self, way: Way, layout: &Layout) -> Option<HandedOn> {
        let [model, origin] = relay_files(way);
        let relay = self.read_json::<Relay>(origin).filter(|relay| relay.of == self.of)?;
        let file = self.read(model).filter(|file| hash(file) == relay.relayed)?;
        let handed = unhex(&relay.handed)?.try_into().ok()?;
        let trained = Params::from_safetensors(layout, &file).ok()?;
        let [as_handed, as_sent] =
            [relay.as_handed, relay.as_sent].map(|trial| trial.filter(Trial::is_possible));
        Some(HandedOn { handed, trained, as_handed, as_sent })
    }

    /// Stores what this device made of the model that was handed to it: first the model, then the file that says what it was made of.
    fn keep_relayed(
        &self,
        way: Way,
        known: &HandedOn,
        layout: &Layout,
    ) -> Result<(), stlf_data::Error> {
        // A model that cannot be written as a file is trained again after a restart.
        let Ok(file) = known.trained.to_safetensors(layout) else { return Ok(()) };
        let [model, origin] = relay_files(way);
        self.folder.write_durably(model, &file)?;
        let (of, handed, relayed) = (self.of.clone(), hex(&known.handed), hash(&file));
        let HandedOn { as_handed, as_sent, .. } = *known;
        self.folder.write_json_durably(origin, &Relay { of, handed, relayed, as_handed, as_sent })
    }

    /// Returns the student that this device trained last, of a file that is whole.
    pub(super) fn schooled(&self, layout: &Layout) -> Option<Schooled> {
        let [model, origin] = SCHOOLED;
        let school = self.read_json::<School>(origin)?;
        let file = self.read(model).filter(|file| hash(file) == school.student)?;
        let of = unhex(&school.of)?.try_into().ok()?;
        Some(Schooled { of, student: Params::from_safetensors(layout, &file).ok()? })
    }

    /// Stores the student that this device trained, used or not, so that it is not trained again of the same: first the model, then the file that says what it
    /// was made of.
    fn keep_schooled(&self, known: &Schooled, layout: &Layout) -> Result<(), stlf_data::Error> {
        let ([model, origin], of) = (SCHOOLED, hex(&known.of));
        if self.read_json::<School>(origin).is_some_and(|school| school.of == of) {
            return Ok(());
        }
        // A student that cannot be written as a file is trained again after a restart.
        let Ok(file) = known.student.to_safetensors(layout) else { return Ok(()) };
        self.folder.write(model, &file)?;
        self.folder.write_json(origin, &School { of, student: hash(&file) })
    }

    /// Stores the training of a device with the data that it has.
    pub(super) fn keep_training(&self, device: &Device) -> Result<(), Error> {
        self.keep_training_of(device, &self.of)
    }

    /// Stores a training on data with this hash: first the model, then the file that declares it valid.
    pub(super) fn keep_training_of(&self, device: &Device, of: &str) -> Result<(), Error> {
        if let Some(Trained { model, error, trial }) = device.trained() {
            self.folder.write_durably(MODEL, &model.to_safetensors(device.layout())?)?;
            let OwnError { measured, errors, source_error } = *error;
            let (of, trial) = (of.to_owned(), *trial);
            let kept = Training { of, measured, errors, source_error, trial };
            self.folder.write_json_durably(TRAINING, &kept)?;
        }
        Ok(())
    }

    /// Returns what this device has published with noise. Only a file that is not there means nothing.
    pub(super) fn ledger(&self) -> Result<Ledger, Error> {
        let Some(bytes) = self.folder.read(LEDGER)? else { return Ok(Ledger::default()) };
        let path = self.folder.file(LEDGER);
        Ledger::read(&bytes).map_err(|message| Error::Ledger { path, message })
    }

    /// Returns what this device has published without noise. Only a file that is not there means nothing.
    pub(super) fn record(&self) -> Result<Record, Error> {
        let Some(bytes) = self.folder.read(RECORD)? else { return Ok(Record::default()) };
        let path = self.folder.file(RECORD);
        Record::read(&bytes).map_err(|message| Error::Ledger { path, message })
    }

    /// Returns what this device has told of divergences. Only a file that is not there means nothing.
    pub(super) fn replies(&self) -> Result<ReplyRecord, Error> {
        let Some(bytes) = self.folder.read(REPLIES)? else { return Ok(ReplyRecord::default()) };
        let path = self.folder.file(REPLIES);
        ReplyRecord::read(&bytes).map_err(|message| Error::Ledger { path, message })
    }

    /// Stores the student that the predictions are of, if any; that of an earlier epoch is no part of them.
    fn keep_student(&self, of: &Combined, layout: &Layout) -> Result<(), stlf_data::Error> {
        match of.student.as_ref().and_then(|own| own.params.to_safetensors(layout).ok()) {
            Some(file) => self.folder.write(STUDENT, &file),
            None => match std::fs::remove_file(self.folder.file(STUDENT)) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    Err(failed(&self.folder.file(STUDENT))(e))
                }
                _ => Ok(()),
            },
        }
    }

    /// Stores the scale of this device's features. Nothing that was computed by it may be sent before this returns.
    pub(super) fn keep_scale(&self, scale: &OwnScale) -> Result<(), Error> {
        Ok(self.folder.write_json_durably(SCALE, scale)?)
    }

    /// Stores what this device has published, or is about to. Nothing may be sent before this returns.
    pub(super) fn keep_publications(&self, publications: &Publications) -> Result<(), Error> {
        match publications {
            Publications::Noisy(ledger) => self.folder.write_json_durably(LEDGER, ledger)?,
            Publications::Exact(record) => self.folder.write_json_durably(RECORD, record)?,
            Publications::Uncounted => {}
        }
        Ok(())
    }

    /// From when the device has got them on, files are about these data.
    pub(super) fn expect_data(&mut self, own: DeviceData, of: String) {
        self.coming = Some((own, of));
    }

    /// Whether the device is to get other data with the next epoch.
    pub(super) fn awaits_data(&self) -> bool {
        self.coming.is_some()
    }

    /// Takes what has become of the device's table, which is shown with its status.
    pub(super) fn set_change(&mut self, change: Option<DataChange>) {
        self.change = change;
    }

    /// Takes what protects the samples of this device, which is shown with its status.
    pub(super) fn set_protection(&mut self, protection: Protection) {
        self.protection = Some(protection);
    }

    /// Returns what protects the samples of this device in the format of Prometheus.
    pub(super) fn protection_metrics(&self) -> String {
        self.protection.as_ref().map(Protection::metrics).unwrap_or_default()
    }

    /// Shows in the last status, if there is one, that the device refuses to publish.
    pub(super) fn show_refusal(&self, protection: Protection) -> Result<(), Error> {
        let last = self.folder.read(STATUS)?;
        let last = last.and_then(|bytes| serde_json::from_slice::<StatusFile>(&bytes).ok());
        if let Some(last) = last {
            let shown = StatusFile { protection: Some(protection), ..last };
            self.folder.write_json(STATUS, &shown)?;
        }
        Ok(())
    }

    /// Stores how many events were not told.
    pub(super) fn note_untold(
        &mut self,
        view: &View<'_>,
        events: u64,
    ) -> Result<(), stlf_data::Error> {
        self.events.add(&Line::untold(view, events).to_json())
    }

    /// Stores what an event changed.
    pub(super) fn hear(&mut self, view: &View<'_>, event: &Event) -> Result<(), stlf_data::Error> {
        if view.device.renewals() > self.renewals
            && let Some((own, of)) = self.coming.take()
        {
            self.renewals = view.device.renewals();
            (self.own, self.of) = (own, of);
        }
        let folder = &self.folder;
        self.has_told |= *event == Event::Measured;
        if let Some(told) = view.device.told().filter(|_| self.has_told) {
            folder.write_json_durably(REPLIES, told)?;
            self.has_told = false;
        }
        match event {
            Event::Began { epoch, .. } => {
                folder.write_json_durably(EPOCH, &Epoch { epoch: *epoch })?;
            }
            Event::Planned { .. } => {
                if let Some(plan) = view.device.plan() {
                    folder.write_json_durably(PLAN, plan)?;
                }
            }
            Event::TrainedOn { way, .. } => {
                if let Some(known) = view.device.handed_on().get(way) {
                    self.keep_relayed(*way, known, view.device.layout())?;
                }
            }
            Event::Ended => {
                if let Some(combined) = view.device.combined() {
                    let predictions = &combined.predictions;
                    let rows = PredictionRow::all(predictions, &self.own.places, &self.classes);
                    folder.write_csv(PREDICTIONS, &rows)?;
                    self.keep_student(combined, view.device.layout())?;
                    if let Some(schooled) = &combined.schooled {
                        self.keep_schooled(schooled, view.device.layout())?;
                    }
                }
                mixture::keep(folder, view, &self.own, &self.classes, self.learner.as_deref())?;
            }
            Event::Alive => self.addresses.keep(folder, view.seen, view.roster)?,
            Event::Roster(roster) => folder.write_durably(ROSTER, roster.to_json().as_bytes())?,
            _ => {}
        }
        let status = view.status();
        if *event != Event::Alive {
            self.events.add(&Line::new(view, event).to_json())?;
        }
        let most_memory = memory::most();
        let (protection, data) = (self.protection.clone(), self.change.clone());
        let shown = StatusFile { seconds: now(), most_memory, protection, data, status };
        folder.write_json(STATUS, &shown)
    }

    /// Returns the accuracy of the device as a target, if the true classes are known.
    pub(super) fn accuracy(&self, device: &Device) -> Option<f64> {
        Some(device.outcome()?.accuracy(self.own.truth.as_ref()?))
    }
}

/// Returns a hash of the settings and data that a training depends on.
pub(super) fn training_of(config: &Config, own: &DeviceData, user: Option<&UserLearner>) -> String {
    let DeviceData { inputs, labels, .. } = own;
    // Nobody trains on answers but a student, which has a hash of its own.
    let data = stlf_config::Data { answers: None, ..config.data.clone() };
    // Nor does how a device finds others change what it learns.
    let config = Config { data, node: stlf_config::Node::default(), ..config.clone() };
    let mut hasher = Sha256::new_with_prefix(config.hash().unwrap_or_default());
    if let Some(user) = user {
        hasher.update(format!("{}\n{}\n", user.name, user.learner.layout()));
    }
    // Their number keeps inputs and labels apart.
    hasher.update((inputs.len() as u64).to_le_bytes());
    inputs.iter().for_each(|x| hasher.update(x.to_le_bytes()));
    labels.iter().for_each(|label| hasher.update(label.to_le_bytes()));
    hex(&hasher.finalize())
}

/// Returns the names of the files with the model that a device made on a way, and with what it was made of.
fn relay_files(way: Way) -> [&'static str; 2] {
    match way {
        Way::First => ["relayed.safetensors", "relayed.json"],
        Way::Second => ["relayed-again.safetensors", "relayed-again.json"],
    }
}

/// Returns the SHA-256 of a file, as digits.
fn hash(file: &[u8]) -> String {
    hex(&Sha256::digest(file))
}

/// Makes an error from what the operating system says about a file.
fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> stlf_data::Error + '_ {
    |source| stlf_data::Error::File { path: path.to_owned(), source }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use stlf_data::{Scaling, Shape};
    use stlf_learn::Spec;

    use super::*;

    fn own(inputs: &[f32], labels: &[u16]) -> DeviceData {
        DeviceData {
            name: "gate".to_owned(),
            places: (0..inputs.len()).collect(),
            inputs: inputs.to_vec(),
            scaling: Scaling::Pixels,
            labels: labels.to_vec(),
            unlabeled: 0,
            truth: None,
            answers: Vec::new(),
        }
    }

    #[test]
    fn a_training_is_of_its_settings_and_data() {
        let of = |inputs: &[f32], labels: &[u16], config: &Config| {
            training_of(config, &own(inputs, labels), None)
        };
        let config = Config::default();
        let known = of(&[0.5, 1.0], &[0, 1], &config);
        assert_eq!(known, of(&[0.5, 1.0], &[0, 1], &config));
        assert_eq!(known.len(), 64);
        let longer = config.with(["training.steps=7"]).unwrap();
        for other in [
            of(&[0.5, 1.5], &[0, 1], &config),
            of(&[0.5, 1.0], &[1, 1], &config),
            of(&[0.5], &[0, 1], &config),
            of(&[0.5, 1.0], &[0, 1], &longer),
        ] {
            assert_ne!(known, other);
        }
    }

    #[test]
    fn a_relayed_model_is_what_its_file_says_or_none() {
        let inside = tempfile::tempdir().unwrap();
        let open = |labels: &[u16]| {
            let own = own(&[0.5, 1.0], labels);
            StateDir::open(inside.path(), &Config::default(), own, Vec::new(), None).unwrap()
        };
        let spec = Spec::mlp(Shape::grey(4), 2).unwrap();
        let [first, second, other] = [1, 2, 3].map(|seed| Params::initial(&spec, seed));
        let state = open(&[0, 1]);
        assert_eq!(state.relayed(spec.as_ref()), BTreeMap::new());
        let trial = |errors| Some(Trial { labels: 9, errors, doubt: 0.1 });
        let made = |handed: u8, trained| {
            let (as_handed, as_sent) = (trial(3), trial(1));
            HandedOn { handed: [handed; 32], trained, as_handed, as_sent }
        };
        let mut known =
            BTreeMap::from([(Way::First, made(7, first)), (Way::Second, made(8, second))]);
        for (way, made) in &known {
            state.keep_relayed(*way, made, spec.as_ref()).unwrap();
        }
        assert_eq!(open(&[0, 1]).relayed(spec.as_ref()), known);
        assert_eq!(open(&[1, 1]).relayed(spec.as_ref()), BTreeMap::new(), "of other data");
        // Killed after a model was replaced, and before the file that says what it was made of.
        let [model, _] = relay_files(Way::Second);
        state.folder.write(model, &other.to_safetensors(&spec).unwrap()).unwrap();
        known.remove(&Way::Second);
        assert_eq!(state.relayed(spec.as_ref()), known);
    }

    #[test]
    fn a_student_is_what_its_file_says_or_none() {
        let inside = tempfile::tempdir().unwrap();
        let own = own(&[0.5, 1.0], &[0, 1]);
        let state =
            StateDir::open(inside.path(), &Config::default(), own, Vec::new(), None).unwrap();
        let spec = Spec::mlp(Shape::grey(4), 2).unwrap();
        assert_eq!(state.schooled(spec.as_ref()), None);
        let [first, second] = [1, 2]
            .map(|k: u8| Schooled { of: [k; 32], student: Params::initial(&spec, u64::from(k)) });
        for student in [first, second.clone()] {
            state.keep_schooled(&student, spec.as_ref()).unwrap();
            assert_eq!(state.schooled(spec.as_ref()), Some(student));
        }
        // Killed after the student was replaced, and before the file that says what it was made of.
        let file = Params::initial(&spec, 3).to_safetensors(&spec).unwrap();
        state.folder.write(SCHOOLED[0], &file).unwrap();
        assert_eq!(state.schooled(spec.as_ref()), None);
    }
}
