//! A mixture as the document `stlf-mixture/1`, and back with every check.

use std::ops::Bound::{Included, Unbounded};

use stlf_data::features::{Series, Windows};
use stlf_data::scaling::Unit;
use stlf_data::{Scaling, Shape};
use stlf_formats::{
    CombineEntry, ExpectedEntry, FileEntry, InputEntry, LayerEntry, MemberEntry, MixtureFile,
    MixtureFormat, ScalingEntry, SeriesEntry, StudentEntry, UnitEntry,
};
use stlf_learn::spec::{Layer, Spec};
use stlf_method::combine::Combine;
use stlf_method::expectation::Expected;
use stlf_planning::error::{Counted, Error, Range, Reason};

use crate::Mixture;

/// More numbers than this in an input, or layers or outputs in a network, are a mistake or an attack.
const MOST_INPUTS: usize = 1 << 24;
const MOST_LAYERS: usize = 100;
const MOST_CHANNELS: usize = 1 << 12;
const MOST_OUTPUTS: usize = 1 << 20;

/// The document of a mixture whose files have these names and hashes.
pub(crate) fn written(
    mixture: &Mixture,
    members: &[FileEntry],
    student: Option<StudentEntry>,
    plan: FileEntry,
) -> MixtureFile {
    let member = |(member, file): (&crate::Member, &FileEntry)| MemberEntry {
        name: member.name.clone(),
        weight: member.weight,
        file: file.file.clone(),
        sha256: file.sha256.clone(),
    };
    MixtureFile {
        format: MixtureFormat::V1,
        device: mixture.device.clone(),
        role: mixture.role,
        epoch: mixture.epoch,
        seed: mixture.seed,
        classes: mixture.classes.clone(),
        input: input(mixture),
        network: mixture.spec.layers().map(|(layer, _)| entry_of(layer)).collect(),
        combine: combine_entry(mixture.combine),
        class_shares: mixture.class_shares.clone(),
        members: mixture.members.iter().zip(members).map(member).collect(),
        student,
        expected: mixture.expected.map(expected_entry),
        plan,
    }
}

/// Returns an expected accuracy as the document has it.
pub(crate) fn expected_entry(expected: Expected) -> ExpectedEntry {
    let Expected { accuracy, low, high } = expected;
    ExpectedEntry { accuracy, low, high }
}

/// The expected accuracy of a document.
///
/// # Errors
/// Numbers that are no accuracies, or an interval that it is not in.
pub(crate) fn expected(entry: ExpectedEntry) -> Result<Expected, Error> {
    let ExpectedEntry { accuracy, low, high } = entry;
    let is_in_order = [0.0, low, accuracy, high, 1.0].is_sorted();
    let expected = is_in_order.then_some(Expected { accuracy, low, high });
    expected.ok_or_else(|| {
        let message = format!(
            "0 ≤ low ≤ accuracy ≤ high ≤ 1 was to hold, but they are {low}, {accuracy} and {high}"
        );
        Error::other("expected", message)
    })
}

fn input(mixture: &Mixture) -> InputEntry {
    let Shape { channels, height, width } = mixture.spec.input();
    let unit = |unit: &Unit| UnitEntry {
        centre: unit.centre,
        deviation: unit.deviation,
        limit: Some(unit.limit).filter(|limit| limit.is_finite()),
    };
    let series_entry = |Series { windows, time, device }: &Series| SeriesEntry {
        window: windows.length,
        stride: windows.stride,
        time: time.clone(),
        device: device.clone(),
    };
    let (scaling, columns, series, units) = match &mixture.scaling {
        Scaling::Pixels => (ScalingEntry::Pixels, None, None, Vec::new()),
        Scaling::Features { columns, units, series } => {
            let scaling = if units.is_empty() { ScalingEntry::None } else { ScalingEntry::Units };
            let units = units.iter().map(|list| list.iter().map(unit).collect()).collect();
            (scaling, Some(columns.clone()), series.as_ref().map(series_entry), units)
        }
    };
    InputEntry { shape: [channels, height, width], scaling, columns, series, units }
}

