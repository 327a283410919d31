"""Slurm: shards as the tasks of a job array, by a script that `sbatch` takes."""

import getpass
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from stlf.cluster.engine import Ended, Workers
from stlf.cluster.failure import ClusterError
from stlf.cluster.shard import Shard
from stlf.errors import InputError

_LOOK_EVERY = 0.5
_STOP_WITHIN = 60.0
_SILENT_AT_MOST = 60


class Slurm:
    """Shards as tasks of job arrays, at most this many at once.

    A task writes its exit code into a file as its last act; accounting, which many clusters do not have, is not
    needed. A task that the queue no longer has and that left no code is lost.
    """

    def __init__(self, workers: Workers, ask_every: float = 10.0) -> None:
        """Submits nothing yet; `squeue` is polled every so many seconds."""
        # All at once: an array waits in the queue a single time, and holds back what is too much itself.
        self.at_once = sys.maxsize
        self._workers = workers
        self._ask_every = ask_every
        self._asked = time.monotonic()
        self._silent = 0
        self._at_work: dict[int, tuple[str, Shard]] = {}
        self._missing: set[int] = set()
        self._sent = workers.leash.with_name("slurm-jobs")
        if self._sent.exists():
            # An earlier command was killed and could not take back what it had sent.
            self._take_back(set(self._sent.read_text().split()))

    def start(self, shards: list[Shard]) -> None:
        """One array of all these."""
        script = self._workers.leash.with_name("shards.sh")
        script.write_text(array_script(shards[0], self._workers))
        for shard in shards:
            _code_file(shard).unlink(missing_ok=True)
        array = f"--array={ranges(shard.number for shard in shards)}%{self._workers.count}"
        job = _slurm("sbatch", "--parsable", array, str(script)).strip().split(";")[0]
        with self._sent.open("a") as sent:
            print(job, file=sent)
        self._at_work.update({shard.number: (job, shard) for shard in shards})

    def ended(self, wait: float) -> list[Ended]:
        """Tasks with an exit code, and those that have vanished without."""
        deadline = time.monotonic() + wait
        while True:
            over = [
                Ended(number, code)
                for number, (_, shard) in self._at_work.items()
                if (code := _read_code(shard)) is not None
            ]
            if not over and time.monotonic() - self._asked >= self._ask_every:
                over = [Ended(number, None, "Slurm has it no more") for number in self._vanished()]
            if over or time.monotonic() >= deadline:
                break
            time.sleep(min(_LOOK_EVERY, wait))
        for end in over:
            del self._at_work[end.shard]
        return over

    def _vanished(self) -> set[int]:
        """Tasks that two answers in a row do not name: a file may come later than the end of its task."""
        self._asked = time.monotonic()
        try:
            queued = self._queued()
        except ClusterError:
            # Busy controllers do not always answer. What they hold goes on meanwhile.
            self._silent += 1
            if self._silent >= _SILENT_AT_MOST:
                raise
            return set()
        self._silent = 0
        missing = {number for number, (job, _) in self._at_work.items() if (job, str(number)) not in queued}
        twice = missing & self._missing
        self._missing = missing - twice
        return {number for number in twice if _read_code(self._at_work[number][1]) is None}

    def _queued(self) -> set[tuple[str, str]]:
        """Array and task of all that this user has in the queue, waiting or at work."""
        lines = _slurm("squeue", "--noheader", "--array", f"--user={getpass.getuser()}", "--format=%F %K").splitlines()
        return {(job, task) for job, task in (line.split() for line in lines)}

    def close(self) -> None:
        """Cancels what is in the queue or at work, and waits until it is gone."""
        self._take_back({job for job, _ in self._at_work.values()})
        self._at_work.clear()

    def _take_back(self, jobs: set[str]) -> None:
        if left := jobs and self._still_queued(jobs):
            _slurm("scancel", *sorted(left))
            deadline = time.monotonic() + _STOP_WITHIN
            while self._still_queued(jobs) and time.monotonic() < deadline:
                time.sleep(_LOOK_EVERY)
        self._sent.unlink(missing_ok=True)

    def _still_queued(self, jobs: set[str]) -> set[str]:
        return jobs & {job for job, _ in self._queued()}


def array_script(shard: Shard, workers: Workers) -> str:
    """The script of a job array, made from any one of its shards; Slurm puts each task's number in its place.

    >>> command = ("stlf", "run", "a.toml", "--to", "a.shards/1-of-8", "--shard", "1/8")
    >>> shard = Shard(1, 8, command, Path("a.shards/1-of-8"))
    >>> script = array_script(shard, Workers(count=2, threads=4, leash=Path("a.shards/leash"), sbatch=("--time=60",)))
    >>> [line for line in script.splitlines() if line.startswith("stlf")]
    ['stlf run a.toml --to a.shards/"$SLURM_ARRAY_TASK_ID"-of-8 --shard "$SLURM_ARRAY_TASK_ID"/8']
    >>> "#SBATCH --cpus-per-task=4" in script, "#SBATCH --time=60" in script
    (True, True)
    """
    folder = shard.folder.parent
    options = [
        f"--job-name={folder.name}",
        f"--cpus-per-task={workers.threads}",
        f"--chdir={Path.cwd()}",
        f"--output={str(folder).replace('%', '%%')}/%a-of-{shard.of}.log",
        "--open-mode=append",
        *workers.sbatch,
    ]
    for option in options:
        if "\n" in option:
            raise InputError(f"an option of sbatch has several lines: {option!r}", "give --sbatch once per option")
    task = '"$SLURM_ARRAY_TASK_ID"'
    task_folder = f"{shlex.quote(str(folder))}/{task}-of-{shard.of}"
    own = {str(shard.folder): task_folder, f"{shard.number}/{shard.of}": f"{task}/{shard.of}"}
    lines = [
        "#!/bin/bash",
        *(f"#SBATCH {_option(option)}" for option in options),
        *(f"export {name}={shlex.quote(value)}" for name, value in shard.environment.items()),
        " ".join(own.get(word, shlex.quote(word)) for word in shard.command),
        "code=$?",
        # Renamed, so that a code is never read half-written.
        f"file={task_folder}.code",
        'echo $code > "$file.new" && mv "$file.new" "$file"',
        "exit $code",
    ]
    return "\n".join(lines) + "\n"


def ranges(numbers: Iterable[int]) -> str:
    """Numbers as Slurm writes them.

    >>> ranges([1, 2, 3, 7, 9, 10])
    '1-3,7,9-10'
    """
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(f"{first}-{last}" if first < last else f"{first}" for first, last in parts)


def _option(option: str) -> str:
    """An option as a line of the script has it: a value with a space is quoted, unless it already is."""
    name, equals, value = option.partition("=")
    return f'{name}="{value}"' if equals and " " in value and '"' not in value else option


def _code_file(shard: Shard) -> Path:
    return shard.folder.with_name(shard.folder.name + ".code")


def _read_code(shard: Shard) -> int | None:
    try:
        return int(_code_file(shard).read_text())
    except FileNotFoundError:
        return None


def _slurm(*command: str) -> str:
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
    except FileNotFoundError as error:
        raise ClusterError(f"cannot run {command[0]}", "does this machine accept Slurm jobs?") from error
    except subprocess.TimeoutExpired as error:
        raise ClusterError(f"{command[0]} does not answer", "`sinfo` shows the state of the cluster") from error
    except subprocess.CalledProcessError as error:
        raise ClusterError(f"{command[0]}: {error.stderr.strip()}", "`sinfo` shows the state of the cluster") from error
