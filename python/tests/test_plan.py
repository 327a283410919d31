"""Plans: made, read back, explained, compared, swept; and the same as the command line's."""

import gzip
import json
import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Cli
from drawn import fleet_of, problem_of

import stlf


def plan_of(seed: int, **settings: Any) -> stlf.Plan:
    return stlf.plan(problem_of(seed), **settings)


def test_a_plan_is_what_it_says() -> None:
    for seed in range(20):
        plan = plan_of(seed)
        assert plan.status == "optimal"
        assert plan.stopped_by is None
        assert plan.gap <= 1e-9
        assert sorted(plan.sources + plan.targets) == sorted(plan.names)
        is_target = np.isin(plan.names, plan.targets)
        np.testing.assert_allclose(plan.weights.sum(axis=0), is_target, atol=1e-9)
        assert not plan.weights[is_target].any()
        assert plan.objective == pytest.approx(sum(plan.terms.values()))
        assert plan.links == {
            (plan.names[i], plan.names[j]): plan.weights[i, j] for i, j in zip(*np.nonzero(plan.weights), strict=True)
        }
        for target in plan.targets:
            assert sum(plan.senders(target).values()) == pytest.approx(1)


def test_optimal_is_said_only_of_what_is_proven() -> None:
    paper = plan_of(1, bound="paper", solver="successive")
    exact = plan_of(1, bound="paper")
    assert exact.status == "optimal"
    assert exact.objective <= paper.objective * (1 + 1e-9)
    if paper.objective > exact.objective * (1 + 1e-6):
        assert paper.status == "feasible"
    unpolished = plan_of(1, bound="paper", solver="successive", polish=False)
    assert unpolished.objective >= paper.objective * (1 - 1e-9)
    assert unpolished.solver["trace"]
    hurried = stlf.plan(problem_of(5, devices=120), time_limit=0.0, phi_s=3.0)
    assert hurried.status == "feasible"
    assert hurried.stopped_by == "time-limit"
    assert hurried.gap > 0
    assert "time limit" in hurried.certainty
    assert "no plan costs under" in str(hurried)
    content = stlf.plan(problem_of(5, devices=120), gap=0.5, phi_s=3.0)
    assert content.gap <= 0.5


def test_settings_weigh() -> None:
    cheap, dear = plan_of(3, phi_e=0.0), plan_of(3, phi_e=5.0)
    assert dear.joules is not None
    assert cheap.joules is not None
    assert dear.joules < cheap.joules
    assert cheap.problem.weights == (1.0, 1.0, 0.0)
    assert plan_of(3, preset="paper").problem.weights == (1.0, 5.0, 1.0)
    # Dear sources are fewer.
    assert len(plan_of(3, phi_s=10.0).sources) < len(plan_of(3).sources)
    paper = plan_of(3, bound="paper")
    assert paper.bound == "paper"
    assert all(len(paper.senders(target)) == 1 for target in paper.targets)


def test_a_fleet_is_measured_planned_and_pinned() -> None:
    fleet = fleet_of(4)
    errors = {"d0": 0.1, "d2": 0.2, "d4": 0.9}
    plan = stlf.plan(fleet, errors=errors)
    np.testing.assert_array_equal(stlf.plan(fleet, stlf.measure(fleet), errors).weights, plan.weights)
    # Half of each would count half: here all samples of a device with labels have one.
    assert plan.problem.source_errors == {"d0": 0.1, "d1": None, "d2": 0.2, "d3": None, "d4": 0.9, "d5": None}
    pinned = stlf.plan(fleet, errors=errors, roles={"d2": "target"}, required=[("d0", "d2")], forbidden=[("d0", "d1")])
    assert "d2" in pinned.targets
    assert pinned.senders("d2")["d0"] > 0
    assert ("d0", "d1") not in pinned.links
    energy = stlf.energy(len(fleet), seed=3)
    assert np.isnan(np.diag(energy)).all()
    with_energy = stlf.plan(fleet, errors=[0.1, None, 0.2, None, 0.9, None], energy=energy)
    used = sum(energy[i, j] for i, j in np.argwhere(with_energy.weights))
    assert with_energy.joules == pytest.approx(used)


