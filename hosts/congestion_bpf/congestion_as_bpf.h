/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The part of the kernel's headers that congestion controls use, for BPF struct_ops. BTF has types and enumerations,
 * but neither macros nor inline functions. Types come from the running kernel's BTF (vmlinux.h), so that libbpf adjusts
 * every field's offset (CO-RE).
 *
 * A BPF program may do less than a module. It can write only icsk_ca_priv, icsk_ack.pending, sk_pacing_rate,
 * sk_pacing_status, snd_cwnd, snd_cwnd_cnt, snd_cwnd_stamp, snd_ssthresh, ecn_flags and app_limited. The verifier
 * refuses a loop without a bound. There is no signed division.
 */
#ifndef CONGESTION_AS_BPF_H
#define CONGESTION_AS_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/* BPF_PROG changes a callback's parameters to the array in which the kernel passes them. */
#pragma clang diagnostic ignored "-Wincompatible-function-pointer-types"

#define CALLBACK(type, name, ...) SEC("struct_ops/" #name) type BPF_PROG(name, ##__VA_ARGS__)
/* The loader sets the name, because labs that run at the same time need different names. */
#define CONGESTION_CONTROL(state, ...)                                                                       \
	_Static_assert(sizeof(state) <= sizeof(((struct inet_connection_sock *)0)->icsk_ca_priv),            \
		       "the flow's state is larger than ICSK_CA_PRIV_SIZE");                                 \
	SEC(".struct_ops") struct tcp_congestion_ops algorithm = {__VA_ARGS__}
#define MODULE_LICENSE(text)	 char _license[] SEC("license") = text
#define MODULE_DESCRIPTION(text) _Static_assert(1, text)
/* A parameter keeps its initial value: nobody sets it in real time. */
#define module_param(name, type, mode) _Static_assert(sizeof(name), #type)
#define MODULE_PARM_DESC(name, text)   _Static_assert(1, text)
#define MODULE_AUTHOR(text)	       _Static_assert(1, text)

/* Functions that the kernel offers to struct_ops programs. */
extern u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
extern u32 tcp_slow_start(struct tcp_sock *tp, u32 acked) __ksym;
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked) __ksym;

/* Macros of the kernel, which BTF lacks. */
#define TCP_CONG_NON_RESTRICTED (1U << 0)
#define TCP_CONG_NEEDS_ECN	(1U << 1)
#define TCP_INFINITE_SSTHRESH	0x7fffffff
#define TCP_INIT_CWND		10
#define TCP_ECN_OK		1
#define TCP_ECN_DEMAND_CWR	4
#define USEC_PER_MSEC		1000UL
#define USEC_PER_SEC		1000000UL
#define NSEC_PER_USEC		1000UL
#define NSEC_PER_SEC		1000000000UL
#define U32_MAX			((u32)~0U)
extern unsigned long CONFIG_HZ __kconfig;
#define HZ CONFIG_HZ

#define likely(condition)	 __builtin_expect(!!(condition), 1)
#define unlikely(condition)	 __builtin_expect(!!(condition), 0)
#define READ_ONCE(value)	 (value)
#define WRITE_ONCE(place, value) ((place) = (value))
#define ARRAY_SIZE(array)	 (sizeof(array) / sizeof((array)[0]))
#define BUILD_BUG_ON(condition)	 _Static_assert(!(condition), #condition)

#define min_t(type, a, b)                                                                                    \
	({                                                                                                   \
		type _a = (a), _b = (b);                                                                     \
		_a < _b ? _a : _b;                                                                           \
	})
#define max_t(type, a, b)                                                                                    \
	({                                                                                                   \
		type _a = (a), _b = (b);                                                                     \
		_a > _b ? _a : _b;                                                                           \
	})
#define min(a, b)		   min_t(typeof(a), a, b)
#define max(a, b)		   max_t(typeof(a), a, b)
#define clamp(value, low, high)	   min(max(value, low), high)
#define min_not_zero(a, b)	   ((a) == 0 ? (b) : ((b) == 0 ? (a) : min(a, b)))
#define div_u64(dividend, divisor) ((u64)(dividend) / (u32)(divisor))
#define div64_u64(a, b)		   ((u64)(a) / (u64)(b))
#define div64_ul(a, b)		   ((u64)(a) / (u64)(b))

static __always_inline u32 reciprocal_scale(u32 value, u32 end)
{
	return (u32)(((u64)value * end) >> 32);
}

static __always_inline struct tcp_sock *tcp_sk(const struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline struct inet_connection_sock *inet_csk(const struct sock *sk)
{
	return (struct inet_connection_sock *)sk;
}

static __always_inline void *inet_csk_ca(const struct sock *sk)
{
	return (void *)inet_csk(sk)->icsk_ca_priv;
}

static __always_inline bool before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}
#define after(a, b) before(b, a)

#define tcp_jiffies32 ((u32)bpf_jiffies64())

static __always_inline u32 tcp_snd_cwnd(const struct tcp_sock *tp)
{
	return tp->snd_cwnd;
}

static __always_inline void tcp_snd_cwnd_set(struct tcp_sock *tp, u32 window)
{
	tp->snd_cwnd = window;
}

static __always_inline bool tcp_in_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

static __always_inline bool tcp_in_initial_slowstart(const struct tcp_sock *tp)
{
	return tp->snd_ssthresh >= TCP_INFINITE_SSTHRESH;
}

static __always_inline u32 tcp_packets_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

static __always_inline u32 tcp_min_rtt(const struct tcp_sock *tp)
{
	return tp->rtt_min.s[0].v;
}

/* Whether the window limits the flow. In slow start more than half of the window in flight is enough, as in the
 * kernel.
 */
static __always_inline bool tcp_is_cwnd_limited(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return true;
	return tcp_in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out;
}

/* All flows draw from one splitmix64 generator, which the loader seeds. */
const volatile u64 random_seed;
u64 random_draws;

static __always_inline u64 random_u64(void)
{
	u64 z = random_seed + 0x9e3779b97f4a7c15ULL * (1 + __sync_fetch_and_add(&random_draws, 1));

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static __always_inline void send_ack(struct sock *sk, u32 rcv_nxt)
{
	bpf_tcp_send_ack(sk, rcv_nxt);
}

#endif
