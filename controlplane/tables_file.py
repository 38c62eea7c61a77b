# SPDX-License-Identifier: MIT
"""Reads the tables of a P4 program from the file that the program's authors ship: commands of simple_switch_CLI, or the
JSON of p4lang's tutorials (NAME-runtime.json).

The result is a list of requests of docs/control-protocol.md, which the soft switch and BMv2 take alike. A new switch
has no entries and zeros in its registers, so commands that take something back (table_clear, table_delete,
register_reset, ...) only remove earlier requests. Commands that print something have no effect.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from controlplane.schema import Array, Field, Schema, Table, short
from controlplane.switch import SwitchError
from lib import regular

MOST_PRIORITY = 2**31 - 1  # here the largest wins, in simple_switch the smallest: p and MOST_PRIORITY - p
MOST_PORT, MOST_GROUP, MOST_SESSION, MOST_BYTES = 510, 65535, 2**31 - 1, 1 << 20
MOST_PPS, MOST_PACKETS = 10**9, 10**9
RATE_COMMAND, DEPTH_COMMAND = "set_queue_rate", "set_queue_depth"
NO_EFFECT = {
    "help", "port_add", "port_remove", "show_ports", "show_tables", "show_actions", "show_pvs", "switch_info",
    "mc_dump", "table_info", "table_show_actions", "table_num_entries", "table_dump", "table_dump_entry",
    "counter_read", "register_read", "meter_get_rates", "mirroring_get", "get_time_elapsed", "get_time_since_epoch",
}  # fmt: skip
_COMMENT = re.compile(r"(?:^|\s)(?://|#).*")
_MASKED = ("ternary", "optional")


class Request(NamedTuple):
    """`where`: FILE:LINE. `command`: the command that asked for it."""

    where: str
    command: str
    text: str


class Mistake(Exception):
    """What is wrong with one command, without its place."""


def read_text(path: Path) -> str:
    """The text of a file of tables. Raises SwitchError."""
    try:
        return regular.read_bytes(path, MOST_BYTES).decode()
    except OSError as error:
        raise SwitchError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise SwitchError(f"{path}: is not text") from None


def parse(name: str, text: str, schema: Schema, ports: Sequence[int], words: Mapping[str, str]) -> list[Request]:
    """The requests of the file `name`. `ports`: those of the switch, for commands that mean all. `words`: replaces
    addresses, such as 10.0.1.1, also before a prefix length or mask. Raises SwitchError: one line with file and line.
    """
    reader = _Reader(schema, ports)
    commands = _runtime_json(name, text, schema) if text.lstrip().startswith("{") else _commands(name, text)
    for where, line in commands:
        try:
            reader.make(where, [_replaced(word, words) for word in line])
        except (Mistake, SwitchError) as error:
            raise SwitchError(f"{where}: {line[0]}: {error}") from None
    return reader.requests()


def _commands(name: str, text: str) -> Iterator[tuple[str, list[str]]]:
    for number, line in enumerate(text.splitlines(), 1):
        if words := _COMMENT.sub("", line).split():
            yield f"{name}:{number}", words


def _replaced(word: str, words: Mapping[str, str]) -> str:
    """A word, or what stands before its prefix length or mask."""
    if word in words:
        return words[word]
    value, mark, rest = [*re.split("(/|&&&|->)", word, maxsplit=1), "", ""][:3]
    return words.get(value, value) + mark + (words.get(rest, rest) if mark == "->" else rest)


class _Reader:
    """The state that the commands describe. Keys of `_made` tell what a later command takes back."""

    def __init__(self, schema: Schema, ports: Sequence[int]) -> None:
        self._schema, self._ports = schema, ports
        self._made: dict[tuple[Any, ...], Request] = {}
        self._handles: dict[str, int] = {}  # table -> entries added so far: the next handle
        self._nodes: list[tuple[int, list[int]]] = []  # of multicast groups: replica id, ports
        self._groups: dict[int, list[int]] = {}  # group -> nodes
        self._group_of: dict[int, Request] = {}
        self._where = self._command = ""

    def make(self, where: str, words: list[str]) -> None:
        """Raises Mistake, SwitchError."""
        self._where, (self._command, *rest) = where, words
        if self._command in NO_EFFECT:
            return
        found = _COMMANDS.get(self._command)
        if found is None:
            raise Mistake(f"is not supported; allowed: {', '.join(sorted(_COMMANDS))}")
        usage, least, most = found
        if not least <= len(rest) <= most:
            raise Mistake(f"takes {usage}; {len(rest)} words were given")
        getattr(self, f"_{self._command}")(*rest)

    def requests(self) -> list[Request]:
        groups = [
            self._group_of[group]._replace(text=f"multicast set {group} {' '.join(copies)}")
            for group, nodes in self._groups.items()
            if (copies := [f"{port} {self._nodes[node][0]}" for node in nodes for port in self._nodes[node][1]])
        ]
        return [*groups, *self._made.values()]

    def _add(self, key: tuple[Any, ...], *words: str | int) -> None:
        """A later request with the same key replaces the earlier one, and comes where it stands."""
        self._made.pop(key, None)
        self._made[key] = Request(self._where, self._command, " ".join(map(str, words)))

    def _forget(self, *key: Any) -> None:
        for made in [made for made in self._made if made[: len(key)] == key]:
            del self._made[made]

    def _table_add(self, name: str, action: str, *rest: str) -> None:
        table = self._schema.table(name)
        if "=>" not in rest:
            raise Mistake(f"`=>` should stand between keys and arguments; {_COMMANDS['table_add'][0]}")
        at = rest.index("=>")
        keys, arguments = rest[:at], rest[at + 1 :]
        if len(keys) != len(table.keys):
            wanted = ", ".join(f"{key.name} ({key.match})" for key in table.keys) or "none"
            raise Mistake(f"table {short(table.name)} has the keys {wanted}; {len(keys)} were given")
        priority: list[str | int] = []
        if any(key.match in (*_MASKED, "range") for key in table.keys):
            if not arguments:
                raise Mistake(f"table {short(table.name)} needs a priority at the end, the smallest wins")
            given = _number(arguments[-1], "priority", MOST_PRIORITY - 1)
            priority, arguments = ["priority", MOST_PRIORITY - given], arguments[:-1]
        matches = [_match(word, key) for word, key in zip(keys, table.keys, strict=True)]
        handle = self._handles.setdefault(table.name, 0)
        self._handles[table.name] += 1
        words = ["table", "set", table.name, *matches, "=", *self._action(table, action, arguments), *priority]
        self._add(("entry", table.name, handle), *words)

    def _table_set_default(self, name: str, action: str, *arguments: str) -> None:
        table = self._schema.table(name)
        words = self._action(table, action, [word for word in arguments if word != "=>"])
        self._add(("default", table.name), "table", "default", table.name, *words)

    def _action(self, table: Table, name: str, words: Sequence[str]) -> list[str]:
        full, wanted = self._schema.action(table, name)
        if len(words) != len(wanted):
            takes = ", ".join(f"{argument.name}:{argument.bits}" for argument in wanted) or "no arguments"
            raise Mistake(f"action {short(full)} takes {takes}; {len(words)} were given")
        return [full, *(hex(_value(word, argument)) for word, argument in zip(words, wanted, strict=True))]

    def _entry(self, name: str, handle: str) -> tuple[str, str, int]:
        table = self._schema.table(name)
        key = ("entry", table.name, _number(handle, "handle", MOST_PRIORITY))
        if key not in self._made:
            raise Mistake(f"table {short(table.name)} has no entry with the handle {handle}")
        return key

    def _table_delete(self, name: str, handle: str) -> None:
        del self._made[self._entry(name, handle)]

    def _table_modify(self, name: str, action: str, handle: str, *arguments: str) -> None:
        key = self._entry(name, handle)
        table = self._schema.table(name)
        words = self._action(table, action, [word for word in arguments if word != "=>"])
        match, _, old = self._made[key].text.partition(" = ")
        at = old.find(" priority ")
        self._add(key, match, "=", *words, *([old[at + 1 :]] if at >= 0 else []))

    def _table_clear(self, name: str) -> None:
        self._forget("entry", self._schema.table(name).name)

    def _table_reset_default(self, name: str) -> None:
        self._forget("default", self._schema.table(name).name)

    def _register_write(self, name: str, index: str, value: str) -> None:
        array = self._schema.register(name)
        cell = _index(index, array)
        number = _value(value, Field(f"a value of {short(array.name)}", array.bits))
        self._add(("register", array.name, cell), "register", "write", array.name, cell, hex(number))

    def _register_reset(self, name: str) -> None:
        self._forget("register", self._schema.register(name).name)

    def _counter_reset(self, name: str) -> None:
        self._schema.counter(name)  # a new switch's counters are 0

    def _meter_set_rates(self, name: str, index: str, *rates: str) -> None:
        array = self._schema.meter(name)
        self._set_meter(array, _index(index, array), rates)

    def _meter_array_set_rates(self, name: str, *rates: str) -> None:
        array = self._schema.meter(name)
        self._forget("meter", array.name)
        self._set_meter(array, "all", rates)

    def _set_meter(self, array: Array, index: int | str, rates: Sequence[str]) -> None:
        pairs = [re.fullmatch(r"([0-9]{1,20}(?:\.[0-9]{1,20})?):([0-9]{1,20})", rate) for rate in rates]
        values = [(round(float(pair[1]) * 1e6), int(pair[2])) for pair in pairs if pair]
        if len(values) != 2 or any(rate > 10**10 or burst > 10**10 for rate, burst in values):
            raise Mistake("a meter takes two pairs RATE:BURST, its rates in units/us, such as 0.000001:1 0.00001:5")
        numbers = [str(number) for pair in values for number in pair]
        self._add(("meter", array.name, index), "meter", "set", array.name, index, *numbers)

    def _mirroring_add(self, session: str, port: str) -> None:
        number = _number(session, "session", MOST_SESSION)
        self._add(("mirror", number), "mirror", "set", number, _port(port))

    def _mirroring_add_mc(self, session: str, group: str) -> None:
        number = _number(session, "session", MOST_SESSION)
        self._add(("mirror", number), "mirror", "set", number, "-", "group", _number(group, "group", MOST_GROUP, 1))

    def _mirroring_delete(self, session: str) -> None:
        self._forget("mirror", _number(session, "session", MOST_SESSION))

    def _mc_mgrp_create(self, group: str) -> None:
        number = _number(group, "group", MOST_GROUP, 1)
        if number in self._groups:
            raise Mistake(f"group {number} exists already")
        self._groups[number] = []
        self._group_of[number] = Request(self._where, self._command, "")

    def _mc_node_create(self, replica: str, *ports: str) -> None:
        self._nodes.append((_number(replica, "replica id", MOST_GROUP), self._node_ports(ports)))

    def _mc_node_update(self, node: str, *ports: str) -> None:
        number = self._node(node)
        self._nodes[number] = self._nodes[number][0], self._node_ports(ports)

    def _mc_node_associate(self, group: str, node: str) -> None:
        number = _number(group, "group", MOST_GROUP, 1)
        if number not in self._groups:
            raise Mistake(f"no group {number}: mc_mgrp_create {number} makes it")
        self._groups[number].append(self._node(node))

    def _node(self, text: str) -> int:
        number = _number(text, "node", MOST_GROUP)
        if number >= len(self._nodes):
            raise Mistake(f"no node {number}: mc_node_create makes them, and numbers them from 0")
        return number

    @staticmethod
    def _node_ports(ports: Sequence[str]) -> list[int]:
        if "|" in ports:
            raise Mistake("link aggregation groups (behind |) are not supported: give ports")
        return [_port(port) for port in ports]

    def _set_queue_rate(self, rate: str, *where: str) -> None:
        self._set_queue("rate", _number(rate, "rate", MOST_PPS), where)

    def _set_queue_depth(self, depth: str, *where: str) -> None:
        self._set_queue("limit_packets", _number(depth, "depth", MOST_PACKETS, 1), where)

    def _set_queue(self, setting: str, value: int, where: Sequence[str]) -> None:
        ports = [_port(where[0])] if where else self._ports
        queue = _number(where[1], "priority", 31) if len(where) > 1 else None
        for port in ports:
            whole_port = queue is None and setting == "limit_packets"
            where_words = f"port set {port}" if whole_port else f"queue set {port} {'all' if queue is None else queue}"
            self._add((setting, port, queue), where_words, setting, value)

    def _set_crc(self, bits: int, name: str, *numbers: str) -> None:
        values = [hex(_number(number, "a parameter", (1 << bits) - 1)) for number in numbers[:3]]
        flags = [{"true": "1", "false": "0"}.get(flag.lower(), flag) for flag in numbers[3:]]
        if set(flags) - {"0", "1"}:
            raise Mistake("the last two parameters are true or false")
        self._add(("crc", name), "crc", "set", name, *values, *flags)

    def _set_crc16_parameters(self, *words: str) -> None:
        self._set_crc(16, *words)

    def _set_crc32_parameters(self, *words: str) -> None:
        self._set_crc(32, *words)


_COMMANDS: dict[str, tuple[str, int, float]] = {  # usage; fewest and most words
    "table_add": ("TABLE ACTION KEY... => ARGUMENT... [PRIORITY]", 3, float("inf")),
    "table_set_default": ("TABLE ACTION ARGUMENT...", 2, float("inf")),
    "table_reset_default": ("TABLE", 1, 1),
    "table_modify": ("TABLE ACTION HANDLE ARGUMENT...", 3, float("inf")),
    "table_delete": ("TABLE HANDLE", 2, 2),
    "table_clear": ("TABLE", 1, 1),
    "register_write": ("REGISTER INDEX VALUE", 3, 3),
    "register_reset": ("REGISTER", 1, 1),
    "counter_reset": ("COUNTER", 1, 1),
    "meter_set_rates": ("METER INDEX RATE:BURST RATE:BURST", 4, 4),
    "meter_array_set_rates": ("METER RATE:BURST RATE:BURST", 3, 3),
    "mirroring_add": ("SESSION PORT", 2, 2),
    "mirroring_add_mc": ("SESSION GROUP", 2, 2),
    "mirroring_delete": ("SESSION", 1, 1),
    "mc_mgrp_create": ("GROUP", 1, 1),
    "mc_node_create": ("REPLICA PORT...", 1, float("inf")),
    "mc_node_update": ("NODE PORT...", 1, float("inf")),
    "mc_node_associate": ("GROUP NODE", 2, 2),
    "set_crc16_parameters": ("NAME POLYNOMIAL INITIAL FINAL REFLECT_DATA REFLECT_REMAINDER", 6, 6),
    "set_crc32_parameters": ("NAME POLYNOMIAL INITIAL FINAL REFLECT_DATA REFLECT_REMAINDER", 6, 6),
    RATE_COMMAND: ("PACKETS_PER_S [PORT [PRIORITY]]", 1, 3),
    DEPTH_COMMAND: ("PACKETS [PORT [PRIORITY]]", 1, 3),
}


def _value(text: str, field: Field) -> int:
    """A number in any base, or an address of the field's width."""
    address: Callable[[str], int] | None = {
        32: lambda text: int(ipaddress.IPv4Address(text)),
        48: _mac,
        128: lambda text: int(ipaddress.IPv6Address(text)),
    }.get(field.bits)
    mark = "." if field.bits == 32 else ":"
    try:
        value = address(text) if address and mark in text else _whole(text)
    except ValueError:
        kind = {32: " or an IPv4 address", 48: " or a MAC address", 128: " or an IPv6 address"}.get(field.bits, "")
        raise Mistake(f"{field.name}: {text!r} is not a number (10, 0xa, 0b1010){kind}") from None
    if refusal := field.refusal(value):
        raise Mistake(refusal)
    return value


