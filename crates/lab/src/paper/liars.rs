//! Sources that lie: what targets lose, if they believe everything, if they check what they receive, and if they get more models to check
//! it against.

mod handing_on;
mod lies;
mod outcome;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use stlf_config::Config;
use stlf_config::fleet::load;
use stlf_data::partition::{All, Arrangement, ClassesPerDevice, Paper, Scheme};
use stlf_figure::bars;
use stlf_learn::Augment;
use stlf_method::adapt::Adapt;

use self::lies::Lie;
use self::outcome::{Defence, Outcome};
use super::output::{Output, Table, percent};
use super::settings::Lab;
use super::spec::Spec;
use super::{Artifact, Made};
use crate::run::{Holdings, open, seed_run};
use crate::summary::Spread;
use crate::watch::Watch;
use crate::{Error, Folder};

/// A fleet in which some lie.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Deceived {
    /// The name by which users choose the fleet.
    pub(super) name: String,
    /// The name that the fleet has in tables.
    title: String,
    /// The data sets of the fleet, where real data are at hand.
    real: Vec<String>,
    /// The drawn digits that stand in for these data sets.
    drawn: Vec<String>,
    /// The classes of a device; all if not given.
    classes: Option<usize>,
    /// Whether sources hand their models on.
    #[serde(default)]
    handovers: bool,
    /// The scale of the numbers of samples; the usual one if not given.
    scale: Option<f64>,
}

/// How many of the ten devices lie.
const LIARS: [usize; 2] = [1, 3];

/// The same where sources hand their models on, which makes many trainings of each lie.
const LIARS_ON_ROUTES: [usize; 1] = [1];

/// The devices of a fleet, and how many of them have labels.
const DEVICES: (usize, usize) = (10, 7);

/// The steps of every training: few, because what counts is the difference between honest and lying sources.
const STEPS: usize = 2_000;

/// A fleet, a lie and a defence: shares of 1.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Entry {
    fleet: String,
    lie: String,
    liars: usize,
    defence: String,
    draws: usize,
    /// The mean accuracy of the targets without labels.
    accuracy: f64,
    /// The mean loss against the same fleet in which nobody lies and nothing is checked, draw by draw.
    loss: f64,
    loss_half_interval: f64,
    /// Of pictures with the trigger of a back door that are not of its class, those that are given it; only with a back door.
    triggered: Option<f64>,
    /// The share of the liars' links and witnesses into targets whose model was refused.
    refused: Option<f64>,
    /// The share of honest devices' links and witnesses into targets whose model was refused.
    wrongly_refused: Option<f64>,
    /// Energy of all models that are sent, over that of those that are planned.
    energy: f64,
}

/// All fleets with every lie, as a table and a figure.
pub(super) fn make(artifact: Artifact, spec: &Spec, lab: &Lab<'_>) -> Result<Made, Error> {
    let fleets = fleets(spec, lab)?;
    let mut entries = Vec::new();
    for (place, fleet) in fleets.iter().enumerate() {
        (lab.heard)(&fleet.title, place + 1, fleets.len());
        let outcomes = fleet.outcomes(lab)?;
        entries.extend(of_fleet(fleet, &outcomes));
    }
    let mut output = Output::new(artifact, lab.folder);
    output.rows("", &entries)?;
    let table = table(&fleets, &entries);
    output.table(&table)?;
    output.figure(&picture(spec, &fleets, &entries).draw())?;
    Ok(output.made(spec, &table, note(&entries)))
}

/// The fleets that the user wants to see.
fn fleets<'s>(spec: &'s Spec, lab: &Lab<'_>) -> Result<Vec<&'s Deceived>, Error> {
    lab.wanted(&spec.deceived, |fleet| &fleet.name, "a fleet with liars")
}

impl Deceived {
    fn path(&self, lab: &Lab<'_>) -> PathBuf {
        let data = if lab.options.data.is_some() { "real" } else { "drawn" };
        let quick = if lab.options.quick { "-quick" } else { "" };
        let (name, seeds) = (&self.name, lab.options.seeds);
        lab.folder.path().join("runs").join(format!("liars-{name}-{data}{quick}-{seeds}"))
    }

