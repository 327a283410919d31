"""Classes as learners: what they say line by line, the examples tried, and three devices of a fleet."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Cli
from ports import free_addresses

import stlf
from stlf.learner import arrays
from stlf.learner.serve import Server

EXAMPLES = Path(__file__).parents[2] / "examples" / "learners"


class Means(stlf.Learner):
    """Two classes, each where its mean is."""

    name = "means/1"
    classes = ("low", "high")

    def __init__(self) -> None:
        self.x = np.arange(8, dtype=np.float32)[:, None]
        self.y = np.array([0, 0, -1, -1, -1, -1, 1, 1])

    def data(self) -> Any:
        return self.x, self.y

    def first(self) -> Any:
        return {"means": np.zeros((2, 1))}

    def train(self, lesson: stlf.Lesson) -> Any:
        lesson.progress(0, 2)
        print("this goes to the log")
        x, y = self.x[lesson.rows], self.y[lesson.rows]
        means = [x[y == k].mean(0) if (y == k).any() else lesson.start["means"][k] for k in (0, 1)]
        lesson.progress(2, 2)
        return {"means": np.array(means)}

    def predict(self, model: Any, rows: Any) -> Any:
        odds = np.exp(-np.abs(self.x[rows] - model["means"].T))
        return odds / odds.sum(1, keepdims=True)


class Talk:
    """A conversation with a learner in this process."""

    def __init__(self, learner: stlf.Learner, folder: Path) -> None:
        self.out, self.folder, self.next = io.StringIO(), folder, 0
        self.server = Server(learner, self.out)
        self.welcome = self.ask("hello", protocol="stlf-learner/1", folder=str(folder), seed=1)[-1]

    def ask(self, verb: str, **asked: Any) -> list[dict[str, Any]]:
        self.out.truncate(0)
        self.out.seek(0)
        self.server.answer({"id": self.next, verb: asked})
        lines = [json.loads(line) for line in self.out.getvalue().splitlines()]
        assert all(line.pop("id") == self.next for line in lines)
        self.next += 1
        return lines


def test_a_class_answers_line_by_line(tmp_path: Path) -> None:
    talk = Talk(Means(), tmp_path)
    assert talk.welcome["ok"] == {
        "protocol": "stlf-learner/1",
        "name": "means/1",
        "classes": ["low", "high"],
        "model": {"means": [2, 1]},
    }
    assert talk.ask("describe", to="s") == [{"ok": {"samples": 8}}]
    samples = arrays.read(tmp_path / "s")
    assert samples["features"].dtype == np.float32 and samples["labels"].tolist() == [0, 0, -1, -1, -1, -1, 1, 1]
    arrays.write(tmp_path / "rows", {"rows": np.array([0, 1, 7])})
    said = talk.ask("train", rows="rows", start=None, to="m", seed=3)
    assert said == [{"progress": {"done": 0, "total": 2}}, {"progress": {"done": 2, "total": 2}}, {"ok": {}}]
    assert arrays.read(tmp_path / "m")["means"].tolist() == [[0.5], [7.0]]
    arrays.write(tmp_path / "one", {"rows": np.array([6])})
    talk.ask("train", rows="one", start="m", to="on", seed=3)
    assert arrays.read(tmp_path / "on")["means"].tolist() == [[0.5], [6.0]]
    assert talk.ask("predict", model="m", rows="rows", to="p")[-1] == {"ok": {}}
    probabilities = arrays.read(tmp_path / "p")["probabilities"]
    assert probabilities.argmax(1).tolist() == [0, 0, 1] and np.allclose(probabilities.sum(1), 1)


class Adapting(Means):
    """The same, which moves its means to its own samples."""

    def adapt(self, adaptation: stlf.Adaptation) -> Any:
        adaptation.progress(1, 1)
        x, classes = self.x[adaptation.rows], adaptation.teacher.argmax(1)
        means = [x[classes == k].mean(0) if (classes == k).any() else adaptation.start["means"][k] for k in (0, 1)]
        return {"means": np.array(means)}

    def predict_altered(self, model: Any, rows: Any, seed: int) -> Any:
        noise = np.random.default_rng(seed).normal(0, 0.1, (len(rows), 1))
        odds = np.exp(-np.abs(self.x[rows] + noise - model["means"].T))
        return odds / odds.sum(1, keepdims=True)


def test_a_class_with_both_methods_trains_students(tmp_path: Path) -> None:
    talk = Talk(Adapting(), tmp_path)
    assert talk.welcome["ok"]["adapts"] is True
    arrays.write(tmp_path / "rows", {"rows": np.arange(8)})
    arrays.write(tmp_path / "start", {"means": np.array([[5], [9]], dtype=np.float32)})
    talk.ask("predict", model="start", rows="rows", to="teacher")
    said = talk.ask("adapt", rows="rows", teacher="teacher", start="start", to="student", seed=3)
    assert said == [{"progress": {"done": 1, "total": 1}}, {"ok": {}}]
    classes = arrays.read(tmp_path / "teacher")["probabilities"].argmax(1)
    expected = [np.arange(8)[classes == k].mean() for k in (0, 1) if (classes == k).any()]
    means = arrays.read(tmp_path / "student")["means"].reshape(-1)
    assert means.tolist()[: len(expected)] == expected
    for seed, name in [(1, "a"), (1, "b"), (2, "c"), (None, "d")]:
        asked = {} if seed is None else {"altered": seed}
        assert talk.ask("predict", model="start", rows="rows", to=name, **asked)[-1] == {"ok": {}}
    a, b, c, d = (arrays.read(tmp_path / name)["probabilities"] for name in "abcd")
    assert (a == b).all() and (a != c).any() and (a != d).any()

    class Half(Means):
        def adapt(self, adaptation: stlf.Adaptation) -> Any:
            return adaptation.start

    told = Talk(Half(), tmp_path).welcome["error"]["message"]
    assert "Half has adapt() and no predict_altered()" in told


def test_what_goes_wrong_is_said_and_the_next_request_may_come(tmp_path: Path) -> None:
    talk = Talk(Means(), tmp_path)
    arrays.write(tmp_path / "rows", {"rows": np.array([0])})
    arrays.write(tmp_path / "other", {"means": np.zeros((3, 1), dtype=np.float32)})

    def error(*args: Any, **asked: Any) -> str:
        return str(talk.ask(*args, **asked)[-1]["error"]["message"])

    assert "No such file" in error("predict", model="nothing", rows="rows", to="p")
    assert "expected the names and shapes of first()" in error("predict", model="other", rows="rows", to="p")
    (tmp_path / "broken").write_bytes(b"\x05\0\0\0\0\0\0\0nope!")
    assert "is no safetensors file" in error("predict", model="broken", rows="rows", to="p")
    assert "unknown request" in error("dance")
    assert "this learner speaks" in error("hello", protocol="stlf-learner/9", folder=".", seed=1)


def test_an_error_in_ones_own_code_is_told_in_one_line_with_its_place(tmp_path: Path) -> None:
    class Odd(Means):
        def train(self, lesson: stlf.Lesson) -> Any:
            return np.linalg.inv(np.zeros((2, 2)))

        def data(self) -> Any:
            raise stlf.InputError("no table", "name one")

    talk = Talk(Odd(), tmp_path)
    arrays.write(tmp_path / "rows", {"rows": np.array([0])})
    train, data = Odd.train.__code__.co_firstlineno + 1, Odd.data.__code__.co_firstlineno + 1
    told = talk.ask("train", rows="rows", start=None, to="m", seed=3)[-1]["error"]["message"]
    assert told == f"LinAlgError: Singular matrix (test_learner.py, line {train})"
    told = talk.ask("describe", to="s")[-1]["error"]["message"]
    assert told == f"InputError: no table; hint: name one (test_learner.py, line {data})"


def test_training_ends_when_it_is_asked_to(tmp_path: Path) -> None:
    learner = Means()
    talk = Talk(learner, tmp_path)
    arrays.write(tmp_path / "rows", {"rows": np.array([0])})
    train = learner.train

    def cancelled(lesson: stlf.Lesson) -> Any:
        talk.server._cancelled.set()
        return train(lesson)

    learner.train = cancelled  # type: ignore[method-assign]
    assert talk.ask("train", rows="rows", start=None, to="m", seed=3) == [{"cancelled": {}}]
    learner.train = train  # type: ignore[method-assign]
    assert talk.ask("train", rows="rows", start=None, to="m", seed=3)[-1] == {"ok": {}}


def test_arrays_are_those_of_pytorch_and_rust(tmp_path: Path) -> None:
    given = {"b": np.arange(6, dtype=np.float32).reshape(2, 3), "a": np.array([1, -1]), "c": np.float64(2.5)}
    arrays.write(tmp_path / "f", {name: np.asarray(part) for name, part in given.items()})
    file = (tmp_path / "f").read_bytes()
    length = int.from_bytes(file[:8], "little")
    assert length % 8 == 0 and len(file) == 8 + length + 16 + 24 + 8
    read = arrays.read(tmp_path / "f")
    assert all(
        np.array_equal(read[name], part) and read[name].dtype == np.asarray(part).dtype for name, part in given.items()
    )


def table(path: Path, device: int) -> list[str]:
    """A hundred pumps of a device; returns their true classes. The last device knows none of them."""
    rng = np.random.default_rng(device)
    x = rng.normal(0.2 * device, 1, (120, 3))
    classes = ["worn" if row[0] + row[1] > 0.2 * device else "ok" for row in x]
    shown = ["" if device == 2 or k % 6 == 0 else name for k, name in enumerate(classes)]
    rows = [",".join([*(f"{v:.5f}" for v in row), name]) for row, name in zip(x, shown, strict=True)]
    path.write_text("\n".join(["heat,wear,flow,class", *rows]) + "\n")
    return classes


def command(example: str, *arguments: str) -> str:
    return " ".join([sys.executable, "-m", "stlf.learner", example, *arguments])


@pytest.mark.parametrize("package", ["torch", "sklearn"])
def test_the_examples_pass_the_trial_of_programs(
    package: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(package)
    table(tmp_path / "pumps.csv", 0)
    monkeypatch.chdir(EXAMPLES)
    ran = cli("learner", "check", command(f"{package}_pumps:Pumps", str(tmp_path / "pumps.csv")), "--env", "PYTHONPATH")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count("passed") == 11 and ran.stdout.endswith("is a learner\n"), ran.stdout


def test_a_class_that_is_none_is_told(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "odd.py").write_text("import stlf\nclass Odd: pass\n")
    monkeypatch.chdir(tmp_path)
    for named, told in [
        ("odd:Odd", "odd:Odd is no stlf.Learner"),
        ("odd:Even", "the module odd has no Even"),
        ("even:Odd", "there is no module 'even'"),
        ("odd", "'odd' names no class"),
    ]:
        ran = cli("learner", "check", command(named), "--env", "PYTHONPATH")
        assert ran.returncode == 2 and told in ran.stdout, ran.stdout + ran.stderr


NAMES = ["gate", "pier", "mast"]

FRAGILE = """
import os
from pathlib import Path
from torch_pumps import Pumps

