//! What a network is made of, as data. Another network is another list of layers.

use std::ops::RangeInclusive;

use stlf_data::Shape;

use crate::Error;
use crate::layout::{Layout, Tensor};

/// One layer. Names and meanings are those of PyTorch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Layer {
    /// `channels` filters of `kernel` × `kernel`, stride 1, no padding.
    Conv2d {
        /// The number of filters, which is that of output channels.
        channels: usize,
        /// Rows and columns of a filter.
        kernel: usize,
    },
    /// The largest of every 2×2 pixels.
    MaxPool2d,
    /// `channels` filters of `kernel` readings of a series, stride 1, no padding.
    Conv1d {
        /// The number of filters, which is that of output channels.
        channels: usize,
        /// The number of readings that a filter covers.
        kernel: usize,
    },
    /// The largest of every two readings of a series.
    MaxPool1d,
    /// Every number below 0 becomes 0, the others stay.
    Relu,
    /// In training, every number is zero with probability `p`, and the others grow by 1 / (1 − p).
    Dropout {
        /// The probability of being dropped, 0 ≤ p < 1.
        p: f32,
    },
    /// In training, every channel is zero with probability `p`, and the others grow by 1 / (1 − p).
    Dropout2d {
        /// The probability of being dropped, 0 ≤ p < 1.
        p: f32,
    },
    /// Fully connected: each output is a weighted sum of all inputs and a bias.
    Linear {
        /// The number of outputs.
        outputs: usize,
    },
}

impl Layer {
    /// The rows of pixels that a filter covers, or of which pooling keeps the largest. A series has one row.
    pub(crate) fn rows(self) -> usize {
        match self {
            Layer::Conv2d { kernel, .. } => kernel,
            Layer::MaxPool2d => 2,
            _ => 1,
        }
    }
}

/// Pixels a side of the pictures for which the convolutional network is meant: its models stay under a megabyte.
const PICTURE_SIDES: RangeInclusive<usize> = 28..=96;

/// Pixels a side from which pictures are convolved once more: twice would leave ten of them.
const THIRD_CONVOLUTION: usize = 52;

/// Readings of a filter of the network for series.
const SERIES_KERNEL: usize = 7;

/// The most readings of a channel that its linear layers take, and the fewest that are convolved once more.
const SERIES_LEFT: usize = 16;

/// A sequence of layers over inputs of one shape, all of which fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    input: Shape,
    layers: Vec<Layer>,
    /// `shapes[l]` goes into layer l; the last is the output.
    shapes: Vec<Shape>,
    layout: Layout,
}

impl Spec {
    /// The paper's convolutional network, which is for pictures of 28 × 28 pixels. Larger ones leave more to the first linear layer, and
    /// from 52 pixels a side on they are convolved once more: models stay small, and shapes that are large in pixels are seen whole. Only the
    /// last convolution has dropout.
    pub fn cnn(input: Shape, classes: usize) -> Result<Spec, Error> {
        let convolution = |channels| Layer::Conv2d { channels, kernel: 5 };
        let mut layers = vec![convolution(10), Layer::MaxPool2d, Layer::Relu, convolution(20)];
        if input.height.min(input.width) >= THIRD_CONVOLUTION {
            layers.extend([Layer::MaxPool2d, Layer::Relu, convolution(40)]);
        }
        layers.extend([
            Layer::Dropout2d { p: 0.5 },
            Layer::MaxPool2d,
            Layer::Relu,
            Layer::Linear { outputs: 50 },
            Layer::Relu,
            Layer::Dropout { p: 0.5 },
            Layer::Linear { outputs: classes },
        ]);
        Spec::new(input, layers)
    }

    /// Whether inputs of this shape are pictures for which [`cnn`](Spec::cnn) is meant: 28 to 96 pixels a side.
    pub fn is_for_cnn(input: Shape) -> bool {
        [input.height, input.width].iter().all(|side| PICTURE_SIDES.contains(side))
    }

