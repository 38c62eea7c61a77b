# SPDX-License-Identifier: MIT
"""The machines of a testbed, over ssh: reserves them for one run, fetches its files, and reaches the soft switch's
control socket.

Ansible prepares the machines, starts and stops their programs. This module has what must last as long as the run.
"""

from __future__ import annotations

import contextlib
import json
import select
import shlex
import shutil
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from controlplane.soft import SoftSwitch
from experiments import ssh
from experiments.unpack import unpack
from hosts import control_relay
from hosts.lease import Neighbour
from lib.errors import RunError
from lib.terminal import complain
from runs.names import REPETITION, SWEEP_RUNS

ANSWER_S = 20.0
SIGN_OF_LIFE_S = 2.0  # hosts.lease waits ten times as long
END_S = 40.0  # for stopping programs and restoring settings
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
    directory: str  # of our programs
    state_directory: str  # of former settings

    def command(self, module: str, *words: str) -> list[str]:
        """Runs a module of `hosts` there, as root. No word is read by a shell."""
        program = [*(("sudo", "-n") if self.becomes_root else ()), self.python, "-m", module, *words]
        return [*self.login, f"cd {shlex.quote(self.directory)} && exec {shlex.join(program)}"]

    def run_directory(self, run: str) -> str:
        """The directory of `run`, an identifier, on this machine."""
        return f"{self.directory}/{SWEEP_RUNS}/{run}"

    def ask(self, *words: str) -> str:
        """The output of a program there. Raises RunError."""
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
        """The address of its interface in the experiment's network. Raises RunError."""
        return self.ask("cat", str(ADDRESSES / self.interfaces[0] / "address"))

    def facts(self) -> dict[str, Any]:
        """The output of hosts.facts. Raises RunError."""
        interfaces = [word for interface in self.interfaces for word in ("--interface", interface)]
        try:
            done = subprocess.run(
                self.command("hosts.facts", *interfaces), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=ANSWER_S, check=False,
            )  # fmt: skip
            content = json.loads(done.stdout)
        except (subprocess.TimeoutExpired, ValueError):
            raise RunError(f"{self.name} ({self.place}): its facts are not known: "
                           f"{_last(done.stderr) or 'no answer'}") from None  # fmt: skip
        return dict(content)


def machine(name: str, variables: dict[str, Any], inventory: Path) -> Machine:
    """From Ansible's variables of a host. Raises RunError if the host cannot be used."""

    def word(key: str, default: str) -> str:
        return ssh.check(name, str(variables.get(key, default)), inventory)

    return Machine(
        name,
        place=word("ansible_host", name),
        interfaces=_interfaces(name, variables, inventory),
        login=ssh.command(name, variables, inventory),
        becomes_root=variables.get("ansible_become") in (True, "true", "yes"),
        python=word("bufferscope_python", PYTHON),
        directory=word("bufferscope_dir", DIRECTORY),
        state_directory=word("bufferscope_state_dir", STATE),
    )


def _interfaces(name: str, variables: dict[str, Any], inventory: Path) -> tuple[str, ...]:
    """The host's interfaces; of a switch, those of its ports."""
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
    """Reserves the machines for a run. At the end of the run or of this process, they stop the run's programs, restore
    their settings and remove the run's files. Meanwhile each machine knows its neighbour (`neighbours`, by place).
    Raises RunError if a machine is not available.
    """
    leases = [_Lease(machine, run, neighbours.get(machine.place)) for machine in at_places(machines)]
    silence = threading.Event()
    signs = threading.Thread(target=_give_signs, args=(leases, silence), daemon=True)
    try:
        _all(lease.wait for lease in leases)
        signs.start()
        yield
    finally:
        silence.set()
        for lease in leases:
            lease.release()
        for lease in leases:
            lease.finish()


