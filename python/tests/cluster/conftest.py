"""A small run to divide, what one machine makes of it, and a way to see and stop its processes."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from ports import free_ports

DEADLINE = 600.0

CONFIG = """\
seeds = [1, 2]
[data]
samples = 3000
[partition]
kind = "paper"
devices = 4
scale = 0.1
[training]
steps = 4000
[compare]
methods = ["st-lf", "fedavg"]
"""


def wait_until(what: str, done: Callable[[], object]) -> None:
    """Waits, and fails after the deadline with what was waited for."""
    deadline = time.monotonic() + DEADLINE
    while not done():
        assert time.monotonic() < deadline, f"{what}: not within {DEADLINE} s"
        time.sleep(0.02)


def files_of(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.fixture(scope="session")
def until() -> Callable[[str, Callable[[], object]], None]:
    return wait_until


@pytest.fixture(scope="session")
def contents() -> Callable[[Path], dict[str, bytes]]:
    return files_of


@pytest.fixture(scope="session")
def stlf() -> Path:
    found = shutil.which(os.environ.get("STLF_BIN") or "stlf")
    if found is None:
        pytest.skip("no stlf command: build it and set STLF_BIN to its path")
    return Path(found)


@pytest.fixture(scope="session")
def one_machine(stlf: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Every file of the run as one machine leaves it."""
    folder = tmp_path_factory.mktemp("one machine")
    (folder / "small.toml").write_text(CONFIG)
    command = [stlf, "run", "small.toml", "--to", "whole"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=DEADLINE)
    return files_of(folder / "whole")


@dataclass
class Site:
    """A folder in which the command is given; the space in its name is meant."""

    folder: Path
    stlf: Path
    environment: dict[str, str] = field(default_factory=dict)
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def run(self) -> Path:
        return self.folder / "runs" / "small"

    @property
    def work(self) -> Path:
        return self.folder / "runs" / "small.shards"

    def command(self, *arguments: str) -> subprocess.Popen[str]:
        """`python -m stlf.cluster`, in a process group of its own, as a terminal starts it."""
        child = subprocess.Popen(
            [sys.executable, "-m", "stlf.cluster", "small.toml", "--stlf", str(self.stlf), *arguments],
            cwd=self.folder,
            env={**os.environ, **self.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.started.append(child)
        return child

    def finish(self, child: subprocess.Popen[str]) -> tuple[int, str]:
        """Its exit code and what it said on standard error."""
        out, err = child.communicate(timeout=DEADLINE)
        return child.returncode, err + out

    def made(self, path: Path) -> tuple[int, int]:
        """Which file this is, and when it was written."""
        found = path.stat()
        return found.st_ino, found.st_mtime_ns

    def _is_over(self) -> bool:
        child = self.started[-1]
        assert child.poll() is None, child.communicate()
        return False

    def first_model(self) -> Path:
        """A model that a shard has trained; the first that is there."""
        models = "*/seed-*/models/*.safetensors"
        wait_until("the first model", lambda: self._is_over() or list(self.work.glob(models)))
        return next(self.work.glob(models))

    def at_work(self, shard: str = "") -> list[int]:
        """Processes of `stlf` that work on this run, or on one shard of it."""
        own = os.fsencode(self.work / shard)
        found = []
        for process in Path("/proc").iterdir():
            if process.name.isdecimal():
                try:
                    words = (process / "cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                if words[0] == os.fsencode(self.stlf) and any(word.startswith(own) for word in words):
                    found.append(int(process.name))
        return found


@pytest.fixture
def site(stlf: Path, tmp_path: Path) -> Iterator[Site]:
    if not Path("/proc/self/cmdline").exists():
        pytest.skip("no /proc: these tests look for processes there")
    folder = tmp_path / "a site"
    folder.mkdir()
    (folder / "small.toml").write_text(CONFIG)
    site = Site(folder, stlf)
    yield site
    for child in site.started:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    for process in site.at_work():
        os.kill(process, signal.SIGKILL)


@pytest.fixture
def stand_in_slurm(tmp_path: Path) -> dict[str, str]:
    """The environment in which sbatch, squeue and scancel are our own."""
    commands, jobs = tmp_path / "commands", tmp_path / "jobs"
    commands.mkdir()
    jobs.mkdir()
    program = Path(__file__).with_name("stand_in_slurm.py").read_text()
    for name in ("sbatch", "squeue", "scancel"):
        (commands / name).write_text(f"#!{sys.executable}\n{program}")
        (commands / name).chmod(0o755)
    return {"PATH": f"{commands}{os.pathsep}{os.environ['PATH']}", "STAND_IN_SLURM": str(jobs)}


SLURM = """\
ClusterName=try
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={controller}
SlurmdPort={node}
AuthInfo=socket={folder}/munge.socket
MpiDefault=none
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
KillWait=5
SchedulerParameters=sched_interval=1,batch_sched_delay=0
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
"""


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a Slurm with one node: this machine's, or one that is started for the tests."""
    if not shutil.which("sbatch"):
        pytest.skip("no sbatch: Slurm is not installed")
    if subprocess.run(["sinfo"], capture_output=True, timeout=DEADLINE).returncode == 0:
        yield {}
        return
    daemons = ("munged", "slurmctld", "slurmd")
    paths = [shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") for name in daemons]
    if not all(paths) or os.geteuid() != 0:
        pytest.skip("no Slurm at work, and starting one needs root and munged, slurmctld and slurmd")
    folder = tmp_path_factory.mktemp("slurm")
    (folder / "state").mkdir()
    (folder / "spool").mkdir()
    (folder / "munge.key").write_bytes(os.urandom(1024))
    (folder / "munge.key").chmod(0o400)
    host = socket.gethostname().split(".")[0]
    conf = folder / "slurm.conf"
    ports = dict(zip(("controller", "node"), free_ports(2), strict=True))
    conf.write_text(SLURM.format(folder=folder, host=host, cores=os.cpu_count(), **ports))
    environment = {"SLURM_CONF": str(conf)}
    munge = [
        f"--{name}={folder}/munge.{end}"
        for name, end in (
            ("key-file", "key"),
            ("socket", "socket"),
            ("pid-file", "pid"),
            ("log-file", "log"),
            ("seed-file", "seed"),
        )
    ]
    commands = [[paths[0], "--foreground", "--force", *munge], [paths[1], "-D"], [paths[2], "-D"]]
    running = []
    try:
        for command in commands:
            running.append(
                subprocess.Popen(
                    command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
            )
            if command is commands[0]:
                wait_until("munged", (folder / "munge.socket").exists)

        def idle() -> bool:
            asked = ["sinfo", "--noheader", "--format=%t"]
            said = subprocess.run(asked, env={**os.environ, **environment}, capture_output=True, timeout=DEADLINE)
            return said.stdout.strip() == b"idle"

        wait_until("a node of Slurm", idle)
        yield environment
    finally:
        for child in reversed(running):
            child.terminate()
        for child in running:
            child.wait(DEADLINE)
