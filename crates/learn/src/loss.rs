//! Softmax and its cross-entropy; squared error.

use stlf_data::Class;

/// Turns the outputs for one sample into probabilities.
pub fn softmax(outputs: &mut [f32]) {
    let largest = outputs.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for output in outputs.iter_mut() {
        *output = (*output - largest).exp();
        sum += *output;
    }
    outputs.iter_mut().for_each(|output| *output /= sum);
}

/// The mean over the batch of −ln p(label), and its gradient by the outputs: (p − label) / batch.
pub fn cross_entropy(outputs: &[f32], labels: &[Class], gradients: &mut [f32]) -> f32 {
    let classes = outputs.len() / labels.len();
    let share = 1.0 / labels.len() as f32;
    let mut loss = 0.0;
    gradients.copy_from_slice(outputs);
    for (gradient, &label) in gradients.chunks_exact_mut(classes).zip(labels) {
        softmax(gradient);
        let label = &mut gradient[label as usize];
        // Less than the smallest normal number has no logarithm worth showing.
        loss -= label.max(f32::MIN_POSITIVE).ln();
        *label -= 1.0;
        gradient.iter_mut().for_each(|g| *g *= share);
    }
    loss * share
}

/// The mean over all numbers of (output − wanted)², and its gradient by the outputs.
pub fn squared_error(outputs: &[f32], wanted: &[f32], gradients: &mut [f32]) -> f32 {
    let share = 1.0 / outputs.len() as f32;
    let mut loss = 0.0;
    for ((&output, &wanted), gradient) in outputs.iter().zip(wanted).zip(gradients) {
        let off = output - wanted;
        loss += off * off;
        *gradient = 2.0 * off * share;
    }
    loss * share
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squared_errors_and_their_slopes() {
        let (outputs, wanted) = ([1.0, -2.0, 0.5, 0.0], [0.0, -2.0, 1.5, 2.0]);
        let mut gradients = [0.0; 4];
        assert_eq!(squared_error(&outputs, &wanted, &mut gradients), (1.0 + 1.0 + 4.0) / 4.0);
        assert_eq!(gradients, [0.5, 0.0, -0.5, -1.0]);
    }

    #[test]
    fn the_gradient_is_the_slope_of_the_loss() {
        let outputs = [0.3, -1.2, 2.0, 0.1, 0.0, -0.4];
        let labels = [2, 0];
        let mut gradients = [0.0; 6];
        cross_entropy(&outputs, &labels, &mut gradients);
        for i in 0..6 {
            let at = |step: f32| {
                let mut moved = outputs;
                moved[i] += step;
                cross_entropy(&moved, &labels, &mut [0.0; 6])
            };
            let slope = (at(1e-2) - at(-1e-2)) / 2e-2;
            assert!((slope - gradients[i]).abs() < 1e-4, "{slope} {}", gradients[i]);
        }
    }

    #[test]
    fn huge_outputs_overflow_nothing() {
        let mut outputs = [1e30, -1e30, 0.0];
        softmax(&mut outputs);
        assert_eq!(outputs, [1.0, 0.0, 0.0]);
        let mut gradients = [0.0; 3];
        let loss = cross_entropy(&[1e30, -1e30, 0.0], &[1], &mut gradients);
        assert!(loss.is_finite() && loss > 80.0);
        assert_eq!(gradients, [1.0, -1.0, 0.0]);
    }
}
