//! What to run, as a TOML file. Every key has a default; unknown ones are refused.

pub mod answers;
mod divergence;
mod error;
mod fada;
pub mod fleet;
pub mod for_table;
mod learners;
mod sections;
mod shared;
mod standardise;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize};
use sha2::{Digest, Sha256};
use stlf_data::partition::Scheme;
use stlf_data::{Dataset, Shape};
use stlf_learn::{Augment, Layout, Spec};
use stlf_method::combine::Combine;
use stlf_method::local_training;
use stlf_planning::bound::BoundKind;
use stlf_planning::energy::PAPER_MODEL_BITS;
use stlf_planning::problem::{Preset, Strangers};

pub use divergence::{Accepted, Divergence, Estimator, Noise, Privacy};
pub use error::Error;
use error::in_words;
pub use fada::Settings as FadaSettings;
pub use sections::{Compare, Data, Energy, EnergyModel, Fada, Model, Planner, Training, Transfer};

/// The fewest readings of a window that the network for series takes.
const SHORTEST_WINDOW: usize = 8;

/// A file with every key, its default and its meaning.
pub const TEMPLATE: &str = include_str!("template.toml");

/// The whole configuration of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// One run of everything per seed.
    pub seeds: Vec<u64>,
    /// Where samples come from.
    pub data: Data,
    /// How they are dealt to devices; left out, as [`Scheme::for_data`] says.
    #[serde(deserialize_with = "scheme", skip_serializing_if = "Option::is_none")]
    pub partition: Option<Scheme>,
    /// How devices train their models.
    pub training: Training,
    /// How the difference of two devices' data is measured.
    pub divergence: Divergence,
    /// What a transfer costs.
    pub energy: Energy,
    /// How roles and links are chosen.
    pub planner: Planner,
    /// What targets do with the models that they receive.
    pub transfer: Transfer,
    /// The methods that are compared.
    pub compare: Compare,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            seeds: (0..5).collect(),
            data: Data::default(),
            partition: None,
            training: Training::default(),
            divergence: Divergence::default(),
            energy: Energy::default(),
            planner: Planner::default(),
            transfer: Transfer::default(),
            compare: Compare::default(),
        }
    }
}

impl Config {
    /// Reads a configuration. Errors name the file, the line and the key, and what was likely meant.
    pub fn read(path: &Path) -> Result<Config, Error> {
        let text = std::fs::read_to_string(path).map_err(Error::file(path))?;
        Config::parse(&text, path)
    }

    /// The same from text; `path` is only named in errors.
    pub fn parse(text: &str, path: &Path) -> Result<Config, Error> {
        let config: Config = toml::from_str(text).map_err(|e| {
            let line = e.span().map(|span| text[..span.start].matches('\n').count() + 1);
            let message = in_words(e.message());
            let hint = suggestion(&message);
            Error::Setting { path: path.to_owned(), line, message, hint }
        })?;
        config.check(path)?;
        Ok(config)
    }

