//! What all devices of a fleet share, and what a device computes in each step of an epoch.
//!
//! Real devices take these steps as messages come in ([`crate::device`]). A simulator takes each of them for all devices at once. Both
//! call the functions of this file, so that both come to the same models, plans and predictions.

use std::sync::Arc;
use std::time::Duration;

use stlf_config::{Config, EnergyModel};
use stlf_data::{Class, Shape};
use stlf_learn::{Params, Spec};
use stlf_method::adapt::Adapt;
use stlf_method::class_shares::balanced;
use stlf_method::combine::Combine;
use stlf_method::divergence;
use stlf_method::energy::{Radio, Ranges};
use stlf_method::known::Known;
use stlf_method::learner::{BuiltIn, Learner, Lesson};
use stlf_method::local_training::{Rows, Training};
use stlf_method::ring;
use stlf_method::seeds::Draw;
use stlf_method::student::{Owner, Schooling, Target};
use stlf_planning::bound::BoundKind;
use stlf_planning::plan::{RingPlace, Way};
use stlf_planning::planner::{self, Method, Outcome};
use stlf_planning::problem::{Links, Parts, Preset, Strangers, Weights};
use stlf_planning::{Error, Problem};

use crate::divergence_protocol;
use crate::roster::Place;

/// What all devices of a fleet agree on.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The built-in network, which every device trains unless it has a learner of the user's.
    pub spec: Spec,
    /// The shape of an input.
    pub shape: Shape,
    /// How built-in networks train.
    pub training: Training,
    /// Share of its labels that a device holds out to measure its error on.
    pub held_out: f64,
    /// What a sample without a label counts in ε̂.
    pub unlabeled_as: f64,
    /// Whether a device takes its own shares of classes out of the model that it sends.
    pub balanced: bool,
    /// How divergences are measured.
    pub divergence: divergence::Settings,
    /// How link energies are drawn where none is measured.
    pub energy: EnergyModel,
    /// M, the bits that a model counts in link energies.
    pub model_bits: f64,
    /// Complexity and unit of energy.
    pub preset: Preset,
    /// The weights φ of errors at sources, errors at targets, and energy.
    pub weights: Weights,
    /// The bound that plans minimise.
    pub bound: BoundKind,
    /// The share of ½ d̂ that counts ([`stlf_planning::bound::Bound::calibration`]).
    pub calibration: f64,
    /// What a device gets to which no source is near.
    pub strangers: Strangers,
    /// Whether every device without labels gets the models of all that have some.
    pub sends_all: bool,
    /// How plans are searched for, and whether sources hand their models on to other sources, which train them on.
    pub planner: planner::Settings,
    /// The longest search for a plan, and for one that changes less; most fleets need a moment.
    pub planning: Duration,
    /// How many lying sources a target is to withstand, among those that it hears.
    pub liars: usize,
    /// Whether a device with labels tries the model of every source that sends to targets.
    pub examiners: bool,
    /// What a target makes of the models it receives.
    pub combine: Combine,
    /// Whether targets train students, and whether a guard decides if they use them.
    pub adapt: Adapt,
    /// How students train.
    pub schooling: Schooling,
    /// Whether this device measures the joules of its links in every epoch ([`crate::Action::MeasureLinks`]).
    pub measures_links: bool,
    /// Everything that is drawn comes from this.
    pub seed: u64,
}

