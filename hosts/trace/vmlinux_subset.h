/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The kernel types that tcp_trace.bpf.c reads, with only the fields that it reads. Offsets, sizes and bit
 * positions in this header are placeholders: preserve_access_index makes libbpf insert those of the kernel's BTF
 * (CO-RE). A field needs only its kernel name and an integer type of at least its width. A whole vmlinux.h would be
 * 3 MB.
 */
#ifndef VMLINUX_SUBSET_H
#define VMLINUX_SUBSET_H

#include <linux/types.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	__u32 inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct in6_addr {
	union {
		__be32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	__u16 skc_family;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr; /* absent without CONFIG_IPV6 */
	struct in6_addr skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate; /* 32 bits before Linux 4.20 */
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	__u8 icsk_ca_state : 5; /* 6 bits before Linux 5.7 */
};

struct minmax_sample {
	__u32 t;
	__u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 snd_nxt;
	__u32 snd_una;
	__u32 snd_cwnd;
	__u32 snd_ssthresh;
	__u32 packets_out;
	__u32 retrans_out;
	__u32 sacked_out;
	__u32 lost_out;
	__u32 snd_wnd;
	__u32 rcv_wnd;
	__u32 srtt_us;
	struct minmax rtt_min;
	__u32 delivered;
	__u32 rate_delivered;
	__u32 rate_interval_us;
	__u32 mss_cache;
};

struct sk_buff {
	char cb[48];
	__u32 len;
	unsigned char *data;
};

struct tcp_skb_cb {
	__u32 seq;
};

#pragma clang attribute pop

#endif
