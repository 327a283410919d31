//! What a device may publish of its data: found at its start, before a long training, and kept before anything is sent.

use stlf_config::Config;
use stlf_method::divergence::disclosure::{self, Limit};
use stlf_protocol::Setup;
use stlf_protocol::privacy_ledger::Ledger;
use stlf_protocol::publication_record::{Admitted, CurrentMeans, Record};
use stlf_protocol::published_data::PublishedData;
use stlf_protocol::setup::Unsupported;

use super::Error;
use super::making::Made;
use super::state_dir::StateDir;
use crate::protection::Protection;

/// What a device has published once it takes part, which is on disk before that.
pub(super) struct Publications {
    pub(super) counted: Counted,
    /// What is kept of the data behind the last means, if they are those that the device has now.
    pub(super) data: Option<PublishedData>,
}

/// Everything that a device has published, as it counts.
pub(super) enum Counted {
    /// With noise that hides single samples.
    Noisy(Ledger),
    /// Means with base noise alone.
    Exact(Record),
    /// More than means, which its user accepts and nobody counts.
    Not,
}

/// Returns what the device has published once it takes part with these data. What it publishes is the same in every epoch as long as it has them;
/// if they have changed too little since an earlier time, the device is told to publish what it did then. It tells divergences as far as what it has told
/// before allows.
///
/// # Errors
/// Its budget or what it has published before does not allow it, or nobody knows what that was.
pub(super) fn admitted(
    config: &Config,
    made: &mut Made,
    kept: &mut StateDir,
) -> Result<Publications, Error> {
    let Made { device, scale, unscaled, own, .. } = made;
    let accepts = config.divergence.accepts_disclosure();
    let Setup { divergence, shape, .. } = device.setup();
    let check = |accepts| disclosure::check_inputs(divergence, *shape, &own.inputs, accepts);
    check(accepts).map_err(Unsupported::from)?;
    let keeps_rule = check(false).is_ok();
    let names = device.sample_names(unscaled.as_deref());
    if !accepts {
        device.limit_replies(kept.replies()?, &names);
        device.limit_verdicts(kept.verdicts()?, &names);
    }
    let (setup, means) = (device.setup().clone(), device.means(&names));
    let samples = own.samples();
    let (delta, budget) = (config.divergence.delta(), config.divergence.budget());
    let protection = |ledger: &Ledger| {
        // By default what has base noise alone is no part of it.
        let usual = config.divergence.usual_budget();
        let budget = budget.or(usual.filter(|_| ledger.publications_besides() == 0));
        let protection = Protection::new(&setup.divergence, setup.shape, samples, ledger, budget);
        protection.for_inputs(*scale).replying_without_limit(accepts)
    };
    if let Some(means) = means {
        let (admitted, is_within) = without_noise(&kept.record()?, means, &setup, accepts)?;
        let Admitted { record, sketch, behind } = admitted;
        let shown = protection(&Ledger::default()).of(sketch.samples, behind);
        kept.set_protection(if is_within && keeps_rule { shown } else { Protection::Accepted });
        let mut data = None;
        match behind {
            0 => {
                data = device.data_behind(&sketch, &names);
                device.publish(sketch);
            }
            _ => device.publish_again(sketch, kept.published_data()),
        }
        return Ok(Publications { counted: Counted::Exact(record), data });
    }
    let Some(publication) = device.publication() else {
        kept.set_protection(protection(&Ledger::default()));
        return Ok(Publications { counted: Counted::Not, data: None });
    };
    let (alone, record) = (kept.ledger()?, kept.record()?);
    let before = alone.clone().besides(&record);
    let (instead, means) = (publication.instead(&alone), publication.sketch());
    let after = match config.divergence.usual_budget() {
        // What was published with base noise alone keeps to a rule of its own.
        Some(usual) => alone.with(publication, delta, Some(usual)).map(|l| l.besides(&record)),
        None => before.with(publication, delta, budget),
    };
    match (after, instead) {
        (Ok(ledger), _) => {
            kept.set_protection(protection(&ledger));
            let data = means.and_then(|means| device.data_behind(&means, &names));
            Ok(Publications { counted: Counted::Noisy(ledger), data })
        }
        (Err(overspent), Some(last)) if config.divergence.usual_budget().is_some() => {
            let why = format!("{overspent}. It publishes its last means again");
            kept.set_protection(protection(&before).but_refuses(why));
            device.publish_again(last, kept.published_data());
            Ok(Publications { counted: Counted::Noisy(before), data: None })
        }
        (Err(overspent), _) => {
            kept.show_refusal(protection(&before).but_refuses(overspent.to_string()))?;
            Err(overspent.into())
        }
    }
}

/// Returns what a device publishes of these means, and whether others cannot rebuild samples from that. Whoever accepts that they can publishes
/// every change.
fn without_noise(
    before: &Record,
    means: CurrentMeans,
    setup: &Setup,
    accepts: bool,
) -> Result<(Admitted, bool), Error> {
    let limit = Limit::of(&setup.divergence, setup.shape);
    let within = before.with(means.clone(), limit);
    match within {
        Err(_) | Ok(Admitted { behind: 1.., .. }) if accepts => {
            Ok((before.with(means, Limit::lifted())?, false))
        }
        within => {
            let is_within = before.most_told() <= limit.most;
            Ok((within?, is_within))
        }
    }
}
