//! The sections of the file, with their defaults.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stlf_data::Shape;
use stlf_method::combine::Combine;
use stlf_method::divergence;
use stlf_method::method::Method;
use stlf_planning::bound::BoundKind;
use stlf_planning::planner;
use stlf_planning::problem::{Preset, Weights};

use crate::fada;

/// `[data]`: domains of digits, or your own pictures or features.
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
    /// The column of the table with the labels.
    pub label: String,
    /// All classes of the table, where it need not have a label of each: a device of a fleet has its own table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<String>>,
    /// Whether each feature of the table is scaled to mean 0 and standard deviation 1. Devices with their own tables must not do so:
    /// each would have a different scale.
    pub standardise: bool,
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
            classes: None,
            standardise: true,
        }
    }
}

/// `[training]`: every device with labels trains its own model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Training {
    /// `cnn`, for pictures of 28 × 28, or `mlp`, for anything.
    pub model: Model,
    /// SGD steps of every device.
    pub steps: usize,
    /// The number of samples per step, at least 1.
    pub batch: usize,
    /// The learning rate, above 0.
    pub learning_rate: f32,
    /// The momentum: the fraction of the last step that is kept.
    pub momentum: f32,
    /// Pull of every parameter to zero.
    pub weight_decay: f32,
    /// The fraction of a device's labels that is held out from training to measure the error. With 0, the
    /// error is measured on the labels it was trained on, as in the paper.
    pub held_out: f64,
    /// The error that counts for a sample without a label: 1 in the paper.
    pub unlabeled_as: f64,
    /// Whether a device removes its class proportions from the model that it sends.
    pub balanced: bool,
    /// The number of rounds of FedAvg among the devices with labels before each trains its own model.
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
            balanced: true,
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

/// `[divergence]`: how the difference of two devices' data is measured.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Divergence {
    /// `discriminant`: every device publishes moments of its data, and a pair's classifier follows from them; `sketch`:
    /// half of that, for large fleets; `means`: few means alone; `classifier`: the paper's, a network trained by every pair;
    /// `published`: the same with the settings of the paper's published runs. Left out, it is [`Estimator::SIMULATED`] in a simulation
    /// and [`Estimator::BETWEEN_DEVICES`] between real devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimator: Option<Estimator>,
    /// Real devices: lets them publish more than means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accept: Option<Accepted>,
    /// Discriminant, sketch and means: random features.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub features: Option<usize>,
    /// Means: over which distance of inputs the features vary, where inputs have an unusual scale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<f64>,
    /// Sketch and means: only links from this many of the nearest devices with labels to every device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<usize>,
    /// Classifier: how often a pair averages its models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<usize>,
    /// Classifier: steps on each side between averages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<usize>,
    /// Classifier: how often it is all done, from different first values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeats: Option<usize>,
    /// Sketch and means: noise on what leaves a device, for differential privacy. A sketch with noise has means alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub privacy: Option<Privacy>,
}

/// `[divergence.privacy]`: replacing one sample changes the probability of what a device publishes by at most
/// a factor e^ε, up to δ.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Privacy {
    /// ε, above 0 and at most 20.
    pub epsilon: f64,
    /// δ, between 0 and 1.
    pub delta: f64,
    /// Real devices: the largest ε that all publications of this device together may spend. Left out, there is no limit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub budget: Option<f64>,
}

impl From<(f64, f64)> for Privacy {
    fn from((epsilon, delta): (f64, f64)) -> Privacy {
        Privacy { epsilon, delta, budget: None }
    }
}

/// What a user accepts, in words that say it: [`divergence::disclosure::ACCEPTED`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Accepted {
    /// Of what other members can do with moments and networks that this device publishes.
    #[serde(rename = "others can rebuild my samples")]
    Disclosure,
}

/// How the difference of data is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// Fisher's discriminant from shared random features.
    Discriminant,
    /// Distance of the moments of shared random features.
    Sketch,
    /// Distance of the means of few shared random features.
    Means,
    /// The paper's Algorithm 1.
    Classifier,
    /// The same as in the paper's published runs.
    Published,
}

impl Estimator {
    /// Every estimator, in the order of the documentation.
    pub const ALL: [Estimator; 5] = [
        Estimator::Discriminant,
        Estimator::Sketch,
        Estimator::Means,
        Estimator::Classifier,
        Estimator::Published,
    ];
    /// The default in a simulation, where no other device sees what devices publish.
    pub const SIMULATED: Estimator = Estimator::Discriminant;
    /// The default between real devices: others cannot reconstruct samples from it.
    pub const BETWEEN_DEVICES: Estimator = Estimator::Means;

    /// As users type it.
    pub fn name(self) -> &'static str {
        match self {
            Estimator::Discriminant => "discriminant",
            Estimator::Sketch => "sketch",
            Estimator::Means => "means",
            Estimator::Classifier => "classifier",
            Estimator::Published => "published",
        }
    }
}

