# SPDX-License-Identifier: MIT
"""The command line of a program that sends by a plan: python -m hosts.traffic.NAME PLAN.json RESULT_DIR.

Exit status: 0 sent as planned; 1 nothing was sent; 2 not as planned, or ended early. Stderr says why.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hosts.traffic.child import ProgramMissingError
from hosts.traffic.outcome import EXIT_INCOMPLETE, EXIT_REFUSED, StoppedError, TrafficError, signals_raise
from hosts.traffic.plan_reader import AnyPlan, PlanError, read_json


def send(
    parser: argparse.ArgumentParser,
    parse: Callable[[Any], AnyPlan],
    run: Callable[[AnyPlan, Path], list[str]],
    arguments: list[str] | None,
) -> int:
    """Reads the plan, makes the directory of results, runs the plan; returns the exit status. `run` returns errors."""
    options = parser.parse_args(arguments)
    name = parser.prog.rpartition(".")[2]

    def say(lines: list[str], status: int) -> int:
        for line in lines:
            print(f"{name}: {line}", file=sys.stderr)
        return status

    with signals_raise():
        try:
            plan = read_json(options.plan, parse)
            options.results.mkdir(parents=True, exist_ok=True)
            errors = run(plan, options.results)
        except (PlanError, TrafficError, ProgramMissingError, OSError) as error:
            return say([str(error)], EXIT_REFUSED)
        except StoppedError as stopped:
            return say([f"ended by {stopped} before its start"], EXIT_INCOMPLETE)
        return say(errors, EXIT_INCOMPLETE if errors else 0)
