//! `stlf fleet invite`: tickets for devices, and the door that they open.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use stlf_node::door::{Error, Event, Options, run as serve};
use stlf_node::service::settings;
use stlf_planning::number_format::{clean, counted};

use super::super::node::key_failure;
use super::super::numbers::{positive, whole};
use crate::error::Failure;
use crate::progress::Watch;
use crate::ui::Ui;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stlf fleet invite harbour --devices 3                 three tickets, valid for an hour
  stlf fleet invite harbour --devices 1 --expires 2d    later: one more device
  stlf fleet invite harbour mine.toml --devices 3       with settings of the fleet
  stlf fleet invite harbour                             goes on with the open tickets
  # if no device has labels of every class
  stlf fleet invite harbour --devices 3 --classes calm,storm
  # on a port that a firewall lets pass
  stlf fleet invite harbour --devices 3 --listen 10.0.0.5:7000")]
pub(crate) struct Args {
    /// The fleet's folder, whose last part is its name; made where there is none.
    name: PathBuf,

    /// The settings of the fleet (TOML), for all devices [default: all defaults]
    config: Option<PathBuf>,

    /// Settings that differ from the file's: KEY=VALUE, separated by spaces.
    #[arg(short = 'c', long = "set", value_name = "KEY=VALUE ...")]
    set: Vec<String>,

    /// All classes, for fleets in which a device may lack labels of some [default: the classes that the devices have]
    #[arg(long, value_delimiter = ',', value_name = "NAME,...")]
    classes: Vec<String>,

    /// How many devices to invite; earlier tickets that nobody has used are replaced.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole::<usize>)]
    devices: usize,

    /// How long tickets are valid, such as 30m, 1h or 2d.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = time)]
    expires: Duration,

    /// Where to listen [default: every address of this machine, and a port that the system chooses]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,

    /// Where devices reach this machine, if not where it listens, such as through a router.
    #[arg(long = "address", value_name = "ADDRESS")]
    addresses: Vec<SocketAddr>,

    /// Let the first devices in after this time, even if others have not come [default: once all have come]
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    wait: Option<f64>,
}

fn time(text: &str) -> Result<Duration, String> {
    let wrong = || "write a number and its unit, such as 30m, 1h or 2d".to_owned();
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &text[digits.len()..] {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return Err(wrong()),
    };
    let seconds = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(unit));
    // A century is enough.
    let seconds = seconds.filter(|&s| s > 0 && s <= 100 * 365 * 24 * 60 * 60).ok_or_else(wrong)?;
    Ok(Duration::from_secs(seconds))
}

/// Invites devices until all have come.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    let options = options(args).map_err(|e| failure(&e.into()))?;
    Watch::listen()?;
    let (mut printed, mut unused) = (Ok(()), 0);
    let mut tell = |event: &Event| {
        ui.note(&sentence(event));
        match event {
            Event::Invites { tickets, open, .. } => {
                unused = *open;
                let lines: String = tickets.iter().map(|ticket| format!("{ticket}\n")).collect();
                printed = ui.print(&lines);
            }
            Event::Joined { .. } => unused = unused.saturating_sub(1),
            _ => {}
        }
    };
    let devices = serve(&options, &mut tell, &Watch::is_interrupted).map_err(|e| failure(&e))?;
    printed?;
    let fleet = clean(&args.name.display().to_string());
    ui.note(&format!("{fleet} has {}\n", counted(devices, "device")));
    if unused > 0 {
        let tickets = counted(unused, "ticket");
        if Watch::is_interrupted() {
            let message = format!("stopped; {tickets} can still be used");
            let hint = format!("stlf fleet invite {fleet} goes on with them");
            return Err(Failure::interrupted(message).hint(&hint));
        }
        ui.note(&format!(
            "{tickets} expired that nobody had used: stlf fleet invite {fleet} --devices {unused} makes new ones\n"
        ));
    }
    Ok(())
}

fn options(args: &Args) -> Result<Options, stlf_config::Error> {
    let changed: Vec<String> =
        args.set.iter().flat_map(|set| stlf_config::changes(set)).map(str::to_owned).collect();
    let mut changes: Vec<String> = match &args.config {
        // Devices have the data: whether they are a table or pictures is not known here.
        None if !changed.is_empty() => vec!["data.domains=[]".to_owned()],
        _ => Vec::new(),
    };
    changes.extend(changed);
    if !args.classes.is_empty() {
        let quoted: Vec<String> = args.classes.iter().map(|class| format!("{class:?}")).collect();
        changes.push(format!("data.classes=[{}]", quoted.join(", ")));
    }
    let config = match args.config.is_none() && changes.is_empty() {
        true => None,
        false => {
            let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
            Some(settings(args.config.as_deref(), None, &changes)?)
        }
    };
    Ok(Options {
        folder: args.name.clone(),
        config,
        devices: args.devices,
        expires: args.expires,
        listen: args.listen,
        addresses: args.addresses.clone(),
        wait: args.wait.map(|s| Duration::try_from_secs_f64(s).unwrap_or(Duration::MAX)),
    })
}

fn sentence(event: &Event) -> String {
    match event {
        Event::Invites { fleet, addresses, tickets, replaced, open, expires } => {
            let at: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
            let fleet = clean(fleet);
            let at_most = match expires.as_secs() {
                seconds @ ..120 => counted(seconds as usize, "second"),
                seconds => counted(seconds.div_ceil(60) as usize, "minute"),
            };
            let mut text = format!(
                "{fleet} waits at {} for {}, at most {at_most}\n",
                at.join(", "),
                counted(*open, "device"),
            );
            if *replaced > 0 {
                let earlier = counted(*replaced, "earlier ticket");
                text += &format!("{earlier}, not used so far, can no longer be used\n");
            }
            if !tickets.is_empty() {
                text += "On each device, with one of these tickets: \
                         stlf node join TICKET --name NAME --data FILE\n";
            }
            text
        }
        Event::Asks { name } => format!("{} is here\n", clean(name)),
        Event::Agreed { classes } => format!("the classes are {}\n", clean(&classes.join(", "))),
        Event::Joined { name, key, open } => {
            let to_come = match open {
                0 => String::new(),
                more => format!("; {} to come", counted(*more, "device")),
            };
            format!("{} has joined (key {key}){to_come}\n", clean(name))
        }
        Event::Refused { name, reason } => {
            format!("{} cannot join: {}\n", clean(name), clean(reason))
        }
        _ => String::new(),
    }
}

/// Turns an error into a failure with its exit code.
fn failure(error: &Error) -> Failure {
    let message = error.to_string();
    let failure = match error {
        Error::Key(e) => return key_failure(e),
        Error::Folder(e) => return Failure::in_data(e),
        Error::NoRandom(_) | Error::Start(_) | Error::Network(_) => Failure::io(message),
        _ => Failure::input(message),
    };
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        for (text, seconds) in [("90s", 90), ("30m", 1_800), ("1h", 3_600), ("2d", 172_800)] {
            assert_eq!(time(text), Ok(Duration::from_secs(seconds)));
        }
        for wrong in ["", "h", "1", "0h", "-1h", "1 h", "1w", "99999999999999999999d", "1.5h"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
