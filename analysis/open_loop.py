# SPDX-License-Identifier: MIT
"""Open-loop runs: what queueing theory expects of the queue, what was found, and whether every datagram is accounted
for. Arrivals do not depend on the network, so that the queue is M/D/1 or M/G/1 to the letter (theory/queues.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.exactness import in_virtual_time
from analysis.fidelity import MAX_LATENESS_RTT_FRACTION, histogram_percentiles
from analysis.ledger import number
from analysis.load import Run
from analysis.metrics import Columns, Window, arrivals_in, dropped
from analysis.sums import dot
from analysis.theory import packet_sizes, queues
from lib.frames import LEAST_FRAME_BYTES, WIRE_EXTRA_BYTES

BATCHES = 20  # of a run, for the standard error: long enough to be independent of each other
MAX_VIRTUAL_LATENESS_NS = 1_000  # for reading the clock; datagrams that are due at once wait for each other


def is_open_loop(run: Run) -> bool:
    return run.spec.get("traffic") == "open-loop"


@dataclass(frozen=True)
class Model:
    """What an arriving packet should find. `depth` is P(depth = 0, 1, ...), to the buffer if that limits it."""

    name: str
    mean_service_ns: float
    service_second_moment: float  # E[S^2] / E[S]^2
    mean_depth: float
    loss_fraction: float
    depth: np.ndarray


def model(spec: dict[str, Any]) -> Model | None:
    """None where theory/ has no closed form: arrivals that are not Poisson, a load without steady state, a limit that
    is not in packets."""
    if spec.get("traffic") != "open-loop" or spec.get("arrivals") != "poisson":
        return None
    sizes, load, buffer = spec["sizes"], spec["load"], spec["buffer_packets"]
    services, probabilities = packet_sizes.service_times(sizes, spec["mtu_bytes"], spec["rate_bps"])
    limited = spec["mode"] in ("tail-drop", "ecn") and not spec.get("threshold_bytes")
    if spec["mode"] == "ecn":  # datagrams are not ECN-capable: refused where others are marked
        buffer = min(buffer, spec.get("ecn_threshold_packets") or buffer)
    letter, moment = "D" if sizes == "fixed" else "G", queues.second_moment(services, probabilities)
    mean_service_ns = dot(services, probabilities) * 1e9
    if limited and buffer < queues.MOST_STATES:
        depth = queues.mg1k_depth_distribution(load, services, probabilities, buffer)
        mean = dot(np.arange(len(depth)), depth)
        return Model(f"M/{letter}/1/{buffer}", mean_service_ns, moment, mean, float(depth[-1]), depth)
    if load >= 1:
        return None
    depth = queues.mg1_depth_distribution(load, services, probabilities, queues.MOST_STATES)
    return Model(f"M/{letter}/1", mean_service_ns, moment, queues.mg1_mean_depth(load, moment), 0.0, depth)


def datagrams(run: Run, queue: Columns) -> dict[str, int | None]:
    """Datagrams of the experiment at each station, over the whole run. None: not recorded."""
    numbers = [entry["flow"] for entry in run.traffic if entry["flow"] >= 0]
    ours = np.isin(queue["flow"], np.array(numbers, dtype=np.uint16))
    sink = run.documents.get("traffic_sink", {})
    flows = sink.get("flows")
    reads = [number(flow, "reads") for flow in flows if isinstance(flow, dict)] if isinstance(flows, list) else [None]
    known = [value for value in reads if value is not None]
    sent, refused = (number(run.documents["traffic"], "open_loop", name) for name in ("datagrams", "unsent"))
    drops = number(sink, "datagrams_dropped")
    return {
        "datagrams_sent": None if sent is None else int(sent),
        "datagrams_queued": int(np.count_nonzero(ours)),
        "datagrams_departed": int(np.count_nonzero(ours & ~dropped(queue))),
        "datagrams_received": int(sum(known)) if len(known) == len(reads) else None,
        "datagrams_unsent": None if refused is None else int(refused),
        "datagrams_sink_drops": None if drops is None else int(drops),
    }


def datagram_reasons(entries: dict[str, int | None]) -> list[str]:
    """Sent = came to the queue, left it = received; otherwise one line each."""
    reasons = []
    for name, what, next_name, next_what in (
        ("datagrams_sent", "datagrams were sent", "datagrams_queued", "came to the queue"),
        ("datagrams_departed", "datagrams left the queue", "datagrams_received", "were received"),
    ):
        here, there = entries[name], entries[next_name]
        if here is not None and there is not None and here != there:
            reasons.append(f"ledger: {here} {what}, {there} {next_what} ({there - here:+d}); see logs/ and run again")
    if entries["datagrams_unsent"]:
        reasons.append(f"ledger: {entries['datagrams_unsent']} datagrams found no room in the sending host: lower LOAD")
    if entries["datagrams_sink_drops"]:
        reasons.append(
            f"ledger: {entries['datagrams_sink_drops']} datagrams found no room in the sink's socket: lower RATE"
        )
    unknown = [name for name, value in entries.items() if value is None]
    if unknown:
        reasons.append(f"traffic.json, traffic_sink.json: do not say {', '.join(unknown)}; damaged, or another version")
    return reasons


def lateness(run: Run) -> dict[str, float | None]:
    """us from a datagram's drawn time until it was sent: upper edges of buckets; `max` is the last edge."""
    document = run.documents["traffic"].get("open_loop")
    buckets = document.get("lateness_ns") if isinstance(document, dict) else None
    return histogram_percentiles(buckets, p50=50, p99=99, p999=99.9)


