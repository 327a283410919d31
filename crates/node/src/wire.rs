//! What devices say to each other. Everything that arrives is hostile until it is checked.

use serde::{Deserialize, Serialize};
use stlf::Role;
use stlf::divergence::discriminant::Count;
use stlf::divergence::sketch::Sketch;

/// The version of these messages. Others are not understood.
pub const VERSION: u16 = 1;

/// The longest message: moments of 4,096 features take a little less than this.
pub const MOST_BYTES: usize = 72 << 20;

/// The longest reason, in bytes.
pub const LONGEST_REASON: usize = 500;

/// The longest roster, in bytes.
pub const LONGEST_ROSTER: usize = 4 << 20;

/// A message on its way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// [`VERSION`].
    pub version: u16,
    /// The epoch that it is about.
    pub epoch: u64,
    /// What is said.
    pub message: Message,
}

/// What is said. Devices are called by their places in the roster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Message {
    /// From the planner to all: an epoch begins, with these devices, ascending.
    Begin(Vec<u32>),
    /// To all: the median distance of the sender's inputs.
    Bandwidth(Option<f64>),
    /// To all: moments of the features of both halves of the sender's inputs.
    Moments([Option<Moments>; 2]),
    /// To the planner: numbers, and nothing else.
    Report(Report),
    /// From the planner to all, signed.
    Plan(SignedPlan),
    /// From the planner to all: there is none, and why.
    NoPlan(String),
    /// From a source to its target: the model may be fetched.
    Offer(Offer),
    /// From a target to the planner: no usable model came from this source.
    Failed(u32),
    /// To the planner: the epoch is over for the sender.
    Done,
    /// From the planner to all: it is over for all.
    Complete,
    /// To the planner: the sender has long waited for these.
    Missing(Vec<u32>),
    /// To whoever is met: the version of the sender's roster. The envelope has the last epoch that it knows of.
    Hello(u64),
    /// To whoever has an older one: a signed roster, as JSON.
    Roster(Vec<u8>),
}

/// A model that may be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Its BLAKE3 hash.
    pub hash: [u8; 32],
    /// Its size.
    pub bytes: u64,
}

/// Moments of features.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    /// Of how many inputs.
    pub samples: u64,
    /// The mean.
    pub mean: Vec<f32>,
    /// The covariance, the lower triangle row by row.
    pub covariance: Vec<f32>,
}

/// What a device knows of itself and of its pairs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Samples with a label.
    pub labeled: u64,
    /// Samples without.
    pub unlabeled: u64,
    /// ε̂, where there are labels.
    pub source_error: Option<f64>,
    /// For every other device of the epoch, ascending.
    pub pairs: Vec<PairReport>,
}

/// What a device knows of a pair that it is in.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PairReport {
    /// The other device.
    pub peer: u32,
    /// The sender's samples that were taken for the peer's.
    pub errors: u64,
    /// The sender's samples.
    pub samples: u64,
    /// Joules of sending a model to the peer; none where it cannot.
    pub joules: Option<f64>,
}

impl PairReport {
    /// The errors as the estimator counts them.
    pub fn count(&self) -> Count {
        Count { errors: self.errors, samples: self.samples }
    }
}

/// A plan with the planner's signature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SignedPlan {
    /// The plan.
    pub plan: Plan,
    /// Of [`Plan::bytes`].
    pub signature: Vec<u8>,
}

/// Who does what in an epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The epoch.
    pub epoch: u64,
    /// The devices that train.
    pub sources: Vec<u32>,
    /// The devices that receive.
    pub targets: Vec<u32>,
    /// Sorted by receiver, then sender.
    pub links: Vec<Link>,
    /// What it costs.
    pub objective: f64,
    /// Whether it is proven that no plan costs less.
    pub optimal: bool,
}

/// A link in use.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// The sender.
    pub from: u32,
    /// The receiver.
    pub to: u32,
    /// α.
    pub weight: f64,
}

