# SPDX-License-Identifier: MIT
"""Copies our own kernel code into the source as drivers/net/bufferscope, with the checkout's paths.

Only changed files are written, so that make compiles only these.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from lib.places import BUILD, CHECKOUT, for_programs
from virtual.kernel import tools
from virtual.kernel.errors import KernelError

PLACE = "drivers/net/bufferscope"
SUFFIXES = (".c", ".h", ".def", ".S")
BUILD_FILES = ("Kbuild", "Makefile")
OURS = "hosts/congestion"
# Directories that make descends into, copied recursively; each has a Kbuild file.
PARTS = ("softswitch/driver", "hosts/trace/kernel_event", "hosts/traffic/kernel_pump", OURS)
USERS = "hosts/users_congestion"  # users' own congestion controls, built like ours
# Files that PARTS include and link, by relative paths.
SHARED = {"softswitch/runtime": (".c", ".h"), "wire": (".h", ".def"), "lib": (".h",)}
# The P4 program translated to C, and its target in softswitch/Makefile.
GENERATED = "softswitch/generated/bufferscope.c"
GENERATED_FROM = BUILD / "obj/softswitch/bufferscope.c"
GENERATED_BY = "pipeline"
NO_FILES: Mapping[str, str] = MappingProxyType({})


def make_pipeline() -> None:
    """Translate the P4 program to C, if it changed."""
    if tools.missing({"make": "make"}):
        tools.check_build_tools()
    command = ["make", "--no-print-directory", "-s", "-C", str(CHECKOUT / "softswitch"), GENERATED_BY]
    environment = tools.environment() | for_programs()
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", env=environment)
    if result.returncode:
        raise KernelError(
            f"translating the P4 program to C ({' '.join(command)}): {result.stderr.strip() or result.stdout.strip()}"
        )


def collect(checkout: Path = CHECKOUT, users: Mapping[str, str] = NO_FILES) -> dict[str, bytes]:
    """All files to copy: path below PLACE -> content. `users`: path -> text of users' files: congestion controls in
    USERS, a translated P4 program as GENERATED. Raises KernelError for a missing part.
    """
    files: dict[str, bytes] = {}
    for part in PARTS:
        if not (checkout / part / "Kbuild").is_file():
            raise KernelError(f"our own kernel code is incomplete: {checkout / part / 'Kbuild'} is missing")
        files |= {str(path.relative_to(checkout)): path.read_bytes() for path in _sources(checkout / part)}
    for directory, suffixes in SHARED.items():
        for path in sorted((checkout / directory).iterdir()):
            if path.suffix in suffixes:
                files[str(path.relative_to(checkout))] = path.read_bytes()
    files[GENERATED] = GENERATED_FROM.read_bytes()
    own = any(path.startswith(USERS) for path in users)
    parts = [*PARTS, *([USERS] if own else [])]
    files["Kbuild"] = f"# SPDX-License-Identifier: MIT\nobj-y += {' '.join(part + '/' for part in parts)}\n".encode()
    if own:
        files[f"{USERS}/Kbuild"] = (checkout / OURS / "Kbuild").read_bytes() + b"ccflags-y += -I$(here)/../congestion\n"
    return files | {path: text.encode() for path, text in users.items()}


def _sources(directory: Path) -> list[Path]:
    """The files that the compiler and make read, without tests and templates."""
    return sorted(
        path for path in directory.rglob("*")
        if path.is_file() and (path.suffix in SUFFIXES or path.name in BUILD_FILES)
        and not {"tests", "template"} & {*path.relative_to(directory).parts}
    )  # fmt: skip


def write(files: dict[str, bytes], tree: Path) -> int:
    """Make the tree's copy equal to `files`; returns the number of files written or removed."""
    place = tree / PLACE
    changed = 0
    for path in sorted(place.rglob("*"), reverse=True):
        if path.is_file() and str(path.relative_to(place)) not in files:
            path.unlink()
            changed += 1
    for name, content in files.items():
        path = place / name
        if path.is_file() and path.read_bytes() == content:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        changed += 1
    return changed
