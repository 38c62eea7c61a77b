# SPDX-License-Identifier: MIT
"""Resolves FROM= to experiments: detects the kind of each source and combines the sources of an experiment."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import starmap
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from analysis.importing import captures, tables, text, windows, write
from analysis.importing.asked import FLOWS, MOST_PACKETS, MTU_BYTES, Asked, NotAllowedError, algorithm
from analysis.importing.fields import SHOWN_CHARACTERS, Cards, Depths, Events, decimal, integer, joined_cards, typed
from analysis.importing.link import LinkExperiment
from analysis.importing.tap import Tap, matching
from analysis.importing.taps import TapsExperiment
from analysis.judge.settings import POLICY_OF_MODE
from analysis.read import run_description
from analysis.read.columns import filed
from captures.reader import is_capture
from controlplane.policy import WATCHED_MODES
from lib import regular
from lib.errors import InputError
from lib.frames import ETHERNET_BYTES
from lib.quantities import Rate
from lib.terminal import counted, one_line
from wire import wire

TRACE, POSTCARDS, CONFIG = "trace.tr", "postcards.tr", "config.json"
PARTS = (TRACE, POSTCARDS, CONFIG, f"{TRACE}.gz", f"{POSTCARDS}.gz")
ARTIFACT_RATE_BPS, ARTIFACT_RTT_NS, ARTIFACT_MTU_BYTES = 10_000_000_000, 1_200_000, 9000
ALLOWED = (
    f"a directory with {TRACE}, {POSTCARDS} or {CONFIG}, such a file, a text trace of tcp_probe, a pcap or pcapng file "
    "with postcards, or a directory with the published data set's tables as CSV or Parquet"
)
MOST_BACK_NS = 1_000_000  # between lines of a trace: the kernel merges the processors' buffers
CARD = wire.POSTCARD.const
SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass
class SourceExperiment:
    """An experiment as read from its sources. None: the sources have no such data."""

    name: str
    cards: Cards | None
    events: Events | None
    depths: Depths | None  # only without postcards
    conditions: write.Conditions
    source: write.Provenance
    damage: list[str] = field(default_factory=list)

    @property
    def can_replay(self) -> bool:
        """Whether a what-if of the imported run is possible: it needs every field of a postcard."""
        return self.cards is not None and not self.cards.unknown

    def write(self, directory: Path) -> None:
        """Writes all but derived files into an empty `directory`. Raises InputError, OSError."""
        write.write(directory, self.cards, self.events, self.depths, self.conditions, self.source)
        self.cards = self.events = None  # the analysis reads them from the raw files


AnyExperiment = SourceExperiment | TapsExperiment | LinkExperiment


@dataclass
class Config:
    """The source's description of an experiment: config.json, the comment of a capture, or a row of a table. Values may
    be text. A missing value is None; a wrong value raises InputError.
    """

    values: dict[str, Any]
    where: str

    def number(self, name: str, low: float, high: float, whole: bool) -> float | None:
        value = self.values.get(name)
        if value in (None, ""):
            return None
        try:
            number = float("nan" if isinstance(value, bool) else value)
        except (TypeError, ValueError, OverflowError):  # OverflowError: JSON's integers have no limit
            number = float("nan")
        if not low <= number <= high or (whole and not number.is_integer()):
            raise self._wrong(name, f"a {'whole ' * whole}number from {low} to {high}")
        return number

    def text(self, name: str, read: Callable[[str], str]) -> str | None:
        """The value as `read` returns it. `read` raises NotAllowedError."""
        value = self.values.get(name)
        if value in (None, ""):
            return None
        try:
            return read(str(value))
        except NotAllowedError as error:
            raise self._wrong(name, error.allowed) from None

    def _wrong(self, name: str, allowed: str) -> InputError:
        shown = ascii(self.values[name])[:SHOWN_CHARACTERS]
        return InputError(f"{self.where}: {name} is {shown}; allowed: {allowed}")


def _action(text: str) -> str:
    if text not in write.MODES:
        raise NotAllowedError("is not known", ", ".join(write.MODES))
    return write.MODES[text]


@dataclass
class _FileParts:
    spill: Path
    cards: list[Cards] = field(default_factory=list)
    events: list[Events] = field(default_factory=list)
    config: Config = field(default_factory=lambda: Config({}, CONFIG))  # of a config.json
    of_capture: Config | None = None  # the description in a pcapng file; used if FROM names no config.json
    source: write.Provenance = field(default_factory=lambda: write.Provenance("files"))
    damage: list[str] = field(default_factory=list)
    empty: list[captures.NoPostcardsError] = field(default_factory=list)  # of captures without postcards


Named = tuple[str, Callable[[], AnyExperiment]]


def find(asked: Asked) -> list[Named]:
    """The requested experiments: names, and functions that read them, into files without a name on the disk of OUTPUT.
    `find` and these functions raise InputError, OSError.
    """
    spill = next(path for path in (asked.output, *asked.output.absolute().parents) if path.is_dir())
    if asked.before and asked.after:
        return [("captures", partial(_of_taps, asked, asked.before, asked.after, spill))]
    if not asked.from_:
        raise InputError(f"FROM names nothing; allowed: {ALLOWED}")
    if any(tables.are_in(Path(source)) for source in asked.from_):
        if len(asked.from_) > 1 or asked.trace:
            raise InputError("FROM names tables and something else; allowed: one directory of tables alone, or files")
        return _of_tables(asked, Path(asked.from_[0]), spill)
    paths = [path for name in asked.from_ for path in matching(name)]
    if all(path.is_file() and is_capture(path) for path in paths) and not any(map(captures.has_postcards, paths)):
        if not asked.rate:
            raise InputError(
                f"{paths[0]}: is a capture of user traffic, without postcards; give the rate of its link, as RATE=1gbit"
            )
        return [("capture", partial(_of_link, asked, asked.rate, asked.from_, spill))]
    if asked.trace and all(path.exists() for path in paths):
        raise InputError("TRACE has no meaning beside such a FROM; allowed: name a trace in FROM, beside its postcards")
    return [("files", partial(_of_files, asked, spill))]


def _of_taps(asked: Asked, before: list[str], after: list[str], spill: Path) -> TapsExperiment:
    assert asked.rate
    conditions = _conditions(asked, asked.rate)
    result = TapsExperiment(Tap.of("BEFORE", before), Tap.of("AFTER", after), conditions, asked.mtu)
    result.log = _log(asked, spill, result.source)
    return result


def _of_link(asked: Asked, rate: Rate, names: list[str], spill: Path) -> LinkExperiment:
    result = LinkExperiment(Tap.of("FROM", names), _conditions(asked, rate), asked.mtu)
    result.log = _log(asked, spill, result.source)
    return result


def _log(asked: Asked, spill: Path, source: write.Provenance) -> windows.Log | None:
    if not asked.trace:
        return None
    log = windows.read(asked.trace, spill)
    if not log.counts_bytes:
        _check(log.events, spill, source)
    source.files += [write.digest(path) for path in log.files]
    return log


def _conditions(asked: Asked, rate: Rate) -> write.Conditions:
    """Of captures of packets, which state nothing themselves."""
    return write.Conditions(
        rate_bps=rate.bps,
        rtt_ns=asked.rtt.ns if asked.rtt else 0,
        mtu_bytes=0,
        cc=asked.cc or "unknown",
        flows=asked.flows,
        mode=asked.mode or WATCHED_MODES[0],
        threshold_packets=None,
        buffer_packets=asked.buf and asked.buf.base_units,
        warmup_ns=asked.warmup and asked.warmup.ns,
        duration_ns=asked.duration and asked.duration.ns,
    )


def _of_files(asked: Asked, spill: Path) -> SourceExperiment:
    parts = _FileParts(spill)
    for path in [path for name in asked.from_ or () for path in matching(name)]:
        if path.is_dir():
            files = [p for part in PARTS if (p := path / part).exists()]
            for twice in {p.name for p in files} & {p.name.removesuffix(".gz") for p in files if p.suffix == ".gz"}:
                raise InputError(f"{path}: has {twice} and {twice}.gz; allowed: one of them")
            if not files:
                raise InputError(f"{path}: is a directory without a file that can be imported; allowed: {ALLOWED}")
            for file in files:
                _add(parts, file)
        else:
            _add(parts, path)
    if parts.empty and not parts.cards:
        raise parts.empty[0]
    events = text.joined(parts.events, **text.counts(parts.events)) if parts.events else None
    cards = None
    if parts.cards:
        cards = joined_cards(parts.cards)
        copies = captures.placed(cards, spill)
        parts.source.notes += [f"{counted(copies, 'postcard')} came twice; the copies are left out"] * bool(copies)
    config = parts.config
    if parts.of_capture and config.values:
        parts.source.remarks.append(
            f"the description in {Path(parts.of_capture.where).name} is ignored, because FROM also names {CONFIG}"
        )
    elif parts.of_capture:
        config = parts.of_capture
    exported = config.number("postcards", 0, 1 << 48, whole=True)
    there = 0 if cards is None else cards.rows
    if exported not in (None, there):
        parts.source.notes.append(f"{there} of the {exported} postcards of the exported run are there")
    return _experiment(asked, spill, "files", cards, events, config, parts.source, parts.damage)


def _add(parts: _FileParts, path: Path) -> None:
    if not path.is_file():
        raise InputError(f"{path}: {regular.NOT_REGULAR if path.exists() else 'does not exist'}; allowed: {ALLOWED}")
    if path.name == CONFIG:
        if parts.config.values:
            raise InputError(f"{path}: FROM names another {CONFIG}, too; allowed: one experiment's files")
        parts.config = _config(path)
    elif is_capture(path):
        _add_capture(parts, path)
    elif (kind := text.kind(path)) == "trace":
        parts.events.append(text.read_trace(path, parts.spill))
    elif kind == "postcards":
        cards, cut = text.read_cards(path, parts.spill)
        parts.cards.append(cards)
        parts.source.notes += [f"the last line of {path.name} is not whole, and left out"] * cut
    else:
        raise InputError(f"{path}: is of an unknown kind; allowed: {ALLOWED}")
    digest = write.digest(path)
    if digest["sha256"] in [file["sha256"] for file in parts.source.files]:
        raise InputError(f"{path}: FROM names it, or a copy of it, twice; allowed: each file once")
    parts.source.files.append(digest)


def _add_capture(parts: _FileParts, path: Path) -> None:
    try:
        capture = captures.read(path, parts.spill)
    except captures.NoPostcardsError as error:  # such as a file of a rotated capture
        parts.empty.append(error)
        parts.source.notes.append(str(error).replace(str(path), path.name))
        return
    if description := run_description.read(path):
        if parts.of_capture and parts.of_capture.values != description:
            raise InputError(f"{path}: is of another run than {parts.of_capture.where}; allowed: captures of one run")
        parts.of_capture = Config(description, str(path))
    parts.cards.append(capture.cards)
    parts.source.remarks += [f"{capture.others} other packets in {path.name}"] * bool(capture.others)
    for number, fault in (
        (capture.cut_short, "postcards in {} are cut short, and left out: too few bytes were captured"),
        (capture.malformed, "datagrams to the collector in {} are not one whole postcard each, and left out"),
    ):
        parts.source.notes += [f"{number} {fault.format(path.name)}"] * bool(number)
    if capture.damage:
        parts.damage.append(capture.damage)
        parts.source.notes.append(capture.damage.replace(str(path), path.name))


def _config(path: Path) -> Config:
    try:
        config = json.loads(regular.read_text(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {one_line(error)}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not JSON: {' '.join(str(error).split())[:120]}") from None
    if not isinstance(config, dict):
        raise InputError(f"{path}: is not a JSON object; allowed: what the artifact's experiment.py writes")
    return Config(config, str(path))


def _of_tables(asked: Asked, directory: Path, spill: Path) -> list[Named]:
    found = [*tables.batches(directory, tables.EXPERIMENTS, None)]
    if not found:
        raise InputError(f"{directory}: has no table {tables.EXPERIMENTS}; allowed: the published data set's tables")
    frame, where = pl.concat([frame for frame, _ in found]), found[0][1]
    ids = frame["id"].to_list()
    if wrong := [id_ for id_, times in Counter(ids).items() if id_ is None or times > 1]:
        raise InputError(f"{where}: id {wrong[0]!a} has {ids.count(wrong[0])} rows; allowed: one row for each id")
    if asked.experiment is None and len(ids) != 1:
        shown = ", ".join(map(str, ids[:3]))
        raise InputError(f"{where}: has {len(ids)} experiments ({shown}...); say which: EXPERIMENT=id, or all")
    chosen = ids if asked.experiment in (None, "all") else [asked.experiment]
    result: list[Named] = []
    for id_ in chosen:
        if id_ not in ids:
            known = f"{len(ids)}, such as {ids[0]}" if ids else "none"
            raise InputError(f"{where}: has no experiment {id_!a}; it has {known}")
        if not SAFE_NAME.fullmatch(str(id_)):
            raise InputError(f"{where}: experiment {id_!a} cannot name a directory; allowed: letters, digits, . _ -")
        row = frame.filter(pl.col("id") == id_).row(0, named=True)
        config = Config(row, f"{where}, experiment {id_}")
        result.append((str(id_), partial(_from_tables, asked, spill, directory, str(id_), config)))
    return result


def _from_tables(asked: Asked, spill: Path, directory: Path, name: str, config: Config) -> SourceExperiment:
    source = write.Provenance(f"tables of {directory.name}")

    def rows(table: str, **names: str) -> Iterator[tuple[pl.DataFrame, str]]:
        found = (batch for batch in tables.batches(directory, table, name) if len(batch[0]))
        return ((_renamed(frame, where, **names), where) for frame, where in found)

    of_cards = filed(spill, starmap(text.card_columns, rows(tables.POSTCARDS)))
    cards = text.cards(of_cards) if of_cards else None
    probes, events, depths = text.Probes(spill), list[Events](), None
    for frame, where in rows(tables.TRACES, srtt_us="srtt"):
        probes.add(frame, where)
        events = [probes.events()]
    if resent := filed(spill, starmap(text.retransmits, rows(tables.RETRANSMITS))):
        events.append(text.retransmit_events(resent))
    if found := [*tables.batches(directory, tables.HISTOGRAMS, name)]:
        frame = pl.concat([frame for frame, _ in found])
        depths = _depths(frame, found[0][1]) if len(frame) else None
    if cards is None and depths is None and not events:
        looked = f"{tables.POSTCARDS}, {tables.HISTOGRAMS}, {tables.TRACES} and {tables.RETRANSMITS}"
        raise InputError(f"{directory}: has nothing of experiment {name} in {looked}")
    if cards is not None and depths is not None:
        _compare(depths, cards, source)
        depths = None
    elif depths is not None:
        source.notes.append(
            f"no {tables.POSTCARDS}: {tables.HISTOGRAMS} has the depths of {depths.counts.sum()} packets of the whole "
            "run; times, drops, utilization and goodput are unknown"
        )
    joined = text.joined(events) if events else None
    return _experiment(asked, spill, name, cards, joined, config, source, [], depths)


def _renamed(frame: pl.DataFrame, where: str, **names: str) -> pl.DataFrame:
    """The table with the column names of the text traces. Raises InputError if a column has both names."""
    for in_table, in_text in {"absolute_timestamp": "time", **names}.items():
        if {in_table, in_text} <= set(frame.columns):
            raise InputError(f"{where}: has columns {in_table} and {in_text}; allowed: the published data set's tables")
        frame = frame.rename({in_table: in_text}, strict=False)
    return frame


def _depths(frame: pl.DataFrame, where: str) -> Depths:
    names = ("queue_depth_packets", "count")
    values = typed(frame, [decimal(names[0]), integer(names[1], 32)], where)
    return Depths(frame.select(names), np.asarray(values[names[0]]), np.asarray(values[names[1]]))


def _compare(depths: Depths, cards: Cards, source: write.Provenance) -> None:
    """Adds a note if the data set's histogram and its postcards have different numbers of packets."""
    counted, postcards = int(depths.counts.sum()), cards.rows
    if counted != postcards:
        source.notes.append(f"queue_depth_histograms counts {counted} packets, postcard_traces has {postcards}")


