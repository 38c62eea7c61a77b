/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The fields of a TCP record that BPF and kernel code read from a socket in the same way. Define the types before this
 * header is included: struct tcp_sock (linux/tcp.h or vmlinux_subset.h) and struct tcp_record.
 */
#ifndef TRACE_RECORD_FIELDS_H
#define TRACE_RECORD_FIELDS_H

/* Half of an address. Raw files and all supported CPUs are little-endian (wire/tcp_record.h). */
static __always_inline __u64 address_half(__be32 first, __be32 second)
{
	return (__u64)__builtin_bswap32((__u32)first) << 32 | __builtin_bswap32((__u32)second);
}

static __always_inline void fill_ipv6_addresses(struct tcp_record *record, const __be32 *src,
						const __be32 *dst)
{
	record->src_addr_hi = address_half(src[0], src[1]);
	record->src_addr_lo = address_half(src[2], src[3]);
	record->dst_addr_hi = address_half(dst[0], dst[1]);
	record->dst_addr_lo = address_half(dst[2], dst[3]);
}

/* As IPv4-mapped IPv6 addresses. */
static __always_inline void fill_ipv4_addresses(struct tcp_record *record, __be32 src, __be32 dst)
{
	record->src_addr_hi = 0;
	record->src_addr_lo = 0xffffULL << 32 | __builtin_bswap32((__u32)src);
	record->dst_addr_hi = 0;
	record->dst_addr_lo = 0xffffULL << 32 | __builtin_bswap32((__u32)dst);
}

static __always_inline void fill_tcp(struct tcp_record *record, const struct tcp_sock *tcp)
{
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
	record->rtt_min_us = tcp->rtt_min.s[0].v;
	record->rate_delivered_packets = tcp->rate_delivered;
	record->rate_interval_us = tcp->rate_interval_us;
	record->mss_bytes = tcp->mss_cache;
}

#endif
