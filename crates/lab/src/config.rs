//! What to run, as a TOML file. Every key has a default; unknown ones are refused.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stlf::baselines::Method;
use stlf::divergence;
use stlf_data::partition::Scheme;

use crate::Error;

/// A file with every key, its default and its meaning.
pub const TEMPLATE: &str = include_str!("template.toml");

/// The whole configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// One run of everything per seed.
    pub seeds: Vec<u64>,
    /// Where samples come from.
    pub data: Data,
    /// How they are dealt to devices.
    pub partition: Scheme,
    /// How devices train.
    pub training: Training,
    /// How the difference of two devices' data is measured.
    pub divergence: Divergence,
    /// What a transfer costs.
    pub energy: Energy,
    /// How roles and links are chosen.
    pub planner: Planner,
    /// What is compared.
    pub compare: Compare,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            seeds: (0..5).collect(),
            data: Data::default(),
            partition: Scheme::default(),
            training: Training::default(),
            divergence: Divergence::default(),
            energy: Energy::default(),
            planner: Planner::default(),
            compare: Compare::default(),
        }
    }
}

/// `[data]`: domains of digits, or one's own pictures or features.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Data {
    /// `mnist`, `usps`, `mnist-m`, `strokes`, `strokes-coarse`, `strokes-textured`.
    pub domains: Vec<String>,
    /// The folder with the files of mnist, usps and mnist-m.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// At most this many samples of each domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<usize>,
    /// Instead of domains: a folder of pictures, `domain/class/*.png`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<PathBuf>,
    /// Instead of domains: a table of features.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub features: Option<PathBuf>,
    /// The table's column of labels.
    pub label: String,
}

impl Default for Data {
    fn default() -> Data {
        Data {
            domains: vec!["strokes".to_owned()],
            folder: None,
            samples: None,
            images: None,
            features: None,
            label: "label".to_owned(),
        }
    }
}

/// `[training]`: every device with labels trains a model of its own.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Training {
    /// `cnn`, for pictures of 28 × 28, or `mlp`, for anything.
    pub model: Model,
    /// SGD steps of every device.
    pub steps: usize,
    /// Samples per step.
    pub batch: usize,
    /// Step length.
    pub learning_rate: f32,
    /// Share of the last step that is kept.
    pub momentum: f32,
    /// Pull of every parameter to zero.
    pub weight_decay: f32,
    /// Share of a device's labels that its model is not trained on, but its error measured on. With 0, the
    /// error is measured on the labels it was trained on, as the paper does.
    pub held_out: f64,
    /// What a sample without a label counts in a device's error: 1 in the paper.
    pub unlabeled_as: f64,
    /// Rounds of FedAvg among the devices with labels before each goes its own way.
    pub warm_up_rounds: usize,
    /// SGD steps of every device in each of these rounds.
    pub warm_up_steps: usize,
}

impl Default for Training {
    fn default() -> Training {
        Training {
            model: Model::Cnn,
            steps: 10_000,
            batch: 10,
            learning_rate: 0.01,
            momentum: 0.0,
            weight_decay: 0.0,
            held_out: 0.2,
            unlabeled_as: 1.0,
            warm_up_rounds: 0,
            warm_up_steps: 200,
        }
    }
}

/// The paper's two networks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// Two convolutions and two linear layers.
    Cnn,
    /// One hidden layer of 64.
    Mlp,
}

/// `[divergence]`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Divergence {
    /// `discriminant`: every device publishes moments of its data, and a pair's classifier follows from them; `sketch`:
    /// half of that, for large fleets; `classifier`: the paper's, a network trained by every pair.
    pub estimator: Estimator,
    /// Classifier: how often a pair averages its models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<usize>,
    /// Classifier: steps on each side between averages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<usize>,
    /// Classifier: how often it is all done, from different first values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeats: Option<usize>,
}

/// How the difference of data is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// Fisher's discriminant from shared random features.
    #[default]
    Discriminant,
    /// Distance of the moments of shared random features.
    Sketch,
    /// The paper's Algorithm 1.
    Classifier,
}

impl Divergence {
    /// What the estimator takes.
    pub fn settings(&self) -> divergence::Settings {
        match self.estimator {
            Estimator::Discriminant => {
                divergence::Settings::Discriminant(divergence::discriminant::Settings::default())
            }
            Estimator::Sketch => {
                divergence::Settings::Sketch(divergence::sketch::Settings::default())
            }
            Estimator::Classifier => {
                let default = divergence::classifier::Settings::default();
                divergence::Settings::Classifier(divergence::classifier::Settings {
                    rounds: self.rounds.unwrap_or(default.rounds),
                    steps: self.steps.unwrap_or(default.steps),
                    repeats: self.repeats.unwrap_or(default.repeats),
                    ..default
                })
            }
        }
    }
}

