//! Rings: a model that goes round among sources, and of which none is forgotten.
//!
//! On the first way every source trains on the model that it is handed, as on any route. On the second way a source hands on the mean of
//! the model that came and of what its training made of it. The k-th of n sources takes its own part with the share
//! 1/min(k + 1, n), so that each of them has about the same part of the model that the last one sends. It is the running mean of
//! stochastic averaging (Polyak and Juditsky 1992) over devices instead of steps.

use stlf_learn::Params;

/// The share of its own training that a source mixes into the model on its second way, from its place on the ring, counted from 0.
pub fn own_share(place: usize, sources: usize) -> f32 {
    1.0 / (place + 2).min(sources).max(1) as f32
}

/// The model that was handed over, moved by this share towards what a source's training made of it.
///
/// # Panics
/// If the two are of different networks.
pub fn mean(handed: &Params, trained: &Params, own_share: f32) -> Params {
    assert_eq!(handed.len(), trained.len(), "models of one network");
    let mut mean = handed.clone();
    mean.iter_mut().zip(trained.iter()).for_each(|(m, t)| *m += own_share * (t - *m));
    mean
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use stlf_data::Shape;
    use stlf_learn::Spec;

    use super::*;

    #[test]
    fn every_source_has_about_the_same_part() {
        // If training at source k always led to the k-th unit vector, the last model would be a mean of these.
        for sources in 2..40 {
            let mut parts = vec![0.0f32; sources];
            for place in 0..sources {
                let share = own_share(place, sources);
                parts.iter_mut().for_each(|part| *part *= 1.0 - share);
                parts[place] += share;
            }
            let equal = 1.0 / sources as f32;
            assert!(parts.iter().all(|part| (0.5..=2.0).contains(&(part / equal))), "{parts:?}");
        }
    }

    #[test]
    fn a_mean_lies_between() {
        let spec = Spec::mlp(Shape::grey(2), 2).unwrap();
        let (a, b) = (Params::initial(&spec, 1), Params::initial(&spec, 2));
        assert_eq!(mean(&a, &b, 0.0), a);
        let quarter = mean(&a, &b, 0.25);
        for ((m, a), b) in quarter.iter().zip(a.iter()).zip(b.iter()) {
            assert!((m - (0.75 * a + 0.25 * b)).abs() < 1e-6);
        }
    }
}
