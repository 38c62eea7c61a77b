# SPDX-License-Identifier: MIT
"""Match-action tables: members of struct pipeline, C functions that apply the tables, and descriptions of the tables.
The control plane's requests are checked against the descriptions (softswitch/runtime/p4_tables.h)."""

from __future__ import annotations

from dataclasses import dataclass, field

from .actions import Actions
from .cfile import Function, block, function
from .errors import Unsupported
from .expressions import constant, mask
from .names import comment, string, word
from .program import Json, Program

_MATCHES = {"exact": "P4_EXACT", "lpm": "P4_LPM", "ternary": "P4_TERNARY", "range": "P4_RANGE"}
MAX_ROW_WORDS = 192  # as in p4_table_control.c
MAX_ENTRIES = 1 << 24
MEMBER = -1  # id of the action of value sets
METER_BYTES = 80  # struct p4_meter


@dataclass
class TableKey:
    name: str
    match: str
    bits: int
    word: int
    texts: list[str]  # C expressions of the key's words, high word first


@dataclass
class MatchTable:
    json: Json
    where: str
    name: str  # in C: members and descriptions are named after it
    keys: list[TableKey]
    key_words: int
    match: str  # exact, lpm, ternary
    action_ids: list[int]
    argument_words: int
    hidden: bool
    apply: Function | None = None
    branches: str = "none"  # the result that the caller needs: none, hit, action
    argument_at: dict[int, list[tuple[str, int, int]]] = field(default_factory=dict)  # action -> (name, bits, word)

    @property
    def size(self) -> int:
        return max(int(self.json.get("max_size", 1024)), len(self.json.get("entries", [])), 1) if self.keys else 0

    @property
    def masked(self) -> bool:
        return self.match == "ternary"

    @property
    def argument_start(self) -> int:
        return self.key_words * (2 if self.masked else 1)

    @property
    def meter_offset(self) -> int:
        """Of its direct meter in a row."""
        return 24 + 8 * (self.argument_start + self.argument_words)

    @property
    def row_bytes(self) -> int:
        return self.meter_offset + (METER_BYTES if self.json.get("direct_meters") else 0)

    @property
    def memory_bytes(self) -> int:
        return 4 * self.buckets + (self.size + 1) * self.row_bytes

    @property
    def buckets(self) -> int:
        return 0 if self.masked or not self.keys else 1 << (2 * self.size - 1).bit_length()


def _words(text: str, bits: int) -> list[str]:
    return [f"(uint64_t)({text} >> 64)", f"(uint64_t){text}"] if bits > 64 else [text]


