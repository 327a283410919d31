//! What sending a model costs: K_ij, the energy of link i → j (`eq:def_E_i`).
//!
//! Three ways to come by it, all ending in K = M / R · P (the paper's "Communication Energy
//! Determination"): [`Ranges`] draws powers and rates, [`Radio`] derives rates from distances, and
//! [`link_energy`] or [`energy_from_joules_per_bit`](stlf_planning::energy::energy_from_joules_per_bit) take what was measured. Any other cost of a
//! link (latency, money) may stand in place of joules.
//!
//! Matrices are row-major with row = sender, and NaN on the diagonal: nobody sends to itself.

use std::f64::consts::PI;
use std::ops::RangeInclusive;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use stlf_planning::energy::{PAPER_MODEL_BITS, link_energy};

/// Speed of light in metres per second.
const LIGHT: f64 = 299_792_458.0;

/// A power given in decibels over one milliwatt.
pub fn watts_from_dbm(dbm: f64) -> f64 {
    1e-3 * ratio_from_db(dbm)
}

/// A ratio given in decibels.
pub fn ratio_from_db(db: f64) -> f64 {
    10f64.powf(db / 10.0)
}

/// Powers and rates drawn uniformly, as in the paper's simulations.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranges {
    /// M, the size of a model in bits.
    pub bits: f64,
    /// P_i, one per device.
    pub power_dbm: RangeInclusive<f64>,
    /// R_ij, one per link and direction.
    pub bits_per_second: RangeInclusive<f64>,
}

impl Default for Ranges {
    /// The paper's: 1 Gbit, 23..25 dBm, 63..85 Mbit/s.
    fn default() -> Self {
        Ranges { bits: PAPER_MODEL_BITS, power_dbm: 23.0..=25.0, bits_per_second: 63e6..=85e6 }
    }
}

impl Ranges {
    /// K of every link between `devices` devices; the same seed gives the same numbers.
    pub fn draw(&self, devices: usize, seed: u64) -> Vec<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let watts = draw_watts(devices, &self.power_dbm, &mut rng);
        matrix(devices, |from, _| {
            let rate = rng.random_range(self.bits_per_second.clone());
            link_energy(self.bits, rate, watts[from])
        })
    }
}

/// An air-to-ground radio channel: line of sight by chance, free-space loss, Shannon's rate.
#[derive(Debug, Clone, PartialEq)]
pub struct Radio {
    /// M, the size of a model in bits.
    pub bits: f64,
    /// P_i, one per device.
    pub power_dbm: RangeInclusive<f64>,
    /// Distance of a pair, the same both ways; at least [`Radio::height_m`].
    pub distance_m: RangeInclusive<f64>,
    /// Height of the sender over the receiver.
    pub height_m: f64,
    /// f, the carrier frequency in hertz.
    pub carrier_hz: f64,
    /// B, the bandwidth in hertz.
    pub bandwidth_hz: f64,
    /// The noise density in dBm per hertz.
    pub noise_dbm_per_hz: f64,
    /// The band over which noise is collected.
    pub noise_bandwidth_hz: f64,
    /// Loss beyond free space with line of sight.
    pub line_of_sight_db: f64,
    /// Loss beyond free space without.
    pub obstructed_db: f64,
}

impl Default for Radio {
    /// 25..100 m, 2 GHz, 2 MHz, −174 dBm/Hz collected over the whole band: 21 to 44 Mbit/s.
    fn default() -> Self {
        Radio { noise_bandwidth_hz: 2e6, ..Radio::published() }
    }
}

impl Radio {
    /// As the paper's rates of 63..85 Mbit/s come out: noise collected over one hertz only.
    pub fn published() -> Self {
        Radio {
            bits: PAPER_MODEL_BITS,
            power_dbm: 23.0..=25.0,
            distance_m: 25.0..=100.0,
            height_m: 25.0,
            carrier_hz: 2e9,
            bandwidth_hz: 2e6,
            noise_dbm_per_hz: -174.0,
            noise_bandwidth_hz: 1.0,
            line_of_sight_db: 3.0,
            obstructed_db: 23.0,
        }
    }

