"""What noise on sketches buys of differential privacy, and what several sketches spend together.

docs/privacy.md has the theorems, and what they do not cover.
"""

from collections.abc import Iterable
from os import PathLike

from stlf import _internal

__all__ = ["noise_multiplier", "recorded", "spent"]


def noise_multiplier(epsilon: float, delta: float) -> float:
    """Return the least noise that is (ε, δ)-differentially private (analytic Gaussian mechanism).

    It is the standard deviation of the noise on every number, divided by the length by which replacing one sample moves
    what is published. That is 2/n for the mean of n features, so sketches with `privacy=(ε, δ)` have noise of
    `noise_multiplier(ε, δ) * 2 / n`. ε is at most 20.

    >>> round(noise_multiplier(1.0, 1e-5), 4)
    3.7306
    """
    return _internal.noise_multiplier(epsilon, delta)


def spent(multipliers: Iterable[float], delta: float) -> float:
    """Return the ε that publications with these noise multipliers spend together, at this δ.

    Each must have noise of its own. A publication that is repeated with the same noise counts once.

    >>> one = noise_multiplier(1.0, 1e-5)
    >>> [round(spent([one] * times, 1e-5), 2) for times in (0, 1, 3, 10)]
    [0.0, 1.0, 1.83, 3.62]
    """
    return _internal.privacy_spent(list(multipliers), delta)


def recorded(ledger: str | PathLike[str], delta: float) -> tuple[int, float]:
    """Return how many publications a record has, and the ε that they spent together at this δ.

    Records are what `stlf.sketch.sketch(…, ledger=…)` and `stlf node` write. A file that is not there records nothing;
    one that cannot be read is an error.

    >>> recorded("never-written.json", 1e-5)
    (0, 0.0)
    """
    return _internal.privacy_recorded(ledger, delta)
