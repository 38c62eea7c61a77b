# SPDX-License-Identifier: MIT
"""Real iperf3 between two namespaces: planned ports and files, iperf3's own error messages, no process left."""

import json
import os
import shutil
import signal
import sys

import pytest

from hosts.tests.patience import SECONDS, planned_ns, wait_until
from hosts.traffic.tests.test_epoll_flows import end, group, running, sending, start

pytestmark = [
    pytest.mark.software,
    pytest.mark.skipif(shutil.which("iperf3") is None, reason="needs iperf3"),
]


def plan_of(*groups, seconds=1, server="10.77.0.2", start_mono_ns=0):
    return {"start_mono_ns": start_mono_ns, "seconds": seconds, "server": server, "groups": groups}


def serve(pair, directory, ports):
    child = pair.start("b", sys.executable, "-m", "hosts.traffic.servers", "--ports", ports, "--results", directory)
    assert child.stdout.readline() == "ready\n", child.stderr.read()
    return child


def play(pair, directory, plan, status=0):
    """Plays a plan. Returns the errors, and the contents of traffic.json (None if there is none)."""
    client = start(pair, directory, "long_flows", plan)
    _, errors = client.communicate(timeout=SECONDS)
    assert client.returncode == status, errors
    traffic = directory / "client/traffic.json"
    return errors, json.loads(traffic.read_text()) if traffic.exists() else None


def test_long_flows__two_groups_have_the_promised_ports_and_files(pair, tmp_path):
    server_results, results = tmp_path / "server", tmp_path / "client"
    server = serve(pair, server_results, "5201,5202")
    start_ns = planned_ns(lambda: pair.python("a", "hosts.traffic.long_flows", "--help"))
    plan = plan_of(group("cubic", 4, 0), group("reno", 3, 1), seconds=2, start_mono_ns=start_ns)
    errors, traffic = play(pair, tmp_path, plan)
    assert (errors, traffic["errors"]) == ("", [])
    server.send_signal(signal.SIGTERM)
    assert server.wait(SECONDS) == 0

    assert [(f["id"], f["cc"], f["src_port"], f["dst_port"]) for f in traffic["flows"]] == [
        *((i, "cubic", 30000 + i, 5201) for i in range(4)),
        *((4 + i, "reno", 31000 + i, 5202) for i in range(3)),
    ]
    assert {(f["src_addr"], f["dst_addr"]) for f in traffic["flows"]} == {("10.77.0.1", "10.77.0.2")}
    for each in traffic["groups"]:
        client = json.loads((results / each["iperf3_json"]).read_text())
        ports = [stream["local_port"] for stream in client["start"]["connected"]]
        assert ports == list(range(each["first_client_port"], each["first_client_port"] + each["flows"]))
        assert client["end"]["sender_tcp_congestion"] == each["cc"]
        assert each["exit_status"] == 0
        assert each["bits_per_second_received"] > 1e6
        assert start_ns <= each["started_mono_ns"] <= each["connected_mono_ns"] < each["ended_mono_ns"]
        goodput = json.loads((server_results / f"iperf3-server-{each['server_port']}.json").read_text())
        assert len(goodput["intervals"]) >= 6  # without --interval there would be 2
        assert max(interval["sum"]["bits_per_second"] for interval in goodput["intervals"]) > 1e6
    assert traffic["planned_start_mono_ns"] == start_ns
    assert 0 <= traffic["first_started_mono_ns"] - start_ns < 5_000_000_000
    assert traffic["start_mono_ns"] == max(each["connected_mono_ns"] for each in traffic["groups"])
    assert traffic["start_mono_ns"] < traffic["end_mono_ns"] <= traffic["start_mono_ns"] + 2_000_000_000
    names = ["iperf3-cubic-0.json", "iperf3-reno-1.json", "traffic.json"]
    assert sorted(path.name for path in results.iterdir()) == names
    assert running(pair, "iperf3") == []


