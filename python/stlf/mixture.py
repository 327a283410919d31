"""What a device ended with, put to work: a bundle that predicts."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stlf import _internal, files
from stlf.errors import InputError, MissingError
from stlf.learner.bridge import Bridge
from stlf.learner.contract import Learner
from stlf.parameters import to_array


def load(path: files.AnyPath, *, device: str | None = None, seed: int | None = None) -> Mixture:
    """Read a bundle: what a device ended with, from its folder, or from a run folder that has one for every device.

    Every file is checked against its hash. In a run folder, `device` says whose it is, and `seed` which seed, by
    default the lowest. Models of a learner of yours are read by `load_with`.

    >>> import stlf, tempfile
    >>> small = {"seeds": [0], "data": {"samples": 2000}, "partition": {"kind": "paper", "scale": 0.03},
    ...          "training": {"steps": 10}, "divergence": {"features": 32}, "compare": {"methods": ["st-lf"]}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = stlf.run(small, to=folder, progress=False).plan().targets[0]
    ...     mixture = stlf.load(folder, device=target)
    >>> mixture.role, mixture.predict(np.zeros((2, 28, 28))).shape
    ('target', (2,))
    """
    bundle, is_of_learner = _internal.find_bundle(path, device=device, seed=seed)
    if is_of_learner:
        raise InputError(
            f"{bundle}: only the learner that made these models can predict with them",
            "stlf.load_with(Pumps('new.csv'), DIR): the samples of the learner are those to predict",
        )
    return Mixture(_internal.Mixture.load(bundle))


def load_with(
    learner: Learner, path: files.AnyPath, *, device: str | None = None, seed: int | None = None
) -> LearnerMixture:
    """Read a bundle of a device with a learner of yours. The data of the learner are the samples to predict.

    >>> import stlf, tempfile
    >>> class Means(stlf.Learner):
    ...     name, classes = "means/1", ["calm", "storm"]
    ...     def __init__(self, labels):
    ...         self.x, self.y = np.arange(40.0).reshape(40, 1), np.where(labels, np.arange(40) >= 20, -1)
    ...     def data(self):
    ...         return self.x, self.y
    ...     def first(self):
    ...         return {"means": np.zeros((2, 1))}
    ...     def train(self, lesson):
    ...         return {"means": [self.x[rows].mean(0) for rows in (self.y == 0, self.y == 1)]}
    ...     def predict(self, model, rows):
    ...         odds = np.exp(-np.abs(self.x[rows] - model["means"].T))
    ...         return odds / odds.sum(1, keepdims=True)
    >>> learners = {"gate": Means(True), "pier": Means(False)}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plan = stlf.run({"seeds": [0]}, learners=learners, to=folder, progress=False).plan()
    ...     mixture = stlf.load_with(Means(False), folder, device="pier")
    ...     plan.targets, mixture.members, list(mixture.predict()[[0, 39]])
    (['pier'], {'gate': 1.0}, ['calm', 'storm'])
    """
    bundle, is_of_learner = _internal.find_bundle(path, device=device, seed=seed)
    if not is_of_learner:
        raise InputError(f"{bundle}: these models are built-in networks", "stlf.load reads them")
    return LearnerMixture(bundle, learner)


class LearnerMixture:
    """The models of a device with a learner of yours, and their weights, as one classifier of the learner's samples.

    `load_with` makes one. It cannot be exported: only the learner knows what the arrays of its models mean.
    """

    def __init__(self, bundle: files.AnyPath, learner: Learner) -> None:
        """Take a bundle with `models.json`, and its learner; `load_with` does this."""
        self._bundle = Path(bundle)
        self._bridge = Bridge(learner)
        document = json.loads(files.read(self._bundle / "models.json"))
        self.device: str = document["device"]
        self.role: str = document["role"]
        self.epoch: int | None = document.get("epoch")
        self.seed: int | None = document.get("seed")
        self.learner: str = document["learner"]
        self.classes_: npt.NDArray[np.str_] = np.array(document["classes"], dtype=np.str_)
        self._weights: dict[str, float] = {member["name"]: member["weight"] for member in document["members"]}
        self._expected: dict[str, float] | None = document.get("expected")

    @property
    def members(self) -> dict[str, float]:
        """The weight of each device's model; they add up to 1."""
        total = sum(self._weights.values())
        return {name: weight / total for name, weight in self._weights.items()}

    @property
    def expected(self) -> tuple[float, float, float] | None:
        """The accuracy that a target may expect on its own samples without labels, and the ends of its 90 % interval.

        None for a source.
        """
        if self._expected is None:
            return None
        return self._expected["accuracy"], self._expected["low"], self._expected["high"]

    def predict_proba(self) -> npt.NDArray[np.float32]:
        """Return the probabilities of the classes for all samples of the learner, in the order of its `data()`."""
        return _internal.predict_with(self._bridge, self._bundle).reshape(-1, len(self.classes_))

    def predict(self) -> npt.NDArray[np.str_]:
        """Return the name of the likeliest class of every sample of the learner."""
        likeliest: npt.NDArray[np.str_] = self.classes_[self.predict_proba().argmax(axis=1)]
        return likeliest

    def __repr__(self) -> str:
        """The device, its role and the models."""
        shares = ", ".join(f"{share:.1%} {name}" for name, share in self.members.items())
        return f"LearnerMixture({self.role} {self.device}: {shares})"


class Mixture:
    """The models of a device with their weights, as one classifier with scikit-learn's conventions.

    `load` makes one. Samples are rows of a table as they are in it, or pixels from 0 to 255: the mixture scales them as
    the device's own samples were scaled. They may be arrays, a `DataFrame`, whose columns are found by name, or the
    path of a table or of a folder of pictures. Where samples are windows of a series, they are an array of samples ×
    channels × readings, or the path of a table of readings, which is cut as the device's own was.
    """

    def __init__(self, inner: _internal.Mixture) -> None:
        """Wrap the compiled part; `load` does this."""
        self._inner = inner
        self.device, is_target, self.epoch, self.seed = inner.origin
        self.role = "target" if is_target else "source"
        self.classes_: npt.NDArray[np.str_] = np.array(inner.classes, dtype=np.str_)
        self.n_features_in_ = int(np.prod(inner.sample_shape))
        if inner.columns is not None and inner.windows is None:
            self.feature_names_in_: npt.NDArray[np.object_] = np.array(inner.columns, dtype=object)

    @property
    def members(self) -> dict[str, float]:
        """The weight of each device's model; they add up to 1."""
        total = sum(weight for _, weight in self._inner.members)
        return {name: weight / total for name, weight in self._inner.members}

    @property
    def expected(self) -> tuple[float, float, float] | None:
        """The accuracy that a target may expect on its own samples without labels, and the ends of its 90 % interval.

        None for a source.
        """
        return self._inner.expected

    def predict_proba(self, X: Any) -> npt.NDArray[np.float32]:  # noqa: N803
        """Return the probabilities of the classes, one row per sample, one column per entry of `classes_`."""
        if isinstance(X, str | os.PathLike):
            flat = self._inner.probabilities_of(os.fspath(X))
        else:
            flat = self._inner.probabilities(self._values(X))
        return flat.reshape(-1, len(self.classes_))

    def predict(self, X: Any) -> npt.NDArray[np.str_]:  # noqa: N803
        """Return the name of the likeliest class of every sample."""
        likeliest: npt.NDArray[np.str_] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return likeliest

    def save(self, path: files.AnyPath) -> None:
        """Write a copy of the bundle, whole or not at all."""
        self._inner.save(os.fspath(path))

    def to_onnx(self, path: files.AnyPath) -> None:
        """Write the whole mixture as one ONNX file, scaling included."""
        files.write(path, bytes(self._inner.onnx()))

    def to_torch(self) -> Any:
        """Return a `torch.nn.Module` that gives the probabilities for samples as they are; it can be trained on."""
        try:
            from stlf.mixture_torch import module
        except ImportError as error:
            raise MissingError("to_torch() needs PyTorch", "pip install torch") from error
        return module(self._inner)

    def __repr__(self) -> str:
        """The device, its role and the models."""
        shares = ", ".join(f"{share:.1%} {name}" for name, share in self.members.items())
        return f"Mixture({self.role} {self.device}: {shares})"

    def _values(self, given: Any) -> npt.NDArray[np.float64]:
        """Samples as one flat array."""
        columns = self._inner.columns
        is_series = self._inner.windows is not None
        if is_series and hasattr(given, "columns"):
            raise InputError(
                "X: a table of readings", "give its path, or an array of windows, samples × channels × readings"
            )
        if columns is not None and hasattr(given, "columns"):
            missing = [name for name in columns if name not in given.columns]
            if missing:
                raise InputError(f"X: column {missing[0]!r} is missing", f"the mixture takes {', '.join(columns)}")
            given = given[columns]
        array = to_array(given)
        shape: Sequence[int] = self._inner.sample_shape
        expected: list[tuple[int, ...]] = [(self.n_features_in_,)]
        if columns is None:
            expected += [tuple(shape)] + ([tuple(shape[1:])] if shape[0] == 1 else [])
        elif is_series:
            expected += [(shape[0], shape[2])]
        if array.shape[1:] not in expected or array.ndim < 2:
            wanted = " or ".join(str(("n", *sizes)).replace("'", "") for sizes in expected)
            raise InputError(f"X: an array of shape {array.shape}", f"the mixture takes {wanted}")
        if array.dtype.kind not in "biuf":
            raise InputError(f"X: an array of {array.dtype}", "give numbers")
        return np.ascontiguousarray(array, dtype=np.float64).reshape(-1)
