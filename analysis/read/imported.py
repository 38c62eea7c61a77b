# SPDX-License-Identifier: MIT
"""Imported runs (analysis/importing): infers fields that the source lacks where the data allow it, and removes numbers
that depend on unknown fields. An imported run is never valid, because it has no ledger.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl

from analysis.arithmetic.by_flow import Axis, Groups
from analysis.arithmetic.counted import Counted
from analysis.arithmetic.sequence import Unwrapped
from analysis.read.columns import Column, ColumnFile, Columns, filed, parts, slabs, sort_file
from lib import regular
from lib.errors import InputError
from lib.frames import ETHERNET_BYTES, IPV4_BYTES, TCP_BYTES, TIMESTAMP_OPTION_BYTES
from lib.terminal import one_line
from model.experiment import Experiment
from wire import wire

CARD = wire.POSTCARD.const
REASON = "imported: no ledger, so nobody knows whether everything was recorded"
HEADER_BYTES = ETHERNET_BYTES + IPV4_BYTES + TCP_BYTES + TIMESTAMP_OPTION_BYTES
# Largest plausible mean utilization. It exceeds 1, because bytes are inferred from sequence numbers, and times are the
# collector's receive times.
MAX_UTILIZATION = 1.05
DEPTHS_FILE = "queue_depth_histogram.csv"  # (packets, count), of a source that has a depth histogram and no postcards
NULL_DEPTHS: dict[str, Any] = dict.fromkeys(("mean", "p01", "p50", "p99", "max", "time_mean"))


def unavailable(spec: Experiment) -> frozenset[str]:
    """Postcard columns that the source lacks and that cannot be inferred. They are null in the tables. Receive times of
    our own postcards in a capture are left out, because these postcards have the switch's times.
    """
    unknown = spec.unknown_columns
    has_switch_time = spec.imported and "sojourn_ns" not in unknown
    return unknown - {"packet_bytes"} | ({"rx_mono_ns"} if has_switch_time else set())


def complete(spec: Experiment, cards: Columns, flows: int, directory: Path) -> None:
    """Infers depth_packets if the source has depths in cells, and packet_bytes if the source lacks them, from columns
    in files. In place.

    A packet takes MTU / cell_bytes cells, as in Spang et al.'s loader. Its bytes follow from sequence numbers.
    """
    if spec.imported and (size := spec.imported.cell_bytes):
        for rows in slabs(len(cards["flow"])):
            packets = np.rint(cards["depth_cells"][rows] * (size / spec.mtu_bytes))
            cast(Column, cards["depth_packets"]).write(rows.start, packets)
    if "packet_bytes" in spec.unknown_columns and len(cards["flow"]):
        cards["packet_bytes"] = _packet_bytes(cards, spec.mtu_bytes, flows, directory)


def full_payload(mtu_bytes: int) -> int:
    """Bytes of TCP payload in a full packet."""
    return mtu_bytes - (HEADER_BYTES - ETHERNET_BYTES)


def _packet_bytes(cards: Columns, mtu_bytes: int, flows: int, directory: Path) -> np.ndarray:
    """Frame lengths in bytes. A packet's payload ends at the flow's next higher sequence number. If there is none, or
    it is more than a full packet away, the packet is assumed to be full.
    """
    most, unwrapped = full_payload(mtu_bytes), Unwrapped(flows + 1)
    low, high = np.zeros((2, flows + 1), dtype=np.int64)
    kind = cards["packet_bytes"].dtype
    file = ColumnFile(directory, {"at": np.dtype(np.int64), "row": np.dtype(np.int64), "packet_bytes": kind})
    for part in parts(cards, "flow", "tcp_seq"):
        by_flow, seq = Groups.of(part["flow"]), np.empty(len(part["flow"]), dtype=np.int64)
        seen = unwrapped.seen[by_flow.flow]
        seq[by_flow.rows] = values = unwrapped.add(by_flow, part["tcp_seq"][by_flow.rows])
        for ends, extreme in ((low, np.minimum), (high, np.maximum)):
            of_slab = extreme.reduceat(values, by_flow.starts)
            ends[by_flow.flow] = np.where(seen, extreme(ends[by_flow.flow], of_slab), of_slab)
        file.append({"at": seq, "row": file.rows + np.arange(len(seq)), "packet_bytes": np.zeros(len(seq), kind)})
    axis, columns = Axis.of(low, high + most), file.columns()
    for rows in slabs(file.rows):
        cast(Column, columns["at"]).write(rows.start, axis.at(cards["flow"][rows], columns["at"][rows]))
    sort_file(directory, columns, "at")
    above = after = np.iinfo(np.int64).max  # the next slab's lowest, and the one after that
    for rows in reversed(list(slabs(file.rows))):
        begins, which = np.unique(columns["at"][rows], return_inverse=True)
        ends = np.append(begins[1:], above if above > begins[-1] else after)
        payload = np.minimum(ends - begins, most)
        cast(Column, columns["packet_bytes"]).write(rows.start, payload[which] + HEADER_BYTES)
        above, after = int(begins[0]), int(ends[0])
    sort_file(directory, columns, "row")
    return filed(directory, parts(columns, "packet_bytes"))["packet_bytes"]


Depths = tuple[np.ndarray, np.ndarray]  # (depth in packets, count), ascending by depth; int64


def load_depths(directory: Path) -> Depths | None:
    """The depth histogram of a run without postcards, in whole packets; None if there is none. Raises InputError if
    the file is not a histogram.
    """
    path = directory / DEPTHS_FILE
    if not path.exists():
        return None
    try:
        regular.check(path)
        rows = pl.read_csv(path, schema={"queue_depth_packets": pl.Float64, "count": pl.UInt32})
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{path}: is not a histogram: {one_line(error)}; restore it, it is a raw file") from None
    depth = pl.col("queue_depth_packets")
    if not rows.select((depth.is_between(0, 1e9) & pl.col("count").is_not_null()).fill_null(False).all()).item():
        raise InputError(
            f"{path}: is not a histogram: every row needs a depth from 0 to 1e9 packets and a count; restore it, it "
            "is a raw file"
        )
    sums = rows.group_by(depth.round().cast(pl.Int64)).agg(pl.col("count").cast(pl.Int64).sum()).sort(depth)
    return sums["queue_depth_packets"].to_numpy(), sums["count"].to_numpy()


def queue_depth(depths: Depths) -> dict[str, float | int | None]:
    """The summary's queue depth, from the depth histogram of the whole run. A histogram has no mean over time."""
    packets, counts = depths
    total = counts.sum()
    if not total:
        return dict(NULL_DEPTHS)
    result: dict[str, float | int | None] = {"mean": float((packets.astype(np.float64) * counts).sum() / total)}
    found = Counted()
    found.merge(*depths)
    result |= found.percentiles(p01=1, p50=50, p99=99)
    return result | {"max": int(packets[counts > 0].max()), "time_mean": None}


