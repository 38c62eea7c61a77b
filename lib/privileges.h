/* SPDX-License-Identifier: MIT
 * Gives up root after everything that needs root is open.
 */
#ifndef LIB_PRIVILEGES_H
#define LIB_PRIVILEGES_H

/* Becomes user for good, with only the user's primary group. Returns 0, -ENOENT (no such user) or -errno. */
int become_user(const char *user);

/* Gives up every capability of this thread, and of those that it starts, for good. Returns 0 or -errno. */
int drop_capabilities(void);

/* Gives up every capability; root also becomes the owner of the directory of `file` (NULL: stays root), who can make
 * and rename files there. If a parent directory is closed to the owner, root stays root and keeps CAP_DAC_OVERRIDE.
 * Before other threads start. Returns 0, or -errno after one message.
 */
int drop_privileges(const char *file);

#endif
