/* SPDX-License-Identifier: MIT
 * A file that is whole or not there: written under another name, brought to the disk, renamed.
 */
#ifndef LIB_COMMIT_H
#define LIB_COMMIT_H

#include <stdio.h>

/* Closes file, which was written at the path partial, and renames it to path once all of it is on the disk.
 * 0, or -errno: then partial is still there and path as it was.
 */
int commit_file(FILE *file, const char *partial, const char *path);

#endif