def test_long_flows__more_than_128_are_several_processes_over_ipv6_and_overwrite_nothing(pair, tmp_path):
    serve(pair, tmp_path / "server", "5201,5202")
    plan = plan_of(group("cubic", 130, 0), server="fd77::2")
    _, traffic = play(pair, tmp_path, plan)
    processes = [(128, 5201, 0), (2, 5202, 0)]
    assert [(g["flows"], g["server_port"], g["exit_status"]) for g in traffic["groups"]] == processes
    assert [f["src_port"] for f in traffic["flows"]] == list(range(30000, 30130))
    assert traffic["flows"][0]["src_addr"] == "fd77::1"
    assert "a result is never overwritten" in play(pair, tmp_path, plan, status=1)[0]
    # The servers serve again, and keep the earlier results.
    wait_until(lambda: pair.run("b", "ss", "-tlnH").stdout.count(":520") == 2)
    (tmp_path / "again").mkdir()
    play(pair, tmp_path / "again", plan)
    wait_until(lambda: (tmp_path / "server/iperf3-server-5201-1.json").exists())
    assert (tmp_path / "server/iperf3-server-5201.json").exists()


def test_long_flows__failure_of_one_ends_all_and_is_in_iperf3s_words(pair, tmp_path):
    serve(pair, tmp_path / "server", "5201")  # nobody listens on 5202
    errors, traffic = play(pair, tmp_path, plan_of(group("cubic", 2, 0), group("reno", 1, 1), seconds=90), status=2)
    expected = "iperf3-reno-1.json: iperf3 to port 5202: unable to connect to server: Connection refused"
    assert (errors, traffic["errors"]) == (f"long_flows: {expected}\n", [expected])
    wait_until(lambda: len(running(pair, "iperf3")) <= 1)  # the server waits for the next test
    (tmp_path / "unknown").mkdir()
    errors, _ = play(pair, tmp_path / "unknown", plan_of(group("nosuch", 1, 0)), status=2)
    assert "iperf3 to port 5201: unable to set TCP_CONGESTION" in errors


def test_long_flows__a_signal_or_a_kill_ends_every_client(pair, tmp_path):
    server = serve(pair, tmp_path / "server", "5201")
    busy = pair.python("b", "hosts.traffic.servers", "--ports", "5202,5201", "--results", tmp_path / "x", check=False)
    assert (busy.returncode, busy.stderr.partition(":")[0]) == (1, "servers")
    assert "port 5201 is busy" in busy.stderr
    client = start(pair, tmp_path, "long_flows", plan_of(group("cubic", 2, 0), seconds=240))
    wait_until(lambda: sending(pair, 3))  # the control connection, too
    assert end(client, signal.SIGTERM) == "long_flows: ended by SIGTERM before its time"
    assert json.loads((tmp_path / "client/traffic.json").read_text())["errors"] != []
    wait_until(lambda: len(running(pair, "iperf3")) <= 1)

    (tmp_path / "killed").mkdir()
    client = start(pair, tmp_path / "killed", "long_flows", plan_of(group("cubic", 2, 0), seconds=240))
    wait_until(lambda: sending(pair, 3))
    os.kill(client.pid, signal.SIGKILL)
    os.kill(server.pid, signal.SIGKILL)
    wait_until(lambda: running(pair, "iperf3") == [])


def test_idle_rtt__is_that_of_the_path_or_says_that_nobody_answers(pair, tmp_path):
    for address in ("10.77.0.2", "fd77::2"):
        output = tmp_path / f"{address}.json"
        pair.python("a", "hosts.traffic.idle_rtt", address, "--output", output)
        values = json.loads(output.read_text())
        assert len(values["samples_ns"]) == values["sent"] == 20
        assert values["lost"] == 0
        assert 0 < values["min_ns"] == min(values["samples_ns"]) <= values["median_ns"] < 1_000_000_000
    pair.run("b", "sysctl", "-qw", "net.ipv4.icmp_echo_ignore_all=1")
    words = ["10.77.0.2", "--output", tmp_path / "none.json", "--samples", 2, "--timeout-s", 0.2]
    done = pair.python("a", "hosts.traffic.idle_rtt", *words, check=False)
    assert done.returncode == 2
    assert "10.77.0.2 answered none of 2 echo requests" in done.stderr
    assert not (tmp_path / "none.json").exists()
