"""Errors of your own models: each device trains on some of its labels and is measured on the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from stlf.errors import InputError
from stlf.fleet import Fleet, Inputs
from stlf.parameters import to_array
from stlf.predictor import function

Fit = Callable[[Inputs, npt.NDArray[Any]], Any]
"""Trains on inputs and labels, and returns a predictor: a function, an object with `predict`, a module of PyTorch."""


@dataclass(frozen=True, eq=False)
class Trained:
    """The models of the labeled devices and their errors."""

    models: dict[str, Any]
    """The models that `fit` returned, by device."""
    errors: dict[str, float]
    """The fraction of the held-out labels on which each model erred."""


def train(fleet: Fleet, fit: Fit, *, held_out: float = 0.2, seed: int = 0) -> Trained:
    """Train a model on every device that has labels, and measure it on labels that it has not seen.

    A predictor that gives a row of numbers per sample means the class of the largest.

    >>> def fit(x, y):
    ...     means = {label: x[y == label].mean() for label in np.unique(y)}
    ...     return lambda x: np.array([min(means, key=lambda label: abs(v - means[label])) for v in x[:, 0]])
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(np.repeat([0, 8], 50), 1)[:, None], np.repeat([0, 1], 50)
    >>> train(Fleet.from_devices({"gate": (x, y), "roof": (x, None)}), fit).errors
    {'gate': 0.0}
    """
    if not 0 <= held_out < 1:
        raise InputError(f"held_out: {held_out} is not in 0 ≤ h < 1", "0.2 holds out a fifth of the labels")
    models: dict[str, Any] = {}
    errors: dict[str, float] = {}
    for place, device in enumerate(fleet):
        rows = np.flatnonzero(device.known)
        if not len(rows):
            continue
        rows = np.random.default_rng([seed, place]).permutation(rows)
        held = min(int(len(rows) * held_out), len(rows) - 1)
        kept, measured = rows[held:], rows[:held] if held else rows
        model = fit(device.inputs[kept], device.labels[kept])
        given = to_array(function(device.name, model, "predict")(device.inputs[measured]))
        given = given.argmax(-1) if given.ndim > 1 else given
        models[device.name] = model
        errors[device.name] = float(np.mean(given != device.labels[measured]))
    return Trained(models, errors)
