# SPDX-License-Identifier: MIT
"""The command `unpack`: the files of a packed run, none of which it runs."""

from __future__ import annotations

import shlex
from pathlib import Path

from bufferscope.pack import SUFFIX
from lib import owner
from lib.keys import Keys, field
from lib.terminal import counted, say
from lib.values import whole_number
from runs import packed
from runs.names import ENVIRONMENT

DEFAULT_MOST = "20000000000"


class Packed(Keys):
    file: Path = field("a packed run (bufferscope pack)", default=None)
    most: int = field("bytes that it may unpack to", whole_number(1, 10**14), default=DEFAULT_MOST)


class Asked(Packed):
    output: Path | None = field(f"a directory that does not exist yet (default: FILE without {SUFFIX})")


def run(asked: Asked) -> int:
    """Returns the exit status. Raises InputError."""
    output = asked.output or Path(f"{asked.file.name.removesuffix(SUFFIX)}-unpacked")
    content = packed.unpack(asked.file, output, asked.most)
    owner.give(output)
    say(f"{output}: {counted(len(content.files), 'file')}, each as packed; its programs and pages are its packer's: ")
    found = sorted(str(Path(path).parent) for path in content.files if Path(path).name == ENVIRONMENT)
    for repetition in found[:3]:
        say(f"  bufferscope replay {shlex.quote(str(output / repetition))}")
    return 0
