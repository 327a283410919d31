"""The client's side: one mod, which answers what the strategy asks before the first round."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from zlib import crc32

import numpy.typing as npt
from flwr.app import Context, Message

from stlf import sketch
from stlf.errors import InputError
from stlf.fleet import Device
from stlf.flower.records import Question, Report

Data = Callable[[Context], tuple[npt.ArrayLike, npt.ArrayLike | None]]
"""Gives a device's inputs and their labels; a label of -1 or None is none."""


class StlfMod:
    """Reports a device's counts, bandwidth and sketch; every other message it passes on.

    `data` gives this client's inputs and labels, as `Fleet.from_devices` takes them. The inputs are what devices are
    compared by: pictures as they are, or features that a model makes of them, of one shape on all devices. `name` is
    what the plan calls the device; without it that is Flower's `partition-id`, else the number of the node. `privacy`
    is the noise (ε, δ) that this client insists on: who asks for less gets no sketch.

    The mod comes first in the list. Flower calls mods only for kinds of messages that the client has a function for,
    so questions come as messages to train.

    >>> import numpy as np
    >>> from flwr.app import Context, RecordDict
    >>> mod = StlfMod(lambda context: (np.eye(4), [0, 1, -1, -1]))
    >>> context = Context(run_id=1, node_id=7, node_config={"partition-id": 3}, state=RecordDict(), run_config={})
    >>> report = mod.report(Question(seed=0), context)
    >>> report.name, report.labeled, report.unlabeled, round(report.bandwidth, 3)
    ('3', 2, 2, 1.414)
    """

    def __init__(
        self,
        data: Data,
        *,
        name: Callable[[Context], str] | None = None,
        privacy: tuple[float, float] | None = None,
    ) -> None:
        """For a client with this data."""
        self._data = data
        self._name = name
        self._privacy = privacy

    def __call__(self, message: Message, context: Context, call_next: Callable[[Message, Context], Message]) -> Message:
        """Answer a question of ours, or let the client answer."""
        question = Question.read(message.content)
        if question is None:
            return call_next(message, context)
        return Message(self.report(question, context).record(), reply_to=message)

    def report(self, question: Question, context: Context) -> Report:
        """Answer a question: with the device's own bandwidth, or with its sketch at the one that was agreed on."""
        known = context.node_config.get("partition-id", context.node_id)
        name = str(known) if self._name is None else self._name(context)
        device = Device.of(name, *self._data(context))
        if question.bandwidth is None:
            width = sketch.bandwidth(device.inputs, seed=question.seed, place=_place(name))
            return Report(name, device.labeled, device.unlabeled, bandwidth=width)
        self._check(question.privacy)
        made = sketch.sketch(
            device.inputs,
            question.bandwidth,
            features=question.features,
            privacy=question.privacy,
            seed=question.seed,
            # All know the seed. Noise that others could draw too would hide nothing.
            place=_place(name) if question.privacy is None else secrets.randbits(63),
        )
        return Report(name, device.labeled, device.unlabeled, sketch=made)

    def _check(self, asked: tuple[float, float] | None) -> None:
        if self._privacy is None:
            return
        if asked is None or asked[0] > self._privacy[0] or asked[1] > self._privacy[1]:
            offered = "no noise" if asked is None else f"ε = {asked[0]}, δ = {asked[1]}"
            raise InputError(
                f"privacy: the server asks for a sketch with {offered}",
                f"this client insists on ε = {self._privacy[0]}, δ = {self._privacy[1]}: STLF(privacy=…)",
            )


def _place(name: str) -> int:
    """Give a number of the device's own, the same in every run."""
    return crc32(name.encode())