    /// This configuration with some keys changed: `training.steps=500`, `data.domains=["mnist"]`. A value that is
    /// no TOML is taken as a string.
    pub fn with<'a>(&self, changes: impl IntoIterator<Item = &'a str>) -> Result<Config, Error> {
        let mut table = self.to_table()?;
        let mut last = None;
        for change in changes {
            set(&mut table, change)?;
            // Types are looked at one change at a time, so that an error is about this one; whether all fit
            // together is seen at the end.
            if let Err(e) = table.clone().try_into::<Config>() {
                let hint = suggestion(e.message());
                return Err(change_error(format!("{change}: {}", in_words(e.message())), hint));
            }
            last = Some(change);
        }
        let config: Config =
            table.try_into().map_err(|e: toml::de::Error| change_error(e.to_string(), None))?;
        if last.is_some() {
            config.check(Path::new("-c"))?;
        }
        Ok(config)
    }

    /// A hash of the whole configuration.
    pub fn hash(&self) -> Result<String, Error> {
        let digest = Sha256::digest(self.to_toml()?.as_bytes());
        Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The text of the whole configuration, defaults included.
    pub fn to_toml(&self) -> Result<String, Error> {
        toml::to_string_pretty(self).map_err(|e| Error::Setting {
            path: PathBuf::from("config.toml"),
            line: None,
            message: e.to_string(),
            hint: None,
        })
    }

    fn to_table(&self) -> Result<toml::Table, Error> {
        toml::Table::try_from(self).map_err(|e| change_error(e.to_string(), None))
    }

    fn check(&self, path: &Path) -> Result<(), Error> {
        let wrong = |key: &str, message: String| Error::Setting {
            path: path.to_owned(),
            line: None,
            message: format!("{key}: {message}"),
            hint: None,
        };
        // These name the key themselves.
        let in_method = |e: &stlf_planning::Error| Error::Setting {
            path: path.to_owned(),
            line: None,
            message: e.to_string(),
            hint: e.hint().map(str::to_owned),
        };
        if self.seeds.is_empty() {
            return Err(wrong("seeds", "the list is empty".to_owned()));
        }
        let mut seen = std::collections::BTreeSet::new();
        if let Some(twice) = self.seeds.iter().find(|s| !seen.insert(**s)) {
            return Err(wrong("seeds", format!("{twice} is listed twice")));
        }
        let t = &self.training;
        if !(0.0..1.0).contains(&t.held_out) {
            return Err(wrong("training.held-out", format!("{} is not in 0 ≤ h < 1", t.held_out)));
        }
        if !(0.0..=1.0).contains(&t.unlabeled_as) {
            let message = format!("{} is not in 0 ≤ u ≤ 1", t.unlabeled_as);
            return Err(wrong("training.unlabeled-as", message));
        }
        if let Some(augment) = t.augment.filter(|augment| *augment != Augment::None)
            && self.data.table().is_some()
        {
            let message =
                format!("{} is for pictures, and data.features is a table", augment.name());
            return Err(Error::Setting {
                path: path.to_owned(),
                line: None,
                message: format!("training.augment: {message}"),
                hint: Some("leave out training.augment".to_owned()),
            });
        }
        if self.data.image_size.is_some() && self.data.images.is_none() {
            let message = "is for a folder of pictures, data.images".to_owned();
            return Err(wrong("data.image-size", message));
        }
        if self.data.image_size.is_some_and(|side| !(1..=4096).contains(&side)) {
            return Err(wrong("data.image-size", "is not between 1 and 4096".to_owned()));
        }
        if let Some((key, message)) = self.data.misplaced_windows() {
            return Err(wrong(&format!("data.{key}"), message.to_owned()));
        }
        if t.steps == Some(0) {
            return Err(wrong("training.steps", "must be at least 1".to_owned()));
        }
        let rounds =
            [("rounds", self.compare.rounds()), ("kd3a-rounds", self.compare.kd3a_rounds())];
        if let Some((name, _)) = rounds.into_iter().find(|(_, rounds)| *rounds == 0) {
            return Err(wrong(&format!("compare.{name}"), "must be at least 1".to_owned()));
        }
        if self.planner.combine == Combine::Corrected && !t.balanced {
            let message = "corrected requires training.balanced = true";
            return Err(Error::Setting {
                path: path.to_owned(),
                line: None,
                message: format!("planner.combine: {message}"),
                hint: Some("remove training.balanced = false".to_owned()),
            });
        }
        if self.planner.handovers == Some(true) && self.planner.bound == BoundKind::Paper {
            let message = "the paper's bound does not reward them".to_owned();
            return Err(wrong("planner.handovers", message));
        }
        if self.planner.strangers.is_some_and(|asked| asked != Strangers::Planned)
            && self.planner.bound == BoundKind::Paper
        {
            let message = "under the paper's bound a target takes one model".to_owned();
            return Err(wrong("planner.strangers", message));
        }
        if self.planner.limit().is_none() {
            let message = format!("{} is not a number of seconds above 0", self.planner.time_limit);
            return Err(wrong("planner.time-limit", message));
        }
        self.check_learner().map_err(|(key, message, hint)| Error::Setting {
            path: path.to_owned(),
            line: None,
            message: format!("{key}: {message}"),
            hint: Some(hint),
        })?;
        self.descent().check().map_err(|e| wrong("training", e.to_string()))?;
        if let Some(message) = self.divergence.misplaced() {
            return Err(wrong("divergence", message));
        }
        self.divergence.check().map_err(|e| in_method(&e))?;
        self.compare.fada.settings().check().map_err(|e| in_method(&e))?;
        let Energy { model_bits, gflop_per_joule, .. } = self.energy;
        for (key, value) in [("model-bits", model_bits), ("gflop-per-joule", gflop_per_joule)] {
            if let Some(value) = value.filter(|value| !(*value > 0.0 && value.is_finite())) {
                return Err(wrong(&format!("energy.{key}"), format!("{value} is not above 0")));
            }
        }
        for (key, methods) in
            [("methods", self.compare.methods()), ("students", self.compare.students())]
        {
            methods.map_err(|e| Error::Setting {
                path: path.to_owned(),
                line: None,
                message: format!("compare.{key}: {e}"),
                hint: e.hint().map(str::to_owned),
            })?;
        }
        Ok(())
    }

    /// How these samples are dealt to devices.
    pub fn scheme(&self, data: &Dataset) -> Scheme {
        self.partition.clone().unwrap_or_else(|| Scheme::for_data(data))
    }

    /// M, the bits that a model of this network is taken to have where energy is counted.
    pub fn model_bits(&self, of: &impl AsRef<Layout>) -> f64 {
        let of_preset = match self.planner.preset {
            Preset::Paper => PAPER_MODEL_BITS,
            Preset::Balanced => 8.0 * model_bytes(of) as f64,
        };
        self.energy.model_bits.unwrap_or(of_preset)
    }

    /// Returns the network that the configuration names, for inputs of this shape.
    ///
    /// # Errors
    /// No class is known, or the network does not take such inputs.
    pub fn network(&self, shape: Shape, classes: usize) -> Result<Spec, stlf_learn::Error> {
        match self.training.model {
            _ if classes == 0 => {
                let message = "no sample has a label, so that no class is known; \
                               name them, the same on all devices: data.classes = [\"a\", \"b\"]";
                Err(stlf_learn::Error::Training(message.to_owned()))
            }
            Model::Cnn if self.data.windows().is_some() => {
                if shape.width < SHORTEST_WINDOW {
                    let message = format!(
                        "the cnn takes windows of at least {SHORTEST_WINDOW} readings, not {}; \
                         use a longer data.window, or model = \"mlp\"",
                        shape.width
                    );
                    return Err(stlf_learn::Error::Training(message));
                }
                Spec::series_cnn(shape.channels, shape.width, classes)
            }
            Model::Cnn if (shape.height, shape.width) != (28, 28) => {
                let other = match shape.is_picture() {
                    true => "set data.image-size = 28 to resize them, or use model = \"mlp\"",
                    false => "use model = \"mlp\"",
                };
                let message = format!("the cnn takes pictures of 28 × 28, not {shape}; {other}");
                Err(stlf_learn::Error::Training(message))
            }
            Model::Cnn => Spec::cnn(shape.channels, classes),
            Model::Mlp => Spec::mlp(shape, classes),
        }
    }

    /// Returns how devices train on their own labels, with inputs of this shape.
    ///
    /// # Errors
    /// Views are asked for, and the inputs are no pictures.
    pub fn training(&self, shape: Shape) -> Result<local_training::Training, stlf_learn::Error> {
        let (descent, steps) = (self.descent(), self.training.steps(shape));
        let augment = self.training.augment(shape);
        augment.check(shape)?;
        Ok(local_training::Training { descent, augment, steps, averaged: false })
    }

    /// What a device gets to which no source is near, with inputs of this shape.
    pub fn strangers(&self, shape: Shape) -> Strangers {
        self.planner.strangers(self.training.augment(shape) != Augment::None)
    }

    /// How models are trained.
    pub fn descent(&self) -> stlf_learn::Descent {
        let &Training { batch, learning_rate, momentum, weight_decay, .. } = &self.training;
        stlf_learn::Descent { batch, learning_rate, momentum, weight_decay }
    }
}

