"""Who holds what: the network of the paper's experiments, with digits drawn at each device."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from flwr.app import Context

from stlf.digits import strokes

CLASSES_PER_DEVICE = 4


@dataclass(frozen=True)
class Holding:
    """One device's digits."""

    pictures: npt.NDArray[np.float32]
    truth: npt.NDArray[np.int64]
    """What they show. Only evaluation looks at all of it."""
    labels: npt.NDArray[np.int64]
    """The same as far as the device knows it: -1 where it does not."""

    @property
    def training(self) -> npt.NDArray[np.intp]:
        """Four fifths of the samples with a label."""
        known = np.flatnonzero(self.labels >= 0)
        return known[len(known) // 5 :]

    @property
    def held_out(self) -> npt.NDArray[np.intp]:
        """The others, which tell how good the device's model is."""
        known = np.flatnonzero(self.labels >= 0)
        return known[: len(known) // 5]


def held_by(context: Context) -> Holding:
    """Give what the client of this context holds."""
    settings = context.run_config
    return _deal(
        int(context.node_config["partition-id"]),
        int(context.node_config["num-partitions"]),
        str(settings["styles"]),
        int(settings["labeled-samples"]),
        int(settings["unlabeled-samples"]),
        int(settings["seed"]),
    )


@lru_cache(maxsize=32)
def _deal(device: int, devices: int, styles: str, labeled: int, unlabeled: int, seed: int) -> Holding:
    """Deal as the paper does: the first half has labels, the others have the classes of a random one of these."""
    rng = np.random.default_rng([seed, 0])
    looks = [style.strip() for style in styles.split(",")]
    half = devices // 2
    sets = [np.sort(rng.choice(10, CLASSES_PER_DEVICE, replace=False)) for _ in range(half)]
    alike = [place if place < half else int(rng.integers(half)) for place in range(devices)]
    own = np.random.default_rng([seed, 1, device])
    shares = own.dirichlet(np.full(CLASSES_PER_DEVICE, 5.0))
    # An eighth of a source's samples is without labels, as in the paper.
    count = labeled + labeled // 8 if device < half else unlabeled
    # A seed of its own for each device: nobody holds a digit that another holds.
    drawn, shown = strokes(20 * count, looks[alike[device] % len(looks)], seed=1000 * seed + device)
    wanted = zip(sets[alike[device]], own.multinomial(count, shares), strict=True)
    rows = own.permutation(np.concatenate([np.flatnonzero(shown == digit)[:number] for digit, number in wanted]))
    truth = shown[rows]
    labels = truth.copy()
    labels[labeled if device < half else 0 :] = -1
    return Holding(drawn[rows], truth, labels)
