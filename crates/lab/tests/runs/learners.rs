//! Runs whose devices have learners of the user's: one that learns as the built-in network does ends with its bytes, one that fails ends the
//! run and says so, and a run that was stopped goes on.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use stlf_bundle::folder::{find, find_any};
use stlf_bundle::models::Models;
use stlf_bundle::predictions::{Columns, csv};
use stlf_config::Config;
use stlf_config::fleet::{Fleet, load};
use stlf_lab::{Learners, run, run_with};
use stlf_learn::evaluate::Predictions;
use stlf_learn::{Layout, Params};
use stlf_method::learner::{BuiltIn, Learner, Lesson, UserLearner, Watch};
use stlf_planning::Error;
use stlf_protocol::Setup;

use super::mixtures::table;

const SEED: u64 = 3;

/// What both kinds of runs are told.
const BOTH: [&str; 4] = [
    "seeds=[3]",
    "training.steps=200",
    "divergence.features=16",
    "compare.methods=[\"st-lf\", \"st-lf-links\", \"fedavg\", \"avgd\", \"sm\", \"local\", \"oracle\"]",
];

/// A network that counts its trainings, and fails in the one of this number.
#[derive(Debug)]
struct Counting {
    network: BuiltIn,
    trainings: Arc<AtomicUsize>,
    fails_at: usize,
}

impl Learner for Counting {
    fn layout(&self) -> &Layout {
        self.network.layout()
    }

    fn train(&self, lesson: Lesson<'_>, watch: &mut Watch<'_>) -> Result<Option<Params>, Error> {
        match self.trainings.fetch_add(1, Ordering::Relaxed) + 1 == self.fails_at {
            true => Err(Error::other("learner", "the pump is on fire")),
            false => self.network.train(lesson, watch),
        }
    }

    fn predict(
        &self,
        model: &Params,
        rows: &[usize],
        watch: &mut Watch<'_>,
    ) -> Result<Option<Predictions>, Error> {
        self.network.predict(model, rows, watch)
    }
}

/// A run of built-in networks on a table, and the same devices with learners.
struct Both {
    folder: tempfile::TempDir,
    built_in: Config,
    with_learners: Config,
    fleet: Fleet,
}

impl Both {
    fn new(more: &[&str]) -> Both {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.csv");
        std::fs::write(&path, table()).unwrap();
        let features = format!("data.features={}", path.display());
        let only = [
            features.as_str(),
            "data.standardise=own",
            "partition.kind=by-domain",
            "partition.labeled=[1, 0.8, 0, 0]",
            "training.model=mlp",
            "training.balanced=false",
            "transfer.adapt=off",
        ];
        let told = |own: &[&str]| {
            let all = BOTH.iter().chain(own).chain(more);
            Config::default().with(all.copied()).unwrap()
        };
        let built_in = told(&only);
        let data = load(&built_in).unwrap();
        let fleet =
            Fleet::deal(&data, &built_in.scheme(&data), built_in.data.standardise, SEED).unwrap();
        let with_learners = told(&["data.devices=[\"d0\"]", "training.learner=x"]);
        Both { folder, built_in, with_learners, fleet }
    }

    /// Learners that learn as the built-in network does, the number of their trainings, and which one fails.
    fn learners(&self, fails_at: usize) -> (Learners, Arc<AtomicUsize>) {
        let config = self.built_in.for_learners(false);
        let setup = Setup::new(&config, self.fleet.shape, 2, SEED).unwrap();
        let trainings = Arc::new(AtomicUsize::new(0));
        let learner = |at: usize| {
            let (device, (name, user)) = (&self.fleet.devices[at], self.learner_of(at));
            let network = BuiltIn {
                spec: setup.spec.clone(),
                training: setup.training,
                first: Arc::new(setup.first_model()),
                inputs: device.inputs.clone(),
                labels: device.labels.clone(),
            };
            let learner = Arc::new(Counting { network, trainings: trainings.clone(), fails_at });
            (name, UserLearner { learner, ..user })
        };
        let devices = (0..self.fleet.len()).map(learner).collect();
        (Learners::new(devices).unwrap(), trainings)
    }

    /// A device by its number, with its learner.
    fn learner_of(&self, device: usize) -> (String, UserLearner) {
        let own = &self.fleet.devices[device];
        let config = self.built_in.for_learners(false);
        let setup = Setup::new(&config, self.fleet.shape, 2, SEED).unwrap();
        let first = Arc::new(setup.first_model());
        let learner = setup.built_in(first, own.inputs.clone(), own.labels.clone());
        let user = UserLearner {
            name: "mlp/1".to_owned(),
            classes: ["calm", "storm"].map(str::to_owned).to_vec(),
            features: own.inputs.to_vec(),
            labels: own.labels.clone(),
            told_truth: own.truth.clone(),
            places: own.places.clone(),
            learner,
        };
        (own.name.clone(), user)
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }
}

