//! The devices of one seed with their data, as the method may see it and as only evaluation may.

use std::collections::HashMap;
use std::path::PathBuf;

use stlf_data::domains::{self, Domain};
use stlf_data::folder::data_folder;
use stlf_data::partition::{Partition, Scheme, Share, deal};
use stlf_data::{Class, Dataset, Shape, features};

use crate::{Config, Error};

/// The devices of one seed.
#[derive(Debug, Clone)]
pub struct Fleet {
    /// The data of each device.
    pub devices: Vec<DeviceData>,
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
    /// Deals a data set to devices.
    pub fn deal(data: &Dataset, scheme: &Scheme, seed: u64) -> Result<Fleet, Error> {
        let Partition { devices } = deal(data, scheme, seed)?;
        Ok(Fleet { devices: devices.iter().map(|share| DeviceData::gather(data, share)).collect() })
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
    fn gather(data: &Dataset, share: &Share) -> DeviceData {
        let samples: Vec<usize> = share.samples().collect();
        DeviceData {
            name: share.name.clone(),
            places: samples.clone(),
            inputs: data.inputs(&samples),
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
            standardise: data.standardise,
            ..features::Options::default()
        };
        return Ok(features::load(table, &options)?);
    }
    let names: Vec<Domain> = data.domains.iter().map(|d| d.parse()).collect::<Result<_, _>>()?;
    let folder = data.folder.clone().or_else(data_folder);
    let options = domains::Options { folder, samples: data.samples, ..domains::Options::default() };
    Ok(domains::load(&names, &options)?)
}

/// One device's data as a run deals it, its shape and the names of all classes. Where the partition has one device
/// only, every place has that: real devices each have data of their own.
///
/// # Errors
/// Data that cannot be read, or a place that the partition does not have.
pub fn device(
    config: &Config,
    seed: u64,
    place: usize,
) -> Result<(DeviceData, Shape, Vec<String>), Error> {
    let data = load(config)?;
    let mut fleet = Fleet::deal(&data, &config.scheme(&data), seed)?;
    let place = if fleet.len() == 1 { 0 } else { place };
    if place >= fleet.len() {
        let message = format!("partition: {} devices, none at place {place}", fleet.len());
        let path = PathBuf::from("configuration");
        return Err(Error::Setting { path, line: None, message, hint: None });
    }
    Ok((fleet.devices.swap_remove(place), data.shape(), data.classes().to_vec()))
}
