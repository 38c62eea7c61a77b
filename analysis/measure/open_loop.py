# SPDX-License-Identifier: MIT
"""Open-loop runs: the queue that queueing theory predicts, the measured queue, and the ledger of datagrams.

Arrivals do not depend on the network, so with Poisson arrivals the queue is exactly M/D/1 or M/G/1 (theory/queues.py),
or M[X]/D/1 with bursts (theory/batch_queues.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.arithmetic.counted import Counted
from analysis.arithmetic.reproducible_sums import dot
from analysis.measure.depth_over_time import BATCHES, time_mean
from analysis.measure.fidelity import MAX_LATENESS_RTT_FRACTION, histogram_percentiles
from analysis.measure.metrics import LINK_LOST, Columns, Window, arrivals_in, cards_in, of_datagrams
from analysis.read.columns import parts, rows_of
from analysis.read.documents import Sent, total
from analysis.read.link_loss import delivered
from analysis.read.load import Run
from analysis.read.postcards import dropped
from analysis.theory import batch_queues, packet_sizes, queues, short_flows
from hosts.traffic.open_loop import flow_packets
from model.experiment import Experiment
from model.groups import Datagrams
from runs.verdict import Area

MAX_VIRTUAL_LATENESS_NS = 1_000  # a reading of the clock takes time, and datagrams due at one time wait for each other


def _sent(run: Run) -> list[Sent]:
    """The entry of each group of datagrams in traffic.json."""
    traffic = run.documents.traffic
    return [traffic.open_loop] if run.experiment.open_loop else traffic.datagrams or [Sent()]


@dataclass(frozen=True)
class Model:
    """The predicted queue at arrivals. `depth` is P(depth = 0, 1, ...) in packets, up to the buffer. A buffer of
    queues.MOST_STATES packets or more counts as unlimited; `depth` then ends at MOST_STATES - 1.
    """

    name: str
    mean_service_ns: float
    service_second_moment: float  # E[S^2] / E[S]^2
    mean_depth: float
    loss_fraction: float
    depth: np.ndarray
    time_mean_depth: float | None = None  # only for bursts: single Poisson arrivals see the time average (PASTA)


def model(spec: Experiment) -> Model | None:
    """The queue that theory/ predicts for a run. None without a prediction: arrivals that are not Poisson, other
    traffic, a limit in bytes or at departure, a policy of the user's, a load without steady state, or a rate that
    changes.
    """
    traffic = spec.open_loop
    if traffic is None or traffic.arrivals != "poisson" or spec.rate_changes:
        return None
    sizes, load, buffer = traffic.sizes, traffic.load, spec.buffer_packets
    services, probabilities = packet_sizes.service_times(sizes, spec.mtu_bytes, spec.rate_bps)
    other_queue = spec.has_own_policy or (spec.queue and spec.no_theory)
    if spec.mode not in ("tail-drop", "ecn") or spec.threshold_bytes or other_queue:
        return None
    if spec.mode == "ecn":  # the switch drops datagrams, which are not ECN-capable, at the mark threshold
        buffer = min(buffer, spec.ecn_threshold_packets or buffer)
    if (packets := flow_packets(sizes)) is not None:
        mean_service_ns = dot(services, probabilities) * 1e9
        return _of_bursts(short_flows.slow_start_bursts(packets), load, buffer, mean_service_ns)
    letter, moment = "D" if sizes == "fixed" else "G", queues.second_moment(services, probabilities)
    mean_service_ns = dot(services, probabilities) * 1e9
    if buffer < queues.MOST_STATES:
        depth = queues.mg1k_depth_distribution(load, services, probabilities, buffer)
        mean = dot(np.arange(len(depth)), depth)
        return Model(f"M/{letter}/1/{buffer}", mean_service_ns, moment, mean, float(depth[-1]), depth)
    if load >= 1:
        return None
    depth = queues.mg1_depth_distribution(load, services, probabilities, queues.MOST_STATES)
    return Model(f"M/{letter}/1", mean_service_ns, moment, queues.mg1_mean_depth(load, moment), 0.0, depth)


def _of_bursts(bursts: tuple[int, ...], load: float, buffer: int, mean_service_ns: float) -> Model | None:
    """M[X]/D/1. A buffer of queues.MOST_STATES packets or more is unlimited: then None if `load` is 1 or more."""
    if buffer < queues.MOST_STATES:
        over_time = batch_queues.limited_depth_distribution(load, bursts, buffer)
        depth = batch_queues.at_arrivals(over_time, bursts)
        depth = np.append(depth[:buffer], depth[buffer:].sum())
        values = np.arange(len(depth))
        mean, time_mean_depth = dot(values, depth), dot(values, over_time)
        return Model(f"M[X]/D/1/{buffer}", mean_service_ns, 1.0, mean, float(depth[-1]), depth, time_mean_depth)
    if load >= 1:
        return None
    over_time = batch_queues.depth_distribution(load, bursts, queues.MOST_STATES)
    depth = batch_queues.at_arrivals(over_time, bursts)[: queues.MOST_STATES]
    time_mean_depth = short_flows.mean_depth(load, bursts)
    mean = time_mean_depth + sum(size * (size - 1) / 2 for size in bursts) / sum(bursts)
    return Model("M[X]/D/1", mean_service_ns, 1.0, mean, 0.0, depth, time_mean_depth)


def datagrams(run: Run, queue: Columns) -> dict[str, int | None]:
    """Datagrams of the experiment at each station, over the whole run. None: not recorded. Those that the link lost
    behind the queue have not departed; which, nobody knows behind a delay line.
    """
    counts, departed = of_datagrams(run), 0
    queued = 0
    for cards in parts(queue, "flow", "flags", *((LINK_LOST,) if LINK_LOST in queue else ())):
        mine = rows_of(cards, counts[cards["flow"]])
        queued += len(mine["flow"])
        departed += int(np.count_nonzero(delivered(mine)))
    sink, sent = run.documents.traffic_sink, _sent(run)
    reads = [None] if sink.flows is None else [flow.reads for flow in sink.flows if flow.protocol != "tcp"]
    return {
        "datagrams_sent": total(group.datagrams for group in sent),
        "datagrams_queued": queued,
        **({} if run.experiment.loss and run.documents.switch.line else {"datagrams_departed": departed}),
        "datagrams_received": total(reads),
        "datagrams_unsent": total(group.unsent for group in sent),
        "datagrams_sink_drops": sink.datagrams_dropped,
    }


def lateness(run: Run) -> dict[str, float | None]:
    """Percentiles of the time in us from a datagram's due time until it was sent: upper edges of buckets; `max` is
    the last edge. Of several groups, the group with the largest p99 counts. If any group's p99 is unknown, so is the
    result.
    """
    of_groups = [histogram_percentiles(group.lateness_ns, p50=50, p99=99, p999=99.9) for group in _sent(run)]
    unknown = [late for late in of_groups if late["p99"] is None]
    return unknown[0] if unknown else max(of_groups, key=lambda late: late["p99"] or 0.0)


def lateness_reasons(run: Run) -> list[str]:
    """One line if datagrams were sent too late, or nobody knows how late: late arrivals are not Poisson. The limit for
    the p99 is the same as for the switch's frames, in virtual time at most MAX_VIRTUAL_LATENESS_NS.
    """
    if not run.experiment.datagrams:
        return []
    late = lateness(run)["p99"]
    allowed = MAX_LATENESS_RTT_FRACTION * run.experiment.rtt_ns / 1e3
    if run.experiment.in_virtual_time:
        allowed = min(allowed, MAX_VIRTUAL_LATENESS_NS / 1e3)
    if late is None:
        return run.documents.unsaid("traffic", ["lateness_ns"], "whether datagrams were sent in time is unknown")
    if late <= allowed:
        return []
    return [
        f"{Area.FIDELITY}: 1 % of datagrams were sent {late:.0f} us or more after their due time; allowed are "
        f"{allowed:.0f} us: lower RATE, or leave the machine idle"
    ]


def compare(run: Run, traffic: Datagrams, queue: Columns, window: Window) -> dict[str, Any]:
    """Theory and measurement side by side, over the measurement window. Depths are at arrivals. Bursts have the mean
    depth over time as well, because a packet also finds the earlier packets of its own burst.
    """
    expected = model(run.experiment)
    rows = arrivals_in(queue, window.start_ns, window.end_ns)
    depth = Counted.of(cards["depth_packets"] for cards in cards_in(queue, window, "depth_packets"))
    offered_bits = drops = 0
    for cards in cards_in(queue, window, "packet_bytes", "flags"):
        offered_bits += 8 * int(run.rate.link_bytes(cards["packet_bytes"]).sum())
        drops += int(np.count_nonzero(dropped(cards)))
    capacity_bits = run.rate.capacity_bits(window.start_ns, window.length_ns)
    over_time = {}
    if flow_packets(traffic.sizes) is not None:
        theory = expected.time_mean_depth if expected else None
        over_time = {"time_mean_depth_packets": {"theory": theory, **time_mean(queue, window)}}
    return {
        "load": traffic.load,
        "offered_load": offered_bits / capacity_bits if capacity_bits else None,
        "sizes": traffic.sizes,
        "arrivals": traffic.arrivals,
        "model": expected.name if expected else None,
        "mean_service_ns": expected.mean_service_ns if expected else None,
        "service_second_moment": expected.service_second_moment if expected else None,
        "mean_depth_packets": {
            "theory": expected.mean_depth if expected else None,
            "measured": depth.mean(),
            "standard_error": standard_error(queue, rows),
        },
        **over_time,
        "drop_fraction": {
            "theory": expected.loss_fraction if expected else None,
            "measured": drops / len(depth) if len(depth) else None,
        },
        "depth_distance": distance(depth, expected.depth) if expected and len(depth) else None,
        "send_lateness_us": lateness(run),
    }


def standard_error(queue: Columns, rows: slice) -> float | None:
    """Standard error of the mean depth by batch means: the depths of successive arrivals are correlated, but the means
    of BATCHES equal parts of the run are nearly independent.
    """
    size = (rows.stop - rows.start) // BATCHES
    if not size:
        return None
    batches = [slice(first, first + size) for first in range(rows.start, rows.start + size * BATCHES, size)]
    sums = [
        sum(int(cards["depth_packets"].sum()) for cards in parts(queue, "depth_packets", rows=batch))
        for batch in batches
    ]
    return float((np.array(sums) / size).std(ddof=1) / np.sqrt(BATCHES))


def distance(depth: Counted, expected: np.ndarray) -> float:
    """Kolmogorov's distance: the largest difference between the two cumulative distributions."""
    counts = np.zeros(max(int(depth.values[-1]) + 1, len(expected)))
    counts[depth.values] = depth.counts / len(depth)
    theory = np.zeros(len(counts))
    theory[: len(expected)] = expected
    return float(np.abs(np.cumsum(counts) - np.cumsum(theory)).max())
