# SPDX-License-Identifier: MIT
"""A repetition for what cannot say that a part of it is missing: an export, a what-if. They are made of raw files anew,
so that the verdict of the analysis tells nothing of what was damaged since; here that is refused.
"""

from __future__ import annotations

from pathlib import Path

from analysis import imported
from analysis.load import Run, load, told_clock_offset_ns
from analysis.metrics import is_time
from analysis.raw import InputError
from analysis.targets import rules

TIMES = ("start_mono_ns", "end_mono_ns")


def load_whole(directory: Path) -> Run:
    """As `load`. Raises InputError also where that had to do without a raw file or a part of one."""
    run = load(directory)
    lacking = [*run.damage(), *run.problems, *_unsaid(run)]
    if lacking:
        more = f" (and {len(lacking) - 1} more)" if len(lacking) > 1 else ""
        raise InputError(f"{directory}: {lacking[0]}{more}; allowed: a run with whole raw files: restore them")
    return run


def _unsaid(run: Run) -> list[str]:
    """What a document must say, lest it be guessed: when traffic ran, which flows, which queue, which clock."""
    traffic, switch = run.documents["traffic"], run.documents["switch"]
    names = [name for name in TIMES if not is_time(traffic.get(name))]
    names += [] if isinstance(traffic.get("flows"), list) else ["flows"]
    unsaid = [f"traffic.json: does not say {', '.join(names)}"] if names else []
    if imported.is_imported(run.spec):
        return unsaid
    if not isinstance(switch.get("bottleneck_port"), int):
        unsaid.append("switch.json: does not say bottleneck_port")
    if not rules(run).exact_time and told_clock_offset_ns(switch) is None:
        unsaid.append("switch.json: does not say what the switch's clock showed (clock, offset_ns)")
    return unsaid
