//! What cannot be, or not together.

use std::path::Path;

use stlf_learn::Augment;
use stlf_method::combine::Combine;
use stlf_planning::bound::BoundKind;
use stlf_planning::problem::Strangers;

use crate::{Config, Energy, Error};

impl Config {
    /// Refuses values out of their range, and keys that do not go together.
    pub(crate) fn check(&self, path: &Path) -> Result<(), Error> {
        let wrong = |key: &str, message: String| Error::Setting {
            path: path.to_owned(),
            line: None,
            message: format!("{key}: {message}"),
            hint: None,
        };
        // These name the key themselves.
        let in_method = |e: &stlf_planning::Error| Error::Setting {
            path: path.to_owned(),
            line: None,
            message: e.to_string(),
            hint: e.hint().map(str::to_owned),
        };
        if self.seeds.is_empty() {
            return Err(wrong("seeds", "the list is empty".to_owned()));
        }
        let mut seen = std::collections::BTreeSet::new();
        if let Some(twice) = self.seeds.iter().find(|s| !seen.insert(**s)) {
            return Err(wrong("seeds", format!("{twice} is listed twice")));
        }
        let t = &self.training;
        if !(0.0..1.0).contains(&t.held_out) {
            return Err(wrong("training.held-out", format!("{} is not in 0 ≤ h < 1", t.held_out)));
        }
        if !(0.0..=1.0).contains(&t.unlabeled_as) {
            let message = format!("{} is not in 0 ≤ u ≤ 1", t.unlabeled_as);
            return Err(wrong("training.unlabeled-as", message));
        }
        if let Some(augment) = t.augment.filter(|augment| *augment != Augment::None)
            && self.data.table().is_some()
        {
            let message =
                format!("{} is for pictures, and data.features is a table", augment.name());
            return Err(Error::Setting {
                path: path.to_owned(),
                line: None,
                message: format!("training.augment: {message}"),
                hint: Some("leave out training.augment".to_owned()),
            });
        }
        if self.data.image_size.is_some() && self.data.images.is_none() {
            let message = "is only for a folder of pictures (data.images)".to_owned();
            return Err(wrong("data.image-size", message));
        }
        if self.data.image_size.is_some_and(|side| !(1..=4096).contains(&side)) {
            return Err(wrong("data.image-size", "is not between 1 and 4096".to_owned()));
        }
        if self.data.colour.is_some() && self.data.table().is_some() {
            let message = "is for pictures, and data.features is a table".to_owned();
            return Err(wrong("data.colour", message));
        }
        if let Some((key, message)) = self.data.misplaced_windows() {
            return Err(wrong(&format!("data.{key}"), message.to_owned()));
        }
        if t.steps == Some(0) {
            return Err(wrong("training.steps", "must be at least 1".to_owned()));
        }
        let rounds =
            [("rounds", self.compare.rounds()), ("kd3a-rounds", self.compare.kd3a_rounds())];
        if let Some((name, _)) = rounds.into_iter().find(|(_, rounds)| *rounds == 0) {
            return Err(wrong(&format!("compare.{name}"), "must be at least 1".to_owned()));
        }
        if self.planner.combine == Combine::Corrected && !t.balanced {
            let message = "corrected requires training.balanced = true";
            return Err(Error::Setting {
                path: path.to_owned(),
                line: None,
                message: format!("planner.combine: {message}"),
                hint: Some("remove training.balanced = false".to_owned()),
            });
        }
        if self.planner.handovers == Some(true) && self.planner.bound == BoundKind::Paper {
            let message = "the paper's bound does not reward them".to_owned();
            return Err(wrong("planner.handovers", message));
        }
        if self.planner.strangers.is_some_and(|asked| asked != Strangers::Planned)
            && self.planner.bound == BoundKind::Paper
        {
            let message = "under the paper's bound a target takes one model".to_owned();
            return Err(wrong("planner.strangers", message));
        }
        if let Some(message) = self.planner.misplaced_all_links() {
            return Err(wrong("planner.all-links", message.to_owned()));
        }
        if let Some(share) = self.planner.calibration.filter(|s| !(*s > 0.0 && *s <= 1.0)) {
            let message = format!("expected a fraction above 0 and at most 1, found {share}");
            return Err(wrong("planner.calibration", message));
        }
        if self.planner.limit().is_none() {
            let message = format!("{} is not a number of seconds above 0", self.planner.time_limit);
            return Err(wrong("planner.time-limit", message));
        }
        self.check_learner().map_err(|(key, message, hint)| Error::Setting {
            path: path.to_owned(),
            line: None,
            message: format!("{key}: {message}"),
            hint: Some(hint),
        })?;
        self.descent().check().map_err(|e| wrong("training", e.to_string()))?;
        if let Some(message) = self.divergence.misplaced() {
            return Err(wrong("divergence", message));
        }
        self.divergence.check().map_err(|e| in_method(&e))?;
        self.compare.fada.settings().check().map_err(|e| in_method(&e))?;
        let Energy { model_bits, gflop_per_joule, .. } = self.energy;
        for (key, value) in [("model-bits", model_bits), ("gflop-per-joule", gflop_per_joule)] {
            if let Some(value) = value.filter(|value| !(*value > 0.0 && value.is_finite())) {
                return Err(wrong(&format!("energy.{key}"), format!("{value} is not above 0")));
            }
        }
        self.node.check().map_err(|message| wrong("node.relay", message))?;
        for (key, methods) in
            [("methods", self.compare.methods()), ("students", self.compare.students())]
        {
            methods.map_err(|e| Error::Setting {
                path: path.to_owned(),
                line: None,
                message: format!("compare.{key}: {e}"),
                hint: e.hint().map(str::to_owned),
            })?;
        }
        Ok(())
    }
}
