"""Drawn digits as arrays."""

import numpy as np
import pytest

import stlf
from stlf.digits import strokes


def test_a_digit_depends_on_seed_style_half_and_number_alone() -> None:
    pictures, labels = strokes(40, seed=3)
    fewer, fewer_labels = strokes(10, seed=3)
    assert np.array_equal(fewer, pictures[:10])
    assert np.array_equal(fewer_labels, labels[:10])
    assert set(labels.tolist()) <= set(range(10))
    others = [strokes(40, seed=4), strokes(40, seed=3, half="test"), strokes(40, "coarse", seed=3)]
    assert all(not np.array_equal(pictures, other) for other, _ in others)


def test_each_style_is_its_own() -> None:
    brightness = {style: float(strokes(200, style)[0].mean()) for style in ("clean", "coarse", "textured")}
    assert brightness["clean"] < -0.6  # light on black
    assert brightness["textured"] > -0.5


@pytest.mark.parametrize("wrong", [{"style": "neat"}, {"half": "both"}])
def test_what_is_not_there_is_named(wrong: dict[str, str]) -> None:
    with pytest.raises(stlf.InputError, match="there is no"):
        strokes(1, **wrong)
