# SPDX-License-Identifier: MIT
"""The command `image`: an OCI archive that podman and Docker load, with everything that a run in virtual time needs.

mmdebstrap makes the root file system from Debian's packages; this checkout's wheel and the packages that it depends on
are installed beside Debian's Python; the built programs and the stripped kernels, the usual one and those of our AQMs,
are in BUILD. An OCI archive is a tar file with one layer and four JSON files: no tool that writes them is smaller than
`_archive`.

The host must be Debian, and the image has the same release, because the programs are linked with the host's libraries.
Every time in it is the commit's, so that equal inputs (commit, packages) give equal bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from bufferscope import pack
from experiments.lab import own_kernel
from experiments.lab import virtual as virtual_lab
from experiments.setup import deploy
from experiments.spec.own_p4 import SHELF
from experiments.spec.resolve import resolve
from lib import files, places
from lib.errors import RunError
from lib.keys import Keys, field
from lib.terminal import say
from virtual import offers
from virtual.kernel import digests
from virtual.kernel.tools import PROCESSORS

PYTHONS = {"bookworm": "3.11", "trixie": "3.13"}  # Debian's release -> its Python
# What runs, then what compiles a user's P4 into the switch core and a capture's reader. No kernel is built there.
PACKAGES = (
    "python3", "iperf3", "iproute2", "ethtool", "procps", "parallel", "libbpf1", "libelf1", "zstd",
    "make", "gcc", "libc6-dev", "zlib1g-dev",
)  # fmt: skip
LEFT_OUT = ("/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*", "/usr/share/doc/*")
KEPT = "/usr/share/doc/*/copyright"
BUILD = "opt/bufferscope/build"
PROGRAMS = {
    "bufferscope": '#!/bin/sh\nexec /usr/bin/python3 -P -m bufferscope "$@"\n',
    "ansible-playbook": '#!/bin/sh\nexec /usr/bin/python3 -m ansible playbook "$@"\n',
    "ansible-inventory": '#!/bin/sh\nexec /usr/bin/python3 -m ansible inventory "$@"\n',
}
CONFIG = {
    "Entrypoint": ["/usr/local/bin/bufferscope"],
    "Cmd": ["--help"],
    "Env": ["PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", f"BUFFERSCOPE_BUILD=/{BUILD}"],
    "WorkingDir": "/",
}
OCI = "application/vnd.oci.image"
NAME = "bufferscope"
CHUNK_BYTES = 1 << 20


class Asked(Keys):
    output: Path = field("the archive", default="build/bufferscope.oci.tar")


def run(asked: Asked) -> int:
    """Returns the exit status. Raises RunError."""
    release = _release()
    deploy.ensure()
    virtual_lab.prepare()
    epoch = int(_output(["git", "-c", "safe.directory=*", "-C", str(places.CHECKOUT), "log", "-1", "--format=%ct"]))
    output = asked.output.absolute()
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bufferscope-image-", dir=output.parent) as scratch:
        root = Path(scratch, "root")
        say("installing the wheel and the packages that it depends on")
        _install(root, Path(scratch), PYTHONS[release], epoch)
        _place_programs(root, _shelf())
        say(f"making Debian {release} with {', '.join(PACKAGES)}")
        layer, digest = _layer(root, Path(scratch, "layer"), release, epoch)
        with files.replacing(output) as file:
            _archive(file, layer, digest, epoch)
    say(f"{asked.output}: {asked.output.stat().st_size / 1e6:.0f} MB; podman load -i {asked.output}")
    return 0


def _release() -> str:
    """The Debian release of this machine, which can make the image. Raises RunError."""
    if (processor := platform.machine().lower()) not in PROCESSORS:
        raise RunError(f"an image has the kernel of virtual time, which runs on x86-64; this processor is {processor}")
    release = platform.freedesktop_os_release()
    name = release.get("VERSION_CODENAME", "")
    if release.get("ID") != "debian" or name not in PYTHONS:
        raise RunError(
            f"an image is made on a Debian machine, because it gets this machine's programs; allowed: "
            f"{', '.join(PYTHONS)}; this is {release.get('PRETTY_NAME', 'another system')}"
        )
    if not shutil.which("mmdebstrap"):
        raise RunError("mmdebstrap is missing; as root: apt-get install mmdebstrap uidmap")
    return name


def _install(root: Path, scratch: Path, python: str, epoch: int) -> None:
    """The wheel and its dependencies below `root`, and the commands that start them. Raises RunError."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    _output([*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(scratch), str(places.CHECKOUT)], epoch)
    libraries = root / f"usr/local/lib/python{python}/dist-packages"
    # By its name: pip would note the path of a file.
    words = ["--no-compile", "--only-binary=:all:", f"--python-version={python}", f"--find-links={scratch}"]
    _output([*pip, "install", *words, f"--target={libraries}", "bufferscope"], epoch)
    shutil.rmtree(libraries / "bin")  # for this machine's Python
    (root / "usr/local/bin").mkdir()
    for name, text in PROGRAMS.items():
        program = root / "usr/local/bin" / name
        program.write_text(text)
        program.chmod(0o755)


def _shelf() -> set[Path]:
    """The directories of the kernels of MODE=codel and all other AQMs of ours. Raises RunError, SpecError."""
    host = virtual_lab.probe()
    return {own_kernel.kernel_of(resolve({"clock": "virtual", "mode": mode}, host)) for mode in SHELF}


