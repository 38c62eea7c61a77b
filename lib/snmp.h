/* SPDX-License-Identifier: MIT
 * The kernel's counters of a protocol in a network namespace: /proc/net/snmp and /proc/net/netstat.
 */
#ifndef LIB_SNMP_H
#define LIB_SNMP_H

#include <stdint.h>
#include <stdio.h>

/* The counter name ("InSegs") of a protocol ("Tcp"), as it is now: file is one of the two, of the network namespace
 * in which it was opened, and is read from its beginning. 0, or -ENOENT when it has no such counter.
 */
int snmp_counter(FILE *file, const char *protocol, const char *name, uint64_t *value);

#endif
