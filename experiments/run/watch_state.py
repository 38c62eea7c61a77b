# SPDX-License-Identifier: MIT
"""What the page of WATCH=1 shows, read from the growing raw files of a run, or from the finished runs of a sweep.

The files are read only when a page asks, so nothing waits for the reader. Memory is bounded: all values are in at most
BINS bins of time, whose width doubles when the run outgrows them. Of more than MOST_BYTES of new blocks every k-th is
read; the page says so.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from model.groups import PROGRAM
from runs import run_table
from runs.names import POSTCARDS_FILE, REPETITION, SPEC_FILE, SUMMARY, SWEEP_RUNS, TCP_FILE
from wire import wire

BINS = 512
COARSE = 8  # bins in an interval of the throughput, which would be noise in shorter ones
FIRST_WIDTH_NS = 1_000_000
MOST_BYTES = 64 << 20  # decoded of each file for one answer
MOST_FLOWS = 32  # with a window of their own on the page
MOST_POINTS = 5000
PLAN = "plan.json"  # of hosts/traffic
OTHERS = "others"
NUMBERS = ("buffer_packets", "buffer_over_bdp", "flows", "rate_bps", "rtt_ns", "load", "link_loss")
RESULTS = ("utilization_mean", "depth_mean_packets", "queue_delay_p99_ns", "loss", "jain_index")
LABELS = ("cc", "mode", "queue", "pacing", "ecn")


class Tail:
    """The new whole blocks of a raw file that grows."""

    def __init__(self, path: Path, kind: str) -> None:
        self.path, self.kind = path, wire.BLOCK.const[kind]
        self.at = 0
        self.every = 1  # only every k-th of the last blocks was read

    def payloads(self) -> Iterator[tuple[memoryview, int]]:
        """Payloads, and of how many blocks each stands for. A damaged block ends the file: the analysis says so."""
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            return
        with file:
            size = file.seek(0, 2)
            self.every = max(1, math.ceil((size - self.at) / MOST_BYTES))
            number = 0
            while self.at + wire.BLOCK.length <= size:
                file.seek(self.at)
                header = wire.BLOCK.decode(file.read(wire.BLOCK.length))
                bytes_of = wire.BLOCK.length + header["payload_bytes"]
                if header["payload_bytes"] > wire.BLOCK.const["BLOCK_MAX_PAYLOAD_BYTES"] or self.at + bytes_of > size:
                    return
                if number % self.every == 0:
                    file.seek(self.at)
                    blocks = list(wire.read_blocks(file.read(bytes_of), self.kind))
                    if not blocks:
                        return
                    yield blocks[0].payload, self.every
                number += 1
                self.at += bytes_of


class Bins:
    """Named values by time. Each name is a sum, a maximum or the last value in each bin."""

    def __init__(self, start_ns: int) -> None:
        self.start_ns, self.width_ns, self.last = start_ns, FIRST_WIDTH_NS, -1
        self.sums: dict[str, np.ndarray] = {}
        self.mosts: dict[str, np.ndarray] = {}
        self.lasts: dict[str, np.ndarray] = {}

    def index(self, mono_ns: np.ndarray) -> np.ndarray:
        """The bin of each time; -1 before the start."""
        end = int(mono_ns.max()) - self.start_ns
        while end >= BINS * self.width_ns:
            self.width_ns *= 2
            self.last //= 2
            for values in self.sums.values():
                values[:] = _halved(values.reshape(-1, 2).sum(axis=1), 0)
            for values in self.mosts.values():
                values[:] = _halved(np.fmax(values[::2], values[1::2]), np.nan)
            for values in self.lasts.values():
                values[:] = _halved(np.where(np.isnan(values[1::2]), values[::2], values[1::2]), np.nan)
        index = np.maximum((mono_ns - self.start_ns) // self.width_ns, -1)
        self.last = max(self.last, int(index.max()))
        return index

    def add(self, name: str, index: np.ndarray, values: np.ndarray) -> None:
        into = self.sums.setdefault(name, np.zeros(BINS))
        into += np.bincount(index, weights=values, minlength=BINS)

    def most(self, name: str, index: np.ndarray, values: np.ndarray) -> None:
        np.fmax.at(self.mosts.setdefault(name, np.full(BINS, np.nan)), index, values)

    def keep(self, name: str, index: np.ndarray, values: np.ndarray) -> None:
        self.lasts.setdefault(name, np.full(BINS, np.nan))[index] = values  # of several, NumPy keeps the last

    def times_s(self, end: int, some: int = 1) -> list[float]:
        """The middles of the first `end` intervals of `some` bins each."""
        return [round((at + 0.5) * some * self.width_ns / 1e9, 6) for at in range(end)]

    def rate_per_s(self, sums: np.ndarray) -> np.ndarray:
        """In intervals of COARSE bins."""
        return sums.reshape(-1, COARSE).sum(axis=1) / (COARSE * self.width_ns / 1e9)


def _halved(values: np.ndarray, rest: float) -> np.ndarray:
    return np.concatenate([values, np.full(BINS - len(values), rest)])


class RunState:
    """A repetition while it is recorded."""

    def __init__(self, repetition: Path) -> None:
        self.repetition = repetition
        self.tails = [Tail(repetition / POSTCARDS_FILE, "BLOCK_POSTCARDS"), Tail(repetition / TCP_FILE, "BLOCK_TCP")]
        self.bins: Bins | None = None
        self.algorithms: list[tuple[range, str]] = []
        self.about: dict[str, Any] = {}

    def read(self) -> dict[str, Any]:
        """Reads what is new; returns all that the page draws."""
        try:
            if not self.about:
                self._describe()
        except (OSError, ValueError, KeyError, TypeError):  # not written yet, or not whole
            return {"name": self.repetition.name}
        postcards, tcp = self.tails
        for payload, every in postcards.payloads():
            self._postcards(np.frombuffer(payload, wire.STORED_POSTCARD), every)
        for payload, _ in tcp.payloads():
            self._windows(np.frombuffer(payload, wire.STORED_TCP_RECORD))
        every = max(tail.every for tail in self.tails)
        return {"name": self.repetition.name, **self.about, "every": every, **self._series()}

    def _describe(self) -> None:
        spec = yaml.safe_load((self.repetition / SPEC_FILE).read_text())
        plan = json.loads((self.repetition / PLAN).read_text())
        self.algorithms = [
            (range(group["first_client_port"], group["first_client_port"] + group["flows"]), str(group["cc"]))
            for group in plan.get("groups", [])
        ]
        self.bins = Bins(int(plan["start_mono_ns"]))
        self.about = {
            "clock": spec["clock"],
            "rate_bps": spec["rate_bps"],
            "buffer_packets": spec["buffer_packets"],
            "flows": sum(len(ports) for ports, _ in self.algorithms),
            "traffic_s": (spec["warmup_ns"] + spec["duration_ns"]) / 1e9,
        }

    def _postcards(self, cards: np.ndarray, every: int) -> None:
        const, bins = wire.POSTCARD.const, self.bins
        assert bins
        index = bins.index(cards["rx_mono_ns"].astype(np.int64))
        of_traffic = index >= 0
        cards, index = cards[of_traffic], index[of_traffic]
        dropped = (cards["flags"] & const["POSTCARD_DROPPED"]) != 0
        known = cards["depth_unit"] != const["POSTCARD_DEPTH_UNKNOWN"]
        in_cells = cards["depth_unit"] == const["POSTCARD_DEPTH_CELLS"]
        depth = np.where(in_cells, cards["depth_cells"], cards["depth_packets"]).astype(float)
        bins.most("depth", index[known], depth[known])
        bins.add("drops", index[dropped], np.full(dropped.sum(), float(every)))
        ports, passed = cards["src_port"].astype(np.int64), ~dropped
        rest = passed.copy()
        for those, name in self.algorithms:
            mine = passed & (ports >= those.start) & (ports < those.stop)
            bins.add(f"bits {name}", index[mine], 8.0 * every * cards["packet_bytes"][mine])
            rest &= ~mine
        if rest.any():
            bins.add(f"bits {OTHERS}", index[rest], 8.0 * every * cards["packet_bytes"][rest])

    def _windows(self, records: np.ndarray) -> None:
        bins = self.bins
        assert bins
        index = bins.index(records["mono_ns"].astype(np.int64))
        ports = records["src_port"]
        for those, name in self.algorithms:
            mine = (ports >= those.start) & (ports < those.stop) & (index >= 0)
            for port in np.unique(ports[mine]):
                label = f"{name} {port}"
                if label in bins.lasts or len(bins.lasts) < MOST_FLOWS:
                    its = mine & (ports == port)
                    bins.keep(label, index[its], records["cwnd_packets"][its])

    def _series(self) -> dict[str, Any]:
        bins = self.bins
        assert bins
        end = max(0, bins.last)  # the last interval is not over
        return {
            "times_s": bins.times_s(end),
            "throughput_bps_times_s": bins.times_s(end // COARSE, COARSE),
            "depth_packets": {"most in an interval": _listed(bins.mosts.get("depth"), end)},
            "drops": {"drops": _listed(bins.sums.get("drops"), end)},
            "throughput_bps": {
                name.removeprefix("bits "): _listed(bins.rate_per_s(values), end // COARSE)
                for name, values in bins.sums.items() if name.startswith("bits ")
            },
            "windows_packets": {name: _listed(values, end) for name, values in bins.lasts.items()},
        }  # fmt: skip


def _listed(values: np.ndarray | None, end: int) -> list[int | None]:
    return [] if values is None else [None if math.isnan(value) else round(value) for value in values[:end].tolist()]


class SweepState:
    """The finished runs of a sweep, each read once for each of its attempts."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.rows: dict[str, tuple[int, dict[str, Any]]] = {}

    def read(self) -> dict[str, Any]:
        """The points: numbers that differ, results, and a label of the rest."""
        for run in sorted((self.directory / SWEEP_RUNS).glob("*/")):
            repetition = run / REPETITION
            try:
                changed = (repetition / SUMMARY).stat().st_mtime_ns
                if self.rows.get(run.name, (0,))[0] != changed and len(self.rows) < MOST_POINTS:
                    self.rows[run.name] = changed, run_table.read_repetition(repetition, self.directory)
            except (OSError, ValueError):  # not analysed yet, or just being replaced
                continue
        rows = [row for _, row in self.rows.values()]
        axes = [name for name in NUMBERS if len({row[name] for row in rows} - {None}) > 1] or ["buffer_packets"]
        labels = [name for name in LABELS if len({row[name] for row in rows}) > 1]
        points = [
            {
                **{name: row.get(name) for name in axes},
                **{name: _result(row, name) for name in RESULTS},
                "label": " ".join(
                    f"ecn {row[name]}" if name == "ecn" else str(row[name]) for name in labels if row[name]
                )
                or str(row["cc"] or PROGRAM),
                "valid": row["valid"],
            }
            for row in rows
        ]
        return {"axes": axes, "results": RESULTS, "points": points}


def _result(row: dict[str, Any], name: str) -> float | None:
    if name == "loss":
        return row["drops"] / row["arrivals"] if row["arrivals"] else None
    return row.get(name)  # type: ignore[no-any-return]


class WatchState:
    """A run's directory, whose newest repetition is shown, or a sweep's."""

    def __init__(self, directory: Path, is_sweep: bool) -> None:
        self.directory = directory
        self.sweep = SweepState(directory) if is_sweep else None
        self.run: RunState | None = None

    def read(self) -> dict[str, Any]:
        """JSON of what is to be shown."""
        if self.sweep:
            return {"sweep": self.sweep.read()}
        newest = max(self.directory.glob("rep-*"), key=lambda path: int(path.name[4:]), default=None)
        if newest and (self.run is None or self.run.repetition != newest):
            self.run = RunState(newest)
        return {"run": self.run.read() if self.run else {}}
