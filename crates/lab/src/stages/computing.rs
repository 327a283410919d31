//! What devices compute for ST-LF, in joules beside those of the radio.

use stlf_method::method::Method;
use stlf_planning::plan::{Plan, legs};

use super::{SeedRun, student};
use crate::Error;
use crate::record::ComputingRow;

/// The table of what every device computes.
pub const TABLE: &str = "computing.csv";

/// Counts what every device computes, where the configuration says what a joule buys: training alone and on models that are handed over, and
/// students. Measuring and combining are single passes over the samples, which is little beside them, and are not counted.
///
/// # Errors
/// A table that cannot be read or written.
pub fn computing(run: &SeedRun<'_>, plan: &Plan) -> Result<Vec<ComputingRow>, Error> {
    let Some(per_joule) = run.config.energy.gflop_per_joule else { return Ok(Vec::new()) };
    let (training, spec) = (&run.config.training, &run.setup.spec);
    let steps = run.setup.training.steps;
    let gflop = |steps: usize| (steps * training.batch * spec.operations_per_sample()) as f64 / 1e9;
    let warm_up = training.warm_up_rounds * training.warm_up_steps;
    let legs = legs(&plan.handovers, &plan.links);
    let students = student::read(&run.folder, &[Method::StLf])?;
    let rows = run.fleet.devices.iter().enumerate().map(|(index, device)| {
        let trains = !device.labels.is_empty();
        let handed = legs.iter().filter(|leg| leg.handover.to == index).count();
        let own = students.iter().find(|row| row.target == device.name);
        let training_gflop = if trains { gflop(warm_up + steps) } else { 0.0 };
        let handed_gflop = gflop(handed * steps);
        let student_gflop = own.and_then(|row| row.gflop).unwrap_or(0.0);
        ComputingRow {
            seed: run.setup.seed,
            device: device.name.clone(),
            training_gflop,
            handed_gflop,
            student_gflop,
            joules: (training_gflop + handed_gflop + student_gflop) / per_joule,
        }
    });
    let rows: Vec<ComputingRow> = rows.collect();
    run.folder.write_csv(TABLE, &rows)?;
    Ok(rows)
}
