"""Plain processes on this machine."""

import os
import signal
import subprocess
import time

from stlf.cluster.engine import Ended, Workers
from stlf.cluster.shard import Shard

_LOOK_EVERY = 0.05
_STOP_WITHIN = 5.0


class Local:
    """Shards as processes of this machine, so many at once.

    >>> from pathlib import Path; import tempfile
    >>> folder = Path(tempfile.mkdtemp()); leash = folder / "leash"; leash.touch()
    >>> engine = Local(Workers(count=2, threads=1, leash=leash))
    >>> engine.start([Shard(1, 1, ("sh", "-c", "exit 3"), folder / "1-of-1")])
    >>> engine.ended(wait=60)
    [Ended(shard=1, code=3, reason='')]
    >>> engine.close()
    """

    def __init__(self, workers: Workers) -> None:
        """Starts nothing yet."""
        self.at_once = workers.count
        self._leash = workers.leash
        self._at_work: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, shards: list[Shard]) -> None:
        """One process each."""
        for shard in shards:
            # Ctrl-C is for the command that watches, in a session of its own; it stops the shards itself.
            self._at_work[shard.number] = subprocess.Popen(
                shard.on_a_leash(self._leash), env={**os.environ, **shard.environment}, start_new_session=True
            )

    def ended(self, wait: float) -> list[Ended]:
        """Processes that have ended."""
        deadline = time.monotonic() + wait
        while True:
            codes = {number: code for number, child in self._at_work.items() if (code := child.poll()) is not None}
            if codes or time.monotonic() >= deadline:
                break
            time.sleep(_LOOK_EVERY)
        for number in codes:
            del self._at_work[number]
        return [Ended(number, code) for number, code in codes.items()]

    def close(self) -> None:
        """Interrupts what is at work; what does not stop is killed."""
        for child in self._at_work.values():
            child.send_signal(signal.SIGINT)
        deadline = time.monotonic() + _STOP_WITHIN
        for child in self._at_work.values():
            try:
                child.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        self._at_work.clear()
