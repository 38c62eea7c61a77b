# SPDX-License-Identifier: MIT
"""The command line: each command's output and effect on the switch. A failure is status 1 and one line; an apply that
stopped halfway also lists its changes.
"""

import os

import pytest

from controlplane import identity
from controlplane.__main__ import main
from controlplane.policy import Ecn, EgressThreshold, TailDrop, Unit, Unwatched
from controlplane.switch import Queue
from controlplane.tests.local import LocalSwitch
from controlplane.tests.test_spec import EXAMPLE
from p4src.compile import policy
from softswitch.tests.core_driver import Core, frame_to

LOCAL = ("--target", "local", "--address", "test")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], local: LocalSwitch):
    """Runs a command on the core: (status, lines of stdout, lines of stderr)."""

    def run_command(*words: str, which: tuple[str, ...] = LOCAL) -> tuple[int, list[str], list[str]]:
        status = main([*words, *which])
        captured = capsys.readouterr()
        return status, captured.out.splitlines(), captured.err.splitlines()

    return run_command


def test_apply__lists_changes_and_a_second_time_none(run) -> None:
    file = ("--file", str(EXAMPLE), *LOCAL)
    status, out, _ = run("diff", which=file)
    assert (status, sum(line.startswith("would change  ") for line in out)) == (2, 7)
    status, out, _ = run("apply", which=file)
    assert (status, out[0]) == (0, "note: ports.2.policy.threshold: 1bdp is 162.549 full packets: 163")
    assert "changed  port 2 policy: unwatched -> tail-drop from 163 packets" in out
    assert run("apply", which=file)[1][-1] == "nothing to change on local switch at test"
    assert run("diff", which=file)[::2] == (0, [])


def test_threshold__is_set_in_any_unit(run, local: LocalSwitch) -> None:
    local.set_policy(2, EgressThreshold(9, True))
    assert run("threshold", "get", "2")[1] == ["egress-threshold marks from 9 packets"]
    assert run("threshold", "set", "2", "163p")[0] == 0
    assert local.policy(2) == EgressThreshold(163, True)
    status, out, _ = run("threshold", "set", "2", "1bdp", "--rate", "200mbit", "--rtt", "10ms", "--mtu", "1500")
    assert (status, out[0]) == (0, "note: 1bdp is 162.549 full packets: 163")
    run("threshold", "set", "2", "300kB")
    assert local.policy(2) == EgressThreshold(300_000, True, Unit.BYTES)


def test_mode__keeps_the_threshold_without_a_new_one(run, local: LocalSwitch) -> None:
    assert run("mode", "2")[1] == ["unwatched"]
    run("mode", "2", "tail-drop", "--threshold", "40p")
    run("mode", "2", "ecn", "--hard-limit", "80p")
    assert local.policy(2) == Ecn(40, 80)
    run("mode", "2", "egress-threshold", "--mark", "--threshold", "9p")
    assert local.policy(2) == EgressThreshold(9, True)
    run("mode", "2", "unwatched")
    assert local.policy(2) == Unwatched()


def test_postcards__need_a_policy_and_a_collector(run, local: LocalSwitch) -> None:
    assert "port 2: no policy" in run("postcards", "on", "2")[2][0]
    local.set_policy(2, TailDrop(5))
    assert "no collector" in run("postcards", "on", "2")[2][0]
    run("apply", which=("--file", str(EXAMPLE), *LOCAL))
    assert run("postcards", "on", "2", "--switch-id", "9")[1] == ["port 2 postcards: on, switch id 9"]
    assert local.postcards(2) == 9
    run("postcards", "off", "2")
    assert local.postcards(2) is None


def test_tables__show_the_switchs_counts(run, local: LocalSwitch) -> None:
    local.set_queue(2, Queue(rate_bps=10**9))
    local.set_policy(2, TailDrop(9))
    local.set_forwarding("02:bf:00:00:00:02", 2)
    for at_ns in (0, 0, 10**6, 2 * 10**6):  # the second packet meets the first
        local.connection.core.receive(at_ns, 1, frame_to(2, 1000))
    local.connection.core.run()
    for words, shown in (
        (("counters",), ("arrivals", "4", "4,000")),
        (("histogram", "2"), ("4 packets", "75.00%", "25.00%")),
        (("ports",), ("unwatched", "tail-drop")),
        (("watch", "--count", "2", "--interval", "0.01"), ("tail-drop", "depths in packets")),
    ):
        status, out, _ = run(*words)
        assert status == 0
        assert [word for word in shown if word not in " ".join(out)] == [], words


