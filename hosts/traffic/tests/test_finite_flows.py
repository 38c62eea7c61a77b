# SPDX-License-Identifier: MIT
"""Finite flows: the plan decides each flow, and each flow leaves a record, however it ends. experiments/tests compares
the records of flows in virtual time with their packets.
"""

import json
import signal
from collections import Counter
from itertools import pairwise

from hosts.tests.patience import wait_until
from hosts.traffic import epoll_flows, transfers
from hosts.traffic.plan import parse
from hosts.traffic.tests.test_epoll_flows import LONG_NS, Sink, end, flows_of, group, plan_of, sending, software, start
from wire.wire import BLOCK, FLOW_RECORD, read_blocks

FIXED = {"name": "fixed", "value": 20_000}
OPEN = {"kind": "finite", "cc": "cubic", "first_server_port": 6001, "sizes": FIXED, "mean_gap_ns": 1_000_000.0}
USERS = {
    "kind": "closed-loop", "cc": "reno", "first_server_port": 6101, "users": 10,
    "sizes": {"name": "pareto", "mean": 30_000, "shape": 1.5}, "think": {"name": "exponential", "mean": 10_000_000.0},
}  # fmt: skip


def lines(**plan):
    """The flows of a plan, as rows of numbers without the congestion control."""
    text = epoll_flows.flow_lines(parse(plan_of(*plan.pop("groups", ()), **plan)))
    return [tuple(map(int, line.split()[1:])) for line in text]


def records(directory):
    raw = (directory / "client/flows.bsf").read_bytes()
    return [
        FLOW_RECORD.decode(block.payload[at : at + FLOW_RECORD.length])
        for block in read_blocks(raw, BLOCK.const["BLOCK_FLOWS"])
        for at in range(0, len(block.payload), FLOW_RECORD.length)
    ]


def test_plan__seed_and_only_the_seed_decides_the_flows():
    plan = {"transfers": [OPEN, USERS], "duration_ns": 300_000_000}
    first = lines(**plan, seed=1)
    assert first == lines(**plan, seed=1) != lines(**plan, seed=2)
    assert 200 < sum(server == 6001 for _, server, *_ in first) < 400
    assert len({line[:2] for line in first}) == len(first)  # no two flows have the same ports
    alone = lines(transfers=[USERS], duration_ns=300_000_000, seed=1)
    assert Counter(line[4] for line in alone).keys() == set(range(1, 11))


def test_plan__a_users_draws_do_not_depend_on_other_users():
    def of_first_user(users):
        drawn = lines(transfers=[{**USERS, "users": users}], seed=1)
        return [line[2:] for line in drawn if line[4] == 1]

    assert of_first_user(1) == of_first_user(10)


def test_plan__a_flow_beyond_the_last_client_port_gets_the_next_server_port():
    plan = {"transfers": [{**OPEN, "arrivals": "cbr", "mean_gap_ns": 10.0}], "duration_ns": 180_010}
    drawn = lines(**plan)
    assert len(drawn) == transfers.CLIENT_PORTS
    assert lines(**{**plan, "duration_ns": 180_020})[-1][:2] == (transfers.FIRST_CLIENT_PORT, 6002)
    assert transfers.server_ports(transfers.CLIENT_PORTS) == 1
    assert transfers.server_ports(transfers.CLIENT_PORTS + 1) == 2


def test_plan__flows_and_users_take_the_sources_in_turn():
    sources = [f"10.77.0.{last}" for last in (16, 17, 18, 19)]

    def drawn(group, seed):
        plan = parse(plan_of(transfers=[{**group, "sources": sources}], seed=seed))
        return [line.split() for line in epoll_flows.flow_lines(plan)]

    of_flows = [words[6].removeprefix("from=") for words in drawn(OPEN, 1)]
    assert set(of_flows[:4]) == set(sources)
    assert all(source == of_flows[index % 4] for index, source in enumerate(of_flows))
    assert len({tuple(words[6] for words in drawn(OPEN, seed)[:4]) for seed in range(9)}) > 3
    by_user = {(words[5], words[6]) for words in drawn(USERS, 1)}
    assert len(by_user) == 10  # each user keeps its source address
    assert max(Counter(source for _, source in by_user).values()) == 3


def test_plan__flows_of_a_user_draw_their_sources():
    sources = [f"10.77.{number >> 8}.{number & 255}" for number in range(16, 26)]
    own = {**USERS, "sources": sources, "users": 200}

    def drawn(**keys):
        plan = parse(plan_of(transfers=[{**own, **keys}], seed=3))
        return [line.split() for line in epoll_flows.flow_lines(plan)]

    per_flow, per_user = drawn(path_of="transfer"), drawn()
    assert per_flow == drawn(path_of="transfer")
    assert [words[:6] for words in per_flow] == [words[:6] for words in per_user]  # the same flows on other paths
    of_users: dict[str, list[str]] = {}
    for words in per_flow:
        of_users.setdefault(words[5], []).append(words[6].removeprefix("from="))
    assert sum(len(set(flows)) > 1 for flows in of_users.values()) > 190
    counts = Counter(source for flows in of_users.values() for source in flows)
    even = sum(counts.values()) / len(sources)
    assert set(counts) == set(sources)
    assert sum((count - even) ** 2 / even for count in counts.values()) < 27.9  # chi-squared, 9 d.f.: 0.1 %
    pairs = Counter(pair for flows in of_users.values() for pair in pairwise(flows))
    repeated = sum(count for (before, after), count in pairs.items() if before == after) / pairs.total()
    assert abs(repeated - 1 / len(sources)) < 4 * (0.09 / pairs.total()) ** 0.5  # draws are independent


def test_plan__flows_whose_think_times_count_from_starts_wait_for_no_flow():
    drawn = lines(transfers=[{**USERS, "think_from": "start"}], seed=1)
    assert {user for *_, user in drawn} == {0}
    assert max(offset for _, _, offset, *_ in drawn) > 250_000_000


class TestFlows:
    pytestmark = software

    def test_refused__flows_are_recorded_and_do_not_end_the_run(self, pair, tmp_path):
        Sink(pair, tmp_path, "--tcp", "5201=reno")
        done, traffic = flows_of(pair, tmp_path, group("reno", 1, 0), transfers=[OPEN], seed=1, check=False)
        counts = traffic["transfers"]["counts"]
        assert (done.returncode, counts["refused"], counts["finished"]) == (2, counts["begun"], 0)
        assert (
            f"{counts['refused']} finite flows were refused, 0 reset; the first, from port 2000" in traffic["errors"][0]
        )
        assert counts["planned"] >= counts["begun"] > 200  # on a busy machine the last ones come too late
        refused = [record for record in records(tmp_path) if record["end"] == FLOW_RECORD.const["FLOW_END_REFUSED"]]
        assert len(refused) == counts["refused"]
        assert all(record["connected_mono_ns"] == 0 < record["ended_mono_ns"] for record in refused)

    def test_signal__ends_finite_flows_with_their_records(self, pair, tmp_path):
        Sink(pair, tmp_path, "--tcp", "6001-6010")
        flows = start(pair, tmp_path, "long_flows", plan_of(transfers=[OPEN], duration_ns=LONG_NS // 10))
        wait_until(lambda: (tmp_path / "client/flows.bsf").exists() and sending(pair, 0))
        assert end(flows, signal.SIGTERM) == "long_flows: ended by SIGTERM before its time"
        counts = json.loads((tmp_path / "client/tcp_flows.json").read_text())["finite"]
        assert counts["records_stored"] == counts["begun"] == len(records(tmp_path))
