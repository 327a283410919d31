//! Guards without labels: how often each accepts a student that does harm, at the threshold in use and at others, of built-in networks and of a
//! learner that alters samples in ways of its own. Domains of targets are known to some source, or to none.

mod nearest_means;

use std::path::PathBuf;

use serde::Serialize;
use stlf_config::Config;
use stlf_config::fleet::{Fleet, load};
use stlf_method::guard::Guard;
use stlf_method::method::Method;

use self::nearest_means::{Alteration, learners};
use super::output::{Output, Table, percent};
use super::settings::{Lab, Variant};
use super::spec::{self, Spec};
use super::strangers::Kind;
use super::{Artifact, Made};
use crate::record::GuardRow;
use crate::run::{run_with, seed_folder};
use crate::stages::student;
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

/// Students of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    /// Who trains them, how samples are altered, and whose plan it is.
    students: String,
    /// What the targets' domain is.
    domain: &'static str,
}

/// A student: what each guard says, and what it adds to the accuracy.
struct Judged {
    group: Group,
    rows: Vec<GuardRow>,
    gain: f64,
}

/// A guard at a threshold, over the students of a group.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Entry {
    students: String,
    domain: &'static str,
    guard: &'static str,
    threshold: f64,
    /// Whether that is the threshold in use.
    in_use: bool,
    trained: usize,
    /// With how many the target is less accurate than with the mixture.
    harmful: usize,
    accepted: usize,
    /// How many of those that are accepted are harmful.
    wrongly_accepted: usize,
    /// The most that a target loses by one that is accepted.
    worst_loss: f64,
    /// What those that are accepted add, mean over all targets.
    gain: f64,
    /// What all would add.
    gain_of_all: f64,
}

/// All groups of students, every guard, as rows; the guard in use as a table.
pub(super) fn make(artifact: Artifact, spec: &Spec, lab: &Lab<'_>) -> Result<Made, Error> {
    let cases = cases(spec, lab)?;
    let mut judged = Vec::new();
    for (place, case) in cases.iter().enumerate() {
        (lab.heard)(&case.title, place + 1, cases.len());
        judged.extend(case.of_networks(lab)?);
        for alteration in Alteration::ALL {
            judged.extend(case.of_learners(alteration, lab)?);
        }
    }
    let entries = entries(&judged);
    let mut output = Output::new(artifact, lab.folder);
    output.rows("", &entries)?;
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
fn suffixed(path: &std::path::Path, suffix: &str) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    path.with_file_name(format!("{}-{suffix}", name.unwrap_or_default()))
}

impl Case {
    /// The students of built-in networks.
    fn of_networks(&self, lab: &Lab<'_>) -> Result<Vec<Judged>, Error> {
        compare(&self.config, &self.path, &METHODS, lab.observer)?;
        let mut judged = Vec::new();
        for seed in lab.seeds() {
            judged.extend(self.judged("networks", &self.path.join(seed_folder(seed)))?);
        }
        Ok(judged)
    }

    /// The students of learners that alter samples so, in the same fleets.
    fn of_learners(&self, alteration: Alteration, lab: &Lab<'_>) -> Result<Vec<Judged>, Error> {
        let (data, name) = (load(&self.config)?, alteration.name());
        let mut judged = Vec::new();
        for seed in lab.seeds() {
            let fleet = Fleet::deal(&data, &self.config.scheme(&data), None, seed)?;
            let devices = fleet.devices.iter().map(|device| device.name.clone()).collect();
            let learners = learners(fleet, data.classes(), alteration)?;
            let mut config = Config { seeds: vec![seed], ..Config::default() };
            config.data.devices = devices;
            config.training.learner = Some(format!("nearest means, {name}"));
            config.compare = self.config.compare.clone();
            let path = suffixed(&self.path, &format!("{name}-{seed}"));
            run_with(&config, &learners, &path, lab.observer)?;
            let group = format!("learner, {name}");
            judged.extend(self.judged(&group, &path.join(seed_folder(seed)))?);
        }
        Ok(judged)
    }

    /// What guards say of all students in a seed's folder.
    fn judged(&self, students: &str, folder: &std::path::Path) -> Result<Vec<Judged>, Error> {
        let folder = Folder::open(folder)?;
        let domain = if self.is_known { "known" } else { "unseen" };
        let mut judged = Vec::new();
        for method in METHODS {
            let group = Group { students: format!("{students}, {}", method.label()), domain };
            let rows = student::read_guards(&folder, method)?;
            let of_targets = rows.chunk_by(|a, b| a.target == b.target);
            judged.extend(of_targets.filter_map(|rows| {
                let gain = rows.first()?.gain?;
                Some(Judged { group: group.clone(), rows: rows.to_vec(), gain })
            }));
        }
        Ok(judged)
    }
}

impl Judged {
    /// Whether a guard with this threshold accepts the student.
    fn is_accepted(&self, guard: Guard, threshold: f64) -> bool {
        let row = |guard: Guard| self.rows.iter().find(|row| row.guard == guard.name());
        let (Some(row), Some(information)) = (row(guard), row(Guard::Information)) else {
            return false;
        };
        row.score - row.of_mixture >= threshold
            && !guard.takes_for_collapsed(information.score, information.of_mixture)
    }
}