    /// A convolutional network for windows of series, which have a row for each channel: up to three convolutions of 7 readings. What
    /// is left of a long window is pooled further, so that models stay small, and it hardly matters when something happens in it.
    ///
    /// # Errors
    /// A window of fewer than 8 readings.
    pub fn series_cnn(channels: usize, window: usize, classes: usize) -> Result<Spec, Error> {
        let mut length = window;
        let mut layers = Vec::new();
        for channels in [16, 32, 32] {
            // The first convolution is always there, further ones where enough is left.
            if layers.is_empty() || length >= SERIES_LEFT {
                layers.extend([
                    Layer::Conv1d { channels, kernel: SERIES_KERNEL },
                    Layer::MaxPool1d,
                    Layer::Relu,
                ]);
                length = (length + 1).saturating_sub(SERIES_KERNEL) / 2;
            }
        }
        while length > SERIES_LEFT {
            layers.push(Layer::MaxPool1d);
            length /= 2;
        }
        layers.extend([
            Layer::Linear { outputs: 50 },
            Layer::Relu,
            Layer::Dropout { p: 0.5 },
            Layer::Linear { outputs: classes },
        ]);
        Spec::new(Shape { channels, height: 1, width: window }, layers)
    }

    /// The paper's network with one hidden layer of 64.
    pub fn mlp(input: Shape, classes: usize) -> Result<Spec, Error> {
        let layers =
            vec![Layer::Linear { outputs: 64 }, Layer::Relu, Layer::Linear { outputs: classes }];
        Spec::new(input, layers)
    }

    /// A sequence of layers, if each fits what comes out of the one before.
    pub fn new(input: Shape, layers: Vec<Layer>) -> Result<Spec, Error> {
        let mut spec =
            Spec { input, layers: Vec::new(), shapes: vec![input], layout: Layout::default() };
        if input.is_empty() {
            return Err(Error::layer(0, "the input has no numbers"));
        }
        let (mut convolutions, mut linears) = (0, 0);
        for (at, &layer) in layers.iter().enumerate() {
            let before = spec.output();
            let after = match layer {
                Layer::Conv1d { .. } | Layer::MaxPool1d if before.height != 1 => {
                    return Err(Error::layer(at, format!("{before} is no series")));
                }
                Layer::Conv2d { channels, kernel } | Layer::Conv1d { channels, kernel } => {
                    if channels == 0 || kernel == 0 {
                        return Err(Error::layer(at, "a convolution needs channels and a kernel"));
                    }
                    let rows = layer.rows();
                    if rows > before.height || kernel > before.width {
                        let message = format!("a kernel of {kernel} does not fit into {before}");
                        return Err(Error::layer(at, message));
                    }
                    convolutions += 1;
                    let shape = match layer {
                        Layer::Conv1d { .. } => vec![channels, before.channels, kernel],
                        _ => vec![channels, before.channels, kernel, kernel],
                    };
                    spec.add_tensors(&format!("conv{convolutions}"), shape);
                    let (height, width) = (before.height + 1 - rows, before.width + 1 - kernel);
                    Shape { channels, height, width }
                }
                Layer::MaxPool2d | Layer::MaxPool1d => {
                    let rows = layer.rows();
                    if before.height < rows || before.width < 2 {
                        return Err(Error::layer(at, format!("{before} cannot be pooled")));
                    }
                    Shape { height: before.height / rows, width: before.width / 2, ..before }
                }
                Layer::Relu => before,
                Layer::Dropout { p } | Layer::Dropout2d { p } => {
                    if !(0.0..1.0).contains(&p) {
                        return Err(Error::layer(at, format!("p = {p} is not in 0 ≤ p < 1")));
                    }
                    before
                }
                Layer::Linear { outputs } => {
                    if outputs == 0 {
                        return Err(Error::layer(at, "a linear layer needs outputs"));
                    }
                    linears += 1;
                    spec.add_tensors(&format!("fc{linears}"), vec![outputs, before.len()]);
                    Shape { channels: 1, height: 1, width: outputs }
                }
            };
            spec.layers.push(layer);
            spec.shapes.push(after);
        }
        Ok(spec)
    }

