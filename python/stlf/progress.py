"""How far long work is: bars by tqdm where it is installed, plain ones elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

See = Callable[[str, int | None, int, int], None]
"""Hears the stage, the seed if there is one, and how many units of how many are done."""

Progress = bool | See | None
"""True: show bars; False: none; None: where someone watches; or a function that hears of it."""

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
        """On a screen, with tqdm's class or none, for so many seeds."""
        self._screen = screen
        self._tqdm = tqdm
        self._seeds = seeds
        self._known: dict[str, dict[int | None, tuple[int, int]]] = {}
        self._bars: dict[str, Any] = {}
        self._line = ""

    def see(self, stage: str, seed: int | None, done: int, total: int) -> None:
        """Hear how far a stage of a seed is."""
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
    """Give the function that the compiled part calls, or none where nobody watches.

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
