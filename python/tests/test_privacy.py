"""The accounting of privacy, beside that of an independent library."""

import json
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, SelfComposedDpEvent, get_epsilon_gaussian, get_sigma_gaussian
from dp_accounting.pld import PLDAccountant

import stlf
from stlf import privacy, sketch


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


def test_a_ledger_counts_what_was_published_with_noise(tmp_path: Path) -> None:
    inputs = np.random.default_rng(0).normal(size=(300, 3))
    ledger = tmp_path / "new" / "privacy.json"
    sketch.sketch(inputs, ledger=ledger)
    assert privacy.recorded(ledger, 1e-5) == (0, 0.0)
    for _ in range(3):
        sketch.sketch(inputs, privacy=(1.0, 1e-5), ledger=ledger)
    publications, spent = privacy.recorded(ledger, 1e-5)
    assert publications == 3
    assert spent == pytest.approx(privacy.spent([privacy.noise_multiplier(1.0, 1e-5)] * 3, 1e-5))
    written = json.loads(ledger.read_text())
    assert written["format"] == "stlf-privacy/1"
    assert all(set(one) == {"id", "ratio"} and len(one["id"]) == 64 for one in written["publications"])


def test_a_budget_is_kept_and_what_is_refused_counts_nothing(tmp_path: Path) -> None:
    inputs = np.random.default_rng(0).normal(size=(300, 3))
    ledger = tmp_path / "privacy.json"
    sketch.sketch(inputs, privacy=(1.0, 1e-5), ledger=ledger, budget=1.2)
    with pytest.raises(stlf.InputError, match="would spend"):
        sketch.sketch(inputs, privacy=(1.0, 1e-5), ledger=ledger, budget=1.2)
    with pytest.raises(stlf.InputError, match="20.5"):
        sketch.sketch(inputs, privacy=(20.5, 1e-5), ledger=ledger)
    with pytest.raises(stlf.InputError, match="without a ledger"):
        sketch.sketch(inputs, privacy=(1.0, 1e-5), budget=1.2)
    assert privacy.recorded(ledger, 1e-5)[0] == 1


def test_many_at_once_are_all_counted(tmp_path: Path) -> None:
    inputs = np.random.default_rng(0).normal(size=(300, 3))
    ledger = tmp_path / "privacy.json"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: sketch.sketch(inputs, privacy=(1.0, 1e-5), ledger=ledger), range(24)))
    assert privacy.recorded(ledger, 1e-5)[0] == 24


@pytest.mark.parametrize("samples", [20, 64])
def test_noise_that_is_too_weak_makes_up_for_nothing(samples: int) -> None:
    with pytest.raises(stlf.InputError, match="leaves more than .* bits of a sample"):
        sketch.sketch(np.eye(samples), features=64, privacy=(20.0, 0.99))
    assert sketch.sketch(np.eye(samples), features=64, privacy=(8.0, 1e-5)).samples == samples


@pytest.mark.parametrize("text", ["", "{}", '{"format": "stlf-privacy/2", "publications": []}'])
def test_what_is_no_ledger_is_never_an_empty_one(tmp_path: Path, text: str) -> None:
    ledger = tmp_path / "privacy.json"
    ledger.write_text(text)
    with pytest.raises(stlf.FileError, match="privacy.json"):
        sketch.sketch(np.eye(64), privacy=(1.0, 1e-5), ledger=ledger)
    assert ledger.read_text() == text