/// What a model of this network has when it is sent.
pub fn model_bytes(of: &impl AsRef<Layout>) -> u64 {
    (of.as_ref().parameters() * size_of::<f32>()) as u64
}

/// `[partition]`; without a key it is as if it were not there.
fn scheme<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Scheme>, D::Error> {
    let table = toml::Table::deserialize(input)?;
    let read = || Scheme::deserialize(toml::Value::Table(table.clone())).map(Some);
    if table.is_empty() { Ok(None) } else { read() }
        .map_err(|e: toml::de::Error| serde::de::Error::custom(e.message()))
}

/// Sets one key of a table: `training.steps=500`.
fn set(table: &mut toml::Table, change: &str) -> Result<(), Error> {
    let form = || Some("write KEY=VALUE, such as training.steps=500".to_owned());
    let (key, text) = change
        .split_once('=')
        .ok_or_else(|| change_error(format!("{change:?} is not a setting"), form()))?;
    let parsed = format!("v = {text}").parse::<toml::Table>().ok().and_then(|mut t| t.remove("v"));
    let value = parsed.unwrap_or_else(|| toml::Value::String(text.to_owned()));
    let (inside, name) = key.rsplit_once('.').map_or((None, key), |(a, b)| (Some(a), b));
    // Who sets a key of the default partition means that one.
    if key.starts_with("partition.") && !table.contains_key("partition") {
        let default = toml::Value::try_from(Scheme::default());
        table.extend(default.ok().map(|scheme| ("partition".to_owned(), scheme)));
    }
    let mut place = table;
    for part in inside.into_iter().flat_map(|inside| inside.split('.')) {
        let entry = place.entry(part).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        place = entry
            .as_table_mut()
            .ok_or_else(|| change_error(format!("{key}: {part} is not a table"), form()))?;
    }
    // Another kind of partition has other keys.
    if key == "partition.kind" && place.get(name) != Some(&value) {
        place.clear();
    }
    place.insert(name.to_owned(), value);
    Ok(())
}

