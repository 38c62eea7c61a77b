# SPDX-License-Identifier: MIT
"""The tofino backend on tables in memory: mapping of queues, settings of the traffic manager, ports, refusals."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from controlplane import sde_tables
from controlplane.apply import ApplyError, apply, plan
from controlplane.bfrt import TableEntry
from controlplane.desired import desired
from controlplane.policy import Ecn, EgressThreshold, TailDrop, Unit, Unwatched
from controlplane.spec import validate
from controlplane.spec_file import SpecFileError
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


def buffer(switch: TofinoSwitch, port: int) -> TableEntry:
    """The buffer settings of the port's queue in the traffic manager, looked up through the queue map."""
    device = switch._tables.device  # type: ignore[attr-defined]
    mapped = device.entries[sde_tables.on_chip(sde_tables.TM_QUEUE_MAP, device.chip), port >> 7]
    (key,) = [key for key, row in mapped.items() if row.fields == {"dev_port": port, "queue_nr": 0}]
    return device.entries[sde_tables.on_chip(sde_tables.TM_QUEUE_BUFFER, device.chip), port >> 7][key]


def test_capabilities__have_the_cell_size_of_the_chip(device: Device, switch: TofinoSwitch) -> None:
    assert switch.capabilities.cell_bytes == {"tf1": 80, "tf2": 176}[device.chip]
    assert not switch.capabilities.byte_thresholds
    assert not switch.capabilities.tail_drop_seen_by_program


def test_tail_drop__is_a_hard_limit_of_the_ports_own_queue(switch: TofinoSwitch) -> None:
    others = {port: buffer(switch, port) for port in (1, 3, 136)}
    switch.set_policy(2, TailDrop(3000, Unit.CELLS))
    fields = buffer(switch, 2).fields
    assert (fields["guaranteed_cells"], fields["pool_max_cells"]) == (24, 2976)
    assert (fields["dynamic_baf"], fields["tail_drop_enable"], fields["hysteresis_cells"]) == ("DISABLE", True, 0)
    switch.set_policy(2, TailDrop(10, Unit.CELLS))
    fields = buffer(switch, 2).fields
    assert (fields["guaranteed_cells"], fields["pool_max_cells"]) == (10, 0)
    assert {port: buffer(switch, port) for port in others} == others
    assert switch.queue(2) == Queue()


def test_ecn__limits_the_queue_at_its_hard_limit(switch: TofinoSwitch) -> None:
    switch.set_policy(2, Ecn(500, 3000, Unit.CELLS))
    row = buffer(switch, 2)
    assert row.number("guaranteed_cells") + row.number("pool_max_cells") == 3000
    assert switch.policy(2) == Ecn(500, 3000, Unit.CELLS)


def test_egress_threshold__gives_the_queue_back_to_the_shared_pool(switch: TofinoSwitch) -> None:
    before = buffer(switch, 2)
    switch.set_policy(2, TailDrop(3000, Unit.CELLS))
    switch.set_policy(2, EgressThreshold(400, True, Unit.CELLS))
    assert buffer(switch, 2) == before
    switch.set_queue(2, Queue(limit_cells=9000))
    switch.set_policy(2, EgressThreshold(500, True, Unit.CELLS))
    assert switch.queue(2) == Queue(limit_cells=9000)


def test_policy__reports_the_traffic_managers_limit(device: Device, switch: TofinoSwitch) -> None:
    """The reported threshold is the traffic manager's limit, also after another client changed the limit."""
    switch.set_policy(2, TailDrop(3000, Unit.CELLS))
    queues = switch._queues
    queues.set_limit_cells(2, 2000)
    assert switch.policy(2) == TailDrop(2000, Unit.CELLS)
    queues.set_limit_cells(2, None)
    assert switch.policy(2) == TailDrop(queues.total_cells, Unit.CELLS)


