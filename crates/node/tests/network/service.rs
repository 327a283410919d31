//! Devices as services within one program: from a configuration, keys and a roster to folders with what came of it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use stlf_bundle::Samples;
use stlf_bundle::folder::{find, read};
use stlf_bundle::predictions::{Columns, csv};
use stlf_formats::PlanFile;
use stlf_node::network;
use stlf_node::service::{Ended, Error, Event, Options, Service, settings};
use stlf_node::status_file::{FILE, StatusFile};
use stlf_node::{key_file, status::Stage};
use stlf_planning::Role;
use stlf_planning::plan::Way;
use stlf_protocol::wire::Plan;
use stlf_protocol::{Identity, Place, Roster};
use stlf_testing::{DEADLINE, wait_for};

pub(crate) const NAMES: [&str; 3] = ["gate", "pier", "mast"];

/// What they run: seconds, and every device has something to do.
pub(crate) const SETTINGS: [&str; 7] = [
    "seeds=[3]",
    "data.samples=3000",
    "partition.devices=3",
    "partition.scale=0.08",
    "training.model=mlp",
    "training.steps=200",
    "divergence.features=32",
];

/// Devices that are alike, of whose two sources one hands its model to the other.
const ALIKE: [&str; 4] = [
    "seeds=[10]",
    "partition.classes-per-device=all",
    "partition.labeled-devices=2",
    "planner.handovers=true",
];

/// A folder with a key for every device, and a roster that has all.
pub(crate) struct Fleet {
    folder: tempfile::TempDir,
    settings: Vec<&'static str>,
}

impl Fleet {
    pub(crate) fn new() -> Fleet {
        Fleet::with(&[])
    }

    /// Devices with these settings besides the usual ones.
    fn with(settings: &[&'static str]) -> Fleet {
        let settings = [&SETTINGS, settings].concat();
        let fleet = Fleet { folder: tempfile::tempdir().unwrap(), settings };
        let owner = Identity::from_bytes(&[200; 32]);
        let roster = NAMES.iter().fold(Roster::new("three", owner.id()), |roster, name| {
            let key = key_file::create(&fleet.path(&format!("{name}.key"))).unwrap();
            roster.with(name, key.id()).unwrap()
        });
        let roster = roster.sign(&owner).unwrap();
        std::fs::write(fleet.path("roster.json"), roster.to_json()).unwrap();
        fleet
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn options(&self, name: &str) -> Options {
        let config = settings(None, None, &self.settings).unwrap();
        let key = self.path(&format!("{name}.key"));
        let mut options = Options::new(config, self.path("roster.json"), key, self.path(name));
        options.timing.settle = Duration::from_millis(500);
        options.once = Some(DEADLINE);
        options
    }

    /// Has all take part in an epoch. The system chooses where each listens, and those after it are told.
    fn run(&self) -> Vec<(Told, Ended)> {
        self.run_with(|name| self.options(name))
    }

    /// The same with options of each device's own.
    pub(crate) fn run_with(&self, options: impl Fn(&str) -> Options) -> Vec<(Told, Ended)> {
        let mut peers = Vec::new();
        let mut running = Vec::new();
        for name in NAMES {
            let options = Options { peers: peers.clone(), ..options(name) };
            let (tell, hears) = channel();
            running.push(start(options, tell));
            peers.push((name.to_owned(), hears.recv_timeout(DEADLINE).unwrap()));
        }
        let all_have_left = || running.iter().all(JoinHandle::is_finished).then_some(());
        wait_for(DEADLINE, all_have_left, || "some device stays".to_owned());
        running.into_iter().map(|device| device.join().unwrap()).collect()
    }

    /// What a device says that protects its samples.
    pub(crate) fn protection(&self, name: &str) -> String {
        let status = std::fs::read(self.path(name).join(FILE)).unwrap();
        let StatusFile { protection, .. } = serde_json::from_slice(&status).unwrap();
        protection.unwrap().to_string()
    }

    /// Has a device take part alone with these rows as its own table, and these changes of its settings.
    pub(crate) fn start_alone(&self, rows: std::ops::Range<u32>, changes: &[&str]) -> Error {
        let row =
            |k: u32| format!("{},{},{},{}\n", k % 17, k % 5, k, ["calm", "storm"][k as usize % 2]);
        self.start_alone_with(&rows.map(row).collect::<String>(), changes)
    }

    /// The same with these lines as its table.
    pub(crate) fn start_alone_with(&self, rows: &str, changes: &[&str]) -> Error {
        let table = self.path("own.csv");
        std::fs::write(&table, format!("x,y,z,label\n{rows}")).unwrap();
        let features = format!("data.features={}", table.display());
        let own = [
            "seeds=[3]",
            &features,
            "partition.kind=iid",
            "partition.devices=1",
            "training.model=mlp",
            "training.steps=5",
        ];
        let changes: Vec<&str> = own.iter().chain(changes).copied().collect();
        let config = settings(None, None, &changes).unwrap();
        take_part(Options { config, ..self.options("gate") }).unwrap_err()
    }

    pub(crate) fn plan(&self, name: &str) -> Plan {
        let bytes = std::fs::read(self.path(name).join("plan.json")).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }
}

/// What a device told of its trainings.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) had_trained: bool,
    /// Why its learner cannot train.
    pub(crate) cannot_train: Option<String>,
    /// Whose model did not come, or could not be used, and why.
    pub(crate) not_received: Option<(Place, String)>,
    /// How often it trained a model that was handed to it.
    trained_on: usize,
}

/// Runs a device to its end.
fn start(options: Options, listens: Sender<SocketAddr>) -> JoinHandle<(Told, Ended)> {
    std::thread::spawn(move || {
        let mut told = Told::default();
        let mut tell = |event: &Event<'_>| match event {
            Event::HasTrained { .. } => told.had_trained = true,
            Event::CannotTrain { reason, .. } => told.cannot_train = Some((*reason).to_owned()),
            Event::Network { event: network::Event::NotReceived { from, reason }, .. } => {
                told.not_received = Some((*from, reason.clone()));
            }
            Event::Network { event: network::Event::TrainsOn { .. }, .. } => told.trained_on += 1,
            Event::Network { event: network::Event::Listens(address), .. } => {
                listens.send(address.parse().unwrap()).unwrap();
            }
            _ => {}
        };
        let service = Service::new(options, &mut tell).unwrap();
        let ended = service.run(&mut tell, &|| false).unwrap();
        (told, ended)
    })
}

