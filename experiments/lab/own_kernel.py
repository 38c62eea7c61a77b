# SPDX-License-Identifier: MIT
"""The virtual-time kernel with users' congestion controls and P4 program. Each set of sources has its own kernel,
beside the usual one, so that concurrent runs do not replace each other's kernel.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

from experiments.machine import p4_program
from lib.errors import RunError
from model.experiment import Experiment
from virtual import offers
from virtual.kernel import choice, digests, stage
from virtual.kernel.build import BUILD, INTERRUPTED, ensure
from virtual.kernel.errors import KernelError
from virtual.kernel.progress import BuildProgress
from virtual.machine import MachineError

OWN = BUILD / "own"
MOST_KEPT = 8  # kernels of 8 MB each; the least recently used are removed
NAMED = "named.json"  # cache of the congestion controls that a kernel has registered
MOST_ERRORS = 3


def kernel_of(spec: Experiment) -> Path:
    """The directory of the kernel with the user's sources; without sources, of the usual kernel. Builds a kernel with
    sources if it is out of date. Raises RunError with the compiler's errors.
    """
    texts = sources(spec)
    if not texts:
        return BUILD
    directory = OWN / digests.of_parts((name, text.encode()) for name, text in texts.items())[:16]
    directory.mkdir(parents=True, exist_ok=True)
    os.utime(directory)
    _forget_old()
    try:
        with BuildProgress(sys.stdout) as progress:
            built = ensure(directory, choice.remembered(BUILD), progress, users=texts)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(INTERRUPTED) from None
    except KernelError as error:
        raise RunError(f"{'CC' if spec.congestion_sources else 'P4'}: {_compilers_reason(str(error))}") from None
    if spec.congestion_sources:
        _check_names(directory, [source.name for source in spec.congestion_sources], built["binary_digest"])
    return directory


def sources(spec: Experiment) -> dict[str, str]:
    """The user's code in the kernel: path for stage.collect -> text. Raises RunError."""
    texts = {f"{stage.USERS}/{source.file}": source.text or "" for source in spec.congestion_sources}
    if spec.p4 and spec.switch == "driver":
        texts[stage.GENERATED] = p4_program.translated(spec.p4).c_text
    return texts


def _compilers_reason(text: str) -> str:
    """The compiler's errors in users' files, each with the file's name but no directory; the whole text if it has no
    such error.
    """
    messages = re.findall(rf"\S*{re.escape(stage.USERS)}/(\S+: .*)", text)
    errors = [line for line in messages if "error" in line or "undefined" in line]
    more = f" (and {len(errors) - MOST_ERRORS} more)" if len(errors) > MOST_ERRORS else ""
    return f"gcc for the virtual-time kernel: {'; '.join(errors[:MOST_ERRORS])}{more}" if errors else text


def _check_names(directory: Path, names: list[str], binary_digest: str) -> None:
    """Asks a new kernel whether the algorithms are registered: a file may register another name, or nothing."""
    known = digests.read_json(directory / NAMED)
    if known.get("binary_digest") != binary_digest:
        try:
            known = {"binary_digest": binary_digest, "names": offers.congestion_controls(directory / "linux")}
        except MachineError as error:
            raise RunError(str(error)) from None
        digests.write_json(directory / NAMED, known)
    for name in names:
        if name not in known["names"]:
            raise RunError(
                f"CC: {name}.c registers no congestion control called {name}: CONGESTION_CONTROL does, if it names "
                "ssthresh, undo_cwnd, and cong_avoid or cong_control"
            )


def _forget_old() -> None:
    kept = sorted(OWN.iterdir(), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for directory in kept[MOST_KEPT:]:
        shutil.rmtree(directory, ignore_errors=True)
