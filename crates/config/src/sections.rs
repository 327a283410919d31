//! The sections of how devices train, what a transfer costs, how roles and links are chosen, and what targets do with models, with their
//! defaults.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use stlf_data::Shape;
use stlf_learn::Augment;
use stlf_method::adapt::Adapt;
use stlf_method::combine::Combine;
use stlf_planning::bound::BoundKind;
use stlf_planning::planner;
use stlf_planning::problem::{Preset, Strangers, Weights};

/// `[training]`: every device with labels trains its own model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Training {
    /// `cnn`, for pictures of 28 to 96 pixels a side and for windows of a series, or `mlp`, for anything.
    pub model: Model,
    /// SGD steps of every device. Left out: 20,000 on pictures that are varied, else 10,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<usize>,
    /// The number of samples per step, at least 1.
    pub batch: usize,
    /// The learning rate, the length of a step along the gradient; above 0.
    pub learning_rate: f32,
    /// The momentum: the fraction of the last step that is kept.
    pub momentum: f32,
    /// Pull of every parameter to zero.
    pub weight_decay: f32,
    /// `none`, `shift`, `convolutions` or `both`: how the pictures that devices train on are varied. Left out: `both` for
    /// the cnn, and not at all for the mlp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub augment: Option<Augment>,
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
    /// The command line of a program of the user's that has a device's data and model, instead of a built-in network. `{device}` in it is
    /// the name of the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learner: Option<String>,
    /// The variables of the environment that the program sees besides the usual few.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub learner_env: Vec<String>,
    /// The most gibibytes that the folder between the program and stlf may have. Left out: 4.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learner_disk: Option<f64>,
}

impl Default for Training {
    fn default() -> Training {
        Training {
            model: Model::Cnn,
            steps: None,
            batch: 10,
            learning_rate: 0.01,
            momentum: 0.0,
            weight_decay: 0.0,
            augment: None,
            held_out: 0.2,
            unlabeled_as: 1.0,
            balanced: true,
            warm_up_rounds: 0,
            warm_up_steps: 200,
            learner: None,
            learner_env: Vec::new(),
            learner_disk: None,
        }
    }
}

impl Training {
    /// How inputs of this shape are varied: as asked for, else pictures for convolutions are moved and seen through random
    /// convolutions, by which models err less on devices that are unlike their own.
    pub fn augment(&self, shape: Shape) -> Augment {
        let sees = shape.is_picture() && self.model == Model::Cnn;
        self.augment.unwrap_or(if sees { Augment::Both } else { Augment::None })
    }

    /// SGD steps of every device with inputs of this shape: who sees every picture in many ways learns from twice as many steps.
    pub fn steps(&self, shape: Shape) -> usize {
        let varied = self.augment(shape) != Augment::None;
        self.steps.unwrap_or(if varied { 20_000 } else { 10_000 })
    }
}

/// The paper's two networks, the first of which has a form for series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// Two convolutions and two linear layers; three convolutions for pictures of 52 pixels a side or more; for windows of a series up to three
    /// along the time.
    Cnn,
    /// A network with one hidden layer of 64 units.
    Mlp,
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
    /// The billions of floating-point operations that a device's processor does with one joule. Left out: what devices compute is not priced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gflop_per_joule: Option<f64>,
}

