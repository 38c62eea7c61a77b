# SPDX-License-Identifier: MIT
"""Small programs in the form in which p4c-bm2-ss writes them, each for one construct of v1model."""

import json
from pathlib import Path
from typing import Any

from lib import files
from softswitch.library import BUILD

Json = Any
Fields = list[tuple[str, Any]]  # name, bits ("*": varbit)

STANDARD: Fields = [
    ("ingress_port", 9), ("egress_spec", 9), ("egress_port", 9), ("instance_type", 32), ("packet_length", 32),
    ("enq_timestamp", 32), ("enq_qdepth", 19), ("deq_timedelta", 32), ("deq_qdepth", 19),
    ("ingress_global_timestamp", 48), ("egress_global_timestamp", 48), ("mcast_grp", 16), ("egress_rid", 16),
    ("checksum_error", 1), ("parser_error", 32), ("priority", 3),
    ("clone_spec", 32),  # of an older v1model
]  # fmt: skip
_ALIASES = {
    "queueing_metadata": ("enq_timestamp", "enq_qdepth", "deq_timedelta", "deq_qdepth", "qid"),
    "intrinsic_metadata": (
        "ingress_global_timestamp", "egress_global_timestamp", "mcast_grp", "egress_rid", "priority",
    ),
}  # fmt: skip
ERRORS = ["NoError", "PacketTooShort", "NoMatch", "StackOutOfBounds", "HeaderTooShort", "ParserTimeout",
          "ParserInvalidArgument"]  # fmt: skip


def field(header: str, name: str) -> Json:
    return {"type": "field", "value": [header, name]}


def meta(name: str) -> Json:
    return field("scalars", name)


def std(name: str) -> Json:
    return field("standard_metadata", name)


def number(value: int) -> Json:
    return {"type": "hexstr", "value": hex(value)}


def named(kind: str, name: str) -> Json:
    """kind: header, header_stack, register_array, meter_array, calculation."""
    return {"type": kind, "value": name}


def op(name: str, left: Json, right: Json) -> Json:
    return {"type": "expression", "value": {"op": name, "left": left, "right": right}}


def cut(value: Json, bits: int) -> Json:
    """A cast to bit<bits>."""
    return op("&", value, number((1 << bits) - 1))


def is_(left: Json, right: Json) -> Json:
    return op("==", left, right)


def do(name: str, *parameters: Json) -> Json:
    """p4c puts an expression that is a parameter into another one."""
    wrapped = [{"type": "expression", "value": item} if item["type"] == "expression" else item for item in parameters]
    return {"op": name, "parameters": wrapped}


def assign(to: Json, value: Json) -> Json:
    return do("assign", to, value)


def when(condition: Json, *then: Json) -> list[Json]:
    """A condition in an action; p4c writes it as a jump, with the number of the primitive after it (see `program`)."""
    return [{**do("_jump_if_zero", op("b2d", None, condition)), "over": len(then)}, *then]


def extract(name: str, kind: str = "regular") -> Json:
    return do("extract", named(kind, name))


def state(name: str, ops: list[Json], key: list[Json] | None = None, to: dict[Any, str | None] | None = None) -> Json:
    """`to`: value (None: any other) -> next state; the name of a value set is a value, too."""
    transitions = []
    for value, following in (to or {None: None}).items():
        kind = "default" if value is None else "parse_vset" if isinstance(value, str) else "hexstr"
        text = hex(value) if isinstance(value, int) else value
        transitions.append({"type": kind, "value": text, "mask": None, "next_state": following})
    return {"name": name, "id": 0, "parser_ops": ops, "transition_key": key or [], "transitions": transitions}


def _primitives(items: list[Json]) -> list[Json]:
    flat = [part for item in items for part in (item if isinstance(item, list) else [item])]
    result = []
    for at, item in enumerate(flat):
        if "over" in item:
            item = {"op": item["op"], "parameters": [*item["parameters"], number(at + 1 + item["over"])]}
        result.append(item)
    return result


