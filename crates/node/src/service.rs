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

mod address_book;
mod bringing;
mod convictions;
mod data_files;
mod data_watch;
mod error;
mod event;
mod event_log;
mod line_limit;
mod making;
mod memory;
mod metrics;
mod mixture;
mod options;
mod orders;
mod publishing;
mod state_dir;
mod told_so_far;
mod user_learner;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use stlf_config::Search;
use stlf_data::features::OwnScale;
use stlf_protocol::{Device, Roster, SignedRoster};
use tokio::runtime::Runtime;

pub(crate) use self::bringing::brought;
use self::data_files::DataFiles;
use self::data_watch::DataWatch;
pub use self::error::Error;
pub use self::event::{Event, Line, Observer};
use self::line_limit::{LineLimit, ShownPace};
use self::making::{Made, Making};
pub(crate) use self::options::with_own_data;
pub use self::options::{Options, settings};
use self::publishing::Publications;
pub(crate) use self::state_dir::ROSTER;
use self::state_dir::{MODELS, StateDir};
use crate::computing::Computing;
use crate::data_change::DataChange;
use crate::key_file;
use crate::network::{self, View};

/// A device that is ready to take part.
pub struct Service {
    making: Arc<Making>,
    network: network::Options,
    roster: SignedRoster,
    device: Device,
    labels: usize,
    /// The scale of its own by which its features are scaled, where there is one.
    own_scale: Option<OwnScale>,
    /// What it has published once it takes part.
    publications: Publications,
    kept: StateDir,
    /// Looks after its table or its pictures, where it has some and takes part in more than one epoch.
    watch: Option<DataWatch>,
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
    /// What its student cost, if it is a target that has trained one and that is known.
    pub student_cost: Option<Computing>,
}