/// The model by which the energies of links are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EnergyModel {
    /// Powers and rates are drawn uniformly, as in the paper.
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
    /// φ^S, the weight of the sources' bounds. Left out, as the preset has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phi_s: Option<f64>,
    /// φ^T, the weight of the targets' bounds. Left out, as the preset has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phi_t: Option<f64>,
    /// φ^E, the weight of the links' energy. Left out, as the preset has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phi_e: Option<f64>,
    /// The bound by which plans are made, `pooled` or `paper`.
    pub bound: BoundKind,
    /// The solver that makes plans, `exact` or `successive`.
    pub solver: planner::Method,
    /// Successive: whether its rounded plan is improved by opening, closing and swapping sources.
    pub polish: bool,
    /// Whether sources hand their models on to other sources, which continue training them; if it is left out, under the pooled bound, unless the fleet
    /// wants all links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handovers: Option<bool>,
    /// The share of ½ d̂ that counts in the pooled bound, above 0 and at most 1. Left out, a simulator measures it for tables, and real devices count all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<f64>,
    /// `all`, `if-most` or `planned`: what a device gets to which no source is near. Left out: [`Config::strangers`](crate::Config::strangers).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strangers: Option<Strangers>,
    /// Whether every device without labels gets the models of all that have some, mixed by samples; left out, it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all_links: Option<bool>,
    /// How many sources may lie among those that a target hears: it gets the models of so many devices that it hears at least twice as many and one.
    /// 0 if it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub liars: Option<usize>,
    /// Whether a device with labels gets the model of every source that sends to targets, to try it. Left out, real devices do so, and a simulator does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub examiners: Option<bool>,
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
            .handing_on(self.hands_on())
    }

    /// Returns whether sources hand their models on.
    pub fn hands_on(&self) -> bool {
        self.handovers.unwrap_or(self.bound == BoundKind::Pooled && !self.sends_all())
    }

    /// Whether every device without labels gets the models of all that have some.
    pub fn sends_all(&self) -> bool {
        self.all_links.unwrap_or_default()
    }

    /// Whether every device without labels could be sent all models: targets may mix them, and the search weighs them exactly.
    pub fn can_send_all(&self) -> bool {
        self.bound == BoundKind::Pooled && self.solver == planner::Method::Exact
    }

    /// Why it is not, where all links are asked for.
    pub(crate) fn misplaced_all_links(&self) -> Option<&'static str> {
        match (self.bound, self.solver) {
            _ if !self.sends_all() => None,
            (BoundKind::Paper, _) => Some("under the paper's bound a target takes one model"),
            (_, planner::Method::Successive) => {
                Some("the successive search does not weigh models by samples")
            }
            _ if self.hands_on() => {
                Some("sources send their own models, so leave out planner.handovers")
            }
            _ => None,
        }
    }

    /// What a device gets to which no source is near: as asked for, else the models of all if pictures were learned in many views, or if
    /// most devices are near nobody. Where energy weighs more than usual, targets cannot mix models, or the search is the paper's, what the plan gives it.
    pub(crate) fn strangers(&self, varied: bool) -> Strangers {
        let thrifty = self.weights().energy > self.preset.weights().energy;
        let mixes = self.bound == BoundKind::Pooled && self.combine != Combine::Parameters;
        let exact = self.solver == planner::Method::Exact;
        let usual = match mixes && exact && !thrifty {
            true if varied => Strangers::All,
            true => Strangers::IfMost,
            false => Strangers::Planned,
        };
        self.strangers.unwrap_or(usual)
    }

    /// Returns φ, which are the preset's where none is set.
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
            handovers: None,
            calibration: None,
            strangers: None,
            all_links: None,
            liars: None,
            examiners: None,
            time_limit: 60.0,
            combine: Combine::Predictions,
        }
    }
}

/// `[transfer]`: what targets do with the models that they receive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Transfer {
    /// `off`, `guarded` or `always`: whether a target trains a student on its own samples, and whether a guard decides if it uses it.
    pub adapt: Adapt,
    /// How many labels each target asks for; a simulator answers with the true ones. 0: none.
    #[serde(skip_serializing_if = "is_zero")]
    pub ask: usize,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn pictures_for_the_cnn_are_varied_and_tables_never() {
        let (picture, table) = (Shape::grey(28), Shape { channels: 1, height: 1, width: 5 });
        let augment = |changes: &[&str], shape: Shape| {
            let config = Config::default().with(changes.iter().copied()).unwrap();
            config.training(shape).map(|training| training.augment).map_err(|e| e.to_string())
        };
        for (name, value) in Augment::ALL.map(|augment| (augment.name(), augment)) {
            let asked = format!("training.augment={name}");
            assert_eq!(augment(&[&asked], picture), Ok(value));
            let of_table = augment(&[&asked], table);
            assert_eq!(of_table.is_ok(), value == Augment::None, "{of_table:?}");
        }
        assert_eq!(augment(&[], picture), Ok(Augment::Both));
        assert_eq!(augment(&["training.model=mlp"], picture), Ok(Augment::None));
        assert_eq!(augment(&[], table), Ok(Augment::None));
        let with_table = |value: &str| Config::default().with(["data.features=a.csv", value]);
        assert!(with_table("training.augment=none").is_ok());
        assert!(with_table("training.augment=both").unwrap_err().hint().is_some());
    }
}
