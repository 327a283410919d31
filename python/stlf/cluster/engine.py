"""What an engine is: something that starts shards somewhere and says how they ended."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from stlf.cluster.shard import Shard


@dataclass(frozen=True)
class Ended:
    """How a shard ended: with an exit code of `stlf`, or lost, with no code and a reason.

    >>> Ended(shard=1, code=None, reason="the worker died").lost
    True
    >>> Ended(shard=1, code=2).lost, Ended(shard=1, code=130).lost
    (False, True)
    """

    shard: int
    code: int | None
    reason: str = ""

    @property
    def lost(self) -> bool:
        """Whether a restart may help: not with bad input or a problem without a plan."""
        return self.code not in (0, 2, 3)


@dataclass(frozen=True)
class Workers:
    """The settings of an engine.

    >>> Workers(count=4, threads=2, leash=Path("runs/mine.shards/leash")).address is None
    True
    """

    count: int
    threads: int
    leash: Path
    address: str | None = None
    sbatch: tuple[str, ...] = ()


class Engine(Protocol):
    """Starts shards and says how they ended. Prints nothing, repeats nothing: that is for `watch`."""

    at_once: int
    """How many shards to hand over before one has ended."""

    def start(self, shards: list[Shard]) -> None:
        """Takes these shards, to be run now or when a worker is free."""

    def ended(self, wait: float) -> list[Ended]:
        """The shards that have ended since, after at most this many seconds; each is reported once."""

    def close(self) -> None:
        """Stops what still runs, and leaves nothing running that it started."""


def _local(workers: Workers) -> Engine:
    from stlf.cluster.local import Local

    return Local(workers)


def _ray(workers: Workers) -> Engine:
    from stlf.cluster.ray import Ray

    return Ray(workers)


def _hyperqueue(workers: Workers) -> Engine:
    from stlf.cluster.hyperqueue import HyperQueue

    return HyperQueue(workers)


def _slurm(workers: Workers) -> Engine:
    from stlf.cluster.slurm import Slurm

    return Slurm(workers)


ENGINES: dict[str, Callable[[Workers], Engine]] = {
    "local": _local,
    "ray": _ray,
    "hyperqueue": _hyperqueue,
    "slurm": _slurm,
}
"""Every engine by its name."""
