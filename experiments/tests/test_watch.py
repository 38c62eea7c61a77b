# SPDX-License-Identifier: MIT
"""The page of WATCH=1: what it reads of growing files, who may read it, its end, and how it looks."""

import json
import os
import re
import shutil
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from analysis.read import raw
from analysis.tests import browser
from analysis.tests.recordings import RECORDED
from experiments.machine.terminal import Terminal
from experiments.run import watch_state
from experiments.run.watch import RUN, SWEEP, watched
from experiments.run.watch_server import Page
from experiments.run.watch_state import BINS, Tail, WatchState
from runs.names import POSTCARDS_FILE, SPEC_FILE, TCP_FILE
from wire import wire

RECORDING = RECORDED / "virtual/rep-1"
TOKEN = "secret"
ADDRESS = re.compile(r"watch it: (http://127\.0\.0\.1:\d+/[\w-]+/)")


def plan(repetition: Path) -> None:
    """The traffic's plan, which a stored recording has not, from what its traffic was."""
    traffic = json.loads((RECORDING / "traffic.json").read_text())
    ports = [flow["src_port"] for flow in traffic["flows"]]
    group = {"cc": traffic["flows"][0]["cc"], "first_client_port": min(ports), "flows": len(ports)}
    start_ns = traffic["first_started_mono_ns"]
    (repetition / "plan.json").write_text(json.dumps({"start_mono_ns": start_ns, "groups": [group]}))


@pytest.fixture
def repetition(tmp_path: Path) -> Path:
    directory = tmp_path / "run/rep-1"
    directory.mkdir(parents=True)
    shutil.copy(RECORDING / SPEC_FILE, directory)
    plan(directory)
    return directory


def grow(repetition: Path, share: float) -> None:
    for name in (POSTCARDS_FILE, TCP_FILE):
        content = (RECORDING / name).read_bytes()
        (repetition / name).write_bytes(content[: int(share * len(content))])


def test_state__of_growing_files_is_that_of_whole_files(repetition: Path) -> None:
    whole, growing = WatchState(repetition.parent, False), WatchState(repetition.parent, False)
    assert growing.read()["run"].get("times_s") == []
    for share in (0.31, 0.32, 0.77, 1.0):
        grow(repetition, share)
        after = growing.read()["run"]
    assert after == whole.read()["run"]
    cards, _, _ = raw.load_postcards(repetition / POSTCARDS_FILE)
    start_ns = json.loads((repetition / "plan.json").read_text())["start_mono_ns"]
    last_ns = start_ns + whole.run.bins.last * whole.run.bins.width_ns  # type: ignore[union-attr]
    shown = {
        name: values[(cards["rx_mono_ns"] >= start_ns) & (cards["rx_mono_ns"] < last_ns)]
        for name, values in cards.items()
    }
    dropped = (shown["flags"] & wire.POSTCARD.const["POSTCARD_DROPPED"]) != 0
    assert sum(after["drops"]["drops"]) == dropped.sum()
    assert max(value or 0 for value in after["depth_packets"]["most in an interval"]) == shown["depth_packets"].max()
    first_s, second_s, *_, last_s = after["throughput_bps_times_s"]
    seconds = second_s - first_s
    passed = ~dropped & (shown["rx_mono_ns"] < start_ns + round((last_s + seconds / 2) * 1e9))
    bits = 8 * shown["packet_bytes"][passed].astype(int).sum()
    assert sum(sum(values) for values in after["throughput_bps"].values()) * seconds == pytest.approx(bits, rel=1e-6)
    assert len(after["windows_packets"]) == after["flows"]
    assert len(after["times_s"]) <= BINS