def _whole(text: str) -> int:
    """Raises ValueError, also for underscores, signs and characters beyond ASCII, which int() takes."""
    if not re.fullmatch(r"0[xX][0-9a-fA-F]{1,99}|0[bB][01]{1,400}|0[oO][0-7]{1,99}|[0-9]{1,99}", text):
        raise ValueError(text)
    return int(text, 0) if text[1:2].isalpha() else int(text)


def _mac(text: str) -> int:
    if not re.fullmatch(r"[0-9a-fA-F]{1,2}(:[0-9a-fA-F]{1,2}){5}", text):
        raise ValueError(text)
    return int.from_bytes(bytes(int(part, 16) for part in text.split(":")), "big")


def _number(text: str, name: str, most: int, least: int = 0) -> int:
    try:
        value = _whole(text)
    except ValueError:
        value = -1
    if not least <= value <= most:
        raise Mistake(f"{name} {text!r}: a number from {least} to {most}")
    return value


def _port(text: str) -> int:
    return _number(text, "port", MOST_PORT)


def _index(text: str, array: Array) -> int:
    """A direct meter has no size of its own: its cells are its table's entries."""
    return _number(text, f"index of {short(array.name)}", (array.size or MOST_PRIORITY) - 1)


def _match(word: str, key: Field) -> str:
    """The key as in requests. Bits outside the prefix or mask are ignored, as simple_switch does."""
    every = (1 << key.bits) - 1
    if key.match == "lpm":
        value, slash, length = word.partition("/")
        if not slash:
            raise Mistake(f"key {key.name}: {word!r} should be VALUE/BITS, for a prefix")
        bits = _number(length, f"prefix length of {key.name}", key.bits)
        return f"{_value(value, key) & ~(every >> bits):#x}/{bits}"
    if key.match in _MASKED:
        value, mark, mask_word = word.partition("&&&")
        if not mark and key.match == "ternary":
            raise Mistake(f"key {key.name}: {word!r} should be VALUE&&&MASK")
        mask = _value(mask_word, key) if mark else every
        return f"{_value(value, key) & mask:#x}&&&{mask:#x}"
    if key.match == "range":
        first, mark, last = word.partition("->")
        if not mark:
            raise Mistake(f"key {key.name}: {word!r} should be FIRST->LAST")
        ends = _value(first, key), _value(last, key)
        if ends[0] > ends[1]:
            raise Mistake(f"key {key.name}: {word!r} ends before it starts")
        return f"{ends[0]:#x}..{ends[1]:#x}"
    if key.bits == 1 and word.lower() in ("true", "false"):  # isValid()
        return str(int(word.lower() == "true"))
    return hex(_value(word, key))


