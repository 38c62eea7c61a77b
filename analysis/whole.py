# SPDX-License-Identifier: MIT
"""A repetition for what cannot say that a part of it is missing: an export, a what-if. They are made of raw files anew,
so that the verdict of the analysis tells nothing of what was damaged since; here that is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from analysis import imported
from analysis.load import Run, damage_of, load, recorded_clock_offset_ns
from analysis.metrics import is_time
from analysis.targets import rules
from lib.errors import InputError
from runs import record

TIMES = ("start_mono_ns", "end_mono_ns")


def load_whole(directory: Path) -> Run:
    """As `load`. Raises InputError also where `load` did without a raw file or a part of one, or where a raw file
    differs from the record.
    """
    if damage := damage_of(directory):
        raise InputError(f"{directory}: {record.lines(damage)}")
    run = load(directory)
    lacking = [*run.damage(), *run.problems, *_unsaid(run)]
    if lacking:
        more = f" (and {len(lacking) - 1} more)" if len(lacking) > 1 else ""
        raise InputError(f"{directory}: {lacking[0]}{more}; allowed: a run with whole raw files: restore them")
    return run


def check(directory: Path, raw: Sequence[str] = (), derived: Sequence[str] = ()) -> None:
    """Raises InputError if one of these files of a repetition differs from the record."""
    damage = record.raw_damage(directory, raw, raw) if raw else []
    damage += record.derived_damage(directory, *derived) if derived else []
    if damage:
        raise InputError(f"{directory}: {record.lines(damage)}")


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
    if not rules(run).exact_time and recorded_clock_offset_ns(switch) is None:
        unsaid.append("switch.json: does not say what the switch's clock showed (clock, offset_ns)")
    return unsaid
