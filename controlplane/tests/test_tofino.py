# SPDX-License-Identifier: MIT
"""The tofino backend on tables in memory: mapping of queues, settings of the traffic manager, ports, refusals."""

import sys
from dataclasses import replace
from typing import Any

import pytest

from controlplane import sde_tables
from controlplane.apply import Desired, apply
from controlplane.bfrt import TableEntry
from controlplane.desired import desired
from controlplane.policy import Ecn, EgressThreshold, TailDrop, Unit
from controlplane.spec import SpecFileError, validate
from controlplane.switch import Collector, FrontPanel, Queue, SwitchError
from controlplane.targets import connect
from controlplane.tests.bfrt_memory import Device, MemoryTables
from controlplane.tofino import TofinoSwitch

SPEC = {
    "target": "tofino", "address": "memory", "mtu": "9000", "rtt": "1ms",
    "ports": {
        "1/0": {"speed": "25gbit", "fec": "none"},
        "1/1": {
            "speed": "10gbit", "auto_negotiation": "off", "rate": "10gbit", "postcards": "1",
            "policy": {"mode": "tail-drop", "threshold": "1bdp"},
        },
        "1/2": {"speed": "25gbit"},
    },
    "forwarding": {"02:bf:00:00:00:01": "1/0", "02:bf:00:00:00:02": "1/1"},
    "collector": {
        "port": "1/2", "switch_mac": "02:bf:00:00:01:03", "collector_mac": "02:bf:00:00:00:03",
        "switch_addr": "10.78.0.1", "collector_addr": "10.78.0.2",
    },
    "deflect": ["17/0", "100"],
}  # fmt: skip


@pytest.fixture(params=sde_tables.CHIPS)
def device(request: pytest.FixtureRequest) -> Device:
    return Device(request.param)


@pytest.fixture
def switch(device: Device) -> TofinoSwitch:
    return TofinoSwitch("memory", MemoryTables(device))


def wanted(switch: TofinoSwitch, **changes: Any) -> Desired:
    return desired(validate({**SPEC, **changes}, "spec"), switch, "spec")


def buffer(switch: TofinoSwitch, port: int) -> TableEntry:
    """The buffer settings of the port's queue in the traffic manager, looked up through the queue map."""
    device = switch._tables.device  # type: ignore[attr-defined]
    mapped = device.entries[sde_tables.on_chip(sde_tables.TM_QUEUE_MAP, device.chip), port >> 7]
    (key,) = [key for key, row in mapped.items() if row.fields == {"dev_port": port, "queue_nr": 0}]
    return device.entries[sde_tables.on_chip(sde_tables.TM_QUEUE_BUFFER, device.chip), port >> 7][key]


def test_tail_drop_and_ecn__are_a_hard_limit_of_the_ports_own_queue(device: Device, switch: TofinoSwitch) -> None:
    assert switch.capabilities.cell_bytes == {"tf1": 80, "tf2": 176}[device.chip]
    others = {port: buffer(switch, port) for port in (1, 3, 136)}
    for threshold, guaranteed, pool in ((3000, 24, 2976), (10, 10, 0)):
        switch.set_policy(2, TailDrop(threshold, Unit.CELLS))
        fields = buffer(switch, 2).fields
        assert (fields["guaranteed_cells"], fields["pool_max_cells"]) == (guaranteed, pool)
        assert (fields["dynamic_baf"], fields["tail_drop_enable"], fields["hysteresis_cells"]) == ("DISABLE", True, 0)
    switch.set_policy(2, Ecn(500, 3000, Unit.CELLS))
    row = buffer(switch, 2)
    assert row.number("guaranteed_cells") + row.number("pool_max_cells") == 3000
    assert switch.policy(2) == Ecn(500, 3000, Unit.CELLS)
    assert {port: buffer(switch, port) for port in others} == others
    assert switch.queue(2) == Queue()


def test_egress_threshold__gives_the_queue_back_to_the_shared_pool(switch: TofinoSwitch) -> None:
    before = buffer(switch, 2)
    switch.set_policy(2, TailDrop(3000, Unit.CELLS))
    switch.set_policy(2, EgressThreshold(400, True, Unit.CELLS))
    assert buffer(switch, 2) == before
    switch.set_queue(2, Queue(limit_cells=9000))
    switch.set_policy(2, EgressThreshold(500, True, Unit.CELLS))
    assert switch.queue(2) == Queue(limit_cells=9000)


