"""What gives predictions: functions, objects with `predict_proba` or `predict`, and modules of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from stlf.errors import InputError
from stlf.parameters import is_tensor, to_array


def is_module(model: Any) -> bool:
    """Whether this is a `torch.nn.Module`; PyTorch need not be installed.

    >>> is_module(np.zeros)
    False
    """
    return callable(model) and all(hasattr(model, name) for name in ("state_dict", "forward", "parameters", "eval"))


def function(name: str, model: Any, method: Literal["predict", "predict_proba"]) -> Callable[[Any], Any]:
    """Return the function of inputs by which a model predicts; `name` names the model in errors.

    A module of PyTorch takes arrays too: they become tensors of its own kind, without gradients. Rows that are no
    probabilities are then taken as logits.

    >>> function("gate", lambda inputs: inputs, "predict")([1, 2])
    [1, 2]
    >>> function("gate", 3, "predict")
    Traceback (most recent call last):
    stlf.errors.InputError: models[gate]: int predicts nothing
    hint: give a function of inputs
    """
    given = getattr(model, method, None)
    if callable(given):
        return given  # type: ignore[no-any-return]
    if is_module(model):
        return lambda inputs: _through(model, inputs)
    if not callable(model):
        raise InputError(f"models[{name}]: {type(model).__name__} predicts nothing", "give a function of inputs")
    return model  # type: ignore[no-any-return]


def _through(module: Any, inputs: Any) -> Any:
    """Send samples through a module; tensors as they are."""
    if is_tensor(inputs):
        return module(inputs)
    import torch

    first = next(iter(module.parameters()), None)
    like = {} if first is None else {"dtype": first.dtype, "device": first.device}
    trained = module.training
    module.eval()
    try:
        with torch.no_grad():
            rows = module(torch.as_tensor(np.asarray(inputs), **like))
    finally:
        module.train(trained)
    given = to_array(rows)
    is_share = given.ndim > 1 and given.size > 0 and given.min() >= 0 and np.abs(given.sum(-1) - 1).max() < 1e-3
    return given if is_share or given.ndim < 2 else to_array(rows.softmax(-1))
