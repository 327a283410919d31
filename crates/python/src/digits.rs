//! Draws digits from a seed.

use numpy::PyArray1;
use pyo3::prelude::*;
use stlf_data::domains::{Colour, Half, Style, strokes};

use crate::errors::input;

/// The pixels, one digit after another, and the digit that each image shows.
type Drawn<'py> = (Bound<'py, PyArray1<f32>>, Bound<'py, PyArray1<i64>>);

/// So many digits, their pixels −1 to 1.
#[pyfunction]
#[pyo3(signature = (samples, *, style, half, seed))]
pub(crate) fn draw_strokes<'py>(
    py: Python<'py>,
    samples: usize,
    style: &str,
    half: &str,
    seed: u64,
) -> PyResult<Drawn<'py>> {
    let style = match style {
        "clean" => Style::Clean,
        "coarse" => Style::Coarse,
        "textured" => Style::Textured,
        _ => {
            let message = format!("style: there is no {style:?}");
            return Err(input(py, message, "use \"clean\", \"coarse\" or \"textured\""));
        }
    };
    let half = match half {
        "train" => Half::Train,
        "test" => Half::Test,
        _ => {
            let message = format!("half: there is no {half:?}");
            return Err(input(py, message, "use \"train\" or \"test\""));
        }
    };
    let all: Vec<usize> = (0..samples).collect();
    let drawn = py.detach(|| {
        let set = strokes(style, half, samples, seed, Colour::Grey)?;
        // Every digit that is drawn is known.
        let labels = all.iter().filter_map(|&at| set.label(at)).map(i64::from).collect();
        Ok::<(Vec<f32>, Vec<i64>), stlf_data::Error>((set.inputs(&all), labels))
    });
    let (pixels, labels) = drawn.map_err(|e| input(py, e.to_string(), "ask for fewer samples"))?;
    Ok((PyArray1::from_vec(py, pixels), PyArray1::from_vec(py, labels)))
}
