//! Guards without labels: how often each accepts a student that does harm, by what it asks and at thresholds that are the same for all, of
//! built-in networks and of a learner that alters samples in ways of its own. Domains of targets are known to some source, or to none. Sources that
//! pretend to be targets choose a threshold for their fleet, which is compared with what is in use.

mod nearest_means;
mod pretended;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use serde::Serialize;
use stlf_config::Config;
use stlf_config::fleet::{Fleet, load};
use stlf_data::Dataset;
use stlf_method::guard::{Guard, Standard};
use stlf_method::method::Method;

use self::nearest_means::{Alteration, learners};
use self::pretended::compared;
use super::output::{Output, Table, percent};
use super::settings::{Lab, Variant};
use super::spec::{self, Spec};
use super::strangers::Kind;
use super::{Artifact, Made};
use crate::record::GuardRow;
use crate::run::{Holdings, open, run_with, seed_run};
use crate::stages::{pretended as pretending, student};
use crate::watch::Watch;
use crate::{Error, Folder, compare};

/// The thresholds that are compared, of guards that count what stays the same.
const THRESHOLDS: [f64; 6] = [0.0, 0.005, 0.01, 0.02, 0.03, 0.05];

/// The methods whose targets train students.
const METHODS: [Method; 2] = [Method::StLf, Method::FedAvg];

/// A fleet whose targets train students.
struct Case {
    name: String,
    title: String,
    /// Whether the targets' domain is at some source.
    is_known: bool,
    config: Config,
    path: PathBuf,
}

/// What students have in common that are judged together.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    /// Who trains them, how samples are altered, and whose plan it is.
    students: String,
    /// Whether the targets' domain is at some source: `known` or `unseen`.
    domain: &'static str,
}

/// A student: what each guard says, and what it adds to the accuracy.
struct Judged {
    group: Group,
    /// The fleet: the name of its case, and the seed.
    fleet: (String, u64),
    rows: Vec<GuardRow>,
    gain: f64,
}

/// The students of all fleets.
#[derive(Default)]
struct Students {
    /// The students that targets trained.
    of_targets: Vec<Judged>,
    /// The students that sources trained as pretended targets.
    pretended: Vec<Judged>,
}

/// What comes of accepting some students.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Tally {
    accepted: usize,
    /// How many of these are harmful.
    wrongly_accepted: usize,
    /// The most that a target loses by one of them.
    worst_loss: f64,
    /// What they add, mean over all targets.
    gain: f64,
}

/// A guard at a threshold, over the students of a group.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Entry {
    students: String,
    domain: &'static str,
    guard: &'static str,
    /// The same for all students; none where these are judged by what is asked of each of them.
    threshold: Option<f64>,
    /// Whether they are.
    in_use: bool,
    trained: usize,
    /// How many students make the target less accurate than the mixture alone.
    harmful: usize,
    accepted: usize,
    /// How many of those that are accepted are harmful.
    wrongly_accepted: usize,
    /// The most that a target loses by one that is accepted.
    worst_loss: f64,
    /// What those that are accepted add, mean over all targets.
    gain: f64,
    /// What all students would add if every one were accepted.
    gain_of_all: f64,
}

/// All groups of students, every guard, as rows; the guard in use as a table.
pub(super) fn make(artifact: Artifact, spec: &Spec, lab: &Lab<'_>) -> Result<Made, Error> {
    let cases = cases(spec, lab)?;
    let mut students = Students::default();
    for (place, case) in cases.iter().enumerate() {
        (lab.heard)(&case.title, place + 1, cases.len());
        case.of_networks(lab, &mut students)?;
        let data = load(&case.config)?;
        for alteration in Alteration::ALL {
            case.of_learners(&data, alteration, lab, &mut students)?;
        }
    }
    let entries = entries(&students.of_targets);
    let mut output = Output::new(artifact, lab.folder);
    output.rows("", &entries)?;
    output.rows("pretended", &compared(&students))?;
    let table = table(&entries);
    output.table(&table)?;
    Ok(output.made(spec, &table, note(&entries)))
}

/// The fleets that the user wants to see: settings of the paper, where domains are known, and strangers.
fn cases(spec: &Spec, lab: &Lab<'_>) -> Result<Vec<Case>, Error> {
    let settings = spec::settings();
    let named = spec.settings.iter().filter_map(|name| settings.iter().find(|s| s.name == *name));
    let known = named.map(|setting| Case {
        name: setting.name.clone(),
        title: format!("{}, domains known", setting.name),
        is_known: true,
        config: lab.config(setting, Variant::Ours),
        path: lab.path(setting, Variant::Ours),
    });
    let unseen = spec.stranger.iter().map(|case| Case {
        name: case.name.clone(),
        title: format!("{}, unseen", case.title),
        is_known: false,
        config: case.config(Kind::Views, lab),
        path: case.path(Kind::Views, lab),
    });
    let mut cases: Vec<Case> = known.chain(unseen).collect();
    let wanted = lab.wanted(&cases, |case| &case.name, "shown here")?;
    let wanted: Vec<String> = wanted.iter().map(|case| case.name.clone()).collect();
    cases.retain(|case| wanted.contains(&case.name));
    for case in &mut cases {
        case.config.compare.students = METHODS.map(|method| method.name().into()).to_vec();
        case.config.compare.methods = METHODS.map(|method| method.name().into()).to_vec();
        case.path = suffixed(&case.path, "guards");
    }
    Ok(cases)
}

