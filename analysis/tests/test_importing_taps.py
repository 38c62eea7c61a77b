# SPDX-License-Identifier: MIT
"""Two captures of a router give the queue between them: every arrival, departure, depth and drop, whatever clocks,
snap lengths, NAT, mirror ports and losses of the captures.
"""

import gzip
import json
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from analysis.importing import tap_clocks
from analysis.importing.asked import Asked
from analysis.importing.sources import find
from analysis.importing.tap import Tap
from analysis.tests import two_taps
from analysis.tests.two_taps import DROPPED, Side, Truth, clocked, write
from bufferscope.__main__ import main
from lib.errors import InputError
from lib.regular import NOT_REGULAR
from model.experiment import Imported
from runs.spec_file import load_spec

pytestmark = pytest.mark.usefixtures("undrawn")
KEYS = [f"RATE={two_taps.RATE_BPS // 10**6}mbit"]


@pytest.fixture(scope="module")
def truth() -> Truth:
    return two_taps.make()


def imported(before, after, output: Path, *words: str) -> tuple[pl.DataFrame, dict, dict]:
    """The table of postcards, the summary, and what the captures had in common."""
    assert main(["import", f"BEFORE={before}", f"AFTER={after}", f"OUTPUT={output}", *KEYS, *words]) == 0
    summary = json.loads((output / "rep-1/summary.json").read_text())
    return pl.read_parquet(output / "rep-1/postcards.parquet"), summary, summary["spec"]["imported"]["taps"]


def source_of(before: Side, after: Side, directory: Path) -> Imported:
    """What the import writes of the captures, which are not analysed."""
    paths = {name: str(write(directory / name, side)) for name, side in (("before", before), ("after", after))}
    ((_, read),) = find(Asked.model_validate({"rate": "50mbit", "rtt": "10ms", "output": str(directory), **paths}))
    (directory / "run").mkdir()
    read().write(directory / "run")
    source = load_spec(directory / "run").imported
    assert source
    return source


def assert_true(table: pl.DataFrame, truth: Truth, within_ns: int = 0) -> None:
    """Every packet of the queue is there. Times may be off by `within_ns`, and so may depths at these times."""
    order = np.argsort(truth.came_ns, kind="stable")
    left, depth = truth.left_ns[order], truth.depth[order]
    assert table["enqueue_mono_ns"].to_list() == truth.came_ns[order].tolist()
    dropped = left == DROPPED
    assert np.array_equal(_dropped(table), dropped)
    error = (table["sojourn_ns"].to_numpy().astype(np.int64) - (left - truth.came_ns[order]))[~dropped]
    assert np.abs(error).max() <= within_ns
    wrong = np.flatnonzero(table["depth_packets"].to_numpy().astype(np.int64) != depth)
    passed = np.sort(left[~dropped])
    near = np.searchsorted(passed, truth.came_ns[order][wrong] + within_ns + 1)
    assert (passed[near - 1] >= truth.came_ns[order][wrong] - within_ns).all()


def _dropped(table: pl.DataFrame) -> np.ndarray:
    return (table["flags"].to_numpy() & 1) != 0


def test_queue__is_that_between_the_captures(tmp_path, truth, capsys):
    before, after = write(tmp_path / "in", truth.before), write(tmp_path / "out", truth.after, ttl=63)
    table, summary, taps = imported(before, after, tmp_path / "run")
    assert_true(table, truth)
    passed = truth.left_ns != DROPPED
    assert (taps["pairs"], taps["only_before"]) == (passed.sum(), (~passed).sum())
    assert taps["rate_bps"] == pytest.approx(two_taps.RATE_BPS, rel=1e-4)
    assert 0 < taps["uncertainty_ns"] < 21_000  # ACKs take 20 us from tap to tap
    assert summary["spec"]["rtt_ns"] == pytest.approx(two_taps.RTT_NS, rel=0.01)
    assert (summary["spec"]["mtu_bytes"], summary["buffer_packets"]) == (1500, two_taps.BUFFER)
    assert summary["drops"] == (~passed).sum()
    assert len(summary["flows"]) == 4
    assert summary["in_flight_from"] == "snd_nxt - snd_una"
    assert all(flow["in_flight_packets_mean"] > 0 and flow["cwnd_packets_mean"] is None for flow in summary["flows"])
    seems = sum(flow["retransmits"] for flow in summary["flows"])
    assert (~passed).sum() <= seems < 1.2 * (~passed).sum()  # bursts of a flow overlap: some segments are late
    assert summary["reasons"] == ["imported: no ledger, so nobody knows whether everything was recorded"]
    assert "make replay" in capsys.readouterr().out