def _place_programs(root: Path, kernels: set[Path]) -> None:
    """The programs that a packed run has, stripped, below `root`."""
    prefix = f"{pack.PROGRAM}/build/"
    for path, source in pack.program(kernels):
        if path.startswith(prefix):
            place = root / BUILD / path.removeprefix(prefix)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(source if isinstance(source, bytes) else source.read_bytes())
            if isinstance(source, Path) and os.access(source, os.X_OK):
                place.chmod(0o755)
                _output(["strip", str(place)])
    (root / BUILD / "plans").mkdir()
    usual = root / BUILD / "virtual" / virtual_lab.KERNEL.name
    for kernel in (usual, *(root / BUILD / each.relative_to(places.BUILD) / usual.name for each in kernels)):
        record = kernel.with_name(virtual_lab.KERNEL_JSON.name)
        digests.write_json(record, digests.read_json(record) | {"binary_digest": digests.of_file(kernel)})
        kernel.with_name("lock").touch()
    offers.congestion_controls(usual)


def _layer(root: Path, layer: Path, release: str, epoch: int) -> tuple[Path, str]:
    """The compressed root file system, and the SHA-256 of the tar file in it. Raises RunError."""
    compiling = "python3 -m compileall -q --invalidation-mode unchecked-hash /usr/local/lib"
    command = [
        "mmdebstrap", "--quiet", "--variant=apt", f"--include={','.join(PACKAGES)}",
        *(f"--dpkgopt=path-exclude={path}" for path in LEFT_OUT), f"--dpkgopt=path-include={KEPT}",
        f"--customize-hook=tar-in {_tar(root)} /", f'--customize-hook=chroot "$1" {compiling}', release, "-",
    ]  # fmt: skip
    digest = hashlib.sha256()
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, env=_environment(epoch), stdin=subprocess.DEVNULL) as made,
        layer.open("wb") as file, gzip.GzipFile("", "wb", 6, file, mtime=0) as compressed,
    ):  # fmt: skip
        assert made.stdout is not None
        while chunk := made.stdout.read(CHUNK_BYTES):
            digest.update(chunk)
            compressed.write(chunk)
    if made.returncode:
        raise RunError(f"mmdebstrap ended with status {made.returncode}: see above")
    return layer, digest.hexdigest()


def _tar(root: Path) -> Path:
    """A tar file of the files below `root`, which are root's there whoever makes the image."""
    path = root.with_suffix(".tar")

    def of_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mode |= 0o444 | (entry.mode & 0o100) // 0o100 * 0o111
        return entry

    with tarfile.open(path, "w") as archive:
        for each in sorted(root.iterdir()):
            archive.add(each, each.name, filter=of_root)
    return path


def _archive(file: IO[bytes], layer: Path, diff_id: str, epoch: int) -> None:
    """An OCI archive with one layer: https://github.com/opencontainers/image-spec/blob/main/image-layout.md"""
    created = _output(["date", "--utc", f"--date=@{epoch}", "+%Y-%m-%dT%H:%M:%SZ"])
    image = {
        "created": created,
        "architecture": "amd64",
        "os": "linux",
        "config": CONFIG,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{diff_id}"]},
        "history": [{"created": created, "created_by": f"{NAME} image"}],
    }
    config = json.dumps(image).encode()
    manifest = json.dumps({
        "schemaVersion": 2,
        "mediaType": f"{OCI}.manifest.v1+json",
        "config": _described("config.v1+json", hashlib.sha256(config).hexdigest(), len(config)),
        "layers": [_described("layer.v1.tar+gzip", digests.of_file(layer), layer.stat().st_size)],
    }).encode()  # fmt: skip
    top = _described("manifest.v1+json", hashlib.sha256(manifest).hexdigest(), len(manifest))
    top["annotations"] = {
        "org.opencontainers.image.ref.name": "latest",
        "io.containerd.image.name": f"docker.io/library/{NAME}:latest",
    }
    index = json.dumps({"schemaVersion": 2, "manifests": [top]}).encode()
    with tarfile.open(fileobj=file, mode="w") as archive:

        def add(name: str, content: IO[bytes], size: int) -> None:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = size, epoch
            archive.addfile(entry, content)

        for name, text in (("oci-layout", b'{"imageLayoutVersion": "1.0.0"}'), ("index.json", index)):
            add(name, io.BytesIO(text), len(text))
        for blob in (config, manifest):
            add(f"blobs/sha256/{hashlib.sha256(blob).hexdigest()}", io.BytesIO(blob), len(blob))
        with layer.open("rb") as content:
            add(f"blobs/sha256/{digests.of_file(layer)}", content, layer.stat().st_size)


def _described(kind: str, digest: str, size: int) -> dict[str, Any]:
    return {"mediaType": f"{OCI}.{kind}", "digest": f"sha256:{digest}", "size": size}


def _environment(epoch: int) -> dict[str, str]:
    kept = {name: value for name, value in deploy.environment().items() if not name.startswith("BUFFERSCOPE_")}
    return kept | {"SOURCE_DATE_EPOCH": str(epoch), "PATH": f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"}


def _output(command: Sequence[str], epoch: int = 0) -> str:
    """What a program says. Raises RunError with its last line."""
    done = subprocess.run(
        command, env=_environment(epoch), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it gave no reason"]
        raise RunError(f"{' '.join(command[:5])} ... ended with status {done.returncode}: {said[-1]}")
    return done.stdout.strip()
