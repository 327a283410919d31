//! The arguments that cut a table of readings into windows.

use stlf_data::features::Windows;

/// Windows of a series.
#[derive(clap::Args)]
pub(crate) struct WindowArgs {
    /// The table has readings in the order of time: so many rows of a device in a row are a sample.
    #[arg(long, value_name = "ROWS", requires = "features", value_parser = clap::value_parser!(u32).range(1..=65536))]
    window: Option<u32>,

    /// The next window begins so many rows later [default: where the last one ends]
    #[arg(long, value_name = "ROWS", requires = "window", value_parser = clap::value_parser!(u32).range(1..=65536))]
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
