# SPDX-License-Identifier: MIT
"""Loads one repetition: raw files as columns (raw.py), JSON and YAML files as dictionaries.

Two threads read the two large raw files. The threads spend their time on checksums and strided copies, which
release the interpreter's lock (GIL).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from analysis import imported, program_flows, recount, switch_clock
from analysis.flows import MAX_FLOWS, WORDS, FiveTuple, Flows, FlowTable, flow_type
from analysis.postcards import NO_DATA_BYTES, admitted, misspaced
from analysis.raw import (
    Columns,
    RawFile,
    load_flows,
    load_goodput,
    load_postcards,
    load_tcp,
    read_postcards,
    sort_postcards,
)
from lib import regular
from lib.errors import InputError
from lib.terminal import one_line
from model.experiment import PROGRAM, Experiment
from runs import record, spec_file
from runs.names import FLOWS_FILE, GOODPUT_FILE, POSTCARDS_FILE, SPEC_FILE, TCP_FILE
from runs.record import Damage
from runs.thinned import kept

LEDGER = ("collector", "tracer", "switch", "idle_rtt")
SINK = "traffic_sink"  # only runs with our own sink have this document
PROGRAM_DOCUMENTS = ("client", "server")  # of runs with programs of the user's own
MACHINES_DOCUMENT = "idle_rtt_after"  # of runs on several machines
DOCUMENTS = ("environment", "traffic", *LEDGER, SINK)
# Every raw file that the analysis reads.
READABLE = (
    SPEC_FILE, POSTCARDS_FILE, TCP_FILE, GOODPUT_FILE, FLOWS_FILE, imported.DEPTHS_FILE,
    *(f"{name}.json" for name in (*DOCUMENTS, *PROGRAM_DOCUMENTS, MACHINES_DOCUMENT)),
)  # fmt: skip


@dataclass
class Run:
    """One repetition as it was recorded. Within `postcards`, as within `tcp`, all columns have equal length."""

    directory: Path
    experiment: Experiment
    documents: dict[str, dict[str, Any]]  # by file name without .json; empty if the file is missing or unreadable
    problems: list[str]  # one line for each missing file, unreadable document or ignored flow
    unread: set[str]  # names of missing or unreadable documents, without .json
    raw: dict[str, RawFile]
    postcards: Columns  # sorted by enqueue_mono_ns
    tcp: Columns  # sorted by mono_ns
    flows: Flows  # by flow number, the value of the columns "flow"
    # The experiment's flows, with "flow" numbers: those of `_traffic`, then those of the user's programs.
    traffic: list[dict[str, Any]] = field(default_factory=list)
    goodput: Columns | None = None  # records of our own sink; None with another receiver
    flow_records: Columns | None = None  # with finite flows: one record per flow, with "flow" numbers (-1: no packet)
    depths: imported.Depths | None = None  # of an imported run that has a depth histogram in place of postcards
    clock: switch_clock.SwitchClock | None = None  # if the switch's clock cannot be read: the estimate
    recount: recount.Recount | None = None  # of a switch that counts cells: its recounted depths
    not_as_recorded: list[str] = field(default_factory=list)  # one line for each raw file that differs from its digest

    def damage(self) -> list[str]:
        """One line for each raw file that differs from its recorded digest or could not be read to its end."""
        return [*self.not_as_recorded, *(text for raw in self.raw.values() if (text := raw.damage()))]


def load(directory: Path, damage: Sequence[Damage] = ()) -> Run:
    """Loads one repetition. `damage` is the result of `damage_of`. Raises InputError without a usable spec.yaml,
    without postcards.bsp, or if raw files were removed after the analysis.
    """
    spec = spec_file.read(directory / SPEC_FILE)
    part = kept(directory)
    if part != "all":
        raise InputError(
            f"{directory}: its raw files were removed after a valid analysis (kept: {part}), so it cannot be analysed "
            "again; its results are kept, and spec.yaml has everything to run the experiment again"
        )
    if not (directory / POSTCARDS_FILE).is_file():
        raise InputError(f"{directory / POSTCARDS_FILE}: missing; give the directory of a repetition (rep-<k>)")
    problems: list[str] = []
    has_own_sink = not (spec.imported or spec.generator == "iperf3" or spec.traffic == PROGRAM)
    names = ["environment", "traffic"]
    ledger = [*LEDGER, *([SINK] if has_own_sink else [])]
    names += [] if spec.imported else ledger  # an imported run has no ledger
    names += PROGRAM_DOCUMENTS if spec.program else ()
    names += [MACHINES_DOCUMENT] if spec.machines else []
    loaded = {name: _document(directory / f"{name}.json", problems) for name in names}
    unread = {name for name, document in loaded.items() if document is None} | set(ledger) - set(names)
    documents = {name: loaded.get(name) or {} for name in dict.fromkeys((*ledger, *names))}
    with ThreadPoolExecutor(1) as second:
        tcp_job = second.submit(load_tcp, directory / TCP_FILE)
        free = switch_clock.is_free(spec)
        if free:
            postcards, postcard_flows, postcards_raw = read_postcards(directory / POSTCARDS_FILE)
        else:
            offset_ns = clock_offset_ns(documents["switch"])
            postcards, postcard_flows, postcards_raw = load_postcards(directory / POSTCARDS_FILE, offset_ns)
        tcp, tcp_flows, tcp_raw = tcp_job.result()
    depths = None
    if spec.imported:
        imported.complete(spec, postcards)
        depths = imported.load_depths(directory)
    flows = postcard_flows
    _merge(postcards, flows, tcp, tcp_flows)
    clock = recounted = None
    if free:
        clock, recounted = _placed(postcards, tcp, spec, documents)
    if not tcp_raw.present:
        problems.append(f"{TCP_FILE}: missing, so no windows are known; run the experiment again")
    raw = {"postcards": postcards_raw, "tcp": tcp_raw}
    run = Run(directory, spec, documents, problems, unread, raw, postcards, tcp, flows.tuples(), depths=depths)
    run.clock, run.recount = clock, recounted
    run.not_as_recorded = [str(difference) for difference in damage]
    if has_own_sink:
        run.goodput, raw["goodput"] = load_goodput(directory / GOODPUT_FILE)
        if switch_clock.is_apart(spec, "receiver"):
            _place_goodput(run.goodput, postcards, spec, documents[SINK].get("interval_ns"))
        if not raw["goodput"].present:
            problems.append(f"{GOODPUT_FILE}: missing, so the goodput at the sink is unknown; run the experiment again")
    if spec.finite:
        run.flow_records, raw["flows"] = load_flows(directory / FLOWS_FILE, flows)
        if not raw["flows"].present:
            problems.append(f"{FLOWS_FILE}: missing, so the finite flows are unknown; run the experiment again")
    run.traffic = _traffic(run, flows)
    if spec.program:
        planned = [entry["flow"] for entry in run.traffic]
        planned += [] if run.flow_records is None else run.flow_records["flow"].tolist()
        first_id = max((entry["id"] for entry in run.traffic), default=-1) + 1
        port = documents["switch"].get("bottleneck_port")
        run.traffic += program_flows.entries(spec.program.cc, port, postcards, run.flows, planned, first_id)
    return run


def damage_of(directory: Path) -> list[Damage]:
    """The raw files of a repetition that differ from their recorded digests. Raises InputError if spec.yaml differs:
    every number would be computed for another experiment.
    """
    damage = record.damage(directory, READABLE, all_raw=True)
    if spec := [difference for difference in damage if difference.name == SPEC_FILE]:
        raise InputError(f"{directory}: {record.lines(spec)}")
    return damage


def load_switch(directory: Path) -> dict[str, Any]:
    """switch.json of a repetition; empty if the file is missing or unreadable."""
    return _document(directory / "switch.json", []) or {}


def clock_offset_ns(switch: dict[str, Any]) -> int:
    """CLOCK_MONOTONIC minus the switch's clock, as the runner measured it; 0 if switch.json has no usable offset, as
    for a switch on CLOCK_MONOTONIC.
    """
    return recorded_clock_offset_ns(switch) or 0


def recorded_clock_offset_ns(switch: dict[str, Any]) -> int | None:
    """CLOCK_MONOTONIC minus the switch's clock; None if switch.json has no usable offset."""
    clock = switch.get("clock")
    offset = clock.get("offset_ns") if isinstance(clock, dict) else None
    return offset if isinstance(offset, int) and not isinstance(offset, bool) and abs(offset) < 1 << 62 else None


