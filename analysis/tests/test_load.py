# SPDX-License-Identifier: MIT
"""Raw files: intact, cut off, with flipped bits, of other kinds, and made of noise."""

import json
import random
import struct

import numpy as np
import pytest
import yaml

from analysis import flows as flows_module
from analysis.flows import FiveTuple, FlowTable, address_text
from analysis.load import load
from analysis.raw import load_postcards, load_tcp
from analysis.tests import simulate
from lib.errors import InputError
from wire import wire


def test_load__gives_back_every_field(known):
    run, truth = known.analysis.run, known.truth
    assert run.raw["postcards"].records == len(truth.cards)
    for column, key in (
        ("enqueue_mono_ns", "enqueue_ns"), ("sojourn_ns",) * 2, ("flags",) * 2, ("depth_packets",) * 2,
        ("depth_bytes",) * 2, ("packet_bytes",) * 2, ("tcp_seq",) * 2, ("card_seq",) * 2,
    ):  # fmt: skip
        assert run.postcards[column].tolist() == [card[key] for card in truth.cards], column
    ports = [run.flows[number].src_port for number in run.postcards["flow"]]
    assert ports == [30_000 + flow for flow in truth.arrival_flow]
    records = sorted(truth.records, key=lambda record: record["mono_ns"])
    for column in ("mono_ns", "event", "snd_una", "cwnd_packets", "lost_out", "srtt_us", "ca_state"):
        assert run.tcp[column].tolist() == [record[column] for record in records], column
    assert run.problems == []


@pytest.mark.parametrize("cut", [1, 64, 1000])
def test_load__uses_the_records_before_a_cut(fresh, cut):
    directory = fresh()
    path = directory / "postcards.bsp"
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    run = load(directory)
    raw = run.raw["postcards"]
    assert raw.blocks > 3
    assert raw.records == raw.blocks * 500
    assert raw.size_bytes - raw.damaged_bytes == raw.blocks * (wire.BLOCK.length + 500 * wire.STORED_POSTCARD.itemsize)
    assert f"postcards.bsp: damaged or cut off at byte {raw.size_bytes - raw.damaged_bytes}" in str(raw.damage())


@pytest.mark.parametrize("seed", range(6))
def test_load__stops_at_a_flipped_bit(fresh, seed):
    directory = fresh()
    path = directory / "tcp.bst"
    data = bytearray(path.read_bytes())
    at = random.Random(seed).randrange(len(data))
    data[at] ^= 1 << random.Random(seed).randrange(8)
    path.write_bytes(data)
    raw = load(directory).raw["tcp"]
    block = wire.BLOCK.length + 500 * wire.STORED_TCP_RECORD.itemsize
    assert raw.blocks == at // block
    assert raw.damaged_bytes == len(data) - raw.blocks * block


def test_load__counts_records_missing_by_block_headers(fresh):
    directory = fresh()
    path = directory / "tcp.bst"
    data = path.read_bytes()
    block = wire.BLOCK.length + 500 * wire.STORED_TCP_RECORD.itemsize
    lossy = wire.encode_block(
        simulate.BLOCK["BLOCK_TCP"],
        simulate.EVENT["TCP_RECORD_VERSION"],
        wire.STORED_TCP_RECORD.itemsize,
        data[-wire.STORED_TCP_RECORD.itemsize :],
        first_record=100_000,
        lost_records=7,
        realtime_minus_mono_ns=simulate.REALTIME_MINUS_MONO_NS - 5_000_000,
    )
    path.write_bytes(data[:block] + data[2 * block : 3 * block] + lossy)
    raw = load(directory).raw["tcp"]
    assert (raw.records, raw.missing_records, raw.lost_records) == (1001, 500 + 100_000 - 1500, 7)
    assert raw.clock_step_max_ns == 5_000_000
    assert raw.damaged_bytes == 0


def test_load__of_an_empty_file_is_no_rows(tmp_path):
    path = tmp_path / "postcards.bsp"
    path.write_bytes(b"")
    columns, flows, raw = load_postcards(path)
    assert (len(columns["flags"]), len(flows), raw.records, raw.damage()) == (0, 0, 0, None)


def test_load__refuses_a_file_of_the_wrong_kind(fresh):
    directory = fresh()
    (directory / "postcards.bsp").write_bytes((directory / "tcp.bst").read_bytes())
    with pytest.raises(InputError, match=r"postcards.bsp: block at byte 0 .*analyse it with the version that wrote it"):
        load(directory)


def test_load__leaves_out_postcards_of_another_version(tmp_path):
    version, record = simulate.CARD["POSTCARD_VERSION"], wire.STORED_POSTCARD.itemsize
    good = struct.pack("<Q", 5) + wire.POSTCARD.encode(version=version, packet_bytes=100)
    bad = struct.pack("<Q", 6) + wire.POSTCARD.encode(version=9)
    path = tmp_path / "postcards.bsp"
    path.write_bytes(wire.encode_block(simulate.BLOCK["BLOCK_POSTCARDS"], version, record, good + bad + good))
    columns, _, raw = load_postcards(path)
    assert (raw.records, raw.bad_records, columns["packet_bytes"].tolist()) == (2, 1, [100, 100])


