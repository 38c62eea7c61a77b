# SPDX-License-Identifier: MIT
"""Measures the tables of docs/congestion.md: `python -m bench.congestion_controls TABLE [ROW,ROW...]`, TABLE one of
laws, gaps, shares, versions, sqrt_n.

Every run is in virtual time. A table's parameters are printed above it; a row's own parameters, such as BUF in
versions, override them. The same parameters and the same kernel give the same numbers on every machine. In laws and
shares a row is a congestion control of the kernel, or one of PACED. A run that is not valid is an error, not a row.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from analysis.arithmetic.statistics import mean_interval
from bench import lab
from bench.window_laws import (
    CWR,
    RECOVERY,
    Reaction,
    WindowTrace,
    beginnings,
    dctcp_alphas,
    dispersion,
    flows,
    gaps_ns,
    growth,
    reactions,
    reduction,
)
from experiments.lab import virtual as virtual_lab
from runs import verdict
from runs.names import LATEST, SUMMARY
from virtual import offers

LINK = ("CLOCK=virtual", "RATE=50mbit", "RTT=20ms", "BUF=1bdp")
LAWS = (*LINK, "FLOWS=1", "DURATION=25s", "WARMUP=5s")
SHARES = (*LINK, "DURATION=20s", "WARMUP=5s", "START_SPREAD=1s", "REPS=3")
GAPS = ("CLOCK=virtual", "FLOWS=1", "RATE=100mbit", "RTT=20ms", "WINDOW=32p", "DURATION=4s", "WARMUP=1s")
PACED = {"paced reno": "reno", "paced cubic": "cubic"}  # rows with PACING=exact
MARKS = {"dctcp": ("MODE=ecn",)}  # DCTCP needs marks instead of losses
SPACINGS = ("linux", "exact", "poisson")
BESIDE, EACH = "cubic", 4  # four flows of each of the two algorithms
VERSIONS = tuple(
    f"{cc} {other} {buf}" for buf in ("1bdp", "4bdp") for other in ("cubic", "reno") for cc in ("bbr", "bbr3")
)
# The link of Spang et al. Their section 4.5 expects that a buffer of BDP/sqrt(n) is enough if a flow reacts to a loss
# only with probability 1/w (reno_1w).
SQRT_N = ("CLOCK=virtual", "RATE=10gbit", "RTT=1.2ms", "MTU=9000", "DURATION=1000rtt", "WARMUP=300rtt")
SQRT_N_BUFFERS = {4: 83, 16: 42, 64: 21}  # packets by n; the BDP is 166
SQRT_N_ROWS = tuple(f"{cc} {n}" for n in SQRT_N_BUFFERS for cc in ("reno", "reno_1w"))

Row = tuple[str, ...]


@contextmanager
def recorded(*words: str, groups: Iterable[str] = ()) -> Iterator[list[Path]]:
    """The repetitions of an experiment, removed afterwards. `groups`: the lines of a spec file's `groups`. Raises
    RuntimeError unless all repetitions are valid.
    """
    with tempfile.TemporaryDirectory() as directory:
        results = f"{directory}/results"
        if groups:
            file = Path(directory) / "groups.yaml"
            file.write_text("groups:\n" + "".join(f"- {{{group}}}\n" for group in groups))
            words = (f"SPEC={file}", *words)
        lab.command_s("experiment", *words, f"RESULTS={results}", allowed=(0,))
        yield sorted((Path(results) / LATEST).glob("rep-*"))


def summary_of(repetition: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((repetition / SUMMARY).read_text())
    return content


def laws(row: str) -> Row:
    """One flow alone. DCTCP gets marks instead of losses."""
    pacing, ecn = ("PACING=exact",) if row in PACED else (), MARKS.get(row, ())
    with recorded(*LAWS, f"CC={PACED.get(row, row)}", *pacing, *ecn) as (repetition,):
        (flow,) = flows(repetition)
        reductions = reactions(flow, CWR if ecn else RECOVERY)
        summary = summary_of(repetition)
        drained = summary["drained_fraction"]["of_buffer"]
        alpha = _alpha(repetition) if ecn else ""
        return (
            row, str(sum(not each.slow_start for each in reductions)), _ratio(reductions), _growth(flow, reductions),
            _percent(drained["median"] if drained else None), _percent(summary["utilization"]["mean"]),
            f"{summary['queue_depth_packets']['p01']} / {summary['queue_depth_packets']['p50']}", alpha,
        )  # fmt: skip


def _ratio(reductions: list[Reaction]) -> str:
    return "" if all(each.slow_start for each in reductions) else f"{reduction(reductions):.3f}"


def _growth(flow: WindowTrace, reductions: list[Reaction]) -> str:
    grown = growth(flow, [each for each in reductions if not each.slow_start])
    return f"{grown[:, 1].mean():.2f}" if len(grown) else ""


def _alpha(repetition: Path) -> str:
    by_marks, by_windows = dctcp_alphas(repetition)[5:].T
    return f"{by_windows.mean():.3f} / {by_marks.mean():.3f}"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f}"


def gaps(row: str) -> Row:
    """One Reno flow with W = 32 on an idle path; `row` is its PACING. Gaps at the switch are in units of srtt/W."""
    with recorded(*GAPS, "CC=reno", f"PACING={row}") as (repetition,):
        (flow,) = flows(repetition)
        settled = flow.cwnd == flow.cwnd.max()
        pace_ns = 1000 * np.median(flow.srtt_us[settled] / flow.cwnd[settled])
        unit = gaps_ns(repetition) / pace_ns
        numbers = (np.median(unit), unit.min(), unit.mean(), unit.std() / unit.mean(), dispersion(unit))
        return row, *(f"{number:.3f}" for number in numbers), str(flow.in_flight.max())


def shares(row: str) -> Row:
    """Four flows of the row's congestion control beside four Cubic flows: the goodput share of the row's flows, the
    drop rate and the mean depth. Each is a mean over repetitions with a 95 % interval. In the rows of PACED only
    the row's own flows have PACING=exact. Beside DCTCP the Cubic flows have ECN, too.
    """
    pacing = ", pacing: exact" if row in PACED else ""
    return row, *_beside(f"cc: {PACED.get(row, row)}{pacing}", BESIDE, *MARKS.get(row, ()))


def versions(row: str) -> Row:
    """Four flows of a version of BBR beside four Cubic or Reno flows, with a buffer of 1 or 4 BDP."""
    cc, other, buffer = row.split()
    return cc, other, buffer, *_beside(f"cc: {cc}", other, f"BUF={buffer}")


def _beside(group: str, other: str, *words: str) -> Row:
    part, drops, depth = [], [], []
    shared = [word for word in SHARES if word.split("=")[0] not in {each.split("=")[0] for each in words}]
    groups = (f"{group}, flows: {EACH}", f"cc: {other}, flows: {EACH}")
    with recorded(*shared, *words, groups=groups) as runs:
        for repetition in runs:
            summary = summary_of(repetition)
            part.append(100 * summary["groups"][0]["share"])
            drops.append(100 * summary["drop_fraction"])
            depth.append(summary["queue_depth_packets"]["mean"])
    return tuple(str(mean_interval(values).text(3)) for values in (part, drops, depth))  # type: ignore[union-attr]


def sqrt_n(row: str) -> Row:
    """n flows of Reno, or of reno_1w, with a buffer of BDP/sqrt(n). The row shows whether the queue runs empty,
    how many flows halve their windows in one RTT (Lemma 9: at most n^2/(BDP/Delta) + sqrt(n)), drops and fairness.
    """
    cc, n = row.split()
    with recorded(*SQRT_N, f"CC={cc}", f"FLOWS={n}", f"BUF={SQRT_N_BUFFERS[int(n)]}p") as (repetition,):
        summary = summary_of(repetition)
        per_rtt = halvings_per_rtt(repetition, summary)
        delta = summary["almost_fairness"]["delta"]
        bound = int(n) ** 2 * delta / summary["bdp_packets"] + int(n) ** 0.5
        return (
            cc, n, _percent(summary["queue_nonempty_fraction"]), str(summary["queue_depth_packets"]["p01"]),
            _percent(summary["utilization"]["p01"]), _percent(summary["drop_fraction"]),
            f"{np.mean(per_rtt):.1f} / {np.max(per_rtt)}" if len(per_rtt) else "", f"{bound:.1f} ({delta:.1f})",
            _percent(float(np.mean(per_rtt > bound)) if len(per_rtt) else None), f"{summary['jain_index']:.3f}",
        )  # fmt: skip


def halvings_per_rtt(repetition: Path, summary: dict[str, Any]) -> np.ndarray:
    """For each base RTT that begins with a halving: how many flows halve their windows in it, outside of slow start."""
    at = []
    for flow in flows(repetition):
        begin = beginnings(flow, RECOVERY)
        halved = (flow.ssthresh[begin + 1] < flow.cwnd[begin]) & (flow.cwnd[begin] >= flow.ssthresh[begin])
        at.append(flow.ns[begin[halved]])
    ns, counts = np.sort(np.concatenate(at)), []
    while len(ns):
        within = int(np.searchsorted(ns, ns[0] + verdict.experiment(summary).rtt_ns))
        counts.append(within)
        ns = ns[within:]
    return np.array(counts)


TABLES = {
    "laws": (laws, LAWS, ("CC", "losses", "window after/before", "growth per RTT", "drained, % of B", "utilization, %",
                          "depth p1 / p50", "alpha: windows / marks")),
    "gaps": (gaps, (*GAPS, "CC=reno"), ("PACING", "median", "least", "mean", "deviation/mean", "index of dispersion",
                                       "most in flight")),
    "shares": (shares, SHARES, (f"CC beside {BESIDE}", "share of goodput, %", "dropped, %", "mean depth")),
    "versions": (versions, SHARES, ("CC", "beside", "BUF", "share of goodput, %", "dropped, %", "mean depth")),
    "sqrt_n": (sqrt_n, SQRT_N, ("CC", "n", "meet a queue, %", "depth p1", "utilization p1, %", "dropped, %",
                                "halve in an RTT: mean / most", "bound (Delta)", "RTTs above it, %", "Jain")),
}  # fmt: skip


def rows_of(table: str) -> list[str]:
    if table in (fixed := {"gaps": SPACINGS, "versions": VERSIONS, "sqrt_n": SQRT_N_ROWS}):
        return list(fixed[table])
    return [*offers.congestion_controls(virtual_lab.KERNEL), *PACED]


def main(table: str, rows: list[str]) -> None:
    measure, words, head = TABLES[table]
    print(f"`{' '.join(words)}`\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}", flush=True)
    for row in rows:
        print(f"| {' | '.join(measure(row))} |", flush=True)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in TABLES:
        sys.exit(f"give a table ({', '.join(TABLES)}), and optionally some of its rows, separated by commas")
    chosen = sys.argv[2].split(",") if len(sys.argv) == 3 else rows_of(sys.argv[1])
    unknown = [row for row in chosen if row not in rows_of(sys.argv[1])]
    if unknown:
        sys.exit(f"no row of this table: {', '.join(unknown)}; allowed: {', '.join(rows_of(sys.argv[1]))}")
    main(sys.argv[1], chosen)
