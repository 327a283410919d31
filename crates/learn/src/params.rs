//! The parameters of a network as one flat vector: first values, averages, files.

use std::collections::HashMap;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use crate::Error;
use crate::layout::Layout;
use crate::spec::Spec;

/// All parameters, in the order of [`Spec::tensors`].
#[derive(Debug, Clone, PartialEq)]
pub struct Params(Vec<f32>);

impl Params {
    /// First values as PyTorch draws them: uniform within ±1/√(inputs of an output), from a seed.
    pub fn initial(spec: &Spec, seed: u64) -> Params {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut values = Vec::with_capacity(spec.parameters());
        for (tensor, fan_in) in spec.fan_ins() {
            let limit = 1.0 / (fan_in as f32).sqrt();
            values.extend(tensor.range.clone().map(|_| (rng.random::<f32>() * 2.0 - 1.0) * limit));
        }
        Params(values)
    }

    /// Returns parameters that are all 0, from which gradients and velocities start.
    pub fn zeros(spec: &Spec) -> Params {
        Params(vec![0.0; spec.parameters()])
    }

    /// Σ w·p / Σ w over models of one spec. Weights are not negative and not all zero.
    pub fn average<'a>(
        models: impl IntoIterator<Item = (&'a Params, f64)>,
    ) -> Result<Params, Error> {
        let mut sums: Vec<f64> = Vec::new();
        let mut total = 0.0;
        for (params, weight) in models {
            if !(weight >= 0.0 && weight.is_finite()) {
                return Err(Error::Params(format!(
                    "{weight} is not a valid weight for an average"
                )));
            }
            if sums.is_empty() {
                sums = vec![0.0; params.len()];
            }
            if sums.len() != params.len() {
                let message = format!(
                    "models of {} and {} parameters cannot be averaged",
                    sums.len(),
                    params.len()
                );
                return Err(Error::Params(message));
            }
            sums.iter_mut().zip(&params.0).for_each(|(sum, &p)| *sum += weight * f64::from(p));
            total += weight;
        }
        if total <= 0.0 {
            return Err(Error::Params("an average needs a weight above zero".to_owned()));
        }
        Ok(Params(sums.iter().map(|sum| (sum / total) as f32).collect()))
    }

    /// A safetensors file with PyTorch's names and layouts: `load_state_dict` takes it.
    pub fn to_safetensors(&self, of: &impl AsRef<Layout>) -> Result<Vec<u8>, Error> {
        let layout = of.as_ref();
        let bytes: Vec<Vec<u8>> = layout
            .tensors()
            .iter()
            .map(|tensor| {
                self.0[tensor.range.clone()].iter().flat_map(|v| v.to_le_bytes()).collect()
            })
            .collect();
        let views = layout.tensors().iter().zip(&bytes).map(|(tensor, bytes)| {
            let view = TensorView::new(Dtype::F32, tensor.shape.clone(), bytes)?;
            Ok((tensor.name.as_str(), view))
        });
        let views: Result<Vec<_>, safetensors::SafeTensorError> = views.collect();
        views
            .and_then(|views| safetensors::serialize(views, None::<HashMap<String, String>>))
            .map_err(|e| Error::Params(e.to_string()))
    }

    /// Parameters of this network from a safetensors file. Tensors may come in any order.
    pub fn from_safetensors(of: &impl AsRef<Layout>, file: &[u8]) -> Result<Params, Error> {
        let layout = of.as_ref();
        let file = SafeTensors::deserialize(file)
            .map_err(|e| Error::Params(format!("not a safetensors file: {e}")))?;
        let mut values = Vec::with_capacity(layout.parameters());
        for tensor in layout.tensors() {
            let name = &tensor.name;
            let view = file.tensor(name).map_err(|_| {
                let found = file.names().join(", ");
                Error::Params(format!("there is no tensor {name}; there are: {found}"))
            })?;
            if view.dtype() != Dtype::F32 || view.shape() != tensor.shape {
                return Err(Error::Params(format!(
                    "{name} is {:?} of shape {:?}, not F32 of shape {:?}",
                    view.dtype(),
                    view.shape(),
                    tensor.shape
                )));
            }
            let numbers = view.data().chunks_exact(4);
            values.extend(numbers.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])));
        }
        if let Some(at) = values.iter().position(|v| !v.is_finite()) {
            return Err(Error::Params(format!("number {at} is {}", values[at])));
        }
        if let Some(name) =
            file.names().iter().find(|n| layout.tensors().iter().all(|t| t.name != **n))
        {
            return Err(Error::Params(format!("the network has no tensor {name}")));
        }
        Ok(Params(values))
    }
}

/// Parameters of a network that is not one of ours: nothing but numbers to average.
impl From<Vec<f32>> for Params {
    fn from(values: Vec<f32>) -> Params {
        Params(values)
    }
}

impl std::ops::Deref for Params {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.0
    }
}

impl std::ops::DerefMut for Params {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use stlf_data::Shape;

    use super::*;

    #[test]
    fn a_file_gives_back_what_went_in() -> Result<(), Error> {
        let spec = Spec::cnn(Shape { channels: 3, height: 28, width: 28 }, 10)?;
        let params = Params::initial(&spec, 7);
        let file = params.to_safetensors(&spec)?;
        assert_eq!(Params::from_safetensors(&spec, &file)?, params);
        let other = Spec::cnn(Shape::grey(28), 10)?;
        let wrong = Params::from_safetensors(&other, &file);
        assert_eq!(
            wrong.map_err(|e| e.to_string()),
            Err("parameters: conv1.weight is F32 of shape [10, 3, 5, 5], not F32 of shape [10, 1, 5, 5]"
                .to_owned())
        );
        for cut in [0, 7, 8, 100, file.len() - 1] {
            assert!(Params::from_safetensors(&spec, &file[..cut]).is_err());
        }
        Ok(())
    }

    #[test]
    fn averages_weigh_and_refuse() -> Result<(), Error> {
        let (a, b) = (Params(vec![1.0, 2.0]), Params(vec![3.0, -2.0]));
        assert_eq!(Params::average([(&a, 1.0), (&b, 3.0)])?, Params(vec![2.5, -1.0]));
        assert_eq!(Params::average([(&a, 0.2)])?, a);
        assert!(Params::average([(&a, 0.0)]).is_err());
        assert!(Params::average([]).is_err());
        assert!(Params::average([(&a, -1.0), (&b, 3.0)]).is_err());
        assert!(Params::average([(&a, 1.0), (&Params(vec![1.0]), 1.0)]).is_err());
        Ok(())
    }
}