#[test]
fn services_in_one_program_end_with_plans_and_predictions_and_go_on_where_they_were() {
    let fleet = Fleet::new();
    let (mut last_epoch, mut replies) = (0, BTreeMap::new());
    for is_again in [false, true] {
        let ended = fleet.run();
        let plan = fleet.plan("gate");
        assert!(plan.epoch > last_epoch);
        last_epoch = plan.epoch;
        let mut targets = 0;
        for (index, (name, (told, ended))) in NAMES.iter().zip(ended).enumerate() {
            assert_eq!(fleet.plan(name), plan, "{name}");
            assert_eq!(ended.device.plan(), Some(&plan), "{name}");
            let is_labeled = ended.device.own_error().is_some();
            assert_eq!(told.had_trained, is_again && is_labeled, "{name}");

            let status = std::fs::read(fleet.path(name).join(FILE)).unwrap();
            let StatusFile { status, .. } = serde_json::from_slice(&status).unwrap();
            assert_eq!((status.device.as_str(), status.stage), (*name, Stage::Complete));

            // The same means get the same divergences, which tell nothing new.
            let told = std::fs::read(fleet.path(name).join("replies.json")).unwrap();
            let before = replies.insert(*name, told.clone());
            assert!(before.is_none_or(|before| before == told) && status.withheld.is_empty());

            let predictions = std::fs::read_to_string(fleet.path(name).join("predictions.csv"));
            if plan.role(Place::new(index)) == Some(Role::Target) {
                targets += 1;
                assert!(ended.accuracy.unwrap() > 0.2, "{name}: {:?}", ended.accuracy);
                let rows = predictions.unwrap().lines().count() - 1;
                assert_eq!(rows, ended.device.outcome().unwrap().classes().count(), "{name}");
            }
        }
        assert!(targets > 0, "{plan:?}");
    }
    std::fs::write(fleet.path("gate").join("replies.json"), "{").unwrap();
    let corrupt = Service::new(fleet.options("gate"), &mut |_| ()).map(|_| ()).unwrap_err();
    assert!(matches!(corrupt, Error::Ledger { .. }) && corrupt.hint().is_some(), "{corrupt}");
}

