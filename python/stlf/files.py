"""Files, read with the package's own errors and written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from stlf.errors import FileError, InputError

AnyPath = str | os.PathLike[str]


def read(path: AnyPath) -> bytes:
    """Return the content of a file.

    >>> read("no-such-file.json")
    Traceback (most recent call last):
    stlf.errors.InputError: there is no file no-such-file.json
    """
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise InputError(f"there is no file {os.fspath(path)}") from None
    except OSError as error:
        raise FileError(f"cannot read {os.fspath(path)}: {error.strerror}") from error


def write(path: AnyPath, content: str | bytes) -> None:
    """Write a file that appears whole or not at all; a link is followed, and a pipe or device is written to.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder) / "a.txt", "a")
    ...     read(Path(folder) / "a.txt")
    b'a'
    """
    target = Path(os.path.realpath(path))
    data = content.encode() if isinstance(content, str) else content
    try:
        if Path(path).exists() and not Path(path).is_file():
            # A pipe or a device cannot be replaced without being destroyed.
            Path(path).write_bytes(data)
            return
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise FileError(f"cannot write {os.fspath(path)}: {error.strerror}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        # mkstemp's files are for their owner alone; others follow the user's mask.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, target)
    except OSError as error:
        os.unlink(temporary)
        raise FileError(f"cannot write {os.fspath(path)}: {error.strerror}") from error
