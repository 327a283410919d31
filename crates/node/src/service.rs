//! A device as a service: it reads a configuration, a roster and a key, takes part in the fleet until it is told to stop, and keeps
//! everything on disk.
//!
//! ```no_run
//! use stlf_node::service::{Event, Line, Options, Service, settings};
//!
//! let config = settings(Some("mine.toml".as_ref()), None, &["training.steps=500"])?;
//! let mut options = Options::new(config, "roster.json", "device.key", "node");
//! options.peers.push(("gate".to_owned(), "10.0.0.5:7000".parse()?));
//! let mut tell = |event: &Event<'_>| {
//!     if let Event::Network { view, event } = event {
//!         println!("{}", Line::new(view, event).to_json());
//!     }
//! };
//! let service = Service::new(options, &mut tell)?;
//! let ended = service.run(&mut tell, &|| false)?;
//! println!("{:?}", ended.accuracy);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! It prints nothing and handles no signals: an observer is told of every event, and a function is asked whether to stop.

mod error;
mod event;
mod memory;
mod metrics;
mod mixture;
mod options;
mod orders;
mod publishing;
mod state_dir;
mod user_learner;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::Arc;

use stlf_config::fleet::{OwnData, device as dealt};
use stlf_data::features::OwnScale;
use stlf_protocol::device::Holdings;
use stlf_protocol::shared::SharedSettings;
use stlf_protocol::{Device, Identity, Place, Roster, Setup, SignedRoster};
use tokio::runtime::Runtime;

pub use self::error::Error;
pub use self::event::{Event, Line, Observer};
pub(crate) use self::options::with_own_data;
pub use self::options::{Options, settings};
use self::publishing::Publications;
use self::state_dir::{MODELS, StateDir};
pub(crate) use self::state_dir::{ROSTER, SCALE};
use crate::key_file;
use crate::network::{self, View};

/// A device that is ready to take part.
pub struct Service {
    options: Options,
    network: network::Options,
    identity: Identity,
    roster: SignedRoster,
    device: Device,
    labels: usize,
    /// The scale of its own by which its features are scaled, where there is one.
    own_scale: Option<OwnScale>,
    /// What it has published once it takes part.
    publications: Publications,
    kept: StateDir,
}

/// The result of a service that has ended.
#[derive(Debug)]
pub struct Ended {
    /// The device, with the plan that it followed last and the predictions for its samples.
    pub device: Device,
    /// The roster of the fleet when the service started.
    pub roster: Roster,
    /// The accuracy of the device as a target, if the true classes are known.
    pub accuracy: Option<f64>,
}

impl Service {
    /// Reads key, roster and data, opens the folder, and continues from what is in it.
    ///
    /// # Errors
    /// Returns the reason why the device cannot take part, before a long training and not after it.
    pub fn new(options: Options, observer: &mut Observer<'_>) -> Result<Service, Error> {
        let (config, user) = (&options.config(), options.learner.as_ref());
        let identity = key_file::read(&options.key)?;
        let roster = orders::roster(&options.roster, &options.folder, observer)?;
        let list = roster.roster();
        let stranger = || Error::NotInRoster { key: identity.id(), fleet: list.fleet.clone() };
        let place = list.place(identity.id()).ok_or_else(stranger)?;
        let name = list.at(place).map_or("", |member| &member.name);
        let kept_scale = options.folder.join(SCALE);
        let own = match user {
            Some(user) => user_learner::own_data(user)?,
            None => dealt(config, options.seed(), (place.index(), name), &kept_scale)?,
        };
        let OwnData { device: own, shape, scale, own_scale, unscaled, columns, classes } = own;
        if let Some((scale, origin)) = &own_scale {
            observer(&Event::Scales { device: name, rows: scale.rows(), origin: *origin });
        }
        let setup = options.setup(config, &own, shape, classes.len())?;
        let shared = config.shared(shape, scale, columns.as_deref(), &classes, options.seed())?;
        let of_learner = user.into_iter().flat_map(user_learner::shared);
        let settings = SharedSettings::new(shared.into_iter().chain(of_learner));
        let joules = joules(&setup, place, list.devices.len());
        let holdings = Holdings {
            inputs: own.inputs.as_slice().into(),
            labels: own.labels.clone(),
            unlabeled: own.unlabeled,
            answers: own.answers.clone(),
        };
        let labels = own.labels.len();
        let samples = labels + own.unlabeled;
        let mut kept = StateDir::open(&options.folder, config, own, classes, user)?;
        let (epoch, last_plan) = kept.epoch();
        let network = network::Options {
            listen: options.listen,
            peers: options.places(list)?,
            timing: options.timing,
            once: options.once,
            epoch,
            store: Some(options.folder.join(MODELS)),
            joule_bits_per_second: options.watts.unwrap_or_default() * setup.model_bits,
            settings,
        };
        let device = Device::new(setup.clone(), list.clone(), identity.clone(), holdings, joules);
        let mut device = device.ok_or_else(stranger)?;
        if let Some(user) = user {
            device = device.with_learner(Arc::clone(&user.learner));
        }
        can_listen(options.listen)?;
        let means = device.means(unscaled.as_deref());
        let publications =
            publishing::admitted(config, &setup, scale, means, samples, &mut device, &mut kept)?;
        if !config.divergence.accepts_disclosure() {
            device.limit_replies(kept.replies()?, unscaled.as_deref());
        }
        let layout = device.layout();
        device.resume(kept.training(layout), kept.relayed(layout), last_plan);
        let own_scale = own_scale.map(|(scale, _)| scale);
        Ok(Service {
            options,
            network,
            identity,
            roster,
            device,
            labels,
            own_scale,
            publications,
            kept,
        })
    }

