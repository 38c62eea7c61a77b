# SPDX-License-Identifier: MIT
"""The command line: each command's output and effect on the switch. A failure is status 1 and one line; an apply that
stopped halfway also lists its changes.
"""

from __future__ import annotations

import pytest

from controlplane.__main__ import main
from controlplane.fake import FakeSwitch
from controlplane.policy import Ecn, EgressThreshold, TailDrop, Unit, Unwatched
from controlplane.switch import Count, ProgramIdentity, Queue
from controlplane.tests.test_spec import EXAMPLE

FAKE = ("--target", "fake", "--address", "test")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], fake: FakeSwitch):
    """Runs a command on the fake switch: (status, lines of stdout, lines of stderr)."""

    def run_command(*words: str, which: tuple[str, ...] = FAKE) -> tuple[int, list[str], list[str]]:
        status = main([*words, *which])
        captured = capsys.readouterr()
        return status, captured.out.splitlines(), captured.err.splitlines()

    return run_command


def test_apply__lists_changes_and_a_second_time_none(run) -> None:
    file = ("--file", str(EXAMPLE), *FAKE)
    status, out, _ = run("diff", which=file)
    assert (status, sum(line.startswith("would change  ") for line in out)) == (2, 7)
    status, out, _ = run("apply", which=file)
    assert (status, out[0]) == (0, "note: ports.2.policy.threshold: 1bdp is 162.549 full packets: 163")
    assert "changed  port 2 policy: unwatched -> tail-drop from 163 packets" in out
    assert out[-1] == "7 changes on fake switch at test"
    assert run("apply", which=file)[1][-1] == "nothing to change on fake switch at test"
    assert run("diff", which=file)[::2] == (0, [])


def test_apply__a_lost_connection_lists_done_and_remaining_changes(run, fake: FakeSwitch) -> None:
    fake.memory.writes_left = 2
    status, _, err = run("apply", which=("--file", str(EXAMPLE), *FAKE))
    assert status == 1
    assert err[:2] == [
        "error: fake switch at test: lost the connection",
        "error: applied 2 of 7 changes; applying again does the rest",
    ]
    assert len(err) == 2 + 7


def test_threshold__is_set_in_any_unit(run, fake: FakeSwitch) -> None:
    fake.set_policy(2, EgressThreshold(9, True))
    assert run("threshold", "get", "2")[1] == ["egress-threshold marks from 9 packets"]
    assert run("threshold", "set", "2", "163p")[0] == 0
    assert fake.policy(2) == EgressThreshold(163, True)
    status, out, _ = run("threshold", "set", "2", "1bdp", "--rate", "200mbit", "--rtt", "10ms", "--mtu", "1500")
    assert (status, out[0]) == (0, "note: 1bdp is 162.549 full packets: 163")
    run("threshold", "set", "2", "300kB")
    assert fake.policy(2) == EgressThreshold(300_000, True, Unit.BYTES)


def test_policy__behind_a_queue_that_drops_in_silence_is_refused(run, fake: FakeSwitch) -> None:
    """The limit is 64 packets, the default of BMv2's queues."""
    fake.set_queue(2, Queue(limit_packets=64))
    fake.set_policy(2, TailDrop(63))
    refusal = "port 2: the queue itself holds 64 packets and drops the rest silently, before the policy does at"
    for words in (("threshold", "set", "2", "64p"), ("mode", "2", "ecn", "--threshold", "9p", "--hard-limit", "99p")):
        status, _, err = run(*words)
        assert (status, len(err)) == (1, 1)
        assert refusal in err[0]
    assert run("threshold", "set", "2", "62p")[0] == 0
    assert run("threshold", "set", "2", "90kB")[0] == 0
    assert run("mode", "2", "egress-threshold", "--threshold", "99p")[0] == 0


