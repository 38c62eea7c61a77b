/* SPDX-License-Identifier: MIT
 * Makes a file atomically: written under another name, synced to the disk, renamed.
 */
#ifndef LIB_COMMIT_H
#define LIB_COMMIT_H

#include <stdio.h>

/* Syncs and closes file, which was written at the path partial, and renames partial to path.
 * Returns 0, or -errno: then partial still exists and path is unchanged.
 */
int commit_file(FILE *file, const char *partial, const char *path);

#endif