def _runtime_json(file: str, text: str, schema: Schema) -> Iterator[tuple[str, list[str]]]:
    """The commands of a NAME-runtime.json, whose priorities are P4Runtime's: the largest wins."""
    try:
        content = json.loads(text)
        for at, entry in enumerate(content.get("table_entries", [])):
            yield f"{file}: table_entries[{at}]", _entry_words(entry, schema)
        for at, group in enumerate(content.get("multicast_group_entries", [])):
            yield from _group_words(f"{file}: multicast_group_entries[{at}]", group, at, content)
        for at, session in enumerate(content.get("clone_session_entries", [])):
            where, replicas = f"{file}: clone_session_entries[{at}]", session["replicas"]
            if len(replicas) != 1:
                raise SwitchError(f"{where}: has {len(replicas)} replicas, one is allowed")
            words = ["mirroring_add", str(session["clone_session_id"]), str(replicas[0]["egress_port"])]
            yield where, words
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SwitchError(f"{file}: is not the JSON of tables of p4lang's tutorials ({error!r})") from None


def _entry_words(entry: Mapping[str, Any], schema: Schema) -> list[str]:
    table = schema.table(entry["table"])
    full, wanted = schema.action(table, entry["action_name"])
    given = entry.get("action_params", {})
    if wrong := sorted(set(given) ^ {argument.name for argument in wanted}):
        raise SwitchError(f"table {short(table.name)}: action {short(full)}: missing or unknown: {', '.join(wrong)}")
    arguments = [str(given[argument.name]) for argument in wanted]
    if entry.get("default_action"):
        return ["table_set_default", table.name, full, *arguments]
    matches = dict(entry.get("match") or {})
    keys = [_key_word(_taken(matches, key.name), key) for key in table.keys]
    if matches:
        raise SwitchError(f"table {short(table.name)}: has no key {', '.join(matches)}")
    masked = any(key.match in (*_MASKED, "range") for key in table.keys)
    priority = [str(MOST_PRIORITY - int(entry.get("priority", 1)))] if masked else []
    return ["table_add", table.name, full, *keys, "=>", *arguments, *priority]


