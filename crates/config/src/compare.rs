//! The section of the methods that are compared.

use serde::{Deserialize, Serialize};
use stlf_method::method::Method;

use crate::fada;

/// `[compare]`: the methods that are compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Compare {
    /// `st-lf`, `st-lf-links`, `rnd-alpha`, `fedavg`, `fada`, `avgd`, `rnd-psi`, `psi-fedavg`, `psi-fada`, `sm`, `local`, `oracle`,
    /// `fedavg-rounds`, `kd3a`, `pooled`.
    pub methods: Vec<String>,
    /// Those of them whose targets train students, where `transfer.adapt` is not `off`.
    pub students: Vec<String>,
    /// How often the sources of `fedavg-rounds` average their models; each trains `training.steps` in all. Left out: 10 times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<usize>,
    /// How often a target and the sources of `kd3a` average their models; each trains `training.steps` in all. Left out: 100 times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kd3a_rounds: Option<usize>,
    /// The settings of FADA, for those who compare with it.
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
    /// The learning rate of all its networks, above 0.
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
    /// All but those that train networks of their own, which takes minutes.
    fn default() -> Compare {
        let quick = Method::ALL.into_iter().filter(|m| !m.trains());
        let methods = quick.map(|m| m.name().to_owned()).collect();
        let students = vec![Method::StLf.name().to_owned()];
        Compare { methods, students, rounds: None, kd3a_rounds: None, fada: Fada::default() }
    }
}

impl Compare {
    /// How often the sources of `fedavg-rounds` average their models.
    pub fn rounds(&self) -> usize {
        self.rounds.unwrap_or(10)
    }

    /// How often a target and the sources of `kd3a` average their models.
    pub fn kd3a_rounds(&self) -> usize {
        self.kd3a_rounds.unwrap_or(100)
    }

    /// The methods, in the order of the list.
    pub fn methods(&self) -> Result<Vec<Method>, stlf_planning::Error> {
        self.methods.iter().map(|name| name.parse()).collect()
    }

    /// The methods whose targets train students, where any do.
    pub fn students(&self) -> Result<Vec<Method>, stlf_planning::Error> {
        self.students.iter().map(|name| name.parse()).collect()
    }
}
