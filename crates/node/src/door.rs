//! The owner's side of joining: makes tickets, answers devices that show one, and signs them into the roster, until every ticket is used
//! or has expired.

mod error;
mod guests;
mod keeper;
pub(crate) mod messages;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use iroh::Endpoint;
use iroh::endpoint::{Connection, Incoming, RecvStream, SendStream};
use stlf_config::Config;
use stlf_protocol::{PeerId, Ticket};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{interval, timeout};

pub use self::error::Error;
use self::guests::{Guests, MOST_DEVICES};
use self::keeper::{Asking, Keeper};
use self::messages::{Answer, Asks, Knock, LONGEST_SILENCE, PROTOCOL, Refusal, asked, send};
use crate::network::own_address::reachable;
use crate::network::{self, LOST_AFTER, peer_of};

/// The interval at which time limits and the order to stop are checked.
const EVERY: Duration = Duration::from_millis(100);

/// How long a caller may take, from its call on, until it has shown a valid ticket.
const LONGEST_KNOCK: Duration = Duration::from_secs(10);

/// The answers that a device may have to read: how many are awaited, as others come and go, and the last one.
const MOST_ANSWERS: usize = 64;

/// How the owner invites devices.
#[derive(Debug, Clone)]
pub struct Options {
    /// The fleet's folder, whose last part is the fleet's name; made where there is none.
    pub folder: PathBuf,
    /// The settings of the fleet, if they are not the ones that it has.
    pub config: Option<Config>,
    /// The number of new tickets, which replace those that nobody has used; 0 goes on with these.
    pub devices: usize,
    /// How long they are valid.
    pub expires: Duration,
    /// The address to listen on; else the one of tickets that are still open, or any.
    pub listen: Option<SocketAddr>,
    /// The addresses at which devices reach the owner, if others than the one listened on.
    pub addresses: Vec<SocketAddr>,
    /// If given, those that have come agree after this time. Otherwise they wait until every ticket is used.
    pub wait: Option<Duration>,
}

/// Something that the owner is told.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// Devices with a ticket can join from now on.
    Invites {
        /// The fleet's name.
        fleet: String,
        /// The addresses in the tickets.
        addresses: Vec<SocketAddr>,
        /// The new tickets.
        tickets: Vec<Ticket>,
        /// The number of earlier tickets that nobody has used and that they replace.
        replaced: usize,
        /// The number of all tickets that can be used.
        open: usize,
        /// How long the last of them is valid.
        expires: Duration,
    },
    /// A device with a valid ticket asks to join, and waits for the others.
    Asks {
        /// How it wants to be called.
        name: String,
    },
    /// The devices have agreed on these classes.
    Agreed {
        /// The names of the classes, in the order of their numbers.
        classes: Vec<String>,
    },
    /// A device belongs to the fleet now.
    Joined {
        /// The name that it has in the roster.
        name: String,
        /// The public key by which others know it.
        key: PeerId,
        /// The number of tickets that can still be used.
        open: usize,
    },
    /// A device cannot join.
    Refused {
        /// How it wants to be called.
        name: String,
        /// The reason that it is given.
        reason: String,
    },
}

/// The function that is called with every event.
pub type Observer<'o> = dyn FnMut(&Event) + 'o;

/// What a connection passes on to the loop.
enum Heard {
    /// The caller with this number shows a ticket.
    Knock(u64, PeerId, Knock, Sender<Answer>),
    Asks(Asking),
}

/// Invites devices and answers them until every ticket is used or has expired, or `stop` says so. Returns the number of devices in the
/// roster then. Blocks, and starts threads of its own.
///
/// # Errors
/// Returns the reason why nobody can join.
pub fn run(
    options: &Options,
    observer: &mut Observer<'_>,
    stop: &dyn Fn() -> bool,
) -> Result<usize, Error> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build().map_err(Error::Start)?;
    let keeper = Keeper::open(options)?;
    runtime.block_on(serve(keeper, options, observer, stop))
}

