"""The whole method over seeds, as `stlf run` does it."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stlf import _internal, files
from stlf.errors import InputError, optional
from stlf.learner.bridge import Bridge
from stlf.learner.contract import Learner
from stlf.plan import Plan
from stlf.problem import Problem
from stlf.progress import Progress, bars
from stlf.table import energy, text

if TYPE_CHECKING:
    import pandas


class Run:
    """A run folder: its configuration and its results."""

    def __init__(self, folder: files.AnyPath) -> None:
        """Open this run folder."""
        self.folder = Path(folder)

    @cached_property
    def seeds(self) -> list[int]:
        """The seeds that have a folder."""
        names = (path.name.removeprefix("seed-") for path in self.folder.glob("seed-*"))
        return sorted(int(name) for name in names if name.isdigit())

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """One per seed, method and target; docs/runs.md says what the columns are."""
        lines = files.read(self.folder / "results.jsonl").decode().splitlines()
        return [json.loads(line) for line in lines]

    @cached_property
    def summary(self) -> list[dict[str, Any]]:
        """One per method: means over seeds, each with half of its 95 % confidence interval (Student's t).

        `joules`, `bytes` and `energy_share` are totals: links, measuring where the method needs it, and a warm-up.
        """
        return _internal.summarise(files.read(self.folder / "results.jsonl").decode())

    def problem(self, seed: int | None = None) -> Problem:
        """Return the problem of a seed, by default of the first."""
        return Problem.read(self._of(seed) / "problem.json")

    def plan(self, seed: int | None = None) -> Plan:
        """Return the plan of a seed."""
        return Plan.read(self._of(seed) / "plan.json")

    def read_table(self, name: str, seed: int | None = None) -> list[dict[str, str]]:
        """Return the rows of a seed's table, such as `training.csv` or `divergence.csv`."""
        return list(csv.DictReader(files.read(self._of(seed) / name).decode().splitlines()))

    def warnings(self, seed: int | None = None) -> list[str]:
        """Return what devices of a seed are told, such as that their own model is no better than guessing.

        Also that they refused the model of another source, and that little is known of the accuracy of a target,
        perhaps because no source is near it. Empty if all is well.
        """
        return _internal.warnings(self._of(seed))

    def _of(self, seed: int | None) -> Path:
        if not self.seeds:
            raise InputError(f"{self.folder} is not a run folder", "stlf.run makes one")
        return self.folder / f"seed-{self.seeds[0] if seed is None else seed}"

    def table(self) -> str:
        """Return the methods side by side, as text; ± is the 95 % interval of the mean over seeds."""

        def accuracy(line: dict[str, Any]) -> str:
            if line["accuracy"] is None:
                return "not known" if line["links"][0] > 0 else "no model"
            mean, half = line["accuracy"]
            return f"{100 * mean:.1f} ± {100 * half:.1f} %" if line["seeds"] > 1 else f"{100 * mean:.1f} %"

        def share(line: dict[str, Any]) -> str:
            return "" if line["energy_share"] is None else f"{100 * line['energy_share'][0]:.0f} %"

        columns = ("method", "target accuracy", "targets", "links", "energy", "of all links")
        rows = [
            [
                line["method"],
                accuracy(line),
                f"{line['targets'][0]:.1f}",
                f"{line['links'][0]:.1f}",
                energy(line["joules"][0]),
                share(line),
            ]
            for line in self.summary
        ]
        return text(columns, rows, right=columns[1:])

    def to_pandas(self) -> pandas.DataFrame:
        """Return all rows as a frame."""
        frames = optional("pandas", "to_pandas()", "pandas")
        return frames.DataFrame(self.rows)

    def __repr__(self) -> str:
        """The folder."""
        return f"Run({os.fspath(self.folder)!r})"

    def __str__(self) -> str:
        """The table of results."""
        return self.table()


def run(
    config: Mapping[str, Any] | files.AnyPath | None = None,
    *,
    to: files.AnyPath | None = None,
    changes: Sequence[str] = (),
    shard: str | None = None,
    learners: Mapping[str, Learner] | None = None,
    progress: Progress = None,
) -> Run:
    """Deal, train, measure, plan, transfer and compare, for every seed; docs/runs.md says what is what.

    `config` is a TOML file, a run folder to go on with, or a dictionary with the same keys; without it everything is
    the default. `changes` are keys that differ, such as `"training.steps=500"`; `to` is the run folder, by default one
    that the same configuration finds again; `shard` is one of several, such as `"3/16"`. `learners` are the devices by
    name, each with a learner of yours in this process, which has its data and model (docs/learners.md). Ctrl-C stops it
    and loses nothing: the same call goes on.

    >>> import tempfile
    >>> small = {"seeds": [0], "data": {"samples": 2000}, "partition": {"kind": "paper", "scale": 0.03},
    ...          "training": {"steps": 10}, "divergence": {"features": 32},
    ...          "compare": {"methods": ["st-lf", "local"]}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = run(small, to=folder, progress=False)
    ...     [line["method"] for line in done.summary], len(done.plan().names)
    (['st-lf', 'local'], 10)
    """
    bridges = None
    changes = list(changes)
    if learners is not None:
        if shard is not None:
            raise InputError("learners in this process have no shards", "leave out shard")
        bridges = [(name, Bridge(learner)) for name, learner in learners.items()]
        if not bridges:
            raise InputError("learners: there is no device", "name at least two: {'gate': Pumps(), 'pier': Pumps()}")
        # The folder says who has learned; only this call can start it again.
        of = json.dumps(f"stlf.run: {bridges[0][1].name} of {{device}}")
        changes += [f"data.devices={json.dumps([name for name, _ in bridges])}", f"training.learner={of}"]
    given, whole, folder = _resolve(config, changes, to)
    if folder is None:
        folder = _internal.default_folder(whole, given)
    seeds = _count_seeds(whole)
    with bars(progress, seeds) as see:
        _internal.run(whole, folder, learners=bridges, shard=shard, progress=see)
    return Run(folder)


def _resolve(
    config: Mapping[str, Any] | files.AnyPath | None, changes: list[str], to: files.AnyPath | None
) -> tuple[Path, str, files.AnyPath | None]:
    """Return the name for messages, the whole configuration as TOML, and the folder if it is known."""
    if config is None or isinstance(config, Mapping):
        name = Path("run" if config is not None else "defaults")
        text = json.dumps(dict(config or {}))
        return name, _internal.configure(text, file=name, is_json=True, changes=changes), to
    given = Path(config)
    if given.is_dir():
        file = given / "config.toml"
        if not file.is_file():
            raise InputError(f"cannot read {file}", "this is not a run folder; name a run folder or a configuration")
        to = given if to is None else to
    else:
        file = given
    whole = _internal.configure(files.read(file).decode(), file=file, changes=changes)
    return given, whole, to


def _count_seeds(config: str) -> int:
    """The number of seeds of a whole configuration; its first key is `seeds`, one number per line."""
    inside = config.partition("[")[2].partition("]")[0]
    return max(sum(part.strip().isdigit() for part in inside.split(",")), 1)
