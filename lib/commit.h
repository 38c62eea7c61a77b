/* SPDX-License-Identifier: MIT
 * Makes a program's report atomically: written under another name, synced to the disk, renamed.
 */
#ifndef LIB_COMMIT_H
#define LIB_COMMIT_H

#include <stdio.h>

/* Call before the work whose report it is: whether path is short enough, and its directory writable. Returns 0, or
 * -errno after one line.
 */
int report_check(const char *path);

/* Writes the report with print. Returns 0, or -errno after one line: then path is unchanged. */
int report_write(const char *path, void (*print)(FILE *file, const void *context), const void *context);

#endif
