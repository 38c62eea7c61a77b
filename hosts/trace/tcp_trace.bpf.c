// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Writes one TCP record (wire/tcp_record.h) for every segment that a TCP socket of one network namespace receives
 * in state ESTABLISHED or retransmits. To keep the softirq that carries the traffic short, the record is filled in
 * place in the ring of the current CPU: no copy, no lock between CPUs, no wake-up of the reader, which polls.
 * bpf_skc_to_tcp_sock gives the verifier the socket's type, so plain loads read the socket. Needs Linux 5.12.
 *
 * Each tracepoint has two programs, called one after the other. The kernel skips a program that is already
 * running on the same CPU. One program alone would lose 1 of 4000 events at 1 M/s: while a process works off its
 * socket's backlog, a softirq interrupts it with a segment for another socket. So the first program notes each
 * event that it sees. The second program is not running while the first one is, so the kernel does not skip it
 * then: it records the events that the first program did not see.
 */
#include <stdbool.h>
#include <linux/bpf.h>
#include "vmlinux_subset.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>

#include "../../wire/tcp_record.h"
#include "kernel_event/record_fields.h"
#include "tcp_trace.h"

#define AF_INET6	   10 /* include/linux/socket.h */
#define TCP_HEADER_BYTES   14 /* the TCP header up to and including the flags */
#define TCP_SEQ_AT	   4
#define TCP_DATA_OFFSET_AT 12
#define UNLIMITED_32	   0xffffffffU /* "unlimited" in a sk_pacing_rate of 32 bits */

char LICENSE[] SEC("license") = "Dual MIT/GPL";

const volatile __u32 traced_netns_inode;
const volatile __u16 first_remote_port;
const volatile __u16 last_remote_port = 0xffff;
const volatile bool retransmit_has_error; /* the tracepoint's third argument, Linux 6.16 */

struct cpu_ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* a placeholder: the loader makes the rings */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1); /* the loader: possible CPUs */
	__type(key, __u32);
	__array(values, struct cpu_ring);
} rings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* the loader: possible CPUs */
	__type(key, __u32);
	__type(value, struct cpu_counters);
} counters SEC(".maps");

/* Events that the first program has seen and the second has not yet checked. The key of an event is its skb and
 * the stack address of its arguments: the same for both programs, different for a process and the softirq that
 * interrupts it. At most two slots are in use at once. Two more absorb entries left by a softirq that interrupts
 * the second program (the kernel skips a program that is already running). All four take 64 bytes.
 */
enum { SEEN_PROBE, SEEN_RETRANSMIT, SEEN_KINDS };
enum { SEEN_SLOTS = 4 };

struct seen_slots {
	struct {
		__u64 stack;
		__u64 skb; /* 0: free */
	} slot[SEEN_SLOTS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SEEN_KINDS);
	__type(key, __u32);
	__type(value, struct seen_slots);
} seen_events SEC(".maps");

/* Called by the first program. Volatile: a softirq may read the slots at any moment. */
static __always_inline void note_seen(__u32 kind, const __u64 *ctx)
{
	volatile struct seen_slots *slots = bpf_map_lookup_elem(&seen_events, &kind);
	int chosen = 0;

	if (!slots)
		return; /* cannot happen: the map has an entry for every kind */
#pragma unroll
	for (int i = SEEN_SLOTS - 1; i >= 0; i--)
		if (!slots->slot[i].skb)
			chosen = i;
#pragma unroll
	for (int i = 0; i < SEEN_SLOTS; i++)
		if (slots->slot[i].stack == (__u64)ctx) /* stale or free: each stack has one slot */
			chosen = i;
#pragma unroll
	for (int i = 0; i < SEEN_SLOTS; i++) {
		if (chosen == i) {
			slots->slot[i].stack = (__u64)ctx;
			slots->slot[i].skb = ctx[1];
		}
	}
}

/* Called by the second program: whether the first one saw this event. Frees the slot, because the address of an
 * skb is soon reused.
 */
static __always_inline bool was_seen(__u32 kind, const __u64 *ctx)
{
	volatile struct seen_slots *slots = bpf_map_lookup_elem(&seen_events, &kind);

	if (!slots)
		return true;
#pragma unroll
	for (int i = 0; i < SEEN_SLOTS; i++) {
		if (slots->slot[i].stack == (__u64)ctx && slots->slot[i].skb == ctx[1]) {
			slots->slot[i].skb = 0;
			return true;
		}
	}
	return false;
}

static __always_inline bool is_selected(const struct sock *sk)
{
	__u16 remote_port = bpf_ntohs(sk->__sk_common.skc_dport);

	return sk->__sk_common.skc_net.net->ns.inum == traced_netns_inode &&
	       remote_port >= first_remote_port && remote_port <= last_remote_port;
}

static __always_inline void fill_addresses(struct tcp_record *record, const struct sock *sk)
{
	const struct sock_common *common = &sk->__sk_common;

	record->src_port = common->skc_num;
	record->dst_port = bpf_ntohs(common->skc_dport);
	if (common->skc_family == AF_INET6 && bpf_core_field_exists(common->skc_v6_daddr)) {
		fill_ipv6_addresses(record, common->skc_v6_rcv_saddr.in6_u.u6_addr32,
				    common->skc_v6_daddr.in6_u.u6_addr32);
	} else {
		fill_ipv4_addresses(record, common->skc_rcv_saddr, common->skc_daddr);
	}
}

