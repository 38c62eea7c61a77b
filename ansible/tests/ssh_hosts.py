# SPDX-License-Identifier: MIT
"""Hosts that share one kernel, but look like machines to a run: each has its own namespaces (PID, mount, network, UTS,
IPC; with --shift also time), /etc, /run, /opt, /home and /var/lib/bufferscope, an account with sudo, and a real sshd.

    python ansible/tests/ssh_hosts.py DIRECTORY [--line] [--shift HOST=SECONDS]... -- COMMAND...

Builds the hosts in new namespaces, writes DIRECTORY/inventory.yml, and runs COMMAND beside the hosts. Everything ends
with the command. A kill of this process alone does not end the command. Needs root.

                      control network: 10.9.N.0/24 for host N, this process has .1, the host .2
    sender eth0 --- p1 switch p2 --- eth0 receiver
                       switch p3 --- eth0 collector

With --line, a delay line stands behind the switch: switch p2 --- p1 line p2 --- eth0 receiver.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

HOSTS = ("switch", "sender", "receiver", "collector", "line")
USER = "bufferscope"
PRIVATE_TREE = ("--fork", "--kill-child", "--propagation=private")
PRIVATE = ("/run", "/opt", "/var/lib/bufferscope", "/home")
LINKS = (
    ("sender", "eth0", "switch", "p1"),
    ("receiver", "eth0", "switch", "p2"),
    ("collector", "eth0", "switch", "p3"),
)
BEHIND_A_LINE = (
    *(link for link in LINKS if link[0] != "receiver"),
    ("line", "p1", "switch", "p2"),
    ("receiver", "eth0", "line", "p2"),
)
ADDRESS = {"sender": "198.51.100.2/24", "receiver": "198.51.100.1/24", "collector": "203.0.113.2/24"}
SSHD = """\
ListenAddress {address}
HostKey {keys}/{name}
AuthorizedKeysFile /run/authorized_keys
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
AcceptEnv LANG LC_*
Subsystem sftp internal-sftp
"""
INVENTORY = """\
machines:
  hosts:
    switch: {{ansible_host: 10.9.1.2}}
    sender: {{ansible_host: 10.9.2.2}}
    receiver: {{ansible_host: 10.9.3.2}}
    collector: {{ansible_host: 10.9.4.2}}
  vars:
    ansible_user: {user}
    ansible_become: true
    ansible_python_interpreter: /usr/bin/python3
    ansible_ssh_private_key_file: {keys}/user
    ansible_ssh_common_args: -o UserKnownHostsFile={keys}/known -o ControlPath={keys}/%C
    bufferscope_python: /usr/bin/python3
    bufferscope_dir: /opt/bufferscope
    bufferscope_state_dir: /var/lib/bufferscope
    binaries_source: copy
switches: {{children: {{soft: }}}}
soft:
  hosts:
    switch:
      switch_ports: [1=p1, 2=p2, 3=p3]
      tune_interfaces: [p1, p2, p3]
senders: {{hosts: {{sender: {{bufferscope_interface: eth0, bufferscope_address: 198.51.100.2}}}}}}
receivers: {{hosts: {{receiver: {{bufferscope_interface: eth0, bufferscope_address: 198.51.100.1}}}}}}
collectors:
  hosts:
    collector: {{bufferscope_interface: eth0, collector_address: 203.0.113.2, collector_source: 203.0.113.1}}
