//! What cannot be, or not together: each section's keys, and what is wrong with one.

use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Included};
use std::path::Path;

use stlf_learn::Augment;
use stlf_method::adapt::Adapt;
use stlf_method::combine::Combine;
use stlf_planning::bound::BoundKind;
use stlf_planning::error::{Error as ValueError, Range};
use stlf_planning::problem::Strangers;

use crate::{Config, Energy, Error};

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
            Config::check_transfer,
            Config::check_compare,
            Config::check_node,
        ];
        let checked = sections.into_iter().try_for_each(|check| check(self));
        checked.map_err(|source| Error::Value { path: path.to_owned(), source })
    }

    fn check_seeds(&self) -> Result<(), ValueError> {
        if self.seeds.is_empty() {
            return Err(ValueError::other("seeds", "the list is empty"));
        }
        let mut seen = BTreeSet::new();
        match self.seeds.iter().find(|seed| !seen.insert(**seed)) {
            Some(twice) => Err(ValueError::other("seeds", format!("{twice} is listed twice"))),
            None => Ok(()),
        }
    }

    fn check_data(&self) -> Result<(), ValueError> {
        let data = &self.data;
        if data.image_size.is_some() && data.images.is_none() && !data.is_open() {
            let message = "is only for a folder of pictures (data.images)";
            return Err(ValueError::conflict("data.image-size", "data.images", message));
        }
        if let Some(side) = data.image_size {
            let range = Range::new(Included(1.0), Included(4096.0));
            range.check(side as f64, || "data.image-size")?;
        }
        if data.colour.is_some() && data.table().is_some() {
            let message = "is for pictures, and data.features is a table";
            return Err(ValueError::conflict("data.colour", "data.features", message));
        }
        match data.misplaced_windows() {
            Some((key, message)) => Err(ValueError::other(format!("data.{key}"), message)),
            None => Ok(()),
        }
    }

    fn check_training(&self) -> Result<(), ValueError> {
        let training = &self.training;
        let held_out = Range::new(Included(0.0), Excluded(1.0)).as_formula('h');
        held_out.check(training.held_out, || "training.held-out")?;
        let unlabeled_as = Range::SHARE.as_formula('u');
        unlabeled_as.check(training.unlabeled_as, || "training.unlabeled-as")?;
        if let Some(augment) = training.augment.filter(|augment| *augment != Augment::None)
            && self.data.table().is_some()
        {
            let message =
                format!("{} is for pictures, and data.features is a table", augment.name());
            return Err(ValueError::conflict("training.augment", "data.features", message)
                .with_hint("leave out training.augment"));
        }
        if let Some(steps) = training.steps {
            Range::AT_LEAST_ONE.check(steps as f64, || "training.steps")?;
        }
        self.descent().check().map_err(|e| ValueError::other("training", e.to_string()))
    }

    fn check_divergence(&self) -> Result<(), ValueError> {
        match self.divergence.misplaced() {
            Some(message) => Err(ValueError::other("divergence", message)),
            None => self.divergence.check(),
        }
    }

    fn check_planner(&self) -> Result<(), ValueError> {
        let planner = &self.planner;
        let is_paper = planner.bound == BoundKind::Paper;
        if planner.combine == Combine::Corrected && !self.training.balanced {
            let message = "corrected requires training.balanced = true";
            return Err(ValueError::conflict("planner.combine", "training.balanced", message)
                .with_hint("remove training.balanced = false"));
        }
        if planner.handovers == Some(true) && is_paper {
            let message = "the paper's bound does not reward them";
            return Err(ValueError::conflict("planner.handovers", "planner.bound", message));
        }
        if planner.strangers.is_some_and(|asked| asked != Strangers::Planned) && is_paper {
            let message = "under the paper's bound a target takes one model";
            return Err(ValueError::conflict("planner.strangers", "planner.bound", message));
        }
        if let Some(message) = planner.misplaced_all_links() {
            return Err(ValueError::other("planner.all-links", message));
        }
        if let Some(share) = planner.calibration {
            Range::SHARE_ABOVE_ZERO.check(share, || "planner.calibration")?;
        }
        if planner.limit().is_none() {
            let message = format!("{} is not a number of seconds above 0", planner.time_limit);
            return Err(ValueError::other("planner.time-limit", message));
        }
        Ok(())
    }

    fn check_energy(&self) -> Result<(), ValueError> {
        let Energy { model_bits, gflop_per_joule, .. } = self.energy;
        for (key, value) in [("model-bits", model_bits), ("gflop-per-joule", gflop_per_joule)] {
            if let Some(value) = value {
                Range::ABOVE_ZERO.check(value, || format!("energy.{key}"))?;
            }
        }
        Ok(())
    }

    fn check_transfer(&self) -> Result<(), ValueError> {
        if self.transfer.ask > 0 && self.transfer.adapt == Adapt::Off {
            let message = "targets that train no students make nothing of labels";
            return Err(ValueError::conflict("transfer.ask", "transfer.adapt", message)
                .with_hint("remove transfer.adapt = \"off\""));
        }
        Ok(())
    }

    fn check_compare(&self) -> Result<(), ValueError> {
        let compare = &self.compare;
        let rounds = [("rounds", compare.rounds()), ("kd3a-rounds", compare.kd3a_rounds())];
        for (name, rounds) in rounds {
            Range::AT_LEAST_ONE.check(rounds as f64, || format!("compare.{name}"))?;
        }
        compare.fada.settings().check()?;
        for (key, methods) in [("methods", compare.methods()), ("students", compare.students())] {
            methods.map_err(|mut e| {
                e.field.path = format!("compare.{key}: {}", e.field.path);
                e
            })?;
        }
        Ok(())
    }

    fn check_node(&self) -> Result<(), ValueError> {
        self.node.check().map_err(|message| ValueError::other("node.relay", message))
    }
}
