# SPDX-License-Identifier: MIT
"""Users' own congestion controls and their parameters: resolved, refused, and run in virtual and in real time."""

import json
import os
import re
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest

from analysis.measure.group_results import group_of_flows
from analysis.read.load import load
from analysis.read.raw import load_tcp
from experiments.lab import repetition
from experiments.lab import virtual as virtual_lab
from experiments.machine.host import CHECKOUT, Host
from experiments.plan import bpf_programs
from experiments.plan.run_plan import plan_run
from experiments.spec import cc_parameters, congestion
from experiments.spec.resolve import resolve
from experiments.tests.conftest import MARK, faults, wait_for
from experiments.tests.test_run import ended, software, started
from experiments.tests.test_virtual import raw, run
from hosts.congestion_bpf import objects
from hosts.tests.processes import processes
from lib.errors import SpecError
from model.experiment import Experiment

TEMPLATE = CHECKOUT / "hosts/congestion/template/mycc.c"
MIX = CHECKOUT / "experiments/specs/mix-own-paced.yaml"
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
WINDOW = 20


def host(clock: str, bpf_lacks: str = "") -> Host:
    return Host(("cubic", "dctcp", "reno", "reno_1w"), netem=True, clock=clock, bpf_lacks=bpf_lacks)


def resolved(clock: str = "virtual", **given: object) -> Experiment:
    return resolve({"clock": clock, **given}, host(clock))


def problem(clock: str = "virtual", bpf_lacks: str = "", **given: object) -> str:
    with pytest.raises(SpecError) as failure:
        resolve({"clock": clock, **given}, host(clock, bpf_lacks))
    (line,) = failure.value.lines()
    return line


def test_resolve__takes_the_text_and_keeps_its_digest_in_the_run(tmp_path: Path) -> None:
    file = tmp_path / "mycc.c"
    file.write_text("int before;")
    given = resolved(cc=f"{file}:2,cubic:3")
    file.write_text("int after;")
    assert [(group.cc, group.flows) for group in given.long] == [("mycc", 2), ("cubic", 3)]
    assert Experiment.model_validate(given.dump()) == given
    plan = plan_run(given, 1)
    (stored,) = plan.stored_spec["congestion_sources"]
    assert stored == {"name": "mycc", "file": "mycc.c", "sha256": stored["sha256"]}
    assert Experiment.model_validate(plan.stored_spec).point == given.point
    repetition.write_files(plan.congestion_sources, tmp_path / congestion.DIRECTORY)
    assert (tmp_path / "congestion/mycc.c").read_text() == "int before;"
    assert "congestion_sources" not in resolved(cc="cubic").dump()


def test_resolve__refuses_files_where_they_cannot_run(tmp_path: Path) -> None:
    for name in ("cubic.c", "yeah.c", "mycc.c", "mycc.bpf.c"):
        (tmp_path / name).write_text("")
    os.mkfifo(tmp_path / "fifo.c")
    (tmp_path / "large.c").write_text(" " * (congestion.MOST_BYTES + 1))
    for name, said in (("fifo", "is not a regular file"), ("large", "is larger than")):
        assert said in problem(cc=str(tmp_path / f"{name}.c"))
    assert "cubic exists already" in problem(cc=str(tmp_path / "cubic.c"))
    assert "yeah exists already" in problem("real", cc=str(tmp_path / "yeah.c"))
    assert "CLOCK=real only" in problem(cc=str(tmp_path / "mycc.bpf.c"))
    assert "needs the JIT" in problem("real", "the JIT", cc=str(tmp_path / "mycc.c"))
    assert "needs the JIT" in problem("real", "the JIT", window="3p")
    assert "SWITCH=ns3" in problem(switch="ns3", cc=str(tmp_path / "mycc.c"))


def test_programs__have_names_of_their_own_in_the_kernel_and_plain_ones_in_records() -> None:
    names = {
        bpf_programs.kernel_name("a_long_name_xyz", repetition, place) for repetition in (1, 2) for place in (0, 1)
    }
    assert len(names) == 4
    assert {len(name) for name in names} <= {14, 15}
    programs = bpf_programs.BpfPrograms({"mycc": Path("/x/mycc.bpf.o")}, {"mycc": "mycc_17"})
    plan = plan_run(resolved("real", cc=f"{TEMPLATE}:1,cubic:1", traffic="long,finite", finite_cc="reno"), 1, programs)
    assert [group["cc"] for group in plan.traffic.options["groups"]] == ["mycc", "cubic"]
    assert plan.traffic.options["kernel_names"] == {"mycc": "mycc_17"}
    assert [group["cc"] for group in plan.setup["spec"]["groups"]] == ["mycc_17", "cubic"]
    assert plan.setup["congestion_control_programs"] == ["mycc_17=/x/mycc.bpf.o"]


