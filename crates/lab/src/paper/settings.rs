//! The nine settings as runs: ours, and the paper's method as it was.

use std::path::PathBuf;

use stlf_config::Config;
use stlf_config::{Estimator, Planner};
use stlf_data::partition::{Paper, Scheme};
use stlf_learn::Augment;
use stlf_method::adapt::Adapt;
use stlf_method::combine::Combine;
use stlf_method::method::Method;
use stlf_planning::bound::BoundKind;
use stlf_planning::energy::PAPER_MODEL_BITS;
use stlf_planning::planner;
use stlf_planning::problem::Preset;

use super::Heard;
use super::spec::{self, Setting, Spec};
use crate::run::seed_folder;
use crate::watch::{Observer, Stage};
use crate::{Error, Folder, Outcome, compare, reach};

/// The options that the user may choose.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Where the real data sets lie; without it, drawn digits stand in for them.
    pub data: Option<PathBuf>,
    /// The number of seeds, at least 1.
    pub seeds: usize,
    /// Small fleets and short training, to see it work.
    pub quick: bool,
    /// Also the paper's method as it was.
    pub paper_faithful: bool,
    /// Only these of the paper's settings or of the natural fleets, by name; empty for all of them.
    pub settings: Vec<String>,
}

/// Which method of planning and combining.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variant {
    /// ST-LF with the product's defaults.
    Ours,
    /// The paper's bound and successive planner, its divergences as published, parameters averaged.
    Faithful,
}

impl Variant {
    /// Returns the name that the variant has in tables.
    pub fn name(self) -> &'static str {
        match self {
            Variant::Ours => "ours",
            Variant::Faithful => "paper-faithful",
        }
    }
}

/// Where runs are made, and who hears of them.
pub(super) struct Lab<'a> {
    pub(super) options: &'a Options,
    pub(super) folder: &'a Folder,
    pub(super) heard: &'a Heard<'a>,
    pub(super) observer: &'a Observer<'a>,
}