def _merge(postcards: Columns, flows: FlowTable, tcp: Columns, tcp_flows: FlowTable) -> None:
    """One numbering for both files: `flows`, then the flows that only the trace has, which are added. In place."""
    numbers = np.append(flows.numbers(tcp_flows.tuples().words), np.uint32(MAX_FLOWS))
    kind = flow_type(len(flows))
    tcp["flow"] = numbers[np.minimum(tcp["flow"], len(tcp_flows))].astype(kind)
    postcards["flow"] = postcards["flow"].astype(kind, copy=False)


def _placed(
    postcards: Columns, tcp: Columns, spec: Experiment, documents: dict[str, dict[str, Any]]
) -> tuple[switch_clock.SwitchClock | None, recount.Recount | None]:
    """For a switch whose clock cannot be read: places its postcards on CLOCK_MONOTONIC, recounts depths in cells, and
    sorts the postcards, all in place.
    """
    # With netem at the sender's egress the delay comes before the queue: after the queue, no least delay is known.
    measured = [_echoes(documents.get(name, {})) for name in ("idle_rtt", MACHINES_DOCUMENT)]
    echoes = [times for times in measured if times is not None]
    clock = switch_clock.place(
        postcards, tcp,
        switch_clock.Sender(
            0 if spec.tc_at == "sender-egress" else spec.idle_rtt_ns,
            tuple(echoes) if len(echoes) == len(measured) else (),
            not switch_clock.is_apart(spec, "collector"),
        ),
    )  # fmt: skip
    recounted = recount.recount(postcards, spec, documents["switch"]) if recount.in_cells(spec) else None
    if clock is not None and recounted is not None:
        postcards["sojourn_ns"] -= np.rint(postcards["sojourn_ns"] * (clock.drift_ppm / 1e6)).astype(np.int64)
    elif clock is not None:
        clock.misspaced = misspaced(postcards, spec.rate_bps, "timeline_ns")
        postcards["sojourn_ns"] = postcards["departure_mono_ns"] - postcards["enqueue_mono_ns"]
    for name in ("enqueue_switch_ns", "timeline_ns", "departure_mono_ns", "clock_part"):
        del postcards[name]
    sort_postcards(postcards)
    return clock, recounted


