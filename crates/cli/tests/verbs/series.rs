//! Readings of vibrating machines, from a table to a model at work: windows, a run, new readings, an exported file.

use std::path::Path;

use crate::common::{Ran, stlf};

/// Readings of a machine in one condition.
const STRETCH: usize = 160;

/// Two channels of six machines, each with a gain, an offset and noise of its own. A worn machine vibrates faster; no single reading tells
/// that. Two machines have no labels, and each was switched off once.
fn readings(machines: std::ops::Range<usize>, stretches: usize) -> String {
    let mut text = "machine,time,x,y,state\n".to_owned();
    let mut state: u64 = 12345;
    let mut noise = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as f64 / f64::from(1u32 << 31) - 0.5
    };
    for machine in machines {
        let (gain, offset) = (1.0 + machine as f64, 10.0 * machine as f64);
        let (mut phase, mut time) = (machine as f64, 0);
        for stretch in 0..stretches {
            let (state, speed) = if stretch % 2 == 0 { ("good", 0.30) } else { ("worn", 0.42) };
            time += if stretch == 3 { 500 } else { 0 };
            for _ in 0..STRETCH {
                phase += speed * (1.0 + 0.05 * noise());
                let x = offset + gain * (phase.sin() + 0.6 * noise());
                let y = gain * ((phase + 1.0).cos() + 0.6 * noise());
                let label = if machine >= 4 { "" } else { state };
                text += &format!("m{machine},{time},{x:.4},{y:.4},{label}\n");
                time += 1;
            }
        }
    }
    text
}

/// The windows of 32 rows that [`readings`] has of a machine, as their first rows and states.
fn expected(machine: usize, stretches: usize) -> Vec<(usize, &'static str)> {
    let first = machine * stretches * STRETCH;
    let windows = (0..stretches * STRETCH).step_by(32);
    windows.map(|at| (first + at, ["good", "worn"][at / STRETCH % 2])).collect()
}

fn within(folder: &Path, args: &[&str]) -> Ran {
    stlf().args(args).current_dir(folder).output().unwrap().into()
}

fn done(folder: &Path, args: &[&str]) -> String {
    let ran = within(folder, args);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args:?}");
    ran.out
}

/// The fraction of a machine's windows that the predictions of its mixture get right, of these readings.
fn accuracy(folder: &Path, run: &str, table: &str, machine: usize) -> f64 {
    let device = format!("m{machine}");
    let out = done(folder, &["predict", run, table, "--device", &device]);
    let mut lines = out.lines();
    assert_eq!(lines.next(), Some("sample,class,probability,row,time"));
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    let own = expected(machine, 10);
    let of_own = |(row, state): &(usize, &str)| {
        let found = rows.iter().find(|found| found[3] == row.to_string()).unwrap();
        found[1] == *state
    };
    own.iter().filter(|window| of_own(window)).count() as f64 / own.len() as f64
}

#[test]
fn readings_become_windows_that_are_learned_predicted_and_exported() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("vibration.csv"), readings(0..6, 10)).unwrap();
    let columns = ["--features", "vibration.csv", "--label", "state", "--device", "machine"];
    let told = done(at, &[&["new", "mine", "--window", "32"], &columns[..]].concat());
    assert_eq!(
        told,
        "Column machine names 6 devices, 4 with labels.\n\
         32 rows are a sample, and the next begins 32 rows later: 300 windows of x, y; none spans a gap in column time.\n\
         wrote mine.toml; run: stlf run mine.toml\n"
    );
    let quick = "seeds=[1] training.steps=1500 compare.methods=[\"st-lf\"]";
    done(at, &["run", "mine.toml", "-c", quick, "--to", "run"]);
    for machine in [4, 5] {
        let right = accuracy(at, "run", "vibration.csv", machine);
        assert!(right > 0.9, "m{machine}: {right}");
        // What the run says of the machine's own windows is what new readings get.
        let name = format!("m{machine}");
        let all = done(at, &["predict", "run", "vibration.csv", "--device", &name]);
        let own: String = std::iter::once("sample,class,probability\n".to_owned())
            .chain(all.lines().skip(1).filter_map(|line| {
                let fields: Vec<&str> = line.split(',').collect();
                let row: usize = fields[3].parse().unwrap();
                let is_own = expected(machine, 10).iter().any(|(own, _)| *own == row);
                is_own.then(|| fields[..3].join(",") + "\n")
            }))
            .collect();
        let written =
            std::fs::read_to_string(at.join(format!("run/seed-1/targets/m{machine}.csv")));
        assert_eq!(own, written.unwrap());
    }
    done(at, &["export", "run", "--device", "m4", "--onnx", "m4.onnx"]);
    let model = std::fs::read(at.join("m4.onnx")).unwrap();
    for word in ["Conv", "MaxPool", "series", "\"window\":32"] {
        assert!(model.windows(word.len()).any(|part| part == word.as_bytes()), "{word}");
    }

    // Row by row, nobody can tell: the label of a row is guessed.
    let config = "data.features=vibration.csv data.label=state data.device=machine data.ignore=[\"time\"] training.model=mlp data.standardise=own";
    let rows = format!("{quick} {config} partition.kind=by-domain");
    done(at, &["run", "-c", &rows, "--to", "rows"]);
    let out = done(at, &["predict", "rows", "vibration.csv", "--device", "m4"]);
    let right = out.lines().skip(1).enumerate().filter(|(row, line)| {
        let state = ["good", "worn"][row / STRETCH % 2];
        row / (10 * STRETCH) == 4 && line.split(',').nth(1) == Some(state)
    });
    let right = right.count() as f64 / (10 * STRETCH) as f64;
    assert!(right < 0.65, "{right}");
}

