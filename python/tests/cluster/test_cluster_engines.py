"""What every engine must do, tried on each of them for real."""

import importlib.util
import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

import pytest

from stlf.cluster.ray import start_here

Site = Any

RAY = """
import os, sys
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
import ray
from stlf.cluster.ray import start_here
started = start_here(ray, 2, log_to_driver=False)
print("address", started["gcs_address"], flush=True)
sys.stdin.read()
"""

HYPERQUEUE = """
import sys
from hyperqueue import LocalCluster
from hyperqueue.cluster import WorkerConfig
with LocalCluster() as cluster:
    for _ in range(2):
        cluster.start_worker(WorkerConfig(cores=1))
    print("address", cluster.cluster.server_dir, flush=True)
    sys.stdin.read()
"""


# Training that ends in none of the tests' lifetimes: a shard of it ends because it was stopped.
ENDLESS = ["-c", "training.steps=100000000"]


def need(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"the Python package {package} is not installed: pip install 'stlf[{package}]'")


def served(program: str, environment: dict[str, str]) -> Iterator[str]:
    """The address of a cluster that another process holds; it ends when its standard input is closed."""
    command = [sys.executable, "-c", program]
    environment = {**os.environ, **environment}
    with subprocess.Popen(command, env=environment, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, text=True) as holder:
        assert holder.stdin and holder.stdout
        words = (line.split() for line in holder.stdout)
        yield next(line[1] for line in words if line and line[0] == "address")
        holder.stdin.close()


@pytest.fixture(scope="module")
def ray_token() -> dict[str, str]:
    """The tests' own Ray obeys the tests only."""
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


@pytest.fixture(scope="module")
def ray_address(ray_token: dict[str, str]) -> Iterator[str]:
    need("ray")
    yield from served(RAY, ray_token)


@pytest.fixture(scope="module")
def hyperqueue_address() -> Iterator[str]:
    need("hyperqueue")
    yield from served(HYPERQUEUE, {})


@pytest.fixture(params=["local", "ray", "ray-address", "hyperqueue", "hyperqueue-address", "slurm", "stand_in_slurm"])
def engine(request: pytest.FixtureRequest, site: Site) -> list[str]:
    """The arguments that choose an engine."""
    common = ["--workers", "2", "--threads", "1"]
    if request.param.endswith("slurm"):
        site.environment |= request.getfixturevalue(request.param)
        return ["--engine", "slurm", *common]
    name, _, address = request.param.partition("-")
    arguments = ["--engine", name, *common]
    if name != "local":
        need(name)
    if name == "ray" and address:
        site.environment |= request.getfixturevalue("ray_token")
    if address:
        return [*arguments, "--address", request.getfixturevalue(f"{name}_address")]
    return arguments


def test_a_killed_share_is_repeated_and_goes_on(
    site: Site, engine: list[str], one_machine: dict[str, bytes], contents: Callable[[Path], dict[str, bytes]]
) -> None:
    child = site.command(*engine)
    model = site.first_model()
    before = site.made(model)
    shard = model.relative_to(site.work).parts[0]
    for process in site.at_work(shard):
        os.kill(process, signal.SIGKILL)
    code, said = site.finish(child)
    assert code == 0, said
    number = shard.split("-")[0]
    assert f"shard {number} of 2 was lost" in said and "again, 1 of 3" in said
    assert "signal 9" in said
    assert site.made(model) == before, "what the killed shard had finished was made again"
    assert contents(site.run) == one_machine
    assert site.at_work() == []


def test_ctrl_c_stops_the_workers_and_the_same_command_goes_on(
    site: Site, engine: list[str], one_machine: dict[str, bytes], contents: Any, until: Any
) -> None:
    child = site.command(*engine)
    model = site.first_model()
    before = site.made(model)
    os.killpg(child.pid, signal.SIGINT)
    code, said = site.finish(child)
    assert code == 130, said
    assert "run the same command to continue" in said
    until("the workers are gone", lambda: not site.at_work())
    assert not site.run.exists()

    code, said = site.finish(site.command(*engine))
    assert code == 0, said
    assert site.made(model) == before
    assert contents(site.run) == one_machine


def test_sigterm_stops_the_workers_long_before_they_are_done(site: Site, engine: list[str], until: Any) -> None:
    child = site.command(*engine, *ENDLESS)
    until("both shards are at work", lambda: len(site.at_work()) == 2)
    child.send_signal(signal.SIGTERM)
    code, said = site.finish(child)
    assert code == 130, said
    until("the workers are gone", lambda: not site.at_work())


