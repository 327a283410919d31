"""The planning problem: devices, divergences, link energies, and how much each counts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from stlf import _internal, files
from stlf.divergence import Divergence
from stlf.errors import InputError
from stlf.fleet import Fleet

Errors = Mapping[str, float] | Sequence[float | None] | npt.NDArray[np.float64]
Link = tuple[str, str]
Role = Literal["source", "target"]
Preset = Literal["balanced", "paper"]
Bound = Literal["pooled", "paper"]


class Problem:
    """A planning problem that passed every check, as `stlf-problem/1` holds it.

    >>> problem = Problem.from_dict({
    ...     "format": "stlf-problem/1", "preset": "balanced",
    ...     "devices": [{"name": "gate", "labeled": 900, "unlabeled": 100, "source_error": 0.1},
    ...                 {"name": "roof", "labeled": 0, "unlabeled": 800}],
    ...     "divergence": [[0, 0.4], [0.4, 0]], "link_energy": [[None, 3.1], [3.0, None]]})
    >>> problem
    Problem(2 devices)
    >>> Problem.from_json(problem.to_json()).names
    ['gate', 'roof']
    """

    def __init__(self, compiled: _internal.Problem) -> None:
        """Wrap a problem of the compiled part; use the functions below instead."""
        self._compiled = compiled

    @staticmethod
    def from_json(document: str | bytes, **settings: Any) -> Problem:
        """Take `stlf-problem/1` as text. Settings are those of `plan`: preset, phi_s, phi_t, phi_e and bound.

        >>> Problem.from_json("{}")
        Traceback (most recent call last):
        stlf.errors.InputError: format: is missing
        hint: `stlf schema problem` describes the file
        """
        text = document.encode() if isinstance(document, str) else document
        return Problem(_internal.Problem(text, **settings))

    @staticmethod
    def from_dict(document: Mapping[str, Any], **settings: Any) -> Problem:
        """Take `stlf-problem/1` as a dictionary; NaN is null.

        >>> Problem.from_dict({"format": "stlf-problem/1", "devices": []})
        Traceback (most recent call last):
        stlf.errors.InputError: devices: there are none
        hint: list at least one
        """
        return Problem.from_json(json.dumps(_plain(document)), **settings)

    @staticmethod
    def read(path: files.AnyPath, **settings: Any) -> Problem:
        """Read `stlf-problem/1` from a file; a plan gives the problem that it repeats.

        >>> Problem.read("no-such-file.json")
        Traceback (most recent call last):
        stlf.errors.InputError: there is no file no-such-file.json
        """
        return Problem(_internal.Problem(files.read(path), file=os.fspath(path), **settings))

    @staticmethod
    def from_fleet(
        fleet: Fleet,
        divergence: Divergence | npt.ArrayLike,
        errors: Errors,
        *,
        energy: npt.ArrayLike = 1.0,
        unlabeled_as: float = 1.0,
        roles: Mapping[str, Role] | None = None,
        forbidden: Iterable[Link] = (),
        required: Iterable[Link] = (),
        preset: Preset | None = None,
        **settings: Any,
    ) -> Problem:
        """Combine a fleet's measurements; `plan` documents the arguments.

        >>> fleet = Fleet.from_devices({"gate": ([[0.0], [1.0]], [0, 1]), "roof": ([[0.5]], None)})
        >>> problem = Problem.from_fleet(fleet, [[0, 0.4], [0.4, 0]], {"gate": 0.25})
        >>> problem.source_errors
        {'gate': 0.25, 'roof': None}
        """
        rates = _by_name(errors, fleet.names)
        entries = []
        for device in fleet:
            rate = rates.get(device.name)
            entry: dict[str, Any] = {"name": device.name, "labeled": device.labeled, "unlabeled": device.unlabeled}
            if rate is not None and device.labeled:
                entry["source_error"] = _internal.source_error(rate, device.labeled, device.unlabeled, unlabeled_as)
            if roles and device.name in roles:
                entry["role"] = roles[device.name]
            entries.append(entry)
        unknown = set(roles or ()) - set(fleet.names)
        if unknown:
            raise InputError(f"roles: there is no device {min(unknown)!r}", "name a device of the fleet")
        count = len(fleet)
        document = {
            "format": "stlf-problem/1",
            "preset": "balanced",
            "devices": entries,
            "forbidden_links": [{"from": sender, "to": receiver} for sender, receiver in forbidden],
            "required_links": [{"from": sender, "to": receiver} for sender, receiver in required],
        }
        compiled = _internal.Problem(
            json.dumps(_plain(document)).encode(),
            divergence=_matrix(np.asarray(divergence, dtype=np.float64)),
            link_energy=_matrix(np.asarray(energy, dtype=np.float64), count),
            preset=preset,
            **settings,
        )
        return Problem(compiled)

    def with_settings(self, **settings: Any) -> Problem:
        """Return the same problem with other settings; those that are None stay the same.

        >>> fleet = Fleet.from_devices({"gate": ([[0.0]], [0]), "roof": ([[0.5]], None)})
        >>> problem = Problem.from_fleet(fleet, [[0, 0.4], [0.4, 0]], [0.25, None])
        >>> problem.weights, problem.with_settings(phi_e=2.0).weights
        ((1.0, 1.0, 0.05), (1.0, 1.0, 2.0))
        """
        given = {name: value for name, value in settings.items() if value is not None}
        return Problem.from_json(self.to_json(), **given) if given else self

    @property
    def names(self) -> list[str]:
        """The devices' names, in their order."""
        return self._compiled.names

    @property
    def source_errors(self) -> dict[str, float | None]:
        """ε̂ of each device: its model's errors on its labels, with every unlabeled sample counted as wrong."""
        devices = self._compiled.devices or [(0, 0, None)] * len(self.names)
        return {name: error for name, (_, _, error) in zip(self.names, devices, strict=True)}

    @property
    def weights(self) -> tuple[float, float, float] | None:
        """φ^S, φ^T and φ^E; None with raw costs."""
        return self._compiled.weights

    def to_json(self) -> str:
        """Return `stlf-problem/1`, every setting spelled out."""
        return self._compiled.document()

    def save(self, path: files.AnyPath) -> None:
        """Write `stlf-problem/1` to a file, which the command line reads too."""
        files.write(path, self.to_json())

    def __len__(self) -> int:
        """The number of devices."""
        return len(self.names)

    def __repr__(self) -> str:
        """The number of devices, as text."""
        return f"Problem({len(self)} devices)"