def test_samples_without_labels_count_in_the_error() -> None:
    labels = np.array([0] * 30 + [-1] * 10)
    fleet = stlf.Fleet.from_devices({"a": (np.zeros((40, 1)), labels), "b": (np.zeros((5, 1)), None)})
    problem = stlf.Problem.from_fleet(fleet, np.zeros((2, 2)), {"a": 0.2})
    assert problem.source_errors["a"] == pytest.approx((0.2 * 30 + 10) / 40)
    half = stlf.Problem.from_fleet(fleet, np.zeros((2, 2)), {"a": 0.2}, unlabeled_as=0.5)
    assert half.source_errors["a"] == pytest.approx((0.2 * 30 + 5) / 40)


FLEET = stlf.Fleet.from_devices({"gate": ([[0.0]], [0]), "roof": ([[0.5]], None)})
SQUARE = [[0, 0.4], [0.4, 0]]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, stlf.InputError, "errors: they are missing"),
        ({"errors": {}}, stlf.InputError, r"devices\[0\].source_error \(gate\): is missing for a labeled device"),
        ({"errors": {"gaet": 0.1}}, stlf.InputError, "errors: there is no device 'gaet'"),
        ({"errors": [0.1]}, stlf.InputError, "errors: 1 for 2 devices"),
        ({"errors": [0.1, None], "phi_e": -1.0}, stlf.InputError, "weights.energy"),
        ({"errors": [0.1, None], "bound": "poled"}, stlf.InputError, "bound: there is no"),
        ({"errors": [0.1, None], "preset": "mine"}, stlf.InputError, "preset: there is no"),
        ({"errors": [0.1, None], "solver": "magic"}, stlf.InputError, "solver: there is no"),
        ({"errors": [0.1, None], "time_limit": -1.0}, stlf.InputError, "time_limit: -1 is no time"),
        (
            {"errors": [0.1, None], "divergence": np.zeros((3, 3))},
            stlf.InputError,
            "divergence: has 3 rows, expected 2",
        ),
        ({"errors": [0.1, None], "divergence": np.zeros(3)}, stlf.InputError, "an array with 1 axes is not a matrix"),
        ({"errors": [0.1, None], "roles": {"roof": "source"}}, stlf.InputError, "roof has no labeled data"),
        ({"errors": [0.1, None], "roles": {"attic": "source"}}, stlf.InputError, "roles: there is no device 'attic'"),
        (
            {"errors": [0.1, None], "required": [("gate", "attic")]},
            stlf.InputError,
            r"required_links\[0\].to: there is no",
        ),
        (
            {"errors": [0.1, None], "energy": np.full((2, 2), np.nan)},
            stlf.InfeasibleError,
            "no plan exists: roof must be a target, .*\nhint: give roof a link from a labeled device",
        ),
        (
            {"errors": [0.1, None], "bound": "pooled", "solver": "successive"},
            stlf.InputError,
            "the successive solver works only under the paper's bound",
        ),
    ],
)
def test_what_cannot_be_planned_is_said_as_everywhere(
    arguments: dict[str, Any], error: type[stlf.Error], message: str
) -> None:
    with pytest.raises(error, match=message) as raised:
        stlf.plan(FLEET, **{"divergence": SQUARE, **arguments})
    assert isinstance(raised.value, stlf.Error)
    assert raised.value.hint


