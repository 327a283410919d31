//! How planning grows with the fleet: a table in Markdown, each row from a process of its own.
//!
//! ```text
//! cargo run --release -p stlf --example growth           # all rows; some minutes, 3 GB
//! cargo run --release -p stlf --example growth -- 0 4    # these rows
//! ```
#![allow(clippy::print_stdout, reason = "the table is what it is for")]

use std::error::Error;
use std::fmt;
use std::fs;
use std::ops::ControlFlow;
use std::process::Command;
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use stlf_planning::Device;
use stlf_planning::Role;
use stlf_planning::bound::{Bound, BoundKind};
use stlf_planning::planner::{Outcome, Settings, plan};
use stlf_planning::problem::{EnergyUnit, Links, Parts, Preset, Problem, Source};

/// The links that a fleet has, and whether costs are raw.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// Every device has a link to every other.
    Dense,
    /// All of them, with costs in place of measurements.
    Costs,
    /// Every device has links from the nearest [`SENDERS`].
    Nearest,
    /// Every device has links from [`SENDERS`] that are drawn from all.
    Random,
}

/// Senders of each device where not all are.
const SENDERS: usize = 32;

/// A fleet and when to end: at this gap or after so many seconds.
#[derive(Debug, Clone, Copy)]
struct Row {
    devices: usize,
    shape: Shape,
    bound: BoundKind,
    /// φ^S. The dearer a source, the more targets must share one, and the harder the choice.
    source_weight: f64,
    gap: f64,
    seconds: u64,
}

/// φ^S at which one device in five to twenty becomes a source.
const CHEAP: f64 = 3.0;
const DEAR: f64 = 20.0;

const fn paper(devices: usize, shape: Shape, source_weight: f64, gap: f64) -> Row {
    Row { devices, shape, bound: BoundKind::Paper, source_weight, gap, seconds: 60 }
}

const fn pooled(devices: usize, shape: Shape, gap: f64, seconds: u64) -> Row {
    Row { devices, shape, bound: BoundKind::Pooled, source_weight: CHEAP, gap, seconds }
}

const ROWS: [Row; 19] = [
    paper(10, Shape::Dense, CHEAP, 0.0),
    paper(100, Shape::Dense, CHEAP, 0.0),
    paper(1_000, Shape::Dense, CHEAP, 0.0),
    paper(3_000, Shape::Dense, CHEAP, 0.0),
    paper(10_000, Shape::Dense, CHEAP, 0.0),
    paper(10_000, Shape::Costs, CHEAP, 0.001),
    paper(10_000, Shape::Nearest, CHEAP, 0.01),
    paper(100_000, Shape::Nearest, CHEAP, 0.01),
    paper(100_000, Shape::Nearest, DEAR, 0.01),
    paper(1_000_000, Shape::Nearest, CHEAP, 0.01),
    paper(10_000, Shape::Random, CHEAP, 0.01),
    paper(100_000, Shape::Random, CHEAP, 0.01),
    paper(10_000, Shape::Random, DEAR, 0.01),
    paper(100_000, Shape::Random, DEAR, 0.01),
    pooled(10, Shape::Dense, 0.0, 60),
    pooled(100, Shape::Dense, 0.0, 60),
    pooled(1_000, Shape::Dense, 0.01, 10),
    pooled(10_000, Shape::Nearest, 0.01, 60),
    pooled(100_000, Shape::Nearest, 0.01, 60),
];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, number] = &arguments[..]
        && flag == "--row"
    {
        println!("{}", ROWS[number.parse::<usize>()?].run()?);
        return Ok(());
    }
    let chosen: Vec<String> = match &arguments[..] {
        [] => (0..ROWS.len()).map(|k| k.to_string()).collect(),
        some => some.to_vec(),
    };
    println!("| fleet | bound | φ^S | asked for | sources | ended | after | peak memory |");
    println!("|---|---|---|---|---|---|---|---|");
    for number in chosen {
        // A process of its own, so that a row's peak is its own.
        let done = Command::new(std::env::current_exe()?).args(["--row", &number]).status()?;
        if !done.success() {
            return Err(format!("row {number}: {done}").into());
        }
    }
    Ok(())
}

impl Row {
    /// Plans the fleet and says how that went.
    fn run(self) -> Result<String, Box<dyn Error>> {
        let problem = self.problem()?;
        let settings = Settings::default().within(self.gap);
        forget_peak();
        let limit = Duration::from_secs(self.seconds);
        let started = Instant::now();
        let outcome = plan(&problem, &settings, &mut |_| match started.elapsed() < limit {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        });
        let seconds = started.elapsed().as_secs_f64();
        let Outcome::Planned(plan) = outcome else { return Err("there is no plan".into()) };
        let ended = match plan.gap() {
            0.0 => "proven".to_owned(),
            gap => format!("gap {:.3} %", 100.0 * gap),
        };
        let asked = match self.gap {
            0.0 => "proof".to_owned(),
            gap => format!("{} %", 100.0 * gap),
        };
        let took = match seconds {
            0.0..0.1 => format!("{:.3} ms", 1e3 * seconds),
            _ => format!("{seconds:.2} s"),
        };
        let peak = peak().map_or("?".to_owned(), |mebibytes| format!("{mebibytes} MiB"));
        let sources = grouped(plan.with_role(Role::Source).count());
        let (bound, limit) = (self.bound, self.seconds);
        let asked = format!("{asked} or {limit} s");
        let weight = match self.shape {
            Shape::Costs => "–".to_owned(),
            _ => self.source_weight.to_string(),
        };
        Ok(format!(
            "| {self} | {bound} | {weight} | {asked} | {sources} | {ended} | {took} | {peak} |"
        ))
    }

