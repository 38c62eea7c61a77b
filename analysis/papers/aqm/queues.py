# SPDX-License-Identifier: MIT
"""The queue of a run by its name, in the order of figures and tables, and what a queue did in some runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from analysis.arithmetic.statistics import Interval, mean_interval
from analysis.papers.aqm.settling import settled_ms
from analysis.papers.paper_run import PaperRun
from analysis.papers.series import grouped

ORDER = (
    "tail drop, 0.1 BDP", "tail drop, 1 BDP", "tail drop, 4 BDP", "marks from 0.17 BDP", "RED", "CoDel", "PIE", "PI2",
    "DualPI2", "FQ-CoDel", "Linux CoDel", "Linux PIE", "Linux FQ-CoDel", "Linux FQ-PIE", "Linux CAKE",
)  # fmt: skip
WRITTEN = {
    "red": "RED", "codel": "CoDel", "pie": "PIE", "pi2": "PI2", "dualpi2": "DualPI2", "fq_codel": "FQ-CoDel",
    "fq_pie": "FQ-PIE", "cake": "CAKE",
}  # fmt: skip


class Measured(NamedTuple):
    """Means over repetitions. Delays in ms; the other numbers are shares, 0 to 1, and Jain's index."""

    p50: Interval | None
    p99: Interval | None
    used: Interval | None
    dropped: Interval | None
    marked: Interval | None
    fair: Interval | None
    completed: Interval | None  # 99th percentile of the short flows' completion times, ms
    settled: Interval | None  # time from a fall of the rate, ms


def name(run: PaperRun) -> str:
    """The queue's name, one of ORDER if the page has it. Raises InputError."""
    spec = run.experiment
    if spec.queue:
        kind = spec.queue.split()[0]
        return f"Linux {WRITTEN.get(kind, kind)}"
    if spec.p4:
        return WRITTEN.get(spec.p4.compiled.name, spec.p4.compiled.name)
    if run["mode"] == "ecn":
        return f"marks from {run['ecn_threshold_packets'] / run['bdp_packets']:.2g} BDP"
    return f"tail drop, {round(run['buffer_over_bdp'], 1):g} BDP"


def by_queue(runs: Iterable[PaperRun]) -> dict[str, Measured]:
    """What each queue did, in the order of the page. Raises InputError."""
    of = {queue: measured(same) for queue, same in grouped(runs, name).items()}
    return {queue: of[queue] for queue in sorted(of, key=rank)}


def rank(queue: str) -> tuple[int, str]:
    """Sorts queues' names: in the page's order, then others."""
    return ORDER.index(queue) if queue in ORDER else len(ORDER), queue


def measured(runs: list[PaperRun]) -> Measured:
    """The means of some repetitions. Raises InputError."""

    def delay(run: PaperRun, cut: str) -> float | None:
        value = run.value("queue_delay_ns", cut)
        return None if value is None else value / 1e6

    def share(run: PaperRun, of: str) -> float | None:
        return run[of] / run["arrivals"] if run["arrivals"] else None

    return Measured(
        mean_interval(delay(run, "p50") for run in runs),
        mean_interval(delay(run, "p99") for run in runs),
        mean_interval(run["utilization_mean"] for run in runs),
        mean_interval(share(run, "drops") for run in runs),
        mean_interval(share(run, "marks") for run in runs),
        mean_interval(run["jain_index"] for run in runs),
        mean_interval(run.measure("completion_p99_ms", float | None, _completion_p99_ms) for run in runs),
        mean_interval(run.measure("settled_ms", float | None, settled_ms) for run in runs if run["rate_changes"]),
    )


def _completion_p99_ms(run: PaperRun) -> float | None:
    """Of the short flows that were begun and ended in the measurement window. Raises InputError."""
    found = run.summary.get("finite_flows")
    p99 = found[0]["completion_s"]["p99"] if found else None
    return None if p99 is None else 1000 * p99
