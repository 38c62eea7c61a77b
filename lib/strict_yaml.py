# SPDX-License-Identifier: MIT
"""YAML as specs are written: every scalar is text, so that it means what it means on the command line, and neither a
port called 010 nor an address 02:10:... is a number (in YAML 1.1, 010 is 8 and 1:30 is 90).

No tags that change anything, no aliases (a short file of these stands for any number of values), and a key that is
given twice is an error: the parser alone would take the last in silence.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

MAX_BYTES = 1 << 20
_TAGS = "tag:yaml.org,2002:"
_PLAIN = {_TAGS + name for name in ("str", "seq", "map")}


class FormError(Exception):
    """What is wrong with the file's form, in one line, without its path."""


def load(path: Path, fold: Callable[[str], str] = str) -> dict[str, Any] | None:
    """What the mapping says, with `fold` applied to its keys, those of inner mappings too. None: it is no mapping, or
    an empty one. Raises FormError and OSError.
    """
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise FormError(f"is larger than {MAX_BYTES} bytes: not a spec")
    loader = None
    try:
        loader = _Loader(data, fold)
        content = loader.get_single_data()  # type: ignore[no-untyped-call]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise FormError(f"is not YAML: {error.problem}{f' in line {mark.line + 1}' if mark else ''}") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise FormError(f"is not YAML: {str(error).splitlines()[0]}") from None
    finally:
        if loader is not None:
            loader.dispose()  # type: ignore[no-untyped-call]
    return content if isinstance(content, dict) and content else None


class _Loader(yaml.BaseLoader):
    def __init__(self, data: bytes, fold: Callable[[str], str]) -> None:
        super().__init__(data)
        self._fold = fold

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):  # type: ignore[no-untyped-call]
            event = self.peek_event()  # type: ignore[no-untyped-call]
            problem = f"a spec has no aliases, write *{event.anchor} out"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
        node: yaml.Node = super().compose_node(parent, index)  # type: ignore[no-untyped-call, assignment]
        if node.tag not in _PLAIN:
            tag = node.tag.replace(_TAGS, "!!")
            raise yaml.MarkedYAMLError(problem=f"a spec has no tags, remove {tag}", problem_mark=node.start_mark)
        return node

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict[Any, Any]:
        assert isinstance(node, yaml.MappingNode)
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key that is not text", problem_mark=key.start_mark)
            if self._fold(key.value) in seen:
                raise yaml.MarkedYAMLError(problem=f"{key.value} is given twice", problem_mark=key.start_mark)
            seen.add(self._fold(key.value))
        found = super().construct_mapping(node, deep=deep)  # type: ignore[no-untyped-call]
        return {self._fold(str(key)): value for key, value in found.items()}
