"""A real device of a fleet in this process."""

from __future__ import annotations

import json
import queue
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from stlf import _internal, files
from stlf.errors import InputError
from stlf.learner.bridge import Bridge
from stlf.learner.contract import Learner

Role = Literal["source", "target"]
"""What a device does in a plan."""

Stage = Literal["waiting", "measuring", "planning", "receiving", "training-on", "done", "complete"]
"""What a device is doing in an epoch."""

# How long it is waited for what happens before progress of training is looked at, in seconds.
_TICK = 0.1


@dataclass(frozen=True)
class Training:
    """The device trains on its own labels, or has done so earlier.

    >>> Training(labels=120).labels
    120
    """

    labels: int | None
    """How many labels it trains on; None if it has trained earlier."""


@dataclass(frozen=True)
class Progress:
    """The learner has told how far its training is.

    >>> Progress(30, 200).done
    30
    """

    done: int
    """What is done, in whatever the learner counts."""
    total: int
    """What there is to do."""


@dataclass(frozen=True)
class Phase:
    """The device goes on to another stage of an epoch.

    >>> Phase(1, "measuring").stage
    'measuring'
    """

    epoch: int
    """The epoch."""
    stage: Stage
    """What the device does now."""


@dataclass(frozen=True)
class Planned:
    """There is a plan.

    >>> Planned(1, "target", {"gate": 1.0}, None, True).members
    {'gate': 1.0}
    """

    epoch: int
    """The epoch."""
    role: Role | None
    """What the device does in the plan; None if it has no part in it."""
    members: dict[str, float]
    """The devices whose models it receives, with their weights."""
    handed_from: str | None
    """The device whose model it trains on, if it is a source that was handed one."""
    optimal: bool
    """Whether the plan is proven optimal."""


@dataclass(frozen=True)
class Happened:
    """Something else happened: a device came or was lost, a model was received, and the like.

    >>> Happened(1, {"came": "pier"}).event
    {'came': 'pier'}
    """

    epoch: int
    """The epoch."""
    event: Any
    """What happened, as in the log of `stlf node start --log json`."""


@dataclass(frozen=True)
class Warned:
    """The device goes on, but somebody should look at it: its own model is no better than guessing.

    >>> Warned("its own model is no better than guessing").reason
    'its own model is no better than guessing'
    """

    reason: str
    """What is wrong, and where to look."""


@dataclass(frozen=True)
class Failed:
    """Something failed, and the device goes on: its learner cannot train, or a file cannot be written.

    >>> Failed("learner: out of memory").reason
    'learner: out of memory'
    """

    reason: str
    """What failed."""


@dataclass(frozen=True)
class Finished:
    """The device has ended; no event follows.

    >>> Finished(3, "target", {"gate": 1.0}, None, None, Path("node")).mixture.name
    'mixture'
    """

    epoch: int | None
    """The last epoch that it followed a plan in; None if there was none."""
    role: Role | None
    """What it did in it."""
    members: dict[str, float]
    """The devices whose models it received, with their weights."""
    accuracy: float | None
    """Its accuracy as a target, if the true classes are known."""
    no_plan: str | None
    """Why there is no plan, if there is none."""
    folder: Path
    """Where everything is kept."""
    expected: tuple[float, float, float] | None = None
    """The accuracy that it may expect as a target, without labels, and the ends of its 90 % interval."""

    @property
    def mixture(self) -> Path:
        """The bundle with what the device ended with."""
        return self.folder / "mixture"


Event = Training | Progress | Phase | Planned | Happened | Warned | Failed | Finished
"""What a device tells."""