    /// Models as sources train them, without students, and without hand-overs but where these are asked for: of them a liar would spoil more at once.
    fn config(&self, lab: &Lab<'_>) -> Config {
        let mut config = Config { seeds: lab.seeds(), ..Config::default() };
        let real = lab.options.data.is_some();
        config.data.domains = if real { self.real.clone() } else { self.drawn.clone() };
        config.data.folder.clone_from(&lab.options.data);
        // Classes of real data are of different sizes, so that more is needed for all devices to get their samples.
        config.data.samples = Some(match (lab.options.quick, real) {
            (true, _) => 4_000,
            (false, false) => 12_000,
            (false, true) => 40_000,
        });
        let several = config.data.domains.len() > 1;
        config.partition = Some(Scheme::Paper(Paper {
            devices: DEVICES.0,
            labeled_devices: Some(DEVICES.1),
            classes_per_device: match self.classes {
                Some(classes) => ClassesPerDevice::Count(classes),
                None => ClassesPerDevice::All(All::All),
            },
            arrangement: if several { Arrangement::Split } else { Arrangement::Single },
            scale: self.scale.unwrap_or(if lab.options.quick { 0.2 } else { 0.5 }),
            ..Paper::default()
        }));
        config.training.steps = Some(if lab.options.quick { STEPS / 4 } else { STEPS });
        config.training.augment = Some(Augment::None);
        config.transfer.adapt = Adapt::Off;
        config.planner.handovers = Some(self.handovers);
        config
    }

    /// What comes of every seed, lie and defence.
    fn outcomes(&self, lab: &Lab<'_>) -> Result<Vec<Outcome>, Error> {
        let config = self.config(lab);
        let folder: Folder = open(&config, &self.path(lab))?;
        let stopped = AtomicBool::new(false);
        let watch = Watch::new(lab.observer, &stopped);
        let holdings = Holdings::Dealt(Box::new(load(&config)?));
        let of_seed = |&seed: &u64| {
            let (run, _) = seed_run(&config, &holdings, seed, &folder, watch.of(seed))?;
            outcome::of_seed(&run)
        };
        let seeds: Vec<Vec<Outcome>> =
            config.seeds.par_iter().map(of_seed).collect::<Result<_, Error>>()?;
        Ok(seeds.concat())
    }
}

/// The entries of a fleet: first nobody lies, then every lie.
fn of_fleet(fleet: &Deceived, outcomes: &[Outcome]) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (lie, liars) in cases(fleet.handovers) {
        for defence in Defence::ALL {
            let is_own = |o: &&Outcome| (o.lie, o.liars, o.defence) == (lie, liars, defence);
            let own: Vec<&Outcome> = outcomes.iter().filter(is_own).collect();
            let honest = |seed: u64| {
                let is = |o: &&Outcome| (o.seed, o.lie, o.defence) == (seed, None, Defence::None);
                outcomes.iter().find(is).map_or(f64::NAN, |o| o.accuracy)
            };
            let spread = |value: &dyn Fn(&Outcome) -> Option<f64>| {
                Spread::of(&own.iter().filter_map(|o| value(o)).collect::<Vec<f64>>())
            };
            let Some(accuracy) = spread(&|o| Some(o.accuracy)) else { continue };
            let Some(loss) = spread(&|o| Some(honest(o.seed) - o.accuracy)) else { continue };
            let mean = |value: &dyn Fn(&Outcome) -> Option<f64>| spread(value).map(|s| s.mean);
            entries.push(Entry {
                fleet: fleet.name.clone(),
                lie: lie.map_or("nobody lies", Lie::name).to_owned(),
                liars,
                defence: defence.name().to_owned(),
                draws: own.len(),
                accuracy: accuracy.mean,
                loss: loss.mean,
                loss_half_interval: loss.half_interval(),
                triggered: mean(&|o| o.triggered),
                refused: mean(&|o| o.refused),
                wrongly_refused: mean(&|o| o.wrongly_refused),
                energy: mean(&|o| Some(o.energy)).unwrap_or(f64::NAN),
            });
        }
    }
    entries
}

