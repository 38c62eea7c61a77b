# SPDX-License-Identifier: MIT
"""Policies of users, composed with the program (v1model/own_policy.p4): what they see, decide and write into postcards,
their parameters, and what is refused. `decides` is a policy of the tests (programs/decides.p4), compiled and committed.
"""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from controlplane.policy import TailDrop
from controlplane.program import ProgramEntry
from p4src.compile import link, policy
from p4src.compile.sources import CannotCompile
from p4src.tests import frames
from p4src.tests.under_test import RECEIVER_PORT, SENDER_PORT, SoftCore, composed
from wire.wire import POLICY

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "p4src/tests/programs"
DECIDES = "p4src/tests/programs/build/decides.json"
P4C = shutil.which("p4c-bm2-ss")
SEEN = (
    "now_ns",
    "sojourn_ns",
    "depth_packets",
    "depth_bytes",
    "packet_bytes",
    "ecn",
    "full",
    "port",
    "wait_ns",
    "flow_hash",
)
FIELDS = [f"_seen_{name}" for name in SEEN] + [f"_verdict_{name}" for name in ("drop", "mark", "value")]
ALONE = {  # what p4c makes of a policy that does nothing
    "header_types": [{"name": "scalars_0", "fields": [[f"m.{name}{at}", 48] for at, name in enumerate(FIELDS)]}],
    "headers": [{"name": "scalars"}, {"name": "standard_metadata"}],
    **{part: [] for part in ("actions", *link.ARRAYS)},
    "pipelines": [
        {"name": name, "init_table": None, "tables": [], "conditionals": []} for name in ("ingress", "egress")
    ],
}
CONTROL = "control {}(in policy_input_t seen, inout policy_verdict_t verdict) {{ apply {{ {} }} }}\n"


@pytest.fixture
def switch() -> SoftCore:
    return SoftCore(program=str(composed(DECIDES))).configure()


def actions(**values: int) -> dict[tuple[str, str], dict[str, int]]:
    program = policy.read(str(ROOT / DECIDES)).json
    return policy.default_actions(program, policy.values(policy.parameters(program), {}, values)[0])


def set_parameters(switch: SoftCore, **values: int) -> None:
    for (table, action), arguments in actions(**values).items():
        switch.control.write_default(table, ProgramEntry(action, arguments))


def burst(switch: SoftCore, count: int, at_ns: int = 0, ecn: int = 2) -> list:
    """Postcards of `count` packets that arrive before the first one leaves, in the order of their arrivals."""
    before = len(switch.postcards())
    for _ in range(count):
        switch.send(at_ns, SENDER_PORT, frames.tcp(1000, ecn=ecn))
    return sorted(switch.postcards()[before:], key=lambda card: (card.depth_packets, card.has("DROPPED")))


@pytest.mark.parametrize("path", [TESTS / "decides.p4", *policy.POLICIES.glob("*.p4")], ids=lambda path: path.stem)
def test_committed__is_compiled_from_the_sources(path: Path) -> None:
    build = path.parent / "build" / f"{path.stem}.json"
    text = build.read_text()
    made_of = json.loads(text)[policy.META][policy.COMPOSED_WITH]
    assert made_of == policy.sources_digest(path), "compile it again: make p4"
    assert build.with_suffix(".sha256").read_text() == f"{hashlib.sha256(text.encode()).hexdigest()}\n"
    assert policy.is_policy(policy.read(str(build)).json)


def test_composition__is_outdated_by_an_edit_of_the_linker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = policy.read(str(TESTS / "build/decides.json")).json
    assert not policy.outdated(content)
    edited = tmp_path / "link.py"
    edited.write_text(Path(policy.link.__file__).read_text() + "\nX = 1\n")
    monkeypatch.setattr(policy.link, "__file__", str(edited))
    policy._ours.cache_clear()
    assert policy.outdated(content)
    monkeypatch.undo()
    policy._ours.cache_clear()


def test_template__has_at_most_30_lines() -> None:
    assert len((policy.POLICIES / "template.p4").read_text().splitlines()) <= 30


def test_policy__decides_at_arrival_and_at_departure_and_writes_its_value(switch: SoftCore) -> None:
    set_parameters(switch, mark_every=1, drop_every=0)
    cards = burst(switch, 8)
    assert {card.policy for card in cards} == {POLICY["POLICY_OWN"]}
    assert len({card.threshold for card in cards}) == 8
    assert {card.has("CE_MARKED") for card in cards} == {False, True}
    assert switch.counter("arrival_marks", RECEIVER_PORT) == 4
    set_parameters(switch, mark_every=0, drop_every=7)
    cards = [card for at_ns in range(10**8, 2 * 10**8, 10**7) for card in burst(switch, 8, at_ns)]
    drops = [card.has("AT_INGRESS") for card in cards if card.has("DROPPED")]
    assert {*drops} == {False, True}
    counted = (switch.counter(f"{where}_drops", RECEIVER_PORT) for where in ("departure", "arrival"))
    assert [drops.count(False), drops.count(True)] == [*counted]


def test_mark__drops_a_packet_that_is_not_ecn_capable(switch: SoftCore) -> None:
    set_parameters(switch, mark_every=1, drop_every=0)
    assert sum(card.has("DROPPED") and card.has("AT_INGRESS") for card in burst(switch, 8, ecn=0)) == 4
    assert switch.counter("arrival_marks", RECEIVER_PORT) == 0


