//! Divergences as replies to others' means, which are limited: who chooses the means learns something by the reply.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use stlf_method::divergence::Settings;
use stlf_method::divergence::disclosure::{independent, most_told};
use stlf_method::divergence::replies::{nearest_first, told_by_one};
use stlf_method::divergence::sketch::{self, Sketch, Statistic};

use super::{Estimator, Exchange, work};
use crate::publication_record::SampleNames;
use crate::published_data::PublishedData;
use crate::reply_record::{ReplyRecord, Replying};
use crate::roster::Place;
use crate::wire::{Digest, Means, Measured};

impl Exchange {
    /// A record of what it has told of divergences, with the samples of these [names](Exchange::sample_names) that it has now; `None` where nobody learns of its
    /// covariance by them.
    pub fn replying(&self, record: ReplyRecord, samples: &SampleNames) -> Option<Replying> {
        let settings = self.own_separation()?;
        let samples = samples.all.clone();
        let most = most_told(&Settings::Sketch(*settings), self.own.shape);
        let told_by_one = told_by_one(independent(&self.own.inputs, self.own.shape.len()));
        Some(Replying::new(record, samples, told_by_one, most))
    }

    /// What is to be kept of its data, of which it publishes these means, so that it can reply by them once it has others; `None` where it does not reply
    /// by its own covariance. Its samples have these [names](Exchange::sample_names).
    pub fn data_behind(&self, means: &Sketch, samples: &SampleNames) -> Option<PublishedData> {
        let settings = self.own_separation()?;
        work::data_behind(&self.own, settings, means, samples)
    }

    /// Whether these data are behind these means.
    pub(crate) fn are_behind(&self, data: &PublishedData, means: &Sketch) -> bool {
        self.own_separation().is_some_and(|settings| data.are_behind(means, settings))
    }

    /// Its settings, where it measures by its own covariance.
    fn own_separation(&self) -> Option<&sketch::Settings> {
        match &self.estimator {
            Estimator::Sketch { settings, .. }
                if matches!(settings.statistic, Statistic::OwnSeparation { .. }) =>
            {
                Some(settings)
            }
            _ => None,
        }
    }

    /// The same, but it tells divergences only as far as this record allows.
    pub fn replying_by(mut self, replying: Option<Arc<Replying>>) -> Exchange {
        self.replying = replying;
        self
    }

    /// Returns what it has told of divergences, where that is limited. Once there are [pairs](Exchange::pairs), these are among it.
    pub fn told(&self) -> Option<&Arc<Replying>> {
        self.replying.as_ref()
    }

    /// Returns those whose new means got no new reply: they, or all together, have asked too often.
    pub fn withheld(&self) -> &BTreeSet<Place> {
        &self.withheld
    }
}

/// What a device replies to all others, which counts.
#[derive(Debug)]
pub(super) struct Replied {
    pub(super) pairs: Vec<(Place, Measured)>,
    /// Those whose new means get no new reply.
    pub(super) withheld: BTreeSet<Place>,
    /// What the device has told then, if that is more than before.
    pub(super) told: Option<Arc<Replying>>,
}

/// Replies to all others' means. `value` says how far they are.
pub(super) fn replied(
    place: Place,
    settings: &sketch::Settings,
    published: &BTreeMap<Place, Arc<Sketch>>,
    known: &Replying,
    value: impl Fn(Place, &Sketch) -> f64,
) -> Replied {
    let others = published.iter().filter(|(peer, _)| **peer != place);
    let others = others.map(|(peer, sketch)| (*peer, &**sketch));
    let order = match published.get(&place) {
        Some(own) => nearest_first(own, others),
        None => others.map(|(peer, _)| peer).collect(),
    };
    let digest = |peer: Place| (peer, Means::of(&published[&peer], settings).digest());
    let means: Vec<(Place, Digest)> = order.into_iter().map(digest).collect();
    let mut replying = known.clone();
    let replies = replying.reply(&means, |peer| value(peer, &published[&peer]));
    let pair = |(peer, divergence)| (peer, Measured::Divergence(divergence));
    Replied {
        pairs: replies.divergences.into_iter().map(pair).collect(),
        withheld: replies.withheld,
        told: (replying.record() != known.record()).then(|| Arc::new(replying)),
    }
}
