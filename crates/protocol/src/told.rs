//! What was told about samples while a device had them. Samples are known by names, and what was told is never forgotten: one that comes back has its count.

use std::collections::{BTreeMap, BTreeSet};

/// By the name of a sample, what was told about it.
pub(crate) type Told = BTreeMap<String, f64>;

/// The most that was told about one of these samples.
pub(crate) fn most(told: &Told, samples: &BTreeSet<String>) -> f64 {
    about(told, samples).fold(0.0, f64::max)
}

/// Returns what was told about at least half of them.
pub(crate) fn about_half(told: &Told, samples: &BTreeSet<String>) -> f64 {
    let mut all: Vec<f64> = about(told, samples).collect();
    all.sort_by(|a, b| b.total_cmp(a));
    all.get(all.len().div_ceil(2).saturating_sub(1)).copied().unwrap_or_default()
}

/// So much more is told about each of them.
pub(crate) fn add(told: &mut Told, samples: &BTreeSet<String>, more: f64) {
    for name in samples {
        *told.entry(name.clone()).or_default() += more;
    }
}

fn about(told: &Told, samples: &BTreeSet<String>) -> impl Iterator<Item = f64> {
    samples.iter().map(|name| told.get(name).copied().unwrap_or_default())
}
