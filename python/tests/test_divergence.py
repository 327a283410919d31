"""Measuring without moving data."""

import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest
from drawn import fleet_of

import stlf
from stlf import privacy, sketch

METHODS = ["means", "discrepancy", "discriminant", "sketch", "classifier"]


@pytest.mark.parametrize("method", METHODS)
def test_near_devices_are_near_and_far_ones_far(method: str) -> None:
    rng = np.random.default_rng(1)
    parts = {name: (rng.normal(mean, 1, (600, 3)), None) for name, mean in [("a", 0), ("b", 0), ("c", 1.5)]}
    fleet = stlf.Fleet.from_devices(parts)
    measured = stlf.measure(fleet, method)
    assert measured["a", "b"] < 0.5 < 1.5 < measured["a", "c"]
    assert measured["a", "c"] == measured["c", "a"]
    assert np.all(measured.low <= measured.values)
    assert np.all(measured.values <= measured.high)
    assert measured.signal[0, 2]
    assert measured.sent.min() > 0
    # The same seed gives the same numbers, another others.
    np.testing.assert_array_equal(stlf.measure(fleet, method).values, measured.values)
    assert not np.array_equal(stlf.measure(fleet, method, seed=1).values, measured.values)


@pytest.mark.parametrize("moments", [False, True])
def test_the_steps_of_devices_on_their_own_give_what_one_call_gives(moments: bool) -> None:
    fleet = fleet_of(0)
    options: dict[str, Any] = {"features": 16, "bandwidth": 2.0}
    whole = stlf.measure(fleet, "sketch" if moments else "discrepancy", **options)
    accept = sketch.ACCEPTED if moments else None
    sketches = {d.name: sketch.sketch(d.inputs, moments=moments, accept=accept, **options) for d in fleet}
    apart = sketch.divergence(sketches)
    if moments:
        np.testing.assert_array_equal(apart.values, whole.values)
        np.testing.assert_array_equal(apart.low, whole.low)
    else:
        # Means have noise, which every device draws for itself.
        assert np.all((whole.low <= apart.values) & (apart.values <= whole.high))
        assert np.abs(apart.values - whole.values).max() < 0.5


def test_means_are_what_a_device_publishes_unless_it_accepts_more() -> None:
    inputs = fleet_of(0)[0].inputs
    assert sketch.sketch(inputs).covariance is None
    for accept in (None, "yes"):
        with pytest.raises(stlf.InputError, match="every other member can reconstruct"):
            sketch.sketch(inputs, moments=True, accept=accept)
    with pytest.raises(stlf.InputError, match="others could reconstruct 5 samples from 16"):
        sketch.sketch(inputs[:5])


def test_noise_is_drawn_anew_and_publishes_means_alone() -> None:
    inputs = fleet_of(0)[0].inputs
    first, second = (sketch.sketch(inputs, privacy=(1.0, 1e-5)) for _ in range(2))
    assert first.covariance is None
    assert not np.array_equal(first.mean, second.mean)
    apart = sketch.divergence({"a": first, "b": second}, privacy=(1.0, 1e-5))
    assert 0 <= apart["a", "b"] <= 2


def test_means_have_sixteen_bits_with_any_noise() -> None:
    inputs = fleet_of(0)[0].inputs
    base = 1 / np.sqrt(63 * 16 * len(inputs))
    noisy = privacy.noise_multiplier(1.0, 1e-5) * 2 / len(inputs)
    for noise, asked in [(base, None), (noisy, (1.0, 1e-5))]:
        mean = sketch.sketch(inputs, features=16, privacy=asked).mean.astype(float)
        steps = mean * 32767 / (np.sqrt(2 / 16) + 6 * noise)
        np.testing.assert_allclose(steps, steps.round(), atol=5e-3)
        assert np.any(abs(steps) > 1)


def test_an_embedding_is_what_is_compared() -> None:
    fleet = fleet_of(0)
    forgetful = stlf.measure(fleet, embed=lambda x: np.random.default_rng(0).normal(size=(len(x), 2)))
    assert not forgetful.signal.any()
    assert stlf.measure(fleet).signal.any()


