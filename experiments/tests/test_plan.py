# SPDX-License-Identifier: MIT
"""From a resolved spec to a repetition's plan: processes and ports, delays, paths and links, the options of programs,
and the switch's policy and queue.
"""

from pathlib import Path
from typing import Any

import pytest

from controlplane.policy import Ecn, EgressThreshold, TailDrop, Unit
from controlplane.switch import Queue
from experiments.plan import run_plan
from experiments.plan.run_plan import plan_run
from experiments.plan.switches import BOTTLENECK
from experiments.spec import demand, topology
from experiments.spec.pacing import PACING
from experiments.spec.rules import MOST_IPERF3_FLOWS
from experiments.spec.traffic import FIRST_CLIENT_PORT, LAST_CLIENT_PORT, MAX_FLOWS
from experiments.tests.resolving import problems, resolved
from hosts import bmv2
from hosts.traffic import open_loop
from model.paths import link_of_flows, paths

MS = 1_000_000
ACCESS_BPS = 5_000_000
REAL = {"clock": "real"}
BMV2 = {**REAL, "target": "bmv2", "rate": "50mbit", "rtt": "20ms", "flows": "4"}


def options(**given: object) -> Any:
    return plan_run(resolved(**given), 1).traffic.options


def setup(**given: object) -> Any:
    return plan_run(resolved(**given), 1).setup


def test_processes__never_more_flows_than_iperf3_carries_and_no_port_twice() -> None:
    processes = run_plan.flow_processes(resolved(**REAL, cc="cubic:300,bbr:128,reno:1"), 1)
    assert [(p.group.cc, p.flows) for p in processes] == [
        ("cubic", 128), ("cubic", 128), ("cubic", 44), ("bbr", 128), ("reno", 1)]  # fmt: skip
    assert [p.server_port for p in processes] == list(range(5201, 5206))
    processes = run_plan.flow_processes(resolved(cc="cubic:300,bbr:2"), 1)
    assert [(p.group.cc, p.flows, p.server_port) for p in processes] == [("cubic", 300, 5201), ("bbr", 2, 5202)]


@pytest.mark.parametrize(("given", "flows"), [({}, MAX_FLOWS), (REAL, MOST_IPERF3_FLOWS)])
def test_ports__are_distinct_and_reserved(given: dict[str, str], flows: int) -> None:
    for seed in range(20):
        plan = plan_run(resolved(**given, flows=flows, seed=seed), 1)
        ports = {flow.src_port for flow in plan.traffic.flows}
        assert len(ports) == flows
        assert min(ports) >= FIRST_CLIENT_PORT
        assert max(ports) <= LAST_CLIENT_PORT
        assert not ports & {flow.dst_port for flow in plan.traffic.flows}
    assert plan.setup["client_ports"] == f"{FIRST_CLIENT_PORT}-{LAST_CLIENT_PORT}"


def test_link__loss_draws_from_a_stream_of_its_own() -> None:
    plans = [plan_run(resolved(rtt_spread="2ms", **more), 2) for more in ({}, {"loss": "bursts:0.001:0.2"})]
    assert plans[0].traffic == plans[1].traffic
    assert plans[0].settings.flow_settings == plans[1].settings.flow_settings
    assert plans[0].settings.loss is None
    seeds = [plan_run(resolved(loss="0.1", seed=seed), rep).settings.loss_seed for seed in (1, 2) for rep in (1, 2)]
    assert len({*seeds, plans[1].settings.jitter_seed}) == 5


def test_extra_delays__spread_evenly_and_differently_for_each_seed_and_repetition() -> None:
    spec = resolved(rtt_spread="3ms", flows=4)
    delays = [run_plan.extra_delays_ns(spec, repetition) for repetition in range(1, 9)]
    assert all(sorted(some) == [0, 1 * MS, 2 * MS, 3 * MS] for some in delays)
    assert len({tuple(some) for some in delays}) > 1
    assert delays[0] == run_plan.extra_delays_ns(resolved(rtt_spread="3ms", flows=4), 1)
    assert run_plan.extra_delays_ns(resolved(rtt_spread="3ms", flows=1), 1) == [0]
    assert sorted(run_plan.extra_delays_ns(resolved(rtts="50ms,20ms", flows="4"), 1)) == [0, 0, 30 * MS, 30 * MS]


