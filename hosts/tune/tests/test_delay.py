# SPDX-License-Identifier: MIT
"""delay.py names a missing kernel feature, and cleans up. Its plumbing is also tested without netem."""

import json

import pytest

from hosts.tune import congestion, delay
from hosts.tune.commands import TuneError

APPLY = ["apply", "--interface", "eth0", "--delay-ns", "5000000", "--bdp-packets", "163"]


def queues(pair) -> list[str]:
    """Kinds of all queues of side b, and its devices."""
    qdiscs = json.loads(pair.run("b", "tc", "-j", "qdisc", "show").stdout or "[]")
    return [qdisc["kind"] for qdisc in qdiscs] + pair.run("b", "ls", "/sys/class/net").stdout.split()


def run_here(pair, code: str) -> str:
    return pair.run("b", "python3", "-c", f"from hosts.tune import delay; {code}").stdout


@pytest.mark.software
@pytest.mark.parametrize("place", delay.PLACES)
def test_delay__apply_and_undo_or_a_clear_error(pair, tmp_path, place):
    state = tmp_path / "delay.json"
    before = queues(pair)
    done = pair.python("b", "hosts.tune.delay", *APPLY, "--at", place, "--state", state, check=False)
    if done.returncode:
        assert done.stderr == f"delay: {delay.NO_NETEM}\n"
        assert "sch_netem" in done.stderr
        assert "CONFIG_NET_SCH_NETEM" in done.stderr
        assert "DELAY=switch" in done.stderr
    else:
        result = json.loads(done.stdout)
        assert result["limit_packets"] == 245
        assert result["distorted_by_tcp_small_queues"] == (place == "sender-egress")
        again = pair.python("b", "hosts.tune.delay", *APPLY, "--at", place, "--state", state)
        assert json.loads(again.stdout)["changed"] is False
        pair.python("b", "hosts.tune.delay", "undo", "--state", state)
    assert queues(pair) == before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.software
@pytest.mark.parametrize("place", delay.PLACES)
def test_delay__plumbing_carries_packets_through_the_queue_once(pair, place):
    """The test uses a byte FIFO, which every kernel has, instead of netem."""
    before = queues(pair)
    run_here(pair, f"delay.build('eth0', '{place}', ['bfifo', 'limit', '1000000'])")
    pair.run("a", "ping", "-c", "10", "-i", "0.01", "-w", "30", "-q", "10.77.0.2")
    device = "eth0" if place == "sender-egress" else delay.IFB
    counted = json.loads(pair.run("b", "tc", "-j", "-s", "qdisc", "show", "dev", device).stdout)
    fifo = next(qdisc for qdisc in counted if qdisc["kind"] == "bfifo")
    assert 10 <= fifo["packets"] < 30
    run_here(pair, f"delay.remove('eth0', '{place}')")
    assert queues(pair) == before
    pair.run("a", "ping", "-c", "1", "-w", "30", "-q", "10.77.0.2")


@pytest.mark.software
def test_delay__queue_of_somebody_else_is_not_touched(pair, tmp_path):
    pair.run("b", "tc", "qdisc", "add", "dev", "eth0", "clsact")
    before = queues(pair)
    done = pair.python("b", "hosts.tune.delay", *APPLY, "--state", tmp_path / "delay.json", check=False)
    assert done.returncode == 1
    assert "eth0 has a queue of kind clsact already" in done.stderr
    assert queues(pair) == before


@pytest.mark.software
def test_delay__device_of_somebody_else_is_not_touched(pair, tmp_path):
    pair.run("b", "ip", "link", "add", delay.IFB, "type", "veth")
    before = queues(pair)
    done = pair.python("b", "hosts.tune.delay", *APPLY, "--state", tmp_path / "delay.json", check=False)
    assert done.stderr == "delay: there is a device bf_delay already: remove it (ip link del bf_delay) first\n"
    assert queues(pair) == before


@pytest.mark.software
def test_delay__limit_below_one_and_a_half_bdp_is_refused(pair, tmp_path):
    words = [*APPLY, "--limit-packets", "244", "--state", tmp_path / "delay.json"]
    done = pair.python("b", "hosts.tune.delay", *words, check=False)
    assert done.returncode == 1
    assert done.stderr == "delay: --limit-packets 244: netem would drop: give at least 245 (1.5 x 163)\n"


def test_netem__has_an_explicit_limit_and_ns():
    assert delay.netem(5_000_001, 245) == ["netem", "delay", "5000.001us", "limit", "245"]


def test_congestion__unknown_one_lists_what_there_is():
    with pytest.raises(TuneError, match=r"congestion control nosuch: this host has (\w+, )*cubic"):
        congestion.ensure(["nosuch"])


@pytest.mark.parametrize("name", ["a;b", "", "-v", "Cubic", "a" * 16, "../x"])
def test_congestion__name_of_another_shape_never_reaches_modprobe(name):
    with pytest.raises(TuneError, match="is not the name of a congestion control"):
        congestion.ensure([name])


def test_congestion__present_ones_change_nothing():
    assert congestion.ensure(congestion.available()) is False
