//! Fleets whose devices have learners of the user's: what a simulator can do with them, and the learner of each device.

use std::collections::BTreeSet;

use stlf_learn::Augment;
use stlf_method::adapt::Adapt;
use stlf_method::combine::Combine;
use stlf_planning::error::{Error as ValueError, Range};

use crate::{Config, Data, Model, Training};

/// What stands for the name of the device in the command line of a learner.
const DEVICE: &str = "{device}";

impl Config {
    /// The same for a fleet whose devices have learners of the user's, and with them their data: what only built-in networks can do is off, and
    /// so are guarded students unless the learners can train them.
    pub fn for_learners(&self, adapts: bool) -> Config {
        let mut config = self.clone();
        config.training = Training {
            model: Model::Mlp,
            augment: None,
            balanced: false,
            learner: None,
            learner_env: Vec::new(),
            learner_disk: None,
            ..self.training.clone()
        };
        if !adapts && self.transfer.adapt == Adapt::Guarded {
            config.transfer.adapt = Adapt::Off;
        }
        (config.data, config.partition) = (Data::default(), None);
        config
    }

    /// Returns the command line of the learner of each device, by the device's name; none where built-in networks learn.
    pub fn learner_commands(&self) -> Vec<(&str, String)> {
        let Some(command) = &self.training.learner else { return Vec::new() };
        let of = |device: &String| command.replace(DEVICE, device);
        self.data.devices.iter().map(|device| (device.as_str(), of(device))).collect()
    }

    /// Checks that learners can do what is asked for. What they cannot do is refused, not left out.
    pub(crate) fn check_learner(&self) -> Result<(), ValueError> {
        let (training, data) = (&self.training, &self.data);
        let wrong = |key: &str, message: &str, hint: &str| {
            Err(ValueError::other(key, message).with_hint(hint))
        };
        let Some(command) = &training.learner else {
            if !data.devices.is_empty() {
                let message = "names devices with learners, but no learner is set";
                let hint = "set training.learner, such as \"python -m stlf.learner pumps:Pumps data/{device}.csv\"";
                return wrong("data.devices", message, hint);
            }
            let of_learner = [
                ("training.learner-env", !training.learner_env.is_empty()),
                ("training.learner-disk", training.learner_disk.is_some()),
            ];
            let misplaced = of_learner.into_iter().find(|(_, is_set)| *is_set);
            return misplaced.map_or(Ok(()), |(key, _)| {
                wrong(key, "there is no learner", "set training.learner")
            });
        };
        if data.devices.is_empty() {
            let hint = "name them, such as data.devices = [\"gate\", \"pier\"]";
            return wrong(
                "training.learner",
                "the devices that have such a learner are not named",
                hint,
            );
        }
        let mut seen = BTreeSet::new();
        for name in &data.devices {
            let is_plain = |c: char| !c.is_control() && !['/', '\\'].contains(&c);
            if name.is_empty() || name.starts_with('.') || !name.chars().all(is_plain) {
                let message = format!("{name:?} cannot be the name of a device");
                return wrong("data.devices", &message, "names of devices are names of files too");
            }
            if !seen.insert(name) {
                return wrong(
                    "data.devices",
                    &format!("{name:?} is there twice"),
                    "name each device once",
                );
            }
        }
        if data.devices.len() > 1 && !command.contains(DEVICE) {
            let hint = "write {device} where the program reads its name, such as \
                        \"python -m stlf.learner pumps:Pumps data/{device}.csv\"";
            let message = "the learners of all devices would be the same, with the same data";
            return wrong("training.learner", message, hint);
        }
        if let Some(disk) = training.learner_disk {
            let checked = Range::ABOVE_ZERO.check(disk, || "training.learner-disk");
            checked.map_err(|e| e.with_hint("give a number of gibibytes"))?;
        }
        self.check_learner_can()
    }

