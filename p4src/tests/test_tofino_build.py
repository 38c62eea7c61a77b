# SPDX-License-Identifier: MIT
"""The committed Tofino output: not stale, within each generation's stages, with the names of v1model."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from p4src.compile import command as make_p4
from p4src.compile import tofino
from p4src.compile.resources import Phv, read_resources

ROOT = Path(__file__).resolve().parents[2]
CHIPS = [pytest.param(generation, id=generation.target) for generation in tofino.GENERATIONS]

# Registers with the queue's length on v1model. On Tofino the traffic manager reports the length.
V1MODEL_ONLY = {"admitted_packets", "admitted_bytes", "departed_packets", "departed_bytes"}
V1MODEL_ONLY |= {"queue_registers_filled", "queue_packets", "queue_bytes"}


def read(generation: tofino.Generation, name: str) -> dict[str, Any]:
    return json.loads((ROOT / tofino.BUILD / generation.target / name).read_text())


def last(name: str) -> str:
    return name.rpartition(".")[2]


@pytest.mark.parametrize("generation", CHIPS)
def test_compiled_program__is_current_and_fits_into_the_stages(generation):
    problem = tofino.check(generation, ROOT)
    assert problem is None, problem
    for path in tofino.files(generation):
        assert not re.search(r"/tmp|/home|/root|/work", (ROOT / path).read_text()), path
    resources = read(generation, "resources.json")
    assert resources["target"] == generation.target
    assert 0 < resources["stages"] == len(resources["stage"]) <= generation.stages
    placed = {name for stage in resources["stage"] for name in stage["ingress"] + stage["egress"]}
    tables = read(generation, "bf-rt.json")["tables"]
    direct = {t["name"].removeprefix("pipe.") for t in tables if t["table_type"] == "MatchAction_Direct"}
    assert direct <= placed


@pytest.mark.parametrize("generation", CHIPS)
def test_tables_counters_and_registers__are_those_of_v1model(generation):
    """One control plane writes both targets, so names and widths must be equal."""
    compiled = read(generation, "bf-rt.json")["tables"]
    program = json.loads((ROOT / "p4src/build/bufferscope.json").read_text())
    widths = {
        (header["name"], field[0]): field[1]
        for header in program["headers"]
        for field in next(t for t in program["header_types"] if t["name"] == header["header_type"])["fields"]
    }
    actions = {action["name"]: action for action in program["actions"]}
    v1model = {}
    for table in (table for pipeline in program["pipelines"] for table in pipeline["tables"]):
        if table["name"].startswith("tbl_"):  # made by p4c
            continue
        keys = [widths[key["target"][0], key["target"][1]] for key in table["key"]]
        v1model[last(table["name"])] = (
            keys,
            {last(n): [(p["name"], p["bitwidth"]) for p in actions[n]["runtime_data"]] for n in table["actions"]},
        )
    assert {last(table["name"]): _signature(table) for table in compiled if "action_specs" in table} == v1model
    arrays = {last(array["name"]): array["size"] for array in program["counter_arrays"] + program["register_arrays"]}
    assert {last(t["name"]): t["size"] for t in compiled if t["table_type"] in ("Counter", "Register")} == {
        name: size for name, size in arrays.items() if name not in V1MODEL_ONLY
    }


def _signature(table: dict) -> tuple:
    keys = [key["type"]["width"] for key in table["key"] if not key["name"].startswith("$")]
    actions = {
        last(action["name"]): [(data["name"], data["type"]["width"]) for data in action["data"]]
        for action in table["action_specs"]
    }
    return keys, actions


def _memory(kind: str, *units: int, **more: Any) -> dict:
    return {"memory_type": kind, "memory_units_and_vpns": [{"memory_units": list(units), "vpns": [0]}], **more}


def test_resources__count_a_shared_block_once():
    """Two tables share a block in one stage, a counter has a spare bank, and a parser table is in no stage."""
    context = {
        "compiler_version": "9", "target": "tofino",
        "tables": [
            {"name": "a", "direction": "ingress", "table_type": "match", "match_attributes": {"stage_tables": [
                {"stage_number": 0, "logical_table_id": 1, "memory_resource_allocation": _memory("sram", 4, 5)}]}},
            {"name": "b", "direction": "ingress", "table_type": "match", "match_attributes": {"stage_tables": [
                {"stage_number": 0, "logical_table_id": 0, "memory_resource_allocation": _memory("sram", 5)},
                {"stage_number": 2, "logical_table_id": 0, "memory_resource_allocation": _memory("tcam", 5)}]}},
            {"name": "c", "direction": "egress", "table_type": "statistics", "stage_tables": [
                {"stage_number": 0, "memory_resource_allocation": _memory("sram", 7, spare_bank_memory_unit=8)}]},
            {"name": "p", "direction": "ingress", "table_type": "match", "stage_tables": [
                {"stage_number": -1, "logical_table_id": 0}]},
        ],
        "phv_allocation": [
            {"stage_number": 0, "egress": [], "ingress": [
                {"phv_number": 3, "container_type": "normal", "records": [
                    {"phv_lsb": 0, "phv_msb": 8}, {"phv_lsb": 4, "phv_msb": 15}]}]},
        ],
    }  # fmt: skip
    used = read_resources(context, 12)
    assert (used.stages, used.tables, used.sram_blocks, used.tcam_blocks) == (3, 3, 4, 1)
    assert [(stage.ingress, stage.sram_blocks, stage.tcam_blocks) for stage in used.stage] == [
        (["b", "a"], 4, 0), ([], 0, 0), (["b"], 0, 1),
    ]  # fmt: skip
    assert used.phv == {"normal": Phv(containers=1, bits=16)}


def test_without_a_compiler__current_output_stays_and_stale_output_is_an_error(capsys, monkeypatch):
    monkeypatch.setenv("P4C_TOFINO", "/nowhere/bf-p4c")
    monkeypatch.setattr(make_p4, "_v1model", lambda: "compiled; nothing changed")
    monkeypatch.chdir(ROOT)
    assert make_p4.run({}, []) == 0
    assert "tofino, tofino2: up to date, not compiled again" in capsys.readouterr().out
    monkeypatch.setattr(tofino, "PROGRAM", Path("p4src/v1model/bufferscope.p4"))
    assert make_p4.run({}, []) == 1
    printed = capsys.readouterr()
    assert printed.err.count("compile again with: make p4") == 2
    assert "/nowhere/bf-p4c ($P4C_TOFINO) is not installed" in printed.out