    /// The weight and the bias of a layer whose weight has this shape.
    fn add_tensors(&mut self, layer: &str, weight: Vec<usize>) {
        let outputs = weight[0];
        for (name, shape) in [("weight", weight), ("bias", vec![outputs])] {
            self.layout.push(format!("{layer}.{name}"), shape);
        }
    }

    /// Returns the shape of one input.
    pub fn input(&self) -> Shape {
        self.input
    }

    /// Returns the shape of one output, that of the last layer.
    pub fn output(&self) -> Shape {
        self.shapes[self.layers.len()]
    }

    /// The layers with the shape that goes into each.
    pub fn layers(&self) -> impl ExactSizeIterator<Item = (Layer, Shape)> + '_ {
        self.layers.iter().copied().zip(self.shapes[..self.layers.len()].iter().copied())
    }

    /// The parameter tensors, in the order of the flat vector.
    pub fn tensors(&self) -> &[Tensor] {
        self.layout.tensors()
    }

    /// The same with how many inputs each output of the tensor's layer sums: the scale of the first values.
    pub(crate) fn fan_ins(&self) -> impl Iterator<Item = (&Tensor, usize)> {
        let mut fan_in = 1;
        self.tensors().iter().map(move |tensor| {
            // A bias, which has no inputs of its own, follows the weight of its layer.
            if let [_, inputs @ ..] = &tensor.shape[..]
                && !inputs.is_empty()
            {
                fan_in = inputs.iter().product();
            }
            (tensor, fan_in)
        })
    }

    /// Returns the number of parameters of all layers.
    pub fn parameters(&self) -> usize {
        self.layout.parameters()
    }

    /// Floating-point operations of one training step on one sample, two per multiply and add: forward,
    /// gradient of the weights, and gradient of the inputs of all layers but the first.
    pub fn operations_per_sample(&self) -> usize {
        let first = self.products().next().unwrap_or(0);
        3 * self.forward_operations_per_sample() - 2 * first
    }

    /// Returns the floating-point operations of the way forward alone, for one sample.
    pub fn forward_operations_per_sample(&self) -> usize {
        2 * self.products().sum::<usize>()
    }

    /// The products of a weight and a number that each layer with weights takes for one sample.
    fn products(&self) -> impl Iterator<Item = usize> + '_ {
        let layers = self.layers().zip(&self.shapes[1..]);
        layers.filter_map(|((layer, before), after)| match layer {
            Layer::Conv2d { kernel, .. } | Layer::Conv1d { kernel, .. } => {
                Some(after.len() * before.channels * layer.rows() * kernel)
            }
            Layer::Linear { outputs } => Some(before.len() * outputs),
            Layer::MaxPool2d
            | Layer::MaxPool1d
            | Layer::Relu
            | Layer::Dropout { .. }
            | Layer::Dropout2d { .. } => None,
        })
    }
}

