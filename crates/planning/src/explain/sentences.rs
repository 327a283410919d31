//! Puts an explanation into English sentences.

use super::{Alternative, Explanation, Flip, Impossible, MainLink, Quantity, Rival, Term};
use crate::device::Role;
use crate::number_format::{clean, energy, mixture, percent, short};
use crate::plan::{Plan, PlanLink, is_on_ring};
use crate::planner::Infeasible;
use crate::problem::Problem;

/// Two plans whose costs differ by less than this, relative, cost the same.
const TIE: f64 = 1e-9;

/// Writes sentences about the devices and links of one plan.
#[derive(Debug, Clone, Copy)]
pub struct Sentences<'a> {
    /// The problem that the plan solves.
    pub problem: &'a Problem,
    /// The plan whose choices are explained.
    pub plan: &'a Plan,
}

impl Sentences<'_> {
    fn name(&self, device: usize) -> String {
        clean(self.problem.name(device))
    }

    /// Returns a sentence that says why the device has its role.
    pub fn role(&self, e: &Explanation) -> String {
        let (name, role) = (self.name(e.device), e.role);
        match &e.other_role {
            Alternative::Possible(rival) => {
                let because = if e.pinned { " because the problem says so" } else { "" };
                format!("{name} is a {role}{because}: {}.", self.in_the_other_role(e, rival))
            }
            Alternative::Impossible(reason) => {
                format!("{name} is a {role}: {}.", self.impossible(reason, e.device))
            }
        }
    }

    fn in_the_other_role(&self, e: &Explanation, rival: &Rival) -> String {
        let served = match rival.role {
            Role::Target => format!(", served by {}", self.mixture(&rival.receives)),
            Role::Source => String::new(),
        };
        let changed = match rival.also_change.as_slice() {
            [] => String::new(),
            &[one] => {
                let new = self.plan.roles[one].opposite();
                format!("; {} would become a {new}", self.name(one))
            }
            several => format!("; {} other devices would change roles", several.len()),
        };
        format!(
            "as a {} it would cost {} instead of {}{served}, and the whole plan {}{changed}",
            rival.role,
            short(rival.own),
            short(e.account.total()),
            self.more(rival.extra),
        )
    }

    /// Returns why an alternative does not exist, as a part of a sentence.
    pub fn impossible(&self, reason: &Impossible, device: usize) -> String {
        match reason {
            Impossible::NoLabels => "it has no labels and cannot train".to_owned(),
            Impossible::Required(from, to) => self.required(*from, *to, device),
            Impossible::Infeasible(Infeasible::NoSource) => "no other device can train".to_owned(),
            Impossible::Infeasible(Infeasible::Unreachable { device: alone, .. })
                if *alone == device =>
            {
                "no other device that can train has a link to it".to_owned()
            }
            Impossible::Infeasible(Infeasible::Unreachable { name, .. }) => {
                format!("no other device that can train has a link to {}", clean(name))
            }
            Impossible::Infeasible(reason @ Infeasible::ManyRequired { .. }) => {
                clean(&reason.to_string())
            }
        }
    }

    /// Why a link must be there: somebody asked for it or for all links, or nothing tells which source suits its receiver.
    fn required(&self, from: usize, to: usize, device: usize) -> String {
        let whom = if to == device { "it".to_owned() } else { self.name(to) };
        if self.takes_all(to) {
            return format!("the fleet wants all links, so all models are sent to {whom}");
        }
        if self.is_stranger(to) {
            return format!("no source is near {whom}, so all models of use are sent there");
        }
        format!("the link {} → {} is required", self.name(from), self.name(to))
    }

    fn takes_all(&self, device: usize) -> bool {
        self.problem.all_alike().contains(&device)
    }

    fn is_stranger(&self, device: usize) -> bool {
        self.problem.strangers().contains(&device)
    }

    /// What would give the device the other role.
    pub fn role_flip(&self, e: &Explanation) -> Option<String> {
        let flip = e.role_flip?;
        let what = match flip.quantity {
            Quantity::SourceCost => "cost as a source",
            _ => "error",
        };
        let (other, now) = (e.role.opposite(), short(flip.now));
        let verb = match e.role {
            Role::Source => "rose above",
            Role::Target => "fell below",
        };
        Some(match flip.at {
            Some(at) if is_reachable(&flip) => {
                format!("It would become a {other} if its {what} {verb} {} (now {now}).", short(at))
            }
            None if e.role == Role::Target => {
                format!("Even with {what} 0 it would stay a target (now {now}).")
            }
            _ => format!("No {what} would make it a {other} (now {now})."),
        })
    }

    /// Says which source a target relies on most, and what the plan would be without it.
    pub fn main_link(&self, main: &MainLink) -> String {
        let from = self.name(main.link.from);
        match &main.without {
            Alternative::Possible(rival) => {
                let instead = match rival.role {
                    Role::Source => "it would train its own model".to_owned(),
                    Role::Target => format!("it would take {}", self.mixture(&rival.receives)),
                };
                format!("Without {from} {instead}, and the plan {}.", self.more(rival.extra))
            }
            Alternative::Impossible(Impossible::Required(..)) if self.takes_all(main.link.to) => {
                format!("It takes {from} as one of all models.")
            }
            Alternative::Impossible(Impossible::Required(..)) if self.is_stranger(main.link.to) => {
                format!("It takes {from} as one of all models that are of use.")
            }
            Alternative::Impossible(Impossible::Required(..)) => {
                format!("It has to take {from}: the link is required.")
            }
            Alternative::Impossible(reason) => {
                format!("It needs {from}: {}.", self.impossible(reason, main.link.to))
            }
        }
    }

    /// What would make a target drop its main source.
    pub fn link_flips(&self, main: &MainLink) -> Option<String> {
        let from = self.name(main.link.from);
        let (reachable, beyond) = conditions(&main.flips);
        let mut sentences = Vec::new();
        if !reachable.is_empty() {
            sentences.push(format!("It would drop {from} if {}.", reachable.join(" or ")));
        }
        for flip in beyond {
            sentences.push(match flip.quantity {
                Quantity::Divergence if flip.at.is_some() => format!(
                    "No divergence up to 2 would make it drop {from} (now {}).",
                    short(flip.now)
                ),
                quantity => {
                    let what = subject(quantity);
                    format!("No value of {what} would make it drop {from}.")
                }
            });
        }
        (!sentences.is_empty()).then(|| sentences.join(" "))
    }

    fn mixture(&self, links: &[PlanLink]) -> String {
        clean(&mixture(self.problem, links))
    }

    /// "would cost 0.42 (3.1 %) more", or less, or the same.
    fn more(&self, extra: f64) -> String {
        let objective = self.plan.objective();
        if extra.abs() <= TIE * objective.abs() {
            return "would cost the same".to_owned();
        }
        let share = percent(extra.abs() / objective.abs());
        let direction = if extra > 0.0 { "more" } else { "less" };
        format!("would cost {} ({share}) {direction}", short(extra.abs()))
    }

    /// The role's threshold in a few characters: `error > 0.83 (0.35)`.
    pub fn role_threshold(&self, e: &Explanation) -> String {
        let Some(flip) = e.role_flip else {
            return String::new();
        };
        let what = match flip.quantity {
            Quantity::SourceCost => "cost",
            _ => "error",
        };
        let sign = match e.role {
            Role::Source => '>',
            Role::Target => '<',
        };
        match flip.at {
            Some(at) if is_reachable(&flip) => {
                format!("{what} {sign} {} ({})", short(at), short(flip.now))
            }
            _ => format!("never ({})", short(flip.now)),
        }
    }

    /// The main link's thresholds in a few characters.
    pub fn link_thresholds(&self, e: &Explanation) -> String {
        let Some(main) = &e.main_link else {
            return String::new();
        };
        let each = main.flips.iter().filter(|flip| is_reachable(flip)).filter_map(|flip| {
            let (at, now) = (amount(flip.quantity, flip.at?), amount(flip.quantity, flip.now));
            Some(match flip.quantity {
                Quantity::Energy => format!("{at} ({now})"),
                Quantity::LinkCost => format!("cost {at} ({now})"),
                _ => format!("divergence {at} ({now})"),
            })
        });
        each.collect::<Vec<_>>().join(", ")
    }

    /// Devices by name: `a, b and 3 more`.
    pub fn list(&self, devices: &[usize]) -> String {
        const MOST: usize = 6;
        let mut names: Vec<String> = devices.iter().take(MOST).map(|&i| self.name(i)).collect();
        if devices.len() > MOST {
            names.push(format!("{} more", devices.len() - MOST));
        }
        match names.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
            _ => names.concat(),
        }
    }

    /// Says whose model a source continues training, and which sources trained it before.
    pub fn trains_on(&self, device: usize) -> Option<String> {
        let from = self.plan.handed_from(device)?;
        if is_on_ring(&self.plan.handovers, device) {
            let sources = self.plan.route(device).len();
            let model = format!("continues training {}'s model", self.name(from));
            let way = match self.plan.sends(device) {
                true => "It is the last of them, and sends the model to its targets.",
                false => "The model goes round twice.",
            };
            return Some(format!("On a ring of {sources} sources it {model}. {way}"));
        }
        let trained = match self.plan.route(from).as_slice() {
            [before @ .., _] if !before.is_empty() => {
                format!(", which {} trained before", self.list(before))
            }
            _ => String::new(),
        };
        Some(format!("It continues training {}'s model{trained}.", self.name(from)))
    }

    /// The sources that a source hands its model on to.
    pub fn hands_on(&self, device: usize) -> Option<String> {
        let handovers = self.plan.handovers.iter().filter(|h| h.from == device);
        let receivers: Vec<usize> = handovers.map(|h| h.to).collect();
        (!receivers.is_empty())
            .then(|| format!("It hands its model on to {}.", self.list(&receivers)))
    }

    /// Says whose model a source continues training, why, and what would change that.
    pub fn taken_model(&self, e: &Explanation) -> Option<String> {
        let taken = e.takes.as_ref()?;
        let mut text = format!(
            "{} Without that hand-over the best plan found {}.",
            self.trains_on(e.device)?,
            self.more(taken.extra)
        );
        let (reachable, _) = conditions(&taken.flips);
        if !reachable.is_empty() {
            text += &format!(" That plan is cheaper if {}.", reachable.join(" or "));
        }
        Some(text)
    }

    /// Everything there is to say beyond the role and the costs, a sentence or two each.
    pub fn further(&self, e: &Explanation) -> Vec<String> {
        let mut sentences = Vec::new();
        sentences.extend(self.taken_model(e));
        sentences.extend(self.hands_on(e.device));
        if !e.sends.is_empty() {
            let receivers: Vec<usize> = e.sends.iter().map(|l| l.to).collect();
            sentences.push(format!("It sends to {}.", self.list(&receivers)));
        }
        if let Some(main) = &e.main_link {
            sentences.push(self.main_link(main));
            sentences.extend(self.link_flips(main));
        }
        sentences.extend(self.role_flip(e));
        sentences.extend(doubt(e.proven));
        sentences
    }

    /// A term of a device's cost, for a table.
    pub fn term(&self, term: Term) -> String {
        match term {
            Term::OwnError => "its own error".to_owned(),
            Term::Complexity => "the complexity of models".to_owned(),
            Term::OwnSampling => "its own finite sample".to_owned(),
            Term::SourceSampling => "the sources' finite samples".to_owned(),
            Term::SourceError { from } => format!("error of {}", self.name(from)),
            Term::Divergence { from } => format!("divergence from {}", self.name(from)),
            Term::Forgetting { from } => format!("forgetting of {}'s data", self.name(from)),
            Term::Energy { from } => format!("energy of the link from {}", self.name(from)),
            Term::Handover { from } => format!("energy of the hand-over from {}", self.name(from)),
            Term::SourceCost => "cost as a source".to_owned(),
            Term::LinkCost { from } => format!("link from {}", self.name(from)),
        }
    }
}

