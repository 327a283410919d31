"""The accounting of privacy, beside that of an independent library."""

import math

import pytest
from dp_accounting import GaussianDpEvent, SelfComposedDpEvent, get_epsilon_gaussian, get_sigma_gaussian
from dp_accounting.pld import PLDAccountant

import stlf
from stlf import privacy


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-7, 1e-5, 1e-3, 0.1])
def test_noise_is_what_dp_accounting_says(epsilon: float, delta: float) -> None:
    ours = privacy.noise_multiplier(epsilon, delta)
    assert ours == pytest.approx(get_sigma_gaussian(epsilon, delta), rel=1e-6)
    assert privacy.spent([ours], delta) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("sigma", [0.2, 0.7, 1.0, 3.73, 20.0])
@pytest.mark.parametrize("times", [1, 3, 30])
def test_what_is_spent_is_what_dp_accounting_says(sigma: float, times: int) -> None:
    ours = privacy.spent([sigma] * times, 1e-5)
    assert ours == pytest.approx(get_epsilon_gaussian(sigma / math.sqrt(times), 1e-5), rel=1e-6)


def test_composition_is_what_a_distribution_of_privacy_losses_says() -> None:
    accountant = PLDAccountant()
    accountant.compose(SelfComposedDpEvent(GaussianDpEvent(3.0), 4)).compose(GaussianDpEvent(1.5))
    ours = privacy.spent([3.0, 3.0, 1.5, 3.0, 3.0], 1e-5)
    # The library's grid of losses is coarse, and errs upwards.
    assert ours == pytest.approx(accountant.get_epsilon(1e-5), rel=2e-3)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 1e-5), (21.0, 1e-5), (1.0, 0.0), (1.0, 1.0), (math.nan, 0.1)])
def test_what_is_no_promise_is_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(stlf.InputError, match="is not in 0 < "):
        privacy.noise_multiplier(epsilon, delta)


@pytest.mark.parametrize(("multipliers", "delta"), [([0.0], 1e-5), ([-1.0], 1e-5), ([math.nan], 0.1), ([1.0], 1.5)])
def test_what_is_no_noise_is_refused(multipliers: list[float], delta: float) -> None:
    with pytest.raises(stlf.InputError):
        privacy.spent(multipliers, delta)
