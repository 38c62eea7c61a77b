# SPDX-License-Identifier: MIT
"""BF Runtime through the SDE's own Python client, bfrt_grpc.client of $SDE_INSTALL.

Reading needs no binding: an independent client names the program in each request, so many clients may read at once.
For writes, `bound` opens a second client and binds it to the program. The server binds one client at a time to a
program.
"""

from __future__ import annotations

import inspect
import json
import logging
import os
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from controlplane import sde_tables
from controlplane.bfrt import DeviceTables, Key, TableEntry, Value
from controlplane.borrowed import load_package
from controlplane.program import PROGRAM
from controlplane.schema_files import from_bfrt
from controlplane.switch import SwitchError

DEFAULT_PORT = 50052  # of bf_switchd
TIMEOUT_S = 5
DEVICE = 0
ALL_PIPES = 0xFFFF
TOO_OLD = "an SDE of 9.7 or newer, or open-p4studio, is needed"


def load_client() -> Any:
    """The module bfrt_grpc.client. SwitchError: no SDE, an SDE too old, or a missing dependency."""
    install = os.environ.get("SDE_INSTALL")
    if not install:
        raise SwitchError("tofino: SDE_INSTALL is not set: it names the directory where the Tofino SDE is installed")
    clients = sorted(Path(install).glob("lib/python*/site-packages/tofino/bfrt_grpc/client.py"))
    if not clients:
        where = f"{install}/lib/python*/site-packages/tofino/bfrt_grpc/client.py"
        raise SwitchError(f"tofino: the SDE has no BF Runtime client: {where} does not exist; {TOO_OLD}")
    try:
        load_package("bfrt_grpc", clients[0].parent)
        import bfrt_grpc.client as client
    except ImportError as error:
        raise SwitchError(
            f"tofino: {clients[0]} does not load: {error}; pip install -r requirements-tofino.txt into {sys.prefix}"
        ) from None
    except TypeError as error:  # protobuf refuses modules that an older protoc generated
        raise SwitchError(f"tofino: {clients[0]} does not load: {str(error).splitlines()[0]}; {TOO_OLD}") from None
    accepts = inspect.signature(client.ClientInterface.__init__).parameters
    if "perform_subscribe" not in accepts or "p4_name" not in inspect.signature(client._Table.entry_get).parameters:
        raise SwitchError(f"tofino: {clients[0]} knows no independent clients: {TOO_OLD}")
    logging.getLogger("bfruntime_grpc_client").setLevel(logging.ERROR)
    return client