def energy(
    devices: int, model: Literal["ranges", "radio"] = "ranges", *, model_bits: float = 698_880, seed: int = 0
) -> npt.NDArray[np.float64]:
    """Draw joules of sending a model of `model_bits`, row = sender, NaN on the diagonal.

    The default is the size of the paper's network: 21,840 parameters of 32 bits. The paper itself counts 1e9 bits.

    `ranges` draws powers and rates as in the paper, `radio` distances and from them rates by a channel model.

    >>> energy(3).shape
    (3, 3)
    """
    return _internal.draw_energy(devices, model, model_bits, seed).reshape(devices, devices)


def _matrix(given: npt.NDArray[np.float64], square: int = 0) -> npt.NDArray[np.float64]:
    """Return a matrix; a single number applies to every pair."""
    if given.ndim == 0 and square:
        given = np.full((square, square), float(given))
    if given.ndim != 2:
        raise InputError(f"an array with {given.ndim} axes is not a matrix", "row = sender, column = receiver")
    return given


def _by_name(errors: Errors, names: list[str]) -> dict[str, float | None]:
    if isinstance(errors, Mapping):
        unknown = set(errors) - set(names)
        if unknown:
            raise InputError(f"errors: there is no device {min(unknown)!r}", "name a device of the fleet")
        given: dict[str, float | None] = {name: errors.get(name) for name in names}
    else:
        if len(errors) != len(names):
            raise InputError(
                f"errors: {len(errors)} for {len(names)} devices", "give one per device, None without labels"
            )
        given = dict(zip(names, errors, strict=True))
    rates: dict[str, float | None] = {}
    for name, error in given.items():
        try:
            rates[name] = None if error is None or np.isnan(error) else float(error)
        except TypeError:
            raise InputError(f"errors: {name}: expected a number, found {error!r}", "an error is a fraction") from None
    for name, rate in rates.items():
        if rate is not None and not 0 <= rate <= 1:
            meant = f"did you mean {rate / 100:g}? " if 1 < rate <= 100 else ""
            raise InputError(f"errors: {name}: {rate:g} is not between 0 and 1", f"{meant}an error is a fraction")
    return rates


def _plain(value: Any) -> Any:
    """Return types that JSON knows: arrays as lists, NaN as null."""
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and value != value else value
