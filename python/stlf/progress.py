"""Progress of long calls: tqdm's bars if it is installed, otherwise plain ones."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

See = Callable[[str, int | None, int, int], None]
"""Is called with the stage, the seed if there is one, the number of finished units and their total."""

Progress = bool | See | None
"""True: show bars; False: none; None: only on a terminal; or a function to call instead."""

_WORDS = {
    "deal": "deal data to devices",
    "train": "train on their labels",
    "measure": "measure divergences",
    "search": "close the gap",
    "plan": "plan roles and links",
    "transfer": "send and combine models",
    "relay": "hand models on",
    "adapt": "adapt networks (FADA)",
    "compare": "compare with others",
}


class Bars:
    """One bar per stage, all seeds together.

    >>> import io
    >>> screen = io.StringIO()
    >>> bars = Bars(screen, tqdm=None)
    >>> bars.see("measure", None, 45, 45)
    >>> bars.close()
    >>> screen.getvalue().strip()
    'measure divergences     [##############################] 45/45'
    """

    def __init__(self, screen: Any, tqdm: Any, seeds: int = 1) -> None:
        """Show bars on a screen, with tqdm's class or none, for this many seeds."""
        self._screen = screen
        self._tqdm = tqdm
        self._seeds = seeds
        self._known: dict[str, dict[int | None, tuple[int, int]]] = {}
        self._bars: dict[str, Any] = {}
        self._line = ""

    def see(self, stage: str, seed: int | None, done: int, total: int) -> None:
        """Update the progress of a stage of a seed."""
        seeds = self._known.setdefault(stage, {})
        seeds[seed] = (max(done, seeds.get(seed, (0, 0))[0]), total)
        # Seeds that have not begun will have as much to do as those that have.
        missing = max(self._seeds - len(seeds), 0) if seed is not None else 0
        whole = sum(all_ for _, all_ in seeds.values()) + missing * total
        self._draw(stage, sum(part for part, _ in seeds.values()), whole)

    def _draw(self, stage: str, done: int, total: int) -> None:
        words = _WORDS.get(stage, stage)
        if self._tqdm is not None:
            bar = self._bars.get(stage)
            if bar is None:
                bar = self._bars[stage] = self._tqdm(desc=words, total=total, file=self._screen, leave=False)
            bar.total = total
            bar.update(done - bar.n)
            return
        filled = 30 * done // max(total, 1)
        line = f"{words:23} [{'#' * filled:30}] {done}/{total}"
        self._screen.write("\r" + line.ljust(len(self._line)))
        self._screen.flush()
        self._line = line

    def close(self) -> None:
        """End all bars."""
        for bar in self._bars.values():
            bar.close()
        if self._line:
            self._screen.write("\n")


@contextmanager
def bars(progress: Progress, seeds: int = 1) -> Iterator[See | None]:
    """Return the function that the compiled part calls, or None where no progress is shown.

    >>> with bars(False) as see:
    ...     see is None
    True
    """
    if callable(progress):
        yield progress
        return
    if progress is False or (progress is None and not sys.stderr.isatty()):
        yield None
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        tqdm = None
    shown = Bars(sys.stderr, tqdm, seeds)
    try:
        yield shown.see
    finally:
        shown.close()
