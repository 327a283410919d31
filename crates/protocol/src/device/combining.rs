//! What a target makes of the models that it received: their mixture and, where all agreed to adapt, a student of it.

use std::ops::ControlFlow;
use std::sync::Arc;

use stlf_learn::Params;
use stlf_learn::evaluate::Predictions;
use stlf_method::adapt::{Adapt, Obstacle, Tried};
use stlf_method::known::Known;
use stlf_method::student::Student;
use stlf_planning::Error;

use super::epoch::WHOLE;
use crate::job::{Sign, Watch};
use crate::roster::Place;
use crate::setup::Setup;

/// Models that a target received, with all that it takes to combine them.
#[derive(Debug)]
pub(crate) struct Combining {
    pub(super) setup: Setup,
    pub(super) place: Place,
    pub(super) inputs: Arc<[f32]>,
    pub(super) known: Vec<Known>,
    pub(super) models: Vec<(Arc<Params>, f64)>,
}

/// What a target ends with.
#[derive(Debug, Clone, PartialEq)]
pub struct Combined {
    /// What its samples came to.
    pub predictions: Predictions,
    /// What came of its student, where targets train any.
    pub tried: Option<Tried>,
    /// The student, if it is used.
    pub student: Option<Student>,
    /// The weights of the models that it received, after known labels were seen.
    pub weights: Vec<f64>,
}

impl Combining {
    /// What the target ends with; `None` if `watch`, which hears how many percent of the student's training are done, ended it.
    ///
    /// # Errors
    /// These models cannot be combined.
    pub(crate) fn run(self, watch: &mut Watch<'_>) -> Result<Option<Combined>, Error> {
        let Combining { setup, place, inputs, known, models } = self;
        let planned: Vec<(&Params, f64)> = models.iter().map(|(m, w)| (&**m, *w)).collect();
        let models = match setup.adapt {
            Adapt::Off => planned.clone(),
            _ => setup.target(place, &planned, &inputs, &known).informed(),
        };
        let weights = models.iter().map(|(_, weight)| *weight).collect();
        let samples = inputs.len() / setup.spec.input().len();
        let obstacle = Obstacle::of(setup.shape, samples, known.len());
        if setup.adapt == Adapt::Off || obstacle.is_some() {
            let predictions = setup.combine(&models, &inputs)?;
            let tried = obstacle.filter(|_| setup.adapt != Adapt::Off).map(Tried::Not);
            return Ok(Some(Combined { predictions, tried, student: None, weights }));
        }
        let (looks, mut done) = (setup.schooling.looks().max(1), 0);
        let mut look = || -> ControlFlow<()> {
            done += 1;
            watch(Sign::Percent((usize::from(WHOLE) * done / looks) as u8))
        };
        let target = setup.target(place, &models, &inputs, &known);
        let Some(student) = target.student(setup.schooling, &mut look)? else { return Ok(None) };
        let judged = target.judge(&student)?;
        let (tried, is_used) = (judged.tried(setup.adapt), judged.is_used(setup.adapt));
        let share = judged.share;
        Ok(Some(Combined {
            predictions: judged.predictions(setup.adapt),
            tried: Some(tried),
            student: is_used.then_some(Student { params: student, share }),
            weights,
        }))
    }
}