class _Lease:
    def __init__(self, machine: Machine, run: str, neighbour: Neighbour | None) -> None:
        self.machine = machine
        words = ["--run-dir", machine.run_directory(run), "--state-dir", machine.state_directory]
        words += ["--neighbour", ",".join(neighbour)] if neighbour else []
        self._process = subprocess.Popen(
            machine.command("hosts.lease", *words),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1,
            start_new_session=True,  # Ctrl-C is for the runner, which then ends the lease in order
        )  # fmt: skip

    def wait(self) -> None:
        """Waits until the machine is reserved. Raises RunError."""
        output = self._process.stdout
        assert output is not None
        said = output.readline() if select.select([output], [], [], ANSWER_S)[0] else None
        if said != "ready\n":
            self._process.kill()
            why = f"no answer within {ANSWER_S:.0f} s" if said is None else _last(self._process.communicate()[1])
            if "No module named" in why or "No such file" in why or "can't cd" in why:
                why = f"{why}: deploy first (make deploy TARGET=... INVENTORY=...)"
            elif said and said.startswith("{"):
                why = "; ".join(json.loads(said)["problems"])
            raise RunError(f"{self.machine.name} ({self.machine.place}): {why or 'it said nothing'}")

    def sign(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            assert self._process.stdin is not None
            self._process.stdin.write("\n")

    def release(self) -> None:
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()

    def finish(self) -> None:
        """Reports what could not be cleaned up."""
        self._process.stdin = None  # closed; communicate would write to it
        try:
            said, why = self._process.communicate(timeout=END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            said, why = "", f"it has not cleaned up within {END_S:.0f} s"
        try:
            problems = json.loads(said.strip().splitlines()[-1])["problems"]
        except (IndexError, ValueError, KeyError, TypeError):
            problems = [] if self._process.returncode == 1 else [_last(why) or "the connection ended"]
        for problem in problems:
            complain(f"note: {self.machine.name} ({self.machine.place}): {problem}")


def _give_signs(leases: list[_Lease], silence: threading.Event) -> None:
    while not silence.wait(SIGN_OF_LIFE_S):
        for lease in leases:
            lease.sign()


def _all(waits: Iterable[Any]) -> None:
    """Calls each function. Raises RunError with the lines of all that failed."""
    lines: list[str] = []
    for wait in waits:
        try:
            wait()
        except RunError as error:
            lines += error.lines
    if lines:
        raise RunError(*lines)


def fetch(machines: Iterable[Machine], run: str, directory: Path, scratch: Path, most_bytes: int) -> None:
    """Moves the files of a run from all machines into `directory`. The machines pack them with tar; unpack.py checks
    them here. Raises RunError.
    """
    for machine in at_places(machines):
        packed = scratch / f"{machine.name}.tar"
        where = f"{SWEEP_RUNS}/{run}/{REPETITION}"
        with packed.open("wb") as archive:
            words = ["tar", "--create", "--ignore-failed-read", "--directory", machine.directory, where]
            command = shlex.join([*(("sudo", "-n") if machine.becomes_root else ()), *words])
            done = subprocess.run(
                [*machine.login, command], stdin=subprocess.DEVNULL, stdout=archive, stderr=subprocess.PIPE, check=False
            )
        if done.returncode:
            raise RunError(f"{machine.name} ({machine.place}): its files cannot be fetched: "
                           f"{_last(done.stderr.decode(errors='replace')) or 'the connection ended'}")  # fmt: skip
        unpack(packed, run, scratch, most_bytes)
        packed.unlink()
        came = scratch / where
        for file in sorted(path for path in came.rglob("*") if path.is_file()):
            target = directory / file.relative_to(came)
            target.parent.mkdir(exist_ok=True)
            shutil.move(file, target)


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
            raise OSError(_last(self._process.communicate()[1].decode(errors="replace")) or "the connection ended")
        return reply

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def soft_switch(machine: Machine, path: str) -> SoftSwitch:
    """A connection to the soft switch whose control socket is `path` there. Raises SwitchError."""
    return SoftSwitch(path, Relay(machine, path))


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][-300:] if lines else ""
