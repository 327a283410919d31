#!/usr/bin/env python3
"""Times stlf beside CVXPY and HiGHS on the same problems, in one run, and prints one table.

Makes its own virtual environment beside this file and builds stlf. `--quick` runs fewer repeats.
"""

import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import warnings

from environment import build, enter

REQUIREMENTS = pathlib.Path(__file__).with_name("requirements-plan.txt")
SOURCE_WEIGHT = 3.0


def plan(binary, path, *options):
    """The plan that stlf makes, as its JSON document."""
    command = [binary, "plan", path, "--format", "json", *options]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def duration(seconds):
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1 or unit == "µs":
            return f"{seconds * scale:.3g} {unit}"


def exact_rows(binary, folder, sizes, repeats, runs):
    """One row a size: stlf against HiGHS, interleaved, the objectives compared."""
    import exact
    from instances import costs, fleet

    for devices in sizes:
        ours, theirs = [], []
        for repeat in range(repeats):
            problem = fleet(devices, repeat, SOURCE_WEIGHT)
            path = folder / f"exact-{devices}-{repeat}.json"
            path.write_text(json.dumps(problem))
            documents = [plan(binary, path, "--solver", "exact", "--bound", "paper") for _ in range(runs)]
            objective, seconds = exact.solve(*costs(problem))
            for document in documents:
                assert document["status"] == "optimal", document["status"]
                difference = abs(document["objective"] - objective) / objective
                assert difference < 1e-6, f"{document['objective']} against {objective}"
                ours.append(document["solver"]["seconds"])
            theirs.append(seconds)
        ours, theirs = statistics.median(ours), statistics.median(theirs)
        name = f"exact, paper's bound, N = {devices}"
        yield [name, duration(ours), "HiGHS, strong form", duration(theirs), f"{theirs / ours:,.0f} ×"]


def successive_rows(binary, folder, repeats, iterations, runs):
    """Seconds per iteration at N = 10, the objectives along the way compared."""
    import successive
    from instances import fleet

    dgp, logarithms = "CVXPY, DGP", "CVXPY, logarithms by hand"
    paper, inside = "CVXPY, DGP, paper's target term", "Clarabel alone, inside CVXPY"
    ours, theirs = [], {dgp: [], logarithms: [], paper: [], inside: []}
    for repeat in range(repeats):
        problem = fleet(10, repeat, SOURCE_WEIGHT)
        path = folder / f"successive-{repeat}.json"
        path.write_text(json.dumps(problem))
        schemes = {
            dgp: successive.Scheme(problem, successive.solve_dgp),
            logarithms: successive.Scheme(problem, successive.solve_logarithms),
            paper: successive.Scheme(problem, successive.solve_dgp, paper_term=True),
        }
        for _ in range(iterations):
            for name, scheme in schemes.items():
                seconds, in_solver = scheme.step()
                theirs[name].append(seconds)
                if name == dgp:
                    theirs[inside].append(in_solver)
            for _ in range(runs):
                document = plan(binary, path, "--solver", "successive", "--bound", "paper")
                ours.append(document["solver"]["seconds"] / document["solver"]["iterations"])
        for name in (dgp, logarithms):
            compare(name, document["solver"]["trace"], schemes[name].trace)
    ours = statistics.median(ours)
    for name, seconds in theirs.items():
        seconds = statistics.median(seconds)
        label = "successive, one iteration, N = 10"
        yield [label, duration(ours), name, duration(seconds), f"{seconds / ours:,.1f} ×"]


def compare(name, ours, theirs):
    """The same form from the same start; stlf lengthens steps and so may only be ahead."""
    same_start = abs(ours[0] - theirs[0]) < 1e-6 * theirs[0]
    last = min(len(ours), len(theirs)) - 1
    assert same_start, f"{name} starts at {theirs[0]}, stlf at {ours[0]}"
    if ours[last] > theirs[last] * (1 + 1e-3):
        print(f"note: {name} is ahead: {theirs[last]:.6g} against {ours[last]:.6g}", file=sys.stderr)


def machine():
    import clarabel
    import cvxpy
    import highspy

    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines() if os.path.exists("/proc/cpuinfo") else []
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
    highs = highspy.Highs().version()
    return (
        f"{model or platform.processor()}, {os.cpu_count()} cores, {platform.system()}; "
        f"Python {platform.python_version()}, CVXPY {cvxpy.__version__}, Clarabel {clarabel.__version__}, "
        f"HiGHS {highs}"
    )


def print_table(rows):
    rows = [["problem", "stlf", "peer", "peer's time", "ratio"], *rows]
    widths = [max(len(row[k]) for row in rows) for k in range(5)]
    line = lambda row: "| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths)) + " |"
    print(line(rows[0]))
    print("|" + "|".join("-" * (w + 2) for w in widths) + "|")
    for row in rows[1:]:
        print(line(row))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats and sizes")
    parser.add_argument("--binary", help="an stlf that is built already")
    options = parser.parse_args()
    enter(REQUIREMENTS)
    # CVXPY warns of every solve that ends a little short of its tolerance; such an iterate is used.
    warnings.filterwarnings("ignore", message="Solution may be inaccurate")
    binary = options.binary or build("--package", "stlf-cli")
    sizes = [10, 50] if options.quick else [10, 50, 100, 200]
    repeats = 2 if options.quick else 5
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        rows = list(successive_rows(binary, folder, repeats, 2 if options.quick else 4, 2))
        rows += exact_rows(binary, folder, sizes, repeats, 10 if options.quick else 20)
    print_table(rows)
    print(f"\nMedians. {machine()}.")


if __name__ == "__main__":
    main()
