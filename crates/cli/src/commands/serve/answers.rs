//! Answers to the requests of a report page.

use std::cell::RefCell;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use stlf_config::Config;
use stlf_data::words::in_words;
use stlf_formats::{PlanOrProblem, ProblemFile};
use stlf_lab::Error;
use stlf_lab::report::document::{Document, Live, Run, Seed};
use stlf_lab::report::edits::{self, Edits, Question};
use stlf_lab::report::progress::{Progress, progress};
use stlf_lab::report::{document, html};
use stlf_lab::run::seed_folder;
use tiny_http::{Header, Method, Request, Response};

use super::super::node::status;
use super::super::plan::seconds;
use super::super::report;
use super::super::run_args::failure;
use super::node_page;
use crate::error::Failure;
use crate::input;
use crate::progress::Watch;
use crate::ui::Ui;

/// The most bytes of a request. Edits of a thousand devices fit into a tenth of this.
const MOST_BYTES: u64 = 1 << 20;

/// The media type of a page.
const HTML: &str = "text/html; charset=utf-8";

/// Answers requests about one run, device of a fleet, plan or problem.
pub(super) struct Desk<'a> {
    /// The path of the run folder, the device's folder, the plan or the problem.
    run: PathBuf,
    /// Whether sources of a problem may hand models on.
    handovers: bool,
    /// The port on which this server listens.
    port: u16,
    /// The time limit for planning a page or a change, if the user gave one.
    limit: Option<Duration>,
    ui: &'a Ui,
    /// The plan or problem of the last request and its page, because planning may take long.
    known: RefCell<Option<(PlanOrProblem, Run)>>,
}

/// The response to a request.
struct Answer {
    status: u16,
    kind: &'static str,
    body: String,
}

/// The response to a request that is refused.
#[derive(Debug)]
struct Refusal {
    status: u16,
    message: String,
    hint: Option<String>,
}

#[derive(Serialize)]
struct ErrorBody {
    error: ErrorEntry,
}

#[derive(Serialize)]
struct ErrorEntry {
    message: String,
    hint: Option<String>,
}

#[derive(Serialize)]
struct ExplanationBody {
    explanation: String,
}

#[derive(Serialize)]
struct SeedBody {
    seed: Seed,
}

impl Refusal {
    fn new(status: u16, message: impl Into<String>) -> Refusal {
        Refusal { status, message: message.into(), hint: None }
    }

    /// Turns a failure of the command line into a response.
    fn of(failure: &Failure) -> Refusal {
        let hint = failure.advice().map(str::to_owned);
        Refusal { status: 422, message: failure.to_string(), hint }
    }

    fn of_error(error: &Error) -> Refusal {
        let hint = error.hint().map(str::to_owned);
        // Without a run there are no seeds to tell apart.
        let message = match error {
            Error::Infeasible { reason, .. } => format!("no plan exists: {reason}"),
            other => other.to_string(),
        };
        Refusal { status: 422, message, hint }
    }
}