fn change_error(message: String, hint: Option<String>) -> Error {
    Error::Setting { path: PathBuf::from("-c"), line: None, message, hint }
}

/// What an unknown key was likely meant to be, from the parser's list of the known ones.
fn suggestion(message: &str) -> Option<String> {
    if message == "missing field `kind`" {
        return Some("[partition] needs its kind, such as kind = \"paper\"".to_owned());
    }
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = quoted.next().filter(|_| message.starts_with("unknown"))?;
    stlf_planning::error::nearest(unknown, quoted).map(|known| format!("did you mean {known}?"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use stlf_data::features::Scale;

    use super::*;

    #[test]
    fn the_template_is_the_default() {
        let config = Config::parse(TEMPLATE, Path::new("t")).unwrap();
        assert_eq!(config, Config::default());
        // Every key that is commented out is one that exists.
        let uncommented: String = TEMPLATE
            .lines()
            .map(|line| match line.strip_prefix("# ") {
                Some(key) if key.contains(" = ") => format!("{key}\n"),
                _ => format!("{line}\n"),
            })
            .collect();
        assert_eq!(uncommented.matches("\n#").count(), 0);
        toml::from_str::<Config>(&uncommented).unwrap();
    }

    #[test]
    fn written_and_read_again_it_is_the_same() {
        let config = Config::default();
        assert_eq!(Config::parse(&config.to_toml().unwrap(), Path::new("t")).unwrap(), config);
    }

    #[test]
    fn what_the_planner_can_be_told_has_the_names_of_the_template() {
        let told = |preset, bound, solver, combine| {
            let changes = [
                format!("planner.preset={preset}"),
                format!("planner.bound={bound}"),
                format!("planner.solver={solver}"),
                format!("planner.combine={combine}"),
            ];
            let config = Config::default().with(changes.iter().map(String::as_str)).unwrap();
            let written = config.to_toml().unwrap();
            for (key, name) in
                [("preset", preset), ("bound", bound), ("solver", solver), ("combine", combine)]
            {
                assert!(written.contains(&format!("\n{key} = \"{name}\"\n")), "{written}");
            }
        };
        told("balanced", "pooled", "exact", "predictions");
        told("paper", "paper", "successive", "corrected");
        told("paper", "paper", "successive", "parameters");
    }

    #[test]
    fn changes_on_the_command_line_win() {
        let config = Config::default()
            .with([
                "training.steps=7",
                "seeds=[3]",
                "data.domains=[\"usps\"]",
                "divergence.estimator=classifier",
            ])
            .unwrap();
        assert_eq!((config.training.steps, &config.seeds[..]), (Some(7), &[3][..]));
        assert_eq!(config.data.domains, ["usps"]);
        assert_eq!(config.divergence.estimator, Some(Estimator::Classifier));
        assert!(Config::default().with(["training.steps"]).is_err());
        let error =
            Config::default().with(["training.batch=5", "training.steps=many"]).unwrap_err();
        assert!(error.to_string().starts_with("-c: training.steps=many: invalid type"), "{error}");
        let dealt = ["partition.kind=dirichlet", "partition.alpha=0.1"];
        assert!(Config::default().with(dealt).is_ok());
        // A key of the partition chooses it; else the data decide.
        assert_eq!(Config::default().partition, None);
        let scaled = Config::default().with(["partition.scale=0.5"]).unwrap();
        assert_eq!(scaled.partition.map(|scheme| scheme.kind()), Some("paper"));
        let error = Config::default().with(["training.stepps=3"]).unwrap_err();
        assert!(
            error.to_string().starts_with("-c: training.stepps=3: unknown field `stepps`"),
            "{error}"
        );
    }

    #[test]
    fn devices_publish_means_unless_told_and_consent_is_a_sentence() {
        let shape = stlf_data::Shape::grey(28);
        let by = |changes: &[&str]| Config::default().with(changes.iter().copied()).unwrap();
        let settings = |changes: &[&str]| by(changes).divergence.settings(shape);
        let means = stlf_method::divergence::sketch::Settings::means(shape);
        assert_eq!(settings(&[]), stlf_method::divergence::Settings::Sketch(means));
        let moments = stlf_method::divergence::discriminant::Settings::default();
        let moments = stlf_method::divergence::Settings::Discriminant(moments);
        assert_eq!(settings(&["divergence.estimator=discriminant"]), moments);
        let sentence = stlf_method::divergence::disclosure::ACCEPTED;
        let said = format!("divergence.accept=\"{sentence}\"");
        assert!(by(&[&said]).divergence.accepts_disclosure());
        assert!(!Config::default().divergence.accepts_disclosure());
        let other = Config::default().with(["divergence.accept=\"yes\""]).unwrap_err();
        assert!(other.to_string().contains(sentence), "{other}");
    }

    #[test]
    fn windows_have_a_network_along_the_time() {
        let config = |changes: &[&str]| {
            let windows = ["data.features=a.csv", "data.window=64"];
            Config::default().with(windows.iter().chain(changes).copied()).unwrap()
        };
        let shape = Shape { channels: 3, height: 1, width: 64 };
        let of = |config: Config, shape| config.network(shape, 4).map_err(|e| e.to_string());
        assert_eq!(of(config(&[]), shape), Ok(Spec::series_cnn(3, 64, 4).unwrap()));
        assert_eq!(of(config(&["training.model=mlp"]), shape), Ok(Spec::mlp(shape, 4).unwrap()));
        let short = of(config(&["data.window=7"]), Shape { width: 7, ..shape }).unwrap_err();
        assert!(short.contains("windows of at least 8 readings, not 7"), "{short}");
        assert_eq!(config(&[]).training(shape).unwrap().augment, Augment::None);
        let windows = |config: Config| config.data.windows().map(|w| (w.length, w.stride));
        assert_eq!(windows(config(&[])), Some((64, 64)));
        assert_eq!(windows(config(&["data.stride=16"])), Some((64, 16)));
        let scale = |config: Config| config.data.scale();
        assert_eq!((scale(config(&[])), scale(Config::default())), (Some(Scale::Own), None));
        assert_eq!(scale(config(&["data.standardise=fleet"])), Some(Scale::Fleet));
    }

    #[test]
    fn errors_name_the_line_and_what_was_meant() {
        let error = Config::parse("\n[training]\nstep = 3\n", Path::new("a.toml")).unwrap_err();
        assert!(error.to_string().starts_with("a.toml, line 3: unknown field `step`"), "{error}");
        assert_eq!(error.hint(), Some("did you mean steps?"));
        let error = Config::parse("[partition]\ndevices = 3", Path::new("a.toml")).unwrap_err();
        assert!(error.hint().is_some_and(|hint| hint.contains("kind = \"paper\"")), "{error}");
        for (text, part) in [
            ("seeds = []", "seeds: the list is empty"),
            ("seeds = [1, 1]", "listed twice"),
            ("[training]\nheld-out = 1.0", "held-out"),
            ("[training]\nbatch = 0", "batch"),
            (
                "[training]\naugment = \"convolution\"",
                "`convolution`, expected one of `none`, `shift`, `convolutions`, `both`",
            ),
            (
                "[data]\nfeatures = \"a.csv\"\n[training]\naugment = \"shift\"",
                "training.augment: shift is for pictures, and data.features is a table",
            ),
            ("[data]\nimage-size = 28", "data.image-size: is for a folder of pictures"),
            ("[data]\nimages = \"p\"\nimage-size = 0", "data.image-size: is not between 1"),
            ("[data]\nwindow = 9", "data.window: is for a table of readings"),
            ("[data]\nfeatures = \"a.csv\"\nwindow = 0", "data.window: is not between 1"),
            (
                "[data]\nfeatures = \"a.csv\"\nwindow = 9\nstride = 0",
                "data.stride: is not between 1",
            ),
            ("[data]\nfeatures = \"a.csv\"\nstride = 9", "data.stride: is for windows"),
            ("[data]\nfeatures = \"a.csv\"\ntime = \"t\"", "data.time: is for windows"),
            ("[compare]\nmethods = [\"fedvag\"]", "compare.methods"),
            ("[divergence]\nrounds = 3", "rounds is for estimator = \"classifier\""),
            (
                "[divergence]\nestimator = \"classifier\"\nnearest = 3",
                "nearest is for estimator = \"means\"",
            ),
            ("[divergence]\nfeatures = 3", "divergence.features: 3"),
            ("[compare.fada]\nsteps = 0", "fada.steps: must be at least 1"),
            ("[energy]\nmodel-bits = -1.0", "energy.model-bits: -1"),
            ("[planner]\nbound = \"poled\"", "line 2"),
            ("[planner]\npreset = \"papr\"", "`papr`, expected `balanced` or `paper`"),
            ("[planner]\nbound = \"poled\"", "`poled`, expected `pooled` or `paper`"),
            ("[planner]\nsolver = \"exakt\"", "`exakt`, expected `exact` or `successive`"),
            (
                "[planner]\ncombine = \"mix\"",
                "`mix`, expected one of `predictions`, `corrected`, `parameters`",
            ),
        ] {
            let error = Config::parse(text, Path::new("a.toml")).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