/// Features of a sketch with noise: the noise grows with their number, and what they tell hardly does.
const PRIVATE_FEATURES: usize = 128;

impl Divergence {
    /// The estimator of a simulation. Noise and a bandwidth are for means, and ask for them.
    pub fn estimator(&self) -> Estimator {
        let for_means = self.privacy.is_some() || self.bandwidth.is_some();
        let default = if for_means { Estimator::Means } else { Estimator::SIMULATED };
        self.estimator.unwrap_or(default)
    }

    /// The same with an estimator.
    pub fn by(&self, estimator: Estimator) -> Divergence {
        Divergence { estimator: Some(estimator), ..*self }
    }

    /// As real devices take it.
    pub fn between_devices(&self) -> Divergence {
        self.by(self.estimator.unwrap_or(Estimator::BETWEEN_DEVICES))
    }

    /// Whether the user accepts that others can reconstruct samples.
    pub fn accepts_disclosure(&self) -> bool {
        self.accept.is_some()
    }

    /// What the estimator takes for inputs of a shape.
    pub fn settings(&self, shape: Shape) -> divergence::Settings {
        match self.estimator() {
            Estimator::Discriminant => {
                let default = divergence::discriminant::Settings::default();
                divergence::Settings::Discriminant(divergence::discriminant::Settings {
                    features: self.features.unwrap_or(default.features),
                    ..default
                })
            }
            Estimator::Sketch | Estimator::Means => {
                divergence::Settings::Sketch(self.sketch(shape))
            }
            Estimator::Classifier | Estimator::Published => {
                divergence::Settings::Classifier(self.classifier())
            }
        }
    }

    /// What the sketch takes, or the means.
    pub fn sketch(&self, shape: Shape) -> divergence::sketch::Settings {
        let privacy = self.privacy.map(|p| divergence::privacy::Privacy::new(p.epsilon, p.delta));
        let default = match (self.estimator(), privacy) {
            (Estimator::Means, _) => divergence::sketch::Settings::means(shape),
            (_, Some(_)) => divergence::sketch::Settings {
                features: PRIVATE_FEATURES,
                ..divergence::sketch::Settings::means(shape)
            },
            (_, None) => divergence::sketch::Settings::default(),
        };
        let fixed = self.bandwidth.map(divergence::sketch::Bandwidth::Fixed);
        divergence::sketch::Settings {
            features: self.features.unwrap_or(default.features),
            bandwidth: fixed.unwrap_or(default.bandwidth),
            privacy,
            ..default
        }
    }

    /// The same where a third party compares what devices publish, who has no inputs of its own to measure by.
    pub fn sketch_for_others(&self, shape: Shape) -> divergence::sketch::Settings {
        let own = self.sketch(shape);
        if own.publishes_covariance() {
            return own;
        }
        let alone = divergence::sketch::Settings::means_alone(shape);
        let fixed = self.bandwidth.map(divergence::sketch::Bandwidth::Fixed);
        divergence::sketch::Settings {
            statistic: alone.statistic,
            bandwidth: fixed.unwrap_or(alone.bandwidth),
            ..own
        }
    }

    /// What the classifier takes.
    pub fn classifier(&self) -> divergence::classifier::Settings {
        let default = match self.estimator() {
            Estimator::Published => divergence::classifier::Settings::published(),
            _ => divergence::classifier::Settings::default(),
        };
        divergence::classifier::Settings {
            rounds: self.rounds.unwrap_or(default.rounds),
            steps: self.steps.unwrap_or(default.steps),
            repeats: self.repeats.unwrap_or(default.repeats),
            ..default
        }
    }

    /// Settings that are there, but not for this estimator.
    pub fn misplaced(&self) -> Option<String> {
        let estimator = self.estimator();
        let trained = matches!(estimator, Estimator::Classifier | Estimator::Published);
        let sketched = matches!(estimator, Estimator::Sketch | Estimator::Means);
        let given = [
            ("rounds", self.rounds.is_some(), trained, "classifier"),
            ("steps", self.steps.is_some(), trained, "classifier"),
            ("repeats", self.repeats.is_some(), trained, "classifier"),
            ("nearest", self.nearest.is_some(), sketched, "sketch"),
            ("privacy", self.privacy.is_some(), sketched, "means"),
            ("bandwidth", self.bandwidth.is_some(), sketched, "means"),
            ("features", self.features.is_some(), !trained, "sketch"),
        ];
        let wrong = given.into_iter().find(|(_, is_given, fits, _)| *is_given && !fits);
        wrong.map(|(key, _, _, estimator)| format!("{key} is for estimator = \"{estimator}\""))
    }

