# SPDX-License-Identifier: MIT
"""Congestion controls as BPF objects: compiles each object once, and checks whether this machine can load it.

An object depends on its source, our headers, the kernel's types and the compiler. A digest of the first three and of
the compiler's name selects the object's directory in the cache. Standard library only.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUFFERSCOPE_BUILD") or CHECKOUT / "build")  # lib/places.py
CACHE = BUILD / "congestion"
LOADER = BUILD / "congestion_control"
BOTH_KERNELS = CHECKOUT / "hosts/congestion"
HERE = Path(__file__).resolve().parent
HEADERS = (BOTH_KERNELS / "congestion.h", HERE / "congestion_as_bpf.h")
BTF = Path("/sys/kernel/btf/vmlinux")
JIT = Path("/proc/sys/net/core/bpf_jit_enable")
STRUCT_OPS = b"\0bpf_struct_ops_tcp_congestion_ops\0"  # a type's name in BTF
LEAST_KERNEL = (6, 4)  # the first with registration by a BPF link, which ends with its process
SHARED_HEADER = re.compile(rb'^#include "congestion\.h"', re.MULTILINE)
MOST_ERRORS = 3
# Names of __TARGET_ARCH_* in bpf_tracing.h, by uname -m.
ARCHITECTURES = {"x86_64": "x86", "aarch64": "arm64", "riscv64": "riscv", "ppc64le": "powerpc", "s390x": "s390"}


class ObjectError(Exception):
    """A source cannot become a congestion control; the text is one line with the compiler's or the kernel's reason."""


def own_sources() -> dict[str, Path]:
    """Our own algorithms for BPF, by name: the files of hosts/congestion and of this directory that include
    congestion.h. Linux has the algorithms of this directory as modules, but a machine may lack the modules.
    """
    files = [*BOTH_KERNELS.glob("*.c"), *HERE.glob("*.c")]
    return {path.stem: path for path in sorted(files) if SHARED_HEADER.search(path.read_bytes())}


def lacking() -> str:
    """The first feature that this machine lacks to run a congestion control as BPF; '' if it lacks none."""
    release = tuple(int(part) for part in re.findall(r"\d+", platform.release())[:2])
    if release < LEAST_KERNEL:
        return f"Linux {'.'.join(map(str, LEAST_KERNEL))} (this is {platform.release()})"
    if not BTF.exists():
        return f"the kernel's BTF ({BTF}, CONFIG_DEBUG_INFO_BTF=y)"
    if STRUCT_OPS not in BTF.read_bytes():
        return "BPF struct_ops for TCP in the kernel (CONFIG_BPF_JIT=y and CONFIG_BPF_SYSCALL=y)"
    if JIT.exists() and JIT.read_text().strip() == "0":
        return "BPF's JIT compiler (sysctl net.core.bpf_jit_enable=1)"
    if not os.access(LOADER, os.X_OK):
        return "build/congestion_control (make build)"
    return next((f"the program {name} (make deploy)" for name in ("clang", "bpftool") if not _tool(name)), "")


def build(file: str, text: str) -> Path:
    """The object of a source `text` whose file is called `file`. Raises ObjectError."""
    types = _types()
    clang = _tool("clang")
    if not types or not clang:
        raise ObjectError(f"{file}: compiling it for BPF needs {lacking()}")
    stem = file.split(".", 1)[0]
    digest = hashlib.sha256(types.parent.name.encode() + Path(clang).resolve().name.encode())
    for part in (file, text, *(path.read_text() for path in HEADERS)):
        digest.update(f"{len(part)}\0{part}".encode())
    directory = CACHE / digest.hexdigest()[:16]
    made = directory / f"{stem}.bpf.o"
    if made.exists():
        return made
    directory.mkdir(parents=True, exist_ok=True)
    (directory / file).write_text(text)
    new = directory / f"{stem}.{os.getpid()}.new"
    machine = platform.machine()
    command = [
        clang, "-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall",
        "-Werror=implicit-function-declaration", "-Werror=int-conversion",
        "-fno-color-diagnostics", "-fno-caret-diagnostics", f"-D__TARGET_ARCH_{ARCHITECTURES.get(machine, machine)}",
        f"-I{types.parent}", *(f"-I{path.parent}" for path in HEADERS), "-c", file, "-o", new.name,
    ]  # fmt: skip
    done = subprocess.run(command, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        new.unlink(missing_ok=True)
        raise ObjectError(f"clang for BPF: {reasons(done.stderr)}")
    new.rename(made)
    return made


def verify(objects: dict[str, Path], seed: int = 0) -> None:
    """Lets the kernel load the objects (by name) and check them; nothing stays. Raises ObjectError."""
    command = [str(LOADER), "--check", "--seed", str(seed)]
    for name, path in objects.items():
        command += ["--algorithm", f"{name}={path}"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        words = done.stderr.strip().removeprefix(f"{LOADER.name}: ") or f"{LOADER.name} ended: {done.returncode}"
        raise ObjectError(re.sub(rf"{re.escape(str(CACHE))}/[0-9a-f]+/", "", words))


def reasons(output: str) -> str:
    """The first errors of a compiler's output, in one line."""
    lines = [line.strip() for line in output.splitlines() if re.search(r"\berror: |undefined reference", line)]
    more = f" (and {len(lines) - MOST_ERRORS} more)" if len(lines) > MOST_ERRORS else ""
    return "; ".join(lines[:MOST_ERRORS] or output.strip().splitlines()[-1:]) + more


@cache
def _types() -> Path | None:
    """vmlinux.h, the running kernel's types as C."""
    bpftool = _tool("bpftool")
    if not bpftool or not BTF.exists():
        return None
    directory = CACHE / f"types-{hashlib.sha256(BTF.read_bytes()).hexdigest()[:16]}"
    made = directory / "vmlinux.h"
    if not made.exists():
        directory.mkdir(parents=True, exist_ok=True)
        new = directory / f"vmlinux.{os.getpid()}.new"
        command = [bpftool, "btf", "dump", "file", str(BTF), "format", "c"]
        with new.open("w") as file:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.PIPE, check=False)
        if done.returncode:
            new.unlink(missing_ok=True)
            raise ObjectError(f"bpftool cannot read {BTF}: {done.stderr.decode(errors='replace').strip()[:200]}")
        new.rename(made)
    return made


def _tool(name: str) -> str | None:
    """Debian keeps bpftool in /usr/sbin."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
