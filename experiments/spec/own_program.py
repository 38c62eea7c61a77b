# SPDX-License-Identifier: MIT
"""P4 and POLICY (own_p4.py); TABLES, PORTS, ADDRESSES and SCHEDULER: what a whole program of the user's needs besides
itself.

The lab stays as it is; the file of tables is read with the lab's addresses in place of the program's, and the switch's
ports have the program's numbers.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import re
from collections.abc import Container, Iterator, Mapping

from controlplane import tables_file
from controlplane.schema_files import from_bmv2
from controlplane.switch import SwitchError
from controlplane.tables_file import Request
from experiments.spec import own_p4
from experiments.spec.lab_ports import Ports
from experiments.spec.topology import RECEIVER, SENDER
from lib import regular
from lib.keys import Keys, field
from model.experiment import Program, Source
from p4src.compile.policy import P4Program

SCHEDULERS = ("fifo", "strict", "drr")
PORTS_FORM = "the program's numbers of the sender's and the receiver's port: 1,2"
ADDRESSES_FORM = "ADDRESS=sender or ADDRESS=receiver, several with commas: 10.0.1.1=sender,00:00:00:00:01:01=sender"
NAMES = {host.name: host for host in (SENDER, RECEIVER)}
MOST_PORT = tables_file.MOST_PORT


def read_tables(value: object) -> Source:
    """Raises ValueError; its message continues a sentence that begins with the value."""
    path = regular.expanded(str(value))
    try:
        text = tables_file.read_text(path)
    except SwitchError as error:
        raise ValueError(f"cannot be read: {str(error).partition(': ')[2]}") from None
    return Source(name=path.stem, file=path.name, sha256=hashlib.sha256(text.encode()).hexdigest(), text=text)


def read_ports(value: object) -> tuple[int, int]:
    match = re.fullmatch(r"([0-9]{1,3}),([0-9]{1,3})", str(value).replace(" ", ""))
    numbers = (int(match[1]), int(match[2])) if match else (0, 0)
    if numbers[0] == numbers[1] or max(numbers) > MOST_PORT:
        raise ValueError(f"is not a pair of different ports from 0 to {MOST_PORT}; allowed: {PORTS_FORM}")
    return numbers


def read_addresses(value: object) -> dict[str, str]:
    given = value if isinstance(value, Mapping) else None
    pairs = [(str(name), str(host)) for name, host in given.items()] if given else []
    for word in () if given else str(value).replace(",", " ").split():
        name, _, host = word.rpartition("=")
        pairs.append((name, host))
    for name, host in pairs:
        if host not in NAMES or not _is_address(name):
            raise ValueError(f"cannot be read at '{name}={host}'; allowed: {ADDRESSES_FORM}")
    if not pairs or len(dict(pairs)) < len(pairs):
        raise ValueError(f"names no address, or one twice; allowed: {ADDRESSES_FORM}")
    return dict(pairs)


def _is_address(text: str) -> bool:
    """Whether this is a MAC address, an IP address, or a prefix."""
    if re.fullmatch(r"[0-9a-fA-F]{1,2}(:[0-9a-fA-F]{1,2}){5}", text):
        return True
    try:
        ipaddress.ip_interface(text)
    except ValueError:
        return False
    return re.fullmatch(r"[^/%]+(/[0-9]{1,3})?", text) is not None


def ports(program: Program | None) -> Ports:
    """The collector has a port that the program does not know."""
    if not program or not program.ports:
        return Ports()
    free = next(number for number in range(Ports().collector, MOST_PORT) if number not in program.ports)
    sender, receiver = program.ports
    return Ports(sender, receiver, free)


def requests(program: Program) -> list[Request]:
    """The requests of the tables. The links are the lab's: RATE and BUF replace the rate and the length of queues that
    the file sets. Raises SwitchError.
    """
    if not program.tables:
        return []
    schema = from_bmv2(json.loads(program.compiled.text or ""), program.compiled.file)
    at, tables, words = ports(program), program.tables, _words(program.addresses or {})
    found = tables_file.parse(tables.file, tables.text or "", schema, (at.sender, at.receiver), words)
    return [each for each in found if each.command not in (tables_file.RATE_COMMAND, tables_file.DEPTH_COMMAND)]


def _words(addresses: Mapping[str, str]) -> dict[str, str]:
    """The program's addresses -> the lab's, in the form in which the file has them."""
    words = {}
    for address, name in addresses.items():
        host, (value, slash, _) = NAMES[name], address.partition("/")
        if value.count(":") == 5 and "::" not in value:
            words[address] = host.mac
        else:
            of_host, bits = (host.ipv6, 128) if ":" in value else (host.ipv4, 32)
            words[address] = f"{of_host}/{bits}" if slash else of_host
    return words


class OwnProgramKeys(Keys):
    # fmt: off
    p4: P4Program | None = field(
        "P4 of your own, a queue policy (docs/your-aqm.md) or a whole program (docs/your-program.md): my_aqm.p4, p4c's "
        "JSON my_aqm.json, or template, which needs no p4c. BUF stays the length at which every packet is dropped",
        own_p4.read, values=("template",))
    policy: dict[str, str] | None = field(
        "with P4, or an AQM as MODE: values of the policy's parameters, target=5ms interval=100ms",
        own_p4.read_parameters)
    tables: Source | None = field(
        "with a whole program as P4: the file of its tables, commands of simple_switch_CLI or p4lang's runtime.json",
        read_tables)
    ports: tuple[int, int] | None = field(
        "with a whole program as P4: its numbers of the sender's and the receiver's port (default 1,2)",
        read_ports)
    addresses: dict[str, str] | None = field(
        "with TABLES: whose the addresses in it are: 10.0.1.1=sender,10.0.3.1=receiver, also prefixes and MACs",
        read_addresses)
    scheduler: str | None = field(
        "with a whole program as P4: fifo (one queue; the default), or strict or drr (32 queues at the bottleneck, "
        "which the program's priority chooses)", values=SCHEDULERS)
    # fmt: on


def wrong(keys: OwnProgramKeys, given: Container[str]) -> Iterator[tuple[str, str]]:
    """(key, problem) of all keys of OwnProgramKeys but P4."""
    program = own_p4.resolve(keys)
    if program is None and "p4" in given:
        return  # P4 has an error of its own
    if keys.policy and program is None:
        yield "policy", "has no meaning here; allowed: with P4, or an AQM as MODE, only"
    for problem in own_p4.wrong(keys.p4, keys.policy or {}) if keys.p4 else ():
        yield "policy", problem
    whole = program is not None and program.parameters is None
    for key in ("tables", "ports", "addresses", "scheduler"):
        if key in given and not whole:
            yield key, "has no meaning here; allowed: with a whole program as P4 only"
    if "addresses" in given and "tables" not in given:
        yield "addresses", "has no meaning here; allowed: with TABLES only, whose addresses it replaces"
    if program is None or not whole:
        return
    if program.tables and program.tables.file == program.compiled.file:
        yield "tables", "has the name of the program's JSON, beside which a run stores it; allowed: another name"
    text = program.tables.text or "" if program.tables else ""
    for address in program.addresses or ():
        if address not in text:
            yield "addresses", f"names {address}, which the file of TABLES does not have; allowed: words of this file"
    try:
        requests(program)
    except SwitchError as error:
        yield "tables", f"cannot be used: {error}"