def test_limit__is_none_if_the_queue_does_not_drop_at_it(device: Device, switch: TofinoSwitch) -> None:
    """A queue has no limit of its own if its limit varies with the pool's free cells, or if tail drop is disabled."""
    place, before = switch._queues.place(2), buffer(switch, 2).fields
    rows = device.entries[sde_tables.on_chip(sde_tables.TM_QUEUE_BUFFER, device.chip), 0]
    cases: list[tuple[dict[str, Any], str, int | None]] = [
        ({"tail_drop_enable": False, "dynamic_baf": "DISABLE"}, "shared_pool", None),
        ({"dynamic_baf": "3%"}, "shared_pool", None),
        ({"dynamic_baf": "DISABLE"}, "shared_pool", 2024),
        ({}, "buffer_only", 24),
    ]
    for changed, action, limit in cases:
        rows[tuple(sorted(place.key.items()))] = TableEntry({**before, **changed}, action)  # type: ignore[arg-type]
        assert switch.queue(2) == Queue(limit_cells=limit), changed


def test_place__that_another_port_has_is_refused(device: Device, switch: TofinoSwitch) -> None:
    table = sde_tables.on_chip(sde_tables.TM_QUEUE_MAP, device.chip)
    for key in device.entries[table, 0]:
        device.entries[table, 0][key] = TableEntry({"dev_port": 1, "queue_nr": 0})
    with pytest.raises(SwitchError, match=r"table tf[12].tm.queue.map, key .*, pipe 0: is port 1's, not port 2's"):
        switch.queue(2)


def test_rate__is_rounded_by_the_chip_and_read_back(device: Device, switch: TofinoSwitch) -> None:
    for queue in (Queue(rate_bps=0), Queue(rate_bps=2**32 * 1000 - 1), Queue(rate_pps=2**32)):
        with pytest.raises(SwitchError, match=f"cannot serve {queue.rate_bps or queue.rate_pps or 0} "):
            switch.set_queue(2, queue)
    assert device.writes == 0
    requested = Queue(rate_bps=1_234_567_000)
    switch.set_queue(2, requested)
    reported = switch.queue(2)
    assert reported != requested
    assert switch.holds(requested, reported)
    assert not switch.holds(replace(requested, rate_bps=1_244_567_000), reported)
    gap = device.defaults[sde_tables.on_chip(sde_tables.TM_PIPE_SHAPING, device.chip), 0]
    assert gap.fields == {"packet_ifg_compensation": 20}
    switch.set_queue(2, Queue(rate_pps=5000))
    assert switch.holds(Queue(rate_pps=5000), switch.queue(2))


def test_deflection__goes_to_a_port_of_the_same_pipe(device: Device, switch: TofinoSwitch) -> None:
    assert switch.deflection() == ({0: 0, 1: 128} if device.chip == "tf1" else {})  # Tofino 2 starts without
    notes = wanted(switch, deflect=[]).notes[1:]
    assert [note.partition(":")[0] for note in notes] == ["deflect"] * (2 if device.chip == "tf1" else 1)
    switch.set_deflection(136)
    switch.set_deflection(3)
    assert switch.deflection() == {0: 3, 1: 136}


def test_front_panel__is_set_and_taken_down(switch: TofinoSwitch) -> None:
    assert switch.front_panel(2) is None
    panel = FrontPanel(100 * 10**9, "reed-solomon", "on")
    switch.set_front_panel(2, panel)
    with pytest.raises(SwitchError, match="has no speed of 33000000000 bit/s"):
        switch.set_front_panel(2, FrontPanel(33 * 10**9))
    assert switch.front_panel(2) == panel
    assert "port.2.queue_drops" in switch.target_counters()
    switch.set_front_panel(2, None)
    assert switch.front_panel(2) is None


def test_postcards__go_through_an_egress_mirror_session_with_stamps_in_ns(device: Device, switch: TofinoSwitch) -> None:
    collector = Collector(3, "02:bf:00:00:01:03", "02:bf:00:00:00:03", "10.78.0.1", "10.78.0.2", 5577, 5577)
    switch.set_collector(collector)
    (row,) = device.entries[sde_tables.MIRROR, None].values()
    assert (row.action, row.fields["$direction"], row.fields["$max_pkt_len"]) == ("$normal", "EGRESS", 108)
    assert switch.collector() == collector
    device.entries[sde_tables.MIRROR, None] = {
        key: TableEntry({**row.fields, "$direction": "INGRESS"}, row.action)
        for key, row in device.entries[sde_tables.MIRROR, None].items()
    }
    assert switch.collector() is None
    table = sde_tables.on_chip(sde_tables.TM, device.chip)
    switch.set_postcards(2, 7)
    device.defaults[table, None] = TableEntry({**device.defaults[table, None].fields, "timestamp_shift_bits": 4})
    assert switch.postcards(2) is None
    switch.set_postcards(2, 7)
    assert switch.postcards(2) == 7
    assert device.defaults[table, None].fields["timestamp_shift_bits"] == 0


