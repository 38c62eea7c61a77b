// SPDX-License-Identifier: GPL-2.0 OR MIT
// The tracer's own trace events for kernels without BPF: events/bufferscope/tcp_probe and tcp_retransmit_skb, whose
// payload is a whole TCP record (wire/tcp_record.def). They are custom trace events on the kernel's tracepoints of the
// same names, so a tracepoint calls them only while they are enabled. tcp_trace.bpf.c records the same values.
#include <linux/init.h>
#include <linux/module.h>
#include <linux/tcp.h>
#include <linux/tracepoint.h>
#include <linux/version.h>
#include <net/inet_connection_sock.h>
#include <net/ipv6.h>
#include <net/tcp.h>
#include <trace/events/tcp.h>

#include "../../../wire/tcp_record.h"

/* An IPv6 or IPv4-mapped address as the record has it: two halves, each big-endian on the wire. */
static u64 half(__be32 first, __be32 second)
{
	return (u64)ntohl(first) << 32 | ntohl(second);
}

static void fill_addresses(struct tcp_record *record, const struct sock *sk)
{
	record->src_port = sk->sk_num;
	record->dst_port = ntohs(sk->sk_dport);
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6) {
		const __be32 *src = sk->sk_v6_rcv_saddr.s6_addr32;
		const __be32 *dst = sk->sk_v6_daddr.s6_addr32;

		record->src_addr_hi = half(src[0], src[1]);
		record->src_addr_lo = half(src[2], src[3]);
		record->dst_addr_hi = half(dst[0], dst[1]);
		record->dst_addr_lo = half(dst[2], dst[3]);
		return;
	}
#endif
	record->src_addr_hi = 0;
	record->src_addr_lo = half(htonl(0xffff), sk->sk_rcv_saddr);
	record->dst_addr_hi = 0;
	record->dst_addr_lo = half(htonl(0xffff), sk->sk_daddr);
}

static void fill_socket(struct tcp_record *record, const struct sock *sk)
{
	const struct tcp_sock *tcp = tcp_sk(sk);

	record->socket_cookie = sock_gen_cookie((struct sock *)sk);
	record->pacing_rate_bytes_per_s = READ_ONCE(sk->sk_pacing_rate);
	record->delivered_packets = tcp->delivered;
	record->snd_nxt = tcp->snd_nxt;
	record->snd_una = tcp->snd_una;
	record->cwnd_packets = tcp->snd_cwnd;
	record->ssthresh_packets = tcp->snd_ssthresh;
	record->packets_out = tcp->packets_out;
	record->retrans_out = tcp->retrans_out;
	record->sacked_out = tcp->sacked_out;
	record->lost_out = tcp->lost_out;
	record->snd_wnd_bytes = tcp->snd_wnd;
	record->rcv_wnd_bytes = tcp->rcv_wnd;
	record->srtt_us = tcp->srtt_us >> 3; /* the kernel keeps 8 times the value */
	record->rtt_min_us = tcp_min_rtt(tcp);
	record->rate_delivered_packets = tcp->rate_delivered;
	record->rate_interval_us = tcp->rate_interval_us;
	record->mss_bytes = tcp->mss_cache;
	record->netns_inode = sock_net(sk)->ns.inum;
	record->ca_state = inet_csk(sk)->icsk_ca_state;
	record->cpu = raw_smp_processor_id();
}

/* The ring stamps each event with the clock of the instance, so the reader fills mono_ns. */
static void fill_record(struct tcp_record *record, const struct sock *sk, u8 event, u32 seq, u32 data_bytes)
{
	record->mono_ns = 0;
	record->unknown_fields = 0;
	record->event = event;
	record->event_seq = seq;
	record->data_bytes = min_t(u32, data_bytes, U16_MAX);
	fill_addresses(record, sk);
	fill_socket(record, sk);
}

/* Called at the start of tcp_rcv_established (net/ipv4/tcp_input.c): skb->data is the TCP header. */
static void fill_probe(struct tcp_record *record, const struct sock *sk, const struct sk_buff *skb)
{
	const struct tcphdr *header = (const struct tcphdr *)skb->data;
	u32 header_bytes = header->doff * 4;

	fill_record(record, sk, TCP_EVENT_PROBE, ntohl(header->seq),
		    skb->len > header_bytes ? skb->len - header_bytes : 0);
}

/* Called in __tcp_retransmit_skb, after the segment was passed to IP and before retrans_out counts it. skb is the one in the
 * retransmit queue, so it has no header.
 */
static void fill_retransmit(struct tcp_record *record, const struct sock *sk, const struct sk_buff *skb)
{
	fill_record(record, sk, TCP_EVENT_RETRANSMIT, TCP_SKB_CB(skb)->seq, skb->len);
}

/* The skb of tcp_probe is const in some kernels only. */
typedef typeof(__builtin_choose_expr(
	__builtin_types_compatible_p(typeof(&trace_tcp_probe),
				     void (*)(struct sock *, const struct sk_buff *)),
	(const struct sk_buff *)NULL, (struct sk_buff *)NULL)) probed_skb_t;

#define CREATE_CUSTOM_TRACE_EVENTS
/* trace_custom_events.h puts the events into a group named `custom`: rename the group. */
#define custom bufferscope
#include "tcp_event.h"
#undef custom

static void __init attach(struct tracepoint *tracepoint, void *attached)
{
	*(int *)attached += trace_custom_event_tcp_probe_update(tracepoint);
	*(int *)attached += trace_custom_event_tcp_retransmit_skb_update(tracepoint);
}

static int __init tcp_event_init(void)
{
	int attached = 0;

	for_each_kernel_tracepoint(attach, &attached);
	return attached == 2 ? 0 : -ENOENT;
}
module_init(tcp_event_init);

MODULE_DESCRIPTION("bufferscope: one trace event for every TCP segment received or sent again");
MODULE_LICENSE("Dual MIT/GPL");
