//! Means on the wire: sixteen bits each, and a digest by which whoever has them knows them again.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use stlf_method::divergence::sketch::{Settings, Sketch};

use super::{EpochId, Malformed, is_number_of_samples};
use crate::identity::{Identity, PeerId};
use crate::shared::Fingerprint;

/// What a signature of means is for.
const MEANS: &str = "stlf-means/1";

/// Names the means that a device sent before. Who finds others with the same digest deceives nobody but itself: it is looked up among
/// what its own sender sent.
pub type Digest = [u8; 16];

/// Means of features. Any numbers can be means; how large a step is follows from the settings and the number of samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Means {
    /// Of how many inputs.
    samples: u64,
    /// How many steps each mean is from 0, the lower byte first. As bytes, since a number of steps would be written in three.
    steps: Vec<[u8; 2]>,
}

/// A device's signature of the means that it has in an epoch, by which the planner can show whose they are when it passes them on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeansSignature(Vec<u8>);

impl MeansSignature {
    /// Signs means with this digest for an epoch, in which they were measured by these settings.
    pub fn sign(
        digest: Digest,
        epoch: EpochId,
        settings: Fingerprint,
        identity: &Identity,
    ) -> MeansSignature {
        MeansSignature(identity.sign(MEANS, &signed_bytes(digest, epoch, settings)))
    }

    /// Returns whether the device with this key has signed these means for this epoch and these settings.
    pub fn is_of(
        &self,
        key: PeerId,
        digest: Digest,
        epoch: EpochId,
        settings: Fingerprint,
    ) -> bool {
        key.has_signed(MEANS, &signed_bytes(digest, epoch, settings), &self.0)
    }
}

fn signed_bytes(digest: Digest, epoch: EpochId, settings: Fingerprint) -> Vec<u8> {
    postcard::to_allocvec(&(epoch, settings, digest)).unwrap_or_default()
}

impl Means {
    /// As they are sent.
    pub fn of(sketch: &Sketch, settings: &Settings) -> Means {
        let steps = sketch.to_steps(settings).into_iter().map(i16::to_le_bytes).collect();
        Means { samples: sketch.samples, steps }
    }

    /// As the estimator takes them; `None` if there are more or fewer than these settings ask for.
    pub fn to_sketch(&self, settings: &Settings) -> Option<Sketch> {
        let steps: Vec<i16> = self.steps.iter().copied().map(i16::from_le_bytes).collect();
        let fits = steps.len() == settings.features;
        fits.then(|| Sketch::from_steps(self.samples, &steps, settings))
    }

    /// Returns the digest by which they are known again.
    pub fn digest(&self) -> Digest {
        let mut hash = Sha256::new_with_prefix(self.samples.to_le_bytes());
        self.steps.iter().for_each(|steps| hash.update(steps));
        let whole: [u8; 32] = hash.finalize().into();
        std::array::from_fn(|k| whole[k])
    }

    pub(super) fn check(&self) -> Result<(), Malformed> {
        match is_number_of_samples(self.samples) {
            true => Ok(()),
            false => Err(Malformed::Absurd("means of no samples, or of more than there are")),
        }
    }
}
