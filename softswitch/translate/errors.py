# SPDX-License-Identifier: MIT
"""Errors in a program, each as one line for the user."""

from __future__ import annotations


class Unsupported(Exception):
    """A construct that the soft switch does not have. `where` is FILE:LINE of the P4 source."""

    def __init__(self, where: str, construct: str, why: str) -> None:
        self.construct = construct
        super().__init__(f"{where}: {construct} is not supported by the soft switch: {why}")


class BadProgram(Exception):
    """The input is not what p4c-bm2-ss writes."""


class ManyProblems(Exception):
    """All errors of a program."""

    def __init__(self, problems: list[Unsupported]) -> None:
        self.problems = problems
        super().__init__("\n".join(dict.fromkeys(str(problem) for problem in problems)))