@pytest.mark.parametrize(
    ("changed", "action", "limit"),
    [
        ({"tail_drop_enable": False, "dynamic_baf": "DISABLE"}, "shared_pool", None),
        ({"dynamic_baf": "3%"}, "shared_pool", None),
        ({"dynamic_baf": "DISABLE"}, "shared_pool", 2024),
        ({}, "buffer_only", 24),
    ],
)
def test_limit__is_none_if_the_queue_does_not_drop_at_it(
    device: Device, switch: TofinoSwitch, changed, action: str, limit
) -> None:
    """A queue has no limit of its own if its limit varies with the pool's free cells, or if tail drop is disabled."""
    place = switch._queues.place(2)
    table = sde_tables.on_chip(sde_tables.TM_QUEUE_BUFFER, device.chip)
    device.entries[table, 0][tuple(sorted(place.key.items()))] = TableEntry(
        {**buffer(switch, 2).fields, **changed}, action
    )
    assert switch.queue(2) == Queue(limit_cells=limit)


def test_place__that_another_port_has_is_refused(device: Device, switch: TofinoSwitch) -> None:
    table = sde_tables.on_chip(sde_tables.TM_QUEUE_MAP, device.chip)
    for key in device.entries[table, 0]:
        device.entries[table, 0][key] = TableEntry({"dev_port": 1, "queue_nr": 0})
    with pytest.raises(SwitchError, match=r"table tf[12].tm.queue.map, key .*, pipe 0: is port 1's, not port 2's"):
        switch.queue(2)


def test_rate__is_rounded_by_the_chip_and_read_back(device: Device, switch: TofinoSwitch) -> None:
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
    switch.set_queue(2, Queue())
    assert switch.queue(2) == Queue()


@pytest.mark.parametrize(
    ("queue", "says"),
    [
        (Queue(rate_bps=0), "cannot serve 0 bit/s; allowed: 1 to 4294967295000"),
        (Queue(rate_bps=2**32 * 1000 - 1), "cannot serve 4294967295999 bit/s"),
        (Queue(rate_pps=2**32), "cannot serve 4294967296 packets/s; allowed: 1 to 4294967295"),
    ],
)
def test_rate__that_the_chips_table_cannot_hold_is_refused(
    device: Device, switch: TofinoSwitch, queue: Queue, says: str
) -> None:
    with pytest.raises(SwitchError, match=f"port 2: tofino switch at memory {says}"):
        switch.set_queue(2, queue)
    assert device.writes == 0


def test_deflection__goes_to_a_port_of_the_same_pipe(switch: TofinoSwitch) -> None:
    assert switch.deflection() == ({0: 0, 1: 128} if switch._tables.chip == "tf1" else {}), (
        "deflection must be off at the start on Tofino 2"
    )
    switch.set_deflection(136)
    switch.set_deflection(3)
    assert switch.deflection() == {0: 3, 1: 136}


def test_front_panel__is_set_and_taken_down(switch: TofinoSwitch) -> None:
    assert switch.front_panel(2) is None
    wanted = FrontPanel(100 * 10**9, "reed-solomon", "on")
    switch.set_front_panel(2, wanted)
    assert switch.front_panel(2) == wanted
    with pytest.raises(SwitchError, match="has no speed of 33000000000 bit/s; allowed: 1gbit, 10gbit"):
        switch.set_front_panel(2, FrontPanel(33 * 10**9))
    assert switch.front_panel(2) == wanted
    assert "port.2.queue_drops" in switch.target_counters()
    switch.set_front_panel(2, None)
    assert switch.front_panel(2) is None


def test_postcards__go_through_an_egress_mirror_session(device: Device, switch: TofinoSwitch) -> None:
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


