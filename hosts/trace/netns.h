/* SPDX-License-Identifier: MIT
 * Doing something in another network namespace.
 */
#ifndef TRACE_NETNS_H
#define TRACE_NETNS_H

/* Calls work with this thread in the network namespace at path, and comes back. What work returns, or -errno. */
int netns_call(const char *path, int (*work)(void *context), void *context);

#endif
