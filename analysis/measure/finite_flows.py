# SPDX-License-Identifier: MIT
"""Finite flows: flows.parquet, the summary's `finite_flows`, and the reasons against a run.

A flow's SYN, connection, start and end come from its sending program. Its packets, drops, marks and the times of its
data at the bottleneck queue come from the queue's postcards. A finite flow is measured if its SYN was sent in the
measurement window, even if the flow ended later or never.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from analysis.arithmetic.reproducible_sums import dot
from analysis.join.join import Segments
from analysis.measure import congestion_events, depth_over_time
from analysis.measure.fidelity import MAX_LATENESS_RTT_FRACTION, histogram_percentiles
from analysis.measure.finite_flow_paths import NO_PATH, path_of_records
from analysis.measure.metrics import Columns, Window, cards_in, percentiles
from analysis.read.columns import joined, parts, rows_of, slabs
from analysis.read.load import Run
from analysis.read.postcards import dropped
from model.groups import CLOSED_LOOP, Finite
from model.paths import paths
from runs.verdict import Area
from wire import wire

RECORD = wire.FLOW_RECORD.const
NAME = "flows.parquet"
ENDS = ("unfinished", "finished", "long", "refused", "reset")  # by the value of a record's `end`
TIMES = ("syn_mono_ns", "connected_mono_ns", "started_mono_ns", "ended_mono_ns")
COUNTED = ("busy_us", "rwnd_limited_us", "sndbuf_limited_us")
NO_RTT_US = 0xFFFF_FFFF


def groups_of(run: Run) -> np.ndarray:
    """The number of each record's group in spec.yaml's `transfers` (int64); -1: a long flow."""
    assert run.flow_records is not None
    first_ports = [group.first_server_port for group in run.documents.traffic.finite_groups or ()]
    at = np.searchsorted(np.array(first_ports, dtype=np.int64), run.flow_records["dst_port"], side="right") - 1
    return np.where(run.flow_records["end"] == RECORD["FLOW_END_LONG"], -1, at)


def table(run: Run, queue: Columns, segments: Segments, window: Window) -> pl.DataFrame:
    """One row per flow, by time of the SYN. analysis/README.md has the columns."""
    records = run.flow_records
    assert records is not None
    group = groups_of(run)
    ends = np.minimum(records["end"], len(ENDS) - 1)
    columns: dict[str, Any] = {
        "line": records["line"],
        "flow": pl.Series(records["flow"]).replace(-1, None),
        "group": pl.Series(group).replace(-1, None),
        "user": pl.Series(records["user"]).replace(0, None),
        "src_port": records["src_port"],
        "dst_port": records["dst_port"],
        **{name: pl.Series(records[name]).replace(0, None) for name in TIMES},
        **_at_the_queue(run, queue, segments),
        "size_bytes": pl.Series(records["size_bytes"]).replace(0, None),
        "acked_bytes": records["acked_bytes"],
        "retransmits": records["retransmits"],
        "timeouts": pl.Series(records["timeouts"]).replace(RECORD["FLOW_TIMEOUTS_UNKNOWN"], None),
        "min_rtt_us": pl.Series(records["min_rtt_us"]).replace(NO_RTT_US, None),
        "srtt_us": pl.Series(records["srtt_us"]).replace(0, None),
        "mss_bytes": pl.Series(records["mss_bytes"]).replace(0, None),
        **{name: records[name] for name in COUNTED},
        "end": pl.Series(ends, dtype=pl.UInt32).cat.to(pl.Enum(ENDS)),
        "measured": _began_in(records, window),
        **_paths(run),
    }
    return pl.DataFrame(columns)


def _paths(run: Run) -> dict[str, pl.Series]:
    """Each record's path in spec.yaml's `paths`, and its RTT without queues; no columns without paths."""
    if not paths(run.experiment):
        return {}
    path = pl.Series(path_of_records(run)).replace(NO_PATH, None)
    return {"path": path, "base_rtt_ns": pl.Series(_base_rtts_ns(run)).replace(0, None)}


def _base_rtts_ns(run: Run) -> np.ndarray:
    """The RTT without queues of each record's path (int64); 0: a long flow, or a run without `paths`."""
    rtts = [path.rtt_ns for path in paths(run.experiment)]
    return np.array([*rtts, 0], dtype=np.int64)[path_of_records(run)]


