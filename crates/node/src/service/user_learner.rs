//! A device whose learner is the user's: its data as the learner tells them, and what the fleet must have in common.

use stlf_config::fleet::{DeviceData, OwnData};
use stlf_data::features::Scale;
use stlf_method::learner::UserLearner;

use super::Error;

/// Returns the data of a device as its learner tells them. Features stay as they are.
pub(super) fn own_data(user: &UserLearner) -> Result<OwnData, Error> {
    let device = DeviceData::of_learner(&user.name, user)?;
    let shape = user.shape();
    let classes = user.classes.clone();
    Ok(OwnData {
        device,
        shape,
        scale: Scale::None,
        own_scale: None,
        unscaled: None,
        columns: None,
        classes,
    })
}

/// Returns what all devices of a fleet must have in common besides the settings: the learner, and names and shapes of its models.
pub(super) fn shared(user: &UserLearner) -> [(String, String); 2] {
    let model = user.learner.layout().to_string();
    [("learner".to_owned(), user.name.clone()), ("learner.model".to_owned(), model)]
}
