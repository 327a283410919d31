"""Devices and their data, which stay where they are: arrays are read in place wherever NumPy allows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from stlf.errors import InputError, optional

Inputs = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False, repr=False)
class Device:
    """One device: its inputs, sample by sample, and which of them have a label.

    >>> Device.of("gate", [[0.1, 0.2], [0.3, 0.4]], [1, -1])
    Device('gate', 1 labeled, 1 unlabeled, inputs of 2)
    """

    name: str
    """Its name, unique in the fleet."""
    inputs: Inputs
    """All samples, labeled or not."""
    labels: npt.NDArray[Any]
    """One per sample; only those where `known` is true have a meaning."""
    known: npt.NDArray[np.bool_]
    """Whether a sample has a label."""

    @staticmethod
    def of(name: str, inputs: npt.ArrayLike, labels: npt.ArrayLike | None = None) -> Device:
        """Create a device from anything that NumPy accepts. A label of -1, None or NaN means that there is no label.

        >>> Device.of("roof", [[1.0]], None).unlabeled
        1
        """
        array = np.ascontiguousarray(inputs, dtype=np.float32)
        if array.ndim == 1:
            array = array.reshape(-1, 1)
        if labels is None:
            count = len(array)
            return Device(name, array, np.full(count, -1), np.zeros(count, dtype=np.bool_))
        given = np.asarray(labels)
        if given.shape != (len(array),):
            raise InputError(
                f"{name}: labels of shape {given.shape} for {len(array)} samples",
                "give one label per sample, -1 or None where there is none",
            )
        return Device(name, array, given, _known(given))

    @property
    def labeled(self) -> int:
        """The number of samples with a label."""
        return int(np.count_nonzero(self.known))

    @property
    def unlabeled(self) -> int:
        """The number of samples without a label."""
        return len(self.inputs) - self.labeled

    def __len__(self) -> int:
        """The number of samples."""
        return len(self.inputs)

    def __repr__(self) -> str:
        """Its name and its counts."""
        shape = "×".join(str(side) for side in self.inputs.shape[1:])
        return f"Device({self.name!r}, {self.labeled} labeled, {self.unlabeled} unlabeled, inputs of {shape})"


@dataclass(frozen=True, eq=False, repr=False)
class Fleet:
    """The devices to plan for.

    >>> fleet = Fleet.from_devices({"gate": ([[0.0], [1.0]], [0, 1]), "roof": ([[0.5]], None)})
    >>> fleet
    Fleet(2 devices, 1 with labels, 3 samples)
    >>> fleet["gate"].labeled
    2
    """

    devices: tuple[Device, ...]
    """The devices, in the order in which they were given."""

    def __post_init__(self) -> None:
        """Check what all devices must have in common."""
        if not self.devices:
            raise InputError("devices: there are none", "give at least one")
        seen: set[str] = set()
        for place, device in enumerate(self.devices):
            if device.name in seen:
                raise InputError(f"devices[{place}].name: {device.name!r} is there twice", "names must differ")
            seen.add(device.name)
            if not len(device):
                raise InputError(f"devices[{place}] ({device.name}): it has no samples", "every device needs a sample")

    @staticmethod
    def from_arrays(inputs: npt.ArrayLike, labels: npt.ArrayLike | None, sample_domain: npt.ArrayLike) -> Fleet:
        """Split one set of arrays by the device that each sample belongs to.

        The arguments are X, y and sample_domain as in skada: a label of -1 or None is none. Devices come in the order
        of their first samples and are called by their domain. Samples of a device that stand together are not
        copied.

        >>> X = np.arange(8, dtype=np.float32).reshape(4, 2)
        >>> Fleet.from_arrays(X, [0, 1, -1, -1], ["gate", "gate", "roof", "roof"]).names
        ['gate', 'roof']
        """
        x = np.asarray(inputs, dtype=np.float32)
        domains = np.asarray(sample_domain)
        y = None if labels is None else np.asarray(labels)
        for what, given in (("sample_domain", domains), ("labels", y)):
            if given is not None and given.shape != (len(x),):
                raise InputError(f"{what}: shape {given.shape} for {len(x)} samples", "give one per sample")
        values, first, member = np.unique(domains, return_index=True, return_inverse=True)
        devices = []
        for domain in np.argsort(first, kind="stable"):
            own = np.flatnonzero(member == domain)
            stand_together = own[-1] - own[0] + 1 == len(own)
            rows = slice(int(own[0]), int(own[-1]) + 1) if stand_together else own
            devices.append(Device.of(str(values[domain]), x[rows], None if y is None else y[rows]))
        return Fleet(tuple(devices))

    @staticmethod
    def from_devices(
        devices: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike | None]]
        | Sequence[tuple[npt.ArrayLike, npt.ArrayLike | None] | Device],
    ) -> Fleet:
        """Take a pair of inputs and labels per device, with names or without.

        >>> Fleet.from_devices([([[0.0], [1.0]], [0, 1]), ([[0.5]], None)]).names
        ['d1', 'd2']
        """
        if isinstance(devices, Mapping):
            return Fleet(tuple(Device.of(str(name), *pair) for name, pair in devices.items()))
        taken = (
            device if isinstance(device, Device) else Device.of(f"d{place}", *device)
            for place, device in enumerate(devices, start=1)
        )
        return Fleet(tuple(taken))

    def map(self, function: Callable[[Inputs], npt.ArrayLike]) -> Fleet:
        """Replace every device's inputs, for example by features that your own model computes.

        >>> fleet = Fleet.from_devices([([[1.0, 2.0]], None)])
        >>> fleet.map(lambda x: x.sum(axis=1, keepdims=True))["d1"].inputs
        array([[3.]], dtype=float32)
        """
        mapped = []
        for device in self.devices:
            inputs = np.ascontiguousarray(function(device.inputs), dtype=np.float32)
            if len(inputs) != len(device):
                raise InputError(
                    f"{device.name}: {len(device)} samples became {len(inputs)}", "give one row per sample"
                )
            mapped.append(Device(device.name, inputs, device.labels, device.known))
        return Fleet(tuple(mapped))

    @property
    def names(self) -> list[str]:
        """The devices' names, in their order."""
        return [device.name for device in self.devices]

    def plot(self, ax: Any = None) -> Any:
        """Draw how many samples each device has, with and without a label. Returns matplotlib's axes.

        >>> Fleet.from_devices({"gate": ([[0.0], [1.0]], [1, -1]), "roof": ([[0.5]], None)}).plot().get_ylabel()
        'samples'
        """
        if ax is None:
            ax = optional("matplotlib.pyplot", "plot()", "plot").subplots()[1]
        labeled = [device.labeled for device in self.devices]
        unlabeled = [device.unlabeled for device in self.devices]
        ax.bar(range(len(self)), labeled, label="with a label")
        ax.bar(range(len(self)), unlabeled, bottom=labeled, label="without")
        ax.set_xticks(range(len(self)), self.names, rotation=90)
        ax.set_ylabel("samples")
        ax.legend()
        return ax

    def place(self, name: str | int) -> int:
        """The position of a device in the order.

        >>> Fleet.from_devices([([[0.0]], None)]).place("d1")
        0
        """
        return place_of(name, self.names)

    def __getitem__(self, name: str | int) -> Device:
        """A device by its name or position."""
        return self.devices[self.place(name)]

    def __iter__(self) -> Iterator[Device]:
        """All devices."""
        return iter(self.devices)

    def __len__(self) -> int:
        """The number of devices."""
        return len(self.devices)

    def __repr__(self) -> str:
        """The numbers of devices and samples."""
        labeled = sum(device.labeled > 0 for device in self.devices)
        samples = sum(len(device) for device in self.devices)
        return f"Fleet({len(self)} devices, {labeled} with labels, {samples:,} samples)"


def place_of(name: str | int, names: Sequence[str]) -> int:
    """The position of a name, or an error that says what was probably meant.

    >>> place_of("gaet", ["gate", "roof"])
    Traceback (most recent call last):
    stlf.errors.InputError: there is no device 'gaet'
    hint: did you mean 'gate'?
    """
    if isinstance(name, int):
        if -len(names) <= name < len(names):
            return name % len(names)
        raise InputError(f"there is no device at position {name}", f"there are {len(names)} devices")
    try:
        return names.index(name)
    except ValueError:
        from difflib import get_close_matches

        near = get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "name one of " + ", ".join(names[:8])
        raise InputError(f"there is no device {name!r}", hint) from None


def _known(labels: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which samples have a label: all labels except -1, None and NaN."""
    if labels.dtype.kind in "iuf":
        return np.asarray((labels != -1) & (labels == labels))
    if labels.dtype.kind == "O":
        return np.fromiter(_are_known(labels), dtype=np.bool_, count=len(labels))
    return np.ones(len(labels), dtype=np.bool_)


def _are_known(labels: Iterable[Any]) -> Iterator[bool]:
    for label in labels:
        yield label is not None and label == label and not (isinstance(label, int | np.integer) and label == -1)
