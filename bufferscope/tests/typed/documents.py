# SPDX-License-Identifier: MIT
"""The code blocks of README.md, docs/ and the package's README, and the lines in them that a user types."""

from __future__ import annotations

import re
from typing import NamedTuple

from rich.markdown import Markdown

from experiments.machine.host import CHECKOUT

DOCUMENTS = [CHECKOUT / "README.md", *sorted(CHECKOUT.glob("docs/**/*.md")), CHECKOUT / "bufferscope/README.md"]
READMES = sorted(CHECKOUT.glob("[a-z]*/README.md"))
PROGRAM = re.compile(r"(sudo )?(make|bufferscope|python|cp|git|\./\S+|\.venv/bin/\S+) ")


class Block(NamedTuple):
    document: str
    language: str
    text: str

    @property
    def typed(self) -> list[str]:
        """The commands without comments and without optional words in brackets; none if the block is not shell."""
        lines = [re.sub(r"\s+#.*| ?\[[^]]*\]", "", line) for line in self.text.splitlines() if line.strip()]
        lines = [line for line in lines if line.strip() and not line.startswith("#")]
        return lines if all(PROGRAM.match(f"{line} ") for line in lines) else []


def blocks() -> list[Block]:
    return [
        Block(str(path.relative_to(CHECKOUT)), token.info, token.content)
        for path in DOCUMENTS
        for token in Markdown(path.read_text()).parsed
        if token.type in ("fence", "code_block")
    ]


def in_sentences() -> list[str]:
    """The commands of ours between backticks, without those that have an ellipsis."""
    found = [
        child.content
        for path in {*DOCUMENTS, *READMES}
        for token in Markdown(path.read_text()).parsed
        for child in token.children or []
        if child.type == "code_inline"
    ]
    ours = re.compile(r"(?:make|(?:\.venv/bin/)?bufferscope) (?!-|COMMAND|help)")
    return sorted({text for text in found if ours.match(text) and not re.search(r"\.\.\.|KEY=|PART|&&", text)})
