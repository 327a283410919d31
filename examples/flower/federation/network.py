"""The paper's CNN for digits, in PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import numpy.typing as npt
import torch
from flwr.app import ArrayRecord
from torch import nn

BATCH = 32


class Digits(nn.Module):
    """Two convolutions and two layers."""

    def __init__(self) -> None:
        """With PyTorch's first values."""
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Conv2d(1, 10, 5), nn.MaxPool2d(2), nn.ReLU()),
            *(nn.Conv2d(10, 20, 5), nn.MaxPool2d(2), nn.ReLU()),
            *(nn.Flatten(), nn.Linear(320, 50), nn.ReLU(), nn.Linear(50, 10)),
        )

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Give a number per class."""
        return self.layers(pictures)


def of(arrays: ArrayRecord) -> Digits:
    """Make the network with these parameters."""
    net = Digits()
    net.load_state_dict(arrays.to_torch_state_dict())
    return net


def fit(net: Digits, pictures: npt.NDArray, labels: npt.NDArray, epochs: int, seed: int) -> float:
    """Train for some epochs; give the mean loss of the last."""
    x, y = torch.from_numpy(pictures), torch.from_numpy(labels)
    optimiser = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    generator = torch.Generator().manual_seed(seed)
    total = 0.0
    for _ in range(epochs):
        total = 0.0
        for batch in torch.randperm(len(x), generator=generator).split(BATCH):
            loss = nn.functional.cross_entropy(net(x[batch]), y[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            total += loss.item() * len(batch)
    return total / len(x)


def predictor(arrays: ArrayRecord) -> Callable[[npt.NDArray], npt.NDArray]:
    """Make a function of pictures that gives a row of probabilities for each."""
    net = of(arrays)

    @torch.no_grad()
    def predict(pictures: npt.NDArray) -> npt.NDArray:
        return net(torch.from_numpy(pictures)).softmax(dim=1).numpy()

    return predict
