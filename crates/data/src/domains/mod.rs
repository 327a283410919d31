//! Digits from several domains: the same ten classes, drawn differently.
//!
//! | name | what | files of the training half (`.gz` or plain) |
//! |---|---|---|
//! | `mnist` | 28×28, light on black | `train-images-idx3-ubyte`, `train-labels-idx1-ubyte` |
//! | `usps` | 16×16, brought to 28×28 | `usps-train-images-idx3-ubyte`, `usps-train-labels-idx1-ubyte` |
//! | `mnist-m` | MNIST over photographs, coloured | `mnistm-train-images-idx4-ubyte`, `mnistm-train-labels-idx1-ubyte` |
//!
//! | `strokes` | drawn from a seed, light on black | none |
//! | `strokes-coarse` | the same at 16×16, another hand | none |
//! | `strokes-textured` | the same over coloured textures | none |
//!
//! The test half's files are named `t10k-…`, `usps-test-…` and `mnistm-test-…`.

mod files;
mod mnist;
mod mnist_m;
mod strokes;
mod usps;
mod writers;

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

#[cfg(feature = "images")]
pub(crate) use mnist_m::luma;
#[cfg(feature = "images")]
pub use mnist_m::{Recipe, build as build_mnist_m};
use serde::{Deserialize, Serialize};
use strokes::strokes_where;
pub use strokes::{Style, strokes};
pub use usps::UspsFit;

use crate::{Dataset, Error};

/// The side of every digit, in pixels.
pub const SIDE: usize = 28;

/// A data set of digits, each a domain of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Domain {
    /// MNIST: handwritten digits, stored at 28×28 pixels.
    Mnist,
    /// USPS: handwritten digits from envelopes, stored at 16×16 pixels.
    Usps,
    /// MNIST-M: the digits of MNIST over pieces of photographs.
    MnistM,
    /// Digits that the program draws itself, light on black as MNIST's.
    Strokes,
    /// Digits that the program draws at 16×16 pixels, as USPS's.
    StrokesCoarse,
    /// Digits that the program draws over coloured textures, as MNIST-M's.
    StrokesTextured,
}

impl Domain {
    /// Every domain, in the order of this list.
    pub const ALL: [Domain; 6] = [
        Domain::Mnist,
        Domain::Usps,
        Domain::MnistM,
        Domain::Strokes,
        Domain::StrokesCoarse,
        Domain::StrokesTextured,
    ];

    /// Returns the name that users type.
    pub const fn name(self) -> &'static str {
        match self {
            Domain::Mnist => "mnist",
            Domain::Usps => "usps",
            Domain::MnistM => "mnist-m",
            Domain::Strokes => "strokes",
            Domain::StrokesCoarse => "strokes-coarse",
            Domain::StrokesTextured => "strokes-textured",
        }
    }

    /// Returns whether its images are coloured.
    pub const fn is_coloured(self) -> bool {
        matches!(self, Domain::MnistM | Domain::StrokesTextured)
    }

    /// Whether its images are drawn, and not read from files.
    pub const fn is_drawn(self) -> bool {
        matches!(self, Domain::Strokes | Domain::StrokesCoarse | Domain::StrokesTextured)
    }

    /// The names of the files that one half is read from, packed: images, then labels. None for a
    /// domain that is drawn.
    pub fn file_names(self, half: Half) -> Option<[String; 2]> {
        let files = match self {
            Domain::Mnist => mnist::files(half),
            Domain::Usps => usps::files(half),
            Domain::MnistM => mnist_m::files(half),
            Domain::Strokes | Domain::StrokesCoarse | Domain::StrokesTextured => return None,
        };
        Some([files.images, files.labels].map(|name| format!("{name}.gz")))
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Domain {
    type Err = Error;

    fn from_str(text: &str) -> Result<Domain, Error> {
        Domain::ALL.into_iter().find(|d| d.name() == text).ok_or_else(|| {
            let known = Domain::ALL.map(Domain::name).join(", ");
            Error::setting("domain", format!("there is no domain {text:?}"))
                .with_hint(format!("known domains: {known}"))
        })
    }
}

/// Which part of a set: the one to train on or the one kept apart for tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Half {
    /// The samples that are meant for training.
    #[default]
    Train,
    /// The samples that are kept apart for tests.
    Test,
}

impl fmt::Display for Half {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Half::Train => "train",
            Half::Test => "test",
        })
    }
}

/// Whether samples are grey or coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Colour {
    /// One channel. Coloured images become their brightness (ITU-R BT.601).
    Grey,
    /// Red, green and blue. Grey images are the same in all three.
    Rgb,
}

/// What to do about MNIST-M's images being MNIST's, index by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Pairing {
    /// No handwriting in both: MNIST-M keeps its images up to at most the middle of MNIST, and MNIST
    /// those after. With 20,000 images of MNIST-M, MNIST gives its images 20,000 to 59,999.
    #[default]
    Disjoint,
    /// All images of both, though the same handwriting appears twice.
    Shared,
}