def test_a_worker_of_ray_that_dies_takes_its_share_along_and_it_is_repeated(
    site: Site, ray_address: str, ray_token: dict[str, str], until: Any
) -> None:
    site.environment |= ray_token
    child = site.command("--engine", "ray", "--workers", "2", "--address", ray_address, *ENDLESS)
    until("both shards are at work", lambda: len(site.at_work()) == 2)
    process = site.at_work("1-of-2")[0]
    worker = int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
    assert b"ray" in Path(f"/proc/{worker}/cmdline").read_bytes()
    os.kill(worker, signal.SIGKILL)
    until("the shard of the dead worker ends", lambda: process not in site.at_work())
    until("the shard is at work again", lambda: site.at_work("1-of-2"))
    child.send_signal(signal.SIGTERM)
    code, said = site.finish(child)
    assert code == 130, said
    assert "shard 1 of 2 was lost" in said and "shard 2 of 2 was lost" not in said


@pytest.mark.parametrize("engine", ["local", "ray", "ray-address", "hyperqueue"], indirect=True)
def test_shares_do_not_outlive_a_command_that_was_killed(site: Site, engine: list[str], until: Any) -> None:
    child = site.command(*engine, *ENDLESS)
    until("both shards are at work", lambda: len(site.at_work()) == 2)
    child.kill()
    child.wait()
    until("the workers are gone", lambda: not site.at_work())


def test_jobs_that_a_killed_command_left_on_a_server_are_stopped_by_the_next(
    site: Site, hyperqueue_address: str, until: Any
) -> None:
    arguments = ["--engine", "hyperqueue", "--workers", "2", "--address", hyperqueue_address]
    child = site.command(*arguments, *ENDLESS)
    until("both shards are at work", lambda: len(site.at_work()) == 2)
    child.kill()
    child.wait()
    # Of another configuration, so that it ends soon, and leaves no shard at work that could be taken for the old ones.
    code, said = site.finish(site.command(*arguments))
    assert code == 2 and "another configuration" in said
    until("the jobs that were left end", lambda: not site.at_work())


def test_more_shares_than_seeds_divide_a_seed(
    site: Site, one_machine: dict[str, bytes], contents: Callable[[Path], dict[str, bytes]]
) -> None:
    code, said = site.finish(site.command("--workers", "2", "--shards", "5"))
    assert code == 0, said
    assert sorted(path.name for path in site.work.glob("*-of-5")) == [f"{k}-of-5" for k in range(1, 6)]
    assert contents(site.run) == one_machine


def test_an_engine_that_is_missing_is_named(site: Site, tmp_path: Path) -> None:
    for name in ("ray", "hyperqueue"):
        (tmp_path / f"{name}.py").write_text(f"raise ImportError('no {name} here', name={name!r})")
    site.environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    for name in ("ray", "hyperqueue"):
        code, said = site.finish(site.command("--engine", name, "--workers", "1"))
        assert code == 2
        assert f"error: the engine {name} needs {name}\nhint: pip install 'stlf[{name}]'" in said


def test_slurm_that_is_missing_is_named(site: Site, tmp_path: Path) -> None:
    site.environment["PATH"] = str(tmp_path)
    assert shutil.which("sbatch", path=site.environment["PATH"]) is None
    code, said = site.finish(site.command("--engine", "slurm", "--workers", "1"))
    assert code == 1
    assert "error: cannot run sbatch" in said


class SlowRay:
    """A Ray whose processes start in time at a later attempt only, or fail for another reason."""

    def __init__(self, reason: str, succeeds_at: int = 3) -> None:
        self.attempts = 0
        self.reason = reason
        self.succeeds_at = succeeds_at

    def init(self, *_: Any, **__: Any) -> str:
        self.attempts += 1
        if self.attempts < self.succeeds_at:
            raise Exception(self.reason)
        return "started"

    def shutdown(self) -> None:
        pass


def test_a_ray_that_starts_too_slowly_is_started_again() -> None:
    slow = SlowRay("The current node timed out during startup.")
    assert start_here(slow, 2) == "started"
    assert slow.attempts == 3
    with pytest.raises(RuntimeError, match="did not start in time"):
        start_here(SlowRay("timed out during startup", succeeds_at=1000), 2)
    broken = SlowRay("no such file")
    with pytest.raises(Exception, match="no such file"):
        start_here(broken, 2)
    assert broken.attempts == 1
