//! A matrix in JSON, read straight into one flat vector: a fleet of 10,000 has 100 million cells.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeSeq, Serializer};

use stlf_planning::error::{Counted, Error, Reason};

/// Rows of numbers, null being NaN. Rows may be ragged until [`Matrix::into_square`] looks.
#[derive(Debug, Clone, Default)]
pub struct Matrix {
    /// Where each row ends in `values`.
    ends: Vec<usize>,
    values: Vec<f64>,
}

/// Equal shape and values, NaN being equal to NaN.
impl PartialEq for Matrix {
    fn eq(&self, other: &Matrix) -> bool {
        let same = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan());
        self.ends == other.ends && self.values.iter().zip(&other.values).all(same)
    }
}

impl Matrix {
    /// A square of side `n` from its cells, row by row, with NaN for null.
    pub fn square(n: usize, cell: impl Fn(usize, usize) -> f64) -> Matrix {
        let cells = (0..n).flat_map(|i| (0..n).map(move |j| (i, j)));
        Matrix {
            ends: (1..=n).map(|row| row * n).collect(),
            values: cells.map(|(i, j)| cell(i, j)).collect(),
        }
    }

    /// Creates a matrix from its rows, with NaN for null.
    pub fn from_rows<R: IntoIterator<Item = f64>>(rows: impl IntoIterator<Item = R>) -> Matrix {
        let mut matrix = Matrix::default();
        for row in rows {
            matrix.values.extend(row);
            matrix.ends.push(matrix.values.len());
        }
        matrix
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.ends.len()
    }

    /// The cells row by row, if there are `n` rows of `n`.
    ///
    /// # Errors
    /// Says which row of `field` has the wrong length, or that rows are missing.
    pub fn into_square(self, n: usize, field: &str) -> Result<Vec<f64>, Error> {
        let check = |field: String, found: usize, of: Counted| match found == n {
            true => Ok(()),
            false => Err(Error::new(field, Reason::Length { found, expected: n, of })
                .with_hint("row = sender, column = receiver, one of each per device")),
        };
        check(field.to_owned(), self.rows(), Counted::Rows)?;
        let mut start = 0;
        for (row, &end) in self.ends.iter().enumerate() {
            check(format!("{field}[{row}]"), end - start, Counted::EntriesOfRow(row))?;
            start = end;
        }
        Ok(self.values)
    }

    fn row(&self, row: usize) -> &[f64] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.values[start..self.ends[row]]
    }
}

impl<'de> Deserialize<'de> for Matrix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Matrix, D::Error> {
        struct Rows;
        impl<'de> Visitor<'de> for Rows {
            type Value = Matrix;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a matrix, a list of rows of numbers")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<Matrix, A::Error> {
                let mut matrix = Matrix::default();
                while rows.next_element_seed(Row(&mut matrix.values))?.is_some() {
                    matrix.ends.push(matrix.values.len());
                }
                Ok(matrix)
            }
        }
        deserializer.deserialize_seq(Rows)
    }
}

/// Appends one row to the cells.
struct Row<'a>(&'a mut Vec<f64>);

impl<'de> DeserializeSeed<'de> for Row<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Row<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row, a list of numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut cells: A) -> Result<(), A::Error> {
        while let Some(Cell(value)) = cells.next_element()? {
            self.0.push(value);
        }
        Ok(())
    }
}

struct Cell(f64);

impl<'de> Deserialize<'de> for Cell {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Cell, D::Error> {
        struct NumberOrNull;
        impl Visitor<'_> for NumberOrNull {
            type Value = Cell;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or null")
            }
            fn visit_f64<E>(self, value: f64) -> Result<Cell, E> {
                Ok(Cell(value))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Cell, E> {
                Ok(Cell(value as f64))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Cell, E> {
                Ok(Cell(value as f64))
            }
            fn visit_unit<E>(self) -> Result<Cell, E> {
                Ok(Cell(f64::NAN))
            }
        }
        deserializer.deserialize_any(NumberOrNull)
    }
}

impl Serialize for Matrix {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Cells<'a>(&'a [f64]);
        impl Serialize for Cells<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_seq(self.0.iter().map(|v| (!v.is_nan()).then_some(*v)))
            }
        }
        let mut rows = serializer.serialize_seq(Some(self.rows()))?;
        for row in 0..self.rows() {
            rows.serialize_element(&Cells(self.row(row)))?;
        }
        rows.end()
    }
}

impl JsonSchema for Matrix {
    fn schema_name() -> Cow<'static, str> {
        "Matrix".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "One row per sender, one column per receiver; null where there is none.",
            "type": "array",
            "items": { "type": "array", "items": { "type": ["number", "null"] } }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(json: &str) -> Matrix {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn null_is_nan_and_comes_back_as_null() {
        let text = "[[0.5,null],[3.0,-1.25]]";
        let read = matrix(text);
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
        let cells = read.into_square(2, "m").unwrap();
        assert!(cells[1].is_nan());
        assert_eq!(cells[3], -1.25);
    }

    #[test]
    fn shapes_are_named() {
        let error = |json: &str| matrix(json).into_square(3, "m").unwrap_err().to_string();
        assert_eq!(error("[[1,2,3]]"), "m: has 1 row, expected 3, one per device");
        assert_eq!(error("[[1,2,3],[1,2],[1,2,3]]"), "m[1]: row 2 has 2 entries, expected 3");
        assert_eq!(error("[[1,2,3],[1,2,3],[]]"), "m[2]: row 3 has 0 entries, expected 3");
    }

    #[test]
    fn a_word_in_a_cell_is_refused() {
        let error = serde_json::from_str::<Matrix>("[[1,\"x\"]]").unwrap_err().to_string();
        assert!(error.contains("expected a number or null"), "{error}");
    }
}