def _at_the_queue(run: Run, queue: Columns, segments: Segments) -> dict[str, pl.Series]:
    """Packets, drops, marks and congestion events of each record's flow; when its data first arrived and last left."""
    assert run.flow_records is not None
    flow, size = run.flow_records["flow"], len(run.flows) + 1  # the last place, index -1, is for flows without packets
    dropped_cards = [rows_of(queue, slice(0))]
    counts = dict(zip(("packets", "drops", "marks"), np.zeros((3, size), dtype=np.int64), strict=True))
    for cards in parts(queue, "flow", "flags", "enqueue_mono_ns"):
        lost, marked = dropped(cards), (cards["flags"] & wire.POSTCARD.const["POSTCARD_CE_MARKED"]) != 0
        for name, mask in (("packets", slice(None)), ("drops", lost), ("marks", marked)):
            counts[name] += np.bincount(cards["flow"][mask], minlength=size)
        dropped_cards.append(rows_of(cards, lost))
    drops = joined(*dropped_cards)
    counts["congestion_events"] = congestion_events.count(
        drops["flow"].astype(np.int64), drops["enqueue_mono_ns"].astype(np.int64), _rtts_ns(run)
    )
    first, last = np.full(size, np.iinfo(np.int64).max), np.zeros(size, dtype=np.int64)
    for part in slabs(len(segments.rows)):
        data = segments.rows[part][segments.payload_bytes[part] > 0]
        cards = {name: queue[name][data] for name in ("flow", "flags", "enqueue_mono_ns", "sojourn_ns")}
        np.minimum.at(first, cards["flow"], cards["enqueue_mono_ns"])
        left = rows_of(cards, ~dropped(cards))
        np.maximum.at(last, left["flow"], left["enqueue_mono_ns"] + left["sojourn_ns"])
    first[first == np.iinfo(np.int64).max] = 0
    return {
        "first_data_arrival_mono_ns": pl.Series(first[flow]).replace(0, None),
        "last_data_departure_mono_ns": pl.Series(last[flow]).replace(0, None),
        **{name: pl.Series(np.where(flow < 0, 0, values[flow]).astype(np.uint32)) for name, values in counts.items()},
    }


def _rtts_ns(run: Run) -> np.ndarray:
    """An RTT for each flow number (int64): the smoothed RTT at the flow's end, else the RTT without queues."""
    records = run.flow_records
    assert records is not None
    srtt_ns = records["srtt_us"].astype(np.int64) * 1000
    idle_ns = _base_rtts_ns(run)
    result = np.full(len(run.flows) + 1, run.experiment.rtt_ns, dtype=np.int64)
    result[records["flow"]] = np.where(srtt_ns > 0, srtt_ns, np.where(idle_ns > 0, idle_ns, run.experiment.rtt_ns))
    return result


def _began_in(records: Columns, window: Window) -> np.ndarray:
    began = records["syn_mono_ns"]
    return (began >= window.start_ns) & (began < window.end_ns) & (records["end"] != RECORD["FLOW_END_LONG"])


def lateness(run: Run) -> dict[str, float | None]:
    """Percentiles in us of the time from a flow's due time to its SYN: upper edges of buckets."""
    finite = run.documents.traffic.finite
    return histogram_percentiles(finite.lateness_ns if finite else None, p50=50, p99=99)


def reasons(run: Run, window: Window) -> list[str]:
    """One line for each fault: flows never reached the queue though they had time; finished flows lack acknowledged
    bytes; SYNs were sent late, or nobody knows how late.
    """
    records = run.flow_records
    if records is None:
        return []
    result = _record_reasons(run, records, window)
    late, allowed = lateness(run)["p99"], MAX_LATENESS_RTT_FRACTION * run.experiment.rtt_ns / 1e3
    if late is None and len(records["end"]) > np.count_nonzero(records["end"] == RECORD["FLOW_END_LONG"]):
        result += run.documents.unsaid("traffic", ["lateness_ns"], "whether flows began in time is unknown")
    elif late is not None and late > allowed:
        result.append(
            f"{Area.FIDELITY}: 1 % of finite flows began {late:.0f} us or more after their due time; allowed are "
            f"{allowed:.0f} us: lower LOAD or USERS, or leave the machine idle"
        )
    return result


