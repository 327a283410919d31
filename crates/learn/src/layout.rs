//! Names and shapes of a model's tensors, and where their numbers lie in the flat vector of all.

use std::ops::Range;

use crate::Error;

/// The most numbers of a model: a gibibyte of them.
const MOST_PARAMETERS: usize = 1 << 28;

/// The bytes that a safetensors file has for one tensor besides its name and numbers.
const PER_TENSOR: usize = 200;

/// The bytes that it has for all of them together; a header of names is short.
const PER_FILE: usize = 64 << 10;

/// One tensor of parameters inside the flat vector of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// The name that PyTorch gives it, such as `conv1.weight` or `fc2.bias`.
    pub name: String,
    /// PyTorch's shape: filters × channels × rows × columns, outputs × inputs, or outputs.
    pub shape: Vec<usize>,
    /// The range of its numbers in the flat vector.
    pub range: Range<usize>,
}

/// The tensors of a model. All models of a fleet have the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layout {
    tensors: Vec<Tensor>,
}

impl Layout {
    /// The tensors of a model that is not one of ours, in this order.
    ///
    /// # Errors
    /// No number at all, too many, or a name twice.
    pub fn new<'a>(
        tensors: impl IntoIterator<Item = (&'a str, &'a [usize])>,
    ) -> Result<Layout, Error> {
        let mut layout = Layout::default();
        for (name, shape) in tensors {
            if layout.tensors.iter().any(|known| known.name == name) {
                return Err(Error::Params(format!("there are two tensors {name}")));
            }
            let numbers = shape.iter().try_fold(1_usize, |all, &side| all.checked_mul(side));
            let most = MOST_PARAMETERS - layout.parameters();
            if numbers.is_none_or(|numbers| numbers > most) {
                let message = format!(
                    "{name} of shape {shape:?} is too much; a model has at most {MOST_PARAMETERS} numbers"
                );
                return Err(Error::Params(message));
            }
            layout.push(name.to_owned(), shape.to_vec());
        }
        match layout.parameters() {
            0 => Err(Error::Params("a model without numbers".to_owned())),
            _ => Ok(layout),
        }
    }

    /// Adds a tensor after the others.
    pub(crate) fn push(&mut self, name: String, shape: Vec<usize>) {
        let start = self.parameters();
        let range = start..start + shape.iter().product::<usize>();
        self.tensors.push(Tensor { name, shape, range });
    }

    /// The tensors, in the order of the flat vector.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// Returns the number of parameters in all tensors.
    pub fn parameters(&self) -> usize {
        self.tensors.last().map_or(0, |tensor| tensor.range.end)
    }

    /// The most bytes that a safetensors file of such a model has.
    pub fn most_bytes(&self) -> u64 {
        let names = self.tensors.iter().map(|tensor| tensor.name.len() + PER_TENSOR).sum::<usize>();
        (4 * self.parameters() + names + PER_FILE) as u64
    }
}

impl AsRef<Layout> for Layout {
    fn as_ref(&self) -> &Layout {
        self
    }
}

impl std::fmt::Display for Layout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, tensor) in self.tensors.iter().enumerate() {
            let before = if at == 0 { "" } else { ", " };
            write!(f, "{before}{} {:?}", tensor.name, tensor.shape)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_lie_one_after_the_other_and_can_be_told() -> Result<(), Error> {
        let layout = Layout::new([("bias", &[2][..]), ("weight", &[2, 3]), ("scale", &[])])?;
        let ranges: Vec<_> = layout.tensors().iter().map(|tensor| tensor.range.clone()).collect();
        assert_eq!(ranges, [0..2, 2..8, 8..9]);
        assert_eq!(layout.to_string(), "bias [2], weight [2, 3], scale []");
        Ok(())
    }

    #[test]
    fn what_can_be_no_model_is_refused() {
        let refused = |tensors: &[(&str, &[usize])]| {
            Layout::new(tensors.iter().copied()).map_err(|e| e.to_string()).err()
        };
        assert_eq!(refused(&[]).as_deref(), Some("parameters: a model without numbers"));
        assert_eq!(
            refused(&[("a", &[0, 4])]).as_deref(),
            Some("parameters: a model without numbers")
        );
        let twice = refused(&[("a", &[1]), ("a", &[2])]);
        assert_eq!(twice.as_deref(), Some("parameters: there are two tensors a"));
        for shape in [&[usize::MAX, 2][..], &[1 << 29], &[1 << 28]] {
            let huge = refused(&[("first", &[1]), ("second", shape)]).unwrap_or_default();
            assert!(huge.starts_with("parameters: second of shape"), "{huge}");
        }
    }
}
