# SPDX-License-Identifier: MIT
"""deploy.yml is idempotent in the lab, where it builds, and for SSH hosts, where it copies."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ansible.tests.conftest import ANSIBLE, CHECKOUT, deploy_here, play

DEPLOY = ANSIBLE / "playbooks/deploy.yml"


@pytest.mark.software
def test_deploy__changes_nothing_in_a_deployed_lab() -> None:
    played = play(DEPLOY)
    assert (played.status, played.changed) == (0, 0), played.stdout + played.stderr


def test_deploy__copies_the_needed_files_to_a_remote_host_once(tmp_path: Path) -> None:
    if not (CHECKOUT / "build/collector").exists():
        pytest.skip("not built: collector (make build)")
    target = tmp_path / "bufferscope"
    first = deploy_here(tmp_path, "collectors")
    assert first.status == 0, first.stderr
    assert first.changed > 0
    # With -I -S Python finds only the copy, neither this checkout nor the environment's packages.
    code = (
        f"import sys; sys.path.insert(0, {str(target)!r}); import hosts.daemon, hosts.tune.tune, hosts.traffic.servers"
    )
    subprocess.run([sys.executable, "-I", "-S", "-c", code], cwd=target, check=True)
    assert os.access(target / "build/collector", os.X_OK)
    assert not (target / "build/softswitch").exists()
    assert not list(target.rglob("tests"))

    second = deploy_here(tmp_path, "collectors")
    assert (second.status, second.changed) == (0, 0), second.stdout


def test_deploy__what_is_missing_is_one_sentence(tmp_path: Path) -> None:
    line = deploy_here(tmp_path, "soft", checkout=str(tmp_path)).sentence()
    assert f"{tmp_path}/build/softswitch missing on this machine: build first (make build)" in line

    (tmp_path / "id").write_text("#!/bin/sh\necho 1000\n")  # an ordinary user
    (tmp_path / "id").chmod(0o755)
    packages: dict[str, object] = {"packages_groups": ["x"], "packages_by_group": {"x": ["no-such-b", "no-such-a"]}}
    done = play(DEPLOY, prefix=("env", f"PATH={tmp_path}:{os.environ['PATH']}"), variables=packages)
    assert done.status != 0
    assert "packages are missing: no-such-a no-such-b; install them as root: apt-get install" in done.stderr