def test_full_buffer__drops_whatever_the_policy_says(switch: SoftCore) -> None:
    set_parameters(switch, mark_every=0, drop_every=0)
    switch.policy(TailDrop(5))
    cards = burst(switch, 8)
    assert [card.depth_packets for card in cards if not card.has("AT_INGRESS")] == [0, 1, 2, 3, 4]
    assert {bool(card.threshold >> 29 & 1) for card in cards if card.has("AT_INGRESS")} == {True}


def test_parameters__of_one_name_are_set_in_every_table() -> None:
    assert {tuple(arguments) for arguments in actions().values()} == {("mark_every", "drop_every"), ("drop_every",)}
    assert {arguments["drop_every"] for arguments in actions(drop_every=9).values()} == {9}


def test_values__have_the_unit_of_the_name() -> None:
    known = policy.parameters(policy.read("template").json)
    assert policy.values(known, {"target": "5ms"}) == ({"target_ns": 5_000_000, "interval_ns": 50_000_000}, [])
    assert policy.values(known, {"interval_ns": "0x10"}, {"target_ns": 1})[0] == {"target_ns": 1, "interval_ns": 16}
    for given in ({"goal": "5ms"}, {"target": "5"}, {"target": "5p"}, {"target_ns": str(2**48)}, {"target": "-1s"}):
        values, problems = policy.values(known, given)
        assert len(problems) == 1, given
        assert values["target_ns"] == 2_000_000


def test_read__refuses_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusal(text: str, name: str = "mine.p4") -> str:
        (tmp_path / name).write_text(text)
        with pytest.raises(CannotCompile) as error:
            policy.read(str(tmp_path / name))
        assert "\n" not in str(error.value)
        return str(error.value)

    monkeypatch.setenv("P4C", "/nowhere/p4c-bm2-ss")
    whole = CONTROL.format("Arrival", "") + CONTROL.format("Departure", "")
    assert refusal(whole).startswith("needs p4c: ")
    (tmp_path / "p4c").write_text("no program")
    (tmp_path / "p4c").chmod(0o755)
    monkeypatch.setenv("P4C", str(tmp_path / "p4c"))
    assert refusal(whole).startswith(f"cannot be compiled: {tmp_path}/p4c: ")
    assert refusal(CONTROL.format("Departure", "")).startswith("has no control Arrival")
    assert "other parameters" in refusal(whole.replace("in policy_input_t seen, ", "", 1))
    assert refusal('#include "/dev/null"').startswith("reading /dev/null")
    assert refusal("{", "mine.json").startswith("is not JSON")
    assert refusal("[" * 100_000, "mine.json").startswith("is not JSON")
    program = policy.read("template").json
    for part, damage in (
        ("headers", 7), ("pipelines", [7]), ("actions", [{}]), ("__meta__", 7), ("__meta__", {"policy": 1})
    ):  # fmt: skip
        assert "p4c-bm2-ss" in refusal(json.dumps(program | {part: damage}), "mine.json")
    assert "another architecture" in refusal(
        '{"header_types": [], "headers": [], "pipelines": [], "actions": []}', "mine.json"
    )


def test_link__keeps_the_hashes_of_policy_and_program_apart() -> None:
    """p4c calls the first hash of every program `calc`."""
    ours = json.loads(policy.BUILD.joinpath("with_policy.json").read_text())
    alone = ALONE | {"calculations": [{"name": "calc", "id": 0, "algo": "crc16", "input": []}]}
    alone["actions"] = [{"name": "act", "id": 0, "runtime_data": [], "primitives": [
        {"op": "modify_field_with_hash_based_offset", "parameters": [{"type": "calculation", "value": "calc"}]}
    ]}]  # fmt: skip
    names = [each["name"] for each in ours["calculations"]]
    linked = link.link(ours, alone)
    assert [each["name"] for each in linked["calculations"]] == [*names, f"{link.OURS}_calc"]
    assert linked["actions"][-5]["primitives"][0]["parameters"][0]["value"] == f"{link.OURS}_calc"


def test_link__refuses_headers_of_a_policy() -> None:
    ours = json.loads(policy.BUILD.joinpath("with_policy.json").read_text())
    with pytest.raises(CannotCompile, match="header pair"):
        link.link(ours, ALONE | {"headers": [*ALONE["headers"], {"name": "pair"}]})


@pytest.mark.skipif(not P4C, reason="p4c-bm2-ss is not installed")
def test_compile__shows_errors_in_the_users_file_and_caches_by_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "mine.p4"
    path.write_text(CONTROL.format("Arrival", "") + CONTROL.format("Departure", "verdict.value = seen.nothing;"))
    with pytest.raises(CannotCompile, match=rf"{path}\(2\).*nothing"):
        policy.read(str(path))
    path.write_text(CONTROL.format("Arrival", "verdict.drop = true;") + CONTROL.format("Departure", ""))
    with pytest.raises(CannotCompile, match=r"'verdict.drop = true': Cannot cast implicitly type 'bool'"):
        policy.read(str(path))
    path.write_text(CONTROL.format("Arrival", "") + CONTROL.format("Departure", "verdict.value = 7;"))
    first = policy.read(str(path))
    path.write_text(path.read_text().rstrip("\n") + "  // another comment\n")
    monkeypatch.setattr(policy, "_compile", None)
    assert policy.read(str(path)).digest == first.digest
    assert policy.is_policy(first.json)