@pytest.mark.parametrize(("offset_ns", "ppm"), [(7200 * 10**9 + 12345, 20), (-two_taps.START_NS, -20)])
def test_clocks__may_differ_by_hours_and_drift(tmp_path, truth, offset_ns, ppm):
    before = write(tmp_path / "in", truth.before)
    after = write(tmp_path / "out", clocked(truth.after, offset_ns, ppm), ttl=63)
    table, _, taps = imported(before, after, tmp_path / "run")
    assert taps["drift_ppm"] == pytest.approx(ppm, abs=0.05)
    assert_true(table, truth, within_ns=100)


@pytest.mark.parametrize("name", ["before", "after"])
@pytest.mark.parametrize("seconds", [37, -40])
def test_clock__that_is_set_is_found(tmp_path, truth, name, seconds):
    """In the middle of a capture."""
    sides = {"before": truth.before, "after": truth.after}
    times = sides[name].time_ns.copy()
    times[len(times) // 2 :] += seconds * 10**9
    sides[name] = replace(sides[name], time_ns=times)
    table, summary, taps = imported(
        write(tmp_path / "in", sides["before"]), write(tmp_path / "out", sides["after"]), tmp_path / "run"
    )
    assert_true(table, truth)
    assert taps["steps_ns"] == [seconds * 10**9]
    assert [reason for reason in summary["reasons"] if "a clock was set by" in reason]


def test_variant__of_a_capture_changes_nothing(tmp_path, truth):
    doubled = np.repeat(np.arange(len(truth.before.seq)), 2)
    plain = write(tmp_path / "in", truth.before), write(tmp_path / "out", truth.after, ttl=63)
    half = len(truth.before.seq) // 2
    write(tmp_path / "part1.pcap", truth.before.only(slice(half, None)))
    write(tmp_path / "part2.pcap", truth.before.only(slice(half)))
    for name, before, after in (
        ("short", plain[0], write(tmp_path / "short", truth.after, snap=60)),
        ("nat", plain[0], write(tmp_path / "nat", truth.after, nat=True)),
        ("mirror", write(tmp_path / "mirror", truth.before.only(doubled)), plain[1]),
        ("rotated", tmp_path / "part*.pcap", plain[1]),
    ):
        table, summary, taps = imported(before, after, tmp_path / f"{name}-run")
        assert_true(table, truth)
        assert taps.get("nat", []) == (["source address", "source port"] if name == "nat" else [])
        assert any("came twice" in reason for reason in summary["reasons"]) == (name == "mirror")


def test_loss_of_a_capture__is_named_and_the_rest_is_true(tmp_path, truth):
    random = np.random.default_rng(5)
    lacks = [random.random(len(side.seq)) < 0.01 for side in (truth.before, truth.after)]
    before, after = (
        write(tmp_path / name, side.only(~lacking))
        for name, side, lacking in (("in", truth.before, lacks[0]), ("out", truth.after, lacks[1]))
    )
    table, summary, taps = imported(before, after, tmp_path / "run")
    left = dict(zip(truth.came_ns.tolist(), truth.left_ns.tolist(), strict=True))
    came = table["enqueue_mono_ns"].to_list()
    known = np.array([time in left for time in came])
    real = np.array([left.get(time, 0) == DROPPED for time in came])
    assert np.count_nonzero((_dropped(table) != real)[known]) <= 1  # a copy that both captures lost
    lost_of_queue = int(np.count_nonzero(lacks[0] & ~truth.before.back & _came_out(truth)))
    assert taps["only_behind"] == pytest.approx(lost_of_queue, abs=2)
    assert taps["lost_behind"] == pytest.approx(int(np.count_nonzero(lacks[1] & ~truth.after.back)), abs=3)
    assert len([reason for reason in summary["reasons"] if " are not in " in reason]) == 2


@pytest.mark.parametrize("name", ["before", "after"])
def test_capture__that_is_shorter_makes_no_drops(tmp_path, truth, name):
    """It begins after the other and ends before it. Without ACKs, nothing else tells that packets came out."""
    sides = {"before": truth.before, "after": truth.after}
    first, last = np.quantile(truth.came_ns, (0.3, 0.7))
    both = (first <= sides[name].time_ns) & (sides[name].time_ns <= last)
    sides[name] = sides[name].only(both)
    sides = {side: packets.only(~packets.back) for side, packets in sides.items()}
    source = source_of(sides["before"], sides["after"], tmp_path)
    assert (taps := source.taps)
    times, passed = getattr(truth, "came_ns" if name == "before" else "left_ns"), truth.left_ns != DROPPED
    paired = truth.came_ns[passed & (first <= times) & (times <= last)]
    dropped = truth.came_ns[~passed]
    assert (taps.pairs, taps.only_behind, taps.lost_behind) == (len(paired), 0, 0)
    assert taps.only_before == np.count_nonzero((paired.min() < dropped) & (dropped < paired.max()))


@pytest.mark.parametrize("name", ["before", "after"])
def test_time__that_is_wrong_is_found_and_changes_only_its_packet(tmp_path, truth, name):
    """Packets with times far in the future and in the past, alone and as neighbours."""
    sides = {"before": truth.before, "after": truth.after}
    times = sides[name].time_ns.copy()
    wrong = np.array([1000, 2000, 2001, 2002, 3000])
    times[wrong] += np.array([10**12, -5 * 10**9, -5 * 10**9, -6 * 10**9, 4 * 10**8])
    right = ~np.isin(truth.came_ns if name == "before" else truth.left_ns, sides[name].time_ns[wrong])
    sides[name] = replace(sides[name], time_ns=times)
    paths = write(tmp_path / "in", sides["before"]), write(tmp_path / "out", sides["after"])
    table, summary, taps = imported(*paths, tmp_path / "run")
    assert any(f"{name.upper()}: 5 packets have wrong times" in reason for reason in summary["reasons"])
    assert taps.get("steps_ns", []) == []
    left = truth.left_ns[right]
    came = pl.DataFrame({"enqueue_mono_ns": truth.came_ns[right], "sojourn": left - truth.came_ns[right]})
    table = table.unique("enqueue_mono_ns", keep="none")  # without those whose times the five have now
    found = came.join(table, on="enqueue_mono_ns", how="inner")
    assert len(found) >= len(came) - len(wrong)
    dropped = pl.col("flags") & 1 != 0
    assert found.filter(dropped != (pl.col("sojourn") < 0)).is_empty()
    assert found.filter(~dropped & (pl.col("sojourn") != pl.col("sojourn_ns"))).is_empty()


def test_pair__of_a_copy_is_no_pair(tmp_path, truth):
    """One capture lost a packet, the other its copy: without an IP id nothing tells them apart."""
    passed = np.flatnonzero(~truth.after.back & (truth.after.payload > 0))[[500, 900]]
    copies, rows = truth.after.only(passed), np.arange(len(truth.before.seq))
    first = [int(np.flatnonzero((truth.before.seq == seq) & (truth.before.flow == flow) & ~truth.before.back)[0])
             for seq, flow in zip(copies.seq.tolist(), copies.flow.tolist(), strict=True)]  # fmt: skip
    later = replace(copies, time_ns=copies.time_ns + 300_000_000)
    before = joined_sides(truth.before.only(np.delete(rows, first)), later)
    zero = [replace(side, ip_id=side.ip_id * 0) for side in (before, truth.after)]
    taps = [Tap.of(name, [str(write(tmp_path / name, side))]) for name, side in zip(("in", "out"), zero, strict=True)]
    clocks = tap_clocks.compared(replace(taps[0], name="BEFORE"), replace(taps[1], name="AFTER"), two_taps.RATE_BPS)
    assert (clocks.base_ns, clocks.slope) == (0, pytest.approx(0, abs=1e-9))


def joined_sides(*sides: Side) -> Side:
    both = Side(*(np.concatenate(columns) for columns in zip(*(vars(s).values() for s in sides), strict=True)))
    return both.only(np.argsort(both.time_ns, kind="stable"))


def _came_out(truth: Truth) -> np.ndarray:
    """Mask of the packets of BEFORE that came out of the queue."""
    result = np.zeros(len(truth.before.seq), dtype=bool)
    left = dict(zip(truth.came_ns.tolist(), truth.left_ns.tolist(), strict=True))
    result[~truth.before.back] = [left[time] != DROPPED for time in truth.before.time_ns[~truth.before.back].tolist()]
    return result


def test_segments__that_a_host_merged_are_split(tmp_path, truth):
    before, after = write(tmp_path / "in", truth.before), write(tmp_path / "out", truth.after, merge=True)
    table, summary, taps = imported(before, after, tmp_path / "run")
    assert taps["pairs"] == np.count_nonzero(truth.left_ns != DROPPED)
    assert np.array_equal(_dropped(table), truth.left_ns[np.argsort(truth.came_ns, kind="stable")] == DROPPED)
    assert any("GRO or TSO" in reason for reason in summary["reasons"])


def test_mss__that_no_link_has_is_no_mtu(tmp_path, truth):
    """A host may send any."""
    for mss in (1, 65535):
        path = write(tmp_path / "in", truth.before)
        path.write_bytes(path.read_bytes().replace(b"\2\4\5\xb4", struct.pack(">BBH", 2, 4, mss)))
        tap = Tap.of("BEFORE", [str(path)])
        assert list(tap.read())
        assert not tap.full_bytes


def test_sample__of_a_file_that_compresses_well_stays_small(tmp_path, truth, monkeypatch):
    monkeypatch.setattr(tap_clocks, "SAMPLE", 500)
    paths = write(tmp_path / "in", truth.before), write(tmp_path / "out", truth.after)
    for path in paths:
        path.write_bytes(gzip.compress(path.read_bytes()))
    before, after = (Tap.of(name, [str(path)]) for name, path in zip(("BEFORE", "AFTER"), paths, strict=True))
    sample, _ = tap_clocks._sample(before)
    assert 100 < len(sample["row"]) <= 500
    assert tap_clocks.compared(before, after, two_taps.RATE_BPS).slope == pytest.approx(0, abs=1e-7)


def test_datagrams__of_ipv6_are_told_apart_by_their_payload(tmp_path, monkeypatch):
    """They have no IP id. Half of them are all equal, and must not take the room of those that are not."""
    monkeypatch.setattr(tap_clocks, "SAMPLE", 300)
    head = bytes(12) + b"\x86\xdd\x60" + bytes(3) + struct.pack(">HBB", 8 + 100, 17, 64) + bytes(15) + b"\1"
    head += bytes(15) + b"\2" + struct.pack(">HHHH", 5, 6, 8 + 100, 0)
    taps = list[Tap]()
    for name, delay_ns in (("BEFORE", 0), ("AFTER", 5 * 10**9)):
        frames = [struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 96, 1)]
        for number in range(4000):
            frame = head + (number * (number % 2)).to_bytes(16, "little")
            seconds, ns = divmod(two_taps.START_NS + delay_ns + number * 10**6, 10**9)
            frames.append(struct.pack("<IIII", seconds, ns, len(frame), len(head) + 100) + frame)
        (tmp_path / name).write_bytes(b"".join(frames))
        taps.append(Tap.of(name, [str(tmp_path / name)]))
    sample, _ = tap_clocks._sample(taps[0])
    assert 100 < len(sample["row"]) <= 300
    link_ns = (14 + 40 + 8 + 100 + 24) * 8 * 10**9 // two_taps.RATE_BPS
    assert tap_clocks.compared(taps[0], taps[1], two_taps.RATE_BPS).base_ns == 5 * 10**9 - link_ns


