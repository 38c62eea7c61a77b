# SPDX-License-Identifier: MIT
"""Our custom trace events in the lab's kernel: every field has the socket's own value, and no event is lost."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hosts.trace.tests.tracing import PEER, PROBE, RETRANSMIT, ROOT, TRACER, check_exchange
from virtual import RUN_DIRECTORY
from virtual.kernel.tests.booted import SCRIPT, boot
from wire.wire import BLOCK, STORED_TCP_RECORD, read_blocks

pytestmark = pytest.mark.virtual
PORT, OTHER_PORT = 6000, 6001
# Two namespaces. During the bulk transfer the path to "b" loses 2 % of the packets.
COMMANDS = """\
exec >{out}/console 2>&1
ip netns add a; ip netns add b
ip link add eth0 netns a type veth peer name eth0 netns b
ip -n a address add 10.77.0.1/24 dev eth0; ip -n b address add 10.77.0.2/24 dev eth0
ip -n a address add fd77::1/64 dev eth0 nodad; ip -n b address add fd77::2/64 dev eth0 nodad
for side in a b; do ip -n $side link set eth0 gso_max_segs 1; ip -n $side link set eth0 up; done
ip netns exec a tc qdisc add dev eth0 root netem delay 2ms
ip netns exec b {python} {peer} serve {port} >/dev/null &
ip netns exec b {python} {peer} serve {other_port} >/dev/null &
sleep 1
{tracer} --output {out}/tcp.bst --summary {out}/tracer.json --netns /run/netns/a --port {port}-{port} &
tracer=$!
sleep 1
ip netns exec a {python} {peer} exchange 10.77.0.2 {port} >{out}/v4
ip netns exec a {python} {peer} exchange fd77::2 {port} >{out}/v6
ip netns exec a {python} {peer} exchange 10.77.0.2 {other_port} >/dev/null
ip netns exec a tc qdisc change dev eth0 root netem delay 2ms loss 2%
ip netns exec a {python} {peer} send 10.77.0.2 {port} 2000000 >{out}/bulk
ip netns exec a cat /proc/net/snmp >{out}/snmp
kill $tracer; wait $tracer; echo $? >{out}/status
stat -Lc %i /run/netns/a >{out}/inode
ls /sys/kernel/tracing/instances >{out}/instances
"""


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    subprocess.run(["make", "-s", "-C", ROOT / "hosts"], check=True)
    out = tmp_path_factory.mktemp("lab")
    names = {"out": RUN_DIRECTORY, "python": sys.executable, "peer": PEER, "tracer": TRACER}
    (out / SCRIPT).write_text(COMMANDS.format(port=PORT, other_port=OTHER_PORT, **names))
    boot(out)
    assert (out / "status").read_text().strip() == "0", (out / "console").read_text()
    return out


def records(out):
    blocks = read_blocks((out / "tcp.bst").read_bytes(), BLOCK.const["BLOCK_TCP"])
    return np.concatenate([np.frombuffer(block.payload, STORED_TCP_RECORD) for block in blocks])


def test_kernel_event__has_the_kernels_values_of_the_socket(out):
    traced = records(out)
    for name, local, remote in (
        ("v4", "::ffff:10.77.0.1", "::ffff:10.77.0.2"),
        ("v6", "fd77::1", "fd77::2"),
    ):
        exchange = json.loads((out / name).read_text())
        acks = traced[(traced["event"] == PROBE) & (traced["socket_cookie"] == exchange["cookie"])]
        check_exchange(acks, exchange, local, remote)
        assert set(acks["netns_inode"]) == {int((out / "inode").read_text())}


def test_kernel_event__counts_what_the_namespace_counts(out):
    summary, traced = json.loads((out / "tracer.json").read_text()), records(out)
    assert summary["tracepoints"] == ["bufferscope:tcp_probe", "bufferscope:tcp_retransmit_skb"]
    assert summary["unknown_fields"] == summary["retransmit_unknown_fields"] == []
    assert summary["events"] == summary["stored"] == len(traced)
    assert summary["lost"] == 0
    lines = [line.split() for line in (out / "snmp").read_text().splitlines() if line.startswith("Tcp:")]
    counted = dict(zip(lines[0][1:], map(int, lines[1][1:]), strict=True))
    retransmits = traced[traced["event"] == RETRANSMIT]
    assert len(retransmits) == counted["RetransSegs"] > 5
    assert np.count_nonzero(retransmits["data_bytes"] == 0) <= 2  # a SYN and a FIN may be sent again, too
    assert np.all((retransmits["event_seq"].astype(np.int64) - retransmits["snd_una"]) % 2**32 < 2**31)
    assert set(traced["dst_port"]) == {PORT}
    assert set(traced["ca_state"]) >= {0, 3}
    in_flight = sum(traced[name].astype(np.int64) for name in ("packets_out", "retrans_out"))
    in_flight -= sum(traced[name].astype(np.int64) for name in ("sacked_out", "lost_out"))
    assert in_flight.min() >= 0
    assert in_flight.max() > 10
    assert np.all(np.diff(traced["mono_ns"].astype(np.int64)) >= 0)  # one processor, one ring
    assert Path(out / "instances").read_text() == ""
