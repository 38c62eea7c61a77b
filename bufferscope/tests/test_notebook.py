# SPDX-License-Identifier: MIT
"""The example notebook runs on stored runs."""

from pathlib import Path

import pytest

from experiments.machine.host import CHECKOUT

NOTEBOOKS = sorted((CHECKOUT / "docs/notebooks").glob("*.ipynb"))


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
