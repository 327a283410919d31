//! The arguments that cut a table of readings into windows.

use stlf_data::features::Windows;

use super::numbers::within;

/// Windows of a series.
#[derive(clap::Args)]
pub(crate) struct WindowArgs {
    /// The table has readings in the order of time: a sample is this many rows of one device that follow each other.
    #[arg(long, value_name = "ROWS", requires = "features", value_parser = within(1..=65536))]
    window: Option<u32>,

    /// The number of rows from the beginning of a window to that of the next [default: as many as a window has]
    #[arg(long, value_name = "ROWS", requires = "window", value_parser = within(1..=65536))]
    stride: Option<u32>,

    /// The column of times; no window spans a gap [default: time or timestamp, if there is one]
    #[arg(long, value_name = "COLUMN", requires = "window")]
    pub(crate) time: Option<String>,
}

impl WindowArgs {
    /// The size of the windows, if any are asked for.
    pub(crate) fn size(&self) -> Option<Windows> {
        let length = self.window? as usize;
        Some(Windows { length, stride: self.stride.map_or(length, |stride| stride as usize) })
    }
}
