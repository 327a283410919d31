//! Shows a file or an address in the user's browser.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use crate::error::Failure;

/// The programs that open files and addresses, by platform.
#[cfg(target_os = "macos")]
const OPENERS: &[&[&str]] = &[&["open"]];
#[cfg(target_os = "windows")]
const OPENERS: &[&[&str]] = &[&["explorer"]];
#[cfg(not(any(target_os = "macos", target_os = "windows")))]
const OPENERS: &[&[&str]] = &[&["xdg-open"], &["gio", "open"], &["sensible-browser"]];

/// Opens a file or an address with the first program that can be started.
pub(crate) fn open(what: impl AsRef<OsStr>) -> Result<(), Failure> {
    for opener in OPENERS {
        let mut command = Command::new(opener[0]);
        command.args(&opener[1..]).arg(what.as_ref());
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if quiet.spawn().is_ok() {
            return Ok(());
        }
    }
    Err(Failure::io("found no program that opens a browser")
        .hint(format!("open {} yourself", what.as_ref().to_string_lossy())))
}
