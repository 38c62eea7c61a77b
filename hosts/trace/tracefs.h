/* SPDX-License-Identifier: MIT
 * Opens tracefs, and reads and writes its small text files.
 */
#ifndef TRACE_TRACEFS_H
#define TRACE_TRACEFS_H

#include <stddef.h>

enum { TRACEFS_TEXT_BYTES = 16384 }; /* buffer for a file's text and the NUL */

/* A descriptor of the root of tracefs, mounted or not; makes no mount point. -errno after one message. */
int tracefs_open(void);

/* path is relative to the directory dir. 0 or -errno, silently. */
int tracefs_write(int dir, const char *path, const char *text);
/* Reads the whole file, terminated by NUL; text has TRACEFS_TEXT_BYTES. 0 or -errno, silently. */
int tracefs_read(int dir, const char *path, char *text);

#endif
