//! What has become of a device's table since the device read it, for people and programs.

use serde::{Deserialize, Serialize};
use stlf_planning::number_format::counted;

/// What has become of a device's table while the device takes part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum DataChange {
    /// It has changed by no more than chance explains, or than a plan would notice. The device goes on with the rows that it had.
    Slight {
        /// The number of rows in the table.
        rows: usize,
        /// d̂ of these rows from what the device has published.
        divergence: f64,
    },
    /// It has changed in a way that matters. The device takes part with the new rows from the next epoch on.
    Matters {
        /// The number of rows in the table.
        rows: usize,
        /// d̂ of these rows from what the device has published.
        divergence: f64,
        /// Whether the device has labels now and had none, or has none any more.
        in_labels: bool,
        /// Whether the device takes a new scale of its features.
        in_scale: bool,
    },
    /// It cannot be read, or the device cannot take part with it. The device goes on with the rows that it had.
    Unusable {
        /// Why.
        reason: String,
    },
}

impl std::fmt::Display for DataChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DataChange::Slight { rows, divergence } => write!(
                f,
                "its table has changed too little to matter ({}, d̂ {divergence:.2}); it goes on with the rows that it had",
                counted(*rows, "row")
            ),
            DataChange::Matters { rows, divergence, in_labels, in_scale } => {
                let rows = counted(*rows, "row");
                let scale = if *in_scale { ", a new scale" } else { "" };
                let labels = if *in_labels {
                    ", labels where there were none, or none any more"
                } else {
                    ""
                };
                write!(
                    f,
                    "its table has changed ({rows}, d̂ {divergence:.2}{labels}{scale}); it takes part with that"
                )
            }
            DataChange::Unusable { reason } => {
                write!(
                    f,
                    "its table cannot be used; it goes on with the rows that it had: {reason}"
                )
            }
        }
    }
}
