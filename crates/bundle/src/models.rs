//! What a device with a learner of the user's ends with, as a folder: `models.json`, a file of parameters for each model, and the plan.

use std::path::Path;

use stlf_data::whole_folder::PreparedFolder;
use stlf_formats::{FileEntry, MemberEntry, ModelsFile, ModelsFormat, write_json};
use stlf_learn::Layout;
use stlf_method::combine::Combine;
use stlf_planning::Role;

use crate::folder::{PLAN, file_names, sha256};
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
    /// The epoch that they come from.
    pub epoch: u64,
    /// The name and version of the learner.
    pub learner: String,
    /// The names of the classes.
    pub classes: Vec<String>,
    /// Names and shapes of the tensors of every model.
    pub layout: Layout,
    /// How the models become one.
    pub combine: Combine,
    /// The models, at least one.
    pub members: Vec<Member>,
}

/// Prepares the folder, which takes the place of the one that is there when it is published; the plan is the bytes of `stlf-plan/2`.
///
/// # Errors
/// A file cannot be written. Then the folder that is there stays as it is.
pub fn prepare(path: &Path, models: &Models, plan: &[u8]) -> Result<PreparedFolder, Error> {
    let new = PreparedFolder::new(path)?;
    let put = |file: String, bytes: &[u8]| -> Result<FileEntry, Error> {
        new.write(&file, bytes)?;
        Ok(FileEntry { file, sha256: sha256(bytes) })
    };
    let mut members = Vec::new();
    for (member, name) in models.members.iter().zip(file_names(&models.members)) {
        let bytes = member.params.to_safetensors(&models.layout);
        let bytes = bytes.map_err(|e| Error::Mixture(e.to_string()))?;
        let FileEntry { file, sha256 } = put(format!("{name}.safetensors"), &bytes)?;
        let (name, weight) = (member.name.clone(), member.weight);
        members.push(MemberEntry { name, weight, file, sha256 });
    }
    let document = ModelsFile {
        format: ModelsFormat::V1,
        device: models.device.clone(),
        role: models.role,
        epoch: models.epoch,
        learner: models.learner.clone(),
        classes: models.classes.clone(),
        combine: document::combine_entry(models.combine),
        members,
        plan: put(PLAN.to_owned(), plan)?,
    };
    let mut text = Vec::new();
    write_json(&mut text, &document).map_err(|e| Error::Mixture(e.to_string()))?;
    new.write(DOCUMENT, &text)?;
    Ok(new)
}
