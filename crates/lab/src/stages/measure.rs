//! How different the devices' data are.

use std::ops::ControlFlow;

use stlf::divergence::{self, Measurement};
use stlf_data::Shape;

use super::Draw;
use crate::config::Config;
use crate::fleet::Fleet;
use crate::record::DivergenceRow;
use crate::run::Watch;
use crate::{Error, Folder, Stage};

/// The table that the stage ends with.
pub const TABLE: &str = "divergence.csv";

/// d̂ as a square, row by row, from the table or measured anew.
pub fn measure(
    config: &Config,
    shape: Shape,
    fleet: &Fleet,
    folder: &Folder,
    seed: u64,
    watch: &Watch<'_>,
) -> Result<Vec<f64>, Error> {
    if let Some(rows) = folder.read_csv::<DivergenceRow>(TABLE)? {
        return square(fleet, folder, &rows);
    }
    let inputs: Vec<&[f32]> = fleet.devices.iter().map(|d| &d.inputs[..]).collect();
    let mut see = |progress: divergence::Progress| match watch.see(
        Stage::Measure,
        progress.done,
        progress.total,
    ) {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    };
    let settings = config.divergence.settings();
    let seed = Draw::Divergence.seed(seed, 0);
    let measured = divergence::measure(&inputs, shape, &settings, seed, &mut see)?;
    let measured = measured.ok_or(Error::Stopped)?;
    folder.write_csv(TABLE, &rows(fleet, &measured))?;
    Ok(measured.matrix())
}

fn rows(fleet: &Fleet, measured: &Measurement) -> Vec<DivergenceRow> {
    let row = |(i, j, estimate): (usize, usize, divergence::Estimate)| DivergenceRow {
        from: fleet.devices[i].name.clone(),
        to: fleet.devices[j].name.clone(),
        divergence: estimate.value,
        low: estimate.low,
        high: estimate.high,
        signal: estimate.has_signal(),
    };
    measured.pairs().map(row).collect()
}

fn square(fleet: &Fleet, folder: &Folder, rows: &[DivergenceRow]) -> Result<Vec<f64>, Error> {
    let n = fleet.len();
    let mut square = vec![f64::NAN; n * n];
    (0..n).for_each(|i| square[i * n + i] = 0.0);
    let place = |name: &str| {
        let found = fleet.devices.iter().position(|d| d.name == name);
        found.ok_or_else(|| folder.broken(TABLE, &format!("there is no device {name}")))
    };
    for row in rows {
        let (i, j) = (place(&row.from)?, place(&row.to)?);
        square[i * n + j] = row.divergence;
        square[j * n + i] = row.divergence;
    }
    match square.iter().any(|d| d.is_nan()) {
        true => Err(folder.broken(TABLE, "a pair of devices is missing")),
        false => Ok(square),
    }
}