def program(
    name: str,
    types: dict[str, Fields],
    headers: dict[str, str],
    states: list[Json],
    ingress: list[Json],
    egress: list[Json] | None = None,
    metadata: Fields | None = None,
    stacks: dict[str, tuple[str, int]] | None = None,
    tables: list[Json] | None = None,
    standard: Fields = STANDARD,
    **others: Any,
) -> Path:
    """Writes a program and returns its path. Headers and stacks leave in the order given. `tables` (of ingress) run
    before the primitives of ingress. `standard`: the fields of standard_metadata. `others`: further members of the
    JSON.
    """
    all_types = {"scalars_0": metadata or [("unused", 8)], "standard_metadata": standard, **types}
    sizes = {kind: sum(bits for _, bits in fields if bits != "*") for kind, fields in all_types.items()}
    header_types = []
    for number_, (kind, fields) in enumerate(all_types.items()):
        padding = -sizes[kind] % 8 if kind not in types else 0
        fields = fields + ([("_padding_0", padding)] if padding else [])
        json_type = {
            "name": kind,
            "id": number_,
            "fields": [[f, bits, False] if bits != "*" else [f, "*"] for f, bits in fields],
        }
        if any(bits == "*" for _, bits in fields):
            json_type["max_length"] = others.pop("max_length")
        header_types.append(json_type)
    instances = [("scalars", "scalars_0", True), ("standard_metadata", "standard_metadata", True)]
    instances += [(header, kind, False) for header, kind in headers.items()]
    header_stacks: list[Json] = []
    for stack, (kind, size) in (stacks or {}).items():
        ids = list(range(len(instances), len(instances) + size))
        instances += [(f"{stack}[{at}]", kind, False) for at in range(size)]
        header_stacks.append(
            {"name": stack, "id": len(header_stacks), "header_type": kind, "size": size, "header_ids": ids}
        )
    actions, pipelines = list(others.pop("actions", [])), []
    for number_, (pipeline, items) in enumerate((("ingress", ingress), ("egress", egress or []))):
        own = (tables or []) if pipeline == "ingress" else []
        action = {"name": f"{pipeline}_do", "id": 100 + number_, "runtime_data": [], "primitives": _primitives(items)}
        actions.append(action)
        last = {
            "name": f"tbl_{pipeline}", "id": 100 + number_, "key": [], "match_type": "exact", "type": "simple",
            "max_size": 1024, "with_counters": False, "support_timeout": False, "direct_meters": None,
            "action_ids": [action["id"]], "actions": [action["name"]], "base_default_next": None,
            "next_tables": {action["name"]: None},
            "default_entry": {
                "action_id": action["id"], "action_const": True, "action_data": [], "action_entry_const": True,
            },
        }  # fmt: skip
        pipelines.append(
            {"name": pipeline, "id": number_, "init_table": own[0]["name"] if own else last["name"],
             "tables": [*own, last], "action_profiles": [], "conditionals": []}
        )  # fmt: skip
    for at, item in enumerate(states):
        item["id"] = at
    result = {
        "header_types": header_types,
        "headers": [
            {"name": header, "id": at, "header_type": kind, "metadata": is_meta, "pi_omit": True}
            for at, (header, kind, is_meta) in enumerate(instances)
        ],
        "header_stacks": header_stacks,
        "header_union_types": [], "header_unions": [], "header_union_stacks": [], "field_lists": [],
        "errors": [[error, at] for at, error in enumerate(ERRORS)],
        "enums": [],
        "parsers": [{"name": "parser", "id": 0, "init_state": states[0]["name"], "parse_states": states}],
        "parse_vsets": [],
        "deparsers": [
            {"name": "deparser", "id": 0, "order": [h for h, _, is_meta in instances if not is_meta], "primitives": []}
        ],
        "meter_arrays": [], "counter_arrays": [], "register_arrays": [], "calculations": [], "learn_lists": [],
        "actions": actions, "pipelines": pipelines, "checksums": [], "force_arith": [], "extern_instances": [],
        "field_aliases": [
            [f"{prefix}.{f}", ["standard_metadata", f]]
            for prefix, fields in _ALIASES.items()
            for f in fields
            if f in dict(standard)
        ],
        "program": f"{name}.p4",
        "__meta__": {"version": [2, 23], "compiler": "https://github.com/p4lang/p4c"},
        **others,
    }  # fmt: skip
    path = BUILD / "fragments" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(result, indent=1)
    if not path.exists() or path.read_text() != text:
        files.write_text(path.with_suffix(".sha256"), "0" * 64 + "\n")
        files.write_text(path, text)
    return path