impl Plan {
    /// What is signed.
    pub fn bytes(&self) -> Vec<u8> {
        postcard::to_allocvec(self).unwrap_or_default()
    }

    /// A device's role; none for a device that is not in the plan.
    pub fn role(&self, place: usize) -> Option<Role> {
        let listed = |places: &[u32]| places.iter().any(|&p| p as usize == place);
        match (listed(&self.sources), listed(&self.targets)) {
            (true, false) => Some(Role::Source),
            (false, true) => Some(Role::Target),
            _ => None,
        }
    }

    /// The links into a device.
    pub fn incoming(&self, place: usize) -> impl Iterator<Item = Link> + '_ {
        self.links.iter().copied().filter(move |link| link.to as usize == place)
    }
}

/// Why a message is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Too long to be looked at.
    #[error("{0} bytes are more than a message may have")]
    TooLong(usize),
    /// No message.
    #[error("these bytes are no message")]
    Unreadable,
    /// Of another version.
    #[error("messages of version {0} are not understood")]
    Version(u16),
    /// With numbers that cannot be.
    #[error("{0}")]
    Absurd(&'static str),
}

impl Envelope {
    /// A message of this version.
    pub fn new(epoch: u64, message: Message) -> Envelope {
        Envelope { version: VERSION, epoch, message }
    }

    /// As it is sent.
    pub fn to_bytes(&self) -> Vec<u8> {
        postcard::to_allocvec(self).unwrap_or_default()
    }

    /// As it arrives. Nothing is believed: length, version, and every number are looked at.
    ///
    /// # Errors
    /// Says why it is refused.
    pub fn read(bytes: &[u8]) -> Result<Envelope, Malformed> {
        if bytes.len() > MOST_BYTES {
            return Err(Malformed::TooLong(bytes.len()));
        }
        let (version, _) =
            postcard::take_from_bytes::<u16>(bytes).map_err(|_| Malformed::Unreadable)?;
        if version != VERSION {
            return Err(Malformed::Version(version));
        }
        let (envelope, rest): (Envelope, &[u8]) =
            postcard::take_from_bytes(bytes).map_err(|_| Malformed::Unreadable)?;
        if !rest.is_empty() {
            return Err(Malformed::Unreadable);
        }
        envelope.message.check()?;
        Ok(envelope)
    }
}

/// A share from 0 to 1.
fn is_share(x: f64) -> bool {
    (0.0..=1.0).contains(&x)
}

impl Message {
    fn check(&self) -> Result<(), Malformed> {
        let holds = |fine: bool, what| if fine { Ok(()) } else { Err(Malformed::Absurd(what)) };
        match self {
            Message::Begin(places) => {
                holds(places.is_sorted_by(|a, b| a < b), "members are not ascending")
            }
            Message::Bandwidth(bandwidth) => {
                let fine = bandwidth.is_none_or(|b| b.is_finite() && b >= 0.0);
                holds(fine, "a bandwidth is below 0")
            }
            Message::Moments(halves) => halves.iter().flatten().try_for_each(Moments::check),
            Message::Report(report) => report.check(),
            Message::Plan(signed) => signed.plan.check(),
            Message::NoPlan(reason) => holds(reason.len() <= LONGEST_REASON, "a long reason"),
            Message::Missing(places) => {
                holds(places.is_sorted_by(|a, b| a < b), "places are not ascending")
            }
            Message::Roster(bytes) => holds(bytes.len() <= LONGEST_ROSTER, "a long roster"),
            Message::Offer(_) | Message::Failed(_) | Message::Hello(_) => Ok(()),
            Message::Done | Message::Complete => Ok(()),
        }
    }
}

impl Moments {
    /// As the estimator takes them.
    pub fn to_sketch(&self) -> Sketch {
        let (samples, mean) = (self.samples, self.mean.clone());
        Sketch { samples, mean, covariance: Some(self.covariance.clone()) }
    }

