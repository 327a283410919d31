//! A program with all processes that it starts, which end together.

use std::io;
use std::process::{Child, Command};

/// Has a program start as the first of a group of its own.
#[cfg(unix)]
pub(crate) fn apart(command: &mut Command) {
    std::os::unix::process::CommandExt::process_group(command, 0);
}

/// Asks all processes of the group to end.
#[cfg(unix)]
pub(crate) fn terminate(child: &Child) {
    signal(child, nix::sys::signal::Signal::SIGTERM);
}

/// Ends all processes of the group. The first of them must not have been waited for, since its number is the group's.
#[cfg(unix)]
pub(crate) fn kill(child: &mut Child) {
    signal(child, nix::sys::signal::Signal::SIGKILL);
}

#[cfg(unix)]
fn signal(child: &Child, signal: nix::sys::signal::Signal) {
    // Who has ended needs no signal.
    let _ = nix::sys::signal::killpg(number(child), signal);
}

#[cfg(unix)]
fn number(child: &Child) -> nix::unistd::Pid {
    nix::unistd::Pid::from_raw(child.id().cast_signed())
}

/// Returns whether the program has ended, without taking its number from it.
#[cfg(unix)]
pub(crate) fn has_ended(child: &mut Child) -> io::Result<bool> {
    use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | WaitPidFlag::WNOHANG;
    Ok(waitid(Id::Pid(number(child)), look)? != WaitStatus::StillAlive)
}

#[cfg(not(unix))]
pub(crate) fn apart(_command: &mut Command) {}

#[cfg(not(unix))]
pub(crate) fn terminate(_child: &Child) {}

#[cfg(not(unix))]
pub(crate) fn kill(child: &mut Child) {
    let _ = child.kill();
}

#[cfg(not(unix))]
pub(crate) fn has_ended(child: &mut Child) -> io::Result<bool> {
    Ok(child.try_wait()?.is_some())
}
