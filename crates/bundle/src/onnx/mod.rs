//! The whole mixture as one ONNX graph: from samples as they are to probabilities, for any program that runs ONNX.

mod graph;
mod protobuf;

use serde_json::json;
use stlf_data::Scaling;
use stlf_data::features::Windows;
use stlf_data::scaling::Unit;
use stlf_learn::spec::{Layer, Spec};
use stlf_method::combine::Combine;

use self::graph::{Element, Graph};
use crate::mixture::Part;
use crate::{Error, Mixture};

/// The input of the graph: a table's features as they are, double, one row a sample; windows of a series as they are, double, sample ×
/// channels × readings; or pixels from 0 to 255, float, sample × channels ×
/// rows × columns.
pub const INPUT: &str = "samples";

/// The probabilities of all classes, float, one row a sample.
pub const PROBABILITIES: &str = "probabilities";

/// The place of the likeliest class among the classes, a whole number for each sample.
pub const LABEL: &str = "label";

/// The type of the elements of the input and of the sample's dimensions, as ONNX and MLflow name them.
pub(crate) fn input_of(mixture: &Mixture) -> (Element, Vec<usize>) {
    let shape = mixture.sample_shape();
    match mixture.scaling {
        Scaling::Pixels => (Element::Float, vec![shape.channels, shape.height, shape.width]),
        Scaling::Features { series: Some(_), .. } => {
            (Element::Double, vec![shape.channels, shape.width])
        }
        Scaling::Features { series: None, .. } => (Element::Double, vec![shape.len()]),
    }
}

/// The bytes of the ONNX file.
///
/// # Errors
/// A mixture without a model.
pub fn write(mixture: &Mixture) -> Result<Vec<u8>, Error> {
    let mut graph = Graph::default();
    let (element, dimensions) = input_of(mixture);
    graph.input(INPUT, element, &dimensions);
    let inputs = scaled(&mut graph, mixture);
    let shares = mixture.class_shares.as_ref().map(|shares| graph.floats("class_shares", shares));
    let mut sums = Vec::new();
    for (at, part) in mixture.parts()?.iter().enumerate() {
        let name = format!("m{}", at + 1);
        sums.push(weighted(&mut graph, mixture, part, &name, &inputs, shares.as_deref()));
    }
    let sums: Vec<&str> = sums.iter().map(String::as_str).collect();
    graph.node_to(PROBABILITIES, "Sum", &sums, &[]);
    graph.node_to(LABEL, "ArgMax", &[PROBABILITIES], &[("axis", 1), ("keepdims", 0)]);
    graph.output(PROBABILITIES, Element::Float, &[mixture.classes.len()]);
    graph.output(LABEL, Element::Int64, &[]);
    Ok(graph.model(&metadata(mixture)))
}

/// Adds what turns samples into inputs of the network, as floats, and returns their name.
fn scaled(graph: &mut Graph, mixture: &Mixture) -> String {
    let Scaling::Features { units, series, .. } = &mixture.scaling else {
        let half = graph.floats("half_range", &[127.5]);
        let one = graph.floats("one", &[1.0]);
        let within = graph.node("Div", &[INPUT, &half], &[]);
        return graph.node("Sub", &[&within, &one], &[]);
    };
    let mut lists = Vec::new();
    for (at, list) in units.iter().enumerate() {
        let of = |what: &str| format!("{what}{}", at + 1);
        let column = |number: fn(&Unit) -> f64| list.iter().map(number).collect::<Vec<f64>>();
        // The unit of a channel is that of all its readings.
        let shape: &[usize] = if series.is_some() { &[list.len(), 1] } else { &[list.len()] };
        // Features that never change become 0.
        let per_deviation =
            |unit: &Unit| if unit.is_constant() { 0.0 } else { 1.0 / unit.deviation };
        let centre = graph.doubles(&of("centre"), shape, &column(|unit| unit.centre));
        let per_deviation = graph.doubles(&of("per_deviation"), shape, &column(per_deviation));
        let most = graph.doubles(&of("most"), shape, &column(|unit| unit.limit));
        let least = graph.doubles(&of("least"), shape, &column(|unit| -unit.limit));
        let distance = graph.node("Sub", &[INPUT, &centre], &[]);
        let distance = graph.node("Mul", &[&distance, &per_deviation], &[]);
        let below = graph.node("Min", &[&distance, &most], &[]);
        lists.push(graph.node("Max", &[&below, &least], &[]));
    }
    let all = match &lists[..] {
        [] => INPUT.to_owned(),
        [one] => one.clone(),
        several => {
            let several: Vec<&str> = several.iter().map(String::as_str).collect();
            graph.node("Concat", &several, &[("axis", 1)])
        }
    };
    graph.node("Cast", &[&all], &[("to", Element::Float as i64)])
}