    /// Trains, unless that was done earlier, and takes part until `stop` says so or, if [`Options::once`] is given, an epoch is over.
    /// Blocks, and starts threads of its own; an asynchronous program should call it in a separate thread.
    ///
    /// # Errors
    /// Returns the reason why it ended early. Started again, it continues where it was.
    pub fn run(
        mut self,
        observer: &mut Observer<'_>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Ended, Error> {
        self.train(observer, stop)?;
        self.take_part(observer, stop)
    }

    fn train(&mut self, observer: &mut Observer<'_>, stop: &dyn Fn() -> bool) -> Result<(), Error> {
        let place = self.device.place();
        let device = self.roster.roster().at(place).map_or("", |member| &member.name);
        if self.device.model().is_some() {
            observer(&Event::HasTrained { device });
            return Ok(());
        }
        observer(&Event::Trains { device, labels: self.labels });
        let mut go_on = || match stop() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        match self.device.train(&mut go_on) {
            Ok(true) => self.kept.keep_training(&self.device),
            Ok(false) => Err(Error::StoppedInTraining),
            // What a program of the user's cannot do is no reason to leave the fleet.
            Err(why) if self.options.learner.is_some() => {
                observer(&Event::CannotTrain { device, reason: &why.to_string() });
                self.device.forget_labels();
                Ok(())
            }
            Err(why) => Err(why.into()),
        }
    }

    /// Runs the network until it ends, keeps every event on disk and passes it on to the observer.
    fn take_part(
        self,
        observer: &mut Observer<'_>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Ended, Error> {
        let Service {
            options,
            network,
            identity,
            roster,
            device,
            own_scale,
            publications,
            mut kept,
            ..
        } = self;
        // Whoever finds a publication on disk must find the scale of its samples too.
        if let Some(scale) = own_scale {
            kept.keep_scale(&scale)?;
        }
        kept.keep_publications(&publications)?;
        let list = roster.roster().clone();
        let runtime = runtime()?;
        let numbers = metrics::Numbers::default();
        if let Some(address) = options.numbers {
            let bound = runtime.block_on(metrics::serve(address, numbers.clone()))?;
            observer(&Event::ServesNumbers(bound));
        }
        let mut is_failing = false;
        let mut hear = |view: &View<'_>, event: network::Event| {
            // What cannot be kept now is tried again with the next event; the epoch goes on in memory.
            let trouble = kept.hear(view, &event).err();
            if let Some(trouble) = trouble.as_ref().filter(|_| !is_failing) {
                observer(&Event::CannotKeep(trouble));
            }
            is_failing = trouble.is_some();
            numbers.set(view.status().metrics() + &memory::metric() + &kept.protection_metrics());
            observer(&Event::Network { view, event: &event });
        };
        let (orders, given) = tokio::sync::mpsc::channel(4);
        let ended = runtime.block_on(async {
            let running = network::run(device, roster, &identity, network, given, &mut hear);
            tokio::pin!(running);
            tokio::select! {
                ended = &mut running => ended,
                () = orders::pass_on(&options.roster, stop, orders) => running.await,
            }
        });
        if options.once.is_some() && stop() {
            return Err(Error::StoppedInEpoch);
        }
        let device = ended?;
        let accuracy = kept.accuracy(&device);
        Ok(Ended { device, roster: list, accuracy })
    }
}

fn runtime() -> Result<Runtime, Error> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().map_err(Error::Start)
}

/// Returns the joules of sending a model to each other place, if they are not measured.
fn joules(setup: &Setup, place: Place, devices: usize) -> BTreeMap<Place, f64> {
    let energy = setup.energies(devices);
    let others = (0..devices).map(Place::new).filter(|&to| to != place);
    others.map(|to| (to, energy[place.index() * devices + to.index()])).collect()
}

/// Checks that the address is free and belongs to this machine.
fn can_listen(address: SocketAddr) -> Result<(), Error> {
    let bound = std::net::UdpSocket::bind(address);
    bound.map(drop).map_err(|source| Error::Listen { address, source })
}