"""


def run(*words: str | Path, **more: object) -> None:
    subprocess.run([str(word) for word in words], check=True, **more)  # type: ignore[call-overload]


def ip(*lines: str) -> None:
    run("ip", "-batch", "-", input="\n".join(lines), text=True)


# ---- one host ---------------------------------------------------------------------------------------------------


def become(name: str, keys: Path) -> None:
    """PID 1 of a host: makes its private directories and mounts, and runs its sshd. The control interface `ctl` exists
    already; `build` adds the links.
    """
    run("mount", "-t", "proc", "proc", "/proc")
    run("mount", "-t", "sysfs", "sysfs", "/sys")  # of this network namespace
    run("mount", "-t", "tracefs", "tracefs", "/sys/kernel/tracing")
    run("mount", "-t", "bpf", "bpf", "/sys/fs/bpf")
    for path in PRIVATE:
        Path(path).mkdir(parents=True, exist_ok=True)
        run("mount", "-t", "tmpfs", "-o", "mode=755", name, path)
    copied = Path("/run/etc")
    run("cp", "--archive", "/etc", copied)
    (copied / "hostname").write_text(f"{name}\n")
    with (copied / "hosts").open("a") as hosts:
        hosts.write(f"127.0.1.1 {name}\n")
    for file, line in (("passwd", f"{USER}:x:7777:7777::/home/{USER}:/bin/sh"), ("group", f"{USER}:x:7777:"),
                       ("shadow", f"{USER}:*:20000:0:99999:7:::")):  # fmt: skip
        if f"{USER}:" not in (copied / file).read_text():
            with (copied / file).open("a") as text:
                text.write(f"{line}\n")
    (copied / "sudoers.d").mkdir(exist_ok=True)
    (copied / "sudoers.d/bufferscope").write_text(f"{USER} ALL=(ALL) NOPASSWD: ALL\n")
    (copied / "sudoers.d/bufferscope").chmod(0o440)
    run("mount", "--bind", copied, "/etc")
    run("hostname", name)
    Path(f"/home/{USER}").mkdir()
    os.chown(f"/home/{USER}", 7777, 7777)
    Path("/run/sshd").mkdir(mode=0o755)
    Path("/run/authorized_keys").write_text((keys / "user.pub").read_text())
    config = Path("/run/sshd_config")
    config.write_text(SSHD.format(address=f"10.9.{HOSTS.index(name) + 1}.2", keys=keys, name=name))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    daemon = subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", "-f", str(config)], stdin=subprocess.DEVNULL)
    while True:  # PID 1 reaps orphans
        pid, _ = os.wait()
        if pid == daemon.pid:
            sys.exit(f"sshd of {name} ended")


def start(name: str, keys: Path, log: Path, shift_s: int) -> int:
    """Starts a host, waits until its namespaces exist, and returns the pid of its first process."""
    unshare = ["unshare", "--net", "--mount", "--uts", "--ipc", "--pid", *PRIVATE_TREE]
    if shift_s:
        unshare += ["--time", f"--monotonic={shift_s}", f"--boottime={shift_s}"]
    gate_read, gate_write = os.pipe()
    words = [*unshare, sys.executable, __file__, "--host", name, "--gate", str(gate_read), str(keys)]
    with log.open("wb") as output:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, pass_fds=[gate_read])
    os.close(gate_read)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline = time.monotonic() + 10
    while not (found := children.read_text().split()):
        if time.monotonic() > deadline or process.poll() is not None:
            sys.exit(f"host {name} did not start: {log.read_text()}")
        time.sleep(0.01)
    pid = int(found[0])
    number = HOSTS.index(name) + 1
    ip(
        f"link add ctl{number} type veth peer name ctl netns {pid}", f"address add 10.9.{number}.1/24 dev ctl{number}",
        f"link set ctl{number} up",
    )  # fmt: skip
    inside = ("nsenter", f"--target={pid}", "--net", "ip", "-batch", "-")
    lines = f"link set lo up\naddress add 10.9.{number}.2/24 dev ctl\nlink set ctl up\n"
    run(*inside, input=lines, text=True)
    os.write(gate_write, b"go")
    os.close(gate_write)
    return pid


# ---- all of them ------------------------------------------------------------------------------------------------


def build(directory: Path, shifts_s: dict[str, int], with_line: bool) -> None:
    names = HOSTS if with_line else HOSTS[:-1]
    keys = directory / "keys"
    keys.mkdir(parents=True, mode=0o755)
    for name in (*names, "user"):
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", keys / name)
    known = (f"10.9.{number}.2 {(keys / f'{name}.pub').read_text()}" for number, name in enumerate(names, 1))
    (keys / "known").write_text("".join(known))
    ip("link set lo up")
    pids = {name: start(name, keys, directory / f"{name}.log", shifts_s.get(name, 0)) for name in names}
    for host, interface, other, port in BEHIND_A_LINE if with_line else LINKS:
        ip(f"link add {interface} netns {pids[host]} type veth peer name {port} netns {pids[other]}")
        for name, end in ((host, interface), (other, port)):
            run("nsenter", f"--target={pids[name]}", "--net", "ip", "link", "set", end, "up")
        if host in ADDRESS:
            run("nsenter", f"--target={pids[host]}", "--net", "ip", "address", "add", ADDRESS[host], "dev", interface)
    text = INVENTORY.format(user=USER, keys=keys)
    if with_line:
        text = text.replace("  vars:\n", "    line: {ansible_host: 10.9.5.2}\n  vars:\n", 1)
        text += "lines: {hosts: {line: {switch_ports: [1=p1, 2=p2], tune_interfaces: [p1, p2]}}}\n"
    (directory / "inventory.yml").write_text(text)
    (directory / "pids").write_text("".join(f"{name} {pid}\n" for name, pid in pids.items()))
    for number, name in enumerate(names, 1):
        wait_for_sshd(f"10.9.{number}.2", directory / f"{name}.log")


def wait_for_sshd(address: str, log: Path) -> None:
    deadline = time.monotonic() + 15
    while subprocess.run(["ssh-keyscan", "-T", "2", address], capture_output=True, check=False).stdout == b"":
        if time.monotonic() > deadline:
            sys.exit(f"no sshd answers at {address}: {log.read_text()}")
        time.sleep(0.1)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python ansible/tests/ssh_hosts.py")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--host", help="run as the first process of this host")
    parser.add_argument("--gate", type=int, help="file descriptor from which the host reads before it starts")
    parser.add_argument("--inside", action="store_true", help="build the hosts in the current namespaces")
    parser.add_argument(
        "--shift", action="append", default=[], metavar="HOST=SECONDS", help="shift of a host's CLOCK_MONOTONIC"
    )
    parser.add_argument("--line", action="store_true", help="put a delay line behind the switch")
    parser.add_argument("command", nargs="*")
    options = parser.parse_args()
    if options.host:
        os.read(options.gate, 2)
        become(options.host, options.directory)
    if not options.inside:
        cell = ["unshare", "--net", "--mount", "--pid", "--mount-proc", *PRIVATE_TREE]
        words = [word for shift in options.shift for word in ("--shift", shift)] + ["--line"] * options.line
        words += [str(options.directory), "--", *options.command]
        return subprocess.run([*cell, sys.executable, __file__, "--inside", *words], check=False).returncode
    shifts_s = {name: int(seconds) for name, _, seconds in (shift.partition("=") for shift in options.shift)}
    build(options.directory.absolute(), shifts_s, options.line)
    print("ready", flush=True)
    return subprocess.run(options.command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