impl<'a> Desk<'a> {
    pub(super) fn new(
        run: &Path,
        handovers: bool,
        limit: Option<Duration>,
        ui: &'a Ui,
    ) -> Desk<'a> {
        Desk { run: run.to_owned(), handovers, port: 0, limit, ui, known: RefCell::new(None) }
    }

    /// Returns the same desk, for a server that listens on this port.
    pub(super) fn at(self, port: u16) -> Desk<'a> {
        Desk { port, ..self }
    }

    /// Plans what the page shows first, so that a failure is known before anything is served.
    pub(super) fn prepare(&self) -> Result<(), Failure> {
        match self.is_node() {
            true => status::read(&self.run).map(drop),
            false => self.shown().map(drop),
        }
    }

    /// Returns what the page shows. A problem is planned again only if its file has changed.
    fn shown(&self) -> Result<Run, Failure> {
        if self.is_run() {
            return self.watched(|watch| report::read(&self.run, self.handovers, false, watch))?;
        }
        let file = input::plan_or_problem(&self.run)?;
        if let Some((known, run)) = &*self.known.borrow()
            && *known == file
        {
            return Ok(run.clone());
        }
        let page = |watch: &mut Watch| {
            let soon = self.limit.is_none();
            report::alone(file.clone(), &self.run, self.handovers, soon, watch)
        };
        let run = self.watched(page)??;
        *self.known.borrow_mut() = Some((file, run.clone()));
        Ok(run)
    }

    /// Whether this is the folder of a device of a fleet.
    fn is_node(&self) -> bool {
        !self.is_run() && self.run.join(stlf_node::status_file::FILE).is_file()
    }

    fn is_run(&self) -> bool {
        self.run.join("config.toml").is_file()
    }

    fn watched<T>(&self, work: impl FnOnce(&mut Watch) -> T) -> Result<T, Failure> {
        let mut watch = Watch::start(self.limit.or(seconds(report::LIMIT)), self.ui)?;
        let done = work(&mut watch);
        watch.finish();
        Ok(done)
    }

    /// Answers one request. If the client has gone before the answer, nothing is lost.
    pub(super) fn serve(&self, mut request: Request) {
        let answer = self.answer(&mut request).unwrap_or_else(|refusal| {
            let Refusal { status, message, hint } = refusal;
            let body = ErrorBody { error: ErrorEntry { message, hint } };
            Answer { status, ..json(&body) }
        });
        let mut response = Response::from_string(answer.body).with_status_code(answer.status);
        let headers = [
            ("Content-Type", answer.kind),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("X-Frame-Options", "DENY"),
            ("Referrer-Policy", "no-referrer"),
        ];
        for (name, value) in headers {
            if let Ok(header) = Header::from_bytes(name, value) {
                response.add_header(header);
            }
        }
        let _ = request.respond(response);
    }

    fn answer(&self, request: &mut Request) -> Result<Answer, Refusal> {
        self.check_sender(request)?;
        let path = request.url().split('?').next().unwrap_or_default().to_owned();
        if self.is_node() {
            return self.answer_of_node(request.method(), &path);
        }
        match (request.method(), path.as_str()) {
            (Method::Get, "/") => {
                Ok(Answer { status: 200, kind: HTML, body: html(&self.document()?) })
            }
            (Method::Get, "/api/state") => Ok(json(&self.document()?)),
            (Method::Get, "/api/progress") => Ok(json(&self.progress()?)),
            (Method::Post, "/api/plan") => {
                let edits: Edits = read_body(request, "edits")?;
                Ok(json(&SeedBody { seed: self.plan(&edits)? }))
            }
            (Method::Post, "/api/explain") => {
                let question: Question = read_body(request, "a question")?;
                Ok(json(&ExplanationBody { explanation: self.explain(&question)? }))
            }
            (_, "/" | "/api/state" | "/api/progress" | "/api/plan" | "/api/explain") => {
                Err(Refusal::new(405, format!("{} is not allowed here", request.method())))
            }
            _ => Err(Refusal::new(404, format!("there is nothing at {path}"))),
        }
    }

    /// Answers about a device of a fleet, which can be looked at and not changed.
    fn answer_of_node(&self, method: &Method, path: &str) -> Result<Answer, Refusal> {
        let shown = || status::read(&self.run).map_err(|e| Refusal::of(&e));
        match (method, path) {
            (Method::Get, "/") => {
                let body = node_page::html(&shown()?, &node_page::refusals(&self.run));
                Ok(Answer { status: 200, kind: HTML, body })
            }
            (Method::Get, "/api/state") => Ok(json(&shown()?)),
            (_, "/" | "/api/state") => {
                Err(Refusal::new(405, format!("{method} is not allowed here")))
            }
            _ => Err(Refusal::new(404, format!("there is nothing at {path}"))),
        }
    }

    /// Refuses requests that a page of another site makes, under whatever name it reaches this machine.
    fn check_sender(&self, request: &Request) -> Result<(), Refusal> {
        let names = ["127.0.0.1", "localhost"].map(|name| format!("{name}:{}", self.port));
        let host = header(request, "Host");
        if !host.is_some_and(|host| names.iter().any(|name| name == host)) {
            return Err(Refusal::new(403, "this server answers only at its own address"));
        }
        let origin = header(request, "Origin");
        let own = |origin: &str| names.iter().any(|name| origin == format!("http://{name}"));
        if origin.is_some_and(|origin| !own(origin)) {
            return Err(Refusal::new(403, "this server answers only its own pages"));
        }
        Ok(())
    }

    fn document(&self) -> Result<Document, Refusal> {
        let run = self.shown().map_err(|e| Refusal::of(&e))?;
        let title = run.name.clone();
        Ok(Document { live: Some(Live {}), ..document(&title, vec![run]) })
    }

    fn progress(&self) -> Result<Progress, Refusal> {
        if !self.is_run() {
            return Ok(Progress { finished: true, stages: Vec::new() });
        }
        progress(&self.run).map_err(|e| Refusal::of_error(&e))
    }

    fn plan(&self, edits: &Edits) -> Result<Seed, Refusal> {
        let (file, hands_on) = self.before_edits(edits.seed).map_err(|e| Refusal::of(&e))?;
        let answer = |watch: &mut Watch| {
            edits::answer(&file, edits, hands_on, &mut |progress| watch.see(progress))
        };
        self.watched(answer).map_err(|e| Refusal::of(&e))?.map_err(|e| Refusal::of_error(&e))
    }

    fn explain(&self, question: &Question) -> Result<String, Refusal> {
        let before = self.before_edits(question.edits.seed).map_err(|e| Refusal::of(&e))?;
        let answer = |watch: &mut Watch| {
            edits::explain(&before.0, question, before.1, &mut |progress| watch.see(progress))
        };
        let answer = self.watched(answer).map_err(|e| Refusal::of(&e))?;
        answer.map_err(|e| Refusal::of_error(&e))?.ok_or_else(|| {
            let hint = Some("start `stlf serve` with a longer --time-limit".to_owned());
            let message = "this takes longer than the time limit for planning".to_owned();
            Refusal { status: 422, message, hint }
        })
    }

    /// Returns the problem that edits apply to, and whether its sources may hand models on.
    fn before_edits(&self, seed: Option<u64>) -> Result<(ProblemFile, bool), Failure> {
        if self.is_run() {
            let config =
                Config::read(&self.run.join("config.toml")).map_err(|e| failure(&e.into()))?;
            let place = seed.map_or_else(|| self.run.clone(), |s| self.run.join(seed_folder(s)));
            return Ok((input::problem(&place)?, config.planner.hands_on()));
        }
        let file = input::plan_or_problem(&self.run)?;
        let hands_on = match &file {
            PlanOrProblem::Problem(_) => self.handovers,
            PlanOrProblem::Plan(file) => !file.handovers.is_empty(),
        };
        let name = input::name(&self.run);
        Ok((file.into_problem().map_err(|e| Failure::in_file(&name, &e))?, hands_on))
    }
}

