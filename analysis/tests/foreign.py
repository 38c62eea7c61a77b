# SPDX-License-Identifier: MIT
"""A simulated repetition in the two forms of the published artifact: text files and tables."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from analysis.tests import simulate
from analysis.tests.simulate import CARD, EVENT

EXPERIMENT = "8bfa0b54-90cf-11ea-8dea-0cc47a000000"
CELL_BYTES, MTU = 80, 1500
POSTCARD_COLUMNS = (
    "ipv4_src_addr", "ipv4_dst_addr", "src_port", "dst_port", "seq_no", "ack_no", "queue_depth_cells",
    "postcard_timestamp", "switch_id", "was_dropped", "egress_port", "ingress_port",
)  # fmt: skip


def seconds(ns: int) -> str:
    return f"{ns // 10**9}.{ns % 10**9:09d}"


def config(scenario: simulate.Scenario, experiment: str = EXPERIMENT) -> dict[str, object]:
    """config.json."""
    marks = scenario.mode == "ecn"
    threshold = scenario.ecn_threshold if marks and scenario.ecn_threshold else scenario.threshold
    cells = threshold * MTU // CELL_BYTES
    return {
        "id": experiment, "algorithm": scenario.ccs[0], "num_flows": scenario.flows, "mtu_bytes": MTU,
        "max_queue_depth_cells": cells, "max_queue_depth_bytes": cells * CELL_BYTES,
        "max_queue_depth_packets": cells * CELL_BYTES / MTU, "receiver_delay": "10.0ms",
        "action": "ecn" if marks else "drop", "note": "a\tnote", "experimenter": "somebody", "run_at": 1589000000.5,
    }  # fmt: skip


def cards(truth: simulate.Truth) -> list[tuple[int, dict[str, object]]]:
    """(receive time at the collector in ns, columns) of each postcard, in the order of reception."""
    rows = []
    for card, flow in zip(truth.cards, truth.arrival_flow, strict=True):
        values = (
            "10.77.0.1", "10.77.0.2", 30_000 + flow, 5201, card["tcp_seq"], 0,
            round(card["depth_packets"] * MTU / CELL_BYTES), 0, 12, int(bool(card["flags"] & CARD["POSTCARD_DROPPED"])),
            2, 0,
        )  # fmt: skip
        rows.append((card["enqueue_ns"] + card["sojourn_ns"], dict(zip(POSTCARD_COLUMNS, values, strict=True))))
    return sorted(rows, key=lambda row: row[0])


def probe(record: dict[str, int], columns: bool = False) -> dict[str, object]:
    """The fields of tcp:tcp_probe. In the data set (`columns`), mark and the sequence numbers are decimal, and srtt is
    named srtt_us.
    """
    number = (lambda value: value) if columns else hex
    return {
        "src": f"10.77.0.1:{30_000 + record['flow']}", "dest": "10.77.0.2:5201", "mark": number(0), "data_len": 0,
        "snd_nxt": number(record["snd_nxt"]), "snd_una": number(record["snd_una"]), "snd_cwnd": record["cwnd_packets"],
        "ssthresh": record["ssthresh_packets"], "snd_wnd": 65536, "srtt_us" if columns else "srtt": record["srtt_us"],
        "rcv_wnd": 65536, "sock_cookie": f"{record['flow'] + 1:x}",
    }  # fmt: skip


def resent(record: dict[str, int]) -> dict[str, object]:
    """The fields of tcp:tcp_retransmit_skb."""
    return {
        "sport": 30_000 + record["flow"], "dport": 5201, "saddr": "10.77.0.1", "daddr": "10.77.0.2",
        "saddrv6": "::ffff:10.77.0.1", "daddrv6": "::ffff:10.77.0.2", "state": "TCP_ESTABLISHED",
    }  # fmt: skip


def _records(truth: simulate.Truth) -> list[dict[str, int]]:
    return sorted(truth.records, key=lambda record: record["mono_ns"])


def _words(fields: dict[str, object]) -> str:
    return " ".join(f"{name}={value}" for name, value in fields.items())


def trace_lines(truth: simulate.Truth) -> list[str]:
    """trace.tr as the kernel prints it: times in us, events of other kinds in between."""
    lines = ["# tracer: nop", "#"]
    for index, record in enumerate(_records(truth)):
        is_probe = record["event"] == EVENT["TCP_EVENT_PROBE"]
        name, fields = ("tcp_probe", probe(record)) if is_probe else ("tcp_retransmit_skb", resent(record))
        time = seconds(record["mono_ns"])[:-3]
        comm = ("          <idle>-0    ", "  my (odd) [1] comm-123")[index % 2]
        lines.append(f"{comm} [00{index % 4}] ..s2 {time}: {name}: {_words(fields)}")
        if index % 500 == 0:
            lines.append(f"     iperf3-3829  [003] .... {time}: tcp_rcv_space_adjust: family=AF_INET sport=1 dport=2")
    return lines


def postcard_lines(truth: simulate.Truth) -> list[str]:
    """postcards.tr."""
    return [f"{seconds(ns)}: postcard: {_words(fields)}" for ns, fields in cards(truth)]


def write_text(directory: Path, scenario: simulate.Scenario, truth: simulate.Truth) -> None:
    """The artifact's directory of one experiment."""
    directory.mkdir(parents=True)
    (directory / "trace.tr").write_text("\n".join(trace_lines(truth)) + "\n  iperf3-3829  [003] ....")  # cut off
    (directory / "postcards.tr").write_text("\n".join(postcard_lines(truth)) + "\n")
    (directory / "config.json").write_text(json.dumps(config(scenario)))


