"""The steps of a device that is on its own: what it publishes, and what follows from what all published.

`measure(fleet, "sketch")` does the same for a fleet in one place.

>>> rng = np.random.default_rng(0)
>>> devices = {"a": rng.normal(0, 1, (200, 3)), "b": rng.normal(0, 1, (200, 3)), "c": rng.normal(2, 1, (200, 3))}
>>> widths = [bandwidth(x, place=k) for k, x in enumerate(devices.values())]   # every device
>>> agreed = agree(widths)                                                     # anybody
>>> sketches = {name: sketch(x, agreed, place=k) for k, (name, x) in enumerate(devices.items())}
>>> d = divergence(sketches)                                                   # anybody
>>> bool(d["a", "b"] < 0.3 < 1.5 < d["a", "c"])
True
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stlf import _internal
from stlf.divergence import Divergence
from stlf.fleet import Device


@dataclass(frozen=True, eq=False, repr=False)
class Sketch:
    """What a device publishes: moments of random features of its inputs, and of how many inputs.

    >>> made = sketch(np.eye(4), bandwidth=1.0, features=8)
    >>> made.samples, made.mean.shape, made.covariance.shape
    (4, (8,), (36,))
    >>> made.nbytes
    184
    """

    samples: int
    """Of how many inputs."""
    mean: npt.NDArray[np.float32]
    """Of their features."""
    covariance: npt.NDArray[np.float32] | None
    """The lower triangle, row by row; none with privacy."""

    @property
    def nbytes(self) -> int:
        """What sending it takes."""
        return 8 + self.mean.nbytes + (0 if self.covariance is None else self.covariance.nbytes)

    def __repr__(self) -> str:
        """Of how much, in how many numbers."""
        return f"Sketch({self.samples} samples, {self.nbytes:,} bytes)"


def bandwidth(inputs: npt.ArrayLike, *, seed: int = 0, place: int = 0) -> float | None:
    """Step 1, at every device: the median distance of its inputs; None with fewer than two.

    All devices use one seed; `place` is the device's own number.

    >>> bandwidth([[0.0], [1.0]])
    1.0
    """
    return _internal.own_bandwidth(Device.of("own", inputs).inputs, seed, place)


def agree(bandwidths: Iterable[float | None]) -> float:
    """Step 2, anywhere: the bandwidth that all use, the median of what they published.

    >>> agree([1.0, None, 2.0, 8.0])
    2.0
    """
    return _internal.agree_bandwidth(list(bandwidths))


def sketch(
    inputs: npt.ArrayLike,
    bandwidth: float,
    *,
    features: int | None = None,
    privacy: tuple[float, float] | None = None,
    seed: int = 0,
    place: int = 0,
) -> Sketch:
    """Step 3, at every device: the sketch that it publishes.

    >>> sketch([[0.0], [1.0]], 1.0, features=8)
    Sketch(2 samples, 184 bytes)
    """
    made = _internal.own_sketch(
        Device.of("own", inputs).inputs, bandwidth, features=features, privacy=privacy, seed=seed, place=place
    )
    return Sketch(made.samples, made.mean, made.covariance)


def divergence(sketches: Mapping[str, Sketch], *, privacy: tuple[float, float] | None = None) -> Divergence:
    """Step 4, anywhere: d̂ of all pairs of the devices that published these.

    >>> same = sketch(np.eye(4), 1.0)
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
