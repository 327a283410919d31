//! One chart of each kind.
//!
//! `cargo run -p stlf-figure --example gallery target/gallery`

use std::error::Error;
use std::path::Path;

use stlf_figure::heat::Badge;
use stlf_figure::{Axis, Colour, Figure, bars, circles, heat, lines, panels, steps};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("name the folder to write into")?;
    std::fs::create_dir_all(&folder)?;
    let figures = [
        ("lines", curves().draw()),
        ("sweep", sweep().draw()),
        ("steps", prices().draw()),
        ("bars", methods().draw()),
        ("bars-single", ablation().draw()),
        ("heat", divergences(10).draw()),
        ("heat-large", divergences(48).draw()),
        ("circles", holdings().draw()),
        ("hard", hard()),
        (
            "panels",
            panels::arrange(
                "All of it at once",
                2,
                vec![curves().draw(), sweep().draw(), ablation().draw(), divergences(8).draw()],
            ),
        ),
    ];
    for (name, figure) in figures {
        std::fs::write(Path::new(&folder).join(format!("{name}.svg")), figure.to_svg())?;
    }
    Ok(())
}

fn curves() -> lines::Chart {
    let methods = [
        ("ST-LF", 0.88, 4.0),
        ("α-FedAvg", 0.81, 6.0),
        ("FADA", 0.77, 9.0),
        ("random ψ, random α", 0.62, 7.0),
    ];
    let series = methods.map(|(name, level, pace)| {
        let points: Vec<(f64, f64)> = (0..=20)
            .map(|k| {
                let round = f64::from(k) * 2.0;
                (round, level - (level - 0.1) * (-round / pace).exp())
            })
            .collect();
        let band = points.iter().map(|(x, y)| {
            let half = 0.015 + 0.05 * (-x / 15.0).exp();
            (y - half, y + half)
        });
        lines::Series { band: Some(band.collect()), ..lines::Series::new(name, points.clone()) }
    });
    lines::Chart {
        title: "Accuracy of the targets over rounds".to_owned(),
        subtitle: "mean of ten seeds ± standard deviation".to_owned(),
        x: Axis::linear("round"),
        y: Axis::linear("accuracy"),
        series: series.to_vec(),
        ..lines::Chart::default()
    }
}

fn sweep() -> lines::Chart {
    let points = |from: f64, fall: f64| {
        let at = |k: i32| 10f64.powf(-4.0 + f64::from(k) * 0.25);
        (0..=28).map(|k| (at(k), from / (1.0 + (at(k) * fall)))).collect::<Vec<_>>()
    };
    let series = vec![
        lines::Series::new("links", points(240.0, 3.0)),
        lines::Series::new("targets", points(80.0, 0.2)),
        lines::Series::new("energy, J", points(2900.0, 8.0)),
    ];
    lines::Chart {
        title: "What a dearer link changes".to_owned(),
        x: Axis::log("energy weight φ^E"),
        y: Axis::log("amount"),
        series,
        guides: vec![lines::Guide { at: 1.0, label: "now: φ^E = 1".to_owned() }],
        ..lines::Chart::default()
    }
}

fn prices() -> steps::Chart {
    let panel = |label: &str, values: [f64; 5], from_zero| steps::Panel {
        label: label.to_owned(),
        values: values.to_vec(),
        from_zero,
    };
    steps::Chart {
        title: "Energy against error".to_owned(),
        subtitle: "five plans".to_owned(),
        x: Axis::log("energy weight"),
        edges: vec![1e-3, 0.08, 0.26, 0.38, 9.9, 1e4],
        panels: vec![
            panel("energy (joules)", [13.2, 10.2, 7.3, 6.5, 6.2], true),
            panel("links", [4.0, 3.0, 2.0, 2.0, 2.0], true),
            panel("error bound", [3.97, 4.03, 4.26, 4.35, 5.23], false),
        ],
        guide: Some(lines::Guide { at: 1.0, label: "now".to_owned() }),
        ..steps::Chart::default()
    }
}

fn holdings() -> circles::Table {
    let cell = |row: usize, column: usize| {
        let whole = ((row * 7 + column * 5) % 11) as f64 * 12.0;
        circles::Cell { whole, part: whole * row as f64 / 4.0, note: String::new() }
    };
    circles::Table {
        title: "Who holds what".to_owned(),
        rows: (0..5).map(|row| format!("device {row}")).collect(),
        columns: (0..10).map(|class| format!("class {class}")).collect(),
        cells: (0..5).map(|row| (0..10).map(|class| cell(row, class)).collect()).collect(),
        whole_label: "all samples; area is their number".to_owned(),
        part_label: "labels known".to_owned(),
        ..circles::Table::default()
    }
}

