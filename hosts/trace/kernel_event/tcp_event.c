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
#include "record_fields.h"

static void fill_addresses(struct tcp_record *record, const struct sock *sk)
{
	record->src_port = sk->sk_num;
	record->dst_port = ntohs(sk->sk_dport);
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6) {
		fill_ipv6_addresses(record, sk->sk_v6_rcv_saddr.s6_addr32, sk->sk_v6_daddr.s6_addr32);
		return;
	}
#endif
	fill_ipv4_addresses(record, sk->sk_rcv_saddr, sk->sk_daddr);
}

static void fill_socket(struct tcp_record *record, const struct sock *sk)
{
	record->socket_cookie = sock_gen_cookie((struct sock *)sk);
	record->pacing_rate_bytes_per_s = READ_ONCE(sk->sk_pacing_rate);
	fill_tcp(record, tcp_sk(sk));
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

/* Called in __tcp_retransmit_skb, after the segment was passed to IP and before retrans_out counts it. skb is the one
 * in the retransmit queue, so it has no header.
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

MODULE_DESCRIPTION("bufferscope: one trace event for every TCP segment received or retransmitted");
MODULE_LICENSE("Dual MIT/GPL");
