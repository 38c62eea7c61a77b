/* SPDX-License-Identifier: MIT
 * Gives up root after everything that needs root is open.
 */
#ifndef LIB_PRIVILEGES_H
#define LIB_PRIVILEGES_H

/* Becomes user for good, with only the user's primary group. Returns 0, -ENOENT (no such user) or -errno. */
int become_user(const char *user);

#endif
