# SPDX-License-Identifier: MIT
"""Congestion controls as BPF: our sources compile, the kernel takes them, and none stays when the loader ends."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from hosts.congestion_bpf import objects
from hosts.tests.patience import wait_until

LACKING = objects.lacking()
CONGESTION_CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
TEMPLATE = objects.BOTH_KERNELS / "template/mycc.c"
pytestmark = [
    pytest.mark.software,
    pytest.mark.skipif(bool(LACKING), reason=f"this machine lacks {LACKING}"),
]
SOURCE = TEMPLATE.read_text() if TEMPLATE.exists() else ""
RAW = """
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
SEC("struct_ops") __u32 BPF_PROG(a, struct sock *sk) { return tcp_reno_ssthresh(sk); }
SEC("struct_ops") void BPF_PROG(b, struct sock *sk, __u32 ack, __u32 acked) { tcp_reno_cong_avoid(sk, ack, acked); }
SEC("struct_ops") __u32 BPF_PROG(c, struct sock *sk) { return tcp_reno_undo_cwnd(sk); }
SEC(".struct_ops.link") struct tcp_congestion_ops any = {
	.ssthresh = (void *)a, .cong_avoid = (void *)b, .undo_cwnd = (void *)c, .name = "elsewhere",
};
char _license[] SEC("license") = "GPL";
"""


def name(suffix: str) -> str:
    """A name that no other test uses at the same time."""
    return f"t{os.getpid()}_{suffix}"


def available() -> list[str]:
    return CONGESTION_CONTROLS.read_text().split()


@pytest.fixture(scope="module")
def made() -> dict[str, Path]:
    texts = {stem: (path.name, path.read_text()) for stem, path in objects.own_sources().items()}
    texts |= {"mycc": ("mycc.c", SOURCE), "raw": ("raw.bpf.c", RAW)}
    return {stem: objects.build(*text) for stem, text in texts.items()}


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_loader__registers_each_until_it_ends(made: dict[str, Path], end: signal.Signals) -> None:
    names = {name(str(place)): path for place, path in enumerate(made.values())}
    words = [word for key, path in names.items() for word in ("--algorithm", f"{key}={path}")]
    loader = subprocess.Popen([objects.LOADER, *words, "--seed", "7"], stdout=subprocess.PIPE, text=True)
    try:
        assert loader.stdout
        assert loader.stdout.readline() == "ready\n"
        assert set(names) <= set(available())
        again = subprocess.run([objects.LOADER, *words[:2]], capture_output=True, text=True, check=False)
        assert again.returncode == 1
        assert "another congestion control has this name" in again.stderr
        assert set(names) <= set(available())
        loader.send_signal(end)
        assert loader.wait(20) == (0 if end == signal.SIGTERM else -signal.SIGKILL)
    finally:
        loader.kill()
        loader.wait()
    wait_until(lambda: not set(names) & set(available()))


def test_check__registers_nothing(made: dict[str, Path]) -> None:
    before = available()
    objects.verify({name(str(place)): path for place, path in enumerate(made.values())})
    assert available() == before


def test_refusals__have_the_tools_reason_in_one_line() -> None:
    for change, reason in (
        (("flow->losses++;", "flow->losses++"), r"clang for BPF: mycc\.c:\d+:\d+: error: expected ';'"),
        (
            ("flow->losses++;", "tcp_sk(sk)->snd_cwnd_clamp = 2;"),
            r"mycc\.c:\d+: 'tcp_sk\(sk\)->snd_cwnd_clamp = 2;': no",
        ),
        ((", .undo_cwnd = undo_cwnd", ""), "a CALLBACK is not a member of CONGESTION_CONTROL: prog 'undo_cwnd'$"),
        (("u32 losses;", "u32 losses[30];"), "larger than ICSK_CA_PRIV_SIZE|negative|flow->losses"),
        ((SOURCE, "int nothing;"), "no struct tcp_congestion_ops"),
    ):
        text = SOURCE.replace(*change)
        assert text != SOURCE
        with pytest.raises(objects.ObjectError) as failure:
            objects.verify({name("bad"): objects.build("mycc.c", text)})
        assert re.search(reason, str(failure.value)), failure.value
        assert "\n" not in str(failure.value)


def test_loader__refuses_damaged_objects(tmp_path: Path, made: dict[str, Path]) -> None:
    whole = made["mycc"].read_bytes()
    for damaged in (b"", b"\x7fELF", whole[:200], whole[: len(whole) // 2], os.urandom(4096)):
        file = tmp_path / "damaged.o"
        file.write_bytes(damaged)
        done = subprocess.run(
            [objects.LOADER, "--check", "--algorithm", f"x={file}"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 1, damaged[:8]
        assert len(done.stderr.splitlines()) == 1
