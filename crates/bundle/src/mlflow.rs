//! The folder that `mlflow models serve` takes: the ONNX file, and what MLflow wants to know of it.

use std::path::Path;

use serde_json::json;
use stlf_data::whole_folder::PreparedFolder;

use crate::onnx::{INPUT, LABEL, PROBABILITIES, input_of};
use crate::{Error, Mixture, onnx};

const ONNX: &str = "model.onnx";

/// The packages that Python needs to serve the model.
const REQUIREMENTS: &str = "mlflow\nonnx\nonnxruntime\nnumpy\n";

const PYTHON: &str = "3.11";

/// Writes the folder whole or not at all. One that is there is replaced if it is one of these.
///
/// # Errors
/// A file cannot be written, or something else is there.
pub fn write(path: &Path, mixture: &Mixture) -> Result<(), Error> {
    if path.exists() && !path.join("MLmodel").is_file() {
        return Err(Error::NoBundle {
            path: path.to_owned(),
            message: "is there, and is no folder of MLflow".to_owned(),
            hint: "name a folder that does not exist yet".to_owned(),
        });
    }
    let new = PreparedFolder::new(path)?;
    new.write(ONNX, &onnx::write(mixture)?)?;
    new.write("MLmodel", description(mixture).as_bytes())?;
    new.write("requirements.txt", REQUIREMENTS.as_bytes())?;
    let environment = json!({
        "python": PYTHON,
        "dependencies": ["-r requirements.txt"],
    });
    // YAML takes JSON as it is.
    new.write("python_env.yaml", format!("{environment:#}\n").as_bytes())?;
    Ok(new.publish()?)
}

/// Returns the text of the file `MLmodel`.
fn description(mixture: &Mixture) -> String {
    let (element, dimensions) = input_of(mixture);
    let tensor = |name: &str, element: &str, dimensions: &[usize]| {
        let shape: Vec<i64> =
            [-1].into_iter().chain(dimensions.iter().map(|&n| n as i64)).collect();
        let spec = json!({ "dtype": element, "shape": shape });
        json!({ "name": name, "type": "tensor", "tensor-spec": spec })
    };
    let inputs = json!([tensor(INPUT, element.name(), &dimensions)]);
    let outputs = json!([
        tensor(PROBABILITIES, "float32", &[mixture.classes.len()]),
        tensor(LABEL, "int64", &[]),
    ]);
    let described = json!({
        "flavors": {
            "onnx": { "code": null, "data": ONNX, "onnx_version": "1.15.0", "providers": ["CPUExecutionProvider"] },
            "python_function": {
                "data": ONNX,
                "env": { "virtualenv": "python_env.yaml" },
                "loader_module": "mlflow.onnx",
                "python_version": PYTHON,
            },
        },
        "metadata": { "classes": mixture.classes, "device": mixture.device, "epoch": mixture.epoch },
        "signature": { "inputs": inputs.to_string(), "outputs": outputs.to_string() },
    });
    format!("{described:#}\n")
}
