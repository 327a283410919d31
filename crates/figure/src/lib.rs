//! Draws charts as SVG; knows no fleet.
//!
//! A chart is plain data ([`lines::Chart`], [`steps::Chart`], [`bars::Chart`], [`heat::Map`], [`circles::Table`]). Drawn, it is a [`Figure`]: marks on
//! white paper. [`panels::arrange`] puts figures beside each other, [`Figure::to_svg`] writes them.
//!
//! ```
//! use stlf_figure::{Axis, lines};
//!
//! let chart = lines::Chart {
//!     title: "Accuracy over rounds".to_owned(),
//!     x: Axis::linear("round"),
//!     y: Axis::linear("accuracy"),
//!     series: vec![lines::Series::new("ST-LF", vec![(1.0, 0.4), (2.0, 0.7), (3.0, 0.8)])],
//!     ..lines::Chart::default()
//! };
//! assert!(chart.draw().to_svg().starts_with("<svg"));
//! ```
//!
//! Anything can be drawn: values that are not finite are left out, names that are too long are shortened, and a
//! chart without data says so. The crate opens no file, prints nothing, reads no clock and draws no random
//! numbers; the same chart gives the same bytes.

pub mod axis;
pub mod bars;
pub mod circles;
mod clip;
pub mod colour;
pub mod figure;
mod font;
mod head;
pub mod heat;
pub mod lines;
mod number;
pub mod panels;
mod plot;
pub mod steps;
mod svg;

pub use axis::{Axis, Scale};
pub use colour::Colour;
pub use figure::{Anchor, Figure, Fill, Mark, Point, Stroke, Text, Weight};
