//! By whose values features are scaled, where nobody has said: chosen by the fleet on labels that it has.
//!
//! Every device with labels plays a target for the others' scouts ([`stlf_method::scout`]) under each scale. Another scale than the
//! fleet's is taken if it is better there by more than a standard error of the paired differences. Labels of targets play no part. How
//! well scouts do also says what divergences are worth ([`calibration`]).

use rayon::prelude::*;
use stlf_config::fleet::{DeviceData, Fleet};
use stlf_config::{Config, model_bytes};
use stlf_data::Dataset;
use stlf_data::features::Scale;
use stlf_method::scout::{Labeled, Scout, at_pretended_targets};
use stlf_protocol::Setup;

use crate::Error;
use crate::record::ScaleRow;
use crate::stages::calibration;
use crate::summary::Spread;

/// The table of the accuracies that decided.
pub(crate) const TABLE: &str = "scale.csv";

/// The scales to choose from; the first is the usual one.
const CANDIDATES: [Scale; 3] = [Scale::Fleet, Scale::Own, Scale::Both];

/// The least number of devices with labels. The differences of fewer tell nothing.
const LEAST_DEVICES: usize = 4;

/// The part of what all links would cost that trying scales may cost.
const BUDGET: f64 = 0.1;

/// A fleet with its scale, and how that was chosen.
pub(crate) struct Scaled {
    /// The devices of the seed, their features scaled.
    pub(crate) fleet: Fleet,
    /// What decided, a row for every scale and device with labels; empty where there was nothing to choose.
    pub(crate) tried: Vec<ScaleRow>,
    /// How well the scouts of the others do at each device with labels, at that scale; empty where none were sent.
    pub(crate) scouted: Vec<f64>,
    /// What each device with labels has to send for it, and for the sum of the scouts that are near it.
    pub(crate) bytes: u64,
}

impl Scaled {
    /// Returns a fleet in which nobody has sent scouts.
    pub(crate) fn unscouted(fleet: Fleet) -> Scaled {
        Scaled { fleet, tried: Vec::new(), scouted: Vec::new(), bytes: 0 }
    }
}

/// Deals the data of a seed, with the scale that is configured or, where none is, the one that does best.
///
/// # Errors
/// Data that cannot be dealt as configured.
pub(crate) fn deal(config: &Config, data: &Dataset, seed: u64) -> Result<Scaled, Error> {
    let scheme = config.scheme(data);
    let dealt = |scale: Option<Scale>| Fleet::deal(data, &scheme, scale, seed);
    let usual = dealt(config.data.scale())?;
    let classes = data.classes().len();
    let is_open = config.data.scale().is_none() && usual.scale == CANDIDATES[0];
    let is_wanted = is_open || calibration::is_open(config);
    if !is_wanted || labeled(&usual).count() < LEAST_DEVICES {
        return Ok(Scaled::unscouted(usual));
    }
    let others = if is_open { &CANDIDATES[1..] } else { &[] };
    let width = usual.shape.len();
    // A device sends its scouts to one that adds them up, and hears the sums.
    let sent = |width: usize| 2 * Scout::bytes(width, classes);
    let wider = |scale: &Scale| sent(if *scale == Scale::Both { 2 * width } else { width });
    let bytes = sent(width) + others.iter().map(wider).sum::<u64>();
    let spec = Setup::new(config, usual.shape, classes, seed)?.spec;
    let targets = usual.len() - labeled(&usual).count();
    if bytes as f64 > BUDGET * targets as f64 * model_bytes(&spec) as f64 {
        return Ok(Scaled::unscouted(usual));
    }
    let others: Vec<Fleet> = others
        .par_iter()
        .map(|&scale| dealt(Some(scale)))
        .collect::<Result<_, stlf_config::Error>>()?;
    let mut fleets = vec![usual];
    fleets.extend(others);
    let mut accuracies: Vec<Vec<f64>> = fleets.iter().map(|fleet| tried(fleet, classes)).collect();
    let tried = if is_open { rows(&fleets, &accuracies, seed) } else { Vec::new() };
    let best = best(&accuracies);
    let (fleet, scouted) = (fleets.swap_remove(best), accuracies.swap_remove(best));
    let near = match calibration::is_open(config) {
        true => Scout::bytes(fleet.shape.len(), classes),
        false => 0,
    };
    Ok(Scaled { fleet, tried, scouted, bytes: bytes + near })
}

/// Returns the devices that have labels, in the order of the fleet.
fn labeled(fleet: &Fleet) -> impl Iterator<Item = &DeviceData> {
    fleet.devices.iter().filter(|device| !device.labels.is_empty())
}

/// The labels of each device that has any, with their inputs.
pub(crate) fn labels(fleet: &Fleet) -> Vec<Labeled<'_>> {
    let width = fleet.shape.len();
    labeled(fleet)
        .map(|DeviceData { inputs, labels, .. }| Labeled {
            inputs: &inputs[..labels.len() * width],
            labels,
        })
        .collect()
}

/// How good the others' scouts are at each device with labels.
fn tried(fleet: &Fleet, classes: usize) -> Vec<f64> {
    at_pretended_targets(&labels(fleet), fleet.shape.len(), classes)
}

/// By how much these accuracies are better than those, if that is more than so many standard errors of their paired differences.
pub(crate) fn gain(better: &[f64], than: &[f64], errors: f64) -> Option<f64> {
    let differences: Vec<f64> = better.iter().zip(than).map(|(b, t)| b - t).collect();
    let spread = Spread::of(&differences)?;
    let error = spread.deviation / (spread.count as f64).sqrt();
    (spread.mean > errors * error).then_some(spread.mean)
}

/// The scale that is better than the first by more than a standard error of their paired differences, and by the most; else the first.
fn best(accuracies: &[Vec<f64>]) -> usize {
    let gain = |(at, one): (usize, &Vec<f64>)| Some((at, gain(one, &accuracies[0], 1.0)?));
    let gains = accuracies.iter().enumerate().filter_map(gain);
    gains.max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(at, _)| at)
}

fn rows(fleets: &[Fleet], accuracies: &[Vec<f64>], seed: u64) -> Vec<ScaleRow> {
    let of_fleet = |(fleet, accuracies): (&Fleet, &Vec<f64>)| -> Vec<ScaleRow> {
        let devices = labeled(fleet).zip(accuracies);
        let row = |(device, &accuracy): (&DeviceData, &f64)| ScaleRow {
            seed,
            scale: fleet.scale.name().to_owned(),
            device: device.name.clone(),
            accuracy,
        };
        devices.map(row).collect()
    };
    fleets.iter().zip(accuracies).flat_map(of_fleet).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_scale_needs_more_than_a_standard_error() {
        let fleet = vec![0.80, 0.70, 0.90, 0.60];
        let plus =
            |by: [f64; 4]| -> Vec<f64> { fleet.iter().zip(by).map(|(f, b)| f + b).collect() };
        assert_eq!(best(&[fleet.clone(), fleet.clone(), fleet.clone()]), 0);
        // Mean 0.05, standard error 0.005 and 0.06.
        let (sure, unsure) = (plus([0.05, 0.06, 0.04, 0.05]), plus([0.2, 0.1, -0.1, 0.0]));
        assert_eq!(best(&[fleet.clone(), sure.clone(), unsure.clone()]), 1);
        assert_eq!(best(&[fleet.clone(), unsure, fleet.clone()]), 0);
        // Of two that are surely better, the one that gains more.
        assert_eq!(best(&[fleet.clone(), sure, plus([0.06; 4])]), 2);
    }
}
