# SPDX-License-Identifier: MIT
"""Windows beside captures (TRACE=): the forms of logs, their clock, and what cannot be used."""

from __future__ import annotations

import contextlib
import json
import random
from pathlib import Path

import polars as pl
import pytest

from analysis.importing import sockets, text, windows
from analysis.tests import two_taps
from analysis.tests.two_taps import MSS, START_NS, Side, Truth, write
from bufferscope.__main__ import main
from lib.errors import InputError

pytestmark = pytest.mark.usefixtures("undrawn")
# As iproute2 6.1 printed on Linux 6.18; some fields are left out.
SS = """\
1795946361.039585852
State Recv-Q  Send-Q  Local Address:Port  Peer Address:Port Process
LISTEN 0      128           0.0.0.0:22          0.0.0.0:*
\t cubic cwnd:10
ESTAB 0       3114353     127.0.0.1:44914    127.0.0.1:5201 \n\
\t bbr wscale:10,10 rto:204 rtt:0.938/1.561 mss:65483 pmtu:65535 cwnd:16 ssthresh:8 bytes_sent:11194068 \
bytes_retrans:91190 bytes_acked:11102879 segs_out:210 bbr:(bw:34924264584bps,cwnd_gain:2) lost:2 retrans:1/3 minrtt:0.01
ESTAB 0       1180973 [fe80::1]%eth0:44928     [::1]:5201  users:(("iperf3",pid=3,fd=5))
\t bbr wscale:10,10 rtt:0.187/0.23 mss:65483 cwnd:26 bytes_sent:13236682 bytes_acked:12909268 unacked:5 sacked:3
ESTAB 813726  0           127.0.0.1:5201     127.0.0.1:44914
\t bbr wscale:10,10 rto:204 rtt:0.027/0.013 ato:40 mss:32768 cwnd:10 bytes_received:11102878 snd_wnd:65536
TIME-WAIT 0   0           127.0.0.1:5201     127.0.0.1:44910
1795946361.1
ESTAB 0       0      127.0.0.1:44914         127.0.0.1:5201 bbr rtt:1/1.5 mss:65483 cwnd:17
"""
FIELDS = (
    "family=AF_INET src=127.0.0.1:5201 dest=127.0.0.1:44914 mark=0x0 data_len=583 snd_nxt=0x761a7abe "
    "snd_una=0x761a7abd snd_cwnd=10 ssthresh=2147483647 snd_wnd=65536 srtt=27 rcv_wnd=65483 sock_cookie=35f"
)
PROBES = {
    "tracefs": f"# tracer: nop\n#\n     python3-14930   [001] ..... 14970.687871: tcp_probe: {FIELDS}\n",
    "trace-cmd": f"cpus=2\nCPU 1 is empty\n    tmux: server-14930 [001] 14970.687871: tcp_probe:            {FIELDS}\n",
    "perf": f"         python3 14926/14930 [001] 14970.687871: tcp:tcp_probe: {FIELDS.replace('0x0', '0')}\n",
    "perf --ns": f"   swapper     0 [001] 14970.687871000: tcp:tcp_probe: {FIELDS}\n",
}
PERIOD_NS = 50_000_000


def form(path: Path, content: str) -> Path:
    path.write_text(content)
    return path


@pytest.mark.parametrize("block_bytes", [1 << 23, 700])
def test_ss__gives_each_connections_window_at_each_reading(tmp_path, monkeypatch, block_bytes):
    """Whether a connection has one line or two, and wherever a block of the file ends."""
    monkeypatch.setattr(text, "BLOCK_BYTES", block_bytes)
    path = form(tmp_path / "ss", SS)
    assert sockets.is_log(text.head_of(path))
    columns = {name: column[:].tolist() for name, column in sockets.read(path, tmp_path).pieces[0].items()}
    assert columns["mono_ns"] == [1_795_946_361_039_585_852] * 3 + [1_795_946_361_100_000_000]
    assert columns["cwnd_packets"] == [16, 26, 10, 17]
    assert columns["ssthresh_packets"] == [8, 2**31 - 1, 2**31 - 1, 2**31 - 1]
    assert columns["srtt_us"] == [938, 187, 27, 1000]
    assert [columns[name][0] for name in ("lost_out", "retrans_out", "packets_out")] == [2, 1, 0]
    assert [columns[name][1] for name in ("packets_out", "sacked_out", "src_port")] == [5, 3, 44928]
    assert columns["acked"][0] == columns["sent"][0] == 11_102_879  # all is acknowledged


