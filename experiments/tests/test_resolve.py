# SPDX-License-Identifier: MIT
"""From given parameters to SI units: defaults, rounding, rules between keys; and every shipped spec."""

import contextlib
from functools import partial
from pathlib import Path

import pytest

from experiments import run_plan
from experiments.host import Host
from experiments.resolve import resolve
from experiments.resolved import Resolved
from experiments.spec import KEYS, load_yaml
from experiments.tests import resolving
from experiments.traffic_groups import Group
from lib.errors import SpecError

HOST = Host(("bbr", "cubic", "reno"), netem=False)
SPECS = sorted((Path(__file__).parents[1] / "specs").glob("*.yaml"))  # sweeps are in directories of their own

resolved, problems = partial(resolving.resolved, HOST), partial(resolving.problems, HOST)


def test_resolve__defaults_are_those_of_the_documentation() -> None:
    spec = resolved()
    assert (spec.rate_bps, spec.rtt_ns, spec.mtu_bytes, spec.wire_bytes) == (200_000_000, 10_000_000, 1500, 1538)
    assert (spec.bdp_packets, spec.buffer_packets, spec.buffer_given) == (163, 163, "1bdp")
    assert (spec.duration_ns, spec.warmup_ns, spec.traffic_ns) == (10 * 10**9, 2 * 10**9, 12 * 10**9)
    assert spec.generator == "iperf3"
    assert (spec.mode, spec.delay, spec.reps, spec.target) == ("tail-drop", "switch", 1, "soft")
    assert (spec.groups, spec.name) == ((Group("cubic", 16),), "cubic16")


@pytest.mark.parametrize(
    ("given", "packets"),
    [("1bdp", 163), ("0.25bdp", 41), ("0.5bdp", 81), ("1.5bdp", 244), ("0.0001bdp", 1), ("166p", 166), ("6.152ms", 100),
     ("1us", 1)],
)  # fmt: skip
def test_resolve__buffers_round_to_the_nearest_packet_and_at_least_one(given: str, packets: int) -> None:
    spec = resolved(buf=given)
    assert (spec.buffer_packets, spec.threshold_bytes, spec.buffer_given) == (packets, None, given)


def test_resolve__a_buffer_in_bytes_stays_in_bytes() -> None:
    spec = resolved(buf="300kB")
    assert (spec.threshold_bytes, spec.buffer_packets) == (300_000, 198)


def test_resolve__traffic_of_iperf3_takes_whole_seconds_rounded_up() -> None:
    assert resolved(duration="1.2s", warmup="0.9s").traffic_ns == 3 * 10**9


def test_resolve__traffic_of_epoll_takes_what_was_asked_for() -> None:
    spec = resolved(generator="epoll", cc="cubic:300,bbr:2", rtt="1.2ms", duration="100rtt", start_spread="10rtt")
    assert (spec.traffic_ns, spec.start_spread_ns, spec.setup_ns) == (310 * 1_200_000, 12_000_000, 0)
    assert [(p.cc, p.flows, p.server_port) for p in run_plan.flow_processes(spec, 1)] == [
        ("cubic", 300, 5201),
        ("bbr", 2, 5202),
    ]
    assert spec.connect_ns == 302 * 100_000 + 3 * 1_200_000
    assert resolved(generator="epoll", rate="64kbit").connect_interval_ns == 2 * 188 * 8 * 10**9 // 64_000
    assert problems(start_spread="1ms").keys() == {"START_SPREAD"}
    assert resolved(generator="epoll", rtt="1.2ms").start_spread_ns == 1_200_000
    assert resolved(generator="epoll", start_spread="0ns").start_spread_ns == 0
    assert resolved(generator="iperf3", start_spread="0ns").start_spread_ns == 0
    assert resolved(clock="virtual").generator == "epoll"
    assert problems(clock="virtual", generator="iperf3").keys() == {"GENERATOR"}  # iperf3 spins for ever there


def test_trace_ring__holds_what_comes_between_two_looks() -> None:
    assert run_plan.sizes(resolved()).trace_ring_mib == 16
    assert run_plan.sizes(resolved(rate="10gbit", mtu="576")).trace_ring_mib == 64
    assert run_plan.sizes(resolved(rate="100gbit", rtt="100us", mtu="9000")).trace_ring_mib == 32