fn methods() -> bars::Chart {
    let value =
        |mean: f64| Some(bars::Value { mean, low: mean - 0.03 - 0.02 * mean, high: mean + 0.03 });
    let row = |name: &str, means: [f64; 4]| bars::Series {
        name: name.to_owned(),
        values: means.map(|mean| if mean > 0.0 { value(mean) } else { None }).to_vec(),
    };
    bars::Chart {
        title: "Accuracy of the targets by data set".to_owned(),
        subtitle: "mean and 95 % interval over ten seeds; – was not run".to_owned(),
        y_label: "accuracy".to_owned(),
        groups: ["MNIST", "USPS", "MNIST-M", "MNIST → USPS"].map(str::to_owned).to_vec(),
        series: vec![
            row("ST-LF", [0.91, 0.84, 0.66, 0.72]),
            row("ψ-FedAvg", [0.86, 0.80, 0.55, 0.61]),
            row("FADA", [0.82, 0.0, 0.58, 0.63]),
            row("SM", [0.71, 0.69, 0.41, 0.44]),
        ],
        highlight: Some(0),
        ..bars::Chart::default()
    }
}

fn ablation() -> bars::Chart {
    let means = [12.5, -3.2, 8.0, 4.4, 0.3, 6.1, -1.0];
    let values = means.map(|mean| Some(bars::Value { mean, low: mean - 1.5, high: mean + 1.2 }));
    bars::Chart {
        title: "What each part is worth".to_owned(),
        y_label: "change of accuracy, percentage points".to_owned(),
        groups: [
            "all parts",
            "without the energy term",
            "uniform link weights",
            "roles drawn at random",
            "without d\u{302}",
            "without ε\u{302}",
            "one source per target and a name that goes on and on",
        ]
        .map(str::to_owned)
        .to_vec(),
        series: vec![bars::Series { name: "change".to_owned(), values: values.to_vec() }],
        highlight: Some(0),
        width: 640.0,
        ..bars::Chart::default()
    }
}

fn divergences(devices: usize) -> heat::Map {
    let at = |i: usize, j: usize| {
        let near = (i as f64 * 0.37).sin() - (j as f64 * 0.37).sin();
        (near.abs() + 0.15 * ((i * 7 + j * 7) % 5) as f64 / 5.0).min(1.9)
    };
    let row =
        |i: usize| (0..devices).map(|j| (i != j && (i + j) % 11 != 9).then(|| at(i, j))).collect();
    let role = |i: usize| {
        let (letter, colour) =
            if i % 3 == 1 { ("S", Colour::nth(0)) } else { ("T", Colour::nth(1)) };
        Some(Badge { letter: letter.to_owned(), colour })
    };
    let names: Vec<String> = (1..=devices).map(|i| format!("device {i}")).collect();
    heat::Map {
        title: format!("Divergence d\u{302} of {devices} devices"),
        subtitle: "S source, T target; hatched: not measured".to_owned(),
        rows: names.clone(),
        columns: names,
        rows_label: "sender".to_owned(),
        columns_label: "receiver".to_owned(),
        values: (0..devices).map(row).collect(),
        range: Some((0.0, 2.0)),
        bar_label: "d\u{302}".to_owned(),
        row_badges: (0..devices).map(role).collect(),
        column_badges: (0..devices).map(role).collect(),
        ..heat::Map::default()
    }
}

/// What should never be asked for.
fn hard() -> Figure {
    let nan = f64::NAN;
    let long = "a name that is far too long for any legend and yet has to be drawn somewhere on this chart";
    let odd = vec![(1.0, 1e-300), (2.0, nan), (3.0, 1e300), (f64::INFINITY, 1.0), (5.0, -4.0)];
    let two = vec![lines::Series::new(long, vec![(1.0, 1.0)]), lines::Series::new("b", odd)];
    let value = |mean| Some(bars::Value { mean, low: nan, high: 2.0 });
    let series =
        bars::Series { name: long.to_owned(), values: vec![value(1e12), value(-1e11), None] };
    panels::arrange(
        "Hard cases",
        3,
        vec![
            lines::Chart {
                title: "No data".to_owned(),
                width: 320.0,
                height: 240.0,
                ..lines::Chart::default()
            }
            .draw(),
            lines::Chart {
                title: long.to_owned(),
                series: two.clone(),
                width: 320.0,
                height: 260.0,
                ..lines::Chart::default()
            }
            .draw(),
            lines::Chart {
                y: Axis::log("y"),
                x: Axis::log("x"),
                series: two,
                width: 320.0,
                height: 260.0,
                ..lines::Chart::default()
            }
            .draw(),
            bars::Chart {
                groups: vec!["a".to_owned(), String::new(), long.to_owned()],
                series: vec![series],
                width: 320.0,
                height: 260.0,
                ..bars::Chart::default()
            }
            .draw(),
            bars::Chart { width: 320.0, height: 200.0, ..bars::Chart::default() }.draw(),
            heat::Map {
                title: "One cell".to_owned(),
                rows: vec![long.to_owned()],
                columns: vec!["b".to_owned()],
                values: vec![vec![Some(1.0)]],
                ..heat::Map::default()
            }
            .draw(),
        ],
    )
}