def lateness_reasons(run: Run) -> list[str]:
    """Arrivals that come late are not Poisson. The limit is that of the switch's own lateness."""
    late = lateness(run)["p99"]
    allowed = MAX_LATENESS_RTT_FRACTION * run.spec["rtt_ns"] / 1e3
    if in_virtual_time(run):
        allowed = min(allowed, MAX_VIRTUAL_LATENESS_NS / 1e3)
    if late is None:
        return ["traffic.json: does not say lateness_ns; whether datagrams were sent in time is unknown"]
    if late <= allowed:
        return []
    return [
        f"fidelity: 1 % of datagrams were sent up to {late:.0f} us or more after their time; allowed are {allowed:.0f} "
        "us: lower RATE, or leave the machine idle"
    ]


def compare(run: Run, queue: Columns, window: Window) -> dict[str, Any]:
    """Theory and measurement side by side, over the measurement window. Depths are what arriving packets found."""
    expected = model(run.spec)
    rows = arrivals_in(queue, window.start_ns, window.end_ns)
    depth = queue["depth_packets"][rows]
    wire_bytes = np.maximum(queue["packet_bytes"][rows], LEAST_FRAME_BYTES).astype(np.int64) + WIRE_EXTRA_BYTES
    possible = run.spec["rate_bps"] * window.length_ns / 1e9
    drops = np.count_nonzero(dropped(queue)[rows])
    return {
        "load": run.spec["load"],
        "offered_load": float(wire_bytes.sum() * 8 / possible) if possible else None,
        "sizes": run.spec["sizes"],
        "arrivals": run.spec["arrivals"],
        "model": expected.name if expected else None,
        "mean_service_ns": expected.mean_service_ns if expected else None,
        "service_second_moment": expected.service_second_moment if expected else None,
        "mean_depth_packets": {
            "theory": expected.mean_depth if expected else None,
            "measured": float(depth.mean()) if len(depth) else None,
            "standard_error": standard_error(depth),
        },
        "drop_fraction": {
            "theory": expected.loss_fraction if expected else None,
            "measured": drops / len(depth) if len(depth) else None,
        },
        "depth_distance": distance(depth, expected.depth) if expected and len(depth) else None,
        "send_lateness_us": lateness(run),
    }


def standard_error(depth: np.ndarray) -> float | None:
    """Of the mean depth: successive packets find nearly the same queue, so from the means of BATCHES equal parts."""
    size = len(depth) // BATCHES
    if not size:
        return None
    means = depth[: size * BATCHES].reshape(BATCHES, size).mean(axis=1)
    return float(means.std(ddof=1) / np.sqrt(BATCHES))


def distance(depth: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference between the two cumulative distributions (Kolmogorov's)."""
    counts = np.bincount(depth, minlength=len(expected)).astype(np.float64) / len(depth)
    theory = np.zeros(len(counts))
    theory[: len(expected)] = expected
    return float(np.abs(np.cumsum(counts) - np.cumsum(theory)).max())
