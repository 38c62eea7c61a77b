# SPDX-License-Identifier: MIT
"""The best buffers for small and for large transfers against the capacity ratio, from the numbers of Prasad et al.'s
figures and the table of their runs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from statistics import harmonic_mean
from typing import NamedTuple

import polars as pl

from analysis.theory.single_flow import bdp_packets
from lib.errors import InputError
from lib.frames import wire_bytes_of_ip

PAPER = "prasad2007"
SMALL, LARGE = "small transfers", "large transfers"
BEST = re.compile(r"^(?:(U\d+), )?(small|large|[SL]-flows by size)\b.*: best buffer \(interval: within 5 %")
CLASSES = {"small": SMALL, "S-flows by size": SMALL, "large": LARGE, "L-flows by size": LARGE}
FULL_SCALE = "packets at full scale"
CRITERION = "highest throughput, and buffers within 5 % of it"


class BestBuffer(NamedTuple):
    """The buffer with the highest throughput. Buffers from `low` to `high` have a throughput within 5 % of it; 0 or
    infinity where the smallest or the largest buffer of the runs has, too.
    """

    figure: str
    users: int
    transfers: str
    gamma: float  # output over input capacity
    rate_bps: int
    rtt_ns: int  # harmonic mean
    bdp: float  # packets
    buffer: float
    low: float
    high: float
    sizes: str  # the distribution of sizes, as SIZES has it
    runs: tuple[str, ...]  # their names
    repetitions: int  # runs with `buffer`


def has_runs(docs: Path) -> bool:
    """Whether the directory has the paper's published runs."""
    return (docs / f"{PAPER}-runs.parquet").is_file()


def read(docs: Path) -> list[BestBuffer]:
    """The best buffers of all published figures. Raises InputError if a file is missing or malformed."""
    table_path = docs / f"{PAPER}-runs.parquet"
    try:
        table = pl.read_parquet(table_path).filter(pl.col("valid"), pl.col("traffic") == "closed-loop")
        return [best for path in sorted((docs / PAPER).glob("figure_*.csv")) for best in _of_figure(path, table)]
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{docs}: {str(error).splitlines()[0]}; publish {PAPER} again") from None


def _of_figure(path: Path, table: pl.DataFrame) -> list[BestBuffer]:
    numbers = pl.read_csv(path, infer_schema_length=None)
    word = path.stem.removeprefix("figure_").lstrip("0")
    drawn = table.filter(pl.col("figures").str.split(";").list.contains(word))
    best = []
    for row in numbers.iter_rows(named=True):
        match = BEST.match(row["what"])
        if match is None or row["measured"] is None:
            continue
        runs = drawn if match[1] is None else drawn.filter(pl.col("users") * _scale(row) == int(match[1][1:]))
        if not len(runs):
            raise InputError(f"{path}: no run of {PAPER}{'-runs.parquet'} has {row['what']}; publish {PAPER} again")
        best.append(_best(word, CLASSES[match[2]], row, runs))
    return best


def _scale(row: Mapping[str, object]) -> int:
    """10 if the runs had a tenth of the paper's rate and users, and the figure scales their buffers up; else 1."""
    return 10 if row["unit"] == FULL_SCALE else 1


def _best(figure: str, transfers: str, row: dict[str, float], runs: pl.DataFrame) -> BestBuffer:
    run = runs.row(0, named=True)
    rtts = [int(rtt) for rtt in (run["rtts_ns"] or str(run["rtt_ns"])).split(",")]
    rtt_ns, rate_bps = round(harmonic_mean(rtts)), run["rate_bps"] * _scale(row)
    low, high = (row[name] if row[name] is not None else row["measured"] for name in ("low", "high"))
    return BestBuffer(
        figure, run["users"] * _scale(row), transfers, run["rate_bps"] / run["access_bps"], rate_bps, rtt_ns,
        bdp_packets(rate_bps, rtt_ns, wire_bytes_of_ip(run["mtu_bytes"])), row["measured"], low, high,
        run["flow_sizes"], tuple(runs["run"]), int(row["runs"] or 1),
    )  # fmt: skip


def is_open(best: BestBuffer) -> bool:
    """Whether the largest buffer of the runs is within 5 % of the best."""
    return math.isinf(best.high)
