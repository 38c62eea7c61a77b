# SPDX-License-Identifier: MIT
"""The JSON files of a repetition, read once into frozen records of the values that the analysis uses.

Absence is None: a value that the source cannot know (an import, a simulator, another switch), that a file lacks, or
that is unusable because of its type or range. Unusable values are also named in a line, so no damage passes unseen.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasPath, BaseModel, ConfigDict, Field, ValidationError, WrapValidator, model_validator
from pydantic.functional_validators import ModelWrapValidatorHandler
from pydantic_core import ErrorDetails

from analysis.read.flows import FiveTuple
from lib import regular
from lib.terminal import one_line

LONGEST_FACT = 160  # characters of a value that a page shows as a fact
SENDER_PORT = 1  # of the switch in the lab, unless the P4 program has other numbers
LINE_PORT = 2  # the delay line's port to the receiver: LINE_TO_RECEIVER of experiments/spec/topology.py
RERUN = "run the experiment again"
OTHER_VERSION = "it is of another version or damaged"


def _all_or_none(value: object, check: ModelWrapValidatorHandler[list[object]]) -> list[object]:
    try:
        return check(value)
    except ValidationError as error:
        raise ValueError(error.errors()[0]["msg"]) from None


Count = Annotated[int, Field(ge=0, lt=1 << 64)]  # counters have at most 64 bits
Number = Annotated[int | float, Field(ge=0, lt=1 << 64)]
TimeNs = Annotated[int, Field(ge=0, lt=1 << 62)]  # on CLOCK_MONOTONIC
OffsetNs = Annotated[int, Field(gt=-(1 << 62), lt=1 << 62)]  # CLOCK_MONOTONIC minus the switch's clock
Cells = Annotated[int, Field(ge=0, lt=1 << 16)]
Counts = dict[str, Count | None]
# Lists that are unusable if one item is: percentiles of the rest would be wrong.
Times = Annotated[list[TimeNs], WrapValidator(_all_or_none)]
Bucket = Annotated[list[Count], Field(min_length=2, max_length=2)]  # upper edge, count
Histogram = Annotated[list[Bucket], WrapValidator(_all_or_none)]


def total(values: Iterable[int | None]) -> int | None:
    """The sum; None if any value is unknown."""
    terms = list(values)
    known = [value for value in terms if value is not None]
    return sum(known) if len(known) == len(terms) else None


def total_of(counts: Counts | None) -> int | None:
    """The sum of an object's counters; None if there are none, or one is unknown."""
    return total(counts.values()) if counts else None


def _in(*path: str) -> Any:
    """A field that is the value at a path of keys."""
    return Field(None, validation_alias=AliasPath(*path))


