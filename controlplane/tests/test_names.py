# SPDX-License-Identifier: MIT
"""Every name that the control plane uses exists in the compiled program or in the SDE's fixed tables."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from controlplane.identity import committed_digest
from controlplane.program import ACTIONS, COUNTERS
from controlplane.schema import Schema
from controlplane.schema_files import committed_bmv2, committed_tofino
from controlplane.sde_tables import CHIPS, TABLES, on_chip
from controlplane.switch import SwitchError
from controlplane.tests.sde_types import FIXED_TABLES
from wire.wire import DEPTH_BUCKETS

SHARED = Path(os.environ.get("SDE_INSTALL", "/absent"), "share/bf_rt_shared")
SCHEMAS = [committed_bmv2(), *filter(None, (committed_tofino(chip)[0] for chip in CHIPS))]


def test_schemas__are_of_every_target() -> None:
    assert [schema.origin for schema in SCHEMAS] == [
        "bufferscope.json", "tofino/bf-rt.json", "tofino2/bf-rt.json",
    ]  # fmt: skip
    for chip in CHIPS:
        assert committed_tofino(chip)[0] is not None
    assert len(committed_digest()) == 64


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.origin)
def test_names__exist_in_the_compiled_program(schema: Schema) -> None:
    for name, actions in ACTIONS.items():
        table, of_v1model = schema.table(name), SCHEMAS[0].table(name)
        assert len(table.keys) == (name != "collector")
        assert [key.bits for key in table.keys] == [key.bits for key in of_v1model.keys]
        for action, arguments in actions.items():
            _, compiled = schema.action(table, action)
            assert tuple(argument.name for argument in compiled) == arguments
            assert compiled == SCHEMAS[0].action(of_v1model, action)[1]  # also the widths
    for name in COUNTERS:
        assert schema.counter(name).size == 512
    assert schema.counter("depth_histogram").size == 512 * len(DEPTH_BUCKETS)


def test_schema__names_an_unknown_table_or_action() -> None:
    with pytest.raises(SwitchError, match="no table 'absent'"):
        SCHEMAS[0].table("absent")
    with pytest.raises(SwitchError, match="table forward has no action 'flood'"):
        SCHEMAS[0].action(SCHEMAS[0].table("forward"), "flood")


@pytest.mark.hardware
@pytest.mark.skipif(not SHARED.is_dir(), reason="no SDE: SDE_INSTALL/share/bf_rt_shared is not there")
@pytest.mark.parametrize("chip", CHIPS)
def test_fixed_tables__are_the_sdes(chip: str) -> None:
    assert {*FIXED_TABLES} == {*TABLES}
    for name, fixed in FIXED_TABLES.items():
        file = SHARED / Path(on_chip(fixed.file, chip)).name
        (table,) = [entry for entry in json.loads(file.read_text())["tables"] if entry["name"] == on_chip(name, chip)]
        assert {key["name"]: key["type"]["type"] for key in table["key"]} == dict(fixed.keys)
        common = _types(table["data"])
        assert fixed.data_on(chip).items() <= common.items()
        actions = {action["name"]: action["data"] for action in table.get("action_specs", [])}
        for action, arguments in fixed.actions.items():
            assert dict(arguments).items() <= {**common, **_types(actions[action])}.items()


def _types(data: list[dict[str, Any]]) -> dict[str, str]:
    singles = [field.get("singleton", field) for field in data]
    return {field["name"]: field["type"]["type"] for field in singles if "name" in field}
