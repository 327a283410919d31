"""A learner in this process, as the compiled part calls it: models are one flat array, in the order of their names."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from stlf.errors import InputError
from stlf.learner import checked
from stlf.learner.contract import Learner, Lesson, Model, Rows

Flat = npt.NDArray[np.float32]
"""All numbers of a model, array after array."""

Progress = Callable[[int, int], bool]
"""Is told what is done and what there is to do, and answers whether to go on."""


class Bridge:
    """A learner with flat models.

    >>> class Small(Learner):
    ...     name, classes = "small/1", ["calm"]
    ...     def data(self): return [[0.5]], [0]
    ...     def first(self): return {"b": [[1.0, 2.0]], "a": [3.0]}
    ...     def train(self, lesson): return {name: array + 1 for name, array in lesson.start.items()}
    ...     def predict(self, model, rows): return np.ones((len(rows), 1))
    >>> bridge = Bridge(Small())
    >>> bridge.shapes
    [('a', [1]), ('b', [1, 2])]
    >>> bridge.train(np.array([0]), None, 7, lambda done, total: True)
    array([4., 2., 3.], dtype=float32)
    """

    def __init__(self, learner: Learner, hear: Callable[[int, int], None] | None = None) -> None:
        """Take a learner, and whoever is to hear of its progress in training besides stlf."""
        if not isinstance(learner, Learner):
            raise InputError(f"{learner!r} is no stlf.Learner", "write class Pumps(stlf.Learner), and give Pumps()")
        self._learner = learner
        self._hear = hear
        self._first = dict(sorted(checked.model(learner.first()).items()))
        self.name = str(learner.name)
        self.classes = [str(name) for name in learner.classes]
        self.shapes = [(name, list(array.shape)) for name, array in self._first.items()]

    def samples(self) -> tuple[Flat, int, Rows, Rows | None]:
        """Return the features, how many each sample has, the labels, and the true classes if they are known."""
        told = checked.samples(self._learner)
        features = told["features"]
        return np.ascontiguousarray(features).reshape(-1), features.shape[1], told["labels"], told.get("truth")

    def train(self, rows: Rows, start: Flat | None, seed: int, progress: Progress) -> Flat | None:
        """Train on some samples, from a model or from the first one on; None if it was told to give up."""

        def tell(done: int, total: int) -> None:
            if self._hear is not None:
                self._hear(int(done), int(total))
            if not progress(max(int(done), 0), max(int(total), 0)):
                raise checked.GivenUp

        model = {name: array.copy() for name, array in self._first.items()} if start is None else self._model(start)
        try:
            trained = checked.model(self._learner.train(Lesson(rows, model, seed, tell)))
        except checked.GivenUp:
            return None
        like = checked.like(trained, self._first, "train()")
        flat: Flat = np.concatenate([like[name].reshape(-1) for name in self._first])
        return flat

    def predict(self, model: Flat, rows: Rows, progress: Progress) -> Flat | None:
        """Return the probabilities that a model gives some samples; None if it was told to give up."""

        def tell(done: int, total: int) -> None:
            if not progress(done, total):
                raise checked.GivenUp

        try:
            made: Flat = checked.probabilities(self._learner, self._model(model), rows, tell).reshape(-1)
            return made
        except checked.GivenUp:
            return None

    def _model(self, flat: Flat) -> Model:
        model, start = {}, 0
        for name, array in self._first.items():
            model[name] = flat[start : start + array.size].reshape(array.shape).copy()
            start += array.size
        return model
