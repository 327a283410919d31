//! The devices of one seed with their data, as the method may see it and as only evaluation may.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stlf_data::domains::{self, Domain};
use stlf_data::features::{self, Origin, OwnScale, Scale, Scaler};
use stlf_data::folder::data_folder;
use stlf_data::partition::{Iid, Partition, Scheme, Share, deal};
use stlf_data::{Class, Dataset, Scaling, Shape};
use stlf_method::known::Known;
use stlf_method::learner::UserLearner;

use crate::answers::Answers;
use crate::{Config, Error, Wrong};

/// The devices of one seed, with their data.
#[derive(Debug, Clone)]
pub struct Fleet {
    /// The data of each device, in the order of the devices.
    pub devices: Vec<DeviceData>,
    /// The shape that every input has.
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
    pub inputs: Arc<[f32]>,
    /// How the device's samples became inputs.
    pub scaling: Scaling,
    /// The labels that the device knows.
    pub labels: Vec<Class>,
    /// How many samples there are without a known label.
    pub unlabeled: usize,
    /// Samples among these whose labels somebody has told since, by their place in the order of `places`.
    pub answers: Vec<Known>,
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
        let scaler = scaler(data, scale, devices.len());
        let gather = |share| DeviceData::gather(data, share, |samples| scaler.scaling(samples));
        let mut devices: Vec<DeviceData> = devices.iter().map(gather).collect();
        for device in devices.iter_mut().take(scheme.mislabeled_devices()) {
            let next = |label: &Class| (label + 1) % data.classes().len() as Class;
            device.labels = device.labels.iter().map(next).collect();
        }
        Ok(Fleet { devices, shape: scaler.shape(), scale: scaler.scale() })
    }

    /// Gives every device the answers about its samples.
    ///
    /// # Errors
    /// Two labels for one sample.
    pub fn answer(&mut self, answers: &Answers) -> Result<(), Error> {
        for device in &mut self.devices {
            device.answers = answers.of(&device.name, &device.places, &device.known())?;
        }
        Ok(())
    }

    /// Returns the inputs of all devices.
    pub fn inputs(&self) -> Vec<&[f32]> {
        self.devices.iter().map(|device| &device.inputs[..]).collect()
    }

    /// Returns the number of every device by its name.
    pub fn places(&self) -> HashMap<&str, usize> {
        self.devices.iter().enumerate().map(|(i, device)| (device.name.as_str(), i)).collect()
    }

    /// Returns the number of devices.
    pub fn len(&self) -> usize {
        self.devices.len()
    }

    /// Whether there is none, which no partition gives.
    pub fn is_empty(&self) -> bool {
        self.devices.is_empty()
    }
}

/// The most bytes of a device's name, by which its files are called.
const LONGEST_NAME: usize = 200;

/// Checks that files can be called by the names of these devices, inside the folder that they are written to. `source` says where the names are from.
///
/// # Errors
/// Names the first device that no file can be called by.
pub fn check_names<'n>(
    names: impl IntoIterator<Item = &'n str>,
    source: &Path,
) -> Result<(), Error> {
    let is_one = |name: &str| {
        let is_plain = |c: char| !c.is_control() && c != '/' && c != '\\';
        let is_here = name.is_empty() || name == "." || name == "..";
        !is_here && name.len() <= LONGEST_NAME && name.chars().all(is_plain)
    };
    match names.into_iter().find(|name| !is_one(name)) {
        None => Ok(()),
        Some(name) => {
            let shown: String = name.chars().take(40).collect();
            Err(Error::Setting {
                path: source.to_owned(),
                line: None,
                what: Wrong::Name(shown),
                hint: Some(format!(
                    "use a name of at most {LONGEST_NAME} bytes without / and \\, which is not . or .."
                )),
            })
        }
    }
}

/// Without a scale, the usual one of so many devices.
fn scaler(data: &Dataset, scale: Option<Scale>, devices: usize) -> Scaler<'_> {
    let usual = if devices == 1 { Scale::Own } else { Scale::Fleet };
    Scaler::new(data, scale.unwrap_or(usual))
}

