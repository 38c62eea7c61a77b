# SPDX-License-Identifier: MIT
"""Expressions of compiled P4 as C expressions that give the same value.

simple_switch computes with unbounded integers and truncates where the compiler inserted a cast. Here every node has the
bounds of its value. A value is computed in the first type of _RANGES that holds all its possible values, else as a
struct p4_wide (runtime/p4_wide.h), or modulo 2^64 or 2^128 if only its low bits matter (an assignment, an operand of
`& 0xffff`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .errors import BadProgram, Unsupported
from .program import Header, HeaderField, Json, Program, Stack

_RANGES = {
    "uint64_t": (0, 2**64 - 1),
    "int64_t": (-(2**63), 2**63 - 1),
    "uint128_t": (0, 2**128 - 1),
    "int128_t": (-(2**127), 2**127 - 1),
}
WIDE = "struct p4_wide"
_WIDE_OPERATORS = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}
_COMPARISONS = {"==", "!=", "<", "<=", ">", ">="}
_MODULAR = {"+", "-", "*", "&", "|", "^"}  # low bits of the result depend only on the same bits of the operands


@dataclass(frozen=True)
class Code:
    """A C expression. `type` is its C type; `plain`: it needs no parentheses."""

    text: str
    type: str
    plain: bool = False
    value: int | None = None  # of a constant
    bare: str = ""  # the text without the cast that arithmetic needs, if a leaf's C type is narrower

    def __str__(self) -> str:
        return self.text if self.plain else f"({self.text})"


@dataclass(frozen=True)
class Node:
    op: str  # of the JSON, or: const leaf varbit valid header bool
    args: tuple[Node, ...] = ()
    low: int = 0
    high: int = 0
    boolean: bool = False
    value: int = 0  # const, bool
    text: str = ""  # leaf, varbit, valid: the C lvalue
    bits: int = 0  # width of a leaf, or of a cast's result
    signed: bool = False
    narrow: bool = False  # standard metadata or `valid`: the leaf's C type may be narrower than uint64_t
    header: Header | None = field(default=None, compare=False)
    stack: Stack | None = field(default=None, compare=False)


def constant(value: int) -> Code:
    """A C constant of any size."""
    if value < -(2**127):
        return Code(f"p4_wide_not({constant(~value).text})", WIDE, plain=True, value=value)
    if value >= 2**128:
        words = ", ".join(f"{value >> at & mask(64):#x}" for at in range(0, value.bit_length(), 64))
        return Code(f"(struct p4_wide){{ {{ {words} }} }}", WIDE, plain=True, value=value)
    if value < 0:
        text = f"-{constant(-value).text}" if value > -(2**63) else f"(int128_t){constant(value % 2**128)}"
        return Code(text, "int64_t" if value > -(2**63) else "int128_t", plain=False, value=value)
    if value >= 2**64:
        return Code(f"P4_WIDE({value >> 64:#x}, {value % 2**64:#x})", "uint128_t", plain=True, value=value)
    return Code(str(value) if value < 1024 else f"{value:#x}", "uint64_t", plain=True, value=value)


def mask(bits: int) -> int:
    return (1 << bits) - 1


def _constant_node(value: int) -> Node:
    return Node("const", low=value, high=value, value=value)


def _signed_bits(low: int, high: int) -> int:
    """Bits of the two's complement that holds all values from low to high."""
    return max(high.bit_length(), (~low).bit_length() if low < 0 else 0) + 1


def storage(bits: int) -> str:
    """The C type of an unsigned value of `bits`."""
    return "uint64_t" if bits <= 64 else "uint128_t" if bits <= 128 else WIDE


def _same_varbit(left: str, right: str) -> str:
    return f"{left}_bytes == {right}_bytes && !__builtin_memcmp({left}, {right}, {left}_bytes)"


def _same_field(left: str, right: str, member: HeaderField) -> str:
    if member.varbit_bytes:
        return _same_varbit(left, right)
    return f"{left} == {right}" if member.bits <= 128 else f"!p4_wide_compare({left}, {right})"