def test_reordering_behind_the_queue__is_no_loss(tmp_path, truth):
    """The last two of each hundred packets change places."""
    rows = np.arange(len(truth.after.seq))
    rows[98::100], rows[99::100] = rows[99::100].copy(), rows[98::100][: len(rows[99::100])].copy()
    after = replace(truth.after.only(rows), time_ns=truth.after.time_ns)
    _, _, taps = imported(write(tmp_path / "in", truth.before), write(tmp_path / "out", after), tmp_path / "run")
    assert (taps["pairs"], taps.get("only_behind", 0)) == (np.count_nonzero(truth.left_ns != DROPPED), 0)


def test_captures__that_cannot_be_used_get_one_line(tmp_path, truth, capsys):
    before, after = write(tmp_path / "in", truth.before), write(tmp_path / "out", truth.after)
    forward = [write(tmp_path / f"f{n}", side.only(~side.back)) for n, side in enumerate((truth.before, truth.after))]
    other = write(tmp_path / "other", replace(truth.after, seq=truth.after.seq + 10**6, ip_id=truth.after.ip_id ^ 7))
    (tmp_path / "text").write_text("no capture at all")
    for words, status in (
        ([f"BEFORE={after}", f"AFTER={before}"], 1),
        ([f"BEFORE={forward[1]}", f"AFTER={forward[0]}", "RTT=10ms"], 1),  # of one direction: by the times
        ([f"BEFORE={before}", f"AFTER={other}"], 1),
        ([f"BEFORE={tmp_path / 'text'}", f"AFTER={after}"], 1),
        ([f"BEFORE={tmp_path / 'none'}", f"AFTER={after}"], 1),
        ([f"BEFORE={before}"], 1),
        ([f"BEFORE={before}", f"AFTER={after}", "WARMUP=1000s"], 1),
        ([f"BEFORE={before}", f"AFTER={after}", f"FROM={before}"], 1),
    ):
        capsys.readouterr()
        assert main(["import", *words, f"OUTPUT={tmp_path / 'run'}", *KEYS]) == status, words
        assert capsys.readouterr().err.count("\n") == 1
        assert not (tmp_path / "run").exists()
    assert main(["import", f"BEFORE={before}", f"AFTER={after}", f"OUTPUT={tmp_path / 'run'}"]) == 1  # without RATE