#[test]
fn new_readings_are_refused_where_they_do_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("vibration.csv"), readings(0..6, 4)).unwrap();
    let config = "seeds=[1] data.features=vibration.csv data.label=state data.device=machine data.window=32 data.stride=16 \
                  training.steps=5 divergence.features=16 compare.methods=[\"st-lf\"]";
    done(at, &["run", "-c", config, "--to", "run"]);
    let refused = |text: &str| {
        std::fs::write(at.join("new.csv"), text).unwrap();
        let ran = within(at, &["predict", "run", "new.csv", "--device", "m5"]);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{}", ran.err);
        ran.err
    };
    let untimed = refused("x,y\n1,2\n3,4\n");
    assert!(untimed.contains("new.csv: column \"time\" is missing"), "{untimed}");
    let short = refused("x,y,time\n1,2,0\n3,4,1\n");
    assert!(short.contains("has at most 2 readings, fewer than the 32 of a window"), "{short}");
    let missing =
        refused(&readings(5..6, 1).replace("m5,0,", "m5,0,nan,").replace(",state", ",state,z"));
    assert!(missing.contains("columns, expected") || missing.contains("nan"), "{missing}");

    // A table of one machine, with a pause in which no window lies.
    std::fs::write(at.join("new.csv"), readings(5..6, 4)).unwrap();
    let out = done(at, &["predict", "run", "new.csv", "--device", "m5", "--probabilities"]);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[0], "sample,class,probability,p_good,p_worn,row,time");
    let starts: Vec<(usize, usize)> = lines[1..]
        .iter()
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            (fields[5].parse().unwrap(), fields[6].parse().unwrap())
        })
        .collect();
    let before = (0..=3 * STRETCH - 32).step_by(16).map(|row| (row, row));
    let after = (3 * STRETCH..=4 * STRETCH - 32).step_by(16).map(|row| (row, row + 500));
    assert_eq!(starts, before.chain(after).collect::<Vec<_>>());
    let asked = done(at, &["ask", "run", "--device", "m5", "--labels", "2"]);
    let lines: Vec<&str> = asked.lines().collect();
    assert_eq!(lines[0], "device,sample,file,row,class,probability,or,label");
    let fields: Vec<&str> = lines[1].split(',').collect();
    let (sample, row): (usize, usize) = (fields[1].parse().unwrap(), fields[3].parse().unwrap());
    // Every machine has 29 windows before its pause and 9 after it.
    assert_eq!((sample / 38, row / (4 * STRETCH)), (5, 5), "{asked}");
    for (change, message) in [
        (
            "data.window=4000",
            "has at most 480 readings without a gap, fewer than the 4000 of a window",
        ),
        ("data.window=4", "the cnn takes windows of at least 8 readings, not 4"),
        ("data.stride=0", "data.stride: is not between 1 and 65536"),
        ("data.time=x", "is earlier than"),
    ] {
        let ran = within(at, &["run", "-c", &format!("{config} {change}"), "--to", "other"]);
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains(message), "{}", ran.err);
    }
}
