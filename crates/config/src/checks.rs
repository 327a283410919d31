//! What cannot be, or not together: each section's keys, and what is wrong with one.

use std::collections::BTreeSet;
use std::path::Path;

use stlf_learn::Augment;
use stlf_method::combine::Combine;
use stlf_planning::bound::BoundKind;
use stlf_planning::problem::Strangers;

use crate::{Config, Energy, Error};

/// A key that cannot be as it is.
#[derive(Debug)]
pub(crate) struct Wrong {
    /// The key and what is wrong with it, as a sentence says it.
    message: String,
    /// What to do, where that is not plain from the message.
    hint: Option<String>,
}

impl Wrong {
    /// Says of this key what is wrong with it.
    pub(crate) fn new(key: &str, message: impl std::fmt::Display) -> Wrong {
        Wrong { message: format!("{key}: {message}"), hint: None }
    }

    /// The same with what to do.
    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Wrong {
        Wrong { hint: Some(hint.into()), ..self }
    }

    /// The same as an error of the file at this path.
    fn of(self, path: &Path) -> Error {
        let Wrong { message, hint } = self;
        Error::Setting { path: path.to_owned(), line: None, message, hint }
    }
}

/// An error that names the key itself.
impl From<stlf_planning::Error> for Wrong {
    fn from(error: stlf_planning::Error) -> Wrong {
        Wrong { message: error.to_string(), hint: error.hint().map(str::to_owned) }
    }
}

impl Config {
    /// Refuses values out of their range, and keys that do not go together.
    pub(crate) fn check(&self, path: &Path) -> Result<(), Error> {
        let sections = [
            Config::check_seeds,
            Config::check_data,
            Config::check_training,
            Config::check_learner,
            Config::check_divergence,
            Config::check_planner,
            Config::check_energy,
            Config::check_compare,
            Config::check_node,
        ];
        sections.into_iter().try_for_each(|check| check(self)).map_err(|wrong| wrong.of(path))
    }

    fn check_seeds(&self) -> Result<(), Wrong> {
        if self.seeds.is_empty() {
            return Err(Wrong::new("seeds", "the list is empty"));
        }
        let mut seen = BTreeSet::new();
        match self.seeds.iter().find(|seed| !seen.insert(**seed)) {
            Some(twice) => Err(Wrong::new("seeds", format!("{twice} is listed twice"))),
            None => Ok(()),
        }
    }

    fn check_data(&self) -> Result<(), Wrong> {
        let data = &self.data;
        if data.image_size.is_some() && data.images.is_none() && !data.is_open() {
            let message = "is only for a folder of pictures (data.images)";
            return Err(Wrong::new("data.image-size", message));
        }
        if data.image_size.is_some_and(|side| !(1..=4096).contains(&side)) {
            return Err(Wrong::new("data.image-size", "is not between 1 and 4096"));
        }
        if data.colour.is_some() && data.table().is_some() {
            let message = "is for pictures, and data.features is a table";
            return Err(Wrong::new("data.colour", message));
        }
        match data.misplaced_windows() {
            Some((key, message)) => Err(Wrong::new(&format!("data.{key}"), message)),
            None => Ok(()),
        }
    }

    fn check_training(&self) -> Result<(), Wrong> {
        let training = &self.training;
        if !(0.0..1.0).contains(&training.held_out) {
            let message = format!("{} is not in 0 ≤ h < 1", training.held_out);
            return Err(Wrong::new("training.held-out", message));
        }
        if !(0.0..=1.0).contains(&training.unlabeled_as) {
            let message = format!("{} is not in 0 ≤ u ≤ 1", training.unlabeled_as);
            return Err(Wrong::new("training.unlabeled-as", message));
        }
        if let Some(augment) = training.augment.filter(|augment| *augment != Augment::None)
            && self.data.table().is_some()
        {
            let message =
                format!("{} is for pictures, and data.features is a table", augment.name());
            return Err(
                Wrong::new("training.augment", message).with_hint("leave out training.augment")
            );
        }
        if training.steps == Some(0) {
            return Err(Wrong::new("training.steps", "must be at least 1"));
        }
        self.descent().check().map_err(|e| Wrong::new("training", e))
    }

    fn check_divergence(&self) -> Result<(), Wrong> {
        match self.divergence.misplaced() {
            Some(message) => Err(Wrong::new("divergence", message)),
            None => Ok(self.divergence.check()?),
        }
    }

    fn check_planner(&self) -> Result<(), Wrong> {
        let planner = &self.planner;
        let is_paper = planner.bound == BoundKind::Paper;
        if planner.combine == Combine::Corrected && !self.training.balanced {
            return Err(Wrong::new(
                "planner.combine",
                "corrected requires training.balanced = true",
            )
            .with_hint("remove training.balanced = false"));
        }
        if planner.handovers == Some(true) && is_paper {
            let message = "the paper's bound does not reward them";
            return Err(Wrong::new("planner.handovers", message));
        }
        if planner.strangers.is_some_and(|asked| asked != Strangers::Planned) && is_paper {
            let message = "under the paper's bound a target takes one model";
            return Err(Wrong::new("planner.strangers", message));
        }
        if let Some(message) = planner.misplaced_all_links() {
            return Err(Wrong::new("planner.all-links", message));
        }
        if let Some(fraction) = planner.calibration.filter(|s| !(*s > 0.0 && *s <= 1.0)) {
            let message = format!("expected a fraction above 0 and at most 1, found {fraction}");
            return Err(Wrong::new("planner.calibration", message));
        }
        if planner.limit().is_none() {
            let message = format!("{} is not a number of seconds above 0", planner.time_limit);
            return Err(Wrong::new("planner.time-limit", message));
        }
        Ok(())
    }

    fn check_energy(&self) -> Result<(), Wrong> {
        let Energy { model_bits, gflop_per_joule, .. } = self.energy;
        for (key, value) in [("model-bits", model_bits), ("gflop-per-joule", gflop_per_joule)] {
            if let Some(value) = value.filter(|value| !(*value > 0.0 && value.is_finite())) {
                let message = format!("{value} is not above 0");
                return Err(Wrong::new(&format!("energy.{key}"), message));
            }
        }
        Ok(())
    }

    fn check_compare(&self) -> Result<(), Wrong> {
        let compare = &self.compare;
        let rounds = [("rounds", compare.rounds()), ("kd3a-rounds", compare.kd3a_rounds())];
        if let Some((name, _)) = rounds.into_iter().find(|(_, rounds)| *rounds == 0) {
            return Err(Wrong::new(&format!("compare.{name}"), "must be at least 1"));
        }
        compare.fada.settings().check()?;
        for (key, methods) in [("methods", compare.methods()), ("students", compare.students())] {
            methods.map_err(|e| Wrong {
                message: format!("compare.{key}: {e}"),
                hint: e.hint().map(str::to_owned),
            })?;
        }
        Ok(())
    }

    fn check_node(&self) -> Result<(), Wrong> {
        self.node.check().map_err(|message| Wrong::new("node.relay", message))
    }
}