/// How domains are loaded. The default is the training half, as the paper takes it.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The folder with the files of `mnist`, `usps` and `mnist-m`.
    pub folder: Option<PathBuf>,
    /// The half of the data set to read.
    pub half: Half,
    /// Grey or coloured. Left out: coloured where every domain is, else grey.
    pub colour: Option<Colour>,
    /// How USPS is brought to 28×28.
    pub usps_fit: UspsFit,
    /// What to do when both MNIST and MNIST-M are loaded.
    pub pairing: Pairing,
    /// At most this many samples of each domain, the first ones. Left out: all that the files hold,
    /// and [`STROKES`] drawn ones.
    pub samples: Option<usize>,
    /// Instead of one domain: so many writers of MNIST's or MNIST-M's digits, each a domain, by the labels of QMNIST.
    pub writers: Option<usize>,
    /// What drawn digits are drawn from.
    pub seed: u64,
    /// Where all domains are drawn, only these samples are, by their places among all, and the others stay black: a device needs no
    /// pictures of others, whose labels alone say what is dealt to whom. Left out: all.
    pub only: Option<HashSet<usize>>,
}

/// How many digits of a drawn domain there are unless another number is asked for: the paper's network needs up
/// to 3,500 of a class when all devices have the same four.
pub const STROKES: usize = 40_000;

impl Options {
    /// How many digits of a drawn domain there are.
    fn drawn(&self) -> usize {
        self.samples.unwrap_or(STROKES)
    }
}

/// Loads domains and joins them, in this order.
///
/// # Errors
/// Names the file that is missing, broken or contradicts its sibling, with the remedy.
pub fn load(domains: &[Domain], options: &Options) -> Result<Dataset, Error> {
    for (k, domain) in domains.iter().enumerate() {
        if domains[..k].contains(domain) {
            return Err(Error::setting("domains", format!("{domain} is listed twice")));
        }
    }
    let are_drawn = domains.iter().all(|d| d.is_drawn());
    let colour = options.colour.unwrap_or(match domains.iter().all(|d| d.is_coloured()) {
        true => Colour::Rgb,
        false => Colour::Grey,
    });
    let mut sets = Vec::with_capacity(domains.len());
    for (k, domain) in domains.iter().enumerate() {
        let only = options.only.as_ref().filter(|_| are_drawn);
        let first = k * options.drawn();
        let wanted = |sample| only.is_none_or(|only| only.contains(&(first + sample)));
        sets.push(domain.load(colour, options, wanted)?);
    }
    if options.pairing == Pairing::Disjoint {
        let position = |domain: Domain| domains.iter().position(|&d| d == domain);
        if let (Some(mnist), Some(mnist_m)) = (position(Domain::Mnist), position(Domain::MnistM)) {
            let cut = sets[mnist_m].len().min(sets[mnist].len() / 2);
            sets[mnist] = keep(&sets[mnist], cut..sets[mnist].len());
            if cut < sets[mnist_m].len() {
                sets[mnist_m] = keep(&sets[mnist_m], 0..cut);
            }
        }
    }
    if let Some(most) = options.samples {
        for set in sets.iter_mut().filter(|set| set.len() > most) {
            *set = keep(set, 0..most);
        }
    }
    let joined = sets.into_iter().map(Ok).reduce(|all, more| all?.join(more?));
    let joined = joined.unwrap_or_else(|| Err(Error::setting("domains", "no domain is listed")))?;
    match (options.writers, domains) {
        (None, _) => Ok(joined),
        (Some(count), [one @ (Domain::Mnist | Domain::MnistM)]) if options.half == Half::Train => {
            writers::apart(&joined, one.folder(options)?, count)
        }
        _ => Err(Error::setting("writers", "known for the training half of mnist or of mnist-m")
            .with_hint("list one of the two as the only domain")),
    }
}

fn keep(set: &Dataset, samples: std::ops::Range<usize>) -> Dataset {
    set.select(&samples.collect::<Vec<_>>())
}

impl Domain {
    /// Loads all samples. Of digits that are drawn, those that are not wanted stay black.
    fn load(
        self,
        colour: Colour,
        options: &Options,
        wanted: impl Fn(usize) -> bool,
    ) -> Result<Dataset, Error> {
        let half = options.half;
        let drawn =
            |style| strokes_where(wanted, style, half, options.drawn(), options.seed, colour);
        match self {
            Domain::Mnist => mnist::load(self.folder(options)?, half, colour),
            Domain::Usps => usps::load(self.folder(options)?, half, colour, options.usps_fit),
            Domain::MnistM => mnist_m::load(self.folder(options)?, half, colour),
            Domain::Strokes => drawn(Style::Clean),
            Domain::StrokesCoarse => drawn(Style::Coarse),
            Domain::StrokesTextured => drawn(Style::Textured),
        }
    }

    fn folder(self, options: &Options) -> Result<&Path, Error> {
        options.folder.as_deref().ok_or_else(|| {
            let names = self.file_names(options.half).unwrap_or_default().join(" and ");
            let message = format!("{self} is read from files, and no folder is given");
            Error::setting("data folder", message).with_hint(format!(
                "run `stlf data fetch {self}`, name the folder that holds {names}, \
                 or use strokes, which need no files"
            ))
        })
    }
}
