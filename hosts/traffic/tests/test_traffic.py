# SPDX-License-Identifier: MIT
"""Real iperf3 between two namespaces: planned ports and files, iperf3's own error messages, no process left."""

import json
import os
import shutil
import signal
import sys
import time

import pytest

from hosts.tests.patience import SECONDS, planned_ns, wait_until
from hosts.tests.processes import privileges_of
from hosts.traffic import child
from hosts.traffic.tests.test_epoll_flows import group, running, sending

pytestmark = [
    pytest.mark.software,
    pytest.mark.skipif(shutil.which("iperf3") is None, reason="needs iperf3"),
]


def write_plan(path, *groups, seconds=1, server="10.77.0.2", start_mono_ns=0):
    plan = {"start_mono_ns": start_mono_ns, "seconds": seconds, "server": server, "groups": groups}
    path.write_text(json.dumps(plan))
    return path


def wait_until_anew(pair, result):
    """Waits until a server has stored its result and listens again."""
    wait_until(lambda: result.exists() and pair.run("b", "ss", "-tlnH").stdout)


def serve(pair, directory, ports):
    server = pair.start("b", sys.executable, "-m", "hosts.traffic.servers", "--ports", ports, "--results", directory)
    assert server.stdout.readline() == "ready\n", server.stderr.read()
    return server


def test_long_flows__two_groups_have_the_promised_ports_and_files(pair, tmp_path):
    results = tmp_path / "results"
    server = serve(pair, results, "5201,5202")
    groups = (group("cubic", 4, 0), group("reno", 3, 1))
    start_ns = planned_ns(lambda: pair.python("a", "hosts.traffic.long_flows", "--help"))
    plan = write_plan(tmp_path / "plan.json", *groups, seconds=2, start_mono_ns=start_ns, server="fd77::2")
    done = pair.python("a", "hosts.traffic.long_flows", plan, results)
    assert done.stderr == ""
    server.send_signal(signal.SIGTERM)
    assert server.wait(SECONDS) == 0

    traffic = json.loads((results / "traffic.json").read_text())
    assert traffic["errors"] == []
    assert [(f["id"], f["cc"], f["src_port"], f["dst_port"]) for f in traffic["flows"]] == [
        *((i, "cubic", 30000 + i, 5201) for i in range(4)),
        *((4 + i, "reno", 31000 + i, 5202) for i in range(3)),
    ]
    assert {(f["src_addr"], f["dst_addr"]) for f in traffic["flows"]} == {("fd77::1", "fd77::2")}
    for each in traffic["groups"]:
        client = json.loads((results / each["iperf3_json"]).read_text())
        ports = [stream["local_port"] for stream in client["start"]["connected"]]
        assert ports == list(range(each["first_client_port"], each["first_client_port"] + each["flows"]))
        assert client["end"]["sender_tcp_congestion"] == each["cc"]
        assert each["exit_status"] == 0
        assert each["bits_per_second_received"] > 1e6
        assert start_ns <= each["started_mono_ns"] <= each["connected_mono_ns"] < each["ended_mono_ns"]
        goodput = json.loads((results / f"iperf3-server-{each['server_port']}.json").read_text())
        assert len(goodput["intervals"]) >= 6  # without --interval there would be 2
        assert max(interval["sum"]["bits_per_second"] for interval in goodput["intervals"]) > 1e6
    assert traffic["planned_start_mono_ns"] == start_ns
    assert 0 <= traffic["first_started_mono_ns"] - start_ns < 5_000_000_000
    assert traffic["start_mono_ns"] == max(each["connected_mono_ns"] for each in traffic["groups"])
    assert traffic["start_mono_ns"] < traffic["end_mono_ns"] <= traffic["start_mono_ns"] + 2_000_000_000
    assert sorted(path.name for path in results.iterdir()) == [
        "iperf3-cubic-0.json",
        "iperf3-reno-1.json",
        "iperf3-server-5201.json",
        "iperf3-server-5202.json",
        "traffic.json",
    ]
    assert running(pair, "iperf3") == []


def test_programs__of_the_traffic_keep_the_capabilities_that_they_need(pair, tmp_path):
    """Any congestion control needs CAP_NET_ADMIN; many sockets may need CAP_SYS_RESOURCE."""
    serve(pair, tmp_path, "5201")
    (iperf3,) = running(pair, "iperf3")
    kept = privileges_of(os.getpid())[1] & (1 << child.CAP_NET_ADMIN | 1 << child.CAP_SYS_RESOURCE)
    assert privileges_of(int(iperf3))[1] == kept
    words = ["--tcp", "5301=reno", "--output", tmp_path / "goodput.bsg", "--summary", tmp_path / "sink.json"]
    sink = pair.start("b", child.built("traffic_sink"), *words)
    assert sink.stdout.readline() == "ready\n"
    assert privileges_of(sink.pid)[1] == 0


