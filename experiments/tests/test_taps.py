# SPDX-License-Identifier: MIT
"""TAPS=1: a run's own packets as captures before and behind its queue. The import of these gives the run's own queue,
packet by packet, also after what captures and routers do to them.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest

from analysis.importing.asked import Asked
from analysis.importing.sources import find
from analysis.read.columns import Columns
from analysis.read.flows import address_text
from analysis.read.raw import load_postcards
from bufferscope.__main__ import main
from experiments.tests.resolving import problems, resolved
from experiments.tests.test_virtual import raw, run
from model.experiment import Taps
from runs.names import TAPS
from runs.spec_file import load_spec
from wire import wire

CARD = wire.POSTCARD.const
DROPPED = np.uint8(CARD["POSTCARD_DROPPED"])
SHORT = ("CLOCK=virtual", "CC=cubic:2,reno:2", "RATE=50mbit", "RTT=4ms", "DURATION=1s", "WARMUP=0.2s")
MARKING = ("MODE=ecn", "BUF=20p", "ECN_THRESHOLD=10p")
HEADER = struct.Struct("<IHHIIII")
FRAME = struct.Struct("<IIII")
OF_THE_SWITCH = {"ingress_port", "egress_port", "policy", "threshold"}  # captures do not tell


class Frame(NamedTuple):
    time_ns: int
    data: bytes
    length: int


def read(path: Path) -> list[Frame]:
    data, at, frames = path.read_bytes(), HEADER.size, []
    assert HEADER.unpack_from(data)[0] == 0xA1B23C4D
    while at < len(data):
        seconds, ns, captured, length = FRAME.unpack_from(data, at)
        at += FRAME.size + captured
        frames.append(Frame(seconds * 10**9 + ns, data[at - captured : at], length))
    return frames


def write(path: Path, frames: list[Frame], snap: int = 128) -> Path:
    parts = [HEADER.pack(0xA1B23C4D, 2, 4, 0, 0, snap, 1)]
    for time_ns, data, length in frames:
        parts.append(FRAME.pack(*divmod(time_ns, 10**9), len(data[:snap]), length) + data[:snap])
    path.write_bytes(b"".join(parts))
    return path


def found(before: Path, after: Path, directory: Path) -> tuple[Columns, Taps]:
    """The postcards that the import makes of two captures, and what they had in common."""
    asked = {"before": str(before), "after": str(after), "rate": "50mbit", "output": str(directory)}
    ((_, read_experiment),) = find(Asked.model_validate(asked))
    directory.mkdir()
    read_experiment().write(directory)
    source = load_spec(directory).imported
    assert source
    assert source.taps
    return columns_of(directory), source.taps


def columns_of(repetition: Path) -> Columns:
    cards, *_ = load_postcards(repetition / "postcards.bsp", 0)
    cards = {name: column[:] for name, column in cards.items() if name not in OF_THE_SWITCH}
    order = np.lexsort((cards["flags"] & DROPPED != 0, cards["tcp_seq"], cards["enqueue_mono_ns"]))
    return {name: column[order] for name, column in cards.items()}


def differences(one: Columns, two: Columns) -> dict[str, int]:
    assert one.keys() == two.keys()
    assert len(one["flags"]) == len(two["flags"])
    return {name: count for name in one if (count := int(np.count_nonzero(one[name] != two[name])))}


@pytest.fixture(scope="module")
def tapped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("tapped")
    summary = run(results, *SHORT, *MARKING, "TAPS=1")
    assert summary["valid"], summary["reasons"]
    return results / "latest/rep-1"


@pytest.fixture(scope="module")
def truth(tapped: Path) -> Columns:
    """The run's own postcards by the clock of its captures."""
    cards = columns_of(tapped)
    shift = json.loads((tapped / "switch.json").read_text())["stats"]["realtime_minus_mono_ns"]
    for name in ("enqueue_mono_ns", "rx_mono_ns"):
        cards[name] = cards[name] + shift
    assert (cards["flags"] & DROPPED).any()
    assert (cards["flags"] & CARD["POSTCARD_CE_MARKED"]).any()
    return cards


@pytest.mark.long
@pytest.mark.virtual
def test_taps__change_no_packet_of_the_run(tapped: Path, tmp_path: Path) -> None:
    run(tmp_path, *SHORT, *MARKING)
    assert raw(tapped)[:3] == raw(tmp_path / "latest/rep-1")[:3]  # switch.json counts the captured frames


@pytest.mark.long
@pytest.mark.virtual
def test_import__of_a_runs_captures_gives_its_own_queue(tapped: Path, truth: Columns, tmp_path: Path) -> None:
    assert main(["export", f"RUN={tapped}", "FORMAT=pcap", f"OUTPUT={tmp_path / 'taps'}"]) == 0
    cards, taps = found(tmp_path / "taps" / TAPS[0], tmp_path / "taps" / TAPS[1], tmp_path / "run")
    assert differences(truth, cards) == {}
    assert taps.uncertainty_ns is not None
    assert taps.uncertainty_ns < 100


