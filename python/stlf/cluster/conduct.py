"""A whole run: divide, watch, merge. One command at a time on a run, and nothing left behind when it is stopped."""

import fcntl
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from stlf.cluster.engine import ENGINES, Engine, Workers
from stlf.cluster.failure import ClusterError, of_code
from stlf.cluster.shard import Division
from stlf.cluster.watch import watch


def conduct(
    division: Division,
    engine: str | Callable[[Workers], Engine] = "local",
    *,
    workers: int = 1,
    retries: int = 3,
    address: str | None = None,
    sbatch: tuple[str, ...] = (),
) -> Path:
    """Does all shards on an engine, joins them, and returns the run's folder.

    Whatever ends it, KeyboardInterrupt included: the workers are stopped, what is finished stays, and the next call
    goes on from there.

    >>> import tempfile
    >>> whole = Division(Path("/bin/true"), Path("mine.toml"), Path(tempfile.mkdtemp()) / "mine", shards=2)
    >>> conduct(whole, "local", workers=2).name
    'mine'
    """
    make = ENGINES[engine] if isinstance(engine, str) else engine
    division.work.mkdir(parents=True, exist_ok=True)
    with _alone(division.work), _leash(division.work) as leash:
        told = Workers(workers, division.threads, leash, address, sbatch)
        running = make(told)
        try:
            watch(division.all(), running, retries)
        finally:
            # Shards on other machines see this, also those that still wait there.
            leash.unlink()
            running.close()
        code = subprocess.call(division.merge_command())
    if code != 0:
        raise of_code(code, f"stlf merge failed with exit code {code}", "see its message above; the shards are kept")
    return division.to


@contextmanager
def _alone(work: Path) -> Iterator[None]:
    with (work / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ClusterError(f"another command already works on {work}", "wait for it, or stop it") from error
        yield


@contextmanager
def _leash(work: Path) -> Iterator[Path]:
    # An earlier command that was killed could not stop its shards.
    for old in work.glob(".leash-*"):
        old.unlink()
    leash = work / f".leash-{uuid.uuid4().hex}"
    leash.touch()
    try:
        yield leash
    finally:
        leash.unlink(missing_ok=True)
