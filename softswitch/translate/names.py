# SPDX-License-Identifier: MIT
"""P4 names as C identifiers, strings and comments: never a reserved word, never the same name twice."""

from __future__ import annotations

import re

_KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """
    alignas alignof asm auto bool break case char const constexpr continue default do double else enum extern false
    float for goto if inline int long nullptr register restrict return short signed sizeof static static_assert struct
    switch thread_local true typedef typeof typeof_unqual union unsigned void volatile while
    linux unix i386 offsetof NULL
        """,
    )
)

# Types, main, functions that the compiler calls, and variables of generated functions.
_RESERVED = frozenset(
    re.findall(
        r"\w+",
        """
    size_t ptrdiff_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t int128_t uint128_t
    main memcpy memmove memset memcmp intrinsic packet instance_type pipeline phv
    at table row key bytes count sum hit kind fields copy original from header
        """,
    )
)
_RESERVED_PREFIXES = (
    "p4_",
    "P4_",
    "pipeline_",
    "PIPELINE_",
    "INSTANCE_",
    "apply_",
    "parse_",
    "load_",
    "store_",
    "compute_",
)


def identifier(name: str) -> str:
    """`name` with an underscore for each character that C does not allow: maybe a reserved word, maybe not unique."""
    text = re.sub(r"[^0-9A-Za-z_]", "_", name)
    return "x" + text if not text or text[0].isdigit() or re.match(r"_[_A-Z]", text) else text


class Names:
    """A C name space: of a struct's members, or of the file. `unique` returns each name once, and no reserved name."""

    def __init__(self, *reserved: str, members: bool = False) -> None:
        self._taken = set(reserved)
        self._members = members

    def unique(self, name: str) -> str:
        text = identifier(name)
        if text in _KEYWORDS or (not self._members and (text in _RESERVED or text.startswith(_RESERVED_PREFIXES))):
            text += "_"
        return self._take(text)

    def release(self, name: str) -> None:
        """Frees a name of an inner scope."""
        self._taken.discard(name)

    def prefixed(self, prefix: str, name: str) -> str:
        """A name that `unique` never returns, because its prefix is reserved."""
        return self._take(prefix + identifier(name))

    def _take(self, text: str) -> str:
        """The name, with a number if it is taken."""
        candidate, number = text, 1
        while candidate in self._taken:
            number += 1
            candidate = f"{text}_{number}"
        self._taken.add(candidate)
        return candidate


def string(text: str) -> str:
    """A C string literal of the UTF-8 bytes of `text`."""
    out = []
    for byte in text.encode():
        if byte in b'"\\':
            out.append("\\" + chr(byte))
        else:
            out.append(chr(byte) if 32 <= byte < 127 and byte != ord("?") else f"\\{byte:03o}")
    return '"' + "".join(out) + '"'


def word(text: str) -> str:
    """A name as one word of the control protocol."""
    return re.sub(r"\s+", "_", text)


def comment(text: str) -> str:
    """`text` on one line, with no start or end of a comment in it."""
    return re.sub(r"\s+", " ", text).replace("*/", "* /").replace("/*", "/ *")
