//! An owner and devices that join, within one program: who is let in, who is told what, and what is kept.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use iroh::endpoint::{Connection, presets};
use iroh::{Endpoint, EndpointAddr, PublicKey, TransportAddr};
use stlf_config::Config;
use stlf_node::door::{self, Event};
use stlf_node::joining::{self, Error, Joined};
use stlf_node::service::{self, settings};
use stlf_protocol::ticket::SECRET;
use stlf_protocol::{Identity, SignedRoster, Ticket};
use stlf_testing::DEADLINE;

/// A folder for everybody.
struct Place(tempfile::TempDir);

impl Place {
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a table with these columns and labels.
    fn table(&self, name: &str, columns: &str, labels: &[&str]) -> PathBuf {
        let path = self.path(name);
        let row = |k: usize| {
            let (x, y) = (k * 31 % 97, k * 53 % 89);
            format!("{}.{x:02},{}.{y:02},{}\n", k % 17, k % 5, labels[k % labels.len()])
        };
        let rows: String = (0..200).map(row).collect();
        std::fs::write(&path, format!("{columns},label\n{rows}")).unwrap();
        path
    }

    fn options(&self, name: &str, ticket: &Ticket, data: &Path) -> joining::Options {
        joining::Options {
            ticket: ticket.clone(),
            name: name.to_owned(),
            data: Some(data.to_owned()),
            learner: None,
            changes: Vec::new(),
            folder: self.path(&format!("node-{name}")),
            listen: None,
            patience: Duration::from_secs(1),
        }
    }

    fn roster(&self) -> SignedRoster {
        SignedRoster::read(&std::fs::read(self.path("harbour/roster.json")).unwrap()).unwrap()
    }
}

/// What the owner says of a ticket that it does not know.
const NOT_OURS: &str = "harbour refuses: this ticket is not one of this fleet's";

fn place() -> Place {
    Place(tempfile::tempdir().unwrap())
}

/// How the owner invites so many devices, which need not wait for each other.
fn invitation(place: &Place, devices: usize) -> door::Options {
    door::Options {
        folder: place.path("harbour"),
        config: None,
        devices,
        expires: Duration::from_secs(600),
        listen: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
        addresses: Vec::new(),
        wait: Some(Duration::ZERO),
    }
}

/// How long an owner that stops may take, at most. A lost connection is noticed later than that.
const SOON: Duration = Duration::from_secs(3);

/// Opens the door, does something with the new tickets, and closes it. Returns what the owner was told.
fn with_door<T: Send>(
    options: &door::Options,
    visit: impl FnOnce(Vec<Ticket>) -> T + Send,
) -> (T, Vec<Event>) {
    let stop = AtomicBool::new(false);
    let (tell, hears) = channel();
    std::thread::scope(|scope| {
        let open = scope.spawn(|| {
            let mut told = Vec::new();
            let mut observer = |event: &Event| {
                if let Event::Invites { tickets, .. } = event {
                    tell.send(tickets.clone()).unwrap();
                }
                told.push(event.clone());
            };
            door::run(options, &mut observer, &|| stop.load(Ordering::Relaxed)).unwrap();
            told
        });
        let visited = visit(hears.recv_timeout(DEADLINE).unwrap());
        stop.store(true, Ordering::Relaxed);
        (visited, open.join().unwrap())
    })
}

fn join(options: &joining::Options) -> Result<Joined, Error> {
    joining::join(options, &mut |_| {}, &|| false)
}

