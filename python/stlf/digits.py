"""Digits drawn from a seed, for trying things out without any file; docs/data.md shows them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from stlf import _internal
from stlf.fleet import Inputs


def strokes(
    samples: int, style: str = "clean", *, half: str = "train", seed: int = 0
) -> tuple[Inputs, npt.NDArray[np.int64]]:
    """Draw so many digits: pictures of 28×28 pixels from −1 to 1, and what each shows.

    `style` is `clean` (light on black), `coarse` (16×16, another hand) or `textured` (over textures, grey); they stand
    to each other as MNIST, USPS and MNIST-M do. A digit depends on the seed, the style, the half (`train` or `test`)
    and its number, and on nothing else.

    >>> pictures, labels = strokes(100)
    >>> pictures.shape, float(pictures.min()), float(pictures.max())
    ((100, 1, 28, 28), -1.0, 1.0)
    >>> np.array_equal(strokes(10)[0], pictures[:10])
    True
    """
    pixels, labels = _internal.draw_strokes(samples, style=style, half=half, seed=seed)
    return pixels.reshape(samples, 1, 28, 28), labels
