# SPDX-License-Identifier: MIT
"""Translates each parser state to a C function that ends with a call of the next state's function. The states of a loop
share one function and go from one to the next by goto. A packet that is too
short, or a failed verify(), sets parser_error and ends parsing; headers parsed before remain valid, as in
simple_switch.
"""

from __future__ import annotations

from .actions import Actions, if_else
from .cfile import Function, block, function
from .errors import BadProgram, Unsupported
from .expressions import Code, Expressions, Node, constant, mask
from .headers import load_bits
from .names import Names, comment
from .program import Json, Program
from .tables import Tables

MAX_STATES = 1 << 16  # of a loop that reads nothing: simple_switch never leaves it


class Parser:
    """`start` is the C call that parses a packet. `max_bytes`: no path reads further into a frame."""

    def __init__(self, program: Program, expressions: Expressions, actions: Actions, tables: Tables) -> None:
        self.program = program
        self.expressions = expressions
        self.actions = actions
        self.tables = tables
        self.made: list[Function] = []
        self.extracted: set[str] = set()
        parsers = program.json["parsers"]
        if len(parsers) != 1:
            raise BadProgram(f"{len(parsers)} parsers, v1model has one")
        self.states = {state["name"]: state for state in parsers[0]["parse_states"]}
        self._calls: dict[
            str, str
        ] = {}  # state -> C that runs it and all that follow; a state that does nothing has none
        self._labels: dict[str, str] = {}  # states of the loop that is being written
        self._bytes: dict[str | None, int] = {None: 0}
        self._extracts: dict[str, Function] = {}
        self._start = parsers[0]["init_state"]

    def translate(self) -> None:
        for loop in self._components():
            with self.program.collect():
                if len(loop) == 1 and loop[0] not in self._following(loop[0]):
                    self._single(loop[0])
                else:
                    self._loop(loop)
        self.max_bytes = self._bytes.get(self._start, 0)
        self.start = [self._calls[self._start] + ";"] if self._start in self._calls else []

    def _following(self, name: str) -> list[str]:
        return [way["next_state"] for way in self.states[name]["transitions"] if way["next_state"]]

    def _components(self) -> list[list[str]]:
        """The states that can be reached, successors first; the states of a loop together (Tarjan)."""
        found: list[list[str]] = []
        number: dict[str, int] = {}
        low: dict[str, int] = {}
        open_states: list[str] = []

        def visit(name: str) -> None:
            number[name] = low[name] = len(number)
            open_states.append(name)
            for following in self._following(name):
                if following not in number:
                    visit(following)
                    low[name] = min(low[name], low[following])
                elif following in open_states:
                    low[name] = min(low[name], number[following])
            if low[name] == number[name]:
                at = open_states.index(name)
                found.append(open_states[at:])
                del open_states[at:]

        if self._start:
            visit(self._start)
        return found

    def _where(self, name: str) -> str:
        return self.program.lines.find(r"\bstate\s+", name)

    def _single(self, name: str) -> None:
        state, where = self.states[name], self._where(name)
        behind = max((self._bytes.get(following, 0) for following in self._following(name)), default=0)
        self._bytes[name] = self._read_bytes(state) + behind
        body = self._body(state, where)
        if body[-1] == "return;":
            body.pop()
        if body:
            made = self._function(name, body, f"{where} state {name}")
            self._calls[name] = made.call()

    def _loop(self, loop: list[str]) -> None:
        """One function for all states of a loop. If several are entered from outside, its parameter says which."""
        outside = [name for name in self.states if name not in loop]
        entered = {self._start, *(following for name in outside for following in self._following(name))}
        entries = [name for name in loop if name in entered]
        names = Names()
        self._labels = {name: names.unique("state_" + name) for name in loop}
        body = ["uint32_t states = 0;", ""]
        if len(entries) > 1:
            cases = [f"case {at}: goto {self._labels[name]};" for at, name in enumerate(entries) if at]
            body += ["switch (entry) {", *cases, "}"]
        loop.sort(key=lambda name: name != entries[0])
        timeout = self.program.errors.get("ParserTimeout", 5)
        for name in loop:
            where = self._where(name)
            body += [f"{self._labels[name]}:;\t/* {comment(where)} state {comment(name)} */"]
            body += block(
                f"if (++states > {MAX_STATES}) {{",
                [f"packet->std.parser_error = {timeout};\t/* ParserTimeout */", "return;"],
            )
            body += self._body(self.states[name], where)
        self._labels = {}
        parameters = ["unsigned entry"] if len(entries) > 1 else []
        made = self._function(entries[0], body, f"{self._where(entries[0])} loop of {', '.join(loop)}", parameters)
        behind = max((self._bytes.get(following, 0) for name in loop for following in self._following(name)), default=0)
        for name in loop:
            self._bytes[name] = self._loop_bytes(loop) + behind
        for at, name in enumerate(entries):
            self._calls[name] = made.call(str(at)) if parameters else made.call()

    def _function(self, name: str, body: list[str], comment: str, parameters: list[str] | None = None) -> Function:
        made = function(self.program.functions.prefixed("parse_", name), body, comment, parameters=parameters)
        self.made.append(made)
        return made

    def _body(self, state: Json, where: str) -> list[str]:
        body: list[str] = []
        for op in state["parser_ops"]:
            body += self._operation(op, self.program.where(op) if op.get("source_info") else where)
        return body + self._transition(state, where)

    # Operations of a state

    def _operation(self, op: Json, where: str) -> list[str]:
        kind, parameters = op["op"], op["parameters"]
        if kind == "extract":
            return [f"if (!{self._extract(parameters[0], where)})", "\treturn;"]
        if kind == "extract_VL":
            bits = self.expressions.assigned(self.expressions.read(parameters[1], where), 32, where).text
            return [f"if (!{self._extract(parameters[0], where, bits)})", "\treturn;"]
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

    def _extract(self, parameter: Json, where: str, *varbit_bits: str) -> str:
        """The call that extracts a header; it returns whether the frame is long enough and the stack has room.
        varbit_bits: the C of the length of its varbit field.
        """
        name = parameter["value"]
        if parameter["type"] not in ("regular", "stack"):
            raise Unsupported(where, "a header union", "use separate headers, one of them valid")
        if name not in self._extracts:
            stack = self.program.stack(name, where) if parameter["type"] == "stack" else None
            header = stack.at(stack.next) if stack else self.program.header(name, where)
            needed, varbit = str(header.bytes), []
            if header.varbit and varbit_bits:
                needed = f"{header.bytes} + bits / 8"
                varbit = [
                    *self._failed("bits % 8", "ParserInvalidArgument", 6, "return false;"),
                    *self._too_short(needed, "return false;"),
                    *self._failed(f"bits / 8 > {header.varbit.varbit_bytes}", "HeaderTooShort", 4, "return false;"),
                    f"{header.c_text}.{header.varbit.c_name}_bytes = (uint32_t)bits / 8;",
                ]
            self.extracted |= {element.name for element in stack.elements} if stack else {name}
            full = f"{stack.next} >= {stack.size}" if stack else ""
            body = [
                "const uint8_t *at = packet->frame + packet->payload_offset;",
                "",
                *(self._failed(full, "StackOutOfBounds", 3, "return false;") if stack else []),
                *(varbit or self._too_short(header.bytes, "return false;")),
                f"packet->payload_offset += {needed};",
                f"{header.c_text}.valid = true;",
                f"load_{header.c_type}(&{header.c_text}, at);",
                *([f"{stack.next}++;"] if stack else []),
                "return true;",
            ]
            parameters = ["uint64_t bits"] if varbit else []
            c_name = self.program.functions.prefixed("parse_header_", name)
            made = function(c_name, body, returns="bool", parameters=parameters)
            self._extracts[name] = made
            self.made.append(made)
        return self._extracts[name].call(*varbit_bits)

    def _failed(self, condition: str, error: str, code: int, leave: str) -> list[str]:
        """`code`: of the error in programs whose JSON has no list of errors."""
        value = self.program.errors.get(error, code)
        return block(f"if ({condition}) {{", [f"packet->std.parser_error = {value};\t/* {comment(error)} */", leave])

    def _too_short(self, needed: int | str, leave: str) -> list[str]:
        return self._failed(f"packet->frame_bytes - packet->payload_offset < {needed}", "PacketTooShort", 1, leave)

    def _set(self, parameters: list[Json], where: str) -> list[str]:
        header, field = self.program.field(parameters[0]["value"], where)
        target = f"{header.c_text}.{field.c_name}"
        source = parameters[1]
        if source["type"] == "lookahead":
            first, bits = source["value"]
            lines, value = self._lookahead(first, bits, where)
            leaf = Node("leaf", high=mask(bits), text=value, bits=bits)
            return [*lines, f"{target} = {self.expressions.assigned(leaf, field.bits, where).text};"]
        return self.actions.statements([{"op": "assign", "parameters": parameters}], [], where)

    def _lookahead(self, first: int, bits: int, where: str) -> tuple[list[str], str]:
        value = load_bits("packet->frame + packet->payload_offset", first, bits)
        return self._too_short((first + bits + 7) // 8, "return;"), value

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
        if name in self._labels:
            return [f"goto {self._labels[name]};"]
        return [self._calls[name] + ";", "return;"] if name in self._calls else ["return;"]

    def _transition(self, state: Json, where: str) -> list[str]:
        """The C takes the first transition that matches. Without a match the packet is accepted."""
        checks: list[str] = []
        keys: list[tuple[str, int]] = []  # C text and bits of each part of the key
        for part in state["transition_key"]:
            if part["type"] in ("field", "stack_field"):
                leaf = self.expressions.read(part, where)
                keys.append((leaf.text, leaf.bits))
            elif part["type"] == "lookahead":
                first, bits = part["value"]
                lines, value = self._lookahead(first, bits, where)
                checks += lines
                keys.append((value, bits))
            else:
                raise Unsupported(where, "a header union", "use separate headers, one of them valid")
        cases: list[tuple[str, str | None]] = []
        default: str | None = None
        simple = len(keys) == 1 and keys[0][1] <= 64
        for transition in state["transitions"]:
            kind = transition.get("type") or ("default" if transition["value"] == "default" else "hexstr")
            if kind == "default":
                default = transition["next_state"]
                break
            if kind == "parse_vset":
                if transition["mask"] is not None:
                    raise Unsupported(where, f"a mask for value set {transition['value']}", "mask the key")
                simple = False
                condition = self.tables.value_set(transition["value"], keys, where)
                cases.append((condition, transition["next_state"]))
                continue
            simple &= transition["mask"] is None
            cases.append((self._case(transition, keys), transition["next_state"]))
        if simple and cases and len({text for text, _ in cases}) == len(cases):
            return checks + self._switch(keys[0][0], state, default)
        lines = list(checks)
        for text, next_state in cases:
            lines += block(f"if ({text}) {{", self._go(next_state))
        return lines + self._go(default)

    def _switch(self, key: str, state: Json, default: str | None) -> list[str]:
        lines = [f"switch ({key}) {{"]
        for transition in state["transitions"]:
            if transition.get("type") == "default" or transition["value"] == "default":
                break
            value = constant(int(transition["value"], 16))
            lines += [f"case {value}:", *["\t" + line for line in self._go(transition["next_state"])]]
        if self._go(default) != ["return;"]:
            lines += ["default:", *["\t" + line for line in self._go(default)]]
        return [*lines, "}", "return;"]

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
            if part_mask:
                leaf = Node("leaf", high=mask(bits), text=text, bits=bits)
                tests.append(self.expressions.equals(leaf, part, part_mask))
        return " && ".join(reversed(tests)) or "true"

    def _loop_bytes(self, loop: list[str]) -> int:
        """Upper bound of the bytes that a loop reads. It ends when a stack is full, or at the end of the frame."""
        total = furthest = 0
        stacks = {
            op["parameters"][0]["value"]
            for name in loop
            for op in self.states[name]["parser_ops"]
            if _extracts_to_stack(op)
        }
        for name in loop:
            state = self.states[name]
            others = [op for op in state["parser_ops"] if not _extracts_to_stack(op)]
            furthest = max(furthest, self._read_bytes({**state, "parser_ops": others}))
            if self._read_bytes({**state, "parser_ops": others, "transition_key": []}):
                return 2**32
        for name in stacks:
            stack = self.program.stacks[name]
            total += stack.size * stack.elements[0].max_bytes
        return total + furthest

    def _read_bytes(self, state: Json) -> int:
        """Upper bound of the bytes that the state can read, without its successors."""
        consumed = furthest = 0
        for op in state["parser_ops"]:
            first: Json = op["parameters"][0] if op["parameters"] else None
            if op["op"].startswith("extract") and first["type"] == "regular" and first["value"] in self.program.headers:
                consumed += self.program.headers[first["value"]].max_bytes
            elif op["op"].startswith("extract") and first["type"] == "stack" and first["value"] in self.program.stacks:
                consumed += self.program.stacks[first["value"]].elements[0].max_bytes
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


def _extracts_to_stack(op: Json) -> bool:
    return op["op"].startswith("extract") and op["parameters"][0]["type"] == "stack"
