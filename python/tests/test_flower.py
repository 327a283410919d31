"""The strategy and the mod, over a grid in this process: what is asked, planned, sent and left out."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stlf
from stlf import privacy, sketch

os.environ["FLWR_TELEMETRY_ENABLED"] = "0"  # Flower reads it when it is imported
pytest.importorskip("flwr", reason="stlf.flower needs Flower: pip install 'stlf[flower]'")

from flwr.app import Array, ArrayRecord, Context, Error, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg
from flwr.supercore.task_identity import TaskIdentity

import stlf.flower
from stlf.flower import STLF, StlfMod, mixture, received
from stlf.flower.records import KEY, SKETCH, Question, Report

SAMPLES = 120


class Loopback(Grid):
    """Hands every message to the client of its node, in this process, and keeps what crossed."""

    def __init__(self, clients: dict[int, tuple[ClientApp, Context]], *, backwards: bool = False) -> None:
        self.clients = clients
        self.backwards = backwards
        self.crossed: list[tuple[int, str, RecordDict, RecordDict | None]] = []

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:
        replies = []
        for message in messages:
            node = message.metadata.dst_node_id
            app, context = self.clients[node]
            try:
                reply = app(message, context)
            except Exception as failure:  # as Flower's runtime does
                reply = Message(Error(code=1, reason=str(failure)), reply_to=message)
            answer = reply.content if reply.has_content() else None
            self.crossed.append((node, message.metadata.message_type, message.content, answer))
            replies.append(reply)
        return replies[::-1] if self.backwards else replies

    def get_node_ids(self) -> list[int]:
        return list(self.clients)

    @property
    def run(self) -> Any:
        raise NotImplementedError

    def set_run(self, run: Any) -> None:
        raise NotImplementedError

    def create_message(self, *arguments: Any, **named: Any) -> Message:
        raise NotImplementedError

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        raise NotImplementedError

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        raise NotImplementedError


@pytest.fixture(autouse=True)
def identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages can be made only where Flower knows whose they are."""
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


def inputs_of(place: int) -> np.ndarray:
    """Devices 0, 2, 4 lie in one place, 1, 3, 5 in another."""
    return np.random.default_rng(place).normal(4.0 * (place % 2), 1, (SAMPLES, 3)).astype(np.float32)


def labels_of(place: int) -> np.ndarray | None:
    return (inputs_of(place)[:, 0] > 0).astype(int) if place < 4 else None


def a_client(
    place: int,
    *,
    error: float | None = 0.1,
    fails: str = "",
    privacy: tuple[float, float] | None = None,
    features: int | None = None,
) -> ClientApp:
    """A client whose model is one number, which training raises by its place plus one."""

    def data(context: Context) -> tuple[np.ndarray, np.ndarray | None]:
        if fails == "data":
            raise RuntimeError("the disk is gone")
        return inputs_of(place), labels_of(place)

    app = ClientApp(mods=[StlfMod(data, privacy=privacy, features=features)])

    @app.train()
    def train(message: Message, context: Context) -> Message:
        if fails == "train":
            raise RuntimeError("out of memory")
        value = message.content["arrays"]["w"].numpy() + place + 1
        metrics = {"num-examples": SAMPLES} | ({} if error is None else {"error": error})
        content = {"arrays": ArrayRecord({"w": Array(value)}), "metrics": MetricRecord(metrics)}
        return Message(RecordDict(content), reply_to=message)

    @app.evaluate()
    def evaluate(message: Message, context: Context) -> Message:
        value = sum(float(arrays["w"].numpy()[0]) * weight for arrays, weight in received(message.content))
        metrics = MetricRecord({"num-examples": 1, "value": value})
        return Message(RecordDict({"metrics": metrics}), reply_to=message)

    return app


def a_grid(make: Callable[[int], ClientApp] = a_client, devices: int = 6, **options: bool) -> Loopback:
    """Nodes whose numbers are not in the order of their devices."""
    clients = {}
    for place in range(devices):
        node = 1000 - 7 * place
        config = {"partition-id": place, "num-partitions": devices}
        context = Context(run_id=1, node_id=node, node_config=config, state=RecordDict(), run_config={})
        clients[node] = (make(place), context)
    return Loopback(clients, **options)


def start() -> ArrayRecord:
    return ArrayRecord({"w": Array(np.zeros(1))})


def value(arrays: ArrayRecord) -> float:
    return float(arrays["w"].numpy()[0])


