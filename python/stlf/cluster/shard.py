"""How a run is divided: each shard is one `stlf run --shard`, in its own folder."""

import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from stlf.errors import InputError

# Starts a shard that ends when its leash, a file, is taken away or when the process that started it dies. So a shard
# can be stopped wherever it runs, with nothing but the shared folder, and none outlives its worker. An interrupt ends
# `stlf` where it next looks, which in long training takes a while, so it is not waited for long. `exec` keeps the
# process id, so that the engine sees how `stlf` itself ended.
_ON_A_LEASH = (
    '( while kill -0 "$PPID" && kill -0 "$$" && test -e "$0"; do sleep 1; done; '
    'kill -INT "$$" && sleep 5 && kill -TERM "$$" ) </dev/null >/dev/null 2>&1 & '
    'log=$1; shift; exec "$@" </dev/null >>"$log" 2>&1'
)


@dataclass(frozen=True)
class Shard:
    """One of the shards of a run.

    >>> shard = Shard(3, 16, ("stlf", "run", "mine.toml", "--shard", "3/16"), Path("runs/mine.shards/3-of-16"))
    >>> str(shard), shard.log.name
    ('shard 3 of 16', '3-of-16.log')
    """

    number: int
    of: int
    command: tuple[str, ...]
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """The name of the shard in messages."""
        return f"shard {self.number} of {self.of}"

    @property
    def log(self) -> Path:
        """What its command prints; every further attempt is appended."""
        return self.folder.with_name(self.folder.name + ".log")

    def on_a_leash(self, leash: Path) -> list[str]:
        """The command, printing to its log, ended by a signal when the file `leash` or the starting process is gone.

        >>> Shard(1, 1, ("stlf", "run"), Path("mine.shards/1-of-1")).on_a_leash(Path("leash"))[3:]
        ['leash', 'mine.shards/1-of-1.log', 'stlf', 'run']
        """
        return ["/bin/sh", "-c", _ON_A_LEASH, str(leash), str(self.log), *self.command]

    def last_words(self, lines: int = 6) -> str:
        """The end of its log, for an error message; empty where there is none.

        >>> Shard(1, 1, ("stlf", "run"), Path("nowhere/1-of-1")).last_words()
        ''
        """
        try:
            text = self.log.read_text(errors="replace")
        except OSError:
            return ""
        return "\n".join(text.strip().splitlines()[-lines:])


@dataclass(frozen=True)
class Division:
    """A run and the shards it is divided into.

    >>> whole = Division(Path("stlf"), Path("mine.toml"), Path("runs/mine"), shards=2)
    >>> whole.shard(2).folder.as_posix()
    'runs/mine.shards/2-of-2'
    >>> whole.shard(2).command[-2:]
    ('--shard', '2/2')
    """

    stlf: Path
    config: Path
    to: Path
    shards: int
    settings: tuple[str, ...] = ()
    threads: int = 1

    @property
    def work(self) -> Path:
        """The folder of the shards and their logs, next to the run's folder, which holds only the run."""
        return work_folder(self.to)

    def shard(self, number: int) -> Shard:
        """The shard of this number, counted from 1.

        >>> Division(Path("stlf"), Path("a.toml"), Path("runs/a"), shards=1, threads=4).shard(1).command
        ('stlf', 'run', 'a.toml', '--to', 'runs/a.shards/1-of-1', '--shard', '1/1')
        """
        folder = self.work / f"{number}-of-{self.shards}"
        settings = [word for setting in self.settings for word in ("-c", setting)]
        command = [str(self.stlf), "run", str(self.config), *settings, "--to", str(folder)]
        environment = {"RAYON_NUM_THREADS": str(self.threads)}
        if "STLF_DATA" in os.environ:
            environment["STLF_DATA"] = os.environ["STLF_DATA"]
        return Shard(number, self.shards, (*command, "--shard", f"{number}/{self.shards}"), folder, environment)

    def all(self) -> list[Shard]:
        """Every shard.

        >>> [str(shard) for shard in Division(Path("stlf"), Path("a.toml"), Path("runs/a"), 2).all()]
        ['shard 1 of 2', 'shard 2 of 2']
        """
        return [self.shard(number) for number in range(1, self.shards + 1)]

    def merge_command(self) -> list[str]:
        """Joins the shards, does what is left and shows the comparison.

        >>> Division(Path("stlf"), Path("a.toml"), Path("runs/a"), 1).merge_command()
        ['stlf', 'merge', 'runs/a.shards/1-of-1', '--to', 'runs/a']
        """
        return [str(self.stlf), "merge", *(str(shard.folder) for shard in self.all()), "--to", str(self.to)]


def work_folder(to: Path) -> Path:
    """The folder of a run's shards.

    >>> work_folder(Path("runs/mine")).as_posix()
    'runs/mine.shards'
    """
    return to.with_name(to.name + ".shards")


def shards_begun(to: Path) -> int | None:
    """The number of shards into which an earlier command divided this run; with several, the largest.

    A run that goes on must be divided as before, or it would begin again.

    >>> shards_begun(Path("nowhere")) is None
    True
    """
    names = (re.fullmatch(r"\d+-of-(\d+)", path.name) for path in work_folder(to).glob("*-of-*"))
    return max((int(name.group(1)) for name in names if name), default=None)


def find_stlf(given: str | None = None) -> Path:
    """The `stlf` command: as given, else by the environment variable STLF_BIN, else on the path.

    >>> find_stlf("no-such-command")
    Traceback (most recent call last):
    stlf.errors.InputError: cannot run no-such-command
    hint: name the command with --stlf PATH or STLF_BIN, or put it on the path; workers need it at the same place
    """
    name = given or os.environ.get("STLF_BIN") or "stlf"
    found = shutil.which(name)
    if found is None:
        hint = "name the command with --stlf PATH or STLF_BIN, or put it on the path; workers need it at the same place"
        raise InputError(f"cannot run {name}", hint)
    return Path(found).absolute()
