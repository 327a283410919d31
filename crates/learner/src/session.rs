//! One run of a learner, from its greeting to its end: what is asked for, and the files that go with it. Nothing is tried twice here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use stlf_learn::evaluate::Predictions;
use stlf_learn::{Layout, Params};
use stlf_method::learner::Watch;

use crate::Error;
use crate::arrays::{self, Samples};
use crate::command::Options;
use crate::dialogue::{Dialogue, Done};
use crate::message::{Ask, Described, PROTOCOL, Welcome};
use crate::process::Process;

/// The most classes; labels and errors are counted for each.
const MOST_CLASSES: usize = 10_000;

/// A running learner that has been greeted.
#[derive(Debug)]
pub(crate) struct Session {
    dialogue: Dialogue,
    folder: PathBuf,
    pub(crate) welcome: Welcome,
    pub(crate) layout: Layout,
}

impl Session {
    /// Starts a learner in an empty folder, and greets it, unless `watch` ends that.
    pub(crate) fn start(options: &Options, watch: &mut Watch<'_>) -> Result<Session, Error> {
        let folder = emptied(&options.folder)?;
        let limits = &options.limits;
        let mut dialogue = Dialogue::new(Process::start(options)?, &folder, limits);
        let hello = Ask::Hello {
            protocol: PROTOCOL.to_owned(),
            folder: folder.display().to_string(),
            seed: options.seed,
        };
        let done = dialogue.whole(hello, watch)?;
        let welcome: Welcome = done.says()?;
        let Welcome { protocol, name, classes, model, .. } = &welcome;
        if protocol != PROTOCOL {
            return Err(done.wrong(format!("expected the protocol {PROTOCOL}")));
        }
        if name.is_empty() || name.chars().any(char::is_control) {
            return Err(done.wrong("expected a name"));
        }
        let different = classes.iter().collect::<BTreeSet<_>>().len();
        if !(1..=MOST_CLASSES).contains(&classes.len()) || different < classes.len() {
            return Err(done.wrong(format!("expected classes, 1 to {MOST_CLASSES}, each once")));
        }
        let tensors = model.iter().map(|(name, shape)| (name.as_str(), &shape[..]));
        let layout = Layout::new(tensors).map_err(|e| done.wrong(format!("model: {e}")))?;
        dialogue.silence = limits.silence;
        Ok(Session { dialogue, folder, welcome, layout })
    }

    /// Has the learner describe its samples.
    pub(crate) fn describe(&mut self, watch: &mut Watch<'_>) -> Result<Samples, Error> {
        let to = self.file("samples");
        let done = self.dialogue.whole(Ask::Describe { to: to.clone() }, watch)?;
        let Described { samples } = done.says()?;
        let classes = self.welcome.classes.len();
        self.taken(&to, &done, |path| arrays::samples(path, samples, classes))
    }

