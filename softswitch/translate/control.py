# SPDX-License-Identifier: MIT
"""The control flow of ingress and egress as nested C. The compiler's graph of tables and conditions has no loops. All
paths from a branch meet at the branch's nearest post-dominator: the C after the branch starts at that node."""

from __future__ import annotations

from .actions import Actions, if_else
from .cfile import Function, function
from .errors import BadProgram
from .expressions import Expressions
from .names import Names, comment
from .program import Json, Program
from .tables import MatchTable, Tables


class Control:
    def __init__(
        self, program: Program, expressions: Expressions, actions: Actions, tables: Tables, pipeline: Json
    ) -> None:
        self.program = program
        self.expressions = expressions
        self.actions = actions
        self.tables = tables
        self.pipeline = pipeline
        self.nodes: dict[str, Json] = {node["name"]: node for node in pipeline["tables"] + pipeline["conditionals"]}
        self._order = self._topological()
        self._meets = self._post_dominators()
        self._written: set[str] = set()
        self._labels: dict[str, str] = {}
        self._names = Names()
        self._variables: list[str] = []  # declared first: C11 allows no declaration right after a label

    def function(self) -> Function:
        body = self._region(self.pipeline["init_table"], None)
        lines = []
        for line in body:
            marker = line.strip()
            if marker.startswith("@"):
                if marker[1:] in self._labels:
                    lines.append(self._labels[marker[1:]] + ":;")
            else:
                lines.append(line)
        if self._variables:
            lines = [*self._variables, "", *lines]
        where = self.program.where(self.pipeline)
        name = self.pipeline["name"]
        return function(self.program.functions.unique(f"{name}_control"), lines, comment=f"{where} {name}")

    # The graph

    def _ways(self, name: str) -> list[tuple[str, str | None]]:
        """(label, next node) of each edge from a node."""
        node = self.nodes[name]
        if "expression" in node:
            return [("true", node["true_next"]), ("false", node["false_next"])]
        next_tables = node["next_tables"]
        if "__HIT__" in next_tables or "__MISS__" in next_tables:
            return [("hit", next_tables.get("__HIT__")), ("miss", next_tables.get("__MISS__"))]
        default = node.get("base_default_next")
        return list(next_tables.items()) or [("", default)]

    def _topological(self) -> list[str]:
        """The reachable nodes, each after all its successors."""
        order: list[str] = []
        state: dict[str, int] = {}
        stack = [self.pipeline["init_table"]] if self.pipeline["init_table"] else []
        while stack:
            name = stack[-1]
            if name not in self.nodes:
                raise BadProgram(f"pipeline {self.pipeline['name']} goes to {name}, which does not exist")
            if state.get(name) is None:
                state[name] = 0
                for _, following in self._ways(name):
                    if following is not None and state.get(following) is None:
                        stack.append(following)
            else:
                stack.pop()
                if state[name] == 0:
                    state[name] = 1
                    order.append(name)
        return order

    def _post_dominators(self) -> dict[str, str | None]:
        """Each node's nearest post-dominator; None is the end."""
        meets: dict[str, str | None] = {}
        depth: dict[str | None, int] = {None: 0}
        for name in self._order:
            meet: str | None = None
            for number, (_, following) in enumerate(self._ways(name)):
                other = following
                if number == 0:
                    meet = other
                    continue
                while meet != other:
                    if depth[meet] >= depth[other]:
                        assert meet is not None
                        meet = meets[meet]
                    else:
                        assert other is not None
                        other = meets[other]
            meets[name] = meet
            depth[name] = depth[meet] + 1
        return meets

    # C

    def _region(self, name: str | None, stop: str | None) -> list[str]:
        """The C from a node up to `stop`. A node that was already written becomes a goto."""
        lines: list[str] = []
        while name is not None and name != stop:
            if name in self._written:
                self._labels.setdefault(name, self._names.unique("node_" + name))
                return [*lines, f"goto {self._labels[name]};"]
            self._written.add(name)
            lines.append("@" + name)
            meet = self._meets[name]
            if "expression" in self.nodes[name]:
                lines += self._condition(self.nodes[name], meet)
            elif name in self.tables.tables:
                lines += self._table(self.tables.tables[name], meet)
            name = meet
        return lines

    def _condition(self, node: Json, meet: str | None) -> list[str]:
        where = self.program.where(node)
        then, otherwise = self._region(node["true_next"], meet), self._region(node["false_next"], meet)
        lines: list[str] = []
        with self.program.collect():
            code = self.expressions.boolean(self.expressions.read(node["expression"], where), where)
            lines = if_else(code, then, otherwise)
            if lines:
                lines[0] += f"\t/* {comment(where)} */"
        return lines

    def _table(self, table: MatchTable, meet: str | None) -> list[str]:
        exits = any(
            primitive["op"] == "exit"
            for action in table.action_ids
            for primitive in self.program.actions[action]["primitives"]
        )
        leave = ["if (phv->exited)", "\treturn;"] if exits else []
        if table.hidden:
            action = table.json["default_entry"]["action_id"]
            made = self.actions.functions.get(action)
            lines = [made.call(*self._constants(table)) + ";"] if made else []
            following = table.json["next_tables"].get("__MISS__", self.tables.next_node(table, action))
            return lines + leave + self._region(following, meet)
        if table.apply is None:
            return self._region(meet, meet)
        call = table.apply.call()
        if table.branches == "none":
            return [f"{call};", *leave]
        if exits:
            # The variable keeps the result: an action of the table may exit before the branch.
            variable = "way_" + table.name
            kind = "bool" if table.branches == "hit" else "uint32_t"
            self._variables.append(f"{kind} {variable};")
            return [f"{variable} = {call};", *leave, *self._branch(table, variable, meet)]
        return self._branch(table, call, meet)

    def _branch(self, table: MatchTable, test: str, meet: str | None) -> list[str]:
        next_tables = table.json["next_tables"]
        if table.branches == "hit":
            hit, miss = (self._region(next_tables.get(way), meet) for way in ("__HIT__", "__MISS__"))
            if not hit and not miss:
                return [f"{test};"]
            if not hit:
                return [f"if (!{test}) {{", *["\t" + line for line in miss], "}"]
            lines = [f"if ({test}) {{", *["\t" + line for line in hit]]
            return [*lines, *(["} else {", *["\t" + line for line in miss]] if miss else []), "}"]
        ways: dict[str | None, list[int]] = {}
        for index, action in enumerate(table.action_ids):
            ways.setdefault(self.tables.next_node(table, action), []).append(index)
        lines = [f"switch ({test}) {{"]
        for following, indexes in ways.items():
            if following == meet:
                continue
            names = [self.program.actions[table.action_ids[index]]["name"] for index in indexes]
            lines += [f"case {index}:\t/* {comment(name)} */" for index, name in zip(indexes, names, strict=True)]
            lines += ["\t" + line for line in [*self._region(following, meet), "break;"]]
        return [*lines, "}"]

    def _constants(self, table: MatchTable) -> list[str]:
        entry = table.json["default_entry"]
        return [str(int(value, 16)) for value in entry["action_data"]]
