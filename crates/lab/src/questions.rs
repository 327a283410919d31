//! Which samples the targets of a run would like to have labeled.

use std::path::Path;

use stlf_bundle::folder::{find, read};
use stlf_bundle::questions::Question;
use stlf_config::Config;
use stlf_config::fleet::{Fleet, answers, files, load};
use stlf_planning::Role;

use crate::Error;
use crate::run::CONFIG;

/// So many samples of every target of a seed, or of one device: those whose labels would tell most. What is answered is not asked again. Without a
/// seed it is the first one of the run.
///
/// # Errors
/// The run has not ended, its data cannot be read any more, or it has no such device.
pub fn questions(
    run: &Path,
    device: Option<&str>,
    seed: Option<u64>,
    count: usize,
) -> Result<Vec<Question>, Error> {
    if !run.join(CONFIG).is_file() {
        // Says what is there instead, if anything.
        find(run, device, seed)?;
    }
    let config = Config::read(&run.join(CONFIG))?;
    let seed = seed.or(config.seeds.first().copied()).unwrap_or_default();
    if config.training.learner.is_some() {
        let message = "only built-in networks learn from answers, and this run has learners";
        return Err(Error::folder(&run.join(CONFIG), message, "ask the learners themselves"));
    }
    let data = load(&config)?;
    // The scale is the mixture's.
    let mut fleet = Fleet::deal(&data, &config.scheme(&data), config.data.scale(), seed)?;
    if let Some(answers) = answers(&config, &data)? {
        fleet.answer(&answers)?;
    }
    if let Some(name) = device {
        // Says which devices there are, if there is no such one.
        find(run, Some(name), Some(seed))?;
    }
    let mut questions = Vec::new();
    let wanted = fleet.devices.iter().filter(|own| device.is_none_or(|name| own.name == name));
    for own in wanted {
        let mixture = read(&find(run, Some(&own.name), Some(seed))?)?;
        if mixture.role == Role::Target {
            let inputs = mixture.scaling.inputs(&data, &own.places);
            questions.extend(mixture.questions(&inputs, &own.places, &own.known(), count)?);
        }
    }
    let files = files(&config)?.unwrap_or_default();
    for question in &mut questions {
        question.file = files.get(question.sample).cloned();
        question.row = data.beginnings().get(question.sample).map(|beginning| beginning.row);
    }
    Ok(questions)
}