#[test]
fn a_target_says_what_its_student_cost_in_computing() {
    let changes = ["partition.scale=0.3", "transfer.adapt=always", "energy.gflop-per-joule=10"];
    let fleet = Fleet::with(&changes);
    let mut targets = 0;
    for (name, (_, ended)) in NAMES.iter().zip(fleet.run()) {
        let status = std::fs::read(fleet.path(name).join(FILE)).unwrap();
        let StatusFile { student_cost, status, .. } = serde_json::from_slice(&status).unwrap();
        assert_eq!(student_cost, ended.student_cost, "{name}");
        let Some(student) = status.student else {
            assert_eq!(student_cost, None, "{name}");
            continue;
        };
        targets += 1;
        let cost = student_cost.expect(&student);
        let setup = ended.device.setup();
        assert_eq!(cost.gflop, setup.schooling.operations(&setup.spec) as f64 / 1e9);
        assert_eq!(cost.joules, Some(cost.gflop / 10.0));
    }
    assert!(targets > 0);
}

#[test]
fn every_device_ends_with_a_mixture_that_gives_the_bytes_of_its_predictions() {
    own_tables_to_mixtures(&["training.model=mlp"]);
}

#[test]
fn the_same_holds_where_tables_are_series_and_samples_are_windows() {
    // Windows that overlap count as the readings that they have, which are few.
    own_tables_to_mixtures(&["data.window=16", "data.stride=1", "divergence.features=16"]);
}

/// Two epochs of three devices, each with a table of its own, with these settings.
fn own_tables_to_mixtures(more: &[&str]) {
    let fleet = Fleet::new();
    // Rows of each device's own, in units of its own; one has no labels.
    let table = |at: usize| {
        let row = |k: usize| {
            let (x, y) = (((k * 37 + at) % 101) as f64, ((k * 53) % 103) as f64);
            let label = match (at, x > y) {
                (2, _) => "",
                _ if k.is_multiple_of(5) => "",
                (_, true) => "calm",
                (_, false) => "storm",
            };
            let unit = [1.0, 10.0, 0.1][at];
            format!("{},{},{label}\n", x * unit, y * unit)
        };
        "x,y,label\n".to_owned() + &(0..300).map(row).collect::<String>()
    };
    let options = |name: &str| {
        let at = NAMES.iter().position(|known| *known == name).unwrap();
        let own = fleet.path(&format!("{name}.csv"));
        std::fs::write(&own, table(at)).unwrap();
        let features = format!("data.features={}", own.display());
        let changes = [
            "seeds=[3]",
            &features,
            "data.classes=[\"calm\", \"storm\"]",
            "partition.kind=iid",
            "partition.devices=1",
            "training.steps=100",
        ];
        let changes = [&changes, more].concat();
        Options { config: settings(None, None, &changes).unwrap(), ..fleet.options(name) }
    };
    let mut last_epoch = 0;
    for _ in 0..2 {
        fleet.run_with(options);
        let plan = fleet.plan("gate");
        for (place, name) in NAMES.iter().enumerate() {
            let bundle = find(&fleet.path(name), None, None).unwrap();
            let mixture = read(&bundle).unwrap();
            assert_eq!((mixture.device.as_str(), mixture.epoch), (*name, Some(plan.epoch)));
            assert_eq!(Some(mixture.role), plan.role(Place::new(place)));
            let samples = Samples::read(&mixture, &fleet.path(&format!("{name}.csv"))).unwrap();
            let predictions = mixture.predict(&samples.inputs).unwrap();
            let got = csv(&mixture.classes, &predictions, Columns::default()).unwrap();
            let kept = std::fs::read(fleet.path(name).join("predictions.csv"));
            match mixture.role {
                Role::Target => assert_eq!(got, kept.unwrap(), "{name}"),
                Role::Source => assert_eq!(mixture.members[0].name, *name),
            }
            let followed = std::fs::read(bundle.join("plan.json")).unwrap();
            let followed = PlanFile::read(&followed).unwrap();
            assert_eq!(followed.objective, Some(plan.objective));
            assert_eq!(followed.sources.len(), plan.sources.len());
            // Nothing is left of what was written.
            let left = fleet.path(name).read_dir().unwrap();
            let hidden = |e: &std::fs::DirEntry| e.file_name().to_str().unwrap().starts_with('.');
            assert!(!left.map(Result::unwrap).any(|entry| hidden(&entry)), "{name}");
        }
        assert_eq!(plan.role(Place::new(2)), Some(Role::Target));
        assert!(plan.epoch > last_epoch);
        last_epoch = plan.epoch;
    }
}