def logistic(x: np.ndarray, label: int, model: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """One step of logistic regression on samples that all have this label."""
    w, b = model["w"], model["b"]
    error = 1 / (1 + np.exp(-(x @ w + b))) - label
    return {"w": w - 0.5 * (error[:, None] * x).mean(0), "b": b - 0.5 * error.mean()}


def mistakes(x: np.ndarray, label: int, model: dict[str, np.ndarray]) -> tuple[int, int]:
    return int(((x @ model["w"] + model["b"] > 0) != label).sum()), len(x)


def test_a_classifier_of_ones_own_drives_the_same_rounds() -> None:
    rng = np.random.default_rng(2)
    fleet = stlf.Fleet.from_devices([(rng.normal(mean, 1, (400, 2)), None) for mean in (0, 0, 4)])
    start = {"w": np.zeros(2, dtype=np.float32), "b": np.zeros(1, dtype=np.float32)}
    calls = []

    def train(x: np.ndarray, label: int, model: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        calls.append((len(x), label))
        return logistic(x, label, model)

    measured = stlf.measure_with(fleet, train, mistakes, start, rounds=60)
    assert measured[0, 1] < 0.4 < 1.8 < measured[0, 2]
    # Three pairs, two sides, sixty rounds; a device trains as 0 before and as 1 after those that come later.
    assert len(calls) == 3 * 2 * 60
    assert {label for _, label in calls} == {0, 1}
    # Three numbers a round, and the errors at the end, in each of two pairs.
    assert list(measured.sent) == [2 * (60 * 3 * 4 + 16)] * 3
    shares = stlf.measure_with(fleet, logistic, lambda *a: mistakes(*a)[0] / len(a[0]), start, rounds=60)
    np.testing.assert_array_equal(shares.values, measured.values)


def test_what_ones_own_functions_raise_comes_through() -> None:
    fleet = fleet_of(0)
    start = {"w": np.zeros(3, dtype=np.float32), "b": np.zeros(1, dtype=np.float32)}

    def broken(*_: object) -> None:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        stlf.measure_with(fleet, broken, mistakes, start)
    with pytest.raises(ZeroDivisionError, match="mine"):
        stlf.measure_with(fleet, logistic, broken, start, rounds=1)
    with pytest.raises(stlf.InputError, match="a model of arrays"):
        stlf.measure_with(fleet, lambda *_: {"w": np.zeros(2)}, mistakes, start)
    with pytest.raises(stlf.InputError, match="divergence.rounds: must be at least 1"):
        stlf.measure_with(fleet, logistic, mistakes, start, rounds=0)
    with pytest.raises(stlf.InputError, match="more errors than samples"):
        stlf.measure_with(fleet, logistic, lambda *_: (3, 2), start, rounds=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "guess"}, "method: there is no 'guess'|method: there is no \"guess\""),
        ({"features": 3}, "divergence.features: 3 is not an even number"),
        ({"rounds": 3}, 'rounds is only for method = "classifier"'),
        ({"method": "classifier", "rounds": 0}, "divergence.rounds: must be at least 1"),
    ],
)
def test_settings_are_checked_as_everywhere(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(stlf.InputError, match=message):
        stlf.measure(fleet_of(0), **arguments)  # type: ignore[arg-type]


def test_inputs_must_fit_together() -> None:
    with pytest.raises(stlf.InputError, match=r"devices\[1\]: samples of 1×1×3, but devices\[0\] has 1×1×2"):
        stlf.measure(stlf.Fleet.from_devices([(np.zeros((2, 2)), None), (np.zeros((2, 3)), None)]))
    with pytest.raises(stlf.InputError, match="not a finite number"):
        stlf.measure(stlf.Fleet.from_devices([([[np.nan]], None), ([[1.0]], None)]))
    with pytest.raises(stlf.InputError, match="an array of 5 axes"):
        stlf.measure(stlf.Fleet.from_devices([(np.zeros((1, 1, 1, 1, 1)), None)]))


def test_as_table_and_picture() -> None:
    measured = stlf.measure(fleet_of(0))
    pandas = pytest.importorskip("pandas", reason="to_pandas() needs pandas")
    frame = measured.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.loc["d0", "d3"] == measured["d0", "d3"]
    pytest.importorskip("matplotlib", reason="plot() needs matplotlib")
    assert [tick.get_text() for tick in measured.plot().get_xticklabels()] == measured.names


def test_others_run_while_it_measures() -> None:
    """Without the interpreter's lock: with it, nothing else would run until the end."""
    count, done = 0, False

    def others() -> None:
        nonlocal count
        while not done:
            count += 1
            time.sleep(0)

    thread = threading.Thread(target=others)
    thread.start()
    before = count
    stlf.measure(fleet_of(0, devices=12, samples=600), "classifier", rounds=100)
    during = count - before
    done = True
    thread.join(timeout=600)
    assert during > 100


MEMORY = """
import resource, numpy as np, stlf
inputs = np.ones((25_000, 1_024), dtype=np.float32)  # 100 MB
inputs[::2] = 0
fleet = stlf.Fleet.from_arrays(inputs, None, np.repeat([1, 2], 12_500))
few = stlf.Fleet.from_devices([(inputs[:100], None), (inputs[:100], None)])
stlf.measure(few, "sketch", features=2)  # threads and tables
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
stlf.measure(fleet, "sketch", features=2)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts memory as Linux does")
def test_inputs_are_read_where_they_lie() -> None:
    ran = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, timeout=600, check=True)
    assert int(ran.stdout) < 30_000, f"{ran.stdout} kB more for 100 MB of inputs"
