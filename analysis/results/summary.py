# SPDX-License-Identifier: MIT
"""summary.json: every number of one repetition, units in the names. README.md defines each number."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from analysis.arithmetic.reproducible_sums import dot
from analysis.join.join import NONE
from analysis.judge.analyse import Analysis
from analysis.judge.validity import idle_rtt
from analysis.measure import captured_link, finite_flows, group_results, metrics, open_loop, over_time, program_results
from analysis.measure.application import application
from analysis.measure.flow_distribution import MANY_FLOWS, flows_distribution
from analysis.measure.flow_rows import flow_rows
from analysis.measure.loss import flows_losing_per_rtt
from analysis.measure.queue_drain import drained_fraction
from analysis.read import imported, postcards
from analysis.read.columns import filed, parts, rows_of, slabs
from analysis.read.documents import Tracer
from analysis.theory import many_flows, single_flow
from lib.frames import ETHERNET_BYTES
from model.experiment import Experiment
from model.groups import LONG

MAX_EVENTS = 1000  # length of the list of loss events; their count has no limit
MAX_FLOWS = 20_000  # length of the list of flows, half a KB each; sums and means are over all flows


def summarize(a: Analysis) -> dict[str, Any]:
    """The document, in JSON's types; None where a number could not be measured."""
    run, spec, window = a.run, a.run.experiment, a.window
    flows = flow_rows(run, a.queue, a.segments, a.windows, a.good, window)
    seconds = window.length_ns / 1e9
    received = application(run, window)
    for flow in flows:
        flow["application_goodput_bps"] = received.by_flow.get(flow["id"])
    program_results.add_to_rows(run, a.queue, window, flows)
    rates = None if spec.open_loop else _rates_bps(a, a.shared)[[entry.number for entry in run.traffic if entry.is_tcp]]
    mean_bps = _rates_bps(a, window)
    known_bps = [  # QUIC's is unknown
        mean_bps[entry.number].item()
        for flow, entry in zip(flows, run.traffic, strict=True)
        if flow["goodput_bps"] is not None
    ]
    has_goodput = rates is not None and bool(known_bps or not flows or spec.finite)
    goodput = float(sum(known_bps)) if seconds and has_goodput else None
    if goodput is not None:
        goodput += finite_flows.carried_bps(run, a.good.bits_per_flow, window)
    long_flows = 0 if rates is None else sum(entry.is_tcp and not entry.program for entry in run.traffic)
    counts = metrics.counts(a.queue, window)
    fairness = metrics.almost_fairness(run, a.windows, a.shared, spec.bdp_packets)
    loss = _loss(a, long_flows, fairness["delta"])
    document = {
        "valid": not a.reasons,
        "reasons": a.reasons,
        "clock": spec.clock,
        "lab": _lab(a),
        "spec": spec.dump(),
        "rate": _rate(a),
        "bdp_packets": spec.bdp_packets,
        "buffer_packets": spec.buffer_packets,
        "measured_s": seconds,
        "utilization": a.utilization
        | {
            "min_after_loss": loss["min_utilization_after"]["median"],
            "min_after_loss_10rtt": loss["min_utilization_10rtt_after"]["median"],
        },
        "goodput_bps": goodput,
        "goodput_p01_bps": metrics.goodput_p01_bps(a.good, window, spec.rtt_ns) if has_goodput else None,
        "application_goodput_bps": received.goodput_bps,
        "application_goodput_p01_bps": received.goodput_p01_bps,
        "queue_depth_packets": (
            metrics.queue_depth(a.queue, window) if run.depths is None else imported.queue_depth(run.depths)
        ),
        "queue_depth_bytes": metrics.queue_depth(a.queue, window, "depth_bytes"),
        "queue_delay_ns": metrics.queue_delay(a.queue, window),
        "queue_nonempty_fraction": counts["queue_nonempty_fraction"],
        "arrivals": counts["arrivals"],
        "drops": counts["drops"],
        "marks": counts["marks"],
        **{name: counts[name] for name in ("link_lost",) if name in counts},
        "drop_fraction": counts["drop_fraction"],
        "jain_index": None if rates is None else metrics.jain_index(rates),
        "in_flight_from": a.in_flight.source,
        "aggregate_window_packets": _aggregate(a),
        "almost_fairness": fairness,
        "loss": loss,
        "drained_fraction": (
            None if rates is None else drained_fraction(a.queue, window, a.events, spec, _bdp_packets(spec))
        ),
        "rules": _rules(a, long_flows, fairness["delta"]),
        "open_loop": open_loop.compare(run, spec.open_loop, a.queue, window) if spec.open_loop else None,
        **finite_flows.summarize(run, a.queue, window),
        **_groups(a),
        **program_results.summarize(run, flows),
        **_captured_link(a),
        **_cells(a),
        "flows": flows[:MAX_FLOWS],
        "join": _join(a),
        "ledger": a.ledger,
        "fidelity": a.fidelity,
        "idle_rtt_ns": idle_rtt(run),
        "tracer": _tracer(run.documents.tracer),
        "raw_files": {
            raw.name: {
                "bytes": raw.size_bytes, "blocks": raw.blocks, "records": raw.records,
                "damaged_bytes": raw.damaged_bytes,
            }
            for raw in run.raw.values()
        },
        "measurement_window_mono_ns": [window.start_ns, window.end_ns],
        "traffic_start_mono_ns": window.traffic_start_ns,
        "bottleneck_port": a.port,
    }  # fmt: skip
    if len(flows) > MAX_FLOWS:
        document["flows_not_listed"] = len(flows) - MAX_FLOWS
    imported.mask(document, spec)
    if len(flows) > MANY_FLOWS:
        document["flows_distribution"] = flows_distribution(flows)
    return plain(document)


