"""The server's side: a strategy for Flower that plans."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import signature
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg

from stlf.divergence import Divergence
from stlf.errors import Error, InputError
from stlf.flower.members import LOG, Member, connected, fleet_of, measure
from stlf.flower.mixture import COMBINATIONS, deliver
from stlf.flower.records import Question
from stlf.plan import Plan, plan


# mypy sees nothing of Flower here, which pyproject.toml lets it pass over whether it is installed or not.
class STLF(FedAvg):  # type: ignore[misc]
    """Sources train their own models, and each target gets its mixture of them.

    Before the first round every device reports its counts and a sketch. In the first `warm_up` rounds the devices with
    labels train one model, as with FedAvg. From then on each trains its own and reports its `error`, the fraction of
    labels held out on which that model errs; after every such round the strategy plans anew. Sources go on training;
    a device that became a target trains no more, and its last error stays. Evaluation goes to the targets, each with
    its own mixture.

    `combination` says what a target gets: `parameters` averages its senders' models on the server, and clients need
    not know; `predictions` sends all of them with weights, to be mixed at the client by `stlf.flower.mixture`.
    `features`, `bandwidth`, `privacy` and `seed` are those of the sketches, which are means alone; each client must
    have them too. `moments` asks for covariances too, from which the server can reconstruct samples; clients send them
    only if they `accept` that. Further arguments go to `stlf.plan`.

    All nodes that are connected when the first round begins take part, at least `min_available_nodes`; `timeout` is
    how long, in seconds, to wait for them and for their sketches. The other arguments are FedAvg's.

    >>> strategy = STLF(warm_up=3, combination="predictions", phi_e=0.1)
    >>> strategy.plan is None
    True
    >>> STLF(handovers=True)
    Traceback (most recent call last):
    stlf.errors.InputError: handovers: Flower's clients do not hand models on
    hint: leave it out; stlf run and real devices do
    >>> STLF(phi_a=1.0)
    Traceback (most recent call last):
    stlf.errors.InputError: phi_a: neither STLF nor stlf.plan has an argument of this name
    >>> STLF(combination="votes")
    Traceback (most recent call last):
    stlf.errors.InputError: combination: there is no 'votes'
    hint: use 'parameters' or 'predictions'
    """

    plan: Plan | None = None
    """The plan after the last round; None before there is one."""
    divergence: Divergence | None = None
    """How far apart the devices' data are; None before the first round."""

    def __init__(
        self,
        *,
        warm_up: int = 0,
        combination: str = "parameters",
        features: int | None = None,
        bandwidth: float | None = None,
        privacy: tuple[float, float] | None = None,
        moments: bool = False,
        seed: int = 0,
        min_available_nodes: int = 2,
        timeout: float = 3600.0,
        error_key: str = "error",
        weighted_by_key: str = "num-examples",
        arrayrecord_key: str = "arrays",
        configrecord_key: str = "config",
        **planning: Any,
    ) -> None:
        """Create a strategy with these settings."""
        if combination not in COMBINATIONS:
            known = " or ".join(repr(name) for name in COMBINATIONS)
            raise InputError(f"combination: there is no {combination!r}", f"use {known}")
        if planning.get("handovers"):
            hint = "leave it out; stlf run and real devices do"
            raise InputError("handovers: Flower's clients do not hand models on", hint)
        unknown = sorted(planning.keys() - signature(plan).parameters.keys())
        if unknown:
            raise InputError(f"{unknown[0]}: neither STLF nor stlf.plan has an argument of this name")
        super().__init__(
            min_available_nodes=min_available_nodes,
            weighted_by_key=weighted_by_key,
            arrayrecord_key=arrayrecord_key,
            configrecord_key=configrecord_key,
        )
        self.warm_up = warm_up
        self.combination = combination
        self.error_key = error_key
        self.members: list[Member] = []
        """The devices that take part, in the plan's order."""
        self.models: dict[str, ArrayRecord] = {}
        """The model that each device with labels trained last, by name."""
        self.errors: dict[str, float] = {}
        """How often that model errs on that device's labels."""
        self.evaluations: dict[str, MetricRecord] = {}
        """What each target last reported about its mixture."""
        self._question = Question(seed, bandwidth, features, privacy, moments)
        self._timeout = timeout
        self._planning = planning

    def summary(self) -> None:
        """Log the settings."""
        LOG.info("\t├──> %d rounds of warm-up, then every source its own model", self.warm_up)
        LOG.info("\t└──> Targets combine %s", self.combination)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Send the devices that train the common model, or each its own; measure before the first round."""
        if self.divergence is None:
            self._measure(grid)
        training = [member for member in self.members if member.labeled]
        if self.plan is not None:
            sources = set(self.plan.sources)
            training = [member for member in training if member.name in sources]
        return [
            self._message(
                member,
                RecordDict({self.arrayrecord_key: self.models.get(member.name, arrays)}),
                config,
                server_round,
                MessageType.TRAIN,
            )
            for member in training
        ]

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Average during the warm-up; then keep every model, and plan.

        After the warm-up the average of the sources is still returned, for Flower's result. Nobody trains from it.
        """
        names = {member.node_id: member.name for member in self.members}
        # In the order of names, so that sums do not depend on who was faster.
        listed = sorted(replies, key=lambda reply: names[reply.metadata.src_node_id])
        average: tuple[ArrayRecord | None, MetricRecord | None] = super().aggregate_train(server_round, listed)
        if server_round <= self.warm_up:
            return average
        for reply in listed:
            if not reply.has_error():
                name = names[reply.metadata.src_node_id]
                self.models[name] = next(iter(reply.content.array_records.values()))
                self.errors[name] = self._error(name, reply)
        if not self.models:
            raise Error("no device has trained a model", "see the clients' logs for why")
        self.plan = plan(fleet_of(self.members, self.models), self.divergence, self.errors, **self._planning)
        for line in str(self.plan).splitlines():
            LOG.info("stlf: %s", line)
        return average

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Send every target its mixture; before there is a plan, nothing."""
        if self.plan is None:
            return []
        return [
            self._message(member, self.mixture_of(member.name), config, server_round, MessageType.EVALUATE)
            for member in self.members
            if member.name in set(self.plan.targets)
        ]

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Keep what every target reported, and average it by their samples."""
        listed = list(replies)
        names = {member.node_id: member.name for member in self.members}
        for reply in listed:
            if not reply.has_error():
                name = names[reply.metadata.src_node_id]
                self.evaluations[name] = next(iter(reply.content.metric_records.values()))
        return super().aggregate_evaluate(server_round, listed)

    def mixture_of(self, target: str) -> RecordDict:
        """Return the models that a target is sent, with their weights."""
        if self.plan is None:
            raise Error("there is no plan yet", "the first follows the first round after the warm-up")
        senders = self.plan.senders(target)
        if not senders:
            raise InputError(f"{target} is a source and receives nothing", "it uses its own model")
        return deliver(self.arrayrecord_key, self.models, senders, self.combination)

    def _measure(self, grid: Grid) -> None:
        nodes = connected(grid, self.min_available_nodes, self._timeout)
        self.members, self.divergence = measure(grid, nodes, question=self._question, timeout=self._timeout)
        labeled = sum(member.labeled > 0 for member in self.members)
        LOG.info("stlf: %d devices, %d with labels; %s", len(self.members), labeled, self.divergence)

    def _message(
        self, member: Member, content: RecordDict, config: ConfigRecord, server_round: int, kind: str
    ) -> Message:
        content[self.configrecord_key] = ConfigRecord({**config, "server-round": server_round})
        return Message(content, dst_node_id=member.node_id, message_type=kind)

    def _error(self, name: str, reply: Message) -> float:
        metrics = next(iter(reply.content.metric_records.values()))
        error = metrics.get(self.error_key)
        if not isinstance(error, int | float):
            raise InputError(
                f"{name}: its metrics have no {self.error_key!r}",
                "let training report the fraction of labels held out on which the model errs",
            )
        return float(error)
