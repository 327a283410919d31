"""Learners in this process: in simulations, and as real devices of a fleet on this machine."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Cli
from ports import free_addresses

import stlf
from stlf.node import Failed, Finished, Phase, Planned, Progress, Training

DEADLINE = 300.0
"""The longest wait, in seconds."""

NAMES = ["gate", "pier", "mast"]


class Means(stlf.Learner):
    """A class is where the mean of its samples lies; the last device has no labels."""

    name, classes = "means/1", ["calm", "storm"]

    def __init__(self, device: int, break_at: str = "") -> None:
        rng = np.random.default_rng(device)
        self.x = rng.normal(0.1 * device, 1, (300, 3)).astype(np.float32)
        self.known = (self.x.sum(1) > 0.3 * device).astype(np.int64)
        self.y = np.where(device == 2, -1, self.known)
        self.break_at = break_at
        self.trainings = 0

    def data(self):  # type: ignore[no-untyped-def]
        return self.x, self.y

    def truth(self):  # type: ignore[no-untyped-def]
        return self.known

    def first(self):  # type: ignore[no-untyped-def]
        return {"means": np.zeros((2, 3)), "counts": np.zeros(2)}

    def train(self, lesson):  # type: ignore[no-untyped-def]
        self.trainings += 1
        if self.break_at == "train":
            raise ValueError("the pump is on fire")
        means, counts = lesson.start["means"], lesson.start["counts"]
        for at, row in enumerate(lesson.rows):
            counts[self.y[row]] += 1
            means[self.y[row]] += (self.x[row] - means[self.y[row]]) / counts[self.y[row]]
            if at % 50 == 0:
                lesson.progress(at, len(lesson.rows))
        return {"means": means, "counts": counts}

    def predict(self, model, rows):  # type: ignore[no-untyped-def]
        if self.break_at == "predict":
            raise ValueError("no water")
        odds = np.exp(-((self.x[rows][:, None] - model["means"][None]) ** 2).sum(2))
        odds = odds * (model["counts"] > 0) + 1e-9
        return odds / odds.sum(1, keepdims=True)


class Adapting(Means):
    """The same, which takes the means of its own samples by the classes of the mixture."""

    def adapt(self, adaptation):  # type: ignore[no-untyped-def]
        means, x = adaptation.start["means"], self.x[adaptation.rows]
        for k in range(2):
            own = adaptation.teacher.argmax(1) == k
            if own.any():
                means[k] = x[own].mean(0)
        adaptation.progress(1, 1)
        return {"means": means, "counts": adaptation.start["counts"]}

    def predict_altered(self, model, rows, seed):  # type: ignore[no-untyped-def]
        noise = np.random.default_rng(seed).normal(0, 0.1, (len(rows), 3))
        odds = np.exp(-((self.x[rows][:, None] + noise[:, None] - model["means"][None]) ** 2).sum(2))
        return odds / odds.sum(1, keepdims=True)


def learners(*break_at: str) -> dict[str, stlf.Learner]:
    return {name: Means(k, break_at[k] if break_at else "") for k, name in enumerate(NAMES)}


CONFIG = {"seeds": [3], "divergence": {"features": 16}, "compare": {"methods": ["st-lf", "fedavg", "oracle"]}}


def test_a_learner_of_this_process_trains_students(tmp_path: Path) -> None:
    config = {**CONFIG, "transfer": {"adapt": "always"}}
    adapting = {name: Adapting(k) for k, name in enumerate(NAMES)}
    done = stlf.run(config, learners=adapting, to=tmp_path / "run", progress=False)
    (student,) = (row for row in done.read_table("students/st-lf.csv") if row["target"] == "mast")
    assert (student["tried"], student["used"], student["gflop"]) == ("true", "true", "")
    assert 0 < float(student["stability"]) <= 1
    bundle = tmp_path / "run" / "seed-3" / "mixtures" / "mast"
    assert json.loads((bundle / "models.json").read_text())["student"]["file"] == "student.safetensors"
    mixture = stlf.load_with(Adapting(2), tmp_path / "run", device="mast")
    assert list(mixture.predict()) == [row["class"] for row in done.read_table("targets/mast.csv")]
    with pytest.raises(stlf.InputError, match="does not say that it trains any"):
        stlf.run(config, learners=learners(), to=tmp_path / "never", progress=False)


def test_a_run_takes_learners_of_this_process_and_goes_on(tmp_path: Path) -> None:
    mine = learners()
    done = stlf.run(CONFIG, learners=mine, to=tmp_path / "run", progress=False)
    accuracy = {line["method"]: line["accuracy"][0] for line in done.summary}
    assert accuracy["st-lf"] > 0.8, done.table()
    assert "mast" in done.plan().targets
    trained = [learner.trainings for learner in mine.values() if isinstance(learner, Means)]
    again = stlf.run(CONFIG, learners=mine, to=tmp_path / "run", progress=False)
    assert again.rows == done.rows
    assert trained == [learner.trainings for learner in mine.values() if isinstance(learner, Means)]
    # What the device ended with predicts, by its learner alone.
    with pytest.raises(stlf.InputError, match="only the learner that made these models"):
        stlf.load(tmp_path / "run", device="mast")
    mixture = stlf.load_with(Means(2), tmp_path / "run", device="mast")
    shown = [row["class"] for row in done.read_table("targets/mast.csv")]
    assert list(mixture.predict()) == shown
    assert mixture.role == "target" and abs(sum(mixture.members.values()) - 1) < 1e-9
    (row,) = (row for row in done.read_table("expected.csv") if row["target"] == "mast")
    assert mixture.expected == tuple(float(row[key]) for key in ("expected", "low", "high"))
    other = Means(2)
    other.name = "means/2"
    with pytest.raises(stlf.InputError, match="models of the learner means/1"):
        stlf.load_with(other, tmp_path / "run", device="mast").predict()


def test_a_class_as_a_program_comes_to_the_same_as_in_this_process(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "means.py").write_text(
        "from test_node import NAMES, Means\n\n"
        "class Named(Means):\n    def __init__(self, name):\n        super().__init__(NAMES.index(name))\n"
    )
    monkeypatch.chdir(tmp_path)
    path = [str(Path(__file__).parent), str(tmp_path), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
    (tmp_path / "mine.toml").write_text(
        f"""
        seeds = [3]
        data.devices = {json.dumps(NAMES)}
        training.learner = {json.dumps(f"{sys.executable} -m stlf.learner means:Named {{device}}")}
        training.learner-env = ["PYTHONPATH"]
        divergence.features = 16
        compare.methods = ["st-lf", "fedavg", "oracle"]
        """
    )
    ran = cli("run", "mine.toml", "--to", "programs")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    stlf.run(CONFIG, learners=learners(), to="here", progress=False)
    for table in ["results.csv", "seed-3/targets/mast.csv", "seed-3/training.csv"]:
        assert Path("programs", table).read_text() == Path("here", table).read_text(), table


def test_what_a_learner_raises_is_the_cause(tmp_path: Path) -> None:
    with pytest.raises(stlf.InputError, match="gate: learner: the learner was to train, and says: ValueError") as told:
        stlf.run(CONFIG, learners=learners("train", "", ""), to=tmp_path / "run", progress=False)
    assert isinstance(told.value.__cause__, ValueError)
    for wrong, message in [
        ({"gate": "Pumps"}, "is no stlf.Learner"),
        ({}, "there is no device"),
    ]:
        with pytest.raises(stlf.InputError, match=message):
            stlf.run(CONFIG, learners=wrong, to=tmp_path / "wrong", progress=False)  # type: ignore[arg-type]
    with pytest.raises(stlf.InputError, match="transfer.adapt: the learner means/1 does not say that it trains any"):
        config = {**CONFIG, "transfer": {"adapt": "always"}}
        stlf.run(config, learners=learners(), to=tmp_path / "wrong", progress=False)


class Endless(Means):
    """Trains until it is told to end, for which it sends Ctrl-C to this process."""

    def train(self, lesson):  # type: ignore[no-untyped-def]
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)
        until = time.monotonic() + DEADLINE
        while time.monotonic() < until:
            lesson.progress(1, 2)
        raise AssertionError("nobody ended the training")


def test_ctrl_c_ends_a_training_and_nothing_is_lost(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        devices = {**learners(), "gate": Endless(0)}
        stlf.run(CONFIG, learners=devices, to=tmp_path / "run", progress=False)
    done = stlf.run(CONFIG, learners=learners(), to=tmp_path / "run", progress=False)
    whole = stlf.run(CONFIG, learners=learners(), to=tmp_path / "whole", progress=False)
    assert done.rows == whole.rows


@pytest.fixture
def fleet(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., stlf.Node]:
    """Makes devices of a fleet on this machine."""
    monkeypatch.chdir(tmp_path)
    assert cli("fleet", "init", "fleet").returncode == 0
    for name in NAMES:
        key = cli("node", "init", f"{name}.key").stdout.strip()
        assert cli("fleet", "add", name, key, "--fleet", "fleet").returncode == 0
    addresses = dict(zip(NAMES, free_addresses(len(NAMES)), strict=True))

    def device(at: int, break_at: str = "", **options: Any) -> stlf.Node:
        name = NAMES[at]
        usual: dict[str, Any] = {
            "config": {"seeds": [3], "divergence": {"features": 16}},
            "roster": "fleet/roster.json",
            "key": f"{name}.key",
            "to": f"node-{name}",
            "listen": addresses[name],
            "peers": {other: addresses[other] for other in NAMES[:at]},
            "once": True,
            "deadline": DEADLINE,
        }
        return stlf.Node(Means(at, break_at), **{**usual, **options})

    return device


def test_devices_in_this_process_end_as_the_simulation_does(fleet: Callable[..., stlf.Node], tmp_path: Path) -> None:
    heard: dict[str, list[stlf.node.Event]] = {name: [] for name in NAMES}

    # Noise is each device's own, and would make the simulator's plan another one.
    exact = {"features": 16, "privacy": "none", "accept": "others can rebuild my samples"}

    def take_part(at: int) -> None:
        with fleet(at, config={"seeds": [3], "divergence": exact}) as node:
            heard[NAMES[at]].extend(node)

    threads = [threading.Thread(target=take_part, args=(at,), daemon=True) for at in range(len(NAMES))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    assert not any(thread.is_alive() for thread in threads), heard
    for name, events in heard.items():
        kinds = {type(event) for event in events}
        assert {Training, Phase, Planned, Finished} <= kinds, (name, events)
        assert isinstance(events[-1], Finished), (name, events)
    assert any(isinstance(event, Progress) for event in heard["gate"])
    end = heard["mast"][-1]
    assert isinstance(end, Finished) and end.role == "target" and end.accuracy is not None and end.accuracy > 0.8
    assert end.expected is not None
    expected, low, high = end.expected
    assert 0 <= low <= expected <= high <= 1
    mine = stlf.load_with(Means(2), end.folder)
    assert mine.members == pytest.approx(end.members)
    # The same learners in a simulation, without a network, end with the same predictions.
    run = stlf.run({**CONFIG, "divergence": exact}, learners=learners(), to="run", progress=False)
    assert run.plan().targets == ["mast"]
    assert Path("node-mast/predictions.csv").read_text() == Path("run/seed-3/targets/mast.csv").read_text()


def test_a_device_that_is_left_early_stops_and_goes_on_later(fleet: Callable[..., stlf.Node]) -> None:
    with fleet(0, once=False) as node:
        while not isinstance(node.next(DEADLINE), Phase):
            assert not node._inner or not node._inner.has_ended
    with pytest.raises(stlf.InputError, match="this device does not run"):
        node.next()
    # Ctrl-C ends the wait for what never happens: this device is alone.
    main = threading.main_thread().ident
    assert main is not None
    with pytest.raises(KeyboardInterrupt), fleet(0, once=False) as again:
        first = again.next(DEADLINE)
        assert first == Training(None), first
        threading.Thread(target=signal.pthread_kill, args=(main, signal.SIGINT)).start()
        for _ in again:
            pass


def test_a_learner_that_cannot_train_leaves_its_device_without_labels(fleet: Callable[..., stlf.Node]) -> None:
    with fleet(0, break_at="train", once=False) as node:
        events = [node.next(DEADLINE)]
        while not isinstance(events[-1], Failed):
            events.append(node.next(DEADLINE))
            assert events[-1] is not None, events
    assert "the learner was to train, and says: ValueError: the pump is on fire" in events[-1].reason


def test_a_device_that_cannot_start_says_why(fleet: Callable[..., stlf.Node]) -> None:
    with pytest.raises(stlf.InputError, match="is no address"), fleet(0, listen="here"):
        pass
    with pytest.raises(stlf.Error, match="nobody.key"), fleet(0, key="nobody.key"):
        pass
    with pytest.raises(stlf.InputError, match="wait: 0 is not above 0"):
        fleet(0, wait=0)