/// What one model adds to the probabilities.
fn weighted(
    graph: &mut Graph,
    mixture: &Mixture,
    part: &Part,
    name: &str,
    inputs: &str,
    class_shares: Option<&str>,
) -> String {
    let outputs = network(graph, mixture, part, name, inputs);
    let mut probabilities = graph.node("Softmax", &[&outputs], &[("axis", 1)]);
    if let Some(shares) = class_shares.filter(|_| part.corrected) {
        let products = graph.node("Mul", &[&probabilities, shares], &[]);
        let axes = graph.whole_numbers(&format!("{name}.axes"), &[1]);
        let total = graph.node("ReduceSum", &[&products, &axes], &[("keepdims", 1)]);
        probabilities = graph.node("Div", &[&products, &total], &[]);
    }
    let share = graph.floats(&format!("{name}.share"), &[part.share]);
    graph.node("Mul", &[&probabilities, &share], &[])
}

/// The outputs of one model, before they become probabilities. Dropout does nothing in a trained network.
fn network(graph: &mut Graph, mixture: &Mixture, part: &Part, name: &str, inputs: &str) -> String {
    let spec: &Spec = &mixture.spec;
    let mut tensors = spec.tensors().iter();
    let mut at = inputs.to_owned();
    let mut is_flat = matches!(mixture.scaling, Scaling::Features { series: None, .. });
    for (layer, _) in spec.layers() {
        let mut with_parameters =
            |graph: &mut Graph, kind: &str, at: &str, options: &[(&str, i64)]| {
                let mut given = vec![at.to_owned()];
                for tensor in tensors.by_ref().take(2) {
                    let values = &part.params[tensor.range.clone()];
                    given.push(graph.parameters(
                        &format!("{name}.{}", tensor.name),
                        &tensor.shape,
                        values,
                    ));
                }
                let given: Vec<&str> = given.iter().map(String::as_str).collect();
                graph.node(kind, &given, options)
            };
        at = match layer {
            Layer::Conv2d { .. } | Layer::Conv1d { .. } => with_parameters(graph, "Conv", &at, &[]),
            Layer::MaxPool2d => graph.pool(&at, &[2, 2]),
            Layer::MaxPool1d => graph.pool(&at, &[2]),
            Layer::Relu => graph.node("Relu", &[&at], &[]),
            Layer::Dropout { .. } | Layer::Dropout2d { .. } => at,
            Layer::Linear { .. } => {
                if !is_flat {
                    at = graph.node("Flatten", &[&at], &[("axis", 1)]);
                    is_flat = true;
                }
                with_parameters(graph, "Gemm", &at, &[("transB", 1)])
            }
        };
    }
    at
}

/// What a program that has the file alone may want to know.
fn metadata(mixture: &Mixture) -> Vec<(&'static str, String)> {
    let members = mixture.members.iter();
    let members: Vec<_> = members.map(|m| json!({ "name": m.name, "weight": m.weight })).collect();
    let mut entries = vec![
        ("format", "stlf-mixture/1".to_owned()),
        ("device", mixture.device.clone()),
        ("classes", json!(mixture.classes).to_string()),
        ("members", json!(members).to_string()),
        ("combine", Combine::name(mixture.combine).to_owned()),
        ("student", mixture.student.is_some().to_string()),
    ];
    if let Scaling::Features { columns, series, .. } = &mixture.scaling {
        entries.push(("columns", json!(columns).to_string()));
        let windows = series.as_ref().map(|series| series.windows);
        let size = |w: Windows| json!({ "window": w.length, "stride": w.stride }).to_string();
        entries.extend(windows.map(|windows| ("series", size(windows))));
    }
    entries.extend(mixture.epoch.map(|epoch| ("epoch", epoch.to_string())));
    entries.extend(mixture.seed.map(|seed| ("seed", seed.to_string())));
    entries
}