class Tables:
    def __init__(self, program: Program, actions: Actions, names) -> None:
        self.program = program
        self.actions = actions
        self.names = names  # of members of struct pipeline
        self.tables: dict[str, MatchTable] = {}
        self.made: list[Function] = []
        self.sets: list[Function] = []
        program.actions[MEMBER] = {"name": "member", "runtime_data": [], "primitives": []}

    def read(self, pipeline: Json) -> None:
        """Adds the tables of one pipeline and the functions that apply them."""
        for profile in pipeline.get("action_profiles", []):
            why = "use a table with the actions themselves"
            kind = "action_selector" if "selector" in profile else "action_profile"
            self.program.problems.append(Unsupported(self.program.where(profile), f"{kind} {profile['name']}", why))
        for json in pipeline["tables"]:
            with self.program.collect():
                table = self._table(json)
                self.tables[json["name"]] = table
                self._apply(table)

    def _table(self, json: Json) -> MatchTable:
        where = self.program.where(json)
        if json.get("type", "simple") != "simple":
            raise Unsupported(where, f"table {json['name']} with an action profile", "use the actions themselves")
        if json.get("support_timeout"):
            raise Unsupported(where, f"idle timeout of table {json['name']}", "delete entries from the control plane")
        if json.get("max_size", 0) > MAX_ENTRIES:
            raise Unsupported(where, f"table {json['name']} of {json['max_size']} entries", f"at most {MAX_ENTRIES}")
        keys: list[TableKey] = []
        at = 0
        for item in json["key"]:
            key = self._key(json, item, at, where)
            keys.append(key)
            at += len(key.texts)
        kinds = {key.match for key in keys}
        match = "ternary" if kinds & {"ternary", "range"} or json["match_type"] in ("ternary", "range") else "exact"
        if match == "exact" and "lpm" in kinds:
            if [key.match for key in keys].count("lpm") > 1:
                raise Unsupported(where, f"table {json['name']} with two lpm keys", "make one of them ternary")
            match = "lpm"
        if match == "ternary" and at > 64:
            raise Unsupported(where, f"a key of {at} words in table {json['name']}", "at most 64 are possible")
        ids = list(json["action_ids"])
        default = json.get("default_entry") or {}
        table = MatchTable(json, where, self.names.unique(json["name"]), keys, at, match, ids, 0, False)
        for action in ids:
            words = 0
            table.argument_at[action] = []
            for param in self.program.actions[action]["runtime_data"]:
                table.argument_at[action].append((param["name"], param["bitwidth"], words))
                words += 2 if param["bitwidth"] > 64 else 1
            table.argument_words = max(table.argument_words, words)
        if table.argument_start + table.argument_words > MAX_ROW_WORDS:
            construct = f"an entry of more than {MAX_ROW_WORDS} words in table {json['name']}"
            raise Unsupported(where, construct, "split the table")
        # The compiler turns statements into tables with one constant action. They are hidden from the control plane.
        fixed = default.get("action_const", False) and default.get("action_entry_const", False)
        table.hidden = not keys and bool(fixed)
        return table

    def _key(self, table: Json, json: Json, at: int, where: str) -> TableKey:
        name = word(json.get("name") or ".".join(json["target"]))
        kind = json["match_type"]
        if kind == "valid":
            return TableKey(name, "exact", 1, at, [self.program.header(json["target"], where).c_text + ".valid"])
        if kind == "optional":
            kind = "ternary"
        if kind not in _MATCHES:
            raise Unsupported(where, f"match kind {kind} of table {table['name']}", f"use {', '.join(_MATCHES)}")
        if json["target"][1] == "$valid$":
            return TableKey(name, kind, 1, at, [self.program.header(json["target"][0], where).c_text + ".valid"])
        header, member = self.program.field(json["target"], where)
        if member.bits > 128:
            construct = f"a key of {member.bits} bits in table {table['name']}"
            raise Unsupported(where, construct, "at most 128 are possible")
        if kind == "range" and member.bits > 64:
            construct = f"a range of {member.bits} bits in table {table['name']}"
            raise Unsupported(where, construct, "at most 64 are possible")
        text = f"{header.c_text}.{member.c_name}"
        if json.get("mask") is not None:
            text = f"({text} & {constant(int(json['mask'], 16)).text})"
        texts = _words(text, member.bits)
        if not header.metadata:
            # The fields of an invalid header match as 0.
            texts = [f"{header.c_text}.valid ? {part} : 0" for part in texts]
        return TableKey(name, kind, member.bits, at, texts)

    # Applying

    def _apply(self, table: MatchTable) -> None:
        next_tables = table.json["next_tables"]
        if "__HIT__" in next_tables or "__MISS__" in next_tables:
            table.branches = "hit" if next_tables.get("__HIT__") != next_tables.get("__MISS__") else "none"
        elif len(set(next_tables.values())) > 1:
            table.branches = "action"
        if table.hidden:
            return
        run = self._run(table)
        if not table.keys and not run and table.branches == "none":
            return
        body = [f"struct p4_table *table = &pipeline->table_{table.name};"]
        if table.keys:
            body += self._find(table)
        else:
            body += [f"struct p4_row *row = p4_default_row(table, 0, {table.row_bytes});", ""]
            if table.branches == "hit":
                body.insert(-1, "bool hit = false;")
        body += run
        if table.branches == "hit":
            body.append("return hit;")
        elif table.branches == "action":
            body.append("return row->action;")
        returns = {"none": "void", "hit": "bool", "action": "uint32_t"}[table.branches]
        name = self.program.functions.prefixed("apply_", table.json["name"])
        title = f"{table.where} table {table.json['name']}"
        table.apply = function(name, body, comment=title, returns=returns)
        self.made.append(table.apply)

    def _find(self, table: MatchTable) -> list[str]:
        qualifier = "" if table.match == "lpm" else "const "
        lines = block(
            f"{qualifier}uint64_t key[{table.key_words}] = {{",
            [f"{text},\t/* {comment(key.name)} */" for key in table.keys for text in key.texts],
            "};",
        )
        lines.append("struct p4_row *row;")
        if table.branches == "hit":
            lines.append("bool hit;")
        if table.match == "exact":
            call = f"p4_find_exact(table, key, {table.key_words}, {table.buckets}, {table.row_bytes})"
        elif table.match == "lpm":
            lpm = next(key for key in table.keys if key.match == "lpm")
            sizes = f"{lpm.word}, {lpm.bits}, {table.buckets}, {table.row_bytes}"
            call = f"p4_find_lpm(table, key, {table.key_words}, {sizes})"
        else:
            ranges = sum(1 << key.word for key in table.keys if key.match == "range")
            call = f"p4_find_ternary(table, key, {table.key_words}, {ranges:#x}, {table.row_bytes})"
        lines += ["", f"row = {call};"]
        if table.branches == "hit":
            lines.append("hit = row != NULL;")
        meter = table.json.get("direct_meters")
        if meter:
            lines += ["if (row)", "\t" + self._meter(table, meter)]
        default = f"row = p4_default_row(table, {table.size}, {table.row_bytes});"
        if table.json.get("with_counters"):
            lines += block("if (row) {", ["row->packets++;", "row->bytes += phv->length_in;"], "} else {")
            lines += ["\t" + default, "}"]
        else:
            lines += ["if (!row)", "\t" + default]
        return lines

    def _meter(self, table: MatchTable, name: str) -> str:
        """Only an entry has a meter: a miss leaves the result as it is, as in simple_switch."""
        meter = next(meter for meter in self.program.json["meter_arrays"] if meter["name"] == name)
        header, member = self.program.field(meter["result_target"], table.where)
        state = f"(struct p4_meter *)((uint8_t *)row + {table.meter_offset})"
        units = self.actions.meter_units[name]
        return f"{header.c_text}.{member.c_name} = p4_meter_color({state}, *pipeline->now_ns, {units});"

    def value_set(self, name: str, keys: list[tuple[str, int]], where: str) -> str:
        """The C condition that a parser's key, (C text, bits) of each part, is in a value set. The set is an exact
        table whose only action is `member`.
        """
        set_json = next(item for item in self.program.json["parse_vsets"] if item["name"] == name)
        widths = [bits for _, bits in keys]
        if max(widths) > 128:
            raise Unsupported(where, f"a value set of {max(widths)} bits", "at most 128 are possible")
        table = self.tables.get(name)
        if table is None:
            parts, at = [], 0
            for number, bits in enumerate(widths):
                words = [f"part_{number}_{word}" for word in range((bits + 63) // 64)]
                parts.append(TableKey(f"part_{number}", "exact", bits, at, words))
                at += len(words)
            json: Json = {"name": name, "max_size": set_json.get("max_size") or 1024, "next_tables": {}}
            table = MatchTable(json, where, self.names.unique(name), parts, at, "exact", [MEMBER], 0, False)
            table.argument_at[MEMBER] = []
            texts = [text for key in parts for text in key.texts]
            body = [
                f"const struct p4_table *table = &pipeline->table_{table.name};",
                f"const uint64_t key[{at}] = {{ {', '.join(texts)} }};",
                "",
                f"return p4_find_exact(table, key, {at}, {table.buckets}, {table.row_bytes}) != NULL;",
            ]
            function_name = self.program.functions.prefixed("apply_", name)
            parameters = [f"uint64_t {text}" for text in texts]
            table.apply = function(function_name, body, f"{where} value set {name}", "bool", parameters)
            self.sets.append(table.apply)
            self.tables[name] = table
        if [key.bits for key in table.keys] != widths:
            raise Unsupported(where, f"value set {name} for keys of different widths", "use one set for each")
        assert table.apply is not None
        return table.apply.call(*(word for text, bits in keys for word in _words(text, bits)))

    def _run(self, table: MatchTable) -> list[str]:
        lines = []
        for index, action in enumerate(table.action_ids):
            made = self.actions.functions.get(action)
            if made is None:
                continue
            lines += [f"case {index}:", f"\t{made.call(*self._arguments(table, action))};", "\tbreak;"]
        return ["switch (row->action) {", *lines, "}"] if lines else []

    def _arguments(self, table: MatchTable, action: int) -> list[str]:
        texts = []
        for _, bits, at in table.argument_at[action]:
            first = f"row->words[{table.argument_start + at}]"
            texts.append(f"P4_WIDE({first}, row->words[{table.argument_start + at + 1}])" if bits > 64 else first)
        return texts

    def next_node(self, table: MatchTable, action: int) -> str | None:
        """The next node after `action`."""
        name = self.program.actions[action]["name"]
        return table.json["next_tables"].get(name, table.json.get("base_default_next"))

    # Describing

    def members(self) -> list[str]:
        lines = []
        for table in self.visible():
            lines.append(f"struct p4_table table_{table.name};")
            if table.buckets:
                lines.append(f"uint32_t buckets_{table.name}[{table.buckets}];")
            total = (table.size + 1) * table.row_bytes
            lines.append(f"uint8_t rows_{table.name}[{total}] __attribute__((aligned(8)));")
        return lines

    def visible(self) -> list[MatchTable]:
        return [table for table in self.tables.values() if not table.hidden]

    def descriptions(self) -> list[str]:
        lines: list[str] = []
        for table in self.visible():
            lines += self._description(table)
        names = [f"&info_{table.name}," for table in self.visible()]
        opening = "static const struct p4_table_info *const table_infos[] = {"
        return [*lines, *block(opening, names or ["NULL,"], "};"), ""]

    def _description(self, table: MatchTable) -> list[str]:
        lines: list[str] = []
        if table.keys:
            items = [f"{{ {string(k.name)}, {k.bits}, {_MATCHES[k.match]}, {k.word} }}," for k in table.keys]
            lines += [*block(f"static const struct p4_key_info keys_{table.name}[] = {{", items, "};"), ""]
        items = []
        for index, action in enumerate(table.action_ids):
            params = table.argument_at[action]
            name = string(word(self.program.actions[action]["name"]))
            array = f"params_{table.name}_{index}" if params else "NULL"
            if params:
                rows = [f"{{ {string(word(param))}, {bits}, {at} }}," for param, bits, at in params]
                lines += [*block(f"static const struct p4_param_info {array}[] = {{", rows, "};"), ""]
            items.append(f"{{ {name}, {array}, {len(params)} }},")
        lines += [*block(f"static const struct p4_action_info actions_{table.name}[] = {{", items, "};"), ""]
        default = table.json.get("default_entry") or {}
        values = {
            "name": string(word(table.json["name"])),
            "keys": f"keys_{table.name}" if table.keys else "NULL",
            "actions": f"actions_{table.name}",
            "key_count": len(table.keys),
            "action_count": len(table.action_ids),
            "size": table.size,
            "bucket_count": table.buckets,
            "row_bytes": table.row_bytes,
            "key_words": table.key_words,
            "argument_words": table.argument_words,
            "match": _MATCHES[table.match],
            "const_entries": "true" if table.json.get("entries") else "false",
            "const_default": "true" if default.get("action_const") or default.get("action_entry_const") else "false",
            "table_offset": f"offsetof(struct pipeline, table_{table.name})",
        }
        items = [f".{name} = {value}," for name, value in values.items()]
        return [*lines, *block(f"static const struct p4_table_info info_{table.name} = {{", items, "};"), ""]

    def initialisation(self) -> list[str]:
        """Statements of pipeline_create: empty tables, default and const entries."""
        lines: list[str] = []
        for table in self.visible():
            buckets = f"pipeline->buckets_{table.name}" if table.buckets else "NULL"
            to = f"&pipeline->table_{table.name}"
            lines.append(f"p4_table_init({to}, &info_{table.name}, pipeline->rows_{table.name}, {buckets});")
            default = table.json.get("default_entry")
            if default:
                words = self._data(table, default, "0")
                array = f"(const uint64_t[]){{ {', '.join(words)} }}"
                lines.append(f"p4_table_set_default({to}, {table.action_ids.index(default['action_id'])}, {array});")
            entries = table.json.get("entries", [])
            last = max((entry.get("priority", 0) for entry in entries), default=0)
            for entry in entries:
                lines += self._const_entry(table, entry, last)
        return lines

    def _data(self, table: MatchTable, entry: Json, filler: str) -> list[str]:
        """The words of an entry's arguments, padded to the table's argument_words."""
        words: list[str] = []
        for (_, bits, _), value in zip(table.argument_at[entry["action_id"]], entry["action_data"], strict=True):
            words += _constant_words(int(value, 16) & mask(bits), bits)
        words += [filler] * (table.argument_words - len(words))
        return words or [filler]

    def _const_entry(self, table: MatchTable, entry: Json, last_priority: int) -> list[str]:
        values: list[str] = []
        masks: list[str] = []
        # In simple_switch the smallest number is the highest priority; here and in P4Runtime the largest is.
        priority = last_priority - entry.get("priority", 0) + 1 if table.masked else 0
        for key, item in zip(table.keys, entry["match_key"], strict=True):
            all_bits = mask(key.bits)
            if item["match_type"] == "lpm":
                length = item["prefix_length"]
                second = all_bits & ~mask(key.bits - length)
                value = int(item["key"], 16) & second
                priority = priority if table.masked else length
            elif item["match_type"] in ("ternary", "optional"):
                second = int(item["mask"], 16) & all_bits
                value = int(item["key"], 16) & second
            elif item["match_type"] == "range":
                value, second = int(item["start"], 16), int(item["end"], 16)
            elif item["match_type"] == "valid":
                value, second = int(item["key"]), all_bits
            else:
                value, second = int(item["key"], 16) & all_bits, all_bits
            values += _constant_words(value, key.bits)
            masks += _constant_words(second, key.bits)
        words = values + (masks if table.masked else []) + self._data(table, entry["action_entry"], "0")
        action = table.action_ids.index(entry["action_entry"]["action_id"])
        array = f"(const uint64_t[]){{ {', '.join(words)} }}"
        return [f"p4_table_set(&pipeline->table_{table.name}, {action}, {priority}, {array});"]


def _constant_words(value: int, bits: int) -> list[str]:
    if bits > 64:
        return [f"{value >> 64:#x}", f"{value & mask(64):#x}"]
    return [constant(value).text]