fn go_on(_: stlf_lab::Event) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// All files in a folder by name, in order.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found: Vec<(String, Vec<u8>)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| {
            (
                path.file_name().unwrap().to_string_lossy().into_owned(),
                std::fs::read(&path).unwrap(),
            )
        })
        .collect();
    found.sort();
    found
}

#[test]
fn learners_that_learn_as_the_built_in_network_end_with_its_bytes() {
    for more in [&[][..], &["planner.combine=parameters", "planner.handovers=false"]] {
        let both = Both::new(more);
        let (learners, _) = both.learners(0);
        run(&both.built_in, &both.path("built-in"), &go_on).unwrap();
        run_with(&both.with_learners, &learners, &both.path("learners"), &go_on).unwrap();
        for inside in ["", "models", "targets", "results"] {
            let of = |run: &str| files(&both.path(run).join("seed-3").join(inside));
            let (expected, found) = (of("built-in"), of("learners"));
            assert!(!expected.is_empty(), "{inside}");
            let names = |files: &[(String, Vec<u8>)]| -> Vec<String> {
                files.iter().map(|(name, _)| name.clone()).collect()
            };
            assert_eq!(names(&found), names(&expected), "{inside}");
            for ((name, found), (_, expected)) in found.iter().zip(&expected) {
                assert!(found == expected, "{inside}/{name} differs");
            }
        }
        // A learner predicts with what its device ended with.
        let to = both.path("learners");
        let refused = find(&to, Some("d2"), None).unwrap_err().to_string();
        assert!(refused.contains("only the learner that made these models"), "{refused}");
        let bundle = find_any(&to, Some("d2"), None).unwrap();
        let (name, user) = both.learner_of(2);
        let models = Models::read(&bundle, &user).unwrap();
        assert_eq!((models.seed, models.epoch, models.device), (Some(SEED), None, name));
        let models = Models::read(&bundle, &user).unwrap();
        let predicted = models.predict(&user, &mut |_| ControlFlow::Continue(())).unwrap().unwrap();
        let text = csv(&models.classes, &predicted, Columns::default()).unwrap();
        let lines = |text: &[u8]| -> Vec<String> {
            let text = String::from_utf8(text.to_vec()).unwrap();
            text.lines().skip(1).map(|line| line.split_once(',').unwrap().1.to_owned()).collect()
        };
        let expected = std::fs::read(to.join("seed-3/targets/d2.csv")).unwrap();
        assert_eq!(lines(&text), lines(&expected));
        let other = UserLearner { name: "mlp/2".to_owned(), ..user };
        let refused = Models::read(&bundle, &other).unwrap_err().to_string();
        assert!(
            refused.contains("models of the learner mlp/1 (calm, storm); this learner is mlp/2")
        );
    }
}

#[test]
fn a_learner_that_fails_ends_the_run_and_the_next_call_goes_on() {
    let both = Both::new(&[]);
    let to = both.path("learners");
    let (learners, counted) = both.learners(2);
    let error = run_with(&both.with_learners, &learners, &to, &go_on).unwrap_err();
    assert!(error.to_string().ends_with(": learner: the pump is on fire"), "{error}");
    let before = counted.load(Ordering::Relaxed);
    let (learners, counted) = both.learners(0);
    run_with(&both.with_learners, &learners, &to, &go_on).unwrap();
    let rest = counted.load(Ordering::Relaxed);
    // What was trained is not trained again.
    let (learners, counted) = both.learners(0);
    run_with(&both.with_learners, &learners, &both.path("at-once"), &go_on).unwrap();
    assert_eq!(before - 1 + rest, counted.load(Ordering::Relaxed));
    assert!(
        std::fs::read(to.join("results.csv")).unwrap()
            == std::fs::read(both.path("at-once").join("results.csv")).unwrap()
    );
}

#[test]
fn learners_of_two_kinds_make_no_fleet() {
    let both = Both::new(&[]);
    let (name, user) = both.learner_of(0);
    let told = |other: UserLearner| {
        let devices = vec![(name.clone(), both.learner_of(0).1), ("d1".to_owned(), other)];
        Learners::new(devices).unwrap_err().to_string()
    };
    let renamed = UserLearner { name: "mlp/2".to_owned(), ..user.clone() };
    assert_eq!(told(renamed), "d1: learner: the name of the learner is mlp/2; that of d0 is mlp/1");
    let wider = UserLearner { features: [&user.features[..], &user.features].concat(), ..user };
    assert!(told(wider).contains("the number of features of the learner is 4; that of d0 is 2"));
    assert!(Learners::new(Vec::new()).is_err());
}
