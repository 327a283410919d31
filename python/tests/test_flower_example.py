"""The example of docs/flower.md, as `flwr run .` starts it: a SuperLink here, PyTorch clients simulated by Ray."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from ports import free_ports

pytest.importorskip("flwr", reason="the example needs Flower: pip install 'stlf[flower]'")
pytest.importorskip("ray", reason="Flower simulates with Ray: pip install 'flwr[simulation]'")
pytest.importorskip("torch", reason="the example's clients are PyTorch's: pip install 'stlf[torch]'")

EXAMPLE = Path(__file__).parents[2] / "examples" / "flower"
PROGRAMS = Path(sys.executable).parent


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A SuperLink of the test's own, which ends with it; nothing is fetched and nothing reported."""
    http, control = map(str, free_ports(2))
    values = os.environ | {
        "FLWR_HOME": str(tmp_path / "flwr"),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
        "FLWR_LOCAL_SUPERLINK_HTTP_API_PORT": http,
        "FLWR_LOCAL_CONTROL_API_PORT": control,
        "RAY_USAGE_STATS_ENABLED": "0",
        "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}",
    }
    (tmp_path / "flwr").mkdir()
    command = ["flower-superlink", "--insecure", "--simulation", "--isolation", "subprocess", "--host", "127.0.0.1"]
    command += ["--port", http, "--control-api-address", f"127.0.0.1:{control}"]
    with (tmp_path / "superlink.log").open("w") as log:
        link = subprocess.Popen(
            command, cwd=tmp_path, env=values, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            wait_for(f"http://127.0.0.1:{http}/health", link, tmp_path / "superlink.log")
            yield values
        finally:
            # The session is the SuperLink's own: it and what it started.
            os.killpg(link.pid, signal.SIGTERM)
            try:
                link.wait(timeout=600)
            except subprocess.TimeoutExpired:
                os.killpg(link.pid, signal.SIGKILL)


def wait_for(address: str, link: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline and link.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.2)
    pytest.fail(f"no SuperLink at {address}:\n{log.read_text()}")


def test_the_targets_are_better_off_than_with_fedavg(environment: dict[str, str], tmp_path: Path) -> None:
    simulation = "num-supernodes=10 client-resources-num-cpus=1"
    for _ in range(10):
        ran = subprocess.run(
            ["flwr", "run", str(EXAMPLE), "--stream", "--federation-config", simulation],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
        )
        printed = ran.stdout + ran.stderr
        # Ray gives its processes half a minute to start, which is too little where others use the machine.
        if "timed out during startup" not in printed:
            break
    figures = re.search(r"ST-LF ([\d.]+)%, FedAvg ([\d.]+)%\s+margin: ([+-][\d.]+) points", printed)
    assert figures, printed[-4000:]
    ours, theirs, margin = (float(figure) for figure in figures.groups())
    print(f"mean target accuracy: ST-LF {ours} %, FedAvg {theirs} %, margin {margin:+} points")
    assert ours > 95
    assert margin == pytest.approx(ours - theirs, abs=0.02)
    assert margin > 5
    # The plan was made of what ten clients reported, and proven.
    assert "stlf: 10 devices, 5 with labels" in printed
    assert "5 sources, 5 targets; proven optimal" in printed
