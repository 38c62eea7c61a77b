# SPDX-License-Identifier: MIT
"""A user's own congestion control: `CC=./mycc.c`, or `./mycc.bpf.c` for BPF alone.

The file's name without .c or .bpf.c is the algorithm's name. The source text becomes a part of the resolved experiment,
so a sweep's job needs no file, on this machine or another one. A run's directory gets the text as a file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from experiments.machine.host import Host
from lib import regular
from model.experiment import Source
from virtual.kernel import config

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
    path = Path(word).expanduser()
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


def problem(source: Source, host: Host, clock: str, where: str) -> str | None:
    """Why this source cannot run; continues a sentence that begins with the value. `where` names SWITCH=ns3 or a
    testbed, which cannot run a user's congestion control, and is else empty.
    """
    if where:
        return f"names a file, which {where} cannot run; allowed: the name of an algorithm, as in cubic"
    taken = {*config.OF_LINUX, *config.OURS, *(host.congestion_controls or ())}
    if source.name in taken:
        return f"names {source.file}, but {source.name} exists already; allowed: a file with another name"
    if clock == "virtual" and source.file.endswith(BPF):
        return f"names {source.file}, which is BPF, and the virtual-time kernel has none; allowed: with CLOCK=real only"
    if clock == "real" and host.bpf_lacks:
        return f"names a file, which in real time needs {host.bpf_lacks}; allowed: with CLOCK=virtual"
    return None


def in_spec(sources: Iterable[Source]) -> tuple[Source, ...]:
    """The sources as a field of the experiment."""
    return tuple(sorted(sources, key=lambda source: source.name))
