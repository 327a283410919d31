//! What ST-LF is compared with: other ways to decide roles and links, one file each.
//!
//! | roles | method |
//! |---|---|
//! | ST-LF's | [`rnd_alpha`], [`fedavg`], [`fada`], [`avgd`], [`fedavg_rounds`], [`kd3a`], [`pooled`] |
//! | random | [`rnd_psi`], [`psi_fedavg`], [`psi_fada`] |
//! | every device that may be a source is one | [`sm`], [`local`], [`oracle`] |
//!
//! All of them keep to the problem's rules: only eligible devices are sources, pinned devices keep their role,
//! only links that exist are used. Links that the user requires are ST-LF's alone: a baseline that took them would
//! take a part of the answer.

pub mod avgd;
pub mod fada;
pub mod fedavg;
pub mod fedavg_rounds;
pub mod kd3a;
pub mod local;
mod matching;
pub mod oracle;
pub mod pooled;
pub mod psi_fada;
pub mod psi_fedavg;
pub mod rnd_alpha;
pub mod rnd_psi;
pub mod sm;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use stlf_planning::device::Role;
use stlf_planning::error::{Counted, Error, Field, Reason};
use stlf_planning::plan::{Handover, Plan, PlanLink, incoming};
use stlf_planning::problem::{Model, Problem};

/// Who is a source, who a target, and with what weights targets take sources' models.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    /// The role of each device, in the order of the problem.
    pub roles: Vec<Role>,
    /// Sorted by receiver, then sender; the weights into a target sum to one.
    pub links: Vec<PlanLink>,
    /// Sorted by receiver; empty for all methods except ST-LF's.
    pub handovers: Vec<Handover>,
}

impl Assignment {
    /// Every source trains a model of its own.
    pub fn new(roles: Vec<Role>, links: Vec<PlanLink>) -> Assignment {
        Assignment { roles, links, handovers: Vec::new() }
    }

    /// Returns the indices of the devices that have this role, ascending.
    pub fn with_role(&self, role: Role) -> impl Iterator<Item = usize> + '_ {
        with_role(&self.roles, role)
    }

    /// Returns the links into a device, sorted by sender.
    pub fn incoming(&self, to: usize) -> &[PlanLink] {
        incoming(&self.links, to)
    }
}

impl From<&Plan> for Assignment {
    fn from(plan: &Plan) -> Assignment {
        let Plan { roles, links, handovers, .. } = plan.clone();
        Assignment { roles, links, handovers }
    }
}

/// What a baseline may look at when it chooses roles and links.
#[derive(Debug, Clone)]
pub struct Context<'a> {
    problem: &'a Problem,
    ours: Assignment,
    /// ST-LF's answer without hand-overs, where `ours` has some.
    pub without_handovers: Option<Assignment>,
    /// What FADA works on; the other methods see no data.
    pub data: Option<fada::Fleet<'a>>,
    /// `[sender][receiver]`: the accuracy of a device's model on another's data by the hidden labels, which only
    /// Oracle sees. NaN where there is none.
    pub accuracies: Option<&'a [Vec<f64>]>,
}

impl<'a> Context<'a> {
    /// What all methods know: the problem, and ST-LF's answer to it.
    ///
    /// # Errors
    /// If ST-LF's roles are not of this problem.
    pub fn new(problem: &'a Problem, ours: Assignment) -> Result<Context<'a>, Error> {
        if ours.roles.len() != problem.len() {
            let (found, expected) = (ours.roles.len(), problem.len());
            let reason = Reason::Length { found, expected, of: Counted::Roles };
            return Err(Error::new("plan", reason));
        }
        if let Some(device) = ours.with_role(Role::Source).find(|&i| !problem.eligible(i)) {
            let message = format!("{} is a source, but may not be one", problem.name(device));
            return Err(Error::other("plan", message));
        }
        Ok(Context { problem, ours, without_handovers: None, data: None, accuracies: None })
    }

    /// Returns the problem that methods decide about.
    pub fn problem(&self) -> &'a Problem {
        self.problem
    }

