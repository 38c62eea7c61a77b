# SPDX-License-Identifier: MIT
"""Finds papers: packages in this directory that have a PAPER, and a user's folder with a PAPER, named by its path.

A user's folder is imported as a package under a name of its own: nothing in it can hide another module, sys.path stays
as it is, and no bytecode is written into it.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import stat
import sys
import traceback
from functools import cache
from pathlib import Path
from types import ModuleType

from analysis.papers.paper import Paper

IMPORTED_AS = "bufferscope_users_paper"
ALLOWED = "a folder whose __init__.py has a PAPER (CONTRIBUTING.md)"


def packages() -> tuple[str, ...]:
    """The names of the papers' packages in this checkout; nothing is imported."""
    return tuple(
        sorted(name for _, name, is_package in pkgutil.iter_modules([str(Path(__file__).parent)]) if is_package)
    )


@cache
def installed() -> dict[str, Paper]:
    """The papers of this checkout, by key."""
    modules = [importlib.import_module(f"analysis.papers.{name}") for name in packages()]
    return {module.PAPER.key: module.PAPER for module in modules if hasattr(module, "PAPER")}


def find(text: str) -> Paper:
    """The paper with this key, or in the folder with this path. ValueError says what is wrong with key or folder."""
    if text in installed():
        return installed()[text]
    if not text or ("/" not in text and not Path(text).is_dir()):
        raise ValueError(f"is not known; allowed: {', '.join(installed())}, or {ALLOWED}")
    paper = _of_folder(Path(text).resolve())
    if paper.key in installed():
        raise ValueError(f"has the key {paper.key} of an installed paper; give it another")
    return paper


def _of_folder(folder: Path) -> Paper:
    start = folder / "__init__.py"
    if not start.is_file():
        raise ValueError(f"has no __init__.py; allowed: {ALLOWED}")
    if (folder.stat().st_mode | start.stat().st_mode) & stat.S_IWOTH:
        raise ValueError("may be written by everybody, and its code would run as you: chmod -R o-w it")
    paper = getattr(_run(start), "PAPER", None)
    if not isinstance(paper, Paper):
        raise ValueError(f"has no PAPER in its __init__.py; allowed: {ALLOWED}")
    return paper


def _run(start: Path) -> ModuleType:
    """Imports the package anew. Any exception of its code is the user's mistake: one line says where it is."""
    for name in [name for name in sys.modules if name.partition(".")[0] == IMPORTED_AS]:
        del sys.modules[name]
    spec = importlib.util.spec_from_file_location(IMPORTED_AS, start, submodule_search_locations=[str(start.parent)])
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[IMPORTED_AS] = importlib.util.module_from_spec(spec)
    writes_bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise ValueError(f"cannot be imported: {what} ({Path(at.filename).name}, line {at.lineno})") from None
    finally:
        sys.dont_write_bytecode = writes_bytecode
    return module