    /// K of every link between `devices` devices; the same seed gives the same numbers.
    pub fn draw(&self, devices: usize, seed: u64) -> Vec<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let watts = draw_watts(devices, &self.power_dbm, &mut rng);
        let mut distance = vec![f64::NAN; devices * devices];
        for i in 0..devices {
            for j in i + 1..devices {
                let drawn = rng.random_range(self.distance_m.clone());
                distance[i * devices + j] = drawn;
                distance[j * devices + i] = drawn;
            }
        }
        matrix(devices, |from, to| {
            let rate = self.rate(distance[from * devices + to], watts[from]);
            link_energy(self.bits, rate, watts[from])
        })
    }

    /// θ = asin(height / distance) in degrees.
    pub fn elevation_degrees(&self, distance_m: f64) -> f64 {
        (self.height_m / distance_m).asin().to_degrees()
    }

    /// The mean of both losses by the probability of line of sight, over the free-space loss.
    pub fn path_loss(&self, distance_m: f64) -> f64 {
        let clear = line_of_sight_probability(self.elevation_degrees(distance_m));
        let excess = clear * ratio_from_db(self.line_of_sight_db)
            + (1.0 - clear) * ratio_from_db(self.obstructed_db);
        free_space_loss(self.carrier_hz, distance_m) * excess
    }

    /// R = B log₂(1 + P / (L · noise)), Shannon's capacity at this distance and power.
    pub fn rate(&self, distance_m: f64, watts: f64) -> f64 {
        let noise = watts_from_dbm(self.noise_dbm_per_hz) * self.noise_bandwidth_hz;
        let signal = watts / self.path_loss(distance_m);
        self.bandwidth_hz * (signal / noise).ln_1p() / std::f64::consts::LN_2
    }
}

/// 1 / (1 + a·exp(−b(θ − a))) with a = 11.95, b = 0.14, θ in degrees.
pub fn line_of_sight_probability(elevation_degrees: f64) -> f64 {
    const A: f64 = 11.95;
    const B: f64 = 0.14;
    1.0 / (1.0 + A * (-B * (elevation_degrees - A)).exp())
}

/// (4π f · distance / c)²: the power sent over the power received in empty space.
pub fn free_space_loss(carrier_hz: f64, distance_m: f64) -> f64 {
    (4.0 * PI * carrier_hz * distance_m / LIGHT).powi(2)
}

fn draw_watts(devices: usize, dbm: &RangeInclusive<f64>, rng: &mut ChaCha8Rng) -> Vec<f64> {
    (0..devices).map(|_| watts_from_dbm(rng.random_range(dbm.clone()))).collect()
}

fn matrix(devices: usize, mut energy: impl FnMut(usize, usize) -> f64) -> Vec<f64> {
    let pairs = (0..devices).flat_map(|from| (0..devices).map(move |to| (from, to)));
    pairs.map(|(from, to)| if from == to { f64::NAN } else { energy(from, to) }).collect()
}

#[cfg(test)]
mod tests {
    use stlf_planning::energy::energy_from_joules_per_bit;

