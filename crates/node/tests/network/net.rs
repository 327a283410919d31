//! Devices of the small fleet on loopback, each a task that can be watched and ended.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use stlf_node::Status;
use stlf_node::network::{Error, Event, Options, Order, run};
use stlf_protocol::membership::Timing;
use stlf_protocol::shared::SharedSettings;
use stlf_protocol::{Device, Place, SignedRoster};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::common::{ALL, DEVICES, identity, signed};

/// No test waits longer than this.
pub(crate) const DEADLINE: Duration = stlf_testing::DEADLINE;

pub(crate) fn options(addresses: &[SocketAddr], place: Place) -> Options {
    Options {
        listen: addresses[place.index()],
        follows: false,
        peers: ALL.into_iter().zip(addresses.iter().copied()).collect(),
        seen: BTreeMap::new(),
        searches: false,
        relay: None,
        timing: Timing {
            wait: Duration::from_secs(30),
            settle: Duration::from_millis(500),
            patience: Duration::from_secs(4),
        },
        once: Some(Duration::from_secs(60)),
        epoch: 0,
        convicted: BTreeMap::new(),
        store: None,
        joule_bits_per_second: 1e9 * 0.25,
        settings: settings("calm, storm"),
    }
}

/// What all devices share.
pub(crate) fn settings(classes: &str) -> SharedSettings {
    let all = [("seeds", "5"), ("data.classes", classes), ("training.steps", "300")];
    SharedSettings::new(all.map(|(name, value)| (name.to_owned(), value.to_owned())))
}

/// What a device ended with: its plan's links, and the classes that it gave its samples.
type End = (Vec<(Place, Place, u64)>, Option<Vec<u16>>);

pub(crate) fn end(device: &Device) -> End {
    let links = device.plan().unwrap().links.iter();
    let links = links.map(|l| (l.from, l.to, l.weight.to_bits())).collect();
    (links, device.outcome().map(|p| p.classes().collect()))
}

pub(crate) struct Ended {
    pub(crate) device: Result<Device, Error>,
    pub(crate) events: Vec<Event>,
}

pub(crate) struct Running {
    pub(crate) events: Arc<Mutex<Vec<Event>>>,
    /// Its status at its last event.
    pub(crate) status: Arc<Mutex<Option<Status>>>,
    news: watch::Receiver<usize>,
    orders: mpsc::Sender<Order>,
    task: JoinHandle<Result<Device, Error>>,
}

impl Running {
    /// Waits until what it has told is such.
    pub(crate) async fn until(&mut self, is: impl Fn(&[Event]) -> bool) {
        let events = self.events.clone();
        let told = self.news.wait_for(|_| is(&events.lock().unwrap()));
        let has_told = matches!(timeout(DEADLINE, told).await, Ok(Ok(_)));
        assert!(has_told, "never told; {:?}", self.events.lock().unwrap());
    }

    /// Ends it without a word to anybody, as if its power was cut.
    pub(crate) fn kill(self) -> Arc<Mutex<Vec<Event>>> {
        self.task.abort();
        self.events
    }

    /// Gives it another roster.
    pub(crate) fn use_roster(&self, roster: SignedRoster) {
        self.orders.try_send(Order::Roster(Box::new(roster))).unwrap();
    }

    /// Has it leave in order.
    pub(crate) async fn stop(self) -> Ended {
        let _ = self.orders.try_send(Order::Stop);
        self.end().await
    }

    async fn end(self) -> Ended {
        let device = timeout(DEADLINE, self.task).await.unwrap().unwrap();
        Ended { device, events: std::mem::take(&mut *self.events.lock().unwrap()) }
    }
}

pub(crate) struct Fleet {
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) running: BTreeMap<Place, Running>,
}

impl Fleet {
    /// Addresses on this machine that were free a moment ago. Every test has a host of its own, so that none takes another's.
    pub(crate) fn new(host: u8) -> Fleet {
        let host = Ipv4Addr::new(127, 0, 7, host);
        let sockets: Vec<UdpSocket> =
            (0..DEVICES).map(|_| UdpSocket::bind((host, 0)).unwrap()).collect();
        let addresses = sockets.iter().map(|socket| socket.local_addr().unwrap()).collect();
        Fleet { addresses, running: BTreeMap::new() }
    }

    pub(crate) fn start(&mut self, device: Device, change: impl Fn(Options) -> Options) {
        let place = device.place();
        let options = change(options(&self.addresses, place));
        let events: Arc<Mutex<Vec<Event>>> = Arc::default();
        let (tell, news) = watch::channel(0);
        let (orders, given) = mpsc::channel(4);
        let status: Arc<Mutex<Option<Status>>> = Arc::default();
        let (kept, shown) = (events.clone(), status.clone());
        let task = tokio::spawn(async move {
            let mut hear = |view: &stlf_node::network::View<'_>, event| {
                *shown.lock().unwrap() = Some(view.status());
                kept.lock().unwrap().push(event);
                tell.send_modify(|count| *count += 1);
            };
            run(device, signed(), &identity(place), options, given, &mut hear).await
        });
        self.running.insert(place, Running { events, status, news, orders, task });
    }

    pub(crate) fn take(&mut self, place: Place) -> Running {
        self.running.remove(&place).unwrap()
    }

    /// Waits until a device has told of something.
    pub(crate) async fn until(&mut self, place: Place, is: impl Fn(&Event) -> bool) {
        self.running.get_mut(&place).unwrap().until(|events| events.iter().any(&is)).await;
    }

    /// Has all leave at once, so that none of them begins anew without the others.
    pub(crate) async fn stop(self) -> Vec<(Place, Ended)> {
        for running in self.running.values() {
            let _ = running.orders.try_send(Order::Stop);
        }
        self.ends().await
    }

    /// Waits for all.
    pub(crate) async fn ends(self) -> Vec<(Place, Ended)> {
        let mut ends = Vec::new();
        for (place, running) in self.running {
            ends.push((place, running.end().await));
        }
        ends
    }
}
