# SPDX-License-Identifier: MIT
"""The machines of a testbed, over ssh: reserves the machines for one run, fetches the run's files, and connects to the
control socket of the soft switch or to the Thrift port of BMv2.

Ansible prepares the machines, and starts and stops their programs. This module has the connections that last for the
run.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shlex
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from controlplane.bmv2 import Bmv2Switch
from controlplane.soft import SoftSwitch
from controlplane.switch import SwitchError
from experiments.machine import ssh
from experiments.setup import playbooks
from experiments.setup.unpack import unpack
from hosts import control_relay
from hosts.lease import END, Neighbour
from lib.errors import RunError
from lib.terminal import complain
from runs.names import REPETITION, SWEEP_RUNS

ANSWER_S = 20.0
SIGN_OF_LIFE_S = 2.0  # hosts.lease waits ten times as long
END_S = 60.0  # for stopping programs and restoring settings
ADDRESSES = Path("/sys/class/net")
DIRECTORY, PYTHON, STATE = "/opt/bufferscope", "/usr/bin/python3", "/var/lib/bufferscope"


class Machine(NamedTuple):
    """A host of an inventory. Hosts with the same `place` are one machine."""

    name: str
    place: str  # ansible_host
    interfaces: tuple[str, ...]  # in the experiment's network; the first has the host's address there
    login: tuple[str, ...]  # the ssh command
    becomes_root: bool
    python: str
    directory: str  # of our programs on the machine
    state_directory: str  # of the settings that the machine had before a run

    def command(self, module: str, *words: str) -> list[str]:
        """The command that runs a module of `hosts` on the machine as root. Words are quoted for the remote shell."""
        program = [*(("sudo", "-n") if self.becomes_root else ()), self.python, "-m", module, *words]
        return [*self.login, f"cd {shlex.quote(self.directory)} && exec {shlex.join(program)}"]

    def run_directory(self, run: str) -> str:
        """The directory of `run`, an identifier, on this machine."""
        return f"{self.directory}/{SWEEP_RUNS}/{run}"

    def ask(self, *words: str) -> str:
        """The output of a program on the machine. Raises RunError."""
        try:
            done = subprocess.run(
                [*self.login, shlex.join(words)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=ANSWER_S, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise RunError(f"{self.name} ({self.place}) does not answer within {ANSWER_S:.0f} s") from None
        if done.returncode:
            raise RunError(f"{self.name} ({self.place}): {_last(done.stderr) or shlex.join(words) + ' failed'}")
        return done.stdout.strip()

    def mac(self) -> str:
        """The MAC address of the machine's first interface in the experiment's network. Raises RunError."""
        return self.ask("cat", str(ADDRESSES / self.interfaces[0] / "address"))

    def facts(self) -> dict[str, Any]:
        """The output of hosts.facts. Raises RunError."""
        interfaces = [word for interface in self.interfaces for word in ("--interface", interface)]
        said = ""
        try:
            done = subprocess.run(
                self.command("hosts.facts", *interfaces), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=ANSWER_S, check=False,
            )  # fmt: skip
            said = _last(done.stderr)
            return dict(json.loads(done.stdout))
        except (subprocess.TimeoutExpired, ValueError, TypeError):
            raise RunError(f"{self.name} ({self.place}): its facts are not known: {said or 'no answer'}") from None


def machine(name: str, variables: dict[str, Any], inventory: Path) -> Machine:
    """The Machine of a host, from Ansible's variables. Raises RunError if the host cannot be used."""

    def word(key: str, default: str) -> str:
        return ssh.check(name, str(variables.get(key, default)), inventory)

    def absolute(key: str, default: str) -> str:
        path = word(key, default)
        if not path.startswith("/"):
            raise RunError(f"{inventory}: {name}: {key} is {path!a}; allowed: a path that begins with /")
        return path

    return Machine(
        name,
        place=word("ansible_host", name) + (f":{word('ansible_port', '')}" if "ansible_port" in variables else ""),
        interfaces=_interfaces(name, variables, inventory),
        login=ssh.command(name, variables, inventory),
        becomes_root=str(variables.get("ansible_become")).lower() in ("true", "yes", "1", "on"),
        python=word("bufferscope_python", PYTHON),
        directory=absolute("bufferscope_dir", DIRECTORY),
        state_directory=absolute("bufferscope_state_dir", STATE),
    )


def _interfaces(name: str, variables: dict[str, Any], inventory: Path) -> tuple[str, ...]:
    """The host's interfaces; for a switch, its ports' interfaces."""
    ports = variables.get("switch_ports", [])
    names = [str(port).partition("=")[2] for port in ports] if isinstance(ports, list) else []
    names = [str(variables["bufferscope_interface"])] if "bufferscope_interface" in variables else names
    return tuple(ssh.check(name, interface, inventory) for interface in names)