def test_files_go_both_ways(tmp_path: Path) -> None:
    plan = plan_of(7)
    plan.save(tmp_path / "plan.json")
    plan.problem.save(tmp_path / "problem.json")
    again = stlf.Plan.read(tmp_path / "plan.json")
    assert again.to_json() == plan.to_json()
    np.testing.assert_array_equal(again.weights, plan.weights)
    # A plan repeats its problem, and is taken wherever a problem is.
    assert stlf.Problem.read(tmp_path / "plan.json").to_json() == plan.problem.to_json()
    assert stlf.plan(tmp_path / "plan.json").links == plan.links
    replanned = stlf.plan(tmp_path / "problem.json")
    np.testing.assert_array_equal(replanned.weights, plan.weights)
    assert stlf.plan(json.loads(plan.problem.to_json())).objective == plan.objective
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan.json", "problem.json"]
    changed = json.loads(plan.to_json())
    changed["terms"]["target"] += 1
    (tmp_path / "changed.json").write_text(json.dumps(changed))
    with pytest.raises(stlf.InputError, match="changed.json: objective: this is not a plan for this problem"):
        stlf.Plan.read(tmp_path / "changed.json")
    del changed["problem"]
    (tmp_path / "bare.json").write_text(json.dumps({**changed, "terms": json.loads(plan.to_json())["terms"]}))
    with pytest.raises(stlf.InputError, match="problem: is not in this plan"):
        stlf.Plan.read(tmp_path / "bare.json")
    assert stlf.Plan.read(tmp_path / "bare.json", plan.problem).objective == plan.objective
    with pytest.raises(stlf.FileError, match="cannot write"):
        plan.save(tmp_path / "no" / "plan.json")
    with pytest.raises(stlf.FileError, match="cannot read"):
        stlf.Plan.read(tmp_path)


def test_raw_costs_have_no_joules(tmp_path: Path) -> None:
    costs = {"format": "stlf-problem/1", "costs": {"source": [1, None], "link": [[None, 2], [None, None]]}}
    plan = stlf.plan(costs)
    assert plan.objective == 3
    assert plan.joules is None
    assert "d2" in plan.table()
    with pytest.raises(stlf.InputError, match="raw costs have no energy weight"):
        plan.sweep()
    with pytest.raises(stlf.InputError, match="weights: cannot be combined with costs"):
        stlf.plan(costs, phi_e=1.0)


def test_explained_compared_and_swept() -> None:
    plan = plan_of(2)
    for name in plan.names:
        why = plan.explain(name)
        assert why.device == name
        assert why.role == ("source" if name in plan.sources else "target")
        assert sum(cost for cost, _ in why.costs) == pytest.approx(why.document["cost"])
        assert why.document["proven"]
        assert str(why).startswith(f"{name} is a {why.role}")
    with pytest.raises(stlf.InputError, match="there is no device"):
        plan.explain("nobody")
    assert plan.diff(plan).same
    assert str(plan.diff(plan)).startswith("the same roles and links")
    dear = stlf.plan(plan.problem, phi_e=3.0)
    difference = plan.diff(dear)
    assert not difference.same
    assert difference.objective == (plan.objective, dear.objective)
    gone = {(sender, receiver) for sender, receiver, was, now in difference.links if now is None}
    assert gone == set(plan.links) - set(dear.links)
    assert all(line in str(difference) for line in (f"- {a} → {b}" for a, b in gone))
    swept = plan.sweep(1e-3, 1e3)
    assert swept.proven
    assert (swept.segments[0].low, swept.segments[-1].high) == (1e-3, 1e3)
    here = next(s for s in swept.segments if s.low <= 0.05 <= s.high)
    assert here.joules == pytest.approx(plan.joules)
    assert set(here.links) == set(plan.links)
    joules = [segment.joules for segment in swept.segments]
    assert joules == sorted(joules, reverse=True)
    assert "every breakpoint proven" in str(swept)
    with pytest.raises(stlf.InputError, match="low and high"):
        plan.sweep(1.0, 0.5)


def test_shown_in_notebooks_tables_and_pictures() -> None:
    plan = plan_of(2)
    page = plan._repr_html_()
    assert all(f"<td>{name}</td>" in page for name in plan.names)
    assert "proven optimal" in page
    assert plan.table() in str(plan)
    pytest.importorskip("pandas", reason="to_pandas() needs pandas")
    frame = plan.to_pandas()
    assert list(frame.index) == plan.names
    assert frame.loc[plan.sources[0], "role"] == "source"
    assert len(plan.sweep().to_pandas()) == len(plan.sweep().segments)
    pytest.importorskip("matplotlib", reason="plot() needs matplotlib")
    swept = plan.sweep().plot()
    assert swept.get_xlabel() == "energy weight φᴱ"
    assert [entry.get_text() for entry in swept.get_legend().get_texts()] == ["energy", "error bound"]
    assert min(point[1] for point in swept.patches[0].get_path().vertices) > 0  # no step falls to nothing at the ends
    drawn = plan.plot()
    assert {text.get_text() for text in drawn.texts} >= set(plan.names)
    assert len(drawn.lines) == len(plan.links)


