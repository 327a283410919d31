"""A mixture as a module of PyTorch, which is imported with this file and not before."""

from __future__ import annotations

from typing import Any

import torch

from stlf import _internal


class MixtureModule(torch.nn.Module):  # type: ignore[misc]
    """Samples as they are to probabilities: scaling, every model, and their weighted mean."""

    def __init__(self, inner: _internal.Mixture) -> None:
        """Build the networks and copy the parameters."""
        super().__init__()
        self._is_table = inner.columns is not None
        self._units = len(inner.units)
        is_series = inner.windows is not None
        for at, (centre, factor, limit) in enumerate(inner.units):
            for name, values in (("centre", centre), ("factor", factor), ("limit", limit)):
                numbers = torch.from_numpy(values.copy())
                # The unit of a channel is that of all its readings.
                self.register_buffer(f"{name}{at}", numbers[:, None] if is_series else numbers)
        shares = inner.class_shares
        self.register_buffer("class_shares", None if shares is None else torch.tensor(shares, dtype=torch.float32))
        parts = inner.parts()
        channels, rows, columns = inner.sample_shape
        self._shape: tuple[int, ...] = (channels, rows, columns)
        if self._is_table:
            self._shape = (channels, columns) if is_series else (columns,)
        self._shares = [share for share, _, _ in parts]
        self._corrected = [corrected for _, corrected, _ in parts]
        self.models = torch.nn.ModuleList(_network(inner, tensors) for _, _, tensors in parts)

    def forward(self, samples: Any) -> Any:
        """Return the probabilities of the classes, one row per sample."""
        inputs = self._scaled(samples)
        mixed = None
        for model, share, corrected in zip(self.models, self._shares, self._corrected, strict=True):
            probabilities = torch.softmax(model(inputs), dim=1)
            if corrected:
                probabilities = probabilities * self.class_shares
                probabilities = probabilities / probabilities.sum(dim=1, keepdim=True)
            mixed = share * probabilities if mixed is None else mixed + share * probabilities
        return mixed

    def _scaled(self, samples: Any) -> Any:
        if not self._is_table:
            return (samples.float() / 127.5 - 1).reshape(-1, *self._shape)
        samples = samples.reshape(-1, *self._shape)
        if self._units == 0:
            return samples.float()
        # In double precision: small differences of large numbers would be lost.
        rows, lists = samples.double(), []
        for at in range(self._units):
            centre, factor, limit = (getattr(self, f"{name}{at}") for name in ("centre", "factor", "limit"))
            lists.append(torch.minimum(torch.maximum((rows - centre) * factor, -limit), limit))
        return torch.cat(lists, dim=1).float()


def _network(inner: _internal.Mixture, tensors: list[Any]) -> Any:
    """One model, in evaluation mode."""
    layers: list[Any] = []
    given = iter(tensors)
    is_flat = inner.columns is not None and inner.windows is None
    for kind, numbers in inner.layers:
        if kind == "Linear" and not is_flat:
            layers.append(torch.nn.Flatten())
            is_flat = True
        if kind in ("Conv1d", "Conv2d", "Linear"):
            (_, shape, weight), (_, _, bias) = next(given), next(given)
            # A convolution has the size of its kernel besides its channels.
            layer = getattr(torch.nn, kind)(shape[1], shape[0], *shape[2:3])
            with torch.no_grad():
                layer.weight.copy_(torch.from_numpy(weight.copy()).reshape(shape))
                layer.bias.copy_(torch.from_numpy(bias.copy()))
            layers.append(layer)
        elif kind in ("MaxPool1d", "MaxPool2d"):
            layers.append(getattr(torch.nn, kind)(2))
        else:
            layers.append(getattr(torch.nn, kind)(*numbers))
    return torch.nn.Sequential(*layers).eval()


def module(inner: _internal.Mixture) -> Any:
    """Return the module of a mixture, in evaluation mode.

    >>> callable(module)
    True
    """
    return MixtureModule(inner).eval()
