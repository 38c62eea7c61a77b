# SPDX-License-Identifier: MIT
"""Loads a repetition for exports and what-ifs. Their formats cannot mark missing data, so an incomplete or damaged
repetition is an error here. The verdict of an earlier analysis does not help: files may have been damaged since.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from analysis.read.load import Run, damage_of, load
from analysis.read.switch_clock import is_free
from analysis.read.target_limits import rules
from lib.errors import InputError
from runs import record

TRAFFIC = ("start_mono_ns", "end_mono_ns", "flows")


def load_complete(directory: Path) -> Run:
    """Loads a repetition like `load`, and raises InputError also if any raw file is missing, damaged, incomplete,
    different from its recorded digest, or lacks a fact that the analysis would otherwise guess.
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
    """Raises InputError if the record of digests, or one of these raw or derived files, is damaged (record.damage)."""
    if damage := record.damage(directory, raw, derived):
        raise InputError(f"{directory}: {record.lines(damage)}")


def _unsaid(run: Run) -> list[str]:
    """The missing facts that the analysis would otherwise guess, as lines: one for the times of the traffic and the
    flows, one for the bottleneck's port, one for the switch's clock.
    """
    traffic, switch = run.documents.traffic, run.documents.switch
    unsaid = run.documents.unsaid("traffic", [name for name in TRAFFIC if getattr(traffic, name) is None])
    if run.experiment.imported:
        return unsaid
    unsaid += run.documents.unsaid("switch", ["bottleneck_port"] if switch.bottleneck_port is None else [])
    if is_free(run.experiment):
        if run.clock is None or run.clock.uncertainty_ns is None:
            unsaid.append("tcp.bst: has no record that bounds the switch's clock, so its times are not known")
        elif run.clock.restarts_mono_ns:
            unsaid.append("postcards.bsp: the switch restarted, so the numbers of postcards are not unique")
    elif not rules(run).exact_time and switch.clock_offset_ns is None:
        unsaid += run.documents.unsaid("switch", ["what the switch's clock showed (clock, offset_ns)"])
    return unsaid
