//! How a learner is started: its command line, its folder, what it sees of the environment, and how long stlf waits for it.

use std::path::PathBuf;
use std::time::Duration;

use crate::Error;

/// What a learner sees of the environment without being named: where programs and the user's files are, language and time.
const ALWAYS: [&str; 11] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "VIRTUAL_ENV",
    "SYSTEMROOT",
    "TEMP",
];

/// How the program of a learner is started.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program, followed by its arguments.
    pub command: Vec<String>,
    /// The folder for files between the two. It is emptied first.
    pub folder: PathBuf,
    /// The file that gets what the learner writes to standard error, if any.
    pub log: Option<PathBuf>,
    /// The variables of the environment that the learner sees besides the usual few.
    pub environment: Vec<String>,
    /// A seed for what the learner draws.
    pub seed: u64,
    /// How long stlf waits, and how much room there is.
    pub limits: Limits,
}

impl Options {
    /// Returns the usual options for a command line.
    ///
    /// # Errors
    /// It names no program.
    pub fn new(command: &str, folder: impl Into<PathBuf>, seed: u64) -> Result<Options, Error> {
        Ok(Options {
            command: split(command)?,
            folder: folder.into(),
            log: None,
            environment: Vec::new(),
            seed,
            limits: Limits::default(),
        })
    }

    /// Returns the variables that the learner sees, with their values.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (String, std::ffi::OsString)> + '_ {
        let names = ALWAYS.into_iter().chain(self.environment.iter().map(String::as_str));
        names.filter_map(|name| Some((name.to_owned(), std::env::var_os(name)?)))
    }
}

/// How long stlf waits for a learner, and how much room it has.
#[derive(Debug, Clone)]
pub struct Limits {
    /// How long stlf waits for the answer to the greeting.
    pub hello: Duration,
    /// How long stlf waits for the next sign of life while the learner works.
    pub silence: Duration,
    /// How long the learner has to end after it was told to, before it is killed.
    pub grace: Duration,
    /// The pauses before it is started again for the same request. After the last it is given up.
    pub pauses: Vec<Duration>,
    /// The most bytes that its folder may have.
    pub disk: u64,
}

impl Limits {
    /// The most bytes that the folder of a learner may have where nobody says otherwise: models of a gigabyte have room.
    pub const DISK: u64 = 4 << 30;
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            hello: Duration::from_secs(60),
            silence: Duration::from_secs(60),
            grace: Duration::from_secs(10),
            pauses: [1, 5].map(Duration::from_secs).to_vec(),
            disk: Limits::DISK,
        }
    }
}

/// Returns the words of a command line. Quotation marks of both kinds keep words together; nothing else is special.
///
/// # Errors
/// There is no word, or a quotation mark without its partner.
pub fn split(command: &str) -> Result<Vec<String>, Error> {
    let wrong = |message| Error::Command { command: command.to_owned(), message };
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in command.chars() {
        match quote {
            Some(mark) if c == mark => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    match (quote, words.first()) {
        (Some(_), _) => Err(wrong("a quotation mark has no partner")),
        (None, Some(program)) if !program.is_empty() => Ok(words),
        _ => Err(wrong("it is empty")),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_a_shell() {
        let words = split("  python -m \"my learner\" --at='a b'  '' c\"d\"e ").unwrap();
        assert_eq!(words, ["python", "-m", "my learner", "--at=a b", "", "cde"]);
        for wrong in ["", "   ", "''", "python \"x"] {
            assert!(split(wrong).is_err(), "{wrong:?}");
        }
    }
}
