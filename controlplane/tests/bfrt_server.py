# SPDX-License-Identifier: MIT
"""A BF Runtime server over a device in memory (bfrt_memory.py), to test the SDE's own client without a chip.

Messages, ids and errors are real; the device is not. Like bf_switchd, the server binds one client to a program.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

from controlplane.bfrt import Key, TableEntry, Value
from controlplane.schema_files import BUILD, bits_of
from controlplane.switch import SwitchError
from controlplane.tests.bfrt_memory import Device, MemoryTables

SHARED = Path(os.environ.get("SDE_INSTALL", "/absent"), "share/bf_rt_shared")
ALL_PIPES = 0xFFFF
FILES = ("port", "mirror", "tm")


class Known:
    """The tables of a chip, from bf-rt.json and the SDE's files: ids to names and types, both ways."""

    def __init__(self, chip: str) -> None:
        self.program = (BUILD / {"tf1": "tofino", "tf2": "tofino2"}[chip] / "bf-rt.json").read_bytes()
        fixed = [json.loads((SHARED / f"bf_rt_{name}_{chip}.json").read_text()) for name in FILES]
        self.fixed = json.dumps({**fixed[0], "tables": [table for file in fixed for table in file["tables"]]}).encode()
        tables = [*json.loads(self.program)["tables"], *json.loads(self.fixed)["tables"]]
        self.by_id = {table["id"]: table for table in tables}

    def data_fields(self, table: Any, action_id: int) -> list[Any]:
        common = [field.get("singleton", field) for field in table["data"]]
        for action in table.get("action_specs", []):
            if action["id"] == action_id:
                common += [field.get("singleton", field) for field in action["data"]]
        return [field for field in common if "name" in field]

    def action_name(self, table: Any, action_id: int) -> str | None:
        return next((action["name"] for action in table.get("action_specs", []) if action["id"] == action_id), None)

    def action_id(self, table: Any, name: str | None) -> int:
        return next((int(action["id"]) for action in table.get("action_specs", []) if action["name"] == name), 0)