fn entries(judged: &[Judged]) -> Vec<Entry> {
    let mut groups: Vec<&Group> = Vec::new();
    for one in judged {
        if !groups.contains(&&one.group) {
            groups.push(&one.group);
        }
    }
    let mut entries = Vec::new();
    for group in groups {
        let own: Vec<&Judged> = judged.iter().filter(|one| one.group == *group).collect();
        for guard in Guard::ALL {
            let in_use = guard.threshold();
            let mut thresholds = match guard {
                Guard::Occlusion | Guard::Views => THRESHOLDS.to_vec(),
                Guard::Confidence | Guard::Information | Guard::Agreement => Vec::new(),
            };
            if !thresholds.contains(&in_use) {
                thresholds.push(in_use);
            }
            entries.extend(thresholds.into_iter().map(|t| entry(group, &own, guard, t)));
        }
    }
    entries
}

fn entry(group: &Group, own: &[&Judged], guard: Guard, threshold: f64) -> Entry {
    let accepted: Vec<f64> =
        (own.iter()).filter(|one| one.is_accepted(guard, threshold)).map(|one| one.gain).collect();
    let mean = |gains: f64| gains / own.len().max(1) as f64;
    Entry {
        students: group.students.clone(),
        domain: group.domain,
        guard: guard.name(),
        threshold,
        in_use: threshold == guard.threshold(),
        trained: own.len(),
        harmful: own.iter().filter(|one| one.gain < 0.0).count(),
        accepted: accepted.len(),
        wrongly_accepted: accepted.iter().filter(|gain| **gain < 0.0).count(),
        worst_loss: accepted.iter().fold(0.0, |worst: f64, gain| worst.max(-gain)),
        gain: mean(accepted.iter().sum()),
        gain_of_all: mean(own.iter().map(|one| one.gain).sum()),
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
    head.extend(THRESHOLDS.map(|t| match t == used.threshold() {
        true => format!("{t}, in use"),
        false => t.to_string(),
    }));
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
        "A cell is accepted / of these harmful / the most that a target loses, points / what those accepted add, points. At the threshold in use {} of {} harmful students are accepted, of {} in all.",
        sum(|entry| entry.wrongly_accepted),
        sum(|entry| entry.harmful),
        sum(|entry| entry.trained),
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
mod tests {
    use std::ops::ControlFlow;

    use super::super::settings::Options;
    use super::*;

    /// A student whose scores exceed the mixture's by this margin, that tells so much about samples where the mixture tells 1, and adds so much.
    fn judged(margin: f64, information: f64, gain: f64) -> Judged {
        let row = |guard: Guard| {
            let (score, of_mixture) = match guard {
                Guard::Information => (information, 1.0),
                _ => (0.5 + margin, 0.5),
            };
            let (target, guard) = ("d1".to_owned(), guard.name().to_owned());
            GuardRow { target, guard, score, of_mixture, accepted: false, gain: Some(gain) }
        };
        let group = Group { students: "networks".to_owned(), domain: "known" };
        Judged { group, rows: Guard::ALL.map(row).to_vec(), gain }
    }

    #[test]
    fn students_are_counted_at_every_threshold() {
        let all = [
            judged(0.035, 1.0, 0.01),
            judged(0.015, 1.0, -0.02),
            // It says the same of everything.
            judged(0.2, 0.5, -0.4),
            judged(-0.01, 1.0, 0.03),
        ];
        let entries = entries(&all);
        let at = |guard: Guard, threshold: f64| {
            let is_it = |e: &&Entry| (e.guard, e.threshold) == (guard.name(), threshold);
            let entry = entries.iter().find(is_it).unwrap();
            assert_eq!((entry.trained, entry.harmful), (4, 2));
            assert_eq!(entry.in_use, guard.threshold() == threshold);
            (entry.accepted, entry.wrongly_accepted, entry.worst_loss)
        };
        assert_eq!(at(Guard::Occlusion, 0.0), (2, 1, 0.02));
        assert_eq!(at(Guard::Occlusion, 0.02), (1, 0, 0.0));
        assert_eq!(at(Guard::Occlusion, 0.05), (0, 0, 0.0));
        assert_eq!(at(Guard::Confidence, 0.0), (3, 2, 0.4));
        let text = note(&entries);
        assert!(text.contains("0 of 2 harmful students are accepted, of 4 in all"), "{text}");
    }

    #[test]
    fn students_of_a_learner_are_judged_by_its_own_alterations() {
        let to = tempfile::tempdir().unwrap();
        let folder = Folder::open(to.path()).unwrap();
        let options = Options {
            data: None,
            seeds: 1,
            quick: true,
            paper_faithful: false,
            settings: vec!["strangers-MM".to_owned()],
        };
        let lab = Lab {
            options: &options,
            folder: &folder,
            heard: &|_, _, _| {},
            observer: &|_| ControlFlow::Continue(()),
        };
        let cases = cases(&spec::of(Artifact::Guards), &lab).unwrap();
        let [case] = &cases[..] else { panic!("{} cases", cases.len()) };
        let judged = case.of_learners(Alteration::Shift, &lab).unwrap();
        assert!(judged.len() >= 5, "{}", judged.len());
        for one in &judged {
            for (guard, row) in Guard::ALL.into_iter().zip(&one.rows) {
                assert_eq!(guard.name(), row.guard);
                assert_eq!(one.is_accepted(guard, guard.threshold()), row.accepted, "{row:?}");
            }
            // A learner alters samples in one way, for whatever guard.
            assert_eq!(one.rows[0].score.to_bits(), one.rows[1].score.to_bits());
        }
    }
}
