# SPDX-License-Identifier: MIT
"""TRAFFIC=program: a user's client and server send through the bottleneck. Postcards define the flows, the ledger
counts every packet, and a program that fails ends the run with one line.
"""

import json
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from bufferscope.__main__ import main
from experiments.machine.host import CHECKOUT
from experiments.plan.run_plan import plan_run
from experiments.tests.resolving import resolved
from experiments.tests.test_virtual import run

LINK = ("CLOCK=virtual", "RATE=20mbit", "RTT=10ms", "DURATION=6s")
BYTES = 1_500_000
SERVER = f"""{sys.executable} -I -c '
import socket, sys
with socket.create_server((sys.argv[1], int(sys.argv[2]))) as server:
    while True:
        with server.accept()[0] as connection:
            print(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).decode(), flush=True)
            connection.sendall(bytes(int(connection.recv(64))))
' {{address}} {{port}}"""
CLIENT = f"""{sys.executable} -I -c '
import socket, sys
got = 0
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as connection:
    connection.sendall(sys.argv[3].encode())
    while data := connection.recv(1 << 20):
        got += len(data)
print(got)
sys.exit(got != int(sys.argv[3]))
' {{address}} {{port}} {BYTES}"""
TCP = ("TRAFFIC=program", f"SERVER={SERVER}", f"CLIENT={CLIENT}")
QUIC = tuple(
    f"{key}={sys.executable} {CHECKOUT}/docs/programs/quic_{key.lower()}.py {{address}} {{port}} {more}"
    for key, more in (("SERVER", "reno"), ("CLIENT", BYTES))
)


def test_plan__has_arguments_for_each_host_and_no_shell() -> None:
    words = {"server": "cat {address}:{port} '$(id); {}'", "client": ["cat", "{client_address}", "{seed} {duration_s}"]}
    spec = resolved(traffic="program", seed=3, duration="2.5s", directory="/", **words)
    server, client = plan_run(spec, 1).traffic.user
    assert (server.host, client.host) == ("sender", "receiver")
    assert server.options["argv"][1:] == ["10.77.0.1:1443", "$(id); {}"]
    assert client.options["argv"][1:] == ["10.77.0.2", f"{3 << 16 | 1} 2.5"]
    assert (server.options["directory"], server.options["alone"], client.options["alone"]) == ("/", False, True)
    assert (spec.warmup_ns, spec.generator, spec.flows) == (0, None, 0)
    assert type(spec).model_validate(json.loads(json.dumps(spec.dump()))) == spec
    other = plan_run(resolved(traffic="long,program", server_at="receiver", **words), 1).traffic
    assert [program.host for program in other.user] == ["receiver", "sender"]
    assert (other.program, other.user[1].options["alone"]) == ("long_flows", False)


def repetition(results: Path) -> tuple[Path, dict[str, Any]]:
    directory = (results / "latest").resolve() / "rep-1"
    return directory, json.loads((directory / "summary.json").read_text())


@pytest.mark.virtual
def test_tcp_programs__are_flows_of_the_postcards_and_end_the_traffic(tmp_path: Path) -> None:
    run(tmp_path, *LINK, *TCP, "CC=htcp", drawn=True)  # root's only, in real time
    directory, summary = repetition(tmp_path)
    assert (directory / "client.stdout").read_text() == f"{BYTES}\n"
    assert (directory / "server.stdout").read_text().rstrip("\0\n") == "htcp"
    (flow,) = summary["flows"]
    assert (flow["src_port"], flow["cc"], flow["program"]) == (1443, "htcp", True)
    assert flow["goodput_bps"] * summary["measured_s"] == pytest.approx(8 * BYTES)
    assert flow["cwnd_packets_mean"] > 1
    assert 0 < flow["drops"] == flow["retransmits"]
    assert summary["utilization"]["mean"] > 0.7
    program, ledger = summary["program"], summary["ledger"]
    assert program["client"]["ran_s"] == pytest.approx(summary["measured_s"], abs=1e-3)
    assert (program["client"]["ended_by"], program["server"]["ended_by"]) == ("itself", "stop")
    assert ledger["program_packets"] + ledger["other_packets"] == ledger["switch_packets"]
    joined = pl.read_parquet(directory / "joined.parquet")
    assert joined.height == summary["join"]["tcp_packets"] == ledger["program_packets"]
    assert (directory / "figures/program_rates.png").exists()


@pytest.mark.virtual
@pytest.mark.long
def test_quic_beside_long_flows__shares_the_bottleneck_and_gives_the_same_bytes_again(tmp_path: Path) -> None:
    words = ("TRAFFIC=long,program", "CC=reno", "FLOWS=2", "WARMUP=1s", *QUIC)
    postcards = []
    for name in ("once", "again"):
        run(tmp_path / name, *LINK, *words)
        directory, summary = repetition(tmp_path / name)
        assert (directory / "client.stdout").read_text().startswith(f"{BYTES} bytes in ")
        postcards.append((directory / "postcards.bsp").read_bytes())
    assert postcards[0] == postcards[1]
    assert [flow["program"] for flow in summary["flows"]] == [False, False, True]
    *_, udp = summary["flows"]
    assert (udp["cc"], udp["goodput_bps"], summary["program"]["udp_flows"]) == (None, None, 1)
    assert summary["goodput_bps"] == sum(flow["goodput_bps"] for flow in summary["flows"][:2])  # of TCP alone
    rates = sum(flow["wire_bps"] for flow in summary["flows"])
    assert rates == pytest.approx(20e6 * summary["utilization"]["mean"], rel=0.01)
    assert summary["measured_s"] == 6  # the client's end does not end the long flows


@pytest.mark.virtual
@pytest.mark.long
def test_program__that_fails_ends_the_run_with_its_last_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = f"CLIENT={sys.executable} -I -c 'import sys; sys.exit(\"no such file on {{address}}\")'"
    assert main(["experiment", *LINK, "CC=reno", *TCP[:2], failing, f"RESULTS={tmp_path}"]) == 1
    (error,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error")]
    assert "the client" in error
    assert error.endswith("no such file on 10.77.0.1")
    (aborted,) = tmp_path.glob("*/rep-1/ABORTED")
    assert "no such file" in aborted.read_text()
