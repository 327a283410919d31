"""What a learner gives, as arrays of the right kind and shape; a program and this process use the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from stlf.errors import InputError
from stlf.learner.contract import Learner, Model, Rows
from stlf.parameters import to_array

AT_ONCE = 1000
"""The most samples that a learner is asked to predict at once; in between it says that it is alive."""


class GivenUp(BaseException):
    """Training was asked to end. No `except Exception` of a learner catches it."""


def model(given: Any) -> Model:
    """Return the arrays of a model, in single precision.

    >>> model({"a": [1, 2]})
    {'a': array([1., 2.], dtype=float32)}
    """
    if not isinstance(given, Mapping):
        raise InputError(
            f"a model is a mapping from names to arrays, not {type(given).__name__}", "with PyTorch: net.state_dict()"
        )
    return {str(name): np.asarray(to_array(part), dtype=np.float32) for name, part in given.items()}


def like(given: Model, first: Model, what: str) -> Model:
    """Return a model, if it has the names and shapes of the first one.

    >>> like({"a": np.zeros(2)}, {"a": np.zeros(3)}, "train()")
    Traceback (most recent call last):
    stlf.errors.InputError: train() gives a model of {'a': (2,)}; expected the names and shapes of first(), {'a': (3,)}
    """
    shapes = {name: array.shape for name, array in given.items()}
    expected = {name: array.shape for name, array in first.items()}
    if shapes != expected:
        raise InputError(f"{what} gives a model of {shapes}; expected the names and shapes of first(), {expected}")
    return given


def adapts(learner: Learner) -> bool:
    """Return whether a learner trains students.

    >>> class Half(Learner):
    ...     name, classes = "half/1", ["calm"]
    ...     def data(self): return [[0.5]], [0]
    ...     def first(self): return {"a": [1.0, 2.0]}
    ...     def train(self, lesson): return lesson.start
    ...     def predict(self, model, rows): return np.ones((len(rows), 1))
    ...     def adapt(self, adaptation): return adaptation.start
    >>> adapts(Half())
    Traceback (most recent call last):
    stlf.errors.InputError: Half has adapt() and no predict_altered(); students are judged on altered samples
    hint: write both, or neither
    """
    own = [name for name in ("adapt", "predict_altered") if getattr(type(learner), name) is not getattr(Learner, name)]
    if len(own) == 1:
        other = "adapt" if own[0] == "predict_altered" else "predict_altered"
        raise InputError(
            f"{type(learner).__name__} has {own[0]}() and no {other}(); students are judged on altered samples",
            "write both, or neither",
        )
    return bool(own)


def samples(learner: Learner) -> dict[str, npt.NDArray[Any]]:
    """Return features, labels and, if the learner tells them, true classes of all samples.

    >>> class Small(Learner):
    ...     name, classes = "small/1", ["calm"]
    ...     def data(self): return [[0.5]], [0]
    ...     def first(self): return {"a": [1.0, 2.0]}
    ...     def train(self, lesson): return lesson.start
    ...     def predict(self, model, rows): return np.ones((len(rows), 1))
    >>> samples(Small())
    {'features': array([[0.5]], dtype=float32), 'labels': array([0])}
    """
    features, labels = (to_array(part) for part in learner.data())
    features = np.asarray(features, dtype=np.float32)
    labels = np.asarray(labels, dtype=np.int64)
    if features.ndim != 2 or labels.shape != features.shape[:1]:
        raise InputError(
            f"data() gives features of shape {features.shape} and labels of shape {labels.shape}",
            "give one row of features and one label per sample, -1 for none",
        )
    told = learner.truth()
    if told is None:
        return {"features": features, "labels": labels}
    truth = np.asarray(to_array(told), dtype=np.int64)
    if truth.shape != labels.shape:
        raise InputError(f"truth() gives an array of shape {truth.shape}; expected {labels.shape}")
    return {"features": features, "labels": labels, "truth": truth}


def probabilities(
    learner: Learner,
    given: Model,
    rows: Rows,
    progress: Callable[[int, int], None],
    altered: int | None = None,
) -> npt.NDArray[np.float32]:
    """Return the probabilities that a model gives some samples, altered if there is a seed, a thousand at a time.

    >>> class Sure(Learner):
    ...     name, classes = "sure/1", ["calm"]
    ...     def data(self): return [[0.5]], [0]
    ...     def first(self): return {"a": [1.0, 2.0]}
    ...     def train(self, lesson): return lesson.start
    ...     def predict(self, model, rows): return np.ones((len(rows), 1))
    >>> probabilities(Sure(), {}, np.array([0]), print)
    1 1
    array([[1.]], dtype=float32)
    """
    classes = len(learner.classes)
    made = [np.zeros((0, classes), dtype=np.float32)]
    for start in range(0, len(rows), AT_ONCE):
        some = rows[start : start + AT_ONCE]
        if altered is None:
            what, said = "predict()", learner.predict(given, some)
        else:
            what, said = "predict_altered()", learner.predict_altered(given, some, altered)
        part = to_array(said).astype(np.float32)
        if part.shape != (len(some), classes):
            raise InputError(f"{what} gives an array of shape {part.shape}; expected {(len(some), classes)}")
        made.append(part)
        progress(start + len(some), len(rows))
    return np.concatenate(made)
