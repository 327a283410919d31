//! Work that takes long, apart from the device that needs it: whoever drives a device runs its jobs where they hold nothing up, and
//! gives it what they come to.

use std::ops::ControlFlow;
use std::time::Duration;

use stlf_method::handed::Verdict;
use stlf_planning::plan::Way;

use crate::checking::{Check, Checked, Objection};
use crate::device::{Combined, Combining, Examining, Failed, TrainedOn, TrainingOn};
use crate::divergence_protocol::{Finding, Work};
use crate::planning::{NoPlan, Planned, Search};
use crate::roster::Place;

/// What a job says while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// It goes on, and says nothing of how far it is.
    GoesOn,
    /// So many percent of training on a model are done, above 100 those of the second way; or of training a student, or of predicting.
    Percent(u8),
    /// A search begins that may take so long. Told to stop then, it ends with the best that it has.
    Searches(Duration),
}

/// Hears a job's signs, and answers whether it is to go on. It measures time, which a job cannot.
pub type Watch<'w> = dyn FnMut(Sign) -> ControlFlow<()> + 'w;

/// What a job is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// The median distance of the device's inputs.
    Bandwidth,
    /// Moments of the features of its inputs.
    Moments,
    /// Its divergences from all others, of what everyone published.
    Divergences,
    /// Its turn in training a classifier with another.
    Turn {
        /// The device on the other side of the pair.
        peer: Place,
        /// How many turns it had before.
        number: u64,
    },
    /// The plan of the epoch.
    Plan,
    /// Whether the plan follows from the reports that it was made from, or there is none.
    Check {
        /// The device that says so.
        planner: Place,
    },
    /// To train on a model that was handed over.
    TrainOn {
        /// The source that handed the model over.
        from: Place,
        /// The way that it is on here.
        way: Way,
    },
    /// To try a model on its labels, for the targets that get the same.
    Examine {
        /// The source that the model is of.
        from: Place,
    },
    /// What its inputs come to under the models that it received.
    Combine,
}

/// Work of an epoch with all that it takes. Two jobs are equal if they are for the same.
#[derive(Debug)]
pub struct Job {
    epoch: u64,
    labour: Labour,
}

#[derive(Debug)]
pub(crate) enum Labour {
    Measure(Work),
    Plan(Box<Search>),
    Check(Box<Check>),
    TrainOn(Box<TrainingOn>),
    Examine(Box<Examining>),
    Combine(Box<Combining>),
}

/// What a job came to.
#[derive(Debug)]
pub struct Computed {
    pub(crate) epoch: u64,
    task: Task,
    pub(crate) product: Product,
    blamed: Option<Blamed>,
}

/// A device whose model a learner cannot use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blamed {
    /// Who sent the model.
    pub from: Place,
    /// What the learner says.
    pub reason: String,
}

#[derive(Debug)]
pub(crate) enum Product {
    Measured(Finding),
    Planned(Result<Planned, NoPlan>),
    Checked(Result<Checked, Objection>),
    TrainedOn(Option<TrainedOn>),
    Examined(Place, Option<Verdict>),
    Combined(Option<Combined>),
}

impl Job {
    pub(crate) fn new(epoch: u64, labour: Labour) -> Job {
        Job { epoch, labour }
    }

    /// The epoch that it belongs to. Once that is over nobody needs it.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns what it is for.
    pub fn task(&self) -> Task {
        match &self.labour {
            Labour::Measure(work) => work.task(),
            Labour::Plan(_) => Task::Plan,
            Labour::Check(check) => Task::Check { planner: check.planner },
            Labour::TrainOn(training) => Task::TrainOn { from: training.from, way: training.way },
            Labour::Examine(examining) => Task::Examine { from: examining.from },
            Labour::Combine(_) => Task::Combine,
        }
    }

    /// Does it; `None` if `watch` ended it before it came to anything.
    pub fn run(self, watch: &mut Watch<'_>) -> Option<Computed> {
        if watch(Sign::GoesOn).is_break() {
            return None;
        }
        let (epoch, task) = (self.epoch, self.task());
        let mut blamed = None;
        let product = match self.labour {
            Labour::Measure(work) => Product::Measured(work.run(watch)?),
            Labour::Plan(search) => Product::Planned(search.run(watch)),
            Labour::Check(check) => Product::Checked(check.run(watch)),
            Labour::TrainOn(training) => {
                let from = training.from;
                match training.run(watch) {
                    Ok(trained) => Product::TrainedOn(Some(trained?)),
                    Err(why) => {
                        blamed = Some(Blamed { from, reason: why.to_string() });
                        Product::TrainedOn(None)
                    }
                }
            }
            Labour::Examine(examining) => {
                let from = examining.from;
                match examining.run(watch) {
                    Ok(verdict) => Product::Examined(from, Some(verdict?)),
                    Err(why) => {
                        blamed = Some(Blamed { from, reason: why.to_string() });
                        Product::Examined(from, None)
                    }
                }
            }
            Labour::Combine(models) => match models.run(watch) {
                Ok(combined) => Product::Combined(Some(combined?)),
                Err(Failed { from, why }) => {
                    blamed = from.map(|from| Blamed { from, reason: why.to_string() });
                    Product::Combined(None)
                }
            },
        };
        Some(Computed { epoch, task, product, blamed })
    }
}

impl PartialEq for Job {
    fn eq(&self, other: &Job) -> bool {
        (self.epoch, self.task()) == (other.epoch, other.task())
    }
}

impl Computed {
    /// The epoch that it belongs to.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns what it is for.
    pub fn task(&self) -> Task {
        self.task
    }

    /// Returns whose model the job came to nothing for: training on it, or predicting by it, failed.
    pub fn blamed(&self) -> Option<&Blamed> {
        self.blamed.as_ref()
    }
}
