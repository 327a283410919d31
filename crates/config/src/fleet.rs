//! The devices of one seed with their data, as the method may see it and as only evaluation may.

use std::collections::HashMap;
use std::path::PathBuf;

use stlf_data::domains::{self, Domain};
use stlf_data::features::{self, Scale, Scaler};
use stlf_data::folder::data_folder;
use stlf_data::partition::{Partition, Scheme, Share, deal};
use stlf_data::{Class, Dataset, Shape};

use crate::{Config, Error};

/// The devices of one seed.
#[derive(Debug, Clone)]
pub struct Fleet {
    /// The data of each device.
    pub devices: Vec<DeviceData>,
    /// The shape of an input.
    pub shape: Shape,
    /// By whose values features are scaled; pictures are not.
    pub scale: Scale,
}

/// One device's samples. The method sees all inputs and the known labels.
#[derive(Debug, Clone)]
pub struct DeviceData {
    /// The name of the device.
    pub name: String,
    /// Places of all samples in the data set, those with a known label first.
    pub places: Vec<usize>,
    /// Their inputs, in the same order.
    pub inputs: Vec<f32>,
    /// The labels that the device knows.
    pub labels: Vec<Class>,
    /// How many samples there are without a known label.
    pub unlabeled: usize,
    /// The true classes of all samples, hidden ones too, where the data set has them: for evaluation alone.
    pub truth: Option<Vec<Class>>,
}

impl Fleet {
    /// Deals a data set to devices, and scales their features. Without a scale it is the fleet's, or its own where one device has all:
    /// then nobody knows the others' data.
    pub fn deal(
        data: &Dataset,
        scheme: &Scheme,
        scale: Option<Scale>,
        seed: u64,
    ) -> Result<Fleet, Error> {
        let Partition { devices } = deal(data, scheme, seed)?;
        let usual = if devices.len() == 1 { Scale::Own } else { Scale::Fleet };
        let scaler = Scaler::new(data, scale.unwrap_or(usual));
        let gather = |share| DeviceData::gather(data, &scaler, share);
        let devices = devices.iter().map(gather).collect();
        Ok(Fleet { devices, shape: scaler.shape(), scale: scaler.scale() })
    }

    /// Returns the inputs of all devices.
    pub fn inputs(&self) -> Vec<&[f32]> {
        self.devices.iter().map(|device| &device.inputs[..]).collect()
    }

    /// Every device's number by its name.
    pub fn places(&self) -> HashMap<&str, usize> {
        self.devices.iter().enumerate().map(|(i, device)| (device.name.as_str(), i)).collect()
    }

    /// How many devices there are.
    pub fn len(&self) -> usize {
        self.devices.len()
    }

    /// Whether there is none, which no partition gives.
    pub fn is_empty(&self) -> bool {
        self.devices.is_empty()
    }
}

impl DeviceData {
    fn gather(data: &Dataset, scaler: &Scaler<'_>, share: &Share) -> DeviceData {
        let samples: Vec<usize> = share.samples().collect();
        DeviceData {
            name: share.name.clone(),
            places: samples.clone(),
            inputs: scaler.inputs(&samples),
            // A partition lists only samples with a label as labeled.
            labels: data.labels(&share.labeled).unwrap_or_default(),
            unlabeled: share.unlabeled.len(),
            truth: data.labels(&samples),
        }
    }

    /// How many samples there are.
    pub fn samples(&self) -> usize {
        self.labels.len() + self.unlabeled
    }
}

/// The data set that all seeds share.
///
/// # Errors
/// Data that cannot be read.
pub fn load(config: &Config) -> Result<Dataset, Error> {
    let data = &config.data;
    #[cfg(feature = "images")]
    if let Some(folder) = &data.images {
        let options = stlf_data::image_folder::Options::default();
        return Ok(stlf_data::image_folder::load(folder, &options)?);
    }
    if let Some(table) = &data.features {
        let options = features::Options {
            label: data.label.clone(),
            classes: data.classes.clone(),
            ..features::Options::default()
        };
        return Ok(features::load(table, &options)?);
    }
    let names: Vec<Domain> = data.domains.iter().map(|d| d.parse()).collect::<Result<_, _>>()?;
    let folder = data.folder.clone().or_else(data_folder);
    let options = domains::Options { folder, samples: data.samples, ..domains::Options::default() };
    Ok(domains::load(&names, &options)?)
}

/// What one device has and knows of its data.
#[derive(Debug, Clone)]
pub struct OwnData {
    /// Its samples.
    pub device: DeviceData,
    /// The shape of an input.
    pub shape: Shape,
    /// By whose values features are scaled; pictures are not.
    pub scale: Scale,
    /// The names of all classes.
    pub classes: Vec<String>,
}

