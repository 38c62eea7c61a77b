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
def test_delay__apply_and_undo_or_a_clear_error(pair, tmp_path):
    before = queues(pair)
    for place in delay.PLACES:
        words = [*APPLY, "--at", place, "--state", tmp_path / "delay.json"]
        done = pair.python("b", "hosts.tune.delay", *words, check=False)
        if done.returncode:
            assert done.stderr == f"delay: {delay.NO_NETEM}\n"
        else:
            result = json.loads(done.stdout)
            assert result["limit_packets"] == 245
            assert result["distorted_by_tcp_small_queues"] == (place == "sender-egress")
            again = pair.python("b", "hosts.tune.delay", *words)
            assert json.loads(again.stdout)["changed"] is False
            pair.python("b", "hosts.tune.delay", "undo", "--state", tmp_path / "delay.json")
        assert queues(pair) == before
        assert list(tmp_path.iterdir()) == []


@pytest.mark.software
def test_delay__plumbing_carries_packets_through_the_queue_once(pair):
    """The test uses a byte FIFO, which every kernel has, instead of netem."""
    before = queues(pair)
    for place in delay.PLACES:
        run_here(pair, f"delay.build('eth0', '{place}', ['bfifo', 'limit', '1000000'])")
        pair.run("a", "ping", "-c", "10", "-i", "0.01", "-w", "30", "-q", "10.77.0.2")
        device = "eth0" if place == "sender-egress" else delay.IFB
        counted = json.loads(pair.run("b", "tc", "-j", "-s", "qdisc", "show", "dev", device).stdout)
        fifo = next(qdisc for qdisc in counted if qdisc["kind"] == "bfifo")
        assert 10 <= fifo["packets"] < 30, place
        run_here(pair, f"delay.remove('eth0', '{place}')")
        assert queues(pair) == before
    pair.run("a", "ping", "-c", "1", "-w", "30", "-q", "10.77.0.2")


@pytest.mark.software
def test_delay__refuses_what_belongs_to_somebody_else_and_a_limit_that_drops(pair, tmp_path):
    def refused(*words: str) -> str:
        before = queues(pair)
        words = (*APPLY, "--state", tmp_path / "delay.json", *words)
        done = pair.python("b", "hosts.tune.delay", *words, check=False)
        assert (done.returncode, queues(pair)) == (1, before)
        return done.stderr

    assert "give at least 245 (1.5 x 163)" in refused("--limit-packets", "244")
    pair.run("b", "ip", "link", "add", delay.IFB, "type", "veth")
    assert f"there is a device {delay.IFB} already" in refused()
    pair.run("b", "tc", "qdisc", "add", "dev", "eth0", "clsact")
    assert "eth0 has a queue of kind clsact already" in refused()


def test_netem__has_an_explicit_limit_and_ns():
    assert delay.netem(5_000_001, 245) == ["netem", "delay", "5000.001us", "limit", "245"]


def test_congestion__unknown_ones_are_named_and_other_shapes_never_reach_modprobe():
    with pytest.raises(TuneError, match=r"congestion control nosuch: this host has (\w+, )*cubic"):
        congestion.ensure(["nosuch"])
    for name in ("a;b", "", "-v", "Cubic", "a" * 16, "../x"):
        with pytest.raises(TuneError, match="is not the name of a congestion control"):
            congestion.ensure([name])
    assert congestion.ensure(congestion.available()) is False
