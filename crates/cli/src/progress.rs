//! Progress of a search or a download for the user, with the time limit and Ctrl-C.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use stlf_lab::{Event, Stage};
use stlf_planning::number_format::{grouped, percent, short};
use stlf_planning::planner::Progress;

use crate::error::Failure;
use crate::ui::Ui;

/// A search shorter than this needs no spinner.
const QUIET: Duration = Duration::from_secs(1);

/// The interval at which the spinner's text is updated.
const RENEW: Duration = Duration::from_millis(100);

/// Set by the first Ctrl-C; the second ends the program.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Watches one search: shows that it goes on, and ends it at its time limit or at Ctrl-C.
pub(crate) struct Watch {
    started: Instant,
    limit: Option<Duration>,
    is_watched: bool,
    spinner: Option<ProgressBar>,
    renewed: Duration,
}

impl Watch {
    /// Starts the clock. From now on the first Ctrl-C ends the search instead of the program.
    pub(crate) fn start(time_limit: Option<Duration>, ui: &Ui) -> Result<Watch, Failure> {
        install_handler()?;
        Ok(Watch {
            started: Instant::now(),
            limit: time_limit,
            is_watched: ui.is_watched(),
            spinner: None,
            renewed: Duration::ZERO,
        })
    }

    /// Starts the clock again, after other work that came before the search.
    pub(crate) fn restart(&mut self) {
        self.started = Instant::now();
    }

    /// Starts the clock again with another limit.
    pub(crate) fn restart_with(&mut self, limit: Option<Duration>) {
        self.limit = limit;
        self.restart();
    }

    /// Prepares for Ctrl-C: from now on the first one is only noted, for [`Watch::is_interrupted`].
    pub(crate) fn listen() -> Result<(), Failure> {
        install_handler()
    }

    /// Shows progress, and returns whether to continue.
    pub(crate) fn see(&mut self, progress: &Progress) -> ControlFlow<()> {
        let elapsed = self.started.elapsed();
        if self.is_watched && elapsed >= QUIET && elapsed - self.renewed >= RENEW {
            self.renewed = elapsed;
            self.spinner.get_or_insert_with(spinner).set_message(message(progress, elapsed));
        }
        let over = self.limit.is_some_and(|limit| elapsed >= limit);
        if over { ControlFlow::Break(()) } else { Watch::flow() }
    }

    /// Stops the clock, clears the spinner, and returns the time that has passed.
    pub(crate) fn finish(self) -> Duration {
        let elapsed = self.started.elapsed();
        if let Some(spinner) = self.spinner {
            spinner.finish_and_clear();
        }
        elapsed
    }

    /// Returns whether to go on, until the user presses Ctrl-C.
    pub(crate) fn flow() -> ControlFlow<()> {
        if Watch::is_interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Returns whether the user pressed Ctrl-C.
    pub(crate) fn is_interrupted() -> bool {
        INTERRUPTED.load(Ordering::Relaxed)
    }
}

/// Shows the stages of a run, with one bar for each, for all seeds together.
pub(crate) struct Stages<'a> {
    seeds: usize,
    bars: Mutex<BTreeMap<Stage, Bar>>,
    all: MultiProgress,
    /// Where nobody sees bars: the clock, and when it last wrote a line.
    log: Option<(&'a Ui, Instant, Mutex<Duration>)>,
}

/// When a run first tells in a log how far it is, and the interval after that.
const LOGGED: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(60)];

/// The interval at which the clock beside a bar goes on, whether or not anything is done.
const CLOCK: Duration = Duration::from_secs(1);

/// The bar of one stage, and the progress of each seed.
struct Bar {
    bar: ProgressBar,
    seeds: BTreeMap<Option<u64>, (usize, usize)>,
}

impl<'a> Stages<'a> {
    /// Prepares the bars, or lines in a log where there is no terminal. From now on the first Ctrl-C stops the run instead of the program.
    pub(crate) fn start(seeds: usize, ui: &'a Ui) -> Result<Stages<'a>, Failure> {
        install_handler()?;
        let target = match ui.is_watched() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let all = MultiProgress::with_draw_target(target);
        let log = (!ui.is_watched()).then(|| (ui, Instant::now(), Mutex::new(Duration::ZERO)));
        Ok(Stages { seeds, bars: Mutex::new(BTreeMap::new()), all, log })
    }

    /// Shows the progress of a seed in a stage.
    pub(crate) fn see(&self, event: &Event) {
        let Ok(mut bars) = self.bars.lock() else { return };
        let Bar { bar, seeds } = bars.entry(event.stage).or_insert_with(|| Bar {
            bar: ticking(self.all.add(stage_bar(event.stage))),
            seeds: BTreeMap::new(),
        });
        // Units count as done once: a seed's threads may report out of order.
        let seen = seeds.entry(event.seed).or_insert((0, event.total));
        seen.0 = seen.0.max(event.done);
        let sum = |of: fn(&(usize, usize)) -> usize| seeds.values().map(of).sum::<usize>() as u64;
        // Seeds that have not begun will have as much to do as those that have.
        let missing = if event.seed.is_some() { self.seeds.saturating_sub(seeds.len()) } else { 0 };
        bar.set_length(sum(|s| s.1) + (missing * event.total) as u64);
        bar.set_position(sum(|s| s.0));
        self.tell(event.stage, bar);
    }

    /// Writes a line into a log, soon once, then once a minute.
    fn tell(&self, stage: Stage, bar: &ProgressBar) {
        let Some((ui, started, told)) = &self.log else { return };
        let (elapsed, Ok(mut told)) = (started.elapsed(), told.lock()) else { return };
        if elapsed - *told >= LOGGED[usize::from(!told.is_zero())] {
            *told = elapsed;
            let (done, total) = (bar.position(), bar.length().unwrap_or_default());
            let seconds = elapsed.as_secs();
            ui.note(&format!("{}: {done} of {total}, {seconds} s so far\n", name(stage)));
        }
    }

    /// Clears the bars, once the run has ended.
    pub(crate) fn finish(self) {
        // Nothing is lost with a bar that stays.
        let _ = self.all.clear();
    }
}

/// Returns what a stage does, as people read it.
fn name(stage: Stage) -> &'static str {
    match stage {
        Stage::Deal => "deal data to devices",
        Stage::Train => "train on their labels",
        Stage::Measure => "measure divergences",
        Stage::Plan => "plan roles and links",
        Stage::Transfer => "send and combine models",
        Stage::Relay => "hand models on",
        Stage::Adapt => "adapt networks (FADA)",
        Stage::Compare => "compare with others",
    }
}

