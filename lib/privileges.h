/* SPDX-License-Identifier: MIT
 * Giving up root once everything that needs it is open.
 */
#ifndef LIB_PRIVILEGES_H
#define LIB_PRIVILEGES_H

/* Becomes user for good, with its group and no other. 0, -ENOENT: there is no such user, or -errno. */
int become_user(const char *user);

#endif
