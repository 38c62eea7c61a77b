# SPDX-License-Identifier: MIT
"""deploy.yml for BMv2 and Tofino. Each switch's host is this machine, through a local connection. The Tofino's SDE is a
directory with an SDE's layout and stand-ins for compiler and driver. The tests test the role, not the stand-ins.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible.tests.conftest import ANSIBLE, CHECKOUT, Played, play

DEPLOY = ANSIBLE / "playbooks/deploy.yml"
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


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


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
    inventory = {
        "machines": {"hosts": {"one": {"ansible_connection": "local"}}},
        "tofino": {"hosts": {"one": {}}},
    }
    (tmp_path / "hosts.json").write_text(json.dumps(inventory))
    variables: dict[str, Any] = {
        "target": "tofino",
        "ansible_python_interpreter": sys.executable,
        "bufferscope_python": sys.executable,
        "binaries_source": "copy",
        "bufferscope_dir": str(tmp_path / "bufferscope"),
        "bufferscope_state_dir": str(tmp_path / "state"),
        "packages_by_group": {},
        "tofino_sde": str(sde),
        "tofino_manager": "daemon",
        "tofino_bfrt_host": "127.0.0.1",
        "tofino_bfrt_port": free_port(),
        "tofino_start_timeout_s": 10,
        "tofino_switch_yaml": "",
    }
    yield lambda *words, **more: play("-i", tmp_path / "hosts.json", *words, DEPLOY, variables=variables | more)
    runtime = tmp_path / "bufferscope/tofino/run"
    command = [sys.executable, "-m", "hosts.daemon", "stop", "--name", "bf_switchd", "--runtime-dir", str(runtime)]
    subprocess.run(command, cwd=CHECKOUT, capture_output=True, check=False)


def calls(sde: Path) -> int:
    return len((sde / "install/bin/calls").read_text().splitlines())


def test_tofino__is_built_started_and_asked_and_nothing_is_done_twice(deploy: Callable[..., Played], sde: Path) -> None:
    chip = "tofino2"
    first = deploy(tofino_chip=chip)
    assert first.status == 0, first.stdout + first.stderr
    assert first.changed > 0
    share = sde / f"install/share/{chip}pd/bufferscope"
    assert (share / f"pipe/{chip}.bin").read_text() == "program\n"
    conf = json.loads((sde / f"install/share/p4/targets/{chip}/bufferscope.conf").read_text())
    assert conf["chip_list"][0]["chip_family"] == "Tofino2"
    assert calls(sde) == 1
    second = deploy(tofino_chip=chip)
    assert (second.status, second.changed) == (0, 0), second.stdout + second.stderr
    assert calls(sde) == 1
    (sde / "install/bin/bf-p4c").write_text(COMPILER.replace("9.13.4", "9.13.5"))
    checked = deploy("--check", tofino_chip=chip)
    assert checked.status == 0, checked.stdout + checked.stderr
    assert checked.changed > 0
    assert calls(sde) == 1
    third = deploy(tofino_chip=chip)
    assert third.status == 0, third.stderr
    assert calls(sde) == 2


@pytest.mark.long
def test_tofino__of_the_first_generation_has_files_of_its_own(deploy: Callable[..., Played], sde: Path) -> None:
    played = deploy()
    assert played.status == 0, played.stdout + played.stderr
    assert (sde / "install/share/tofinopd/bufferscope/pipe/tofino.bin").exists()
    conf = json.loads((sde / "install/share/p4/targets/tofino/bufferscope.conf").read_text())
    assert conf["chip_list"][0]["chip_family"] == "Tofino"


@pytest.mark.long
def test_tofino__changed_sources_are_built_again_after_a_failed_build(deploy: Callable[..., Played], sde: Path) -> None:
    compiler = sde / "install/bin/bf-p4c"
    sources = ["p4src/tna/bufferscope.p4"]
    assert deploy(tofino_sources=sources).status == 0
    compiler.write_text(COMPILER.replace("mkdir -p", 'echo "no stage left" >&2; exit 1; mkdir -p'))
    sources += ["p4src/tna/names.p4"]
    assert deploy(tofino_sources=sources).status != 0
    compiler.write_text(COMPILER)
    again = deploy(tofino_sources=sources)
    assert again.status == 0, again.stderr
    assert calls(sde) == 2


@pytest.mark.long
def test_tofino__a_parser_that_selects_nothing_is_one_sentence(deploy: Callable[..., Played], sde: Path) -> None:
    shutil.copy(ASSEMBLY / "blind.bfa", sde / "install/bin/bufferscope.bfa")
    assert "bf-p4c built a parser that treats all packets alike (ingress " in sentence(deploy())
    assert not (sde / "install/share/tofinopd/bufferscope/pipe/tofino.bin").exists()


def sentence(played: Played) -> str:
    assert played.status == 2, played.stdout + played.stderr
    (line,) = played.stderr.strip().splitlines()
    return line


@pytest.mark.long
def test_tofino__a_missing_part_of_the_sde_is_one_sentence(
    deploy: Callable[..., Played], sde: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SDE", "SDE_INSTALL"):
        monkeypatch.delenv(name, raising=False)
    assert "no SDE: neither SDE nor SDE_INSTALL is set" in sentence(deploy(tofino_sde=""))
    (sde / "pkgsrc/bf-drivers").mkdir(parents=True)
    (sde / "pkgsrc/bf-drivers/VERSION").write_text("9.1.0\n")
    assert "is 9.1.0; allowed: 9.7.0 or newer" in sentence(deploy())
    (sde / "install/bin/bf-p4c").unlink()
    assert "has no compiler, bin/bf-p4c or bin/p4c" in sentence(deploy())
    (sde / "install/bin/bf_switchd").unlink()
    assert "has no bin/bf_switchd" in sentence(deploy())


@pytest.mark.long
def test_tofino__that_does_not_answer_is_one_sentence(deploy: Callable[..., Played], sde: Path) -> None:
    (sde / "install/bin/bf_switchd").write_text("#!/bin/sh\nsleep 100\n")
    line = sentence(deploy(tofino_start_timeout_s=2))
    assert "where BF Runtime should be: see journalctl -u bufferscope-bf-switchd on the switch" in line


def bmv2(tmp_path: Path, **more: object) -> Played:
    inventory = {
        "machines": {"hosts": {"one": {"ansible_connection": "local"}}},
        "bmv2": {"hosts": {"one": {}}},
    }
    (tmp_path / "hosts.json").write_text(json.dumps(inventory))
    variables: dict[str, object] = {
        "target": "bmv2",
        "ansible_python_interpreter": sys.executable,
        "binaries_source": "copy",
        "bufferscope_dir": str(tmp_path / "bufferscope"),
        "bufferscope_state_dir": str(tmp_path / "state"),
        "packages_by_group": {},
    }
    return play("-i", tmp_path / "hosts.json", DEPLOY, variables=variables | more)


def test_bmv2__without_a_package_is_one_sentence(tmp_path: Path) -> None:
    line = sentence(bmv2(tmp_path, bmv2_program="no-such-switch", bmv2_package="no-such-package"))
    assert "no apt source of this machine has the package no-such-package" in line
    assert "https://github.com/p4lang/behavioral-model#installing-bmv2" in line


def test_bmv2__too_old_is_one_sentence(tmp_path: Path) -> None:
    old = tmp_path / "simple_switch"
    old.write_text("#!/bin/sh\necho 1.14.0-abcdef\n")
    old.chmod(0o755)
    assert "simple_switch 1.14.0 is too old, 1.15.0 or newer" in sentence(bmv2(tmp_path, bmv2_program=str(old)))


@pytest.mark.skipif(not shutil.which("simple_switch"), reason="no simple_switch on the PATH (docs/target-bmv2.md)")
def test_bmv2__installed_already_is_used_and_gets_the_program(tmp_path: Path) -> None:
    first = bmv2(tmp_path)
    assert first.status == 0, first.stderr
    copied = tmp_path / "bufferscope/p4src/build/bufferscope.json"
    assert copied.read_bytes() == (CHECKOUT / "p4src/build/bufferscope.json").read_bytes()
    second = bmv2(tmp_path)
    assert (second.status, second.changed) == (0, 0), second.stdout
