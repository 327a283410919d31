//! `stlf data fetch`: downloads a data set.

use std::path::PathBuf;

use clap::ValueEnum;
use stlf_data::domains::Domain;
use stlf_data::fetch::{Fetched, Progress, fetch};
use stlf_planning::number_format::counted;

use super::data_args::default_folder;
use crate::error::Failure;
use crate::progress::{Transfer, Watch};
use crate::ui::Ui;

/// Download a data set, with checksums; resumable.
///
/// Files that already exist are kept. After Ctrl-C or a broken connection the same command resumes the
/// download. USPS and MNIST-M are converted to the files that are read; USPS comes from
/// LIBSVM, whose pixels are a smoother rendering than that of other copies.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stlf data fetch mnist
  stlf data fetch usps --to data
  stlf data fetch mnist --mirror https://files.example.org/mnist

Proxies are taken from HTTPS_PROXY, HTTP_PROXY and ALL_PROXY.")]
pub(crate) struct Args {
    /// The data set.
    #[arg(value_enum)]
    set: SetArg,

    /// The folder to put it into [default: STLF_DATA, else the user's cache folder]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,

    /// Take the files from this folder of a web server instead of the public ones.
    #[arg(long, value_name = "URL")]
    mirror: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SetArg {
    /// 70,000 digits, 12 MB.
    Mnist,
    /// 9,298 digits from envelopes.
    Usps,
    /// MNIST over photographs.
    MnistM,
}

/// Downloads the data set, and shows how many files are new.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    let domain = match args.set {
        SetArg::Mnist => Domain::Mnist,
        SetArg::Usps => Domain::Usps,
        SetArg::MnistM => Domain::MnistM,
    };
    let folder = match &args.to {
        Some(folder) => folder.clone(),
        None => default_folder()?,
    };
    let mut transfer = Transfer::start(ui)?;
    let fetched = fetch(domain, &folder, args.mirror.as_deref(), &mut |progress: &Progress<'_>| {
        transfer.see(progress.file, progress.done, progress.total);
        Watch::flow()
    });
    transfer.finish();
    match fetched.map_err(|e| Failure::in_data(&e))? {
        Fetched::Stopped => Err(Failure::interrupted(format!("{domain} is not complete yet"))
            .hint("run the same command to continue")),
        Fetched::All { new, kept } => {
            let text = match (new.len(), kept.len()) {
                (0, _) => format!("{domain} was already there"),
                (new, 0) => format!("{domain}: {}", counted(new, "file")),
                (new, kept) => {
                    format!("{domain}: {}, and {kept} that were there", counted(new, "file"))
                }
            };
            ui.print(&format!("{text}, in {}\n", folder.display()))
        }
    }
}