/// Why real devices cannot follow a configuration that a simulator can.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unsupported {
    /// `divergence.nearest`, by which only some pairs are measured.
    #[error("real devices measure all pairs")]
    Nearest,
    /// `planner.solver = "successive"`.
    #[error("real devices plan exactly, not by successive approximation")]
    Successive,
    /// `planner.polish = false`, which is for the successive solver.
    #[error("real devices plan exactly, so that there is nothing to polish")]
    Unpolished,
    /// `planner.combine = "corrected"` with learners of the user's.
    #[error("\"corrected\" needs balanced models, and only built-in networks can be balanced")]
    Corrected,
    /// `transfer.adapt = "always"` with a learner of the user's that trains no students.
    #[error("transfer.adapt is \"always\", and this learner does not say that it trains students")]
    Students,
    /// `training.warm-up-rounds`, in which devices would average their models.
    #[error("real devices train apart, without a warm-up")]
    WarmUp,
    /// `training.learner`, the command that starts a learner for each simulated device.
    #[error("training.learner is for the simulator, which starts a learner for each device")]
    Learner,
    /// `transfer.ask`, the number of labels that simulated targets ask for.
    #[error("transfer.ask is for the simulator, which knows the answers")]
    Ask,
    /// The device holds no data.
    #[error("this device has no samples")]
    NoSamples,
    /// What is published for divergences cannot be sent, or others could rebuild samples from it.
    #[error(transparent)]
    Divergence(#[from] Error),
    /// The network does not fit the data.
    #[error(transparent)]
    Network(#[from] stlf_learn::Error),
}

impl Unsupported {
    /// Returns what the user can do about it.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Unsupported::Nearest => Some("leave out divergence.nearest"),
            Unsupported::Successive => Some("leave out planner.solver"),
            Unsupported::Unpolished => Some("leave out planner.polish"),
            Unsupported::Corrected => Some("leave out planner.combine"),
            Unsupported::Students => Some("leave it out, or write a learner that adapts"),
            Unsupported::WarmUp => Some("leave out training.warm-up-rounds"),
            Unsupported::Learner => Some("leave it out, and name this device's: --learner"),
            Unsupported::Ask => Some(
                "leave it out; `stlf ask` names samples to label, and data.answers has their labels",
            ),
            Unsupported::Divergence(e) => e.hint(),
            Unsupported::NoSamples | Unsupported::Network(_) => None,
        }
    }
}

impl Setup {
    /// Returns what a configuration says for inputs of this shape and so many classes.
    ///
    /// # Errors
    /// The network does not fit the data, or views are asked for of what is no picture.
    pub fn new(
        config: &Config,
        shape: Shape,
        classes: usize,
        seed: u64,
    ) -> Result<Setup, stlf_learn::Error> {
        let spec = config.network(shape, classes)?;
        Ok(Setup {
            model_bits: config.model_bits(&spec),
            spec,
            shape,
            training: config.training(shape)?,
            held_out: config.training.held_out,
            unlabeled_as: config.training.unlabeled_as,
            balanced: config.training.balanced,
            divergence: config.measuring(shape),
            energy: config.energy.model,
            preset: config.planner.preset,
            weights: config.planner.weights(),
            bound: config.planner.bound,
            calibration: config.planner.calibration.unwrap_or(1.0),
            strangers: config.strangers(shape),
            sends_all: config.planner.sends_all(),
            planner: config.planner.settings(),
            planning: config.planner.limit().unwrap_or_default(),
            liars: config.planner.liars.unwrap_or_default(),
            examiners: config.planner.examiners.unwrap_or_default(),
            combine: config.planner.combine,
            adapt: config.transfer.adapt,
            schooling: Schooling::new(config.descent()),
            measures_links: false,
            seed,
        })
    }

    /// The same between real devices, of which this one has so many samples: others must not be able to rebuild them.
    ///
    /// # Errors
    /// Says what real devices cannot do. Nothing that is asked for is ignored.
    pub fn for_devices(
        config: &Config,
        shape: Shape,
        classes: usize,
        samples: usize,
        seed: u64,
    ) -> Result<Setup, Unsupported> {
        let (training, planner) = (&config.training, &config.planner);
        let divergence = config.measuring(shape);
        let accepted = config.divergence.accepts_disclosure();
        divergence_protocol::check(&divergence, shape, samples, accepted)?;
        if config.divergence.nearest.is_some() {
            return Err(Unsupported::Nearest);
        }
        if planner.solver == Method::Successive {
            return Err(Unsupported::Successive);
        }
        if !planner.polish {
            return Err(Unsupported::Unpolished);
        }
        if training.warm_up_rounds > 0 {
            return Err(Unsupported::WarmUp);
        }
        if training.learner.is_some() {
            return Err(Unsupported::Learner);
        }
        if config.transfer.ask > 0 {
            return Err(Unsupported::Ask);
        }
        if samples == 0 {
            return Err(Unsupported::NoSamples);
        }
        let setup = Setup::new(config, shape, classes, seed)?;
        Ok(Setup { examiners: planner.examiners.unwrap_or(true), ..setup })
    }

    /// The same for models of the user's learners, of which this is one.
    ///
    /// # Errors
    /// Only built-in networks, or other learners, can do what the configuration asks for.
    pub fn for_models_of(
        self,
        config: &Config,
        learner: &dyn Learner,
    ) -> Result<Setup, Unsupported> {
        if config.planner.combine == Combine::Corrected {
            return Err(Unsupported::Corrected);
        }
        if config.transfer.adapt == Adapt::Always && learner.adapts().is_none() {
            return Err(Unsupported::Students);
        }
        Ok(Setup { model_bits: config.model_bits(learner.layout()), ..self })
    }

