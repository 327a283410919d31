"""Models as numbers: dictionaries of arrays, state dictionaries of PyTorch, lists of arrays, or one array."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from stlf.errors import InputError

Model = Any
"""A mapping from names to arrays or tensors, a sequence of arrays, or one array."""


def parts(model: Model) -> list[tuple[str, Any]]:
    """Name the arrays of a model, in their order.

    >>> parts({"weight": [1.0, 2.0]})
    [('weight', [1.0, 2.0])]
    """
    if isinstance(model, Mapping):
        return list(model.items())
    if isinstance(model, np.ndarray) or is_tensor(model):
        return [("parameters", model)]
    if isinstance(model, Sequence):
        return [(f"[{place}]", part) for place, part in enumerate(model)]
    raise InputError(
        f"{type(model).__name__} is no model to take numbers from",
        "give a dictionary of arrays, a state_dict(), a list of arrays, or one array",
    )


def rebuild(model: Model, values: Sequence[Any]) -> Model:
    """Make a model like this one from other arrays.

    >>> rebuild({"weight": [1.0, 2.0]}, [np.zeros(2)])
    {'weight': array([0., 0.])}
    """
    if isinstance(model, Mapping):
        made = dict(zip(model, values, strict=True))
        # state_dict() gives an OrderedDict; whoever compares types gets one back.
        return made if type(model) is dict else type(model)(made)  # type: ignore[call-arg]
    if isinstance(model, Sequence) and not isinstance(model, np.ndarray):
        return list(values)
    return values[0]


def is_tensor(part: Any) -> bool:
    """Whether this is a tensor of PyTorch, which need not be installed.

    >>> is_tensor(np.zeros(2))
    False
    """
    return type(part).__module__.partition(".")[0] == "torch"


def to_array(part: Any) -> npt.NDArray[Any]:
    """Return the numbers of a part as an array.

    >>> to_array([1, 2])
    array([1, 2])
    """
    return part.detach().cpu().numpy() if is_tensor(part) else np.asarray(part)


def like(part: Any, values: npt.NDArray[Any]) -> Any:
    """Return numbers with the type, the precision and the device of a part.

    >>> like(np.zeros(2, dtype=np.float32), np.array([1.0, 2.0]))
    array([1., 2.], dtype=float32)
    """
    if is_tensor(part):
        import torch

        return torch.as_tensor(values).to(dtype=part.dtype, device=part.device)
    return values.astype(np.asarray(part).dtype, copy=False)


class Layout:
    """The layout of a model's numbers in one vector, so that they can be averaged.

    >>> layout = Layout({"weight": np.ones((2, 2), dtype=np.float32), "bias": np.zeros(2, dtype=np.float32)})
    >>> layout.flatten({"weight": np.ones((2, 2)), "bias": np.zeros(2)})
    array([1., 1., 1., 1., 0., 0.], dtype=float32)
    >>> sorted(layout.restore(np.arange(6, dtype=np.float32)))
    ['bias', 'weight']
    """

    def __init__(self, model: Model) -> None:
        """Create the layout of models like this one."""
        self._model = model
        self._shapes = [(name, part, to_array(part).shape) for name, part in parts(model)]

    def flatten(self, model: Model) -> npt.NDArray[np.float32]:
        """Return all numbers of a model in one vector."""
        arrays = [to_array(part) for _, part in parts(model)]
        expected = [shape for _, _, shape in self._shapes]
        if [array.shape for array in arrays] != expected:
            raise InputError(
                f"a model of arrays {[array.shape for array in arrays]}, expected {expected}",
                "all models must have the same arrays in the same order",
            )
        vector: npt.NDArray[np.float32] = np.concatenate([np.ravel(array) for array in arrays])
        return vector.astype(np.float32, copy=False)

    def restore(self, vector: npt.NDArray[np.float32]) -> Model:
        """Return the model of a vector."""
        return rebuild(self._model, list(self._values(vector)))

    def _values(self, vector: npt.NDArray[np.float32]) -> Iterator[Any]:
        start = 0
        for _, part, shape in self._shapes:
            end = start + int(np.prod(shape))
            yield like(part, vector[start:end].reshape(shape))
            start = end