#[test]
fn started_again_it_does_not_train_again_on_the_same_model() {
    let fleet = Fleet::with(&ALIKE);
    let run = || {
        let ended = fleet.run();
        let [handover] = fleet.plan("gate").handovers[..] else { panic!("one hands on") };
        let trained_on: Vec<usize> = ended.iter().map(|(told, _)| told.trained_on).collect();
        let relayed = fleet.path(NAMES[handover.to.index()]).join("relayed.safetensors");
        let sent = ended[handover.to.index()].1.device.sent_model(Way::First).unwrap();
        (handover, trained_on, std::fs::read(relayed).unwrap(), sent)
    };
    let (handover, trained_on, kept, sent) = run();
    assert_eq!(trained_on.iter().sum::<usize>(), 1);
    assert_eq!(trained_on[handover.to.index()], 1);
    let again = run();
    assert_eq!((again.0, again.1), (handover, vec![0; NAMES.len()]));
    assert!(again.2 == kept && again.3 == sent, "another model");
}

/// Has a device take part alone. There is no epoch then; but who knows whom it could have told.
pub(crate) fn take_part(mut options: Options) -> Result<Ended, Error> {
    options.timing.wait = Duration::ZERO;
    Service::new(options, &mut |_| ())?.run(&mut |_| (), &|| false)
}

#[test]
fn told_to_stop_it_stops_while_it_trains() {
    let service = Service::new(Fleet::new().options("gate"), &mut |_| ()).unwrap();
    let stopped = service.run(&mut |_| (), &|| true).unwrap_err();
    assert!(matches!(stopped, Error::StoppedInTraining), "{stopped}");
}

#[test]
fn what_is_wrong_is_said_before_anything_is_begun() {
    let fleet = Fleet::new();
    let refused = |change: &dyn Fn(&mut Options)| {
        let mut options = fleet.options("gate");
        change(&mut options);
        let silent = &mut |_: &Event<'_>| ();
        Service::new(options, silent).map(|_| ()).unwrap_err()
    };
    let stranger = key_file::create(&fleet.path("stranger.key")).unwrap().id();
    let error = refused(&|options| options.key = fleet.path("stranger.key"));
    assert_eq!(error.to_string(), format!("{stranger} is not in the roster of three"));
    assert!(error.hint().unwrap().contains("stlf fleet add"));

    let error = refused(&|options| options.key = fleet.path("none.key"));
    assert!(matches!(error, Error::Key(_)) && error.hint().is_some(), "{error}");

    let error = refused(&|options| options.roster = fleet.path("none.json"));
    assert!(matches!(error, Error::RosterFile { .. }), "{error}");

    let error = refused(&|options| options.roster = fleet.path("gate.key"));
    assert!(matches!(error, Error::Roster { .. }), "{error}");

    let address = "127.0.7.250:1".parse().unwrap();
    let error = refused(&|options| options.peers = vec![("buoy".to_owned(), address)]);
    assert!(matches!(&error, Error::UnknownPeer { name } if name == "buoy"), "{error}");

    let socket = std::net::UdpSocket::bind("127.0.7.250:0").unwrap();
    let taken = socket.local_addr().unwrap();
    let error = refused(&|options| options.listen = taken);
    assert!(matches!(error, Error::Listen { address, .. } if address == taken), "{error}");
}

