# SPDX-License-Identifier: MIT
"""The choice of the lab that records an experiment, and the values that a lab takes from a repetition's plan."""

import json
from pathlib import Path

import pytest

from controlplane.soft import ControlTuple
from experiments.host import CHECKOUT, Host
from experiments.lab.choice import choose
from experiments.lab.linux_testbed import LinuxTestbedLab
from experiments.lab.real import RealKernel, RealLab
from experiments.lab.virtual import VirtualLab, machine_job
from experiments.resolve import resolve
from experiments.resolved import Resolved
from experiments.run_plan import plan_run
from lib.errors import RunError


def resolved(clock: str, **given: str) -> Resolved:
    return resolve({"clock": clock, **given}, Host(("cubic",), netem=True, clock=clock))


def test_choose__follows_clock_and_target(tmp_path: Path) -> None:
    assert type(choose(resolved("real"))) is RealLab
    assert type(choose(resolved("virtual"))) is VirtualLab
    example = str(CHECKOUT / "ansible/inventories/testbed-bmv2.example")
    assert type(choose(resolved("real", target="bmv2", delay="tc"), example)) is LinuxTestbedLab
    with pytest.raises(RunError, match="the group lines has 0 hosts; allowed: 1"):
        choose(resolved("real", target="bmv2", delay="switch"), example)
    (tmp_path / "hosts.json").write_text(json.dumps({"machines": {"hosts": {"one": {}}}}))
    with pytest.raises(RunError, match="has no machine in the group tofino"):
        choose(resolved("real", target="tofino"), str(tmp_path / "hosts.json"))


def test_plan__has_the_flows_of_its_options_and_settings() -> None:
    spec = resolved("virtual", cc="cubic", flows="3", rtt_spread="2ms", reps="2")
    plan = plan_run(spec, 2)
    (group,) = plan.traffic.options["groups"]
    assert [flow.src_port for flow in plan.traffic.flows] == [group["first_client_port"] + i for i in range(3)]
    delayed = {
        (tuple_.src_port, own["delay"])
        for tuple_, own in plan.settings.flow_settings
        if isinstance(tuple_, ControlTuple)
    }
    assert delayed == {(flow.src_port, flow.extra_delay_ns) for flow in plan.traffic.flows if flow.extra_delay_ns}
    assert plan.stored_spec["extra_delays_ns"] == [flow.extra_delay_ns for flow in plan.traffic.flows]
    assert (plan.title, plan_run(spec, 2)) == ("repetition 2 of 2", plan)
    assert plan_run(spec, 1).setup == plan.setup  # set-ups are cached by these variables


def test_labs__take_times_and_sizes_from_the_plan(tmp_path: Path) -> None:
    plan = plan_run(resolved("virtual"), 1)
    job = machine_job(plan, tmp_path, processor=3)
    assert (job.memory_mib, job.seed, job.processor) == (plan.sizes.machine_mib, plan.machine_seed, 3)
    assert job.parameters["bufferscope_switch.packets"] == str(plan.sizes.pool_packets)
    process = plan_run(resolved("virtual", switch="process"), 1)
    assert machine_job(process, tmp_path, processor=None).parameters == {}
    paced = plan_run(resolved("virtual", switch="process", pacing="poisson"), 1)
    assert machine_job(paced, tmp_path, processor=None).parameters == {"tcp_pacing_gaps": "2"}
    kernel = RealKernel(plan_run(resolved("real"), 1))
    assert kernel.traffic_start_ns() < kernel.traffic_start_ns()
