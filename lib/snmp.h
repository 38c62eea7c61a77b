/* SPDX-License-Identifier: MIT
 * The kernel's counters of a protocol in a network namespace: /proc/net/snmp and /proc/net/netstat.
 */
#ifndef LIB_SNMP_H
#define LIB_SNMP_H

#include <stdint.h>
#include <stdio.h>

/* Reads the current value of the counter `name` ("InSegs") of `protocol` ("Tcp"). `file` is an open /proc/net/snmp or
 * /proc/net/netstat, and shows the network namespace in which it was opened. Returns 0, or -ENOENT if `file` has no
 * such counter.
 */
int snmp_counter(FILE *file, const char *protocol, const char *name, uint64_t *value);

#endif