def test_tcp_probe__has_the_same_record_in_each_form(tmp_path):
    found = []
    for name, content in PROBES.items():
        path = form(tmp_path / name, content)
        assert text.kind(path) == "trace", name
        (piece,) = [piece for piece in text.read_trace(path, tmp_path).pieces if len(piece["mono_ns"])]
        found.append({column: piece[column][:].tolist() for column in piece if column != "digest"})
    assert all(other == found[0] for other in found)
    assert (found[0]["mono_ns"], found[0]["cwnd_packets"], found[0]["snd_una"]) == (
        [14970687871000],
        [10],
        [0x761A7ABD],
    )


@pytest.fixture(scope="module")
def truth() -> Truth:
    return two_taps.make()


def records(side: Side, every_ns: int = 0) -> list[tuple[int, int, int, int, int]]:
    """(time, flow, acknowledged, sent, cwnd) of the sender at each ACK, or at readings of all flows."""
    result, acked, sent, cwnd, told = [], [1000] * 4, [1000] * 4, 0, START_NS
    rows = zip(*(values.tolist() for values in vars(side).values()), strict=True)
    for time, back, flow, seq, ack, payload, *_ in rows:
        while every_ns and time > told + every_ns:
            told += every_ns
            cwnd += 1
            result += [(told, each, acked[each], sent[each], cwnd % 50 + 4 * each) for each in range(4) if sent[each]]
        if back and payload == 0 and ack > 1000 and not every_ns:
            result.append((time + 1, flow, acked[flow], sent[flow], len(result) % 50 + 1))
        if back:
            acked[flow] = max(acked[flow], ack)
        else:
            sent[flow] = max(sent[flow], seq + payload)
    return result


def probe_lines(side: Side, clock=lambda ns: ns) -> str:
    lines = []
    for time, flow, acked, sent, cwnd in records(side):
        seconds, ns = divmod(clock(time), 10**9)
        lines.append(
            f"  x-1 [000] {seconds}.{ns:09d}: tcp_probe: src=10.0.1.{flow + 1}:{1000 + flow} dest=10.0.2.1:80 "
            f"data_len=0 snd_nxt={sent:#x} snd_una={acked:#x} snd_cwnd={cwnd} ssthresh=7 snd_wnd=50 srtt=9 rcv_wnd=5\n"
        )
    return "".join(lines)


def ss_lines(side: Side) -> str:
    lines, last = [], 0
    for time, flow, acked, sent, cwnd in records(side, PERIOD_NS):
        if time > last:
            lines.append(f"{time // 10**9}.{time % 10**9:09d}\n")
        last = time
        lines.append(
            f"ESTAB 0 0 10.0.1.{flow + 1}:{1000 + flow} 10.0.2.1:80\n\t cubic rtt:9/1 mss:{MSS} cwnd:{cwnd} "
            f"bytes_sent:{sent - 1000} bytes_acked:{acked - 999}\n"
        )
    return "".join(lines)


def imported(tmp_path: Path, truth: Truth, log: str, *words: str) -> tuple[pl.DataFrame, dict]:
    """The joined packets, and the summary."""
    before, after = write(tmp_path / "in", truth.before), write(tmp_path / "out", truth.after)
    trace, output = form(tmp_path / "log", log), tmp_path / "run"
    names = words or (f"BEFORE={before}", f"AFTER={after}")
    assert main(["import", *names, f"TRACE={trace}", "RATE=50mbit", f"OUTPUT={output}"]) == 0
    summary = json.loads((output / "rep-1/summary.json").read_text())
    return pl.read_parquet(output / "rep-1/joined.parquet"), summary


def latest(side: Side, log: list[tuple[int, int, int, int, int]]) -> dict[tuple[int, int], int]:
    """The cwnd of the last record before each packet, by time and flow."""
    now: dict[int, int] = {}
    result, at = {}, 0
    for time, back, flow in zip(side.time_ns.tolist(), side.back.tolist(), side.flow.tolist(), strict=True):
        while at < len(log) and log[at][0] <= time:
            now[log[at][1]] = log[at][4]
            at += 1
        if not back and flow in now:
            result[time, flow] = now[flow]
    return result