static __always_inline void fill_socket(struct tcp_record *record, struct sock *sk, struct tcp_sock *tcp)
{
	__u64 pacing_rate = sk->sk_pacing_rate;

	if (bpf_core_field_size(sk->sk_pacing_rate) == sizeof(__u32) && pacing_rate == UNLIMITED_32)
		pacing_rate = ~0ULL;
	record->socket_cookie = bpf_get_socket_cookie(sk);
	record->pacing_rate_bytes_per_s = pacing_rate;
	fill_tcp(record, tcp);
	record->ca_state = BPF_CORE_READ_BITFIELD(&tcp->inet_conn, icsk_ca_state);
}

/* Reserves one record in this CPU's ring. If the ring is full: counts a loss and returns NULL. */
static __always_inline struct tcp_record *reserve(struct cpu_counters *count, __u32 cpu, __u8 event)
{
	void *ring = bpf_map_lookup_elem(&rings, &cpu);
	struct tcp_record *record = ring ? bpf_ringbuf_reserve(ring, sizeof(*record), 0) : NULL;

	if (!record) {
		__sync_fetch_and_add(&count->lost, 1);
		return NULL;
	}
	record->mono_ns = bpf_ktime_get_ns();
	record->event = event;
	record->cpu = cpu;
	record->netns_inode = traced_netns_inode;
	record->unknown_fields = 0;
	return record;
}

static __always_inline __u16 saturated(__u32 bytes)
{
	return bytes > 0xffff ? 0xffff : bytes;
}

static __always_inline void fill_received(struct tcp_record *record, const struct sk_buff *skb)
{
	__u8 header[TCP_HEADER_BYTES] = {};
	__u32 header_bytes, length;

	bpf_probe_read_kernel(header, sizeof(header), skb->data);
	header_bytes = header[TCP_DATA_OFFSET_AT] >> 4 << 2;
	length = skb->len;
	record->event_seq = bpf_ntohl(*(__be32 *)(header + TCP_SEQ_AT));
	record->data_bytes = length > header_bytes ? saturated(length - header_bytes) : 0;
}

static __always_inline void fill_retransmitted(struct tcp_record *record, const struct sk_buff *skb)
{
	__u32 seq = 0;

	bpf_core_read(&seq, sizeof(seq), &((struct tcp_skb_cb *)skb->cb)->seq);
	record->event_seq = seq;
	record->data_bytes = saturated(skb->len);
}

/* Counts the event, and records it if its socket is selected and the retransmission did not fail. `event` is a
 * constant: each program contains the code of its own event only.
 */
static __always_inline void record_event(const __u64 *ctx, __u8 event, bool failed, bool rescued)
{
	struct sock *sk = (struct sock *)ctx[0];
	const struct sk_buff *skb = (const struct sk_buff *)ctx[1];
	__u32 cpu = bpf_get_smp_processor_id();
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	struct cpu_counters *count = bpf_map_lookup_elem(&counters, &cpu);
	struct tcp_record *record;

	if (!count || !tcp)
		return;
	if (rescued)
		__sync_fetch_and_add(&count->rescued, 1);
	if (!is_selected(sk)) {
		__sync_fetch_and_add(&count->other_sockets, 1);
		return;
	}
	if (failed) {
		__sync_fetch_and_add(&count->retransmit_failures, 1);
		return;
	}
	__sync_fetch_and_add(event == TCP_EVENT_PROBE ? &count->probe_events : &count->retransmit_events, 1);
	record = reserve(count, cpu, event);
	if (!record)
		return;
	if (event == TCP_EVENT_PROBE)
		fill_received(record, skb);
	else
		fill_retransmitted(record, skb);
	fill_addresses(record, sk);
	fill_socket(record, sk, tcp);
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* tcp_probe(struct sock *sk, const struct sk_buff *skb): called at the start of tcp_rcv_established
 * (net/ipv4/tcp_input.c); skb->data is the TCP header.
 */
SEC("tp_btf/tcp_probe")
int on_tcp_probe(__u64 *ctx)
{
	note_seen(SEEN_PROBE, ctx);
	record_event(ctx, TCP_EVENT_PROBE, false, false);
	return 0;
}

SEC("tp_btf/tcp_probe")
int rescue_tcp_probe(__u64 *ctx)
{
	if (!was_seen(SEEN_PROBE, ctx))
		record_event(ctx, TCP_EVENT_PROBE, false, true);
	return 0;
}

/* tcp_retransmit_skb(const struct sock *sk, const struct sk_buff *skb[, int err]): called in
 * __tcp_retransmit_skb, after the segment was passed to IP and before retrans_out counts it; skb is the one in
 * the retransmit queue, so it has no header.
 */
SEC("tp_btf/tcp_retransmit_skb")
int on_tcp_retransmit_skb(__u64 *ctx)
{
	bool failed = retransmit_has_error && (int)ctx[2];

	note_seen(SEEN_RETRANSMIT, ctx);
	record_event(ctx, TCP_EVENT_RETRANSMIT, failed, false);
	return 0;
}

SEC("tp_btf/tcp_retransmit_skb")
int rescue_tcp_retransmit_skb(__u64 *ctx)
{
	bool failed = retransmit_has_error && (int)ctx[2];

	if (!was_seen(SEEN_RETRANSMIT, ctx))
		record_event(ctx, TCP_EVENT_RETRANSMIT, failed, true);
	return 0;
}
