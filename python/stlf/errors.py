"""What can go wrong: one tree of exceptions, with the command line's messages.

    Error
    ├── InputError       what was given cannot be used (also a ValueError)
    ├── InfeasibleError  no plan exists, and why
    ├── FileError        a file or the system (also an OSError)
    └── MissingError     an optional package is not installed (also an ImportError)

Ctrl-C is KeyboardInterrupt, as everywhere.
"""

from __future__ import annotations

import importlib
from types import ModuleType


class Error(Exception):
    """Something that stlf cannot do: what is wrong, and what to do about it.

    >>> error = Error("divergence: is missing", "measure it")
    >>> print(error)
    divergence: is missing
    hint: measure it
    >>> error.message, error.hint
    ('divergence: is missing', 'measure it')
    """

    message: str
    """What is wrong, and where."""
    hint: str | None
    """What to do about it, if there is a hint."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        """Create an error that says what is wrong, and what to do about it."""
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        """The text of the command line."""
        return self.message if self.hint is None else f"{self.message}\nhint: {self.hint}"


class InputError(Error, ValueError):
    """The input cannot be used; the message names the field and the device."""


class InfeasibleError(Error):
    """No plan exists; the message names the device that no source can serve."""


class FileError(Error, OSError):
    """A file cannot be read or written."""


class MissingError(Error, ImportError):
    """An optional package that this function needs is not installed."""


def optional(module: str, what: str, extra: str) -> ModuleType:
    """Import a package that is needed here and nowhere else.

    >>> optional("no_such_package", "this example", "none").__name__
    Traceback (most recent call last):
    stlf.errors.MissingError: this example needs no_such_package
    hint: pip install 'stlf[none]'
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise MissingError(f"{what} needs {package}", f"pip install 'stlf[{extra}]'") from None