def test_the_server_has_the_divergences_that_the_devices_sketches_give() -> None:
    strategy = STLF(features=32)
    strategy.start(a_grid(lambda place: a_client(place, features=32)), start(), num_rounds=1)
    assert [member.name for member in strategy.members] == [str(place) for place in range(6)]
    assert [member.labeled for member in strategy.members] == [SAMPLES] * 4 + [0] * 2
    assert strategy.divergence is not None
    fleet = stlf.Fleet.from_devices({str(place): (inputs_of(place), labels_of(place)) for place in range(6)})
    together = stlf.measure(fleet, "discrepancy", features=32)
    # But for the noise, which devices draw.
    assert np.abs(strategy.divergence.values - together.values).max() < 0.5
    alike = np.add.outer(np.arange(6), np.arange(6)) % 2 == 0
    # Means alone, of 120 samples, stray more than moments would.
    assert strategy.divergence.values[alike].max() < 1 < 1.5 < strategy.divergence.values[~alike].min()


def test_sources_train_on_and_targets_get_what_is_like_them() -> None:
    strategy = STLF(phi_e=0.0)
    result = strategy.start(a_grid(), start(), num_rounds=2)
    assert strategy.plan is not None
    assert strategy.plan.sources == ["0", "1", "2", "3"]
    # Two rounds of raising by place + 1, each from its own.
    assert {name: value(model) for name, model in strategy.models.items()} == {"0": 2, "1": 4, "2": 6, "3": 8}
    weights = {target: strategy.plan.senders(target) for target in ("4", "5")}
    assert set(weights["4"]) == {"0", "2"}
    assert set(weights["5"]) == {"1", "3"}
    for target, senders in weights.items():
        expected = sum(value(strategy.models[name]) * weight for name, weight in senders.items())
        assert strategy.evaluations[target]["value"] == pytest.approx(expected)
    assert list(result.evaluate_metrics_clientapp) == [1, 2]


def test_parameters_are_averaged_and_predictions_sent_side_by_side() -> None:
    by = {}
    for combination in ("parameters", "predictions"):
        strategy = STLF(combination=combination, phi_e=0.0)
        strategy.start(a_grid(), start(), num_rounds=1)
        by[combination] = strategy
    averaged, apart = (by[name].mixture_of("4") for name in by)
    assert list(averaged) == ["arrays"]
    assert list(apart) == ["arrays.1", "arrays.2", KEY]
    shares = sum(value(arrays) * weight for arrays, weight in received(apart))
    assert value(averaged["arrays"]) == pytest.approx(shares)
    mixed = mixture(apart, lambda arrays: lambda x: np.tile([value(arrays) == 1, value(arrays) != 1], (len(x), 1)))
    shares_of = {value(arrays): weight for arrays, weight in received(apart)}
    assert mixed([[0.0]])[0] == pytest.approx([shares_of[1], shares_of[3]])
    with pytest.raises(stlf.InputError, match="0 is a source"):
        by["predictions"].mixture_of("0")


def test_the_warm_up_is_fedavg() -> None:
    ours, theirs = STLF(warm_up=3), FedAvg(fraction_evaluate=0.0)
    average = ours.start(a_grid(devices=4), start(), num_rounds=3).arrays
    assert ours.plan is None
    assert ours.evaluations == {}
    assert value(average) == value(theirs.start(a_grid(devices=4), start(), num_rounds=3).arrays) == 7.5


def test_after_the_warm_up_each_goes_on_from_the_average() -> None:
    strategy = STLF(warm_up=1)
    strategy.start(a_grid(), start(), num_rounds=2)
    assert {name: value(model) for name, model in strategy.models.items()} == {"0": 3.5, "1": 4.5, "2": 5.5, "3": 6.5}


def test_results_do_not_depend_on_who_answers_first() -> None:
    ran = []
    for backwards in (False, True):
        strategy = STLF(warm_up=1)
        first = ArrayRecord({"w": Array(np.random.default_rng(0).normal(size=50))})
        strategy.start(a_grid(backwards=backwards), first, num_rounds=3)
        assert strategy.plan is not None
        models = {name: model["w"].numpy().tolist() for name, model in strategy.models.items()}
        ran.append((_without_times(strategy.plan.to_json()), models))
    assert ran[0] == ran[1]


def _without_times(plan: str) -> dict[str, Any]:
    document = json.loads(plan)
    document["solver"].pop("seconds")
    return document


def test_a_device_whose_model_is_bad_becomes_a_target_and_trains_no_more() -> None:
    grid = a_grid(lambda place: a_client(place, error=0.95 if place == 2 else 0.02))
    strategy = STLF(phi_s=2.0)  # with so few samples a target's own term is large
    strategy.start(grid, start(), num_rounds=3)
    assert strategy.plan is not None
    assert strategy.plan.targets == ["2", "4", "5"]
    assert value(strategy.models["2"]) == 3  # one round
    assert value(strategy.models["0"]) == 3  # three


