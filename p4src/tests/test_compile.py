# SPDX-License-Identifier: MIT
"""Calling p4c: digests over all included files, normalised paths, errors."""

import json
import shutil
from pathlib import Path

import pytest

from p4src.compile.sources import digest, sources
from p4src.compile.v1model import main

ROOT = Path(__file__).resolve().parents[2]
P4C = shutil.which("p4c-bm2-ss")
ARGUMENTS = ["p4/main.p4", "--output-dir", "out"]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program whose header includes a .def file."""
    (tmp_path / "p4/shared").mkdir(parents=True)
    (tmp_path / "p4/main.p4").write_text('#include <core.p4>\n#include "shared/a.p4"\n')
    (tmp_path / "p4/shared/a.p4").write_text('  #  include "../../wire.def"\n// #include "no.p4"\n')
    (tmp_path / "wire.def").write_text("FIELD(8, x)\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_digest__is_of_code_its_place_and_its_files_name(tree: Path) -> None:
    assert {path.relative_to(tree).as_posix() for path in sources(Path("p4/main.p4"))} == {
        "p4/main.p4", "p4/shared/a.p4", "wire.def",
    }  # fmt: skip

    def of(text: str) -> str:
        (tree / "wire.def").write_text(text)
        return digest(Path("p4/main.p4"), Path())

    code = of("FIELD(9, x)  // a reason\n/* and\n * more */ FIELD(8, y)\n")
    assert of("FIELD(9, x)\n/* another\n * one  */ FIELD(8, y)\n") == code
    assert digest(tree / "p4/main.p4", tree) == code
    others = [
        "FIELD(9, x)\n\n          FIELD(8, z)\n",
        "FIELD(9, x)\n          FIELD(8, y)\n",
        'FIELD(9, "// x")\n\n          FIELD(8, y)\n',
        'FIELD(9, "// y")\n\n          FIELD(8, y)\n',
    ]
    digests = {code, *map(of, others)}
    (tree / "wire.def").rename(tree / "wire2.def")
    (tree / "p4/shared/a.p4").write_text('#include "../../wire2.def"\n')
    assert len(digests | {digest(Path("p4/main.p4"), Path())}) == 6


def test_sources__leave_out_what_the_compiler_finds_itself(tmp_path: Path) -> None:
    (tmp_path / "main.p4").write_text('#include "v1model.p4"\n')
    assert sources(tmp_path / "main.p4") == [tmp_path / "main.p4"]


def test_check__prints_the_command_that_refreshes(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refresh = f"with: python -m p4src.compile.v1model {' '.join(ARGUMENTS)}\n"
    assert main([*ARGUMENTS, "--check"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("out/main.json, out/main.sha256: missing")
    assert error.endswith(refresh)
    (tree / "out").mkdir()
    (tree / "out/main.json").touch()
    (tree / "out/main.sha256").write_text(digest(Path("p4/main.p4"), Path()) + "\n")
    assert main([*ARGUMENTS, "--check"]) == 0
    (tree / "wire.def").write_text("")
    assert main([*ARGUMENTS, "--check"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("p4/main.p4: not as compiled; compile again with: ")
    assert error.endswith(refresh)


def test_what_is_missing__is_one_line(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("P4C", "/nowhere/p4c-bm2-ss")

    def refusal(program: str) -> str:
        assert main([program, *ARGUMENTS[1:]]) == 1
        assert not (tree / "out").exists()
        message = capsys.readouterr().err
        assert message.count("\n") == 1
        return message

    message = refusal("p4/main.p4")
    assert message.startswith("/nowhere/p4c-bm2-ss ($P4C) is not installed")
    assert "https://github.com/p4lang/p4c#getting-started-with-p4c" in message
    assert refusal("p4/none.p4") == f"reading {tree / 'p4/none.p4'}: No such file or directory\n"


@pytest.mark.skipif(not P4C, reason="p4c-bm2-ss is not installed")
def test_compile__writes_both_files_or_leaves_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = ROOT / "softswitch/tests/translate/programs"
    for name in ("begin.p4", "names.p4"):
        shutil.copy(programs / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("P4C", raising=False)
    assert main(["names.p4", "--output-dir", "build"]) == 0
    written = {path.name: path.read_text() for path in (tmp_path / "build").iterdir()}
    assert set(written) == {"names.json", "names.sha256"}
    assert json.loads(written["names.json"])["program"] == "names.p4"
    assert str(tmp_path) not in written["names.json"]
    (tmp_path / "names.p4").write_text('#include "begin.p4"\nnonsense\n')
    assert main(["names.p4", "--output-dir", "build"]) == 1
    assert written == {path.name: path.read_text() for path in (tmp_path / "build").iterdir()}
