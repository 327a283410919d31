//! The methods by name: ours, and those that it is compared with.

use std::str::FromStr;

use stlf_data::words::nearest;
use stlf_planning::error::{Error, Named, Reason};

/// A way to decide roles and links: ours with and without hand-overs, the paper's eight baselines, and five honest lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Method {
    /// Ours: the plan itself.
    StLf,
    /// Ours without hand-overs: every source sends what it trained by itself.
    Links,
    /// Ours' roles, random weights.
    RndAlpha,
    /// Ours' roles, weights by data size.
    FedAvg,
    /// Ours' roles, weights by federated adversarial domain adaptation.
    Fada,
    /// Ours' roles and mean degree, random links and weights.
    AvgD,
    /// Random roles, random weights.
    RndPsi,
    /// Random roles, weights by data size.
    PsiFedAvg,
    /// Random roles, weights by federated adversarial domain adaptation.
    PsiFada,
    /// One random source a target, none used more often than it must be.
    Sm,
    /// No device sends; each has only its own model.
    Local,
    /// The best single source by the hidden labels.
    Oracle,
    /// Ours' roles; the sources average their models again and again, and targets get the last average.
    FedAvgRounds,
    /// Ours' roles; a target and all sources average their models again and again, and the target learns what sources agree on.
    Kd3a,
    /// One network on the labels of all of ours' sources, for which data would have to move.
    Pooled,
}

impl Method {
    /// Every method, in the order in which tables list them.
    pub const ALL: [Method; 15] = [
        Method::StLf,
        Method::Links,
        Method::RndAlpha,
        Method::FedAvg,
        Method::Fada,
        Method::AvgD,
        Method::RndPsi,
        Method::PsiFedAvg,
        Method::PsiFada,
        Method::Sm,
        Method::Local,
        Method::Oracle,
        Method::FedAvgRounds,
        Method::Kd3a,
        Method::Pooled,
    ];

    /// Returns the name that users type.
    pub fn name(self) -> &'static str {
        match self {
            Method::StLf => "st-lf",
            Method::Links => "st-lf-links",
            Method::RndAlpha => "rnd-alpha",
            Method::FedAvg => "fedavg",
            Method::Fada => "fada",
            Method::AvgD => "avgd",
            Method::RndPsi => "rnd-psi",
            Method::PsiFedAvg => "psi-fedavg",
            Method::PsiFada => "psi-fada",
            Method::Sm => "sm",
            Method::Local => "local",
            Method::Oracle => "oracle",
            Method::FedAvgRounds => "fedavg-rounds",
            Method::Kd3a => "kd3a",
            Method::Pooled => "pooled",
        }
    }

    /// Returns the name in the paper's tables and figures.
    pub fn label(self) -> &'static str {
        match self {
            Method::StLf => "ST-LF",
            Method::Links => "ST-LF links",
            Method::RndAlpha => "Rnd-α",
            Method::FedAvg => "FedAvg",
            Method::Fada => "FADA",
            Method::AvgD => "AvgD",
            Method::RndPsi => "Rnd-ψ",
            Method::PsiFedAvg => "ψ-FedAvg",
            Method::PsiFada => "ψ-FADA",
            Method::Sm => "SM",
            Method::Local => "Local",
            Method::Oracle => "Oracle",
            Method::FedAvgRounds => "FedAvg, rounds",
            Method::Kd3a => "KD3A",
            Method::Pooled => "Pooled",
        }
    }

    /// Whether the method could not choose without measured divergences. The baselines that take ST-LF's roles are given them,
    /// which is in their favour.
    pub fn needs_divergences(self) -> bool {
        matches!(self, Method::StLf | Method::Links)
    }

    /// Whether the method looks at the plan without hand-overs.
    pub fn needs_links_only(self) -> bool {
        matches!(self, Method::Links | Method::AvgD)
    }

    /// Whether the method works on the devices' data, as a context holds it.
    pub fn needs_data(self) -> bool {
        matches!(self, Method::Fada | Method::PsiFada)
    }

    /// Whether the method trains networks of its own, which takes as long as all devices' training, or longer.
    pub fn trains(self) -> bool {
        self.needs_data() || matches!(self, Method::FedAvgRounds | Method::Kd3a | Method::Pooled)
    }

    /// Whether the method looks at hidden labels, as a context holds what they say.
    pub fn needs_accuracies(self) -> bool {
        self == Method::Oracle
    }
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(text: &str) -> Result<Method, Error> {
        let found = Method::ALL.into_iter().find(|m| m.name() == text);
        found.ok_or_else(|| {
            if text == "st-lf-relay" {
                return Error::other("method", "st-lf-relay is st-lf now, which hands models on")
                    .with_hint("st-lf-links is the plan without hand-overs");
            }
            let names = Method::ALL.map(Method::name);
            let likely = nearest(text, names);
            let hint = likely.map_or(String::new(), |name| format!("did you mean {name}? "));
            let (given, meant) = (text.to_owned(), likely.map(str::to_owned));
            Error::new("method", Reason::Unknown { what: Named::Method, given, meant })
                .with_hint(format!("{hint}There are: {}", names.join(", ")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_users_type() {
        for method in Method::ALL {
            assert_eq!(method.to_string().parse(), Ok(method));
        }
        let wrong = "fedvag".parse::<Method>().unwrap_err();
        assert_eq!(wrong.to_string(), "method: there is no method \"fedvag\"");
        assert!(
            wrong.hint().is_some_and(|h| h.starts_with("did you mean fedavg? There are: st-lf"))
        );
        assert!("quite different".parse::<Method>().is_err());
        let former = "st-lf-relay".parse::<Method>().unwrap_err();
        assert!(former.hint().is_some_and(|h| h.starts_with("st-lf-links")));
    }
}