def test_who_cannot_answer_is_left_out() -> None:
    strategy = STLF()
    strategy.start(a_grid(lambda place: a_client(place, fails="data" if place == 5 else "")), start(), num_rounds=1)
    assert [member.name for member in strategy.members] == ["0", "1", "2", "3", "4"]


def test_who_cannot_train_is_no_source() -> None:
    strategy = STLF()
    strategy.start(a_grid(lambda place: a_client(place, fails="train" if place == 0 else "")), start(), num_rounds=1)
    assert strategy.plan is not None
    assert "0" in strategy.plan.targets
    assert "0" not in strategy.models


def test_nobody_trained() -> None:
    with pytest.raises(stlf.Error, match="no device has trained"):
        STLF().start(a_grid(lambda place: a_client(place, fails="train")), start(), num_rounds=1)


def test_clients_without_the_mod_are_told() -> None:
    with pytest.raises(stlf.Error, match="no node answered"):
        STLF().start(a_grid(lambda place: ClientApp()), start(), num_rounds=1)


def test_too_few_nodes_end_the_wait() -> None:
    with pytest.raises(stlf.Error, match="2 nodes connected in 0.3 s, of 3"):
        STLF(min_available_nodes=3, timeout=0.3).start(a_grid(devices=2), start(), num_rounds=1)


def test_training_must_report_its_error() -> None:
    with pytest.raises(stlf.InputError, match="its metrics have no 'error'"):
        STLF().start(a_grid(lambda place: a_client(place, error=None)), start(), num_rounds=1)


def test_names_must_differ() -> None:
    def same(place: int) -> ClientApp:
        return ClientApp(mods=[StlfMod(lambda context: (inputs_of(place), None), name=lambda context: "gate")])

    def registered(place: int) -> ClientApp:
        app = same(place)
        app.train()(lambda message, context: Message(message.content, reply_to=message))
        return app

    with pytest.raises(stlf.InputError, match="two nodes are called 'gate'"):
        STLF().start(a_grid(registered), start(), num_rounds=1)


def test_nothing_but_counts_sketches_errors_and_models_leaves_a_device() -> None:
    grid = a_grid(lambda place: a_client(place, features=16))
    STLF(features=16).start(grid, start(), num_rounds=2)
    seen = set()
    for _, _, _, answer in grid.crossed:
        assert answer is not None
        for name, record in answer.items():
            seen |= {f"{name}.{key}" for key in record}
            if name == SKETCH:
                assert record["mean"].numpy().shape == (16,)
    ours = {f"{KEY}.{key}" for key in ("name", "labeled", "unlabeled", "samples")}
    theirs = {"arrays.w", "metrics.num-examples", "metrics.error", "metrics.value"}
    assert seen == ours | {f"{SKETCH}.mean"} | theirs


def test_moments_are_given_to_nobody_unless_the_client_accepts_what_they_tell() -> None:
    def with_consent(place: int) -> ClientApp:
        app = ClientApp(mods=[StlfMod(lambda context: (inputs_of(place), None), accept=sketch.ACCEPTED)])
        app.train()(lambda message, context: Message(message.content, reply_to=message))
        return app

    with pytest.raises(stlf.Error, match="no node answered"):
        STLF(moments=True).start(a_grid(), start(), num_rounds=1)
    grid = a_grid(with_consent)
    with pytest.raises(stlf.Error, match="no device has trained"):
        STLF(moments=True).start(grid, start(), num_rounds=1)
    assert all("covariance" in answer[SKETCH] for _, _, _, answer in grid.crossed if answer and SKETCH in answer)


def test_a_client_answers_one_question_in_a_run() -> None:
    app, context = a_grid(lambda place: a_client(place, privacy=(1.0, 1e-5))).clients[1000]

    def ask(question: Question) -> RecordDict:
        return app(Message(question.record(), dst_node_id=1000, message_type="train"), context).content

    first = ask(Question(seed=0, privacy=(1.0, 1e-5)))
    again = ask(Question(seed=0, privacy=(1.0, 1e-5)))
    # Noise that was drawn again could be averaged away.
    assert np.array_equal(first[SKETCH]["mean"].numpy(), again[SKETCH]["mean"].numpy())
    for other in (Question(seed=1), Question(seed=0, features=16), Question(seed=0, bandwidth=1e300)):
        with pytest.raises(stlf.InputError, match="another sketch in the same run"):
            ask(other)


