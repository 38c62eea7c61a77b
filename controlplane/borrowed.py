# SPDX-License-Identifier: MIT
"""Loads one Python package of a switch's software (BMv2, the Tofino SDE). The other packages in its directory must stay
invisible to our environment.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path


def load_package(name: str, directory: Path) -> None:
    """Makes the package in `directory` importable as `name`. Raises the import's exceptions."""
    if name in sys.modules:
        return
    file = directory / "__init__.py"
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=[str(directory)])
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
