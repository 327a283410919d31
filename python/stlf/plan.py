"""Which devices train, and which models each other device receives, with what weight."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import numpy.typing as npt

from stlf import _internal, files
from stlf.combine import PredictionMixture, combine
from stlf.divergence import Divergence, measure
from stlf.errors import InputError, optional
from stlf.explanation import Difference, Explanation, Sweep
from stlf.fleet import Fleet, place_of
from stlf.parameters import Model
from stlf.problem import Bound, Errors, Link, Preset, Problem, Role
from stlf.progress import Progress, bars
from stlf.table import energy, html, percent, short, text

if TYPE_CHECKING:
    import pandas

Solver = Literal["exact", "successive"]


class Plan:
    """Roles, weighted links, their cost, and the proof or gap.

    >>> fleet = Fleet.from_devices({"gate": (np.zeros((900, 1)), np.zeros(900)), "roof": (np.zeros((800, 1)), None)})
    >>> made = plan(fleet, [[0, 0.4], [0.4, 0]], {"gate": 0.1})
    >>> made
    Plan(1 source, 1 target; proven optimal)
    >>> made.sources, made.targets, made.weights.tolist()
    (['gate'], ['roof'], [[0.0, 1.0], [0.0, 0.0]])
    >>> print(made.table())
    device  role    samples  labeled  error  energy  receives from
    gate    source      900      900    0.1
    roof    target      800        0            1 J  gate
    """

    def __init__(self, compiled: _internal.Plan) -> None:
        """Wrap a plan of the compiled part; use `plan` or `Plan.read` instead."""
        self._compiled = compiled

    @staticmethod
    def read(path: files.AnyPath, problem: Problem | None = None) -> Plan:
        """Read `stlf-plan/2` or `/1`; a plan that does not contain its problem needs it.

        >>> Plan.read("no-such-file.json")
        Traceback (most recent call last):
        stlf.errors.InputError: there is no file no-such-file.json
        """
        inner = None if problem is None else problem._compiled
        return Plan(_internal.Plan.read(files.read(path), file=os.fspath(path), problem=inner))

    @cached_property
    def problem(self) -> Problem:
        """The problem that was planned."""
        return Problem(self._compiled.problem)

    @cached_property
    def names(self) -> list[str]:
        """The names of all devices."""
        return self.problem.names

    @cached_property
    def sources(self) -> list[str]:
        """The devices that train."""
        return [name for name, target in zip(self.names, self._compiled.is_target, strict=True) if not target]

    @cached_property
    def targets(self) -> list[str]:
        """The devices that receive."""
        return [name for name, target in zip(self.names, self._compiled.is_target, strict=True) if target]

    @cached_property
    def weights(self) -> npt.NDArray[np.float64]:
        """α as a square, row = sender: a target's column adds up to 1, a source's to 0."""
        senders, receivers, weights = self._compiled.links
        matrix = np.zeros((len(self.names), len(self.names)))
        matrix[senders, receivers] = weights
        return matrix

    @cached_property
    def links(self) -> dict[Link, float]:
        """The links in use, α by sender and receiver. For large fleets, where a square is too much."""
        return {
            (self.names[sender], self.names[receiver]): float(weight)
            for sender, receiver, weight in zip(*self._compiled.links, strict=True)
        }

    @cached_property
    def handovers(self) -> dict[str, str]:
        """The sources that take another source's model, and from which source. Empty unless requested."""
        return {self.names[to]: self.names[from_] for from_, to in self._compiled.handovers}

    def route(self, source: str | int) -> list[str]:
        """Return the sources that trained a source's model, in their order, the source itself last."""
        route = [self.names[place_of(source, self.names)]]
        # On a ring a model comes back to where it was.
        while (before := self.handovers.get(route[-1])) is not None and before not in route:
            route.append(before)
        return route[::-1]

    def senders(self, device: str | int) -> dict[str, float]:
        """Return the sources of a target with their weights; nothing for a source.

        >>> fleet = Fleet.from_devices({"gate": ([[0.0]], [0]), "roof": ([[0.5]], None)})
        >>> plan(fleet, [[0, 0.4], [0.4, 0]], [0.1, None]).senders("roof")
        {'gate': 1.0}
        """
        own = place_of(device, self.names)
        senders, receivers, weights = self._compiled.links
        at = np.flatnonzero(receivers == own)
        return {self.names[senders[k]]: float(weights[k]) for k in at}

    def combine(self, device: str | int, models: Mapping[str, Model]) -> Model:
        """Average the models that a target receives; `stlf.combine` says how."""
        return combine(models, self._senders_of_target(device))

    def mixture(self, device: str | int, predictors: Mapping[str, Any]) -> PredictionMixture:
        """Mix the predictions of the models that a target receives.

        The mixture can be pickled if the predictors can; `pickle` or joblib saves and loads it.
        """
        return PredictionMixture(predictors, self._senders_of_target(device))

    def _senders_of_target(self, device: str | int) -> dict[str, float]:
        senders = self.senders(device)
        if not senders:
            name = self.names[place_of(device, self.names)]
            raise InputError(f"{name} is a source and receives nothing", "it uses its own model")
        return senders

    @property
    def status(self) -> str:
        """`optimal` only where that is proven; else `feasible`, and `gap` says how far from optimal it may be."""
        return self._compiled.status

    @property
    def stopped_by(self) -> str | None:
        """What ended the search before a proof: `gap`, `time-limit`, `no-proof`; None where it is proven."""
        return self._compiled.stopped_by

    @property
    def objective(self) -> float:
        """The objective: the cost of the plan."""
        return self._compiled.objective

    @property
    def lower_bound(self) -> float:
        """The lower bound: no plan costs less."""
        return self._compiled.lower_bound

    @property
    def gap(self) -> float:
        """The largest fraction of the cost that a better plan could save."""
        return self._compiled.gap

    @property
    def terms(self) -> dict[str, float]:
        """The objective's parts: source, target, energy."""
        return dict(zip(("source", "target", "energy"), self._compiled.terms, strict=True))

    @property
    def joules(self) -> float | None:
        """Energy of all links and hand-overs; None with raw costs."""
        joules = self._compiled.joules
        return None if joules is None else joules[0]

    @property
    def bound(self) -> str:
        """`pooled` or `paper`."""
        return self._compiled.bound

    @property
    def solver(self) -> dict[str, Any]:
        """How it was found: name, iterations (or nodes), seconds, and the trace of the successive solver."""
        return dict(zip(("name", "iterations", "seconds", "trace"), self._compiled.solver, strict=True))

    @property
    def certainty(self) -> str:
        """The status in words."""
        if self.status == "optimal":
            return "proven optimal"
        why = {"gap": "as asked", "time-limit": "time limit", "no-proof": "no proof"}.get(self.stopped_by or "", "")
        if not np.isfinite(self.gap):
            return f"how far from optimal is unknown ({why})"
        return f"within {percent(self.gap)} of optimal ({why})"

    _COLUMNS = ("device", "role", "samples", "labeled", "error", "joules", "receives from")
    # Numbers in a data frame are joules; what people read has its unit.
    _HEADINGS = (*_COLUMNS[:5], "energy", *_COLUMNS[6:])

    def _rows(self) -> list[tuple[Any, ...]]:
        unknown: list[tuple[int | None, int | None, float | None]] = [(None, None, None)] * len(self.names)
        devices = self._compiled.problem.devices or unknown
        joules = dict.fromkeys(range(len(self.names)), 0.0)
        senders: dict[int, list[tuple[float, str]]] = {}
        from_, to, weights = self._compiled.links
        costs = self._compiled.link_joules or [0.0] * len(to)
        for sender, receiver, weight, cost in zip(from_, to, weights, costs, strict=True):
            joules[int(receiver)] += cost
            senders.setdefault(int(receiver), []).append((-float(weight), self.names[sender]))
        handed = dict.fromkeys(range(len(self.names)), "")
        for (sender, receiver), cost in zip(
            self._compiled.handovers, self._compiled.handover_joules or [], strict=False
        ):
            joules[receiver] += cost
            handed[receiver] = f"{self.names[sender]} (hand-over)"
        rows = []
        for place, (name, target) in enumerate(zip(self.names, self._compiled.is_target, strict=True)):
            labeled, unlabeled, error = devices[place]
            samples = None if labeled is None or unlabeled is None else labeled + unlabeled
            mixture = sorted(senders.get(place, []))
            shares = [name if weight == -1 else f"{percent(-weight)} {name}" for weight, name in mixture]
            own = joules[place] if (target or handed[place]) and self.joules is not None else None
            receives = handed[place] or ", ".join(shares)
            rows.append((name, "target" if target else "source", samples, labeled, error, own, receives))
        return rows

    def _cells(self) -> list[list[str]]:
        def cell(value: Any) -> str:
            if value is None:
                return ""
            return f"{value:,}" if isinstance(value, int) else short(value) if isinstance(value, float) else value

        return [[*map(cell, row[:5]), "" if row[5] is None else energy(row[5]), cell(row[6])] for row in self._rows()]

    def table(self) -> str:
        """Return every device with its role and whose models it receives, as text."""
        return text(self._HEADINGS, self._cells(), right=self._HEADINGS[2:6])

    def to_pandas(self) -> pandas.DataFrame:
        """Return the table as a data frame, one row per device."""
        frames = optional("pandas", "to_pandas()", "pandas")
        return frames.DataFrame(self._rows(), columns=list(self._COLUMNS)).set_index("device")

    def plot(self, ax: Any = None) -> Any:
        """Draw who sends to whom: sources on the left, targets on the right, a link as wide as its weight.

        Hand-overs between sources are dashed. Returns matplotlib's axes.

        >>> fleet = Fleet.from_devices({"gate": ([[0.0]], [0]), "roof": ([[0.5]], None)})
        >>> plan(fleet, [[0, 0.4], [0.4, 0]], [0.1, None]).plot().get_title()
        '1 source, 1 target; proven optimal'
        """
        if ax is None:
            ax = optional("matplotlib.pyplot", "plot()", "plot").subplots()[1]
        sides = [(0.0, self.sources, "right"), (1.0, self.targets, "left")]
        places = {name: (x, self._height(side, name)) for x, side, _ in sides for name in side}
        for (sender, receiver), weight in self.links.items():
            (x, y), (to_x, to_y) = places[sender], places[receiver]
            ax.plot([x, to_x], [y, to_y], color="0.6", linewidth=0.5 + 3 * weight, zorder=1)
        for receiver, sender in self.handovers.items():
            bent = {"arrowstyle": "->", "linestyle": "--", "color": "C0", "connectionstyle": "arc3,rad=0.4"}
            ax.annotate("", places[receiver], places[sender], arrowprops=bent)
        for x, side, alignment in sides:
            marker, colour = ("s", "C0") if x == 0 else ("o", "C1")
            ax.scatter([x] * len(side), [places[name][1] for name in side], color=colour, marker=marker, zorder=2)
            for name in side:
                offset = (-8 if alignment == "right" else 8, 0)
                ax.annotate(name, places[name], offset, textcoords="offset points", ha=alignment, va="center")
        ax.set_xlim(-0.5, 1.5)
        ax.set_ylim(0, 1)
        ax.set_xticks([0, 1], ["sources", "targets"])
        ax.set_yticks([])
        ax.set_title(self._headline())
        return ax

    @staticmethod
    def _height(side: list[str], name: str) -> float:
        """Where a device stands on its side, from the top."""
        return 1 - (side.index(name) + 0.5) / len(side)

    @overload
    def explain(self, device: str | int, *, time_limit: float = ..., progress: Progress = ...) -> Explanation: ...

    @overload
    def explain(
        self, device: None = None, *, time_limit: float = ..., progress: Progress = ...
    ) -> list[Explanation]: ...

    def explain(
        self, device: str | int | None = None, *, time_limit: float = 60.0, progress: Progress = None
    ) -> Explanation | list[Explanation]:
        """Explain why a device has its role, what came second, and what would change it.

        Without a device, explains all of them; the time limit is for each.

        >>> fleet = Fleet.from_devices({"gate": ([[0.0]], [0]), "roof": ([[0.5]], None)})
        >>> print(plan(fleet, [[0, 0.4], [0.4, 0]], [0.1, None]).explain("roof").sentences[0])
        roof is a target: it has no labels and cannot train.
        >>> [one.role for one in plan(fleet, [[0, 0.4], [0.4, 0]], [0.1, None]).explain()]
        ['source', 'target']
        """
        if device is None:
            return [self.explain(place, time_limit=time_limit, progress=progress) for place in range(len(self.names))]
        with bars(progress) as see:
            return Explanation._of(self._compiled.explain(place_of(device, self.names), time_limit, see))

    def diff(self, other: Plan, *, threshold: float = 1e-3) -> Difference:
        """Return what changes from this plan to another; weights within the threshold count as equal.

        >>> fleet = Fleet.from_devices({"gate": ([[0.0]], [0]), "roof": ([[0.5]], None)})
        >>> first = plan(fleet, [[0, 0.4], [0.4, 0]], [0.1, None])
        >>> first.diff(plan(first.problem, phi_e=2.0)).same
        True
        """
        return Difference._of(_internal.diff(self._compiled, other._compiled, threshold))

    def sweep(
        self,
        low: float = 1e-3,
        high: float = 1e4,
        *,
        gap: float = 0.0,
        time_limit: float = 60.0,
        progress: Progress = None,
    ) -> Sweep:
        """Find every energy weight φ^E in a range at which the optimal plan changes.

        >>> fleet = Fleet.from_devices({"gate": ([[0.0]], [0]), "roof": ([[0.5]], None)})
        >>> len(plan(fleet, [[0, 0.4], [0.4, 0]], [0.1, None]).sweep().segments)
        1
        """
        _check_gap(gap)
        if not 0 < low < high < np.inf:
            raise InputError(f"low and high: {low} and {high}", "give two numbers above 0 with the smaller first")
        with bars(progress) as see:
            return Sweep._of(self.names, self._compiled.sweep(low, high, gap, time_limit, see))

    def to_json(self) -> str:
        """Return `stlf-plan/2`, as the command line writes it."""
        return self._compiled.document()

    def save(self, path: files.AnyPath) -> None:
        """Write `stlf-plan/2` to a file, which the command line reads too."""
        files.write(path, self.to_json())

    def _headline(self) -> str:
        def counted(devices: list[str], noun: str) -> str:
            return f"{len(devices):,} {noun}{'' if len(devices) == 1 else 's'}"

        return f"{counted(self.sources, 'source')}, {counted(self.targets, 'target')}; {self.certainty}"

    def _figures(self) -> list[str]:
        terms = " + ".join(f"{short(value)} {name}" for name, value in self.terms.items())
        figures = [f"objective {short(self.objective)} = {terms}"]
        if self.status != "optimal":
            figures.append(f"no plan costs under {short(self.lower_bound)}")
        if self.joules is not None:
            count = len(self._compiled.links[0])
            over = f"{count:,} link{'' if count == 1 else 's'}"
            if handovers := len(self._compiled.handovers):
                over += f" and {handovers:,} hand-over{'' if handovers == 1 else 's'}"
            figures.append(f"{energy(self.joules)} over {over}")
        exact = self._compiled.exact
        if exact is not None:
            figures.append(f"{'optimum, proven' if exact[1] else 'best known'}: {short(exact[0])}")
        return figures

    def __repr__(self) -> str:
        """The numbers of sources and targets, and the status."""
        return f"Plan({self._headline()})"

    def __str__(self) -> str:
        """The whole summary."""
        return "\n\n".join([self._headline(), self.table(), "\n".join(self._figures())])

    def _repr_html_(self) -> str:
        """The table for a notebook."""
        figures = "<br>".join(self._figures())
        return f"<p><b>{self._headline()}</b></p>{html(self._HEADINGS, self._cells())}<p>{figures}</p>"


