/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Lets one C file be a congestion control of two kernels: built into the virtual-time kernel, and loaded into a running
 * kernel as BPF struct_ops. The C file includes only this header, and uses the kernel's own names.
 *
 * CALLBACK(type, name, parameters) begins a function of struct tcp_congestion_ops. CONGESTION_CONTROL(state, members)
 * registers the functions; `state` is the type of a flow's private data, to which inet_csk_ca(sk) points. In the
 * virtual-time kernel the algorithm has the file's name. For BPF the loader sets the name.
 */
#ifndef CONGESTION_H
#define CONGESTION_H

#ifdef __bpf__
#include "congestion_as_bpf.h"
#else

#include <linux/math64.h>
#include <linux/random.h>

#include "register.h"

#define CALLBACK(type, name, ...) static type name(__VA_ARGS__)

/* The kernel's random numbers follow from the machine's seed (virtual/kernel/patches/seeded-random.patch). */
static inline u64 random_u64(void)
{
	u64 value;

	get_random_bytes(&value, sizeof(value));
	return value;
}

/* Acknowledges up to rcv_nxt at once. The third parameter of __tcp_send_ack came with Linux 6.15; 6.12.117 has it
 * too.
 */
#define send_ack(sk, rcv_nxt)	  __tcp_send_ack(sk, rcv_nxt, 0)

#endif
#endif