def plain(value: Any) -> Any:
    """The value in JSON's types: NumPy numbers as Python's, numbers that are not finite as None."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _lab(a: Analysis) -> dict[str, Any]:
    """Target, programs, switch and kernel, and the wall time per second of traffic (None in real time)."""
    environment = a.run.documents.environment
    return {
        "target": a.run.experiment.target,
        "programs": environment.target_programs or {},
        "switch": a.run.experiment.switch_kind,
        "kernel": environment.kernel,
        "wall_s_per_traffic_s": environment.wall_s_per_traffic_s,
    }


def _rate(a: Analysis) -> dict[str, Any]:
    """The asked rate, the rate that the target can keep, and the measured rate of back-to-back departures."""
    spec = a.run.experiment
    pps = spec.rate_pps
    kept_bps = None if pps is None else pps * 8 * spec.wire_bytes
    return {
        "asked_bps": spec.rate_bps,
        **({"mean_bps": metrics.mean_rate_bps(a.run, a.window)} if spec.rate_changes else {}),
        "kept_pps": pps,
        "kept_bps_of_full_packets": kept_bps,
        "rounding_error_fraction": None if kept_bps is None else kept_bps / spec.rate_bps - 1,
        "measured_pps": a.fidelity.get("measured_pps"),
        "measured_bps": a.fidelity.get("measured_bps"),
    }


def _aggregate(a: Analysis) -> dict[str, float | None]:
    """Mean, extremes and deviation over time of the sum of all flows' windows, and how much windows move together."""
    packets, held_ns = held = over_time.aggregate_window(a.windows, a.window)
    cwnd, cwnd_ns = over_time.aggregate_window(a.windows, a.window, "cwnd_packets")
    if not len(packets):
        names = (*("in_flight_" + of for of in ("mean", "min", "max", "deviation")), "cwnd_mean", "synchronization")
        return dict.fromkeys(names)
    return {
        "in_flight_mean": dot(packets, held_ns) / float(held_ns.sum()),
        "in_flight_min": int(packets[0]),
        "in_flight_max": int(packets[-1]),
        "in_flight_deviation": over_time.deviation(held),
        "cwnd_mean": dot(cwnd, cwnd_ns) / float(cwnd_ns.sum()) if a.windows.has_cwnd else None,
        "synchronization": over_time.synchronization(a.windows, a.shared),
    }


def _rates_bps(a: Analysis, window: metrics.Window) -> np.ndarray:
    """The goodput of each flow number in `window`; the last is of flows without packets, 0."""
    bits, seconds = np.append(a.good.bits_in(window), 0), window.length_ns / 1e9
    return bits / seconds if seconds else np.zeros(len(bits))


def _groups(a: Analysis) -> dict[str, Any]:
    """The results of each group, if there are several."""
    of_groups = group_results.summarize(a.run, a.queue, a.good, a.window)
    return {"groups": of_groups} if of_groups else {}


def _cells(a: Analysis) -> dict[str, Any]:
    """Depths and threshold as a switch that counts cells has them; empty for other switches."""
    recount = a.run.recount
    if recount is None:
        return {}
    spec, cards = a.run.experiment, a.queue
    names = ("enqueue_mono_ns", "depth_cells", "flags")
    admitted = (rows_of(part, postcards.admitted(part)) for part in parts(cards, *names))
    kept = filed(a.run.directory, admitted) or {name: cards[name] for name in names}
    packets = spec.ecn_threshold_packets if spec.mode == "ecn" else spec.buffer_packets
    return {
        "cells": {
            "cell_bytes": recount.cell_bytes,
            "full_packet_cells": recount.full_packet_cells,
            "threshold_cells": int(cards["threshold"][0]) if len(cards["threshold"]) else None,
            "threshold_packets": packets,
            "threshold_bytes": None if packets is None else packets * (spec.mtu_bytes + ETHERNET_BYTES),
            "threshold_ns": None if packets is None else packets * spec.wire_bytes * 8e9 / spec.rate_bps,
            "queue_depth_cells": metrics.queue_depth(kept, a.window, "depth_cells"),
            "watermark_cells": a.run.documents.switch.stats.get(f"port.{a.port}.queue_max_cells"),
        }
    }


def _spread(values: list[float | None]) -> dict[str, float | None]:
    return metrics.spread(np.array([value for value in values if value is not None]))


