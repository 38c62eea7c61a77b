// SPDX-License-Identifier: GPL-2.0 OR MIT
// Sets snd_cwnd_clamp when a connection is established, before the congestion control begins. The kernel then also sets
// ssthresh to the bound. The clamp bounds only growth, so TCP_BPF_IW bounds the initial window.
#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "window.h"

enum { LEVEL_TCP = 6 }; /* SOL_TCP */

const volatile __u64 netns_cookie;
/* The bound for each server port; 0: none. Not const, so that the object file does not store all the zeros. */
__u32 most_segments[WINDOW_PORTS];
__u32 failures;

SEC("sockops") int bound_window(struct bpf_sock_ops *socket)
{
	int segments;
	long err;

	if (socket->op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB || bpf_get_netns_cookie(socket) != netns_cookie)
		return 1;
	segments = (int)most_segments[bpf_ntohl(socket->remote_port) % WINDOW_PORTS];
	if (!segments)
		return 1;
	err = bpf_setsockopt(socket, LEVEL_TCP, TCP_BPF_SNDCWND_CLAMP, &segments, sizeof(segments));
	if (!err && socket->snd_cwnd > (__u32)segments)
		err = bpf_setsockopt(socket, LEVEL_TCP, TCP_BPF_IW, &segments, sizeof(segments));
	if (err)
		__sync_fetch_and_add(&failures, 1);
	return 1;
}

char _license[] SEC("license") = "Dual MIT/GPL";