/// `[energy]`: joules of sending a model over each link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Energy {
    /// `ranges`: powers and rates drawn uniformly, as in the paper; `radio`: from distances by a channel model.
    pub model: EnergyModel,
}

/// Where link energies come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EnergyModel {
    /// Powers and rates drawn uniformly.
    #[default]
    Ranges,
    /// Distances drawn uniformly, rates by a radio channel.
    Radio,
}

/// `[planner]`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Planner {
    /// `balanced` or `paper`: what the other keys are where they are left out.
    pub preset: Preset,
    /// φ^S, before the sources' bounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phi_s: Option<f64>,
    /// φ^T, before the targets' bounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phi_t: Option<f64>,
    /// φ^E, before the link energies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phi_e: Option<f64>,
    /// `pooled` or `paper`.
    pub bound: Bound,
    /// `exact` or `successive`.
    pub solver: Solver,
    /// `predictions` or `parameters`: what a target makes of the models it receives.
    pub combine: Combine,
}

impl Default for Planner {
    fn default() -> Planner {
        Planner {
            preset: Preset::Balanced,
            phi_s: None,
            phi_t: None,
            phi_e: None,
            bound: Bound::Pooled,
            solver: Solver::Exact,
            combine: Combine::Predictions,
        }
    }
}

/// A set of weights under one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// φ = (1, 1, 0.05), no complexity term, energy in mean links.
    Balanced,
    /// φ = (1, 5, 1), Massart's complexity, energy in joules.
    Paper,
}

/// Which bound a target's error has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// Sources sample independently, so mixing pays.
    Pooled,
    /// The paper's.
    Paper,
}

/// Which planner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Solver {
    /// The optimum with proof.
    Exact,
    /// The paper's successive approximation.
    Successive,
}

/// How several models become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Combine {
    /// Their probabilities are mixed.
    Predictions,
    /// Their parameters are averaged.
    Parameters,
}

/// `[compare]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Compare {
    /// `st-lf`, `rnd-alpha`, `fedavg`, `fada`, `avgd`, `rnd-psi`, `psi-fedavg`, `psi-fada`, `sm`, `local`, `oracle`.
    pub methods: Vec<String>,
}

impl Default for Compare {
    /// All but FADA, which trains for minutes.
    fn default() -> Compare {
        let quick = Method::ALL.into_iter().filter(|m| !m.needs_data());
        Compare { methods: quick.map(|m| m.name().to_owned()).collect() }
    }
}

