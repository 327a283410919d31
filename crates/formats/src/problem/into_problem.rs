//! From the file to a checked problem: shapes, names, and what may not stand beside what.

use std::collections::HashMap;

use stlf_planning::bound::{Bound, Complexity};
use stlf_planning::device::Device;
use stlf_planning::error::{Counted, Error, Field, Named, Reason};
use stlf_planning::problem::{
    ENERGY_EPSILON, EnergyUnit, Links, Parts, Preset, Problem, Source, Weights,
};

use super::super::document::{near, shorten};
use super::{CostsEntry, DeviceEntry, LinkEnds, LinkTable, Matrix, ProblemFile, ScaleEntry};

impl ProblemFile {
    /// Checks the file and turns it into a problem, with its links from `links` if given.
    ///
    /// # Errors
    /// Names the first field (and device) that cannot be used.
    pub fn into_problem(mut self, links: Option<LinkTable>) -> Result<Problem, crate::Error> {
        if let Some(costs) = self.costs.take() {
            self.check_exclusive(links.is_some())?;
            return Ok(self.with_costs(costs)?);
        }
        Ok(self.with_measurements(links)?)
    }

    /// Raw costs leave no room for measurements and what weighs them.
    fn check_exclusive(&self, table: bool) -> Result<(), Error> {
        let given = [
            ("divergence", self.divergence.is_some()),
            ("link_energy", self.link_energy.is_some()),
            ("links", self.links.is_some() || table),
            ("preset", self.preset.is_some()),
            ("weights", self.weights.is_some()),
            ("bound", self.bound.is_some()),
            ("energy_epsilon", self.energy_epsilon.is_some()),
            ("energy_unit", self.energy_unit.is_some()),
            ("scale", self.scale.is_some()),
            ("disagreement", self.disagreement.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((field, _)) => {
                Err(Error::conflict(*field, "costs", "cannot be combined with costs").with_hint(
                    "costs replace all measurements and settings: keep one or the other",
                ))
            }
        }
    }

    fn with_costs(self, costs: CostsEntry) -> Result<Problem, Error> {
        let n = costs.source.len();
        let entries = self.devices.unwrap_or_else(|| {
            let name = |i| format!("d{}", i + 1);
            let entry = |i| DeviceEntry {
                name: name(i),
                labeled: None,
                unlabeled: None,
                source_error: None,
                role: None,
                stranger: false,
                all_links: false,
                in_dispute: false,
            };
            (0..n).map(entry).collect()
        });
        if entries.len() != n {
            let (expected, of) = (entries.len(), Counted::Entries);
            return Err(Error::new("costs.source", Reason::Length { found: n, expected, of })
                .with_hint("null stands for a device that cannot be a source"));
        }
        let link = costs.link.into_square(n, "costs.link")?;
        let index = index(&entries);
        let parts = Parts {
            forbidden: resolve(&self.forbidden_links, "forbidden_links", &index)?,
            required: resolve(&self.required_links, "required_links", &index)?,
            pins: entries.iter().map(|d| d.role).collect(),
            source: Source::Costs { source: costs.source, link },
            devices: entries
                .into_iter()
                .map(|d| Device { name: d.name, labeled: 0, unlabeled: 0, source_error: None })
                .collect(),
        };
        Problem::new(parts)
    }

    fn with_measurements(self, table: Option<LinkTable>) -> Result<Problem, Error> {
        let entries = self.devices.ok_or_else(|| {
            Error::missing("devices", "is missing").with_hint("list the devices, or give raw costs")
        })?;
        let n = entries.len();
        if n == 0 {
            return Err(Error::missing("devices", "there are none").with_hint("list at least one"));
        }
        let index = index(&entries);
        let scale = self.scale.unwrap_or_default();
        let given = (self.links, table);
        let links = links(n, self.divergence, self.link_energy, given, scale, &index)?;
        let preset = self.preset.map(Preset::from);
        let weights = self.weights.unwrap_or_default();
        let default_weights = preset.unwrap_or(Preset::Balanced).weights();
        let bound = self.bound.unwrap_or_default();
        let default_complexity = preset.map_or(Complexity::None, Preset::complexity);
        let unit = self.energy_unit.map(EnergyUnit::from);
        let source = Source::Measured {
            links,
            weights: Weights {
                source: weights.source.unwrap_or(default_weights.source),
                target: weights.target.unwrap_or(default_weights.target),
                energy: weights.energy.unwrap_or(default_weights.energy),
            },
            bound: Bound::default().with(|s| {
                s.kind = bound.kind.unwrap_or_default();
                s.delta = bound.delta.unwrap_or(Bound::default().delta);
                s.complexity = bound.complexity.map_or(default_complexity, Complexity::from);
                s.calibration = bound.calibration.unwrap_or(1.0);
            }),
            energy_epsilon: self.energy_epsilon.unwrap_or(ENERGY_EPSILON),
            energy_unit: unit.or(preset.map(Preset::energy_unit)).unwrap_or_default(),
            disagreement: self.disagreement.map(|d| flatten(d, n)).transpose()?,
        };
        let strangers: Vec<usize> = (0..n).filter(|&i| entries[i].stranger).collect();
        let all_alike: Vec<usize> = (0..n).filter(|&i| entries[i].all_links).collect();
        let in_dispute: Vec<usize> = (0..n).filter(|&i| entries[i].in_dispute).collect();
        let parts = Parts {
            forbidden: resolve(&self.forbidden_links, "forbidden_links", &index)?,
            required: resolve(&self.required_links, "required_links", &index)?,
            pins: entries.iter().map(|d| d.role).collect(),
            source,
            devices: devices(entries)?,
        };
        let problem = Problem::new(parts)?.with_strangers(&strangers).with_all_alike(&all_alike);
        let problem = problem.with_in_dispute(&in_dispute);
        scale.check_problem(&problem)?;
        Ok(problem)
    }
}

/// The position of each name in the list.
fn index(entries: &[DeviceEntry]) -> HashMap<String, usize> {
    entries.iter().enumerate().map(|(i, d)| (d.name.clone(), i)).collect()
}

fn devices(entries: Vec<DeviceEntry>) -> Result<Vec<Device>, Error> {
    let device = |(i, entry): (usize, DeviceEntry)| {
        let given = |count: Option<u64>, field: &str| {
            count.ok_or_else(|| {
                let path = format!("devices[{i}].{field}");
                Error::missing(Field::of_device(path, shorten(&entry.name)), "is missing")
                    .with_hint("give the number of samples, 0 if none")
            })
        };
        Ok(Device {
            labeled: given(entry.labeled, "labeled")?,
            unlabeled: given(entry.unlabeled, "unlabeled")?,
            source_error: entry.source_error,
            name: entry.name,
        })
    };
    entries.into_iter().enumerate().map(device).collect()
}

fn links(
    n: usize,
    divergence: Option<Matrix>,
    link_energy: Option<Matrix>,
    (listed, table): (Option<LinkTable>, Option<LinkTable>),
    scale: ScaleEntry,
    index: &HashMap<String, usize>,
) -> Result<Links, Error> {
    let both = |field: &str, other: &str| {
        Err(Error::conflict(field, other, "the links are given twice")
            .with_hint("give them as two matrices, or as links, or as a separate table"))
    };
    let missing = |field: &str| {
        Err(Error::missing(field, "is missing").with_hint(
            "give the matrices divergence and link_energy, or links, or a table (--links)",
        ))
    };
    match (divergence, link_energy, listed, table) {
        (Some(divergence), Some(energy), None, None) => {
            let divergence = divergence.into_square(n, "divergence")?;
            let energy = energy.into_square(n, "link_energy")?;
            Ok(Links::from_rows(n, divergence, energy))
        }
        (None, None, Some(table), None) | (None, None, None, Some(table)) => {
            table.resolve(index, scale)
        }
        (None, None, Some(_), Some(_)) => both("links", "table"),
        (Some(_), _, Some(_), _) | (Some(_), _, _, Some(_)) => both("divergence", "links"),
        (_, Some(_), Some(_), _) | (_, Some(_), _, Some(_)) => both("link_energy", "links"),
        (Some(_), None, None, None) => missing("link_energy"),
        (None, Some(_), None, None) => missing("divergence"),
        (None, None, None, None) => missing("link_energy"),
    }
}

fn flatten(matrices: Vec<Matrix>, n: usize) -> Result<Vec<f64>, Error> {
    if matrices.len() != n {
        let (found, of) = (matrices.len(), Counted::Matrices);
        return Err(Error::new("disagreement", Reason::Length { found, expected: n, of })
            .with_hint("disagreement[receiver][k][i] is how often models k and i differ there"));
    }
    let mut values = Vec::new();
    for (receiver, matrix) in matrices.into_iter().enumerate() {
        values.extend(matrix.into_square(n, &format!("disagreement[{receiver}]"))?);
    }
    Ok(values)
}

fn resolve(
    ends: &[LinkEnds],
    field: &str,
    index: &HashMap<String, usize>,
) -> Result<Vec<(usize, usize)>, Error> {
    let mut pairs = Vec::with_capacity(ends.len());
    for (k, link) in ends.iter().enumerate() {
        let from = device(&link.from, &format!("{field}[{k}].from"), index)?;
        let to = device(&link.to, &format!("{field}[{k}].to"), index)?;
        if from == to {
            let reason = Reason::SelfLink { device: shorten(&link.from) };
            return Err(
                Error::new(format!("{field}[{k}]"), reason).with_hint("from and to must differ")
            );
        }
        pairs.push((from, to));
    }
    Ok(pairs)
}

/// The device of that name, or an error that suggests one.
pub(crate) fn device(
    name: &str,
    field: &str,
    index: &HashMap<String, usize>,
) -> Result<usize, Error> {
    index.get(name).copied().ok_or_else(|| {
        let likely = near(name, index.keys().map(String::as_str));
        let (given, meant) = (shorten(name), likely.map(str::to_owned));
        let error = Error::new(field, Reason::Unknown { what: Named::Device, given, meant });
        match likely {
            Some(best) => error.with_hint(format!("did you mean {best:?}?")),
            None => error.with_hint("name a device of the list"),
        }
    })
}
