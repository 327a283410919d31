//! `stlf node start`: runs this device as a member of its fleet.

use stlf_node::network;
use stlf_node::service::{Event, Line, Options, Service};
use stlf_planning::number_format::{clean, counted};

use super::failure::failure;
use super::start_args::{Args, Log, OwnLearner, Part};
use super::told::{end, sentence};
use crate::commands::learner;
use crate::error::Failure;
use crate::progress::Watch;
use crate::ui::Ui;

/// Takes part until the service ends or Ctrl-C is pressed, and shows the events and the result.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    if let Some(name) = args.lacks_learner().map_err(|e| failure(&e))? {
        let message = format!("this device joined its fleet with the learner {}", clean(&name));
        return Err(Failure::input(message)
            .hint("start it with the same program: stlf node start --learner \"PROGRAM …\""));
    }
    let options = args.options().map_err(|e| failure(&e))?;
    let options = with_learner(options, &args.own, &args.part, ui)?;
    take_part(options, args.part.log, ui)
}

/// The same options with the user's learner, if one is named.
pub(super) fn with_learner(
    mut options: Options,
    own: &OwnLearner,
    part: &Part,
    ui: &Ui,
) -> Result<Options, Failure> {
    Watch::listen()?;
    let seed = options.config.seeds.first().copied().unwrap_or_default();
    if let Some(user) = own.start(&part.to, seed).map_err(|e| learner::failure(&e))? {
        let (samples, labels) =
            (counted(user.places.len(), "sample"), counted(user.labels.len(), "label"));
        ui.note(&format!("the learner {} has {samples} and {labels}\n", clean(&user.name)));
        options.learner = Some(user);
    }
    Ok(options)
}

/// The same with options of the service.
pub(super) fn take_part(options: Options, log: Log, ui: &Ui) -> Result<(), Failure> {
    let mut tell = |event: &Event<'_>| tell(event, log, ui);
    let service = Service::new(options, &mut tell).map_err(|e| failure(&e))?;
    Watch::listen()?;
    let ended = service.run(&mut tell, &Watch::is_interrupted).map_err(|e| failure(&e))?;
    ui.print(&end(&ended)?)
}

/// Shows an event in the format that the user chose, except for the sign of life every second.
fn tell(event: &Event<'_>, log: Log, ui: &Ui) {
    let line = match event {
        Event::Network { event: network::Event::Alive, .. } => return,
        Event::Network { view, event } if log == Log::Json => Line::new(view, event).to_json(),
        event => sentence(event),
    };
    ui.note(&format!("{line}\n"));
}