def _experiment(
    asked: Asked, spill: Path, name: str, cards: Cards | None, events: Events | None, config: Config,
    source: write.Provenance, damage: list[str], depths: Depths | None = None,
) -> SourceExperiment:  # fmt: skip
    """An experiment with the conditions of the command line, else of the source, else the defaults. The defaults of
    rate, RTT and MTU are those of the published data.
    """
    if cards is None and depths is None and (events is None or not events.rows):
        raise InputError(
            "the source has neither postcards, nor events of a trace, nor depths; allowed: at least one of them"
        )
    buffer = config.number("max_queue_depth_packets", 0.001, MOST_PACKETS, whole=False)
    buffer = _first(buffer, config.number("ecn_threshold_packets", 1, MOST_PACKETS, whole=True))
    flows = asked.flows if asked.flows is not None else config.number("num_flows", *FLOWS, whole=True)
    mtu = asked.mtu if asked.mtu is not None else config.number("mtu_bytes", *MTU_BYTES, whole=True)
    if events is not None:
        _check(events, spill, source)
    of_cards = {} if cards is None else _of_postcards(cards)
    mode = asked.mode or config.text("action", _action) or config.text("mode", _mode) or of_cards.get("mode")
    mtu = _first(mtu, of_cards.get("mtu_bytes"))
    rate, rtt, limit = asked.rate and asked.rate.bps, asked.rtt and asked.rtt.ns, asked.buf and asked.buf.base_units
    conditions = write.Conditions(
        rate_bps=_first(rate, config.number("rate_bps", 1, 10**15, whole=True), ARTIFACT_RATE_BPS),
        rtt_ns=_first(rtt, config.number("rtt_ns", 1000, 10**12, whole=True), ARTIFACT_RTT_NS),
        mtu_bytes=ARTIFACT_MTU_BYTES if mtu is None else int(mtu),
        cc=asked.cc or config.text("algorithm", algorithm) or "unknown",
        flows=None if flows is None else int(flows),
        mode=str(mode or WATCHED_MODES[0]),
        threshold_packets=_first(None if buffer is None else max(1, round(buffer)), of_cards.get("threshold_packets")),
        buffer_packets=_first(limit, config.number("buffer_packets", 1, MOST_PACKETS, whole=True)),
        threshold_bytes=None if limit else of_cards.get("threshold_bytes"),
        warmup_ns=asked.warmup and asked.warmup.ns,
        duration_ns=asked.duration and asked.duration.ns,
    )
    _part_that_counts(asked, conditions, config, source)
    if mtu is None:
        source.notes.append(
            _assumption("MTU", f"{conditions.mtu_bytes} bytes", "windows and the BDP in packets depend")
        )
    if cards is not None and not cards.turn_ns:
        source.notes += _doubts(cards, spill, conditions.rtt_ns)
    if cards is not None and cards.rows and events is not None and events.rows:
        source.notes += _on_one_axis(cards, events)
    source.document = {key: value for key, value in config.values.items() if isinstance(value, (str, int, float, bool))}
    return SourceExperiment(name, cards, events, depths, conditions, source, damage)


