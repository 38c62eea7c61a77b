# SPDX-License-Identifier: MIT
"""Spang, Arslan, McKeown 2021: the rules of buffer sizing for one flow and for many, updated for PRR, Cubic and BBR."""

from pathlib import Path

from analysis.papers import clocks
from analysis.papers.paper import Paper, Second, figures_of
from analysis.papers.spang2021 import arrival, artifact, beside, factors

PAPER = Paper(
    key="spang2021",
    title="Updating the Theory of Buffer Sizing",
    citation="Spang, Arslan, McKeown: Updating the Theory of Buffer Sizing. Performance 2021",
    specs=Path(__file__).resolve().parents[3] / "experiments/specs/spang2021",
    figures=(
        *figures_of(__name__, __file__),
        beside.FIGURE,
        factors.FIGURE,
        arrival.FIGURE,
        clocks.figure(("clocks",)),
    ),
    telling=("figure_05a", "beside"),
    algorithms=("reno", "cubic", "bbr", "bbr2", "bbr3", "scalable_50"),
    second=Second("mode", "tail-drop"),
    read_beside=artifact.read,
)
