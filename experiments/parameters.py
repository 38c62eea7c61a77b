# SPDX-License-Identifier: MIT
"""Every parameter of an experiment in one line, with the default that is in force."""

from __future__ import annotations

from controlplane.policy import WATCHED_MODES
from controlplane.targets import RUN_TARGETS
from experiments import offloads, pacing, programs, tcp_options
from experiments.spec import GENERATORS, Spec
from experiments.transfers import TRAFFIC
from hosts.traffic.open_loop import ARRIVALS, ARRIVALS_FORM, BURSTS_FORM, SIZES
from hosts.traffic.transfers import PATH_OF, THINK_FROM
from lib.words import PATHS, Key

_MEANINGS = {
    "cc": "congestion control of the flows (make cc lists them), or a file of your own, ./mycc.c; or, for long flows "
    "only, a mix with the number of flows of each: cubic:8,bbr:8",
    "cc_parameters": "with CLOCK=virtual: parameters of congestion controls (make cc lists them), "
    "cubic.beta=800,dctcp.dctcp_shift_g=5",
    "flows": "number of long flows; with open-loop traffic, of 5-tuples (default 16; 1 for open-loop traffic beside "
    "other traffic; if CC is a mix, the sum of its numbers)",
    "rate": "rate of the bottleneck link: kbit, mbit, gbit, or K, M, G",
    "rtt": "round-trip time without queueing: us, ms, s",
    "rtt_spread": "flows get 0 to this much more RTT, in even steps that SEED deals to the flows (16 for finite flows)",
    "rtts": "the RTT of each class of flows, 30ms,50ms,120ms, instead of RTT and RTT_SPREAD; SEED deals the flows to "
    "the classes evenly. The least RTT is the unit of BUF, DURATION and WARMUP",
    "ack_delay": "propagation delay of the ACK direction; the data direction has the rest of RTT: 0ns to RTT "
    "(default half of RTT each)",
    "access": "rate of each long flow's own link before the bottleneck, data direction: 5mbit; with ACCESS_LINKS, the "
    "rate of each link that flows share (default: no such link, a flow sends as fast as its host can)",
    "access_links": "number of links before the bottleneck; each has the rate ACCESS, and several flows share it",
    "servers": "number of paths of finite flows: path k has link k mod ACCESS_LINKS and RTT k mod the number of RTTs "
    "(default: a path for each pair of link and RTT)",
    "buf": "buffer of the bottleneck: 1bdp, 166p (packets), 300kB (frames of MTU + 14 bytes; k is 1000), 250us",
    "mtu": "largest IP packet in bytes, 576 to 9000",
    "duration": "measured time, after WARMUP: seconds (20s) or RTTs (1000rtt)",
    "warmup": "traffic before the measurement, which no result counts: s or rtt",
    "mode": "what a full queue does: tail-drop, ecn (marks from ECN_THRESHOLD, drops at BUF), egress-threshold (drops "
    "at departure), egress-ecn (at departure, marks if BUF or more packets stay behind; drops packets that are not "
    "ECN-capable)",
    "drop_cost": "with MODE=egress-threshold or egress-ecn: share of its transmission time that a dropped packet takes "
    "from the link, 0 to 1, at most three decimals (default 0; a packet dropped on arrival takes none)",
    "ecn_threshold": "with MODE=ecn: queue length from which packets are marked (default half of BUF)",
    "ecn": "whether TCP asks for ECN: on, off (default on with MODE=ecn and egress-ecn only)",
    "traffic": "long (TCP flows that last), finite (TCP flows that come at drawn times), closed-loop (users that send "
    "a flow, think, send again), program (SERVER and CLIENT), open-loop (UDP, sent at drawn times), or several: "
    "long,finite",
    "groups": "only in a file: a list of groups, each with traffic, cc, flows, rtt, window, load, ... of its own "
    "(docs/traffic.md)",
    "generator": "what sends: iperf3 (whole seconds; default for long flows alone with CLOCK=real), or epoll (our own, "
    "exact to the ns; else the default)",
    "start_spread": "with GENERATOR=epoll: long flows begin within this time, each at a time that SEED draws: s or rtt "
    "(default 1rtt)",
    "load": "of finite or open-loop traffic: share of RATE that is offered, in bits on the wire (default 0.8)",
    "sizes": "of finite flows: fixed:14p, exponential:80kB, pareto:80kB:1.5 (mean, shape; the default), "
    "lognormal:80kB:2, bimodal:2p:62p:0.1, file:PATH (lines of bytes and cumulative probability); of open-loop "
    "packets: fixed (MTU; the default), exponential, bimodal, bursts:14p (packets of the MTU, in the "
    "slow-start bursts of a flow of 14 packets: 2, 4, 8)",
    "arrivals": "of finite or open-loop traffic: poisson or cbr (default poisson); of open-loop packets: periodic "
    "(the packets of each flow are evenly spaced; SEED draws the flow's phase), periodic:64p:2.5 (64 packets a round, "
    "2.5 packet times apart), jittered:64p (evenly spaced, with a new phase each round)",
    "finite_cc": "congestion control of finite flows (default: CC)",
    "users": "with TRAFFIC=closed-loop: number of users (default 100)",
    "think": "with TRAFFIC=closed-loop: think time, exponential:1s (the default), fixed:200ms, pareto:1s:1.5, ...",
    "think_from": "with TRAFFIC=closed-loop: a user thinks from the end of the previous flow (end, the default), or "
    "from its start (start)",
    "path_of": "with TRAFFIC=closed-loop: all flows of a user have one path (user, the default), or each flow draws "
    "one (transfer)",
    "delay": "which element adds the RTT: switch (the soft switch itself, or a delay line behind a switch that cannot "
    "delay), or tc (netem on the receiver); default switch, on a testbed with another switch tc",
    "reps": "repetitions, one after the other (CLOCK=virtual: as many at once as there are free processors)",
    "seed": "decides every random draw: delays, ports, paths, starts, arrivals, sizes, think times; each repetition "
    "draws anew",
    "name": "names the directory in results/ (default: from the traffic, such as cubic16)",
    "target": "what runs the P4 program: soft, bmv2 (simple_switch), tofino (on a testbed); see docs/target-*.md",
    "clock": "real, on this machine's own kernel or a testbed's machines (the default for root, on a testbed and for "
    "other targets than soft), or virtual (docs/virtual-time.md)",
    **tcp_options.MEANINGS,
    **offloads.MEANINGS,
    **pacing.MEANINGS,
    **programs.MEANINGS,
    "switch": "how the soft switch runs: process (default with CLOCK=real), or driver (a network driver of the "
    "virtual-time kernel; default with CLOCK=virtual); ns3: switch, hosts and TCP simulated by ns-3, a second opinion "
    "(simulator/README.md)",
}
_VALUES = {
    "cc": ("cubic", "reno", "bbr", "dctcp"),
    "mode": WATCHED_MODES,
    "traffic": TRAFFIC,
    "generator": GENERATORS,
    "sizes": (*SIZES, BURSTS_FORM),
    "arrivals": (*ARRIVALS, ARRIVALS_FORM),
    "ecn": ("off", "on"),
    "think_from": THINK_FROM,
    "path_of": PATH_OF,
    "delay": ("switch", "tc"),
    "target": RUN_TARGETS,
    "clock": ("real", "virtual"),
    **tcp_options.VALUES,
    **offloads.VALUES,
    **pacing.VALUES,
    **programs.VALUES,
    "switch": ("process", "driver", "ns3"),
}
KEYS = {
    name: Key(meaning, str(Spec.model_fields[name].default or ""), tuple(_VALUES.get(name, ())))
    for name, meaning in _MEANINGS.items()
} | {
    "spec": Key(
        "a file with these keys, such as experiments/specs/default.yaml; the command line overrides it. Or a stored "
        "run or repetition, which is repeated as it was: results/latest, results/latest/rep-1",
        values=PATHS,
    ),
    "results": Key("the directory that run directories are made in", "results", PATHS),
    "inventory": Key("machines of a testbed (TARGET=tofino has a default: ansible/inventories/testbed)", values=PATHS),
}
