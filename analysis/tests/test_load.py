# SPDX-License-Identifier: MIT
"""Raw files: intact, cut off, with flipped bits, of other kinds, and made of noise."""

import json
import random
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import yaml

from analysis.arithmetic.unwrap import switch_time
from analysis.read import flows as flows_module
from analysis.read.documents import Collector, Documents
from analysis.read.flows import FlowTable
from analysis.read.load import load
from analysis.read.raw import load_postcards, load_tcp
from analysis.tests import simulate
from analysis.tests.documents import change
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


def test_load__uses_the_records_before_a_cut(fresh):
    directory = fresh()
    path = directory / "postcards.bsp"
    whole = path.read_bytes()
    for cut in (1, 64, 1000):
        path.write_bytes(whole[:-cut])
        raw = load(directory).raw["postcards"]
        assert raw.blocks > 3
        assert raw.records == raw.blocks * 500
        used = raw.blocks * (wire.BLOCK.length + 500 * wire.STORED_POSTCARD.itemsize)
        assert raw.size_bytes - raw.damaged_bytes == used
        assert f"postcards.bsp: damaged or cut off at byte {used}" in str(raw.damage())


def test_load__stops_at_a_flipped_bit(fresh):
    path = fresh() / "tcp.bst"
    whole = path.read_bytes()
    block = wire.BLOCK.length + 500 * wire.STORED_TCP_RECORD.itemsize
    for seed in range(6):
        data = bytearray(whole)
        at = random.Random(seed).randrange(len(data))
        data[at] ^= 1 << random.Random(seed).randrange(8)
        path.write_bytes(data)
        _, _, raw = load_tcp(path)
        assert raw.blocks == at // block
        assert raw.damaged_bytes == len(data) - raw.blocks * block


def test_load__counts_records_missing_by_block_headers(fresh):
    path = fresh() / "tcp.bst"
    data, record = path.read_bytes(), wire.STORED_TCP_RECORD.itemsize
    block = wire.BLOCK.length + 500 * record
    clock = simulate.REALTIME_MINUS_MONO_NS - 5_000_000
    version = simulate.EVENT["TCP_RECORD_VERSION"]
    head = {"first_record": 100_000, "lost_records": 7, "realtime_minus_mono_ns": clock}
    lossy = wire.encode_block(simulate.BLOCK["BLOCK_TCP"], version, record, data[-record:], **head)
    path.write_bytes(data[:block] + data[2 * block : 3 * block] + lossy)
    _, _, raw = load_tcp(path)
    assert (raw.records, raw.missing_records, raw.lost_records) == (1001, 500 + 100_000 - 1500, 7)
    assert raw.clock_step_max_ns == 5_000_000
    assert raw.damaged_bytes == 0


def test_load__leaves_out_postcards_of_another_version(tmp_path):
    version, record = simulate.CARD["POSTCARD_VERSION"], wire.STORED_POSTCARD.itemsize
    good = struct.pack("<Q", 5) + wire.POSTCARD.encode(version=version, packet_bytes=100)
    bad = struct.pack("<Q", 6) + wire.POSTCARD.encode(version=9)
    path, kind = tmp_path / "postcards.bsp", simulate.BLOCK["BLOCK_POSTCARDS"]
    path.write_bytes(wire.encode_block(kind, version, record, good + bad + good))
    columns, _, raw = load_postcards(path)
    assert (raw.records, raw.bad_records, columns["packet_bytes"].tolist()) == (2, 1, [100, 100])


def test_load__survives_noise(tmp_path):
    path, kind = tmp_path / "postcards.bsp", simulate.BLOCK["BLOCK_POSTCARDS"]
    version, record = simulate.CARD["POSTCARD_VERSION"], wire.STORED_POSTCARD.itemsize
    for seed in range(30):
        noise = random.Random(seed)
        parts = []
        for _ in range(noise.randrange(4)):
            cards = [noise.randbytes(8) + bytes([version]) + noise.randbytes(record - 9) for _ in range(20)]
            parts.append(
                wire.encode_block(kind, version, record, b"".join(cards), first_record=noise.randrange(1 << 40))
            )
        path.write_bytes(b"".join(parts) + noise.randbytes(noise.randrange(3000) * (seed > 0)))
        columns, flows, raw = load_postcards(path)
        assert raw.records == len(columns["flow"]) == len(columns["enqueue_mono_ns"]) == 20 * len(parts)
        assert len(flows) <= raw.records
        assert raw.damaged_bytes <= raw.size_bytes


