# SPDX-License-Identifier: MIT
"""What a checkout without a built kernel knows of the algorithms of the kernel that it would build; and what a program
in the virtual machine imports.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bufferscope.__main__ import main
from experiments.lab import virtual as virtual_lab
from lib import places
from virtual.kernel import choice, config


@pytest.fixture
def unbuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout in which no kernel was built yet."""
    monkeypatch.setattr(virtual_lab, "BUILD", tmp_path)
    monkeypatch.setattr(virtual_lab, "KERNEL", tmp_path / "linux")
    monkeypatch.setattr(virtual_lab, "KERNEL_JSON", tmp_path / "kernel.json")
    monkeypatch.setattr(virtual_lab, "prepare", lambda: pytest.fail("a kernel would be built"))
    return tmp_path


def test_cc__that_no_linux_has_is_refused_before_a_kernel_is_built(
    unbuilt: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for cc in ("nosuch", "cubic:1,rno:2"):
        assert main(["experiment", "CLOCK=virtual", f"CC={cc}"]) == 1
        assert capsys.readouterr().err.startswith(f"error: CC={cc} ")


def test_probe__of_a_tree_of_the_users_reads_what_it_has(unbuilt: Path) -> None:
    kconfig = unbuilt / "source/net/ipv4/Kconfig"
    kconfig.parent.mkdir(parents=True)
    kconfig.write_text('config TCP_CONG_NEW\n\ttristate "new"\n')
    (unbuilt / choice.FILE).write_text(json.dumps({choice.SOURCE: str(unbuilt / "source")}))
    assert virtual_lab.probe().congestion_controls == tuple(sorted({"cubic", "new", "reno", *config.OURS}))
    (unbuilt / choice.FILE).write_text(json.dumps({choice.SOURCE: str(unbuilt / "source.tar")}))
    assert virtual_lab.probe().congestion_controls is None


def test_program_inside__needs_the_standard_library_alone() -> None:
    """Each import costs a machine time: of pydantic, half a second."""
    program = "import experiments.lab.virtual_inside, hosts.traffic.long_flows"
    subprocess.run([sys.executable, "-S", "-c", program], cwd=places.CHECKOUT, check=True)
