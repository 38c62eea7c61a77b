# SPDX-License-Identifier: MIT
"""Actions as C functions: the C of each primitive, in the order of the P4 program."""

from __future__ import annotations

from .cfile import Function, block, function
from .errors import BadProgram, Unsupported
from .expressions import Code, Expressions, Node, constant, mask, storage
from .program import Header, Json, Program

_UNSUPPORTED = {
    "generate_digest": ("digest", "nothing is sent to the control plane; count in a register or a counter"),
    "assert": ("assert", "it would stop the switch; test with simple_switch and take it out"),
    "assume": ("assume", "it would stop the switch; test with simple_switch and take it out"),
    "assign_union": ("a header union", "use separate headers, one of them valid"),
    "assign_union_stack": ("a header union", "use separate headers, one of them valid"),
}


class _NotNested(Exception):
    """The jumps of an action do not nest as if and else do."""


class Actions:
    """Writes actions. `functions` has the C function of each action by its id; None: the action does nothing."""

    def __init__(
        self,
        program: Program,
        expressions: Expressions,
        arrays: dict[str, tuple[str, int, int]],
        filled: set[str],
    ) -> None:
        self.program = program
        self.expressions = expressions
        self.arrays = arrays  # registers, counters and meters: name -> (C name, size, bits)
        self.filled = filled  # registers that the switch fills (queue_registers.py)
        # What a packet takes of a meter: C text by name.
        self.meter_units = {
            meter["name"]: "phv->length_in" if meter["type"] == "bytes" else "1"
            for meter in program.json.get("meter_arrays", [])
        }
        self.calculations: dict[str, tuple[Function, int]] = {}
        self.warnings: list[str] = []
        self.functions: dict[int, Function | None] = {}
        self.made: list[Function] = []
        self.again: set[int] = set()  # field lists of packets that pass the pipeline again
        self._same: dict[str, Function | None] = {}

    def translate(self, action: Json) -> None:
        """Adds the C of one action."""
        key = repr((action["name"], action["runtime_data"], action["primitives"]))
        if key not in self._same:
            self._same[key] = self._function(action)
        self.functions[action["id"]] = self._same[key]

    def _function(self, action: Json) -> Function | None:
        primitives = action["primitives"]
        where = self.program.where_action(action)
        # Parameters must not hide names that the function's body uses.
        names: list[str] = []
        for param in action["runtime_data"]:
            if param["bitwidth"] > 128:
                construct = f"parameter {param['name']} of {param['bitwidth']} bits"
                raise Unsupported(where, construct, "at most 128 are possible")
            names.append(self.program.functions.unique(param["name"]))
        for name in names:
            self.program.functions.release(name)
        params = [(name, param["bitwidth"]) for name, param in zip(names, action["runtime_data"], strict=True)]
        body = self.statements(primitives, params, where)
        if not body:
            return None
        made = function(
            self.program.functions.unique(action["name"]),
            body,
            comment=f"{where} action {action['name']}",
            parameters=[f"{storage(bits)} {name}" for name, bits in params],
        )
        self.made.append(made)
        return made

    def statements(self, primitives: list[Json], params: list[tuple[str, int]], where: str) -> list[str]:
        """The C of primitives. If all jumps nest, they become if and else; otherwise all jumps become gotos."""
        problems = len(self.program.problems)
        try:
            return self._sequence(primitives, (0, len(primitives), len(primitives)), params, where)
        except _NotNested:
            del self.program.problems[problems:]  # _flat reports these problems again
            return self._flat(primitives, params, where)

    def _here(self, primitive: Json, where: str) -> str:
        return self.program.where(primitive) if primitive.get("source_info") else where

    def _collected(self, primitive: Json, params: list, where: str) -> list[str]:
        with self.program.collect():
            return self._primitive(primitive, params, self._here(primitive, where))
        return []

    def _sequence(self, primitives: list[Json], part: tuple[int, int, int], params: list, where: str) -> list[str]:
        """`part`: index of its first primitive, index after its last, and index of the primitive that runs after it."""
        at, end, follow = part
        lines: list[str] = []
        while at < end:
            primitive = primitives[at]
            if primitive["op"] == "_jump":
                target = _target_of(primitive, 0)
                if target != at + 1 and (at + 1 != end or target != follow):
                    raise _NotNested
                at += 1
            elif primitive["op"] == "_jump_if_zero":
                at, inner = self._condition(primitives, (at, end, follow), params, where)
                lines += inner
            else:
                lines += self._collected(primitive, params, where)
                at += 1
        return lines

    def _condition(
        self, primitives: list[Json], part: tuple[int, int, int], params: list, where: str
    ) -> tuple[int, list[str]]:
        """The index of the first primitive after the if that starts here, and the C of the if."""
        at, end, follow = part
        target = _target_of(primitives[at], 1)
        if target == follow:
            target = end
        if not at < target <= end:
            raise _NotNested
        then_end = after = target
        last = primitives[target - 1]
        if target - 1 > at and last["op"] == "_jump":
            # The last primitive of the then branch jumps over the else branch.
            over = _target_of(last, 0)
            over = end if over == follow else over
            if target < over <= end:
                then_end, after = target - 1, over
        behind = follow if after == end else after
        test = self._test(primitives[at], params, where)
        then = self._sequence(primitives, (at + 1, then_end, behind), params, where)
        otherwise = self._sequence(primitives, (target, after, behind), params, where)
        return after, if_else(test, then, otherwise)

    def _test(self, primitive: Json, params: list, where: str) -> Code:
        """The condition under which a _jump_if_zero does not jump."""
        with self.program.collect():
            here = self._here(primitive, where)
            node = self.expressions.read(primitive["parameters"][0], here, params)
            return self.expressions.boolean(node, here) if node.boolean else self.expressions.exact(node, here)
        return Code("false", "bool", plain=True)

    def _flat(self, primitives: list[Json], params: list, where: str) -> list[str]:
        """The primitives in sequence, with labels and gotos."""
        targets = {_target_of(p, len(p["parameters"]) - 1) for p in primitives if p["op"].startswith("_jump")}
        lines: list[str] = []
        for at, primitive in enumerate(primitives):
            if at in targets:
                lines.append(f"step_{at}:;")
            if not primitive["op"].startswith("_jump"):
                lines += self._collected(primitive, params, where)
                continue
            target = _target_of(primitive, len(primitive["parameters"]) - 1)
            if target <= at:
                why = "it may never end; unroll it"
                raise Unsupported(self._here(primitive, where), "a loop in an action", why)
            jump = f"goto step_{target};"
            if primitive["op"] == "_jump":
                lines.append(jump)
            else:
                lines += [f"if (!{self._test(primitive, params, where)})", "\t" + jump]
        if len(primitives) in targets:
            lines.append(f"step_{len(primitives)}:;")
        return lines

    def _primitive(self, primitive: Json, params: list[tuple[str, int]], where: str) -> list[str]:
        op, args = primitive["op"], primitive["parameters"]
        if op in _UNSUPPORTED:
            raise Unsupported(where, *_UNSUPPORTED[op])
        if op == "log_msg":
            self.warnings.append(f"{where}: log_msg is ignored by the soft switch")
            return []
        method = getattr(self, "_op_" + op.lstrip("_"), None)
        if method is None:
            raise Unsupported(where, f"{op}()", "the soft switch does not have this extern")
        return method(args, params, where)

    # One method, _op_NAME, for each supported primitive of simple_switch except jumps and log_msg. `args` are the
    # primitive's arguments as JSON.

    def _target(self, json: Json, where: str) -> tuple[str, int]:
        """The lvalue that a primitive writes: C text, bits."""
        if json["type"] != "field":
            node = self.expressions.read(json, where)
            if node.op != "leaf":
                raise BadProgram(f"{where}: a value is assigned to {json['type']}")
            return node.text, node.bits
        header, field = self.program.field(json["value"], where)
        return f"{header.c_text}.{field.c_name}", field.bits

    def _value(self, json: Json, bits: int, params: list, where: str) -> Code:
        return self.expressions.assigned(self.expressions.read(json, where, params), bits, where)

    def _op_assign(self, args: list[Json], params: list, where: str) -> list[str]:
        node = self.expressions.read(args[1], where, params)
        target, bits = self._target(args[0], where)
        if target == self.program.unit_field and node.op == "const" and node.value != 1:
            construct = f"setting the metadata's ns_per_tick to {node.value}"
            why = "the switch sets it to 1, because stamps are in ns; for stamps in us, rename the field"
            raise Unsupported(where, construct, why)
        return [f"{target} = {self.expressions.assigned(node, bits, where).text};"]

    def _op_assign_header(self, args: list[Json], params: list, where: str) -> list[str]:
        return self._copy_header(*(self.expressions.header(arg, where) for arg in args))

    def _copy_header(self, to: Header, source: Header) -> list[str]:
        # The fields of an invalid source are not copied.
        return if_else(
            Code(f"{source.c_text}.valid", "bool", True),
            [f"{to.c_text} = {source.c_text};"],
            [f"{to.c_text}.valid = false;"],
        )

    def _op_add_header(self, args: list[Json], params: list, where: str) -> list[str]:
        header = self.expressions.header(args[0], where)
        if header.metadata:
            return []
        return block(
            f"if (!{header.c_text}.valid) {{",
            [
                f"{header.c_text} = (struct {header.c_type}){{ .valid = true }};",
                f"phv->length += {header.bytes};",  # a varbit field is empty
            ],
        )

    def _op_remove_header(self, args: list[Json], params: list, where: str) -> list[str]:
        header = self.expressions.header(args[0], where)
        if header.metadata:
            return []
        return [f"p4_remove_header(&{header.c_text}.valid, &phv->length, {header.bytes_text});"]

    def _op_assign_VL(self, args: list[Json], params: list, where: str) -> list[str]:
        (to, target), (source, value) = (self.program.field(arg["value"], where) for arg in args)
        left, right = f"{to.c_text}.{target.c_name}", f"{source.c_text}.{value.c_name}"
        if target.varbit_bytes != value.varbit_bytes:
            raise BadProgram(f"{where}: varbit fields of different lengths are assigned")
        return [f"__builtin_memcpy({left}, {right}, sizeof({left}));", f"{left}_bytes = {right}_bytes;"]

    def _op_assign_header_stack(self, args: list[Json], params: list, where: str) -> list[str]:
        to, source = (self.program.stack(arg["value"], where) for arg in args)
        lines = [f"{to.next} = {source.next};"]
        for pair in zip(to.elements, source.elements, strict=True):
            lines += self._copy_header(*pair)
        return lines

    def _op_push(self, args: list[Json], params: list, where: str) -> list[str]:
        return self._move("p4_push_front", args, where)

    def _op_pop(self, args: list[Json], params: list, where: str) -> list[str]:
        return self._move("p4_pop_front", args, where)

    def _move(self, name: str, args: list[Json], where: str) -> list[str]:
        stack, count = self.program.stack(args[0]["value"], where), int(args[1]["value"], 16)
        return [f"{name}({stack.c_text}, sizeof({stack.c_text}[0]), {stack.size}, &{stack.next}, {count});"]

    def _array(self, json: Json, where: str) -> tuple[str, int, int]:
        if json["value"] not in self.arrays:
            raise BadProgram(f"{where}: no register or counter {json['value']}")
        return self.arrays[json["value"]]

    def _index(self, json: Json, params: list, where: str) -> str:
        code = self.expressions.exact(self.expressions.read(json, where, params), where)
        if code.type not in ("uint64_t", "int64_t"):
            raise Unsupported(where, "an index of more than 64 bits", "cast it to bit<32>")
        return code.text

    def _op_register_read(self, args: list[Json], params: list, where: str) -> list[str]:
        name, size, width = self._array(args[1], where)
        target, bits = self._target(args[0], where)
        node = self.expressions.read(args[2], where, params)
        index = self._index(args[2], params, where)
        element = Node("leaf", high=mask(width), text=f"pipeline->{name}[{index}]", bits=width, narrow=width < 64)
        value = self.expressions.assigned(element, bits, where).text
        if node.low >= 0 and node.high < size:
            return [f"{target} = {value};"]
        return [f"if ({index} < {size})", f"\t{target} = {value};"]

    def _op_register_write(self, args: list[Json], params: list, where: str) -> list[str]:
        name, size, width = self._array(args[0], where)
        if args[0]["value"] in self.filled:
            raise Unsupported(where, f"writing register {args[0]['value']}", "the switch fills it: read it only")
        node = self.expressions.read(args[1], where, params)
        index = self._index(args[1], params, where)
        value = self._value(args[2], width, params, where)
        line = f"pipeline->{name}[{index}] = {value.text};"
        if node.low >= 0 and node.high < size:
            return [line]
        return [f"if ({index} < {size})", f"\t{line}"]

    def _op_count(self, args: list[Json], params: list, where: str) -> list[str]:
        name, size, _ = self._array(args[0], where)
        return [f"p4_count(pipeline->{name}, {size}, {self._index(args[1], params, where)}, phv->length_in);"]

    def _op_execute_meter(self, args: list[Json], params: list, where: str) -> list[str]:
        name, size, _ = self._array(args[0], where)
        target, _ = self._target(args[2], where)
        index = self._index(args[1], params, where)
        color = f"p4_meter_color(&pipeline->{name}[{index}], *pipeline->now_ns, {self.meter_units[args[0]['value']]})"
        return [f"if ({index} < {size})", f"\t{target} = {color};"]

    def _op_mark_to_drop(self, args: list[Json], params: list, where: str) -> list[str]:
        return ["packet->std.egress_spec = PIPELINE_DROP_PORT;", "packet->std.mcast_grp = 0;"]

    _op_drop = _op_mark_to_drop

    def _clone(self, args: list[Json], params: list, where: str) -> list[str]:
        session = self.expressions.read(args[0], where, params)
        number = self._field_list(args[1], where) if len(args) > 1 else 0
        return [
            "packet->std.clone = true;",
            f"packet->std.clone_session = {self.expressions.assigned(session, 15, where).text};",
            f"packet->std.clone_fields = {number};",
        ]

    _op_clone_ingress_pkt_to_egress = _clone
    _op_clone_egress_pkt_to_egress = _clone

    def _field_list(self, json: Json, where: str) -> int:
        node = self.expressions.read(json, where)
        known = {entry["id"] for entry in self.program.json.get("field_lists", [])}
        if node.op != "const" or (node.value and node.value not in known):
            raise BadProgram(f"{where}: no field list {json['value']}")
        return node.value

    def _again(self, args: list[Json], params: list, where: str) -> list[str]:
        number = self._field_list(args[0], where)
        self.again.add(number)
        return [f"packet->std.again_fields = {number};"]

    _op_resubmit = _again
    _op_recirculate = _again

    def _op_truncate(self, args: list[Json], params: list, where: str) -> list[str]:
        value = self._value(args[0], 32, params, where)
        return [f"if (phv->truncate_bytes > {value})", f"\tphv->truncate_bytes = {value.text};"]

    def _op_exit(self, args: list[Json], params: list, where: str) -> list[str]:
        return ["phv->exited = true;"]

    def _op_no_op(self, args: list[Json], params: list, where: str) -> list[str]:
        return []

    def _op_modify_field_rng_uniform(self, args: list[Json], params: list, where: str) -> list[str]:
        target, bits = self._target(args[0], where)
        least, most = (self._value(arg, 64, params, where) for arg in args[1:])
        value = f"p4_random_between(&pipeline->random, {least.text}, {most.text})"
        cut = value if bits >= 64 else f"{value} & {mask(bits):#x}"
        return [f"if ({least} <= {most})", f"\t{target} = {cut};"]

    def _op_modify_field_with_hash_based_offset(self, args: list[Json], params: list, where: str) -> list[str]:
        target, bits = self._target(args[0], where)
        base, size = self._value(args[1], 64, params, where), self._value(args[3], 64, params, where)
        compute, result_bits = self.calculations[args[2]["value"]]
        value = compute.call()
        if size.value is None:
            value = f"p4_mod64({value}, {size} ? {size} : 1)"
        elif size.value < 2**result_bits:
            value = f"{value} % {constant(size.value)}" if size.value > 1 else "0"
        text = value if base.value == 0 else f"{value} + {base}"
        largest = (base.value if base.value is not None else mask(64)) + mask(result_bits)
        return [
            f"{target} = {text};" if mask(bits) >= largest or bits >= 64 else f"{target} = ({text}) & {mask(bits):#x};"
        ]


def _target_of(jump: Json, parameter: int) -> int:
    return int(jump["parameters"][parameter]["value"], 16)


def if_else(condition: Code, then: list[str], otherwise: list[str]) -> list[str]:
    if not then and not otherwise:
        return []
    if not then:
        return block(f"if (!{condition}) {{", otherwise)
    lines = block(f"if ({condition.text}) {{", then)
    if otherwise and _is_one_if(otherwise):
        lines[-1:] = ["} else " + otherwise[0], *otherwise[1:]]
    elif otherwise:
        lines[-1:] = block("} else {", otherwise)
    return lines


def _is_one_if(lines: list[str]) -> bool:
    """Whether `lines` are a single if statement, with all its else branches, in braces."""
    inner = lines[1:-1]
    return (
        lines[0].startswith("if (")
        and "{" in lines[0]
        and lines[-1] == "}"
        and all(line.startswith(("\t", "} else ")) or not line for line in inner)
    )
