# SPDX-License-Identifier: MIT
"""A user's own congestion control: `CC=./mycc.c`, or `./mycc.bpf.c` for BPF alone.

The file's name without .c or .bpf.c is the algorithm's name. The source text becomes a part of the resolved experiment,
so a sweep's job needs no file, on this machine or another one. A run's directory gets the text as a file.
"""

from __future__ import annotations

import hashlib
import re

from lib import regular
from model.experiment import Source

NAME = re.compile(r"[a-z][a-z0-9_]{0,14}")
MOST_BYTES = 1 << 20
BPF = ".bpf.c"
DIRECTORY = "congestion"  # of the sources, in the directory of a repetition


def is_path(word: str) -> bool:
    return word.endswith(".c") or "/" in word


def read_name(value: object) -> str:
    if not isinstance(value, str) or not NAME.fullmatch(value.lower()):
        raise ValueError("is not the name of a congestion control; allowed: one, as in cubic")
    return value.lower()


def read(word: str) -> Source:
    """The file that a user named. Raises ValueError; its message continues a sentence that begins with the value."""
    path = regular.expanded(word)
    if not word.endswith(".c"):
        raise ValueError(f"names {word}, which is not a C file; allowed: a name (cubic), or a file (./mycc.c)")
    name = path.name.removesuffix(BPF).removesuffix(".c")
    if not NAME.fullmatch(name):
        raise ValueError(
            f"names {word}, whose name cannot be an algorithm's; allowed: 1 to 15 of a-z, 0-9 and _, the first a letter"
        )
    try:
        content = regular.read_bytes(path, MOST_BYTES)
        text = content.decode()
    except UnicodeDecodeError:
        raise ValueError(f"names {word}, which is not text in UTF-8; allowed: a C file") from None
    except OSError as error:
        raise ValueError(f"names {word}, which cannot be read: {error.strerror}; give the path of a C file") from None
    return Source(name=name, file=path.name, sha256=hashlib.sha256(content).hexdigest(), text=text)