fn entry_of(layer: Layer) -> LayerEntry {
    match layer {
        Layer::Conv2d { channels, kernel } => LayerEntry::Conv2d { channels, kernel },
        Layer::MaxPool2d => LayerEntry::MaxPool2d,
        Layer::Conv1d { channels, kernel } => LayerEntry::Conv1d { channels, kernel },
        Layer::MaxPool1d => LayerEntry::MaxPool1d,
        Layer::Relu => LayerEntry::Relu,
        Layer::Dropout { p } => LayerEntry::Dropout { p },
        Layer::Dropout2d { p } => LayerEntry::Dropout2d { p },
        Layer::Linear { outputs } => LayerEntry::Linear { outputs },
    }
}

fn layer_of(entry: LayerEntry) -> Layer {
    match entry {
        LayerEntry::Conv2d { channels, kernel } => Layer::Conv2d { channels, kernel },
        LayerEntry::MaxPool2d => Layer::MaxPool2d,
        LayerEntry::Conv1d { channels, kernel } => Layer::Conv1d { channels, kernel },
        LayerEntry::MaxPool1d => Layer::MaxPool1d,
        LayerEntry::Relu => Layer::Relu,
        LayerEntry::Dropout { p } => Layer::Dropout { p },
        LayerEntry::Dropout2d { p } => Layer::Dropout2d { p },
        LayerEntry::Linear { outputs } => Layer::Linear { outputs },
    }
}

/// Returns how models become one, as the document has it.
pub(crate) fn combine_entry(combine: Combine) -> CombineEntry {
    match combine {
        Combine::Predictions => CombineEntry::Predictions,
        Combine::Corrected => CombineEntry::Corrected,
        Combine::Parameters => CombineEntry::Parameters,
    }
}

/// How the document says that models become one.
pub(crate) fn combined(entry: CombineEntry) -> Combine {
    match entry {
        CombineEntry::Predictions => Combine::Predictions,
        CombineEntry::Corrected => Combine::Corrected,
        CombineEntry::Parameters => Combine::Parameters,
    }
}

/// The network, which has an output for every class.
///
/// # Errors
/// Names the field that cannot be.
pub(crate) fn spec(file: &MixtureFile) -> Result<Spec, Error> {
    let [channels, height, width] = file.input.shape;
    let numbers = channels.checked_mul(height).and_then(|n| n.checked_mul(width));
    if !numbers.is_some_and(|n| (1..=MOST_INPUTS).contains(&n)) {
        let message = format!("{channels}×{height}×{width} is no shape of an input");
        return Err(Error::other("input.shape", message));
    }
    if file.network.len() > MOST_LAYERS {
        let message = format!("{} layers are more than {MOST_LAYERS}", file.network.len());
        return Err(Error::other("network", message));
    }
    for (at, layer) in file.network.iter().enumerate() {
        let (size, most) = match *layer {
            LayerEntry::Conv2d { channels, .. } | LayerEntry::Conv1d { channels, .. } => {
                (channels, MOST_CHANNELS)
            }
            LayerEntry::Linear { outputs } => (outputs, MOST_OUTPUTS),
            _ => continue,
        };
        let range = Range::new(Unbounded, Included(most as f64));
        range.check(size as f64, || format!("network[{at}]"))?;
    }
    let layers = file.network.iter().copied().map(layer_of).collect();
    let spec = Spec::new(Shape { channels, height, width }, layers)
        .map_err(|e| Error::other("network", e.to_string()))?;
    let (found, expected) = (file.classes.len(), spec.output().len());
    if found != expected {
        let reason = Reason::Length { found, expected, of: Counted::Classes };
        return Err(Error::new("classes", reason));
    }
    Ok(spec)
}

