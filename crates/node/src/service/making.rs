//! A device made of its data: at its start, and again when they have changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use stlf_config::Config;
use stlf_config::fleet::{DeviceData, OwnData, device as dealt};
use stlf_data::features::{Origin, OwnScale, Scale};
use stlf_protocol::device::Holdings;
use stlf_protocol::shared::SharedSettings;
use stlf_protocol::{Device, Identity, Place, Roster, Setup};

use super::state_dir::SCALE;
use super::{Error, Event, Observer, Options, user_learner};

/// What a device is made of besides its data.
pub(super) struct Making {
    pub(super) options: Options,
    /// The configuration as it takes effect.
    pub(super) config: Config,
    pub(super) identity: Identity,
    pub(super) roster: Roster,
    pub(super) place: Place,
}

/// A device with its data that has not trained, and what is known of these.
pub(super) struct Made {
    pub(super) device: Device,
    pub(super) own: DeviceData,
    pub(super) classes: Vec<String>,
    pub(super) scale: Scale,
    /// The scale of its own by which its features are scaled, where there is one, and where that comes from.
    pub(super) own_scale: Option<(OwnScale, Origin)>,
    /// Its samples as they are in the table, where its features have a scale of its own.
    pub(super) unscaled: Option<Vec<f64>>,
    /// What must be the same on all devices.
    pub(super) settings: SharedSettings,
}

impl Making {
    /// Reads the identity's place in the roster.
    pub(super) fn new(
        options: Options,
        identity: Identity,
        roster: &Roster,
    ) -> Result<Making, Error> {
        let stranger = || Error::NotInRoster { key: identity.id(), fleet: roster.fleet.clone() };
        let place = roster.place(identity.id()).ok_or_else(stranger)?;
        Ok(Making { config: options.config(), options, identity, roster: roster.clone(), place })
    }

    /// The device's name.
    pub(super) fn name(&self) -> &str {
        self.roster.at(self.place).map_or("", |member| &member.name)
    }

    /// Reads the data, or takes what the user's learner tells of them, and makes a device of them.
    ///
    /// # Errors
    /// Returns the reason why the device cannot take part with these data.
    pub(super) fn make(&self, observer: &mut Observer<'_>) -> Result<Made, Error> {
        let own = self.data()?;
        if let Some((scale, origin)) = &own.own_scale {
            observer(&Event::Scales { device: self.name(), rows: scale.rows(), origin: *origin });
        }
        self.made_of(own)
    }

    /// Reads the data, or takes what the user's learner tells of them.
    ///
    /// # Errors
    /// Returns the reason why they cannot be read.
    pub(super) fn data(&self) -> Result<OwnData, Error> {
        let Making { options, config, place, .. } = self;
        if let Some(user) = &options.learner {
            return user_learner::own_data(user);
        }
        let kept_scale = options.folder.join(SCALE);
        Ok(dealt(config, options.seed(), (place.index(), self.name()), &kept_scale)?)
    }

    /// Makes a device of data that were read.
    ///
    /// # Errors
    /// Returns the reason why the device cannot take part with these data.
    pub(super) fn made_of(&self, own: OwnData) -> Result<Made, Error> {
        let Making { options, config, identity, roster, place } = self;
        let user = options.learner.as_ref();
        let OwnData { device: own, shape, scale, own_scale, unscaled, columns, classes } = own;
        let setup = options.setup(config, &own, shape, classes.len())?;
        let shared = config.shared(shape, scale, columns.as_deref(), &classes, options.seed())?;
        let of_learner = user.into_iter().flat_map(user_learner::shared);
        let settings = SharedSettings::new(shared.into_iter().chain(of_learner));
        let joules = joules(&setup, *place, roster.devices.len());
        let holdings = Holdings {
            inputs: own.inputs.clone(),
            labels: own.labels.clone(),
            unlabeled: own.unlabeled,
            answers: own.answers.clone(),
        };
        let device = Device::new(setup, roster.clone(), identity.clone(), holdings, joules);
        let stranger = || Error::NotInRoster { key: identity.id(), fleet: roster.fleet.clone() };
        let mut device = device.ok_or_else(stranger)?;
        if let Some(user) = user {
            device = device.with_learner(Arc::clone(&user.learner));
        }
        Ok(Made { device, own, classes, scale, own_scale, unscaled, settings })
    }
}

/// Returns the joules of sending a model to each other place, if they are not measured.
fn joules(setup: &Setup, place: Place, devices: usize) -> BTreeMap<Place, f64> {
    let energy = setup.energies(devices);
    let others = (0..devices).map(Place::new).filter(|&to| to != place);
    others.map(|to| (to, energy[place.index() * devices + to.index()])).collect()
}
