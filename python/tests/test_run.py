"""Whole runs: from a file, a folder or a dictionary; stopped and gone on with."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli

import stlf

SMALL: dict[str, Any] = {
    "seeds": [0, 1],
    "data": {"samples": 2000},
    "divergence": {"features": 32},
    "partition": {"kind": "paper", "scale": 0.03},
    "training": {"steps": 10},
    "compare": {"methods": ["st-lf", "fedavg", "local"]},
}


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> stlf.Run:
    return stlf.run(SMALL, to=tmp_path_factory.mktemp("run"), progress=False)


def test_a_run_leaves_what_it_promises(whole: stlf.Run) -> None:
    assert whole.seeds == [0, 1]
    assert {row["method"] for row in whole.rows} == {"st-lf", "fedavg", "local"}
    assert [line["method"] for line in whole.summary] == ["st-lf", "fedavg", "local"]
    first = whole.summary[0]
    by_seed = [[r["accuracy"] for r in whole.rows if r["method"] == "st-lf" and r["seed"] == seed] for seed in (0, 1)]
    means = [sum(accuracies) / len(accuracies) for accuracies in by_seed]
    assert first["accuracy"][0] == pytest.approx(sum(means) / 2)
    # ± is half the 95 % interval: with two seeds 12.706 standard errors.
    assert first["accuracy"][1] == pytest.approx(12.706 * abs(means[0] - means[1]) / 2)
    # Totals have what measuring sent, where the method cannot choose without.
    for line in whole.summary:
        own = [row for row in whole.rows if row["method"] == line["method"]]
        measuring = sum(row["measuring-bytes"] for row in own)
        assert (measuring > 0) == (line["method"] == "st-lf")
        assert line["bytes"][0] == pytest.approx((sum(row["bytes"] for row in own) + measuring) / 2)
    assert "no model" in whole.table()
    plan = whole.plan(1)
    again = stlf.plan(whole.problem(1), handovers=True)
    assert (again.links, again.handovers) == (plan.links, plan.handovers)
    assert len(whole.read_table("divergence.csv")) == 45
    pytest.importorskip("pandas", reason="to_pandas() needs pandas")
    assert len(whole.to_pandas()) == len(whole.rows)


def test_devices_whose_own_models_are_useless_are_named(tmp_path: Path) -> None:
    # A step so small that models stay what they were drawn as.
    useless = {**SMALL, "seeds": [0], "training": {"steps": 1, "learning-rate": 1e-9, "held-out": 0.5}}
    told = stlf.run(useless, to=tmp_path, progress=False).warnings()
    assert any("its own model is no better than guessing (" in line for line in told), told


def test_python_and_the_command_line_leave_the_same_bytes(whole: stlf.Run, cli: Cli, tmp_path: Path) -> None:
    ran = cli("run", str(whole.folder / "config.toml"), "--to", str(tmp_path / "cli"))
    assert ran.returncode == 0, ran.stderr
    assert files_of(tmp_path / "cli") == files_of(whole.folder)


def test_shares_and_changes(whole: stlf.Run, tmp_path: Path) -> None:
    config = whole.folder / "config.toml"
    for shard in ("1/2", "2/2"):
        stlf.run(config, to=tmp_path / "shards", shard=shard, progress=False)
    assert not (tmp_path / "shards" / "manifest.json").exists()
    ended = stlf.run(tmp_path / "shards", progress=False)
    assert files_of(ended.folder) == files_of(whole.folder)
    shorter = stlf.run(SMALL, to=tmp_path / "one", changes=["seeds=[1]", 'compare.methods=["local"]'], progress=False)
    assert shorter.seeds == [1]


def test_without_a_folder_the_same_configuration_finds_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tiny = {**SMALL, "seeds": [3], "compare": {"methods": ["local"]}}
    made = stlf.run(tiny, progress=False)
    assert made.folder.parent == Path("runs")
    assert made.folder.name.startswith("run-")
    assert stlf.run(tiny, progress=False).folder == made.folder


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"training": {"step": 3}}, "unknown field `step`.*\nhint: did you mean steps?"),
        ({"seeds": []}, "seeds: the list is empty"),
        ({"training": {"steps": None}}, "unsupported|unit|null"),
        ("no-such.toml", "there is no file no-such.toml"),
        ({"data": {"domains": ["mnist"], "folder": "no-such-folder"}}, "mnist"),
    ],
)
def test_what_cannot_be_run_is_refused(config: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(stlf.InputError, match=message):
        stlf.run(config, to=tmp_path / "run", progress=False)


def test_another_configuration_in_the_folder_is_refused(whole: stlf.Run) -> None:
    with pytest.raises(stlf.InputError, match="this folder holds a run of another configuration"):
        stlf.run({**SMALL, "seeds": [7]}, to=whole.folder, progress=False)
    with pytest.raises(stlf.InputError, match="shard: write K/N"):
        stlf.run(SMALL, to=whole.folder, shard="5/3", progress=False)


def test_progress_is_told_and_may_stop(tmp_path: Path) -> None:
    heard = []

    def see(stage: str, seed: int | None, done: int, total: int) -> None:
        heard.append((stage, seed, done, total))

    stlf.run(SMALL, to=tmp_path / "run", progress=see)
    stages = [stage for stage, *_ in heard]
    assert stages[0] == "deal"
    assert {"train", "measure", "plan", "transfer", "compare"} <= set(stages)
    assert all(done <= total for _, _, done, total in heard)

    def stop(stage: str, *_: object) -> None:
        if stage == "train":
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        stlf.run({**SMALL, "training": {"steps": 2_000}}, to=tmp_path / "stopped", progress=stop)
    assert not (tmp_path / "stopped" / "manifest.json").exists()


CHILD = """
import json, sys, stlf
config, folder = json.loads(sys.argv[1]), sys.argv[2]
def see(stage, seed, done, total):
    if stage == "train" and done:
        print("training", flush=True)
try:
    stlf.run(config, to=folder, progress=see)
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


def test_ctrl_c_stops_and_loses_nothing(tmp_path: Path) -> None:
    config = {**SMALL, "training": {"steps": 1_200}}
    arguments = [sys.executable, "-c", CHILD, json.dumps(config), str(tmp_path / "stopped")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "training\n"
        child.send_signal(signal.SIGINT)
        rest, _ = child.communicate(timeout=600)
    assert rest.splitlines()[-1] == "stopped"
    assert child.returncode == 0
    assert not (tmp_path / "stopped" / "manifest.json").exists()
    assert list((tmp_path / "stopped").glob("seed-*/models/*.safetensors"))
    gone_on = stlf.run(config, to=tmp_path / "stopped", progress=False)
    whole = stlf.run(config, to=tmp_path / "whole", progress=False)
    assert files_of(gone_on.folder) == files_of(whole.folder)
