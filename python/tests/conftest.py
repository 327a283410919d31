"""What several tests need: the command line, the reference cases."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

os.environ.setdefault("MPLBACKEND", "Agg")

# A shell that runs the tests in the background has them ignore Ctrl-C, and with them every program that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


Cli = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def cli() -> Cli:
    """The command line: STLF_BIN, or `stlf` on the path."""
    binary = os.environ.get("STLF_BIN") or shutil.which("stlf")
    if not binary:
        pytest.skip("no command line to compare with: set STLF_BIN to the program stlf")

    def run(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run([binary, *arguments], input=stdin, capture_output=True, text=True, timeout=120)

    return run


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the reference cases."""
    folder = os.environ.get("STLF_SHARED")
    if not folder:
        pytest.skip("reference cases: STLF_SHARED is not set")
    return Path(folder)
