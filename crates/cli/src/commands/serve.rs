//! `stlf serve`: the report page, served live.

mod answers;
mod node_page;

use std::path::PathBuf;
use std::time::Duration;

use tiny_http::Server;

use self::answers::Desk;
use super::numbers::{positive, whole};
use super::plan::seconds;
use crate::error::Failure;
use crate::opener;
use crate::progress::Watch;
use crate::ui::Ui;

/// Show a run, a plan or a problem in the browser, where devices, links and weights can be changed.
///
/// Every change is planned at once; nothing is written. A run in progress is followed, and so is a device of a real fleet.
/// Listens only on this machine (127.0.0.1), until Ctrl-C.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stlf serve runs/demo --open
  stlf serve fleet.json --port 8080
  stlf serve fleet.json --handovers
  stlf serve node                     the fleet as this device sees it")]
pub(crate) struct Args {
    /// A run folder, the folder of a device (`stlf node start --to`), a plan (stlf-plan/2) or a problem (stlf-problem/1).
    run: PathBuf,

    /// The port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 0, value_parser = whole::<u16>)]
    port: u16,

    /// Let sources of a problem hand their models on, as in `stlf plan --handovers`.
    #[arg(long)]
    handovers: bool,

    /// Show the page in a browser.
    #[arg(long)]
    open: bool,

    /// Stop planning a page or a change after this time; the page shows what is then known [default: 60; the first page of a problem with
    /// more than 200 devices: 4]
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    time_limit: Option<f64>,
}

/// The interval at which Ctrl-C is checked.
const PATIENCE: Duration = Duration::from_millis(200);

/// Serves until it is told to stop.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    let desk = Desk::new(&args.run, args.handovers, args.time_limit.and_then(seconds), ui);
    // Before anything is served: what is not there is told at once.
    desk.prepare()?;
    let server = Server::http(("127.0.0.1", args.port))
        .map_err(|e| Failure::io(format!("cannot listen on port {}: {e}", args.port)))?;
    let port = server.server_addr().to_ip().map_or(args.port, |address| address.port());
    let address = format!("http://127.0.0.1:{port}/");
    ui.print(&format!("{address}  (Ctrl-C to stop)\n"))?;
    if args.open {
        opener::open(&address)?;
    }
    let desk = desk.at(port);
    while !Watch::is_interrupted() {
        match server.recv_timeout(PATIENCE) {
            Ok(Some(request)) => desk.serve(request),
            Ok(None) => {}
            Err(e) => return Err(Failure::io(format!("cannot serve: {e}"))),
        }
    }
    Ok(())
}
