# SPDX-License-Identifier: MIT
"""A running simple_switch of BMv2: frames through the switch, its counters and queue, restarts. Modules and addresses
of BMv2's client are tested without a simple_switch.
"""

import sys
import time
from functools import partial
from pathlib import Path

import pytest

from controlplane import bmv2_client
from controlplane.apply import ApplyError, Desired, apply
from controlplane.bmv2 import Bmv2Switch
from controlplane.desired import desired
from controlplane.policy import Ecn, EgressThreshold, TailDrop, Unit, Unwatched
from controlplane.spec import validate
from controlplane.switch import Queue, SwitchError
from controlplane.targets import connect
from controlplane.tests.test_spec import EXAMPLE
from lib import strict_yaml
from p4src.tests.bmv2_target import Bmv2, why_not

PROGRAMS = Path(__file__).parents[2] / "softswitch/tests/translate/programs/build"
FRAME = bytes.fromhex("02bf0000000202bf00000001") + b"\x88\xb5" + bytes(86)


def lab_file(switch: Bmv2Switch) -> Desired:
    """The example file, with BMv2's port names."""
    content = strict_yaml.load(EXAMPLE) or {}
    content["ports"] = {f"port{name}": settings for name, settings in content["ports"].items()}
    content["forwarding"] = {mac: f"port{name}" for mac, name in content["forwarding"].items()}
    content["collector"]["port"] = "port3"
    return desired(validate(content, "example"), switch, "example")


def stop_and_ask(lab: Bmv2, switch: Bmv2Switch, _: object) -> None:
    lab.stop()
    switch.forwarding()


@pytest.mark.software
@pytest.mark.skipif(bool(why_not()), reason=f"bmv2: {why_not()}")
class TestRunning:
    def test_registers__that_are_not_there_are_refused(self, bmv2: Bmv2Switch) -> None:
        for name, index, value, says in (
            ("admitted_bytes", 7, 2**32, "register admitted_bytes, index 7: value 4294967296 does not fit in 32 bits"),
            ("admitted_bytes", 512, 1, "register admitted_bytes, index 512, value 1: INVALID_INDEX"),
            ("absent", 1, 1, "no register 'absent' in .*: it has .*admitted_bytes"),
        ):
            with pytest.raises(SwitchError, match=says):
                bmv2.set_register(name, index, value)

    def test_clock__ticks_in_microseconds(self, bmv2: Bmv2Switch) -> None:
        before = time.time()
        elapsed_us, since_1970_us = bmv2.clock_us()
        assert 0 < elapsed_us < 3600e6
        assert before - 1 < since_1970_us / 1e6 < time.time() + 1

    def test_queue__of_a_port_that_is_not_there_is_refused(self, bmv2: Bmv2Switch) -> None:
        with pytest.raises(SwitchError, match=r"port 9: bmv2 switch at .* has no such port: 1, 2, 3"):
            bmv2.set_queue(9, Queue())
        with pytest.raises(SwitchError, match="a limit of 0 packets: 1 to 2147483647"):
            bmv2.set_queue(2, Queue(limit_packets=0))
        with pytest.raises(SwitchError, match="a rate of 1000000000 packets/s"):
            bmv2.set_queue(2, Queue(rate_pps=10**9))

    def test_apply__after_a_restart_halfway_makes_all_changes_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A restart of BMv2 loses all settings, and the notes of queue settings that BMv2 itself stores."""
        with Bmv2() as lab:
            with lab.client() as switch:
                wanted = lab_file(switch)
                monkeypatch.setattr(switch, "set_collector", partial(stop_and_ask, lab, switch))
                with pytest.raises(ApplyError, match="lost the connection") as failure:
                    apply(switch, wanted)
                assert failure.value.lines[1] == "applied 2 of 7 changes; applying again does the rest"
            lab.start()
            with lab.client() as switch:
                assert len(apply(switch, wanted).changes) == 7
                assert apply(switch, wanted).changes == []

    def test_another_program__is_refused(self) -> None:
        with Bmv2(PROGRAMS / "clones.json") as lab, lab.client() as switch, pytest.raises(SwitchError) as refusal:
            switch.program()
        assert "runs the program 'clones', not 'bufferscope'" in str(refusal.value)


def test_modules__missing_or_not_loading_are_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BMV2_PYTHON", str(tmp_path))
    with pytest.raises(SwitchError, match=f"bm_runtime and sswitch_runtime are not found: .*sought in {tmp_path}"):
        connect("bmv2", "127.0.0.1:9090")
    for name in bmv2_client.PACKAGES:  # modules generated for another version of Python fail like this
        monkeypatch.delitem(sys.modules, name, raising=False)
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("print 1\n")
    with pytest.raises(SwitchError, match="BMv2's Python modules do not load: Missing parentheses"):
        connect("bmv2", "127.0.0.1:9090")


def test_address__has_defaults_and_one_spelling_for_the_lock() -> None:
    for address, means in (
        ("10.0.0.1:9091", ("10.0.0.1", 9091)),
        (":9091", ("127.0.0.1", 9091)),
        ("box", ("box", 9090)),
    ):
        assert bmv2_client.split_address(address) == means
    assert bmv2_client.resolved("localhost:9090") == bmv2_client.resolved(":9090") == "127.0.0.1:9090"
    assert bmv2_client.resolved("no-such-host.invalid:9090") == "no-such-host.invalid:9090"
    for address in ("box:", "box:0", "box:65536", "box:http", "box:٣"):
        with pytest.raises(SwitchError, match="is not HOST:PORT"):
            bmv2_client.split_address(address)


def test_policy__that_the_queues_own_limit_preempts_is_refused() -> None:
    switch = Bmv2Switch.__new__(Bmv2Switch)  # without a connection
    for policy, least_limit in (
        (TailDrop(163), 164),
        (Ecn(40, 163), 164),
        (EgressThreshold(100, mark_instead_of_drop=True), 101),
        (TailDrop(6000, Unit.BYTES), 101),
        (TailDrop(6001, Unit.BYTES), 102),
        (Ecn(1000, 6000, Unit.BYTES), 101),
        (EgressThreshold(6000, unit=Unit.BYTES), 101),
    ):
        for limit in (least_limit, None):
            assert switch.silent_drops(policy, Queue(limit_packets=limit)) == "", policy
        refusal = switch.silent_drops(policy, Queue(limit_packets=least_limit - 1))
        assert f"the queue itself holds {least_limit - 1} packets" in refusal
    assert switch.silent_drops(Unwatched(), Queue(limit_packets=1)) == ""