@pytest.mark.long
@pytest.mark.virtual
def test_windows__by_the_numbers_of_the_captures_are_near_those_of_the_trace(tapped: Path, tmp_path: Path) -> None:
    """A record is made before its ACK counts, an estimate after."""
    words = (f"BEFORE={tapped / TAPS[0]}", f"AFTER={tapped / TAPS[1]}", "RATE=50mbit")
    assert main(["import", *words, f"OUTPUT={tmp_path / 'run'}"]) == 0
    medians = []
    for directory in (tapped, tmp_path / "run/rep-1"):
        table = pl.read_parquet(directory / "tcp.parquet").filter(
            pl.col("event") == wire.TCP_RECORD.const["TCP_EVENT_PROBE"]
        )
        in_flight = (pl.col("snd_nxt").cast(pl.Int64) - pl.col("snd_una").cast(pl.Int64)) % 2**32 / 1448
        by_flow = table.group_by(pl.col("five_tuple").cast(pl.String)).agg(in_flight.median().alias("packets"))
        medians.append(dict(by_flow.rows()))
    own, estimated = medians
    assert own.keys() == estimated.keys()
    assert estimated == pytest.approx(own, abs=3)
    assert min(own.values()) > 3
    assert (tmp_path / "run/rep-1/figures/zoom_on_loss.svg").exists()


@pytest.mark.long
@pytest.mark.virtual
def test_windows__of_a_log_beside_the_captures_are_the_runs_own(tapped: Path, tmp_path: Path) -> None:
    """The run's trace as `perf script --ns` prints tcp_probe: its clock begins when the machine starts."""
    (tmp_path / "log").write_text("".join(probe_lines(tapped / "tcp.bst")))
    words = (f"BEFORE={tapped / TAPS[0]}", f"AFTER={tapped / TAPS[1]}", f"TRACE={tmp_path / 'log'}", "RATE=50mbit")
    assert main(["import", *words, f"OUTPUT={tmp_path / 'run'}"]) == 0
    shift = json.loads((tapped / "switch.json").read_text())["stats"]["realtime_minus_mono_ns"]
    own, theirs = (pl.read_parquet(path / "joined.parquet") for path in (tapped, tmp_path / "run/rep-1"))
    own = own.with_columns(pl.col("enqueue_mono_ns") + shift)
    own, theirs = (
        table.with_columns(pl.col("five_tuple").cast(pl.String)).sort("enqueue_mono_ns", "five_tuple")
        for table in (own, theirs)
    )
    for name in ("enqueue_mono_ns", "five_tuple", "trace_age_ns", "packet_rtt_ns"):
        assert own[name].to_list() == theirs[name].to_list(), name
    differs = (own["cwnd_packets"] != theirs["cwnd_packets"]).sum()
    assert differs < 0.005 * len(own)  # just after a segment sent again, of which the run has a record, too
    assert own["cwnd_packets"].n_unique() > 5


def probe_lines(trace: Path) -> Iterator[str]:
    data, at = trace.read_bytes(), 0
    while at < len(data):
        header = wire.BLOCK.decode(data[at:])
        at += wire.BLOCK.length + header["payload_bytes"]
        rows = np.frombuffer(data[at - header["payload_bytes"] : at], dtype=wire.STORED_TCP_RECORD)
        for row in rows[rows["event"] == wire.TCP_RECORD.const["TCP_EVENT_PROBE"]]:
            src, dst = (
                f"{address_text(int(row[f'{end}_addr_hi']) << 64 | int(row[f'{end}_addr_lo']))}:{row[f'{end}_port']}"
                for end in ("src", "dst")
            )
            seconds, ns = divmod(int(row["mono_ns"]), 10**9)
            yield (
                f"swapper 0 [000] {seconds}.{ns:09d}: tcp:tcp_probe: family=AF_INET src={src} dest={dst} mark=0 "
                f"data_len=0 snd_nxt={row['snd_nxt']:#x} snd_una={row['snd_una']:#x} snd_cwnd={row['cwnd_packets']} "
                f"ssthresh={row['ssthresh_packets']} snd_wnd={row['snd_wnd_bytes']} srtt={row['srtt_us']} "
                "rcv_wnd=0\n"
            )


def snapped(frames: list[Frame]) -> list[Frame]:
    return [Frame(time_ns, data[:60], length) for time_ns, data, length in frames]