def once(folder, what):
    try:
        (Path(folder) / what).touch(exist_ok=False)
    except FileExistsError:
        return
    os._exit(1)

class Fragile(Pumps):
    def __init__(self, table):
        super().__init__(table)
        self.folder = Path(table).with_suffix("")
        self.folder.mkdir(exist_ok=True)

    def train(self, lesson):
        once(self.folder, "train")
        return super().train(lesson)

    def predict(self, model, rows):
        once(self.folder, "predict")
        return super().predict(model, rows)
"""


@pytest.mark.parametrize("learner", ["torch_pumps:Pumps", "fragile:Fragile"])
def test_three_devices_with_pytorch_as_processes(
    learner: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    (tmp_path / "fragile.py").write_text(FRAGILE)
    (tmp_path / "torch_pumps.py").write_text((EXAMPLES / "torch_pumps.py").read_text())
    monkeypatch.chdir(tmp_path)
    assert cli("fleet", "init", "fleet").returncode == 0
    for name in NAMES:
        key = cli("node", "init", f"{name}.key").stdout.strip()
        assert cli("fleet", "add", name, key, "--fleet", "fleet").returncode == 0
    truth = [table(tmp_path / f"{name}.csv", device) for device, name in enumerate(NAMES)]
    addresses = free_addresses(3)
    program = os.environ.get("STLF_BIN", "stlf")
    running = []
    for device, name in enumerate(NAMES):
        peers = ",".join(f"{NAMES[other]}={addresses[other]}" for other in range(device))
        arguments = [program, "node", "start", "-c", "seeds=[3]", "--fleet", "fleet/roster.json"]
        arguments += ["--key", f"{name}.key"]
        arguments += ["--listen", addresses[device], "--to", f"node-{name}", "--once", "--deadline", "300"]
        arguments += ["--learner", command(learner, f"{name}.csv"), "--learner-env", "PYTHONPATH"]
        arguments += ["--peers", peers] if peers else []
        log = open(tmp_path / f"{name}.log", "w")  # noqa: SIM115
        running.append(subprocess.Popen(arguments, stdout=log, stderr=log))
    try:
        codes = [device.wait(timeout=300) for device in running]
    finally:
        for device in running:
            device.kill()
    logs = "\n".join((tmp_path / f"{name}.log").read_text() for name in NAMES)
    assert codes == [0, 0, 0], logs
    # The device without labels has a mixture that predicts, and nothing was lost on the way.
    with open("node-mast/predictions.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["sample"]) for row in rows] == list(range(120)), logs
    right = np.mean([row["class"] == name for row, name in zip(rows, truth[2], strict=True)])
    assert right > 0.85, logs
    models = json.loads(Path("node-mast/mixture/models.json").read_text())
    assert (models["format"], models["role"], models["learner"]) == ("stlf-models/1", "target", "torch-pumps/1")
    monkeypatch.syspath_prepend(str(tmp_path))
    import torch_pumps  # type: ignore[import-not-found]

    mine = torch_pumps.Pumps("mast.csv")
    weights = np.array([member["weight"] for member in models["members"]])
    files = [Path("node-mast/mixture") / member["file"] for member in models["members"]]
    made = [np.asarray(mine.predict(arrays.read(file), np.arange(120))) for file in files]
    mixed = sum(weight * part for weight, part in zip(weights / weights.sum(), made, strict=True))
    assert [models["classes"][k] for k in mixed.argmax(1)] == [row["class"] for row in rows]
    if learner.startswith("fragile"):
        assert sorted(path.name for path in Path("gate").iterdir()) == ["predict", "train"]


def test_the_class_of_the_guide_passes_the_trial_of_programs(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guide = (EXAMPLES.parents[1] / "docs" / "learners.md").read_text()
    _, _, rest = guide.partition("<!-- file: pumps.py -->\n```python\n")
    (tmp_path / "pumps.py").write_text(rest.partition("```")[0])
    monkeypatch.chdir(tmp_path)
    ran = cli("learner", "check", command("pumps:Pumps"), "--env", "PYTHONPATH")
    assert ran.returncode == 0 and ran.stdout.count("passed") == 11, ran.stdout + ran.stderr


def test_a_learner_ends_with_whoever_started_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a training that would never end."""
    (tmp_path / "slow.py").write_text(
        "import threading\nfrom test_learner import Means\n\n"
        "class Slow(Means):\n    def train(self, lesson):\n        lesson.progress(1, 0)\n"
        "        threading.Event().wait()\n"
    )
    monkeypatch.chdir(tmp_path)
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    learner = subprocess.Popen(
        command("slow:Slow").split(), env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert learner.stdin and learner.stdout
    arrays.write(tmp_path / "rows", {"rows": np.array([0])})
    for request in [
        {"id": 0, "hello": {"protocol": "stlf-learner/1", "folder": str(tmp_path), "seed": 1}},
        {"id": 1, "train": {"rows": "rows", "start": None, "to": "m", "seed": 1}},
    ]:
        learner.stdin.write(json.dumps(request) + "\n")
        learner.stdin.flush()
        assert json.loads(learner.stdout.readline())["id"] == request["id"]
    learner.stdin.close()
    assert learner.wait(timeout=60) == 0
