"""A learner in this process, as the compiled part calls it: models are one flat array, in the order of their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from stlf.errors import InputError
from stlf.learner import checked
from stlf.learner.contract import Adaptation, Learner, Lesson, Model, Rows

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
        self.adapts = checked.adapts(learner)

    def samples(self) -> tuple[Flat, int, Rows, Rows | None]:
        """Return the features, how many each sample has, the labels, and the true classes if they are known."""
        told = checked.samples(self._learner)
        features = told["features"]
        return np.ascontiguousarray(features).reshape(-1), features.shape[1], told["labels"], told.get("truth")

    def train(self, rows: Rows, start: Flat | None, seed: int, progress: Progress) -> Flat | None:
        """Train on some samples, from a model or from the first one on; None if it was told to give up."""
        model = {name: array.copy() for name, array in self._first.items()} if start is None else self._model(start)
        lesson = Lesson(rows, model, seed, self._teller(progress))
        return self._flat(lambda: self._learner.train(lesson), "train()")

    def adapt(self, rows: Rows, teacher: Flat, start: Flat, seed: int, progress: Progress) -> Flat | None:
        """Train a student on some samples, of which the mixture says this; None if it was told to give up."""
        said = teacher.reshape(len(rows), len(self.classes))
        adaptation = Adaptation(rows, said, self._model(start), seed, self._teller(progress))
        return self._flat(lambda: self._learner.adapt(adaptation), "adapt()")

    def predict(self, model: Flat, rows: Rows, altered: int | None, progress: Progress) -> Flat | None:
        """Return the probabilities that a model gives some samples, altered if there is a seed; None if it gave up."""

        def tell(done: int, total: int) -> None:
            if not progress(done, total):
                raise checked.GivenUp

        try:
            made = checked.probabilities(self._learner, self._model(model), rows, tell, altered)
            flat: Flat = made.reshape(-1)
            return flat
        except checked.GivenUp:
            return None

    def _teller(self, progress: Progress) -> Callable[[int, int], None]:
        def tell(done: int, total: int) -> None:
            if self._hear is not None:
                self._hear(int(done), int(total))
            if not progress(max(int(done), 0), max(int(total), 0)):
                raise checked.GivenUp

        return tell

    def _flat(self, trains: Callable[[], Any], what: str) -> Flat | None:
        try:
            trained = checked.model(trains())
        except checked.GivenUp:
            return None
        like = checked.like(trained, self._first, what)
        flat: Flat = np.concatenate([like[name].reshape(-1) for name in self._first])
        return flat

    def _model(self, flat: Flat) -> Model:
        model, start = {}, 0
        for name, array in self._first.items():
            model[name] = flat[start : start + array.size].reshape(array.shape).copy()
            start += array.size
        return model