def test_options__of_datagrams_reach_the_program_that_sends_them() -> None:
    plan = plan_run(resolved(traffic="open-loop", load="0.95", sizes="bimodal", flows=4), 2)
    found = plan.traffic.options
    assert (found["load_ppm"], found["seed"], found["server_port"]) == (950_000, (1 << 16) + 2, 5201)
    assert options(traffic="open-loop", arrivals="jittered:64p:2.5", flows=8)["arrivals"] == "jittered:64p:2.5"
    of_bursts = open_loop.parse(options(traffic="open-loop", sizes="bursts:14p"))
    words = open_loop.arguments(of_bursts.group, "10.0.0.2", 0, of_bursts.duration_ns, Path("report"))
    assert words[words.index("--sizes") + 1] == "bursts"
    assert words[words.index("--flow-packets") + 1] == "14"


def test_options__of_pacing_windows_and_nics_reach_programs_hosts_and_kernel() -> None:
    assert not {"pacing", "window_segments"} & options().keys()
    assert not {"tune_pacing_percent", "sender_qdisc"} & setup(pacing="linux").keys()
    plan = plan_run(resolved(pacing="exact", window="32p", traffic="long,finite"), 1)
    assert (plan.traffic.options["pacing"], plan.traffic.options["window_segments"]) == (True, 32)
    assert plan.setup["tune_pacing_percent"] == 100
    gaps = [dict(plan_run(resolved(pacing=pacing), 1).kernel_parameters) for pacing in PACING]
    assert gaps == [{}, {}, {"tcp_pacing_gaps": "1"}, {"tcp_pacing_gaps": "2"}, {}]
    assert setup(pacing="fq")["sender_qdisc"] == "fq"
    assert "pacing" not in options(pacing="fq")
    for generator in ("iperf3", "epoll"):
        plan = plan_run(resolved(**REAL, pacing="exact", window="32p", generator=generator), 1)
        assert plan.traffic.options["pacing"] is True
        assert "window_segments" not in plan.traffic.options  # no traffic device in this kernel
        assert plan.setup["congestion_control_windows"] == ["1-65535=32"]
    assert plan_run(resolved(offloads="on", nic_rate="300mbit"), 1).settings.nic_rate_bps == 3 * 10**8
    few = resolved(flows=4, rate="1435mbit")
    assert setup(flows=4, rate="1435mbit")["tune_unsent_bytes"] == demand.unsent_bytes(few)
    assert "tune_unsent_bytes" not in setup(flows=1)