@pytest.mark.parametrize("ppm", [0, 30])
def test_windows__are_those_of_tcp_probe_by_any_clock(tmp_path, truth, capsys, ppm):
    """Its clock began hours before, and is fast."""
    log = probe_lines(truth.before, lambda ns: 7 * 10**12 + ns - START_NS + (ns - START_NS) * ppm // 10**6)
    table, summary = imported(tmp_path, truth, log)
    said = capsys.readouterr().out
    assert f"cwnd of 4 connections by {len(log.splitlines()):,} records" in said
    true = latest(truth.before, records(truth.before))
    known = table.filter(pl.col("cwnd_packets").is_not_null())
    got = dict(zip(zip(known["enqueue_mono_ns"], known["flow"], strict=True), known["cwnd_packets"], strict=True))
    assert len(got) == len(true)
    wrong = [key for key in true if got.get(key) != true[key]]
    assert len(wrong) < 0.03 * len(true)  # near records: these segments were not released by ACKs
    assert all(flow["cwnd_packets_mean"] > 1 for flow in summary["flows"])


def test_windows__are_those_of_ss(tmp_path, truth, capsys):
    table, _ = imported(tmp_path, truth, ss_lines(truth.before))
    assert "cwnd of 4 connections" in capsys.readouterr().out
    true = latest(truth.before, records(truth.before, PERIOD_NS))
    known = table.filter(pl.col("cwnd_packets").is_not_null())
    got = dict(zip(zip(known["enqueue_mono_ns"], known["flow"], strict=True), known["cwnd_packets"], strict=True))
    wrong = [key for key in true if got.get(key) != true[key]]
    assert len(wrong) < 0.02 * len(true)


def test_windows__of_one_capture(tmp_path, truth, capsys):
    path = write(tmp_path / "in", truth.before)
    table, summary = imported(tmp_path, truth, probe_lines(truth.before), f"FROM={path}")
    assert "from that of FROM" in capsys.readouterr().out
    assert table["cwnd_packets"].drop_nulls().len() > 0.9 * len(table)
    assert "trace" not in summary["spec"]["imported"].get("lacks", [])


def test_connections__that_only_one_side_has_are_counted(tmp_path, truth, capsys):
    log = probe_lines(truth.before).replace("10.0.1.4", "10.0.1.99")
    imported(tmp_path, truth, log)
    said = capsys.readouterr().out
    assert "1 connections of TRACE are not in BEFORE" in said
    assert "1 connections that send data are not in TRACE" in said


def test_logs__that_cannot_be_used_get_one_line(tmp_path, truth, capsys):
    before, after = write(tmp_path / "in", truth.before), write(tmp_path / "out", truth.after)
    probes, ss = probe_lines(truth.before), ss_lines(truth.before)
    for number, content in enumerate(
        (
            "no log\n",
            "",
            probes.replace("10.0.", "10.1."),  # no connection in common
            probes.replace("snd_cwnd=", "snd_wind="),
            "# tracer: nop\n",
            ss.partition("\n")[2],  # no time
            ss.replace(":80\n", ":http\n"),
            ss.replace("cwnd:", "cwnd:4294967296"),
            ss.replace("10.0.", "10.1."),
        )
    ):
        trace = form(tmp_path / f"log{number}", content)
        assert main(["import", f"BEFORE={before}", f"AFTER={after}", f"TRACE={trace}", "RATE=50mbit",
                     f"OUTPUT={tmp_path / 'run'}"]) == 1, content[:80]  # fmt: skip
        err = capsys.readouterr().err
        assert err.count("\n") == 1, err
        assert not (tmp_path / "run").exists()
    one, two = form(tmp_path / "one", probes), form(tmp_path / "two", ss)
    for names in ([str(one), str(two)], [str(tmp_path / "none")], [str(tmp_path)]):
        with pytest.raises(InputError):
            windows.read(names, tmp_path)
    assert main(["import", f"FROM={one}", f"TRACE={one}", f"OUTPUT={tmp_path / 'run'}"]) == 1


def test_logs__that_are_damaged_are_read_or_refused(tmp_path, truth):
    """Bytes are changed, cut out and doubled at random."""
    chance = random.Random(5)
    for whole in (probe_lines(truth.before)[:3000], ss_lines(truth.before)[:3000], SS, *PROBES.values()):
        for _ in range(40):
            data = bytearray(whole.encode())
            for _ in range(chance.randint(1, 8)):
                at, length = chance.randrange(len(data)), chance.randrange(40)
                data[at : at + length] = chance.choice(
                    (b"", bytes(data[at : at + length]) * 2, chance.randbytes(length), b"\n", b"-1")
                )
            path = tmp_path / "log"
            path.write_bytes(data)
            with contextlib.suppress(InputError):
                windows.Windows(windows.read([str(path)], tmp_path), tmp_path, "BEFORE")
