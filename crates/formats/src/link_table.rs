//! Links as a table: one row per link, by name. What a large or sparse fleet gives instead of matrices.

mod csv_file;
#[cfg(feature = "parquet")]
mod parquet_file;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use stlf_planning::energy::{energy_from_joules_per_bit, link_energy};
use stlf_planning::error::{Error, Field, Named, Reason};
use stlf_planning::problem::{Links, non_negative};

use super::document::{near, shorten};
use super::problem::ScaleEntry;

/// Links by name, each name kept once.
#[derive(Debug, Clone, Default)]
pub struct LinkTable {
    names: Names,
    /// Sender, receiver (into `names`), divergence, energy.
    rows: Vec<(u32, u32, f64, f64)>,
    place: Place,
}

/// Tables are equal if they have the same links in the same order.
impl PartialEq for LinkTable {
    fn eq(&self, other: &LinkTable) -> bool {
        self.entries().eq(other.entries())
    }
}

/// How to name a row in an error.
#[derive(Debug, Clone, Copy, Default)]
enum Place {
    /// As `links[4].energy`, in a problem file.
    #[default]
    Json,
    /// `row 6, column energy`; the first link stands in this row.
    File { first_row: usize },
}

impl Place {
    fn cell(self, row: usize, column: &str) -> String {
        match self {
            Place::Json => format!("links[{row}].{column}"),
            Place::File { first_row } => format!("row {}, column {column}", first_row + row),
        }
    }

    fn row(self, row: usize) -> String {
        match self {
            Place::Json => format!("links[{row}]"),
            Place::File { first_row } => format!("row {}", first_row + row),
        }
    }
}

/// The distinct names of a table, each kept once and known by its number.
#[derive(Debug, Clone, Default)]
struct Names {
    list: Vec<String>,
    index: HashMap<Box<[u8]>, u32>,
}

impl Names {
    /// The name's number, or `None` if it is not text or there are too many names.
    fn intern(&mut self, name: &[u8]) -> Option<u32> {
        if let Some(&known) = self.index.get(name) {
            return Some(known);
        }
        let number = u32::try_from(self.list.len()).ok()?;
        self.list.push(std::str::from_utf8(name).ok()?.to_owned());
        self.index.insert(name.into(), number);
        Some(number)
    }
}

