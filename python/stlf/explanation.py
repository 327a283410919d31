"""Why a device has its role, what changed between two plans, and at which energy weights a plan changes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stlf.errors import optional
from stlf.table import energy, percent, short, text

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Explanation:
    """Why one device has its role, what came second, and what would change the answer. Printed, it is prose."""

    device: str
    """Its name."""
    role: str
    """`source` or `target`."""
    costs: list[tuple[float, str]]
    """Its part of the objective, by term, the largest first."""
    sentences: list[str]
    """Why, and what would change it."""
    document: dict[str, Any] = field(repr=False)
    """The device's entry of `stlf-explanation/1`, with every number."""

    @staticmethod
    def _of(explained: tuple[str, str, list[tuple[float, str]], list[str]]) -> Explanation:
        document, why, costs, further = explained
        entry = json.loads(document)["devices"][0]
        return Explanation(entry["name"], entry["role"], costs, [why, *further], entry)

    def __str__(self) -> str:
        """The text of the command line."""
        rows = [[short(cost), of] for cost, of in self.costs]
        rows.append([short(sum(cost for cost, _ in self.costs)), "together"])
        why, *further = self.sentences
        blocks = [why, text(["cost", "of"], rows, right=["cost"])]
        if further:
            blocks.append("\n".join(further))
        return "\n\n".join(blocks)


@dataclass(frozen=True)
class Difference:
    """What changed from one plan to another. Printed, it is a summary."""

    same: bool
    """Whether devices, roles and links are the same, whatever they cost."""
    roles: list[tuple[str, str, str]]
    """Devices whose role differs: name, role before, role after."""
    links: list[tuple[str, str, float | None, float | None]]
    """Links that differ: sender, receiver, weight before and after, None where there is none."""
    handovers: list[tuple[str, str | None, str | None]]
    """Sources that take a different model: source, whose model before, whose after, None where it has its own."""
    objective: tuple[float, float]
    """The objective before and after."""
    document: dict[str, Any] = field(repr=False)
    """`stlf-diff/1`."""

    @staticmethod
    def _of(document: str) -> Difference:
        read = json.loads(document)
        return Difference(
            read["same"],
            [(change["device"], change["before"], change["after"]) for change in read["roles"]],
            [(change["from"], change["to"], change["before"], change["after"]) for change in read["links"]],
            [(change["to"], change["before"], change["after"]) for change in read["handovers"]],
            (read["objective"]["before"], read["objective"]["after"]),
            read,
        )

    def __str__(self) -> str:
        """A line for every change."""
        before, after = self.objective
        cost = f"objective {short(before)} → {short(after)}"
        if self.same:
            return f"the same roles and links; {cost}"
        lines = [f"only {which}: {name}" for which in ("before", "after") for name in self._only(which)]
        lines += [f"{device}: {was} → {now}" for device, was, now in self.roles]
        for sender, receiver, was, now in self.links:
            sign = "~" if was is not None and now is not None else "-" if now is None else "+"
            weights = " → ".join(percent(weight) for weight in (was, now) if weight is not None)
            lines.append(f"{sign} {sender} → {receiver}  {weights}")
        lines += [f"{to} takes the model of {now or 'none'} (was {was or 'none'})" for to, was, now in self.handovers]
        return "\n".join([*lines, cost])

    def _only(self, which: str) -> list[str]:
        return list(self.document["removed_devices" if which == "before" else "added_devices"])


@dataclass(frozen=True)
class Segment:
    """A range of the energy weight φ^E and the plan that is optimal throughout."""

    low: float
    """The smallest φ^E of the range."""
    high: float
    """The largest φ^E of the range."""
    joules: float
    """The energy of all links, in joules."""
    error_bound: float
    """The sources' and targets' part of the objective."""
    sources: list[str]
    """The sources."""
    links: dict[tuple[str, str], float]
    """Weights by sender and receiver."""
    handovers: dict[str, str]
    """The sources that take another source's model, and from which source."""


@dataclass(frozen=True)
class Sweep:
    """Every energy weight at which the optimal plan changes, within a range."""

    segments: list[Segment]
    """Ascending in φ^E, each beginning where the one before ends."""
    solves: int
    """The number of times that the fleet was planned."""
    proven: bool
    """Whether every breakpoint is proven."""
    largest_gap: float
    """The largest gap of these plans; 0 if all are proven optimal."""

    @staticmethod
    def _of(names: list[str], swept: tuple[list[Any], int, bool, float]) -> Sweep:
        segments, solves, proven, gap = swept

        def segment(one: Any) -> Segment:
            low, high, joules, bound, _, is_target, links, handovers = one
            sources = [name for name, target in zip(names, is_target, strict=True) if not target]
            by_link = {(names[i], names[j]): w for i, j, w in links}
            return Segment(low, high, joules, bound, sources, by_link, {names[j]: names[i] for i, j in handovers})

        return Sweep([segment(one) for one in segments], solves, proven, gap)

    def _rows(self) -> list[list[Any]]:
        return [
            [s.low, s.high, s.joules, len(s.links), len(s.sources), s.error_bound, "; ".join(s.sources)]
            for s in self.segments
        ]

    _COLUMNS = ("from", "to", "joules", "links", "sources", "error bound", "source names")

    def to_pandas(self) -> pandas.DataFrame:
        """Return a row per segment."""
        frames = optional("pandas", "to_pandas()", "pandas")
        return frames.DataFrame(self._rows(), columns=list(self._COLUMNS))

    def plot(self, ax: Any = None) -> Any:
        """Draw joules and error bound against the energy weight. Returns matplotlib's axes."""
        if ax is None:
            ax = optional("matplotlib.pyplot", "plot()", "plot").subplots()[1]
        edges = [self.segments[0].low, *(segment.high for segment in self.segments)]
        joules = [segment.joules for segment in self.segments]
        bounds = [segment.error_bound for segment in self.segments]
        # Without a baseline: a step that falls to 0 at both ends would look like a value.
        left = ax.stairs(joules, edges, baseline=None, linewidth=2, label="energy")
        ax.set_xscale("log")
        ax.set_xlabel("energy weight φᴱ")
        ax.set_ylabel("energy of links (joules)")
        other = ax.twinx()
        right = other.stairs(bounds, edges, baseline=None, color="C1", linestyle="--", linewidth=2, label="error bound")
        other.set_ylabel("error bound, sources + targets")
        ax.legend(handles=[left, right], loc="best")
        return ax

    def __str__(self) -> str:
        """A table, and whether it is proven."""
        rows = [[short(v) if isinstance(v, float) else str(v) for v in row] for row in self._rows()]
        # Numbers in a data frame are joules; what people read has its unit.
        headings = (*self._COLUMNS[:2], "energy", *self._COLUMNS[3:])
        for row, segment in zip(rows, self.segments, strict=True):
            row[2] = energy(segment.joules)
        proof = "every breakpoint proven" if self.proven else f"not all proven (gap up to {percent(self.largest_gap)})"
        return text(headings, rows, right=headings[:-1]) + f"\n\n{len(rows)} plans, {proof}"