def test_noise_is_the_devices_own() -> None:
    _, context = a_grid().clients[1000]
    mod = StlfMod(lambda context: (inputs_of(0), None), features=32, privacy=(1.0, 1e-5))
    question = Question(seed=0, features=32, privacy=(1.0, 1e-5))
    first, second = (mod.report(question, context).sketch for _ in range(2))
    assert first.covariance is None
    assert not np.array_equal(first.mean, second.mean)
    # With base noise alone the same question has the same answer, as long as the client runs.
    mod = StlfMod(lambda context: (inputs_of(0), None), features=32)
    again = [mod.report(Question(seed=0, features=32), context).sketch for _ in range(2)]
    assert np.array_equal(again[0].mean, again[1].mean)


def test_the_server_does_not_choose_by_which_features_clients_answer_over_runs() -> None:
    _, context = a_grid().clients[1000]
    mod = StlfMod(lambda context: (inputs_of(0), None), seed=4)
    assert mod.report(Question(seed=4), context).labeled == 0
    asked = [("seed", Question(seed=0)), ("bandwidth", Question(seed=4, bandwidth=0.5))]
    for name, question in [*asked, ("features", Question(seed=4, features=4096))]:
        with pytest.raises(stlf.InputError, match=f"^{name}: the server asks for"):
            mod.report(question, context)


def test_a_client_counts_its_sketches_over_all_runs(tmp_path: Path) -> None:
    _, context = a_grid().clients[1000]
    ledger = tmp_path / "privacy.json"
    asked = (1.0, 1e-5)
    mod = StlfMod(
        lambda context: (inputs_of(0), None), privacy=asked, ledger=lambda context: ledger, budget=1.2, features=32
    )
    question = Question(seed=0, features=32, privacy=asked)
    mod.report(question, context)
    assert privacy.recorded(ledger, 1e-5)[0] == 1
    with pytest.raises(stlf.InputError, match="would spend"):
        mod.report(question, context)


@pytest.mark.parametrize("asked", [None, (2.0, 1e-5), (1.0, 1e-3)])
def test_a_client_that_insists_on_noise_gives_no_sketch_with_less(asked: tuple[float, float] | None) -> None:
    with pytest.raises(stlf.Error, match="no node answered"):
        STLF(privacy=asked).start(a_grid(lambda place: a_client(place, privacy=(1.0, 1e-5))), start(), num_rounds=1)
    STLF(privacy=(1.0, 1e-5)).start(a_grid(lambda place: a_client(place, privacy=(1.0, 1e-5))), start(), num_rounds=1)


@pytest.mark.parametrize("asked", [(20.0, 0.99), (1.0, 1e-5)])
def test_the_server_does_not_choose_the_noise_of_a_client_that_set_none(asked: tuple[float, float]) -> None:
    _, context = a_grid().clients[1000]
    mod = StlfMod(lambda context: (np.eye(20), None))
    # Noise so weak would stand in for the samples that are missing.
    with pytest.raises(stlf.InputError, match="^privacy: the server asks for .* this client set none"):
        mod.report(Question(seed=0, privacy=asked), context)
    with pytest.raises(stlf.InputError, match="could reconstruct 20 samples"):
        mod.report(Question(seed=0), context)


def test_a_report_survives_the_way() -> None:
    made = sketch.sketch(np.eye(64), features=8, moments=True, accept=sketch.ACCEPTED)
    back = Report.read(Report("gate", 1, 3, made).record())
    assert back.sketch.samples == 64
    assert np.array_equal(back.sketch.mean, made.mean)
    assert np.array_equal(back.sketch.covariance, made.covariance)


def test_models_and_weights_must_match() -> None:
    two = RecordDict({"a": start(), "b": start()})
    with pytest.raises(stlf.InputError, match="2 models and 1 weights"):
        received(two)


def test_without_flower_the_message_says_so() -> None:
    code = "import sys; sys.modules['flwr'] = None; import stlf.flower"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert "stlf.errors.MissingError: stlf.flower needs flwr\nhint: pip install 'stlf[flower]'" in ran.stderr


def test_what_the_guide_shows_is_python_and_there() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "flower.md").read_text()
    blocks = [block for block in re.findall(r"(?:^    .*\n|^\n)+", guide, flags=re.MULTILINE) if "stlf.flower" in block]
    assert len(blocks) == 3
    for block in blocks:
        for node in ast.walk(ast.parse(textwrap.dedent(block))):
            if isinstance(node, ast.ImportFrom) and node.module == "stlf.flower":
                assert all(hasattr(stlf.flower, alias.name) for alias in node.names)
    settings = set(inspect.signature(STLF.__init__).parameters) - {"self", "planning"}
    assert all(f"`{name}`" in guide for name in settings)
