# SPDX-License-Identifier: MIT
"""The example notebook runs on stored runs, and is committed without outputs."""

import json
from pathlib import Path

import pytest

from experiments.host import CHECKOUT

NOTEBOOKS = sorted((CHECKOUT / "docs/notebooks").glob("*.ipynb"))


def test_notebooks__are_committed_without_outputs() -> None:
    assert NOTEBOOKS
    for path in NOTEBOOKS:
        cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
        assert cells
        assert not any(cell["outputs"] or cell["execution_count"] for cell in cells), f"strip the outputs of {path}"


@pytest.mark.long  # `make test` does not install what runs notebooks
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_notebook__runs_and_shows_tables_and_a_figure(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("BUFFERSCOPE_RESULTS", str(results))
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    (path,) = NOTEBOOKS
    notebook = nbformat.read(path, 4)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(path.parent)}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", []) if "data" in output]
    assert sum("image/png" in output["data"] for output in shown) == 1
    tables = [output["data"]["text/html"] for output in shown if "shape: " in output["data"].get("text/html", "")]
    assert len(tables) == 3
    assert "virtual/rep-1" in tables[1]
    assert "real/rep-1" in tables[1]
