//! Whether a device may publish its data with noise: found at its start, before a long training, and kept before anything is sent.

use stlf_config::Config;
use stlf_data::features::Scale;
use stlf_protocol::privacy_ledger::Ledger;
use stlf_protocol::{Device, Setup};

use super::Error;
use super::state_dir::StateDir;
use crate::protection::Protection;

/// Returns what the device has published with noise once it takes part, or nothing if it publishes without. What it publishes is the
/// same in every epoch, since its data and settings stay as they are while it runs.
///
/// # Errors
/// Its budget does not allow that, or nobody knows what it has published before.
pub(super) fn admitted(
    config: &Config,
    setup: &Setup,
    scale: Scale,
    samples: usize,
    device: &Device,
    kept: &mut StateDir,
) -> Result<Option<Ledger>, Error> {
    let (delta, budget) = (config.divergence.delta(), config.divergence.budget());
    let protection = |ledger: &Ledger| {
        Protection::new(&setup.divergence, setup.shape, samples, ledger, budget).for_inputs(scale)
    };
    let Some(publication) = device.publication() else {
        kept.set_protection(protection(&Ledger::default()));
        return Ok(None);
    };
    let before = kept.ledger()?;
    match before.with(publication, delta, budget) {
        Ok(ledger) => {
            kept.set_protection(protection(&ledger));
            Ok(Some(ledger))
        }
        Err(overspent) => {
            kept.show_refusal(protection(&before).but_refuses(overspent.to_string()))?;
            Err(overspent.into())
        }
    }
}
