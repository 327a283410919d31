//! The models of a device on disk, each with a file that says what it was made of: a model is never taken for one made of something else.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use stlf_config::Config;
use stlf_config::fleet::DeviceData;
use stlf_learn::{Layout, Params};
use stlf_method::expectation::Trial;
use stlf_method::learner::UserLearner;
use stlf_method::local_training::OwnError;
use stlf_planning::plan::Way;
use stlf_protocol::Device;
use stlf_protocol::device::{Combined, HandedOn, Schooled, Trained};
use stlf_protocol::identity::{hex, unhex};

use super::{StateDir, failed};
use crate::service::Error;

const TRAINING: &str = "training.json";
const MODEL: &str = "model.safetensors";
const STUDENT: &str = "student.safetensors";
const SCHOOLED: [&str; 2] = ["schooled.safetensors", "schooled.json"];

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
    /// Returns the stored training, if it is one of these settings and data.
    pub(in crate::service) fn training(&self, layout: &Layout) -> Option<Trained> {
        let kept = self.read_json::<Training>(TRAINING).filter(|kept| kept.of == self.of)?;
        let model = Params::from_safetensors(layout, &self.read(MODEL)?).ok()?;
        let Training { measured, errors, source_error, trial, .. } = kept;
        let trial = trial.filter(Trial::is_possible);
        Some(Trained { model, error: OwnError { measured, errors, source_error }, trial })
    }

    /// Returns what this device made of models that were handed to it, of files that are whole and of these settings and data.
    pub(in crate::service) fn relayed(&self, layout: &Layout) -> BTreeMap<Way, HandedOn> {
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
    pub(super) fn keep_relayed(
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
    pub(in crate::service) fn schooled(&self, layout: &Layout) -> Option<Schooled> {
        let [model, origin] = SCHOOLED;
        let school = self.read_json::<School>(origin)?;
        let file = self.read(model).filter(|file| hash(file) == school.student)?;
        let of = unhex(&school.of)?.try_into().ok()?;
        Some(Schooled { of, student: Params::from_safetensors(layout, &file).ok()? })
    }

    /// Stores the student that this device trained, used or not, so that it is not trained again of the same: first the model, then the file that says what it
    /// was made of.
    pub(super) fn keep_schooled(
        &self,
        known: &Schooled,
        layout: &Layout,
    ) -> Result<(), stlf_data::Error> {
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
    pub(in crate::service) fn keep_training(&self, device: &Device) -> Result<(), Error> {
        self.keep_training_of(device, &self.of)
    }

    /// Stores a training on data with this hash: first the model, then the file that declares it valid.
    pub(in crate::service) fn keep_training_of(
        &self,
        device: &Device,
        of: &str,
    ) -> Result<(), Error> {
        if let Some(Trained { model, error, trial }) = device.trained() {
            self.folder.write_durably(MODEL, &model.to_safetensors(device.layout())?)?;
            let OwnError { measured, errors, source_error } = *error;
            let (of, trial) = (of.to_owned(), *trial);
            let kept = Training { of, measured, errors, source_error, trial };
            self.folder.write_json_durably(TRAINING, &kept)?;
        }
        Ok(())
    }

    /// Stores the student that the predictions are of, if any; that of an earlier epoch is no part of them.
    pub(super) fn keep_student(
        &self,
        of: &Combined,
        layout: &Layout,
    ) -> Result<(), stlf_data::Error> {
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
}

/// Returns a hash of the settings and data that a training depends on.
pub(in crate::service) fn training_of(
    config: &Config,
    own: &DeviceData,
    user: Option<&UserLearner>,
) -> String {
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
            inputs: inputs.as_ref().into(),
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
