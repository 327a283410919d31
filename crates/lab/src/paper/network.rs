//! The paper's network of ten devices, five of them with labels, as figures that need no data take it; and planning.

use std::ops::ControlFlow;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use stlf_planning::Device;
use stlf_planning::Plan;
use stlf_planning::Problem;
use stlf_planning::bound::BoundKind;
use stlf_planning::planner::{self, Method, Outcome};
use stlf_planning::problem::{Links, Parts, Preset};

use crate::Error;

/// The number of devices in each of these networks.
pub(super) const DEVICES: usize = 10;

/// How many of them have labels, the first ones.
pub(super) const LABELED: usize = 5;

/// Joules of every link: the middle of the paper's range.
const JOULES: f64 = 3.5;

/// What differs from figure to figure.
pub(super) struct Network<'a> {
    /// ε̂ of the devices with labels.
    pub(super) errors: &'a [f64],
    /// d̂ of all pairs, row by row.
    pub(super) divergence: &'a [f64],
    /// Weights, complexity and unit of energy.
    pub(super) preset: Preset,
    /// φ^E, where it is not the preset's.
    pub(super) energy_weight: Option<f64>,
    /// The bound under which the network is planned.
    pub(super) kind: BoundKind,
}

impl Network<'_> {
    /// The problem: sizes are the paper's means, and all links cost the same.
    pub(super) fn problem(&self) -> Result<Problem, Error> {
        let device = |i: usize| Device {
            name: format!("d{}", i + 1),
            labeled: if i < LABELED { 1600 } else { 0 },
            unlabeled: if i < LABELED { 200 } else { 1000 },
            source_error: self.errors.get(i).copied(),
        };
        let mut weights = self.preset.weights();
        weights.energy = self.energy_weight.unwrap_or(weights.energy);
        let devices = (0..DEVICES).map(device).collect();
        let energy = vec![JOULES; DEVICES * DEVICES];
        let links = Links::from_rows(DEVICES, self.divergence.to_vec(), energy);
        let parts = Parts::measured(devices, links, self.preset, weights, self.kind);
        Ok(Problem::new(parts)?)
    }
}

/// A symmetric square, row by row, zero on the diagonal.
pub(super) fn square(mut cell: impl FnMut(usize, usize) -> f64) -> Vec<f64> {
    let mut values = vec![0.0; DEVICES * DEVICES];
    for i in 0..DEVICES {
        for j in i + 1..DEVICES {
            let value = cell(i, j);
            values[i * DEVICES + j] = value;
            values[j * DEVICES + i] = value;
        }
    }
    values
}

/// Divergences drawn uniformly from 0 to 1, always the same ones.
pub(super) fn random_divergence() -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    square(|_, _| rng.random_range(0.0..1.0))
}

/// The plan of a problem; the successive method keeps its own weights where it is not polished.
pub(super) fn planned(
    problem: &Problem,
    method: Method,
    polish: bool,
    observer: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<Box<Plan>, Error> {
    let settings = planner::Settings::default().by(method).polished(polish);
    let mut ended = false;
    let outcome = planner::plan(problem, &settings, &mut |_| {
        let flow = observer();
        ended |= flow.is_break();
        flow
    });
    match outcome {
        _ if ended => Err(Error::Stopped),
        Outcome::Planned(plan) => Ok(plan),
        Outcome::Infeasible(reason) => {
            Err(Error::Infeasible { seed: 0, reason: reason.to_string() })
        }
    }
}

/// Lets a search go on whatever it reports, where nobody can stop it.
pub(super) fn go_on() -> ControlFlow<()> {
    ControlFlow::Continue(())
}
