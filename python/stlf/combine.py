"""How a target combines the models it receives: one model of averaged parameters, or mixed predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from stlf.errors import InputError
from stlf.parameters import Model, is_tensor, like, parts, rebuild, to_array
from stlf.predictor import function

Weights = Mapping[str, float] | Sequence[float] | npt.NDArray[np.float64]


def combine(models: Mapping[str, Model] | Sequence[Model], weights: Weights) -> Model:
    """Average the parameters of models by weight, Σ w·p / Σ w.

    Models are dictionaries of arrays, `state_dict()`s of PyTorch, or lists of arrays; all of one form. They and their
    weights are matched by name, or by place. Whole numbers, such as PyTorch's count of batches, are those of the model
    with the largest weight. Averaging makes sense for models that started from the same values; for others, mix
    predictions (`PredictionMixture`).

    >>> combine([{"w": np.array([0.0, 2.0])}, {"w": np.array([4.0, 2.0])}], [0.75, 0.25])
    {'w': array([1., 2.])}
    >>> combine({"gate": [np.ones(2)], "yard": [np.zeros(2)]}, {"gate": 1.0})
    [array([1., 1.])]
    """
    used = _used(models, weights)
    total = sum(weight for _, _, weight in used)
    heaviest = max(used, key=lambda entry: entry[2])[1]
    values = []
    own = [(name, model, dict(parts(model))) for name, model, _ in used]
    for part_name, part in parts(heaviest):
        shape = to_array(part).shape
        for name, _, model_parts in own:
            if part_name not in model_parts or to_array(model_parts[part_name]).shape != shape:
                raise InputError(
                    f"models[{name}]: it has no {part_name} of shape {shape}", "only models of one form can be averaged"
                )
        if to_array(part).dtype.kind not in "fc":
            values.append(part)
            continue
        mean = np.zeros(shape, dtype=np.float64)
        for (_, _, model_parts), (_, _, weight) in zip(own, used, strict=True):
            mean += (weight / total) * to_array(model_parts[part_name])
        values.append(like(part, mean))
    for name, _, model_parts in own:
        extra = set(model_parts) - {part_name for part_name, _ in parts(heaviest)}
        if extra:
            raise InputError(f"models[{name}]: only it has {min(extra)}", "only models of one form can be averaged")
    return rebuild(heaviest, values)


class PredictionMixture:
    """Mixes predictions, h = Σ w·h_i / Σ w, of any predictors, each with its own network or library.

    A predictor is called with inputs and gives a row of probabilities per sample, or has `predict_proba`, as
    scikit-learn's have, or is a module of PyTorch. `pickle` saves a mixture whose predictors it can save.

    >>> always = lambda *row: lambda x: np.tile(row, (len(x), 1))
    >>> mixture = PredictionMixture([always(1.0, 0.0), always(0.0, 1.0)], [0.75, 0.25])
    >>> mixture([[0.0]])
    array([[0.75, 0.25]])
    >>> mixture.predict([[0.0]])
    array([0])
    """

    def __init__(self, predictors: Mapping[str, Any] | Sequence[Any], weights: Weights) -> None:
        """Mix these predictors with these weights, matched by name or by position."""
        self._used = _used(predictors, weights)
        for name, predictor, _ in self._used:
            function(name, predictor, "predict_proba")

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each predictor; they add up to 1."""
        total = sum(weight for _, _, weight in self._used)
        return {name: weight / total for name, _, weight in self._used}

    def __call__(self, inputs: Any) -> Any:
        """Return the probabilities of every sample, as the predictors do: arrays or tensors."""
        mixed = None
        for (name, predictor, _), share in zip(self._used, self.weights.values(), strict=True):
            given = function(name, predictor, "predict_proba")(inputs)
            _check(name, given, None if mixed is None else tuple(mixed.shape))
            part = given * share if is_tensor(given) else share * np.asarray(given)
            mixed = part if mixed is None else mixed + part
        return mixed

    predict_proba = __call__

    def predict(self, inputs: Any) -> npt.NDArray[np.intp]:
        """Return the likeliest class of every sample, as an array."""
        likeliest: npt.NDArray[np.intp] = to_array(self(inputs)).argmax(-1)
        return likeliest

    def __repr__(self) -> str:
        """The predictors and their weights."""
        shares = ", ".join(f"{share:.1%} {name}" for name, share in self.weights.items())
        return f"PredictionMixture({shares})"


def _used(things: Mapping[str, Any] | Sequence[Any], weights: Weights) -> list[tuple[str, Any, float]]:
    """Match things with weights; those of weight 0 are left out."""
    if isinstance(things, Mapping):
        if not isinstance(weights, Mapping):
            raise InputError("weights: they have no names, but the models do", "give both by name, or both as lists")
        named = {str(name): thing for name, thing in things.items()}
        given = {str(name): float(weight) for name, weight in weights.items()}
        missing = [name for name, weight in given.items() if weight != 0 and name not in named]
        if missing:
            raise InputError(f"models: {missing[0]} has a weight, but no model", "give the model of every sender")
        pairs = [(name, named[name], weight) for name, weight in given.items() if name in named]
    else:
        if isinstance(weights, Mapping) or len(weights) != len(things):
            raise InputError(
                f"weights: {len(weights)} for {len(things)} models", "give one weight per model, in the same order"
            )
        listed = enumerate(zip(things, weights, strict=True))
        pairs = [(str(place), thing, float(weight)) for place, (thing, weight) in listed]
    for name, _, weight in pairs:
        if not (weight >= 0 and np.isfinite(weight)):
            raise InputError(f"models[{name}]: {weight} is not a valid weight", "weights are at least 0")
    used = [entry for entry in pairs if entry[2] > 0]
    if not used:
        raise InputError("models: a target without a model has no predictions", "give a weight above 0")
    return used


def _check(name: str, given: Any, expected: tuple[int, ...] | None) -> None:
    """Check that these are probabilities, of as many classes as the others."""
    array = to_array(given)
    if array.ndim < 2 or (expected is not None and array.shape != expected):
        like_others = f", others {expected}" if expected else ""
        raise InputError(f"models[{name}]: predictions of shape {array.shape}{like_others}", "give samples × classes")
    if array.size and (array.min() < 0 or np.abs(array.sum(-1) - 1).max() > 1e-3):
        raise InputError(f"models[{name}]: predictions that are not probabilities", "give the softmax of the outputs")