impl Compare {
    /// The methods, in the order of the list.
    pub fn methods(&self) -> Result<Vec<Method>, stlf::Error> {
        self.methods.iter().map(|name| name.parse()).collect()
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
            let message = e.message().to_owned();
            let hint = suggestion(&message);
            Error::Config { path: path.to_owned(), line, message, hint }
        })?;
        config.check(path)?;
        Ok(config)
    }

    /// This configuration with some keys changed: `training.steps=500`, `data.domains=["mnist"]`. A value that is
    /// no TOML is taken as a string.
    pub fn with<'a>(&self, changes: impl IntoIterator<Item = &'a str>) -> Result<Config, Error> {
        let path = Path::new("-c");
        let wrong = |message: String| Error::Config {
            path: path.to_owned(),
            line: None,
            message,
            hint: Some("write KEY=VALUE, such as training.steps=500".to_owned()),
        };
        let mut table: toml::Table =
            self.to_toml()?.parse().map_err(|e: toml::de::Error| wrong(e.to_string()))?;
        for change in changes {
            let (key, value) =
                change.split_once('=').ok_or_else(|| wrong(format!("{change:?} sets nothing")))?;
            let value =
                format!("v = {value}").parse::<toml::Table>().ok().and_then(|mut t| t.remove("v"));
            let value = value.unwrap_or_else(|| {
                toml::Value::String(change.split_once('=').map_or("", |(_, v)| v).to_owned())
            });
            let mut inside = &mut table;
            let mut parts = key.split('.').peekable();
            while let Some(part) = parts.next() {
                if parts.peek().is_none() {
                    inside.insert(part.to_owned(), value);
                    break;
                }
                let entry =
                    inside.entry(part).or_insert_with(|| toml::Value::Table(toml::Table::new()));
                inside = entry
                    .as_table_mut()
                    .ok_or_else(|| wrong(format!("{key}: {part} is no table")))?;
            }
        }
        let text = toml::to_string(&table).map_err(|e| wrong(e.to_string()))?;
        Config::parse(&text, path).map_err(|error| match error {
            // The line would be one of a text that nobody has written.
            Error::Config { path, message, hint, .. } => {
                Error::Config { path, line: None, message, hint }
            }
            other => other,
        })
    }

    /// A hash of the whole configuration.
    pub fn hash(&self) -> Result<String, Error> {
        Ok(crate::folder::sha256(self.to_toml()?.as_bytes()))
    }

    /// The text of the whole configuration, defaults included.
    pub fn to_toml(&self) -> Result<String, Error> {
        toml::to_string_pretty(self).map_err(|e| Error::Config {
            path: PathBuf::from("config.toml"),
            line: None,
            message: e.to_string(),
            hint: None,
        })
    }

    fn check(&self, path: &Path) -> Result<(), Error> {
        let wrong = |key: &str, message: String| Error::Config {
            path: path.to_owned(),
            line: None,
            message: format!("{key}: {message}"),
            hint: None,
        };
        if self.seeds.is_empty() {
            return Err(wrong("seeds", "there is none".to_owned()));
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
        if t.steps == 0 {
            return Err(wrong("training.steps", "a model must be trained".to_owned()));
        }
        self.descent().check().map_err(|e| wrong("training", e.to_string()))?;
        let d = &self.divergence;
        if d.estimator != Estimator::Classifier
            && (d.rounds, d.steps, d.repeats) != (None, None, None)
        {
            let message = "rounds, steps and repeats are for estimator = \"classifier\"".to_owned();
            return Err(wrong("divergence", message));
        }
        self.compare.methods().map_err(|e| Error::Config {
            path: path.to_owned(),
            line: None,
            message: format!("compare.methods: {e}"),
            hint: e.hint().map(str::to_owned),
        })?;
        Ok(())
    }

    /// How models are trained.
    pub fn descent(&self) -> stlf_learn::Descent {
        let Training { batch, learning_rate, momentum, weight_decay, .. } = self.training;
        stlf_learn::Descent { batch, learning_rate, momentum, weight_decay }
    }
}

/// What an unknown key was likely meant to be, from the parser's list of the known ones.
fn suggestion(message: &str) -> Option<String> {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = quoted.next().filter(|_| message.starts_with("unknown"))?;
    stlf::error::nearest(unknown, quoted).map(|known| format!("did you mean {known}?"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_template_is_the_default() {
        let config = Config::parse(TEMPLATE, Path::new("t")).unwrap();
        assert_eq!(config, Config::default());
        // Every key that is commented out is one that exists.
        let uncommented: String = TEMPLATE
            .lines()
            .filter(|line| !line.starts_with("# images") && !line.starts_with("# features"))
            .map(|line| match line.strip_prefix("# ") {
                Some(key) if key.contains(" = ") => format!("{key}\n"),
                _ => format!("{line}\n"),
            })
            .collect();
        let all = uncommented.replace("\"discriminant\" ", "\"classifier\" ");
        assert!(Config::parse(&all, Path::new("t")).is_ok());
    }

    #[test]
    fn written_and_read_again_it_is_the_same() {
        let config = Config::default();
        assert_eq!(Config::parse(&config.to_toml().unwrap(), Path::new("t")).unwrap(), config);
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
        assert_eq!((config.training.steps, &config.seeds[..]), (7, &[3][..]));
        assert_eq!(config.data.domains, ["usps"]);
        assert_eq!(config.divergence.estimator, Estimator::Classifier);
        assert!(Config::default().with(["training.steps"]).is_err());
        let error = Config::default().with(["training.stepps=3"]).unwrap_err();
        assert!(error.to_string().starts_with("-c: unknown field `stepps`"), "{error}");
    }

    #[test]
    fn errors_name_the_line_and_what_was_meant() {
        let error = Config::parse("\n[training]\nstep = 3\n", Path::new("a.toml")).unwrap_err();
        assert!(error.to_string().starts_with("a.toml, line 3: unknown field `step`"), "{error}");
        assert_eq!(error.hint(), Some("did you mean steps?"));
        for (text, part) in [
            ("seeds = []", "seeds: there is none"),
            ("seeds = [1, 1]", "listed twice"),
            ("[training]\nheld-out = 1.0", "held-out"),
            ("[training]\nbatch = 0", "batch"),
            ("[compare]\nmethods = [\"fedvag\"]", "compare.methods"),
            ("[divergence]\nrounds = 3", "classifier"),
            ("[planner]\nbound = \"poled\"", "line 2"),
        ] {
            let error = Config::parse(text, Path::new("a.toml")).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
