# SPDX-License-Identifier: MIT
"""The SDE's own client, over gRPC, to a server in memory: names, refusals, bindings, lost connections.

Skipped visibly unless SDE_INSTALL has the client. No chip is behind the server.
"""

from __future__ import annotations

import pytest

from controlplane.__main__ import main
from controlplane.apply import apply
from controlplane.desired import desired
from controlplane.policy import TailDrop, Unit, Unwatched
from controlplane.spec import validate
from controlplane.switch import Count, Queue, Switch, SwitchError
from controlplane.targets import connect
from controlplane.tests.bfrt_memory import TableEntry
from controlplane.tests.bfrt_server import Server
from controlplane.tests.test_tofino import SPEC

pytestmark = pytest.mark.hardware


def test_apply__through_the_real_client_changes_nothing_the_second_time(bfrt: Server, tofino_client: Switch) -> None:
    wanted = desired(validate(SPEC, "spec"), tofino_client, "spec")
    assert len(apply(tofino_client, wanted).changes) == 11
    writes = bfrt.service.device.writes
    assert apply(tofino_client, wanted).changes == []
    assert bfrt.service.device.writes == writes


def test_counters__of_many_cells_are_read_at_once(bfrt: Server, tofino_client: Switch) -> None:
    device = bfrt.service.device
    for name, cell in (("arrivals", 2), ("depth_histogram", 2 * 128 + 5)):
        row = TableEntry({"$COUNTER_SPEC_PKTS": 7, "$COUNTER_SPEC_BYTES": 700})
        table = device.schema.counter(name).name
        device.entries[table, None] = {(("$COUNTER_INDEX", cell),): row}
    assert tofino_client.counters()["arrivals"] == {2: Count(7, 700)}
    assert tofino_client.histogram(2)[5] == (5, 7)


def test_two_writers__are_refused_by_the_server(bfrt: Server, tofino_client: Switch) -> None:
    says = f"tofino switch at {bfrt.address}: .*another client is writing to it, .*already owns this P4"
    with connect("tofino", bfrt.address) as other, tofino_client.writing():
        with pytest.raises(SwitchError, match=says), other.writing():
            pass
        assert other.policy(2) == Unwatched()  # reading needs no binding
    with connect("tofino", bfrt.address) as other, other.writing():
        other.set_policy(2, TailDrop(50, Unit.CELLS))
    assert tofino_client.policy(2) == TailDrop(50, Unit.CELLS)


def test_refusals__of_the_server_name_table_and_value(bfrt: Server, tofino_client: Switch) -> None:
    bfrt.service.device.entries.clear()
    with pytest.raises(SwitchError, match=r"tofino switch at .*: table tf[12].tm.port.cfg, key .*'dev_port': 2.*no"):
        tofino_client.queue(2)


def test_lost_connection__is_one_line(bfrt: Server, tofino_client: Switch) -> None:
    bfrt.service.stopped = True
    with pytest.raises(SwitchError, match=r"tofino switch at .*: table .*forward: UNAVAILABLE, Socket closed"):
        tofino_client.forwarding()


def test_nobody_there__is_one_line(sde: None) -> None:
    with pytest.raises(SwitchError, match=r"no tofino switch answers at 127.0.0.1:9: does bf_switchd run there\?"):
        connect("tofino", "127.0.0.1:9")


@pytest.mark.parametrize(
    ("program", "says"),
    [("switch", "runs the program 'switch', not 'bufferscope'"), ("", "bf_switchd runs no P4 program")],
)
def test_another_program__is_refused(bfrt: Server, program: str, says: str) -> None:
    bfrt.service.device.program_name = program
    with pytest.raises(SwitchError, match=says):
        connect("tofino", bfrt.address)


def test_command_line__sets_a_threshold(bfrt: Server, capsys: pytest.CaptureFixture[str]) -> None:
    which = ("--target", "tofino", "--address", bfrt.address)
    assert main(["mode", "1/1", "tail-drop", "--threshold", "400c", *which]) == 0
    assert main(["threshold", "set", "1/1", "100p", "--mtu", "1500", *which]) == 0
    assert "100 packets of 1514 + 22 bytes are" in capsys.readouterr().out
    with connect("tofino", bfrt.address) as switch:
        cells = 100 * -(-(1514 + 22) // (switch.capabilities.cell_bytes or 0))
        assert switch.policy(2) == TailDrop(cells, Unit.CELLS)
        assert switch.queue(2) == Queue()