#[test]
fn a_device_whose_own_model_is_no_better_than_guessing_is_told() {
    let fleet = Fleet::new();
    let table = fleet.path("table.csv");
    let told = |is_noise: bool| {
        let row = |k: usize| {
            let (x, y) = ((k * 37) % 101, (k * 53) % 103);
            // A label that hangs together with the rows, or with nothing that is in the table.
            let is_storm = if is_noise { (k * k / 3 + k / 7).is_multiple_of(2) } else { x > y };
            format!("{x},{y},{}\n", ["calm", "storm"][usize::from(is_storm)])
        };
        let text = "x,y,label\n".to_owned() + &(0..800).map(row).collect::<String>();
        std::fs::write(&table, text).unwrap();
        let changes = ["training.model=mlp", "training.steps=300", "divergence.features=32"];
        let config = settings(None, Some(&table), &changes).unwrap();
        let mut options = Options { config, ..fleet.options("gate") };
        options.timing.wait = Duration::ZERO;
        let mut told = None;
        let mut tell = |event: &Event<'_>| {
            if let Event::Guesses { device, guessing } = event {
                told = Some(format!("{device}: {guessing}"));
            }
        };
        let service = Service::new(options, &mut tell).unwrap();
        let alone = service.run(&mut tell, &|| false).unwrap_err();
        assert!(matches!(alone, Error::Network(network::Error::Alone(_))), "{alone}");
        let status = std::fs::read(fleet.path("gate").join(FILE)).unwrap();
        let StatusFile { status, .. } = serde_json::from_slice(&status).unwrap();
        assert_eq!(told, status.guessing.map(|shown| format!("gate: {shown}")));
        told
    };
    assert_eq!(told(false), None);
    let words = told(true).unwrap();
    assert!(words.starts_with("gate: its own model is no better than guessing ("), "{words}");
    assert!(words.contains(" of 160 labels right; its most common class alone has 5"), "{words}");
    assert_eq!(told(true).as_ref(), Some(&words), "also if it has trained before");
}

#[test]
fn a_device_scales_a_table_of_its_own_by_its_own_rows_and_trains_anew_on_other_rows() {
    let fleet = Fleet::new();
    let table = fleet.path("table.csv");
    let row = |k: usize| format!("{},{},{}\n", ["a", "b"][k % 2], 700 + 300 * (k % 2), k);
    let rows = "label,x,y\n".to_owned() + &(0..400).map(row).collect::<String>();
    std::fs::write(&table, &rows).unwrap();
    let options = |changes: &[&'static str]| {
        let changes =
            [&["training.model=mlp", "training.steps=50", "divergence.features=32"], changes];
        let config = settings(None, Some(&table), &changes.concat()).unwrap();
        let mut options = Options { config, ..fleet.options("gate") };
        options.timing.wait = Duration::ZERO;
        options
    };
    for change in ["data.standardise=fleet", "data.standardise=both", "data.standardise=true"] {
        let refused = Service::new(options(&[change]), &mut |_| ()).map(|_| ()).unwrap_err();
        let sentence = "needs the rows of all devices, but this device has only its own";
        assert!(refused.to_string().ends_with(sentence), "{refused}");
        assert!(refused.to_string().contains("data.standardise: "), "{refused}");
        assert!(refused.hint().unwrap().starts_with("use \"own\""));
    }
    // Alone, it takes part in no epoch, but it trains before.
    let had_trained = || {
        let mut had_trained = false;
        let mut tell = |event: &Event<'_>| had_trained |= matches!(event, Event::HasTrained { .. });
        let service = Service::new(options(&[]), &mut tell).unwrap();
        let alone = service.run(&mut tell, &|| false).unwrap_err();
        assert!(matches!(alone, Error::Network(network::Error::Alone(_))), "{alone}");
        had_trained
    };
    assert_eq!([had_trained(), had_trained()], [false, true]);
    // Two rows without a label.
    std::fs::write(&table, rows + ",900,3\n,100,3\n").unwrap();
    assert_eq!([had_trained(), had_trained()], [false, true]);
}
