//! What links cost, as far as one member's word is taken for it.

/// How many times as dear as what others say of it a device may say that its link is.
const MOST_TIMES: f64 = 10.0;

/// Takes what each device says of the links from it, sender by sender, NaN where there is none, and returns what counts. The objective counts energies in units of
/// their mean, so that one device that calls its links immensely dear would make all others free. A link counts at most ten times what the receiver says
/// of the link back, or ten times the median of all links where that is more: a device whose links are bad is bad both ways.
pub(super) fn believable(devices: usize, said: &[f64]) -> Vec<f64> {
    let mut known: Vec<f64> = said.iter().copied().filter(|energy| energy.is_finite()).collect();
    known.sort_unstable_by(f64::total_cmp);
    let Some(&median) = known.get(known.len() / 2) else { return said.to_vec() };
    let counts = |(at, &energy): (usize, &f64)| {
        let (from, to) = (at / devices, at % devices);
        // No number is not more than the median.
        let most = MOST_TIMES * median.max(said[to * devices + from]);
        if energy > most { most } else { energy }
    };
    said.iter().enumerate().map(counts).collect()
}

#[cfg(test)]
mod tests {
    use stlf_method::energy::{Radio, Ranges};

    use super::*;

    #[test]
    fn one_device_cannot_make_the_links_of_others_free() {
        let n = 10;
        let none = |from: usize, to: usize| (from == to).then_some(f64::NAN);
        let honest = |from: usize, to: usize| none(from, to).unwrap_or(1.0 + (from % 3) as f64);
        let each = |energy: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
            (0..n * n).map(|at| energy(at / n, at % n)).collect()
        };
        let mean = |energies: &[f64]| {
            let known: Vec<f64> = energies.iter().copied().filter(|e| e.is_finite()).collect();
            known.iter().sum::<f64>() / known.len() as f64
        };
        let lie = each(&|from, to| if from == 4 && to != 4 { 9e14 } else { honest(from, to) });
        let (told, truth) = (mean(&believable(n, &lie)), mean(&each(&honest)));
        assert!(told < 3.0 * truth, "{told} {truth}");
        // A device that is badly connected is believed, since others say the same of it.
        let apart = each(&|from, to| {
            let is_slow = (from == 4 || to == 4) && from != to;
            if is_slow { 5_000.0 } else { honest(from, to) }
        });
        let same = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits());
        assert!(same(&believable(n, &apart), &apart));
        assert!(same(&believable(2, &[f64::NAN; 4]), &[f64::NAN; 4]));
    }

    #[test]
    fn energies_that_are_drawn_count_as_they_are() {
        for seed in 0..50 {
            let drawn = [Ranges::default().draw(30, seed), Radio::default().draw(30, seed)];
            for energies in drawn {
                let believed = believable(30, &energies);
                let same = energies.iter().zip(&believed).all(|(a, b)| a.to_bits() == b.to_bits());
                assert!(same, "seed {seed}");
            }
        }
    }
}