def _place_goodput(goodput: Columns, postcards: Columns, spec: Experiment, interval_ns: Any) -> None:
    """Shifts the intervals of a receiver on another machine to the sender's clock, by whole intervals, in place. The
    shift assumes a delay from the queue to the receiver for the first data: half an RTT without netem, a whole RTT
    with netem at the receiver's ingress, and none with netem elsewhere. The clocks' drift is not corrected.
    """
    sent = postcards["enqueue_mono_ns"][admitted(postcards) & (postcards["packet_bytes"] > NO_DATA_BYTES)]
    times = goodput["interval_mono_ns"]
    if not len(times) or not len(sent) or not isinstance(interval_ns, int) or interval_ns < 1:
        return
    behind_ns = spec.rtt_ns // 2 if spec.delay != "tc" else spec.rtt_ns if spec.tc_at == "receiver-ingress" else 0
    first = (int(sent.min()) + behind_ns) // interval_ns
    goodput["interval_mono_ns"] = times + (first - int(times.min()) // interval_ns) * interval_ns


def _echoes(measured: dict[str, Any]) -> np.ndarray | None:
    """(when sent, round trip) in ns of a document of hosts/traffic/idle_rtt.py; None unless all requests were answered
    and their times are known.
    """
    sent, round_trips = measured.get("sent_mono_ns"), measured.get("samples_ns")
    if measured.get("lost") != 0 or not isinstance(sent, list) or not isinstance(round_trips, list):
        return None
    try:
        times = np.array([sent, round_trips], dtype=np.int64).T
    except (ValueError, TypeError, OverflowError):
        return None
    return times[np.argsort(times[:, 0])] if times.ndim == 2 and len(times) == measured.get("sent") else None


# Documents ------------------------------------------------------------------------------------------------------------


def _document(path: Path, problems: list[str]) -> dict[str, Any] | None:
    """The object in a JSON file; None, and a line in `problems`, if the file is missing or unreadable."""
    try:
        document = json.loads(regular.read_text(path), parse_constant=_no_number)
    except FileNotFoundError:
        problems.append(f"{path.name}: missing, so its counters are unknown; run the experiment again")
        return None
    except (OSError, ValueError, RecursionError) as error:
        problems.append(f"{path.name}: not readable as JSON: {one_line(error)}; run the experiment again")
        return None
    if not isinstance(document, dict):
        problems.append(f"{path.name}: is not a JSON object; run the experiment again")
        return None
    return document


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is not a JSON number")


def _traffic(run: Run, flows: FlowTable) -> list[dict[str, Any]]:
    """The experiment's flows by id. If traffic.json names none, and the run has neither finite flows nor programs of
    the user's own: every traced TCP flow, with an unknown cc.
    """
    result: list[dict[str, Any]] = []
    named: set[FiveTuple] = set()
    words: list[tuple[int, ...]] = []
    for entry in _list(run.documents["traffic"].get("flows")):
        try:
            if not isinstance(entry, dict):
                raise TypeError("is not a JSON object")
            if not 0 <= int(entry["id"]) < 1 << 31:
                raise ValueError(f"id {entry['id']} is out of bounds")
            names = ("src_addr", "dst_addr", "src_port", "dst_port")
            flow = FiveTuple.of(entry.get("protocol", "tcp"), *(entry[name] for name in names))
            if flow in named:
                run.problems.append(f"traffic.json: names flow {flow} twice; the second is left out")
                continue
            named.add(flow)
            of_flow = flow.words()
            received = entry.get("bits_per_second_received")
            result.append(
                {
                    "id": int(entry["id"]),
                    "cc": None if entry["cc"] is None else str(entry["cc"]),
                    "tuple": flow,
                    "flow": -1,
                    "received_bps": float(received) if isinstance(received, (int, float)) else None,
                    "silent": entry.get("datagrams") == 0,  # the schedule has no datagram of this flow
                }
            )
            words.append(of_flow)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            run.problems.append(f"traffic.json: a flow is malformed ({one_line(error)}); it is left out")
    numbers = flows.find(np.array(words, dtype=np.uint64).reshape(-1, WORDS).T)
    for entry, number in zip(result, numbers.tolist(), strict=True):
        entry["flow"] = number
    if not result and run.flow_records is None and not run.experiment.program:
        for number in np.unique(run.tcp["flow"]).tolist():
            if number < len(run.flows):
                known = {"id": len(result), "cc": "unknown", "tuple": run.flows[number], "flow": number}
                result.append({**known, "received_bps": None, "silent": False})
    return sorted(result, key=lambda entry: entry["id"])


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