def test_parameters__of_the_kernel_are_compared_as_the_kernel_prints_them() -> None:
    after_boot = {"cubic": {"beta": "800", "hystart": "1"}, "cdg": {"use_shadow": "Y"}}
    assert cc_parameters.refused({"cubic.beta": "0x320", "cdg.use_shadow": "1"}, after_boot) is None
    assert "keeps 800" in str(cc_parameters.refused({"cubic.beta": "801"}, after_boot))
    assert "allowed: beta, hystart" in str(cc_parameters.refused({"cubic.bta": "1"}, after_boot))
    assert "has none" in str(cc_parameters.refused({"reno.beta": "1"}, after_boot))
    given = {"cubic.beta": "800", "mycc.kept_percent": "9"}
    assert cc_parameters.boot_parameters(given) == {"tcp_cubic.beta": "800", "mycc.kept_percent": "9"}
    assert "no flow has" in problem(cc="reno", cc_parameters="cubic.beta=800")


@pytest.mark.virtual
def test_a_mix__of_an_own_a_built_in_and_a_paced_algorithm_is_valid_in_virtual_time(tmp_path: Path) -> None:
    """The arrivals at the switch show which group is paced: under 2 % of a paced flow's gaps are shorter than 1 us. The
    user's algorithm has more parameters than fit into one message of the virtual machine, as BBRv2 has (50).
    """
    names = [f"a_parameter_with_a_long_name_{number}" for number in range(60)]
    more = "".join(f"static uint {name} = 7;\nmodule_param({name}, uint, 0444);\n" for name in names)
    file, spec = tmp_path / "mycc.c", tmp_path / "mix.yaml"
    file.write_text(TEMPLATE.read_text().replace("/* The state of each flow", f"{more}/* The state of each flow"))
    spec.write_text(MIX.read_text().replace("hosts/congestion/template/mycc.c", str(file)))
    words = (
        "CLOCK=virtual",
        f"SPEC={spec}",
        "DURATION=3s",
        "WARMUP=1s",
        "CC_PARAMETERS=cubic.beta=700,cubic.hystart=0",
    )
    assert run(tmp_path, *words)["valid"]
    records = json.loads((tmp_path / "latest/rep-1/environment.json").read_text())["congestion_controls"]
    assert records["mycc"]["parameters"] == {"kept_percent": "75"} | dict.fromkeys(names, "7")
    record = records["cubic"]
    assert (record["from"], record["parameters"]["beta"], record["parameters"]["hystart"]) == ("kernel", "700", "0")
    for value, reason in (("cubic.bta=1", "allowed: beta,"), ("cubic.beta=many", "as 717, its default")):
        refused = virtual_lab.refused_parameters(resolved(cc="cubic", cc_parameters=value), virtual_lab.KERNEL)
        assert reason in refused[0]
    loaded = load(tmp_path / "latest/rep-1")
    assert groups_of(tmp_path) == ["mycc", "cubic", "reno"]
    cards, of_flow = loaded.postcards, group_of_flows(loaded)
    settled = cards["enqueue_mono_ns"] > cards["enqueue_mono_ns"][0] + 10**9  # after slow start
    together = [
        np.mean(np.diff(cards["enqueue_mono_ns"][settled & (cards["flow"] == flow)].astype(np.int64)) < 1000)
        for place in range(3)
        for flow in np.flatnonzero(of_flow == place)
    ]
    assert max(together[4:]) < 0.02 < min(together[:4]), together


def groups_of(results: Path) -> list[str]:
    """The congestion control of each group that has more than a tenth of the goodput."""
    groups = json.loads((results / "latest/rep-1/summary.json").read_text())["groups"]
    return [group["cc"] for group in groups if group["share"] > 0.1]


@pytest.mark.long
@pytest.mark.virtual
def test_ours__send_the_same_packets_as_linux_byte_for_byte(tmp_path: Path) -> None:
    names = ("scalable", "highspeed", "dctcp")
    for name in names:
        shutil.copy(objects.HERE / f"{name}.c", tmp_path / f"our_{name}.c")
    marks = ("MODE=ecn", "BUF=0.25bdp", "ECN_THRESHOLD=0.2bdp")  # slow start also overflows such a buffer
    link = ("CLOCK=virtual", "RATE=100mbit", "RTT=20ms", "DURATION=3s", "WARMUP=0s", *marks)
    results = {}
    for whose, form in (("ours", f"{tmp_path}/our_{{}}.c:1"), ("linux", "{}:1")):
        results[whose] = tmp_path / whose
        summary = run(results[whose], *link, "CC=" + ",".join(form.format(name) for name in names))
        assert summary["drops"]
        assert summary["marks"]
    # Only postcards and trace: traffic.json has the names of the algorithms, which differ.
    ours, linux = (raw(results[whose] / "latest/rep-1")[:2] for whose in ("ours", "linux"))
    assert ours == linux


