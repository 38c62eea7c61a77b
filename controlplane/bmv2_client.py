# SPDX-License-Identifier: MIT
"""BMv2's Thrift client: modules that BMv2's build generates, loaded from BMv2's installation.

Only the packages bm_runtime and sswitch_runtime become importable: our environment must not see the system's other
packages. The Thrift library is from requirements.txt.
"""

from __future__ import annotations

import importlib
import logging
import os
import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from controlplane.borrowed import load_package
from controlplane.switch import SwitchError

PACKAGES = ("bm_runtime", "sswitch_runtime")
DIRECTORY_VARIABLE = "BMV2_PYTHON"  # replaces the directories that `_directories` lists
TIMEOUT_MS = 5000
DEFAULT_PORT = 9090  # simple_switch's own


class ThriftClients(NamedTuple):
    """A connection: two Thrift services on one transport, and the modules with their types."""

    transport: Any
    standard: Any
    simple_switch: Any
    standard_types: ModuleType
    simple_switch_types: ModuleType
    directory: Path

    def is_current(self) -> bool:
        """Whether this client has the calls that we make; older BMv2s cannot read settings back."""
        wanted = ("mirroring_session_get", "mirroring_session_add", "set_egress_queue_rate", "get_time_since_epoch_us")
        return hasattr(self.standard, "bm_mt_get_default_entry") and all(
            hasattr(self.simple_switch, name) for name in wanted
        )


def connect(address: str, there: socket.socket | None = None) -> ThriftClients:
    """A client of the simple_switch at HOST:PORT, or behind the connection `there`. SwitchError: modules are missing,
    do not load or are too old, or no answer.
    """
    host, port = split_address(address)
    try:
        directory = load_packages()
    except SwitchError:
        raise
    except Exception as error:  # code generated for another Python or Thrift can raise anything
        raise SwitchError(f"bmv2 switch at {address}: BMv2's Python modules do not load: {error}") from None
    from thrift.protocol.TBinaryProtocol import TBinaryProtocol
    from thrift.protocol.TMultiplexedProtocol import TMultiplexedProtocol
    from thrift.transport.TSocket import TSocket
    from thrift.transport.TTransport import TBufferedTransport, TTransportException

    try:
        standard, standard_types = _modules("bm_runtime.standard", "Standard")
        simple_switch, simple_switch_types = _modules("sswitch_runtime", "SimpleSwitch")
    except Exception as error:
        raise SwitchError(f"bmv2 switch at {address}: the client modules in {directory} do not load: {error}") from None
    logging.getLogger("thrift.transport.TSocket").setLevel(logging.CRITICAL)  # our one-line errors replace its log
    connection = TSocket(host, port)
    if there is not None:
        there.settimeout(TIMEOUT_MS / 1000)
        connection.setHandle(there)
    connection.setTimeout(TIMEOUT_MS)
    transport = TBufferedTransport(connection)
    protocol = TBinaryProtocol(transport)
    client = ThriftClients(
        transport,
        standard.Client(TMultiplexedProtocol(protocol, "standard")),
        simple_switch.Client(TMultiplexedProtocol(protocol, "simple_switch")),
        standard_types,
        simple_switch_types,
        directory,
    )
    if not client.is_current():
        raise SwitchError(
            f"bmv2 switch at {address}: the modules in {directory} belong to an older BMv2: use 1.15 or newer"
        )
    try:
        if there is None:
            transport.open()
    except (TTransportException, OSError):
        raise SwitchError(
            f"no bmv2 switch answers at {address}: is simple_switch running with that --thrift-port?"
        ) from None
    return client


def split_address(address: str) -> tuple[str, int]:
    """HOST:PORT, HOST or :PORT."""
    host, colon, port = address.rpartition(":") if ":" in address else (address, "", "")
    if colon and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise SwitchError(f"bmv2 address {address!r} is not HOST:PORT, as in 127.0.0.1:{DEFAULT_PORT}")
    return host or "127.0.0.1", int(port or DEFAULT_PORT)


def resolved(address: str) -> str:
    """HOST:PORT with the host as an IP address, so that localhost and 127.0.0.1 name the same switch."""
    host, port = split_address(address)
    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return f"{host}:{port}"
    numbers = sorted(str(info[4][0]) for info in infos if info[0] == socket.AF_INET) or [str(infos[0][4][0])]
    return f"{numbers[0]}:{port}"


def load_packages() -> Path:
    """Makes BMv2's packages importable; returns their directory. SwitchError lists the directories searched."""
    sought = list(dict.fromkeys(_directories()))
    for directory in sought:
        if all((directory / name / "__init__.py").is_file() for name in PACKAGES):
            for name in PACKAGES:
                load_package(name, directory / name)
            return directory
    raise SwitchError(
        f"BMv2's Python modules {' and '.join(PACKAGES)} are not found: install BMv2 with Thrift "
        f"(make deploy TARGET=bmv2), or set {DIRECTORY_VARIABLE} to their directory; sought in "
        + ", ".join(map(str, sought))
    )


def _directories() -> Iterator[Path]:
    if directory := os.environ.get(DIRECTORY_VARIABLE):
        yield Path(directory)
        return
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    prefixes = [Path("/usr/local"), Path("/usr")]
    if executable := shutil.which("simple_switch"):
        prefixes.insert(0, Path(executable).resolve().parent.parent)
    for prefix in prefixes:
        for python in (version, "python3"):
            for packages in ("site-packages", "dist-packages"):
                yield prefix / "lib" / python / packages


def _modules(package: str, service: str) -> tuple[Any, ModuleType]:
    return importlib.import_module(f"{package}.{service}"), importlib.import_module(f"{package}.ttypes")
