# SPDX-License-Identifier: MIT
"""The YAML of specs. Every scalar is text, as on the command line: a port named 010 and an address 02:10:... are no
numbers (in YAML 1.1, 010 is 8 and 1:30 is 90).

Errors: tags; aliases, because a short file with aliases can expand without bound; a repeated key, because the parser
alone would silently take the last.
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
    """An error in the file's form, in one line, without the path."""


def load(path: Path, fold: Callable[[str], str] = str) -> dict[str, Any] | None:
    """The file's mapping, with `fold` applied to all keys, also of inner mappings. None: not a mapping, or empty.

    Raises FormError and OSError.
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
        keys = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key that is not text", problem_mark=key.start_mark)
            if self._fold(key.value) in keys:
                raise yaml.MarkedYAMLError(problem=f"{key.value} is given twice", problem_mark=key.start_mark)
            keys.add(self._fold(key.value))
        mapping = super().construct_mapping(node, deep=deep)  # type: ignore[no-untyped-call]
        return {self._fold(str(key)): value for key, value in mapping.items()}
