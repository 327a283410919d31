//! The arguments that choose the data.

use std::path::PathBuf;

use clap::ValueEnum;
use stlf_data::domains::{self, Domain, Half, Options};
use stlf_data::folder::data_folder;
use stlf_data::{Dataset, features};

use super::super::numbers::whole;
#[cfg(feature = "images")]
use super::super::numbers::within;
use super::super::window_args::WindowArgs;
use crate::error::Failure;

/// Domains of digits, or data of one's own.
#[derive(clap::Args)]
pub(crate) struct DataArgs {
    /// Domains of digits: mnist, usps, mnist-m, strokes, strokes-coarse, strokes-textured.
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "strokes",
        value_parser = domain
    )]
    domains: Vec<Domain>,

    /// The folder with the files of mnist, usps and mnist-m [default: STLF_DATA, else the user's
    /// cache folder]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,

    /// The half of each data set to read.
    #[arg(long, value_enum, default_value_t = HalfArg::Train)]
    half: HalfArg,

    /// At most this many samples of each domain [default: all; 40,000 of strokes]
    #[arg(long, value_name = "N", value_parser = whole::<usize>)]
    samples: Option<usize>,

    /// Instead of domains: a folder of pictures, DOMAIN/CLASS/*.png or .jpg.
    #[cfg(feature = "images")]
    #[arg(long, value_name = "DIR", conflicts_with_all = ["domains", "features"])]
    images: Option<PathBuf>,

    /// Resize every picture to this many pixels per side.
    #[cfg(feature = "images")]
    #[arg(long, value_name = "PIXELS", requires = "images", value_parser = within(1..=4096))]
    image_size: Option<u32>,

    /// Instead of domains: a table of features, CSV or Parquet, one sample per row.
    #[arg(long, value_name = "FILE", conflicts_with = "domains")]
    features: Option<PathBuf>,

    /// The column of the table with the labels.
    #[arg(long, value_name = "COLUMN", default_value = "label", requires = "features")]
    label: String,

    /// The column of the table with the domain [default: domain or device, if there is one]
    #[arg(long, value_name = "COLUMN", requires = "features")]
    domain_column: Option<String>,

    /// Columns of the table to ignore.
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',', requires = "features")]
    ignore: Vec<String>,

    #[command(flatten)]
    windows: WindowArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum HalfArg {
    /// The training half.
    Train,
    /// The test half.
    Test,
}

fn domain(text: &str) -> Result<Domain, String> {
    text.parse()
        .map_err(|_| format!("the domains are {}", Domain::ALL.map(Domain::name).join(", ")))
}

impl DataArgs {
    /// Reads the data, or draws them from the seed.
    pub(crate) fn load(&self, seed: u64) -> Result<Dataset, Failure> {
        #[cfg(feature = "images")]
        if let Some(folder) = &self.images {
            use stlf_data::image_folder;
            let size = self.image_size.map(|side| [side, side]);
            let options = image_folder::Options { size, ..image_folder::Options::default() };
            return image_folder::load(folder, &options).map_err(|e| Failure::in_data(&e));
        }
        if let Some(table) = &self.features {
            let options = features::Options {
                label: self.label.clone(),
                domain: self.domain_column.clone(),
                ignore: self.ignore.clone(),
                windows: self.windows.size(),
                time: self.windows.time.clone(),
                ..features::Options::default()
            };
            return features::load(table, &options).map_err(|e| Failure::in_data(&e));
        }
        let half = match self.half {
            HalfArg::Train => Half::Train,
            HalfArg::Test => Half::Test,
        };
        let folder = self.folder.clone().or_else(data_folder);
        let options = Options { folder, half, samples: self.samples, seed, ..Options::default() };
        domains::load(&self.domains, &options).map_err(|e| Failure::in_data(&e))
    }
}

/// Returns the folder for data that is used unless the user gives another.
#[cfg(any(feature = "fetch", feature = "images"))]
pub(crate) fn default_folder() -> Result<PathBuf, Failure> {
    data_folder().ok_or_else(|| {
        Failure::input("there is no cache folder for this user")
            .hint(format!("set {} to a folder for data", stlf_data::folder::VARIABLE))
    })
}