def test_mode__keeps_the_threshold_without_a_new_one(run, fake: FakeSwitch) -> None:
    assert run("mode", "2")[1] == ["unwatched"]
    assert run("mode", "2", "tail-drop", "--threshold", "40p")[1] == [
        "port 2 policy: unwatched -> tail-drop from 40 packets"
    ]
    run("mode", "2", "ecn", "--hard-limit", "80p")
    assert fake.policy(2) == Ecn(40, 80)
    run("mode", "2", "egress-threshold", "--mark", "--threshold", "9p")
    assert fake.policy(2) == EgressThreshold(9, True)
    assert run("mode", "2")[1] == ["egress-threshold"]
    run("mode", "2", "unwatched")
    assert fake.policy(2) == Unwatched()


def test_postcards__need_a_policy_and_a_collector(run, fake: FakeSwitch) -> None:
    assert run("postcards", "on", "2")[2] == [
        "error: port 2: no policy watches its queue, so it has no postcards; `mode` sets one"
    ]
    fake.set_policy(2, TailDrop(5))
    assert run("postcards", "on", "2")[2] == [
        "error: fake switch at test: has no collector to receive postcards: apply a file with one"
    ]
    run("apply", which=("--file", str(EXAMPLE), *FAKE))
    assert run("postcards", "on", "2", "--switch-id", "9")[1] == ["port 2 postcards: on, switch id 9"]
    assert fake.postcards(2) == 9
    run("postcards", "off", "2")
    assert fake.postcards(2) is None


def test_tables__show_the_switchs_counts(run, fake: FakeSwitch) -> None:
    fake.memory.counters = {
        "arrivals": {2: Count(1234, 56789)},
        "depth_histogram": {256: Count(3, 0), 300: Count(1, 0)},
    }
    out = "\n".join(run("counters")[1])
    assert all(word in out for word in ("arrivals", "1,234", "56,789"))
    out = "\n".join(run("histogram", "2")[1])
    assert all(word in out for word in ("4 packets", "75.00%", "25.00%"))
    assert "unwatched" in "\n".join(run("ports")[1])


