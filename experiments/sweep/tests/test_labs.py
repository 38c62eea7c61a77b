# SPDX-License-Identifier: MIT
"""Sweeps on other machines: the variables of an inventory, and a whole sweep over a real sshd on loopback."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.lab import virtual as virtual_lab
from experiments.machine.host import CHECKOUT
from experiments.sweep import remote_labs as labs
from experiments.tests.conftest import wait_for
from hosts.tests.processes import free_port, processes
from lib.errors import RunError
from runs import run_table

SPEC = """\
name: away
keep: summary
base: {clock: virtual, rate: 50mbit, rtt: 4ms, duration: 50rtt, warmup: 20rtt, buf: 10pkt, cc: reno, flows: '1'}
"""
SSHD = "/usr/sbin/sshd"
MISSING = [name for name in (SSHD, "rsync", "ssh", "ssh-keygen", "parallel") if not shutil.which(name)]


def inventory(directory: Path, hosts: dict[str, dict[str, object]], **variables: object) -> Path:
    path = directory / "labs.json"
    path.write_text(json.dumps({"labs": {"hosts": hosts, "vars": variables}}))
    return path


def test_labs__are_those_of_the_group_with_what_ssh_needs(tmp_path: Path) -> None:
    hosts: dict[str, dict[str, object]] = {
        "one": {"ansible_host": "192.0.2.1", "ansible_port": 2222, "ansible_user": "me"},
        "two": {"ansible_ssh_private_key_file": "/keys/two", "ansible_ssh_common_args": "-o ProxyJump=gate"},
    }
    one, two = labs.load(inventory(tmp_path, hosts, lab_checkout="/srv/lab"))
    assert one.ssh[-3:] == ("-p", "2222", "me@192.0.2.1")
    assert two.ssh[-5:] == ("-i", "/keys/two", "-o", "ProxyJump=gate", "two")
    assert one.login.startswith("ssh -o BatchMode=yes")
    assert (one.checkout, two.checkout) == ("/srv/lab", "/srv/lab")


def test_labs__take_no_word_that_a_shell_could_read_otherwise() -> None:
    for name, value, word in (
        ("ansible_host", "a;touch x", "'a;touch x'"),
        ("ansible_host", "-oProxyCommand=x", "'-oProxyCommand=x'"),
        ("ansible_user", "$(x)", "'$(x)@one'"),
        ("lab_checkout", "/a b", "'/a b'"),
        ("ansible_ssh_common_args", "-o 'ProxyCommand=a b'", "'ProxyCommand=a b'"),
    ):
        with pytest.raises(RunError, match=re.escape(f"{word} cannot be used")):
            labs._lab("one", {name: value}, Path("inventory"))


def test_inventory__without_usable_labs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="does not exist"):
        labs.load(tmp_path / "none")
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(RunError, match="is not a regular file"):
        labs.load(tmp_path / "fifo")
    with pytest.raises(RunError, match="no machine in the group labs"):
        labs.load(inventory(tmp_path, {}))
    with pytest.raises(RunError, match="one path for all of them"):
        labs.load(inventory(tmp_path, {"one": {"lab_checkout": "/a"}, "two": {"lab_checkout": "/b"}}))


@pytest.fixture
def loopback(tmp_path: Path) -> Iterator[Path]:
    """Two labs: this machine, over an sshd that listens on loopback only, and a lab that does not answer."""
    if MISSING:
        pytest.skip(f"missing: {' '.join(MISSING)} (Debian packages openssh-server, rsync, openssh-client, parallel)")
    if os.geteuid() != 0:
        pytest.skip("starting an sshd needs root")
    if not virtual_lab.KERNEL.exists() or not (CHECKOUT / "build/deployed").exists():
        pytest.skip("this checkout is not built: make kernel")
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True)
    shutil.copy(tmp_path / "user.pub", tmp_path / "authorized")
    port = free_port()
    (tmp_path / "known").write_text(f"[127.0.0.1]:{port} {(tmp_path / 'host.pub').read_text()}")
    (tmp_path / "config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {tmp_path}/host\nAuthorizedKeysFile {tmp_path}/authorized\n"
        "PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n"
    )
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd needs the directory even without privilege separation
    sshd = subprocess.Popen(
        [SSHD, "-D", "-e", "-f", tmp_path / "config"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        assert sshd.stderr
        assert "listening" in sshd.stderr.readline()
        yield inventory(
            tmp_path,
            {"here": {"ansible_port": port}, "gone": {"ansible_port": free_port()}},
            ansible_host="127.0.0.1", ansible_user="root", ansible_ssh_private_key_file=str(tmp_path / "user"),
            ansible_ssh_common_args=f"-o UserKnownHostsFile={tmp_path}/known", lab_checkout=str(CHECKOUT),
        )  # fmt: skip
    finally:
        sshd.terminate()
        sshd.communicate(timeout=60)


def at_work(name: str) -> list[int]:
    """The running processes of the jobs whose names begin with `name`."""
    return processes("cmdline", lambda text: b"\0job\0" in text and f"\0NAME={name}".encode() in text)


def test_sweep__on_another_machine_comes_back_whole(loopback: Path, tmp_path: Path) -> None:
    (tmp_path / "away.yaml").write_text(SPEC)
    command = [
        sys.executable, "-m", "bufferscope", "sweep", f"SPEC={tmp_path}/away.yaml", f"RESULTS={tmp_path}/results",
        f"INVENTORY={loopback}",
    ]  # fmt: skip
    away = Path(labs.directory(str(CHECKOUT), tmp_path / "results/away"))
    killed = subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert wait_for(lambda: bool(list(away.glob("runs/*/rep-1/spec.yaml"))), 240)
        name = next(away.glob("runs/*")).name
        assert at_work(name)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert wait_for(lambda: not at_work(name), 60), "the job outlives the command that waited for it"
        assert run_table.read(tmp_path / "results").height == 0

        done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False, timeout=600)
        assert done.returncode == 0, done.stderr + done.stdout
        assert "note: without gone: it cannot be used" in done.stderr
        assert "away: 1 of 1 runs are valid" in done.stdout
        (row,) = run_table.read(tmp_path / "results").to_dicts()
        assert (row["valid"], row["kept"], row["flows"]) == (True, "summary", 1)
        run = tmp_path / "results" / row["run"]
        assert (run / "report.html").exists()
        assert (run.parent / "job.log").exists()
        assert not (tmp_path / "results/away/.away").exists()
        assert not [path for path in away.rglob("*") if path.is_file()]  # no file stays on the lab
    finally:
        killed.kill()
        killed.wait()
        shutil.rmtree(away, ignore_errors=True)
