# SPDX-License-Identifier: MIT
"""The disk space that a repetition takes at most: checked before the run, and watched during it."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hosts import full_disk
from lib.errors import RunError
from lib.terminal import located

if TYPE_CHECKING:
    from model.experiment import Experiment

# If less is free, the run stops while files can still be closed properly. The reserve has room for one second of blocks
# of postcards and trace, at the rates that this machine can carry, and for the summaries.
RESERVE_BYTES = 64 << 20
DERIVED_SHARE = 1.5  # Parquet of postcards, of trace records and of their join, relative to the raw files
# Columns in files that exist only during the analysis, relative to the raw files: measured 1.38, of 4 million postcards
# and 2 million trace records.
COLUMNS_SHARE = 1.5
LOGS_AND_FIGURES_BYTES = 16 << 20
SUMMARY_BYTES = 4 << 20  # summary, report and distributions
# Bytes of a row of flows.parquet, and packets of the shortest flow: SYN, data, FIN and an ACK.
FLOW_ROW_BYTES, LEAST_FLOW_PACKETS = 120, 4
IPERF3_STREAM_BYTES = 128 << 10  # of a stream's buffer, a file in TMPDIR
RECORDED_BYTES = 2 * (16 + 160)  # of a packet before and behind the switch (hosts/recorder.py)
TAPS_BYTES = 4 * (16 + 128)  # of a packet and its ACK, before and behind the queue (softswitch/driver/taps.c)
# Measured sizes of runs (experiments/tests/test_cost_question.py): trace records per data packet, tables relative to
# raw files, and everything else.
TRACED_SHARE, EXPECTED_DERIVED_SHARE, EXPECTED_REST_BYTES = 0.55, 0.3, 3 * 10**6


def estimate_bytes(spec: Experiment) -> int:
    """The most bytes that one repetition takes, while it is analysed."""
    return kept_bytes(spec, "all") + int(_raw_bytes(spec) * COLUMNS_SHARE)


def _raw_bytes(spec: Experiment) -> int:
    """The most bytes of raw files: a postcard and a trace record for each packet of a full link and for the packets of
    each finite flow's handshake and end.
    """
    from experiments.spec import demand
    from wire.formats import BLOCK, POSTCARD, TCP_RECORD

    record_bytes = POSTCARD.length + BLOCK.const["BLOCK_STAMP_BYTES"] + TCP_RECORD.length
    # `data_packets` counts full packets, so tiny flows have more.
    record_bytes += _captured_bytes(spec)
    packets = demand.data_packets(spec) + LEAST_FLOW_PACKETS * demand.finite_flows(spec)
    return int(packets * record_bytes)


def _captured_bytes(spec: Experiment) -> int:
    """Of each packet of data."""
    return (RECORDED_BYTES if spec.is_recorded else 0) + (TAPS_BYTES if spec.taps else 0)


def expected_bytes(spec: Experiment) -> int:
    """The bytes that one repetition is expected to write; `estimate_bytes` is the bound."""
    from experiments.spec import demand
    from wire import wire

    record_bytes = wire.POSTCARD.length + wire.BLOCK.const["BLOCK_STAMP_BYTES"]
    traced_bytes = TRACED_SHARE * wire.TCP_RECORD.length if spec.long else 0.0
    packets = demand.data_packets(spec)
    raw_bytes = packets * (record_bytes + traced_bytes)
    return int(raw_bytes * (1 + EXPECTED_DERIVED_SHARE) + packets * _captured_bytes(spec)) + EXPECTED_REST_BYTES


def kept_bytes(spec: Experiment, keep: str) -> int:
    """The most bytes that remain of a repetition after thinning (experiments/sweep/thin.py)."""
    from experiments.spec import demand

    if keep == "summary":
        return SUMMARY_BYTES
    if keep == "flows":
        flows = max(demand.data_packets(spec) / LEAST_FLOW_PACKETS, demand.finite_flows(spec))
        return SUMMARY_BYTES + int(flows * FLOW_ROW_BYTES)
    tables = int(_raw_bytes(spec) * DERIVED_SHARE) + LOGS_AND_FIGURES_BYTES
    return tables if keep == "tables" else _raw_bytes(spec) + tables


def free_bytes(directory: Path) -> int:
    """The bytes that a process without privileges may still write to the file system of `directory`."""
    figures = os.statvfs(directory)
    return figures.f_bavail * figures.f_frsize


def shortage(spec: Experiment, directory: Path) -> str | None:
    """The message for the user if `directory` cannot hold all repetitions; None if it can."""
    earlier = kept_bytes(spec, "all") * ((spec.reps or 1) - 1)
    needed, free = earlier + estimate_bytes(spec) + RESERVE_BYTES, free_bytes(directory)
    if needed <= free:
        return None
    return (
        f"{directory} has {mib(free)} free; this experiment may write {mib(needed)}: "
        "make room, choose another directory with RESULTS=, or lower DURATION, RATE or REPS"
    )


def temporary_shortage(spec: Experiment) -> str | None:
    """The message for the user if iperf3's clients have no room for temporary files; None if they have."""
    if spec.generator != "iperf3":
        return None
    directory = Path(tempfile.gettempdir())
    needed, free = spec.flows * IPERF3_STREAM_BYTES, free_bytes(directory)
    if needed <= free:
        return None
    return (
        f"{directory} has {mib(free)} free; iperf3 needs {mib(needed)} there for its streams: make room, choose "
        "another directory with TMPDIR=DIRECTORY in the environment, or use GENERATOR=epoll"
    )


@contextlib.contextmanager
def explained(*places: Path) -> Iterator[None]:
    """If the body fails while a file system of `places` is full, the error also names that file system: a program that
    fails for lack of space seldom reports the reason. An OSError of a full disk becomes a RunError.
    """
    try:
        yield
    except RunError as error:
        raise RunError(*error.lines, *_full(places, error.lines)) from None
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise RunError(located(error, places[0]), *_full(places, [])) from None


def _full(places: Iterable[Path], lines: list[str]) -> list[str]:
    """A line for each full file system that `lines` do not name yet."""
    full = dict.fromkeys(line for line in map(full_disk.full, places) if line)
    return [line for line in full if not any(line in line_before for line_before in lines)]


def mib(count: int) -> str:
    return f"{count / (1 << 20):,.0f} MiB"
