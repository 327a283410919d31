//! A device whose learner is the user's: its data as the learner tells them, and what the fleet must have in common.

use stlf_config::Config;
use stlf_config::fleet::{DeviceData, OwnData};
use stlf_data::features::Scale;
use stlf_data::{Scaling, Shape};
use stlf_method::combine::Combine;
use stlf_method::learner::UserLearner;
use stlf_protocol::Setup;
use stlf_protocol::setup::Unsupported;

use super::Error;

/// Returns the data of a device as its learner tells them. Features stay as they are.
pub(super) fn own_data(user: &UserLearner) -> Result<OwnData, Error> {
    user.check()?;
    let shape = Shape { channels: 1, height: 1, width: user.width() };
    let device = DeviceData {
        name: user.name.clone(),
        places: user.places.clone(),
        inputs: user.features.clone(),
        scaling: Scaling::Features { columns: Vec::new(), units: Vec::new(), series: None },
        labels: user.labels.clone(),
        unlabeled: user.places.len() - user.labels.len(),
        truth: None,
        answers: Vec::new(),
    };
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

/// Returns the same setup for models of the user's learner.
///
/// # Errors
/// Only built-in networks can do what the configuration asks for.
pub(super) fn setup(config: &Config, user: &UserLearner, setup: Setup) -> Result<Setup, Error> {
    if config.planner.combine == Combine::Corrected {
        return Err(Unsupported::Corrected.into());
    }
    Ok(Setup { model_bits: config.model_bits(user.learner.layout()), ..setup })
}

/// Returns what all devices of a fleet must have in common besides the settings: the learner, and names and shapes of its models.
pub(super) fn shared(user: &UserLearner) -> [(String, String); 2] {
    let model = user.learner.layout().to_string();
    [("learner".to_owned(), user.name.clone()), ("learner.model".to_owned(), model)]
}