impl LinkTable {
    /// Returns the number of links.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether the table has no links.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.rows.iter().map(|&(from, to, divergence, energy)| Entry {
            from: Cow::Borrowed(&self.names.list[from as usize]),
            to: Cow::Borrowed(&self.names.list[to as usize]),
            divergence,
            energy,
        })
    }

    pub(super) fn from_links<'a>(links: &Links, name: impl Fn(usize) -> &'a str) -> LinkTable {
        let mut table = LinkTable::default();
        let device = |i: usize| i as u32;
        table.names.list = (0..links.devices()).map(|i| name(i).to_owned()).collect();
        for to in 0..links.devices() {
            let row = |l: stlf_planning::problem::Link| {
                (device(l.from), device(to), l.divergence, l.energy)
            };
            table.rows.extend(links.incoming(to).map(row));
        }
        table
    }

    /// Finds the devices that the names stand for and checks every row.
    pub(super) fn resolve(
        mut self,
        index: &HashMap<String, usize>,
        scale: ScaleEntry,
    ) -> Result<Links, Error> {
        let mut devices = Vec::with_capacity(self.names.list.len());
        for (number, name) in self.names.list.iter().enumerate() {
            match index.get(name) {
                Some(&device) => devices.push(device as u32),
                None => return Err(self.unknown(number as u32, index)),
            }
        }
        for k in 0..self.rows.len() {
            let (from, to, divergence, energy) = self.rows[k];
            let at = |column: &str| {
                let [from, to] = [from, to].map(|n| shorten(&self.names.list[n as usize]));
                Field::of_link(self.place.cell(k, column), from, to)
            };
            non_negative(divergence, || at("divergence"))?;
            if energy == f64::INFINITY {
                return Err(Error::other(at("energy"), "sending would take forever")
                    .with_hint("bits_per_second must be above 0"));
            }
            scale.check_divergence(divergence, || at("divergence"))?;
            non_negative(energy, || at("energy"))?;
            if from == to {
                let name = shorten(&self.names.list[from as usize]);
                return Err(Error::new(self.place.row(k), Reason::SelfLink { device: name })
                    .with_hint("leave the row out"));
            }
        }
        self.check_distinct()?;
        for row in &mut self.rows {
            row.0 = devices[row.0 as usize];
            row.1 = devices[row.1 as usize];
        }
        Ok(Links::from_list(index.len(), self.rows))
    }

    fn unknown(&self, number: u32, index: &HashMap<String, usize>) -> Error {
        let uses = |&(from, to, ..): &(u32, u32, f64, f64)| from == number || to == number;
        let row = self.rows.iter().position(uses).unwrap_or(0);
        let column = if self.rows.get(row).is_some_and(|r| r.0 == number) { "from" } else { "to" };
        let name = &self.names.list[number as usize];
        match super::problem::device(name, &self.place.cell(row, column), index) {
            Err(error) => error,
            // Unreachable in practice: the caller looked the name up in the same index.
            Ok(_) => Error::other(self.place.cell(row, column), "unknown device"),
        }
    }

    fn check_distinct(&self) -> Result<(), Error> {
        let mut keys: Vec<u64> =
            self.rows.iter().map(|r| u64::from(r.0) << 32 | u64::from(r.1)).collect();
        keys.sort_unstable();
        let Some(twice) = keys.windows(2).find(|pair| pair[0] == pair[1]) else { return Ok(()) };
        let (from, to) = ((twice[0] >> 32) as u32, twice[0] as u32);
        let is_it = |r: &(u32, u32, f64, f64)| r.0 == from && r.1 == to;
        let first = self.rows.iter().position(is_it).unwrap_or(0);
        let last = self.rows.iter().rposition(is_it).unwrap_or(0);
        let [from, to] = [from, to].map(|n| shorten(&self.names.list[n as usize]));
        let message = format!("{from} → {to} is already in {}", self.place.row(first));
        Err(Error::other(self.place.row(last), message).with_hint("list every link once"))
    }
}

/// One row in JSON.
#[derive(serde::Serialize, serde::Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields, expecting = "an object with from, to, divergence and energy")]
#[schemars(rename = "Link")]
struct Entry<'a> {
    /// The name of the sender.
    from: Cow<'a, str>,
    /// The name of the receiver.
    to: Cow<'a, str>,
    /// How different the two devices' data are, 0 to 2.
    divergence: f64,
    /// Joules to send a model.
    energy: f64,
}

impl Serialize for LinkTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.entries())
    }
}

impl<'de> Deserialize<'de> for LinkTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<LinkTable, D::Error> {
        struct Rows;
        impl<'de> Visitor<'de> for Rows {
            type Value = LinkTable;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of links")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<LinkTable, A::Error> {
                let mut table = LinkTable::default();
                while let Some(entry) = seq.next_element::<Entry<'_>>()? {
                    let many = || serde::de::Error::custom("too many devices");
                    let from = table.names.intern(entry.from.as_bytes()).ok_or_else(many)?;
                    let to = table.names.intern(entry.to.as_bytes()).ok_or_else(many)?;
                    table.rows.push((from, to, entry.divergence, entry.energy));
                }
                Ok(table)
            }
        }
        deserializer.deserialize_seq(Rows)
    }
}

impl JsonSchema for LinkTable {
    fn schema_name() -> Cow<'static, str> {
        "Links".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Vec::<Entry<'_>>::json_schema(generator)
    }
}

/// The columns a file may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    From,
    To,
    Divergence,
    Energy,
    BitsPerSecond,
    Watts,
    JoulesPerBit,
}

impl Column {
    const ALL: [Column; 7] = [
        Column::From,
        Column::To,
        Column::Divergence,
        Column::Energy,
        Column::BitsPerSecond,
        Column::Watts,
        Column::JoulesPerBit,
    ];

    fn name(self) -> &'static str {
        match self {
            Column::From => "from",
            Column::To => "to",
            Column::Divergence => "divergence",
            Column::Energy => "energy",
            Column::BitsPerSecond => "bits_per_second",
            Column::Watts => "watts",
            Column::JoulesPerBit => "joules_per_bit",
        }
    }
}

