//! Learners of the user's in a simulation: one for each device, with the device's data and model.

use std::sync::Arc;

use rayon::prelude::*;
use stlf_config::Config;
use stlf_config::fleet::{DeviceData, Fleet};
use stlf_data::features::Scale;
use stlf_learn::Layout;
use stlf_learner::{Crew, Limits, Options};
use stlf_method::adapt::Adapt;
use stlf_method::learner::{Learner, UserLearner};

use crate::watch::Watch;
use crate::{Error, Folder, Stage};

/// Where programs and the run exchange files, and where their logs are. Hidden, for it is no result.
const FOLDER: &str = ".learners";

/// The most programs that run at a time; the others rest until they are needed.
const MOST_RUNNING: usize = 16;

/// The number of bytes in a gibibyte.
const GIB: f64 = (1_u64 << 30) as f64;

/// The learners of a run, one for each device, all of one kind.
#[derive(Debug, Clone)]
pub struct Learners {
    devices: Vec<(String, UserLearner)>,
}

impl Learners {
    /// Takes the learner of each device, by the device's name.
    ///
    /// # Errors
    /// There is none, one tells of its samples what cannot be, or two are not of one kind.
    pub fn new(devices: Vec<(String, UserLearner)>) -> Result<Learners, Error> {
        let Some((first, kind)) = devices.first() else {
            return Err(stlf_planning::Error::missing("data.devices", "there is no device").into());
        };
        for (name, user) in &devices {
            user.check().map_err(of(name))?;
            let model = |user: &UserLearner| user.learner.layout().to_string();
            let told = |user: &UserLearner| {
                let adapts = user.learner.adapts().is_some();
                [
                    ("name", user.name.clone()),
                    ("classes", user.classes.join(", ")),
                    ("model", model(user)),
                    ("number of features", user.width().to_string()),
                    ("training of students", if adapts { "there" } else { "not there" }.to_owned()),
                ]
            };
            let mut both = told(user).into_iter().zip(told(kind));
            if let Some(((what, own), (_, of_first))) = both.find(|(own, other)| own != other) {
                let message =
                    format!("the {what} of the learner is {own}; that of {first} is {of_first}");
                let error = stlf_planning::Error::other("learner", message)
                    .with_hint("all devices have learners of one kind");
                return Err(of(name)(error));
            }
        }
        Ok(Learners { devices })
    }

    /// Starts the programs that a configuration names; `None` if it names none. A few of them run at a time.
    pub(crate) fn start(
        config: &Config,
        folder: &Folder,
        watch: &Watch<'_>,
    ) -> Result<Option<Learners>, Error> {
        let commands = config.learner_commands();
        if commands.is_empty() {
            return Ok(None);
        }
        let (inside, crew) = (folder.folder(FOLDER)?, Crew::new(MOST_RUNNING));
        let disk = config.training.learner_disk.map_or(Limits::DISK, |gib| (gib * GIB) as u64);
        let seed = config.seeds.first().copied().unwrap_or_default();
        let count = watch.counter(Stage::Deal, commands.len());
        let start = |(name, command): &(&str, String)| -> Result<(String, UserLearner), Error> {
            watch.check()?;
            let options = Options::new(command, inside.file(name), seed).map(|options| Options {
                log: Some(inside.file(&format!("{name}.log"))),
                environment: config.training.learner_env.clone(),
                limits: Limits { disk, ..Limits::default() },
                ..options
            });
            let started = options.and_then(|options| crew.start(options, &mut |_| count.asks()));
            let user = started.map_err(|e| match e {
                stlf_learner::Error::Stopped { .. } => Error::Stopped,
                failed => of(name)(failed.into()),
            })?;
            count.one()?;
            Ok(((*name).to_owned(), user))
        };
        let devices: Vec<_> = commands.par_iter().map(start).collect::<Result<_, Error>>()?;
        Learners::new(devices).map(Some)
    }

    /// A configuration as it takes effect for these learners.
    ///
    /// # Errors
    /// Students are asked for in any case, and the learners train none.
    pub(crate) fn configured(&self, config: &Config) -> Result<Config, Error> {
        let adapts = self.kind().learner.adapts().is_some();
        if config.transfer.adapt == Adapt::Always && !adapts {
            let message = format!("the learner {} does not say that it trains any", self.name());
            let error = stlf_planning::Error::other("transfer.adapt", message)
                .with_hint("leave it out, or write a learner that adapts");
            return Err(error.into());
        }
        Ok(config.for_learners(adapts))
    }

    /// The devices with their data, which are the same for every seed.
    pub(crate) fn fleet(&self) -> Result<Fleet, Error> {
        let own = |(name, user): &(String, UserLearner)| {
            DeviceData::of_learner(name, user).map_err(of(name))
        };
        let devices = self.devices.iter().map(own).collect::<Result<_, Error>>()?;
        Ok(Fleet { devices, shape: self.kind().shape(), scale: Scale::None })
    }

    /// Returns the names of all classes, which all learners have in common.
    pub(crate) fn classes(&self) -> &[String] {
        &self.kind().classes
    }

    /// Names and shapes of the tensors of all models.
    pub(crate) fn layout(&self) -> &Layout {
        self.kind().learner.layout()
    }

    /// Returns the name and version that all learners have.
    pub(crate) fn name(&self) -> &str {
        &self.kind().name
    }

    /// Returns the learner of the device with this index.
    pub(crate) fn of(&self, device: usize) -> &Arc<dyn Learner> {
        &self.devices[device].1.learner
    }

    /// The first, which is of the kind of all.
    fn kind(&self) -> &UserLearner {
        &self.devices[0].1
    }
}

/// The error that the learner of a device has failed.
fn of(device: &str) -> impl FnOnce(stlf_planning::Error) -> Error + '_ {
    |source| Error::Learner { device: device.to_owned(), source }
}
