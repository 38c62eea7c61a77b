# SPDX-License-Identifier: MIT
"""`make figures PAPER=all`: the map of all papers, from the published tables and the sweeps' specs. It runs nothing.

The tables have each run's least RTT. The map needs the mean RTT, so the spread of RTTs comes from the specs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from analysis.map import build
from analysis.papers import registry
from experiments.machine import host
from experiments.sweep import spec
from lib import files, units
from lib.errors import BadValue, SpecError
from lib.terminal import say

WORD = "all"  # the value of PAPER
TAKES = frozenset({"paper", "publish", "results"})
NO_SPREAD = "0ns"
SCRATCH = ".drawn"
DOCS = host.CHECKOUT / "docs/results"


def draw_map(results: Path, publish: bool) -> int:
    """Returns the exit status. Raises SpecError, InputError, RunError, OSError."""
    if publish:
        made = build.publish(DOCS, spreads_ns())
    else:
        output = results.absolute() / "figures" / build.NAME
        with drawing(output) as scratch:
            build.build(DOCS, scratch, spreads_ns())
        made = [output / f"{build.NAME}.svg"]
    say(f"the map of all papers -> {made[0]}")
    return 0


@contextlib.contextmanager
def drawing(output: Path) -> Iterator[Path]:
    """A directory to draw in. Its files replace those of `output` when the body ends without an exception. Two commands
    at once would mix their files, so the second is refused. Raises OSError.
    """
    remedy = "choose another with RESULTS="
    with (
        files.claimed(output.parent, make=True, remedy=remedy) as parent,
        files.claimed(output.name, parent, make=True, remedy=remedy) as place,
        files.scratch(SCRATCH, place) as drawn,
    ):
        path = files.path_of(drawn)
        yield path
        files.deliver(files.names(path), drawn, place)


def spreads_ns() -> dict[tuple[str, int], int]:
    """The spread of RTTs in ns, by sweep and least RTT, for every point of the papers' sweeps that gives RTT. Raises
    SpecError.
    """
    spreads: dict[tuple[str, int], int] = {}
    for paper in registry.installed().values():
        for stem in paper.stems:
            sweep = spec.read(paper.specs / f"{stem}.yaml", {}, smoke=False)
            for point in sweep.points:
                given = sweep.given(point)
                if "rtt" not in given:
                    continue
                rtt_ns, spread_ns = _ns(given["rtt"]), _ns(given.get("rtt_spread", NO_SPREAD))
                if spreads.setdefault((sweep.name, rtt_ns), spread_ns) != spread_ns:
                    problem = f"differs between points with an RTT of {given['rtt']}; the map cannot tell them apart"
                    raise SpecError([BadValue("rtt_spread", given.get("rtt_spread"), problem, sweep.file)])
    return spreads


def _ns(text: object) -> int:
    return units.nearest(units.parse(text, ("time",)).amount)
