# SPDX-License-Identifier: MIT
"""Groups of a spec file: each with its own congestion control, RTTs, ACK delay, window, ECN, access links and load.
Datagrams beside TCP. In virtual time, delays are exact to the ns.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from analysis.judge.analyse import analyse
from analysis.measure import finite_flows
from analysis.measure.group_results import group_of_flows
from analysis.read.load import Run, load
from controlplane.soft import SourceAddress, SourcePort
from experiments.plan import run_plan
from experiments.spec.keys import load_yaml
from experiments.tests.resolving import resolved
from experiments.tests.test_transfers import repetition
from experiments.tests.test_virtual import run
from model.experiment import Experiment
from model.paths import paths

pytestmark = pytest.mark.long  # all of it uses one dear fixture

MS = 1_000_000
WINDOW, RATE_BPS, ACCESS_BPS = 8, 20_000_000, 2_000_000
SPEC = """
clock: virtual
rate: 20mbit
mode: ecn
buf: 40p
ack_delay: 3ms
rack: off
tlp: off
frto: off
comp_sack_nr: 0
warmup: 0.5s
duration: 2s
groups:
- {cc: cubic, flows: 2, rtt: 10ms}
- {traffic: open-loop, load: 0.3, arrivals: cbr}
- {cc: reno, flows: 1, rtt: 30ms, ack_delay: 20ms, window: 8p, ecn: off, pacing: exact, acks: each}
- {traffic: closed-loop, cc: reno, users: 5, rtts: '20ms,10ms', sizes: 'fixed:20p', think: 'exponential:300ms',
   initcwnd: 3, window: 4p}
- {traffic: closed-loop, cc: cubic, users: 2, rtt: 15ms, ack_delay: 1ms, sizes: 'fixed:20p', think: 'fixed:100ms',
   access: 2mbit, access_links: 1}