impl DeviceData {
    fn gather(
        data: &Dataset,
        share: &Share,
        scaling: impl FnOnce(&[usize]) -> Scaling,
    ) -> DeviceData {
        let samples: Vec<usize> = share.samples().collect();
        let scaling = scaling(&samples);
        DeviceData {
            name: share.name.clone(),
            places: samples.clone(),
            inputs: scaling.inputs(data, &samples).into(),
            scaling,
            // A partition lists only samples with a label as labeled.
            labels: data.labels(&share.labeled).unwrap_or_default(),
            unlabeled: share.unlabeled.len(),
            answers: Vec::new(),
            truth: data.labels(&samples),
        }
    }

    /// The data of a device of this name as its learner tells them. Features stay as they are.
    ///
    /// # Errors
    /// What the learner tells cannot be.
    pub fn of_learner(name: &str, user: &UserLearner) -> Result<DeviceData, stlf_planning::Error> {
        user.check()?;
        Ok(DeviceData {
            name: name.to_owned(),
            places: user.places.clone(),
            inputs: user.features.as_slice().into(),
            scaling: Scaling::Features { columns: Vec::new(), units: Vec::new(), series: None },
            labels: user.labels.clone(),
            unlabeled: user.places.len() - user.labels.len(),
            answers: Vec::new(),
            truth: user.truth().map(<[Class]>::to_vec),
        })
    }

    /// Returns the number of samples, with and without a known label.
    pub fn samples(&self) -> usize {
        self.labels.len() + self.unlabeled
    }

    /// Every sample whose label the device knows: those that it trains on, and answers.
    pub fn known(&self) -> Vec<Known> {
        let own = self.labels.iter().copied().enumerate();
        own.chain(self.answers.iter().copied()).collect()
    }
}

/// The data set that all seeds share.
///
/// # Errors
/// Data that cannot be read.
pub fn load(config: &Config) -> Result<Dataset, Error> {
    load_drawing(config, None)
}

/// The same. Where all samples are drawn, only these are.
fn load_drawing(config: &Config, only: Option<HashSet<usize>>) -> Result<Dataset, Error> {
    let data = &config.data;
    #[cfg(feature = "images")]
    if let Some(folder) = &data.images {
        let size = data.image_size.map(|side| [side, side]);
        let (colour, classes) = (data.colour, data.classes.clone());
        let options = stlf_data::image_folder::Options { size, colour, classes };
        return Ok(stlf_data::image_folder::load(folder, &options)?);
    }
    if let Some(table) = &data.features {
        return Ok(features::load(table, &data.table_options())?);
    }
    let names: Vec<Domain> = data.domains.iter().map(|d| d.parse()).collect::<Result<_, _>>()?;
    let folder = data.folder.clone().or_else(data_folder);
    let options = domains::Options {
        folder,
        colour: data.colour,
        samples: data.samples,
        writers: data.writers,
        only,
        ..domains::Options::default()
    };
    Ok(domains::load(&names, &options)?)
}

/// The file of each sample of the data, where samples are pictures of one's own.
///
/// # Errors
/// A folder that cannot be read.
pub fn files(config: &Config) -> Result<Option<Vec<PathBuf>>, Error> {
    match &config.data.images {
        #[cfg(feature = "images")]
        Some(folder) => Ok(Some(stlf_data::image_folder::files(folder)?)),
        #[cfg(not(feature = "images"))]
        Some(_) => Ok(None),
        None => Ok(None),
    }
}

/// The answers that a configuration names, about this data.
///
/// # Errors
/// A table that cannot be read, a label that is no class, or a sample that the data does not have.
pub fn answers(config: &Config, data: &Dataset) -> Result<Option<Answers>, Error> {
    let Some(path) = &config.data.answers else { return Ok(None) };
    let answers = Answers::read(path, data.classes())?;
    answers.check(data.len())?;
    Ok(Some(answers))
}

