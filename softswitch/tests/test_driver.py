# SPDX-License-Identifier: MIT
"""The switch as a driver of the virtual-time kernel: driver_lab.py runs the experiments, the tests judge them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from virtual.kernel.tests.booted import boot
from virtual.machine import START_REALTIME_NS
from wire.wire import POSTCARD

from .core_driver import make, wire_bits

pytestmark = pytest.mark.virtual
LAB = "softswitch.tests.driver_lab"
PACKETS = 1024
CLONE_SHARE = 8  # of runtime/core.c
DROPPED = POSTCARD.const["POSTCARD_DROPPED"]
HEADERS_BYTES = 14 + 20 + 8
# Lines of replies that depend on the time of the request, or on the kind of executor.
VARYING = re.compile(
    r"^(executor|mono_ns|realtime_\w+|loop\w+|sleeps|virtual_time_ns|port\.\d\.rx_ring_slots) .*$", re.MULTILINE
)


def lab(directory: Path, *parameters: str) -> tuple[dict[str, Any], str]:
    of_driver = dict(f"bufferscope_switch.{parameter}".split("=") for parameter in parameters)
    console = boot(directory, LAB, parameters=of_driver)
    outcome = json.loads((directory / "output").read_text())
    assert "failed" not in outcome, outcome["failed"]
    return outcome, console


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    make("all")
    parameters = "ports=3", f"packets={PACKETS}", "frame_bytes=9018", "flows=64", "rate_entries=4"
    return lab(tmp_path_factory.mktemp("driver"), *parameters)[0]


def test_control__answers_as_the_process_does(outcome: dict[str, Any]) -> None:
    for request, process, driver in outcome["same_requests"]:
        assert VARYING.sub(r"\1", driver) == VARYING.sub(r"\1", process), request
        assert driver.startswith(("ok\n", "error "))
    replies = {request: driver for request, _, driver in outcome["same_requests"]}
    assert "executor driver\n" in replies["program"]
    assert sum(reply.startswith("ok\n") for reply in replies.values()) > 15


def test_control_device__has_one_client_per_open_file(outcome: dict[str, Any]) -> None:
    expected = {"before": "", "empty": 0, "pieces": True, "unread": True, "other": True, "garbage": 500}
    assert outcome["device"] == expected


def test_devices__are_hosts_interfaces_without_offloads_and_queues(outcome: dict[str, Any]) -> None:
    for port, host in enumerate(outcome["hosts"].values(), 1):
        assert {"tso", "gso", "gro", "lro", "rx"}.isdisjoint(host["on"])
        assert host["driver"][0] == "driver: bufferscope_switch"
        assert f"bus-info: port {port}" in host["driver"]
        link = host["link"]
        assert (link["qdisc"], link["operstate"], link["mtu"], link["max_mtu"]) == ("noqueue", "UP", 9000, 9000)
        assert (link["gso_max_segs"], link["address"]) == (1, f"02:bf:00:00:00:0{port}")


def test_rtt__is_the_configured_one_to_the_ns(outcome: dict[str, Any]) -> None:
    ways = ((1_000_000_000, 2_000_000), (10_000_000_000, 1_000_000))  # there and back
    for payload, rtt_ns in zip((56, 8000, 56, 1000), outcome["ping"], strict=True):
        bits = wire_bits(HEADERS_BYTES + payload)
        assert rtt_ns == sum(delay_ns + bits * 10**9 // rate_bps for rate_bps, delay_ns in ways)


def test_burst__packets_above_the_threshold_are_dropped_and_reported(outcome: dict[str, Any]) -> None:
    step_ns = wire_bits(1000) * 10  # at 100 Mb/s
    cards = sorted(outcome["burst"]["cards"], key=lambda card: card["enqueue_switch_ns"])
    assert [card["depth_packets"] for card in cards] == [*range(10), *[10] * 20]
    assert [bool(card["flags"] & DROPPED) for card in cards] == [False] * 10 + [True] * 20
    first_ns = cards[0]["enqueue_switch_ns"]
    departures = [card["enqueue_switch_ns"] + card["sojourn_ns"] for card in cards[:10]]
    assert departures == [first_ns + step_ns * (number + 1) for number in range(10)]
    assert [number for number, _ in outcome["burst"]["received"]] == list(range(10))
    received = [ns for _, ns in outcome["burst"]["received"]]
    assert received == [START_REALTIME_NS + departure_ns + 1_000_000 for departure_ns in departures]
    # A postcard arrives in the ns in which its packet departs or is dropped.
    assert [card["rx_ns"] - card["enqueue_switch_ns"] - card["sojourn_ns"] for card in cards] == [
        START_REALTIME_NS
    ] * 30


def test_overload__a_full_pool_refuses_frames_and_says_so(outcome: dict[str, Any]) -> None:
    room = PACKETS - PACKETS // CLONE_SHARE
    assert outcome["overload"] == {"refused": 1000 - room, "sent": room, "dropped": 1000 - room}


def test_down__a_frame_that_nobody_takes_is_counted(outcome: dict[str, Any]) -> None:
    down = outcome["down"]
    assert (down["departed"] - down["tx_frames"], down["tx_errors"], down["tx_last_errno"]) == (1, 1, 100)


def test_lateness__is_zero_for_every_frame(outcome: dict[str, Any]) -> None:
    stats = outcome["stats"]
    for port in (1, 2, 3):
        assert outcome["lateness"][str(port)] == [[0, stats[f"departures.{port}"]]]
        assert stats[f"departures.{port}"] == stats[f"port.{port}.tx_frames"] > 5
        assert stats[f"gap_error_max_ns.{port}"] == 0
        assert stats[f"real_span_ns.{port}"] == stats[f"virtual_span_ns.{port}"] > 0
    assert stats["gap_frames.2"] > 500
    assert (stats["loop_gap_max_ns"], stats["arrivals_clamped"], stats["clock_steps"]) == (0, 0, 0)


def test_counters__every_frame_is_accounted_for(outcome: dict[str, Any]) -> None:
    stats = outcome["stats"]

    def total(name: str) -> int:
        return sum(stats[f"port.{port}.{name}"] for port in (1, 2, 3))

    lost = total("oversize") + total("ingress_drops") + total("queue_drops") + total("egress_drops")
    assert total("rx_frames") + stats["clones"] == lost + stats["pool_exhausted"] + total("departed")
    assert total("departed") == total("tx_frames") + total("tx_errors")
    assert (stats["packets_used"], stats["clone_drops"], stats["port_unknown_drops"]) == (0, 0, 0)
    for port in (1, 2, 3):
        link = outcome["links"][str(port)]
        assert link["tx"]["packets"] + link["tx"]["dropped"] == stats[f"port.{port}.rx_frames"]
        assert (link["rx"]["packets"], link["rx"]["bytes"]) == tuple(
            stats[f"port.{port}.tx_{n}"] for n in ("frames", "bytes")
        )
        assert link["rx"]["dropped"] == stats[f"port.{port}.tx_errors"]


@pytest.mark.parametrize(
    ("parameters", "line"),
    [
        (["ports=3", "packets=many"], "packets=many: must be a whole number"),
        (["ports=3", "packets=9000000", "frame_bytes=9018"], "9000000 packets: out of memory"),
        (["ports=3", "numbers=7,3,7"], "numbers=7,3,7: has 7 twice"),
        (["ports=3", "numbers=7,3"], "numbers=: must be a whole number"),
        (["ports=3", "queue=9"], "queue=9: is no port of the switch"),
        ([], None),
    ],
)
def test_boot__without_a_switch_goes_on(tmp_path: Path, parameters: list[str], line: str | None) -> None:
    outcome, console = lab(tmp_path, *parameters)
    assert outcome["errno"] == "ENODEV"
    assert "no switch answers at /dev/bufferscope-switch: No such device" in outcome["says"]
    assert "bsw" not in outcome["links"]
    said = [text for text in console.splitlines() if re.match(r"(\[ *[\d.]+\] )?bufferscope_switch: ", text)]
    assert len(said) == (line is not None)
    assert not line or line in said[0]
