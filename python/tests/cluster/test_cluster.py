"""How shards are divided, watched and repeated, with an engine that does as it is told."""

import fcntl
import os
import re
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from stlf import Error, InputError
from stlf.cluster import ClusterError, Division, Ended, Shard, Workers, conduct, find_stlf, watch
from stlf.cluster.__main__ import main
from stlf.cluster.failure import code_of
from stlf.cluster.shard import shards_begun

Site = Any


class Scripted:
    """Ends every shard as its script says, one script per shard: the codes of its attempts in order."""

    def __init__(self, scripts: dict[int, list[int | None]], at_once: int = 2) -> None:
        self.at_once = at_once
        self.scripts = {number: deque(script) for number, script in scripts.items()}
        self.started: list[int] = []
        self.at_work: list[int] = []
        self.most = 0
        self.closed = 0

    def start(self, shards: list[Shard]) -> None:
        self.started += [shard.number for shard in shards]
        self.at_work += [shard.number for shard in shards]
        self.most = max(self.most, len(self.at_work))

    def ended(self, wait: float) -> list[Ended]:
        number = self.at_work.pop(0)
        return [Ended(number, self.scripts[number].popleft(), "the machine is gone")]

    def close(self) -> None:
        self.closed += 1


def shards(folder: Path, count: int) -> list[Shard]:
    return Division(Path("stlf"), Path("mine.toml"), folder / "mine", count).all()


def test_lost_shares_are_started_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    engine = Scripted({1: [0], 2: [None, -9, 0], 3: [137, 1, 130, 0]})
    watch(shards(tmp_path, 3), engine, retries=3)
    assert sorted(engine.started) == [1, 2, 2, 2, 3, 3, 3, 3]
    assert engine.most == 2
    assert capsys.readouterr().err.splitlines() == [
        "shard 1 of 3 is done (1 of 3)",
        "shard 2 of 3 was lost (the machine is gone); again, 1 of 3",
        "shard 3 of 3 was lost (signal 9); again, 1 of 3",
        "shard 2 of 3 was lost (signal 9); again, 2 of 3",
        "shard 3 of 3 was lost (exit code 1); again, 2 of 3",
        "shard 2 of 3 is done (2 of 3)",
        "shard 3 of 3 was lost (interrupted); again, 3 of 3",
        "shard 3 of 3 is done (3 of 3)",
    ]


def test_a_share_is_given_up_after_its_retries_and_the_others_end(tmp_path: Path) -> None:
    engine = Scripted({1: [None, None, None], 2: [0], 3: [0], 4: [0]})
    with pytest.raises(ClusterError, match="shard 1 of 4 was lost 3 times; the last time: the machine is gone"):
        watch(shards(tmp_path, 4), engine, retries=2)
    assert sorted(engine.started) == [1, 1, 1, 2, 3, 4]


@pytest.mark.parametrize("code", [2, 3])
def test_what_every_share_would_meet_ends_all_at_once(tmp_path: Path, code: int) -> None:
    all_shards = shards(tmp_path, 4)
    all_shards[0].log.parent.mkdir()
    all_shards[0].log.write_text("error: training.steps is 0\nhint: at least 1\n")
    engine = Scripted({1: [code], 2: [0], 3: [0], 4: [0]}, at_once=1)
    with pytest.raises(Error, match="error: training.steps is 0") as error:
        watch(all_shards, engine)
    assert code_of(error.value) == code
    assert engine.started == [1]


def test_whatever_ends_it_the_leash_is_taken_away_first_and_the_engine_is_closed(tmp_path: Path) -> None:
    division = Division(Path("/bin/true"), Path("mine.toml"), tmp_path / "mine", shards=1)

    class Stopped(Scripted):
        def __init__(self, workers: Workers) -> None:
            super().__init__({1: [0]})
            self.leash = workers.leash
            assert self.leash.exists()

        def ended(self, wait: float) -> list[Ended]:
            raise KeyboardInterrupt

        def close(self) -> None:
            assert not self.leash.exists()
            super().close()

    made: list[Stopped] = []

    def make(workers: Workers) -> Stopped:
        made.append(Stopped(workers))
        return made[0]

    with pytest.raises(KeyboardInterrupt):
        conduct(division, make)
    assert made[0].closed == 1
    assert list(division.work.glob(".leash-*")) == []