def test_resolve__open_loop_traffic_has_no_congestion_control() -> None:
    spec = resolved(traffic="open-loop", load="0.95", sizes="bimodal", flows=4, duration="1s", warmup="1ms")
    assert (spec.groups, spec.generator, spec.flows, spec.traffic_ns) == ((), None, 4, 1_001_000_000)
    assert (spec.load, spec.sizes, spec.arrivals, spec.name) == (0.95, "bimodal", "poisson", "open-loop-bimodal")
    assert [(p.cc, p.flows, p.server_port) for p in run_plan.flow_processes(spec, 1)] == [(None, 4, 5201)]
    assert (spec.connect_ns, spec.setup_ns, spec.packets) == (0, 0, 200_200_000 // (8 * 811))
    assert Resolved.from_dict(spec.to_dict()) == spec
    options = run_plan.plan_run(spec, 2).traffic.options
    assert (options["load_ppm"], options["seed"], options["server_port"]) == (950_000, (1 << 16) + 2, 5201)
    defaults = resolved(traffic="open-loop")
    assert (defaults.load, defaults.sizes, defaults.arrivals, defaults.flows) == (0.8, "fixed", "poisson", 16)


def test_resolve__periodic_datagrams_reach_the_program_or_are_refused_in_one_line() -> None:
    spec = resolved(traffic="open-loop", arrivals="jittered:64p:2.5", flows=8, load="0.5")
    assert Resolved.from_dict(spec.to_dict()) == spec
    assert run_plan.plan_run(spec, 1).traffic.options["arrivals"] == "jittered:64p:2.5"
    assert resolved(traffic="open-loop", arrivals="periodic:4p:20").arrivals == "periodic:4p:20"  # 16 flows / 0.8
    for key, said, given in (
        ("ARRIVALS", "allowed: poisson, cbr, periodic, jittered, periodic:64p:2.5", {"arrivals": "periodic:64"}),
        ("ARRIVALS", "at most FLOWS / LOAD = 20 packet times", {"arrivals": "periodic:4p:20.1"}),
        ("SIZES", "allowed with ARRIVALS=periodic: fixed", {"arrivals": "periodic", "sizes": "bursts:14p"}),
        (
            "ARRIVALS",
            "allowed with TRAFFIC=finite: poisson, cbr",
            {"arrivals": "periodic", "traffic": "finite", "cc": "reno"},
        ),
    ):
        found = problems(**{"traffic": "open-loop", **given})
        assert found.keys() == {key}, given
        assert said in str(found[key]), given
        assert "\n" not in str(found[key])


def test_resolve__keys_of_one_kind_of_traffic_are_refused_with_another() -> None:
    assert problems(traffic="open-loop", cc="cubic", rtt_spread="1ms", generator="epoll").keys() == {
        "CC", "RTT_SPREAD", "GENERATOR"}  # fmt: skip
    assert problems(load="0.8", sizes="fixed", arrivals="cbr").keys() == {"LOAD", "SIZES", "ARRIVALS"}
    assert problems(traffic="openloop", cc="cubic", load="0.8").keys() == {"TRAFFIC"}


def test_resolve__several_processes_get_time_to_start() -> None:
    assert resolved(flows=128).setup_ns == 0
    mix = resolved(cc="cubic:8,bbr:8")
    assert mix.setup_ns == 10**9 + 2 * 8 * (10_000_000 + 163 * 1538 * 8 * 5)
    assert mix.traffic_ns == 14 * 10**9
    assert resolved(flows=129).traffic_ns == 19 * 10**9


def test_resolve__ecn_marks_at_half_the_buffer_unless_told() -> None:
    assert resolved(mode="ecn").ecn_threshold_packets == 81
    assert resolved(mode="ecn", ecn_threshold="20p").ecn_threshold_packets == 20
    spec = resolved(mode="ecn", buf="300kB", ecn_threshold="30kB")
    assert (spec.ecn_threshold_bytes, spec.threshold_bytes) == (30_000, 300_000)


def test_resolve__flows_ask_for_ecn_where_the_mode_marks() -> None:
    modes = {"tail-drop": False, "ecn": True, "egress-threshold": False, "egress-ecn": True}
    assert {mode: resolved(mode=mode).with_ecn for mode in modes} == modes
    assert not resolved(mode="egress-ecn", ecn="off").with_ecn
    assert resolved(mode="egress-ecn", ecn="on").ecn is None  # the mode implies it
    assert problems(mode="egress-ecn", ecn_threshold="20p").keys() == {"ECN_THRESHOLD"}


def test_resolve__rules_between_keys() -> None:
    assert problems(mode="ecn", ecn_threshold="164p").keys() == {"ECN_THRESHOLD"}
    assert problems(mode="ecn", ecn_threshold="30kB").keys() == {"ECN_THRESHOLD"}
    assert problems(ecn_threshold="20p").keys() == {"ECN_THRESHOLD"}
    assert problems(cc="cubic:8,bbr:8", flows=15).keys() == {"FLOWS"}
    assert problems(cc="cubic:9000,bbr:9000").keys() == {"CC"}
    assert problems(rtt="1s", duration="9s").keys() == {"DURATION"}
    assert problems(duration="82799s", warmup="2s").keys() == {"DURATION"}
    assert problems(rate="100gbit", rtt="1s").keys() == {"BUF"}


def test_resolve__a_wrong_key_does_not_make_others_wrong() -> None:
    assert problems(rtt="ten", duration="1ms").keys() == {"RTT"}
    assert problems(cc="", flows=15).keys() == {"CC"}
    assert problems(mode="enc", ecn_threshold="20p").keys() == {"MODE"}


def test_resolve__a_newer_version_is_the_only_error() -> None:
    assert problems(spec_version=2, flavour="new", rtt="ten").keys() == {"SPEC_VERSION"}


def test_processes__never_more_flows_than_iperf3_carries_and_no_port_twice() -> None:
    processes = run_plan.flow_processes(resolved(cc="cubic:300,bbr:128,reno:1"), 1)
    assert [(p.cc, p.flows) for p in processes] == [
        ("cubic", 128), ("cubic", 128), ("cubic", 44), ("bbr", 128), ("reno", 1)]  # fmt: skip
    assert [p.server_port for p in processes] == list(range(5201, 5206))
    ports = [port for p in processes for port in range(p.first_client_port, p.first_client_port + p.flows)]
    assert len(set(ports)) == 429
    assert min(ports) >= 30_000
    assert max(ports) < 32_768


def test_extra_delays__spread_evenly_and_differently_for_each_seed_and_repetition() -> None:
    spec = resolved(rtt_spread="3ms", flows=4)
    delays = [run_plan.extra_delays_ns(spec, repetition) for repetition in range(1, 9)]
    assert all(sorted(some) == [0, 1_000_000, 2_000_000, 3_000_000] for some in delays)
    assert len({tuple(some) for some in delays}) > 1
    assert delays[0] == run_plan.extra_delays_ns(resolved(rtt_spread="3ms", flows=4), 1)
    assert run_plan.extra_delays_ns(resolved(rtt_spread="3ms", flows=1), 1) == [0]


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_shipped_spec__resolves_and_is_named_as_its_file(path: Path) -> None:
    content = load_yaml(path)
    assert set(content) <= set(KEYS)
    assert content["spec_version"] == "1"
    assert resolve(content, HOST).name == path.stem


def test_shipped_specs__default_is_the_default() -> None:
    content = load_yaml(SPECS[0].parent / "default.yaml")
    assert resolve(content, HOST) == resolve({"name": "default"}, HOST)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not a mapping"), ("- cc", "not a mapping"),
        ("cc: [", "is not YAML"), ("rtt: 1ms\nRTT: 2ms", "given twice"),
        ("[1]: 2", "a key that is not text"), ("cc: !!python/object:os.system x", "remove"),
        ("\x00", "is not YAML"),
        ("rtt: !!timestamp foo", "has no tags; remove !!timestamp in line 1"),
        ("flows: !!bool foo", "remove !!bool"), ("!!int cc: x", "remove"),
        ("cc: &a [*a]", "no aliases; replace \\*a in line 1"),
        ("--- !!set {cc}", "remove !!set"), ("cc: !mine x", "remove !mine"), ("x", "not a mapping"),
        ("rtt: 1ms\n---\nrtt: 2ms", "is not YAML"), ("{[a, b]: 1}", "a key that is not text"),
    ],
)  # fmt: skip
def test_load_yaml__refuses_what_is_no_spec(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(text)
    with pytest.raises(SpecError, match=says):
        load_yaml(path)


@pytest.mark.parametrize(
    "value", ["010", "0x10", "1:30", "0b1", "1_0", "1e1", "10.0", "true", "yes", "null", "~", "+7"]
)
def test_load_yaml__a_value_means_what_it_means_on_the_command_line(tmp_path: Path, value: str) -> None:
    def outcome(given: dict[str, object]) -> object:
        try:
            return resolve(given, HOST).flows
        except SpecError as failure:
            return failure.lines()

    path = tmp_path / "spec.yaml"
    path.write_text(f"flows: {value}\n")
    assert outcome(load_yaml(path)) == outcome({"flows": value})
    assert load_yaml(path) == {"flows": value}


def test_load_yaml__a_value_that_is_left_out_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text("".join(f"{key}:\n" for key in KEYS if key != "spec_version"))
    with pytest.raises(SpecError) as failure:
        resolve(load_yaml(path), HOST)
    assert {error.key.lower() for error in failure.value.errors} == set(KEYS) - {"spec_version"}


def test_load_yaml__an_oversized_or_binary_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_bytes(b"#" * (1 << 20) + b"\n#")
    with pytest.raises(SpecError, match="larger than"):
        load_yaml(path)
    path.write_bytes(b"\xff\xfe\x00\xd8rtt")
    with pytest.raises(SpecError, match="spec file is not"):
        load_yaml(path)


def test_values__of_any_yaml_type_are_refused_without_a_crash() -> None:
    values: tuple[object, ...] = ([], {}, {"a": []}, True, None, 1.5, -1, 10**40, "x" * 1000, "\n", "\x1b[31m")
    for key in KEYS:
        for value in values:
            with contextlib.suppress(SpecError):
                resolve({key: value}, HOST)


def test_errors__show_no_control_characters() -> None:
    with pytest.raises(SpecError) as failure:
        resolve({"cc": "\x1b[31m", "rtt": "\n", "name": "a\nb", "\x1b": 1}, HOST)
    assert all(line.isprintable() for line in failure.value.lines())