def _record_reasons(run: Run, records: Columns, window: Window) -> list[str]:
    finished = records["end"] == RECORD["FLOW_END_FINISHED"]
    short = np.count_nonzero(finished & (records["acked_bytes"] != records["size_bytes"]))
    result = [f"{Area.LEDGER}: {short} finished flows do not have all their bytes acknowledged"] if short else []
    in_time = (records["syn_mono_ns"] > 0) & (records["syn_mono_ns"] < window.end_ns - 2 * run.experiment.rtt_ns)
    # A SYN may still wait before its access link, whose queue has no limit.
    if any(path.access_link for path in paths(run.experiment)):
        in_time &= records["connected_mono_ns"] > 0
    unseen = np.count_nonzero(in_time & (records["flow"] < 0))
    if unseen:
        result.append(f"{Area.LEDGER}: {unseen} flows of flows.bsf have no packet at the queue; see logs/")
    return result


def summarize(run: Run, queue: Columns, window: Window) -> dict[str, Any]:
    """The summary's `finite_flows`, one object per group; nothing for a run without finite flows."""
    if run.flow_records is None:
        return {}
    group = groups_of(run)
    mss_bytes = run.flow_records["mss_bytes"]
    slow_start = {"slow_start_queue": depth_over_time.of_slow_start(run, queue, window, mss_bytes)}
    return {
        "finite_flows": [
            _of_group(run, queue, window.of_group(asked), group == number, asked) | slow_start
            for number, asked in enumerate(run.experiment.finite)
        ]
    }


def _of_group(run: Run, queue: Columns, window: Window, mine: np.ndarray, asked: Finite) -> dict[str, Any]:
    assert run.flow_records is not None
    records = {name: values[mine] for name, values in run.flow_records.items()}
    measured = _began_in(records, window)
    ends = np.bincount(records["end"][measured], minlength=len(ENDS))
    done = measured & (records["end"] == RECORD["FLOW_END_FINISHED"])
    took_s = (records["ended_mono_ns"] - records["syn_mono_ns"])[done] / 1e9
    transfer_s = (records["ended_mono_ns"] - records["started_mono_ns"])[done] / 1e9
    rates = 8 * records["size_bytes"][done] / np.maximum(took_s, 1e-9)
    busy = float(records["busy_us"][measured].sum())
    seconds = window.length_ns / 1e9
    known = records["timeouts"] != RECORD["FLOW_TIMEOUTS_UNKNOWN"]
    return {
        **{name: getattr(asked, name) for name in ("kind", "cc", "users", "load", "sizes_given")},
        "begun": len(mine.nonzero()[0]),
        "measured": int(measured.sum()),
        **{name: int(ends[number]) for number, name in enumerate(ENDS) if name != "long"},
        "flows_per_s": float(measured.sum() / seconds) if seconds else None,
        "size_bytes": _spread(records["size_bytes"][measured]),
        "completion_s": _spread(took_s),
        "transfer_s": _spread(transfer_s),
        "throughput_bps": _spread(rates),
        "retransmits": int(records["retransmits"][measured].sum()),
        "timeouts": int(records["timeouts"][measured & known].sum()) if known.all() else None,
        "limited_fraction": {
            name: float(records[f"{name}_limited_us"][measured].sum()) / busy if busy else None
            for name in ("rwnd", "sndbuf")
        },
        "offered_fraction": _offered(run, queue, window, mine),
        "open_mean": _open_mean(records, window),
        "littles_law": _littles_law(records, window, asked),
        **_by_rtt(run, mine, measured, took_s, done),
    }


def _by_rtt(
    run: Run, mine: np.ndarray, measured: np.ndarray, took_s: np.ndarray, done: np.ndarray
) -> dict[str, list[dict[str, Any]]]:
    """Completion times of each RTT, if there are several. `took_s` has one time for each record that is `done`."""
    of_record = _base_rtts_ns(run)[mine]
    rtts = sorted(set(of_record.tolist()))
    if not paths(run.experiment) or len(rtts) < 2:
        return {}
    return {
        "by_rtt": [
            {
                "rtt_ns": rtt,
                "measured": int((measured & (of_record == rtt)).sum()),
                "completion_s": _spread(took_s[of_record[done] == rtt]),
            }
            for rtt in rtts
        ]
    }


