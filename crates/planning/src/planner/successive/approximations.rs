//! The posynomials that stand in a denominator of (𝒫′), one function each, named as in the paper.
//!
//! Each is replaced by its best monomial at the last iterate, `Posynomial::condense` (paper: Lemma
//! `Lemma:AG_mean`). The condensed monomial is never above the posynomial, so whatever satisfies the
//! condensed constraint satisfies the original one.

use stlf_optim::gp::GpError;
use stlf_optim::posynomial::{Monomial, Posynomial};

/// `F_i = ψ_i + χ^S_i / S_i` (`eq:approx_source_error`), from `(1 - ψ_i) S_i ≤ χ^S_i`, that is
/// `1 / F_i ≤ 1`.
pub(super) fn source_error(psi: Monomial, chi: Monomial, s: f64) -> Result<Posynomial, GpError> {
    Ok(psi + chi / s.try_into()?)
}

/// `G_ijk = ψ_k + χ̂^T_ijk / (ψ_j α_kj T̂_ijk)` (`eq:approx_target_error1`), from
/// `(1 - ψ_k) ψ_j α_kj T̂_ijk ≤ χ̂^T_ijk`, that is `1 / G_ijk ≤ 1`.
///
/// The paper writes `ψ_i α_ki`; the mixture whose noise is bounded is the target's, so the indices must
/// be `j`.
pub(super) fn hypothesis_noise(
    psi_k: Monomial,
    chi: Monomial,
    psi_j: Monomial,
    alpha_kj: Monomial,
    disagreement: f64,
) -> Result<Posynomial, GpError> {
    Ok(psi_k + chi / (psi_j * alpha_kj * disagreement.try_into()?))
}

/// `H_ij = ψ_i (T̂_ij + Σ_k χ̂^T_ijk) + χ^T_ij / (ψ_j α_ij)` (`eq:approx_target_error2`), from
/// `ψ_j (1 - ψ_i) α_ij (T̂_ij + Σ_k χ̂^T_ijk) ≤ χ^T_ij`, that is `(T̂_ij + Σ_k χ̂^T_ijk) / H_ij ≤ 1`.
/// `error` is the sum in parentheses; without noise it is the constant `T_ij`.
pub(super) fn target_error(
    psi_i: Monomial,
    error: Posynomial,
    chi: Monomial,
    psi_j: Monomial,
    alpha_ij: Monomial,
) -> Posynomial {
    error * psi_i + chi / (psi_j * alpha_ij)
}

/// `J_ij = α_ij + ε_E` (`eq:approx_nrg`), the denominator of `E_ij = K_ij α_ij / (α_ij + ε_E)`.
pub(super) fn link_energy(alpha: Monomial, epsilon: f64) -> Result<Posynomial, GpError> {
    Ok(alpha + Monomial::try_from(epsilon)?)
}

/// `M⁺_j = χ^C_j + ε_C + ψ_j` (`eq:approx_con_plus`), from `Σ_i α_ij - ψ_j ≤ χ^C_j + ε_C`, that is
/// `Σ_i α_ij / M⁺_j ≤ 1`.
pub(super) fn column_above(
    chi: Monomial,
    epsilon: f64,
    psi: Monomial,
) -> Result<Posynomial, GpError> {
    Ok(chi + Monomial::try_from(epsilon)? + psi)
}

/// `M⁻_j = Σ_i α_ij + ε_C` (`eq:approx_con_minus`), from `Σ_i α_ij - ψ_j ≥ χ^C_j - ε_C`, that is
/// `(χ^C_j + ψ_j) / M⁻_j ≤ 1`.
///
/// The paper leaves `ε_C` in the numerator, `χ^C_j - ε_C + ψ_j`, which is no posynomial; on the other side
/// of the inequality it belongs to one.
pub(super) fn column_below(
    alphas: impl IntoIterator<Item = Monomial>,
    epsilon: f64,
) -> Result<Posynomial, GpError> {
    Ok(Posynomial::sum(alphas)? + Monomial::try_from(epsilon)?)
}
