# SPDX-License-Identifier: MIT
"""Makes requests of the soft switch's control protocol (docs/control-protocol.md) at simple_switch, for any program."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any

from controlplane.bmv2_client import ThriftClients
from controlplane.schema import Array, Field, Table, by_end
from controlplane.schema_files import from_bmv2
from controlplane.switch import SwitchError
from controlplane.tables_file import MOST_PRIORITY


class Bmv2Requests:
    def __init__(self, client: ThriftClients, content: Mapping[str, Any]) -> None:
        """`content`: the program as p4c compiles it, parsed."""
        self._schema = from_bmv2(content, "its program")
        self._sets = {item["name"]: item["compressed_bitwidth"] for item in content["parse_vsets"]}
        self._meters = {item["name"]: item for item in content["meter_arrays"]}
        self._crcs = {
            item["name"]: int(item["algo"][3:5]) for item in content["calculations"] if "_custom" in item["algo"]
        }
        self._handles: dict[str, list[int]] = {}
        self._client, self._standard, self._types = client, client.standard, client.standard_types
        from thrift.protocol.TBinaryProtocol import TBinaryProtocol
        from thrift.protocol.TMultiplexedProtocol import TMultiplexedProtocol

        service = importlib.import_module("bm_runtime.simple_pre_lag.SimplePreLAG")
        self._groups = service.Client(TMultiplexedProtocol(TBinaryProtocol(client.transport), "simple_pre_lag"))

    def set(self, requests: Iterable[str]) -> None:
        """Raises SwitchError for a request that simple_switch has not, and exceptions of Thrift."""
        for request in requests:
            name, verb, *words = request.split()
            answer = getattr(self, f"_{name}_{verb}", None)
            if answer is None:
                raise SwitchError(f"simple_switch has no request '{name} {verb}'")
            answer(*words)

    def register(self, name: str) -> list[int]:
        array = self._schema.registers[name]
        return [value % (1 << array.bits) for value in self._standard.bm_register_read_all(0, name)]

    def packets(self, counter: str, index: int) -> int:
        return self._standard.bm_counter_read(0, self._schema.counter(counter).name, index).packets

    def counters(self) -> Iterable[tuple[str, Array]]:
        return self._schema.counters.items()

    def registers(self) -> Iterable[Array]:
        """Those of at most 63 bits: Thrift has no wider numbers."""
        return [array for array in self._schema.registers.values() if array.bits < 64]

    def _table_set(self, name: str, *words: str) -> None:
        at = words.index("=")
        if value_set := by_end(self._sets, name):
            self._standard.bm_parse_vset_add(0, value_set, self._member(value_set, list(words[:at])))
            return
        table = self._schema.table(name)
        keys = [self._key(*each) for each in zip(words[:at], table.keys, strict=True)]
        options = self._types.BmAddEntryOptions()
        rest = list(words[at + 1 :])
        if "priority" in rest:
            options.priority = MOST_PRIORITY - int(rest.pop())  # the smallest wins here
            rest.pop()
        handle = self._standard.bm_mt_add_entry(0, table.name, keys, *self._action(table, *rest), options)
        self._handles.setdefault(table.name, []).append(handle)

    def _table_default(self, name: str, *words: str) -> None:
        table = self._schema.table(name)
        self._standard.bm_mt_set_default_action(0, table.name, *self._action(table, *words))

    def _action(self, table: Table, name: str, *words: str) -> tuple[str, list[bytes]]:
        action, arguments = self._schema.action(table, name)
        return action, [_bytes(int(word, 0), argument) for word, argument in zip(words, arguments, strict=True)]

    def _member(self, name: str, words: list[str]) -> bytes:
        """The parts of a member have the same width in our programs."""
        part_bytes = self._sets[name] // 8 // len(words)
        return b"".join(int(word, 0).to_bytes(part_bytes, "big") for word in words)

    def _key(self, word: str, key: Field) -> Any:
        types, match = self._types, key.match
        kind = getattr(types.BmMatchParamType, "TERNARY" if match == "optional" else match.upper())
        every = (1 << key.bits) - 1
        if match == "exact":
            return types.BmMatchParam(type=kind, exact=types.BmMatchParamExact(_bytes(int(word, 0), key)))
        if match == "lpm":
            value, length = word.split("/")
            return types.BmMatchParam(type=kind, lpm=types.BmMatchParamLPM(_bytes(int(value, 0), key), int(length)))
        if match == "range":
            first, last = (_bytes(int(part, 0), key) for part in word.split(".."))
            return types.BmMatchParam(type=kind, range=types.BmMatchParamRange(first, last))
        value, mask = word.split("&&&") if "&&&" in word else (("0", "0") if word == "*" else (word, str(every)))
        ternary = types.BmMatchParamTernary(_bytes(int(value, 0), key), _bytes(int(mask, 0), key))
        return types.BmMatchParam(type=kind, ternary=ternary)

    def _register_write(self, name: str, index: str, value: str) -> None:
        array, number = self._schema.register(name), int(value, 0)
        if number >= 1 << 63:
            raise SwitchError(f"register {array.name}, index {index}: Thrift has no numbers above 2^63 - 1")
        self._standard.bm_register_write(0, array.name, int(index), number)

    def _meter_set(self, name: str, index: str, *numbers: str) -> None:
        rate = self._types.BmMeterRateConfig
        values = [int(number) for number in numbers]
        rates = [rate(values[at] / 1e6, values[at + 1]) for at in (0, 2)]
        meter = self._meters[by_end(self._meters, name)]
        if meter["is_direct"]:
            for handle in self._handles[meter["binding"]]:
                self._standard.bm_mt_set_meter_rates(0, meter["binding"], handle, rates)
        elif index == "all":
            self._standard.bm_meter_array_set_rates(0, meter["name"], rates)
        else:
            self._standard.bm_meter_set_rates(0, meter["name"], int(index), rates)

    def _crc_set(self, name: str, *numbers: str) -> None:
        """Thrift's numbers have a sign."""
        bits, half = self._crcs[name], 1 << self._crcs[name] - 1
        values = [(int(number, 0) ^ half) - half for number in numbers[:3]]
        config = getattr(self._types, f"BmCrc{bits}Config")(*values, *(flag == "1" for flag in numbers[3:]))
        getattr(self._standard, f"bm_set_crc{bits}_custom_parameters")(0, name, config)

    def _multicast_set(self, group: str, *copies: str) -> None:
        handle = self._groups.bm_mc_mgrp_create(0, int(group))
        for port, replica in zip(copies[::2], copies[1::2], strict=True):
            node = self._groups.bm_mc_node_create(0, int(replica), "1" + "0" * int(port), "")
            self._groups.bm_mc_node_associate(0, handle, node)

    def _mirror_set(self, session: str, port: str, *group: str) -> None:
        """The port (or `-`), and maybe `group GROUP`."""
        config = self._client.simple_switch_types.MirroringSessionConfig()
        if port != "-":
            config.port = int(port)
        if group:
            config.mgid = int(group[1])
        self._client.simple_switch.mirroring_session_add(int(session), config)

    def _port_set(self, port: str, *settings: str) -> None:
        """Only `limit_packets N`: the port's link is not simple_switch's."""
        if settings[::2] != ("limit_packets",):
            raise SwitchError("simple_switch takes a port's limit_packets only")
        self._client.simple_switch.set_egress_queue_depth(int(port), int(settings[1]))

    def _queue_set(self, port: str, queue: str, setting: str, value: str) -> None:
        """`all` or a queue; `rate PPS` or `limit_packets N`."""
        noun = {"rate": "rate", "limit_packets": "depth"}[setting]
        switch, where = self._client.simple_switch, [int(port)] if queue == "all" else [int(port), int(queue)]
        name = f"set_egress_{'' if queue == 'all' else 'priority_'}queue_{noun}"
        getattr(switch, name)(*where, int(value))


def _bytes(value: int, field: Field) -> bytes:
    return value.to_bytes((field.bits + 7) // 8, "big")