def test_servers__serve_again_and_overwrite_nothing(pair, tmp_path):
    serve(pair, tmp_path / "server", "5201")
    plan = write_plan(tmp_path / "plan.json", group("cubic", 1, 0))
    for number in range(2):
        pair.python("a", "hosts.traffic.long_flows", plan, tmp_path / f"client-{number}")
        wait_until_anew(pair, tmp_path / "server" / f"iperf3-server-5201{'-1' if number else ''}.json")
    names = {path.name for path in (tmp_path / "server").iterdir()}
    assert names >= {"iperf3-server-5201.json", "iperf3-server-5201-1.json"}
    again = pair.python("a", "hosts.traffic.long_flows", plan, tmp_path / "client-0", check=False)
    assert again.returncode == 1
    assert "a result is never overwritten" in again.stderr


def test_long_flows__failure_of_one_ends_all_and_is_in_iperf3s_words(pair, tmp_path):
    serve(pair, tmp_path / "server", "5201")  # nobody listens on 5202
    plan = write_plan(tmp_path / "plan.json", group("cubic", 2, 0), group("reno", 1, 1), seconds=90)
    begin = time.monotonic()
    done = pair.python("a", "hosts.traffic.long_flows", plan, tmp_path / "client", check=False)
    assert time.monotonic() - begin < 45
    assert done.returncode == 2
    expected = "iperf3-reno-1.json: iperf3 to port 5202: unable to connect to server: Connection refused"
    assert done.stderr == f"long_flows: {expected}\n"
    traffic = json.loads((tmp_path / "client/traffic.json").read_text())
    assert traffic["errors"] == [expected]
    wait_until(lambda: len(running(pair, "iperf3")) <= 1)  # the server waits for the next test


def test_long_flows__signal_ends_every_client(pair, tmp_path):
    serve(pair, tmp_path / "server", "5201")
    plan = write_plan(tmp_path / "plan.json", group("cubic", 2, 0), seconds=240)
    child = pair.start("a", sys.executable, "-m", "hosts.traffic.long_flows", plan, tmp_path / "client")
    wait_until(lambda: sending(pair, 3))  # the control connection, too
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=SECONDS)
    assert child.returncode == 2
    assert errors == "long_flows: ended by SIGINT before its time\n"
    assert json.loads((tmp_path / "client/traffic.json").read_text())["errors"] != []
    wait_until(lambda: len(running(pair, "iperf3")) <= 1)


def test_long_flows__killed_takes_its_clients_along(pair, tmp_path):
    server = serve(pair, tmp_path / "server", "5201")
    plan = write_plan(tmp_path / "plan.json", group("cubic", 2, 0), seconds=240)
    child = pair.start("a", sys.executable, "-m", "hosts.traffic.long_flows", plan, tmp_path / "client")
    wait_until(lambda: len(running(pair, "iperf3")) == 2)
    os.kill(child.pid, signal.SIGKILL)
    os.kill(server.pid, signal.SIGKILL)
    wait_until(lambda: running(pair, "iperf3") == [])


def test_servers__busy_port_is_named(pair, tmp_path):
    first = serve(pair, tmp_path / "first", "5201")
    done = pair.python(
        "b", "hosts.traffic.servers", "--ports", "5202,5201", "--results", tmp_path / "second", check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("servers: port 5201 is busy")
    first.terminate()
    assert first.wait(SECONDS) == 0
    assert list((tmp_path / "first").iterdir()) == []
    assert running(pair, "iperf3") == []


@pytest.mark.parametrize("address", ["10.77.0.2", "fd77::2"])
def test_idle_rtt__is_that_of_the_path(pair, tmp_path, address):
    output = tmp_path / "idle_rtt.json"
    pair.python("a", "hosts.traffic.idle_rtt", address, "--output", output)
    values = json.loads(output.read_text())
    assert len(values["samples_ns"]) == values["sent"] == 20
    assert values["lost"] == 0
    assert 0 < values["min_ns"] <= values["median_ns"] < 1_000_000_000
    assert values["min_ns"] == min(values["samples_ns"])


def test_idle_rtt__without_answer_says_so(pair, tmp_path):
    pair.run("b", "sysctl", "-qw", "net.ipv4.icmp_echo_ignore_all=1")
    words = ["10.77.0.2", "--output", tmp_path / "idle_rtt.json", "--samples", 2, "--timeout-s", 0.2]
    done = pair.python("a", "hosts.traffic.idle_rtt", *words, check=False)
    assert done.returncode == 2
    assert done.stderr == "idle_rtt: 10.77.0.2 answered none of 2 echo requests: is the path up?\n"
    assert list(tmp_path.iterdir()) == []