    /// Returns the roles and links of the plan.
    pub fn ours(&self) -> &Assignment {
        &self.ours
    }

    /// Returns the roles and links of the plan without hand-overs.
    pub fn links_only(&self) -> &Assignment {
        self.without_handovers.as_ref().unwrap_or(&self.ours)
    }

    /// Returns D̂_i, the number of samples of a device, with and without label.
    fn samples(&self, device: usize) -> Result<u64, Error> {
        match self.problem.model() {
            Model::Measured(m) => Ok(m.devices[device].samples()),
            Model::Costs(_) => {
                Err(Error::missing("costs", "raw costs do not say how much data each device has")
                    .with_hint("give devices with their counts, or leave this method out"))
            }
        }
    }

    /// Every device that may be a source is one.
    fn all_eligible(&self) -> Vec<Role> {
        let role = |i| if self.problem.eligible(i) { Role::Source } else { Role::Target };
        (0..self.problem.len()).map(role).collect()
    }

    /// The devices with a link to `target` that may be sources, ascending.
    fn eligible_senders(&self, target: usize) -> Vec<usize> {
        let senders = self.problem.senders().into_iter().map(|from| from as usize);
        senders.filter(|&from| self.problem.link_cost(from, target).is_some()).collect()
    }

    /// The sources with a link to `target`, ascending; there is one, or it is an error.
    fn senders(&self, roles: &[Role], target: usize) -> Result<Vec<usize>, Error> {
        let mut senders = self.eligible_senders(target);
        senders.retain(|&i| roles[i] == Role::Source);
        if senders.is_empty() {
            let field = Field::of_device("devices", self.problem.name(target));
            return Err(Error::missing(field, "no source reaches this target")
                .with_hint("give it a link from a labeled device"));
        }
        Ok(senders)
    }

    /// Every target takes the model of the source that reaches it with the least energy; of equals, the first.
    fn cheapest_link(&self, roles: Vec<Role>) -> Result<Assignment, Error> {
        let joules = |from, to| self.problem.link_energy(from, to).unwrap_or(0.0);
        let mut links = Vec::new();
        for to in with_role(&roles, Role::Target) {
            let senders = self.senders(&roles, to)?.into_iter();
            let cheapest = senders.min_by(|&a, &b| joules(a, to).total_cmp(&joules(b, to)));
            links.extend(cheapest.map(|from| PlanLink { from, to, weight: 1.0 }));
        }
        Ok(Assignment::new(roles, links))
    }

    /// Every target takes every source that reaches it, with weights in proportion to `weigh(target, sources)`.
    fn every_link(
        &self,
        roles: Vec<Role>,
        mut weigh: impl FnMut(usize, &[usize]) -> Result<Vec<f64>, Error>,
    ) -> Result<Assignment, Error> {
        let mut links = Vec::new();
        for target in with_role(&roles, Role::Target) {
            let senders = self.senders(&roles, target)?;
            let weights = weigh(target, &senders)?;
            links.extend(normalised(target, &senders, &weights));
        }
        Ok(Assignment::new(roles, links))
    }
}

fn with_role(roles: &[Role], role: Role) -> impl Iterator<Item = usize> + '_ {
    (0..roles.len()).filter(move |&i| roles[i] == role)
}

/// Links into one target with weights that sum to one. A weight too small to be told from zero is no link.
fn normalised(target: usize, senders: &[usize], weights: &[f64]) -> impl Iterator<Item = PlanLink> {
    let sum: f64 = weights.iter().sum();
    let links = senders.iter().zip(weights).map(move |(&from, &weight)| PlanLink {
        from,
        to: target,
        weight: weight / sum,
    });
    links.filter(|link| link.weight > 0.0)
}

/// For what something random is drawn: each draws from a sequence of its own, so that methods that share
/// a choice, and a seed, choose alike.
#[derive(Debug, Clone, Copy)]
enum Draw {
    Roles = 0,
    Weights = 1,
    Links = 2,
}

fn rng(seed: u64, draw: Draw) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(draw as u64);
    rng
}
