# SPDX-License-Identifier: MIT
"""Thinned repetitions: a sweep kept a part of their files to save room. THINNED shows that this was on purpose."""

from __future__ import annotations

from pathlib import Path

from lib import regular
from runs.names import CAPTURES, FLOWS_FILE, GOODPUT_FILE, POSTCARDS_FILE, TAPS, TCP_FILE, THINNED

RAW = (POSTCARDS_FILE, TCP_FILE, GOODPUT_FILE, FLOWS_FILE, *CAPTURES, *TAPS)
OF_PACKETS = ("postcards.parquet", "tcp.parquet", "joined.parquet")
OF_FLOWS = ("flows.parquet",)
LOGS_AND_FIGURES = ("logs", "figures")
# Reports of the traffic programs with an entry for each flow. The analysis reads them, as it reads RAW.
OF_TRAFFIC = ("traffic_sink.json", "tcp_flows.json", "simulator.json")
# For each kept part the removed files, from the fewest to the most.
REMOVED = {
    "tables": RAW,
    "flows": (*RAW, *OF_PACKETS, *LOGS_AND_FIGURES),
    "summary": (*RAW, *OF_PACKETS, *OF_FLOWS, *LOGS_AND_FIGURES, *OF_TRAFFIC),
}
KEEP = ("all", *REMOVED)
SUMMARY = KEEP[-1]


def removes(keep: str, name: str) -> bool:
    """Whether a repetition thinned to `keep` lacks the file or directory `name`."""
    return name in REMOVED.get(keep, ())


def kept(repetition: Path) -> str:
    """The first line of THINNED, which is one of KEEP; "all" without the file."""
    try:
        return regular.read_text(repetition / THINNED, "replace").split("\n", 1)[0].strip()
    except OSError:
        return "all"


def mark(keep: str) -> str:
    """The content of THINNED in a repetition thinned to `keep`."""
    names = ", ".join(REMOVED[keep])
    return f"{keep}\nremoved after an analysis: {names}\nspec.yaml has everything to run the experiment again\n"


def removed(repetition: Path) -> tuple[str, ...]:
    """Names of files and directories that are missing on purpose."""
    return REMOVED.get(kept(repetition), ())
