//! Where data lies when nobody says otherwise.

use std::path::PathBuf;

use etcetera::BaseStrategy;

/// The environment variable that names the data folder.
pub const VARIABLE: &str = "STLF_DATA";

/// The folder that `STLF_DATA` names, else `stlf` in the user's cache folder: `$XDG_CACHE_HOME` or
/// `~/.cache`, on Windows `%LOCALAPPDATA%`. `None` for a user without a home.
pub fn data_folder() -> Option<PathBuf> {
    match std::env::var_os(VARIABLE) {
        Some(folder) if !folder.is_empty() => Some(PathBuf::from(folder)),
        _ => etcetera::choose_base_strategy().ok().map(|base| base.cache_dir().join("stlf")),
    }
}