def without_time(document: str) -> dict[str, Any]:
    plan: dict[str, Any] = json.loads(document)
    plan["solver"]["seconds"] = 0
    return plan


def compare_with_cli(cli: Cli, problem: str, *, bound: str | None = None) -> None:
    """The same document, but for the time that it took."""
    arguments = [] if bound is None else ["--bound", bound]
    ran = cli("plan", "-", "--format", "json", *arguments, stdin=problem)
    try:
        plan = stlf.plan(stlf.Problem.from_json(problem), bound=bound)
    except stlf.InfeasibleError as error:
        assert ran.returncode == 3
        assert ran.stderr.strip() == f"error: {error}"
        return
    assert ran.returncode == 0, ran.stderr
    assert without_time(plan.to_json()) == without_time(ran.stdout)
    # And written alike.
    lines = [line for line in plan.to_json().splitlines() if '"seconds"' not in line]
    assert lines == [line for line in ran.stdout.splitlines() if '"seconds"' not in line]


def test_drawn_problems_are_planned_as_by_the_command_line(cli: Cli) -> None:
    for seed in range(30):
        compare_with_cli(cli, problem_of(seed, devices=4 + seed % 9).to_json(), bound=["paper", "pooled"][seed % 2])


def test_published_instances_are_planned_as_by_the_command_line(cli: Cli, shared: Path) -> None:
    with gzip.open(shared / "golden" / "published-instances.json.gz", "rt") as file:
        instances = json.load(file)
    assert len(instances) > 200
    for instance in instances.values():
        # Their divergences are in percent.
        compare_with_cli(cli, json.dumps({**instance["problem"], "scale": "free"}))


def test_percent_where_a_share_is_meant_is_refused() -> None:
    fleet = fleet_of(4)
    with pytest.raises(stlf.InputError, match=r"errors: d0: 6 is not between 0 and 1") as raised:
        stlf.plan(fleet, errors={"d0": 6, "d2": 0.2, "d4": 0.9})
    assert "did you mean 0.06?" in str(raised.value)
    with pytest.raises(stlf.InputError, match=r"errors: d0: expected a number, found 'x'"):
        stlf.plan(fleet, errors={"d0": "x", "d2": 0.2, "d4": 0.9})  # type: ignore[dict-item]
    with pytest.raises(stlf.InputError, match=r"gap: 7 is not a fraction from 0 to 1") as raised:
        stlf.plan(fleet, errors={"d0": 0.06, "d2": 0.2, "d4": 0.9}, gap=7)
    assert "did you mean 0.07?" in str(raised.value)
    document = json.loads(problem_of(0, devices=4).to_json())
    document["divergence"][0][1] = 9
    with pytest.raises(stlf.InputError, match=r"9 is not between 0 and 2"):
        stlf.Problem.from_dict(document)
    free = stlf.Problem.from_dict({**document, "scale": "free"})
    assert stlf.Problem.from_json(free.to_json()).names == free.names


def test_a_plan_is_saved_through_links_and_pipes(tmp_path: Path) -> None:
    plan = plan_of(0)
    link = tmp_path / "link.json"
    link.symlink_to("plan.json")
    plan.save(link)
    assert link.is_symlink()
    assert stlf.Plan.read(tmp_path / "plan.json").objective == plan.objective
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        reading = pool.submit(pipe.read_text)
        plan.save(pipe)
        assert reading.result(timeout=600) == plan.to_json()
    assert pipe.is_fifo()


