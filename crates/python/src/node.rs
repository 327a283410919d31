//! A real device of a fleet in this process: the service runs in a thread of its own and tells what happens.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use pyo3::prelude::*;
use serde_json::{Value, json};
use stlf_config::Config;
use stlf_node::network;
use stlf_node::service::{Ended, Error, Event, Line, Options, Service};
use stlf_planning::Role;
use stlf_protocol::membership::Timing;

use crate::errors::{in_run, in_service, input};
use crate::learner::{Raised, user_learner, with_cause};

/// The interval at which Ctrl-C is checked while nothing happens.
const TICK: Duration = Duration::from_millis(50);

/// A device that takes part in its fleet.
#[pyclass(frozen, module = "stlf._internal")]
pub(crate) struct Node {
    to_stop: Arc<AtomicBool>,
    events: Mutex<Receiver<Value>>,
    thread: Mutex<Option<JoinHandle<Result<(), Error>>>>,
    raised: Raised,
}

#[pymethods]
impl Node {
    /// Reads everything that a device needs, and starts it. Times are in seconds.
    #[new]
    #[pyo3(signature = (config, *, learner, roster, key, folder, listen, peers, times, once, watts))]
    #[allow(clippy::too_many_arguments, reason = "Python names them")]
    fn new(
        py: Python<'_>,
        config: &str,
        learner: Option<&Bound<'_, PyAny>>,
        roster: PathBuf,
        key: PathBuf,
        folder: PathBuf,
        listen: &str,
        peers: Vec<(String, String)>,
        times: (f64, f64, f64),
        once: Option<f64>,
        watts: Option<f64>,
    ) -> PyResult<Node> {
        let config = Config::parse(config, Path::new("config.toml"));
        let config = config.map_err(|e| in_run(py, &e.into()))?;
        let address = |text: &str| -> PyResult<SocketAddr> {
            let wrong = |_| {
                input(
                    py,
                    format!("{text:?} is no address"),
                    "write HOST:PORT, such as 10.0.0.5:7000",
                )
            };
            text.parse().map_err(wrong)
        };
        let seconds = |s: f64| Duration::try_from_secs_f64(s).unwrap_or(Duration::MAX);
        let mut options = Options::new(config, roster, key, folder);
        options.listen = address(listen)?;
        options.peers = (peers.into_iter())
            .map(|(name, at)| Ok((name, address(&at)?)))
            .collect::<PyResult<_>>()?;
        let (wait, settle, patience) = times;
        options.timing =
            Timing { wait: seconds(wait), settle: seconds(settle), patience: seconds(patience) };
        options.once = once.map(seconds);
        options.watts = watts;
        let raised = Raised::default();
        options.learner = learner.map(|bridge| user_learner(py, bridge, &raised)).transpose()?;
        let (sender, events) = channel();
        let mut teller = Teller { sender, stage: None };
        let (service, mut teller) = py.detach(|| {
            let service = Service::new(options, &mut |event: &Event<'_>| teller.tell(event));
            (service, teller)
        });
        let service = service.map_err(|e| in_service(py, &e))?;
        let to_stop = Arc::new(AtomicBool::new(false));
        let stop = to_stop.clone();
        let thread = std::thread::spawn(move || {
            let is_stopped = || stop.load(Ordering::Relaxed);
            let ended = service.run(&mut |event: &Event<'_>| teller.tell(event), &is_stopped)?;
            teller.finish(&ended);
            Ok(())
        });
        let (events, thread) = (Mutex::new(events), Mutex::new(Some(thread)));
        Ok(Node { to_stop, events, thread, raised })
    }

    /// The next thing that happens, as JSON; none once the device has ended, or if nothing happens for so many seconds.
    #[pyo3(signature = (timeout=None))]
    fn next(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<String>> {
        let mut left = timeout.map(|s| Duration::try_from_secs_f64(s).unwrap_or_default());
        loop {
            let longest = left.map_or(TICK, |left| left.min(TICK));
            let heard = py.detach(|| {
                let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
                events.recv_timeout(longest)
            });
            match heard {
                Ok(event) => return Ok(Some(event.to_string())),
                Err(RecvTimeoutError::Disconnected) => return self.end(py).map(|()| None),
                Err(RecvTimeoutError::Timeout) => {}
            }
            py.check_signals()?;
            left = left.map(|left| left.saturating_sub(longest));
            if left == Some(Duration::ZERO) {
                return Ok(None);
            }
        }
    }

    /// Returns whether the device has ended.
    #[getter]
    fn has_ended(&self) -> bool {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Tells the device to leave its fleet, and waits until it has. Started again with its folder, it goes on where it was.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        self.to_stop.store(true, Ordering::Relaxed);
        match py.detach(|| self.join()) {
            Some(Err(Error::StoppedInTraining | Error::StoppedInEpoch)) | Some(Ok(())) | None => {
                Ok(())
            }
            Some(Err(e)) => Err(self.failed(py, &e)),
        }
    }
}

impl Node {
    /// Waits for a device that has ended by itself.
    fn end(&self, py: Python<'_>) -> PyResult<()> {
        match py.detach(|| self.join()) {
            Some(Err(e)) => Err(self.failed(py, &e)),
            Some(Ok(())) | None => Ok(()),
        }
    }

    fn failed(&self, py: Python<'_>, error: &Error) -> PyErr {
        with_cause(py, in_service(py, error), &self.raised)
    }

    /// Waits for the thread; none if that was done before.
    fn join(&self) -> Option<Result<(), Error>> {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Whoever forgets it does not wait for it.
        self.to_stop.store(true, Ordering::Relaxed);
    }
}

/// Makes of everything that happens what Python hears.
struct Teller {
    sender: Sender<Value>,
    /// The epoch and what the device did in it last.
    stage: Option<(u64, Value)>,
}

impl Teller {
    fn say(&self, event: Value) {
        // Nobody listens only once all is over.
        let _ = self.sender.send(event);
    }

    fn tell(&mut self, event: &Event<'_>) {
        match event {
            Event::HasTrained { .. } => {
                self.say(json!({ "kind": "training", "done": true, "labels": null }))
            }
            Event::Trains { labels, .. } => {
                self.say(json!({ "kind": "training", "done": false, "labels": labels }));
            }
            Event::Guesses { guessing, .. } => {
                self.say(json!({ "kind": "warned", "reason": guessing.to_string() }));
            }
            Event::CannotTrain { reason, .. } => {
                self.say(json!({ "kind": "cannot_train", "reason": reason }));
            }
            Event::CannotKeep(trouble) => {
                self.say(json!({ "kind": "cannot_keep", "reason": trouble.to_string() }));
            }
            Event::Network { view, event } => {
                let status = view.status();
                let stage = serde_json::to_value(status.stage).unwrap_or_default();
                if self.stage.as_ref() != Some(&(status.epoch, stage.clone())) {
                    self.say(json!({ "kind": "phase", "epoch": status.epoch, "stage": stage }));
                    self.stage = Some((status.epoch, stage));
                }
                match event {
                    network::Event::Alive => {}
                    network::Event::Planned { optimal } => {
                        let own = status.devices.iter().find(|peer| peer.name == status.device);
                        self.say(json!({
                            "kind": "planned",
                            "epoch": status.epoch,
                            "role": own.and_then(|own| own.role.clone()),
                            "members": own.map(|own| own.from.clone()).unwrap_or_default(),
                            "handed_from": own.and_then(|own| own.handed_from.clone()),
                            "optimal": optimal,
                        }));
                    }
                    event => {
                        let line = Line::new(view, event).to_json();
                        let line: Value = serde_json::from_str(&line).unwrap_or_default();
                        self.say(json!({ "kind": "happened", "epoch": line["epoch"], "event": line["event"] }));
                    }
                }
            }
            _ => {}
        }
    }

    fn finish(&self, ended: &Ended) {
        let Ended { device, roster, accuracy, .. } = ended;
        let (plan, expected) = (device.plan(), device.combined().and_then(|c| c.expected));
        let role = plan.and_then(|plan| plan.role(device.place()));
        let name = |place| roster.at(place).map(|member| member.name.clone());
        let members: Vec<(String, f64)> = plan
            .into_iter()
            .flat_map(|plan| plan.incoming(device.place()))
            .filter_map(|link| Some((name(link.from)?, link.weight)))
            .collect();
        self.say(json!({
            "kind": "finished",
            "epoch": plan.map(|plan| plan.epoch),
            "role": role.map(|role| if role == Role::Source { "source" } else { "target" }),
            "members": members,
            "accuracy": accuracy,
            "expected": expected.map(|e| (e.accuracy, e.low, e.high)),
            "no_plan": device.no_plan(),
        }));
    }
}
