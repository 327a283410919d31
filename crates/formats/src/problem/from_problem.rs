//! Turns a problem back into a file.

use std::borrow::Cow;

use stlf_planning::problem::{Link, Model, Problem};

use super::{
    BoundEntry, CostsEntry, DeviceEntry, LinkEnds, LinkTable, Matrix, ProblemFile, ProblemFormat,
    ScaleEntry,
};

impl ProblemFile {
    /// The file that reads back as this problem, every setting spelled out.
    pub fn from_problem(problem: &Problem) -> ProblemFile {
        let mut file = ProblemFile {
            format: ProblemFormat::V1,
            preset: None,
            devices: None,
            divergence: None,
            link_energy: None,
            links: None,
            weights: None,
            bound: None,
            energy_epsilon: None,
            energy_unit: None,
            scale: None,
            costs: None,
            forbidden_links: Vec::new(),
            required_links: Vec::new(),
            disagreement: None,
        };
        let n = problem.len();
        let name = |device: usize| problem.name(device).to_owned();
        let ends = |&(from, to): &(usize, usize)| LinkEnds { from: name(from), to: name(to) };
        file.required_links = problem.required().iter().map(ends).collect();
        let mut devices: Vec<DeviceEntry> = (0..n)
            .map(|i| DeviceEntry {
                name: name(i),
                labeled: None,
                unlabeled: None,
                source_error: None,
                role: problem.pin(i),
                stranger: false,
                all_links: false,
                in_dispute: false,
            })
            .collect();
        match problem.model() {
            Model::Costs(costs) => {
                file.costs = Some(CostsEntry {
                    source: costs.source.clone(),
                    link: Matrix::square(n, |from, to| costs.link[to * n + from]),
                });
            }
            Model::Measured(m) => {
                for (entry, device) in devices.iter_mut().zip(&m.devices) {
                    entry.labeled = Some(device.labeled);
                    entry.unlabeled = Some(device.unlabeled);
                    entry.source_error = device.source_error;
                }
                for stranger in problem.strangers() {
                    devices[stranger].stranger = true;
                }
                for device in problem.all_alike() {
                    devices[device].all_links = true;
                }
                for device in problem.in_dispute() {
                    devices[device].in_dispute = true;
                }
                let mut links = Cow::Borrowed(&m.links);
                for &(link, to) in &m.forbidden {
                    links.to_mut().set(link, to);
                    file.forbidden_links.push(ends(&(link.from, to)));
                }
                if links.count() >= n * n / 2 {
                    let of = |value: fn(Link) -> f64| {
                        Matrix::square(n, |from, to| links.get(from, to).map_or(f64::NAN, value))
                    };
                    file.divergence = Some(of(|link| link.divergence));
                    file.link_energy = Some(of(|link| link.energy));
                } else {
                    file.links = Some(LinkTable::from_links(&links, |i| problem.name(i)));
                }
                file.weights = Some(m.weights.into());
                file.bound = Some(BoundEntry {
                    kind: Some(m.bound.kind),
                    delta: Some(m.bound.delta),
                    complexity: Some(m.bound.complexity.into()),
                    calibration: Some(m.bound.calibration).filter(|&share| share != 1.0),
                });
                file.energy_epsilon = Some(m.energy_epsilon);
                file.energy_unit = Some(m.energy_unit.into());
                file.scale =
                    Some(ScaleEntry::of(problem)).filter(|scale| *scale != ScaleEntry::Unit);
                file.disagreement = m
                    .disagreement
                    .as_ref()
                    .map(|d| (0..n).map(|j| Matrix::square(n, |k, i| d.at(j, k, i))).collect());
            }
        }
        file.devices = Some(devices);
        file
    }
}
