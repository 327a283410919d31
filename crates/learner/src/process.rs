//! A running program: its lines, its log, and its end.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::command::Options;
use crate::error::Log;
use crate::{Error, group};

/// The longest line, in bytes; messages are far shorter.
const LONGEST_LINE: u64 = 1 << 20;

/// Lines that wait to be read. A program that writes more waits as well.
const WAITING_LINES: usize = 64;

/// The last lines of the log that are told when the program fails, and what is told of each.
const TOLD_LINES: usize = 5;
const TOLD_CHARS: usize = 300;

/// The most bytes of the log that are kept in a file.
const MOST_LOG: u64 = 16 << 20;

/// The interval at which it is looked at whether a process has ended.
const TICK: Duration = Duration::from_millis(20);

/// A running program. Dropped, it is ended.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// `None` once it is to end.
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    log: Arc<Mutex<VecDeque<String>>>,
    /// Closed once the log is complete.
    log_ends: Receiver<()>,
    grace: Duration,
    status: Option<ExitStatus>,
}

/// What comes of waiting for a line.
#[derive(Debug)]
pub(crate) enum Heard {
    /// The program wrote this line, given without its end.
    Line(String),
    /// The program wrote nothing in the time that it was given.
    Nothing,
    /// The program has ended, or writes no more.
    Ended,
}

impl Process {
    /// Starts a program in a group of its own, with little of the environment.
    pub(crate) fn start(options: &Options) -> Result<Process, Error> {
        let program = &options.command[0];
        let mut command = Command::new(program);
        command
            .args(&options.command[1..])
            .env_clear()
            .envs(options.variables())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        group::apart(&mut command);
        let failed = |source| Error::Start { program: program.clone(), source };
        let mut child = command.spawn().map_err(failed)?;
        let (sender, lines) = sync_channel(WAITING_LINES);
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || pass_on(output, &sender));
        }
        let log = Arc::new(Mutex::new(VecDeque::new()));
        let (is_open, log_ends) = sync_channel::<()>(0);
        if let Some(errors) = child.stderr.take() {
            // A log that cannot be kept is no reason not to learn.
            let mut append = File::options();
            append.create(true).append(true);
            let file = options.log.as_ref().and_then(|path| append.open(path).ok());
            let last = log.clone();
            std::thread::spawn(move || {
                keep_log(errors, file, &last);
                drop(is_open);
            });
        }
        let (input, grace) = (child.stdin.take(), options.limits.grace);
        Ok(Process { child, input, lines, log, log_ends, grace, status: None })
    }

    /// Writes a line; `false` if the program reads no more.
    pub(crate) fn write(&mut self, line: &str) -> bool {
        let Some(input) = &mut self.input else { return false };
        input.write_all(line.as_bytes()).and_then(|()| input.flush()).is_ok()
    }

    /// Waits for a line. What the program wrote before it ended is heard first.
    pub(crate) fn hear(&mut self, longest: Duration) -> Heard {
        match self.lines.recv_timeout(longest) {
            Ok(line) => Heard::Line(line),
            Err(RecvTimeoutError::Disconnected) => Heard::Ended,
            // One that it started may hold its output open.
            Err(RecvTimeoutError::Timeout) => match group::has_ended(&mut self.child) {
                Ok(false) => Heard::Nothing,
                Ok(true) | Err(_) => self.lines.try_recv().map_or(Heard::Ended, Heard::Line),
            },
        }
    }

    /// Returns the last lines of the log.
    pub(crate) fn log(&self) -> Log {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        Log(log.iter().cloned().collect())
    }

    /// Lets the program end by itself, which it is to do when its input ends; then ends it.
    pub(crate) fn stop(&mut self) -> ExitStatus {
        if self.status.is_none() {
            self.input = None;
            self.wait_for_end(self.grace);
        }
        self.end()
    }

    /// Ends the program and all that it started: asks for it, waits, and kills what is left.
    pub(crate) fn end(&mut self) -> ExitStatus {
        self.end_within(self.grace)
    }

    /// Ends the program as [`Process::end`] does, with another time to wait.
    pub(crate) fn end_within(&mut self, grace: Duration) -> ExitStatus {
        if let Some(status) = self.status {
            return status;
        }
        self.input = None;
        group::terminate(&self.child);
        self.wait_for_end(grace);
        group::kill(&mut self.child);
        let status = self.child.wait().unwrap_or_default();
        // One that left the group may hold the log open.
        let _ = self.log_ends.recv_timeout(TICK * 10);
        self.status = Some(status);
        status
    }

    fn wait_for_end(&mut self, grace: Duration) {
        let until = Instant::now() + grace;
        while !group::has_ended(&mut self.child).unwrap_or(true) && Instant::now() < until {
            // A program that waits until its lines are read could not end.
            if self.lines.recv_timeout(TICK) == Err(RecvTimeoutError::Disconnected) {
                std::thread::sleep(TICK);
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// Passes lines on until there are no more, or nobody wants them.
fn pass_on(output: impl Read, to: &SyncSender<String>) {
    let mut output = BufReader::new(output);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        match (&mut output).take(LONGEST_LINE).read_until(b'\n', &mut bytes) {
            Ok(0) => return,
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return,
        }
        let line = String::from_utf8_lossy(&bytes);
        if to.send(line.trim_end_matches(['\n', '\r']).to_owned()).is_err() {
            return;
        }
    }
}

/// Keeps the last lines of a log, and in a file as much as has room.
fn keep_log(errors: impl Read, mut file: Option<File>, last: &Mutex<VecDeque<String>>) {
    let mut errors = BufReader::new(errors);
    let before = file.as_ref().and_then(|file| file.metadata().ok());
    let (mut bytes, mut kept) = (Vec::new(), before.map_or(0, |about| about.len()));
    loop {
        bytes.clear();
        match (&mut errors).take(LONGEST_LINE).read_until(b'\n', &mut bytes) {
            Ok(0) => return,
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return,
        }
        kept += bytes.len() as u64;
        if let Some(open) = file.as_mut().filter(|_| kept <= MOST_LOG) {
            let _ = open.write_all(&bytes);
        } else {
            file = None;
        }
        let line: String =
            String::from_utf8_lossy(&bytes).trim().chars().take(TOLD_CHARS).collect();
        if !line.is_empty() {
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            last.push_back(line);
            if last.len() > TOLD_LINES {
                last.pop_front();
            }
        }
    }
}