    /// As they are sent.
    pub fn of(sketch: &Sketch) -> Moments {
        Moments {
            samples: sketch.samples,
            mean: sketch.mean.clone(),
            covariance: sketch.covariance.clone().unwrap_or_default(),
        }
    }

    fn check(&self) -> Result<(), Malformed> {
        let side = self.mean.len();
        // Features have length 1, so that no moment is larger.
        let fine = |x: &f32| x.is_finite() && x.abs() <= 2.0;
        if self.samples == 0 || self.covariance.len() != side * (side + 1) / 2 {
            return Err(Malformed::Absurd("moments of another size than they claim"));
        }
        match self.mean.iter().chain(&self.covariance).all(fine) {
            true => Ok(()),
            false => Err(Malformed::Absurd("a moment is not a number up to 2")),
        }
    }
}

impl Report {
    fn check(&self) -> Result<(), Malformed> {
        let samples = self.labeled.checked_add(self.unlabeled);
        if samples.is_none_or(|n| n == 0 || n > 1 << 48) {
            return Err(Malformed::Absurd("a device has no samples, or more than there are"));
        }
        if self.source_error.is_some() != (self.labeled > 0)
            || self.source_error.is_some_and(|e| !is_share(e))
        {
            return Err(Malformed::Absurd("a source error is not from 0 to 1"));
        }
        if !self.pairs.is_sorted_by(|a, b| a.peer < b.peer) {
            return Err(Malformed::Absurd("pairs are not ascending"));
        }
        let fine = |pair: &PairReport| {
            let joules = pair.joules.is_none_or(|j| j.is_finite() && (0.0..1e15).contains(&j));
            pair.errors <= pair.samples && samples.is_some_and(|n| pair.samples <= n) && joules
        };
        match self.pairs.iter().all(fine) {
            true => Ok(()),
            false => {
                Err(Malformed::Absurd("a pair has more errors than samples, or absurd joules"))
            }
        }
    }
}

