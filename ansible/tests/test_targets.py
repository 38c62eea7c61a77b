# SPDX-License-Identifier: MIT
"""deploy.yml for BMv2 and Tofino. Each switch's host is this machine, through a local connection. The Tofino's SDE is a
directory with an SDE's layout and stand-ins for compiler and driver. The tests test the role, not the stand-ins.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible.tests.conftest import CHECKOUT, Played, deploy_here
from hosts.tests.processes import free_port

ASSEMBLY = CHECKOUT / "p4src/tests/assembly"  # from compilers with and without p4c's parser fault
COMPILER = """#!/bin/sh
# Writes the files of the Tofino compiler, and logs each call.
[ "$1" = --version ] && { echo "bf-p4c 9.13.4 (SHA: 0)"; exit 0; }
while [ $# -gt 1 ]; do
	case "$1" in
	--target) chip=$2 ;;
	--bf-rt-schema) schema=$2 ;;
	-o) out=$2 ;;
	esac
	shift
done
[ -r "$1" ] || { echo "cannot read $1" >&2; exit 1; }
mkdir -p "$out/pipe"
echo "{}" >"$schema"
echo "{}" >"$out/pipe/context.json"
echo program >"$out/pipe/$chip.bin"
cp "$(dirname "$0")/bufferscope.bfa" "$out/pipe"
echo built >>"$(dirname "$0")/calls"
"""
DRIVER = """#!{python}
# Reads the configured files, then answers on the port of BF Runtime.
import json, pathlib, socket, sys
options = dict(zip(sys.argv[1:], sys.argv[2:]))
install = pathlib.Path(options["--install-dir"])
program = json.loads(pathlib.Path(options["--conf-file"]).read_text())["p4_devices"][0]["p4_programs"][0]
pipe = program["p4_pipelines"][0]
for name in (program["bfrt-config"], pipe["context"], pipe["config"]):
    (install / name).read_bytes()
server = socket.create_server(("127.0.0.1", int(options["--bfrt-grpc-port"])))
while True:
    server.accept()[0].close()
"""


@pytest.fixture
def sde(tmp_path: Path) -> Path:
    top = tmp_path / "sde"
    (top / "install/bin").mkdir(parents=True)
    for name, text in (("bf-p4c", COMPILER), ("bf_switchd", DRIVER.format(python=sys.executable))):
        (top / "install/bin" / name).write_text(text)
        (top / "install/bin" / name).chmod(0o755)
    shutil.copy(ASSEMBLY / "seeing.bfa", top / "install/bin/bufferscope.bfa")
    return top


@pytest.fixture
def deploy(tmp_path: Path, sde: Path) -> Iterator[Callable[..., Played]]:
    (CHECKOUT / "build").mkdir(exist_ok=True)
    variables: dict[str, Any] = {
        "target": "tofino",
        "bufferscope_python": sys.executable,
        "tofino_sde": str(sde),
        "tofino_manager": "daemon",
        "tofino_bfrt_host": "127.0.0.1",
        "tofino_bfrt_port": free_port(),
        "tofino_start_timeout_s": 10,
        "tofino_switch_yaml": "",
    }
    yield lambda **more: deploy_here(tmp_path, "tofino", **variables | more)
    runtime = tmp_path / "bufferscope/tofino/run"
    command = [sys.executable, "-m", "hosts.daemon", "stop", "--name", "bf_switchd", "--runtime-dir", str(runtime)]
    subprocess.run(command, cwd=CHECKOUT, capture_output=True, check=False)


def calls(sde: Path) -> int:
    return len((sde / "install/bin/calls").read_text().splitlines())


@pytest.mark.long
def test_tofino__is_built_started_and_asked_and_nothing_is_done_twice(
    deploy: Callable[..., Played], sde: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler, chip = sde / "install/bin/bf-p4c", "tofino2"
    shutil.copy(ASSEMBLY / "blind.bfa", sde / "install/bin/bufferscope.bfa")
    share = sde / f"install/share/{chip}pd/bufferscope"
    assert "bf-p4c built a parser that treats all packets alike" in deploy(tofino_chip=chip).sentence()
    assert not (share / f"pipe/{chip}.bin").exists()
    shutil.copy(ASSEMBLY / "seeing.bfa", sde / "install/bin/bufferscope.bfa")
    first = deploy(tofino_chip=chip)
    assert first.status == 0, first.stdout + first.stderr
    assert first.changed > 0
    assert (share / f"pipe/{chip}.bin").read_text() == "program\n"
    conf = json.loads((sde / f"install/share/p4/targets/{chip}/bufferscope.conf").read_text())
    assert conf["chip_list"][0]["chip_family"] == "Tofino2"
    assert calls(sde) == 2
    second = deploy(tofino_chip=chip)
    assert (second.status, second.changed) == (0, 0), second.stdout + second.stderr
    compiler.write_text(COMPILER.replace("mkdir -p", 'echo "no stage left" >&2; exit 1; mkdir -p'))
    assert deploy(tofino_chip=chip, tofino_sources=["p4src/tna/names.p4"]).status != 0
    compiler.write_text(COMPILER)
    assert deploy(tofino_chip=chip, tofino_sources=["p4src/tna/names.p4"]).status == 0
    assert calls(sde) == 3

    for name in ("SDE", "SDE_INSTALL"):
        monkeypatch.delenv(name, raising=False)
    assert "no SDE: neither SDE nor SDE_INSTALL is set" in deploy(tofino_sde="").sentence()
    compiler.unlink()
    assert "has no compiler, bin/bf-p4c or bin/p4c" in deploy().sentence()


def bmv2(tmp_path: Path, **more: object) -> Played:
    return deploy_here(tmp_path, "bmv2", target="bmv2", **more)


def test_bmv2__missing_or_too_old_is_one_sentence(tmp_path: Path) -> None:
    line = bmv2(tmp_path, bmv2_program="no-such-switch", bmv2_package="no-such-package").sentence()
    assert "no apt source of this machine has the package no-such-package" in line
    old = tmp_path / "simple_switch"
    old.write_text("#!/bin/sh\necho 1.14.0-abcdef\n")
    old.chmod(0o755)
    assert "simple_switch 1.14.0 is too old, 1.15.0 or newer" in bmv2(tmp_path, bmv2_program=str(old)).sentence()