impl AsRef<Layout> for Spec {
    fn as_ref(&self) -> &Layout {
        &self.layout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_network_has_its_parameters_and_operations() -> Result<(), Error> {
        let cnn = Spec::cnn(Shape::grey(28), 10)?;
        assert_eq!(cnn.parameters(), 250 + 10 + 5000 + 20 + 16000 + 50 + 500 + 10);
        assert_eq!(cnn.output().len(), 10);
        let names: Vec<&str> = cnn.tensors().iter().map(|t| t.name.as_str()).collect();
        let expected = ["conv1", "conv2", "fc1", "fc2"]
            .map(|layer| [format!("{layer}.weight"), format!("{layer}.bias")])
            .concat();
        assert_eq!(names, expected);
        // conv1 2·2·144,000, conv2 3·2·320,000, fc1 3·2·16,000, fc2 3·2·500.
        assert_eq!(cnn.operations_per_sample(), 576_000 + 1_920_000 + 96_000 + 3_000);
        assert_eq!(cnn.forward_operations_per_sample(), 288_000 + 640_000 + 32_000 + 1_000);
        Ok(())
    }

    #[test]
    fn the_network_for_pictures_stays_small_at_every_size() {
        for (height, width) in (20..=110).flat_map(|h| (20..=110).map(move |w| (h, w))) {
            let input = Shape { channels: 3, height, width };
            let meant = [height, width].iter().all(|side| (28..=96).contains(side));
            assert_eq!(Spec::is_for_cnn(input), meant);
            let spec = Spec::cnn(input, 10).unwrap();
            assert_eq!(spec.output().len(), 10);
            assert!(!meant || 4 * spec.parameters() < 900_000, "{input}: {}", spec.parameters());
        }
        let convolutions = |side: usize| {
            let spec = Spec::cnn(Shape::grey(side), 10).unwrap();
            let is_convolution = |layer: &Layer| matches!(layer, Layer::Conv2d { .. });
            let linear = spec.layers().find(|(layer, _)| matches!(layer, Layer::Linear { .. }));
            let count = spec.layers().filter(|(layer, _)| is_convolution(layer)).count();
            (count, linear.unwrap().1)
        };
        let left = |channels, side: usize| Shape { channels, height: side, width: side };
        assert_eq!(convolutions(28), (2, left(20, 4)));
        assert_eq!(convolutions(32), (2, left(20, 5)));
        assert_eq!(convolutions(51), (2, left(20, 9)));
        assert_eq!(convolutions(52), (3, left(40, 3)));
        assert_eq!(convolutions(64), (3, left(40, 4)));
        assert_eq!(convolutions(96), (3, left(40, 8)));
    }

    #[test]
    fn the_network_for_series_takes_any_window_of_8_readings_or_more() {
        for window in 8..3000 {
            let spec = Spec::series_cnn(3, window, 4).unwrap();
            assert_eq!(spec.output().len(), 4);
            assert!(spec.parameters() < 40_000, "{window}: {}", spec.parameters());
        }
        let spec = Spec::series_cnn(3, 128, 4).unwrap();
        // 128 readings, 122, 61, 55, 27, 21, 10.
        let convolutions = 16 * (3 * 7 + 1) + 32 * (16 * 7 + 1) + 32 * (32 * 7 + 1);
        assert_eq!(spec.parameters(), convolutions + 50 * (32 * 10 + 1) + 4 * 51);
        assert_eq!(spec.tensors()[2].shape, [32, 16, 7]);
        let products = 122 * 16 * 21 + 55 * 32 * 112 + 21 * 32 * 224 + 50 * 320 + 4 * 50;
        assert_eq!(spec.forward_operations_per_sample(), 2 * products);
        let short = Spec::series_cnn(1, 7, 2).err().map(|e| e.to_string());
        assert_eq!(short.as_deref(), Some("layer 1: 16×1×1 cannot be pooled"));
    }

    #[test]
    fn layers_that_do_not_fit_are_refused() {
        let message = |layers: &[Layer]| {
            Spec::new(Shape::grey(4), layers.to_vec()).err().map(|e| e.to_string())
        };
        assert_eq!(
            message(&[Layer::Relu, Layer::Conv2d { channels: 2, kernel: 5 }]).as_deref(),
            Some("layer 1: a kernel of 5 does not fit into 1×4×4")
        );
        assert_eq!(
            message(&[Layer::Dropout { p: 1.0 }]).as_deref(),
            Some("layer 0: p = 1 is not in 0 ≤ p < 1")
        );
        let pools = [Layer::MaxPool2d; 3];
        assert_eq!(message(&pools).as_deref(), Some("layer 2: 1×1×1 cannot be pooled"));
        assert!(message(&[Layer::Linear { outputs: 0 }]).is_some());
        for of_series in [Layer::Conv1d { channels: 1, kernel: 2 }, Layer::MaxPool1d] {
            assert_eq!(message(&[of_series]).as_deref(), Some("layer 0: 1×4×4 is no series"));
        }
    }
}