def _bdp_packets(spec: Experiment) -> float:
    return single_flow.bdp_packets(spec.bdp_bps, spec.rtt_ns, spec.wire_bytes)


def _loss(a: Analysis, flows: int, delta: float | None) -> dict[str, Any]:
    bdp = _bdp_packets(a.run.experiment)
    return {
        "events": len(a.events),
        "min_utilization_after": _spread([event.min_utilization for event in a.events]),
        "min_utilization_10rtt_after": _spread([event.min_utilization_10rtt for event in a.events]),
        "flows_losing_per_rtt": flows_losing_per_rtt(a.queue, a.window, a.run.experiment.rtt_ns),
        "flows_losing_per_rtt_bound": many_flows.flows_seeing_loss(bdp, flows, delta)
        if flows and delta and not a.run.experiment.no_theory
        else None,
        "longest_rtt_ns": a.rtt_max_ns,
        "list": [
            {
                "since_traffic_start_s": (event.start_ns - a.window.traffic_start_ns) / 1e9,
                "drops": event.drops,
                "flows": event.flows,
                "min_utilization": event.min_utilization,
                "min_utilization_10rtt": event.min_utilization_10rtt,
                "depth_before_packets": event.depth_before_packets,
                "min_depth_packets": event.min_depth_packets,
                "min_mean_depth_packets": event.min_mean_depth_packets,
                "in_flight_before_packets": event.window_before_packets,
                "in_flight_after_packets": event.window_after_packets,
            }
            for event in a.events[:MAX_EVENTS]
        ],
    }


def _rules(a: Analysis, flows: int, delta: float | None) -> dict[str, Any]:
    """The literature's buffers and predictions (theory/) for this rate, least RTT, buffer and number of long flows.

    `not_counted` names the other kinds of traffic of the run. `absent` is the reason if the link is one for which the
    literature predicts nothing. The BDP of a rate that changes is that of BDP_OF.
    """
    spec = a.run.experiment
    others = [kind for kind in dict.fromkeys(group.kind for group in spec.flow_groups) if kind != LONG]
    bdp = _bdp_packets(spec)
    buffer = spec.buffer_packets
    ratio = {"bdp_packets_exact": bdp, "buffer_over_bdp": buffer / bdp}
    if spec.no_theory:
        names = ("sqrt_n_packets", "almost_fair_packets", "almost_fair_utilization")
        return ratio | dict.fromkeys(names) | {"single_flow": [], "absent": spec.no_theory}
    used = {group.cc for group in spec.long}
    return {
        "bdp_packets_exact": bdp,
        **({"flows": flows, "not_counted": others} if others and flows else {}),
        "buffer_over_bdp": buffer / bdp,
        "sqrt_n_packets": many_flows.sqrt_rule(bdp, flows) if flows else None,
        "almost_fair_packets": many_flows.almost_fair_buffer(bdp, flows, delta) if flows and delta else None,
        "almost_fair_utilization": many_flows.almost_fair_utilization(flows, delta) if flows and delta else None,
        "single_flow": [
            {
                "cc": cc,
                "in_this_run": cc in used,
                "buffer_packets": single_flow.single_flow_buffer(cc, bdp),
                "min_utilization": single_flow.min_utilization(cc, buffer, bdp),
                "drained_packets": single_flow.drained_packets(cc, buffer, bdp),
            }
            for cc in (*single_flow.ALGORITHMS, *sorted(used - set(single_flow.ALGORITHMS)))
        ],
    }


def _tracer(document: Tracer) -> dict[str, Any]:
    """The tracer's source of events, the fields unknown to this source, and the tracer's cost."""
    names = (
        "source", "unknown_fields", "retransmit_unknown_fields", "events", "bpf_ns_per_event", "user_ns_per_event",
        "bpf_runs",
    )  # fmt: skip
    return {name: getattr(document, name) for name in names}


def _join(a: Analysis) -> dict[str, int | None]:
    segments, counts = a.segments, {}
    for name in ("trace_row", "ack_row", "retransmission", "retransmit_row", "reordered"):
        column, absent = getattr(segments, name), NONE if name.endswith("_row") else False
        counts[name] = sum(int(np.count_nonzero(column[part] != absent)) for part in slabs(len(column)))
    has_bytes = not segments.retransmits_untold  # else records without sequence numbers make the counts unknown
    return {
        "tcp_packets": len(segments.rows),
        "with_window": counts["trace_row"],
        "with_ack": counts["ack_row"],
        "retransmissions": counts["retransmission"],
        "retransmissions_with_record": counts["retransmit_row"] if has_bytes else None,
        "retransmits_without_packet": segments.retransmits_unmatched if has_bytes else None,
        "retransmits_untold": segments.retransmits_untold,
        "reordered": counts["reordered"],
        "sequence_skips": segments.skipped,
    }


def _captured_link(a: Analysis) -> dict[str, Any]:
    spec = a.run.experiment
    if not (spec.imported and spec.imported.link):
        return {}
    return {"captured_link": captured_link.summarize(a.run.directory, spec.rate_bps)}