/// An error is at most 1 and a divergence at most 2, by definition; where a file scales them, the
/// present value says so.
fn is_reachable(flip: &Flip) -> bool {
    let most = match flip.quantity {
        Quantity::SourceError => 1.0,
        Quantity::Divergence => 2.0,
        Quantity::Energy | Quantity::SourceCost | Quantity::LinkCost => f64::INFINITY,
    };
    flip.at.is_some_and(|at| at <= most || flip.now > most)
}

/// What must rise above what, and the flips that nothing brings about.
fn conditions(flips: &[Flip]) -> (Vec<String>, Vec<&Flip>) {
    let (reachable, beyond): (Vec<&Flip>, Vec<&Flip>) = flips.iter().partition(|f| is_reachable(f));
    let condition = |flip: &Flip| {
        let (at, now) = (amount(flip.quantity, flip.at?), amount(flip.quantity, flip.now));
        Some(format!("{} rose above {at} (now {now})", subject(flip.quantity)))
    };
    (reachable.into_iter().filter_map(condition).collect(), beyond)
}

/// What a link's measurement is called in a sentence.
fn subject(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Energy => "the link's energy",
        Quantity::LinkCost => "the link's cost",
        _ => "their divergence",
    }
}

/// Formats a value of a quantity, an energy with its unit.
fn amount(quantity: Quantity, value: f64) -> String {
    match quantity {
        Quantity::Energy => energy(value),
        _ => short(value),
    }
}

/// What is to be said of figures that are not proven.
pub fn doubt(proven: bool) -> Option<String> {
    (!proven).then(|| "Not every plan behind these figures is proven optimal.".to_owned())
}
