# SPDX-License-Identifier: MIT
"""The process that serves the page of WATCH=1 (watch.py starts it): on loopback, to who knows the token.

A page of another origin in the same browser, and another user of the machine, can send requests to this port, too. So
each address begins with a secret token, the header Host must name this port of loopback (a foreign name that resolves
to loopback gets nothing), and requests that another origin makes are refused. The process ends with its standard input.
"""

from __future__ import annotations

import hmac
import json
import logging
import mimetypes
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import waitress

from experiments.run.watch_state import WatchState

PAGE = Path(__file__).parent / "page"
FILES = {"": "watch.html", **{name: name for name in ("watch.js", "watch.css", "uPlot.iife.min.js", "uPlot.min.css")}}
NICE = 10
THREADS = 4
LEAST_S = 0.4  # between two looks at the files
LAST_LOOK_S = 2.0  # a page that asked so recently gets the end of the run
HEADERS = (
    ("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; "
     "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("Cache-Control", "no-store"),
)  # fmt: skip
Start = Callable[[str, list[tuple[str, str]]], Any]


class Page:
    """The WSGI application. `hosts` are the names of this server in the header Host."""

    def __init__(self, state: WatchState, token: str) -> None:
        self.state, self.token = state, token
        self.hosts: tuple[str, ...] = ()
        self.progress: dict[str, Any] = {}
        self.lock = threading.Lock()
        self.asked_s = self.read_s = float("-inf")
        self.content = b"{}"

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        status, kind, body = self._answer(environ)
        start(status, [("Content-Type", kind), ("Content-Length", str(len(body))), *HEADERS])
        return [body]

    def _answer(self, environ: dict[str, Any]) -> tuple[str, str, bytes]:
        host, plain = environ.get("HTTP_HOST", ""), "text/plain; charset=utf-8"
        if host not in self.hosts:
            return "421 Misdirected Request", plain, b"not a name of this server\n"
        foreign = environ.get("HTTP_SEC_FETCH_SITE", "none") not in ("none", "same-origin")
        if foreign or environ.get("HTTP_ORIGIN", f"http://{host}") != f"http://{host}":
            return "403 Forbidden", plain, b"no other origin may read this\n"
        token, _, name = environ["PATH_INFO"].removeprefix("/").partition("/")
        if not hmac.compare_digest(token.encode(errors="replace"), self.token.encode()):
            return "404 Not Found", plain, b"the address begins with a token\n"
        if environ["REQUEST_METHOD"] != "GET":
            return "405 Method Not Allowed", plain, b"GET only\n"
        if name == "state":
            return "200 OK", "application/json", self._state()
        if name not in FILES:
            return "404 Not Found", plain, b"no such page\n"
        kind = mimetypes.guess_type(FILES[name])[0] or plain
        return "200 OK", kind, (PAGE / FILES[name]).read_bytes()

    def _state(self) -> bytes:
        with self.lock:
            self.asked_s = time.monotonic()
            if self.asked_s - self.read_s >= LEAST_S:
                self.content = json.dumps({"progress": self.progress, **self.state.read()}).encode()
                self.read_s = time.monotonic()
            return self.content


def _step_back(clock: str) -> None:
    """Gives the processors to the run. In real time this process gets what no other program wants. In virtual time
    nothing is late, and a sweep leaves no processor idle, so it gets a tenth. Not before the address is known, for
    which the run waits.
    """
    for task in Path("/proc/self/task").iterdir():
        thread = int(task.name)
        if clock == "real":
            os.sched_setscheduler(thread, os.SCHED_IDLE, os.sched_param(0))
        else:
            os.setpriority(os.PRIO_PROCESS, thread, NICE)


def main(directory: str, kind: str, clock: str) -> int:
    """Serves until standard input ends, which has a line of JSON for each change of the progress."""
    token = secrets.token_urlsafe(16)
    page = Page(WatchState(Path(directory), kind == "sweep"), token)
    server = waitress.create_server(page, host="127.0.0.1", port=0, threads=THREADS, connection_limit=20, ident=None)
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # a browser asks for all files at once
    port = server.effective_port
    page.hosts = (f"127.0.0.1:{port}", f"localhost:{port}")
    print(f"http://127.0.0.1:{port}/{token}/", flush=True)
    threading.Thread(target=server.run, daemon=True).start()
    _step_back(clock)
    for line in sys.stdin:
        page.progress = json.loads(line)
    with page.lock:
        page.progress = {**page.progress, "ended": True}
        page.read_s, end_s = float("-inf"), time.monotonic()
        is_open = page.asked_s > end_s - LAST_LOOK_S
    while is_open and page.read_s < end_s and time.monotonic() < end_s + LAST_LOOK_S:
        time.sleep(0.1)
    time.sleep(0.2 * is_open)  # for the answer
    os._exit(0)  # connections that browsers keep open would hold the threads


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