    /// Has it train on these samples, by its own numbers; `None` if `watch` ended it.
    pub(crate) fn train(
        &mut self,
        rows: impl Iterator<Item = usize>,
        start: Option<&Params>,
        seed: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Params>, Error> {
        let (rows, to) = (self.put_rows(rows)?, self.file("model"));
        let start = start.map(|start| self.put_model("start", start)).transpose()?;
        let given = [Some(rows.clone()), start.clone()];
        let done = self.dialogue.ask(Ask::Train { rows, start, to: to.clone(), seed }, watch);
        given.iter().flatten().for_each(|name| self.remove(name));
        done?.map(|done| self.model(&to, &done)).transpose()
    }

    /// Has it train a student on these samples, by its own numbers, of which the mixture says this; `None` if `watch` ended it.
    pub(crate) fn adapt(
        &mut self,
        rows: impl Iterator<Item = usize>,
        teacher: &Predictions,
        start: &Params,
        seed: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Params>, Error> {
        let (rows, start, to) =
            (self.put_rows(rows)?, self.put_model("start", start)?, self.file("model"));
        let teacher = arrays::probabilities_file(teacher).map_err(std::io::Error::other);
        let teacher = self.put("teacher", teacher)?;
        let given = [rows.clone(), teacher.clone(), start.clone()];
        let ask = Ask::Adapt { rows, teacher, start, to: to.clone(), seed };
        let done = self.dialogue.ask(ask, watch);
        given.iter().for_each(|name| self.remove(name));
        done?.map(|done| self.model(&to, &done)).transpose()
    }

    /// Takes a model that the learner wrote.
    fn model(&self, file: &str, done: &Done) -> Result<Params, Error> {
        self.taken(file, done, |path| {
            let bytes = arrays::read(path, self.layout.most_bytes())?;
            let params = Params::from_safetensors(&self.layout, &bytes);
            params.map_err(|e| format!("is no such model: {e}"))
        })
    }

    /// Has it predict these samples, by its own numbers, with a model, altered by a seed if there is one; `None` if `watch` ended it.
    pub(crate) fn predict(
        &mut self,
        model: &Params,
        rows: impl ExactSizeIterator<Item = usize>,
        altered: Option<u64>,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Predictions>, Error> {
        let (samples, to) = (rows.len(), self.file("probabilities"));
        let (rows, model) = (self.put_rows(rows)?, self.put_model("given", model)?);
        let given = [rows.clone(), model.clone()];
        let done = self.dialogue.ask(Ask::Predict { model, rows, altered, to: to.clone() }, watch);
        given.iter().for_each(|name| self.remove(name));
        let Some(done) = done? else { return Ok(None) };
        let classes = self.welcome.classes.len();
        self.taken(&to, &done, |path| arrays::probabilities(path, samples, classes)).map(Some)
    }

    /// Asks for a prediction with a model that is not there.
    pub(crate) fn ask_for_nonsense(&mut self, watch: &mut Watch<'_>) -> Result<(), Error> {
        let rows = self.put_rows(std::iter::empty())?;
        let (model, to) = ("there-is-no-such-file.safetensors".to_owned(), self.file("nothing"));
        let ask = Ask::Predict { model, rows: rows.clone(), altered: None, to };
        let done = self.dialogue.whole(ask, watch);
        self.remove(&rows);
        done.map(drop)
    }

    /// Tells the learner to end, and waits until it and all that it started have.
    pub(crate) fn stop(self) -> ExitStatus {
        self.dialogue.stop()
    }

    /// The name of a file of the next request.
    fn file(&self, what: &str) -> String {
        format!("{}-{what}.safetensors", self.dialogue.next())
    }

    fn put_rows(&self, rows: impl Iterator<Item = usize>) -> Result<String, Error> {
        self.put("rows", arrays::rows_file(rows).map_err(std::io::Error::other))
    }

    fn put_model(&self, what: &str, model: &Params) -> Result<String, Error> {
        self.put(what, model.to_safetensors(&self.layout).map_err(std::io::Error::other))
    }

    fn put(&self, what: &str, bytes: std::io::Result<Vec<u8>>) -> Result<String, Error> {
        let name = self.file(what);
        let path = self.folder.join(&name);
        let written = bytes.and_then(|bytes| std::fs::write(&path, bytes));
        written.map_err(|source| Error::Folder { path, source })?;
        Ok(name)
    }

    fn remove(&self, name: &str) {
        // What cannot be removed now goes with the folder.
        let _ = std::fs::remove_file(self.folder.join(name));
    }

    /// Takes a file that the learner wrote.
    fn taken<T>(
        &self,
        file: &str,
        done: &Done,
        read: impl FnOnce(&Path) -> Result<T, String>,
    ) -> Result<T, Error> {
        let taken = read(&self.folder.join(file));
        self.remove(file);
        taken.map_err(|message| done.wrong_file(file, message))
    }
}

/// Makes an empty folder for nobody else.
fn emptied(path: &Path) -> Result<PathBuf, Error> {
    let failed = |source| Error::Folder { path: path.to_owned(), source };
    let path = std::path::absolute(path).map_err(failed)?;
    match std::fs::remove_dir_all(&path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(failed(e)),
        _ => {}
    }
    path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(failed)?;
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(&path).map_err(failed)?;
    Ok(path)
}
