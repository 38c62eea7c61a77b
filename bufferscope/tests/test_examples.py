# SPDX-License-Identifier: MIT
"""The steps of the example project's workflow, as CI runs them: passing, and failing after a bad change."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from lib.exit_codes import Exit
from lib.places import CHECKOUT

pytestmark = [pytest.mark.long, pytest.mark.virtual]
PROJECT = CHECKOUT / "examples/ci-gate"
STEPS = [
    step["run"]
    for job in yaml.safe_load((PROJECT / ".github/workflows/gate.yml").read_text())["jobs"].values()
    for step in job["steps"]
    if "EXPECT=" in step.get("run", "")
]


@pytest.mark.parametrize(
    ("kept", "status", "failures"), [("70", Exit.DONE, 0), ("20", Exit.FAILED, 2)], ids=["passing", "failing"]
)
def test_workflow__has_the_status_and_the_report_of_its_expectations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: str, status: Exit, failures: int
) -> None:
    from junitparser import JUnitXml

    project = tmp_path / "project"
    shutil.copytree(PROJECT, project)
    source = project / "gentle.c"
    source.write_text(source.read_text().replace("70 / 100", f"{kept} / 100"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    done = [subprocess.run(["bash", "-ec", step], cwd=project, check=False) for step in STEPS]
    assert [each.returncode for each in done] == [status] * 2
    reports = [JUnitXml.fromfile(str(path)) for path in sorted(project.glob("*.xml"))]
    assert [report.tests for report in reports] == [2, 2]
    assert sum(report.failures for report in reports) == failures