def at_places(machines: Iterable[Machine]) -> list[Machine]:
    """One machine per place, with the interfaces of all hosts at this place."""
    there: dict[str, Machine] = {}
    for machine in machines:
        first = there.setdefault(machine.place, machine)
        interfaces = dict.fromkeys((*first.interfaces, *machine.interfaces))
        there[machine.place] = first._replace(interfaces=tuple(interfaces))
    return list(there.values())


@contextlib.contextmanager
def leased(machines: Iterable[Machine], run: str, neighbours: Mapping[str, Neighbour]) -> Iterator[None]:
    """Reserves the machines for a run. At the end of the run or of this process, each machine stops the run's programs,
    restores its settings and removes the run's files. `neighbours` has the neighbour entry that a machine gets during
    the run, by place. Raises RunError if a machine is not available.
    """
    leases = [_Lease(machine, run, neighbours.get(machine.place)) for machine in at_places(machines)]
    silence = threading.Event()
    in_order = False
    threading.Thread(target=_give_signs, args=(leases, silence), daemon=True).start()
    try:
        _all(lease.wait for lease in leases)
        yield
        _all(lease.check for lease in leases)
        in_order = True
    except (RunError, SwitchError) as error:
        in_order = not isinstance(error, playbooks.UnfinishedError)
        raise
    finally:
        silence.set()
        for lease in leases:
            lease.release(in_order)
        for lease in leases:
            lease.finish()


