"""Tables in plain text and in HTML, with numbers as the terminal writes them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from stlf import _internal


def short(value: float | None) -> str:
    """A number with four digits.

    >>> short(12.34567), short(0.5), short(None)
    ('12.35', '0.5', '')
    """
    return "" if value is None else _internal.short(value)


def energy(joules: float) -> str:
    """An energy in a unit that fits.

    >>> energy(17.21), energy(0.01205), energy(12345.0), energy(0.0)
    ('17.21 J', '12.05 mJ', '12.35 kJ', '0 J')
    """
    return _internal.energy(joules)


def percent(fraction: float) -> str:
    """A fraction as percent.

    >>> percent(0.5236), percent(1e-9)
    ('52.4 %', 'under 0.01 %')
    """
    return _internal.percent(fraction)


def text(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> str:
    """Columns under their names, with two spaces between; those in `right` end together.

    >>> print(text(["device", "J"], [["gate", "3.1"], ["roof", "12"]], right=["J"]))
    device    J
    gate    3.1
    roof     12
    """
    lines = [list(columns), *[list(row) for row in rows]]
    widths = [max(len(line[k]) for line in lines) for k in range(len(columns))]
    padded = (
        [
            cell.rjust(width) if name in right else cell.ljust(width)
            for cell, width, name in zip(line, widths, columns, strict=True)
        ]
        for line in lines
    )
    return "\n".join("  ".join(cells).rstrip() for cells in padded)


def html(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in HTML, for a notebook.

    >>> html(["a"], [["<b>"]])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """

    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f"<table><thead>{line(columns, 'th')}</thead><tbody>{body}</tbody></table>"