@pytest.mark.long
@pytest.mark.virtual
def test_an_algorithm__that_stops_or_does_not_compile_has_a_reason(tmp_path: Path) -> None:
    text = TEMPLATE.read_text()
    limited = "if (!tcp_is_cwnd_limited(sk))"
    assert limited in text
    file = tmp_path / "stops.c"
    file.write_text(text.replace(limited, "if (tp->delivered > 40)\n\t\ttp->snd_cwnd = 0;\n\tif (tp->delivered > 40)"))
    link = ("CLOCK=virtual", "FLOWS=2", "RATE=20mbit", "RTT=20ms", "DURATION=3s", "WARMUP=1s")
    stopped = started(tmp_path / "stops", *link, f"CC={file}")
    status, _, _ = ended(stopped)
    assert status == 2
    reasons = json.loads((tmp_path / "stops/latest/rep-1/summary.json").read_text())["reasons"]
    assert any("stops" in reason and ("was 0" in reason or "sent anything" in reason) for reason in reasons), reasons

    (tmp_path / "wrong.c").write_text(text.replace("flow->losses++;", "flow->losses++"))
    status, _, errors = ended(started(tmp_path / "wrong", *link, f"CC={tmp_path / 'wrong.c'}"))
    assert status == 1
    assert re.match(r"error: CC: gcc for the virtual-time kernel: wrong\.c:\d+:\d+: error: ", errors[-1])
    assert not (tmp_path / "wrong").exists()


class TestRealTime:
    pytestmark = [  # noqa: RUF012
        *software, pytest.mark.serial,
        pytest.mark.skipif(bool(objects.lacking()), reason=f"this machine lacks {objects.lacking()}"),
    ]  # fmt: skip
    LINK = ("CLOCK=real", "RATE=20mbit", "RTT=20ms", "WARMUP=0.5s")

    def test_a_mix__under_iperf3_is_paced_and_bounded_and_ends_with_the_run(self, tmp_path: Path) -> None:
        before = AVAILABLE.read_text()
        mix = f"CC={TEMPLATE}:1,reno_1w:1,cubic:1"
        words = (*self.LINK, "GENERATOR=iperf3", "DURATION=1s", "PACING=exact", f"WINDOW={WINDOW}p")
        status, output, errors = ended(started(tmp_path, mix, *words))
        assert status in (0, 2), (output, errors)
        assert AVAILABLE.read_text() == before
        repetition = tmp_path / "latest/rep-1"
        assert faults(json.loads((repetition / "summary.json").read_text())) == []
        ccs = [flow["cc"] for flow in json.loads((repetition / "traffic.json").read_text())["flows"]]
        assert sorted(ccs) == ["cubic", "mycc", "reno_1w"]
        about = json.loads((repetition / "environment.json").read_text())["congestion_controls"]
        assert {name: about[name]["from"] for name in about} == {"mycc": "bpf", "reno_1w": "bpf", "cubic": "kernel"}
        assert load_tcp(repetition / "tcp.bst")[0]["cwnd_packets"].max() <= WINDOW

    @pytest.mark.parametrize("program", ["", "collector"])
    def test_however_a_run_ends__no_algorithm_stays(self, tmp_path: Path, program: str) -> None:
        """The runner is killed, or its collector."""
        before = registered()
        runner = started(tmp_path, f"CC={TEMPLATE}:1", "DURATION=60s", *self.LINK, "GENERATOR=epoll")
        try:
            assert wait_for(lambda: bool(registered() - before) or runner.poll() is not None, seconds=120)
            assert runner.poll() is None, ended(runner)
            assert not program or wait_for(lambda: bool(of_tests(program)), seconds=60)
            os.kill(of_tests(program).pop() if program else runner.pid, signal.SIGKILL)
            status, _, errors = ended(runner)
        finally:
            runner.kill()
            runner.communicate()
        if program:
            assert (status, len(errors)) == (1, 1)
            assert program in errors[0]
            assert "SIGKILL" in errors[0]
            assert list(tmp_path.glob("*/rep-1/ABORTED"))
        assert wait_for(lambda: not registered() - before, seconds=60)


def of_tests(program: str) -> set[int]:
    """The processes of `program` that these tests have started."""
    named = processes("comm", lambda text: text == f"{program}\n".encode())
    return {*named} & {*processes("environ", lambda text: MARK in text)}


def registered() -> set[str]:
    return set(AVAILABLE.read_text().split())