impl Plan {
    fn check(&self) -> Result<(), Malformed> {
        let holds = |fine: bool, what| if fine { Ok(()) } else { Err(Malformed::Absurd(what)) };
        let ascending = |places: &[u32]| places.is_sorted_by(|a, b| a < b);
        let apart = !self.sources.iter().any(|s| self.targets.binary_search(s).is_ok());
        holds(
            ascending(&self.sources) && ascending(&self.targets) && apart,
            "a plan's devices are not ascending, or have two roles",
        )?;
        let between = |link: &Link| {
            self.sources.binary_search(&link.from).is_ok()
                && self.targets.binary_search(&link.to).is_ok()
                && is_share(link.weight)
        };
        holds(self.links.iter().all(between), "a link is not from a source to a target")?;
        for &target in &self.targets {
            let sum: f64 = self.incoming(target as usize).map(|link| link.weight).sum();
            holds((sum - 1.0).abs() < 1e-6, "a target's weights do not sum to one")?;
        }
        holds(self.objective.is_finite(), "an objective is not a number")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plan() -> Plan {
        Plan {
            epoch: 3,
            sources: vec![0, 2],
            targets: vec![1],
            links: vec![
                Link { from: 0, to: 1, weight: 0.25 },
                Link { from: 2, to: 1, weight: 0.75 },
            ],
            objective: 1.5,
            optimal: true,
        }
    }

    fn report() -> Report {
        let pair = PairReport { peer: 1, errors: 3, samples: 10, joules: Some(2.5) };
        Report { labeled: 8, unlabeled: 4, source_error: Some(0.25), pairs: vec![pair] }
    }

    fn samples() -> Vec<Message> {
        let half = Moments { samples: 9, mean: vec![0.5; 3], covariance: vec![0.1; 6] };
        vec![
            Message::Begin(vec![0, 1, 5]),
            Message::Bandwidth(Some(2.5)),
            Message::Bandwidth(None),
            Message::Moments([Some(half), None]),
            Message::Report(report()),
            Message::Plan(SignedPlan { plan: plan(), signature: vec![7; 64] }),
            Message::NoPlan("nobody has labels".to_owned()),
            Message::Offer(Offer { hash: [3; 32], bytes: 90_000 }),
            Message::Failed(2),
            Message::Done,
            Message::Complete,
            Message::Missing(vec![1, 4]),
            Message::Hello(7),
            Message::Roster(b"{}".to_vec()),
        ]
    }

    #[test]
    fn messages_are_read_as_they_were_sent() {
        for message in samples() {
            let sent = Envelope::new(4, message);
            assert_eq!(Envelope::read(&sent.to_bytes()), Ok(sent));
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let absurd = |message: Message| {
            let bytes = Envelope::new(1, message).to_bytes();
            matches!(Envelope::read(&bytes), Err(Malformed::Absurd(_)))
        };
        assert!(absurd(Message::Begin(vec![1, 1])));
        assert!(absurd(Message::Bandwidth(Some(f64::NAN))));
        assert!(absurd(Message::Bandwidth(Some(-1.0))));
        let half = |mean: Vec<f32>, covariance| Moments { samples: 9, mean, covariance };
        for moments in [
            half(vec![f32::INFINITY], vec![0.0]),
            half(vec![0.0; 2], vec![0.0; 2]),
            half(vec![1e9], vec![0.0]),
            Moments { samples: 0, ..half(vec![0.0], vec![0.0]) },
        ] {
            assert!(absurd(Message::Moments([Some(moments), None])));
        }
        let lying = |change: fn(&mut Report)| {
            let mut report = report();
            change(&mut report);
            absurd(Message::Report(report))
        };
        assert!(lying(|r| r.source_error = Some(-0.1)));
        assert!(lying(|r| r.source_error = Some(f64::NAN)));
        assert!(lying(|r| r.source_error = None));
        assert!(lying(|r| r.labeled = u64::MAX));
        assert!(lying(|r| (r.labeled, r.unlabeled, r.source_error) = (0, 0, None)));
        assert!(lying(|r| r.pairs[0].errors = 11));
        assert!(lying(|r| r.pairs[0].samples = 1_000));
        assert!(lying(|r| r.pairs[0].joules = Some(f64::INFINITY)));
        assert!(lying(|r| r.pairs.push(r.pairs[0])));
        let wrong = |change: fn(&mut Plan)| {
            let mut plan = plan();
            change(&mut plan);
            absurd(Message::Plan(SignedPlan { plan, signature: Vec::new() }))
        };
        assert!(wrong(|p| p.links[0].weight = 0.9));
        assert!(wrong(|p| p.links[0].from = 1));
        assert!(wrong(|p| p.targets.push(2)));
        assert!(wrong(|p| p.links.clear()));
        assert!(wrong(|p| p.objective = f64::NAN));
    }

    #[test]
    fn other_versions_and_long_or_trailing_bytes_are_refused() {
        let mut sent = Envelope::new(1, Message::Bandwidth(None));
        let mut bytes = sent.to_bytes();
        bytes.push(0);
        assert_eq!(Envelope::read(&bytes), Err(Malformed::Unreadable));
        sent.version = 2;
        assert_eq!(Envelope::read(&sent.to_bytes()), Err(Malformed::Version(2)));
        let long = vec![1; MOST_BYTES + 1];
        assert_eq!(Envelope::read(&long), Err(Malformed::TooLong(MOST_BYTES + 1)));
        assert_eq!(Envelope::read(&[]), Err(Malformed::Unreadable));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            if let Ok(envelope) = Envelope::read(&bytes) {
                prop_assert_eq!(Envelope::read(&envelope.to_bytes()), Ok(envelope));
            }
        }

        #[test]
        fn no_flipped_byte_makes_it_panic(which in 0..6_usize, at in any::<prop::sample::Index>(), to in any::<u8>()) {
            let mut bytes = Envelope::new(4, samples()[which].clone()).to_bytes();
            let at = at.index(bytes.len());
            bytes[at] = to;
            let _ = Envelope::read(&bytes);
        }
    }
}