fn stage_bar(stage: Stage) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:23} {wide_bar} {pos}/{len}, {elapsed} so far");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::no_length().with_style(style).with_message(name(stage))
}

/// The bar with a clock that goes on by itself.
fn ticking(bar: ProgressBar) -> ProgressBar {
    bar.enable_steady_tick(CLOCK);
    bar
}

/// Shows how much of each file has been downloaded.
#[cfg(feature = "fetch")]
pub(crate) struct Transfer {
    is_watched: bool,
    /// The file that is being downloaded, and its bar.
    current: Option<(String, ProgressBar)>,
}

#[cfg(feature = "fetch")]
impl Transfer {
    /// Prepares for downloads. From now on the first Ctrl-C ends the download instead of the program.
    pub(crate) fn start(ui: &Ui) -> Result<Transfer, Failure> {
        install_handler()?;
        Ok(Transfer { is_watched: ui.is_watched(), current: None })
    }

    /// Shows the progress of a file.
    pub(crate) fn see(&mut self, file: &str, done: u64, total: Option<u64>) {
        if !self.is_watched {
            return;
        }
        if self.current.as_ref().is_none_or(|(name, _)| name != file) {
            self.finish();
            self.current = Some((file.to_owned(), bar(file)));
        }
        if let Some((_, bar)) = &self.current {
            if let Some(total) = total {
                bar.set_length(total);
            }
            bar.set_position(done);
        }
    }

    /// Clears the bar, once nothing more is downloaded.
    pub(crate) fn finish(&mut self) {
        if let Some((_, bar)) = self.current.take() {
            bar.finish_and_clear();
        }
    }
}

/// Shows the progress of work that is counted in steps. Ctrl-C ends the program, as always.
#[cfg(feature = "images")]
pub(crate) struct Steps {
    bar: ProgressBar,
}

#[cfg(feature = "images")]
impl Steps {
    /// Returns a bar, which is visible only on a terminal.
    pub(crate) fn start(what: &str, ui: &Ui) -> Steps {
        let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = if ui.is_watched() { ProgressBar::no_length() } else { ProgressBar::hidden() };
        Steps { bar: bar.with_style(style).with_message(what.to_owned()) }
    }

    /// Shows how many steps are done.
    pub(crate) fn see(&self, done: usize, all: usize) {
        self.bar.set_length(all as u64);
        self.bar.set_position(done as u64);
    }

    /// Clears the bar, once all steps are done.
    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(feature = "fetch")]
fn bar(file: &str) -> ProgressBar {
    // As with the spinner, a template that cannot be parsed costs only looks.
    let style = ProgressStyle::with_template(
        "{msg} {wide_bar} {bytes}/{total_bytes}, {bytes_per_sec} (Ctrl-C to stop, resumable)",
    );
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::no_length().with_style(style).with_message(file.to_owned())
}

fn install_handler() -> Result<(), Failure> {
    static INSTALLED: AtomicBool = AtomicBool::new(false);
    if INSTALLED.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })
    .map_err(|e| Failure::io(format!("cannot listen for Ctrl-C: {e}")))
}

fn spinner() -> ProgressBar {
    // A template that cannot be parsed costs the looks of the spinner, nothing else.
    let style = ProgressStyle::with_template("{spinner} {wide_msg}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
    let spinner = ProgressBar::new_spinner().with_style(style);
    spinner.enable_steady_tick(RENEW);
    spinner
}

fn message(progress: &Progress, elapsed: Duration) -> String {
    let Progress { objective, lower_bound, nodes } = *progress;
    let seconds = elapsed.as_secs();
    if !objective.is_finite() {
        return format!("looking for a first plan, {seconds} s");
    }
    let gap = (objective - lower_bound) / objective.abs();
    let gap = match gap.is_finite() {
        true => format!("gap {}, lower bound {}", percent(gap.max(0.0)), short(lower_bound)),
        false => "gap not known yet".to_owned(),
    };
    let (objective, nodes) = (short(objective), grouped(nodes));
    format!("{seconds} s, {gap}, objective {objective}, {nodes} nodes (Ctrl-C ends here)")
}
