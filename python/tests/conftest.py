"""What several tests need: the command line, the reference cases. And where skips are failures."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("MPLBACKEND", "Agg")

# A shell that runs the tests in the background has them ignore Ctrl-C, and with them every program that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


NEEDS_DATA = "no data: "
"""How the reason of a skip begins where reference cases or data sets are missing."""


def forbidden(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Makes a skip a failure where STLF_MAY_SKIP is set: `nothing` may be skipped, or only what needs `data`."""
    allowed = os.environ.get("STLF_MAY_SKIP")
    if report.skipped and allowed is not None and isinstance(report.longrepr, tuple):
        why = report.longrepr[2].removeprefix("Skipped: ")
        if not (allowed == "data" and why.startswith(NEEDS_DATA)):
            report.outcome = "failed"
            report.longrepr = f"skipped, but STLF_MAY_SKIP forbids it: {why}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    forbidden(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    forbidden(report)
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """One worker runs all tests of a file, which share what they set up; of a cluster's engines each is like a file."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFileAndEngine(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file, _, test = nodeid.partition("::")
            engine = re.search(r"\[(local|ray|hyperqueue|slurm|stand_in_slurm)\b", test)
            return f"{file}:{engine[1]}" if engine else file

    return ByFileAndEngine(config, log)


Cli = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def cli() -> Cli:
    """The command line: STLF_BIN, or `stlf` on the path."""
    binary = os.environ.get("STLF_BIN") or shutil.which("stlf")
    if not binary:
        pytest.skip("no command line to compare with: set STLF_BIN to the program stlf")

    def run(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run([binary, *arguments], input=stdin, capture_output=True, text=True, timeout=600)

    return run


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the reference cases."""
    folder = os.environ.get("STLF_SHARED")
    if not folder:
        pytest.skip(f"{NEEDS_DATA}STLF_SHARED names no folder of reference cases")
    return Path(folder)