def test_paths__of_finite_flows_are_classes_of_rtts_and_links() -> None:
    finite = {"traffic": "finite", "cc": "reno"}
    assert paths(resolved(**finite)) == paths(resolved(rtts="50ms,20ms", flows="4")) == ()
    spread = paths(resolved(**finite, rtt="10ms", rtt_spread="15ms"))
    assert [path.rtt_ns for path in spread] == [(10 + step) * MS for step in range(16)]
    assert [path.rtt_ns // MS for path in paths(resolved(**finite, rtts="50ms,20ms,120ms"))] == [50, 20, 120]
    spec = resolved(**finite, rtts="20ms,50ms", access="5mbit", access_links="2")
    pairs = [(path.rtt_ns // MS, path.access_link) for path in paths(spec)]
    assert pairs == [(20, 1), (20, 2), (50, 1), (50, 2)]
    assert len({path.src_addr for path in paths(spec)}) == 4
    plan = plan_run(spec, 1)
    assert plan.settings.shared_links_bps == {1: ACCESS_BPS, 2: ACCESS_BPS}
    assert demand.pool_packets(spec) > demand.pool_packets(resolved(**finite, rtts="20ms,50ms"))


def test_servers__take_links_and_rtts_in_turn() -> None:
    keys = {"traffic": "closed-loop", "cc": "reno", "rtts": "20ms,50ms,60ms", "access": "5mbit", "access_links": "2"}
    spec = resolved(**keys, servers="5", path_of="transfer")
    pairs = [(path.rtt_ns // MS, path.access_link) for path in paths(spec)]
    assert pairs == [(20, 1), (50, 2), (60, 1), (20, 2), (50, 1)]
    (stored,) = plan_run(spec, 1).stored_spec["groups"]
    assert (stored["servers"], stored["path_of"]) == (5, "transfer")
    assert type(spec).model_validate(spec.dump()) == spec
    by_default = plan_run(resolved(**keys, path_of="user"), 1).stored_spec
    assert by_default == plan_run(resolved(**keys), 1).stored_spec
    assert not {"servers", "path_of"} & by_default["groups"][0].keys()
    assert problems(**keys, servers="2").keys() == {"SERVERS"}
    many = resolved(**keys | {"access_links": "1000", "servers": "1000"})
    assert len({path.src_addr for path in paths(many)}) == len({path.access_link for path in paths(many)}) == 1000
    assert len(plan_run(many, 1).settings.shared_links_bps) == 1000


def test_access__gives_long_flows_links_of_their_own_or_deals_shared_ones() -> None:
    for spread, with_delay in (("0ns", 0), ("4ms", 4)):
        plan = plan_run(resolved(access="5mbit", flows=5, rtt_spread=spread), 1)
        own = [settings for _, settings in plan.settings.flow_settings]
        assert [settings["access"] for settings in own] == [ACCESS_BPS] * 5
        assert sum("delay" in settings for settings in own) == with_delay
    assert plan.stored_spec["groups"][0]["access_bps"] == ACCESS_BPS
    assert plan_run(resolved(flows=5), 1).settings.flow_settings == ()
    spec = resolved(access="5mbit", flows=5, access_links=2, rtt_spread="4ms")
    plan = plan_run(spec, 1)
    own = [settings for _, settings in plan.settings.flow_settings]
    assert [settings["link"] for settings in own] == link_of_flows(spec) == [1, 2, 1, 2, 1]
    assert not any("access" in settings for settings in own)
    assert list(plan.settings.shared_links_bps.values()) == [ACCESS_BPS] * 2
    mix = {"traffic": "long,finite", "load": "0.2", "sizes": "fixed:14p"}
    plan = plan_run(resolved(access="5mbit", flows=3, access_links=2, **mix), 1)
    assert [settings.get("link") for _, settings in plan.settings.flow_settings] == [1, 2, 1, 1, 2]


def test_policy__is_in_the_unit_that_was_given() -> None:
    for given, policy in (
        ({}, TailDrop(163, Unit.PACKETS)),
        ({"buf": "300kB"}, TailDrop(300000, Unit.BYTES)),
        ({"mode": "ecn", "ecn_threshold": "20p"}, Ecn(20, 163, Unit.PACKETS)),
        ({"mode": "ecn", "buf": "300kB"}, Ecn(150000, 300000, Unit.BYTES)),
        ({"mode": "egress-threshold"}, EgressThreshold(163, mark_instead_of_drop=False, unit=Unit.PACKETS)),
        ({"mode": "egress-ecn", "buf": "300kB"}, EgressThreshold(300000, mark_instead_of_drop=True, unit=Unit.BYTES)),
    ):
        assert run_plan.policy(resolved(**given)) == policy  # type: ignore[arg-type]


def test_bmv2__has_a_queue_deeper_than_any_threshold_and_a_delay_line() -> None:
    for buffer in ("1bdp", "5000p", "3000kB"):
        spec = resolved(**BMV2, buf=buffer)
        assert run_plan.queue(spec, BOTTLENECK) == Queue(rate_pps=4064, limit_packets=demand.pool_packets(spec))
        assert demand.pool_packets(spec) > 4 * spec.buffer_packets
    assert run_plan.queue(spec, topology.SENDER.port).rate_pps is None
    assert run_plan.network(resolved(**REAL)) == topology.Network(1500)
    assert run_plan.network(spec).namespaces == ("bmv2_switch", "line", "sender", "receiver", "collector")
    assert run_plan.inventory_groups(spec) == ["bmv2", "lines", "collectors", "senders", "receivers"]
    assert run_plan.inventory_groups(resolved()) == ["soft", "collectors", "senders", "receivers"]
    # BMv2 reads frames from a ring, so in virtual time the sender's link spaces them.
    assert run_plan.network(resolved(**BMV2 | {"clock": "virtual"})).sender_bps == 10**11
    assert run_plan.network(spec).sender_bps is run_plan.network(resolved()).sender_bps is None


def test_bmv2__gets_a_notification_socket_of_its_own_if_it_has_one(tmp_path: Path) -> None:
    """Two simple_switches on one machine would share the default socket in /tmp."""
    program = tmp_path / "simple_switch"
    for help_text, found in (("--thrift-port", []), ("--notifications-addr", ["--notifications-addr"])):
        program.write_text(f"#!/bin/sh\necho '{help_text}'\n")
        program.chmod(0o755)
        words = bmv2.command(str(program), Path("p.json"), 9090, ["1=eth0"], tmp_path)
        assert [word for word in words if word.startswith("--notifications")] == found
        assert any(word.startswith(f"ipc://{tmp_path}/") for word in words) == bool(found)
