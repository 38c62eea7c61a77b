/* SPDX-License-Identifier: MIT
 * Runs a function in another network namespace.
 */
#ifndef TRACE_NETNS_H
#define TRACE_NETNS_H

/* Calls work with this thread in the network namespace at path, then moves back. Returns work's result, or -errno. */
int netns_call(const char *path, int (*work)(void *context), void *context);

#endif
