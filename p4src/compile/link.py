# SPDX-License-Identifier: MIT
"""Puts a compiled policy into our compiled program. p4c takes most of its time for our program, so it compiles only the
policy, and the two results are linked.

Our program with a hook (v1model/own_policy.p4) has the tables `arrival_hook` and `departure_hook` in a policy's place.
A hook's key is all that a policy sees; its action `decide` has the verdict as arguments. A hook becomes: copy the key
into the policy's metadata, the policy's own tables, copy the verdict back. Fields, actions and tables of the policy
stay as p4c made them, beside ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from p4src.compile.sources import CannotCompile

SCALARS, OURS = "scalars", "policy_scalars"  # the name of p4c's metadata header in the policy, and in the whole
STANDARD = "standard_metadata"
HOOKS = {"ingress": "arrival_hook", "egress": "departure_hook"}
DECIDE = "decide"
ARRAYS = ("register_arrays", "counter_arrays", "meter_arrays", "calculations")
UNSUPPORTED = {"learn_lists": "digests", "field_lists": "field lists", "extern_instances": "externs",
               "action_profiles": "action profiles"}  # fmt: skip
NOTHING = {"type": "hexstr", "value": "0x0"}
_FIELD = re.compile(r".*\._(seen|verdict)_(\w+?)\d+")


def link(program: Any, policy: Any) -> Any:
    """`program` with `policy`; both are p4c's JSON, which is changed. Raises CannotCompile."""
    for part, name in UNSUPPORTED.items():
        if policy.get(part) or any(pipeline.get(part) for pipeline in policy["pipelines"]):
            raise CannotCompile(f"uses {name}, which a policy cannot")
    if own := [each["name"] for each in policy["headers"] if each["name"] not in (SCALARS, STANDARD)]:
        raise CannotCompile(f"has the header {own[0]}, which a policy cannot: use a struct")
    policy = _renamed(policy)
    (scalars,) = (each for each in policy["header_types"] if each["name"].startswith(SCALARS))
    program["header_types"].append(scalars | {"name": OURS, "id": _next(program["header_types"])})
    header = {"name": OURS, "id": _next(program["headers"]), "header_type": OURS, "metadata": True, "pi_omit": True}
    program["headers"].append(header)
    fields = {(found[1], found[2]): name for name, *_ in scalars["fields"] if (found := _FIELD.fullmatch(name))}
    for calculation in policy["calculations"]:
        calculation["name"] = f"{OURS}_{calculation['name']}"
    for part in ARRAYS:
        for each in policy[part]:
            if each["name"] in {ours["name"] for ours in program[part]}:
                raise CannotCompile(f"declares {each['name']}, which bufferscope's own program has: use another name")
            program[part].append(each | {"id": _next(program[part])})
    numbers = _actions(program, policy["actions"])
    for name, hook in HOOKS.items():
        ours, theirs = (
            next(each for each in whole["pipelines"] if each["name"] == name) for whole in (program, policy)
        )
        _insert(program, ours, theirs, hook, fields, numbers)
    return program


