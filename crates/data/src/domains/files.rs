//! A domain that lies in files: one of images and one of labels per half.

use std::path::{Path, PathBuf};

use super::{Colour, Domain, Half};
use crate::idx::{Idx, by};
use crate::{Class, Dataset, Error, Shape, dataset::Values};

/// The files of one half of a domain, and what must be in them.
pub(super) struct Files {
    pub(super) domain: Domain,
    pub(super) half: Half,
    /// The name of the file of images, without `.gz`.
    pub(super) images: &'static str,
    pub(super) labels: &'static str,
    /// Rows, columns and, where there are several, channels.
    pub(super) image: &'static [u32],
}

/// Images as the file has them, and their labels.
pub(super) struct Labeled {
    pub(super) images: Vec<u8>,
    pub(super) labels: Vec<Option<Class>>,
}

impl Files {
    pub(super) fn read(&self, folder: &Path) -> Result<Labeled, Error> {
        let images_at = self.find(folder, self.images)?;
        let labels_at = self.find(folder, self.labels)?;
        let images = Idx::read_file(&images_at)?;
        let labels = Idx::read_file(&labels_at)?;

        let name = self.domain;
        let [count, size @ ..] = images.dimensions() else {
            return Err(Error::content(&images_at, "has no dimensions"));
        };
        if size != self.image {
            let message = format!(
                "holds {} values, expected images of {} for {name}",
                by(images.dimensions()),
                by(self.image)
            );
            return Err(Error::content(&images_at, message));
        }
        if *count == 0 {
            return Err(Error::content(&images_at, "holds no images"));
        }
        let [label_count] = labels.dimensions() else {
            let message = format!("holds {} values, expected a list", by(labels.dimensions()));
            return Err(Error::content(&labels_at, message)
                .with_hint("is this the file of images, under the name of the labels?"));
        };
        if label_count != count {
            let message =
                format!("holds {label_count} labels for the {count} images of {}", self.images);
            return Err(Error::content(&labels_at, message)
                .with_hint("both files must come from the same half of the same set"));
        }
        let label = |(at, &label): (usize, &u8)| match label {
            0..=9 => Ok(Some(Class::from(label))),
            _ => {
                let message = format!("label {at} is {label}, expected a digit 0 to 9");
                Err(Error::content(&labels_at, message))
            }
        };
        let labels = labels.values().iter().enumerate().map(label).collect::<Result<_, _>>()?;
        Ok(Labeled { images: images.into_values(), labels })
    }

    /// Returns the path of the packed file or, without one, of the plain file.
    fn find(&self, folder: &Path, name: &str) -> Result<PathBuf, Error> {
        let candidates = [folder.join(format!("{name}.gz")), folder.join(name)];
        let found = candidates.into_iter().find(|path| path.is_file());
        found.ok_or_else(|| {
            let domain = self.domain;
            let [images, labels] = [self.images, self.labels];
            let message = format!("the {} half of {domain} needs {name}.gz here", self.half);
            Error::content(folder, message).with_hint(format!(
                "run `stlf data fetch {domain}`, or place {images}.gz and {labels}.gz \
                 in this folder (packed, or plain without .gz)"
            ))
        })
    }
}

/// The ten digits as classes of a data set.
pub(super) fn digits(
    domain: Domain,
    shape: Shape,
    images: Vec<u8>,
    labels: Vec<Option<Class>>,
) -> Result<Dataset, Error> {
    let classes = (0..10).map(|digit| digit.to_string()).collect();
    Dataset::new(domain.name(), shape, Values::Pixels(images), labels, classes)
}

/// Grey images in the colour that is asked for: red, green and blue alike.
pub(super) fn coloured(grey: Vec<u8>, side: usize, colour: Colour) -> (Shape, Vec<u8>) {
    match colour {
        Colour::Grey => (Shape::grey(side), grey),
        Colour::Rgb => {
            let thrice = |image: &[u8]| [image; 3].concat();
            let images = grey.chunks_exact(side * side).flat_map(thrice).collect();
            (Shape { channels: 3, height: side, width: side }, images)
        }
    }
}