def _check(events: Events, spill: Path, source: write.Provenance) -> None:
    """Leaves out copies of events. Adds notes of the trace's faults."""
    copies = text.leave_out_copies(events, spill)
    source.remarks += [f"{events.others} lines of other events"] * bool(events.others)
    for number, fault in (
        (copies, f"{counted(copies, 'event')} of the trace came twice; the copies are left out"),
        (events.lost, f"the kernel lost {counted(events.lost, 'event')} of the trace"),
        (events.losses, f"the kernel lost an unknown number of events of the trace ({counted(events.losses, 'time')})"),
        (events.cut, "the last line of the trace is not whole, and left out"),
        (
            events.back_ns > MOST_BACK_NS,
            f"times of the trace go back by up to {events.back_ns / 1e9:.6f} s: its clock was set, or parts of the "
            "trace are not in order",
        ),
    ):
        source.notes += [fault] * bool(number)


def _doubts(cards: Cards, spill: Path, rtt_ns: int) -> list[str]:
    """Notes of the faults of postcards that have neither numbers nor the switch's time."""
    notes, last, in_order = [], None, True
    for part in cards.parts("mono_ns"):
        steps = np.diff(part["mono_ns"], prepend=part["mono_ns"][0] if last is None else last)
        last, in_order = part["mono_ns"][-1], in_order and bool((steps >= 0).all())
    if not in_order:
        notes.append("postcards were not in the order of their times")
    if again := len(cards.again(spill, "mono_ns", rtt_ns)["row"]):  # TCP sends a segment again only after an RTT
        notes.append(f"{counted(again, 'postcard')} equal another of less than an RTT before: captured twice?")
    return notes


