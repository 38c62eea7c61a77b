/* SPDX-License-Identifier: MIT
 * Gives up root once every file that needs root is open.
 */
#ifndef TRACE_PRIVILEGES_H
#define TRACE_PRIVILEGES_H

/* Becomes user irrevocably, with the user's group and no other, and checks that the user can write to the
 * directory of path, where the summary is renamed at the end. Returns 0, or -errno after one message.
 */
int privileges_drop(const char *user, const char *path);

#endif
