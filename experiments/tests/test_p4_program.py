# SPDX-License-Identifier: MIT
"""An edit of a P4 source or of a wire definition never runs the old program: it is compiled, or refused."""

import re
import sys

import pytest

from bufferscope.tests.typed.clone import Clone, Done, make_clone

EDITS = {
    "p4src/shared/queue_policy.p4": "const bit<8> UNUSED = 1;\n",
    "p4src/shared/headers.p4": "const bit<8> UNUSED = 1;\n",
    "wire/postcard.def": "FIELD(8, unused)\n",
}


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A checkout of its own, whose sources may change."""
    return make_clone(tmp_path_factory.mktemp("clone"))


def run(clone: Clone, words: str, p4c: str = "/nowhere/p4c") -> Done:
    return clone.type(f"{sys.executable} -m {words}", P4C=p4c)


@pytest.mark.parametrize(
    ("source", "command"),
    list(zip(EDITS, ("experiment CLOCK=virtual", "experiment CLOCK=real", "deploy"), strict=True)),
)
def test_edit__is_refused_without_p4c_and_the_message_leads_back(source: str, command: str, clone: Clone) -> None:
    with (clone.path / source).open("a") as file:
        file.write(EDITS[source])
    done = run(clone, f"bufferscope {command}")
    assert (done.status, done.said.count("\n")) == (1, 1)
    assert source in done.said
    assert "make p4" in done.said
    back = re.search(r"git checkout \w+ -- [\w./ ]+\.(?:p4|def)", done.said)
    assert back
    assert clone.type(back[0]).status == 0
    assert run(clone, "p4src.compile.current").status == 0


def test_edit__is_compiled_where_p4c_is(clone: Clone) -> None:
    """The compiler here gives the committed output: what counts is that it ran, and that the digest follows."""
    source = "p4src/shared/queue_policy.p4"
    text = (clone.path / source).read_text()
    compiler = clone.path / "p4c"
    committed = clone.path / "p4src/build/bufferscope"
    compiler.write_text(
        "#!/bin/sh\nfor last; do :; done\ngrep -q UNUSED p4src/shared/queue_policy.p4 || exit 1\n"
        f'cp {committed}.json "$3"\n'
    )
    compiler.chmod(0o755)
    digest = committed.with_suffix(".sha256")
    before = digest.read_text()
    (clone.path / source).write_text(text + EDITS[source])
    done = run(clone, "p4src.compile.current", str(compiler))
    assert done.status == 0, done.said
    assert source in done.said
    after = digest.read_text()
    assert [line for line in after.splitlines()[1:] if line not in before] == [
        line for line in after.splitlines() if line.endswith(source)
    ]
    assert run(clone, "p4src.compile.current").said == ""
