# SPDX-License-Identifier: MIT
"""Parses the distributions of SIZES, THINK and FLOW_SIZES: fixed:14p, exponential:80kB, pareto:80kB:1.5 (mean, shape),
lognormal:80kB:2 (mean, sigma), bimodal:2p:62p:0.1 (low, high, share of high), file:PATH (an empirical distribution, a
line per point). draws.py computes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from hosts.traffic import draws
from lib import regular, units
from lib.units import Quantity
from lib.values import number

# Least share of the mean that must lie in values that can be drawn. With less, the load is far from the requested load.
LEAST_DRAWN_SHARE = 0.75
MOST_FILE_BYTES = 8 << 20
# Name of a distribution -> its parameters as in a plan, each a quantity (Q) or a number (N).
_FORMS = {
    "fixed": (("value", "Q"),),
    "exponential": (("mean", "Q"),),
    "pareto": (("mean", "Q"), ("shape", "N")),
    "lognormal": (("mean", "Q"), ("sigma", "N")),
    "bimodal": (("low", "Q"), ("high", "Q"), ("high_share", "N")),
}
_FILE = "file"
_EXAMPLES = {"bytes": "fixed:14p, pareto:80kB:1.5 or file:sizes.txt", "time": "exponential:1s or fixed:200ms"}


class Drawn(NamedTuple):
    """A distribution as given: its name in a plan, and its parameters (Quantity, Fraction, or the points of a file)."""

    text: str
    name: str
    parameters: Mapping[str, Any]


def is_distribution(text: str) -> bool:
    """Whether a text begins with the name of a distribution."""
    return text.strip().partition(":")[0].lower() in (*_FORMS, _FILE)


def read_distribution(*dimensions: str) -> Callable[[object], Drawn]:
    """A parser of distributions whose quantities have one of `dimensions`."""

    def read(value: object) -> Drawn:
        words = str(value).strip().split(":")
        name = words[0].lower()
        if name == _FILE and "bytes" in dimensions:
            return Drawn(str(value), "empirical", {"points": read_points(Path(":".join(words[1:])))})
        form = _FORMS.get(name)
        if form is None or len(words) != len(form) + 1:
            shapes = [":".join((kind, *(key.upper() for key, _ in keys))) for kind, keys in _FORMS.items()]
            shapes += [f"{_FILE}:PATH"] if "bytes" in dimensions else []
            allowed = "; ".join(shapes)
            raise ValueError(f"is not a distribution; allowed: {allowed}; as in {_EXAMPLES[dimensions[0]]}")
        parameters: dict[str, Any] = {}
        for (key, kind), word in zip(form, words[1:]):
            try:
                parameters[key] = units.parse(word, dimensions) if kind == "Q" else number("0", "1000")(word)
            except ValueError as error:
                raise ValueError(f"has {key.upper()} {word!r}, which {error}") from None
        drawn = Drawn(str(value), name, parameters)
        try:
            share = draws.distribution(in_base_units(drawn, 1460)).drawn_share()
        except draws.DrawError as error:
            raise ValueError(f"cannot be drawn: {error}") from None
        if share < LEAST_DRAWN_SHARE:
            raise ValueError(f"has {1 - share:.0%} of its mean in values too rare to be drawn; allowed: a lighter "
                             "tail, from a larger SHAPE or HIGH_SHARE, or a smaller SIGMA")  # fmt: skip
        return drawn

    return read


def read_points(path: Path) -> list[list[float]]:
    """An empirical distribution of sizes: lines of BYTES CUMULATIVE_PROBABILITY, ascending, the last probability 1."""
    points: list[list[float]] = []
    try:
        lines = regular.read_bytes(path, MOST_FILE_BYTES).decode().splitlines()
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot be read: {getattr(error, 'strerror', None) or error}; allowed: a file of lines BYTES "
                         "CUMULATIVE_PROBABILITY") from None  # fmt: skip
    for line_number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            size, share = map(float, words)
        except ValueError:
            raise ValueError(f"line {line_number}: {line.strip()[:60]!r} is not BYTES CUMULATIVE_PROBABILITY") from None
        points.append([size, share])
    try:
        draws.checked_points(points)
    except draws.DrawError as error:
        raise ValueError(f"is not a distribution: {error}") from None
    return points


def in_base_units(drawn: Drawn, mss_bytes: int) -> dict[str, Any]:
    """The distribution as an object of a plan. Packets are segments of `mss_bytes`."""

    def base(value: Any) -> Any:
        if isinstance(value, Quantity):
            return float(value.amount * (mss_bytes if value.dimension == "packets" else 1))
        return float(value) if isinstance(value, Fraction) else value

    return {"name": drawn.name} | {key: base(value) for key, value in drawn.parameters.items()}
