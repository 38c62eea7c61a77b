# SPDX-License-Identifier: MIT
"""Replays of recorded repetitions give the summaries and tables that earlier versions gave (recordings.py). The same
raw files give the same bytes with the numeric kernels of another processor, with one thread, in another directory,
without root's capabilities, and without any program on the PATH.

If a change is meant to alter them, refresh them with `python -m analysis.tests.recordings`, and say in the commit which
keys changed, and why.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from analysis.join import join
from analysis.read import columns
from analysis.replay import derive as derive_module
from analysis.replay.replay import _comparison
from analysis.tests import campaign, damages, recordings

DRAWN = (".html", ".svg", ".png")
CHECKOUT = Path(__file__).resolve().parents[2]
# The BLAS kernels of an old processor (2004), one thread, another hash order, time zone and locale.
ELSEWHERE = {
    "OPENBLAS_CORETYPE": "Prescott", "OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1", "PYTHONHASHSEED": "7",
    "TZ": "Asia/Tokyo", "LC_ALL": "C", "HOME": "/nonexistent", "PATH": "/nonexistent",
}  # fmt: skip
# Drops root's capabilities; setpriv is a program of util-linux.
POWERLESS = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all"]


@pytest.mark.parametrize("kind", recordings.KINDS)
def test_recorded_run__gives_the_recorded_numbers(kind, tmp_path, monkeypatch):
    """Also in slabs of a few packets, so that most states pass from slab to slab."""
    monkeypatch.setattr(columns, "SLAB_ROWS", 700)
    monkeypatch.setattr(join, "SLAB_PACKETS", 500)
    with campaign.undrawn():
        directory, files = recordings.replay(kind, tmp_path)
        lines = recordings.differences(kind, files)
        if kind == recordings.WHATIF_OF:
            lines += recordings.differences(recordings.WHATIF, recordings.what_if(directory))
    assert [line for line in lines if not line.split(": ")[0].endswith(DRAWN)] == []


def test_replay__elsewhere_gives_the_same_bytes(drawn, tmp_path):
    before = damages.files(drawn[0])
    assert any(file.endswith(".png") for file in before)
    copy = Path(shutil.copytree(drawn[0], tmp_path / "another place/rep-1"))
    setpriv = shutil.which(POWERLESS[0])
    drop = [setpriv, *POWERLESS[1:]] if os.geteuid() == 0 and setpriv else []
    done = subprocess.run(
        [*drop, sys.executable, "-m", "bufferscope", "replay", f"RUN={copy.parent}"],
        cwd=CHECKOUT, env=ELSEWHERE | {"MPLCONFIGDIR": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "files are byte for byte what they were" in done.stdout
    after = damages.files(copy)
    assert after.keys() == before.keys()
    assert [file for file, data in after.items() if data != before[file]] == []


def test_replay__names_files_that_changed(fresh, undrawn):
    directory = fresh("no_loss")
    said: list[str] = []

    def derive() -> str:
        derive_module.derive(directory, when_compared=lambda *files: said.append(_comparison(*files)))
        return said.pop() if said else ""

    assert derive() == ""  # there was nothing to compare with
    assert re.fullmatch(r"; all \d+ files are byte for byte what they were", derive())
    (directory / "report.html").write_text("of another version")
    (directory / "joined.parquet").unlink()
    assert re.fullmatch(r"; 2 of \d+ files are not what they were: joined.parquet, report.html", derive())