def _renamed(value: Any) -> Any:
    """The policy with other names for its metadata header and its calculations."""
    if isinstance(value, list):
        return [OURS, value[1]] if len(value) == 2 and value[0] == SCALARS else [_renamed(each) for each in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") == "calculation":  # p4c itself names the calculations of hashes
        return value | {"value": f"{OURS}_{value['value']}"}
    return {key: _renamed(each) for key, each in value.items()}


def _actions(program: Any, actions: list[Any]) -> dict[int, int]:
    """Adds the policy's actions. Returns old id -> new id."""
    first = _next(program["actions"])
    for action in actions:
        if any(primitive["op"] == "exit" for primitive in action["primitives"]):
            raise CannotCompile("uses `exit`, which would skip the packet's postcard: use `return`")
    program["actions"] += [action | {"id": first + at} for at, action in enumerate(actions)]
    return {action["id"]: first + at for at, action in enumerate(actions)}


def _insert(
    program: Any, ours: Any, theirs: Any, hook_name: str, fields: Mapping[tuple[str, str], str],
    numbers: Mapping[int, int],
) -> None:  # fmt: skip
    """Replaces a hook in the pipeline `ours` by the policy's pipeline `theirs`."""
    (hook,) = (table for table in ours["tables"] if table["name"].endswith(f".{hook_name}"))
    (decide,) = (
        action
        for action in program["actions"]
        if action["id"] in hook["action_ids"] and action["name"].endswith(DECIDE)
    )
    after = hook["base_default_next"]
    names = [argument["name"] for argument in decide["runtime_data"]]
    seen: list[tuple[Any, Any]] = [([OURS, fields["verdict", name]], NOTHING) for name in names if name != "value"]
    for key in hook["key"]:
        field = fields["verdict" if key["name"] == "value" else "seen", key["name"]]
        seen.append(([OURS, field], {"type": "field", "value": key["target"]}))
    verdict: list[tuple[Any, Any]] = []
    for assign in decide["primitives"]:
        to, argument = (parameter["value"] for parameter in assign["parameters"])
        verdict.append((to, {"type": "field", "value": [OURS, fields["verdict", names[argument]]]}))
    last = _copy(program, ours, f"{hook_name}_verdict", verdict, after)
    tables = [_moved(table, numbers, last, hook_name) for table in theirs["tables"]]
    conditionals = [_moved(each, numbers, last, hook_name) for each in theirs["conditionals"]]
    first = _copy(program, ours, f"{hook_name}_seen", seen, _name(theirs["init_table"], hook_name) or last)
    for kind, more in (("tables", tables), ("conditionals", conditionals)):
        for each in more:
            ours[kind].append(each | {"id": _next(ours[kind])})
    ours["tables"].remove(hook)
    _redirect(ours, hook["name"], first)


def _copy(program: Any, pipeline: Any, name: str, pairs: list[tuple[Any, Any]], after: str | None) -> str:
    """A table without key whose only action assigns values to fields, (field, value). Returns its name."""
    action = {
        "name": name, "id": _next(program["actions"]), "runtime_data": [],
        "primitives": [
            {"op": "assign", "parameters": [{"type": "field", "value": to}, value]} for to, value in pairs
        ],
    }  # fmt: skip
    program["actions"].append(action)
    pipeline["tables"].append({
        "name": f"tbl_{name}", "id": _next(pipeline["tables"]), "key": [], "match_type": "exact", "type": "simple",
        "max_size": 1024, "with_counters": False, "support_timeout": False, "direct_meters": None,
        "action_ids": [action["id"]], "actions": [name], "base_default_next": after, "next_tables": {name: after},
        "default_entry": {
            "action_id": action["id"], "action_const": True, "action_data": [], "action_entry_const": True,
        },
    })  # fmt: skip
    return f"tbl_{name}"


def _moved(node: Any, numbers: Mapping[int, int], last: str, hook: str) -> Any:
    """A table or condition of the policy in our pipeline: what ended its pipeline goes on to `last`."""

    def to(name: str | None) -> str:
        return _name(name, hook) or last

    moved = node | {"name": _name(node["name"], hook)}
    if "action_ids" not in node:
        return moved | {"true_next": to(node["true_next"]), "false_next": to(node["false_next"])}
    moved["action_ids"] = [numbers[number] for number in node["action_ids"]]
    moved["next_tables"] = {action: to(name) for action, name in node["next_tables"].items()}
    is_asked = {*node["next_tables"]} == {"__HIT__", "__MISS__"}  # whether it hit: it has no base_default_next
    moved["base_default_next"] = None if is_asked else to(node["base_default_next"])
    if entry := node.get("default_entry"):
        moved["default_entry"] = entry | {"action_id": numbers[entry["action_id"]]}
    if entries := node.get("entries"):
        moved["entries"] = [
            each | {"action_entry": each["action_entry"] | {"action_id": numbers[each["action_entry"]["action_id"]]}}
            for each in entries
        ]
    return moved


def _name(name: str | None, hook: str) -> str | None:
    """Tables and conditions that p4c itself named get a prefix."""
    return name if name is None or "." in name else f"{hook}_{name}"


def _redirect(pipeline: Any, old: str, new: str) -> None:
    """Every way to the table `old` leads to `new`."""
    for node in (*pipeline["tables"], *pipeline["conditionals"]):
        for key in ("base_default_next", "true_next", "false_next"):
            if node.get(key) == old:
                node[key] = new
        for action, name in node.get("next_tables", {}).items():
            if name == old:
                node["next_tables"][action] = new
    if pipeline["init_table"] == old:
        pipeline["init_table"] = new


def _next(things: list[Any]) -> int:
    return max((each["id"] for each in things), default=-1) + 1