class Record(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


class Environment(Record):
    document: dict[str, object] = {}  # the whole file, for pages
    place: str | None = None
    kernel: str | None = _in("kernel", "release")
    cpu: str | None = _in("cpu", "model")
    target_programs: dict[str, str] | None = None
    virtual_machine: dict[str, object] | None = None  # only of a run in virtual time
    wall_s_per_traffic_s: Number | None = _in("virtual_machine", "wall_s_per_traffic_s")
    cpu_ns_before: Counts | None = _in("load", "before", "cpu")  # processor times since boot, by kind
    cpu_ns_after: Counts | None = _in("load", "after", "cpu")
    frames_before: dict[str, Counts] | None = _in("frames_passed", "before")  # by interface
    frames_after: dict[str, Counts] | None = _in("frames_passed", "after")
    frames_lost_in_backlog: Counts | None = None
    tcp_memory_pressures: Counts | None = None

    @model_validator(mode="before")
    @classmethod
    def _with_document(cls, document: dict[str, object]) -> dict[str, object]:
        return {**document, "document": document}


class Port(Record):
    rate: Count | None = None  # of our soft switch, in bit/s
    rate_bps: Count | None = None
    rate_pps: Count | None = None
    delay: Count | None = None
    limit_packets: Count | None = None
    limit_bytes: Count | None = None
    schedule_entries: Count | None = None  # of a port that ever had a schedule, loss or jitter, as the next ones
    schedule_opportunities: Count | None = None
    schedule_start: TimeNs | None = None
    loss_seed: Count | None = None
    loss_good: Count | None = None
    loss_bad: Count | None = None
    loss_to_bad: Count | None = None
    loss_to_good: Count | None = None
    jitter_most: Count | None = None


class SwitchState(Record):
    """Settings and counters of a switch, of the delay line behind it, or of either before the traffic."""

    stats: Counts = {}
    counters: dict[str, dict[str, Counts | None]] = {}  # of P4, by port: packets, bytes
    settings: dict[str, Port] = {}
    lateness: dict[str, Histogram | None] = {}
    clock_offset_ns: OffsetNs | None = _in("clock", "offset_ns")  # as the runner measured it
    clock_uncertainty_ns: Number | None = _in("clock", "uncertainty_ns")
    line: SwitchState | None = None

    def counter(self, name: str) -> Counts | None:
        """A P4 counter's packets by port, found by the last part of its name."""
        for full_name, ports in self.counters.items():
            if full_name.rpartition(".")[2] == name:
                return {port: (cell or {}).get("packets") for port, cell in ports.items()}
        return None

    def packets(self, name: str) -> int | None:
        """A P4 counter summed over its ports; None if it is absent or unusable at any port."""
        ports = self.counter(name)
        return None if ports is None else total(ports.values())

    def sum_stats(self, suffix: str) -> int | None:
        """The statistics port.N.<suffix> summed over the ports; None if there are none, or one is unusable."""
        return total_of({k: v for k, v in self.stats.items() if k.startswith("port.") and k.endswith(f".{suffix}")})


class Switch(SwitchState):
    target: str = "soft"
    executor: str | None = _in("program", "executor")
    program_digest: str | None = _in("program", "digest")
    cell_bytes: Cells | None = _in("capabilities", "cell_bytes")
    queued_extra_bytes: Cells | None = _in("capabilities", "queued_extra_bytes")
    bottleneck_port: int | None = None
    speed_bps: Count | None = _in("front_panel", "speed_bps")
    parameters: dict[str, Counts] = {}  # of a user's policy, by table
    runs_between_experiments: bool = False  # so only differences of its counters are the run's
    before: SwitchState = SwitchState()

    @property
    def links(self) -> SwitchState:
        """The state with our soft switch's statistics: of the delay line, if there is one."""
        return self.line or self

    @property
    def link_port(self) -> int | None:
        """The port of `links` towards the receiver."""
        return LINE_PORT if self.line else self.bottleneck_port


class Collector(Record):
    received: Count | None = None
    stored: Count | None = None
    short: Count | None = None
    bad_version: Count | None = None
    trailing: Count | None = None
    kernel_drops: Count | None = None
    host_drops: Counts | None = None
    unstamped: Count | None = None
    write_errors: Count | None = None
    stranger_datagrams: Count | None = None


class Recorder(Record):
    """Frames recorded at the interfaces into and out of a switch."""

    into: Count | None = _in("into", "frames")
    into_passed: Count | None = _in("into", "passed")
    into_drops: Count | None = _in("into", "kernel_drops")
    out_of: Count | None = _in("out_of", "frames")
    out_of_passed: Count | None = _in("out_of", "passed")
    out_of_drops: Count | None = _in("out_of", "kernel_drops")
    realtime_step_max_ns: Count | None = None


class Matching(Record):
    """Frames into a switch matched with those out of it; `only_behind` came out and never went in, `changed` came out
    with another IP id.
    """

    postcards: Count | None = None
    pairs: Count | None = None
    only_behind: Count | None = None
    changed: Count | None = None
    ambiguous: Count | None = None
    undecided: Count | None = None


class Tracer(Record):
    source: str | None = None
    unknown_fields: list[str] | None = None
    retransmit_unknown_fields: list[str] | None = None
    events: Count | None = None
    stored: Count | None = None
    lost: Count | None = None
    write_errors: Count | None = None
    kernel_segments_received: Count | None = None
    kernel_segments_resent: Count | None = None
    bpf_runs: Count | None = None
    bpf_ns_per_event: Number | None = None
    user_ns_per_event: Number | None = None


class IdleRtt(Record):
    min_ns: Number | None = None
    median_ns: Number | None = None
    samples_ns: Times | None = None
    sent_mono_ns: Times | None = None
    sent: Count | None = None
    lost: Count | None = None


class PlannedFlow(Record):
    id: Annotated[int, Field(ge=0, lt=1 << 31)]
    cc: str | None
    protocol: str = "tcp"
    src_addr: str
    dst_addr: str
    src_port: int
    dst_port: int
    bits_per_second_received: Number | None = None
    datagrams: Count | None = None

    @model_validator(mode="after")
    def _has_five_tuple(self) -> PlannedFlow:
        assert self.five_tuple
        return self

    @cached_property
    def five_tuple(self) -> FiveTuple:
        return FiveTuple.of(self.protocol, self.src_addr, self.dst_addr, self.src_port, self.dst_port)


class Group(Record):
    cc: str | None = None
    exit_status: int | None = None
    bits_per_second_received: Number | None = None


class FiniteGroup(Record):
    first_server_port: Annotated[int, Field(ge=0, lt=1 << 16)]


class Sent(Record):
    """Counts of a process that sent datagrams, or finite flows."""

    datagrams: Count | None = None
    unsent: Count | None = None
    begun: Count | None = None
    refused: Count | None = None
    reset: Count | None = None
    records_stored: Count | None = None
    records_unwritten: Count | None = None
    lateness_ns: Histogram | None = None


class Traffic(Record):
    generator: str | None = None
    start_mono_ns: TimeNs | None = None
    end_mono_ns: TimeNs | None = None
    flows: list[PlannedFlow] | None = None
    groups: list[Group] | None = None
    errors: list[str] | None = None
    open_loop: Sent = Sent()
    datagrams: list[Sent] = []
    finite_groups: list[FiniteGroup] | None = _in("transfers", "groups")
    finite: Sent | None = _in("transfers", "counts")


class SinkFlow(Record):
    protocol: str | None = None
    reads: Count | None = None


class TrafficSink(Record):
    interval_ns: Count | None = None
    records_stored: Count | None = None
    write_errors: Count | None = None
    connections_refused: Count | None = None
    datagrams_dropped: Count | None = None
    flows: list[SinkFlow] | None = None


class Output(Record):
    bytes: Count | None = None
    discarded_bytes: Count | None = None


class UserProgram(Record):
    argv: list[str] | None = None
    started_mono_ns: TimeNs | None = None
    ended_mono_ns: TimeNs | None = None
    ended_by: str | None = None
    exit_status: int | None = None
    output: dict[str, Output] = {}
    errors: list[str] = []


class Documents(Record):
    """The records by file name without .json. The record of a file that a run lacks knows nothing."""

    environment: Environment = Environment()
    traffic: Traffic = Traffic()
    collector: Collector = Collector()
    recorder: Recorder = Recorder()
    matching: Matching = Matching()
    tracer: Tracer = Tracer()
    switch: Switch = Switch()
    idle_rtt: IdleRtt = IdleRtt()
    traffic_sink: TrafficSink = TrafficSink()
    client: UserProgram = UserProgram()
    server: UserProgram = UserProgram()
    idle_rtt_after: IdleRtt = IdleRtt()

    def is_read(self, name: str) -> bool:
        """Whether this file could be read."""
        return name in self.model_fields_set

    def unsaid(self, name: str, what: Collection[str], so: str = OTHER_VERSION) -> list[str]:
        """One line if a file that could be read does not say `what` a run must know. `so`: what follows from that."""
        return [f"{name}.json: does not say {', '.join(what)}; {so}"] if what and self.is_read(name) else []


def read(directory: Path, names: Collection[str], problems: list[str]) -> Documents:
    """Reads the files of these names. Appends a line to `problems` for each file that is missing or unreadable, and for
    each file with unusable values.
    """
    said = {name: content for name in names if (content := _content(directory / f"{name}.json", problems)) is not None}
    unusable: list[str] = []
    while True:
        try:
            records = Documents.model_validate(said)
            problems += unusable
            return records
        except ValidationError as error:
            # Backwards: of a list, the last items are removed first.
            places = {_place(said, each["loc"]): each for each in reversed(error.errors())}
            unusable = unusable or list(_lines(places))
            for place in places:
                _forget(said, place)


def read_switch(directory: Path) -> Switch:
    """switch.json of a repetition; knows nothing if the file is missing or unreadable."""
    return read(directory, ["switch"], []).switch


def facts(document: dict[str, object]) -> list[tuple[str, str]]:
    """(name, value) of the short values in environment.json, down to the second level."""
    result = []
    for key, value in document.items():
        for name, item in value.items() if isinstance(value, dict) else (("", value),):
            if isinstance(item, (str, int, float, bool)) and item != "" and len(str(item)) <= LONGEST_FACT:
                result.append((f"{key} {name}".replace("_", " ").strip(), str(item)))
    return result


def _content(path: Path, problems: list[str]) -> dict[str, object] | None:
    try:
        content = json.loads(regular.read_text(path), parse_constant=_no_number)
    except FileNotFoundError:
        problems.append(f"{path.name}: missing, so its counters are unknown; {RERUN}")
        return None
    except (OSError, ValueError, RecursionError) as error:
        problems.append(f"{path.name}: not readable as JSON: {one_line(error)}; {RERUN}")
        return None
    if not isinstance(content, dict):
        problems.append(f"{path.name}: is not a JSON object; {RERUN}")
        return None
    return content


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is not a JSON number")


Place = tuple[int | str, ...]  # keys and indices; the first is a file's name


def _lines(places: dict[Place, ErrorDetails]) -> Iterable[str]:
    for name in dict.fromkeys(place[0] for place in reversed(places)):
        mine = [item for item in places.items() if item[0][0] == name]
        place, error = mine[-1]
        keys = (error["loc"] if error["type"] == "missing" else place)[1:]
        why = error["msg"].partition(" or instance of")[0].removeprefix("Value error, ")
        line = f"{'.'.join(map(str, keys))}: {why}" if keys else why
        more = f" (and {len(mine) - 1} more)" if len(mine) > 1 else ""
        yield f"{name}.json: {one_line(line)}{more}; {OTHER_VERSION}"


def _place(said: object, loc: Place) -> Place:
    """The part of an error's place that exists: a missing value does not, nor a name of a type."""
    for depth, key in enumerate(loc):
        try:
            said = said[key]  # type: ignore[index]
        except (TypeError, LookupError):
            return loc[:depth]
    return loc


def _forget(said: Any, place: Place) -> None:
    """Replaces the value at a place by null; where null is unusable, too, removes the value. In place."""
    *above, key = place
    for part in above:
        said = said and said[part]
    if said and said[key] is not None:
        said[key] = None
    elif said:  # else forgotten as a whole
        del said[key]
