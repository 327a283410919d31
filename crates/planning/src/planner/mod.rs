//! Plans a problem: from measurements and settings to roles, links and hand-overs.

pub mod exact;
pub mod handover;
mod polish;
pub mod successive;

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::bound::BoundKind;
use crate::plan::Plan;
use crate::problem::Problem;

pub use stlf_optim::status::{Limits, Observer, Progress};

/// The solver that makes a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Global optimum with proof, by branch and bound.
    #[default]
    Exact,
    /// The paper's Algorithm 2, `alg:optimization_iteration`, rounded and polished.
    Successive,
}

/// The result of planning: a plan, or the reason why there is none.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// A plan, proven optimal or with a gap.
    Planned(Box<Plan>),
    /// No plan exists, for this reason.
    Infeasible(Infeasible),
}

/// The reason why a problem has no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Infeasible {
    /// No device may be a source.
    #[error(
        "no device can be a source: none has labeled data, or every labeled device is fixed as a target"
    )]
    NoSource,
    /// A device that must be a target cannot be reached.
    #[error("{name} must be a target, but no device that can be a source has a link to it")]
    Unreachable {
        /// The index of the device that cannot be reached.
        device: usize,
        /// The name of the device that cannot be reached.
        name: String,
    },
    /// More than one link into a target is required, where only one can carry weight.
    #[error(
        "{name} has more than one required link, but the paper's bound gives each target one source"
    )]
    ManyRequired {
        /// The index of the target with several required links.
        device: usize,
        /// The name of the target with several required links.
        name: String,
    },
}

impl Infeasible {
    /// Returns what the user can do about it.
    pub fn hint(&self) -> String {
        match self {
            Infeasible::NoSource => {
                "at least one device needs labeled data and no fixed role as a target".to_owned()
            }
            Infeasible::Unreachable { name, .. } => {
                format!("give {name} a link from a labeled device, or labels of its own")
            }
            Infeasible::ManyRequired { .. } => {
                "drop one of them, or use the pooled bound, under which a target can have several sources"
                    .to_owned()
            }
        }
    }
}

/// The settings of a search for a plan. More may be added, so a value starts from the [default](Settings::default).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// The solver that makes the plan.
    pub method: Method,
    /// When the exact search may end without a proof.
    pub limits: Limits,
    /// The settings of the successive method, for when `method` asks for it.
    pub successive: successive::Settings,
    /// Whether the successive method's rounded plan is improved by opening, closing and swapping
    /// sources; without it the plan keeps the paper's own weights.
    pub polish: bool,
    /// How models may be handed on, where sources hand models on at all.
    pub handovers: Option<handover::Forms>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            method: Method::Exact,
            limits: Limits::default(),
            successive: successive::Settings::default(),
            polish: true,
            handovers: None,
        }
    }
}

impl Settings {
    /// Sets whether the plan is searched for exactly or by successive approximation.
    #[must_use]
    pub fn by(self, method: Method) -> Settings {
        Settings { method, ..self }
    }

    /// Sets the relative gap at which the exact search may end without a proof.
    #[must_use]
    pub fn within(self, gap: f64) -> Settings {
        Settings { limits: Limits { gap, ..self.limits }, ..self }
    }

    /// Sets whether the successive method's rounded plan is improved.
    #[must_use]
    pub fn polished(self, polish: bool) -> Settings {
        Settings { polish, ..self }
    }

    /// Lets sources hand models on, in all forms, or not.
    #[must_use]
    pub fn handing_on(self, hand_on: bool) -> Settings {
        Settings { handovers: hand_on.then_some(handover::Forms::ALL), ..self }
    }
}

/// Plans a fleet under the problem's own bound.
///
/// `observer` hears of progress and may end the search, which then returns its best plan with an
/// honest gap.
pub fn plan(problem: &Problem, settings: &Settings, observer: &mut Observer<'_>) -> Outcome {
    if let Some(reason) = infeasibility(problem) {
        return Outcome::Infeasible(reason);
    }
    let plan = match settings.method {
        Method::Exact => exact::plan(problem, &settings.limits, observer),
        Method::Successive => polish::plan(problem, settings, observer),
    };
    Outcome::Planned(Box::new(match settings.handovers {
        Some(forms) => handover::with_handovers(problem, plan, forms, &settings.limits, observer),
        None => plan,
    }))
}

/// Plans as [`plan`] does, to proven optimality and without anyone watching.
pub fn optimum(problem: &Problem) -> Outcome {
    plan(problem, &Settings::default(), &mut |_| ControlFlow::Continue(()))
}

/// Why no plan can exist: every target needs one link from a device that may be a source, and any
/// set of such devices may be opened together, so looking at each device alone is enough.
fn infeasibility(problem: &Problem) -> Option<Infeasible> {
    let devices = 0..problem.len();
    if devices.clone().all(|i| !problem.eligible(i)) {
        return Some(Infeasible::NoSource);
    }
    devices
        .into_iter()
        .find(|&j| !problem.eligible(j) && !problem.can_be_reached(j))
        .map(|device| Infeasible::Unreachable { device, name: problem.name(device).to_owned() })
        .or_else(|| many_required(problem))
}

fn many_required(problem: &Problem) -> Option<Infeasible> {
    if problem.bound_kind() == BoundKind::Pooled {
        return None;
    }
    let mut receivers: Vec<usize> = problem.required().iter().map(|&(_, to)| to).collect();
    receivers.sort_unstable();
    let twice = receivers.windows(2).find(|pair| pair[0] == pair[1])?;
    let (device, name) = (twice[0], problem.name(twice[0]).to_owned());
    Some(Infeasible::ManyRequired { device, name })
}
