/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The two events. The kernel's trace headers include this file several times, with other macros each time. Besides the
 * record, an event has fields for the kernel's filters (netns_inode, dport) and the reader (failed, record_version).
 */
#if !defined(BUFFERSCOPE_TCP_EVENT_H) || defined(TRACE_CUSTOM_MULTI_READ)
#define BUFFERSCOPE_TCP_EVENT_H

#include <linux/trace_events.h>

/* Since Linux 6.16 the tracepoint tcp_retransmit_skb has the result of sending. */
#ifndef TCP_RETRANSMIT_PROTO
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
#define TCP_RETRANSMIT_PROTO TP_PROTO(const struct sock *sk, const struct sk_buff *skb, int err)
#define TCP_RETRANSMIT_ARGS  TP_ARGS(sk, skb, err)
#define TCP_RETRANSMIT_ERR   err
#else
#define TCP_RETRANSMIT_PROTO TP_PROTO(const struct sock *sk, const struct sk_buff *skb)
#define TCP_RETRANSMIT_ARGS  TP_ARGS(sk, skb)
#define TCP_RETRANSMIT_ERR   0
#endif
#endif

/* clang-format off: the kernel's macros are not C */
TRACE_CUSTOM_EVENT(tcp_probe, TP_PROTO(struct sock *sk, probed_skb_t skb), TP_ARGS(sk, skb),
		   TP_STRUCT__entry(__field(__u32, netns_inode) __field(__u16, dport) __field(__u8, failed)
					    __field(__u8, record_version)
						    __array(__u8, record, TCP_RECORD_BYTES)),
		   TP_fast_assign(__entry->netns_inode = sock_net(sk)->ns.inum;
				  __entry->dport = ntohs(sk->sk_dport); __entry->failed = 0;
				  __entry->record_version = TCP_RECORD_VERSION;
				  fill_probe((struct tcp_record *)__entry->record, sk, skb);),
		   TP_printk("netns=%u dport=%u record=%s", __entry->netns_inode, __entry->dport,
			     __print_hex_str(__entry->record, sizeof(__entry->record))))

TRACE_CUSTOM_EVENT(
	tcp_retransmit_skb, TCP_RETRANSMIT_PROTO, TCP_RETRANSMIT_ARGS,
	TP_STRUCT__entry(__field(__u32, netns_inode) __field(__u16, dport) __field(__u8, failed)
				 __field(__u8, record_version) __array(__u8, record, TCP_RECORD_BYTES)),
	TP_fast_assign(__entry->netns_inode = sock_net(sk)->ns.inum; __entry->dport = ntohs(sk->sk_dport);
		       __entry->failed = !!TCP_RETRANSMIT_ERR; __entry->record_version = TCP_RECORD_VERSION;
		       fill_retransmit((struct tcp_record *)__entry->record, sk, skb);),
	TP_printk("netns=%u dport=%u failed=%u record=%s", __entry->netns_inode, __entry->dport,
		  __entry->failed, __print_hex_str(__entry->record, sizeof(__entry->record))))
/* clang-format on */

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE tcp_event
#include <trace/define_custom_trace.h>