def test_watch__shows_rates_of_watched_queues(run, fake: FakeSwitch) -> None:
    fake.set_policy(2, TailDrop(9))
    status, out, _ = run("watch", "--count", "2", "--interval", "0.01")
    assert status == 0
    assert "tail-drop" in " ".join(out)
    assert "depths in packets" in " ".join(out)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("threshold", "get", "7"), "fake switch at test: no port '7'; it has 1, 2, 3"),
        (("threshold", "set", "2"), "threshold set: give a value, as in `threshold set 2 163p`"),
        (("threshold", "set", "2", "9p"), "port 2: no policy watches its queue; `mode` sets one"),
        (("threshold", "set", "1", "9q"), "threshold 9q has the unknown unit 'q'; allowed: p as in 166p"),
        (("threshold", "set", "1", "9"), "threshold 9 is a number without a unit"),
        (("threshold", "set", "1", "9c"), "threshold 9c is in cells, which fake"),
        (("threshold", "set", "1", "1bdp"), "threshold 1bdp needs the rate of the port's queue; give `rate` as well"),
        (("threshold", "set", "1", "9p", "--rate", "fast"), "--rate fast is not a number with a unit"),
        (("threshold", "set", "1", "1bdp", "--mtu", "0"), "--mtu 0 is out of bounds; allowed: 64 to 10000"),
        (("threshold", "set", "1", "1bdp", "--mtu", "-9"), "--mtu -9 is out of bounds; allowed: 64 to 10000"),
        (("threshold", "set", "1", "1bdp", "--rtt", "0ms"), "--rtt 0ms is zero; allowed: above zero"),
        (("threshold", "set", "1", "0p"), "threshold 0p is zero; allowed: above zero"),
        (("threshold", "set", "1", "9\x1b[31mp"), "threshold 9\\x1b[31mp is not a number with a unit"),
        (("threshold", "get", "1", "9p"), "threshold get: 9p is for `threshold set`; leave it out"),
        (("threshold", "set", "3", "99p"), "port 3: the threshold, 99, is above the hard limit, 9 packets: set both"),
        (
            ("threshold", "set", "1", "4294967296p"),
            "fake switch at test: table queue_policy, key 1: action",
        ),
        (("mode", "2", "tail-drop"), "port 2: has no threshold yet; give --threshold"),
        (("mode", "1", "ecn"), "port 1: ecn needs --hard-limit"),
        (("mode", "1", "ecn", "--hard-limit", "2p"), "port 1: --hard-limit, 2, is below the threshold, 5 packets"),
        (("mode", "1", "ecn", "--hard-limit", "9kB"), "port 1: --hard-limit is in bytes, the threshold in packets"),
        (("mode", "1", "tail-drop", "--hard-limit", "9p"), "mode tail-drop takes no --hard-limit; allowed: with ecn"),
        (("mode", "1", "ecn", "--hard-limit", "9p", "--mark"), "mode ecn takes no --mark; allowed: with egress-thr"),
        (("mode", "1", "unwatched", "--threshold", "9p"), "mode unwatched takes no --threshold"),
        (("mode", "1", "--threshold", "9p"), "mode without a policy only shows the policy, and takes no --threshold"),
        (("mode", "2", "red"), "argument mode: invalid choice: 'red'"),
        (("watch", "--interval", "0"), "--interval 0 is out of bounds; allowed: 0.01 to 3600 seconds"),
        (("watch", "--interval", "nan"), "--interval nan is out of bounds"),
        (("watch", "--interval", "1e30"), "--interval 1e+30 is out of bounds"),
        (("watch", "--count", "0"), "--count 0 is out of bounds; allowed: 1 or more"),
        (("apply",), "no settings given; give --file"),
        (("nonsense",), "argument COMMAND: invalid choice: 'nonsense'"),
        ((), "the following arguments are required: COMMAND"),
    ],
)
def test_failures__are_one_line_and_change_nothing(run, fake: FakeSwitch, words: tuple[str, ...], says: str) -> None:
    fake.set_policy(1, TailDrop(5))
    fake.set_policy(3, Ecn(5, 9))
    writes = fake.memory.writes
    status, _, err = run(*words, which=FAKE if words and words[0] != "nonsense" else ())
    assert (status, len(err)) == (1, 1)
    assert err[0].startswith(f"error: {says}")
    assert fake.memory.writes == writes


@pytest.mark.parametrize(
    ("which", "says"),
    [
        ((), "which switch? give --file, or --target and --address"),
        (("--target", "sotf", "--address", "x"), "target 'sotf' is not known; allowed: soft, bmv2"),
        (("--target", "soft", "--address", "/absent"), "no switch answers at /absent: No such file or directory"),
        (("--file", "/absent.yaml"), "/absent.yaml: cannot be read: No such file or directory"),
    ],
)
def test_failures__to_find_a_switch_are_one_line(run, which: tuple[str, ...], says: str) -> None:
    status, _, err = run("counters", which=which)
    assert (status, len(err)) == (1, 1)
    assert err[0].startswith(f"error: {says}")


def test_another_program__is_refused(run, fake: FakeSwitch) -> None:
    fake.memory.program = ProgramIdentity("basic", None)
    status, _, err = run("apply", which=("--file", str(EXAMPLE), *FAKE))
    assert (status, err) == (
        1, ["error: fake switch at test: runs the program 'basic', not 'bufferscope': nothing was changed on it"],
    )  # fmt: skip


def test_writers__are_one_at_a_time(run, fake: FakeSwitch) -> None:
    fake.set_policy(2, TailDrop(5))
    with fake.writing():
        for words in (("threshold", "set", "2", "9p"), ("mode", "2", "unwatched"), ("postcards", "off", "2")):
            status, _, err = run(*words)
            assert (status, len(err)) == (1, 1)
            assert "another connection is writing to it" in err[0]
    assert fake.policy(2) == TailDrop(5)
