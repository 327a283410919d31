"""Keeps an engine at work until every share is done, and starts lost ones again."""

import signal
from collections import Counter, deque
from collections.abc import Iterable

from stlf.cluster.engine import Ended, Engine
from stlf.cluster.failure import of_code
from stlf.cluster.progress import Bar
from stlf.cluster.share import Share
from stlf.errors import Error

_LOOK_EVERY = 0.5


def watch(shares: Iterable[Share], engine: Engine, retries: int = 3) -> None:
    """Returns when all shares are done; a share that is lost is started again at most `retries` times.

    A share that was given up does not keep the others from ending. Bad input, which all would meet, ends it at once.

    >>> class Instant:
    ...     at_once = 1
    ...     def start(self, shares): self.now = shares
    ...     def ended(self, wait): return [Ended(share.number, 0) for share in self.now]
    ...     def close(self): pass
    >>> from pathlib import Path
    >>> watch([Share(1, 1, ("stlf", "run"), Path("1-of-1"))], Instant())
    """
    waiting = deque(shares)
    total = len(waiting)
    at_work: dict[int, Share] = {}
    lost: Counter[int] = Counter()
    given_up: dict[int, tuple[Share, str]] = {}
    done = 0
    bar = Bar(total)
    try:
        while waiting or at_work:
            room = min(engine.at_once - len(at_work), len(waiting))
            if room > 0:
                batch = [waiting.popleft() for _ in range(room)]
                at_work.update({share.number: share for share in batch})
                engine.start(batch)
            bar.show(done, len(at_work), lost.total())
            for end in engine.ended(_LOOK_EVERY):
                share = at_work.pop(end.share)
                if end.code == 0:
                    done += 1
                    bar.note(f"{share} is done ({done} of {total})")
                elif not end.lost:
                    raise _ended_badly(share, f"{share} failed with exit code {end.code}", end.code or 1)
                elif lost[share.number] == retries:
                    given_up[share.number] = (share, _why(end))
                    bar.note(f"{share} was lost again ({_why(end)}); given up")
                else:
                    lost[share.number] += 1
                    waiting.append(share)
                    bar.note(f"{share} was lost ({_why(end)}); again, {lost[share.number]} of {retries}")
    finally:
        bar.clear()
    if given_up:
        share, why = next(iter(given_up.values()))
        others = f", and {len(given_up) - 1} more" if len(given_up) > 1 else ""
        raise _ended_badly(share, f"{share} was lost {retries + 1} times{others}; the last time: {why}", 1)


def _why(end: Ended) -> str:
    code = end.code
    if code is None:
        return end.reason
    number = -code if code < 0 else code - 128
    if 0 < number < signal.NSIG and code != 130:
        return f"signal {number}"
    return "interrupted" if code == 130 else f"exit code {code}"


def _ended_badly(share: Share, message: str, code: int) -> Error:
    words = share.last_words()
    said = f"\n{words}" if words else ""
    return of_code(code, message + said, f"its log is {share.log}; run the same command to continue")
