# SPDX-License-Identifier: MIT
"""YAML whose scalars are text, so that a port called 1/0 or 010 is that, and 02:10:... no number of YAML 1.1.

No tags, no anchors' bombs (the size is bounded), and a key that is given twice is an error.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

MAX_BYTES = 1 << 20
_PLAIN = {f"tag:yaml.org,2002:{name}" for name in ("str", "seq", "map")}


def printable(line: str) -> str:
    """The line as a terminal may show it: it must not obey what a file or a command line says."""
    return line if line.isprintable() else "".join(one if one.isprintable() else ascii(one)[1:-1] for one in line)


class SpecFileError(Exception):
    """The file says nothing that could be applied. One line an error in `lines`."""

    def __init__(self, *lines: str) -> None:
        self.lines = [printable(line) for line in lines]
        super().__init__("; ".join(self.lines))


class _Loader(yaml.BaseLoader):
    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()
            raise yaml.MarkedYAMLError(problem="an alias, write it out", problem_mark=event.start_mark)
        node: Any = super().compose_node(parent, index)  # type: ignore[no-untyped-call]
        if node.tag not in _PLAIN:
            raise yaml.MarkedYAMLError(problem=f"a tag, {node.tag}: leave it out", problem_mark=node.start_mark)
        return node

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict[Any, Any]:
        assert isinstance(node, yaml.MappingNode)
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key that is not text", problem_mark=key.start_mark)
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"{key.value} is given twice", problem_mark=key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)  # type: ignore[no-any-return, no-untyped-call]


def load(path: Path) -> dict[str, Any]:
    """What the file says, every scalar as text. Raises SpecFileError."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SpecFileError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise SpecFileError(f"{path}: is larger than {MAX_BYTES} bytes")
    try:
        content = yaml.load(data, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise SpecFileError(
            f"{path}: is not YAML: {error.problem}{f', line {mark.line + 1}' if mark else ''}"
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise SpecFileError(f"{path}: is not YAML: {str(error).splitlines()[0]}") from None
    if not isinstance(content, dict) or not content:
        raise SpecFileError(f"{path}: is not a mapping; see controlplane/switch.example.yaml")
    return content