def test_errors_are_worded_as_by_the_command_line(cli: Cli, tmp_path: Path) -> None:
    whole = json.loads(problem_of(0, devices=4).to_json())
    negative = json.loads(json.dumps(whole))
    negative["devices"][0]["source_error"] = -1
    unreachable = json.loads(json.dumps(whole))
    unreachable["link_energy"] = [[None] * 4] * 4
    unknown = {**whole, "divergance": []}
    for k, document in enumerate([negative, unreachable, unknown]):
        path = tmp_path / f"{k}.json"
        path.write_text(json.dumps(document))
        with pytest.raises(stlf.Error) as raised:
            stlf.plan(path)
        assert cli("plan", str(path)).stderr.strip() == f"error: {raised.value}"


def test_how_long_ten_devices_take(capsys: pytest.CaptureFixture[str]) -> None:
    problem = problem_of(0)
    times = []
    for _ in range(200):
        start = time.perf_counter()
        stlf.plan(problem)
        times.append(time.perf_counter() - start)
    with capsys.disabled():
        print(
            f"\nplan() of 10 devices: median {1e3 * statistics.median(times):.3f} ms, longest {1e3 * max(times):.3f} ms"
        )


def alike(sources: int = 5, targets: int = 5) -> dict[str, Any]:
    """Devices that differ in nothing but labels: there one model goes round."""
    devices: list[dict[str, Any]] = [
        {"name": f"s{i}", "labeled": 500, "unlabeled": 100, "source_error": 0.1} for i in range(sources)
    ]
    devices += [{"name": f"t{i}", "labeled": 0, "unlabeled": 100} for i in range(targets)]
    size = sources + targets
    return {
        "format": "stlf-problem/1",
        "preset": "balanced",
        "devices": devices,
        "divergence": np.zeros((size, size)).tolist(),
        "link_energy": np.ones((size, size)).tolist(),
    }


def test_sources_hand_models_on_where_that_is_asked_for(tmp_path: Path) -> None:
    alone, plan = stlf.plan(alike()), stlf.plan(alike(), handovers=True)
    assert alone.handovers == {}
    assert len(plan.handovers) == 4
    assert plan.objective < alone.objective
    assert plan.lower_bound <= plan.objective
    assert plan.stopped_by == "no-proof"
    (last,) = {sender for sender, _ in plan.links}
    assert sorted(plan.route(last)) == plan.sources
    assert plan.route(last)[-1] == last
    assert plan.joules == pytest.approx(9)
    assert "5 links and 4 hand-overs" in str(plan)
    assert f"{plan.handovers[last]} (hand-over)" in plan.table()
    assert plan.explain(last).sentences[1].startswith(f"It continues training {plan.handovers[last]}'s model")
    changed = alone.diff(plan)
    assert not changed.same
    assert {to: now for to, was, now in changed.handovers if was is None} == plan.handovers
    assert any(segment.handovers for segment in plan.sweep(1e-2, 1e-1).segments)
    plan.save(tmp_path / "plan.json")
    assert stlf.Plan.read(tmp_path / "plan.json").handovers == plan.handovers
    with pytest.raises(stlf.InputError, match="the paper's bound does not reward them"):
        stlf.plan(alike(), handovers=True, bound="paper")


def test_sources_that_are_all_far_go_round_on_a_ring(tmp_path: Path) -> None:
    problem = alike() | {"divergence": np.full((10, 10), 1.8).tolist()}
    for device in problem["devices"][:5]:
        device["labeled"] = 100
    plan = stlf.plan(problem, handovers=True)
    (last,) = {sender for sender, _ in plan.links}
    assert sorted(plan.handovers) == sorted(plan.handovers.values()) == plan.sources
    assert sorted(plan.route(last)) == plan.sources
    assert plan.route(last)[-1] == last
    # Five links; four hand-overs twice, and once from the last to the first.
    assert plan.joules == pytest.approx(5 + 9)
    plan.save(tmp_path / "plan.json")
    assert stlf.Plan.read(tmp_path / "plan.json").route(last) == plan.route(last)
