//! Tables as files: what those of features and those of links have in common, before either knows what its columns mean.

mod csv_file;
#[cfg(feature = "parquet")]
mod parquet_file;

pub use csv_file::{RowError, csv_reader};
#[cfg(feature = "parquet")]
pub use parquet_file::{Broken, Cell, Kind, ParquetTable};

/// The first bytes of every Parquet file.
pub const PARQUET: &[u8; 4] = b"PAR1";