def mask(summary: dict[str, Any], spec: Experiment) -> None:
    """Sets the numbers of a summary that depend on unknown fields to None, and names the source. In place."""
    if spec.imported is None:
        return
    missing = spec.unknown_columns
    summary["imported"] = spec.imported.what
    summary["fidelity"] |= {"absent": {}, "postcard_delay_us": None}
    usage = summary["utilization"]
    impossible = [n for n in ("mean", "p01", "min", "max") if usage[n] is not None and usage[n] > MAX_UTILIZATION]
    summary["utilization"] = usage | dict.fromkeys(impossible)
    if "sojourn_ns" in missing:
        summary["fidelity"] = _nothing(summary["fidelity"])
        summary["queue_delay_ns"] = _nothing(summary["queue_delay_ns"])
        summary["queue_depth_packets"] |= {"time_mean": None}
    if "depth_packets" in missing:
        summary |= {"queue_depth_packets": dict(NULL_DEPTHS), "queue_nonempty_fraction": None, "drained_fraction": None}
    if "depth_bytes" in missing:
        summary["queue_depth_bytes"] = _nothing(summary["queue_depth_bytes"])
    if {"policy", "sojourn_ns"} <= missing:  # whoever saw each packet before and behind the queue knows its marks
        summary["marks"] = None
        for flow in summary["flows"]:
            flow["marks"] = None
    if not summary["arrivals"]:  # the run has only a trace, a depth histogram, or both, or a window beside its packets
        for name in ("arrivals", "drops", "marks", "goodput_bps", "goodput_p01_bps", "jain_index"):
            summary[name] = None
        summary["utilization"] = _nothing(summary["utilization"]) | {"window_s": summary["utilization"]["window_s"]}
        summary["loss"] = _nothing(summary["loss"])
        summary["drained_fraction"] = _nothing(summary["drained_fraction"])
        for flow in summary["flows"]:
            flow |= dict.fromkeys(("goodput_bps", "packets", "drops", "marks"))
    if not summary["measured_s"]:
        summary["measured_s"] = None


def _nothing(value: Any) -> Any:
    """The value with None in place of every number."""
    if isinstance(value, dict):
        return {name: _nothing(item) for name, item in value.items()}
    return None if isinstance(value, (int, float)) else value