    /// That all settings are in their ranges.
    pub(super) fn check(&self) -> Result<(), stlf_planning::Error> {
        if let Some(budget) = self.privacy.and_then(|privacy| privacy.budget)
            && !(budget > 0.0 && budget.is_finite())
        {
            let message = format!("{budget} is not above 0");
            return Err(stlf_planning::Error::field("divergence.privacy.budget", message));
        }
        // Of any shape: none makes a setting wrong.
        match self.settings(Shape::grey(28)) {
            divergence::Settings::Classifier(settings) => settings.check(),
            divergence::Settings::Discriminant(settings) => settings.check(),
            divergence::Settings::Sketch(settings) => settings.check(),
        }
    }
}

/// `[energy]`: joules of sending a model over each link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Energy {
    /// `ranges`: powers and rates drawn uniformly, as in the paper; `radio`: from distances by a channel model.
    pub model: EnergyModel,
    /// M, the bits that a model is taken to have. Left out: those that it has, or the paper's gigabit with its preset, whose
    /// weight of energy is made for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_bits: Option<f64>,
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

/// `[planner]`: how roles and links are chosen, and models combined.
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
    /// The bound, `pooled` or `paper`.
    pub bound: BoundKind,
    /// The solver, `exact` or `successive`.
    pub solver: planner::Method,
    /// Successive: whether its rounded plan is improved by opening, closing and swapping sources.
    pub polish: bool,
    /// Whether sources hand their models on to other sources, which continue training them.
    pub handovers: bool,
    /// The number of seconds after which a search ends with the best plan so far, which is then not proven optimal.
    pub time_limit: f64,
    /// `predictions`, `corrected` or `parameters`: how a target combines the models it receives.
    pub combine: Combine,
}

impl Planner {
    /// Returns what the search for a plan is told.
    pub fn settings(&self) -> planner::Settings {
        planner::Settings::default()
            .by(self.solver)
            .polished(self.polish)
            .handing_on(self.handovers)
    }

    /// φ: the preset's, where none is set.
    pub fn weights(&self) -> Weights {
        let preset = self.preset.weights();
        Weights {
            source: self.phi_s.unwrap_or(preset.source),
            target: self.phi_t.unwrap_or(preset.target),
            energy: self.phi_e.unwrap_or(preset.energy),
        }
    }
}

impl Planner {
    /// How long a search may take; `None` if the setting makes no sense.
    pub fn limit(&self) -> Option<Duration> {
        Duration::try_from_secs_f64(self.time_limit).ok().filter(|limit| !limit.is_zero())
    }
}

impl Default for Planner {
    fn default() -> Planner {
        Planner {
            preset: Preset::Balanced,
            phi_s: None,
            phi_t: None,
            phi_e: None,
            bound: BoundKind::Pooled,
            solver: planner::Method::Exact,
            polish: true,
            handovers: false,
            time_limit: 60.0,
            combine: Combine::Predictions,
        }
    }
}

/// `[compare]`: the methods that are compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Compare {
    /// `st-lf`, `st-lf-relay`, `rnd-alpha`, `fedavg`, `fada`, `avgd`, `rnd-psi`, `psi-fedavg`, `psi-fada`, `sm`, `local`, `oracle`.
    pub methods: Vec<String>,
    /// The settings of FADA.
    pub fada: Fada,
}

/// `[compare.fada]`: the parts of FADA, and how long they train.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Fada {
    /// How often a target takes its sources' updates.
    pub rounds: usize,
    /// Steps of each source in a round.
    pub steps: usize,
    /// Of all its networks.
    pub learning_rate: f32,
    /// Adversarial alignment by a domain identifier.
    pub align: bool,
    /// Class identifier, mutual information and reconstruction.
    pub disentangle: bool,
    /// Weights by the gain in clustering; else all sources weigh the same.
    pub attention: bool,
    /// Gains are divided by it before the softmax; lower is sharper.
    pub temperature: f64,
}

impl Default for Fada {
    fn default() -> Fada {
        let fada::Settings {
            rounds,
            steps,
            descent,
            align,
            disentangle,
            attention,
            temperature,
            ..
        } = fada::Settings::default();
        let learning_rate = descent.learning_rate;
        Fada { rounds, steps, learning_rate, align, disentangle, attention, temperature }
    }
}

impl Fada {
    /// Returns the settings as FADA takes them.
    pub fn settings(&self) -> fada::Settings {
        let Fada { rounds, steps, learning_rate, align, disentangle, attention, temperature } =
            *self;
        let default = fada::Settings::default();
        let descent = stlf_learn::Descent { learning_rate, ..default.descent };
        fada::Settings {
            rounds,
            steps,
            descent,
            align,
            disentangle,
            attention,
            temperature,
            ..default
        }
    }
}

impl Default for Compare {
    /// All but FADA, which trains for minutes.
    fn default() -> Compare {
        let quick = Method::ALL.into_iter().filter(|m| !m.needs_data());
        let methods = quick.map(|m| m.name().to_owned()).collect();
        Compare { methods, fada: Fada::default() }
    }
}

impl Compare {
    /// The methods, in the order of the list.
    pub fn methods(&self) -> Result<Vec<Method>, stlf_planning::Error> {
        self.methods.iter().map(|name| name.parse()).collect()
    }
}
