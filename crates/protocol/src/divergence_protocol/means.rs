//! Means between devices. Those that have not changed are not sent again: who has them is told their digest.
//!
//! To say that means are [unchanged](Message::Unchanged) is the same as sending them again. A device says so to those that it has sent
//! them to, and whoever does not have them any more asks for them. So it does not matter whether what either of two devices remembers
//! of the other is true.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use stlf_method::divergence::sketch::{self, Sketch};

use super::{Estimator, Exchange, Step};
use crate::device::{Refusal, note};
use crate::identity::Identity;
use crate::roster::Place;
use crate::shared::Fingerprint;
use crate::wire::{Digest, EpochId, Means, MeansSignature, Message};

/// What a device remembers of means from one epoch to the next: one thing of each kind for a place of the roster. It is not kept on disk,
/// where what others published would outlast the device's work with it.
#[derive(Debug, Default)]
pub struct Remembered {
    /// The last means of each place.
    theirs: BTreeMap<Place, (Digest, Arc<Sketch>)>,
    /// The last of its own that each place was sent.
    sent: BTreeMap<Place, Digest>,
}

impl Remembered {
    /// Forgets all but these.
    pub fn retain(&mut self, is_member: impl Fn(Place) -> bool) {
        self.theirs.retain(|&place, _| is_member(place));
        self.sent.retain(|&place, _| is_member(place));
    }
}

/// Means in one epoch.
#[derive(Debug, Default)]
pub(super) struct MeansOfEpoch {
    pub(super) remembered: Remembered,
    own: Option<Means>,
    /// Those that were told that they have this device's means.
    reminded: BTreeSet<Place>,
    /// Those that were asked for theirs.
    asked: BTreeSet<Place>,
    /// Whose means were passed on to whom.
    passed_on: BTreeSet<(Place, Place)>,
    /// What the device signs its means with, and who may have to pass them on.
    signs: Option<Signs>,
    /// At the planner: what others have signed theirs with.
    signatures: BTreeMap<Place, MeansSignature>,
}

/// What a device signs its means of an epoch with.
#[derive(Debug)]
struct Signs {
    identity: Identity,
    epoch: EpochId,
    settings: Fingerprint,
    /// Who gets the signature.
    planner: Option<Place>,
}

impl Signs {
    /// The signature of means, if they go to the planner.
    fn to(&self, to: Place, digest: Digest) -> Option<MeansSignature> {
        let sign = || MeansSignature::sign(digest, self.epoch, self.settings, &self.identity);
        (self.planner == Some(to)).then(sign)
    }
}

impl MeansOfEpoch {
    /// Publishes this device's own.
    pub(super) fn publish(&mut self, own: Means, others: impl Iterator<Item = Place>) -> Vec<Step> {
        let digest = own.digest();
        let say = |to: Place| {
            let signature = self.signs.as_ref().and_then(|signs| signs.to(to, digest));
            match self.remembered.sent.insert(to, digest) == Some(digest) {
                true => {
                    self.reminded.insert(to);
                    Step::Say(to, Message::Unchanged(digest, signature))
                }
                false => Step::Say(to, Message::Means(own.clone(), signature)),
            }
        };
        let steps = others.map(say).collect();
        self.own = Some(own);
        steps
    }

    /// Another device does not have them. It gets them once in an epoch, however often it asks.
    fn asked_by(&mut self, from: Place) -> Vec<Step> {
        match &self.own {
            Some(own) if self.reminded.remove(&from) => {
                let signs = self.signs.as_ref();
                let signature = signs.and_then(|signs| signs.to(from, own.digest()));
                vec![Step::Say(from, Message::Means(own.clone(), signature))]
            }
            _ => Vec::new(),
        }
    }

    /// Asks a device for means that this one does not have; what is said again on a new connection is asked for again there.
    fn ask(&mut self, from: Place) -> Vec<Step> {
        match self.asked.insert(from) {
            true => vec![Step::Say(from, Message::AskForMeans)],
            false => Vec::new(),
        }
    }
}

impl Exchange {
    /// The same with what the exchange of an epoch before [remembers](Exchange::into_remembered).
    pub fn remembering(mut self, remembered: Remembered) -> Exchange {
        self.means.remembered = remembered;
        self
    }

