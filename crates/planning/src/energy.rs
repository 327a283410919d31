//! What sending a model costs: K_ij, the energy of link i → j (`eq:def_E_i`).
//!
//! Any other cost of a link (latency, money) may stand in place of joules.

/// M, the size of the model that the paper sends: 1 Gbit.
pub const PAPER_MODEL_BITS: f64 = 1e9;

/// K = M / R · P in joules: sending `bits` at a rate while drawing a power (`eq:def_E_i`).
pub fn link_energy(bits: f64, bits_per_second: f64, watts: f64) -> f64 {
    bits / bits_per_second * watts
}

/// K = M · (joules per bit), for links measured that way.
pub fn energy_from_joules_per_bit(bits: f64, joules_per_bit: f64) -> f64 {
    bits * joules_per_bit
}