def _of_postcards(cards: Cards) -> dict[str, Any]:
    """The conditions that our own postcards of the busiest queue state: its mode, its threshold and, by its longest
    packet, the MTU. Nothing for other postcards.
    """
    if not cards.turn_ns:
        return {}
    flags, longest, values = 0, 0, {name: Counter[int]() for name in ("policy", "threshold")}
    for part in cards.queue().parts("flags", "packet_bytes", *values):
        flags |= int(np.bitwise_or.reduce(part["flags"]))
        longest = max(longest, int(part["packet_bytes"].max(initial=0)))
        for name, counts in values.items():
            distinct, times = np.unique(part[name], return_counts=True)
            counts.update(dict(zip(distinct.tolist(), times.tolist(), strict=True)))
    policy, threshold = (max(of, key=lambda value: (of[value], -value)) for of in values.values())
    modes = [mode for mode in WATCHED_MODES if wire.POLICY[POLICY_OF_MODE[mode]] == policy]
    mode = modes[-1 if flags & CARD["POSTCARD_CE_MARKED"] else 0] if modes else None
    mtu_bytes = max(longest - ETHERNET_BYTES, MTU_BYTES[0])
    result: dict[str, Any] = {"mode": mode, "mtu_bytes": mtu_bytes}
    in_bytes = bool(flags & CARD["POSTCARD_BYTE_THRESHOLD"])
    if threshold and not cards.unknown and not (in_bytes and mode == "ecn"):
        result["threshold_bytes" if in_bytes else "threshold_packets"] = threshold
        if in_bytes:
            result["threshold_packets"] = max(1, threshold // (mtu_bytes + ETHERNET_BYTES))
    return result


def _part_that_counts(asked: Asked, conditions: write.Conditions, config: Config, source: write.Provenance) -> None:
    """Sets the measured part. Adds a remark if this is the default part, and notes of an assumed rate or RTT."""
    start = config.number("window_start_switch_ns", 0, run_description.TURN, whole=True)
    length = config.number("window_ns", 1, 10**17, whole=True)
    if start is not None and length is not None and asked.warmup is None and asked.duration is None:
        conditions.window_switch_ns = (int(start), int(length))
    elif asked.warmup is None and asked.duration is None:
        source.remarks.append(
            "only the middle third of the source counts, as in Spang et al.: WARMUP= and DURATION= choose another part"
        )
    assumed = {
        "rate_bps": (asked.rate, "rate", f"{conditions.rate_bps / 1e9:g} Gb/s", "utilization and the BDP depend"),
        "rtt_ns": (asked.rtt, "RTT", f"{conditions.rtt_ns / 1e6:g} ms", "the BDP depends"),
    }
    for name, (given, noun, value, depends) in assumed.items():
        if given is None and config.values.get(name) is None:
            source.notes.append(_assumption(noun, value, depends))


def _assumption(noun: str, value: str, depends: str) -> str:
    return f"the source states no {noun}: {value} is assumed, and {depends} on it; set {noun.upper()}= if it differs"


def _first(*values: float | None) -> Any:
    """The first value that is not None, as a whole number if it is one."""
    for value in values:
        if value is not None:
            return int(value) if float(value).is_integer() else value
    return None


def _mode(text: str) -> str:
    if text not in WATCHED_MODES:
        raise NotAllowedError("is not known", ", ".join(WATCHED_MODES))
    return text


def _on_one_axis(cards: Cards, events: Events) -> list[str]:
    """Shifts postcards to the trace by whole turns of the switch's clock. Returns a note if the two do not overlap."""
    (first, last, middle), (events_first, events_last, events_middle) = cards.times(), events.times()
    if turn_ns := cards.turn_ns:
        more = max((events_middle - middle + turn_ns // 2) // turn_ns, 0) * turn_ns
        cards.shift(more)
        first, last = first + more, last + more
    if events_first <= last and first <= events_last:
        return []
    return ["postcards and trace have no time in common: they are of different clocks or runs, so the join is wrong"]