def fast(frames: list[Frame]) -> list[Frame]:
    """By a clock that is 3 hours and 20 ppm ahead."""
    first = frames[0].time_ns
    return [Frame(f.time_ns + 3 * 3600 * 10**9 + (f.time_ns - first) * 20 // 10**6, f.data, f.length) for f in frames]


def translated(frames: list[Frame]) -> list[Frame]:
    """The senders' address and ports are others, in both directions."""
    result = []
    for time_ns, data, length in frames:
        changed = bytearray(data)
        for address, port in ((26, 34), (30, 36)):
            if changed[12:14] == b"\x08\0" and changed[address : address + 4] == b"\x0a\x4d\0\1":
                changed[address : address + 4] = b"\xc0\0\2\1"
                if changed[23] == 6:
                    changed[port] ^= 0x40
        result.append(Frame(time_ns, bytes(changed), length))
    return result


def doubled(frames: list[Frame]) -> list[Frame]:
    """As a mirror port of both directions has them."""
    return [frame for frame in frames for _ in range(2)]


def same(frames: list[Frame]) -> list[Frame]:
    return frames


@pytest.mark.long
@pytest.mark.virtual
@pytest.mark.parametrize(
    ("before", "after"),
    [(snapped, snapped), (same, fast), (same, translated), (doubled, same), (snapped, lambda f: fast(translated(f)))],
)
def test_captures__of_any_kind_give_the_same_queue(
    tapped: Path, truth: Columns, tmp_path: Path,
    before: Callable[[list[Frame]], list[Frame]], after: Callable[[list[Frame]], list[Frame]],
) -> None:  # fmt: skip
    """Times are within the bound that the import states, and exact if both have one clock."""
    paths = [
        write(tmp_path / name, change(read(tapped / name)))
        for name, change in zip(TAPS, (before, after), strict=True)
    ]  # fmt: skip
    cards, taps = found(paths[0], paths[1], tmp_path / "run")
    wrong = differences(truth, cards)
    assert taps.uncertainty_ns is not None
    if after in (same, snapped, translated):
        assert wrong == {}
        return
    assert taps.drift_ppm == pytest.approx(20, abs=0.1)
    assert wrong.keys() <= {"sojourn_ns", "rx_mono_ns", "depth_packets", "depth_bytes"}
    error_ns = cards["sojourn_ns"].astype(np.int64) - truth["sojourn_ns"].astype(np.int64)
    assert np.abs(error_ns).max() <= taps.uncertainty_ns
    # A depth is another only if a packet left within that time of the arrival.
    came, left = truth["enqueue_mono_ns"], np.sort((truth["enqueue_mono_ns"] + truth["sojourn_ns"]).astype(np.int64))
    off = came[cards["depth_packets"] != truth["depth_packets"]].astype(np.int64)
    near = left[np.minimum(np.searchsorted(left, off - int(taps.uncertainty_ns)), len(left) - 1)]
    assert (np.abs(near - off) <= taps.uncertainty_ns + 1).all()


@pytest.mark.long
@pytest.mark.virtual
def test_packets__that_a_capture_lost_are_named_and_the_rest_is_exact(
    tapped: Path, truth: Columns, tmp_path: Path
) -> None:
    """One in a hundred on each side."""
    draw = np.random.default_rng(3)
    kept = {name: [f for f in read(tapped / name) if draw.random() > 0.01] for name in TAPS}
    paths = [write(tmp_path / name, frames) for name, frames in kept.items()]
    cards, taps = found(paths[0], paths[1], tmp_path / "run")
    frames = len(truth["flags"])
    assert 0.006 * frames < taps.only_behind < 0.015 * frames
    assert 0.006 * frames < taps.lost_behind < 0.015 * frames
    names = ("enqueue_mono_ns", "tcp_seq", "packet_bytes")
    own, theirs = (list(zip(*(of[name].tolist() for name in names), strict=True)) for of in (truth, cards))
    place = {key: row for row, key in enumerate(own)}
    pairs = np.array([(place[key], row) for row, key in enumerate(theirs) if key in place])
    assert len(pairs) > 0.98 * frames
    is_dropped, seems = (of["flags"][rows] & DROPPED != 0 for of, rows in zip((truth, cards), pairs.T, strict=True))
    assert np.count_nonzero(is_dropped != seems) <= 1  # its copy was lost, too
    sojourns = truth["sojourn_ns"][pairs[:, 0]] == cards["sojourn_ns"][pairs[:, 1]]
    assert np.count_nonzero(~sojourns) <= taps.lost_behind + 1


@pytest.mark.long
@pytest.mark.virtual
def test_reordering_behind_the_queue__changes_only_the_times(tapped: Path, truth: Columns, tmp_path: Path) -> None:
    """Of each hundred frames one is held back until the next has passed."""
    frames = read(tapped / TAPS[1])
    for row in range(98, len(frames) - 1, 100):
        one, two = frames[row : row + 2]
        frames[row : row + 2] = two, one._replace(time_ns=two.time_ns + 1000)
    cards, taps = found(tapped / TAPS[0], write(tmp_path / TAPS[1], frames), tmp_path / "run")
    assert (taps.only_behind, taps.lost_behind) == (0, 0)
    wrong = differences(truth, cards)
    assert wrong.keys() <= {"sojourn_ns", "rx_mono_ns", "depth_packets", "depth_bytes", "card_seq"}
    assert wrong["sojourn_ns"] <= len(frames) // 100


def test_taps__need_our_own_switch() -> None:
    assert resolved(taps="1", clock="real").taps
    assert [*problems(taps="1", clock="virtual", switch="process")] == ["TAPS"]
    assert [*problems(taps="1", switch="ns3")] == ["TAPS"]
    assert [*problems(taps="2")] == ["TAPS"]
    assert resolved(taps="1").taps