OPEN_LOOP = {"kind": "open-loop", "sizes": "fixed", "load": 0.5, "arrivals": "poisson", "flows": 4}


def test_load__refuses_with_one_line(fresh):
    directory = fresh()
    spec = (directory / "spec.yaml").read_text()
    for content, said in (
        ("a: [", "is not YAML"),
        (b"\xff\xfe\x00", "is not YAML"),
        ("- 1", "holds no keys"),
        ("a: &a 1\nb: *a", "no aliases"),  # a short file with aliases can expand without bound
        ("spec_version: 7", "use a newer bufferscope"),
        ({"spec_version": True}, "spec_version must be"),
        ({"rtt_ns": 2**60}, "rtt_ns must be"),
        ({"warmup_ns": True}, "warmup_ns must be"),
        ({"warmup_ns": -1}, "warmup_ns must be"),
        ({"mode": 3}, "mode must be"),
        ({"mode": "red"}, "mode must be tail-drop or"),
        ({"target": {}}, "target must be"),
        ({"target": "abacus"}, "target must be soft"),
        ({"flavour": 1}, "flavour is not known"),
        ({"clock": ["real"]}, "clock must be"),
        ({"threshold_bytes": "<b>"}, "threshold_bytes must be"),
        ({"ecn_threshold_packets": 1.5}, "ecn_threshold_packets must be"),
        ({"groups": [OPEN_LOOP | {"load": 0.0}]}, "load must be"),
        ({"groups": [OPEN_LOOP | {"sizes": "bursts:0p"}]}, "sizes must be"),
        ({"groups": [OPEN_LOOP | {"flows": None}]}, "flows must be"),
        ({"groups": [OPEN_LOOP | {"arrivals": 3}]}, "arrivals must be"),
        ({"mtu_bytes": 45}, "mtu_bytes must be"),
        ({"groups": [{"cc": "reno", "kind": "red"}]}, "groups.0 has a kind that is not one of long, finite"),
        ({"groups": [{"cc": "reno", "flows": "a"}]}, "flows must be"),
    ):
        if isinstance(content, dict):
            content = yaml.safe_dump(yaml.safe_load(spec) | content)
        (directory / "spec.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
        assert said in refusal(directory)
    (directory / "spec.yaml").write_text(spec)
    (directory / "postcards.bsp").write_bytes((directory / "tcp.bst").read_bytes())
    assert "analyse it with the version that wrote it" in refusal(directory)
    for name in ("postcards.bsp", "spec.yaml"):
        (directory / name).unlink()
        assert f"{name}: missing" in refusal(directory)


def refusal(directory):
    with pytest.raises(InputError) as error:
        load(directory)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_load__continues_without_a_missing_or_unreadable_document(fresh):
    directory = fresh()
    path = directory / "collector.json"
    path.unlink()
    for content in (None, b"{", b"[1]", "\ud800".encode("utf-8", "surrogatepass"), b"[" * 100_000):
        if content is not None:
            path.write_bytes(content)
        run = load(directory)
        assert [problem.split(":")[0] for problem in run.problems] == ["collector.json"]
        assert run.documents.collector == Collector()


def test_load__names_unusable_values_and_counts_none_of_them(fresh):
    directory = fresh()
    cases: tuple[tuple[str, tuple[Any, ...], Any, Callable[[Documents], Any]], ...] = (
        ("switch", ("stats", "pool_exhausted"), -1, lambda said: said.switch.stats["pool_exhausted"]),
        ("switch", ("stats", "pool_exhausted"), True, lambda said: said.switch.stats["pool_exhausted"]),
        ("switch", ("counters", "arrivals", "2"), 7, lambda said: said.switch.packets("arrivals")),
        ("switch", ("lateness", "2", 1), [20_000], lambda said: said.switch.lateness["2"]),
        ("switch", ("lateness", "2", 1, 1), 0.5, lambda said: said.switch.lateness["2"]),
        ("collector", ("host_drops", "backlog"), "0", lambda said: (said.collector.host_drops or {})["backlog"]),
        ("traffic", ("end_mono_ns",), 1 << 62, lambda said: said.traffic.end_mono_ns),
        ("traffic", ("groups",), {}, lambda said: said.traffic.groups),
        ("traffic", ("transfers",), {"groups": [{}]}, lambda said: said.traffic.finite_groups or None),
    )
    for name, path, value, found in cases:
        whole = (directory / f"{name}.json").read_text()
        change(directory, name, path, value)
        run = load(directory)
        assert found(run.documents) is None, path
        (problem,) = run.problems
        assert problem.startswith(f"{name}.json: {path[0]}"), problem
        (directory / f"{name}.json").write_text(whole)


def test_load__leaves_out_malformed_flows(fresh):
    path = fresh() / "traffic.json"
    text = path.read_text()
    traffic = json.loads(text)
    strangers = (None, 3, ["id"], "flow", traffic["flows"][0] | {"src_addr": "x"}, traffic["flows"][1] | {"id": 10**30})
    for strange in strangers:
        path.write_text(json.dumps(traffic | {"flows": [*traffic["flows"], strange]}))
        run = load(path.parent)
        assert [entry.id for entry in run.traffic] == [0, 1]
        assert [problem.split(":")[0] for problem in run.problems] == ["traffic.json"]


def test_flow_table__gives_flows_beyond_its_limit_one_number(monkeypatch):
    monkeypatch.setattr(flows_module, "MAX_FLOWS", 10)
    words = np.zeros((flows_module.WORDS, 50), dtype=np.uint64)
    words[4] = np.arange(50)
    table = FlowTable()
    assert table.numbers(words).tolist() == [*range(10)] + [10] * 40
    assert table.numbers(words[:, :12]).tolist() == [*range(10), 10, 10]


@pytest.mark.parametrize(("most", "same_hash"), [(1 << 62, False), (3, True)])
def test_flow_table__numbers_flows_in_order_of_appearance(monkeypatch, most, same_hash):
    """Flows with equal hashes differ in some of their words only."""
    if same_hash:
        monkeypatch.setattr(flows_module, "_MULTIPLIERS", np.zeros(flows_module.WORDS, dtype=np.uint64))
    random = np.random.default_rng(4)
    words = random.integers(0, most, (flows_module.WORDS, 400 if same_hash else 20_000)).astype(np.uint64)
    words[4] &= np.uint64((1 << 40) - 1)  # protocol and ports
    words = np.unique(words, axis=1)
    table, seen, flows = FlowTable(), dict[int, int](), words.shape[1]
    order = np.concatenate([random.integers(0, flows, flows), np.arange(flows)])
    expected = np.array([seen.setdefault(flow, len(seen)) for flow in order.tolist()])
    for start in range(0, len(order), 7_000):
        block = order[start : start + 7_000]
        assert (table.numbers(words[:, block]) == expected[start : start + 7_000]).all()
    assert len(table) == flows
    assert (table.find(words[:, order]) == expected).all()
    assert table.find(words + np.uint64(most)).tolist() == [-1] * flows
    assert table.tuples()[seen[5]].words() == tuple(words[:, 5].tolist())


def test_load__numbers_flows_that_only_the_trace_has(fresh):
    directory = fresh()
    (directory / "postcards.bsp").write_bytes(b"")
    run = load(directory)
    assert (run.raw["postcards"].records, run.raw["postcards"].damage()) == (0, None)
    assert {flow.src_port for flow in run.flows} == {30_000, 30_001}
    assert run.tcp["flow"].dtype == run.postcards["flow"].dtype == np.uint16
    assert all(run.flows[entry.number] == entry.five_tuple for entry in run.traffic)


def test_switch_time__survives_the_wrap_and_a_stamp_that_is_a_little_early():
    rx = np.array([(3 << 48) + 100, (3 << 48) + 100, (3 << 48) - 100], dtype=np.uint64)
    true = np.array([(3 << 48) - 50, (3 << 48) + 200, (3 << 48) + 7])
    assert switch_time((true % (1 << 48)).astype(np.uint64), rx).tolist() == true.tolist()
