# SPDX-License-Identifier: MIT
"""Prints a playbook's changes, and each failure as one sentence on stderr; details with -v.

A failed program gives its reason on stderr, a failed module in its message. Only this reason is shown, not the forty
other lines of the result. With -v every task appears with its duration, to find tasks that slow the start of a run.
"""

from __future__ import annotations

import time
import typing as t

from ansible.executor.stats import AggregateStats
from ansible.executor.task_result import CallbackTaskResult
from ansible.playbook import Playbook
from ansible.playbook.task import Task

from ansible import constants as C
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
    name: brief
    type: stdout
    short_description: one line per change, one sentence per failure
    description:
        - Shows changed tasks, failures as one sentence, and one line of totals per host.
        - With C(-v) also unchanged tasks, each with its duration; with C(-vv) also their results.
    author: bufferscope
    extends_documentation_fragment:
        - default_callback
"""

SHOWN_LINES = 20


class CallbackModule(CallbackBase):
    """Prints each result at once. The strategy `free` interleaves hosts, so every line names its host."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "brief"

    def __init__(self, *args: t.Any, **kwargs: t.Any) -> None:
        super().__init__(*args, **kwargs)
        self._begin_s = time.monotonic()
        self._task_begin_s: dict[tuple[str, str], float] = {}

    def v2_playbook_on_start(self, playbook: Playbook) -> None:
        self._begin_s = time.monotonic()

    def v2_runner_on_start(self, host: t.Any, task: Task) -> None:
        self._task_begin_s[host.get_name(), task._uuid] = time.monotonic()

    def v2_runner_on_ok(self, result: CallbackTaskResult) -> None:
        changed = result.result.get("changed", False)
        if changed or self._display.verbosity:
            self._line(result, "changed" if changed else "ok", C.COLOR_CHANGED if changed else C.COLOR_OK)
        for warning in result.result.get("warnings", ()):
            self._display.warning(str(warning))

    def v2_runner_on_skipped(self, result: CallbackTaskResult) -> None:
        if self._display.verbosity:
            self._line(result, "skipped", C.COLOR_SKIP)

    def v2_runner_on_failed(self, result: CallbackTaskResult, ignore_errors: bool = False) -> None:
        if ignore_errors:
            self._line(result, "ignored", C.COLOR_WARN, failure_sentence(result.result))
        elif "results" not in result.result:  # v2_runner_item_on_failed has shown the items of a loop
            self._line(result, "FAILED", C.COLOR_ERROR, failure_sentence(result.result))

    def v2_runner_item_on_failed(self, result: CallbackTaskResult) -> None:
        self._line(result, "FAILED", C.COLOR_ERROR, failure_sentence(result.result))

    def v2_runner_on_unreachable(self, result: CallbackTaskResult) -> None:
        self._line(result, "UNREACHABLE", C.COLOR_UNREACHABLE, failure_sentence(result.result))

    def v2_playbook_on_stats(self, stats: AggregateStats) -> None:
        for host in sorted(stats.processed):
            totals = stats.summarize(host)
            shown = ("ok", "changed", "unreachable", "failures", "skipped")
            self._display.display(f"{host:<12} " + " ".join(f"{key}={totals[key]}" for key in shown))
        if self._display.verbosity:
            self._display.display(f"{time.monotonic() - self._begin_s:.2f} s")

    def _line(self, result: CallbackTaskResult, state: str, colour: str, sentence: str = "") -> None:
        text = f"{state:<8} {result.host.get_name()}: {result.task.get_name()}"
        if sentence:
            text += f": {sentence}"
        elif self._display.verbosity:
            begin_s = self._task_begin_s.get((result.host.get_name(), result.task._uuid))
            text += "" if begin_s is None else f" ({time.monotonic() - begin_s:.2f} s)"
        self._display.display(text, color=colour, stderr=colour in (C.COLOR_ERROR, C.COLOR_UNREACHABLE))
        if self._display.verbosity > 1:
            self._display.display(self._dump_results(result.result, indent=4))


def failure_sentence(result: t.Mapping[str, t.Any]) -> str:
    """The stderr of a failed program, else the module's message, else stdout.

    Our own programs write one line. Of longer output (compilers) the last SHOWN_LINES follow, each on its own line.
    """
    for key in ("stderr", "msg", "stdout"):
        lines = [line.rstrip() for line in str(result.get(key) or "").splitlines() if line.strip()]
        if len(lines) == 1 or (lines and key == "msg"):
            return " ".join(line.strip() for line in lines)
        if lines:
            return "\n  ".join(["", *lines[-SHOWN_LINES:]])
    return "no reason given; run again with -vv"
