# SPDX-License-Identifier: MIT
"""The same raw files give the same bytes: with the numeric kernels of another processor, with one thread, in another
directory, without root's capabilities, and without any program on the PATH.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from analysis import derive as derive_module
from analysis.figures import names
from analysis.replay import _comparison
from bufferscope.__main__ import main

NAMES = names({})  # of a run with long flows
CHECKOUT = Path(__file__).resolve().parents[2]
# The BLAS kernels of an old processor (2004), one thread, another hash order, time zone and locale.
ELSEWHERE = {
    "OPENBLAS_CORETYPE": "Prescott", "OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1", "PYTHONHASHSEED": "7",
    "TZ": "Asia/Tokyo", "LC_ALL": "C", "HOME": "/nonexistent", "PATH": "/nonexistent",
}  # fmt: skip
# Drops root's capabilities; setpriv is a program of util-linux.
POWERLESS = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all"]


def _files(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_replay__elsewhere_gives_the_same_bytes(fresh, tmp_path):
    directory = fresh()
    assert main(["replay", str(directory)]) == 0
    before = _files(directory)
    assert any(file.endswith(".png") for file in before)
    copy = Path(shutil.copytree(directory, tmp_path / "another place/rep-1"))
    setpriv = shutil.which(POWERLESS[0])
    drop = [setpriv, *POWERLESS[1:]] if os.geteuid() == 0 and setpriv else []
    done = subprocess.run(
        [*drop, sys.executable, "-m", "bufferscope", "replay", f"RUN={copy.parent}"],
        cwd=CHECKOUT, env=ELSEWHERE | {"MPLCONFIGDIR": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "files are byte for byte what they were" in done.stdout
    after = _files(copy)
    assert after.keys() == before.keys()
    assert [file for file, data in after.items() if data != before[file]] == []


def test_replay__names_files_that_changed(fresh, monkeypatch):
    monkeypatch.setattr(derive_module, "draw_all", _blank)
    directory = fresh("no_loss")
    said: list[str] = []

    def derive() -> str:
        derive_module.derive(directory, when_compared=lambda *files: said.append(_comparison(*files)))
        return said.pop() if said else ""

    assert derive() == ""  # there was nothing to compare with
    assert re.fullmatch(r"; all \d+ files are byte for byte what they were", derive())
    (directory / "report.html").write_text("of another version")
    (directory / "figures/utilization.svg").unlink()
    assert re.fullmatch(r"; 2 of \d+ files are not what they were: figures/utilization.svg, report.html", derive())


def _blank(analysis, directory, pool):
    for name in NAMES:
        (directory / f"{name}.svg").write_text('<svg viewBox="0 0 1 1"/>')
    return []