/// The position of each column in a file, and how a row's energy is computed.
#[derive(Debug, Clone, Copy)]
struct Header {
    from: usize,
    to: usize,
    divergence: usize,
    energy: EnergyColumns,
}

#[derive(Debug, Clone, Copy)]
enum EnergyColumns {
    Joules(usize),
    RateAndPower { bits_per_second: usize, watts: usize },
    JoulesPerBit(usize),
}

impl Header {
    fn new<'a>(names: impl Iterator<Item = &'a str>) -> Result<Header, Error> {
        let mut at: [Option<usize>; 7] = [None; 7];
        for (k, name) in names.enumerate() {
            let known = Column::ALL.iter().position(|c| c.name() == name.trim());
            let Some(column) = known else { return Err(unknown_column(name)) };
            if at[column].replace(k).is_some() {
                return Err(Error::other(format!("column {name}"), "is there twice"));
            }
        }
        let find = |column: Column| at[column as usize];
        let need = |column: Column| {
            find(column).ok_or_else(|| {
                Error::missing(format!("column {}", column.name()), "is missing")
                    .with_hint("the first row must name the columns: from,to,divergence,energy")
            })
        };
        let energy = match (
            find(Column::Energy),
            find(Column::BitsPerSecond),
            find(Column::Watts),
            find(Column::JoulesPerBit),
        ) {
            (Some(energy), None, None, None) => EnergyColumns::Joules(energy),
            (None, Some(bits_per_second), Some(watts), None) => {
                EnergyColumns::RateAndPower { bits_per_second, watts }
            }
            (None, _, None, Some(per_bit)) => EnergyColumns::JoulesPerBit(per_bit),
            (None, None, Some(_), None) => {
                need(Column::BitsPerSecond).map(EnergyColumns::Joules)?
            }
            (None, Some(_), None, None) => need(Column::Watts).map(EnergyColumns::Joules)?,
            (None, None, None, None) => need(Column::Energy).map(EnergyColumns::Joules)?,
            _ => {
                return Err(Error::other("column energy", "the energy is given in two ways")
                    .with_hint("keep energy, or bits_per_second and watts, or joules_per_bit"));
            }
        };
        Ok(Header {
            from: need(Column::From)?,
            to: need(Column::To)?,
            divergence: need(Column::Divergence)?,
            energy,
        })
    }
}

fn unknown_column(name: &str) -> Error {
    let known = Column::ALL.map(Column::name);
    let likely = near(name.trim(), known);
    let (given, meant) = (shorten(name), likely.map(str::to_owned));
    let field = format!("column {given:?}");
    let error = Error::new(field, Reason::Unknown { what: Named::Column, given, meant });
    if name.contains([';', '\t']) {
        return error.with_hint("columns are separated by commas");
    }
    match likely {
        Some(best) => error.with_hint(format!("did you mean `{best}`?")),
        None => error.with_hint(format!("known columns: {}", known.join(", "))),
    }
}

impl EnergyColumns {
    /// The columns needed, in the order in which [`EnergyColumns::joules`] asks for them.
    #[cfg(feature = "parquet")]
    fn columns(self) -> impl Iterator<Item = (Column, usize)> {
        let (first, second) = match self {
            EnergyColumns::Joules(at) => ((Column::Energy, at), None),
            EnergyColumns::RateAndPower { bits_per_second, watts } => {
                ((Column::BitsPerSecond, bits_per_second), Some((Column::Watts, watts)))
            }
            EnergyColumns::JoulesPerBit(at) => ((Column::JoulesPerBit, at), None),
        };
        std::iter::once(first).chain(second)
    }

    /// The row's energy in joules, each number fetched by its column.
    fn joules(
        self,
        model_bits: f64,
        mut number: impl FnMut(Column, usize) -> Result<f64, Error>,
    ) -> Result<f64, Error> {
        match self {
            EnergyColumns::Joules(at) => number(Column::Energy, at),
            EnergyColumns::RateAndPower { bits_per_second, watts } => Ok(link_energy(
                model_bits,
                number(Column::BitsPerSecond, bits_per_second)?,
                number(Column::Watts, watts)?,
            )),
            EnergyColumns::JoulesPerBit(at) => {
                Ok(energy_from_joules_per_bit(model_bits, number(Column::JoulesPerBit, at)?))
            }
        }
    }
}