/// How a sample becomes an input.
///
/// # Errors
/// Names the field that contradicts another.
pub(crate) fn scaling(file: &MixtureFile) -> Result<Scaling, Error> {
    let InputEntry { shape, scaling, columns, series, units } = &file.input;
    let columns = match (scaling, columns) {
        (ScalingEntry::Pixels, _) if series.is_some() => {
            return Err(Error::conflict(
                "input.series",
                "input.scaling",
                "is for columns of a table",
            ));
        }
        (ScalingEntry::Pixels, None) if units.is_empty() => return Ok(Scaling::Pixels),
        (ScalingEntry::Pixels, _) => {
            let message = "pixels have no columns and no units";
            return Err(Error::conflict("input.scaling", "input.columns", message));
        }
        (_, None) => return Err(Error::missing("input.columns", "is missing")),
        (_, Some(columns)) => columns,
    };
    if units.is_empty() != (*scaling == ScalingEntry::None) {
        let message = "belong to the scaling \"units\", and to no other";
        return Err(Error::conflict("input.units", "input.scaling", message));
    }
    let lists = units.len().max(1);
    let expected = match series {
        Some(series) => [lists * columns.len(), 1, series.window],
        None => [1, 1, lists * columns.len()],
    };
    if *shape != expected {
        let [channels, height, width] = shape;
        let message = format!(
            "{channels}×{height}×{width} does not fit {} columns in {lists} scales",
            columns.len()
        );
        return Err(Error::other("input.shape", message));
    }
    if let Some(at) = units.iter().position(|list| list.len() != columns.len()) {
        let (found, expected) = (units[at].len(), columns.len());
        let reason = Reason::Length { found, expected, of: Counted::Units };
        return Err(Error::new(format!("input.units[{at}]"), reason));
    }
    let unit = |entry: &UnitEntry| Unit {
        centre: entry.centre,
        deviation: entry.deviation,
        limit: entry.limit.unwrap_or(f64::INFINITY),
    };
    let units: Vec<Vec<Unit>> = units.iter().map(|l| l.iter().map(unit).collect()).collect();
    if units.iter().flatten().any(|unit| unit.deviation < 0.0 || unit.limit <= 0.0) {
        return Err(Error::other("input.units", "a deviation or a limit is below 0"));
    }
    if let Some(series) = series {
        Range::AT_LEAST_ONE.check(series.stride as f64, || "input.series.stride")?;
    }
    let series = series.as_ref().map(|entry| Series {
        windows: Windows { length: entry.window, stride: entry.stride },
        time: entry.time.clone(),
        device: entry.device.clone(),
    });
    Ok(Scaling::Features { columns: columns.clone(), units, series })
}

/// That the rest of the document makes sense: at least one member, weights, shares of classes, and names of files that stay in their
/// folder.
///
/// # Errors
/// Names the field that cannot be.
pub(crate) fn check(file: &MixtureFile) -> Result<(), Error> {
    if file.members.is_empty() {
        return Err(Error::missing("members", "a mixture needs at least one model"));
    }
    for (at, member) in file.members.iter().enumerate() {
        Range::ABOVE_ZERO.check(member.weight, || format!("members[{at}].weight"))?;
    }
    let is_corrected = file.combine == CombineEntry::Corrected;
    match &file.class_shares {
        Some(_) if !is_corrected => {
            let message = "belong to \"corrected\", and to no other";
            return Err(Error::conflict("class_shares", "combine", message));
        }
        None if is_corrected => return Err(Error::missing("class_shares", "is missing")),
        Some(shares) => {
            let is_share = |share: &f64| *share > 0.0 && *share <= 1.0;
            if shares.len() != file.classes.len() || !shares.iter().all(is_share) {
                return Err(Error::other("class_shares", "are not one share for every class"));
            }
        }
        None => {}
    }
    file.student.as_ref().map_or(Ok(()), check_share)?;
    let named = file.members.iter().map(|member| &member.file);
    let student = file.student.as_ref().map(|student| &student.file);
    for name in named.chain(student).chain([&file.plan.file]) {
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\', ':']) {
            return Err(Error::other("file", format!("{name:?} is not the name of a file here")));
        }
    }
    Ok(())
}

/// Checks that a student has a share that can be.
pub(crate) fn check_share(student: &StudentEntry) -> Result<(), Error> {
    Range::SHARE_ABOVE_ZERO.check(student.share, || "student.share")
}
