"""Ray: a cluster that already runs, or one on this machine."""

import os
import secrets
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stlf.cluster.engine import Ended, Workers
from stlf.cluster.failure import ClusterError
from stlf.cluster.shard import Shard
from stlf.errors import optional

_STOP_WITHIN = 20.0

_STARTS = 10


def start_here(ray: Any, cores: int, **options: Any) -> Any:
    """Starts a Ray on this machine, again if its processes took longer than the half minute that it gives them."""
    for _ in range(_STARTS):
        try:
            return ray.init("local", num_cpus=cores, include_dashboard=False, **options)
        except Exception as error:
            # Ray has no class of its own for this.
            if "timed out during startup" not in str(error):
                raise
            ray.shutdown()
    raise RuntimeError(f"its processes did not start in time, {_STARTS} times in a row")


class Ray:
    """Shards as tasks of Ray. Without an address Ray is started here, with a processor for every thread of a worker."""

    def __init__(self, workers: Workers) -> None:
        """Connects, or starts a Ray."""
        self.at_once = workers.count
        self._leash = workers.leash
        self._at_work: dict[Any, int] = {}
        # These must be in the environment before Ray is imported: nothing is sent to its makers, no warning is shown
        # about graphics processors that shards do not ask for, and a Ray of our own, which listens on every network
        # of the machine, takes orders from this process only.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        if workers.address is None and "RAY_AUTH_MODE" not in os.environ:
            os.environ["RAY_AUTH_MODE"] = "token"
            os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        self._ray: Any = optional("ray", "the engine ray", "ray")
        quiet = {"log_to_driver": False, "logging_level": "ERROR"}
        try:
            if workers.address is None:
                start_here(self._ray, workers.count * workers.threads, **quiet)
            else:
                self._ray.init(workers.address, **quiet)
        except (ConnectionError, RuntimeError, ValueError) as error:
            where = f"at {workers.address}" if workers.address else "here"
            hint = "`ray status` says what is there; a cluster with a token wants RAY_AUTH_MODE and RAY_AUTH_TOKEN set"
            raise ClusterError(f"cannot use Ray {where}: {error}", hint) from error
        # The shards are repeated by `watch`, which counts.
        self._task = self._ray.remote(num_cpus=workers.threads, max_retries=0)(_call())

    def start(self, shards: list[Shard]) -> None:
        """One task each."""
        for shard in shards:
            command = shard.on_a_leash(self._leash)
            task = self._task.options(name=str(shard)).remote(command, shard.environment, str(Path.cwd()))
            self._at_work[task] = shard.number

    def ended(self, wait: float) -> list[Ended]:
        """Tasks that have ended, and those whose worker or machine is gone."""
        if not self._at_work:
            time.sleep(wait)
            return []
        done, _ = self._ray.wait(list(self._at_work), num_returns=1, timeout=wait)
        return [self._end(task) for task in done]

    def _end(self, task: Any) -> Ended:
        number = self._at_work.pop(task)
        try:
            return Ended(number, self._ray.get(task))
        except self._ray.exceptions.RayError as error:
            return Ended(number, None, str(error).strip().splitlines()[0])

    def close(self) -> None:
        """Lets shards at work see that their leash is gone, and leaves Ray, which forgets what still waits."""
        deadline = time.monotonic() + _STOP_WITHIN
        while self._at_work and time.monotonic() < deadline:
            self.ended(deadline - time.monotonic())
        self._ray.shutdown()


def _call() -> Callable[[list[str], dict[str, str], str], int]:
    # Made here so that Ray sends the function itself: machines of the cluster need `stlf`, but not this package.
    def call(command: list[str], environment: dict[str, str], folder: str) -> int:
        # Ray's workers do not hear SIGINT, and what they start would not either.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        return subprocess.call(command, cwd=folder, env={**os.environ, **environment})

    return call