def test_tail__of_much_reads_every_kth_block_and_says_so(repetition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grow(repetition, 1.0)
    all_of = list(Tail(repetition / POSTCARDS_FILE, "BLOCK_POSTCARDS").payloads())
    size = (repetition / POSTCARDS_FILE).stat().st_size
    monkeypatch.setattr(watch_state, "MOST_BYTES", -(-size // 3))
    tail = Tail(repetition / POSTCARDS_FILE, "BLOCK_POSTCARDS")
    some = list(tail.payloads())
    assert tail.every == 3
    assert [bytes(payload) for payload, _ in some] == [bytes(payload) for payload, _ in all_of[::3]]
    assert tail.at == size
    assert list(tail.payloads()) == []


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({}, "200"),
        ({"HTTP_ORIGIN": "http://127.0.0.1:80", "HTTP_SEC_FETCH_SITE": "same-origin"}, "200"),
        ({"PATH_INFO": "/wrong/state"}, "404"),
        ({"PATH_INFO": "/"}, "404"),
        ({"PATH_INFO": "/séc/state"}, "404"),
        ({"PATH_INFO": f"/{TOKEN}/../watch_server.py"}, "404"),
        ({"HTTP_HOST": "rebound.example:80"}, "421"),
        ({"HTTP_HOST": ""}, "421"),
        ({"HTTP_ORIGIN": "http://elsewhere.example"}, "403"),
        ({"HTTP_ORIGIN": "null"}, "403"),
        ({"HTTP_SEC_FETCH_SITE": "cross-site"}, "403"),
        ({"REQUEST_METHOD": "POST"}, "405"),
    ],
)
def test_page__is_for_its_own_origin_with_the_token(tmp_path: Path, changed: dict[str, str], status: str) -> None:
    page = Page(WatchState(tmp_path, False), TOKEN)
    page.hosts = ("127.0.0.1:80",)
    environ = {"HTTP_HOST": "127.0.0.1:80", "REQUEST_METHOD": "GET", "PATH_INFO": f"/{TOKEN}/state", **changed}
    said: list[Any] = []
    body = b"".join(page(environ, lambda *words: said.append(words)))
    assert said[0][0].startswith(status)
    assert ("Cache-Control", "no-store") in said[0][1]
    assert (b"progress" in body) == (status == "200")


def get(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=30) as answer:
        return bytes(answer.read())


def test_watched__serves_until_its_body_ends(repetition: Path, capfd: pytest.CaptureFixture[str]) -> None:
    grow(repetition, 1.0)
    children = set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())
    with watched(repetition.parent, RUN, "virtual"):
        address = ADDRESS.findall(capfd.readouterr().out)[0]
        Terminal(1000.0).write(0.25, "title: traffic", "detail", "plain")
        state: dict[str, Any] = {}
        deadline_s = time.monotonic() + 30
        while not state.get("progress") and time.monotonic() < deadline_s:
            state = json.loads(get(f"{address}state"))
        assert (state["progress"]["done"], state["progress"]["head"]) == (0.25, "title: traffic")
        assert state["run"]["drops"]
        assert b"uPlot" in get(address)
        port = int(address.split(":")[2].split("/")[0])
        sock = socket.socket()
        with sock, pytest.raises(OSError, match="refused"):
            sock.connect(("127.0.0.2", port))  # only 127.0.0.1 listens
    assert Terminal.told is None
    with pytest.raises(urllib.error.URLError):
        get(address)
    assert set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()) <= children


def test_watched__never_waits_for_its_page_and_ends_with_an_interrupted_run(repetition: Path) -> None:
    begin_s = time.monotonic()

    def interrupted() -> None:
        with watched(repetition.parent, RUN, "virtual"):
            terminal = Terminal(1000.0)
            for number in range(2000):
                terminal.write(0.5, f"{number} {'x' * 2000}", "", "plain")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert time.monotonic() - begin_s < 60


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[browser.Browser]:
    browser.needed()
    opened = browser.Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


LOOKS = """
const small = [...document.querySelectorAll("body *")].filter(each => each.getClientRects().length &&
  each.childNodes.length && parseFloat(getComputedStyle(each).fontSize) < 11).map(each => each.outerHTML.slice(0, 80));
return [document.documentElement.scrollWidth, document.querySelectorAll("canvas").length, small,
  document.querySelectorAll("h2").length];
"""


@pytest.mark.long
@pytest.mark.parametrize("kind", [RUN, SWEEP])
def test_page__is_drawn_on_a_phone_and_a_screen(
    repetition: Path, window: browser.Browser, capfd: pytest.CaptureFixture[str], kind: str
) -> None:
    grow(repetition, 1.0)
    directory = repetition.parent
    if kind == SWEEP:
        shutil.copytree(RECORDED / "virtual", directory / "runs/cubic-r1")
        (directory / "runs/cubic-r1/rep-1/digests.json").unlink(missing_ok=True)
        shutil.copy(RECORDED / "virtual/summary.json", directory / "runs/cubic-r1/rep-1")
    window.show("about:blank")
    window.driver.get_log("browser")  # of the page of another test, whose server has ended
    with watched(directory, kind, "real"):
        address = ADDRESS.findall(capfd.readouterr().out)[0]
        Terminal(1000.0).write(0.25, "cubic: traffic, 3 of about 20 s", "48.5 Mb/s, queue 20 packets", "plain")
        for width in (390, 1280):
            window.show(address, width)
            wanted, deadline_s = (4 if kind == RUN else 1), time.monotonic() + 60
            while (looks := window.run(LOOKS))[3] != wanted and time.monotonic() < deadline_s:
                time.sleep(0.1)
            assert looks == [width, wanted, [], wanted]
            assert window.driver.get_log("browser") == []