    /// Returns which labels of the device at a place, which has so many, it trains on, and which it measures on.
    pub fn rows(&self, place: Place, labels: usize) -> Rows {
        Rows::new(labels, self.held_out, Draw::HeldOut.seed(self.seed, place.index()))
    }

    /// The built-in network, which begins with these values, as the learner of a device with these inputs and labels.
    pub fn built_in(
        &self,
        first: Arc<Params>,
        inputs: Arc<[f32]>,
        labels: Vec<Class>,
    ) -> Arc<dyn Learner> {
        let (spec, training) = (self.spec.clone(), self.training);
        Arc::new(BuiltIn { spec, training, first, inputs, labels })
    }

    /// The first values that all models start from.
    pub fn first_model(&self) -> Params {
        Params::initial(&self.spec, Draw::Initial.seed(self.seed, 0))
    }

    /// Returns what the device at a place trains on, which has these rows: its own model, or on this way one that was handed to it.
    pub fn lesson<'a>(
        &self,
        place: Place,
        rows: &'a Rows,
        handed: Option<(&'a Params, Way)>,
    ) -> Lesson<'a> {
        let (start, way) = handed.unzip();
        Lesson { rows: &rows.trained, start, seed: self.training_seed(place, way) }
    }

    /// The seed of everything that is drawn when the device at a place trains its own model, or on this way one that was handed to it.
    fn training_seed(&self, place: Place, handed: Option<Way>) -> u64 {
        let draw = match handed {
            None => Draw::Training,
            Some(Way::First) => Draw::Relay,
            Some(Way::Second) => Draw::Ring,
        };
        draw.seed(self.seed, place.index())
    }

    /// The seed of everything that is drawn to measure divergences.
    pub fn divergence_seed(&self) -> u64 {
        Draw::Divergence.seed(self.seed, 0)
    }

    /// K of every link between so many devices, sender by sender, where none is measured.
    pub fn energies(&self, devices: usize) -> Vec<f64> {
        let (seed, bits) = (Draw::Energy.seed(self.seed, 0), self.model_bits);
        match self.energy {
            EnergyModel::Ranges => Ranges { bits, ..Ranges::default() }.draw(devices, seed),
            EnergyModel::Radio => Radio { bits, ..Radio::default() }.draw(devices, seed),
        }
    }

    /// The planning problem of what was measured, in which some links, as sender and receiver by their indices, are not to be used.
    ///
    /// # Errors
    /// Numbers that no device can have measured.
    pub fn problem(
        &self,
        devices: Vec<stlf_planning::Device>,
        links: Links,
        forbidden: Vec<(usize, usize)>,
    ) -> Result<Problem, Error> {
        let parts = Parts::measured(devices, links, self.preset, self.weights, self.bound)
            .calibrated(self.calibration);
        let problem = Problem::new(Parts { forbidden, ..parts })?;
        Ok(match self.sends_all {
            true => problem.with_all_links(),
            false => problem.with_links_to(self.strangers),
        })
    }

    /// The best plan that is found until `observer` ends the search; one that is not proven says so.
    pub fn plan(&self, problem: &Problem, observer: &mut planner::Observer<'_>) -> Outcome {
        planner::plan(problem, &self.planner, observer)
    }

    /// Returns what a device with these labels hands on: what its training made of a model, or on the second way round a ring, where it has this
    /// place, the mean of that and of the model that came.
    pub fn handed_on(
        &self,
        handed: &Params,
        trained: &Params,
        labels: &[Class],
        on_ring: Option<RingPlace>,
    ) -> Params {
        let trained = self.sent(trained, labels);
        match on_ring {
            Some(RingPlace { index, sources }) => {
                ring::mean(handed, &trained, ring::own_share(index, sources))
            }
            None => trained,
        }
    }

    /// The model as a device with these labels sends it.
    pub fn sent(&self, model: &Params, labels: &[Class]) -> Params {
        match self.balanced {
            true => balanced(&self.spec, model, labels),
            false => model.clone(),
        }
    }

    /// The target at a place, with what owns its samples, the models that it received, the labels that it knows, and whether no source of the
    /// plan is near it, as one that trains a student.
    pub fn target<'a>(
        &self,
        place: Place,
        owner: Owner<'a>,
        models: &'a [(&'a Params, f64)],
        known: &'a [Known],
        is_stranger: bool,
    ) -> Target<'a> {
        let seed = Draw::Student.seed(self.seed, place.index());
        Target { owner, models, combine: self.combine, known, is_stranger, seed }
    }
}
