//! What has become of a device's data since the device read them, for people and programs.

use std::fmt;

use serde::{Deserialize, Serialize};
use stlf_planning::number_format::counted;

/// What a device reads its samples from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadFrom {
    /// A table, each row of which is a sample or a reading.
    #[default]
    Table,
    /// A folder of pictures.
    Pictures,
}

impl ReadFrom {
    /// Returns so many samples in words.
    fn counted(self, samples: usize) -> String {
        match self {
            ReadFrom::Table => counted(samples, "row"),
            ReadFrom::Pictures => counted(samples, "picture"),
        }
    }

    /// Returns what the samples that the device had are called.
    fn samples(self) -> &'static str {
        match self {
            ReadFrom::Table => "rows",
            ReadFrom::Pictures => "pictures",
        }
    }
}

impl fmt::Display for ReadFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReadFrom::Table => "its table",
            ReadFrom::Pictures => "its folder of pictures",
        })
    }
}

/// What has become of a device's data while the device takes part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataChange {
    /// What they are read from.
    #[serde(default)]
    pub of: ReadFrom,
    /// What that leads to.
    #[serde(flatten)]
    pub effect: Effect,
}

/// What a change of data leads to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Effect {
    /// They have changed by no more than chance explains, or than a plan would notice. The device goes on with the samples that it had.
    Slight {
        /// The number of rows in the table, or of pictures.
        rows: usize,
        /// d̂ of these rows from what the device has published.
        divergence: f64,
    },
    /// They have changed in a way that matters. The device takes part with the new samples from the next epoch on.
    Matters {
        /// The number of rows in the table, or of pictures.
        rows: usize,
        /// d̂ of these rows from what the device has published.
        divergence: f64,
        /// Whether the device has labels now and had none, or has none any more.
        in_labels: bool,
        /// Whether the device takes a new scale of its features.
        in_scale: bool,
    },
    /// They cannot be read, or the device cannot take part with them. The device goes on with the samples that it had.
    Unusable {
        /// What is wrong with them, as a sentence without a full stop.
        reason: String,
    },
}

impl fmt::Display for DataChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DataChange { of, effect } = self;
        let goes_on = format!("it goes on with the {} that it had", of.samples());
        match effect {
            Effect::Slight { rows, divergence } => {
                let rows = of.counted(*rows);
                write!(
                    f,
                    "{of} has changed too little to matter ({rows}, d̂ {divergence:.2}); {goes_on}"
                )
            }
            Effect::Matters { rows, divergence, in_labels, in_scale } => {
                let rows = of.counted(*rows);
                let scale = if *in_scale { ", a new scale" } else { "" };
                let labels = if *in_labels {
                    ", labels where there were none, or none any more"
                } else {
                    ""
                };
                write!(
                    f,
                    "{of} has changed ({rows}, d̂ {divergence:.2}{labels}{scale}); it takes part with that"
                )
            }
            Effect::Unusable { reason } => write!(f, "{of} cannot be used; {goes_on}: {reason}"),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_of_what_it_is_a_change_of() {
        let effect = Effect::Slight { rows: 340, divergence: 0.004 };
        let change = |of| DataChange { of, effect: effect.clone() };
        assert_eq!(
            change(ReadFrom::Table).to_string(),
            "its table has changed too little to matter (340 rows, d̂ 0.00); it goes on with the rows that it had"
        );
        assert_eq!(
            change(ReadFrom::Pictures).to_string(),
            "its folder of pictures has changed too little to matter (340 pictures, d̂ 0.00); it goes on with the pictures that it had"
        );
        // A status of an earlier version is of a table.
        let earlier = r#"{"kind":"slight","rows":340,"divergence":0.004}"#;
        let read: DataChange = serde_json::from_str(earlier).unwrap();
        assert_eq!(read, change(ReadFrom::Table));
        let text = serde_json::to_string(&change(ReadFrom::Pictures)).unwrap();
        assert_eq!(text, r#"{"of":"pictures","kind":"slight","rows":340,"divergence":0.004}"#);
    }
}