def test_one_command_at_a_time(tmp_path: Path) -> None:
    division = Division(Path("/bin/true"), Path("mine.toml"), tmp_path / "mine", shards=1)
    division.work.mkdir()
    with (division.work / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ClusterError, match="another command already works on .*mine.shards"):
            conduct(division)
    assert conduct(division) == tmp_path / "mine"


def test_a_run_goes_on_with_the_shares_it_was_begun_with(tmp_path: Path) -> None:
    assert shards_begun(tmp_path / "mine") is None
    for name in ("1-of-2", "2-of-16", "notes-of-99", "1-of-2.log"):
        (tmp_path / "mine.shards" / name).mkdir(parents=True)
    assert shards_begun(tmp_path / "mine") == 16


def test_settings_and_data_reach_every_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STLF_DATA", "/data sets")
    division = Division(
        Path("stlf"), Path("a.toml"), Path("a"), 2, settings=("seeds=[1]", "training.steps=9"), threads=3
    )
    shard = division.shard(2)
    assert shard.command[3:7] == ("-c", "seeds=[1]", "-c", "training.steps=9")
    assert shard.environment == {"RAYON_NUM_THREADS": "3", "STLF_DATA": "/data sets"}


def test_stlf_is_found_as_given_then_by_its_variable_then_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("given", "variable", "path"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "stlf").write_text("#!/bin/sh\n")
        (tmp_path / name / "stlf").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.delenv("STLF_BIN", raising=False)
    assert find_stlf() == tmp_path / "path" / "stlf"
    monkeypatch.setenv("STLF_BIN", str(tmp_path / "variable" / "stlf"))
    assert find_stlf() == tmp_path / "variable" / "stlf"
    assert find_stlf(str(tmp_path / "given" / "stlf")) == tmp_path / "given" / "stlf"
    monkeypatch.setenv("PATH", os.devnull)
    monkeypatch.delenv("STLF_BIN")
    with pytest.raises(InputError, match="cannot run stlf"):
        find_stlf()


def test_a_configuration_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "no.toml")]) == 2
    assert f"error: cannot read {tmp_path}/no.toml" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["--workers", "0"], ["--shards", "x"], ["--engine", "cloud"], ["--retries", "-1"]]
)
def test_numbers_and_names_are_checked(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as error:
        main(["mine.toml", *arguments])
    assert error.value.code == 2


def test_the_option_for_shards_has_its_old_name_too(tmp_path: Path) -> None:
    config = tmp_path / "mine.toml"
    config.touch()
    for option, count in [("--shards", 2), ("--shares", 3)]:
        assert main([str(config), option, str(count), "--stlf", "/bin/true", "--to", str(tmp_path / "run")]) == 0
        assert (tmp_path / "run.shards" / f"{count}-of-{count}.log").exists()


def test_the_guide_names_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    options = set(re.findall(r"--[a-z]+", capsys.readouterr().out.split("Every shard")[0])) - {"--help", "--set"}
    guide = (Path(__file__).parents[3] / "docs" / "clusters.md").read_text()
    assert {"--engine", "--retries"} <= options
    assert [option for option in sorted(options) if f"`{option}" not in guide and f"{option} " not in guide] == []


def test_a_setting_that_stlf_refuses_ends_the_command_with_its_words(site: Site) -> None:
    code, said = site.finish(site.command("--workers", "2", "-c", "training.stepss=3"))
    assert code == 2
    assert "unknown field `stepss`" in said and "did you mean steps?" in said
    assert not site.run.exists()


def test_a_folder_of_another_configuration_is_refused(site: Site, one_machine: dict[str, bytes]) -> None:
    site.run.mkdir(parents=True)
    (site.run / "config.toml").write_bytes(one_machine["config.toml"].replace(b"0.01", b"0.02", 1))
    code, said = site.finish(site.command("--workers", "2", "-c", "training.steps=2"))
    assert code == 2
    assert "this folder holds a run of another configuration" in said and "stlf merge failed with exit code 2" in said