class _Lease:
    def __init__(self, machine: Machine, run: str, neighbour: Neighbour | None) -> None:
        self.machine = machine
        self._held = False
        words = ["--run-dir", machine.run_directory(run), "--state-dir", machine.state_directory]
        words += ["--neighbour", ",".join(neighbour)] if neighbour else []
        self._process = subprocess.Popen(
            machine.command("hosts.lease", *words),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
            start_new_session=True,  # Ctrl-C must reach only the runner: the runner ends the lease in order
        )  # fmt: skip

    def wait(self) -> None:
        """Waits until the machine is reserved. Raises RunError."""
        said = self._line()
        if said != "ready":
            self._process.kill()
            why = _last(self._process.communicate()[1])
            if any(word in why for word in ("No module named", "No such file", "can't cd")):
                why = f"{why}: deploy first (make deploy TARGET=... INVENTORY=...)"
            elif said:
                why = f"it said {said[:200]!a} first: a login must print nothing, and sudo must ask for nothing"
            raise RunError(f"{self}: {why or f'no answer within {ANSWER_S:.0f} s'}")
        self._held = True

    def check(self) -> None:
        """Raises RunError if the machine is not reserved any more."""
        if self._process.poll() is not None:
            raise RunError(
                f"{self}: its lease has ended: the connection broke, or the runner sent no heartbeat for 20 s (was the "
                "runner's computer suspended?); the host stopped the run's programs: run again"
            )

    def _line(self) -> str:
        """The first line of the lease's output, without its end; "" if there is none within ANSWER_S."""
        output, line = cast(BinaryIO, self._process.stdout), b""
        deadline = time.monotonic() + ANSWER_S
        while not line.endswith(b"\n") and len(line) < 4096:
            left_s = max(0.0, deadline - time.monotonic())
            if not select.select([output], [], [], left_s)[0] or not (more := os.read(output.fileno(), 1)):
                break
            line += more
        return line.decode(errors="replace").strip()

    def __str__(self) -> str:
        return f"{self.machine.name} ({self.machine.place})"

    def sign(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            cast(BinaryIO, self._process.stdin).write(b"\n")

    def release(self, in_order: bool) -> None:
        """Ends the lease. `in_order`: every task that this process sent to the machine has ended, so the clean-up need
        not wait for late tasks.
        """
        stdin = cast(BinaryIO, self._process.stdin)
        with contextlib.suppress(OSError, ValueError):  # ValueError: it is closed
            if in_order:
                stdin.write(END)
        with contextlib.suppress(OSError):
            stdin.close()

    def finish(self) -> None:
        """Waits for the end of the machine's clean-up, and reports the problems that remain."""
        self._process.stdin = None  # closed; communicate would write to it
        try:
            said, why = self._process.communicate(timeout=END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            said, why = b"", f"it has not cleaned up within {END_S:.0f} s".encode()
        if not self._held:
            return  # wait() has reported the reason
        try:
            problems = [str(line) for line in json.loads(said.strip().splitlines()[-1])["problems"]]
        except (IndexError, ValueError, KeyError, TypeError):
            problems = [
                f"{_last(why) or 'the connection ended'}; the host restores its settings itself, at the latest when "
                "the next run starts"
            ]
        for problem in problems:
            complain(f"note: {self}: {problem}")


def _give_signs(leases: list[_Lease], silence: threading.Event) -> None:
    while True:
        for lease in leases:
            lease.sign()
        if silence.wait(SIGN_OF_LIFE_S):
            return


def _all(waits: Iterable[Any]) -> None:
    """Calls each function. Raises RunError with the lines of all failures."""
    lines: list[str] = []
    for wait in waits:
        try:
            wait()
        except RunError as error:
            lines += error.lines
    if lines:
        raise RunError(*lines)


def fetch(machines: Iterable[Machine], run: str, directory: Path, scratch: Path, most_bytes: int) -> None:
    """Fetches the files of a run from all machines into `directory`. tar packs the files on the machine;
    unpack.py checks them on this computer. Raises RunError.
    """
    for machine in at_places(machines):
        packed, where = scratch / f"{machine.name}.tar", f"{SWEEP_RUNS}/{run}/{REPETITION}"
        words = ["tar", "--create", "--directory", machine.directory, where]
        _receive(machine, [*(("sudo", "-n") if machine.becomes_root else ()), *words], packed, most_bytes)
        unpack(packed, run, scratch, most_bytes)
        packed.unlink()
        came = scratch / where
        for file in sorted(path for path in came.rglob("*") if path.is_file()):
            target = directory / file.relative_to(came)
            if target.exists():
                raise RunError(
                    f"{machine.name} ({machine.place}): sent {target.name}, which another machine has already sent"
                )
            target.parent.mkdir(exist_ok=True)
            shutil.move(file, target)


def _receive(machine: Machine, words: list[str], file: Path, most_bytes: int) -> None:
    """Writes the output of a program on the machine to `file`. Raises RunError if the program fails, is silent for
    ANSWER_S, or sends more than twice `most_bytes`.
    """
    with file.open("wb") as output, subprocess.Popen(
        [*machine.login, shlex.join(words)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    ) as process:  # fmt: skip
        came, problem = cast(BinaryIO, process.stdout), ""
        while not problem:
            if not select.select([came], [], [], ANSWER_S)[0]:
                problem = f"nothing came for {ANSWER_S:.0f} s"
            elif not (block := os.read(came.fileno(), 1 << 20)):
                break
            elif output.tell() + len(block) > 2 * most_bytes:
                problem = f"more than {2 * most_bytes} bytes came, which no run has"
            else:
                output.write(block)
        if problem:
            process.kill()
        why = _last(process.communicate()[1])
    if problem or process.returncode:
        raise RunError(f"{machine.name} ({machine.place}): its files cannot be fetched: "
                       f"{problem or why or 'the connection ended'}")  # fmt: skip


class Relay:
    """A connection to the control socket of a soft switch on another machine."""

    def __init__(self, machine: Machine, path: str) -> None:
        self._process = subprocess.Popen(
            machine.command("hosts.control_relay", path),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def exchange(self, request: bytes) -> bytes:
        requests, replies = cast(BinaryIO, self._process.stdin), cast(BinaryIO, self._process.stdout)
        try:
            control_relay.write_message(requests, request)
            if not select.select([replies], [], [], ANSWER_S)[0]:
                raise TimeoutError(f"no answer within {ANSWER_S:.0f} s")
            reply = control_relay.read_message(replies)
        except (BrokenPipeError, ValueError):
            reply = None
        if reply is None:
            self._process.kill()
            raise OSError(_last(self._process.communicate()[1]) or "the connection ended")
        return reply

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextlib.contextmanager
def bmv2_switch(machine: Machine, port: int) -> Iterator[Bmv2Switch]:
    """A connection to the simple_switch on the machine, whose Thrift port is `port`. Raises SwitchError, RunError."""
    relay, relay_inside = socket.socketpair()
    with relay, relay_inside:
        process = subprocess.Popen(
            machine.command("hosts.control_relay", "--tcp", str(port)),
            stdin=relay_inside.fileno(), stdout=relay_inside.fileno(), stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        relay_inside.close()
        try:
            if _first_line(relay) != control_relay.CONNECTED:
                process.kill()
                why = _last(process.stderr.read() if process.stderr else b"") or f"no answer within {ANSWER_S:.0f} s"
                raise RunError(f"{machine.name} ({machine.place}): simple_switch is not reached: {why}")
            with Bmv2Switch(f"127.0.0.1:{port}", relay) as switch:
                switch.program()
                yield switch
        finally:
            process.kill()
            process.communicate()


def _first_line(connection: socket.socket) -> bytes:
    """The first line with its end. If no byte arrives for ANSWER_S, the part of the line that has arrived."""
    connection.settimeout(ANSWER_S)
    line = b""
    with contextlib.suppress(OSError):
        while not line.endswith(b"\n") and len(line) < 4096 and (more := connection.recv(1)):
            line += more
    return line


def soft_switch(machine: Machine, path: str) -> SoftSwitch:
    """A connection to the soft switch on the machine, whose control socket is `path`. Raises SwitchError."""
    return SoftSwitch(path, Relay(machine, path))


def _last(text: str | bytes) -> str:
    text = text.decode(errors="replace") if isinstance(text, bytes) else text
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][-300:] if lines else ""
