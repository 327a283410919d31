"""What a learner must be able to do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]
"""Numbers of samples, in the order of `Learner.data`."""

Model = dict[str, npt.NDArray[np.float32]]
"""The arrays of a model by their names."""


@dataclass(frozen=True)
class Lesson:
    """What a learner is to train on.

    >>> lesson = Lesson(np.arange(3), {"mean": np.zeros(2, dtype=np.float32)}, seed=7)
    >>> lesson.progress(1, 10)
    """

    rows: Rows
    """The samples to train on, all of which have labels."""
    start: Model
    """The model to start from: the first one, or one that another device handed over."""
    seed: int
    """A seed for everything that is drawn."""
    progress: Callable[[int, int], None] = lambda done, total: None
    """Call it now and then, at least once a minute, with what is done and what there is to do. It does not return if
    training is to end."""


class Learner(ABC):
    """The data and the model of one device.

    Names, classes, and the names and shapes of `first` must be the same on all devices of a fleet.

    >>> class NearestMean(Learner):
    ...     name, classes = "nearest-mean/1", ["calm", "storm"]
    ...     x = np.array([[0.0], [1.0], [9.0]], dtype=np.float32)
    ...     y = np.array([0, -1, 1])
    ...     def data(self):
    ...         return self.x, self.y
    ...     def first(self):
    ...         return {"means": np.zeros((2, 1))}
    ...     def train(self, lesson):
    ...         x, y = self.x[lesson.rows], self.y[lesson.rows]
    ...         return {"means": [x[y == k].mean(0) if (y == k).any() else lesson.start["means"][k] for k in (0, 1)]}
    ...     def predict(self, model, rows):
    ...         odds = np.exp(-np.abs(self.x[rows] - model["means"].T))
    ...         return odds / odds.sum(1, keepdims=True)
    >>> learner = NearestMean()
    >>> learner.train(Lesson(np.array([0, 2]), learner.first(), seed=1))["means"][1]
    array([9.], dtype=float32)
    """

    name: str
    """The name and version of the learner, such as "pump-net/3"."""
    classes: Sequence[str]
    """The names of all classes. Labels are numbers of classes, from 0."""

    @abstractmethod
    def data(self) -> tuple[Any, Any]:
        """Return the features of all samples (one row each, by which devices are compared) and their labels (-1: none).

        Features need not be what the model takes. They must mean the same, on the same scale, on all devices.
        """

    def truth(self) -> Any:
        """Return the true classes of all samples, if somebody knows them; for evaluation alone, in simulations.

        >>> class Odd(Learner):
        ...     name, classes = "odd/1", ["even", "odd"]
        ...     def data(self): return [[1.0], [2.0]], [1, -1]
        ...     def truth(self): return [1, 0]
        ...     def first(self): return {"a": [0.0]}
        ...     def train(self, lesson): return lesson.start
        ...     def predict(self, model, rows): return np.ones((len(rows), 2)) / 2
        >>> Odd().truth()
        [1, 0]
        """
        return None

    @abstractmethod
    def first(self) -> Any:
        """Return a first model: a mapping from names to arrays or tensors. All models have its names and shapes."""

    @abstractmethod
    def train(self, lesson: Lesson) -> Any:
        """Train on the samples of the lesson, and return the model."""

    @abstractmethod
    def predict(self, model: Model, rows: Rows) -> Any:
        """Return the probabilities of all classes, one row per sample; at most a thousand samples are asked for."""