def _spread(values: np.ndarray) -> dict[str, Any]:
    mean = float(values.mean(dtype=np.float64)) if len(values) else None
    return {"mean": mean, **percentiles(values, p01=1, p10=10, p50=50, p90=90, p99=99)}


def _offered(run: Run, queue: Columns, window: Window, mine: np.ndarray) -> float | None:
    """Bits of the flows of some records that arrived at the queue, drops included, as a share of the capacity."""
    assert run.flow_records is not None
    of_group = np.zeros(len(run.flows) + 1, dtype=bool)
    of_group[run.flow_records["flow"][mine]] = True
    of_group[-1] = False  # the place of flows without packets
    capacity, total = run.rate.capacity_bits(window.start_ns, window.length_ns), 0
    for cards in cards_in(queue, window, "flow", "packet_bytes"):
        total += int(run.rate.link_bytes(cards["packet_bytes"][of_group[cards["flow"]]]).sum())
    return float(8 * total / capacity) if capacity else None


def _open_mean(records: Columns, window: Window) -> float | None:
    """Mean over time of the number of open flows."""
    ended = np.where(records["ended_mono_ns"] > 0, records["ended_mono_ns"], window.end_ns)
    held = np.minimum(ended, window.end_ns) - np.maximum(records["syn_mono_ns"], window.start_ns)
    return float(held[held > 0].sum() / window.length_ns) if window.length_ns > 0 else None


def _littles_law(records: Columns, window: Window, asked: Finite) -> dict[str, float | None] | None:
    """Three estimates of a flow's mean duration. `rate` stands for the number of flows that ended per second:
    users / rate - mean think time; open flows / rate (Little's law), which includes flows that the window cuts; the
    mean over flows that ended in the window, which underrepresents long flows. None unless users think from the end of
    a flow, and some flow and some think time ended in the window.
    """
    if asked.kind != CLOSED_LOOP or asked.think_from != "end":
        return None
    ended = (records["ended_mono_ns"] >= window.start_ns) & (records["ended_mono_ns"] < window.end_ns)
    took_s = (records["ended_mono_ns"] - records["syn_mono_ns"])[ended] / 1e9
    think_s = _think_s(records, window)
    if not len(took_s) or window.length_ns <= 0 or not len(think_s):
        return None
    per_s = len(took_s) / (window.length_ns / 1e9)
    mean_think_s = float(think_s.mean())
    mean_s = (_open_mean(records, window) or 0.0) / per_s
    return {
        "users": asked.users,
        "flows_per_s": per_s,
        "mean_think_s": mean_think_s,
        "mean_flow_of_ended_s": float(took_s.mean()),
        "mean_flow_by_open_flows_s": mean_s,
        "mean_flow_by_users_s": asked.users / per_s - mean_think_s,
        "cycle_error_fraction": (mean_s + mean_think_s) * per_s / asked.users - 1,
    }


def _think_s(records: Columns, window: Window) -> np.ndarray:
    """The think times that ended in the window: from a flow's end to the next SYN of the same user."""
    order = np.lexsort((records["syn_mono_ns"], records["user"]))
    user, began, ended = (records[name][order] for name in ("user", "syn_mono_ns", "ended_mono_ns"))
    follows = (user[1:] == user[:-1]) & (ended[:-1] > 0)
    inside = (began[1:] >= window.start_ns) & (began[1:] < window.end_ns)
    return (began[1:] - ended[:-1])[follows & inside] / 1e9


def carried_bps(run: Run, bits_per_flow: np.ndarray, window: Window) -> float:
    """Bits per second of new payload that left the queue in the window, of all finite flows together."""
    if run.flow_records is None or window.length_ns <= 0:
        return 0.0
    flow = run.flow_records["flow"]
    finite = flow[(flow >= 0) & (run.flow_records["end"] != RECORD["FLOW_END_LONG"])]
    return dot(bits_per_flow[finite], np.ones(len(finite))) * 1e9 / window.length_ns