impl Lab<'_> {
    /// The variants that the user wants to see.
    pub(super) fn variants(&self) -> &'static [Variant] {
        match self.options.paper_faithful {
            true => &[Variant::Ours, Variant::Faithful],
            false => &[Variant::Ours],
        }
    }

    /// Those of some fleets, cases or settings that the user wants to see, by their names; `what` says what each is.
    ///
    /// # Errors
    /// None of them is wanted.
    pub(super) fn wanted<'s, T>(
        &self,
        all: &'s [T],
        name: impl Fn(&T) -> &String,
        what: &str,
    ) -> Result<Vec<&'s T>, Error> {
        let asked = &self.options.settings;
        let is_wanted = |item: &&T| asked.is_empty() || asked.contains(name(item));
        let wanted: Vec<&T> = all.iter().filter(is_wanted).collect();
        if wanted.is_empty() {
            let names: Vec<&str> = all.iter().map(|item| name(item).as_str()).collect();
            let message = format!("none of {} is {what}", asked.join(", "));
            let hint = format!("there are: {}", names.join(", "));
            return Err(stlf_planning::Error::other("settings", message).with_hint(hint).into());
        }
        Ok(wanted)
    }

    /// Returns the settings of a spec that the user wants to see, each in every variant.
    pub(super) fn runs(&self, spec: &Spec) -> Result<Vec<(Setting, Variant)>, Error> {
        let settings = spec::settings();
        let of = |name: &&String| settings.iter().find(|s| s.name == **name).cloned();
        let named = self.wanted(&spec.settings, |name| name, "shown here")?;
        let named: Vec<Setting> = named.iter().filter_map(of).collect();
        let variants = self.variants();
        Ok(named.iter().flat_map(|s| variants.iter().map(|v| (s.clone(), *v))).collect())
    }

    /// Compares methods in one setting, or finds them compared.
    pub(super) fn compare(
        &self,
        run: (&Setting, Variant),
        methods: &[Method],
        place: (usize, usize),
    ) -> Result<Outcome, Error> {
        let (setting, variant) = run;
        (self.heard)(&title(setting, variant), place.0 + 1, place.1);
        compare(
            &self.config(setting, variant),
            &self.path(setting, variant),
            methods,
            self.observer,
        )
    }

    /// Runs one setting until it is transferred, or finds it so.
    pub(super) fn transfer(
        &self,
        run: (&Setting, Variant),
        place: (usize, usize),
    ) -> Result<(), Error> {
        let (setting, variant) = run;
        (self.heard)(&title(setting, variant), place.0 + 1, place.1);
        let (config, path) = (self.config(setting, variant), self.path(setting, variant));
        reach(&config, &path, Stage::Transfer, self.observer).map(|_| ())
    }

    /// The folder of a seed of a run.
    pub(super) fn seed(
        &self,
        setting: &Setting,
        variant: Variant,
        seed: u64,
    ) -> Result<Folder, Error> {
        Ok(Folder::open(&self.path(setting, variant).join(seed_folder(seed)))?)
    }

    /// Returns the seeds of every run.
    pub(super) fn seeds(&self) -> Vec<u64> {
        (0..self.options.seeds as u64).collect()
    }

    /// The folder of a run; another choice of options is another one.
    pub(super) fn path(&self, setting: &Setting, variant: Variant) -> PathBuf {
        let name = setting.name.replace("//", "-beside-").replace('+', "-and-");
        let data = if self.options.data.is_some() { "real" } else { "drawn" };
        let quick = if self.options.quick { "-quick" } else { "" };
        let seeds = self.options.seeds;
        let folder = format!("{name}-{data}{quick}-{seeds}-{}", variant.name());
        self.folder.path().join("runs").join(folder)
    }

    /// Returns the configuration of a setting's run.
    pub(super) fn config(&self, setting: &Setting, variant: Variant) -> Config {
        let mut config = Config { seeds: self.seeds(), ..Config::default() };
        let real = self.options.data.is_some();
        config.data.domains = if real { setting.real.clone() } else { setting.drawn.clone() };
        config.data.folder.clone_from(&self.options.data);
        let mut paper = Paper {
            arrangement: setting.arrangement,
            classes_per_device: setting.classes,
            disjoint: setting.disjoint || !real,
            ..Paper::default()
        };
        if self.options.quick {
            paper.scale = 0.15;
            config.data.samples = Some(6_000);
            config.training.steps = Some(1_000);
            // So few steps are too few for pictures that look different every time.
            config.training.augment = Some(Augment::None);
            config.compare.fada.steps = 40;
            config.compare.fada.rounds = 1;
        }
        config.partition = Some(Scheme::Paper(paper));
        config.energy.model_bits = Some(PAPER_MODEL_BITS);
        if variant == Variant::Faithful {
            faithful(&mut config, self.options.quick);
        }
        config
    }
}

/// The paper's method as it was: trained on pictures as they are, after a short FedAvg among devices with labels, errors measured on the labels
/// that were trained on, one classifier per pair, the paper's weights and bound, its own successive method rounded,
/// parameters averaged.
fn faithful(config: &mut Config, quick: bool) {
    config.training.augment = Some(Augment::None);
    config.transfer.adapt = Adapt::Off;
    config.training.held_out = 0.0;
    config.training.balanced = false;
    config.training.warm_up_rounds = 4;
    config.training.warm_up_steps = if quick { 50 } else { 500 };
    config.divergence.estimator = Some(Estimator::Published);
    if quick {
        config.divergence.rounds = Some(5);
        config.divergence.steps = Some(10);
    }
    config.planner = Planner {
        preset: Preset::Paper,
        bound: BoundKind::Paper,
        solver: planner::Method::Successive,
        polish: false,
        combine: Combine::Parameters,
        ..Planner::default()
    };
}

/// Returns the name by which progress tells of a run.
fn title(setting: &Setting, variant: Variant) -> String {
    match variant {
        Variant::Ours => setting.name.clone(),
        Variant::Faithful => format!("{}, as in the paper", setting.name),
    }
}