def _taken(matches: dict[str, Any], name: str) -> Any:
    """Removes and returns the value of a key: p4c's name of it, or the end of this name."""
    ends = [given for given in matches if f".{name}".endswith(f".{given}")]
    return matches.pop(ends[0]) if ends else None


def _key_word(value: Any, key: Field) -> str:
    """None matches any value."""
    parts = value if isinstance(value, list) else [value]
    mark = {"lpm": "/", "range": "->"}.get(key.match, "&&&")
    every = (1 << key.bits) - 1
    if value is None:
        return {"lpm": "0/0", "range": f"0->{every}"}.get(key.match, "0&&&0")
    if key.match != "exact" and len(parts) == 1:
        parts = [*parts, {"lpm": key.bits, "range": parts[0]}.get(key.match, every)]
    return mark.join(map(str, parts))


def _group_words(
    where: str, group: Mapping[str, Any], number: int, content: Mapping[str, Any]
) -> Iterator[tuple[str, list[str]]]:
    nodes = sum(len(other["replicas"]) for other in content["multicast_group_entries"][:number])
    yield where, ["mc_mgrp_create", str(group["multicast_group_id"])]
    for at, replica in enumerate(group["replicas"], nodes):
        yield where, ["mc_node_create", str(replica.get("instance", 0)), str(replica["egress_port"])]
        yield where, ["mc_node_associate", str(group["multicast_group_id"]), str(at)]
