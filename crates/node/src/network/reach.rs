//! What a device is reached by and reaches others by: its endpoint, the tasks that answer and make calls, its announcement on the local
//! network. If the machine gets another address, all of it is made anew.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use iroh::{Endpoint, EndpointAddr};
use stlf_protocol::identity::{Identity, PeerId};
use stlf_protocol::roster::{Place, Roster};
use swarm_discovery::DropGuard;
use tokio::sync::mpsc::Sender;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::link::{self, Ears};
use super::member::Member;
use super::neighbours::{self, Announced};
use super::{Error, Options, PROTOCOL, listen, lost_after};

/// The number of devices that are called at the same time.
const CALLS_AT_ONCE: usize = 4;

/// The same for devices that are the ones to call, and are missed.
const CALLS_BACK_AT_ONCE: usize = 1;

/// An endpoint with its tasks.
pub(super) struct Reach {
    endpoint: Endpoint,
    address: SocketAddr,
    tasks: JoinSet<()>,
    /// How each other device is called; `None` while it is not.
    called: BTreeMap<Place, watch::Sender<Option<EndpointAddr>>>,
    calls: Arc<Semaphore>,
    calls_back: Arc<Semaphore>,
    ears: Ears,
    /// The announcement on the local network, which ends when this is dropped.
    _announced: Option<DropGuard>,
}

impl Reach {
    /// Listens on an address, answers calls, and announces itself on the local network if it is to. Returns also the reason if that
    /// cannot be done; all else goes on without it.
    pub(super) async fn open(
        address: SocketAddr,
        identity: &Identity,
        roster: &Roster,
        options: &Options,
        (ears, heard): (Ears, Sender<Announced>),
    ) -> Result<(Reach, Option<String>), Error> {
        let relay = options.relay.as_ref();
        let endpoint = listen(identity, address, lost_after(roster), PROTOCOL, relay).await?;
        let address = endpoint.bound_sockets().first().copied().unwrap_or(address);
        let announced = match options.searches {
            true => neighbours::announce(roster.owner, identity.id(), address, heard),
            false => Ok(None),
        };
        let (announced, trouble) = match announced {
            Ok(announced) => (announced, None),
            Err(trouble) => (None, Some(trouble)),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(link::accept(endpoint.clone(), ears.clone()));
        let reach = Reach {
            endpoint,
            address,
            tasks,
            called: BTreeMap::new(),
            calls: Arc::new(Semaphore::new(CALLS_AT_ONCE)),
            calls_back: Arc::new(Semaphore::new(CALLS_BACK_AT_ONCE)),
            ears,
            _announced: announced,
        };
        Ok((reach, trouble))
    }

    /// Returns where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Calls those that are to be called now, and no others.
    pub(super) fn call(&mut self, member: &Member) {
        for (place, key, at) in member.to_call() {
            match self.called.get(&place) {
                Some(known) => {
                    known.send_if_modified(|known| std::mem::replace(known, at.clone()) != at);
                }
                None if at.is_some() => self.begin(place, key, at, member),
                None => {}
            }
        }
    }

    fn begin(&mut self, place: Place, key: PeerId, at: Option<EndpointAddr>, member: &Member) {
        let (tell, at) = watch::channel(at);
        self.called.insert(place, tell);
        let callee = link::Callee { key, at, introduction: member.introduction() };
        let calls = if place < member.place() { &self.calls } else { &self.calls_back };
        let call = link::call(self.endpoint.clone(), callee, calls.clone(), self.ears.clone());
        self.tasks.spawn(call);
    }

    /// Closes it, up to a time limit.
    pub(super) async fn close(mut self, most: Duration) {
        self.tasks.abort_all();
        let _ = tokio::time::timeout(most, self.endpoint.close()).await;
    }
}