def test_apply__sets_up_a_whole_switch_once(device: Device, switch: TofinoSwitch) -> None:
    whole = wanted(switch)
    packets, cell = 138, switch.capabilities.cell_bytes
    assert cell is not None
    cells = packets * -(-(9000 + 14 + 22) // cell)
    assert whole.ports[2].policy == TailDrop(cells, Unit.CELLS)
    (note,) = whole.notes
    assert f"1bdp is 138.305 full packets: 138; 138 packets of 9014 + 22 bytes are {cells} cells of {cell}" in note
    done = apply(switch, whole)
    assert [change.setting for change in done.changes] == [
        "port 1/0 front panel", "port 1/1 front panel", "port 1/2 front panel", "port 1/1 policy", "port 1/1 queue",
        "deflection", "deflection", "collector", "port 1/1 postcards",
        "forwarding 02:bf:00:00:00:01", "forwarding 02:bf:00:00:00:02",
    ]  # fmt: skip
    assert done.in_force == ["port 1/1 queue: 10gbit is 9994.24mbit in this switch"]
    writes = device.writes
    assert apply(switch, whole).changes == []
    assert device.writes == writes
    # Without a rate, a threshold in BDP uses the cable's speed.
    policy = {"mode": "tail-drop", "threshold": "1bdp"}
    assert "1bdp is 138.305" in wanted(switch, ports={"1/1": {"speed": "10gbit", "policy": policy}}).notes[0]


def test_spec__impossible_settings_are_one_line_each(switch: TofinoSwitch) -> None:
    too_long = {"mode": "tail-drop", "threshold": "500000c"}
    for ports, says in (
        ({"33/0": {}}, ["ports.33/0"]),
        ({"1/1": {"limit": "5p"}}, ["ports.1/1.limit: 5p"]),
        ({"1/1": {"limit": "5c", "policy": {**too_long, "threshold": "5c"}}}, ["ports.1/1.limit: the policy"]),
        ({"1/1": {"rate": "9999999gbit", "policy": too_long}}, ["ports.1/1: ", "ports.1/1: "]),
    ):
        with pytest.raises(SpecFileError) as refusal:
            wanted(switch, ports=ports, deflect=[])
        for line, place in zip(refusal.value.lines, says, strict=True):
            assert line.startswith(f"spec: {place}")


def test_another_program__is_refused(device: Device) -> None:
    tables = {name: table for name, table in device.schema.tables.items() if not name.endswith("postcards")}
    device.schema = replace(device.schema, tables=tables)
    with pytest.raises(SwitchError, match=r"another version of bufferscope \(other tables\) than this checkout"):
        TofinoSwitch("memory", MemoryTables(device)).program()
    device.program_name = "switch"
    with pytest.raises(SwitchError, match="runs the program 'switch', not 'bufferscope'"):
        TofinoSwitch("memory", MemoryTables(device)).program()


CLIENTS = {  # the source of an SDE's client -> what the line says; None: there is no client
    None: "has no BF Runtime client: .*client.py does not exist",
    "class ClientInterface:\n    def __init__(self, grpc_addr, client_id, device_id): ...\n": "no independent clients",
    "import a_module_that_nobody_has\n": "does not load: No module named 'a_module_that_nobody_has'; pip",
    "raise TypeError('Descriptors cannot be created directly.\\nmore')\n": "does not load: Descriptors cannot",
}


def test_sde__that_cannot_serve_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    def forget() -> None:
        for name in [name for name in sys.modules if name.split(".")[0] == "bfrt_grpc"]:
            monkeypatch.delitem(sys.modules, name)

    monkeypatch.delenv("SDE_INSTALL", raising=False)
    with pytest.raises(SwitchError, match="tofino: SDE_INSTALL is not set: it names the directory"):
        connect("tofino", "127.0.0.1:50052")
    package = tmp_path / "lib/python3.11/site-packages/tofino/bfrt_grpc"
    monkeypatch.setenv("SDE_INSTALL", str(tmp_path))
    for source, says in CLIENTS.items():
        if source is not None:
            package.mkdir(parents=True, exist_ok=True)
            (package / "__init__.py").write_text("")
            (package / "client.py").write_text(source)
            forget()
        with pytest.raises(SwitchError, match=says) as refusal:
            connect("tofino", "127.0.0.1:50052")
        assert "\n" not in str(refusal.value)
    forget()