def test_postcards__make_the_traffic_manager_stamp_in_ns(device: Device, switch: TofinoSwitch) -> None:
    table = sde_tables.on_chip(sde_tables.TM, device.chip)
    switch.set_postcards(2, 7)
    device.defaults[table, None] = TableEntry({**device.defaults[table, None].fields, "timestamp_shift_bits": 4})
    assert switch.postcards(2) is None
    switch.set_postcards(2, 7)
    assert switch.postcards(2) == 7
    assert device.defaults[table, None].fields["timestamp_shift_bits"] == 0


def test_apply__sets_up_a_whole_switch_once(device: Device, switch: TofinoSwitch) -> None:
    wanted = desired(validate(SPEC, "spec"), switch, "spec")
    packets, cell = 138, switch.capabilities.cell_bytes
    assert cell is not None
    cells = packets * -(-(9000 + 14 + 22) // cell)
    assert wanted.ports[2].policy == TailDrop(cells, Unit.CELLS)
    (note,) = wanted.notes
    assert f"1bdp is 138.305 full packets: 138; 138 packets of 9014 + 22 bytes are {cells} cells of {cell}" in note
    done = apply(switch, wanted)
    assert [change.setting for change in done.changes] == [
        "port 1/0 front panel", "port 1/1 front panel", "port 1/2 front panel", "port 1/1 policy", "port 1/1 queue",
        "deflection", "deflection", "collector", "port 1/1 postcards",
        "forwarding 02:bf:00:00:00:01", "forwarding 02:bf:00:00:00:02",
    ]  # fmt: skip
    assert done.in_force == ["port 1/1 queue: 10gbit is 9994.24mbit in this switch"]
    writes = device.writes
    assert apply(switch, wanted).changes == []
    assert device.writes == writes


def test_apply__reports_the_deflection_that_the_file_does_not_set(switch: TofinoSwitch) -> None:
    wanted = desired(validate({**SPEC, "deflect": []}, "spec"), switch, "spec")
    if switch._tables.chip == "tf1":
        assert wanted.notes[1:] == [
            "deflect: is not given: in pipe 0, packets that the traffic manager refuses go to device port 0",
            "deflect: is not given: in pipe 1, packets that the traffic manager refuses go to device port 128",
        ]
    else:
        assert wanted.notes[1:] == ["deflect: is not given, and deflection is off: refused packets get no postcard"]


def test_threshold__in_bdp_without_a_rate_uses_the_cables_speed(switch: TofinoSwitch) -> None:
    ports = {"1/1": {"speed": "10gbit", "policy": {"mode": "tail-drop", "threshold": "1bdp"}}}
    wanted = desired(validate({**SPEC, "ports": ports}, "spec"), switch, "spec")
    assert "1bdp is 138.305 full packets" in wanted.notes[0]


@pytest.mark.parametrize("writes", [0, 3, 4, 5, 7, 11])
def test_apply__after_a_lost_connection_does_the_rest(device: Device, switch: TofinoSwitch, writes: int) -> None:
    wanted = desired(validate(SPEC, "spec"), switch, "spec")
    device.writes_left = writes
    with pytest.raises(ApplyError, match="tofino switch at memory: UNAVAILABLE"):
        apply(switch, wanted)
    assert apply(switch, wanted).changes
    assert plan(switch, wanted) == []
    assert device.owner is None


@pytest.mark.parametrize(
    ("ports", "says"),
    [
        ({"33/0": {}}, "ports.33/0: the switch has no port '33/0'; it has 1/0, 1/1, 1/2, 17/0"),
        ({"1/1": {"limit": "5p"}}, "ports.1/1.limit: 5p: tofino limits a queue in cells"),
        (
            {"1/1": {"limit": "5c", "policy": {"mode": "tail-drop", "threshold": "5c"}}},
            "ports.1/1.limit: the policy sets the queue's limit here: leave `limit` out",
        ),
        (
            {"1/1": {"policy": {"mode": "tail-drop", "threshold": "500000c"}}},
            "ports.1/1: tofino switch at memory: port 2: a limit of 500000 cells; the buffer has",
        ),
    ],
)
def test_spec__an_impossible_setting_is_one_line(switch: TofinoSwitch, ports, says: str) -> None:
    with pytest.raises(SpecFileError) as refusal:
        desired(validate({**SPEC, "ports": ports, "deflect": []}, "spec"), switch, "spec")
    (line,) = refusal.value.lines
    assert line.startswith(f"spec: {says}")


def test_spec__both_errors_of_a_port_are_reported(switch: TofinoSwitch) -> None:
    ports = {"1/1": {"rate": "9999999gbit", "policy": {"mode": "tail-drop", "threshold": "500000c"}}}
    with pytest.raises(SpecFileError) as refusal:
        desired(validate({**SPEC, "ports": ports, "deflect": []}, "spec"), switch, "spec")
    limit, rate = refusal.value.lines
    assert "a limit of 500000 cells" in limit
    assert "cannot serve 9999999000000000 bit/s" in rate


def test_another_program__is_refused(device: Device) -> None:
    device.program_name = "switch"
    with pytest.raises(SwitchError, match="runs the program 'switch', not 'bufferscope'"):
        TofinoSwitch("memory", MemoryTables(device)).program()


def test_program__of_another_version_is_refused(device: Device) -> None:
    tables = {name: table for name, table in device.schema.tables.items() if not name.endswith("postcards")}
    device.schema = replace(device.schema, tables=tables)
    with pytest.raises(SwitchError, match=r"another version of bufferscope \(other tables\) than this checkout"):
        TofinoSwitch("memory", MemoryTables(device)).program()


def test_two_writers__are_refused_by_the_binding(device: Device, switch: TofinoSwitch) -> None:
    other = TofinoSwitch("memory", MemoryTables(device))
    with switch.writing(), pytest.raises(SwitchError, match="tofino switch at memory: another client is writing"):
        apply(other, desired(validate(SPEC, "spec"), other, "spec"))
    assert device.writes == 0


def test_set_policy__in_packets_is_refused(switch: TofinoSwitch) -> None:
    with pytest.raises(SwitchError, match="compares no packets; allowed: cells"):
        switch.set_policy(2, TailDrop(5))
    assert switch.policy(2) == Unwatched()


def test_sde__missing_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.delenv("SDE_INSTALL", raising=False)
    with pytest.raises(SwitchError, match="tofino: SDE_INSTALL is not set: it names the directory"):
        connect("tofino", "127.0.0.1:50052")
    monkeypatch.setenv("SDE_INSTALL", str(tmp_path))
    with pytest.raises(SwitchError, match=r"has no BF Runtime client: .*client.py does not exist; an SDE of "):
        connect("tofino", "127.0.0.1:50052")


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (
            "class ClientInterface:\n    def __init__(self, grpc_addr, client_id, device_id): ...\n",
            "knows no independent clients: an SDE of 9.7 or newer, or open-p4studio, is needed",
        ),
        (
            "import a_module_that_nobody_has\n",
            "does not load: No module named 'a_module_that_nobody_has'; pip",
        ),
        (
            "raise TypeError('Descriptors cannot be created directly.\\nmore')\n",
            "does not load: Descriptors cannot be created",
        ),
    ],
    ids=["old", "incomplete", "other-protobuf"],
)
def test_sde__that_cannot_serve_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path, source: str, says: str) -> None:
    package = tmp_path / "lib/python3.11/site-packages/tofino/bfrt_grpc"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "client.py").write_text(source)
    for name in [name for name in sys.modules if name.split(".")[0] == "bfrt_grpc"]:
        monkeypatch.delitem(sys.modules, name)  # restored at the end
    monkeypatch.setenv("SDE_INSTALL", str(tmp_path))
    try:
        with pytest.raises(SwitchError, match=says) as refusal:
            connect("tofino", "127.0.0.1:50052")
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == "bfrt_grpc"]:
            del sys.modules[name]
    assert "\n" not in str(refusal.value)
