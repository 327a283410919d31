//! Which samples of the user's a run is of, so that it is not continued with others, and results of others are not shown as those of today's.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use sha2::{Digest, Sha256};
use stlf_config::Config;
use stlf_config::fleet::files;

use crate::folder::in_hexadecimal;
use crate::{Error, Folder};

/// What the samples are known by, in the run's folder; absent where the program draws or knows them.
pub(crate) const FILE: &str = "data.sha256";

/// Notes which samples the run in this folder is of.
///
/// # Errors
/// It is of others, or they cannot be read.
pub(crate) fn check(config: &Config, folder: &Folder) -> Result<(), Error> {
    let Some((source, hash)) = hash(config)? else { return Ok(()) };
    let line = hash + "\n";
    match folder.read(FILE)? {
        None => Ok(folder.write(FILE, line.as_bytes())?),
        Some(known) if known == line.as_bytes() => Ok(()),
        Some(_) => {
            let run = folder.path().display();
            let message =
                format!("has changed since {run} was made, whose results are of what it was");
            let hint = format!("name another folder with --to, or delete {run}");
            Err(Error::folder(&source, &message, &hint))
        }
    }
}

/// The table or the folder of pictures that the samples are from, and a hash of what is in it.
fn hash(config: &Config) -> Result<Option<(PathBuf, String)>, Error> {
    let (source, files) = match (&config.data.images, &config.data.features) {
        (Some(folder), _) => (folder, files(config)?.unwrap_or_default()),
        (None, Some(table)) => (table, vec![table.clone()]),
        (None, None) => return Ok(None),
    };
    let mut hash = Sha256::new();
    for path in files {
        let name = path.strip_prefix(source).unwrap_or(&path).to_string_lossy().into_owned();
        hash.update(name.replace('\\', "/"));
        hash.update([0]);
        let mut file = File::open(&path).map_err(Error::file(&path))?;
        let mut part = vec![0; 1 << 16];
        loop {
            match file.read(&mut part).map_err(Error::file(&path))? {
                0 => break,
                count => hash.update(&part[..count]),
            }
        }
    }
    Ok(Some((source.clone(), in_hexadecimal(&hash.finalize()))))
}