#[test]
fn devices_that_join_together_agree_on_all_classes_and_have_one_roster() {
    let place = place();
    let tables = [("gate", "storm"), ("yard", "calm"), ("dock", "")];
    let tables = tables.map(|(n, label)| (n, place.table(&format!("{n}.csv"), "x,y", &[label])));
    let together = door::Options { wait: None, ..invitation(&place, 3) };
    let (joined, told) = with_door(&together, |tickets| {
        std::thread::scope(|scope| {
            let visits = tables.iter().zip(&tickets).map(|((name, table), ticket)| {
                let options = place.options(name, ticket, table);
                scope.spawn(move || join(&options).unwrap())
            });
            let visits: Vec<_> = visits.collect();
            visits.into_iter().map(|visit| visit.join().unwrap()).collect::<Vec<Joined>>()
        })
    });
    let agreed = told.iter().find_map(|event| match event {
        Event::Agreed { classes } => Some(classes.clone()),
        _ => None,
    });
    assert_eq!(agreed.unwrap(), ["calm", "storm"]);
    let roster = place.roster();
    assert_eq!(roster.roster().devices.len(), 3);
    for ((name, _), joined) in tables.iter().zip(&joined) {
        let folder = place.path(&format!("node-{name}"));
        let kept = std::fs::read(folder.join("roster.json")).unwrap();
        assert_eq!(SignedRoster::read(&kept).unwrap(), roster);
        let options = joined.options(&folder).unwrap();
        let list = roster.roster();
        let member = list.devices.iter().find(|member| member.name == *name).unwrap();
        assert_eq!(member.address, Some(options.listen));
        assert_eq!(options.config.data.classes.unwrap(), ["calm", "storm"]);
        assert_eq!(Joined::read(&folder).unwrap().as_ref(), Some(joined));
    }
    // Nobody but the owner reads the state of tickets, and it holds no secret.
    let kept = place.path("harbour/invitations.json");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn a_ticket_lets_one_device_in_and_that_one_may_ask_again() {
    let place = place();
    let table = place.table("own.csv", "x,y", &["calm", "storm"]);
    with_door(&invitation(&place, 2), |tickets| {
        let gate = place.options("gate", &tickets[0], &table);
        let first = join(&gate).unwrap();
        // The answer may have been lost: without it the device asks again.
        assert_eq!(join(&gate).unwrap(), first);
        std::fs::remove_file(place.path("node-gate/joined.json")).unwrap();
        let again = joining::Options { listen: Some("127.0.0.1:0".parse().unwrap()), ..gate };
        assert!(join(&again).is_ok());
        let other = join(&place.options("yard", &tickets[0], &table)).unwrap_err().to_string();
        assert!(
            other.starts_with("harbour refuses: this ticket was used by gate (key "),
            "{other}"
        );
        let other = joining::Options { ticket: tickets[1].clone(), ..again.clone() };
        let other = join(&other).unwrap_err().to_string();
        assert!(other.ends_with("which has joined harbour with another ticket"), "{other}");
        assert_eq!(place.roster().roster().devices.len(), 1);
        assert!(join(&place.options("yard", &tickets[1], &table)).is_ok());
        assert_eq!(place.roster().roster().devices.len(), 2);
    });
}

#[test]
fn devices_with_readings_join_by_the_owner_s_windows() {
    let place = place();
    let readings = |name: &str| {
        let path = place.path(name);
        let row = |k: usize| {
            let label = ["calm", "storm"][(k / 1600) % 2];
            format!("{},{},{label}\n", (k * 37) % 101, (k * 53) % 97)
        };
        let rows: String = (0..3200).map(row).collect();
        std::fs::write(&path, format!("x,y,label\n{rows}")).unwrap();
        path
    };
    let table = readings("own.csv");
    // The owner has no data, or a configuration for a table of all devices.
    let (windows, all) = ("data.window=32", ["data.features=all.csv", "data.device=machine"]);
    for changes in [vec!["data.domains=[]", windows], [&all[..], &[windows]].concat()] {
        let config = Some(settings(None, None, &changes).unwrap());
        let invitation = door::Options { config, ..invitation(&place, 2) };
        with_door(&invitation, |tickets| {
            let gate = place.options("gate", &tickets[0], &table);
            let joined = join(&gate).unwrap().options(&gate.folder).unwrap();
            assert_eq!(joined.config.data.windows().map(|w| w.length), Some(32));
            assert_eq!(joined.config.data.device, None);
            let changes = vec!["data.window=16".to_owned()];
            let yard = joining::Options { changes, ..place.options("yard", &tickets[1], &table) };
            let expected = r#"harbour refuses: data.window differs: "16" here, "32" there"#;
            assert_eq!(join(&yard).unwrap_err().to_string(), expected);
        });
        std::fs::remove_dir_all(place.path("harbour")).unwrap();
        std::fs::remove_dir_all(place.path("node-gate")).unwrap();
    }
}

#[test]
fn who_differs_is_refused_with_the_first_difference_and_keeps_the_ticket() {
    let place = place();
    let table = place.table("own.csv", "x,y", &["calm", "storm"]);
    with_door(&invitation(&place, 2), |tickets| {
        join(&place.options("gate", &tickets[0], &table)).unwrap();
        let yard = |data: &Path| place.options("yard", &tickets[1], data);
        let told = |options: &joining::Options| join(options).unwrap_err().to_string();
        let other = place.table("other.csv", "y,x", &["calm"]);
        let expected = r#"harbour refuses: data.columns differs: "y, x" here, "x, y" there"#;
        assert_eq!(told(&yard(&other)), expected);
        let steps = joining::Options { changes: vec!["training.steps=7".into()], ..yard(&table) };
        let expected = r#"harbour refuses: training.steps differs: "7" here, "10000" there"#;
        assert_eq!(told(&steps), expected);
        let fog = place.table("fog.csv", "x,y", &["fog"]);
        assert!(told(&yard(&fog)).ends_with(r#"has the label "fog", which is not a class"#));
        let changes = vec!["data.classes=[\"fog\"]".to_owned()];
        let other = join(&joining::Options { changes, ..yard(&fog) }).unwrap_err();
        assert!(other.hint().unwrap().contains("--classes"), "{other}");
        assert!(matches!(other, Error::Refused { setting: Some(s), .. } if s == "data.classes"));
        let twice = joining::Options { name: "gate".into(), ..yard(&table) };
        assert_eq!(told(&twice), r#"harbour refuses: two devices are called "gate""#);
        let short = place.path("short.csv");
        std::fs::write(&short, "x,y,label\n1,2,calm\n3,4,storm\n").unwrap();
        assert!(matches!(join(&yard(&short)), Err(Error::Unsupported(_))));
        // As many rows as are needed, but all alike.
        let alike = place.path("alike.csv");
        std::fs::write(&alike, format!("x,y,label\n{}", "1,2,calm\n".repeat(100))).unwrap();
        let refused = join(&yard(&alike));
        assert!(matches!(refused, Err(Error::Unsupported(_))), "{refused:?}");
        // What it has published before is not known.
        let record = place.path("node-yard/published.json");
        std::fs::write(&record, "{").unwrap();
        let refused = join(&yard(&table));
        let is_record = |e: &Error| matches!(e, Error::Unable(e) if matches!(**e, service::Error::Ledger { .. }));
        assert!(refused.as_ref().is_err_and(is_record), "{refused:?}");
        std::fs::remove_file(record).unwrap();
        assert_eq!(place.roster().roster().devices.len(), 1);
        // The order of the classes is the fleet's, in which all must have them.
        let changes = vec!["data.classes=[\"storm\", \"calm\"]".to_owned()];
        let yard = joining::Options { changes, ..yard(&table) };
        let joined = join(&yard).unwrap().options(&yard.folder).unwrap();
        assert_eq!(joined.config.data.classes.unwrap(), ["calm", "storm"]);
    });
}

#[test]
fn forged_tickets_and_addresses_where_nobody_is_are_told_apart() {
    let place = place();
    let table = place.table("own.csv", "x,y", &["calm", "storm"]);
    let told = |ticket: &Ticket| {
        let gate = place.options("gate", ticket, &table);
        join(&gate).unwrap_err().to_string()
    };
    let (ticket, _) = with_door(&invitation(&place, 1), |tickets| {
        let ticket = &tickets[0];
        let forged = Ticket::new([7; SECRET], ticket.owner(), "harbour", ticket.addresses());
        let forged = told(&forged);
        assert!(forged.starts_with(NOT_OURS), "{forged}");
        let stranger = Identity::from_bytes(&[9; 32]).id();
        let other = Ticket::new([7; SECRET], stranger, "harbour", ticket.addresses());
        let other = told(&other);
        assert!(other.contains("did not make this ticket"), "{other}");
        ticket.clone()
    });
    // New tickets replace those that nobody has used.
    let again = door::Options { listen: None, ..invitation(&place, 1) };
    let (ticket, events) = with_door(&again, |tickets| {
        assert_eq!(ticket.addresses(), tickets[0].addresses());
        assert!(told(&ticket).starts_with(NOT_OURS));
        tickets[0].clone()
    });
    assert!(matches!(events[0], Event::Invites { replaced: 1, open: 1, .. }), "{events:?}");
    // The owner has stopped.
    let address = ticket.addresses()[0];
    assert_eq!(told(&ticket), format!("nobody answers at {address} for 1 s"));
    // It comes back where its tickets lead to, and goes on with them.
    let goes_on = door::Options { listen: None, ..invitation(&place, 0) };
    std::thread::scope(|scope| {
        let open = scope.spawn(|| door::run(&goes_on, &mut |_| {}, &|| false).unwrap());
        let patient =
            joining::Options { patience: DEADLINE, ..place.options("gate", &ticket, &table) };
        assert!(join(&patient).is_ok());
        assert_eq!(open.join().unwrap(), 1);
    });
    let over = door::run(&goes_on, &mut |_| {}, &|| false).unwrap_err().to_string();
    assert_eq!(over, "harbour has no ticket that can still be used");
}

#[test]
fn an_owner_killed_before_it_listed_the_last_device_goes_on_with_it() {
    let place = place();
    let table = place.table("own.csv", "x,y", &["calm", "storm"]);
    let roster = place.path("harbour/roster.json");
    let ((gate, before), _) = with_door(&invitation(&place, 1), |tickets| {
        let gate = place.options("gate", &tickets[0], &table);
        let before = std::fs::read(&roster).unwrap();
        join(&gate).unwrap();
        (gate, before)
    });
    // That the ticket is used is on disk, and the roster is not; nor has the device heard of it.
    std::fs::write(&roster, before).unwrap();
    std::fs::remove_file(place.path("node-gate/joined.json")).unwrap();
    let goes_on = door::Options { listen: None, ..invitation(&place, 0) };
    std::thread::scope(|scope| {
        let mut told = Vec::new();
        let open = scope.spawn(move || {
            let devices = door::run(&goes_on, &mut |event| told.push(event.clone()), &|| false);
            (devices.unwrap(), told)
        });
        let again = joining::Options {
            listen: Some("127.0.0.1:0".parse().unwrap()),
            patience: DEADLINE,
            ..gate
        };
        assert!(join(&again).is_ok());
        let (devices, told) = open.join().unwrap();
        assert_eq!(devices, 1);
        assert!(matches!(told[0], Event::Invites { open: 1, .. }), "{told:?}");
    });
    assert_eq!(place.roster().roster().devices.len(), 1);
}

#[test]
fn callers_without_a_ticket_keep_nobody_out() {
    const CALLERS: usize = 260;
    let place = place();
    let table = place.table("own.csv", "x,y", &["calm", "storm"]);
    let (joined, _) = with_door(&invitation(&place, 1), |tickets| {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let ticket = &tickets[0];
        // They stay and say nothing.
        let (callers, _silent) = runtime.block_on(call(ticket, CALLERS));
        let joined = join(&place.options("gate", ticket, &table));
        runtime.block_on(callers.close());
        joined
    });
    assert!(joined.is_ok(), "{joined:?}");
}

/// The owner stops while a device waits for others, and while somebody has called who says nothing.
#[test]
fn an_owner_that_stops_waits_for_nobody_and_can_start_again_at_once() {
    let place = place();
    let table = place.table("own.csv", "x,y", &["calm", "storm"]);
    let together = door::Options { wait: None, ..invitation(&place, 2) };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    std::thread::scope(|scope| {
        let ((waiting, ticket, stopped, _silent), _) = with_door(&together, |tickets| {
            let gate = place.options("gate", &tickets[0], &table);
            let gate = joining::Options { patience: DEADLINE, ..gate };
            let (tell, waits) = channel();
            let waiting = scope.spawn(move || {
                let mut observer = |event: &joining::Event| {
                    if matches!(event, joining::Event::Waits(_)) {
                        let _ = tell.send(());
                    }
                };
                joining::join(&gate, &mut observer, &|| false)
            });
            waits.recv_timeout(DEADLINE).unwrap();
            let silent = runtime.block_on(call(&tickets[1], 1));
            (waiting, tickets[1].clone(), Instant::now(), silent)
        });
        assert!(stopped.elapsed() < SOON, "{:?}", stopped.elapsed());
        // Its address is free.
        let goes_on = door::Options { listen: None, wait: None, ..invitation(&place, 0) };
        let end = Instant::now() + DEADLINE;
        let stop = move || Instant::now() > end;
        let again = scope.spawn(move || door::run(&goes_on, &mut |_| {}, &stop).unwrap());
        let yard =
            joining::Options { patience: DEADLINE, ..place.options("yard", &ticket, &table) };
        assert!(join(&yard).is_ok());
        assert_eq!(again.join().unwrap(), 2);
        assert!(waiting.join().unwrap().is_ok());
    });
}

/// Calls the owner so many times, and says nothing.
async fn call(ticket: &Ticket, times: usize) -> (Endpoint, Vec<Connection>) {
    let callers = Endpoint::builder(presets::Minimal).clear_ip_transports();
    let callers = callers.bind_addr("127.0.0.1:0").unwrap().bind().await.unwrap();
    let owner = PublicKey::from_bytes(ticket.owner().as_bytes()).unwrap();
    let at = ticket.addresses().iter().copied().map(TransportAddr::Ip);
    let owner = EndpointAddr::from_parts(owner, at);
    let mut silent = Vec::new();
    for _ in 0..times {
        silent.push(callers.connect(owner.clone(), b"stlf/join/2").await.unwrap());
    }
    (callers, silent)
}

#[test]
fn without_labels_or_classes_nobody_agrees() {
    let place = place();
    let table = place.table("own.csv", "x,y", &[""]);
    with_door(&invitation(&place, 1), |tickets| {
        let gate = place.options("gate", &tickets[0], &table);
        let told = join(&gate).unwrap_err().to_string();
        assert!(told.contains("no device has labels and the owner has named no classes"), "{told}");
    });
    let named = Config::default().with(["data.classes=[\"calm\", \"storm\"]"]).unwrap();
    let named = door::Options { config: Some(named), ..invitation(&place, 1) };
    let (joined, _) =
        with_door(&named, |tickets| join(&place.options("gate", &tickets[0], &table)));
    assert!(joined.is_ok(), "{joined:?}");
}
