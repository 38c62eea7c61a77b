# SPDX-License-Identifier: MIT
"""From given parameters to SI units: defaults, rounding, rules between keys; spec files; and every shipped spec. The
messages for wrong values are in golden/errors.txt.
"""

import contextlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.machine.host import OF_TESTBED, Host
from experiments.plan.sizes import sizes
from experiments.spec import demand
from experiments.spec.keys import KEYS, load_yaml
from experiments.spec.resolve import resolve
from experiments.spec.rules import MOST_IPERF3_FLOWS
from experiments.tests.resolving import HOST, problems, resolved
from hosts.traffic import draws
from hosts.tune.tcp_options import LINUX, PAPER
from lib.errors import SpecError
from lib.frames import WIRE_EXTRA_BYTES
from model.experiment import Experiment, Jitter, Loss, Offloads
from model.groups import Long
from runs import run_table
from runs.environment_file import RunEnvironment
from virtual.kernel.config import OF_LINUX

SPECS = sorted((Path(__file__).parents[1] / "specs").glob("*.yaml"))  # sweeps are in directories of their own
MS, S = 1_000_000, 1_000_000_000
WITHOUT_SACK = {"sack": "off", "rack": "off", "tlp": "off"}
NS3 = {"switch": "ns3", "cc": "reno"}
OF_NS3 = {"rack": "off", "tlp": "off", "frto": "off", "comp_sack_nr": 0}
BMV2 = {"target": "bmv2", "clock": "real", "rate": "50mbit", "rtt": "20ms", "flows": 4}
CASES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"clock": "real"}, {
        "rate_bps": 200_000_000, "rtt_ns": 10 * MS, "mtu_bytes": 1500, "wire_bytes": 1538, "bdp_packets": 163,
        "buffer_packets": 163, "buffer_given": "1bdp", "duration_ns": 10 * S, "warmup_ns": 2 * S, "traffic_ns": 12 * S,
        "generator": "iperf3", "switch": "process", "mode": "tail-drop", "delay": "switch", "reps": 1, "target": "soft",
        "groups": (Long(cc="cubic", flows=16, rtt_ns=10 * MS, rtt_spread_ns=0),), "name": "cubic16", "setup_ns": 0,
        "rate_pps": None, "pacing": None, "tcp": None, "unsent_bytes": None,
    }),
    ({}, {"clock": "virtual", "generator": "epoll", "switch": "driver", "start_spread_ns": 10 * MS, "offloads": None}),
    *(
        ({"buf": given}, {"buffer_packets": packets, "threshold_bytes": None, "buffer_given": given})
        for given, packets in (("1bdp", 163), ("0.25bdp", 41), ("0.5bdp", 81), ("1.5bdp", 244), ("0.0001bdp", 1),
                               ("166p", 166), ("6.152ms", 100), ("1us", 1))
    ),
    ({"loss": "0.1%", "jitter": "normal:2ms"},
     {"loss": Loss(in_good=0.001), "jitter": Jitter(most_ns=2 * MS, distribution="normal")}),
    ({"loss": "bursts:0.001:0.2", "jitter": "0ms"}, {"loss": Loss(to_bad=0.001, to_good=0.2), "jitter": None}),
    ({"loss": "0"}, {"loss": None, "connect_ns": 16 * 100_000 + 30 * MS}),
    ({"rate": "200mbit,6s:50mbit,9s:0mbit,9.5s:100mbit", "duration": "10s"},
     {"rate_bps": 200_000_000, "buffer_packets": 163, "peak_bps": 200_000_000, "mean_bps": 133_305_578,
      "rate_steps": ((0, 200_000_000), (6 * S, 50_000_000), (9 * S, 0), (9_500 * MS, 100_000_000))}),
    ({"rate": "50mbit,6s:200mbit", "bdp_of": "100mbit"},
     {"bdp_packets": 81, "buffer_packets": 81, "most_bdp_packets": 163}),
    ({"buf": "300kB"}, {"threshold_bytes": 300_000, "buffer_packets": 198}),
    ({"clock": "real", "duration": "1.2s", "warmup": "0.9s"}, {"traffic_ns": 3 * S}),  # iperf3: whole seconds
    ({"cc": "cubic:300,bbr:2", "rtt": "1.2ms", "duration": "100rtt", "start_spread": "10rtt"},
     {"traffic_ns": 310 * 1_200_000, "start_spread_ns": 12 * MS, "setup_ns": 0,
      "connect_ns": 302 * 100_000 + 3 * 1_200_000}),
    ({"rate": "64kbit"}, {"connect_interval_ns": 2 * 188 * 8 * S // 64_000}),
    ({"start_spread": "0ns"}, {"start_spread_ns": 0}),
    ({"clock": "real", "start_spread": "0ns"}, {"start_spread_ns": 0}),
    ({"clock": "real", "flows": 128}, {"setup_ns": 0}),
    ({"clock": "real", "flows": 129}, {"traffic_ns": 19 * S}),  # several processes get time to start
    ({"clock": "real", "cc": "cubic:8,bbr:8"},
     {"setup_ns": S + 2 * 8 * (10 * MS + 163 * 1538 * 8 * 5), "traffic_ns": 14 * S}),
    ({"traffic": "open-loop", "load": "0.95", "sizes": "bimodal", "flows": 4, "duration": "1s", "warmup": "1ms"},
     {"long": (), "generator": None, "flows": 4, "traffic_ns": 1_001 * MS, "load": 0.95, "sizes": "bimodal",
      "arrivals": "poisson", "name": "open-loop-bimodal", "connect_ns": 0, "data_packets": 200_200_000 // (8 * 811)}),
    ({"traffic": "open-loop"}, {"load": 0.8, "sizes": "fixed", "arrivals": "poisson", "flows": 16}),
    ({"traffic": "open-loop", "arrivals": "periodic:4p:20"}, {"arrivals": "periodic:4p:20"}),  # 16 flows / 0.8
    ({"traffic": "open-loop", "sizes": "bursts:14p"},
     {"name": "open-loop-bursts-14p", "data_packets": demand.data_packets(resolved(traffic="open-loop"))}),
    ({"traffic": "open-loop,long", "cc": "reno", "flows": "3", "load": "0.5", "arrivals": "cbr"},
     {"flows": 4, "open_loop": None, "name": "reno3-open-loop-fixed"}),
    ({"mode": "ecn"}, {"ecn_threshold_packets": 81, "with_ecn": True, "ecn": None}),
    ({"mode": "ecn", "ecn_threshold": "20p", "ecn": "off"}, {"ecn_threshold_packets": 20, "with_ecn": False}),
    ({"mode": "ecn", "buf": "300kB", "ecn_threshold": "30kB"}, {"ecn_threshold_bytes": 30_000}),
    ({"mode": "egress-threshold"}, {"with_ecn": False}),
    ({"mode": "egress-ecn", "ecn": "on"}, {"with_ecn": True, "ecn": None}),  # the mode implies it
    ({"ecn": "on"}, {"with_ecn": True}),
    ({"ack_delay": "10ms"}, {"least_back_ns": 10 * MS}),
    ({"rtts": "50ms,20ms,120ms"}, {"rtt_ns": 20 * MS, "rtt_spread_ns": 100 * MS}),
    ({"clock": "real", "rate": "20mbit,1s:10mbit"}, {"generator": "epoll", "rate_bps": 20_000_000}),
    ({"access": "1gbit"}, {"access_bps": 10**9}),  # faster than the bottleneck
    ({"clock": "real", "target": "tofino", "offloads": "on"}, {"offloads": Offloads()}),
    ({"offloads": "on"}, {"offloads": Offloads(nic_rate_bps=10**10, coalesce_us=20)}),
    ({"offloads": "on", "rate": "10gbit"}, {"offloads": Offloads(nic_rate_bps=4 * 10**10, coalesce_us=20)}),
    ({"offloads": "on", "nic_rate": "300mbit", "coalesce": "1ms"},
     {"offloads": Offloads(nic_rate_bps=3 * 10**8, coalesce_us=1000)}),
    ({"profile": "paper"}, {"tcp": PAPER}),
    ({name: value for name, value in PAPER.items() if value != LINUX[name] and name != "comp_sack_nr"},
     {"tcp": PAPER | {"comp_sack_nr": 44}}),  # comp_sack_nr has no meaning without SACK
    ({"profile": "paper", "sack": "on", "initcwnd": "4"}, {"tcp": PAPER | {"sack": "on", "initcwnd": 4}}),
    ({"comp_sack_slack": "0ns"}, {"tcp": LINUX | {"comp_sack_slack_ns": 0}}),
    ({"sack": "off"}, {"tcp": LINUX | WITHOUT_SACK}),
    ({**NS3, "profile": "paper"}, {"tcp": PAPER}),
    ({**NS3, "initcwnd": "4"}, {"tcp": LINUX | OF_NS3 | {"initcwnd": 4}}),
    ({**NS3, "initcwnd": "10", "acks": "delayed", "sack": "on"}, {"tcp": None}),
    ({**NS3, "pacing": "exact", "window": "32p"}, {"pacing": "exact", "window_packets": 32}),
    ({"traffic": "open-loop", "pacing": "off"}, {"pacing": None}),
    (BMV2, {"rate_pps": 4064}),  # 50e6 / (8 * 1538) = 4063.7
    (BMV2 | {"mtu": "9000"}, {"rate_pps": 692}),
    (BMV2 | {"clock": "virtual"}, {"switch": "process", "generator": "epoll"}),
    ({"flows": 4, "rate": "1435mbit", "rtt": "80ms", "buf": "1050pkt"},
     {"unsent_bytes": 2 * -(-(9330 + 1050) // 4) * 1500}),
    ({"flows": 1, "rate": "1435mbit"}, {"unsent_bytes": None}),
    ({"flows": 10_000, "rate": "1435mbit"}, {"unsent_bytes": 32 << 10}),
]  # fmt: skip


def test_resolve__values_are_in_si_units_and_survive_a_file() -> None:
    wrong = []
    for given, expected in CASES:
        spec = resolved(**given)
        assert Experiment.model_validate(json.loads(json.dumps(spec.dump()))) == spec, given
        both = (spec, spec.open_loop or spec.shared)
        found = {name: next((getattr(each, name) for each in both if hasattr(each, name)), None) for name in expected}
        found |= {name: getattr(demand, name)(spec) for name in expected if hasattr(demand, name)}
        wrong += [] if found == expected else [(given, found)]
    assert wrong == []


def test_resolve__values_that_are_the_default_are_not_in_the_spec() -> None:
    own = {"initcwnd": "10", "acks": "delayed", "sack": "on", "comp_sack_slack": "100us", "comp_sack_nr": "44"}
    same = {"offloads": "off", "pacing": "off", "profile": "linux", "ecn": "off", **own}
    plain = resolved().dump()
    assert resolved(**same).dump() == plain
    assert not {"offloads", "tcp", "congestion_sources"} & plain.keys()
    assert plain["groups"] == [{"cc": "cubic", "flows": 16, "rtt_ns": 10 * MS, "rtt_spread_ns": 0}]


REFUSED: list[tuple[dict[str, Any], set[str]]] = [
    # a wrong key does not make others wrong
    ({"rtt": "ten", "duration": "1ms"}, {"RTT"}),
    ({"cc": "", "flows": 15}, {"CC"}),
    ({"mode": "enc", "ecn_threshold": "20p"}, {"MODE"}),
    ({"traffic": "openloop", "cc": "cubic", "load": "0.8"}, {"TRAFFIC"}),
    ({"spec_version": 2, "flavour": "new", "rtt": "ten"}, {"SPEC_VERSION"}),
    # rules between keys
    ({"start_spread": "1ms", "clock": "real"}, {"START_SPREAD"}),
    ({"clock": "virtual", "generator": "iperf3"}, {"GENERATOR"}),
    ({"traffic": "open-loop", "cc": "cubic", "rtt_spread": "1ms", "generator": "epoll"},
     {"CC", "RTT_SPREAD", "GENERATOR"}),
    ({"load": "0.8", "sizes": "fixed", "arrivals": "cbr"}, {"LOAD", "SIZES", "ARRIVALS"}),
    ({"traffic": "open-loop", "arrivals": "periodic:4p:20.1"}, {"ARRIVALS"}),
    ({"traffic": "open-loop", "arrivals": "periodic", "sizes": "bursts:14p"}, {"SIZES"}),
    ({"traffic": "finite", "cc": "reno", "arrivals": "periodic"}, {"ARRIVALS"}),
    ({"mode": "ecn", "ecn_threshold": "164p"}, {"ECN_THRESHOLD"}),
    ({"mode": "ecn", "ecn_threshold": "30kB"}, {"ECN_THRESHOLD"}),
    ({"mode": "egress-ecn", "ecn_threshold": "20p"}, {"ECN_THRESHOLD"}),
    ({"cc": "cubic:9000,bbr:9000"}, {"CC"}),
    ({"rtt": "1s", "duration": "9s"}, {"DURATION"}),
    ({"duration": "82799s", "warmup": "2s"}, {"DURATION"}),
    ({"rate": "100gbit", "rtt": "1s"}, {"BUF"}),
    *(({key: f"{10**16}{unit}"}, {key.upper()}) for key, unit in (("buf", "bdp"), ("duration", "rtt"))),
    ({"clock": "real", "flows": MOST_IPERF3_FLOWS + 1}, {"FLOWS"}),
    ({"clock": "real", "cc": f"reno:{MOST_IPERF3_FLOWS},cubic:1"}, {"CC"}),
    ({"pacing": "linux", "window": "32p", "clock": "real", "target": "tofino"}, {"PACING", "WINDOW"}),
    ({"pacing": "linux", "window": "32p", "traffic": "open-loop"}, {"PACING", "WINDOW"}),
    *(({"window": window}, {"WINDOW"}) for window in ("2.5p", "2000000p")),
    ({"offloads": "on", "nic_rate": "200mbit"}, {"NIC_RATE"}),  # not faster than the bottleneck
    ({"offloads": "on", "switch": "process"}, {"OFFLOADS"}),
    ({"offloads": "on", "switch": "ns3"}, {"OFFLOADS"}),
    ({"nic_rate": "1gbit", "coalesce": "20us"}, {"NIC_RATE", "COALESCE"}),
    ({"offloads": "on", "clock": "real", "target": "tofino", "nic_rate": "40gbit"}, {"NIC_RATE"}),
    ({"sack": "off", "rack": "on", "comp_sack_nr": "3"}, {"RACK", "COMP_SACK_NR"}),
    ({"traffic": "open-loop", "profile": "paper", "initcwnd": "3"}, {"PROFILE", "INITCWND"}),
    ({**NS3, "rack": "on", "comp_sack_slack": "0ns", "comp_sack_nr": "7", "initcwnd": "4"},
     {"RACK", "COMP_SACK_SLACK", "COMP_SACK_NR"}),
    ({"access": "5mbit", "traffic": "long,finite", "load": "0.2", "sizes": "fixed:14p"}, {"ACCESS"}),
    ({"target": "tofino", "clock": "virtual"}, {"CLOCK"}),
    (BMV2 | {"clock": "virtual", "switch": "driver"}, {"SWITCH"}),
    (BMV2 | {"clock": "virtual", "delay": "tc"}, {"DELAY"}),
    # groups
    ({"groups": [{"rtt": "20ms", "ack_delay": "21ms"}, {"rtt": "40ms"}], "ack_delay": "41ms"},
     {"groups[0].ack_delay", "ACK_DELAY"}),
    ({"groups": [{"cc": "reno"}, {"traffic": "open-loop", "ack_delay": "1ms"}]}, {"groups[1].ack_delay"}),
    ({"delay": "tc", "groups": [{"cc": "reno", "ack_delay": "1ms"}]}, {"groups[0].ack_delay"}),
    ({"groups": [{"cc": "reno", "flows": "6000"}] * 2}, {"GROUPS"}),
    ({"groups": [{"cc": "reno", "flows": "600", "access": "5mbit", "access_links": "600"}] * 2}, {"GROUPS"}),
    ({"groups": [{"traffic": "finite", "rtt_spread": "5ms"}] * 63}, {"GROUPS"}),  # 1008 paths
    ({"groups": [{"cc": "reno", "pacing": "linux"}, {"cc": "reno", "pacing": "exact"}]}, {"GROUPS"}),
    ({"groups": [{"cc": "reno", "pacing": "fq"}, {"cc": "cubic"}]}, {"GROUPS"}),
    ({"groups": [{"traffic": "finite", "sizes": "fixed:1p"}] * 2, "rate": "10gbit", "duration": "60s"}, {"GROUPS"}),
]  # fmt: skip


def test_resolve__refuses_by_key() -> None:
    wrong = [(given, found, keys) for given, keys in REFUSED if (found := problems(**given).keys()) != keys]
    assert wrong == []


def test_resolve__refuses_what_a_host_or_a_testbed_lacks() -> None:
    server = {"traffic": "program", "server": "a {port}", "client": "b", "clock": "real"}
    here = Host(("cubic", "reno"), netem=True, for_programs=("reno",))
    for cc in ({"cc": "cubic"}, {}):  # the default is shown as a user would write it
        with pytest.raises(SpecError, match=r"^CC=cubic is cubic, which this machine keeps from programs"):
            resolve({**server, **cc}, here)
    assert "PROGRAM_CC" in problems(here, **server, cc="reno", program_cc="cubic")
    assert "CC" not in problems(here, **server, cc="reno")  # a and b are no programs
    finite = {"traffic": "finite", "cc": "reno", "rtt": "10ms"}
    assert problems(OF_TESTBED, **finite, rtt_spread="20ms").keys() == {"RTT_SPREAD"}
    assert resolved(OF_TESTBED, **finite).rtt_ns == 10 * MS


def test_resolve__load_counts_every_bit_of_a_connection(tmp_path: Path) -> None:
    spec = resolved(traffic="finite", cc="reno", rate="100mbit", load="0.8", sizes="fixed:14p", mtu="1500")
    (group,) = spec.finite
    assert group.sizes == {"name": "fixed", "value": 14 * 1448.0}
    # 14 segments of 1538 bytes; a SYN of 98 bytes, and three segments without data, each of 90 bytes
    assert group.mean_wire_bytes == pytest.approx(14 * 1538 + 98 + 3 * 90)
    assert group.offered_bps() == pytest.approx(0.8e8)
    assert (spec.long, spec.flows) == ((), 0)
    file = tmp_path / "sizes.txt"
    file.write_text("1000 0.5  # half are small\n\n100000 1\n")
    (group,) = resolved(traffic="finite", cc="reno", sizes=f"file:{file}").finite
    assert group.sizes == {"name": "empirical", "points": [[1000.0, 0.5], [100000.0, 1.0]]}
    assert group.mean_size_bytes == draws.distribution(group.sizes).mean == pytest.approx(500 + 50_500 / 2)


def test_pool__has_room_for_full_access_queues_up_to_its_bound() -> None:
    without, few, many = (resolved(flows=flows, **access) for flows, access in (
        (100, {}), (100, {"access": "5mbit"}), (10_000, {"access": "5mbit"})))  # fmt: skip
    room = (demand.pool_packets(few) - demand.pool_packets(without)) * 7 // 8  # clones have an eighth of the pool
    queued = demand.access_packets(few, few.shared.access_bps)
    assert room == pytest.approx(100 * queued, abs=2)
    assert queued * few.mtu_bytes > (demand.access_buffer_bytes(few) or 0) >= 128 << 10
    serial_ns = (1514 + WIRE_EXTRA_BYTES) * 8 * S // 5_000_000
    assert demand.longest_rtt_ns(few) == demand.longest_rtt_ns(without) + queued * serial_ns
    assert demand.pool_packets(many) > demand.pool_packets(few)
    assert demand.pool_bytes(many) <= demand.MAX_POOL_BYTES
    real = {"clock": "real", "generator": "epoll", "flows": 100}
    assert sizes(resolved(**real, access="5mbit")).tcp_mib > sizes(resolved(**real)).tcp_mib
    idle, alone, shared = (demand.longest_rtt_ns(resolved(flows=32, **access)) for access in (
        {}, {"access": "5mbit"}, {"access": "5mbit", "access_links": "1"}))  # fmt: skip
    assert shared - idle == pytest.approx(32 * (alone - idle), rel=1e-6)


def test_run_table__has_every_option_of_tcp() -> None:
    here = run_table.Place("a/rep-1", None, 1, 1, "all", None)
    for given, profile, values in (
        ({}, "linux", LINUX),
        ({"profile": "paper"}, "paper", PAPER),
        ({"initcwnd": "3"}, "mixed", LINUX | {"initcwnd": 3}),
        ({"traffic": "open-loop"}, None, dict.fromkeys(LINUX)),
        ({**NS3, "profile": "paper"}, "paper", PAPER),
        (NS3, None, dict.fromkeys(LINUX)),
    ):
        spec = resolved(**given).dump()  # type: ignore[arg-type]
        cells = run_table.row({"valid": True, "reasons": [], "utilization": {}, "spec": spec}, RunEnvironment(), here)
        assert {name: cells[name] for name in ("profile", *LINUX)} == {"profile": profile, **values}


def test_shipped_specs__resolve_and_are_named_as_their_files() -> None:
    linux = replace(HOST, congestion_controls=OF_LINUX)
    for path in SPECS:
        content = load_yaml(path)
        assert set(content) <= set(KEYS), path
        assert content["spec_version"] == "1", path
        assert resolve(content, linux).name == path.stem
    assert resolve(load_yaml(SPECS[0].parent / "default.yaml"), HOST) == resolve({"name": "default"}, HOST)


def test_load_yaml__refuses_what_is_no_spec(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    for text, says in (
        ("", "not a mapping"), ("- cc", "not a mapping"), ("x", "not a mapping"),
        ("cc: [", "is not YAML"), ("\x00", "is not YAML"), ("rtt: 1ms\n---\nrtt: 2ms", "is not YAML"),
        ("rtt: 1ms\nRTT: 2ms", "given twice"), ("[1]: 2", "a key that is not text"),
        ("{[a, b]: 1}", "a key that is not text"), ("cc: !!python/object:os.system x", "remove"),
        ("rtt: !!timestamp foo", "has no tags; remove !!timestamp in line 1"), ("!!int cc: x", "remove"),
        ("cc: &a [*a]", r"no aliases; replace \*a in line 1"), ("--- !!set {cc}", "remove !!set"),
        ("#" * (1 << 20) + "\n#", "larger than"), ("\xff\xfe\x00", "spec file is not"),
    ):  # fmt: skip
        path.write_bytes(text.encode("latin-1"))
        with pytest.raises(SpecError, match=says):
            load_yaml(path)


def test_load_yaml__a_value_means_what_it_means_on_the_command_line(tmp_path: Path) -> None:
    def outcome(given: dict[str, object]) -> object:
        try:
            return resolve(given, HOST).flows
        except SpecError as failure:
            return failure.lines()

    path = tmp_path / "spec.yaml"
    for value in ("010", "0x10", "1:30", "0b1", "1_0", "1e1", "10.0", "true", "yes", "null", "~", "+7"):
        path.write_text(f"flows: {value}\n")
        assert outcome(load_yaml(path)) == outcome({"flows": value}), value
        assert load_yaml(path) == {"flows": value}
    path.write_text("".join(f"{key}:\n" for key in KEYS if key != "spec_version"))
    with pytest.raises(SpecError) as failure:
        resolve(load_yaml(path), HOST)
    assert {error.key.lower() for error in failure.value.errors} == set(KEYS) - {"spec_version"}


def test_values__of_any_yaml_type_are_refused_without_a_crash() -> None:
    values: tuple[object, ...] = ([], {}, {"a": []}, True, None, 1.5, -1, 10**40, "x" * 1000, "\n", "\x1b[31m")
    for key in KEYS:
        for value in values:
            with contextlib.suppress(SpecError):
                resolve({key: value}, HOST)
    with pytest.raises(SpecError) as failure:
        resolve({"cc": "\x1b[31m", "rtt": "\n", "name": "a\nb", "\x1b": 1}, HOST)
    assert all(line.isprintable() for line in failure.value.lines())
