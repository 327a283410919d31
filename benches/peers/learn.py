#!/usr/bin/env python3
"""Trains the paper's CNN with stlf and with PyTorch, in one run, one thread each, and prints one table.

Checks on the way that both compute the same outputs and gradients and read each other's models.
`--accuracy DATA` also trains on all of MNIST in both (minutes). `--quick` times for a second only.
"""

import argparse
import gzip
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from environment import build, enter

REQUIREMENTS = pathlib.Path(__file__).with_name("requirements-learn.txt")


def peer(binary, *words):
    """What the engine's own program prints."""
    done = subprocess.run([binary, *map(str, words)], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout) if done.stdout else None


def samples(folder):
    import numpy
    import torch

    inputs = numpy.fromfile(folder / "inputs", dtype="<f4").reshape(-1, 1, 28, 28)
    labels = numpy.fromfile(folder / "labels", dtype=numpy.uint8).astype("int64")
    return torch.from_numpy(inputs), torch.from_numpy(labels)


def check_agreement(binary, folder):
    """Outputs, gradients and files, both ways. Fails where they differ."""
    import numpy
    import torch
    from learn_torch import BATCH, Cnn
    from safetensors.torch import load_file, save_file
    from torch.nn import functional as F

    inputs, labels = samples(folder)
    file = folder / "model.safetensors"
    furthest = {}
    for origin in ("stlf", "PyTorch"):
        model = Cnn().eval()
        if origin == "stlf":
            peer(binary, "initial", folder)
            model.load_state_dict(load_file(file))
        else:
            save_file(model.state_dict(), file)
        peer(binary, "outputs", folder)
        x = inputs[:BATCH].clone().requires_grad_()
        outputs = model(x)
        F.cross_entropy(outputs, labels[:BATCH]).backward()
        ours = load_file(folder / "gradients.safetensors")
        theirs = {name: p.grad for name, p in model.named_parameters()}
        assert ours.keys() == theirs.keys()

        def difference(name, a, b):
            relative = ((a - b).abs().max() / b.abs().max()).item()
            furthest[name] = max(furthest.get(name, 0.0), relative)
            assert relative < 1e-4, f"{origin}'s model, {name}: {relative}"

        for name, gradient in theirs.items():
            difference("gradients", ours[name], gradient)
        read = lambda name: torch.from_numpy(numpy.fromfile(folder / name, dtype="<f4"))
        difference("outputs", read("outputs"), outputs.detach().flatten())
        difference("input gradients", read("input-gradients"), x.grad.flatten())
    return furthest


def torch_rates(folder, seconds, limited):
    """Steps per second of both PyTorch forms, in a process of their own as its kernels are chosen at start."""
    # Compiled kernels are kept by source, not by instruction set: a folder for each.
    environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(folder / f"inductor-{limited}")}
    if limited:
        environment |= {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"}
    command = [sys.executable, __file__, "--torch", str(folder), "--seconds", str(seconds)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def time_torch(folder, seconds):
    import torch
    from learn_torch import eager, grouped, peak

    torch.set_num_threads(1)
    data = samples(folder)
    print(json.dumps({"eager": eager(*data, seconds), "grouped": grouped(*data, seconds), "peak": peak(seconds)}))


def speed(binary, folder, seconds, repeats):
    """Rows of the table: both engines on each instruction set, interleaved, medians."""
    kernels = peer(binary, "kernels")
    for name in [k for k in ("avx512", "avx2") if k in kernels]:
        ours, theirs = [], []
        for _ in range(repeats):
            ours.append(peer(binary, "steps", folder, name, seconds))
            theirs.append(torch_rates(folder, seconds, limited=name == "avx2"))
            ours.append(peer(binary, "steps", folder, name, seconds))
        rate = statistics.median(o["steps_per_second"] for o in ours)
        eager, grouped, peak = (statistics.median(t[key] for t in theirs) for key in ("eager", "grouped", "peak"))
        done = rate * ours[0]["operations_per_step"] / 1e9
        yield [
            name,
            f"{rate:,.0f}",
            f"{eager:,.0f}",
            f"{grouped:,.0f}",
            f"{rate / eager:.1f} ×, {rate / grouped:.1f} ×",
            f"{done:.0f} of {peak:.0f} ({done / peak:.0%})",
        ]


def print_table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)


def mnist(folder, half):
    import numpy
    import torch

    prefix = {"train": "train", "test": "t10k"}[half]
    read = lambda name: gzip.decompress((folder / name).read_bytes())
    images = read(f"{prefix}-images-idx3-ubyte.gz")[16:]
    labels = read(f"{prefix}-labels-idx1-ubyte.gz")[8:]
    images = numpy.frombuffer(images, numpy.uint8).reshape(-1, 1, 28, 28).astype("f4") / 127.5 - 1
    return torch.from_numpy(images), torch.from_numpy(numpy.frombuffer(labels, numpy.uint8).astype("int64"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="shorter timing")
    parser.add_argument("--accuracy", type=pathlib.Path, metavar="DATA", help="folder with MNIST")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--torch", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=4.0, help="time of each measurement")
    options = parser.parse_args()
    if options.torch:
        return time_torch(options.torch, options.seconds)
    enter(REQUIREMENTS)
    binary = build("--package", "stlf-learn", "--example", "peer")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        peer(binary, "export", folder)
        for name, difference in check_agreement(binary, folder).items():
            print(f"{name}: at most {difference:.1e} of the largest apart", file=sys.stderr)
        seconds, repeats = (1.0, 1) if options.quick else (options.seconds, 3)
        head = ["steps per second", "stlf", "PyTorch eager", "ten models grouped, compiled", "ratios", "GFLOP/s of peak"]
        print_table(head, speed(binary, folder, seconds, repeats))
        for threads in range(1, os.cpu_count() + 1):
            fleet = peer(binary, "fleet", folder, threads, seconds)
            print(f"ten devices, {threads} threads: {fleet['steps_per_second']:,.0f} steps/s, {fleet['peak_mib']} MiB")
        if options.accuracy:
            import torch
            from learn_torch import accuracy

            torch.set_num_threads(os.cpu_count())
            ours = [peer(binary, "accuracy", options.accuracy, options.epochs, seed) for seed in (1, 2, 3)]
            print(f"\nstlf after {options.epochs} epochs:", ", ".join(f"{o['accuracy']:.2%}" for o in ours))
            sets = mnist(options.accuracy, "train"), mnist(options.accuracy, "test")
            theirs = accuracy(*sets, options.epochs, 1)
            print(f"PyTorch after {options.epochs} epochs: {theirs:.2%}")


if __name__ == "__main__":
    main()
