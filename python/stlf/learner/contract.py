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


@dataclass(frozen=True)
class Adaptation:
    """What a learner is to train a student on: samples of its own, with what the mixture of models says of them.

    >>> start = {"mean": np.zeros(2, dtype=np.float32)}
    >>> adaptation = Adaptation(np.arange(3), np.full((3, 2), 0.5, dtype=np.float32), start, seed=7)
    >>> adaptation.progress(1, 10)
    """

    rows: Rows
    """The samples to train on; some may have labels. All others are held out to judge the student by."""
    teacher: npt.NDArray[np.float32]
    """What the mixture says of each of them: the probabilities of all classes, one row per sample."""
    start: Model
    """The model to start from: of those that were received, the one that is nearest to the mixture."""
    seed: int
    """A seed for everything that is drawn."""
    progress: Callable[[int, int], None] = lambda done, total: None
    """As in a `Lesson`."""


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

    def adapt(self, adaptation: Adaptation) -> Any:
        """Train a student on samples without labels, and return it; if you like, together with `predict_altered`.

        A learner that does not have these two methods is never asked for students. Whether a student is used is
        decided by stlf: it must be more stable than the mixture on altered samples that it was not trained on.

        >>> class Shift(Learner):
        ...     name, classes = "shift/1", ["low", "high"]
        ...     x = np.array([2.0, 3.0, 8.0, 9.0])
        ...     def data(self): return self.x[:, None], [-1] * 4
        ...     def first(self): return {"middle": [0.0]}
        ...     def train(self, lesson): return lesson.start
        ...     def predict(self, model, rows): return self.said(model, self.x[rows])
        ...     def said(self, model, x):
        ...         high = 1 / (1 + np.exp(model["middle"] - x))
        ...         return np.stack([1 - high, high], axis=1)
        ...     def adapt(self, adaptation):
        ...         x, high = self.x[adaptation.rows], adaptation.teacher.argmax(1) == 1
        ...         return {"middle": [(x[~high].max() + x[high].min()) / 2]}
        ...     def predict_altered(self, model, rows, seed):
        ...         noise = np.random.default_rng(seed).normal(size=len(rows))
        ...         return self.said(model, self.x[rows] + 0.1 * noise)
        >>> shift, rows = Shift(), np.arange(4)
        >>> teacher = shift.predict({"middle": 7.0}, rows)
        >>> float(shift.adapt(Adaptation(rows, teacher, {}, seed=1))["middle"][0])
        5.5
        """
        raise NotImplementedError

    def predict_altered(self, model: Model, rows: Rows, seed: int) -> Any:
        """Return what `predict` does after each sample was altered a little: a part covered, or noise added.

        How samples are altered is drawn from the seed, and is the same for every model. What `adapt` trains on is
        altered in another way, if at all: a student would otherwise be judged by what it has practised. An example is
        in `adapt`.

        >>> Learner.predict_altered(None, {}, np.arange(2), 1)
        Traceback (most recent call last):
        NotImplementedError
        """
        raise NotImplementedError
