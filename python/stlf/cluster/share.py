"""How a run is divided: each share is one `stlf run --shard`, in its own folder."""

import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from stlf.errors import InputError

# Starts a share that ends when its leash, a file, is taken away or when the process that started it dies. So a share
# can be stopped wherever it runs, with nothing but the shared folder, and none outlives its worker. An interrupt ends
# `stlf` where it next looks, which in long training takes a while, so it is not waited for long. `exec` keeps the
# process id, so that the engine sees how `stlf` itself ended.
_ON_A_LEASH = (
    '( while kill -0 "$PPID" && kill -0 "$$" && test -e "$0"; do sleep 1; done; '
    'kill -INT "$$" && sleep 5 && kill -TERM "$$" ) </dev/null >/dev/null 2>&1 & '
    'log=$1; shift; exec "$@" </dev/null >>"$log" 2>&1'
)


@dataclass(frozen=True)
class Share:
    """One of the shares of a run.

    >>> share = Share(3, 16, ("stlf", "run", "mine.toml", "--shard", "3/16"), Path("runs/mine.shares/3-of-16"))
    >>> str(share), share.log.name
    ('share 3 of 16', '3-of-16.log')
    """

    number: int
    of: int
    command: tuple[str, ...]
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """The name of the share in messages."""
        return f"share {self.number} of {self.of}"

    @property
    def log(self) -> Path:
        """What its command prints; every further attempt is appended."""
        return self.folder.with_name(self.folder.name + ".log")

    def on_a_leash(self, leash: Path) -> list[str]:
        """The command, printing to its log, ended by a signal when the file `leash` or the starting process is gone.

        >>> Share(1, 1, ("stlf", "run"), Path("mine.shares/1-of-1")).on_a_leash(Path("leash"))[3:]
        ['leash', 'mine.shares/1-of-1.log', 'stlf', 'run']
        """
        return ["/bin/sh", "-c", _ON_A_LEASH, str(leash), str(self.log), *self.command]

    def last_words(self, lines: int = 6) -> str:
        """The end of its log, for an error message; empty where there is none.

        >>> Share(1, 1, ("stlf", "run"), Path("nowhere/1-of-1")).last_words()
        ''
        """
        try:
            text = self.log.read_text(errors="replace")
        except OSError:
            return ""
        return "\n".join(text.strip().splitlines()[-lines:])


@dataclass(frozen=True)
class Division:
    """A run and the shares it is divided into.

    >>> whole = Division(Path("stlf"), Path("mine.toml"), Path("runs/mine"), shares=2)
    >>> whole.share(2).folder.as_posix()
    'runs/mine.shares/2-of-2'
    >>> whole.share(2).command[-2:]
    ('--shard', '2/2')
    """

    stlf: Path
    config: Path
    to: Path
    shares: int
    settings: tuple[str, ...] = ()
    threads: int = 1

    @property
    def work(self) -> Path:
        """The folder of the shares and their logs, next to the run's folder, which holds only the run."""
        return work_folder(self.to)

    def share(self, number: int) -> Share:
        """The share of this number, counted from 1.

        >>> Division(Path("stlf"), Path("a.toml"), Path("runs/a"), shares=1, threads=4).share(1).command
        ('stlf', 'run', 'a.toml', '--to', 'runs/a.shares/1-of-1', '--shard', '1/1')
        """
        folder = self.work / f"{number}-of-{self.shares}"
        settings = [word for setting in self.settings for word in ("-c", setting)]
        command = [str(self.stlf), "run", str(self.config), *settings, "--to", str(folder)]
        environment = {"RAYON_NUM_THREADS": str(self.threads)}
        if "STLF_DATA" in os.environ:
            environment["STLF_DATA"] = os.environ["STLF_DATA"]
        return Share(number, self.shares, (*command, "--shard", f"{number}/{self.shares}"), folder, environment)

    def all(self) -> list[Share]:
        """Every share.

        >>> [str(share) for share in Division(Path("stlf"), Path("a.toml"), Path("runs/a"), 2).all()]
        ['share 1 of 2', 'share 2 of 2']
        """
        return [self.share(number) for number in range(1, self.shares + 1)]

    def merge_command(self) -> list[str]:
        """Joins the shares, does what is left and shows the comparison.

        >>> Division(Path("stlf"), Path("a.toml"), Path("runs/a"), 1).merge_command()
        ['stlf', 'merge', 'runs/a.shares/1-of-1', '--to', 'runs/a']
        """
        return [str(self.stlf), "merge", *(str(share.folder) for share in self.all()), "--to", str(self.to)]


def work_folder(to: Path) -> Path:
    """The folder of a run's shares.

    >>> work_folder(Path("runs/mine")).as_posix()
    'runs/mine.shares'
    """
    return to.with_name(to.name + ".shares")


def shares_begun(to: Path) -> int | None:
    """The number of shares into which an earlier command divided this run; with several, the largest.

    A run that goes on must be divided as before, or it would begin again.

    >>> shares_begun(Path("nowhere")) is None
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
