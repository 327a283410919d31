"""As much of sbatch, squeue and scancel as a job array needs, by the name under which it is called.

A job is a folder in $STAND_IN_SLURM, with a file for every task that waits or is at work.
"""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

NULL = subprocess.DEVNULL
JOBS = Path(os.environ["STAND_IN_SLURM"])
KNOWN = {"--job-name", "--cpus-per-task", "--chdir", "--output", "--open-mode"}


def sbatch(parsable: str, array: str, script: str) -> None:
    assert parsable == "--parsable"
    numbers, _, at_once = array.removeprefix("--array=").partition("%")
    tasks = []
    for part in numbers.split(","):
        first, _, last = part.partition("-")
        tasks += range(int(first), int(last or first) + 1)
    job = JOBS / str(len(list(JOBS.iterdir())) + 1)
    job.mkdir()
    text = Path(script).read_text()
    assert text.startswith("#!/bin/bash\n")
    (job / "script").write_text(text)
    for task in tasks:
        (job / f"{task}.task").touch()
    keeper = [sys.executable, __file__, "keep", str(job), at_once, *map(str, tasks)]
    subprocess.Popen(keeper, start_new_session=True, stdin=NULL, stdout=NULL, stderr=NULL)
    print(job.name)


def keep(job: str, at_once: str, *tasks: str) -> None:
    options = {}
    for line in (Path(job) / "script").read_text().splitlines():
        if line.startswith("#SBATCH "):
            name, _, value = shlex.split(line)[1].partition("=")
            assert name in KNOWN, name
            options[name] = value
    assert options["--open-mode"] == "append"
    running: dict[Path, subprocess.Popen[bytes]] = {}
    waiting = [Path(job) / f"{task}.task" for task in tasks]
    while waiting or running:
        while waiting and len(running) < int(at_once):
            task = waiting.pop(0)
            if task.exists():
                with open(options["--output"].replace("%a", task.stem), "ab") as log:
                    running[task] = subprocess.Popen(
                        ["bash", str(Path(job) / "script")],
                        cwd=options["--chdir"],
                        env={**os.environ, "SLURM_ARRAY_TASK_ID": task.stem},
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                    )
                task.write_text(str(running[task].pid))
        for task, child in list(running.items()):
            if child.poll() is not None:
                task.unlink(missing_ok=True)
                del running[task]
        time.sleep(0.02)


def squeue(*_: str) -> None:
    for task in JOBS.glob("*/*.task"):
        print(task.parent.name, task.stem)


def scancel(*jobs: str) -> None:
    for job in jobs:
        for task in (JOBS / job).glob("*.task"):
            group = task.read_text()
            if group:
                os.killpg(int(group), signal.SIGKILL)
            else:
                task.unlink()


if __name__ == "__main__":
    name, arguments = Path(__file__).name, sys.argv[1:]
    if arguments and arguments[0] == "keep":
        keep(*arguments[1:])
    else:
        {"sbatch": sbatch, "squeue": squeue, "scancel": scancel}[name](*arguments)
