"""What is written into Flower's messages besides models: questions, reports, weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from stlf.parameters import Model
from stlf.sketch import Sketch

KEY = "stlf"
"""The name of our record in a message; strategies and clients that do not know it ignore it."""

SKETCH = "stlf-sketch"
"""The record with a sketch's arrays."""


@dataclass(frozen=True)
class Question:
    """What the server asks of every device before the first round: a sketch."""

    seed: int
    """The seed from which all devices draw their features."""
    bandwidth: float | None = None
    """The distance over which features vary; None for the usual one of inputs of that shape."""
    features: int | None = None
    """The number of random features; None for the default."""
    privacy: tuple[float, float] | None = None
    """ε and δ of the noise."""
    moments: bool = False
    """Whether covariances are requested too."""

    def record(self) -> RecordDict:
        """Return the content of a message that asks it.

        >>> question = Question(seed=1, bandwidth=2.5, privacy=(1.0, 1e-5))
        >>> Question.read(question.record()) == question
        True
        """
        config: dict[str, Any] = {"seed": self.seed}
        if self.bandwidth is not None:
            config["bandwidth"] = self.bandwidth
        if self.features is not None:
            config["features"] = self.features
        if self.privacy is not None:
            config["privacy"] = list(self.privacy)
        if self.moments:
            config["moments"] = True
        return RecordDict({KEY: ConfigRecord(config)})

    @staticmethod
    def read(content: RecordDict) -> Question | None:
        """Return the question that a message asks; None where it asks none.

        >>> Question.read(RecordDict())
        """
        config: dict[str, Any] = dict(content.config_records.get(KEY, {}))
        if "seed" not in config:
            return None
        privacy = config.get("privacy")
        return Question(
            config["seed"],
            config.get("bandwidth"),
            config.get("features"),
            None if privacy is None else (privacy[0], privacy[1]),
            bool(config.get("moments", False)),
        )


@dataclass(frozen=True)
class Report:
    """What a device reports about itself: its name, its counts, and its sketch."""

    name: str
    labeled: int
    unlabeled: int
    sketch: Sketch

    def record(self) -> RecordDict:
        """Return the content of the reply."""
        config: dict[str, Any] = {
            "name": self.name,
            "labeled": self.labeled,
            "unlabeled": self.unlabeled,
            "samples": self.sketch.samples,
        }
        arrays = {"mean": Array(self.sketch.mean)}
        if self.sketch.covariance is not None:
            arrays["covariance"] = Array(self.sketch.covariance)
        return RecordDict({KEY: ConfigRecord(config), SKETCH: ArrayRecord(arrays)})

    @staticmethod
    def read(content: RecordDict) -> Report:
        """Return what a reply says."""
        config: dict[str, Any] = dict(content.config_records[KEY])
        arrays = content.array_records[SKETCH]
        covariance = arrays["covariance"].numpy() if "covariance" in arrays else None
        sketch = Sketch(config["samples"], arrays["mean"].numpy(), covariance)
        return Report(config["name"], config["labeled"], config["unlabeled"], sketch)


def to_model(arrays: ArrayRecord) -> Model:
    """Return the arrays of a record by name.

    >>> to_model(ArrayRecord({"w": Array(np.ones(2))}))
    {'w': array([1., 1.])}
    """
    return {name: array.numpy() for name, array in arrays.items()}


def to_arrays(model: Model) -> ArrayRecord:
    """Return a record of named arrays.

    >>> list(to_arrays({"w": np.ones(2)}))
    ['w']
    """
    return ArrayRecord({name: Array(np.asarray(part)) for name, part in model.items()})