Tables = dict[str, tuple[list[str], list[list[object]]]]


def tables(scenario: simulate.Scenario, truth: simulate.Truth, experiment: str = EXPERIMENT) -> Tables:
    """(columns, rows) of each table, as the artifact's loader fills them. A second experiment has a row in
    `experiments`, and no data.
    """
    records = _records(truth)
    base = min(record["mono_ns"] for record in records)
    is_probe = [record["event"] == EVENT["TCP_EVENT_PROBE"] for record in records]

    def times(ns: int) -> dict[str, object]:
        return {"absolute_timestamp": seconds(ns), "timestamp_sec": (ns - base) / 1e9, "experiment_id": experiment}

    tables_by_name: dict[str, list[dict[str, object]]] = {
        "experiments": [
            config(scenario, experiment) | {"run_at": "2020-05-09 06:13:20.5"},
            config(scenario, "another"),
        ],
        "traces": [
            probe(r, columns=True) | {"sport": 30_000 + r["flow"], "dport": 5201} | times(r["mono_ns"])
            for r, yes in zip(records, is_probe, strict=True)
            if yes
        ],
        "retransmits": [resent(r) | times(r["mono_ns"]) for r, yes in zip(records, is_probe, strict=True) if not yes],
        "postcard_traces": [
            fields | {"queue_depth_packets": fields["queue_depth_cells"] * CELL_BYTES / MTU} | times(ns)  # type: ignore[operator]
            for ns, fields in cards(truth)
        ],
    }
    depths = [row["queue_depth_packets"] for row in tables_by_name["postcard_traces"]]
    tables_by_name["queue_depth_histograms"] = [
        {"experiment_id": experiment, "queue_depth_packets": depth, "count": depths.count(depth)}
        for depth in sorted(set(depths))  # type: ignore[type-var]
    ]
    return {name: (list(rows[0]), [list(row.values()) for row in rows]) for name, rows in tables_by_name.items()}


def together(several: list[Tables]) -> Tables:
    """The tables of several experiments as one data set, without the second experiment of each, which has no data."""
    return {
        name: (
            columns,
            [row for each in several for row in each.get(name, ([], []))[1][: 1 if name == "experiments" else None]],
        )
        for name, (columns, _) in several[0].items()
    }


def write_csv(directory: Path, tables_by_name: Tables) -> None:
    r"""Writes the tables as \copy TABLE to FILE csv header does."""
    directory.mkdir(parents=True)
    for name, (columns, rows) in tables_by_name.items():
        with (directory / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([columns, *rows])
