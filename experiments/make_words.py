# SPDX-License-Identifier: MIT
"""KEY=VALUE words of the make that calls, as typed: through make's environment, so that no shell reads one."""

from __future__ import annotations

import os
import re

OF_THE_MAKEFILE = ("V", "PYTHON")  # whatever is made


def made() -> list[str]:
    """The words that make was called with. A word that is no parameter is seen, too; what was only in the environment
    is not, nor make's own default of CC, `cc`.
    """
    _, _, variables = f" {os.environ.get('MAKEFLAGS', '')}".partition(" -- ")
    words = re.findall(r"((?:[^\\\s]|\\.)+)", variables)
    given = [re.sub(r"\\(.)", r"\1", word).replace("$$", "$") for word in words]
    return [word for word in given if word.partition("=")[0] not in OF_THE_MAKEFILE]
