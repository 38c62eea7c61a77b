# SPDX-License-Identifier: MIT
"""The roles as a list of programs: always the same list, with every argument that Ansible would pass."""

import json
import os
import re
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.machine.host import Host
from experiments.plan.run_plan import READ_BY_ROLES, READ_WITH_NETEM, plan_run
from experiments.setup import playbooks, setup_cache, steps
from experiments.setup.steps import SetupStep
from experiments.spec.resolve import resolve
from lib.errors import RunError
from model.experiment import Experiment
from virtual import RUN_DIRECTORY

HOST = Host(("cubic", "reno"), netem=True)


def planned(tmp_path: Path, spec: Experiment) -> list[SetupStep]:
    tmp_path.mkdir(exist_ok=True)
    return playbooks.plan(("prepare", "start"), plan_run(spec, 1).variables(RUN_DIRECTORY), tmp_path / "log", tmp_path)


def test_plan__has_each_host_prepared_before_any_program_starts(tmp_path: Path) -> None:
    found = planned(tmp_path / "a", resolve({}, HOST))
    started = [step.argv[step.argv.index("--name") + 1] for step in found if "hosts.daemon" in step.argv]
    assert set(started) == {"softswitch", "collector", "tcp_trace", "iperf_servers"}
    assert ["hosts.daemon" in step.argv for step in found] == [False] * (len(found) - 4) + [True] * 4
    found = planned(tmp_path / "b", resolve({"clock": "virtual"}, HOST))
    assert not any("softswitch" in step.argv or step.host == "switch" for step in found)  # the kernel is the switch


def test_run__stops_at_a_failure_with_the_programs_own_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps.topology, "inside", lambda _host, *argv: list(argv))
    good = SetupStep("p", "sender", "tune", ["echo", '{"changed": true}'], "/")
    for command, said in (
        ("echo 'eth0: no such device' >&2; exit 1", "FAILED sender: tune: eth0: no such device"),
        ("echo nonsense", "FAILED sender: tune: ended with 0 and gave no reason"),
    ):
        log = tmp_path / command[-6:]
        with pytest.raises(RunError, match=said):
            steps.run_steps([good, replace(good, argv=["sh", "-c", command]), good], log, lambda: None)
        assert log.read_text().count('"changed"') == 1


PROGRAM = """
import json, os, sys
sys.stderr.write("words of warning")
print(json.dumps({"changed": True, "argv": sys.argv[1:], "cwd": os.getcwd(), "name": __name__, "pid": os.getpid()}))
sys.exit(int(sys.argv[1]))
"""


@pytest.mark.software
def test_run__of_our_own_program_is_as_if_it_had_an_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps.topology, "netns", lambda _host: Path("/proc/self/ns/net"))
    (tmp_path / "own_program.py").write_text(PROGRAM)
    step = SetupStep("p", "sender", "tune", [sys.executable, "-m", "own_program", "0", "--x"], str(tmp_path))
    before = (sys.argv, sys.path, Path.cwd(), sys.modules["__main__"])
    steps.run_steps([step], tmp_path / "log", lambda: None)
    assert (sys.argv, sys.path, Path.cwd(), sys.modules["__main__"]) == before
    _, answer, complained = (tmp_path / "log").read_text().splitlines()
    assert json.loads(answer) == {
        "changed": True, "argv": ["0", "--x"], "cwd": str(tmp_path), "name": "__main__", "pid": os.getpid(),
    }  # fmt: skip
    assert complained == "words of warning"
    for argv, said in (
        (["own_program", "3"], "words of warning"),
        (["no_such_program"], "No module named no_such_program"),
    ):
        with pytest.raises(RunError, match=said):
            steps.run_steps([replace(step, argv=[sys.executable, "-m", *argv])], tmp_path / "log", lambda: None)
    assert "own_program" not in sys.modules


def test_plan__that_is_known_is_that_of_ansible_and_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup_cache, "DIRECTORY", tmp_path / "plans")
    spec = resolve({"clock": "virtual"}, HOST)
    given = {"clock": "virtual", "traffic": "long,finite", "load": "0.2", "sizes": "fixed:14p", "profile": "paper"}
    given |= {"delay": "tc", "switch": "process", "cc": "reno:2,cubic:3", "finite_cc": "reno"}
    other = resolve(given | {"rate": "1gbit", "buf": "9p", "mtu": "9000"}, HOST)

    def asked(spec: Experiment) -> list[SetupStep]:
        variables, scratch = plan_run(spec, 1).variables(RUN_DIRECTORY), Path(tempfile.mkdtemp(dir=tmp_path))
        return setup_cache.plan(("prepare", "start"), variables, tmp_path / "log", scratch)

    def not_again(*_: object) -> list[SetupStep]:
        raise RunError("asked again")

    first = asked(spec)
    assert asked(other) == planned(tmp_path / "asked", other)
    monkeypatch.setattr(playbooks, "plan", not_again)
    assert asked(spec.model_copy(update={"seed": 77, "name": "other"})) == first
    longer = asked(spec.model_copy(update={"buffer_packets": 9, "duration_ns": 10**11}))
    assert [step.task for step in longer] == [step.task for step in first]
    assert longer != first
    with pytest.raises(RunError, match="asked again"):
        asked(resolve({"clock": "virtual", "mode": "ecn"}, HOST))
    for broken in (tmp_path / "plans").iterdir():
        broken.write_text('[{"argv": 1}]')
    with pytest.raises(RunError, match="asked again"):
        asked(spec)
    known = {str(path.relative_to(playbooks.ANSIBLE)) for path in setup_cache._files(playbooks.ANSIBLE)}
    assert {"playbooks/start.yml", "roles/tune/defaults/main.yml", "inventories/lab/hosts.yml"} <= known
    assert not any(path.startswith(("tests/", "inventories/testbed")) for path in known)


def test_roles__read_no_other_key_of_the_spec() -> None:
    """Ansible gets only these keys, so in planned steps any other key would be undefined, or would have a role's
    default instead of the spec's value.
    """
    texts = [path.read_text() for path in setup_cache._files(playbooks.ANSIBLE) if path.suffix == ".yml"]
    read = {key for text in texts for key in re.findall(r"bufferscope_spec\.(\w+)", text)}
    of_tune = {"buffer_packets", "mtu_bytes"}  # for the role's default of tune_window_bytes, which runs always set
    assert read - of_tune == {*READ_BY_ROLES, *READ_WITH_NETEM, "traffic", "groups", "transfers"}