/// The folder with this at the end of its name.
fn suffixed(path: &Path, suffix: &str) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    path.with_file_name(format!("{}-{suffix}", name.unwrap_or_default()))
}

impl Case {
    /// Adds the students of built-in networks, of all seeds.
    fn of_networks(&self, lab: &Lab<'_>, to: &mut Students) -> Result<(), Error> {
        compare(&self.config, &self.path, &METHODS, lab.observer)?;
        let holdings = Holdings::Dealt(Box::new(load(&self.config)?));
        for seed in lab.seeds() {
            let folder = open(&self.config, &self.path)?;
            self.read("networks", (&self.config, &holdings), (&folder, seed), lab, to)?;
        }
        Ok(())
    }

    /// The students of learners that alter samples so, in the same fleets.
    fn of_learners(
        &self,
        data: &Dataset,
        alteration: Alteration,
        lab: &Lab<'_>,
        to: &mut Students,
    ) -> Result<(), Error> {
        let name = alteration.name();
        for seed in lab.seeds() {
            let fleet = Fleet::deal(data, &self.config.scheme(data), None, seed)?;
            let devices = fleet.devices.iter().map(|device| device.name.clone()).collect();
            let learners = learners(fleet, data.classes(), alteration)?;
            let mut config = Config { seeds: vec![seed], ..Config::default() };
            config.data.devices = devices;
            config.training.learner = Some(format!("nearest means, {name}"));
            config.compare = self.config.compare.clone();
            let path = suffixed(&self.path, &format!("{name}-{seed}"));
            run_with(&config, &learners, &path, lab.observer)?;
            let folder = open(&config, &path)?;
            let config = learners.configured(&config)?;
            let holdings = Holdings::Learners(Cow::Borrowed(&learners));
            let group = format!("learner, {name}");
            self.read(&group, (&config, &holdings), (&folder, seed), lab, to)?;
        }
        Ok(())
    }

    /// What guards say of all students of a seed of a run, those of sources that pretend to be targets too, which are trained here.
    fn read(
        &self,
        students: &str,
        (config, holdings): (&Config, &Holdings<'_>),
        (folder, seed): (&Folder, u64),
        lab: &Lab<'_>,
        to: &mut Students,
    ) -> Result<(), Error> {
        let stopped = AtomicBool::new(false);
        let watch = Watch::new(lab.observer, &stopped);
        let (run, _) = seed_run(config, holdings, seed, folder, watch.of(seed))?;
        let pretended = pretending::pretended(&run, &METHODS)?;
        for method in METHODS {
            let of_targets = student::read_guards(&run.folder, method)?;
            to.of_targets.extend(self.judged(students, method, seed, &of_targets));
            let own = pretended.iter().filter(|(of, _)| *of == method);
            let own: Vec<GuardRow> = own.map(|(_, row)| row.clone()).collect();
            to.pretended.extend(self.judged(students, method, seed, &own));
        }
        Ok(())
    }

    /// What guards say of each student of a method in a seed.
    fn judged(&self, students: &str, method: Method, seed: u64, rows: &[GuardRow]) -> Vec<Judged> {
        let domain = if self.is_known { "known" } else { "unseen" };
        let group = Group { students: format!("{students}, {}", method.label()), domain };
        let of_devices = rows.chunk_by(|a, b| a.target == b.target);
        let judged = of_devices.filter_map(|rows| {
            let (group, fleet) = (group.clone(), (self.name.clone(), seed));
            Some(Judged { group, fleet, rows: rows.to_vec(), gain: rows.first()?.gain? })
        });
        judged.collect()
    }
}

impl Judged {
    /// What a guard says of the student.
    fn row(&self, guard: Guard) -> Option<&GuardRow> {
        self.rows.iter().find(|row| row.guard == guard.name())
    }

    /// Whether a guard accepts the student by what it asks of it.
    fn is_used(&self, guard: Guard) -> bool {
        self.row(guard).is_some_and(|row| row.accepted)
    }