class Expressions:
    """Reads the expressions of a program, and writes their C. `where` is FILE:LINE for messages. `parameters` has the C
    name and the width of each parameter of the action that contains the expression.
    """

    def __init__(self, program: Program) -> None:
        self.program = program

    # JSON to nodes

    def read(self, json: Json, where: str, parameters: list[tuple[str, int]] | None = None) -> Node:
        kind, value = json["type"], json["value"]
        if kind == "expression":
            if "op" not in value:
                return self.read(value, where, parameters)
            return self._operation(value, where, parameters)
        if kind == "field":
            return self._field(value, where)
        if kind == "hexstr":
            number = int(value, 16)
            return Node("const", low=number, high=number, value=number)
        if kind == "bool":
            return Node("bool", boolean=True, value=int(value))
        if kind in ("runtime_data", "local"):
            if parameters is None:
                raise BadProgram(f"{where}: an action's argument outside an action")
            text, bits = parameters[value]
            return Node("leaf", high=mask(bits), text=text, bits=bits)
        if kind == "header":
            return Node("header", header=self.program.header(value, where))
        if kind == "header_stack":
            return Node("stack", stack=self.program.stack(value, where))
        if kind == "stack_field":
            last = self.program.stack(value[0], where).last()
            return self._leaf_of(last, last.fields[value[1]])
        raise Unsupported(where, f"an operand of kind {kind}", "only fields, constants and arguments are")

    def header(self, json: Json, where: str, parameters: list[tuple[str, int]] | None = None) -> Header:
        header = self.read(json, where, parameters).header
        if header is None:
            raise BadProgram(f"{where}: {json['type']} in the place of a header")
        return header

    def _stack(self, json: Json, where: str) -> Stack:
        stack = self.read(json, where).stack
        if stack is None:
            raise BadProgram(f"{where}: {json['type']} in the place of a header stack")
        return stack

    def _field(self, reference: Json, where: str) -> Node:
        if reference[1] == "$valid$":
            text = self.program.header(reference[0], where).c_text + ".valid"
            return Node("leaf", high=1, text=text, bits=1, narrow=True)
        return self._leaf_of(*self.program.field(reference, where))

    def _leaf_of(self, header: Header, member: HeaderField) -> Node:
        text = f"{header.c_text}.{member.c_name}"
        if member.varbit_bytes:
            return Node("varbit", text=text)
        low, high = (-(2 ** (member.bits - 1)), mask(member.bits - 1)) if member.signed else (0, mask(member.bits))
        return Node("leaf", (), low, high, False, 0, text, member.bits, member.signed, header.standard)

    def _operation(self, value: Json, where: str, parameters: list[tuple[str, int]] | None) -> Node:
        op = value["op"]
        if op in ("last_stack_index", "size_stack"):
            stack = self._stack(value["right"], where)
            text = f"{stack.next} - (uint64_t)1" if op == "last_stack_index" else stack.next
            return Node("leaf", high=mask(64), text=f"({text})", bits=64, narrow=True)
        if op in ("dereference_stack", "dereference_header_stack"):
            stack = self._stack(value["left"], where)
            index = self.assigned(self.read(value["right"], where, parameters), 64, where)
            return Node("header", header=stack.at(f"p4_element({index.text}, {stack.size})"))
        if op == "access_field":
            header = self.header(value["left"], where, parameters)
            members = list(header.fields.values())
            if value["right"] == len(members):
                return Node("leaf", high=1, text=header.c_text + ".valid", bits=1, narrow=True)
            return self._leaf_of(header, members[value["right"]])
        if op in ("valid_union", "access_union_header", "dereference_union_stack", "==u", "!=u"):
            raise Unsupported(where, "a header union", "use separate headers, one of them valid")
        names = ("cond", "left", "right") if op == "?" else ("left", "right")
        args = tuple(self.read(value[name], where, parameters) for name in names if value.get(name) is not None)
        return self._node(op, args, where)

    def _node(self, op: str, args: tuple[Node, ...], where: str) -> Node:
        if op == "valid":
            header = args[0].header
            assert header is not None
            return Node("valid", boolean=True, text=header.c_text + ".valid")
        if op in ("==h", "!=h", "==b", "!=b"):
            op = op[:2]
        if op in _COMPARISONS or op in ("and", "or", "not", "d2b"):
            return Node(op, args, boolean=True)
        if op == "?" and args[1].boolean:
            return Node(op, args, boolean=True)
        if op == "b2d":
            if args[0].op == "bool":
                return Node("const", low=args[0].value, high=args[0].value, value=args[0].value)
            return Node(op, args, 0, 1)
        if any(arg.header for arg in args):
            raise Unsupported(where, f"operator {op} on headers", "compare or copy them only")
        bounds = self._bounds(op, args, where)
        if bounds[0] == bounds[1] and all(arg.op == "const" for arg in args):
            return Node("const", low=bounds[0], high=bounds[0], value=bounds[0])
        bits = args[1].value if op in ("two_comp_mod", "usat_cast", "sat_cast") else 0
        return Node(op, args, bounds[0], bounds[1], bits=bits)

    def _bounds(self, op: str, args: tuple[Node, ...], where: str) -> tuple[int, int]:
        """The least and the largest value of an operation."""
        lows, highs = [arg.low for arg in args], [arg.high for arg in args]
        if op == "+":
            return lows[0] + lows[1], highs[0] + highs[1]
        if op == "-" and len(args) == 1:
            return -highs[0], -lows[0]
        if op == "-":
            return lows[0] - highs[1], highs[0] - lows[1]
        if op == "*":
            products = [a * b for a in (lows[0], highs[0]) for b in (lows[1], highs[1])]
            return min(products), max(products)
        if op == "~":
            return -highs[0] - 1, -lows[0] - 1
        if op == "?":
            return min(lows[1:]), max(highs[1:])
        if op in ("&", "|", "^"):
            if all(arg.op == "const" for arg in args):
                left, right = args[0].value, args[1].value
                return ({"&": left & right, "|": left | right, "^": left ^ right}[op],) * 2
            if op == "&" and max(lows) >= 0:
                return 0, min(high for low, high in zip(lows, highs, strict=True) if low >= 0)
            bits = max(max(high.bit_length(), (~low).bit_length()) for low, high in zip(lows, highs, strict=True))
            return (-(1 << bits) if min(lows) < 0 else 0), mask(bits)
        if op in ("<<", ">>"):
            if lows[1] < 0:
                raise Unsupported(where, f"operator {op} with a negative number of bits", "shift by an unsigned value")
            # 4096 exceeds every width, so larger shifts give the same C but would cost Python memory.
            least, most = min(lows[1], 4096), min(highs[1], 4096)
            pairs = [(value, bits) for value in (lows[0], highs[0]) for bits in (least, most)]
            shifted = [value << bits if op == "<<" else value >> bits for value, bits in pairs]
            return min(shifted), max(shifted)
        if op in ("/", "%"):
            if lows[0] < 0 or lows[1] < 0:
                raise Unsupported(where, f"operator {op} on a negative number", "divide unsigned values")
            return 0, (highs[0] if op == "/" else min(highs[0], max(highs[1] - 1, 0)))
        if op in ("two_comp_mod", "usat_cast", "sat_cast"):
            if args[1].op != "const":
                raise Unsupported(where, f"operator {op} with a width that varies", "cast to a fixed width")
            width = args[1].value
            least, most = (0, mask(width)) if op == "usat_cast" else (-(1 << width - 1), mask(width - 1))
            if lows[0] >= least and highs[0] <= most:
                return lows[0], highs[0]
            if op == "two_comp_mod":
                return least, most
            return min(max(lows[0], least), most), min(max(highs[0], least), most)
        raise Unsupported(where, f"operator {op}", "it is not one that p4c is known to emit")

    # Nodes to C

    def boolean(self, node: Node, where: str) -> Code:
        """A C condition."""
        if node.op == "bool":
            return Code("true" if node.value else "false", "bool", plain=True)
        if node.op == "valid":
            return Code(node.text, "bool", plain=True)
        if node.op == "d2b":
            inner = node.args[0]
            if inner.op == "b2d":
                return self.boolean(inner.args[0], where)
            code = self.exact(inner, where)
            if code.type == WIDE:
                return Code(f"p4_wide_compare({code.text}, {self._convert(constant(0), WIDE)})", "bool", plain=True)
            return Code(code.bare or code.text, "bool", plain=code.plain or bool(code.bare))
        if node.op == "not":
            return Code(f"!{self.boolean(node.args[0], where)}", "bool", plain=True)
        if node.op in ("and", "or"):
            parts = []
            for arg in node.args:
                code = self.boolean(arg, where)
                parts.append(code.text if arg.op in _COMPARISONS or arg.op == node.op else str(code))
            return Code((" && " if node.op == "and" else " || ").join(parts), "bool")
        if node.op == "?":
            cond, left, right = (self.boolean(arg, where) for arg in node.args)
            return Code(f"{cond} ? {left} : {right}", "bool")
        if node.op in _COMPARISONS:
            return self._comparison(node, where)
        raise BadProgram(f"{where}: {node.op} used as a condition")

    def _comparison(self, node: Node, where: str) -> Code:
        left, right = node.args
        if left.header and right.header:
            return self._same_header(left.header, right.header, node.op == "!=")
        if left.op == right.op == "varbit":
            text = _same_varbit(left.text, right.text)
            return Code(f"!({text})" if node.op == "!=" else f"({text})", "bool", plain=True)
        if left.boolean:
            return Code(f"{self.boolean(left, where)} {node.op} {self.boolean(right, where)}", "bool")
        kind = self._type(min(left.low, right.low), max(left.high, right.high))
        codes = [self.exact(left, where), self.exact(right, where)]
        if kind == WIDE:
            one, other = (self._convert(code, WIDE).text for code in codes)
            return Code(f"p4_wide_compare({one}, {other}) {node.op} 0", "bool")
        if kind == "uint64_t" and any(code.value is not None for code in codes):
            codes = [Code(code.bare, kind, plain=True) if code.bare else code for code in codes]
        else:
            codes = [self._convert(code, kind) for code in codes]
        return Code(f"{codes[0]} {node.op} {codes[1]}", "bool")

    def equals(self, leaf: Node, value: int, bits_that_count: int) -> str:
        """The C condition that the bits of a leaf that count are those of a constant."""
        if bits_that_count == mask(leaf.bits):
            left = leaf
        else:
            left = Node("&", (leaf, _constant_node(bits_that_count)), 0, bits_that_count)
        return self._comparison(Node("==", (left, _constant_node(value & bits_that_count)), boolean=True), "").text

    def _same_header(self, left: Header, right: Header, negated: bool) -> Code:
        fields = " && ".join(
            _same_field(f"{left.c_text}.{a.c_name}", f"{right.c_text}.{b.c_name}", a)
            for a, b in zip(left.fields.values(), right.fields.values(), strict=True)
        )
        valid = f"{left.c_text}.valid == {right.c_text}.valid"
        text = f"{valid} && (!{left.c_text}.valid || ({fields or 'true'}))"
        return Code(f"!({text})" if negated else f"({text})", "bool", plain=True)

    def assigned(self, node: Node, bits: int, where: str) -> Code:
        """The value of `node`, truncated to an unsigned field of `bits`."""
        if node.boolean:
            return self.boolean(node, where)
        if node.low >= 0 and node.high <= mask(bits):
            code = self.exact(node, where)
            if bits > 128:
                return self._convert(code, WIDE)
            return Code(code.bare, code.type, plain=True) if code.bare else code
        code = self.low_bits(node, bits, where)
        if bits > 128:
            return Code(f"p4_wide_mask({code.text}, {bits})", WIDE, plain=True)
        if code.value is not None:
            return constant(code.value & mask(bits))
        return Code(f"{code} & {constant(mask(bits))}", code.type) if bits not in (64, 128) else code

    def exact(self, node: Node, where: str) -> Code:
        """The exact value, in the smallest type that holds all its possible values."""
        if node.op == "const":
            self._type(node.low, node.high)
            return constant(node.value)
        if node.op == "leaf":
            return self._leaf(node)
        if node.op == "b2d":
            inner = self.boolean(node.args[0], where)
            return Code(f"(uint64_t){inner}", "uint64_t", plain=True, bare=str(inner))
        kind = self._type(node.low, node.high)
        width = 128 if "128" in kind else 64 if kind != WIDE else _signed_bits(node.low, node.high)
        if node.op == "&":
            code = self._and(node, width, where)
            return self._convert(code, kind)
        if node.op in _MODULAR or node.op == "~":
            return self._convert(self.low_bits(node, width, where), kind)
        if node.op == "<<":
            return self._convert(self.low_bits(node, width, where), kind)
        if node.op == ">>":
            return self._convert(self._shift_right(node, where), kind)
        if node.op == "?":
            cond = self.boolean(node.args[0], where)
            left, right = (self._convert(self.exact(arg, where), kind) for arg in node.args[1:])
            return Code(f"{cond} ? {left} : {right}", kind)
        if node.op in ("/", "%"):
            value, by = (self.exact(arg, where) for arg in node.args)
            if not {value.type, by.type} <= {"uint64_t", "int64_t"}:
                raise Unsupported(where, f"operator {node.op} on more than 64 bits", "divide narrower values")
            name = "p4_div64" if node.op == "/" else "p4_mod64"
            return Code(f"{name}({value.text}, {by.text})", "uint64_t", plain=True)
        return self._convert(self._cast(node, where), kind)

    def low_bits(self, node: Node, bits: int, where: str) -> Code:
        """A value with the correct low `bits`, in the storage type of that many."""
        kind = storage(bits)
        self.reserve(bits)
        if node.op == "const":
            return self._convert(constant(node.value % 2 ** (64 if bits <= 64 else max(bits, 128))), kind)
        if node.op == "leaf" and (bits <= node.bits or not node.signed):
            return self._convert(self._leaf(node) if node.narrow else Code(node.text, storage(node.bits), True), kind)
        if node.op == "&":
            return self._convert(self._and(node, bits, where), kind)
        if node.op in _MODULAR and len(node.args) == 2:
            left, right = (self.low_bits(arg, bits, where) for arg in node.args)
            return self._binary(node.op, self._convert(left, kind), self._convert(right, kind))
        if node.op == "-":
            zero = constant(0) if kind != WIDE else self._convert(constant(0), WIDE)
            return self._binary("-", zero, self._convert(self.low_bits(node.args[0], bits, where), kind))
        if node.op == "~" and kind == WIDE:
            return Code(f"p4_wide_not({self.low_bits(node.args[0], bits, where).text})", kind, plain=True)
        if node.op == "~":
            return Code(f"~{self._convert(self.low_bits(node.args[0], bits, where), kind)}", kind, plain=True)
        if node.op == "<<":
            return self._shift_left(node, bits, where)
        if node.op == "?":
            cond = self.boolean(node.args[0], where)
            left, right = (self._convert(self.low_bits(arg, bits, where), kind) for arg in node.args[1:])
            return Code(f"{cond} ? {left} : {right}", kind)
        if node.op == "two_comp_mod" and bits <= node.bits:
            return self.low_bits(node.args[0], bits, where)
        return self._convert(self.exact(node, where), kind)

    def _leaf(self, node: Node) -> Code:
        kind = storage(node.bits)
        if node.signed:
            name = "p4_signed64" if node.bits <= 64 else "p4_signed128" if node.bits <= 128 else "p4_wide_signed"
            return Code(f"{name}({node.text}, {node.bits})", kind.removeprefix("u"), plain=True)
        if node.narrow:
            return Code(f"({kind}){node.text}", kind, plain=True, bare=node.text)
        return Code(node.text, kind, plain=True)

    def _and(self, node: Node, bits: int, where: str) -> Code:
        """An `&`. If one operand is unsigned and has N bits, only the N low bits of the other operand matter."""
        left, right = node.args
        for value, kept in ((left, right), (right, left)):
            covered = mask(value.high.bit_length())
            if value.low >= 0 and kept.op == "const" and kept.value & covered == covered:
                return self.exact(value, where)  # a widening cast: the mask has no effect
        if right.low < 0 or (left.low >= 0 and left.high < right.high):
            left, right = right, left
        needed = min(bits, right.high.bit_length()) if right.low >= 0 else bits
        kind = storage(min(bits, 128))
        masked = self.low_bits(left, needed, where)
        masking = self.exact(right, where) if right.low >= 0 else self.low_bits(right, bits, where)
        if right.low >= 0 and right.high.bit_length() > 64 >= bits:
            masking = self.low_bits(right, bits, where)
        if "128" in masked.type + masking.type:
            kind = "uint128_t"
        if WIDE in (masked.type, masking.type):
            kind = WIDE
        return self._binary("&", self._convert(masked, kind), self._convert(masking, kind))

    def _binary(self, op: str, left: Code, right: Code) -> Code:
        """An operator of _MODULAR on two values of the same type."""
        if right.type == WIDE:
            return Code(f"p4_wide_{_WIDE_OPERATORS[op]}({left.text}, {right.text})", WIDE, plain=True)
        return Code(f"{left} {op} {right}", right.type)

    def _shift_left(self, node: Node, bits: int, where: str) -> Code:
        width = 64 if bits <= 64 else 128
        kind = storage(bits)
        value = self._convert(self.low_bits(node.args[0], bits, where), kind, force=True)
        amount = node.args[1]
        if kind == WIDE:
            return Code(f"p4_wide_shl({value.text}, {self._amount(amount, where)})", WIDE, plain=True)
        if amount.op == "const":
            return Code(f"{value} << {amount.value}", kind) if amount.value < width else constant(0)
        return Code(f"p4_shl{width}({value.text}, {self._amount(amount, where)})", kind, plain=True)

    def _shift_right(self, node: Node, where: str) -> Code:
        value = self.exact(node.args[0], where)
        width = 128 if "128" in value.type else 64
        amount = node.args[1]
        if value.type == WIDE:
            return Code(f"p4_wide_shr({value.text}, {self._amount(amount, where)})", WIDE, plain=True)
        if amount.op == "const" and amount.value < width:
            return Code(f"{value} >> {amount.value}", value.type)
        name = "p4_shr" if value.type.startswith("u") else "p4_sar"
        return Code(f"{name}{width}({value.text}, {self._amount(amount, where)})", value.type, plain=True)

    def _amount(self, node: Node, where: str) -> str:
        """The number of bits to shift by, as uint64_t. A wider number is refused."""
        code = self.exact(node, where)
        if code.type not in ("uint64_t", "int64_t"):
            raise Unsupported(where, "a shift by a value of more than 64 bits", "cast it to bit<8>")
        return code.text

    def _cast(self, node: Node, where: str) -> Code:
        source, bits = node.args[0], node.bits
        least, most = (0, mask(bits)) if node.op == "usat_cast" else (-(1 << bits - 1), mask(bits - 1))
        if source.low >= least and source.high <= most:
            return self.exact(source, where)
        if node.op == "two_comp_mod":
            width = 64 if bits <= 64 else 128
            code = self.low_bits(source, bits, where)
            if bits > 128:
                return Code(f"p4_wide_signed({code.text}, {bits})", WIDE, plain=True)
            return Code(f"p4_signed{width}({code.text}, {bits})", f"int{width}_t", plain=True)
        low, high = min(source.low, least), max(source.high, most)
        for width in (64, 128):
            if low >= -(1 << width - 1) and high < 1 << width - 1:
                value = self._convert(self.exact(source, where), f"int{width}_t")
                bounds = f"{constant(least).text}, {constant(most).text}"
                return Code(f"p4_clamp{width}({value.text}, {bounds})", f"int{width}_t", plain=True)
        self.reserve(_signed_bits(low, high))
        parts = [
            self._convert(code, WIDE).text for code in (self.exact(source, where), constant(least), constant(most))
        ]
        return Code(f"p4_wide_clamp({', '.join(parts)})", WIDE, plain=True)

    def reserve(self, bits: int) -> None:
        """Makes struct p4_wide large enough for values of `bits` bits."""
        if bits > 128:
            self.program.wide_bits = max(self.program.wide_bits, bits + 1)

    def _type(self, low: int, high: int) -> str:
        for kind, (least, most) in _RANGES.items():
            if low >= least and high <= most:
                return kind
        self.reserve(_signed_bits(low, high))
        return WIDE

    def _convert(self, code: Code, kind: str, force: bool = False) -> Code:
        if code.type == kind and not (force and code.value is not None):
            return code
        if kind == WIDE and code.type != WIDE:
            name = "p4_wide_from" if code.type.startswith("u") else "p4_wide_from_signed"
            return Code(f"{name}({code.text})", WIDE, plain=True, value=code.value)
        if code.type == WIDE and kind != WIDE:
            return Code(f"({kind})p4_wide_low({code.text})", kind, plain=True)
        if code.value is not None and not force and kind in ("uint64_t", "int64_t") and 0 <= code.value < 2**31:
            return Code(code.text, kind, code.plain, code.value)
        return Code(f"({kind}){code}", kind, plain=True)
