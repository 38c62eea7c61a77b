# SPDX-License-Identifier: MIT
"""The best buffers for small and for large transfers against the capacity ratio, from the published numbers of our
figures after Prasad et al. and the table of our runs.
"""

from __future__ import annotations

import math
from pathlib import Path
from statistics import harmonic_mean
from typing import NamedTuple

import polars as pl

from analysis.papers import published, published_numbers
from analysis.papers.published_numbers import PublishedNumber
from analysis.theory.single_flow import bdp_packets
from lib.errors import InputError
from lib.frames import wire_bytes_of_ip
from lib.terminal import one_line

PAPER = "prasad2007"
SMALL, LARGE = "small transfers", "large transfers"
CLASSES = {"small": SMALL, "large": LARGE}  # by the word in a published number's key
CRITERION = "highest throughput, and buffers within 5 % of it"


class BestBuffer(NamedTuple):
    """The buffer with the highest throughput. From `low` to `high`, the throughput is within 5 % of the highest. `low`
    is 0 if this range includes the smallest buffer of the runs; `high` is infinite if it includes the largest.
    """

    figure: str
    users: int
    transfers: str
    gamma: float  # output capacity / input capacity
    rate_bps: int
    rtt_ns: int  # harmonic mean
    bdp: float  # packets
    buffer: float
    low: float
    high: float
    sizes: str  # the distribution of sizes, in the syntax of FLOW_SIZES
    runs: tuple[str, ...]  # their names
    repetitions: int  # runs with `buffer`


def has_runs(docs: Path) -> bool:
    """Whether the directory has the paper's published runs."""
    return PAPER in published.directories(docs)


def read(docs: Path) -> list[BestBuffer]:
    """The best buffers of all published figures. Raises InputError if a file is missing or malformed."""
    try:
        runs = published.rows(docs / f"{PAPER}{published.END}")
        table = runs.filter(pl.col("valid"), pl.col("traffic") == "closed-loop").sort("sweep", "run")
        return [best for path in sorted((docs / PAPER).glob("figure_*.csv")) for best in _of_figure(path, table)]
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{docs}: {one_line(error)}; publish {PAPER} again") from None


def _of_figure(path: Path, table: pl.DataFrame) -> list[BestBuffer]:
    word = path.stem.removeprefix("figure_").lstrip("0")
    drawn = table.filter(pl.col("figures").str.split(";").list.contains(word))
    best = []
    for number in published_numbers.read(path, published_numbers.BEST_BUFFER):
        key = number.key
        runs = drawn.filter(pl.col("users") * key["scale"] == key["users"]) if "users" in key else drawn
        if not len(runs):
            raise InputError(f"{path}: no run of {PAPER}{published.END} has {dict(key)}; publish {PAPER} again")
        best.append(_best(word, number, runs))
    return best


def _best(figure: str, number: PublishedNumber, runs: pl.DataFrame) -> BestBuffer:
    run, scale = runs.row(0, named=True), int(number.key["scale"])
    rtts = [int(rtt) for rtt in (run["rtts_ns"] or str(run["rtt_ns"])).split(",")]
    rtt_ns, rate_bps = round(harmonic_mean(rtts)), run["rate_bps"] * scale
    low, high = (number.measured if end is None else end for end in (number.low, number.high))
    return BestBuffer(
        figure, run["users"] * scale, CLASSES[str(number.key["transfers"])], run["rate_bps"] / run["access_bps"],
        rate_bps, rtt_ns, bdp_packets(rate_bps, rtt_ns, wire_bytes_of_ip(run["mtu_bytes"])), number.measured, low, high,
        run["flow_sizes"], tuple(runs["run"]), number.runs or 1,
    )  # fmt: skip


def is_open(best: BestBuffer) -> bool:
    """Whether the largest buffer of the runs is within 5 % of the best."""
    return math.isinf(best.high)
