/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * CONGESTION_CONTROL(state, members) registers a struct tcp_congestion_ops with these members, named like the C file.
 * `state` is the type of a flow's private data. MODULE_LICENSE stays in the algorithm's file, because BPF needs it too.
 */
#ifndef REGISTER_H
#define REGISTER_H

#include <linux/module.h>
#include <net/tcp.h>

#define CONGESTION_CONTROL(state, ...)                                                                       \
	static struct tcp_congestion_ops algorithm __read_mostly = {                                         \
		.name = KBUILD_MODNAME, .owner = THIS_MODULE, __VA_ARGS__};                                  \
	static int __init register_algorithm(void)                                                           \
	{                                                                                                    \
		BUILD_BUG_ON(sizeof(state) > ICSK_CA_PRIV_SIZE);                                             \
		return tcp_register_congestion_control(&algorithm);                                          \
	}                                                                                                    \
	static void __exit unregister_algorithm(void)                                                        \
	{                                                                                                    \
		tcp_unregister_congestion_control(&algorithm);                                               \
	}                                                                                                    \
	module_init(register_algorithm);                                                                     \
	module_exit(unregister_algorithm)

#endif
