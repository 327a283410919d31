"""What a target receives: one model, or several with weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, RecordDict

from stlf.combine import PredictionMixture, combine
from stlf.errors import InputError
from stlf.flower.records import KEY, to_arrays, to_model

COMBINATIONS = ("parameters", "predictions")


def deliver(key: str, models: Mapping[str, ArrayRecord], weights: Mapping[str, float], combination: str) -> RecordDict:
    """Return what a target is sent: its senders' average, or their models side by side.

    One model is always called `key`. Several are called `key.1`, `key.2` and so on, without the senders' names; a
    client that does not mix stumbles over that instead of taking one for all.

    >>> from flwr.app import Array
    >>> import numpy as np
    >>> models = {"gate": ArrayRecord({"w": Array(np.ones(2))}), "yard": ArrayRecord({"w": Array(np.zeros(2))})}
    >>> sent = deliver("arrays", models, {"gate": 0.75, "yard": 0.25}, "parameters")
    >>> sent["arrays"]["w"].numpy()
    array([0.75, 0.75])
    >>> list(deliver("arrays", models, {"gate": 0.75, "yard": 0.25}, "predictions"))
    ['arrays.1', 'arrays.2', 'stlf']
    >>> list(deliver("arrays", models, {"gate": 1.0}, "predictions"))
    ['arrays']
    """
    if len(weights) == 1:
        return RecordDict({key: models[next(iter(weights))]})
    if combination == "parameters":
        named = {name: to_model(models[name]) for name in weights}
        return RecordDict({key: to_arrays(combine(named, weights))})
    content = RecordDict({f"{key}.{place}": models[name] for place, name in enumerate(weights, start=1)})
    content[KEY] = ConfigRecord({"weights": list(weights.values())})
    return content


def received(content: RecordDict) -> list[tuple[ArrayRecord, float]]:
    """Return the models in a message's content, each with its weight; one alone has weight 1, whoever sent it.

    >>> from flwr.app import Array
    >>> import numpy as np
    >>> content = RecordDict({"arrays": ArrayRecord({"w": Array(np.ones(2))})})
    >>> [weight for _, weight in received(content)]
    [1.0]
    """
    arrays = list(content.array_records.values())
    config: dict[str, Any] = dict(content.config_records.get(KEY, {}))
    weights = config.get("weights", [1.0])
    if not arrays or len(weights) != len(arrays):
        raise InputError(
            f"a message with {len(arrays)} models and {len(weights)} weights", "the strategy STLF sends as many of each"
        )
    return [(record, float(weight)) for record, weight in zip(arrays, weights, strict=True)]


def mixture(content: RecordDict, predictor: Callable[[ArrayRecord], Any]) -> PredictionMixture:
    """Mix the predictions of the models in a message's content.

    `predictor` makes of a model's arrays a function of inputs that gives a row of probabilities per sample.

    >>> from flwr.app import Array
    >>> import numpy as np
    >>> models = {name: ArrayRecord({"p": Array(np.array(p))}) for name, p in {"a": [1.0, 0], "b": [0, 1.0]}.items()}
    >>> content = deliver("arrays", models, {"a": 0.75, "b": 0.25}, "predictions")
    >>> mixture(content, lambda arrays: lambda x: np.tile(arrays["p"].numpy(), (len(x), 1)))([[0.0]])
    array([[0.75, 0.25]])
    """
    models = received(content)
    return PredictionMixture([predictor(arrays) for arrays, _ in models], [weight for _, weight in models])