fn header<'r>(request: &'r Request, name: &'static str) -> Option<&'r str> {
    let found = request.headers().iter().find(|header| header.field.equiv(name));
    found.map(|header| header.value.as_str())
}

/// Reads what a request holds; `what` names it in messages.
fn read_body<T: DeserializeOwned>(request: &mut Request, what: &str) -> Result<T, Refusal> {
    let kind = header(request, "Content-Type").unwrap_or_default();
    if kind.split(';').next().map(str::trim) != Some("application/json") {
        return Err(Refusal::new(415, format!("{what}: expected application/json")));
    }
    if request.body_length().is_some_and(|length| length as u64 > MOST_BYTES) {
        return Err(Refusal::new(413, format!("{what}: at most {MOST_BYTES} bytes")));
    }
    let mut body = Vec::new();
    request
        .as_reader()
        .take(MOST_BYTES + 1)
        .read_to_end(&mut body)
        .map_err(|e| Refusal::new(400, format!("the request ended early: {e}")))?;
    if body.len() as u64 > MOST_BYTES {
        return Err(Refusal::new(413, format!("{what}: at most {MOST_BYTES} bytes")));
    }
    serde_json::from_slice(&body).map_err(|e| {
        Refusal::new(400, format!("{what} cannot be read: {}", in_words(&e.to_string())))
    })
}

fn json(value: &impl Serialize) -> Answer {
    let body = serde_json::to_string(value).unwrap_or_default();
    Answer { status: 200, kind: "application/json", body }
}
