# SPDX-License-Identifier: MIT
"""A TCP connection for the tracer, and its TCP_INFO from the kernel. The tests run this program in a namespace.

tcp_peer.py serve PORT                 accepts connections one after the other and reads all their data
tcp_peer.py exchange ADDRESS PORT      a message and its ACK, three times; prints SO_COOKIE, the socket's addresses,
                                       and the TCP_INFO that was read before the last message
tcp_peer.py send ADDRESS PORT BYTES    bulk data; prints SO_COOKIE
"""

import json
import socket
import struct
import sys
import time

SO_COOKIE = 57  # include/uapi/asm-generic/socket.h
# struct tcp_info of include/uapi/linux/tcp.h, up to its field `delivered`
INFO = struct.Struct("=8B24I4Q6IQ3QI")
NAMES = (
    *("state", "ca_state", "retransmits", "probes", "backoff", "options", "wscale", "flags", "rto", "ato", "snd_mss"),
    *("rcv_mss", "unacked", "sacked", "lost", "retrans", "fackets", "last_data_sent", "last_ack_sent"),
    *("last_data_recv", "last_ack_recv", "pmtu", "rcv_ssthresh", "rtt", "rttvar", "snd_ssthresh", "snd_cwnd", "advmss"),
    *("reordering", "rcv_rtt", "rcv_space", "total_retrans", "pacing_rate", "max_pacing_rate", "bytes_acked"),
    *("bytes_received", "segs_out", "segs_in", "notsent_bytes", "min_rtt", "data_segs_in", "data_segs_out"),
    *("delivery_rate", "busy_time", "rwnd_limited", "sndbuf_limited", "delivered"),
)


def tcp_info(connection):
    return dict(zip(NAMES, INFO.unpack(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO.size))))


def wait_until_acked(connection):
    deadline = time.monotonic() + 60
    while True:
        info = tcp_info(connection)
        if not info["unacked"] + info["notsent_bytes"]:  # the kernel may hold back data that it could send
            return
        assert time.monotonic() < deadline, info
        time.sleep(0.001)


def serve(port):
    with socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True) as listener:
        print("ready", flush=True)
        while True:
            connection, _ = listener.accept()
            with connection:
                while connection.recv(1 << 20):
                    pass


def exchange(address, port):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.connect((address, port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(3):
            before = tcp_info(connection)
            connection.sendall(b"x" * 1000)
            wait_until_acked(connection)
        cookie = int.from_bytes(connection.getsockopt(socket.SOL_SOCKET, SO_COOKIE, 8), sys.byteorder)
        names = [*connection.getsockname()[:2], *connection.getpeername()[:2]]
        print(json.dumps({"cookie": cookie, "names": names, "before": before}))


def send(address, port, length):
    with socket.create_connection((address, port)) as connection:
        cookie = int.from_bytes(connection.getsockopt(socket.SOL_SOCKET, SO_COOKIE, 8), sys.byteorder)
        connection.sendall(bytes(length))
        wait_until_acked(connection)
        print(json.dumps({"cookie": cookie}))


if __name__ == "__main__":
    command, *words = sys.argv[1:]
    if command == "serve":
        serve(int(words[0]))
    elif command == "exchange":
        exchange(words[0], int(words[1]))
    else:
        send(words[0], int(words[1]), int(words[2]))
