# SPDX-License-Identifier: MIT
"""Loads one repetition: raw files as columns (raw.py), JSON files as records (documents.py), spec.yaml as the model.

Two threads read the two large raw files. The threads spend their time on checksums and strided copies, which
release the interpreter's lock (GIL).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import numpy as np

from analysis.read import documents, imported, link_loss, link_rate, program_flows, recount, switch_clock
from analysis.read.columns import Column, Columns, parts, slabs, sort_file
from analysis.read.documents import Documents, IdleRtt
from analysis.read.flows import MAX_FLOWS, WORDS, FiveTuple, Flow, Flows, FlowTable, flow_type
from analysis.read.postcards import NO_DATA_BYTES, POLICY_VALUE, admitted, misspaced
from analysis.read.raw import (
    BY_ARRIVAL,
    RawFile,
    load_flows,
    load_goodput,
    load_postcards,
    load_tcp,
    numbered,
    read_postcards,
)
from lib.errors import InputError
from model.experiment import Experiment
from model.groups import PROGRAM
from runs import record, spec_file
from runs.names import FLOWS_FILE, GOODPUT_FILE, POSTCARDS_FILE, SPEC_FILE, TCP_FILE
from runs.record import Damage
from runs.thinned import kept

LEDGER = ("tracer", "switch", "idle_rtt")
PROGRAM_DOCUMENTS = ("client", "server")  # of runs with programs of the user's own
# Every raw file that the analysis reads.
READABLE = (
    SPEC_FILE, POSTCARDS_FILE, TCP_FILE, GOODPUT_FILE, FLOWS_FILE, imported.DEPTHS_FILE,
    *(f"{name}.json" for name in Documents.model_fields),
)  # fmt: skip


@dataclass
class Run:
    """One repetition as it was recorded. Within `postcards`, as within `tcp`, all columns have equal length."""

    directory: Path
    experiment: Experiment
    rate: link_rate.LinkRate
    documents: Documents
    problems: list[str]  # one line for each missing file, unreadable or unusable document, or ignored flow
    raw: dict[str, RawFile]
    postcards: Columns  # sorted by enqueue_mono_ns
    tcp: Columns  # sorted by mono_ns
    flows: Flows  # by flow number, the value of the columns "flow"
    # The experiment's flows: those of `_traffic`, then those of the user's programs.
    traffic: list[Flow] = field(default_factory=list)
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
            f"{directory}: its raw files were removed after an analysis (kept: {part}), so it cannot be analysed "
            "again; its results are kept, and spec.yaml has everything to run the experiment again"
        )
    if not (directory / POSTCARDS_FILE).is_file():
        raise InputError(f"{directory / POSTCARDS_FILE}: missing; give the directory of a repetition (rep-<k>)")
    problems: list[str] = []
    has_own_sink = not (spec.imported or spec.generator == "iperf3" or spec.traffic == PROGRAM)
    names = ["environment", "traffic"]
    if not spec.imported:  # an imported run has no ledger
        names += [*LEDGER, *(["traffic_sink"] if has_own_sink else [])]
        names += ["recorder", "matching"] if spec.is_recorded else ["collector"]
    names += PROGRAM_DOCUMENTS if spec.program else ()
    names += ["idle_rtt_after"] if spec.machines else []
    said = documents.read(directory, names, problems)
    with ThreadPoolExecutor(1) as second:
        tcp_job = second.submit(load_tcp, directory / TCP_FILE)
        free = switch_clock.is_free(spec)
        if free:
            postcards, postcard_flows, postcards_raw = read_postcards(directory / POSTCARDS_FILE)
        else:
            offset_ns = said.switch.clock_offset_ns or 0
            postcards, postcard_flows, postcards_raw = load_postcards(directory / POSTCARDS_FILE, offset_ns)
        tcp, tcp_flows, tcp_raw = tcp_job.result()
    depths = None
    if spec.imported:
        imported.complete(spec, postcards, len(postcard_flows), directory)
        depths = imported.load_depths(directory)
    flows = postcard_flows
    _merge(directory, postcards, flows, tcp, tcp_flows)
    clock = recounted = None
    if free:
        clock, recounted = _placed(directory, postcards, tcp, spec, said)
    if spec.has_own_policy:
        postcards[POLICY_VALUE] = postcards.pop("threshold")
    if spec.loss and not said.switch.line:
        port = said.switch.bottleneck_port
        mask = link_loss.lost(postcards, port, said.switch.settings.get(str(port), documents.Port()), directory)
        postcards |= {} if mask is None else {link_loss.NAME: mask}
    if not tcp_raw.present:
        problems.append(f"{TCP_FILE}: missing, so no windows are known; run the experiment again")
    raw = {"postcards": postcards_raw, "tcp": tcp_raw}
    postcards_raw.clock_step_max_ns = max(postcards_raw.clock_step_max_ns, said.recorder.realtime_step_max_ns or 0)
    bottleneck = said.switch.settings.get(str(said.switch.bottleneck_port), documents.Port())
    start_ns = bottleneck.schedule_start or said.traffic.start_mono_ns or 0
    rate = link_rate.of(spec, directory, start_ns)
    run = Run(directory, spec, rate, said, problems, raw, postcards, tcp, flows.tuples(), depths=depths)
    run.clock, run.recount = clock, recounted
    run.not_as_recorded = [str(difference) for difference in damage]
    if has_own_sink:
        run.goodput, raw["goodput"] = load_goodput(directory / GOODPUT_FILE)
        if switch_clock.is_apart(spec, "receiver"):
            _place_goodput(run.goodput, postcards, spec, said.traffic_sink.interval_ns)
        if not raw["goodput"].present:
            problems.append(f"{GOODPUT_FILE}: missing, so the goodput at the sink is unknown; run the experiment again")
    if spec.finite:
        run.flow_records, raw["flows"] = load_flows(directory / FLOWS_FILE, flows)
        if not raw["flows"].present:
            problems.append(f"{FLOWS_FILE}: missing, so the finite flows are unknown; run the experiment again")
    run.traffic = _traffic(run, flows)
    if spec.program:
        planned = [entry.number for entry in run.traffic]
        planned += [] if run.flow_records is None else run.flow_records["flow"].tolist()
        first_id = max((entry.id for entry in run.traffic), default=-1) + 1
        port = said.switch.bottleneck_port
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


def _merge(directory: Path, postcards: Columns, flows: FlowTable, tcp: Columns, tcp_flows: FlowTable) -> None:
    """One numbering for both files: `flows`, then the flows that only the trace has, which are added. In place."""
    numbers = np.append(flows.numbers(tcp_flows.tuples().words), np.uint32(MAX_FLOWS))
    kind = flow_type(len(flows))
    tcp["flow"] = numbered(tcp["flow"], numbers, kind, directory)
    if postcards["flow"].dtype != kind:
        postcards["flow"] = numbered(postcards["flow"], None, kind, directory)


def _placed(
    directory: Path, postcards: Columns, tcp: Columns, spec: Experiment, said: Documents
) -> tuple[switch_clock.SwitchClock | None, recount.Recount | None]:
    """For a switch whose clock cannot be read: places its postcards on CLOCK_MONOTONIC, recounts depths in cells, and
    sorts the postcards, all in place.
    """
    # With netem at the sender's egress the delay comes before the queue: after the queue, no least delay is known.
    measured = [_echoes(document) for document in (said.idle_rtt, said.idle_rtt_after)]
    echoes = [times for times in measured if times is not None]
    clock = switch_clock.place(
        postcards, tcp,
        switch_clock.Sender(
            0 if spec.tc_at == "sender-egress" else spec.idle_rtt_ns,
            tuple(echoes) if len(echoes) == len(measured) else (),
            not switch_clock.is_apart(spec, "collector"),
        ),
        directory,
    )  # fmt: skip
    recounted = recount.recount(postcards, spec, said.switch, directory) if recount.in_cells(spec) else None
    if clock is not None and recounted is None:
        clock.misspaced = misspaced(postcards, spec.rate_bps, "timeline_ns")
    for rows in slabs(len(postcards["flow"]) if clock is not None else 0):
        sojourn_ns = postcards["sojourn_ns"][rows]
        if recounted is None:
            sojourn_ns = postcards["departure_mono_ns"][rows] - postcards["enqueue_mono_ns"][rows]
        elif clock is not None:
            sojourn_ns -= np.rint(sojourn_ns * (clock.drift_ppm / 1e6)).astype(np.int64)
        cast(Column, postcards["sojourn_ns"]).write(rows.start, sojourn_ns)
    for name in ("enqueue_switch_ns", "timeline_ns", "departure_mono_ns", "clock_part"):
        del postcards[name]
    sort_file(directory, postcards, *BY_ARRIVAL)
    return clock, recounted


def _place_goodput(goodput: Columns, postcards: Columns, spec: Experiment, interval_ns: int | None) -> None:
    """Shifts the intervals of a receiver on another machine to the sender's clock, by whole intervals, in place. The
    shift assumes a delay from the queue to the receiver for the first data: half an RTT without netem, a whole RTT
    with netem at the receiver's ingress, and none with netem elsewhere. The clocks' drift is not corrected.
    """
    sent = postcards["enqueue_mono_ns"][admitted(postcards) & (postcards["packet_bytes"] > NO_DATA_BYTES)]
    times = goodput["interval_mono_ns"]
    if not len(times) or not len(sent) or not interval_ns:
        return
    behind_ns = spec.rtt_ns // 2 if spec.delay != "tc" else spec.rtt_ns if spec.tc_at == "receiver-ingress" else 0
    first = (int(sent.min()) + behind_ns) // interval_ns
    shift_ns = (first - int(times[0]) // interval_ns) * interval_ns
    for rows in slabs(len(times)):
        at = np.arange(rows.start, rows.stop)
        times[at] = times[at] + shift_ns


def _echoes(measured: IdleRtt) -> np.ndarray | None:
    """(when sent, round trip) in ns of a document of hosts/traffic/idle_rtt.py; None unless all requests were answered
    and their times are known.
    """
    sent, round_trips = measured.sent_mono_ns, measured.samples_ns
    if measured.lost != 0 or not sent or not round_trips or not len(sent) == len(round_trips) == measured.sent:
        return None
    times = np.array([sent, round_trips], dtype=np.int64).T
    return times[np.argsort(times[:, 0])]


def _traffic(run: Run, flows: FlowTable) -> list[Flow]:
    """The experiment's flows by id. If traffic.json names none, and the run has neither finite flows nor programs of
    the user's own: every traced TCP flow, with an unknown cc.
    """
    planned: dict[FiveTuple, documents.PlannedFlow] = {}
    for entry in run.documents.traffic.flows or ():
        if planned.setdefault(entry.five_tuple, entry) is not entry:
            run.problems.append(f"traffic.json: names flow {entry.five_tuple} twice; the second is left out")
    words = [five_tuple.words() for five_tuple in planned]
    numbers = flows.find(np.array(words, dtype=np.uint64).reshape(-1, WORDS).T).tolist()
    result = [
        Flow(entry.id, entry.cc, five_tuple, number, entry.bits_per_second_received, silent=entry.datagrams == 0)
        for (five_tuple, entry), number in zip(planned.items(), numbers, strict=True)
    ]
    if not result and run.flow_records is None and not run.experiment.program:
        traced = {number for tcp in parts(run.tcp, "flow") for number in np.unique(tcp["flow"]).tolist()}
        of_traced = ((number, run.flows[number]) for number in sorted(traced) if number < len(run.flows))
        result = [Flow(index, "unknown", flow, number) for index, (number, flow) in enumerate(of_traced)]
    return sorted(result, key=lambda flow: flow.id)
