# SPDX-License-Identifier: MIT
"""The image: made once, then run from the archive alone, on a fresh root, by an ordinary user without privileges. By
podman where its containers start, else by bubblewrap with podman's limits: no capability, a /dev/shm of 64 MB.
"""

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bufferscope import image
from bufferscope.tests.test_wheel import EXPERIMENT, NOBODY, RAW
from lib.errors import RunError
from runs.names import SUMMARY

CHECKOUT = Path(__file__).resolve().parents[2]
MOST_BYTES = 500_000_000
SHM_BYTES = 64 << 20
INSIDE = ("CC=cubic", "FLOWS=16")  # as README has it
DROP = NOBODY if os.geteuid() == 0 else ()
can_make = pytest.mark.skipif(
    not (shutil.which("mmdebstrap") and shutil.which("bwrap")), reason="needs mmdebstrap, bwrap"
)


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A directory of nobody's: that of the tests is root's alone."""
    directory = Path(tempfile.mkdtemp(prefix="bufferscope-image-", dir="/var/tmp"))
    if DROP:
        os.chown(directory, 65534, 65534)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("image") / "a.tar"
    subprocess.run([sys.executable, "-m", "bufferscope", "image", f"OUTPUT={path}"], check=True, cwd=CHECKOUT)
    return path


def blob(archive: tarfile.TarFile, described: dict[str, Any]) -> bytes:
    """A file of the archive, which must be as its description says."""
    file = archive.extractfile(f"blobs/{described['digest'].replace(':', '/')}")
    assert file
    content = file.read()
    assert (len(content), f"sha256:{hashlib.sha256(content).hexdigest()}") == (described["size"], described["digest"])
    return content


@pytest.fixture(scope="module")
def root(archive: Path, place: Path) -> Path:
    """The image's files, unpacked by an ordinary user, and beside them its configuration."""
    root = place / "root"
    with tarfile.open(archive) as opened:
        index = opened.extractfile("index.json")
        assert index
        (top,) = json.load(index)["manifests"]
        manifest = json.loads(blob(opened, top))
        config = json.loads(blob(opened, manifest["config"]))
        (layer,) = manifest["layers"]
        content = blob(opened, layer)
    (place / "config.json").write_text(json.dumps(config["config"]))
    subprocess.run([*DROP, "mkdir", root], check=True)
    unpack: list[str | Path] = ["tar", "-xz", "--exclude=./dev/*", "--no-same-owner", "-C", root]
    subprocess.run([*DROP, *unpack], input=content, check=True)
    return root


def started(root: Path, results: Path, *words: str) -> list[str | Path]:
    """The command that runs the image's entry point as root of a container, without any right outside of it."""
    config = json.loads((root.parent / "config.json").read_text())
    bwrap: list[str | Path] = [*DROP, "bwrap", "--unshare-all", "--uid", "0", "--gid", "0", "--cap-drop", "ALL"]
    bwrap += ["--clearenv", "--bind", root, "/", "--bind", results, "/results", "--proc", "/proc", "--dev", "/dev"]
    bwrap += ["--size", str(SHM_BYTES), "--tmpfs", "/dev/shm", "--chdir", config["WorkingDir"]]
    for variable in config["Env"]:
        bwrap += ["--setenv", *variable.split("=", 1)]
    return [*bwrap, *config["Entrypoint"], *words]


@pytest.mark.long
@pytest.mark.virtual
@can_make
def test_image__runs_the_checkouts_experiment_to_the_byte(
    archive: Path, root: Path, place: Path, tmp_path: Path
) -> None:
    assert archive.stat().st_size <= MOST_BYTES
    results = place / "results"
    subprocess.run([*DROP, "mkdir", results], check=True)
    words = [word for word in EXPERIMENT if word != "CLOCK=virtual"]  # its default there
    done = subprocess.run(started(root, results, *words), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "preparing this machine" not in done.stdout  # nothing is built there
    run = (results / "latest").resolve() / "rep-1"
    assert json.loads((run / SUMMARY).read_text())["valid"]
    said = subprocess.run(started(root, results, "doctor"), capture_output=True, text=True, check=False).stdout
    assert re.search("^sweeps +yes", said, re.MULTILINE), said
    aqm = subprocess.run(started(root, results, *words, "MODE=codel"), capture_output=True, text=True, check=False)
    assert aqm.returncode == 0, aqm.stdout + aqm.stderr
    here = [sys.executable, "-m", "bufferscope", *EXPERIMENT, f"RESULTS={tmp_path}"]
    subprocess.run(here, check=True, cwd=CHECKOUT, capture_output=True)
    for name in RAW:
        assert (run / name).read_bytes() == (tmp_path / "latest/rep-1" / name).read_bytes(), name


@pytest.mark.long
@pytest.mark.virtual
@can_make
def test_image__draws_the_first_figure_within_minutes(root: Path, place: Path) -> None:
    results = place / "first"
    subprocess.run([*DROP, "mkdir", results], check=True)
    begin_s = time.monotonic()
    done = subprocess.run(
        started(root, results, "experiment", *INSIDE), capture_output=True, text=True, check=False, timeout=600
    )
    took_s = time.monotonic() - begin_s  # docs/measurements.md has the time of an idle machine
    print(f"{took_s:.1f} s")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (results / "latest/rep-1/report.html").stat().st_size
    assert took_s < 180


def test_image__is_made_on_debian_for_x86_64(monkeypatch: pytest.MonkeyPatch) -> None:
    release = {"ID": "ubuntu", "VERSION_CODENAME": "noble", "PRETTY_NAME": "Ubuntu 24.04"}
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: release)
    for processor, said in (("x86_64", "this is Ubuntu 24.04"), ("aarch64", "this processor is aarch64")):
        monkeypatch.setattr(platform, "machine", lambda processor=processor: processor)
        with pytest.raises(RunError, match=said):
            image.run(image.Asked())