class Node:
    """A real device of a fleet, in this process: `stlf node start` with a learner of yours.

    `roster` is the fleet's signed list of devices and `key` this device's key (docs/fleet.md says how to make them);
    `to` is the folder in which everything is kept: with the same folder the device goes on where it was. `peers` has
    the addresses of the devices before this one in the roster. With `once` the device leaves when an epoch is over;
    otherwise it goes on until the `with` statement ends. Without a learner, a built-in network learns from the data
    that `config` names. Times are in seconds.

    Events come in their order, the last is `Finished`. Leaving the `with` statement, also by Ctrl-C, tells the device
    to leave its fleet, and waits until it has.

    >>> with Node(Pumps(), roster="roster.json", key="device.key", once=True) as node:  # doctest: +SKIP
    ...     for event in node:
    ...         print(event)
    """

    def __init__(
        self,
        learner: Learner | None = None,
        *,
        roster: files.AnyPath = "roster.json",
        key: files.AnyPath = "device.key",
        to: files.AnyPath = "node",
        listen: str = "127.0.0.1:0",
        peers: Mapping[str, str] | None = None,
        once: bool = False,
        config: Mapping[str, Any] | files.AnyPath | None = None,
        changes: Sequence[str] = (),
        wait: float = 60.0,
        settle: float = 2.0,
        patience: float = 30.0,
        deadline: float = 600.0,
        watts: float | None = None,
    ) -> None:
        """Say what the device is to do; the `with` statement starts it."""
        for name, seconds in [("wait", wait), ("settle", settle), ("patience", patience), ("deadline", deadline)]:
            if not seconds > 0:
                raise InputError(f"{name}: {seconds} is not above 0", "give a number of seconds")
        self.folder = Path(to)
        self._progress: queue.SimpleQueue[Progress] = queue.SimpleQueue()
        self._bridge = None if learner is None else Bridge(learner, lambda d, t: self._progress.put(Progress(d, t)))
        self._options: dict[str, Any] = {
            "roster": roster,
            "key": key,
            "folder": self.folder,
            "listen": listen,
            "peers": list((peers or {}).items()),
            "times": (wait, settle, patience),
            "once": deadline if once else None,
            "watts": watts,
        }
        self._config = _whole(config, list(changes))
        self._inner: _internal.Node | None = None

    def __enter__(self) -> Node:
        """Start the device."""
        self._inner = _internal.Node(self._config, learner=self._bridge, **self._options)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Tell the device to leave its fleet, and wait until it has."""
        if self._inner is not None:
            inner, self._inner = self._inner, None
            inner.stop()

    def __iter__(self) -> Iterator[Event]:
        """Give what happens, as it happens, until the device has ended."""
        while True:
            event = self.next(timeout=None)
            if event is None:
                return
            yield event

    def next(self, timeout: float | None = None) -> Event | None:
        """Return the next event; None if the device has ended, or if nothing happens for so many seconds."""
        if self._inner is None:
            raise InputError("this device does not run", "write with stlf.Node(...) as node")
        left = timeout
        while True:
            try:
                return self._progress.get_nowait()
            except queue.Empty:
                pass
            step = _TICK if left is None else min(_TICK, left)
            text = self._inner.next(step)
            if text is not None:
                return _event(json.loads(text), self.folder)
            if self._inner.has_ended and self._progress.empty():
                return None
            if left is not None:
                left -= step
                if left <= 0:
                    return None


def _whole(config: Mapping[str, Any] | files.AnyPath | None, changes: list[str]) -> str:
    """The whole configuration as TOML."""
    if config is None or isinstance(config, Mapping):
        return _internal.configure(json.dumps(dict(config or {})), file="config", is_json=True, changes=changes)
    return _internal.configure(files.read(config).decode(), file=Path(config), changes=changes)


def _event(told: dict[str, Any], folder: Path) -> Event:
    """An event of what the compiled part tells."""
    kind = told.pop("kind")
    if "members" in told:
        told["members"] = {name: weight for name, weight in told["members"]}
    if told.get("expected"):
        told["expected"] = tuple(told["expected"])
    match kind:
        case "training":
            return Training(told["labels"])
        case "phase":
            return Phase(**told)
        case "planned":
            return Planned(**told)
        case "finished":
            return Finished(**told, folder=folder)
        case "warned":
            return Warned(told["reason"])
        case "cannot_train" | "cannot_keep":
            return Failed(told["reason"])
        case _:
            return Happened(told["epoch"], told["event"])