/// Every lie with every number of liars, after none, where sources hand models on or do not.
fn cases(hand_on: bool) -> Vec<(Option<Lie>, usize)> {
    let liars = if hand_on { &LIARS_ON_ROUTES[..] } else { &LIARS };
    let lies = Lie::ALL.into_iter();
    let lies = lies.flat_map(|lie| liars.iter().map(move |&liars| (Some(lie), liars)));
    std::iter::once((None, 0)).chain(lies).collect()
}

fn table(fleets: &[&Deceived], entries: &[Entry]) -> Table {
    let mut head = vec!["fleet".to_owned(), "lie".to_owned(), "liars".to_owned()];
    head.extend(Defence::ALL.map(|defence| format!("{}, points lost", defence.name())));
    let mut table = Table::new(head.iter().map(String::as_str));
    for fleet in fleets {
        let own: Vec<&Entry> = entries.iter().filter(|e| e.fleet == fleet.name).collect();
        for of_lie in own.chunk_by(|a, b| (&a.lie, a.liars) == (&b.lie, b.liars)) {
            let cell =
                |e: &&Entry| format!("{} ± {}", percent(e.loss), percent(e.loss_half_interval));
            let head = [fleet.title.clone(), of_lie[0].lie.clone(), of_lie[0].liars.to_string()];
            table.row(head.into_iter().chain(of_lie.iter().map(cell)));
        }
    }
    table
}

/// Returns a sentence on what the defences cost where nobody lies.
fn note(entries: &[Entry]) -> String {
    let honest = |defence: Defence| {
        let own: Vec<f64> = entries
            .iter()
            .filter(|e| e.liars == 0 && e.defence == defence.name())
            .map(|e| e.energy)
            .collect();
        Spread::of(&own).map_or(f64::NAN, |spread| spread.mean)
    };
    format!(
        "Loss is of the targets without labels, against the same draw in which nobody lies and nothing is checked. Where nobody lies, \
         a plan with examiners takes {:.2} times the energy of one without, where targets hear 3 models besides {:.1} times, and where \
         they hear 7 {:.1} times.",
        honest(Defence::Checked),
        honest(Defence::Three),
        honest(Defence::Seven)
    )
}

fn picture(spec: &Spec, fleets: &[&Deceived], entries: &[Entry]) -> bars::Chart {
    let shown: Vec<(&str, usize)> = {
        let mut shown: Vec<(&str, usize)> =
            entries.iter().map(|e| (e.lie.as_str(), e.liars)).collect();
        let mut seen = Vec::new();
        shown.retain(|case| {
            !seen.contains(case) && {
                seen.push(*case);
                true
            }
        });
        shown
    };
    let series = Defence::ALL.map(|defence| {
        let value = |&(lie, liars): &(&str, usize)| {
            let own = entries.iter().filter(|e| {
                (e.lie.as_str(), e.liars, e.defence.as_str()) == (lie, liars, defence.name())
            });
            let accuracies: Vec<f64> = own.map(|e| 100.0 * e.accuracy).collect();
            let mean = Spread::of(&accuracies)?.mean;
            Some(bars::Value { mean, low: mean, high: mean })
        };
        bars::Series { name: defence.name().to_owned(), values: shown.iter().map(value).collect() }
    });
    bars::Chart {
        title: format!("{} ({} fleets)", spec.title, fleets.len()),
        y_label: "target accuracy, %".to_owned(),
        y_range: Some((0.0, 100.0)),
        groups: shown.iter().map(|(lie, liars)| format!("{lie} {liars}")).collect(),
        series: series.to_vec(),
        numbers: false,
        width: 900.0,
        height: 360.0,
        ..bars::Chart::default()
    }
}