class Service:
    """The RPCs that the control plane's client calls."""

    def __init__(self, device: Device) -> None:
        from bfrt_grpc import bfruntime_pb2, bfruntime_pb2_grpc

        self._pb, self.grpc = bfruntime_pb2, bfruntime_pb2_grpc
        self.device, self._known = device, Known(device.chip)
        self._tables = MemoryTables(device)
        self._bound: int | None = None
        self.stopped = False

    def GetForwardingPipelineConfig(self, request: Any, context: Any) -> Any:
        reply = self._pb.GetForwardingPipelineConfigResponse()
        if self.device.program_name:
            config = reply.config.add()
            config.p4_name, config.bfruntime_info = self.device.program_name, self._known.program
        reply.non_p4_config.bfruntime_info = self._known.fixed
        return reply

    def SetForwardingPipelineConfig(self, request: Any, context: Any) -> Any:
        import grpc

        if self._bound is not None:
            message = f"Client ID {request.client_id} trying to bind but Client ID {self._bound} already owns this P4"
            context.abort(grpc.StatusCode.ALREADY_EXISTS, message)
        self._bound = request.client_id
        return self._pb.SetForwardingPipelineConfigResponse()

    def StreamChannel(self, requests: Iterator[Any], context: Any) -> Iterator[Any]:
        number = None
        for request in requests:
            number = request.client_id
            reply = self._pb.StreamMessageResponse()
            reply.subscribe.status.code = 0
            yield reply
        if number == self._bound:
            self._bound = None

    def Write(self, request: Any, context: Any) -> Any:
        self._named(request, context)
        pipe = None if request.target.pipe_id == ALL_PIPES else request.target.pipe_id
        for update in request.updates:
            try:
                self._write(update.type, update.entity.table_entry, pipe)
            except SwitchError as error:
                self._refuse(context, str(error))
        return self._pb.WriteResponse()

    def Read(self, request: Any, context: Any) -> Iterator[Any]:
        self._named(request, context)
        pipe = None if request.target.pipe_id == ALL_PIPES else request.target.pipe_id
        reply = self._pb.ReadResponse()
        for entity in request.entities:
            try:
                self._read(entity.table_entry, pipe, reply)
            except SwitchError as error:
                self._refuse(context, str(error))
        yield reply

    def _write(self, kind: int, entry: Any, pipe: int | None) -> None:
        table = self._known.by_id[entry.table_id]
        name = table["name"]
        key, row = self._key(table, entry.key), self._row(table, entry.data)
        update = self._pb.Update
        if entry.is_default_entry:
            self._tables.modify_default(name, row, pipe)
        elif kind == update.INSERT_OR_MODIFY:
            self._tables.add_or_modify(name, key, row)
        elif kind == update.MODIFY:
            self._tables.modify(name, key, row, pipe)
        elif kind == update.RESET:
            self._tables.reset(name, key, pipe)
        elif kind == update.DELETE:
            self._tables.delete(name, key)
        else:
            raise SwitchError(f"UNIMPLEMENTED update {kind}")

    def _read(self, entry: Any, pipe: int | None, reply: Any) -> None:
        table = self._known.by_id[entry.table_id]
        if entry.is_default_entry:
            self._tell(reply, table, None, self._tables.read_default(table["name"], pipe))
        elif entry.HasField("key"):
            key = self._key(table, entry.key)
            rows = self._tables.read(table["name"], [key], pipe)
            if not rows:
                raise SwitchError("NOT_FOUND")
            self._tell(reply, table, key, rows[0])
        else:
            for key, row in self._tables.read_all(table["name"]):
                self._tell(reply, table, key, row)

    def _tell(self, reply: Any, table: Any, key: Key | None, row: TableEntry) -> None:
        entry = reply.entities.add().table_entry
        entry.table_id, entry.is_default_entry = table["id"], key is None
        if key is not None:
            for key_field in table["key"]:
                field = entry.key.fields.add()
                field.field_id = key_field["id"]
                field.exact.value = _stream(key[key_field["name"]], key_field["type"])
        entry.data.action_id = self._known.action_id(table, row.action)
        for key_field in self._known.data_fields(table, entry.data.action_id):
            if key_field["name"] in row.fields:
                field = entry.data.fields.add()
                field.field_id = key_field["id"]
                _fill(field, row.fields[key_field["name"]], key_field)

    def _key(self, table: Any, key: Any) -> Key:
        by_id = {field["id"]: field for field in table["key"]}
        return {by_id[f.field_id]["name"]: _plain(f.exact.value, by_id[f.field_id]["type"]) for f in key.fields}

    def _row(self, table: Any, data: Any) -> TableEntry:
        by_id = {field["id"]: field for field in self._known.data_fields(table, data.action_id)}
        return TableEntry(
            {by_id[field.field_id]["name"]: _read_value(field, by_id[field.field_id]) for field in data.fields},
            self._known.action_name(table, data.action_id),
        )

    def _named(self, request: Any, context: Any) -> None:
        """Refuses an unbound client that does not name the program."""
        import grpc

        if self.stopped:
            context.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed")
        if request.client_id != self._bound and request.p4_name != self.device.program_name:
            context.abort(grpc.StatusCode.NOT_FOUND, "Bound config not found")

    def _refuse(self, context: Any, message: str) -> None:
        """Reports an entry's error as bf_switchd does: in the binary details of a status UNKNOWN."""
        import grpc
        from google.rpc import code_pb2, status_pb2

        code = next((code for code in ("NOT_FOUND", "UNAVAILABLE") if code in message), "INVALID_ARGUMENT")
        if code == "UNAVAILABLE":
            context.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed")
        status = status_pb2.Status(code=code_pb2.UNKNOWN)
        status.details.add().Pack(self._pb.Error(canonical_code=code_pb2.Code.Value(code), message=message))
        context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
        context.abort(grpc.StatusCode.UNKNOWN, "")


class Server:
    """The service on a loopback port; use it as a context manager."""

    def __init__(self, device: Device) -> None:
        import grpc

        self.service = Service(device)
        self._server = grpc.server(futures.ThreadPoolExecutor(max_workers=8))
        self.service.grpc.add_BfRuntimeServicer_to_server(self.service, self._server)
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"

    def __enter__(self) -> Server:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(0).wait()


def _stream(value: Value, kind: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    assert isinstance(value, int)
    return value.to_bytes((bits_of(kind) + 7) // 8, "big")


def _plain(value: bytes, kind: Any) -> Value:
    return value.decode() if kind["type"] == "string" else int.from_bytes(value, "big")


def _fill(field: Any, value: Value, description: Any) -> None:
    if isinstance(value, bool):
        field.bool_val = value
    elif isinstance(value, str):
        field.str_val = value
    elif isinstance(value, list):
        field.int_arr_val.val.extend(value)
    else:
        field.stream = _stream(value, description["type"])


def _read_value(field: Any, description: Any) -> Value:
    kind = field.WhichOneof("value")
    if kind == "bool_val":
        return bool(field.bool_val)
    if kind == "str_val":
        return str(field.str_val)
    if kind == "int_arr_val":
        return [int(value) for value in field.int_arr_val.val]
    return _plain(field.stream, description["type"])
