//! Who wrote which digit: QMNIST's labels of MNIST's training images (Yadav and Bottou, "Cold case: the lost MNIST digits", 2019). MNIST-M
//! has the same images in the same order.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::idx::{by, read_integers};
use crate::{Dataset, Error};

/// The file of QMNIST's labels, packed or plain, in the data folder or in [`FOLDER`] there.
const FILE: &str = "qmnist-train-labels-idx2-int";

/// The folder inside the data folder where natural fleets keep that file.
const FOLDER: &str = "natural/writers";

/// The numbers of an image: its class, its series, its writer, and five others.
const COLUMNS: u32 = 8;

/// The digits of so many writers, each writer a domain. They are drawn, always the same, from the half of all writers who wrote most.
///
/// # Errors
/// Without the file, with one of other images, or with fewer writers.
pub(super) fn apart(data: &Dataset, folder: &Path, count: usize) -> Result<Dataset, Error> {
    let path = find(folder)?;
    let (dimensions, values) = read_integers(&path)?;
    if !matches!(dimensions[..], [images, COLUMNS] if images as usize >= data.len()) {
        let message = format!(
            "holds {} values, expected {COLUMNS} for each of {} images",
            by(&dimensions),
            data.len()
        );
        return Err(Error::content(&path, message));
    }
    let mut written: BTreeMap<i32, Vec<usize>> = BTreeMap::new();
    for (image, numbers) in values.chunks_exact(COLUMNS as usize).take(data.len()).enumerate() {
        if data.label(image).map(i32::from) != Some(numbers[0]) {
            let message = format!("image {image} has another class here than in the data set");
            return Err(Error::content(&path, message).with_hint("both must be of MNIST's order"));
        }
        written.entry(numbers[2]).or_default().push(image);
    }
    let mut counts: Vec<usize> = written.values().map(Vec::len).collect();
    counts.sort_unstable();
    let median = counts[counts.len() / 2];
    let mut writers: Vec<i32> =
        written.iter().filter(|(_, images)| images.len() >= median).map(|(w, _)| *w).collect();
    if !(1..=writers.len()).contains(&count) {
        let message = format!("{count} requested, expected 1 to {}", writers.len());
        return Err(Error::setting("writers", message));
    }
    writers.shuffle(&mut ChaCha8Rng::seed_from_u64(0));
    writers.truncate(count);
    writers.sort_unstable();
    let images: Vec<usize> = writers.iter().flat_map(|w| written[w].clone()).collect();
    let of = |(at, w): (usize, &i32)| vec![at as u16; written[w].len()];
    let domain_of = writers.iter().enumerate().flat_map(of).collect();
    let names = writers.iter().map(|w| format!("w{w}")).collect();
    Ok(data.select(&images).with_domains("writer", names, domain_of))
}

fn find(folder: &Path) -> Result<PathBuf, Error> {
    let folders = [folder.join(FOLDER), folder.to_owned()];
    let candidates = folders.iter().flat_map(|f| [f.join(format!("{FILE}.gz")), f.join(FILE)]);
    candidates.into_iter().find(|path| path.is_file()).ok_or_else(|| {
        Error::content(folder, format!("writers need {FILE}.gz here, or in {FOLDER}"))
            .with_hint("the repository facebookresearch/qmnist has it")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Values;
    use crate::{Class, Shape};

    /// So many images of classes 0 to 9 in turn, and the numbers of each by a writer that `of` names.
    fn files(folder: &Path, images: usize, of: impl Fn(usize) -> u8) -> Dataset {
        let mut bytes = vec![0, 0, 0x0c, 2, 0, 0, 0, images as u8, 0, 0, 0, 8];
        for image in 0..images {
            for number in [(image % 10) as u8, 0, of(image), 0, 0, 0, 0, 0] {
                bytes.extend([0, 0, 0, number]);
            }
        }
        std::fs::create_dir_all(folder.join(FOLDER)).unwrap();
        std::fs::write(folder.join(FOLDER).join(FILE), bytes).unwrap();
        let labels = (0..images).map(|image| Some((image % 10) as Class)).collect();
        let classes = (0..10).map(|c: u8| c.to_string()).collect();
        let pixels = Values::Pixels((0..images).map(|image| image as u8).collect());
        Dataset::new("mnist", Shape::grey(1), pixels, labels, classes).unwrap()
    }

    #[test]
    fn each_of_the_busier_writers_is_a_domain_of_its_own_digits() {
        let folder = tempfile::tempdir().unwrap();
        // Writers 0 to 6, of whom the last wrote least.
        let data = files(folder.path(), 100, |image| (image % 16 / 2).min(6) as u8);
        let three = apart(&data, folder.path(), 3).unwrap();
        assert_eq!((three.domains().len(), three.domain_column()), (3, Some("writer")));
        assert_eq!(apart(&data, folder.path(), 3).unwrap(), three);
        let Values::Pixels(images) = three.values() else { panic!("pixels") };
        for (sample, &image) in images.iter().enumerate() {
            let writer = format!("w{}", (usize::from(image) % 16 / 2).min(6));
            assert_eq!(three.domains()[three.domain(sample)], writer);
            assert_eq!(three.label(sample), Some((image % 10).into()));
        }
    }

    #[test]
    fn what_is_wrong_with_writers_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let data = files(folder.path(), 20, |image| (image % 4) as u8);
        let message =
            |data: &Dataset, count| apart(data, folder.path(), count).unwrap_err().to_string();
        assert_eq!(message(&data, 0), "writers: 0 requested, expected 1 to 4");
        assert_eq!(message(&data, 5), "writers: 5 requested, expected 1 to 4");
        let turned = data.select(&(0..20).rev().collect::<Vec<_>>());
        assert!(message(&turned, 2).contains("image 0 has another class"));
        let more = data.clone().join(data.clone()).unwrap();
        assert!(message(&more, 2).ends_with("holds 20×8 values, expected 8 for each of 40 images"));
        let none = tempfile::tempdir().unwrap();
        let missing = apart(&data, none.path(), 2).unwrap_err();
        assert!(missing.to_string().contains("writers need qmnist-train-labels-idx2-int.gz"));
    }
}
