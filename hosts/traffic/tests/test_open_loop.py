# SPDX-License-Identifier: MIT
"""open_loop draws the intended schedule (pure tests), and sends exactly that schedule on time (in namespaces)."""

import functools
import json
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from analysis.theory import packet_sizes, short_flows
from hosts.tests.patience import planned_ns
from hosts.tests.processes import refused
from hosts.traffic import child, open_loop
from hosts.traffic.tests.test_epoll_flows import Sink
from lib.frames import ETHERNET_BYTES, WIRE_EXTRA_BYTES

built = pytest.mark.skipif(not (child.BUILD / "open_loop").exists(), reason="not built: open_loop (make build)")
PLAN = {
    "duration_ns": 200_000_000, "server": "10.77.0.2", "server_port": 5201, "first_client_port": 30000, "flows": 4,
    "rate_bps": 10_000_000, "load_ppm": 500_000, "arrivals": "poisson", "sizes": "exponential", "seed": 3,
}  # fmt: skip


@functools.cache
def schedule(**options):
    """Rows of (ns, IP bytes, flow) that `open_loop --show` prints."""
    options = {"rate-bps": 10**9, "load-ppm": 800_000, "duration-ns": 10**9, **options}
    words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    done = subprocess.run([child.BUILD / "open_loop", "--show", *words], capture_output=True, text=True, check=True)
    return np.fromstring(done.stdout, dtype=np.int64, sep=" ").reshape(-1, 3)


@built
def test_schedule__depends_on_the_seed():
    seed_1 = schedule(seed=1, sizes="exponential", flows=5)
    assert seed_1[:5].tolist() == schedule(seed=1, sizes="exponential", flows=5, duration_ns=10**7)[:5].tolist()
    seed_2 = schedule(seed=2, sizes="exponential", flows=5)
    assert (seed_1[:100] != seed_2[:100]).any(axis=0).all()
    # The number of flows does not change times and sizes.
    assert (schedule(seed=1, sizes="exponential", flows=50)[:, :2] == seed_1[:, :2]).all()


@built
def test_schedule__has_the_sizes_and_the_load_of_the_theory():
    for sizes, mtu in (("fixed", 9000), ("exponential", 1500), ("exponential", 9000), ("bimodal", 1500)):
        drawn = schedule(seed=4, sizes=sizes, mtu=mtu, duration_ns=2 * 10**9)
        values, probabilities = packet_sizes.packet_sizes(sizes, mtu)
        mean, square = (np.dot(values.astype(float) ** power, probabilities) for power in (1, 2))
        assert drawn[:, 1].min() >= values[0]
        assert drawn[:, 1].max() <= values[-1]
        assert drawn[:, 1].mean() == pytest.approx(mean, rel=0.01)
        assert (drawn[:, 1].astype(float) ** 2).mean() == pytest.approx(square, rel=0.015)
        offered = (drawn[:, 1] + ETHERNET_BYTES + WIRE_EXTRA_BYTES).sum() * 8 / 2e9
        assert offered == pytest.approx(0.8, rel=0.015)


