# SPDX-License-Identifier: MIT
"""The rows of the paper's Table 1, and loss, delay and throughput of their runs as functions of the buffer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cached_property
from statistics import harmonic_mean
from typing import Any, NamedTuple

import numpy as np

from analysis.papers.paper_runs import PaperRun, PaperRuns
from analysis.papers.published_numbers import Key
from analysis.papers.series import Series, grouped, loss, series
from analysis.theory import capacity_ratio, loss_fits

MEAN_RTTS = 5.76  # E[D]: RTTs of slow start, mean over the testbed's sizes
FULL = 0.98  # least utilization of a link that counts as saturated
LEAST_FITTED = 10  # packets: section 6.2 doubts fits below 10 to 20
SATURATED = 0.8  # delay counts as constant once d/B is below this share of the largest d/B of smaller buffers
OF_USERS: dict[str, Any] = {"traffic": "closed-loop"}  # excludes imported runs, which do not record users


class Row(NamedTuple):
    """`links` is the number of input links."""

    links: int
    users: int
    gamma: float
    beside_ns3: tuple[int, ...] = ()  # buffers (packets) of ns-3's runs

    @property
    def stem(self) -> str:
        return f"links-{self.links}-users-{self.users}"

    @property
    def name(self) -> str:
        """The paper's name of the row: 20/100/0.1."""
        return f"{self.links}/{self.users}/{self.gamma:g}"


ROWS = (
    Row(2, 5, 0.1), Row(20, 5, 0.1), Row(2, 100, 0.1), Row(20, 100, 0.1, (16, 100, 1500)),
    Row(1000, 25, 10, (10, 28, 320)), Row(20, 25, 10), Row(1000, 500, 10, (16, 100, 630)), Row(20, 500, 10),
)  # fmt: skip
BY_NAME = {row.name: row for row in ROWS}
STEMS = tuple(row.stem for row in ROWS)


def queueing_s(run: PaperRun) -> float | None:
    """d: mean sojourn of forwarded packets minus transmission time. Raises InputError."""
    sojourn_ns, forwarded = run.value("queue_delay_ns", "mean"), run["arrivals"] - run["drops"]
    if sojourn_ns is None or not forwarded or run["utilization_mean"] is None:
        return None
    return sojourn_ns / 1e9 - run["utilization_mean"] * run["measured_s"] / forwarded


def base_rtt_s(run: PaperRun) -> float:
    """T_o: the harmonic mean of the base RTTs of the run's transfers; the spec's RTT if none has one. The spec's paths
    cannot be used: few users cover only some of the paths. Raises InputError.
    """
    value: float = run.measure("base_rtt_s", float, _base_rtt_s)
    return value


def _base_rtt_s(run: PaperRun) -> float:
    rtts_ns = run.table("flows").filter("measured")["base_rtt_ns"].drop_nulls()
    return harmonic_mean(rtts_ns.to_list()) / 1e9 if len(rtts_ns) else run["rtt_ns"] / 1e9


def capacity(run: PaperRun) -> float:
    """C in full packets per second. Raises InputError."""
    return float(run["rate_bps"] / 8 / run.experiment.wire_bytes)


class Measured:
    """The runs of one row, or of another set of links and users, with several buffers."""

    def __init__(self, runs: list[PaperRun]) -> None:
        self.runs = runs
        self.loss: Series = series(runs, "buffer_packets", loss)
        self.delay_s: Series = series(runs, "buffer_packets", queueing_s)
        self.used: Series = series(runs, "buffer_packets", "utilization_mean")
        # Computed for each run, so that each run stores its value: any run may be the first of another set.
        base_rtts_s = [base_rtt_s(run) for run in runs]
        self.base_rtt_s = base_rtts_s[0]

    @classmethod
    def of(cls, runs: PaperRuns, row: Row) -> Measured | None:
        """The measurements of a row of the table; None without a valid run."""
        selected = runs.select(row.stem, needs=("utilization_mean",), **OF_USERS)
        return cls(selected) if selected else None

    def key(self, gamma: float) -> Key:
        """The part of a key that describes these runs: the printed capacity ratio, and the distribution of sizes."""
        return {"gamma": gamma, "sizes": self.runs[0]["flow_sizes"]}

    @property
    def pipe(self) -> float:
        """C T_o in packets."""
        return capacity(self.runs[0]) * self.base_rtt_s

    @cached_property
    def delay_fit(self) -> loss_fits.DelayFit | None:
        """The fit of delay against the buffer; None with too few buffers. Its cutoff also bounds the fits of loss:
        beyond the cutoff delay no longer grows with the buffer (6.1).
        """
        points = {
            buffer: point.value for buffer, point in self.delay_s.items() if buffer >= LEAST_FITTED and point.value > 0
        }
        growing, steepest = {}, 0.0
        for buffer, delay_s in points.items():
            steepest = max(steepest, delay_s / buffer)
            if delay_s / buffer < SATURATED * steepest:
                break
            growing[buffer] = delay_s
        if len(growing) < loss_fits.LEAST_POINTS:
            return None
        return loss_fits.fit_delay(list(growing), list(growing.values()), capacity(self.runs[0]), tolerance=math.inf)

    @cached_property
    def forms(self) -> loss_fits.Comparison | None:
        """Fits of both forms of loss, from LEAST_FITTED packets to the cutoff; None with too few buffers with loss."""
        cutoff = self.delay_fit.cutoff if self.delay_fit else np.inf
        points = {
            buffer: point.value for buffer, point in self.loss.items()
            if LEAST_FITTED <= buffer <= cutoff and point.value > 0
        }  # fmt: skip
        if len(points) < loss_fits.LEAST_POINTS:
            return None
        return loss_fits.compare(list(points), list(points.values()))

    def predicted_cutoff(self) -> float | None:
        """The buffer (packets) above which the queueing delay stays constant: C d / f. By Little's law (6.1) U users
        fill the link at the delay d = (U E[S] / C - think) / E[D] - T_o. None without a fit.
        """
        if self.delay_fit is None:
            return None
        run = self.runs[0]
        group = run.experiment.finite[0]
        cycle_s = run["users"] * group.mean_wire_bytes * 8 / run["rate_bps"] - (group.mean_think_ns or 0.0) / 1e9
        return (cycle_s / MEAN_RTTS - self.base_rtt_s) * capacity(run) / self.delay_fit.f

    def by_buffer(self) -> dict[int, list[PaperRun]]:
        """The runs of each buffer."""
        return grouped(self.runs, "buffer_packets")


def models_bps(
    buffers: Iterable[float], link: float, rtt_s: float, f: float, mss_bytes: int, share: Callable[[float], float]
) -> tuple[list[float], list[float]]:
    """Throughput by the S-model (S_SEGMENTS segments) and by the L-model with these buffers, on a link of `link`
    packets/s. `share` is the loss, `f` the constant of the delay.
    """
    small, large, size = [], [], capacity_ratio.S_SEGMENTS * mss_bytes
    for buffer in buffers:
        rtt, lost = capacity_ratio.rtt(rtt_s, buffer, link, f), share(buffer)
        small.append(8 * capacity_ratio.s_model_throughput(size, capacity_ratio.S_SEGMENTS, rtt, lost))
        large.append(8 * capacity_ratio.l_model_throughput(mss_bytes, rtt, lost))
    return small, large