impl Service {
    /// Reads key, roster and data, opens the folder, and continues from what is in it.
    ///
    /// # Errors
    /// Returns the reason why the device cannot take part, before a long training and not after it.
    pub fn new(options: Options, observer: &mut Observer<'_>) -> Result<Service, Error> {
        let identity = key_file::read(&options.key)?;
        let roster = orders::roster(&options.roster, &options.folder, observer)?;
        let list = roster.roster();
        let making = Arc::new(Making::new(options, identity, list)?);
        let Making { options, config, .. } = &*making;
        let user = options.learner.as_ref();
        let is_watched = user.is_none() && options.once.is_none();
        let files = is_watched.then(|| DataFiles::of(&config.data)).flatten();
        let mut made = making.make(observer)?;
        let (own, classes) = (made.own.clone(), made.classes.clone());
        let mut kept = StateDir::open(&options.folder, config, own, classes, user)?;
        let (epoch, last_plan) = kept.epoch();
        let network = network::Options {
            listen: options.listen,
            follows: options.follows,
            peers: options.places(list)?,
            seen: kept.addresses(list),
            searches: config.node.search == Search::Lan,
            relay: options.relay()?,
            timing: options.timing,
            once: options.once,
            epoch,
            convicted: BTreeMap::new(),
            store: Some(options.folder.join(MODELS)),
            joule_bits_per_second: options.watts.unwrap_or_default()
                * made.device.setup().model_bits,
            settings: made.settings.clone(),
        };
        can_listen(options.listen)?;
        let publications = publishing::admitted(config, &mut made, &mut kept)?;
        let watch = files.and_then(|files| DataWatch::new(files, &making, &made));
        let Made { mut device, own, own_scale, .. } = made;
        let layout = device.layout();
        let schooled = kept.schooled(layout);
        device.resume(kept.training(layout), kept.relayed(layout), last_plan);
        schooled.into_iter().for_each(|schooled| device.remember_student(schooled));
        Ok(Service {
            making: Arc::clone(&making),
            network,
            roster,
            device,
            labels: own.labels.len(),
            own_scale: own_scale.map(|(scale, _)| scale),
            publications,
            kept,
            watch,
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
        warn(self.making.name(), &self.device, observer);
        self.take_part(observer, stop)
    }

    fn train(&mut self, observer: &mut Observer<'_>, stop: &dyn Fn() -> bool) -> Result<(), Error> {
        let making = Arc::clone(&self.making);
        let device = making.name();
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
            Err(why) if making.options.learner.is_some() => {
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
            making,
            mut network,
            roster,
            device,
            own_scale,
            publications,
            mut kept,
            watch,
            ..
        } = self;
        let Making { options, identity, .. } = &*making;
        // Whoever finds a publication on disk must find the scale of its samples too.
        if let Some(scale) = own_scale {
            kept.keep_scale(&scale)?;
        }
        kept.keep_publications(&publications)?;
        let list = roster.roster().clone();
        // Time has passed since the files were read, if the device has trained.
        network.convicted = kept.convicted(&list, network.timing.conviction());
        let runtime = runtime()?;
        let numbers = metrics::Numbers::default();
        if let Some(address) = options.numbers {
            let bound = runtime.block_on(metrics::serve(address, numbers.clone()))?;
            observer(&Event::ServesNumbers(bound));
        }
        let told = Told {
            kept,
            observer,
            is_failing: false,
            limit: LineLimit::default(),
            pace: ShownPace::default(),
            has_numbers: options.numbers.is_some(),
            started: Instant::now(),
        };
        let told = Mutex::new(told);
        let mut hear = |view: &View<'_>, event: network::Event| {
            if let Some(now) = locked(&told).hear(view, &event) {
                numbers.set(now);
            }
        };
        let (orders, given) = tokio::sync::mpsc::channel(4);
        let ended = runtime.block_on(async {
            let running = network::run(device, roster, identity, network, given, &mut hear);
            tokio::pin!(running);
            let watched = async {
                match watch {
                    Some(watch) => watch.run(&told, orders.clone()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                ended = &mut running => ended,
                () = orders::pass_on(&options.roster, stop, orders.clone()) => running.await,
                () = watched => running.await,
            }
        });
        if options.once.is_some() && stop() {
            return Err(Error::StoppedInEpoch);
        }
        let device = ended?;
        let kept = &locked(&told).kept;
        let (accuracy, student_cost) = (kept.accuracy(&device), kept.student_cost(&device));
        Ok(Ended { device, roster: list, accuracy, student_cost })
    }
}

/// Tells of a device whose own model is no better than guessing.
fn warn(device: &str, trained: &Device, observer: &mut Observer<'_>) {
    if let Some(guessing) = trained.guessing() {
        observer(&Event::Guesses { device, guessing });
    }
}

/// Who keeps what happens, and who is told of it.
struct Told<'s, 'o> {
    kept: StateDir,
    observer: &'s mut Observer<'o>,
    is_failing: bool,
    limit: LineLimit,
    pace: ShownPace,
    /// Whether anybody can ask for metrics.
    has_numbers: bool,
    started: Instant,
}

impl Told<'_, '_> {
    /// Keeps an event, tells of it, and returns the metrics of the device after it, if they are served. Of a flood only the beginning is told, and
    /// what it changes is kept all the same.
    fn hear(&mut self, view: &View<'_>, event: &network::Event) -> Option<String> {
        let now = self.started.elapsed();
        if let Some(events) = self.limit.over(now) {
            // The number is told in any case.
            let _ = self.kept.note_untold(view, events);
            (self.observer)(&Event::Untold { events });
        }
        let is_told = self.limit.takes(event, now);
        // What cannot be kept now is tried again with the next event; the epoch goes on in memory.
        let kept = self.kept.keep(view, event);
        let noted = kept.and_then(|()| match is_told {
            true => self.kept.note(view, event),
            false => Ok(()),
        });
        let shown = noted.and_then(|()| match is_told && self.pace.shows(event, now) {
            true => self.kept.show(view),
            false => Ok(()),
        });
        let trouble = shown.err();
        if let Some(trouble) = trouble.as_ref().filter(|_| !self.is_failing) {
            (self.observer)(&Event::CannotKeep(trouble));
        }
        // Where nothing is written, nothing is known of the disk.
        if is_told || trouble.is_some() {
            self.is_failing = trouble.is_some();
        }
        if !is_told {
            return None;
        }
        let metrics =
            || view.status().metrics() + &memory::metric() + &self.kept.protection_metrics();
        let metrics = self.has_numbers.then(metrics);
        (self.observer)(&Event::Network { view, event });
        metrics
    }

    /// Shows what has become of the device's data, and tells of it.
    fn hear_of_data(&mut self, device: &str, change: DataChange) {
        (self.observer)(&Event::Data { device, change: &change });
        self.kept.set_change(Some(change));
    }
}

/// Nobody who holds this can leave it half done: an observer that panics ends the service.
fn locked<'t, 's, 'o>(told: &'t Mutex<Told<'s, 'o>>) -> MutexGuard<'t, Told<'s, 'o>> {
    told.lock().unwrap_or_else(PoisonError::into_inner)
}

fn runtime() -> Result<Runtime, Error> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().map_err(Error::Start)
}

/// Checks that the address is free and belongs to this machine.
fn can_listen(address: SocketAddr) -> Result<(), Error> {
    let bound = std::net::UdpSocket::bind(address);
    bound.map(drop).map_err(|source| Error::Listen { address, source })
}