    /// Checks that nothing is asked for that only built-in networks can do.
    fn check_learner_can(&self) -> Result<(), ValueError> {
        let (training, data, leave) = (&self.training, &self.data, "leave it out");
        let wrong =
            |key: &str, message: &str| Err(ValueError::other(key, message).with_hint(leave));
        let own = "learners have data of their own";
        let other = [
            ("data.features", data.features.is_some()),
            ("data.images", data.images.is_some()),
            ("data.writers", data.writers.is_some()),
            ("data.colour", data.colour.is_some()),
            ("data.standardise", data.standardise.is_some()),
            ("data.answers", data.answers.is_some()),
            ("partition", self.partition.is_some()),
        ];
        if let Some((key, _)) = other.into_iter().find(|(_, is_set)| *is_set) {
            return wrong(key, own);
        }
        if training.augment.is_some_and(|augment| augment != Augment::None) {
            return wrong("training.augment", "only built-in networks are trained on views");
        }
        if training.warm_up_rounds > 0 {
            return wrong("training.warm-up-rounds", "only built-in networks have a warm-up");
        }
        if self.transfer.ask > 0 {
            return wrong(
                "transfer.ask",
                "only built-in networks learn from answers, and learners have their own labels",
            );
        }
        if self.planner.combine == Combine::Corrected {
            let message =
                "\"corrected\" needs balanced models, and only built-in networks can be balanced";
            return wrong("planner.combine", message);
        }
        if self.energy.gflop_per_joule.is_some() {
            return wrong("energy.gflop-per-joule", "it is not known how much a learner computes");
        }
        // Names that are none are told elsewhere.
        let methods = self.compare.methods().unwrap_or_default();
        match methods.into_iter().find(|method| method.trains()) {
            Some(method) => wrong(
                "compare.methods",
                &format!(
                    "{} trains built-in networks, and learners have models of their own",
                    method.name()
                ),
            ),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn told(changes: &[&str]) -> Result<Config, String> {
        let usual = ["data.devices=[\"gate\", \"pier\"]", "training.learner=pumps {device}"];
        // All at once, as in a file: one without the other is refused.
        let together = usual.iter().chain(changes);
        Config::default().with(together.copied()).map_err(|e| e.to_string())
    }

    #[test]
    fn every_device_has_a_command_of_its_own() {
        let config = told(&[]).unwrap();
        let commands = config.learner_commands();
        assert_eq!(
            commands,
            [("gate", "pumps gate".to_owned()), ("pier", "pumps pier".to_owned())]
        );
        assert!(Config::default().learner_commands().is_empty());
        let effective = config.for_learners(false);
        assert_eq!((effective.transfer.adapt, effective.training.balanced), (Adapt::Off, false));
        assert_eq!(config.for_learners(true).transfer.adapt, Adapt::Guarded);
        let always = told(&["transfer.adapt=always"]).unwrap();
        // Who cannot do it refuses it.
        assert_eq!(always.for_learners(false).transfer.adapt, Adapt::Always);
        assert!(effective.with(["training.steps=5"]).is_ok());
        let same = told(&["training.learner=pumps"]).unwrap_err();
        assert!(same.contains("training.learner: the learners of all devices would be the same"));
        assert!(told(&["training.learner=pumps", "data.devices=[\"gate\"]"]).is_ok());
        for (changes, expected) in [
            (&["data.devices=[]"][..], "the devices that have such a learner are not named"),
            (&["data.devices=[\"a\", \"a\"]"], "\"a\" is there twice"),
            (&["training.learner-disk=0.0"], "training.learner-disk: 0 is not above 0"),
            (&["data.devices=[\"a/b\"]"], "\"a/b\" cannot be the name of a device"),
        ] {
            let error = told(changes).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        let alone = Config::default().with(["data.devices=[\"gate\"]"]).unwrap_err();
        assert!(alone.to_string().contains("no learner is set") && alone.hint().is_some());
    }

    #[test]
    fn what_only_built_in_networks_can_do_is_refused_with_its_key() {
        for (change, key) in [
            ("training.augment=both", "training.augment: only"),
            ("training.warm-up-rounds=3", "training.warm-up-rounds: only"),
            ("transfer.ask=3", "transfer.ask: only"),
            ("planner.combine=corrected", "planner.combine: "),
            ("energy.gflop-per-joule=10.0", "energy.gflop-per-joule: it is not known"),
            ("compare.methods=[\"st-lf\", \"fada\"]", "compare.methods: fada trains"),
            ("data.features=x.csv", "data.features: learners have data"),
            ("data.answers=x.csv", "data.answers: learners have data"),
            ("partition.kind=iid", "partition: learners have data"),
        ] {
            let error = told(&[change]).unwrap_err();
            assert!(error.contains(key), "{error}");
        }
        for change in ["transfer.adapt=always", "planner.combine=parameters", "seeds=[1]"] {
            assert!(told(&[change]).is_ok(), "{change}");
        }
    }
}
