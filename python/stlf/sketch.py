"""The steps of a separate device: what it publishes, and the divergences that follow from all sketches.

`measure(fleet, "discrepancy")` does the same for a fleet in one place.

>>> rng = np.random.default_rng(0)
>>> devices = {"a": rng.normal(0, 1, (200, 3)), "b": rng.normal(0, 1, (200, 3)), "c": rng.normal(2, 1, (200, 3))}
>>> sketches = {name: sketch(x) for name, x in devices.items()}   # every device
>>> d = divergence(sketches)                                      # anybody
>>> bool(d["a", "b"] < 1 < 1.5 < d["a", "c"])
True
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from stlf import _internal
from stlf.divergence import Divergence
from stlf.errors import InputError
from stlf.fleet import Device

_KEY = secrets.token_bytes(32)
"""Of this program, as long as it runs."""

ACCEPTED = "others can rebuild my samples"
"""What a device that publishes moments must accept, in these words."""


@dataclass(frozen=True, eq=False, repr=False)
class Sketch:
    """What a device publishes: means of random features of its inputs, and the number of inputs.

    >>> sketch(np.eye(20))
    Traceback (most recent call last):
    stlf.errors.InputError: divergence.features: others could reconstruct 20 samples from 64 published means of them
    hint: a device needs at least 64 samples, or set divergence.features = 16 or fewer on all devices, or noise \
(divergence.privacy)
    >>> made = sketch(np.eye(20), features=16)
    >>> made.samples, made.mean.shape, made.covariance
    (20, (16,), None)
    >>> made.nbytes
    72
    """

    samples: int
    """The number of inputs."""
    mean: npt.NDArray[np.float32]
    """The means of their features; without covariances, rounded to sixteen bits each."""
    covariance: npt.NDArray[np.float32] | None
    """The lower triangle, row by row; only with moments."""

    @property
    def nbytes(self) -> int:
        """The number of bytes to send it."""
        return 8 + self.mean.nbytes + (0 if self.covariance is None else self.covariance.nbytes)

    def __repr__(self) -> str:
        """The number of inputs and of means."""
        return f"Sketch({self.samples} samples, {self.nbytes:,} bytes)"


def bandwidth(inputs: npt.ArrayLike, *, seed: int = 0) -> float | None:
    """Return the median distance of inputs; None with fewer than two.

    It shows which bandwidth fits inputs of an unusual scale. All devices need the same, and one that was published says
    something about the data: choose it beforehand.

    >>> bandwidth([[0.0], [1.0]])
    1.0
    """
    return _internal.own_bandwidth(Device.of("own", inputs).inputs, seed)


def sketch(
    inputs: npt.ArrayLike,
    bandwidth: float | None = None,
    *,
    features: int | None = None,
    privacy: tuple[float, float] | None = None,
    moments: bool = False,
    accept: str | None = None,
    seed: int = 0,
    ledger: str | PathLike[str] | None = None,
    budget: float | None = None,
) -> Sketch:
    """Step 1, at every device: the sketch that it publishes.

    All devices use one seed, one number of features and one bandwidth; without one it is what inputs of this shape
    usually have: columns of deviation 1, or pixels from 0 to 1. The means have noise that leaves each three bits about
    the inputs, the same for the same inputs as long as a program runs. `privacy` is an (ε, δ) for more, drawn anew
    every time; noise so weak that it leaves more than a few bits of an input is refused. Without `privacy`, devices
    with about 1,200 inputs or more for 16 means and 2,400 for 64 add noise for ε = 1. With `moments` covariances are
    published too; others can reconstruct samples from them, so `accept` must say "others can rebuild my samples".

    `ledger` is a file in which every sketch with noise is counted before this returns, in the format of the record that
    `stlf node` keeps. With `budget`, an ε, no sketch is made with which all of them would spend more.

    >>> sketch(np.eye(64))
    Sketch(64 samples, 264 bytes)
    >>> sketch(np.eye(64), moments=True)
    Traceback (most recent call last):
    stlf.errors.InputError: divergence.estimator: it publishes covariances, from which every other member can \
reconstruct samples of this device
    hint: use estimator = "means", or add accept = "others can rebuild my samples"
    """
    if budget is not None and ledger is None:
        raise InputError("budget: nothing is counted without a ledger", "give ledger= too")
    own = Device.of("own", inputs).inputs
    made = _internal.own_sketch(
        own,
        bandwidth=bandwidth,
        features=features,
        privacy=privacy,
        moments=moments,
        accept=accept,
        seed=seed,
        noise=_noise(own, (bandwidth, features, seed), privacy),
        ledger=ledger,
        budget=budget,
    )
    return Sketch(made.samples, made.mean, made.covariance)


def _noise(inputs: npt.NDArray[Any], settings: tuple[Any, ...], privacy: tuple[float, float] | None) -> bytes:
    """What noise is drawn from: nobody else knows it, and without (ε, δ) it cannot be averaged away by asking again."""
    if privacy is not None:
        return secrets.token_bytes(32)
    return hashlib.sha256(_KEY + repr((settings, inputs.shape)).encode() + inputs.tobytes()).digest()


def divergence(sketches: Mapping[str, Sketch], *, privacy: tuple[float, float] | None = None) -> Divergence:
    """Step 2, anywhere: d̂ of all pairs of the devices that published these.

    >>> same = sketch(np.eye(64))
    >>> divergence({"a": same, "b": same})["a", "b"]
    0.0
    """
    compiled = [
        _internal.Sketch(
            one.samples,
            np.ascontiguousarray(one.mean, dtype=np.float32),
            None if one.covariance is None else np.ascontiguousarray(one.covariance, dtype=np.float32),
        )
        for one in sketches.values()
    ]
    return Divergence._of_pairs(list(sketches), _internal.divergence_of_sketches(compiled, privacy=privacy))
