# SPDX-License-Identifier: MIT
"""Runs one of bufferscope's own programs on a host and reads its answer, without Ansible's module machinery.

For every task Ansible packs, sends and compiles the Python source of a module. This takes 0.2 s of CPU per task, which
was four fifths of the time to start a run. Our programs print `{"changed": ...}` and report errors on stderr, so they
need only a connection. The remote shell gets a quoted argument list.
"""

from __future__ import annotations

import json
import shlex
import typing as t
from pathlib import Path

from ansible.plugins.action import ActionBase

DOCUMENTATION = """
    name: program
    short_description: run a program that prints its result as JSON
    description:
        - Runs a program on the host; no shell interprets its arguments.
        - The program must print one JSON object with C(changed) on standard output and exit with 0. Otherwise the task
          fails with the program's standard error as the reason.
        - Skipped in check mode.
        - If the variable C(bufferscope_plan) names a file, nothing runs. The task is appended to that file instead, as
          one line of JSON, for a host that Ansible cannot reach yet. C(changed) is then always false.
    author: bufferscope
    options:
        argv:
            description: The program and its arguments.
            type: list
            elements: str
            required: true
        chdir:
            description: The program's working directory.
            type: path
            required: true
"""


class ActionModule(ActionBase):
    """Result: rc, stdout, stderr as in ansible.builtin.command; `answer`, the JSON object; `changed` of the answer."""

    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        spec = {"type": "list", "elements": "str", "required": True}
        _, given = self.validate_argument_spec({"argv": spec, "chdir": {"type": "path", "required": True}})
        if self._task.check_mode:
            return {**result, "skipped": True}
        plan = (task_vars or {}).get("bufferscope_plan")
        if plan:
            return {**result, **_planned(str(plan), self._task.get_name(), task_vars or {}, given)}
        command = f"cd {shlex.quote(given['chdir'])} && {shlex.join(given['argv'])}"
        # With data on standard input, ssh allocates no terminal. A terminal would mix both output streams and send
        # SIGHUP at the end.
        result.update(self._low_level_execute_command(command, in_data=b"\n"))
        return {**result, **_judged(result)}


def _planned(plan: str, task: str, task_vars: dict[str, t.Any], given: dict[str, t.Any]) -> dict[str, t.Any]:
    """Appends the line by one write: Ansible plans hosts in parallel, and lines must not mix."""
    step = {"play": task_vars["ansible_play_name"], "host": task_vars["inventory_hostname"], "task": task, **given}
    with Path(plan).open("ab", buffering=0) as file:
        file.write(json.dumps(step).encode() + b"\n")
    return {"changed": False, "planned": True}


def _judged(result: dict[str, t.Any]) -> dict[str, t.Any]:
    if result["rc"] != 0:
        return {"failed": True, "changed": False, "msg": f"exit status {result['rc']} without a reason on stderr"}
    try:
        answer = json.loads(result["stdout"])
        return {"changed": bool(answer["changed"]), "answer": answer}
    except (ValueError, KeyError, TypeError):
        reason = "the program did not print a JSON object with `changed`"
        return {"failed": True, "changed": False, "stderr": "", "msg": reason}