@built
def test_schedule__poisson_gaps_are_exponential_and_independent():
    times = schedule(seed=5, duration_ns=3 * 10**9)[:, 0]
    gaps = np.diff(times).astype(float)
    mean = 1538 * 8 / 0.8
    assert len(gaps) > 190_000
    assert gaps.mean() == pytest.approx(mean, rel=0.01)
    assert gaps.std() == pytest.approx(mean, rel=0.01)
    for quantile in (0.1, 0.5, 0.9, 0.99):
        assert np.quantile(gaps, quantile) == pytest.approx(-mean * np.log1p(-quantile), rel=0.03)
    assert abs(np.corrcoef(gaps[1:], gaps[:-1])[0, 1]) < 0.01
    counts = np.bincount(times // 1_000_000)
    assert counts.var() / counts.mean() == pytest.approx(1, abs=0.1)


@built
def test_schedule__cbr_gaps_are_equal_and_flows_uniform():
    drawn = schedule(arrivals="cbr", flows=3)
    assert set(np.diff(drawn[:, 0])) == {15380}
    assert drawn[:4, 2].tolist() == [0, 1, 2, 0]
    shares = np.bincount(schedule(seed=6, flows=7)[:, 2]) / len(schedule(seed=6, flows=7))
    assert shares == pytest.approx([1 / 7] * 7, rel=0.05)


def by_flow(drawn, flows):
    return [drawn[drawn[:, 2] == flow, 0] for flow in range(flows)]


@built
def test_schedule__periodic_gaps_are_exact_and_phases_come_from_the_seed():
    flows = 10
    drawn = schedule(arrivals="periodic", flows=flows, seed=1)  # each flow sends a packet every 10 gaps of 15380 ns
    assert (np.diff(drawn[:, 0]) >= 0).all()
    each = by_flow(drawn, flows)
    assert {int(gap) for times in each for gap in np.diff(times)} == {153800}
    phases = [int(times[0]) for times in each]
    assert max(phases) < 153800
    assert len(set(phases)) == flows
    assert (schedule(arrivals="periodic", flows=flows, seed=1, duration_ns=10**8) == drawn[drawn[:, 0] < 10**8]).all()
    other = [int(times[0]) for times in by_flow(schedule(arrivals="periodic", flows=flows, seed=2), flows)]
    assert all(one != another for one, another in zip(phases, other, strict=True))
    many = np.sort(schedule(arrivals="periodic", flows=2000, seed=3)[:2000, 0] / (2000 * 15380))
    assert np.abs(many - (np.arange(2000) + 0.5) / 2000).max() < 1.63 / np.sqrt(2000)  # Kolmogorov-Smirnov, 1 %


@built
def test_schedule__a_round_has_its_packets_at_their_spacing():
    flows, packets, round_ns = 5, 8, 5 * 8 * 15380
    for spacing_ppm, spacing_ns in ((1_000_000, 12304), (2_500_000, 30760), (None, 5 * 15380)):
        for arrivals in ("periodic", "jittered"):
            more = {} if spacing_ppm is None else {"spacing_ppm": spacing_ppm}
            drawn = schedule(arrivals=arrivals, flows=flows, round_packets=packets, seed=4, **more)
            for times in by_flow(drawn, flows):
                rounds = times[: len(times) // packets * packets].reshape(-1, packets)
                assert np.abs(np.diff(rounds, axis=1) - spacing_ns).max() <= (arrivals == "jittered")  # ns rounded down
                phases = rounds[:, 0] - np.arange(len(rounds)) * round_ns
                if arrivals == "periodic":
                    assert len(set(phases)) == 1
                    continue
                assert len(set(phases)) > 0.95 * len(phases)
                if spacing_ppm is None:
                    assert (phases >= 0).all()
                    assert (phases < spacing_ns).all()
                    assert phases.mean() == pytest.approx(spacing_ns / 2, rel=0.05)
                else:
                    assert np.diff(times).min() >= spacing_ns - 1
                    most_ns = min(round_ns / 2, round_ns - packets * spacing_ns)
                    moves = np.diff(phases)
                    assert np.abs(moves).max() <= most_ns + 1
                    assert moves.std() == pytest.approx(most_ns / np.sqrt(3), rel=0.05)


@built
@pytest.mark.parametrize(
    ("arrivals", "spacing_ppm"),  # a fifth and a half of the widest spacing
    [("periodic", 250_000_000), ("jittered", 100_000_000)],
)
def test_schedule__bursts_are_due_at_all_parts_of_a_round_alike(arrivals: str, spacing_ppm: int):
    """If all packets of a flow had to fit into the round, the middle of a round would be denser than its ends: twice
    the mean density if a flow's packets take half of the round.
    """
    flows, packets = 400, 8
    drawn = schedule(
        arrivals=arrivals, flows=flows, round_packets=packets, seed=5, spacing_ppm=spacing_ppm, duration_ns=10**10
    )
    round_ns = flows * packets * 15380
    late = drawn[drawn[:, 0] >= round_ns, 0]  # the first round lacks packets that an earlier round would leave
    late = late[late < late[0] + (late[-1] - late[0]) // round_ns * round_ns]
    share = np.histogram(late % round_ns, bins=8, range=(0, round_ns))[0] / len(late) * 8
    assert np.abs(share - 1).max() < 0.2


def bursts_of(drawn):
    """Rows of (ns, packets, flow). A burst is all packets of one flow and ns; no two bursts of a flow share a ns."""
    starts = np.flatnonzero(np.r_[True, (np.diff(drawn[:, [0, 2]], axis=0) != 0).any(axis=1)])
    return np.column_stack((drawn[starts, 0], np.diff(np.r_[starts, len(drawn)]), drawn[starts, 2]))


@built
@pytest.mark.parametrize("packets", [3, 14, 1000])
def test_schedule__bursts_are_those_of_slow_start_at_poisson_times(packets):
    drawn = schedule(seed=8, sizes="bursts", flow_packets=packets, flows=9, rate_bps=10**7, duration_ns=10**12)
    assert set(drawn[:, 1]) == {1500}
    bursts = bursts_of(drawn)[:-1]  # the end of the run may cut the last burst
    expected = short_flows.slow_start_bursts(packets)
    for size in set(expected):
        share = expected.count(size) / len(expected)
        deviation = np.sqrt(share * (1 - share) / len(bursts))
        assert abs((bursts[:, 1] == size).mean() - share) <= 4 * deviation, size
    assert set(bursts[:, 1]) == set(expected)
    mean_ns = packets / len(expected) * 1538 * 8 * 100 / 0.8
    gaps = np.diff(bursts[:, 0]).astype(float)
    error = 4 / np.sqrt(len(gaps))
    assert gaps.mean() == pytest.approx(mean_ns, rel=error)
    for quantile in (0.1, 0.5, 0.9):
        assert (gaps <= -mean_ns * np.log1p(-quantile)).mean() == pytest.approx(quantile, abs=error)
    assert abs(np.corrcoef(gaps[1:], bursts[1:-1, 1])[0, 1]) < error
    assert set(bursts[:, 2]) == set(range(9))


@built
def test_schedule__bursts_of_cbr_have_equal_gaps_and_those_of_one_packet_are_fixed_packets():
    bursts = bursts_of(schedule(arrivals="cbr", flows=3, sizes="bursts", flow_packets=14))
    assert set(np.diff(bursts[:, 0])) <= {71773, 71774}  # 14 / 3 packets of 15380 ns
    assert bursts[:4, 2].tolist() == [0, 1, 2, 0]
    single = schedule(seed=3, sizes="bursts", flow_packets=1, flows=4)
    assert (single == schedule(seed=3, sizes="fixed", flows=4)).all()


RECORDED = [(0, 1500, 0, 0), (5, 100, 1, 2), (5, 60, 0, 2), (700, 46, 1, 0)]  # ns, IP bytes, flow, ECN


def recorded(directory: Path, packets=RECORDED, cut=0) -> Path:
    data = b"".join(struct.pack("<QHHB3x", *packet) for packet in packets)
    (directory / "departures.bin").write_bytes(data[: len(data) - cut])
    return directory / "departures.bin"


@built
def test_schedule__recorded_packets_are_those_of_the_file(tmp_path):
    options = {"arrivals": "recorded", "flows": 2, "departures": recorded(tmp_path)}
    assert schedule(**options).tolist() == [list(packet[:3]) for packet in RECORDED]
    assert len(schedule(**options, duration_ns=700)) == 3


@built
@pytest.mark.parametrize(
    ("packets", "cut"),
    [
        (RECORDED, 1),
        ([(5, 60, 0, 0), (4, 60, 0, 0)], 0),
        ([(0, 1501, 0, 0)], 0),
        ([(0, 60, 2, 0)], 0),
        ([(0, 60, 0, 4)], 0),
    ],
)
def test_schedule__wrong_recorded_packets_are_refused(packets, cut, tmp_path):
    file = recorded(tmp_path, packets, cut)
    words = f"--rate-bps 1 --load-ppm 1 --duration-ns 999 --flows 2 --arrivals recorded --departures {file} --show"
    done = subprocess.run([child.BUILD / "open_loop", *words.split()], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"open_loop: {file}: packet {len(packets) - 1} ")


@built
def test_open_loop__bad_options_are_one_line():
    for options in (
        ["--sizes", "pareto"],
        ["--sizes", "bursts"],
        ["--flow-packets", "1001", "--sizes", "bursts"],
        ["--flow-packets", "14"],
        ["--arrivals", "burst"],
        ["--sizes", "bimodal", "--arrivals", "periodic"],
        ["--arrivals", "recorded"],
        ["--departures", "departures.bin"],
        ["--departures", "/nowhere", "--arrivals", "recorded"],
        ["--round-packets", "3"],
        ["--spacing-ppm", "3", "--arrivals", "cbr"],
        ["--spacing-ppm", "1300000", "--arrivals", "periodic", "--load-ppm", "800000"],
        ["--mtu", "45"],
        ["--first-client-port", "65000", "--flows", "1000"],
        ["extra"],
    ):
        words = [str(child.BUILD / "open_loop"), "--show", "--rate-bps", "1", "--load-ppm", "1", "--duration-ns", "1"]
        assert options[0] in refused(*words, *options), options


def test_plan__arrivals_are_read_whole():
    read = open_loop.read_arrivals
    assert read("periodic") == open_loop.Arrivals("periodic", None, None)
    assert read("jittered:64p:2.5") == open_loop.Arrivals("jittered", 64, 2_500_000)
    bad = ("cbr:3p", "periodic:", "periodic:0p", "periodic:3", "periodic:3p:0", "periodic:1000001p", "jittered:3p:", 3)
    assert [value for value in bad if read(value)] == []
    group = open_loop.parse({**PLAN, "arrivals": "jittered:8p:1.5", "sizes": "fixed"}).group
    words = " ".join(open_loop.arguments(group, "::1", 0, 1, Path("x")))
    assert "--arrivals jittered " in words
    assert words.endswith("--round-packets 8 --spacing-ppm 1500000")


def send(pair, directory, check=True, **more):
    path = directory / "plan.json"
    path.write_text(json.dumps({**PLAN, **more}))
    done = pair.python("a", "hosts.traffic.open_loop", path, directory / "client", check=check)
    traffic = directory / "client/traffic.json"
    return done, json.loads(traffic.read_text()) if traffic.exists() else None


@pytest.mark.software
@built
class TestSending:
    def test_datagrams__are_those_of_the_schedule_and_all_are_counted(self, pair, tmp_path):
        sink = Sink(pair, tmp_path, "--udp", "5201")
        start_ns = planned_ns(lambda: pair.python("a", "hosts.traffic.open_loop", "--help"))
        done, traffic = send(pair, tmp_path, server="fd77::2", start_mono_ns=start_ns)
        summary, records = sink.stop()
        drawn = schedule(
            rate_bps=10**7, load_ppm=500_000, duration_ns=200_000_000, sizes="exponential", seed=3, flows=4
        )
        assert (done.stderr, traffic["errors"]) == ("", [])
        assert (traffic["start_mono_ns"], traffic["end_mono_ns"]) == (start_ns, start_ns + 200_000_000)
        assert [flow["datagrams"] for flow in traffic["flows"]] == np.bincount(drawn[:, 2]).tolist()
        sent = traffic["open_loop"]
        assert (sent["datagrams"], sent["unsent"]) == (len(drawn), 0)
        assert sum(count for _, count in sent["lateness_ns"]) == len(drawn)
        headers = 48
        ip_bytes = np.maximum(drawn[:, 1], headers).sum()
        assert sent["ip_bytes"] == ip_bytes
        received = {flow["src_port"]: flow for flow in summary["flows"]}
        assert {port: flow["reads"] for port, flow in received.items()} == {
            30000 + index: count for index, count in enumerate(np.bincount(drawn[:, 2]).tolist())
        }
        assert sum(flow["bytes"] for flow in received.values()) == ip_bytes - headers * len(drawn)
        assert sum(record["payload_bytes"] for record in records) == ip_bytes - headers * len(drawn)
        assert summary["datagrams_dropped"] == 0
        assert all(flow["protocol"] == "udp" for flow in received.values())

    def test_a_missing_sink_or_a_packet_that_does_not_fit__is_an_error(self, pair, tmp_path):
        done, traffic = send(pair, tmp_path, check=False)
        assert (done.returncode, traffic["groups"][0]["exit_status"]) == (2, 2)
        assert "Connection refused; is traffic_sink running there?" in done.stderr
        Sink(pair, tmp_path, "--udp", "5201")
        (tmp_path / "large").mkdir()
        done, _ = send(pair, tmp_path / "large", check=False, sizes="fixed", mtu_bytes=9000)
        assert done.returncode == 2
        assert "Message too long; is the MTU smaller than --mtu?" in done.stderr
