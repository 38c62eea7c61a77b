# SPDX-License-Identifier: MIT
"""The YAML of specs. Every scalar is text, as on the command line: a port named 010 and an address 02:10:... are not
numbers (in YAML 1.1, 010 is 8 and 1:30 is 90). `load_typed` reads files that a program wrote, where
numbers have their types.

Errors: tags; aliases, because a short file with aliases can expand without bound; a repeated key, because the parser
alone would silently take the last one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from lib import regular

MAX_BYTES = 1 << 20
_TAGS = "tag:yaml.org,2002:"


class FormError(Exception):
    """An error in the file's form, in one line, without the path."""


def load(path: Path, fold: Callable[[str], str] = str) -> dict[str, Any] | None:
    """The file's mapping, with `fold` applied to all keys, also of inner mappings. None: not a mapping, or empty.

    Raises FormError and OSError.
    """
    return _read(path, lambda data: _TextLoader(data, fold))


def load_typed(path: Path) -> dict[str, Any] | None:
    """Like `load`, for a file that a program wrote: numbers, booleans and null have their types of YAML 1.1."""
    return _read(path, _TypedLoader)


def _read(path: Path, loader_of: Callable[[bytes], _Strict]) -> dict[str, Any] | None:
    with regular.opened(path) as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise FormError(f"is larger than {MAX_BYTES} bytes: not a spec")
    loader = None
    try:
        loader = loader_of(data)
        content = loader.get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise FormError(f"is not YAML: {error.problem}{f' in line {mark.line + 1}' if mark else ''}") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise FormError(f"is not YAML: {str(error).splitlines()[0]}") from None
    finally:
        if loader is not None:
            loader.dispose()
    return content if isinstance(content, dict) and content else None


class _Strict:
    """The refusals of both loaders. A mixin: must precede a loader of PyYAML in the list of bases."""

    tags: frozenset[str]
    fold: Callable[[str], str] = str
    get_single_data: Callable[[], Any]
    dispose: Callable[[], None]

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):  # type: ignore[attr-defined]
            event = self.peek_event()  # type: ignore[attr-defined]
            problem = f"a spec has no aliases; replace *{event.anchor}"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
        node: yaml.Node = super().compose_node(parent, index)  # type: ignore[misc]
        if node.tag not in self.tags:
            tag = node.tag.replace(_TAGS, "!!")
            raise yaml.MarkedYAMLError(problem=f"a spec has no tags; remove {tag}", problem_mark=node.start_mark)
        return node

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict[Any, Any]:
        assert isinstance(node, yaml.MappingNode)
        keys = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key that is not text", problem_mark=key.start_mark)
            if self.fold(key.value) in keys:
                raise yaml.MarkedYAMLError(problem=f"{key.value} is given twice", problem_mark=key.start_mark)
            keys.add(self.fold(key.value))
        mapping = super().construct_mapping(node, deep=deep)  # type: ignore[misc]
        return {self.fold(str(key)): value for key, value in mapping.items()}


class _TextLoader(_Strict, yaml.BaseLoader):
    tags = frozenset(_TAGS + name for name in ("str", "seq", "map"))

    def __init__(self, data: bytes, fold: Callable[[str], str]) -> None:
        super().__init__(data)
        self.fold = fold  # type: ignore[method-assign]


class _TypedLoader(_Strict, yaml.SafeLoader):
    tags = _TextLoader.tags | {_TAGS + name for name in ("int", "float", "bool", "null")}
