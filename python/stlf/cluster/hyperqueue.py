"""HyperQueue: a server that already runs, or one inside this process, with its workers."""

import os
import re
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stlf.cluster.engine import Ended, Workers
from stlf.cluster.failure import ClusterError
from stlf.cluster.shard import Shard
from stlf.errors import optional

_LOOK_EVERY = 0.1
_STOP_WITHIN = 20.0


class HyperQueue:
    """Shards as jobs of HyperQueue. An address is the folder of a server; without one a server is started here."""

    def __init__(self, workers: Workers) -> None:
        """Connects, or starts a server with its workers."""
        self.at_once = workers.count
        self._leash = workers.leash
        self._jobs: dict[int, Any] = {}
        self._threads = workers.threads
        self._hq: Any = optional("hyperqueue", "the engine hyperqueue", "hyperqueue")
        self._cluster: Any = None
        try:
            if workers.address is None:
                self._folder = tempfile.TemporaryDirectory(prefix="stlf-hyperqueue-")
                with _stdout_to(Path(self._folder.name) / "server"):
                    self._cluster = self._hq.LocalCluster(self._folder.name)
                for _ in range(workers.count):
                    self._cluster.start_worker(self._hq.cluster.WorkerConfig(cores=workers.threads))
                self._client = self._cluster.client()
            else:
                self._client = self._hq.Client(workers.address)
        except Exception as error:  # its compiled part raises no narrower class
            where = f"at {workers.address}" if workers.address else "here"
            hint = "the address is the server's folder, as of `hq server start --server-dir`"
            raise ClusterError(f"cannot use HyperQueue {where}: {error}", hint) from error

    def start(self, shards: list[Shard]) -> None:
        """One job each."""
        for shard in shards:
            job = self._hq.Job(name=str(shard), max_fails=None, default_workdir=Path.cwd())
            job.program(
                shard.on_a_leash(self._leash),
                env=shard.environment,
                stdout=None,
                stderr=None,
                resources=self._hq.ffi.protocol.ResourceRequest(cpus=self._threads),
            )
            self._jobs[shard.number] = self._client.submit(job)
        if self._cluster is not None:
            _take_back_signals()

    def ended(self, wait: float) -> list[Ended]:
        """Jobs that have ended."""
        deadline = time.monotonic() + wait
        while True:
            states = self._states()
            over = [number for number, job in self._jobs.items() if states[job.id]["completed"]]
            if over or time.monotonic() >= deadline:
                return [self._end(number, states) for number in over]
            time.sleep(_LOOK_EVERY)

    def _states(self) -> dict[int, dict[str, Any]]:
        states: dict[int, dict[str, Any]] = {}
        if not self._jobs:
            return states

        class Seen(Exception):  # noqa: N818
            pass

        def look(jobs: dict[int, dict[str, Any]]) -> None:
            states.update(jobs)
            raise Seen

        # The package has no other way to ask how jobs are than to wait for them, and while it waits no other call
        # gets through and no Ctrl-C either. So the wait is left as soon as it has told.
        try:
            self._client.connection.wait_for_jobs([job.id for job in self._jobs.values()], look)
        except Seen:
            return states
        except Exception as error:
            raise ClusterError(f"HyperQueue's server does not answer: {error}", "is it still running?") from error
        return states

    def _end(self, number: int, states: dict[int, dict[str, Any]]) -> Ended:
        job = self._jobs.pop(number)
        if states[job.id]["finished"] == 1:
            return Ended(number, 0)
        failed = self._client.get_failed_tasks(job)
        reason = failed[0].error if failed else "it was cancelled"
        code = re.search(r"exit code (\d+)", reason)
        return Ended(number, int(code.group(1)) if code else None, reason)

    def close(self) -> None:
        """Lets shards at work see that their leash is gone, and ends the server if it was started here.

        The package cannot cancel jobs of a server: those that still wait there end as soon as they begin.
        """
        deadline = time.monotonic() + _STOP_WITHIN
        while self._jobs and time.monotonic() < deadline:
            self.ended(deadline - time.monotonic())
        if self._cluster is not None:
            self._cluster.stop()
            self._folder.cleanup()


def _take_back_signals() -> None:
    # The server and its workers, once they run, take these for themselves, past Python: Ctrl-C would end them first.
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.getsignal(number))


@contextmanager
def _stdout_to(path: Path) -> Iterator[None]:
    # The server prints a table about itself, past Python's own standard output.
    kept = os.dup(1)
    with path.open("wb") as file:
        os.dup2(file.fileno(), 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
