"""The progress of the shards, on standard error."""

import sys
import time
from typing import TextIO

_WIDTH = 24


class Bar:
    """A bar where a person is looking, one line per event elsewhere.

    >>> import io
    >>> out = io.StringIO()
    >>> bar = Bar(total=4, out=out)
    >>> bar.note("shard 2 of 4 is done")
    >>> out.getvalue()
    'shard 2 of 4 is done\\n'
    >>> bar.line(done=1, at_work=2, repeated=0)
    '[######------------------] 1 of 4 shards, 2 at work, 0:00'
    """

    def __init__(self, total: int, out: TextIO | None = None) -> None:
        """Show the progress of this many shards, by default on standard error."""
        self._total = total
        self._out = out or sys.stderr
        self._began = time.monotonic()
        self._shown = ""

    def show(self, done: int, at_work: int, repeated: int) -> None:
        """Draws the bar again, where it can be seen."""
        line = self.line(done, at_work, repeated)
        if self._out.isatty() and line != self._shown:
            self._shown = line
            self._out.write(f"\r\033[K{line}")
            self._out.flush()

    def line(self, done: int, at_work: int, repeated: int) -> str:
        """The bar as text.

        >>> Bar(total=2).line(done=2, at_work=0, repeated=1)
        '[########################] 2 of 2 shards, 0 at work, 1 repeated, 0:00'
        """
        full = _WIDTH * done // self._total
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        again = f", {repeated} repeated" if repeated else ""
        return (
            f"[{'#' * full}{'-' * (_WIDTH - full)}] {done} of {self._total} shards, {at_work} at work{again}, "
            f"{minutes}:{seconds:02}"
        )

    def note(self, text: str) -> None:
        """A line that stays."""
        self.clear()
        self._out.write(text + "\n")
        self._out.flush()

    def clear(self) -> None:
        """Takes the bar away."""
        if self._shown:
            self._out.write("\r\033[K")
            self._shown = ""
