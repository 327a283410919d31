"""The clients. Of ST-LF they know the mod, the error that training reports, and the mixture."""

from __future__ import annotations

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from federation import network
from federation.devices import held_by
from stlf.flower import StlfMod, mixture

# Several clients share the machine, and the results shall not depend on how many.
torch.set_num_threads(1)


def data(context: Context) -> tuple:
    """What devices are compared by, and which of it has a label."""
    own = held_by(context)
    return own.pictures, own.labels


app = ClientApp(mods=[StlfMod(data)])


@app.train()
def train(message: Message, context: Context) -> Message:
    """Go on from the model that was sent. A device without labels sends it back, with no say in any average."""
    own = held_by(context)
    arrays = message.content["arrays"]
    loss, error = 0.0, 1.0
    if len(own.training):
        net = network.of(arrays)
        epochs = int(context.run_config["local-epochs"])
        seed = 1000 * int(message.content["config"]["server-round"]) + int(context.node_config["partition-id"])
        loss = network.fit(net, own.pictures[own.training], own.labels[own.training], epochs, seed)
        arrays = ArrayRecord(net.state_dict())
        given = network.predictor(arrays)(own.pictures[own.held_out]).argmax(axis=1)
        error = float((given != own.labels[own.held_out]).mean())
    metrics = MetricRecord({"num-examples": len(own.training), "loss": loss, "error": error})
    return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)


@app.evaluate()
def evaluate(message: Message, context: Context) -> Message:
    """Measure what was sent, a model or a mixture, on labels that only this function sees."""
    own = held_by(context)
    given = mixture(message.content, network.predictor).predict(own.pictures)
    accuracy = float((given == own.truth).mean())
    metrics = MetricRecord({"num-examples": len(own.truth), "accuracy": accuracy})
    return Message(RecordDict({"metrics": metrics}), reply_to=message)
