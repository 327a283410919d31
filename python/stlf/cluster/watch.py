"""Keeps an engine at work until every shard is done, and starts lost ones again."""

import signal
from collections import Counter, deque
from collections.abc import Iterable

from stlf.cluster.engine import Ended, Engine
from stlf.cluster.failure import of_code
from stlf.cluster.progress import Bar
from stlf.cluster.shard import Shard
from stlf.errors import Error

_LOOK_EVERY = 0.5


def watch(shards: Iterable[Shard], engine: Engine, retries: int = 3) -> None:
    """Returns when all shards are done; a shard that is lost is started again at most `retries` times.

    A shard that was given up does not keep the others from ending. Bad input, which all would meet, ends it at once.

    >>> class Instant:
    ...     at_once = 1
    ...     def start(self, shards): self.now = shards
    ...     def ended(self, wait): return [Ended(shard.number, 0) for shard in self.now]
    ...     def close(self): pass
    >>> from pathlib import Path
    >>> watch([Shard(1, 1, ("stlf", "run"), Path("1-of-1"))], Instant())
    """
    waiting = deque(shards)
    total = len(waiting)
    at_work: dict[int, Shard] = {}
    lost: Counter[int] = Counter()
    given_up: dict[int, tuple[Shard, str]] = {}
    done = 0
    bar = Bar(total)
    try:
        while waiting or at_work:
            room = min(engine.at_once - len(at_work), len(waiting))
            if room > 0:
                batch = [waiting.popleft() for _ in range(room)]
                at_work.update({shard.number: shard for shard in batch})
                engine.start(batch)
            bar.show(done, len(at_work), lost.total())
            for end in engine.ended(_LOOK_EVERY):
                shard = at_work.pop(end.shard)
                if end.code == 0:
                    done += 1
                    bar.note(f"{shard} is done ({done} of {total})")
                elif not end.lost:
                    raise _ended_badly(shard, f"{shard} failed with exit code {end.code}", end.code or 1)
                elif lost[shard.number] == retries:
                    given_up[shard.number] = (shard, _why(end))
                    bar.note(f"{shard} was lost again ({_why(end)}); given up")
                else:
                    lost[shard.number] += 1
                    waiting.append(shard)
                    bar.note(f"{shard} was lost ({_why(end)}); again, {lost[shard.number]} of {retries}")
    finally:
        bar.clear()
    if given_up:
        shard, why = next(iter(given_up.values()))
        others = f", and {len(given_up) - 1} more" if len(given_up) > 1 else ""
        raise _ended_badly(shard, f"{shard} was lost {retries + 1} times{others}; the last time: {why}", 1)


def _why(end: Ended) -> str:
    code = end.code
    if code is None:
        return end.reason
    number = -code if code < 0 else code - 128
    if 0 < number < signal.NSIG and code != 130:
        return f"signal {number}"
    return "interrupted" if code == 130 else f"exit code {code}"


def _ended_badly(shard: Shard, message: str, code: int) -> Error:
    words = shard.last_words()
    said = f"\n{words}" if words else ""
    return of_code(code, message + said, f"its log is {shard.log}; run the same command to continue")
