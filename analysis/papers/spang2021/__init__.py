# SPDX-License-Identifier: MIT
"""Spang, Arslan, McKeown 2021: the rules of buffer sizing for one flow and for many, updated for PRR, Cubic and BBR."""

from pathlib import Path

from analysis.papers import clocks
from analysis.papers.paper import Paper, Second
from analysis.papers.spang2021 import (
    arrival,
    artifact,
    beside,
    depths,
    factors,
    fairness,
    figure_01,
    figure_02,
    figure_03,
    figure_05a,
    figure_05b,
    figure_07,
    figure_08,
    figure_09,
    figure_10,
    table_1,
)  # fmt: skip

PAPER = Paper(
    key="spang2021",
    title="Updating the Theory of Buffer Sizing",
    citation="Spang, Arslan, McKeown: Updating the Theory of Buffer Sizing. Performance 2021",
    specs=Path(__file__).resolve().parents[3] / "experiments/specs/spang2021",
    figures=(
        figure_01.FIGURE, figure_02.FIGURE, figure_03.FIGURE, depths.FIGURE_4, figure_05a.FIGURE, figure_05b.FIGURE,
        depths.FIGURE_6, figure_07.FIGURE, figure_08.FIGURE, figure_09.FIGURE, figure_10.FIGURE, fairness.FIGURE_11A,
        fairness.FIGURE_11B, table_1.FIGURE, beside.FIGURE, factors.FIGURE, arrival.FIGURE, clocks.figure(("clocks",)),
    ),
    telling=("figure_05a", "beside"),
    algorithms=("reno", "cubic", "bbr", "bbr2", "bbr3", "scalable_50"),
    second=Second("mode", "tail-drop"),
    read_beside=artifact.read,
)  # fmt: skip
