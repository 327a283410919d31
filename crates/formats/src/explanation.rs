//! Writes an explanation as JSON, `stlf-explanation/1`.

use std::collections::BTreeMap;

use serde::Serialize;
use stlf_planning::Role;
use stlf_planning::explain::{
    Alternative, Explanation, Flip, MainLink, Part, Quantity, Sentences, Term,
};
use stlf_planning::plan::PlanLink;

use super::mixture::ExpectedEntry;

/// Explanations of some or all devices of a plan.
#[derive(Debug, Serialize)]
pub struct ExplanationFile {
    format: &'static str,
    /// The objective of the plan.
    objective: f64,
    devices: Vec<DeviceEntry>,
}

#[derive(Debug, Serialize)]
struct DeviceEntry {
    name: String,
    role: Role,
    /// Whether the problem fixes the role.
    pinned: bool,
    cost: f64,
    terms: Vec<TermEntry>,
    sends: Vec<LinkEntry>,
    receives: Vec<LinkEntry>,
    other_role: AlternativeEntry,
    role_flip: Option<FlipEntry>,
    main_link: Option<MainLinkEntry>,
    /// The model of another source that this source trains on.
    #[serde(skip_serializing_if = "Option::is_none")]
    takes: Option<TakenModelEntry>,
    /// The sources that it hands its model on to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hands_to: Vec<String>,
    /// The accuracy that a target of a run may expect without labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<ExpectedEntry>,
    /// Whether every plan behind these figures is proven optimal.
    proven: bool,
}

#[derive(Debug, Serialize)]
struct TermEntry {
    term: &'static str,
    /// The source that a target's term comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    cost: f64,
}

#[derive(Debug, Serialize)]
struct LinkEntry {
    from: String,
    to: String,
    weight: f64,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum AlternativeEntry {
    Possible {
        /// How much more the whole plan costs.
        extra: f64,
        /// What the device itself costs there.
        own: f64,
        role: Role,
        receives: Vec<LinkEntry>,
        also_change: Vec<String>,
    },
    Impossible {
        impossible: String,
    },
}

#[derive(Debug, Serialize)]
struct MainLinkEntry {
    link: LinkEntry,
    without: AlternativeEntry,
    flips: Vec<FlipEntry>,
}

#[derive(Debug, Serialize)]
struct TakenModelEntry {
    from: String,
    /// How much more the best plan costs that was found without it.
    extra: f64,
    flips: Vec<FlipEntry>,
}

#[derive(Debug, Serialize)]
struct FlipEntry {
    quantity: &'static str,
    now: f64,
    /// Null where no value changes the choice.
    at: Option<f64>,
}

impl ExplanationFile {
    /// What `words` have to say of these explanations.
    pub fn new(words: &Sentences<'_>, explanations: &[Explanation]) -> ExplanationFile {
        let entries = Entries { words };
        ExplanationFile {
            format: "stlf-explanation/1",
            objective: words.plan.objective(),
            devices: explanations.iter().map(|e| entries.device_entry(e)).collect(),
        }
    }

    /// Returns the same file with the accuracies that targets of these names may expect.
    pub fn with_expected(mut self, mut expected: BTreeMap<String, ExpectedEntry>) -> Self {
        self.devices.iter_mut().for_each(|device| device.expected = expected.remove(&device.name));
        self
    }
}

/// Turns the explanations of a plan into the entries of the file.
struct Entries<'a> {
    words: &'a Sentences<'a>,
}

impl Entries<'_> {
    fn device_entry(&self, e: &Explanation) -> DeviceEntry {
        let name = |device: usize| self.words.problem.name(device).to_owned();
        DeviceEntry {
            name: self.words.problem.name(e.device).to_owned(),
            role: e.role,
            pinned: e.pinned,
            cost: e.account.total(),
            terms: e.account.parts.iter().map(|part| self.term_entry(part)).collect(),
            sends: self.link_entries(&e.sends),
            receives: self.link_entries(&e.receives),
            other_role: self.alternative_entry(&e.other_role, e.device),
            role_flip: e.role_flip.as_ref().map(flip_entry),
            main_link: e.main_link.as_ref().map(|main| self.main_link_entry(main)),
            takes: e.takes.as_ref().map(|taken| TakenModelEntry {
                from: name(taken.handover.from),
                extra: taken.extra,
                flips: taken.flips.iter().map(flip_entry).collect(),
            }),
            hands_to: e.hands_to.iter().map(|&to| name(to)).collect(),
            expected: None,
            proven: e.proven,
        }
    }

    fn term_entry(&self, part: &Part) -> TermEntry {
        let (term, from) = match part.term {
            Term::OwnError => ("own-error", None),
            Term::Complexity => ("complexity", None),
            Term::OwnSampling => ("own-sampling", None),
            Term::SourceSampling => ("source-sampling", None),
            Term::SourceError { from } => ("source-error", Some(from)),
            Term::Divergence { from } => ("divergence", Some(from)),
            Term::Forgetting { from } => ("forgetting", Some(from)),
            Term::Energy { from } => ("energy", Some(from)),
            Term::Handover { from } => ("handover", Some(from)),
            Term::SourceCost => ("source-cost", None),
            Term::LinkCost { from } => ("link-cost", Some(from)),
        };
        let from = from.map(|device| self.words.problem.name(device).to_owned());
        TermEntry { term, from, cost: part.cost }
    }

    fn link_entries(&self, links: &[PlanLink]) -> Vec<LinkEntry> {
        links.iter().map(|link| self.link_entry(link)).collect()
    }

    fn link_entry(&self, link: &PlanLink) -> LinkEntry {
        LinkEntry {
            from: self.words.problem.name(link.from).to_owned(),
            to: self.words.problem.name(link.to).to_owned(),
            weight: link.weight,
        }
    }

    fn alternative_entry(&self, alternative: &Alternative, device: usize) -> AlternativeEntry {
        match alternative {
            Alternative::Possible(rival) => AlternativeEntry::Possible {
                extra: rival.extra,
                own: rival.own,
                role: rival.role,
                receives: self.link_entries(&rival.receives),
                also_change: rival
                    .also_change
                    .iter()
                    .map(|&device| self.words.problem.name(device).to_owned())
                    .collect(),
            },
            Alternative::Impossible(reason) => {
                AlternativeEntry::Impossible { impossible: self.words.impossible(reason, device) }
            }
        }
    }

    fn main_link_entry(&self, main: &MainLink) -> MainLinkEntry {
        MainLinkEntry {
            link: self.link_entry(&main.link),
            without: self.alternative_entry(&main.without, main.link.to),
            flips: main.flips.iter().map(flip_entry).collect(),
        }
    }
}

fn flip_entry(flip: &Flip) -> FlipEntry {
    let quantity = match flip.quantity {
        Quantity::SourceError => "source-error",
        Quantity::SourceCost => "source-cost",
        Quantity::Divergence => "divergence",
        Quantity::Energy => "energy",
        Quantity::LinkCost => "link-cost",
    };
    FlipEntry { quantity, now: flip.now, at: flip.at }
}
