# SPDX-License-Identifier: MIT
"""tcp_flows and traffic_sink between two namespaces: exact times, every byte counted, errors reported, clean end."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from hosts.tests.patience import SECONDS, planned_ns, wait_until
from hosts.tests.processes import refused
from hosts.traffic import child, epoll_flows
from hosts.traffic.plan import parse
from wire.wire import BLOCK, GOODPUT_RECORD, read_blocks

NOBODY = 65534
LONG_NS = 240_000_000_000  # duration of flows that a test ends early
PROGRAMS = ("tcp_flows", "traffic_sink")
unbuilt = [name for name in PROGRAMS if not (child.BUILD / name).exists()]
software = [
    pytest.mark.software,
    pytest.mark.skipif(bool(unbuilt), reason=f"not built: {', '.join(unbuilt)} (make build)"),
]


def group(cc, flows, number):
    return {"cc": cc, "flows": flows, "server_port": 5201 + number, "first_client_port": 30000 + 1000 * number}


def plan_of(*groups, **more):
    plan = {"generator": "epoll", "duration_ns": 300_000_000, "server": "10.77.0.2", "groups": list(groups)}
    return {**plan, **more}


def flows_of(pair, directory, *groups, check=True, **more):
    """Runs a plan. Returns the finished process and the contents of traffic.json (None if there is none)."""
    path = directory / "plan.json"
    path.write_text(json.dumps(plan_of(*groups, **more)))
    done = pair.python("a", "hosts.traffic.long_flows", path, directory / "client", check=check)
    traffic = directory / "client/traffic.json"
    return done, json.loads(traffic.read_text()) if traffic.exists() else None


class Sink:
    """A running traffic_sink on side b."""

    def __init__(self, pair, directory, *endpoints, interval_ns=10_000_000):
        self.output, self.summary = directory / "goodput.bsg", directory / "traffic_sink.json"
        words = ["--interval-ns", interval_ns, "--output", self.output, "--summary", self.summary, *endpoints]
        self.child = pair.start("b", child.BUILD / "traffic_sink", *words)
        assert self.child.stdout.readline() == "ready\n", self.child.stderr.read()

    def stop(self):
        """Ends the sink. Returns its summary and the records of its file."""
        self.child.send_signal(signal.SIGTERM)
        assert self.child.wait(SECONDS) == 0, self.child.stderr.read()
        return self.results()

    def results(self):
        blocks = read_blocks(self.output.read_bytes(), BLOCK.const["BLOCK_GOODPUT"])
        size = GOODPUT_RECORD.length
        records = [
            GOODPUT_RECORD.decode(block.payload[at : at + size])
            for block in blocks
            for at in range(0, len(block.payload), size)
        ]
        return json.loads(self.summary.read_text()), records


def running(pair, name) -> list[str]:
    """Processes called `name` in the namespaces of the pair."""
    inodes = {Path(pair.path(side)).stat().st_ino for side in ("a", "b")}
    pids = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if (path / "comm").read_text() == f"{name}\n" and (path / "ns/net").stat().st_ino in inodes:
                pids.append(path.name)
        except OSError:
            continue
    return pids


def sending(pair, flows, side="a") -> bool:
    """Whether at least `flows` connections of the side have sent data."""
    return pair.run(side, "ss", "-tinH").stdout.count("data_segs_out:") >= flows


def test_plan__of_epoll_is_not_split_and_has_its_own_keys():
    plan = parse(plan_of(group("cubic", 300, 0), start_spread_ns=5, seed=7))
    assert [(p.flows, p.server_port) for p in plan.processes] == [(300, 5201)]
    assert (plan.duration_ns, plan.connect_interval_ns, plan.drain_ns) == (300_000_000, 100_000, 0)


def test_offsets__are_those_of_the_seed_and_cover_the_spread():
    def offsets(**more):
        return epoll_flows.offsets_ns(parse(plan_of(group("cubic", 500, 0), **more)))

    drawn = offsets(start_spread_ns=1_000_000, seed=3)
    assert drawn == offsets(start_spread_ns=1_000_000, seed=3) != offsets(start_spread_ns=1_000_000, seed=4)
    assert 0 <= min(drawn) < 20_000
    assert 980_000 < max(drawn) <= 1_000_000
    assert offsets() == [0] * 500


def test_plan__bounds_windows_and_paces_all_groups_but_those_that_say_otherwise():
    own = {"window_segments": 0, "pacing": False, "ecn": True, "buffer_bytes": 65536}
    plan = plan_of(group("cubic", 2, 0), {**group("reno", 1, 1), **own}, pacing=True, window_segments=32)
    settings = [line.split(maxsplit=6)[6].strip() for line in epoll_flows.flow_lines(parse(plan))]
    assert settings == ["window=32 pacing", "window=32 pacing", "buffer=65536 ecn"]


def test_flow_lines__times_of_groups_move_no_draw_of_others():
    sizes, think = {"name": "exponential", "mean": 5000}, {"name": "exponential", "mean": 10_000_000}
    of_finite = {"kind": "finite", "cc": "reno", "first_server_port": 6001, "sizes": sizes, "mean_gap_ns": 5e6}
    of_users = {"kind": "closed-loop", "cc": "reno", "first_server_port": 6002, "sizes": sizes, "users": 3}
    of_users["think"] = think
    more = {"start_spread_ns": 1000, "seed": 3}

    def lines(*times):
        long, other, finite, users = ({"start_ns": start, "stop_ns": stop} for start, stop in times)
        groups = [{**group("cubic", 2, 0), **long}, {**group("bbr", 2, 1), **other}]
        plan = parse(plan_of(*groups, transfers=[of_finite | finite, of_users | users], **more))
        words = [line.split() for line in epoll_flows.flow_lines(plan)]
        assert max(epoll_flows.offsets_ns(plan)) == spread_ns
        return {port: [(int(line[3]), *line[4:]) for line in words if line[2] == str(port)]
                for port in (5201, 5202, 6001, 6002)}  # fmt: skip

    spread_ns = max(epoll_flows.offsets_ns(parse(plan_of(group("cubic", 4, 0), **more))))
    none = (0, 0)
    plain = lines(none, none, none, none)
    begin_ns, end_ns = spread_ns + 50_000_000, spread_ns + 120_000_000
    timed = lines(none, (50_000_000, 120_000_000), (50_000_000, 120_000_000), (50_000_000, 120_000_000))
    assert timed[5201] == plain[5201]
    assert timed[5202] == [(begin_ns + at, *rest, "late", f"stop={end_ns}") for at, *rest in plain[5202]]
    same = [(begin_ns + at, *rest, f"stop={end_ns}") for at, *rest in plain[6001] if begin_ns + at < end_ns]
    assert timed[6001] == same
    assert 5 < len(same) < len(plain[6001])
    firsts = {user: (at, size) for at, size, user in reversed(plain[6002])}
    assert {user: (at, size) for at, size, user, _ in reversed(timed[6002])} == {
        user: (begin_ns + at, size) for user, (at, size) in firsts.items() if at < 70_000_000
    }
    assert lines((0, 9), none, none, none)[5201] == [(*line, f"stop={spread_ns + 9}") for line in plain[5201]]


@pytest.mark.skipif(bool(unbuilt), reason="not built")
def test_tcp_flows__bad_input_is_one_line(tmp_path):
    complete = ["--server", "127.0.0.1", "--duration-ns", "1", "--report", tmp_path / "r.json"]
    flow = "cubic 1 2 0 9 1"
    for options, lines, named in (
        ([], "", "--server"),
        (["--duration-ns", "0"], "", "--duration-ns"),
        (complete, "", "standard input names no flow"),
        (complete, "cubic 1 2 0 0 0\ncubic 70000 2 0 0 0\n", "line 2"),
        (complete, "cu-bic 1 2 0 0 0\n", "line 1"),
        (complete, "cubic 1 2 0 0 1\n", "line 1"),
        (complete, f"{flow} from=10.0.0.256\n", "line 1"),
        (complete, f"{flow} 10.0.0.1\n", "line 1"),
        (complete, f"{flow} window=0\n", "line 1"),
        (complete, f"{flow} window=32 paced\n", "line 1"),
        (complete, f"{flow} buffer=4294967296\n", "line 1"),
        (complete, f"{flow} late\n", "line 1"),  # of long flows only
        (complete, f"{flow} stop=0\n", "line 1"),
        (complete, "".join(f"{flow} from=10.0.{n >> 8}.{n & 255}\n" for n in range(1025)), "line 1025"),
        (complete, "c" * 300, "line 1"),
        (complete, "cubic 1 2 0 0 0 window=32\n", "/dev/bufferscope-traffic"),  # only in the virtual-time kernel
    ):
        assert named in refused(child.BUILD / "tcp_flows", *options, input=lines), lines
    assert list(tmp_path.iterdir()) == []


def start(pair, directory, module, plan):
    """Starts a generator on side a; its results will be in directory/client."""
    path = directory / "plan.json"
    path.write_text(json.dumps(plan))
    return pair.start("a", sys.executable, "-m", f"hosts.traffic.{module}", path, directory / "client")


def end(process, number):
    """Sends a signal, and returns the first line of the errors of a generator that ends in order."""
    process.send_signal(number)
    _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 2
    return errors.splitlines()[0]


class TestFlows:
    pytestmark = software

    def test_flows__of_root_and_its_sink_report_into_directories_of_another_user(self, pair):
        """Under sudo a run's directory belongs to the caller, and in a virtual machine to the host's user."""
        with tempfile.TemporaryDirectory() as directory:
            top = Path(directory)
            (top / "client").mkdir()
            for path in (top, top / "client"):
                os.chown(path, NOBODY, NOBODY)
            sink = Sink(pair, top, "--tcp", "5201=cubic")
            _, traffic = flows_of(pair, top, group("cubic", 1, 0), duration_ns=100_000_000)
            assert traffic["errors"] == []
            assert len(sink.stop()[0]["flows"]) == 1

    def test_flows__run_from_the_planned_ns_to_the_planned_ns(self, pair, tmp_path):
        sink = Sink(pair, tmp_path, "--tcp", "5201=cubic", "--tcp", "5202=reno")
        duration_ns, groups = 1_000_000_000, (group("cubic", 100, 0), group("reno", 3, 1))
        first_ns = planned_ns(lambda: pair.python("a", "hosts.traffic.long_flows", "--help"))
        more = {"start_mono_ns": first_ns, "duration_ns": duration_ns, "drain_ns": 2_000_000_000, "server": "fd77::2"}
        more |= {"start_spread_ns": 100_000_000, "seed": 5}
        done, traffic = flows_of(pair, tmp_path, *groups, **more)
        assert (done.stderr, traffic["errors"]) == ("", [])
        summary, records = sink.stop()

        offsets = epoll_flows.offsets_ns(parse(plan_of(*groups, **more)))
        start_ns = first_ns + max(offsets)
        assert (traffic["start_mono_ns"], traffic["end_mono_ns"]) == (start_ns, start_ns + duration_ns)
        assert 0 <= traffic["last_ended_mono_ns"] - traffic["end_mono_ns"] < 5_000_000_000
        assert [(f["id"], f["cc"], f["src_addr"], f["src_port"], f["dst_port"]) for f in traffic["flows"]] == [
            *((i, "cubic", "fd77::1", 30000 + i, 5201) for i in range(100)),
            *((100 + i, "reno", "fd77::1", 31000 + i, 5202) for i in range(3)),
        ]
        processes = [("cubic", 100, 0), ("reno", 3, 0)]
        assert [(g["cc"], g["flows"], g["exit_status"]) for g in traffic["groups"]] == processes
        for flow, offset_ns in zip(traffic["flows"], offsets, strict=True):
            assert first_ns + offset_ns <= flow["started_mono_ns"] < start_ns + duration_ns

        received = {flow["src_port"]: flow for flow in summary["flows"]}
        assert {flow["end"] for flow in received.values()} == {"reset"}
        in_intervals = dict.fromkeys(received, 0)
        for record in records:
            assert record["interval_mono_ns"] % 10_000_000 == 0
            ended_ns = received[record["src_port"]]["ended_mono_ns"]
            assert first_ns - 10_000_000 < record["interval_mono_ns"] <= ended_ns
            in_intervals[record["src_port"]] += record["payload_bytes"]
        for flow in traffic["flows"]:
            total = received[flow["src_port"]]["bytes"]
            assert in_intervals[flow["src_port"]] == total
            assert 0 < flow["bytes_acked"] <= total
        assert len({record["interval_mono_ns"] for record in records}) >= 10
        # nothing is sent after the drain but RSTs
        assert max(record["interval_mono_ns"] for record in records) < traffic["end_mono_ns"] + 1_000_000_000
        assert all(flow["ended_mono_ns"] > traffic["end_mono_ns"] + 2_000_000_000 for flow in summary["flows"])
        assert "ESTAB" not in pair.run("b", "ss", "-tn").stdout

    def test_flows__ecn_is_asked_for_by_its_groups_and_checked(self, pair, tmp_path):
        """With groups that ask and groups that do not, tcp_flows sets net.ipv4.tcp_ecn before each connection, and
        restores it at the end.
        """
        Sink(pair, tmp_path, "--tcp", "5201-5202")
        pair.run("a", "sysctl", "-qw", "net.ipv4.tcp_ecn=0")
        done, _ = flows_of(pair, tmp_path, group("cubic", 1, 0), ecn=True, check=False)
        assert done.returncode == 2
        assert "ECN was not negotiated: net.ipv4.tcp_ecn" in done.stderr
        (tmp_path / "some").mkdir()
        groups = [{**group("cubic", 2, 0), "ecn": True}, group("cubic", 2, 1)]
        assert flows_of(pair, tmp_path / "some", *groups)[1]["errors"] == []
        assert pair.run("a", "sysctl", "-n", "net.ipv4.tcp_ecn").stdout.strip() == "0"

    def test_flows__a_different_congestion_control_is_an_error(self, pair, tmp_path):
        Sink(pair, tmp_path, "--tcp", "5201")
        done, traffic = flows_of(pair, tmp_path, group("nosuch", 1, 0), check=False)
        assert done.returncode == 2
        assert "flow from port 30000 to 10.77.0.2 port 5201: setting the congestion control nosuch" in done.stderr
        assert traffic["groups"][0]["exit_status"] == 2
        # A route's locked congestion control overrides the socket's.
        pair.run("a", "ip", "route", "replace", "10.77.0.0/24", "dev", "eth0", "congctl", "lock", "reno")
        (tmp_path / "again").mkdir()
        done, _ = flows_of(pair, tmp_path / "again", group("cubic", 1, 0), check=False)
        assert (done.returncode, "its congestion control is reno, not cubic as requested" in done.stderr) == (2, True)

    def test_flows__a_limit_of_open_files_is_named(self, pair, tmp_path):
        words = [child.BUILD / "tcp_flows", "--server", "10.77.0.2", "--duration-ns", 10**6]
        lines = "".join(f"reno {30000 + number} 5201 0 0 0\n" for number in range(100))
        limited = ["setpriv", "--bounding-set=-sys_resource", "prlimit", "--nofile=64:64", *words]
        done = pair.run("a", *limited, "--report", tmp_path / "report.json", input=lines, check=False)
        assert done.returncode != 0
        assert "116 files are needed, this process may open 64: " in done.stderr

    def test_flows__an_address_that_does_not_answer_ends_in_time(self, pair, tmp_path):
        begin = time.monotonic()
        more = {"server": "10.77.0.3", "setup_seconds": 1}
        pair.run("a", "ip", "neighbour", "add", "10.77.0.3", "lladdr", "02:00:00:00:00:01", "dev", "eth0")
        done, _ = flows_of(pair, tmp_path, group("cubic", 7, 0), check=False, **more)
        assert time.monotonic() - begin < 20  # the kernel alone would try for two minutes
        assert done.stderr.count("connecting: no answer within 1.000 s: is the path up?") == 5
        assert "2 more flows failed" in done.stderr

    def test_flows__a_server_that_dies_is_an_error_with_the_ports(self, pair, tmp_path):
        sink = Sink(pair, tmp_path, "--tcp", "5201")
        flows = start(pair, tmp_path, "long_flows", plan_of(group("cubic", 2, 0), duration_ns=LONG_NS))
        wait_until(lambda: sending(pair, 2))
        sink.child.kill()
        _, errors = flows.communicate(timeout=SECONDS)
        assert flows.returncode == 2
        assert "flow from port 3000" in errors
        assert "to 10.77.0.2 port 5201: sending: " in errors

    def test_flows__a_signal_ends_them_with_a_report_and_a_kill_leaves_nothing(self, pair, tmp_path):
        sink = Sink(pair, tmp_path, "--tcp", "5201")
        plan = plan_of(group("cubic", 2, 0), duration_ns=LONG_NS)
        flows = start(pair, tmp_path, "long_flows", plan)
        wait_until(lambda: sending(pair, 2))
        assert end(flows, signal.SIGINT) == "long_flows: ended by SIGINT before its time"
        traffic = json.loads((tmp_path / "client/traffic.json").read_text())
        assert traffic["end_mono_ns"] - traffic["start_mono_ns"] < LONG_NS // 2
        assert all(flow["bytes_acked"] > 0 for flow in traffic["flows"])
        assert running(pair, "tcp_flows") == []

        (tmp_path / "killed").mkdir()
        flows = start(pair, tmp_path / "killed", "long_flows", plan)
        wait_until(lambda: sending(pair, 2))
        os.kill(flows.pid, signal.SIGKILL)
        wait_until(lambda: running(pair, "tcp_flows") == [])
        summary, _ = sink.stop()
        assert len(summary["flows"]) == 4

    def test_sink__empties_its_sockets_before_it_ends(self, pair, tmp_path):
        sink = Sink(pair, tmp_path, "--tcp", "5201")
        sink.child.send_signal(signal.SIGSTOP)
        _, traffic = flows_of(pair, tmp_path, group("cubic", 40, 0))
        sink.child.send_signal(signal.SIGTERM)  # delivered when the sink continues
        sink.child.send_signal(signal.SIGCONT)
        summary, _ = sink.stop()
        received = {flow["src_port"]: flow for flow in summary["flows"]}
        assert {flow["end"] for flow in received.values()} == {"reset"}
        for flow in traffic["flows"]:
            assert 0 < flow["bytes_acked"] <= received[flow["src_port"]]["bytes"]

    def test_sink__a_busy_port_or_an_old_result_is_one_line(self, pair, tmp_path):
        first = Sink(pair, tmp_path, "--tcp", "5201", "--udp", "5301")
        for words, message in (
            (["--tcp", "5201"], "port 5201 is busy"),
            (["--udp", "5301"], "UDP port 5301 is busy"),
            (["--tcp", "5203=nosuch"], "congestion control nosuch on port 5203"),
            (["--tcp", "5203", "--output", first.output], "a result is never overwritten"),
        ):
            output = [] if "--output" in words else ["--output", tmp_path / "other.bsg"]
            words = [child.BUILD / "traffic_sink", *words, *output, "--summary", tmp_path / "other.json"]
            assert message in refused(*pair.words("b", *words))
            assert not (tmp_path / "other.bsg").exists()
        assert first.stop()[0]["flows"] == []

    def test_sink__counts_records_that_a_full_disk_refused(self, pair, tmp_path):
        disk = tmp_path / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "bufferscope-test", str(disk)], check=True)
        try:
            sink = Sink(pair, disk, "--tcp", "5201", interval_ns=20_000)
            flows_of(pair, tmp_path, group("cubic", 20, 0), duration_ns=200_000_000)
            sink.child.send_signal(signal.SIGTERM)
            assert sink.child.wait(SECONDS) == 2
            assert "No space left on device" in sink.child.stderr.read()
            summary, records = sink.results()
            assert summary["records_unwritten"] > 0
            assert summary["records_stored"] == len(records)
            assert len(summary["flows"]) == 20
        finally:
            subprocess.run(["umount", str(disk)], check=True)
