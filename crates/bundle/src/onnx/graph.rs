//! A graph of ONNX under construction, and the file of it. Numbers of fields are those of `onnx.proto`.

use super::protobuf::Message;

/// The version of the format of files, and that of the operators.
const FORMAT: i64 = 8;
const OPERATORS: i64 = 17;

/// The type of a tensor's elements, with ONNX's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    Float = 1,
    Int64 = 7,
    Double = 11,
}

impl Element {
    /// Returns the name that NumPy has for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Element::Float => "float32",
            Element::Int64 => "int64",
            Element::Double => "float64",
        }
    }
}

/// A graph to which nodes are still being added.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: Vec<Message>,
    constants: Vec<Message>,
    inputs: Vec<Message>,
    outputs: Vec<Message>,
}

impl Graph {
    /// Adds a node with options that are whole numbers, and returns the name of what comes out of it.
    pub(super) fn node(&mut self, kind: &str, inputs: &[&str], options: &[(&str, i64)]) -> String {
        let output = format!("{}_{}", kind.to_lowercase(), self.nodes.len() + 1);
        self.node_to(&output, kind, inputs, options);
        output
    }

    /// The same where the name of what comes out is given.
    pub(super) fn node_to(
        &mut self,
        output: &str,
        kind: &str,
        inputs: &[&str],
        options: &[(&str, i64)],
    ) {
        let options: Vec<Message> =
            options.iter().map(|&(name, value)| option(name, value)).collect();
        self.add(output, kind, inputs, &options);
    }

    /// The largest of every 2 × 2 pixels, or of every two readings: the size of a block.
    pub(super) fn pool(&mut self, input: &str, block: &[i64]) -> String {
        let output = format!("maxpool_{}", self.nodes.len() + 1);
        let options = ["kernel_shape", "strides"].map(|name| options(name, block));
        self.add(&output, "MaxPool", &[input], &options);
        output
    }

    fn add(&mut self, output: &str, kind: &str, inputs: &[&str], options: &[Message]) {
        let mut node = Message::default();
        inputs.iter().for_each(|input| {
            node.text(1, input);
        });
        node.text(2, output).text(3, output).text(4, kind);
        options.iter().for_each(|option| {
            node.message(5, option);
        });
        self.nodes.push(node);
    }

    /// Adds single-precision constants, and returns their name.
    pub(super) fn floats(&mut self, name: &str, values: &[f64]) -> String {
        let values: Vec<f32> = values.iter().map(|&value| value as f32).collect();
        self.parameters(name, &[values.len()], &values)
    }

    /// Adds parameters of a model, and returns their name.
    pub(super) fn parameters(&mut self, name: &str, shape: &[usize], values: &[f32]) -> String {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(name, Element::Float, shape, &bytes)
    }

    /// Adds double-precision constants of this shape, and returns their name.
    pub(super) fn doubles(&mut self, name: &str, shape: &[usize], values: &[f64]) -> String {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(name, Element::Double, shape, &bytes)
    }

    /// Adds constants that are whole numbers, and returns their name.
    pub(super) fn whole_numbers(&mut self, name: &str, values: &[i64]) -> String {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(name, Element::Int64, &[values.len()], &bytes)
    }

    fn constant(&mut self, name: &str, element: Element, shape: &[usize], bytes: &[u8]) -> String {
        let mut tensor = Message::default();
        shape.iter().for_each(|&size| {
            tensor.number(1, size as i64);
        });
        tensor.number(2, element as i64).text(8, name).bytes(9, bytes);
        self.constants.push(tensor);
        name.to_owned()
    }

    /// Adds an input of the graph: any number of samples, each of these dimensions.
    pub(super) fn input(&mut self, name: &str, element: Element, dimensions: &[usize]) {
        self.inputs.push(value(name, element, dimensions));
    }

    /// Adds an output of the graph: for any number of samples, each of these dimensions.
    pub(super) fn output(&mut self, name: &str, element: Element, dimensions: &[usize]) {
        self.outputs.push(value(name, element, dimensions));
    }

    /// Returns the bytes of the ONNX file with this graph.
    pub(super) fn model(&self, metadata: &[(&str, String)]) -> Vec<u8> {
        let mut graph = Message::default();
        self.nodes.iter().for_each(|node| {
            graph.message(1, node);
        });
        graph.text(2, "mixture");
        self.constants.iter().for_each(|constant| {
            graph.message(5, constant);
        });
        self.inputs.iter().for_each(|input| {
            graph.message(11, input);
        });
        self.outputs.iter().for_each(|output| {
            graph.message(12, output);
        });
        let mut operators = Message::default();
        operators.text(1, "").number(2, OPERATORS);
        let mut model = Message::default();
        model.number(1, FORMAT).text(2, "stlf").text(3, env!("CARGO_PKG_VERSION"));
        model.message(7, &graph).message(8, &operators);
        for (key, value) in metadata {
            let mut entry = Message::default();
            entry.text(1, key).text(2, value);
            model.message(14, &entry);
        }
        model.into_bytes()
    }
}

/// An option of a node that is a whole number.
fn option(name: &str, value: i64) -> Message {
    const WHOLE_NUMBER: i64 = 2;
    let mut option = Message::default();
    option.text(1, name).number(3, value).number(20, WHOLE_NUMBER);
    option
}

/// An option of a node that is several whole numbers.
fn options(name: &str, values: &[i64]) -> Message {
    const WHOLE_NUMBERS: i64 = 7;
    let mut option = Message::default();
    option.text(1, name);
    values.iter().for_each(|&value| {
        option.number(8, value);
    });
    option.number(20, WHOLE_NUMBERS);
    option
}

/// Returns the description of a tensor with any number of samples.
fn value(name: &str, element: Element, dimensions: &[usize]) -> Message {
    let mut shape = Message::default();
    let mut samples = Message::default();
    samples.text(2, "n");
    shape.message(1, &samples);
    for &size in dimensions {
        let mut dimension = Message::default();
        dimension.number(1, size as i64);
        shape.message(1, &dimension);
    }
    let mut tensor = Message::default();
    tensor.number(1, element as i64).message(2, &shape);
    let mut kind = Message::default();
    kind.message(1, &tensor);
    let mut value = Message::default();
    value.text(1, name).message(2, &kind);
    value
}
