//! What a device with a learner of the user's ends with, as a folder: `models.json`, a file of parameters for each model, and the plan.

use std::path::Path;

use stlf_data::whole_folder::PreparedFolder;
use stlf_formats::{FileEntry, MemberEntry, ModelsFile, ModelsFormat, StudentEntry, write_json};
use stlf_learn::evaluate::Predictions;
use stlf_learn::{Layout, Params};
use stlf_method::combine::{Combine, combine_with};
use stlf_method::expectation::Expected;
use stlf_method::learner::{UserLearner, Watch};
use stlf_method::student::Student;
use stlf_planning::Role;

use crate::folder::{Files, PLAN, STUDENT, Written, bytes, checked, file_names};
use crate::{Error, Member, document};

/// The document in such a folder.
pub const DOCUMENT: &str = "models.json";

/// What a device with a learner of the user's ends with.
#[derive(Debug, Clone, PartialEq)]
pub struct Models {
    /// The device whose models they are.
    pub device: String,
    /// Its role. A source has its own model.
    pub role: Role,
    /// The epoch that they come from, on a real device.
    pub epoch: Option<u64>,
    /// The seed that they come from, in a simulation.
    pub seed: Option<u64>,
    /// The name and version of the learner.
    pub learner: String,
    /// The names of the classes, in the order of the learner's probabilities.
    pub classes: Vec<String>,
    /// Names and shapes of the tensors of every model.
    pub layout: Layout,
    /// How the predictions or the parameters of the models are combined.
    pub combine: Combine,
    /// The models that the device ends with, at least one.
    pub members: Vec<Member>,
    /// The student, if the device uses one.
    pub student: Option<Student>,
    /// The accuracy that a target may expect on its own samples, where that is known.
    pub expected: Option<Expected>,
}

/// Prepares the folder, which takes the place of the one that is there when it is published; the plan is the bytes of `stlf-plan/2`. Files
/// with the bytes of one that is known are shared with it, and those of this one are known from then on.
///
/// # Errors
/// A file cannot be written. Then the folder that is there stays as it is.
pub fn prepare(
    path: &Path,
    models: &Models,
    plan: &[u8],
    written: &mut Written,
) -> Result<PreparedFolder, Error> {
    let new = PreparedFolder::new(path)?;
    let mut files = Files::new(&new, written);
    let mut put = |name: &str, params: &Params| {
        let bytes = params.to_safetensors(&models.layout);
        files.put(format!("{name}.safetensors"), &bytes.map_err(|e| Error::Mixture(e.to_string()))?)
    };
    let mut members = Vec::new();
    for (member, name) in models.members.iter().zip(file_names(&models.members)) {
        let FileEntry { file, sha256 } = put(&name, &member.params)?;
        let (name, weight) = (member.name.clone(), member.weight);
        members.push(MemberEntry { name, weight, file, sha256 });
    }
    let student = models.student.as_ref().map(|own| -> Result<_, Error> {
        let FileEntry { file, sha256 } = put(STUDENT, &own.params)?;
        Ok(StudentEntry { file, sha256, share: own.share })
    });
    let student = student.transpose()?;
    let document = ModelsFile {
        format: ModelsFormat::V1,
        device: models.device.clone(),
        role: models.role,
        epoch: models.epoch,
        seed: models.seed,
        learner: models.learner.clone(),
        classes: models.classes.clone(),
        combine: document::combine_entry(models.combine),
        members,
        student,
        expected: models.expected.map(document::expected_entry),
        plan: files.put(PLAN.to_owned(), plan)?,
    };
    files.go_to(path);
    let mut text = Vec::new();
    write_json(&mut text, &document).map_err(|e| Error::Mixture(e.to_string()))?;
    new.write(DOCUMENT, &text)?;
    Ok(new)
}

impl Models {
    /// Reads such a folder for a learner. Every file is checked against the hash that the document has of it.
    ///
    /// # Errors
    /// The models are another learner's, or a file is missing, damaged or another one.
    pub fn read(path: &Path, user: &UserLearner) -> Result<Models, Error> {
        let at = path.join(DOCUMENT);
        let unread =
            |e: stlf_formats::Error| Error::Document { path: at.clone(), source: e.into() };
        let wrong = |value: stlf_planning::Error| unread(value.into());
        let file = ModelsFile::read(&bytes(&at)?).map_err(unread)?;
        if (&file.learner, &file.classes) != (&user.name, &user.classes) {
            let of = |name: &str, classes: &[String]| format!("{name} ({})", classes.join(", "));
            return Err(Error::OtherLearner {
                path: at,
                expected: of(&file.learner, &file.classes),
                found: of(&user.name, &user.classes),
            });
        }
        checked(path, &file.plan.file, &file.plan.sha256)?;
        let layout = user.learner.layout().clone();
        let model = |name: &str, sha256: &str| {
            let bytes = checked(path, name, sha256)?;
            Params::from_safetensors(&layout, &bytes)
                .map_err(|source| Error::Model { path: path.join(name), source })
        };
        let members = file.members.iter().map(|entry| {
            let params = model(&entry.file, &entry.sha256)?;
            Ok(Member { name: entry.name.clone(), weight: entry.weight, params })
        });
        let members = members.collect::<Result<_, Error>>()?;
        let student = file.student.as_ref().map(|own| -> Result<_, Error> {
            document::check_share(own).map_err(wrong)?;
            Ok(Student { params: model(&own.file, &own.sha256)?, share: own.share })
        });
        Ok(Models {
            members,
            student: student.transpose()?,
            device: file.device,
            role: file.role,
            epoch: file.epoch,
            seed: file.seed,
            learner: file.learner,
            classes: file.classes,
            layout,
            combine: document::combined(file.combine),
            expected: file.expected.map(document::expected).transpose().map_err(wrong)?,
        })
    }

    /// What the models come to for all samples of their learner, in the learner's own order; `None` if `watch` ended it.
    ///
    /// # Errors
    /// What the learner says.
    pub fn predict(
        &self,
        user: &UserLearner,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Predictions>, stlf_planning::Error> {
        // Samples with a label come first for a learner.
        let mut rows: Vec<usize> = (0..user.places.len()).collect();
        rows.sort_by_key(|&row| user.places[row]);
        let models: Vec<(&Params, f64)> =
            self.members.iter().map(|member| (&member.params, member.weight)).collect();
        let mut say = |model: &Params| user.learner.predict(model, &rows, watch);
        let mixed = combine_with(self.combine, &models, |_, model| say(model))?;
        let (Some(mixed), Some(student)) = (&mixed, &self.student) else { return Ok(mixed) };
        let Some(own) = say(&student.params)? else { return Ok(None) };
        Ok(Predictions::mix([(mixed, 1.0 - student.share), (&own, student.share)]))
    }
}