/// What one device has and knows of its data.
#[derive(Debug, Clone)]
pub struct OwnData {
    /// The samples of the device.
    pub device: DeviceData,
    /// The shape that every input has.
    pub shape: Shape,
    /// By whose values features are scaled; pictures are not.
    pub scale: Scale,
    /// The scale of its own, where its features have one, and where that comes from.
    pub own_scale: Option<(OwnScale, Origin)>,
    /// Its samples as they are in the table, where its features have a scale of its own: they stay what they are when that changes.
    pub unscaled: Option<Vec<f64>>,
    /// The names of its features in their order, where its samples are rows of a table.
    pub columns: Option<Vec<String>>,
    /// The names of all classes, in the order of their indices.
    pub classes: Vec<String>,
}

/// The data of the device at a place and of a name, as a run deals it. Where the partition has one device only, every place has that: real devices each have data of
/// their own. Features that have a scale of the device's own have the one that is kept in a file, where there is one that still fits.
///
/// # Errors
/// Data or a kept scale that cannot be read, a place that the partition does not have, or a scale that a device with data of its own cannot know.
pub fn device(
    config: &Config,
    seed: u64,
    (place, name): (usize, &str),
    kept_scale: &Path,
) -> Result<OwnData, Error> {
    let wrong = |what: Wrong, hint: Option<&str>| Error::Setting {
        path: PathBuf::from("configuration"),
        line: None,
        what,
        hint: hint.map(str::to_owned),
    };
    // Who has which samples follows from their labels, so the pictures of others are never drawn.
    let mut data = load_drawing(config, Some(HashSet::new()))?;
    let scheme = match (&config.partition, config.scheme(&data)) {
        // A device does not deal the rows of its own table to others.
        (None, Scheme::Iid(_)) => Scheme::Iid(Iid { devices: 1, ..Iid::default() }),
        (_, scheme) => scheme,
    };
    let Partition { devices } = deal(&data, &scheme, seed)?;
    let place = if devices.len() == 1 { 0 } else { place };
    if let Some(share) = devices.get(place).filter(|_| config.data.is_drawn()) {
        data = load_drawing(config, Some(share.samples().collect()))?;
    }
    let scaler = scaler(&data, config.data.scale(), devices.len());
    let scale = scaler.scale();
    if devices.len() == 1 && scale.needs_fleet() {
        let hint = "use \"own\", or \"none\" if features have one scale on all devices";
        return Err(wrong(Wrong::NeedsFleet(scale.name()), Some(hint)));
    }
    let Some(share) = devices.get(place) else {
        return Err(wrong(Wrong::NoPlace { devices: devices.len(), place }, None));
    };
    let samples: Vec<usize> = share.samples().collect();
    let columns = config.feature_columns()?;
    let own_scale = match columns.as_deref().filter(|_| scale.needs_own()) {
        Some(columns) => {
            let today = scaler.own_scale(&samples, columns);
            Some(OwnScale::kept_or(OwnScale::read(kept_scale)?, today))
        }
        None => None,
    };
    let mut device = DeviceData::gather(&data, share, |samples| match &own_scale {
        Some((own, _)) => scaler.scaling_by(own),
        None => scaler.scaling(samples),
    });
    if let Some(answers) = answers(config, &data)? {
        device.answers = answers.of(name, &device.places, &device.known())?;
    }
    let unscaled = scaler.unscaled(&samples).filter(|_| scale.needs_own());
    let classes = data.classes().to_vec();
    Ok(OwnData { device, shape: scaler.shape(), scale, own_scale, unscaled, columns, classes })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use stlf_data::atomic_folder::Folder;
    use stlf_data::dataset::Values;
    use stlf_data::partition::{Arrangement, ByDomain, ClassesPerDevice, Iid, Paper};

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

    #[test]
    fn a_device_that_draws_its_digits_alone_has_what_the_run_deals_it() {
        let mut config = Config::default();
        config.data.domains = ["strokes", "strokes-textured"].map(str::to_owned).to_vec();
        config.data.samples = Some(300);
        config.partition =
            Some(Scheme::ByDomain(ByDomain { devices_per_domain: 2, ..ByDomain::default() }));
        let data = load(&config).unwrap();
        let fleet = Fleet::deal(&data, &config.scheme(&data), None, 5).unwrap();
        assert!(fleet.len() > 1);
        for (place, dealt) in fleet.devices.iter().enumerate() {
            let own = device(&config, 5, (place, &dealt.name), Path::new("none.json")).unwrap();
            assert_eq!(own.device.places, dealt.places);
            assert_eq!(own.device.inputs, dealt.inputs, "device {place}");
            assert_eq!(own.device.truth, dealt.truth);
        }
    }

    #[test]
    fn mislabeled_devices_have_the_class_after_the_true_one() {
        let data = all();
        let paper = |mislabeled_devices| {
            Scheme::Paper(Paper {
                devices: 4,
                scale: 0.01,
                classes_per_device: ClassesPerDevice::Count(2),
                arrangement: Arrangement::Mixed,
                mislabeled_devices,
                ..Paper::default()
            })
        };
        let fleet = Fleet::deal(&data, &paper(1), None, 1).unwrap();
        let honest = Fleet::deal(&data, &paper(0), None, 1).unwrap();
        let [first, second] = [0, 1].map(|i| (&fleet.devices[i], &honest.devices[i]));
        assert!(!first.0.labels.is_empty());
        assert!(first.0.labels.iter().zip(&first.1.labels).all(|(wrong, own)| wrong + own == 1));
        assert_eq!(first.0.truth, first.1.truth);
        assert_eq!(second.0.labels, second.1.labels);
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

    /// A table of so many rows, of these columns and a label.
    fn write_table(path: &Path, columns: &str, rows: usize) {
        let row = |k: usize| format!("{},{},{}\n", k * k % 211, 700 - k % 7, ["a", "b"][k % 2]);
        let text = format!("{columns},label\n") + &(0..rows).map(row).collect::<String>();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn a_kept_scale_gives_a_row_that_stays_the_same_inputs() {
        let folder = tempfile::tempdir().unwrap();
        let (table, kept) = (folder.path().join("own.csv"), folder.path().join("scale.json"));
        let features = format!("data.features={}", table.display());
        let config = Config::default()
            .with([features.as_str(), "partition.kind=iid", "partition.devices=1"])
            .unwrap();
        let start = |columns: &str, rows: usize| {
            write_table(&table, columns, rows);
            let own = device(&config, 1, (0, "gate"), &kept).unwrap();
            let (scale, origin) = own.own_scale.unwrap();
            let kept = Folder::open(folder.path()).unwrap();
            kept.write_json_durably("scale.json", &scale).unwrap();
            assert_eq!(own.unscaled.unwrap().len(), own.device.inputs.len());
            (origin, by_row(&own.device, 0, 2))
        };
        let (origin, first) = start("x,y", 100);
        assert_eq!(origin, Origin::First);
        // The first start is the simulator's.
        let data = load(&config).unwrap();
        let simulated = Fleet::deal(&data, &config.scheme(&data), None, 1).unwrap();
        assert_eq!(first, by_row(&simulated.devices[0], 0, 2));
        for (rows, since) in [(103, 3), (100, 0), (199, 99)] {
            let (origin, inputs) = start("x,y", rows);
            assert_eq!(origin, Origin::Kept(since));
            assert_eq!(inputs[..100], first);
        }
        let (origin, doubled) = start("x,y", 200);
        assert_eq!(origin, Origin::OtherSize(100));
        assert_ne!(doubled[..100], first);
        let (origin, renamed) = start("x,z", 150);
        assert_eq!(origin, Origin::OtherColumns);
        assert_ne!(renamed[..100], doubled[..100]);
        std::fs::remove_file(&kept).unwrap();
        assert_eq!(start("x,z", 100), (Origin::First, first));

        std::fs::write(&kept, "{").unwrap();
        let error = device(&config, 1, (0, "gate"), &kept).unwrap_err();
        assert!(error.to_string().contains("scale.json: this is no scale of features"), "{error}");
        assert!(error.hint().unwrap().contains("if you delete it"));
        // Without a scale of its own the file is of no account.
        let as_it_is = config.with(["data.standardise=none"]).unwrap();
        let own = device(&as_it_is, 1, (0, "gate"), &kept).unwrap();
        assert_eq!((own.own_scale, own.unscaled), (None, None));
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