class BfrtTables(DeviceTables):
    """The device behind the BF Runtime server at HOST:PORT."""

    def __init__(self, address: str) -> None:
        self._client = load_client()
        self._address = address if ":" in address else f"{address}:{DEFAULT_PORT}"
        self._reader = self._open(perform_subscribe=False)
        try:
            self._look()
        except BaseException:
            self.close()
            raise
        self._writer_info = self._info

    def _look(self) -> None:
        """Reads the names of the running programs, the tables of PROGRAM (if it does not run: of the first program),
        and the chip.
        """
        from bfrt_grpc import bfruntime_pb2

        request = bfruntime_pb2.GetForwardingPipelineConfigRequest(device_id=DEVICE, client_id=self._reader.client_id)
        with self._asking("its programs"):
            reply = self._reader.stub.GetForwardingPipelineConfig(request, timeout=TIMEOUT_S)
        programs = {config.p4_name: config.bfruntime_info for config in reply.config}
        if not programs:
            raise SwitchError(f"tofino switch at {self._address}: bf_switchd runs no P4 program: nothing to set up")
        self.program_name = PROGRAM if PROGRAM in programs else next(iter(programs))
        origin = f"the program of the switch at {self._address}"
        self.schema = from_bfrt(json.loads(programs[self.program_name]), origin)
        with self._asking("its tables"):
            self._info = self._reader.bfrt_info_get(self.program_name)
        names = set(self._info.table_dict)
        chips = [chip for chip in sde_tables.CHIPS if sde_tables.on_chip(sde_tables.TM, chip) in names]
        if not chips:
            raise SwitchError(f"tofino switch at {self._address}: has no table tf1.tm.cfg or tf2.tm.cfg: {TOO_OLD}")
        self.chip = chips[0]
        missing = [name for name in sde_tables.TABLES if sde_tables.on_chip(name, self.chip) not in names]
        if missing:
            name = sde_tables.on_chip(missing[0], self.chip)
            raise SwitchError(f"tofino switch at {self._address}: has no table {name}: {TOO_OLD}")

    def close(self) -> None:
        self._reader.channel.close()

    def read(self, table: str, keys: Sequence[Key], pipe: int | None = None) -> list[TableEntry]:
        handle = self._table(table)
        handle_keys = [self._key(handle, key) for key in keys]
        rows = self._read(handle, f"table {table}, key {_keys_text(keys)}", handle_keys, pipe)
        if len(keys) == 1:
            return [row for _, row in rows]
        by_key = {_hashable(key): row for key, row in rows}  # the server may answer in another order
        missing = [key for key in keys if _hashable(key) not in by_key]
        if missing:
            raise SwitchError(f"table {table}, key {dict(missing[0])}: there is no such entry")
        return [by_key[_hashable(key)] for key in keys]

    def read_all(self, table: str) -> list[tuple[Key, TableEntry]]:
        return self._read(self._table(table), f"table {table}", None, None)

    def read_default(self, table: str, pipe: int | None = None) -> TableEntry:
        handle = self._table(table)
        try:
            with self._asking(f"table {table}, default"):
                entries = handle.default_entry_get(self._target(pipe), {"from_hw": True}, p4_name=self.program_name)
                return next((_row(data) for data, _ in entries), TableEntry())
        except _NotFound:
            return TableEntry()

    def add_or_modify(self, table: str, key: Key, row: TableEntry) -> None:
        handle = self._table(table, write=True)
        with self._asking(f"table {table}, key {dict(key)}, {_row_text(row)}"):
            data = self._data(handle, row)
            handle.entry_add_or_mod(self._target(None), [self._key(handle, key)], [data], p4_name=self.program_name)

    def modify(self, table: str, key: Key, row: TableEntry, pipe: int | None = None) -> None:
        handle = self._table(table, write=True)
        with self._asking(f"table {table}, key {dict(key)}, {_row_text(row)}"):
            data = self._data(handle, row)
            handle.entry_mod(self._target(pipe), [self._key(handle, key)], [data], flags={}, p4_name=self.program_name)

    def modify_default(self, table: str, row: TableEntry, pipe: int | None = None) -> None:
        handle = self._table(table, write=True)
        with self._asking(f"table {table}, default, {_row_text(row)}"):
            handle.default_entry_set(self._target(pipe), self._data(handle, row), p4_name=self.program_name)

    def reset(self, table: str, key: Key, pipe: int | None = None) -> None:
        handle = self._table(table, write=True)
        with self._asking(f"table {table}, key {dict(key)}, reset"):
            handle.entry_reset(self._target(pipe), [self._key(handle, key)], p4_name=self.program_name)

    def delete(self, table: str, key: Key) -> None:
        handle = self._table(table, write=True)
        with self._asking(f"table {table}, key {dict(key)}, delete"):
            handle.entry_del(self._target(None), [self._key(handle, key)], p4_name=self.program_name)

    @contextmanager
    def bound(self) -> Iterator[None]:
        writer = self._open(perform_subscribe=True)
        try:
            with self._asking(f"to be the only writer of {self.program_name}"):
                writer.bind_pipeline_config(self.program_name)
                self._writer_info = writer.bfrt_info_get(self.program_name)
            yield
        finally:
            self._writer_info = self._info
            writer.tear_down_stream()

    def _open(self, perform_subscribe: bool) -> Any:
        import grpc

        channel = grpc.insecure_channel(self._address)
        try:
            grpc.channel_ready_future(channel).result(timeout=TIMEOUT_S)
        except grpc.FutureTimeoutError:
            raise SwitchError(f"no tofino switch answers at {self._address}: does bf_switchd run there?") from None
        finally:
            channel.close()
        number = random.randrange(1, 2**31)  # must differ from every other client's
        no_news = self._client.Notifications(enable_learn=False, enable_idletimeout=False)
        with self._asking("to connect"):
            return self._client.ClientInterface(
                self._address,
                client_id=number,
                device_id=DEVICE,
                notifications=no_news if perform_subscribe else None,
                perform_subscribe=perform_subscribe,
            )

    def _table(self, name: str, write: bool = False) -> Any:
        info = self._writer_info if write else self._info
        try:
            return info.table_get(name)
        except KeyError:
            raise SwitchError(f"the switch has no table {name}") from None

    def _target(self, pipe: int | None) -> Any:
        return self._client.Target(device_id=DEVICE, pipe_id=ALL_PIPES if pipe is None else pipe)

    def _read(self, handle: Any, request: str, keys: Any, pipe: int | None) -> list[tuple[Key, TableEntry]]:
        try:
            with self._asking(request):
                rows = handle.entry_get(self._target(pipe), keys, {"from_hw": True}, p4_name=self.program_name)
                return [(_plain(key.to_dict()), _row(data)) for data, key in rows]
        except _NotFound:
            return []

    def _key(self, handle: Any, key: Key) -> Any:
        return handle.make_key([self._client.KeyTuple(name, value) for name, value in key.items()])

    def _data(self, handle: Any, row: TableEntry) -> Any:
        return handle.make_data([self._datum(name, value) for name, value in row.fields.items()], row.action)

    def _datum(self, name: str, value: Value) -> Any:
        if isinstance(value, bool):
            return self._client.DataTuple(name, bool_val=value)
        if isinstance(value, str):
            return self._client.DataTuple(name, str_val=value)
        if isinstance(value, list):
            return self._client.DataTuple(name, int_arr_val=value)
        return self._client.DataTuple(name, value)

    @contextmanager
    def _asking(self, request: str) -> Iterator[None]:
        """Turns the client's exceptions into SwitchErrors of one line that name the request."""
        import grpc

        try:
            yield
        except self._client.BfruntimeRpcException as error:
            raise _rpc_error(request, error) from error
        except grpc.RpcError as error:
            raise SwitchError(f"{request}: {error.code().name}, {error.details()}") from error
        except (KeyError, ValueError, TypeError, AssertionError, RuntimeError) as error:
            raise SwitchError(
                f"{request}: the SDE's client says: {' '.join(str(error).split()) or repr(error)}"
            ) from error