async fn serve(
    mut keeper: Keeper,
    options: &Options,
    observer: &mut Observer<'_>,
    stop: &dyn Fn() -> bool,
) -> Result<usize, Error> {
    let fleet = keeper.roster.roster().fleet.clone();
    if options.devices == 0 && keeper.is_over() {
        return Err(Error::NoTicket { fleet });
    }
    // Open tickets lead to where the owner listened when they were made.
    let before = keeper.invitations.listen.filter(|_| !keeper.is_over());
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let address = options.listen.or(before).unwrap_or(any);
    let endpoint = network::listen(keeper.owner(), address, LOST_AFTER, PROTOCOL, None).await?;
    let bound = endpoint.bound_sockets().first().copied().unwrap_or(address);
    keeper.invitations.listen = Some(bound);
    let addresses = match options.addresses.is_empty() {
        true => vec![reachable(bound, None)],
        false => options.addresses.clone(),
    };
    let (tickets, replaced) = keeper.invite(options, &addresses)?;
    let open = keeper.to_come();
    let last = keeper.last().unwrap_or_default();
    let expires = Duration::from_secs(last.saturating_sub(keeper::now()));
    observer(&Event::Invites { fleet, addresses, tickets, replaced, open, expires });
    let (tell, mut heard) = channel(MOST_DEVICES);
    let mut guests = Guests::default();
    let mut clock = interval(EVERY);
    while !stop() && !keeper.is_over() {
        tokio::select! {
            incoming = endpoint.accept() => {
                let Some(incoming) = incoming else { break };
                if guests.are_many() && !incoming.remote_addr_validated() {
                    let _ = incoming.retry();
                } else {
                    guests.answer(|number| answer(number, incoming, tell.clone()));
                }
            }
            Some(heard) = heard.recv() => match heard {
                Heard::Knock(number, device, knock, answers) => {
                    let answer = keeper.knock(device, &knock);
                    if let Answer::Refused(Refusal { reason, .. }) = &answer {
                        let (name, reason) = (knock.name, reason.clone());
                        observer(&Event::Refused { name, reason });
                        let _ = answers.try_send(answer);
                    } else if guests.has_ticket(number) {
                        let _ = answers.try_send(answer);
                    }
                }
                Heard::Asks(asking) => keeper.ask(asking, observer)?,
            },
            _ = clock.tick() => guests.forget_who_left(),
        }
        keeper.look(options, observer)?;
    }
    // Those that waited when the last ticket expired are let in.
    keeper.look(options, observer)?;
    // Nobody else is answered: only those that are told the last answer have to hear it.
    drop(heard);
    keeper.send_who_waits_away();
    finish(&endpoint, guests).await;
    let list = keeper.roster.roster();
    Ok(list.devices.iter().filter(|member| member.present).count())
}

/// Waits until the last devices have read what they were told.
async fn finish(endpoint: &Endpoint, mut guests: Guests) {
    let _ = timeout(LOST_AFTER, guests.leave()).await;
    guests.send_away();
    endpoint.close().await;
}

/// Answers the caller with this number. Whoever breaks off calls again, or does not.
async fn answer(number: u64, incoming: Incoming, tell: Sender<Heard>) {
    // Who has no valid ticket must be gone by then, even if it does not read why.
    let knocked = timeout(LONGEST_KNOCK, knock(number, incoming, &tell)).await;
    if let Ok(Ok(Some(visit))) = knocked {
        let _ = visit.go_on(tell).await;
    }
}

/// A device that has shown a valid ticket.
struct Visit {
    connection: Connection,
    device: PeerId,
    knock: Knock,
    out: SendStream,
    from: RecvStream,
}

/// Hears which ticket a caller has, and tells it the answer; nobody if that is the last one.
async fn knock(
    number: u64,
    incoming: Incoming,
    tell: &Sender<Heard>,
) -> Result<Option<Visit>, String> {
    let come = async {
        let connection = incoming.await.map_err(|e| e.to_string())?;
        let (out, mut from) = connection.accept_bi().await.map_err(|e| e.to_string())?;
        let knock: Knock = asked(&mut from).await?;
        Ok::<_, String>((connection, out, from, knock))
    };
    let (connection, mut out, from, knock) = unless_over(tell, come).await?;
    let device = peer_of(&connection);
    let (answers, mut answered) = channel(MOST_ANSWERS);
    tell.send(Heard::Knock(number, device, knock.clone(), answers)).await.map_err(gone)?;
    if pass_on(&connection, &mut answered, &mut out).await? {
        has_read(&mut out).await?;
        return Ok(None);
    }
    Ok(Some(Visit { connection, device, knock, out, from }))
}

impl Visit {
    /// Passes on what the device asks for, and tells it the answers, until the last one has arrived.
    async fn go_on(self, tell: Sender<Heard>) -> Result<(), String> {
        let Visit { connection, device, knock, mut out, mut from } = self;
        let asks: Asks = unless_over(&tell, asked(&mut from)).await?;
        let (answers, mut answered) = channel(MOST_ANSWERS);
        let asking = Asking { device, knock, asks, answers, since: Instant::now() };
        tell.send(Heard::Asks(asking)).await.map_err(gone)?;
        while !pass_on(&connection, &mut answered, &mut out).await? {}
        timeout(LONGEST_SILENCE, has_read(&mut out)).await.map_err(|e| e.to_string())?
    }
}

/// Waits for something that a caller is to say, for as long as the owner hears it.
async fn unless_over<T>(
    tell: &Sender<Heard>,
    said: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    tokio::select! {
        said = said => said,
        () = tell.closed() => Err(gone(())),
    }
}

fn gone<T>(_: T) -> String {
    "the owner has stopped".to_owned()
}

/// Waits until the last answer has arrived.
async fn has_read(out: &mut SendStream) -> Result<(), String> {
    out.finish().map_err(|e| e.to_string())?;
    out.stopped().await.map(drop).map_err(|e| e.to_string())
}

/// Sends the next answer, and returns whether it is the last one.
async fn pass_on(
    connection: &Connection,
    answers: &mut Receiver<Answer>,
    out: &mut SendStream,
) -> Result<bool, String> {
    let answer = tokio::select! {
        answer = answers.recv() => answer.ok_or("the owner has stopped")?,
        lost = connection.closed() => return Err(lost.to_string()),
    };
    send(out, &answer).await?;
    Ok(matches!(answer, Answer::Welcome { .. } | Answer::Refused(_)))
}