def test_load__reads_postcards_of_version_1(tmp_path):
    card = struct.pack("<Q", 5) + wire.POSTCARD_1.encode(version=1, packet_bytes=100, tcp_ack=7)
    path = tmp_path / "postcards.bsp"
    path.write_bytes(wire.encode_block(simulate.BLOCK["BLOCK_POSTCARDS"], 1, len(card), card * 2))
    columns, _, raw = load_postcards(path)
    assert (raw.records, raw.bad_records, columns["packet_bytes"].tolist()) == (2, 0, [100, 100])
    assert (columns["tcp_ack"].tolist(), columns["depth_unit"].tolist()) == ([7, 7], [0, 0])


@pytest.mark.parametrize("seed", range(30))
def test_load__survives_noise(tmp_path, seed):
    noise = random.Random(seed)
    path = tmp_path / "postcards.bsp"
    kind = simulate.BLOCK["BLOCK_POSTCARDS"]
    version, record = simulate.CARD["POSTCARD_VERSION"], wire.STORED_POSTCARD.itemsize
    parts = []
    for _ in range(noise.randrange(4)):
        body = b"".join(
            noise.randbytes(8) + bytes([version]) + noise.randbytes(record - 9) for _ in range(noise.randrange(1, 50))
        )
        parts.append(wire.encode_block(kind, version, record, body, first_record=noise.randrange(1 << 40)))
    path.write_bytes(b"".join(parts) + noise.randbytes(noise.randrange(3000)))
    columns, flows, raw = load_postcards(path)
    assert raw.records == len(columns["flow"]) == len(columns["enqueue_mono_ns"])
    assert len(flows) <= raw.records
    assert raw.damaged_bytes <= raw.size_bytes
    load_tcp(tmp_path / "none")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("spec.yaml", None, "spec.yaml: missing; give the directory of a repetition"),
        ("spec.yaml", "a: [", "spec.yaml: is not YAML: expected the node content"),
        ("spec.yaml", "- 1", "spec.yaml: holds no keys"),
        ("spec.yaml", "spec_version: 7", "spec_version is 7; this bufferscope reads 1; use a newer bufferscope"),
        ("spec.yaml", "a: 1", "spec_version must be 1, is None; restore it"),
        ("spec.yaml", "spec_version: true", "spec_version must be 1, is True; restore it"),
        ("spec.yaml", "spec_version: 1\nrtt_ns: -3", "rtt_ns must be a positive integer below 2**60, is -3"),
        ("spec.yaml", {"rtt_ns": 2**60}, f"rtt_ns must be a positive integer below 2**60, is {2**60}"),
        ("spec.yaml", "spec_version: 1\nwarmup_ns: -1", "must be an integer, 0 or more and below 2**60, is -1"),
        ("spec.yaml", "spec_version: 1\nwarmup_ns: true", "an integer, 0 or more and below 2**60, is True"),
        ("spec.yaml", "spec_version: 1\nmode: 3", "mode must be text, is 3"),
        ("spec.yaml", {"target": {}}, "target must be text, is {}"),
        ("spec.yaml", {"clock": ["real"]}, "clock must be text, is ['real']"),
        ("spec.yaml", {"threshold_bytes": "<b>"}, "threshold_bytes must be a positive integer below 2**60, is '<b>'"),
        ("spec.yaml", {"ecn_threshold_packets": 1.5}, "must be a positive integer below 2**60, is 1.5"),
        (
            "spec.yaml",
            {"traffic": "open-loop", "sizes": "foo", "load": 1},
            "load must be a number with a decimal point, above 0 and below 1000000, is 1; sizes must be fixed, "
            "exponential, bimodal, or bursts:<n>p with n from 1 to 1000, is 'foo'",
        ),
        ("spec.yaml", {"transfers": [{"cc": "reno", "kind": "red"}]}, "with kind finite or closed-loop"),
        ("spec.yaml", {"links_bps": [0]}, "links_bps must be a list of rates, positive integers below 2**60"),
        ("spec.yaml", {"links_bps": [9], "link_of_flows": [2]}, "indices into links_bps: 1 is the first link"),
        ("spec.yaml", {"groups": [{"cc": "reno", "flows": "a"}]}, "groups must be a list of {cc, flows}"),
        ("spec.yaml", b"\xff\xfe\x00", "spec.yaml: is not YAML"),
        ("postcards.bsp", None, "postcards.bsp: missing; give the directory of a repetition"),
    ],
)
def test_load__refuses_with_one_line(fresh, name, content, said):
    directory = fresh()
    if isinstance(content, dict):
        content = yaml.safe_dump(yaml.safe_load((directory / name).read_text()) | content)
    (directory / name).unlink()
    if content is not None:
        (directory / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError) as error:
        load(directory)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_load__of_a_spec_with_nested_aliases_is_refused_at_once(fresh):
    """Ten levels of ten aliases expand to 10^10 values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    directory = fresh()
    (directory / "spec.yaml").write_text("\n".join(["spec_version: 1", *lines, "name: *a9"]))
    with pytest.raises(InputError, match=r"spec.yaml: is not YAML: a spec has no aliases; replace \*a0 in line 3"):
        load(directory)


@pytest.mark.parametrize("content", [None, "{", "[1]", "\ud800".encode("utf-8", "surrogatepass"), "[" * 100_000])
def test_load__continues_without_a_missing_or_unreadable_document(fresh, content):
    directory = fresh()
    (directory / "collector.json").unlink()
    if content is not None:
        (directory / "collector.json").write_bytes(content if isinstance(content, bytes) else content.encode())
    run = load(directory)
    assert [problem.split(":")[0] for problem in run.problems] == ["collector.json"]
    assert run.documents["collector"] == {}


def test_load__leaves_out_malformed_flows(fresh):
    directory = fresh()
    text = (directory / "traffic.json").read_text()
    (directory / "traffic.json").write_text(text.replace('"src_addr": "10.77.0.1"', '"src_addr": "nowhere"', 1))
    run = load(directory)
    assert [entry["id"] for entry in run.traffic] == [1]
    assert len(run.problems) == 1
    traffic = json.loads(text)
    for strange in (None, 3, ["id"], "flow"):
        (directory / "traffic.json").write_text(json.dumps(traffic | {"flows": [*traffic["flows"], strange]}))
        run = load(directory)
        assert [entry["id"] for entry in run.traffic] == [0, 1]
        assert run.problems == ["traffic.json: a flow is malformed (is not a JSON object); it is left out"]
    (directory / "traffic.json").write_text(text.replace('"id": 1', f'"id": {10**30}'))
    assert [entry["id"] for entry in load(directory).traffic] == [0]


def test_flow_table__tells_flows_apart_when_all_hashes_are_equal(monkeypatch):
    monkeypatch.setattr(flows_module, "_MULTIPLIERS", np.zeros(flows_module.WORDS, dtype=np.uint64))
    words = np.random.default_rng(1).integers(0, 3, (flows_module.WORDS, 400)).astype(np.uint64)
    table = FlowTable()
    numbers = table.numbers(words)
    expected: dict[tuple[int, ...], int] = {}
    for row in range(400):
        expected.setdefault(tuple(words[:, row].tolist()), int(numbers[row]))
    assert [expected[tuple(words[:, row].tolist())] for row in range(400)] == numbers.tolist()
    assert sorted(expected.values()) == list(range(len(table)))


def test_flow_table__gives_flows_beyond_its_limit_one_number(monkeypatch):
    monkeypatch.setattr(flows_module, "MAX_FLOWS", 10)
    words = np.zeros((flows_module.WORDS, 50), dtype=np.uint64)
    words[4] = np.arange(50)
    table = FlowTable()
    assert table.numbers(words).tolist() == [*range(10)] + [10] * 40
    assert table.numbers(words[:, :12]).tolist() == [*range(10), 10, 10]


def test_flow_table__numbers_a_hundred_thousand_flows_in_order_of_appearance():
    random = np.random.default_rng(4)
    words = random.integers(0, 1 << 62, (flows_module.WORDS, 100_000)).astype(np.uint64)
    words[4] &= np.uint64((1 << 40) - 1)  # protocol and ports
    table, highest = FlowTable(), 0
    order = np.concatenate([random.integers(0, 100_000, 150_000), np.arange(100_000)])
    _, first = np.unique(order, return_index=True)
    expected = np.empty(100_000, dtype=np.int64)
    expected[order[np.sort(first)]] = np.arange(100_000)
    for start in range(0, len(order), 7_000):
        block = order[start : start + 7_000]
        assert (table.numbers(words[:, block]) == expected[block]).all()
        highest = max(highest, int(expected[block].max()) + 1)
        assert len(table) == highest
    assert (table.find(words) == expected).all()
    assert table.find(words + np.uint64(1)).tolist() == [-1] * 100_000
    assert table.tuples()[int(expected[5])].words() == tuple(words[:, 5].tolist())


def test_load__numbers_flows_that_only_the_trace_has(fresh):
    directory = fresh()
    truth_ports = {30_000, 30_001}
    path = directory / "postcards.bsp"
    path.write_bytes(b"")
    run = load(directory)
    assert {flow.src_port for flow in run.flows} == truth_ports
    assert run.tcp["flow"].dtype == run.postcards["flow"].dtype == np.uint16
    assert [entry["flow"] for entry in run.traffic] == [
        [flow.src_port for flow in run.flows].index(entry["tuple"].src_port) for entry in run.traffic
    ]


def test_five_tuple__reads_well():
    assert str(FiveTuple.tcp("10.0.0.1", "10.0.0.2", 1, 2)) == "10.0.0.1:1 > 10.0.0.2:2 tcp"
    assert str(FiveTuple.tcp("fd77::1", "fd77::2", 1, 2)) == "[fd77::1]:1 > [fd77::2]:2 tcp"
    assert str(FiveTuple(0, 0, 0, 0, 0)) == "not IP"
    assert address_text(0xFFFF << 32 | 1) == "0.0.0.1"
    with pytest.raises(ValueError, match="65536"):
        FiveTuple.tcp("10.0.0.1", "10.0.0.2", 65536, 2)