    /// Whether a guard with this threshold accepts the student.
    fn is_accepted(&self, guard: Guard, threshold: f64) -> bool {
        let (Some(row), Some(information)) = (self.row(guard), self.row(Guard::Information)) else {
            return false;
        };
        row.score - row.of_mixture >= threshold
            && !guard.takes_for_collapsed(information.score, information.of_mixture)
    }
}

impl Tally {
    /// Returns what comes of the students that are accepted.
    fn of(own: &[&Judged], is_accepted: impl Fn(&Judged) -> bool) -> Tally {
        let accepted: Vec<f64> =
            own.iter().filter(|one| is_accepted(one)).map(|one| one.gain).collect();
        Tally {
            accepted: accepted.len(),
            wrongly_accepted: accepted.iter().filter(|gain| **gain < 0.0).count(),
            worst_loss: accepted.iter().fold(0.0, |worst: f64, gain| worst.max(-gain)),
            // An empty sum of floats is −0.
            gain: accepted.iter().fold(0.0, |sum, gain| sum + gain) / own.len().max(1) as f64,
        }
    }
}

/// Every group with its students, in the order in which they first appear.
fn groups(judged: &[Judged]) -> Vec<(&Group, Vec<&Judged>)> {
    let mut groups: Vec<(&Group, Vec<&Judged>)> = Vec::new();
    for one in judged {
        match groups.iter_mut().find(|(group, _)| **group == one.group) {
            Some((_, own)) => own.push(one),
            None => groups.push((&one.group, vec![one])),
        }
    }
    groups
}

fn entries(judged: &[Judged]) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (group, own) in groups(judged) {
        for guard in Guard::ALL {
            let thresholds = match guard {
                Guard::Occlusion | Guard::Views => THRESHOLDS.to_vec(),
                Guard::Confidence | Guard::Information | Guard::Agreement => Vec::new(),
            };
            let thresholds = thresholds.into_iter().map(Some).chain([None]);
            entries.extend(thresholds.map(|t| entry(group, &own, guard, t)));
        }
    }
    entries
}

/// What comes of the students of a group at this threshold; of what the guard asks of each, if there is none.
fn entry(group: &Group, own: &[&Judged], guard: Guard, threshold: Option<f64>) -> Entry {
    let Tally { accepted, wrongly_accepted, worst_loss, gain } =
        Tally::of(own, |one| match threshold {
            Some(threshold) => one.is_accepted(guard, threshold),
            None => one.is_used(guard),
        });
    Entry {
        students: group.students.clone(),
        domain: group.domain,
        guard: guard.name(),
        threshold,
        in_use: threshold.is_none(),
        trained: own.len(),
        harmful: own.iter().filter(|one| one.gain < 0.0).count(),
        accepted,
        wrongly_accepted,
        worst_loss,
        gain,
        gain_of_all: Tally::of(own, |_| true).gain,
    }
}

/// The guard in use, a row for each group, a column for each threshold.
fn table(entries: &[Entry]) -> Table {
    let used = Guard::default();
    let mut head: Vec<String> = vec![
        "students".to_owned(),
        "domain".to_owned(),
        "trained".to_owned(),
        "harmful".to_owned(),
        "all add, points".to_owned(),
    ];
    head.extend(THRESHOLDS.map(|t| t.to_string()));
    head.push("in use".to_owned());
    let mut table = Table::new(head.iter().map(String::as_str));
    let own: Vec<&Entry> = entries.iter().filter(|entry| entry.guard == used.name()).collect();
    let is_one_group = |a: &&Entry, b: &&Entry| (&a.students, a.domain) == (&b.students, b.domain);
    for group in own.chunk_by(is_one_group) {
        let first = group[0];
        let cell = |entry: &&Entry| {
            let Entry { accepted, wrongly_accepted, worst_loss, gain, .. } = entry;
            let (worst, gain) = (percent(*worst_loss), percent(*gain));
            format!("{accepted} / {wrongly_accepted} / {worst} / {gain}")
        };
        let what = [
            first.students.clone(),
            first.domain.to_owned(),
            first.trained.to_string(),
            first.harmful.to_string(),
            percent(first.gain_of_all),
        ];
        table.row(what.into_iter().chain(group.iter().map(cell)));
    }
    table
}

fn note(entries: &[Entry]) -> String {
    let used = Guard::default();
    let in_use: Vec<&Entry> =
        entries.iter().filter(|entry| entry.guard == used.name() && entry.in_use).collect();
    let sum = |value: fn(&Entry) -> usize| in_use.iter().map(|entry| value(entry)).sum::<usize>();
    format!(
        "A cell is accepted / of these harmful / the most that a target loses, points / what those accepted add, points. *In use*: {} where no source is near a built-in network's target, else {}. With it {} of {} harmful students are accepted, of {} in all.",
        used.threshold(Standard::Stranger),
        used.threshold(Standard::Usual),
        sum(|entry| entry.wrongly_accepted),
        sum(|entry| entry.harmful),
        sum(|entry| entry.trained),
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
mod tests;