def _check_gap(gap: float) -> None:
    """Refuse what is no fraction: who writes 7 most likely means 7 %."""
    if not 0 <= gap <= 1:
        meant = f"did you mean {gap / 100:g}?" if 1 < gap <= 100 else "0.01 stands for 1 %"
        raise InputError(f"gap: {gap:g} is not a fraction from 0 to 1", meant)


def plan(
    what: Fleet | Problem | Mapping[str, Any] | files.AnyPath,
    divergence: Divergence | npt.ArrayLike | None = None,
    errors: Errors | None = None,
    *,
    energy: npt.ArrayLike | None = None,
    phi_s: float | None = None,
    phi_t: float | None = None,
    phi_e: float | None = None,
    preset: Preset | None = None,
    bound: Bound | None = None,
    solver: Solver = "exact",
    unlabeled_as: float = 1.0,
    roles: Mapping[str, Role] | None = None,
    forbidden: Iterable[Link] = (),
    required: Iterable[Link] = (),
    polish: bool = True,
    handovers: bool = False,
    gap: float = 0.0,
    time_limit: float = 60.0,
    progress: Progress = None,
) -> Plan:
    """Decide which devices train, and which models each other device receives, with what weight.

    Plan a `Fleet`, a `Problem`, or `stlf-problem/1` as a dictionary or a file, which may be a plan. For a fleet:

    - `divergence` is what `measure` gives (and is measured if it is left out), or your own square matrix;
    - `errors` is how often each device's own model errs on labels that it was not trained on, by name or in order,
      None without labels. A device's samples without a label count as `unlabeled_as` each;
    - `energy` is the joules to send a model, row = sender, NaN where there is no link; one number stands for all;
    - `roles` fixes devices as `source` or `target`; `forbidden` and `required` are links (sender, receiver).

    `phi_s`, `phi_t`, `phi_e` weigh the sources' bounds, the targets' and energy; `preset` is `balanced` or `paper`;
    `bound` is `pooled` (several sources may share a target) or `paper`; `solver` is `exact` or the paper's
    `successive`, whose rounded plan `polish` improves. The search ends at a proof, at the `gap` asked for, or at
    the `time_limit` in seconds, and says so. With `handovers`, sources may hand their models on to other sources, which
    continue training them: fewer links for the same mixture, with a gap instead of a proof.

    >>> fleet = Fleet.from_devices({"gate": ([[0.0]], [0]), "roof": ([[0.5]], None)})
    >>> plan(fleet, [[0, 0.4], [0.4, 0]], {"gate": 0.1}, phi_e=0.5).status
    'optimal'
    >>> plan(fleet, [[0, 0.4], [0.4, 0]], {"gate": 0.1}, roles={"gate": "target"})
    Traceback (most recent call last):
    stlf.errors.InfeasibleError: no plan exists: no device can be a source: none has labeled data, or every labeled \
device is fixed as a target
    hint: at least one device needs labeled data and no fixed role as a target
    """
    _check_gap(gap)
    settings: dict[str, Any] = {"preset": preset, "phi_s": phi_s, "phi_t": phi_t, "phi_e": phi_e, "bound": bound}
    if solver == "successive":
        settings["needs_paper"] = "the successive solver"
    of_fleet = {"divergence": divergence, "errors": errors, "energy": energy, "roles": roles}
    if isinstance(what, Fleet):
        if errors is None:
            raise InputError("errors: they are missing", "give each model's error, 0 to 1; stlf.train measures them")
        measured = measure(what, progress=progress) if divergence is None else divergence
        problem = Problem.from_fleet(
            what,
            measured,
            errors,
            energy=1.0 if energy is None else energy,
            unlabeled_as=unlabeled_as,
            roles=roles,
            forbidden=forbidden,
            required=required,
            **settings,
        )
    else:
        misplaced = [name for name, value in of_fleet.items() if value is not None]
        if misplaced:
            raise InputError(f"{misplaced[0]}: a problem has its own", "leave it out, or plan a fleet")
        if isinstance(what, Problem):
            problem = what.with_settings(**settings)
        elif isinstance(what, Mapping):
            problem = Problem.from_dict(what, **settings)
        else:
            problem = Problem.read(what, **settings)
    with bars(progress) as see:
        compiled = _internal.plan(
            problem._compiled,
            solver=solver,
            polish=polish,
            handovers=handovers,
            gap=gap,
            time_limit=time_limit,
            progress=see,
        )
    return Plan(compiled)
