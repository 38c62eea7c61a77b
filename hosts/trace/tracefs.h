/* SPDX-License-Identifier: MIT
 * The kernel's tracefs, and its small files of text.
 */
#ifndef TRACE_TRACEFS_H
#define TRACE_TRACEFS_H

#include <stddef.h>

enum { TRACEFS_TEXT_BYTES = 16384 }; /* what the longest text that is read here may have */

/* A descriptor of its root. It need not be mounted, and is not mounted by this. -errno after one line. */
int tracefs_open(void);

/* path is relative to the directory dir. 0 or -errno, silently. */
int tracefs_write(int dir, const char *path, const char *text);
/* The whole text, with an end; text has TRACEFS_TEXT_BYTES. 0 or -errno, silently. */
int tracefs_read(int dir, const char *path, char *text);

#endif
