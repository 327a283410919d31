"""The client's side: one mod, which answers what the strategy asks before the first round."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike

import numpy.typing as npt
from flwr.app import Context, Message, RecordDict

from stlf import sketch
from stlf.errors import InputError
from stlf.fleet import Device
from stlf.flower.records import KEY, SKETCH, Question, Report

Data = Callable[[Context], tuple[npt.ArrayLike, npt.ArrayLike | None]]
"""Returns a device's inputs and their labels; a label of -1 or None means that there is no label."""

ASKED = "stlf-asked"
ANSWER = "stlf-answer"
"""What a client keeps between messages: the question, and its counts; its sketch is kept as it was sent."""


class StlfMod:
    """Reports a device's counts and sketch; every other message it passes on.

    `data` gives this client's inputs and labels, as `Fleet.from_devices` takes them. The inputs are what devices are
    compared by: raw pictures, or features that a model computes from them, of one shape on all devices. `name` is the
    name of the device in the plan; without it, Flower's `partition-id`, else the number of the node. `privacy` is the
    noise (ε, δ) that this client requires: a request for less is refused, and without `privacy` a request for any:
    weak noise would stand in for samples. `accept` permits requests for moments, from which the server can reconstruct
    samples; it must say "others can rebuild my samples". `ledger` names this client's file in which sketches with noise
    are counted, over all runs; with `budget`, an ε, it gives none with which all of them would spend more.

    In a run a client answers one question. It repeats its answer to the same question, and refuses any other: many
    answers together reveal more than one. For the same reason the client, and not the server, says by which features it
    answers in every run: `seed`, `bandwidth` and `features`, as in `STLF`. A request for others is refused.

    The mod comes first in the list. Flower calls mods only for kinds of messages that the client has a function for,
    so questions come as messages to train.

    >>> import numpy as np
    >>> from flwr.app import Context, RecordDict
    >>> mod = StlfMod(lambda context: (np.eye(64), [0, 1] + 62 * [-1]))
    >>> context = Context(run_id=1, node_id=7, node_config={"partition-id": 3}, state=RecordDict(), run_config={})
    >>> report = mod.report(Question(seed=0), context)
    >>> report.name, report.labeled, report.unlabeled, report.sketch
    ('3', 2, 62, Sketch(64 samples, 264 bytes))
    """

    def __init__(
        self,
        data: Data,
        *,
        name: Callable[[Context], str] | None = None,
        privacy: tuple[float, float] | None = None,
        accept: str | None = None,
        ledger: Callable[[Context], str | PathLike[str]] | None = None,
        budget: float | None = None,
        seed: int = 0,
        bandwidth: float | None = None,
        features: int | None = None,
    ) -> None:
        """Create a mod for a client with this data."""
        self._data = data
        self._name = name
        self._privacy = privacy
        self._accept = accept
        self._ledger = ledger
        self._budget = budget
        self._features = {"seed": seed, "bandwidth": bandwidth, "features": features}

    def __call__(self, message: Message, context: Context, call_next: Callable[[Message, Context], Message]) -> Message:
        """Answer a question of the strategy, or let the client answer."""
        question = Question.read(message.content)
        if question is None:
            return call_next(message, context)
        return Message(self._answer(question, context), reply_to=message)

    def _answer(self, question: Question, context: Context) -> RecordDict:
        """Report once per run, and repeat that report."""
        asked, state = question.record()[KEY], context.state
        if ASKED not in state:
            answer = self.report(question, context).record()
            state[ASKED], state[ANSWER], state[SKETCH] = asked, answer[KEY], answer[SKETCH]
        elif dict(state[ASKED]) != dict(asked):
            raise InputError(
                f"the server asks for another sketch in the same run: {dict(asked)}, after {dict(state[ASKED])}",
                "ask with one seed, bandwidth and number of features",
            )
        return RecordDict({KEY: state[ANSWER], SKETCH: state[SKETCH]})

    def report(self, question: Question, context: Context) -> Report:
        """Answer a question with the device's counts and its sketch."""
        known = context.node_config.get("partition-id", context.node_id)
        name = str(known) if self._name is None else self._name(context)
        device = Device.of(name, *self._data(context))
        self._check(question)
        made = sketch.sketch(
            device.inputs,
            question.bandwidth,
            features=question.features,
            privacy=question.privacy,
            moments=question.moments,
            accept=self._accept,
            seed=question.seed,
            ledger=None if self._ledger is None else self._ledger(context),
            budget=self._budget,
        )
        return Report(name, device.labeled, device.unlabeled, made)

    def _check(self, question: Question) -> None:
        for name, own in self._features.items():
            if getattr(question, name) != own:
                raise InputError(
                    f"{name}: the server asks for {getattr(question, name)}, and this client answers for {own}",
                    f"give the client the same: StlfMod({name}=…)",
                )
        asked = question.privacy
        if self._privacy is None:
            if asked is not None:
                raise InputError(
                    f"privacy: the server asks for ε = {asked[0]}, δ = {asked[1]}, and this client set none",
                    f"give the client the same: StlfMod(privacy=({asked[0]}, {asked[1]}))",
                )
            return
        if asked is None or asked[0] > self._privacy[0] or asked[1] > self._privacy[1]:
            offered = "no noise" if asked is None else f"ε = {asked[0]}, δ = {asked[1]}"
            raise InputError(
                f"privacy: the server asks for a sketch with {offered}",
                f"this client insists on ε = {self._privacy[0]}, δ = {self._privacy[1]}: STLF(privacy=…)",
            )
