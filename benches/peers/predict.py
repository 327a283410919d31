#!/usr/bin/env python3
"""Predicts with a mixture in stlf and with its exported file in ONNX Runtime, one thread each, and prints one table.

Checks on the way that both give the same probabilities. `--quick` times fewer runs.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

from environment import build, enter
from stopwatch import Stopwatch

REQUIREMENTS = pathlib.Path(__file__).with_name("requirements-predict.txt")
KINDS = {
    "one": ("63 columns, one model", (-1, 63), "f8"),
    "four": ("63 columns, four models", (-1, 63), "f8"),
    "pictures": ("28 × 28 pixels, one cnn", (-1, 1, 28, 28), "f4"),
}


def ours(binary, folder, kind, runs):
    """Seconds of each run, on one thread."""
    command = [binary, "time", folder, kind, str(runs)]
    environment = os.environ | {"RAYON_NUM_THREADS": "1"}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return json.loads(done.stdout)


def theirs(folder, shape, precision, runs):
    """The same in ONNX Runtime, and how far its probabilities are from ours."""
    import numpy
    import onnxruntime

    samples = numpy.fromfile(folder / "samples", dtype="<f8").astype(precision).reshape(shape)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        str(folder / "mixture.onnx"), options, providers=["CPUExecutionProvider"]
    )
    seconds = []
    for _ in range(runs):
        watch = Stopwatch()
        (probabilities,) = session.run(["probabilities"], {"samples": samples})
        seconds.append(watch.seconds())
    given = numpy.fromfile(folder / "probabilities", dtype="<f4").reshape(probabilities.shape)
    return seconds, float(abs(probabilities - given).max())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    options = parser.parse_args()
    enter(REQUIREMENTS)
    binary = build("--package", "stlf-bundle", "--example", "predict_peer")
    rounds, runs = (1, 10) if options.quick else (5, 40)
    print("| 10,000 samples | stlf | ONNX Runtime | ratio | furthest apart |\n|---|---|---|---|---|")
    for kind, (name, shape, precision) in KINDS.items():
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            subprocess.run([binary, "export", folder, kind], check=True)
            mine, peers, furthest = [], [], 0.0
            for _ in range(rounds):
                mine += ours(binary, folder, kind, runs)
                seconds, apart = theirs(folder, shape, precision, runs)
                peers, furthest = peers + seconds, max(furthest, apart)
            assert furthest < 1e-5, f"{kind}: {furthest} apart"
            ms, peer = (1000 * statistics.median(seconds) for seconds in (mine, peers))
            print(f"| {name} | {ms:.2f} ms | {peer:.2f} ms | {peer / ms:.2f} × | {furthest:.0e} |", flush=True)


if __name__ == "__main__":
    main()