def test_directory__is_said_to_be_no_file(tmp_path):
    with pytest.raises(InputError, match=NOT_REGULAR):
        Tap.of("BEFORE", [str(tmp_path)])


def test_one_direction__works_and_says_what_it_lacks(tmp_path, truth, capsys):
    sides = [side.only(~side.back) for side in (truth.before, truth.after)]
    before, after = (write(tmp_path / f"{number}", side) for number, side in enumerate(sides))
    table, _, taps = imported(before, after, tmp_path / "run", "RTT=10ms")
    assert_true(table, truth)
    assert taps.get("uncertainty_ns") is None
    assert "of one direction only" in capsys.readouterr().out


def test_marks__are_ce_behind_that_was_not_before(tmp_path, truth):
    ecn = truth.after.ecn.copy()
    marked = np.flatnonzero(~truth.after.back & (truth.after.payload > 0))[::10]
    ecn[marked] = 3
    _, summary, _ = imported(
        write(tmp_path / "in", truth.before), write(tmp_path / "out", replace(truth.after, ecn=ecn)), tmp_path / "run"
    )
    assert summary["marks"] == len(marked)
    assert summary["spec"]["mode"] == "ecn"


def test_packets__that_go_elsewhere_are_left_out(tmp_path, truth, capsys):
    """Each tenth packet of BEFORE comes a second time, to a host that AFTER does not know."""
    count = len(truth.before.seq)
    rows = np.sort(np.append(np.arange(count), np.flatnonzero(~truth.before.back)[::10]))
    is_second = np.append(False, rows[1:] == rows[:-1])
    stray = truth.before.only(rows)
    stray = replace(stray, ip_id=np.where(is_second, stray.ip_id ^ 0x8000, stray.ip_id))
    before = write(tmp_path / "in", stray, elsewhere=is_second)
    table, _, _ = imported(before, write(tmp_path / "out", truth.after), tmp_path / "run")
    assert_true(table, truth)
    assert f"{is_second.sum()} packets of BEFORE are left out" in capsys.readouterr().out


def test_rate__that_the_captures_contradict_is_a_reason(tmp_path, truth):
    before, after = write(tmp_path / "in", truth.before), write(tmp_path / "out", truth.after)
    words = [f"BEFORE={before}", f"AFTER={after}", f"OUTPUT={tmp_path / 'run'}", "RATE=55mbit"]
    assert main(["import", *words]) == 0
    summary = json.loads((tmp_path / "run/rep-1/summary.json").read_text())
    assert any("left at 50.000 Mb/s, RATE is 55.000 Mb/s" in reason for reason in summary["reasons"])
