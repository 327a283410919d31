"""Arrays as safetensors files, read and written with NumPy alone."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stlf.errors import InputError

_TYPES: dict[str, np.dtype[Any]] = {
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
}


def read(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Read all arrays of a file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder) / "a", {"rows": np.array([3, 1])})
    ...     read(Path(folder) / "a")
    {'rows': array([3, 1])}
    """
    file = path.read_bytes()
    try:
        (length,) = struct.unpack("<Q", file[:8])
        header = json.loads(file[8 : 8 + length])
        header.pop("__metadata__", None)
        data = memoryview(file)[8 + length :]
        arrays = {}
        for name, entry in header.items():
            start, end = entry["data_offsets"]
            numbers = np.frombuffer(data[start:end], dtype=_TYPES[entry["dtype"]])
            arrays[name] = numbers.reshape(entry["shape"]).copy()
        return arrays
    except (KeyError, TypeError, ValueError, struct.error) as error:
        raise InputError(f"{path.name} is no safetensors file of numbers: {error}") from None


def write(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write arrays to a file.

    >>> write(Path("a"), {"flag": np.array([True])})
    Traceback (most recent call last):
    stlf.errors.InputError: flag has numbers of the type bool; expected float32, float64, int32 or int64
    """
    header: dict[str, Any] = {}
    parts = []
    offset = 0
    # Files of the same arrays are the same, whatever the order in which they were made.
    for name, array in sorted(arrays.items()):
        kind = next((kind for kind, dtype in _TYPES.items() if dtype == array.dtype.newbyteorder("<")), None)
        if kind is None:
            raise InputError(f"{name} has numbers of the type {array.dtype}; expected float32, float64, int32 or int64")
        numbers = np.ascontiguousarray(array, dtype=_TYPES[kind]).tobytes()
        header[name] = {
            "dtype": kind,
            "shape": list(array.shape),
            "data_offsets": [offset, offset + len(numbers)],
        }
        offset += len(numbers)
        parts.append(numbers)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(b"".join([struct.pack("<Q", len(text)), text, *parts]))