- {cc: cubic, flows: 1, rtt: 10ms, ack_delay: 9ms, access: 2mbit}
"""


def given(directory: Path, text: str = SPEC) -> dict[str, Any]:
    file = directory / "groups.yaml"
    file.write_text(text)
    return load_yaml(file)


def test_plan__no_two_groups_share_a_port_or_an_address_and_each_has_its_delays(tmp_path: Path) -> None:
    spec = resolved(**given(tmp_path))
    assert Experiment.model_validate(json.loads(json.dumps(spec.dump()))) == spec
    plan = run_plan.plan_run(spec, 1)
    flows, options = plan.traffic.flows, plan.traffic.options
    assert len({(flow.src_port, flow.dst_port) for flow in flows}) == len(flows) == 5
    assert [flow.access_bps for flow in flows] == [0, 0, 0, ACCESS_BPS, 0]
    assert [(path.rtt_ns // MS, path.access_link) for path in paths(spec)] == [(20, 0), (10, 0), (15, 1)]
    sources = [address for group in options["transfers"] for address in group["sources"]]
    assert len(set(sources)) == len(sources) == 3
    servers = [group["server_port"] for group in (*options["groups"], *options["datagrams"])]
    servers += [group["first_server_port"] for group in options["transfers"]]
    assert len(set(servers)) == 6
    assert [group["ecn"] for group in options["groups"]] == [True, False, True]
    assert [group.get("pacing") for group in options["groups"]] == [None, True, None]
    assert plan.setup["tune_ecn"] == "on"
    settings = plan.settings
    assert settings.shared_links_bps == {1: ACCESS_BPS}
    # The links have the least delay of all groups; groups without an ACK_DELAY have the run's.
    assert (settings.forth_ns, settings.back_ns, spec.idle_rtt_ns) == (1 * MS, 1 * MS, 2 * MS)
    assert [flow.extra_delay_ns // MS for flow in flows] == [6, 6, 9, 0, 0]
    assert plan.stored_spec["extra_delays_ns"] == [0, 0, 20 * MS, 0, 0]
    delays = {key: own.get("delay", 0) // MS for key, own in settings.flow_settings}
    assert [delay for key, delay in delays.items() if isinstance(key, SourceAddress)] == [16, 6, 13]
    ports = {key.src_port: delay for key, delay in delays.items() if isinstance(key, SourcePort)}
    assert ports == {5201: 2, 5202: 19, 5203: 8, 6001: 2}

    real = [{"cc": "reno", "flows": "2", "window": "4p"}, {"cc": "cubic"}, {"traffic": "finite", "window": "2p"}]
    windows = run_plan.plan_run(resolved(clock="real", groups=real), 1).setup["congestion_control_windows"]
    assert windows == ["5201-5201=4", "6001-6001=2"]  # ranges of server ports


def test_plan__a_group_whose_acks_take_longer_leaves_other_groups_their_rtt() -> None:
    """A finite group with one RTT and no access link usually needs no path. This group needs one: its data direction
    has a longer delay than the shared link, whose delay fits the other group.
    """
    finite = {"traffic": "finite", "cc": "reno"}
    spec = resolved(rtt="10ms", groups=[finite, {"cc": "reno", "flows": "1", "ack_delay": "8ms"}])
    assert [(spec.forth_extra_ns(path.rtt_ns, path.ack_delay_ns), path.access_link) for path in paths(spec)] == [
        (3 * MS, 0)
    ]
    assert (spec.least_forth_ns, spec.least_back_ns) == (2 * MS, 5 * MS)
    same = resolved(rtt="10ms", groups=[finite, {"cc": "reno", "flows": "1", "ack_delay": "5ms"}])
    assert (paths(same), same.idle_rtt_ns) == ((), 10 * MS)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("groups")
    given(directory)
    run(directory / "results", f"SPEC={directory / 'groups.yaml'}")
    return repetition(directory / "results")


@pytest.fixture(scope="module")
def summary(recorded: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((recorded / "summary.json").read_text())
    return content


@pytest.fixture(scope="module")
def loaded(recorded: Path) -> Run:
    return load(recorded)


@pytest.mark.virtual
def test_run__accounts_for_each_group_apart(summary: dict[str, Any]) -> None:
    assert summary["reasons"] == []
    groups = summary["groups"]
    assert [group["kind"] for group in groups] == [
        "long", "open-loop", "long", "closed-loop", "closed-loop", "long",
    ]  # fmt: skip
    assert sum(group["goodput_bps"] for group in groups) == pytest.approx(summary["goodput_bps"], rel=1e-12)
    assert sum(group["share"] for group in groups) == pytest.approx(1)
    for name in ("drops", "marks"):
        assert sum(group[name] for group in groups) == summary[name]
    assert groups[1]["offered_fraction"] == pytest.approx(0.3, rel=0.002)
    assert groups[1]["goodput_bps"] == pytest.approx(
        0.3 * RATE_BPS * 1472 / 1538 * (1 - groups[1]["drop_fraction"]), rel=0.01
    )
    assert (summary["rules"]["flows"], summary["rules"]["not_counted"]) == (4, ["open-loop", "closed-loop"])
    ledger = summary["ledger"]
    assert ledger["datagrams_sent"] == ledger["datagrams_queued"] > 0
    assert ledger["datagrams_departed"] == ledger["datagrams_received"]
    assert ledger["flows_begun"] == ledger["flow_rows"]
    classes = [[entry["rtt_ns"] for entry in group.get("by_rtt", ())] for group in summary["finite_flows"]]
    assert classes == [[10 * MS, 20 * MS], []]
    cycles = [group["littles_law"]["cycle_error_fraction"] for group in summary["finite_flows"]]
    assert [abs(error) < most for error, most in zip(cycles, (0.15, 0.01), strict=True)] == [True, True], cycles


@pytest.mark.virtual
def test_run__each_group_has_its_own_ecn_window_pace_and_acks(summary: dict[str, Any], loaded: Run) -> None:
    """The trace has a record for each ACK that the sender receives."""
    marks = [group["marks"] for group in summary["groups"]]
    assert (marks[0] > 0, *marks[1:3]) == (True, 0, 0)
    of_tcp, of_card = (group_of_flows(loaded)[table["flow"]] for table in (loaded.tcp, loaded.postcards))
    most = [int(loaded.tcp["cwnd_packets"][of_tcp == place].max()) for place in (0, 2)]
    assert most[1] <= WINDOW < most[0]
    share = [int((of_tcp == place).sum()) / int((of_card == place).sum()) for place in (0, 2)]
    assert share[0] < 0.75 < 0.95 < share[1], share


@pytest.mark.virtual
def test_run__finite_flows_of_one_group_begin_with_three_segments_and_have_four_in_flight(
    recorded: Path, loaded: Run
) -> None:
    flows = pl.read_parquet(recorded / "flows.parquet").drop_nulls("base_rtt_ns").filter(pl.col("drops") == 0)
    cards, groups = loaded.postcards, group_of_flows(loaded)
    is_data = cards["packet_bytes"] > 1000
    first, in_a_round_trip = set(), set()
    for flow, rtt_ns in flows.select("flow", "base_rtt_ns").iter_rows():
        sent_ns = cards["enqueue_mono_ns"][is_data & (cards["flow"] == flow)].astype(np.int64)
        if groups[flow] == 3 and len(sent_ns):
            first.add(int((sent_ns < sent_ns[0] + rtt_ns // 2).sum()))
            in_a_round_trip.add(int((np.searchsorted(sent_ns, sent_ns + rtt_ns) - np.arange(len(sent_ns))).max()))
    assert first == {3}  # Linux's default is 10
    assert max(in_a_round_trip) == 4


@pytest.mark.virtual
def test_run__each_direction_has_its_own_delay(recorded: Path, loaded: Run) -> None:
    """For each long flow, the time from the SYN's departure to the ACK's arrival is the group's RTT, plus the ACK's
    transmission time on the access link, if the group has one. The time from the ACK's departure to the sink is the RTT
    minus the group's ACK_DELAY. The sink needs 1 ns to read the clock.
    """
    sink = json.loads((recorded / "traffic_sink.json").read_text())["flows"]
    accepted = {(flow["src_port"], flow["dst_port"]): flow["first_mono_ns"] for flow in sink}
    cards = loaded.postcards
    left_ns = cards["enqueue_mono_ns"] + cards["sojourn_ns"]
    delays_ms = ((10, 3), (10, 3), (30, 20), (10, 9), (None, 0))
    for entry, (rtt_ms, ack_ms) in zip(loaded.traffic, delays_ms, strict=True):
        rows = np.flatnonzero(cards["flow"] == entry.number)[:2]
        forth_ns = (1 if rtt_ms is None else rtt_ms - ack_ms) * MS  # a datagram has the link's delay
        first_ns = accepted[entry.five_tuple.src_port, entry.five_tuple.dst_port]
        if rtt_ms is None:  # a datagram
            assert first_ns - left_ns[rows[0]] == forth_ns + 1
            continue
        access_ns = (66 + 24) * 8 * 10**9 // ACCESS_BPS if entry.id == 3 else 0
        assert cards["enqueue_mono_ns"][rows[1]] - left_ns[rows[0]] == rtt_ms * MS + access_ns
        assert first_ns - left_ns[rows[1]] == forth_ns + 1


@pytest.mark.virtual
def test_run__users_think_from_the_end_of_their_flows(recorded: Path) -> None:
    flows = pl.read_parquet(recorded / "flows.parquet").filter(pl.col("group") == 1).sort("user", "syn_mono_ns")
    thinks = (pl.col("syn_mono_ns") - pl.col("ended_mono_ns").shift()).over("user")
    gaps_ns = flows.select(thinks).to_series().drop_nulls().to_list()
    assert len(gaps_ns) > 5
    assert 100 * MS <= min(gaps_ns) <= max(gaps_ns) < 100 * MS + 1000


TIMES = """
clock: virtual
rate: 20mbit
rtt: 10ms
warmup: 0.3s
duration: 1.7s
groups:
- {cc: cubic, flows: 2, stop: 1.4s}
- {cc: bbr, flows: 2, start: 0.8s}
- {traffic: finite, cc: reno, load: 0.2, sizes: 'fixed:5p', start: 0.6s, stop: 1.2s}
- {traffic: closed-loop, cc: reno, users: 4, sizes: 'fixed:5p', think: 'exponential:50ms', start: 0.1s, stop: 0.5s}
- {traffic: open-loop, load: 0.1, arrivals: cbr, start: 0.5s, stop: 1s}
"""


@pytest.mark.virtual
def test_times__each_group_is_there_from_its_start_to_its_stop_and_nothing_misreads_it(tmp_path: Path) -> None:
    given(tmp_path, TIMES)
    run(tmp_path / "results", f"SPEC={tmp_path / 'groups.yaml'}")  # which checks that the run is valid
    directory = repetition(tmp_path / "results")
    analysis, traffic = analyse(directory), json.loads((directory / "traffic.json").read_text())
    recorded, zero_ns = analysis.run, traffic["start_mono_ns"]

    def times_ms(place: int) -> np.ndarray:
        """When packets of the group came to the queue, without the SYNs of flows that connect before the traffic."""
        mine = group_of_flows(recorded)[analysis.queue["flow"]] == place
        came_ms = (analysis.queue["enqueue_mono_ns"][mine] - zero_ns) / MS
        return came_ms[came_ms > -500]

    for place, start_ms in enumerate((-10, 800, 600, 100, 500)):
        assert start_ms <= times_ms(place).min() < start_ms + 60, place
    for place, stop_ms in ((0, 1400), (4, 1000)):  # TCP's last ACKs and RSTs follow a stop
        assert stop_ms - 20 < times_ms(place).max() < stop_ms + 30, place
    records, of_finite = recorded.flow_records, finite_flows.groups_of(recorded)
    assert records is not None
    for number, (start_ms, stop_ms) in enumerate(((600, 1200), (100, 500))):  # open flows go on
        syns_ms = (records["syn_mono_ns"][of_finite == number].astype(np.int64) - zero_ns) / MS
        assert start_ms <= syns_ms.min() < syns_ms.max() < stop_ms
    stopped_ns = [flow["stopped_mono_ns"] - zero_ns for flow in traffic["flows"] if "stopped_mono_ns" in flow]
    assert [0 <= ns - 1400 * MS < 10 for ns in stopped_ns] == [True, True]

    summary = json.loads((directory / "summary.json").read_text())
    parts = [one["present_s"] for one in summary["groups"]]
    assert parts == [[0.3, 1.4], [0.8, 2.0], [0.6, 1.2], [0.3, 0.5], [0.5, 1.0]]
    for number, flows in ((0, slice(0, 2)), (1, slice(2, 4))):
        rates = [flow["goodput_bps"] for flow in summary["flows"][flows]]
        assert summary["groups"][number]["goodput_bps"] == pytest.approx(sum(rates))
    late = [entry.number for entry in recorded.traffic[2:4]]
    left = [analysis.windows.of_flow_in_flight[analysis.windows.last[number]] for number in late]
    assert analysis.windows.in_flight_packets[-1] == sum(left)  # stopped flows have none