FAILURES = {  # the command -> what its line of error names
    "threshold get 7": "no port '7'",
    "threshold set 2": "give a value",
    "threshold set 2 9p": "port 2: no policy",
    "threshold set 1 9q": "threshold 9q",
    "threshold set 1 1bdp": "give `rate`",
    "threshold set 1 9p --rate fast": "--rate fast",
    "threshold set 1 1bdp --mtu 0": "--mtu 0",
    "threshold set 1 0p": "threshold 0p",
    "threshold set 1 9\x1b[31mp": "threshold 9\\x1b[31mp",
    "threshold set 3 99p": "port 3: the threshold, 99",
    "threshold set 3 9kB": "port 3: the threshold is in bytes",
    "threshold set 1 4294967296p": "table queue_policy, key 1",
    "mode 2 tail-drop": "port 2: has no threshold",
    "mode 1 ecn": "port 1: ecn needs --hard-limit",
    "mode 3 ecn --hard-limit 99p": "port 3: the queue itself holds 64 packets",
    "mode 1 ecn --hard-limit 2p": "port 1: --hard-limit, 2",
    "mode 1 ecn --hard-limit 9kB": "port 1: --hard-limit is in bytes",
    "mode 1 tail-drop --hard-limit 9p": "takes no --hard-limit",
    "mode 2 red": "'red'",
    "watch --interval 0": "--interval 0",
    "watch --count 0": "--count 0",
    "apply": "give --file",
    "counters --target sotf": "target 'sotf'",
    "counters --target soft --address /absent": "/absent",
    "counters --file /absent.yaml": "/absent.yaml",
}


def test_failures__are_one_line_and_change_nothing(run, local: LocalSwitch) -> None:
    local.set_policy(1, TailDrop(5))
    local.set_policy(3, Ecn(5, 9))
    local.set_queue(3, Queue(limit_packets=64))
    writes = local.connection.writes
    wrong = []
    for command, named in FAILURES.items():
        words = command.split(" ")
        status, _, err = run(*words[:1], *LOCAL, *words[1:], which=())
        if (status, len(err)) != (1, 1) or not err[0].startswith("error: ") or named not in err[0]:
            wrong.append((command, status, err))
    assert wrong == []
    assert local.connection.writes == writes
    assert "which switch?" in run("counters", which=())[2][0]
    assert "COMMAND" in run(which=())[2][0]


def test_another_program__is_refused(run, local: LocalSwitch, monkeypatch: pytest.MonkeyPatch) -> None:
    of_us, file = local.connection.core, ("--file", str(EXAMPLE), *LOCAL)
    local.connection.core = Core("test")
    assert "runs the program 'l2_mirror'" in run("apply", which=file)[2][0]
    local.connection.core = of_us
    monkeypatch.setattr(identity, "committed_digest", lambda: "0" * 64)
    status, _, (line,) = run("apply", which=file)
    assert (status, "another version of bufferscope" in line) == (1, True)


def test_writers__are_one_at_a_time(run, local: LocalSwitch) -> None:
    local.set_policy(2, TailDrop(5))
    with local.writing():
        for words in (("threshold", "set", "2", "9p"), ("mode", "2", "unwatched"), ("postcards", "off", "2")):
            status, _, err = run(*words)
            assert (status, len(err)) == (1, 1)
            assert f"process {os.getpid()} is writing to it" in err[0]
    assert local.policy(2) == TailDrop(5)


def test_parameters__of_a_policy_are_shown_and_changed_by_name(run, tmp_path) -> None:
    program = policy.stored(policy.read("template"), tmp_path)
    switch = ("--program", str(program), "--target", "local", "--address", "own policy")
    assert run("parameters", which=switch)[:2] == (0, ["target_ns 2000000", "interval_ns 50000000"])
    assert run("parameters", "target=5ms", which=switch)[:2] == (0, ["target_ns 5000000", "interval_ns 50000000"])
    assert run("parameters", "interval=1s", which=switch)[1] == ["target_ns 5000000", "interval_ns 1000000000"]
    status, out, (error,) = run("parameters", "goal=5ms", which=switch)
    assert (status, out) == (1, [])
    assert "goal" in error
    assert run("parameters", which=("--program", str(program), *LOCAL))[0] == 1  # runs our own program
