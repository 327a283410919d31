"""The devices that take part, and what each reported before the first round."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from flwr.app import Message, MessageType
from flwr.serverapp import Grid

from stlf import sketch
from stlf.divergence import Divergence
from stlf.errors import Error, InputError
from stlf.fleet import Fleet
from stlf.flower.records import Question, Report

LOG = logging.getLogger("flwr")


@dataclass(frozen=True)
class Member:
    """A device of the federation."""

    name: str
    """The name that it gave itself."""
    node_id: int
    """Its node number in Flower."""
    labeled: int
    """The number of its samples with a label."""
    unlabeled: int
    """The number of its samples without a label."""


def connected(grid: Grid, least: int, timeout: float) -> list[int]:
    """Wait until this many nodes are connected."""
    deadline = time.monotonic() + timeout
    while len(nodes := list(grid.get_node_ids())) < least:
        if time.monotonic() > deadline:
            raise Error(
                f"{len(nodes)} nodes connected in {timeout:g} s, of {least} that were asked for",
                "start more SuperNodes, or lower min_available_nodes",
            )
        time.sleep(0.2)
    return nodes


def measure(
    grid: Grid,
    nodes: Iterable[int],
    *,
    question: Question,
    timeout: float,
) -> tuple[list[Member], Divergence]:
    """Ask every node for its sketch; return the nodes that answered and all divergences.

    A node that does not answer is left out, and the log says why.
    """
    answers = _ask(grid, nodes, question, timeout)
    # Names are the same in every run and nodes are not; by length first, so that numbers stand in their order.
    order = sorted(answers.items(), key=lambda entry: (len(entry[1].name), entry[1].name))
    members = [Member(report.name, node, report.labeled, report.unlabeled) for node, report in order]
    for member, following in zip(members, members[1:], strict=False):
        if member.name == following.name:
            raise InputError(f"two nodes are called {member.name!r}", "StlfMod(name=…) gives each its own")
    sketches = {report.name: report.sketch for _, report in order}
    return members, sketch.divergence(sketches, privacy=question.privacy)


def _ask(grid: Grid, nodes: Iterable[int], question: Question, timeout: float) -> dict[int, Report]:
    asked = [Message(question.record(), dst_node_id=node, message_type=MessageType.TRAIN) for node in nodes]
    answers: dict[int, Report] = {}
    replies = list(grid.send_and_receive(asked, timeout=timeout))
    for reply in replies:
        node = reply.metadata.src_node_id
        if reply.has_error():
            LOG.warning("stlf: node %d is left out: %s", node, reply.error.reason)
        else:
            answers[node] = Report.read(reply.content)
    if len(replies) < len(asked):
        LOG.warning("stlf: %d nodes are left out: no answer in %g s", len(asked) - len(replies), timeout)
    if not answers:
        raise Error("no node answered the question for its sketch", "is StlfMod the first of the clients' mods?")
    return answers


def fleet_of(members: Iterable[Member], trained: Iterable[str]) -> Fleet:
    """Return a fleet with these devices' counts and no data, which is all that planning needs.

    A device that never trained cannot be a source; its labels count as none.

    >>> fleet_of([Member("gate", 1, 3, 1), Member("yard", 2, 2, 0), Member("roof", 3, 0, 5)], ["gate"])
    Fleet(3 devices, 1 with labels, 11 samples)
    """
    sources = set(trained)
    counted = {}
    for member in members:
        samples = member.labeled + member.unlabeled
        labels = np.full(samples, -1)
        labels[: member.labeled if member.name in sources else 0] = 0
        counted[member.name] = (np.empty((samples, 0), dtype=np.float32), labels)
    return Fleet.from_devices(counted)
