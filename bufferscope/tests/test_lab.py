# SPDX-License-Identifier: MIT
"""The notebooks of docs/lab run from their first cell to their last, and print the answers of the lecturer's sheet."""

import os
import re
import sys
from pathlib import Path

import pytest

from lib.places import CHECKOUT

pytestmark = [pytest.mark.long, pytest.mark.virtual]
LAB = CHECKOUT / "docs/lab"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("path", sorted(LAB.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebook__gives_the_answers_of_the_sheet(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    notebook = nbformat.read(path, 4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    said = [line for output in outputs for line in output.get("text", "").splitlines()]
    assert not [line for line in said if "error: " in line]
    commands = sum("experiment CLOCK" in cell.source for cell in notebook.cells)
    headlines = [line for line in said if " used " in line and line[0].isdigit()]
    assert len(headlines) == commands
    sheet = (LAB / "README.md").read_text()
    for line in [*headlines, *(line.strip() for line in said if line.startswith("  delay"))]:
        assert line in sheet
    values = [output["data"].get("text/plain", "") for output in outputs if "data" in output]
    for number in (f"{float(value):.3f}" for value in values if re.fullmatch(r"[0-9.]+", value)):
        assert f" {number}: " in sheet
    for low, high in re.findall(r"^Least buffer: (\d+)p .*? to (\d+)p ", "\n".join(said), re.MULTILINE):
        assert f" {low} to {high} packets by measured runs" in sheet
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert [each.suffix for each in tmp_path.glob("*.packed")] == [".packed"] * ("pack " in str(notebook))
