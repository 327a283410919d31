//! `stlf serve` at work, ended with the test.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A server and where it listens.
pub(crate) struct Served {
    child: Child,
    /// The port on 127.0.0.1 at which the server listens.
    pub(crate) port: u16,
}

impl Served {
    /// Serves a run or a problem on a free port.
    pub(crate) fn start(what: &Path) -> Served {
        Served::start_with(what, &[])
    }

    /// Serves a run or a problem on a free port, with these options.
    pub(crate) fn start_with(what: &Path, options: &[&str]) -> Served {
        let mut child = Command::new(env!("CARGO_BIN_EXE_stlf"))
            .arg("serve")
            .arg(what)
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.split(['/', ':']).find_map(|part| part.parse().ok());
        Served { child, port: port.unwrap_or_else(|| panic!("no port in {line:?}")) }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