    use super::*;
    use proptest::prelude::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
    }

    #[test]
    fn decibels_have_their_known_values() {
        assert!(close(watts_from_dbm(0.0), 1e-3));
        assert!(close(watts_from_dbm(30.0), 1.0));
        assert!((watts_from_dbm(23.0) - 0.200).abs() < 5e-4);
        assert!((watts_from_dbm(25.0) - 0.316).abs() < 5e-4);
        // Three decibels are a factor of two to a quarter of a percent.
        assert!((ratio_from_db(3.0) / 2.0 - 1.0).abs() < 3e-3);
    }

    #[test]
    fn the_paper_draws_stay_in_their_ranges() {
        let n = 40;
        let energy = Ranges::default().draw(n, 7);
        let least = link_energy(1e9, 85e6, watts_from_dbm(23.0));
        let most = link_energy(1e9, 63e6, watts_from_dbm(25.0));
        for from in 0..n {
            let row = &energy[from * n..(from + 1) * n];
            let sent: Vec<f64> = (0..n).filter(|&to| to != from).map(|to| row[to]).collect();
            assert!(sent.iter().all(|k| (least..=most).contains(k)));
            // One power per row: within it only the rate varies, by 85/63 at most.
            let largest = sent.iter().copied().fold(0.0, f64::max);
            let smallest = sent.iter().copied().fold(f64::INFINITY, f64::min);
            assert!(largest / smallest <= 85.0 / 63.0 + 1e-12);
            assert!(row[from].is_nan());
        }
    }

    #[test]
    fn a_seed_fixes_the_numbers() {
        let bits = |k: Vec<f64>| k.into_iter().map(f64::to_bits).collect::<Vec<_>>();
        let (ranges, radio) = (Ranges::default(), Radio::default());
        assert_eq!(bits(ranges.draw(12, 1)), bits(ranges.draw(12, 1)));
        assert_ne!(bits(ranges.draw(12, 1)), bits(ranges.draw(12, 2)));
        assert_eq!(bits(radio.draw(12, 1)), bits(radio.draw(12, 1)));
        assert_ne!(bits(radio.draw(12, 1)), bits(radio.draw(12, 2)));
    }

    #[test]
    fn the_published_radio_gives_the_rates_of_the_paper() {
        let radio = Radio::published();
        let (weak, strong) = (watts_from_dbm(23.0), watts_from_dbm(25.0));
        assert!((radio.rate(100.0, weak) / 1e6 - 63.0).abs() < 1.5);
        assert!((radio.rate(25.0, strong) / 1e6 - 85.0).abs() < 1.5);
    }

    #[test]
    fn noise_over_the_whole_band_slows_every_link() {
        let (whole, published) = (Radio::default(), Radio::published());
        let watts = watts_from_dbm(24.0);
        // At high signal the rate falls by B log₂ of the factor in noise.
        let drop = published.rate(50.0, watts) - whole.rate(50.0, watts);
        assert!((drop / (2e6 * 2e6f64.log2()) - 1.0).abs() < 1e-3);
        assert!((whole.rate(25.0, watts_from_dbm(25.0)) / 1e6 - 44.0).abs() < 1.0);
        assert!((whole.rate(100.0, watts_from_dbm(23.0)) / 1e6 - 21.5).abs() < 2.0);
    }

    #[test]
    fn overhead_the_channel_is_clear_and_nearly_free_space() {
        let radio = Radio::default();
        assert!(close(radio.elevation_degrees(25.0), 90.0));
        assert!(close(radio.elevation_degrees(50.0), 30.0));
        assert!(line_of_sight_probability(90.0) > 0.999);
        let excess = radio.path_loss(25.0) / free_space_loss(2e9, 25.0);
        assert!((excess / ratio_from_db(3.0) - 1.0).abs() < 0.05);
        let clear = Radio { line_of_sight_db: 0.0, obstructed_db: 0.0, ..radio };
        assert!(close(clear.path_loss(70.0), free_space_loss(2e9, 70.0)));
    }

    #[test]
    fn one_device_alone_has_no_link() {
        assert!(Radio::default().draw(1, 0)[0].is_nan());
        assert!(Ranges::default().draw(0, 0).is_empty());
    }

    proptest! {
        #[test]
        fn both_ways_of_measuring_agree(
            bits in 1.0..1e10f64, rate in 1e3..1e9f64, watts in 1e-3..10.0f64,
        ) {
            let by_rate = link_energy(bits, rate, watts);
            prop_assert!(close(by_rate, energy_from_joules_per_bit(bits, watts / rate)));
            prop_assert!(close(link_energy(2.0 * bits, 2.0 * rate, watts), by_rate));
        }

        #[test]
        fn the_rate_falls_with_distance_and_grows_with_power(
            distance in 25.0..500.0f64, step in 1.0..100.0f64, dbm in 10.0..30.0f64,
        ) {
            let radio = Radio::default();
            let watts = watts_from_dbm(dbm);
            let near = radio.rate(distance, watts);
            prop_assert!(radio.rate(distance + step, watts) < near);
            prop_assert!(radio.rate(distance, 2.0 * watts) > near);
            // Twice the distance is four times the loss in empty space.
            let ratio = free_space_loss(2e9, 2.0 * distance) / free_space_loss(2e9, distance);
            prop_assert!(close(ratio, 4.0));
        }

        #[test]
        fn a_radio_link_costs_the_same_both_ways_but_for_the_power(seed in 0..50u64) {
            let n = 5;
            let radio = Radio { power_dbm: 24.0..=24.0, ..Radio::default() };
            let energy = radio.draw(n, seed);
            for i in 0..n {
                for j in 0..i {
                    prop_assert!(close(energy[i * n + j], energy[j * n + i]));
                }
            }
        }
    }
}