class _NotFound(SwitchError):
    """There is no such entry."""


def _rpc_error(request: str, error: Any) -> SwitchError:
    import google.rpc.code_pb2 as codes

    sub_errors = [(codes.Code.Name(sub.canonical_code), sub.message) for _, sub in error.sub_errors_get()]
    if sub_errors:
        kind = _NotFound if all(name == "NOT_FOUND" for name, _ in sub_errors) else SwitchError
        return kind(f"{request}: {'; '.join(f'{name}, {message}' for name, message in sub_errors)}")
    rpc = error.grpc_error_get()
    if rpc.code().name == "ALREADY_EXISTS":
        return SwitchError(f"{request}: another client is writing to it; wait for its end, or end it: {rpc.details()}")
    return SwitchError(f"{request}: {rpc.code().name}, {rpc.details()}")


def _row(data: Any) -> TableEntry:
    fields = data.to_dict()
    action = fields.pop("action_name", None)
    fields.pop("is_default_entry", None)
    return TableEntry({name: _value(value) for name, value in fields.items()}, action)


def _value(value: Any) -> Value:
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode()
    if isinstance(value, list):
        return [int(item) for item in value]
    return value  # type: ignore[no-any-return]


def _plain(key: Any) -> Key:
    """Values of key fields by name; all keys that we use match exactly."""
    return {name: _value(field["value"] if isinstance(field, dict) else field) for name, field in key.items()}


def _hashable(key: Key) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, str(value)) for name, value in key.items()))


def _row_text(row: TableEntry) -> str:
    return f"action {row.action} {dict(row.fields)}" if row.action else f"{dict(row.fields)}"


def _keys_text(keys: Sequence[Key]) -> str:
    return str(dict(keys[0])) if len(keys) == 1 else f"{dict(keys[0])} and {len(keys) - 1} more" if keys else "none"
