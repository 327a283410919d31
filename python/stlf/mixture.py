"""What a device ended with, put to work: a bundle that predicts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from stlf import _internal, files
from stlf.errors import InputError, MissingError
from stlf.parameters import to_array


def load(path: files.AnyPath, *, device: str | None = None, seed: int | None = None) -> Mixture:
    """Read a bundle: what a device ended with, from its folder, or from a run folder that has one for every device.

    Every file is checked against its hash. In a run folder, `device` says whose it is, and `seed` which seed, by
    default the lowest.

    >>> import stlf, tempfile
    >>> small = {"seeds": [0], "data": {"samples": 2000}, "partition": {"kind": "paper", "scale": 0.03},
    ...          "training": {"steps": 10}, "divergence": {"features": 32}, "compare": {"methods": ["st-lf"]}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = stlf.run(small, to=folder, progress=False).plan().targets[0]
    ...     mixture = stlf.load(folder, device=target)
    >>> mixture.role, mixture.predict(np.zeros((2, 28, 28))).shape
    ('target', (2,))
    """
    return Mixture(_internal.Mixture.load(os.fspath(path), device=device, seed=seed))


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
