# SPDX-License-Identifier: MIT
"""The build backend of pyproject.toml: setuptools, but only for `pip install -e .`. A wheel would lack the C and P4
programs, the formats and the playbooks, so it is refused before anything is built.
"""

from __future__ import annotations

from typing import NoReturn

from setuptools.build_meta import (
    build_editable,
    get_requires_for_build_editable,
    prepare_metadata_for_build_editable,
)

__all__ = [
    "build_editable", "build_sdist", "build_wheel", "get_requires_for_build_editable", "get_requires_for_build_sdist",
    "get_requires_for_build_wheel", "prepare_metadata_for_build_editable",
]  # fmt: skip


def _refuse(*_: object, **__: object) -> NoReturn:
    raise SystemExit(
        "bufferscope runs only in its checkout, which has its C and P4 programs: keep the checkout and run make there, "
        "or pip install -e ."
    )


get_requires_for_build_wheel = get_requires_for_build_sdist = build_wheel = build_sdist = _refuse
