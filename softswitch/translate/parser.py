# SPDX-License-Identifier: MIT
"""Translates each parser state to a C function that ends with a call of the next state's function. A packet that is too
short, or a failed verify(), sets parser_error and ends parsing; headers parsed before remain valid, as in
simple_switch.
"""

from __future__ import annotations

from .actions import Actions, if_else
from .cfile import Function, block, function
from .errors import BadProgram, Unsupported
from .expressions import Code, Expressions, constant, mask, storage
from .program import Header, Json, Program


class Parser:
    """`start` is the C call that parses a packet. `max_bytes`: no path reads further into a frame."""

    def __init__(self, program: Program, expressions: Expressions, actions: Actions) -> None:
        self.program = program
        self.expressions = expressions
        self.actions = actions
        self.made: list[Function] = []
        self.extracted: set[str] = set()
        parsers = program.json["parsers"]
        if len(parsers) != 1:
            raise BadProgram(f"{len(parsers)} parsers, v1model has one")
        self.states = {state["name"]: state for state in parsers[0]["parse_states"]}
        self._functions: dict[str, Function | None] = {}
        self._bytes: dict[str | None, int] = {None: 0}
        self._open: list[str] = []
        self._extracts: dict[str, Function] = {}
        for state in self.states.values():
            for op in state["parser_ops"]:
                if op["op"] == "extract" and op["parameters"][0]["type"] == "regular":
                    self.extracted.add(op["parameters"][0]["value"])
        self._start = parsers[0]["init_state"]

    def translate(self) -> None:
        self._state(self._start)
        self.max_bytes = self._bytes.get(self._start, 0)
        made = self._functions.get(self._start)
        self.start = [made.call() + ";"] if made else []

    def _state(self, name: str | None) -> Function | None:
        """Writes the functions of a state's successors, then the state's own. None: the state does nothing."""
        if name is None or name in self._functions:
            return self._functions.get(name) if name else None
        state = self.states[name]
        where = self.program.lines.find(r"\bstate\s+", name)
        if name in self._open:
            loop = " -> ".join([*self._open[self._open.index(name) :], name])
            problem = Unsupported(where, f"a loop in the parser ({loop})", "write one state per header")
            self.program.problems.append(problem)
            return None
        self._open.append(name)
        following = [transition["next_state"] for transition in state["transitions"]]
        for next_name in following:
            self._state(next_name)
        self._open.pop()
        self._functions[name] = None
        self._bytes[name] = 0
        with self.program.collect():
            self._functions[name] = self._write(state, where)
        behind = max((self._bytes.get(next_name, 0) for next_name in following), default=0)
        self._bytes[name] = self._read_bytes(state) + behind
        return self._functions[name]

    def _write(self, state: Json, where: str) -> Function | None:
        body: list[str] = []
        for op in state["parser_ops"]:
            body += self._operation(op, self.program.where(op) if op.get("source_info") else where)
        body += self._transition(state, where)
        if not body:
            return None
        made = function(
            self.program.functions.prefixed("parse_", state["name"]), body, comment=f"{where} state {state['name']}"
        )
        self.made.append(made)
        return made

    # Operations of a state

    def _operation(self, op: Json, where: str) -> list[str]:
        kind, parameters = op["op"], op["parameters"]
        if kind == "extract":
            if parameters[0]["type"] != "regular":
                raise Unsupported(where, "a header stack", "give each header a name of its own")
            return [f"if (!{self._extract(self.program.header(parameters[0]['value'], where))})", "\treturn;"]
        if kind == "extract_VL":
            raise Unsupported(where, "a varbit field", "use headers of fixed length")
        if kind == "set":
            return self._set(parameters, where)
        if kind == "verify":
            condition = self.expressions.boolean(self.expressions.read(parameters[0], where), where)
            error = self.expressions.assigned(self.expressions.read(parameters[1], where), 32, where)
            return if_else(Code(f"!{condition}", "bool"), [f"packet->std.parser_error = {error.text};", "return;"], [])
        if kind in ("advance", "shift"):
            return self._advance(parameters[0], kind == "shift", where)
        if kind == "primitive":
            return self.actions.statements([parameters[0]], [], where)
        raise Unsupported(where, f"parser operation {kind}", "it is not one that p4c is known to emit")

    def _extract(self, header: Header) -> str:
        """The call that extracts a header; it returns whether the frame is long enough."""
        if header.name not in self._extracts:
            body = [
                "const uint8_t *at = packet->frame + packet->payload_offset;",
                "",
                *self._too_short(header.bytes, "return false;"),
                f"packet->payload_offset += {header.bytes};",
                f"{header.c_text}.valid = true;",
                f"load_{header.c_type}(&{header.c_text}, at);",
                "return true;",
            ]
            made = function(self.program.functions.prefixed("parse_header_", header.name), body, returns="bool")
            self._extracts[header.name] = made
            self.made.append(made)
        return self._extracts[header.name].call()

    def _too_short(self, needed: int | str, leave: str) -> list[str]:
        error = self.program.errors.get("PacketTooShort", 1)
        return block(
            f"if (packet->frame_bytes - packet->payload_offset < {needed}) {{",
            [f"packet->std.parser_error = {error};\t/* PacketTooShort */", leave],
        )

    def _set(self, parameters: list[Json], where: str) -> list[str]:
        header, field = self.program.field(parameters[0]["value"], where)
        target = f"{header.c_text}.{field.c_name}"
        source = parameters[1]
        if source["type"] == "lookahead":
            first, bits = source["value"]
            lines, value = self._lookahead(first, bits, where)
            cut = "" if bits <= field.bits else f" & {constant(mask(field.bits))}"
            return [*lines, f"{target} = ({storage(field.bits)})({value}{cut});"]
        return self.actions.statements([{"op": "assign", "parameters": parameters}], [], where)

    def _lookahead(self, first: int, bits: int, where: str) -> tuple[list[str], str]:
        if bits > 128:
            raise Unsupported(where, f"a lookahead of {bits} bits", "at most 128 are possible")
        at = "packet->frame + packet->payload_offset"
        return self._too_short((first + bits + 7) // 8, "return;"), f"p4_load_bits({at}, {first}, {bits})"

    def _advance(self, parameter: Json, in_bytes: bool, where: str) -> list[str]:
        error = self.program.errors.get("ParserInvalidArgument", self.program.errors.get("NoMatch", 2))
        if in_bytes:
            parameter = {"type": "hexstr", "value": hex(int(parameter) * 8)}
        node = self.expressions.read(parameter, where)
        if node.op == "const" and node.value % 8 == 0:
            size = node.value // 8
            return [*self._too_short(size, "return;"), f"packet->payload_offset += {size};"]
        value = self.expressions.assigned(node, 32, where)
        return [
            *block(
                f"if ({value} % 8) {{",
                [f"packet->std.parser_error = {error};\t/* ParserInvalidArgument */", "return;"],
            ),
            *self._too_short(f"{value} / 8", "return;"),
            f"packet->payload_offset += (uint32_t){value} / 8;",
        ]

    # Transitions

    def _go(self, name: str | None) -> list[str]:
        made = self._functions.get(name) if name else None
        return [made.call() + ";", "return;"] if made else ["return;"]

    def _transition(self, state: Json, where: str) -> list[str]:
        """The C takes the first transition that matches. Without a match the packet is accepted."""
        checks: list[str] = []
        keys: list[tuple[str, int]] = []  # C text and bits of each part of the key
        for part in state["transition_key"]:
            if part["type"] == "field":
                header, field = self.program.field(part["value"], where)
                keys.append((f"{header.c_text}.{field.c_name}", field.bits))
            elif part["type"] == "lookahead":
                first, bits = part["value"]
                lines, value = self._lookahead(first, bits, where)
                checks += lines
                keys.append((value, bits))
            else:
                raise Unsupported(where, "a header stack", "give each header a name of its own")
        cases: list[tuple[str, str | None]] = []
        default: str | None = None
        simple = len(keys) == 1 and keys[0][1] <= 64
        for transition in state["transitions"]:
            kind = transition.get("type") or ("default" if transition["value"] == "default" else "hexstr")
            if kind == "default":
                default = transition["next_state"]
                break
            if kind == "parse_vset":
                raise Unsupported(where, "value_set", "write the values in the select expression")
            simple &= transition["mask"] is None
            cases.append((self._case(transition, keys), transition["next_state"]))
        if simple and cases and len({text for text, _ in cases}) == len(cases):
            return checks + self._switch(keys[0][0], state, default)
        lines = list(checks)
        for text, next_state in cases:
            lines += block(f"if ({text}) {{", self._go(next_state))
        tail = self._go(default)[:-1]
        return lines + tail

    def _switch(self, key: str, state: Json, default: str | None) -> list[str]:
        lines = [f"switch ({key}) {{"]
        for transition in state["transitions"]:
            if transition.get("type") == "default" or transition["value"] == "default":
                break
            value = constant(int(transition["value"], 16))
            lines += [f"case {value}:", *["\t" + line for line in self._go(transition["next_state"])]]
        after = self._go(default)[:-1]
        if after:
            lines += ["default:", *["\t" + line for line in [*after, "return;"]]]
        return [*lines, "}"]

    def _case(self, transition: Json, keys: list[tuple[str, int]]) -> str:
        """The condition of a transition. Value and mask concatenate the key's parts, each padded to whole bytes."""
        value = int(transition["value"], 16)
        masks = mask(sum((bits + 7) // 8 * 8 for _, bits in keys))
        if transition["mask"] is not None:
            masks = int(transition["mask"], 16)
        tests = []
        for text, bits in reversed(keys):
            part, part_mask = value & mask(bits), masks & mask(bits)
            value >>= (bits + 7) // 8 * 8
            masks >>= (bits + 7) // 8 * 8
            if part_mask == mask(bits):
                tests.append(f"{text} == {constant(part).text}")
            elif part_mask:
                tests.append(f"({text} & {constant(part_mask).text}) == {constant(part & part_mask).text}")
        return " && ".join(reversed(tests)) or "true"

    def _read_bytes(self, state: Json) -> int:
        """Upper bound of the bytes that the state can read, without its successors."""
        consumed = furthest = 0
        for op in state["parser_ops"]:
            first: Json = op["parameters"][0] if op["parameters"] else None
            if op["op"] == "extract" and first["type"] == "regular" and first["value"] in self.program.headers:
                consumed += self.program.headers[first["value"]].bytes
            elif op["op"] == "advance":
                # An advance by a field of the packet can reach the end of any frame.
                known = first["type"] == "hexstr"
                consumed += int(first["value"], 16) // 8 if known else 2**32
            elif op["op"] == "shift":
                consumed += int(first)
            elif op["op"] == "set" and op["parameters"][1]["type"] == "lookahead":
                offset, bits = op["parameters"][1]["value"]
                furthest = max(furthest, consumed + (offset + bits + 7) // 8)
        for part in state["transition_key"]:
            if part["type"] == "lookahead":
                furthest = max(furthest, consumed + (sum(part["value"]) + 7) // 8)
        return max(consumed, furthest)