    /// Half of the devices have labels. A device's data is a place in the unit square, and
    /// divergence grows with distance: to 2 across the square, or, where all senders are near,
    /// over about twice the reach of the nearest.
    fn problem(self) -> Result<Problem, stlf_planning::Error> {
        let n = self.devices;
        let mut rng = ChaCha8Rng::seed_from_u64(n as u64);
        let places: Vec<Place> =
            (0..n).map(|_| [rng.random_range(0.0..1.0), rng.random_range(0.0..1.0)]).collect();
        let devices: Vec<Device> = (0..n)
            .map(|i| Device {
                name: format!("d{i}"),
                labeled: if i % 2 == 0 { rng.random_range(800..2400) } else { 0 },
                unlabeled: rng.random_range(100..1000),
                source_error: (i % 2 == 0).then(|| rng.random_range(0.04..0.45)),
            })
            .collect();
        let reach = match self.shape {
            Shape::Nearest => 2.0 * (SENDERS as f64 / n as f64 / std::f64::consts::PI).sqrt(),
            _ => 1.0,
        };
        let divergence =
            |i: usize, j: usize| (2.0 * distance(places[i], places[j]) / reach).min(2.0);
        let mut joules = || rng.random_range(2.4..5.0);
        let links = match self.shape {
            Shape::Dense => {
                let all = (0..n * n).map(|k| divergence(k / n, k % n)).collect();
                Links::from_rows(n, all, (0..n * n).map(|_| joules()).collect())
            }
            Shape::Costs => Links::from_list(n, Vec::new()),
            Shape::Nearest | Shape::Random => {
                let senders = match self.shape {
                    Shape::Nearest => nearest(&places),
                    _ => random(n),
                };
                let pairs = senders
                    .iter()
                    .enumerate()
                    .flat_map(|(to, senders)| senders.iter().map(move |&from| (from as usize, to)));
                let list = pairs
                    .map(|(from, to)| (from as u32, to as u32, divergence(from, to), joules()));
                Links::from_list(n, list.collect())
            }
        };
        let mut weights = Preset::Balanced.weights();
        weights.source = self.source_weight;
        let source = match self.shape {
            Shape::Costs => Source::Costs {
                source: (0..n).map(|i| (i % 2 == 0).then(|| 1.0 + (i % 7) as f64 / 7.0)).collect(),
                link: (0..n * n).map(|k| 0.5 + 0.5 * divergence(k / n, k % n)).collect(),
            },
            _ => Source::Measured {
                links,
                weights,
                bound: Bound::default().with(|s| s.kind = self.bound),
                energy_epsilon: 1e-3,
                energy_unit: EnergyUnit::MeanLink,
                disagreement: None,
            },
        };
        let (pins, forbidden, required) = (vec![None; n], Vec::new(), Vec::new());
        Problem::new(Parts { devices, source, pins, forbidden, required })
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let devices = grouped(self.devices);
        match self.shape {
            Shape::Dense => write!(f, "{devices} devices, dense"),
            Shape::Costs => write!(f, "{devices} devices, dense, costs given"),
            Shape::Nearest => write!(f, "{devices} devices, {SENDERS} nearest senders each"),
            Shape::Random => write!(f, "{devices} devices, {SENDERS} senders drawn at random"),
        }
    }
}

/// Returns a number with commas between its thousands.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (k, digit) in digits.chars().enumerate() {
        if k > 0 && (digits.len() - k).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

type Place = [f64; 2];

fn distance(a: Place, b: Place) -> f64 {
    (a[0] - b[0]).hypot(a[1] - b[1])
}

/// The nearest others of every place, found among the cells of a grid around it.
fn nearest(places: &[Place]) -> Vec<Vec<u32>> {
    // About eight places a cell: the nearest 32 lie within two cells.
    let side = ((places.len() as f64 / 8.0).sqrt() as usize).max(1);
    let cell = |x: f64| ((x * side as f64) as usize).min(side - 1);
    let mut cells = vec![Vec::new(); side * side];
    for (i, place) in places.iter().enumerate() {
        cells[cell(place[0]) * side + cell(place[1])].push(i as u32);
    }
    let around = |x: f64| cell(x).saturating_sub(2)..(cell(x) + 3).min(side);
    let of = |(i, place): (usize, &Place)| {
        let rows = around(place[0]).flat_map(|x| around(place[1]).map(move |y| x * side + y));
        let mut near: Vec<(f64, u32)> = rows
            .flat_map(|at| &cells[at])
            .filter(|&&k| k as usize != i)
            .map(|&k| (distance(*place, places[k as usize]), k))
            .collect();
        near.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        near.into_iter().take(SENDERS).map(|(_, k)| k).collect()
    };
    places.par_iter().enumerate().map(of).collect()
}

/// Others of every device, drawn at random.
fn random(devices: usize) -> Vec<Vec<u32>> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut of = |i: usize| {
        let mut senders = Vec::with_capacity(SENDERS);
        while senders.len() < SENDERS {
            let k = rng.random_range(0..devices);
            if k != i && !senders.contains(&(k as u32)) {
                senders.push(k as u32);
            }
        }
        senders
    };
    (0..devices).map(&mut of).collect()
}

/// Lets the peak start again from what is held now, so that making the fleet does not count.
fn forget_peak() {
    // Where the system has no such file, the peak is that of the whole process.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// The most memory this process has held, in mebibytes, where the system tells.
fn peak() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? / 1024)
}
