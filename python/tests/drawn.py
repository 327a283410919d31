"""Fleets and problems drawn from seeds."""

import numpy as np

import stlf


def fleet_of(seed: int, devices: int = 6, samples: int = 80) -> stlf.Fleet:
    """Devices whose data lie at different places, every second one with labels."""
    rng = np.random.default_rng(seed)
    made = {}
    for place in range(devices):
        inputs = rng.normal(rng.uniform(-2, 2), 1, (samples, 3)).astype(np.float32)
        labels = (inputs[:, 0] > 0).astype(int) if place % 2 == 0 else None
        made[f"d{place}"] = (inputs, labels)
    return stlf.Fleet.from_devices(made)


def problem_of(seed: int, devices: int = 10) -> stlf.Problem:
    """A problem with drawn measurements, some links missing."""
    rng = np.random.default_rng(seed)
    divergence = rng.uniform(0, 2, (devices, devices))
    energy = rng.uniform(2, 5, (devices, devices))
    energy[rng.random((devices, devices)) < 0.1] = np.nan
    energy[0, 1:] = 3.0  # somebody with labels reaches everybody
    return stlf.Problem.from_dict(
        {
            "format": "stlf-problem/1",
            "preset": "balanced",
            "devices": [
                {
                    "name": f"d{place}",
                    "labeled": int(rng.integers(50, 2000)) if place < devices // 2 else 0,
                    "unlabeled": int(rng.integers(50, 2000)),
                    "source_error": float(rng.uniform(0, 1)) if place < devices // 2 else None,
                }
                for place in range(devices)
            ],
            "divergence": (divergence + divergence.T) / 2,
            "link_energy": energy,
        }
    )