/// One device's data as a run deals it. Where the partition has one device only, every place has that: real devices each have data of
/// their own.
///
/// # Errors
/// Data that cannot be read, a place that the partition does not have, or a scale that a device with data of its own cannot know.
pub fn device(config: &Config, seed: u64, place: usize) -> Result<OwnData, Error> {
    let wrong = |message: String, hint: Option<&str>| Error::Setting {
        path: PathBuf::from("configuration"),
        line: None,
        message,
        hint: hint.map(str::to_owned),
    };
    let data = load(config)?;
    let scheme = config.scheme(&data);
    let Fleet { mut devices, shape, scale } =
        Fleet::deal(&data, &scheme, config.data.standardise, seed)?;
    if devices.len() == 1 && scale.needs_fleet() {
        let message = format!(
            "data.standardise: {:?} needs the rows of all devices, but this device has only its own",
            scale.name()
        );
        let hint = "use \"own\", or \"none\" if features have one scale on all devices";
        return Err(wrong(message, Some(hint)));
    }
    let place = if devices.len() == 1 { 0 } else { place };
    if place >= devices.len() {
        let message = format!("partition: {} devices, none at place {place}", devices.len());
        return Err(wrong(message, None));
    }
    let classes = data.classes().to_vec();
    Ok(OwnData { device: devices.swap_remove(place), shape, scale, classes })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use stlf_data::dataset::Values;
    use stlf_data::partition::{ByDomain, Iid};

    use super::*;

    /// A device's rows: three features of its own size, some rows with a label.
    fn rows(device: usize) -> Dataset {
        let (count, size) = (40 + 7 * device, 10f64.powi(3 * device as i32));
        let value = |k: usize| size * (((k * 31 + device) % 17) as f64 + 4.0);
        let labels = (0..count).map(|k| (k % 3 > 0).then_some((k % 2) as Class)).collect();
        let shape = Shape { channels: 1, height: 1, width: 3 };
        let values = Values::Features((0..3 * count).map(value).collect());
        let classes = ["calm", "storm"].map(str::to_owned).to_vec();
        Dataset::new(format!("d{device}"), shape, values, labels, classes).unwrap()
    }

    fn all() -> Dataset {
        rows(0).join(rows(1)).unwrap().join(rows(2)).unwrap()
    }

    /// Inputs by the place of their row in the device's own table.
    fn by_row(device: &DeviceData, first: usize, width: usize) -> Vec<(usize, Vec<f32>)> {
        let inputs = device.inputs.chunks(width).map(<[f32]>::to_vec);
        let mut rows: Vec<_> =
            device.places.iter().map(|place| place - first).zip(inputs).collect();
        rows.sort_by_key(|(row, _)| *row);
        rows
    }

    #[test]
    fn a_device_with_its_own_rows_alone_has_the_simulator_s_inputs() {
        let (by_domain, one) = (ByDomain::default(), Iid { devices: 1, ..Iid::default() });
        let scheme = Scheme::ByDomain(by_domain);
        let simulated = Fleet::deal(&all(), &scheme, Some(Scale::Own), 1).unwrap();
        let mut first = 0;
        for (device, simulated) in simulated.devices.iter().enumerate() {
            let own = rows(device);
            let alone = Fleet::deal(&own, &Scheme::Iid(one.clone()), None, 2).unwrap();
            assert_eq!((alone.scale, alone.len()), (Scale::Own, 1));
            assert_eq!(by_row(&alone.devices[0], 0, 3), by_row(simulated, first, 3));
            first += own.len();
        }
    }

    #[test]
    fn one_table_gives_every_scale_and_the_fleet_s_unless_told() {
        let data = all();
        let scheme = Scheme::ByDomain(ByDomain::default());
        let dealt = |scale| Fleet::deal(&data, &scheme, scale, 1).unwrap();
        let usual = dealt(None);
        assert_eq!((usual.scale, usual.shape), (Scale::Fleet, data.shape()));
        for scale in Scale::ALL {
            let fleet = dealt(Some(scale));
            assert_eq!(fleet.scale, scale);
            let width = if scale == Scale::Both { 6 } else { 3 };
            assert_eq!(fleet.shape.len(), width);
            for (device, same) in fleet.devices.iter().zip(&usual.devices) {
                assert_eq!((&device.places, &device.labels), (&same.places, &same.labels));
                assert_eq!(device.inputs.len(), width * device.samples());
            }
        }
        assert_eq!(dealt(Some(Scale::Fleet)).inputs(), usual.inputs());
    }
}
