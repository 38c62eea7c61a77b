# SPDX-License-Identifier: MIT
"""The resources of a Tofino that a compiled program uses: stages, tables, memory blocks, PHV.

Source: the assembler's context.json. Every Tofino compiler writes this file, because the SDE's driver loads it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Stage:
    """One stage of a pipe: match tables of each pipeline, in logical order; memory blocks of both pipelines."""

    ingress: list[str]
    egress: list[str]
    sram_blocks: int
    tcam_blocks: int


@dataclass(frozen=True)
class Phv:
    """The containers of one kind that hold a field in some stage, and how many of their bits hold fields."""

    containers: int
    bits: int


@dataclass(frozen=True)
class Resources:
    """`tables` counts match tables. The compiler also turns single statements into match tables. Conditions (gateways)
    are not counted.
    """

    compiler: str
    target: str
    stages: int
    stages_available: int
    tables: int
    sram_blocks: int
    tcam_blocks: int
    phv: dict[str, Phv]
    stage: list[Stage]

    def as_json(self) -> Json:
        return asdict(self)

    def line(self) -> str:
        """One line for `make p4`."""
        containers = ", ".join(
            f"{phv.containers} {kind} containers ({phv.bits} bits)" for kind, phv in self.phv.items()
        )
        return (
            f"{self.stages} of {self.stages_available} stages, {self.tables} tables, "
            f"{self.sram_blocks} SRAM and {self.tcam_blocks} TCAM blocks, PHV: {containers}"
        )


def read_resources(context: Json, stages_available: int) -> Resources:
    """`context` is a parsed context.json. Raises KeyError if its structure is not the documented one."""
    tables: dict[tuple[int, str], dict[int, str]] = defaultdict(dict)  # (stage, direction) -> logical number -> name
    blocks: dict[str, set[tuple[int, int]]] = {"sram": set(), "tcam": set()}  # (stage, block)
    for table in context["tables"]:
        for stage, part in _stage_tables(table):
            if table["table_type"] == "match" and "logical_table_id" in part:
                tables[stage, table["direction"]][part["logical_table_id"]] = table["name"]
            for kind, block in _blocks(part):
                blocks[kind].add((stage, block))
    last = max(stage for stage, _ in tables)
    stages = [
        Stage(
            ingress=_in_order(tables[stage, "ingress"]),
            egress=_in_order(tables[stage, "egress"]),
            sram_blocks=sum(at == stage for at, _ in blocks["sram"]),
            tcam_blocks=sum(at == stage for at, _ in blocks["tcam"]),
        )
        for stage in range(last + 1)
    ]
    return Resources(
        compiler=context["compiler_version"],
        target=context["target"],
        stages=len(stages),
        stages_available=stages_available,
        tables=sum(len(stage.ingress) + len(stage.egress) for stage in stages),
        sram_blocks=len(blocks["sram"]),
        tcam_blocks=len(blocks["tcam"]),
        phv=_phv(context["phv_allocation"]),
        stage=stages,
    )


def _in_order(tables: dict[int, str]) -> list[str]:
    return [name for _, name in sorted(tables.items())]


def _stage_tables(value: Any) -> Iterator[tuple[int, Json]]:
    """(stage, part of the table) for each part that is placed in a stage of the pipe."""
    if isinstance(value, dict):
        if value.get("stage_number", -1) >= 0:
            yield value["stage_number"], value
            return
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _stage_tables(item)


def _blocks(value: Any) -> Iterator[tuple[str, int]]:
    """(sram or tcam, number of the block in its stage), including the spare banks of counters and registers."""
    if isinstance(value, dict):
        kind = value.get("memory_type")
        if kind in ("sram", "tcam"):
            for group in value["memory_units_and_vpns"]:
                yield from ((kind, unit) for unit in group["memory_units"])
            spare = value.get("spare_bank_memory_unit") if kind == "sram" else None
            for unit in spare if isinstance(spare, list) else [spare]:
                if unit is not None:
                    yield kind, unit
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _blocks(item)


def _phv(allocation: list[Json]) -> dict[str, Phv]:
    bits: dict[str, set[tuple[int, int]]] = defaultdict(set)  # kind -> (container, bit)
    for stage in allocation:
        for container in stage["ingress"] + stage["egress"]:
            for record in container["records"]:
                used = range(record["phv_lsb"], record["phv_msb"] + 1)
                bits[container["container_type"]].update((container["phv_number"], bit) for bit in used)
    return {kind: Phv(len({number for number, _ in used}), len(used)) for kind, used in sorted(bits.items())}