    /// The same, which signs its means for this epoch, so that the planner can pass them on.
    pub fn signing(
        mut self,
        identity: Identity,
        epoch: EpochId,
        settings: Fingerprint,
    ) -> Exchange {
        let planner = self.members.first().copied();
        self.means.signs = Some(Signs { identity, epoch, settings, planner });
        self
    }

    /// Returns what the next epoch's may know.
    pub fn into_remembered(self) -> Remembered {
        self.means.remembered
    }

    /// As the planner: means that this device has, for one that says that it waits for them. Each is passed on once in an epoch.
    pub fn pass_on(&mut self, of: &[Place], to: Place) -> Vec<Step> {
        let Estimator::Sketch { settings, published, .. } = &self.estimator else {
            return Vec::new();
        };
        if settings.publishes_covariance() {
            return Vec::new();
        }
        let known = of.iter().filter(|&&of| of != to && of != self.own.place);
        let known = known.filter_map(|of| Some((*of, published.get(of)?)));
        let MeansOfEpoch { passed_on, signatures, .. } = &mut self.means;
        let signed = known.filter_map(|(of, sketch)| Some((of, sketch, signatures.get(&of)?)));
        let new = signed.filter(|(of, ..)| passed_on.insert((*of, to)));
        let passed = new.map(|(of, sketch, signature)| {
            Message::PassedOn(of, Means::of(sketch, settings), signature.clone())
        });
        passed.map(|message| Step::Say(to, message)).collect()
    }

    /// Takes another device's means, which that one has signed, from the planner, who has them.
    pub fn hear_passed_on(&mut self, of: Place, means: &Means) -> Result<Vec<Step>, Refusal> {
        let fits = of != self.own.place && self.members.contains(&of);
        match &mut self.estimator {
            Estimator::Sketch { settings, published, .. }
                if fits && !settings.publishes_covariance() =>
            {
                if published.contains_key(&of) {
                    return Ok(Vec::new());
                }
                published.insert(of, fitting(means, settings)?);
                Ok(self.compare())
            }
            _ => Err(Refusal::Unfit("means that nobody can pass on here")),
        }
    }

    /// Takes what another device says of means.
    pub(super) fn hear_of_means(
        &mut self,
        from: Place,
        message: &Message,
    ) -> Result<Vec<Step>, Refusal> {
        let (settings, published) = match &mut self.estimator {
            Estimator::Sketch { settings, published, .. } if !settings.publishes_covariance() => {
                (settings, published)
            }
            _ => return Err(Refusal::Unfit("means, which this estimator has no use for")),
        };
        let theirs = &mut self.means.remembered.theirs;
        let is_new = match message {
            Message::Means(means, _) => {
                let sketch = fitting(means, settings)?;
                let is_new = note(published, from, sketch.clone())?;
                theirs.insert(from, (means.digest(), sketch));
                is_new
            }
            Message::Unchanged(digest, _) => {
                match theirs.get(&from).filter(|(known, _)| known == digest) {
                    Some((_, sketch)) => note(published, from, sketch.clone())?,
                    None if published.contains_key(&from) => return Err(Refusal::Twice(from)),
                    None => return Ok(self.means.ask(from)),
                }
            }
            _ => return Ok(self.means.asked_by(from)),
        };
        if let (true, Message::Means(_, Some(by)) | Message::Unchanged(_, Some(by))) =
            (is_new, message)
        {
            self.means.signatures.insert(from, by.clone());
        }
        Ok(if is_new { self.compare() } else { Vec::new() })
    }
}

fn fitting(means: &Means, settings: &sketch::Settings) -> Result<Arc<Sketch>, Refusal> {
    let other = Refusal::Unfit("means of another number of features");
    let sketch = means.to_sketch(settings).ok_or(other)?;
    // Whoever passes them on writes them again, and their signature must still be one of what it writes.
    match Means::of(&sketch, settings) == *means {
        true => Ok(Arc::new(sketch)),
        false => Err(Refusal::Unfit("means that nobody writes so")),
    }
}
