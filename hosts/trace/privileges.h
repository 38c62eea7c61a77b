/* SPDX-License-Identifier: MIT
 * Giving up root once everything that needs it is open.
 */
#ifndef TRACE_PRIVILEGES_H
#define TRACE_PRIVILEGES_H

/* Becomes user for good, with its group and no other, and checks that it can still write to the directory of
 * path (the summary is renamed there at the end). 0 or -errno after one line.
 */
int privileges_drop(const char *user, const char *path);

#endif
