# SPDX-License-Identifier: MIT
"""The published numbers of Spang et al. 2021, from a checkout of their artifact (brucespang/ifip21-buffer-sizing).

Three of its files have the numbers that are read here. The numbers of Figures 2, 3, 7, 8 and 9 are in a database of
40 GB; the artifact only links to the database.

generalized_test.csv     quantiles of depth of 505 runs, one for each point (notebook "Figure 5a")
calculated_deltas.csv    quantiles of windows divided by the fair share (notebook "Figure 11")
drops_per_2ms.csv        flows with a drop in each 5 ms (not 2 ms; notebook "Figure 10")

**Packets.** A queue of k packets, the departing one included, has k x CELLS_PER_PACKET cells. The notebook divides
cells by 112.5 and rounds up, so it reads 2 for a lone packet and 180 for 177. CELLS_PER_PACKET is 114, a frame of 9014
bytes and the program's own header. With this value the deepest readings of BBR exceed each of the ten thresholds from
3500 to 22500 cells by one packet; with 113 or 115 they do not.

**Depth** here and in all files of bufferscope counts the packets in the queue when a packet arrives. In the long run
departing packets leave as many packets behind as arriving packets find, so a queue of k packets at departures is a
depth of k - 1.

**Buffers.** The program drops a departing packet if the queue, including this packet, has as many cells as the
threshold or more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from lib.terminal import one_line

CELLS_PER_PACKET = 114
NOTEBOOKS_CELLS = 112.5  # cells of 80 bytes to a packet of 9000 bytes
FOLDER = "notebooks"
DEPTHS, DELTAS, LOSERS = "generalized_test.csv", "calculated_deltas.csv", "drops_per_2ms.csv"
COLUMNS = {
    DEPTHS: ("algorithm", "num_flows", "max_queue_depth_cells", "depth_p01", "depth_p50", "depth_p99"),
    DELTAS: ("algorithm", "num_flows", "buff_size", "abs_delta_inv", "abs_delta_r_tail"),
    LOSERS: ("algorithm", "action", "num_flows", "num_dropped_flows"),
}
OURS = {"scalable": "scalable_50"}  # published name: our name. Linux 5.5 had the older Scalable
# No run reaches a larger threshold: the switch's memory of 2 MB is full first, at 215 packets
MOST_CELLS = 22_500
# calculated_deltas.csv has buffers rounded up to packets of 9000 bytes
CELLS_OF_DELTAS = {9: 1000, 45: 5000, 89: 10_000, 112: 12_500, 134: 15_000, 166: 18_675, 178: 20_000, 223: 25_000}


def depth_of(reading: float) -> int:
    """A reading of the notebook, converted to a depth in whole packets."""
    return max(math.floor(reading * NOTEBOOKS_CELLS / CELLS_PER_PACKET + 1e-9) - 1, 0)


def buffer_of(cells: int) -> int:
    """The least depth at which the published program drops: bufferscope's BUF."""
    return math.ceil(cells / CELLS_PER_PACKET) - 1


@dataclass(frozen=True)
class Published:
    """`depths`: cc, flows, buffer_packets, p01, p50, p99 (packets). `deltas`: cc, flows, buffer_packets, lower, upper;
    lower and upper are windows divided by BDP/n. `losers`: cc, flows, mean (flows).
    """

    depths: pl.DataFrame
    deltas: pl.DataFrame
    losers: pl.DataFrame


def read(checkout: Path) -> Published:
    """The published numbers in `checkout`. Raises ValueError, whose one line says what is wrong."""
    tables = {name: _table(checkout / FOLDER / name, columns) for name, columns in COLUMNS.items()}
    cc = pl.col("algorithm").str.to_lowercase().replace(OURS).alias("cc")
    flows = pl.col("num_flows").cast(pl.Int64).alias("flows")

    def buffer(cells: pl.Expr) -> pl.Expr:
        return cells.map_elements(lambda count: buffer_of(round(count)), return_dtype=pl.Int64).alias("buffer_packets")

    quantiles = [
        pl.col(f"depth_{name}").map_elements(depth_of, return_dtype=pl.Int64).alias(name)
        for name in ("p01", "p50", "p99")
    ]
    cells = pl.col("max_queue_depth_cells")
    depths = tables[DEPTHS].filter(cells <= MOST_CELLS).select(cc, flows, buffer(cells), *quantiles)
    deltas_cells = pl.col("buff_size").cast(pl.Int64).replace_strict(CELLS_OF_DELTAS, default=None)
    deltas = (
        tables[DELTAS]
        .filter(deltas_cells.is_not_null())
        .select(
            cc,
            flows,
            buffer(deltas_cells),
            pl.col("abs_delta_inv").alias("lower"),
            pl.col("abs_delta_r_tail").alias("upper"),
        )
    )
    drops = tables[LOSERS].filter(pl.col("action") == "drop", pl.col("num_dropped_flows") > 0)
    losers = drops.group_by(cc, flows).agg(pl.col("num_dropped_flows").mean().alias("mean"))
    by = ["cc", "flows", "buffer_packets"]
    return Published(depths.sort(by), deltas.sort(by), losers.sort("cc", "flows"))


def _table(path: Path, columns: tuple[str, ...]) -> pl.DataFrame:
    try:
        with path.open("rb") as file:
            table = pl.read_csv(file, columns=list(columns))
        numbers = [name for name in columns if name not in ("algorithm", "action")]
        return table.with_columns(pl.col(name).cast(pl.Float64) for name in numbers)
    except OSError as error:
        raise ValueError(f"has no readable {path}: {error.strerror}") from None
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{path} is not the published table: {one_line(error)}") from None
