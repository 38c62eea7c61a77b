# SPDX-License-Identifier: MIT
"""ARCHITECTURE.md names every top directory. Every top directory except docs/, and every Ansible role, has a README. A
directory one level below (not in docs/, and not tests/) has a README, or the README above names it.
"""

import subprocess
from pathlib import Path

from experiments.host import CHECKOUT


def test_architecture__names_every_directory() -> None:
    command = ["git", "-c", f"safe.directory={CHECKOUT}", "ls-files"]
    tracked = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout.splitlines()
    top = {path.partition("/")[0] for path in tracked if "/" in path and not path.startswith(".")}
    text = (CHECKOUT / "ARCHITECTURE.md").read_text()
    assert sorted(name for name in top if f"`{name}/`" not in text) == []
    assert sorted(name for name in top - {"docs"} if not (CHECKOUT / name / "README.md").exists()) == []
    roles = [role for role in (CHECKOUT / "ansible/roles").iterdir() if role.is_dir()]
    assert [role.name for role in roles if not (role / "README.md").exists()] == []


def test_readmes__name_the_directories_below_that_have_no_readme() -> None:
    files = subprocess.run(["git", "ls-files"], cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout
    below = {Path(name).parts[:2] for name in files.splitlines() if len(Path(name).parts) > 2}
    silent = [
        f"{top}/{name}"
        for top, name in sorted(below)
        if top not in ("docs", ".ci")
        and name not in ("tests", "build")
        and not (CHECKOUT / top / name / "README.md").exists()
        and f"{name}/" not in (CHECKOUT / top / "README.md").read_text()
    ]
    assert silent == []
