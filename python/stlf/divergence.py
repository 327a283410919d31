"""How different the data of two devices are, measured without moving them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from stlf import _internal
from stlf.errors import InputError, optional
from stlf.fleet import Fleet, Inputs, place_of
from stlf.parameters import Layout, Model
from stlf.progress import Progress, bars

if TYPE_CHECKING:
    import pandas

Method = Literal["means", "discrepancy", "discriminant", "sketch", "classifier", "published"]
"""How divergences are measured."""

Train = Callable[[Inputs, int, Model], Model]
"""Trains the domain classifier for some steps, starting from this model, on inputs that all have this label."""

Count = Callable[[Inputs, int, Model], tuple[int, int] | float]
"""Measures it: errors and samples, or the fraction of these inputs to which it does not give this label."""


@dataclass(frozen=True, eq=False, repr=False)
class Divergence:
    """d̂ of all pairs, from 0 (two devices cannot be told apart) to 2 (every sample can), with intervals.

    >>> d = Divergence.of(["gate", "roof"], [[0.0, 0.4], [0.4, 0.0]])
    >>> d["gate", "roof"]
    0.4
    >>> d.to_numpy().shape
    (2, 2)
    """

    names: list[str]
    """The names of the devices."""
    values: npt.NDArray[np.float64]
    """d̂, symmetric, 0 on the diagonal."""
    low: npt.NDArray[np.float64]
    """Lower ends of the intervals."""
    high: npt.NDArray[np.float64]
    """Upper ends of the intervals."""
    sent: npt.NDArray[np.int64]
    """The number of bytes that each device sends for this."""

    @staticmethod
    def of(names: Sequence[str], values: npt.ArrayLike) -> Divergence:
        """Take a matrix that was measured elsewhere, without intervals.

        >>> Divergence.of(["a"], [[0.0]])
        Divergence(1 device, 0 bytes sent)
        """
        matrix = np.asarray(values, dtype=np.float64)
        if matrix.shape != (len(names), len(names)):
            raise InputError(f"divergence: {matrix.shape} for {len(names)} devices", "give a square, a row per device")
        return Divergence(list(names), matrix, matrix, matrix, np.zeros(len(names), dtype=np.int64))

    @staticmethod
    def _of_pairs(names: list[str], measured: tuple[Any, Any, Any, list[int]]) -> Divergence:
        above = np.triu_indices(len(names), k=1)

        def square(pairs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
            matrix = np.zeros((len(names), len(names)))
            matrix[above] = pairs
            return matrix + matrix.T

        value, low, high, sent = measured
        return Divergence(names, square(value), square(low), square(high), np.asarray(sent, dtype=np.int64))

    @property
    def signal(self) -> npt.NDArray[np.bool_]:
        """Whether a pair's interval excludes 0. Where it does not, the estimate is noise.

        >>> bool(Divergence.of(["a", "b"], [[0, 0.4], [0.4, 0]]).signal[0, 1])
        True
        """
        return self.low > 0

    def __getitem__(self, pair: tuple[str | int, str | int]) -> float:
        """d̂ of two devices, by name or position."""
        first, second = (place_of(name, self.names) for name in pair)
        return float(self.values[first, second])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """d̂ as a NumPy array."""
        return np.array(self.values, dtype=dtype, copy=True if copy is None else copy)

    def to_numpy(self) -> npt.NDArray[np.float64]:
        """Return d̂ as a square.

        >>> float(Divergence.of(["a", "b"], [[0, 0.4], [0.4, 0]]).to_numpy().max())
        0.4
        """
        return self.values.copy()

    def to_pandas(self) -> pandas.DataFrame:
        """Return d̂ as a table with the devices' names on both sides.

        >>> float(Divergence.of(["a", "b"], [[0, 0.4], [0.4, 0]]).to_pandas().loc["a", "b"])
        0.4
        """
        frames = optional("pandas", "to_pandas()", "pandas")
        return frames.DataFrame(self.values, index=self.names, columns=self.names)

    def plot(self, ax: Any = None) -> Any:
        """Draw a map of all pairs; pairs without signal are marked `?`. Returns matplotlib's axes.

        >>> Divergence.of(["a", "b"], [[0, 0.4], [0.4, 0]]).plot().get_title()
        'divergence'
        """
        if ax is None:
            ax = optional("matplotlib.pyplot", "plot()", "plot").subplots()[1]
        image = ax.imshow(self.values, vmin=0, vmax=2, cmap="viridis_r")
        ax.set_xticks(range(len(self.names)), self.names, rotation=90)
        ax.set_yticks(range(len(self.names)), self.names)
        for i, j in np.argwhere(~self.signal & ~np.eye(len(self.names), dtype=bool)):
            ax.text(j, i, "?", ha="center", va="center")
        ax.set_title("divergence")
        ax.figure.colorbar(image, ax=ax)
        return ax

    def __repr__(self) -> str:
        """The number of devices and of bytes."""
        devices = "1 device" if len(self.names) == 1 else f"{len(self.names)} devices"
        return f"Divergence({devices}, {int(self.sent.sum()):,} bytes sent)"


def measure(
    fleet: Fleet,
    method: Method = "means",
    *,
    embed: Callable[[Inputs], npt.ArrayLike] | None = None,
    features: int | None = None,
    bandwidth: float | None = None,
    privacy: tuple[float, float] | None = None,
    rounds: int | None = None,
    steps: int | None = None,
    repeats: int | None = None,
    seed: int = 0,
    progress: Progress = None,
) -> Divergence:
    """Measure all pairs of a fleet.

    `means` is the default: a few hundred bytes per device, from which others cannot reconstruct samples, and every
    device measures by the covariance of its own features. `discrepancy` is what a third party makes of the same means
    (`stlf.sketch`). For comparison: `discriminant` and `sketch` publish moments, from which others can reconstruct
    samples; `classifier` is the paper's Algorithm 1, with `rounds` averages after `steps`
    local steps, `repeats` times; `published` is the same with the settings of the paper's runs. For your own domain
    classifier see `measure_with`.

    `embed` maps a device's inputs to what is compared, such as the last layer of your own model. `features` is
    the number of random features, `bandwidth` the distance over which they vary (`means`), `privacy` an (ε, δ) for the
    noise on means; without it, devices with samples enough add noise for ε = 1, δ = 1e-5.

    >>> rng = np.random.default_rng(0)
    >>> near, far = rng.normal(0, 1, (400, 3)), rng.normal(2, 1, (200, 3))
    >>> d = measure(Fleet.from_devices({"a": (near[:200], None), "b": (near[200:], None), "c": (far, None)}))
    >>> bool(d["a", "b"] < 0.3 < 1.5 < d["a", "c"])
    True
    """
    seen = fleet if embed is None else fleet.map(embed)
    with bars(progress) as see:
        measured = _internal.measure(
            [device.inputs for device in seen],
            method=method,
            seed=seed,
            features=features,
            bandwidth=bandwidth,
            privacy=privacy,
            rounds=rounds,
            steps=steps,
            repeats=repeats,
            progress=see,
        )
    return Divergence._of_pairs(fleet.names, measured)


def measure_with(
    fleet: Fleet,
    train: Train,
    error: Count,
    start: Model,
    *,
    rounds: int = 50,
    repeats: int = 1,
    confidence: float = 0.95,
    progress: Progress = None,
) -> Divergence:
    """Measure all pairs with your own domain classifier: Algorithm 1, driven by the same state machine.

    Both devices of a pair begin at `start`. In every round each calls `train(inputs, label, model)` on its own
    inputs, which are all labeled 0 on one side and 1 on the other, and the two models are averaged. At the end each
    calls `error(inputs, label, model)`. Models are what `combine` takes. To measure on samples that were not trained
    on, as the intervals presume, let the two functions split them.

    A mean of each side, midway, as a classifier of two numbers:

    >>> def train(x, label, model):
    ...     model = dict(model)
    ...     model["means"] = model["means"].copy()
    ...     model["means"][label] = 2 * x.mean()  # the other side leaves it at 0, and the two are averaged
    ...     model["means"][1 - label] = 0.0
    ...     return model
    >>> def error(x, label, model):
    ...     nearer = np.abs(x - model["means"]).argmin(axis=1)
    ...     return int((nearer != label).sum()), len(x)
    >>> rng = np.random.default_rng(0)
    >>> fleet = Fleet.from_devices([(rng.normal(m, 1, (300, 1)), None) for m in (0, 0, 4)])
    >>> d = measure_with(fleet, train, error, {"means": np.zeros(2, dtype=np.float32)}, rounds=1)
    >>> bool(d[0, 1] < 0.3 < 1.7 < d[0, 2])
    True
    """
    layout = Layout(start)

    def train_flat(device: int, label: int, numbers: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        return layout.flatten(train(fleet.devices[device].inputs, label, layout.restore(numbers)))

    def count(device: int, label: int, numbers: npt.NDArray[np.float32]) -> tuple[int, int]:
        inputs = fleet.devices[device].inputs
        counted = error(inputs, label, layout.restore(numbers))
        if isinstance(counted, tuple):
            return int(counted[0]), int(counted[1])
        if not 0 <= counted <= 1:
            raise InputError(f"{fleet.names[device]}: an error of {counted}", "give a fraction, or errors and samples")
        return round(counted * len(inputs)), len(inputs)

    with bars(progress) as see:
        measured = _internal.measure_own(
            len(fleet),
            layout.flatten(start),
            train_flat,
            count,
            rounds=rounds,
            repeats=repeats,
            confidence=confidence,
            progress=see,
        )
    return Divergence._of_pairs(fleet.names, measured)
