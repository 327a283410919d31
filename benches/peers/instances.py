"""Fleets to plan, from a seed, and the costs that the paper's bound gives them."""

import math

import numpy as np

DELTA = 1e-3
ENERGY_EPSILON = 1e-3


def fleet(devices, seed, source_weight):
    """A `stlf-problem/1` document under the paper's bound.

    Half of the devices have labels. A device's data is a point in the unit square; divergence grows
    with distance and is symmetric, 0 to 2. Powers and rates are drawn from the paper's ranges.
    """
    rng = np.random.default_rng(seed)
    place = rng.random((devices, 2))
    apart = np.linalg.norm(place[:, None] - place[None], axis=2)
    divergence = np.minimum(2.0, 2.0 * apart)
    watts = 1e-3 * 10 ** (rng.uniform(23, 25, devices) / 10)
    energy = 1e9 / rng.uniform(63e6, 85e6, (devices, devices)) * watts[:, None]
    labeled = rng.permutation(devices) < (devices + 1) // 2
    return {
        "format": "stlf-problem/1",
        "devices": [
            {
                "name": f"d{i}",
                "labeled": int(rng.integers(800, 2400)) if labeled[i] else 0,
                "unlabeled": int(rng.integers(100, 1000)),
                "source_error": float(rng.uniform(0.04, 0.45)) if labeled[i] else None,
            }
            for i in range(devices)
        ],
        "divergence": divergence.tolist(),
        "link_energy": energy.tolist(),
        "weights": {"source": source_weight, "target": 1.0, "energy": 0.05},
        "bound": {"kind": "paper", "delta": DELTA, "complexity": "none"},
        "energy_epsilon": ENERGY_EPSILON,
    }


def bounds(problem):
    """S by device (None without labels) and T by sender and receiver, both without weights."""
    devices = problem["devices"]
    samples = np.array([d["labeled"] + d["unlabeled"] for d in devices], dtype=float)
    deviation = np.sqrt(math.log(2 / problem["bound"]["delta"]) / (2 * samples))
    error = np.array([math.nan if d["source_error"] is None else d["source_error"] for d in devices])
    source = [None if d["labeled"] == 0 else e + 3 * s for d, e, s in zip(devices, error, deviation)]
    target = (
        error[:, None]
        + 0.5 * np.array(problem["divergence"])
        + 6 * (deviation[:, None] + deviation[None])
    )
    return source, target


def costs(problem):
    """Facility location: opening costs f by sender, and c by sender and receiver."""
    source, target = bounds(problem)
    weights = problem["weights"]
    energy = np.array(problem["link_energy"]) / (1 + problem["energy_epsilon"])
    opening = [None if s is None else weights["source"] * s for s in source]
    return opening, weights["target"] * target + weights["energy"] * energy
